"""Versions of memd: which of two is older.

Comes in: a version. Goes out: an answer. Invariant: a part that is no number counts as 0.
"""

from __future__ import annotations

from ... import __version__


def is_older(version: str) -> bool:
    """Whether a daemon of that version is older than this command: an upgrade left it running (P-26)."""
    return _numbers(version) < _numbers(__version__)


def _numbers(version: str) -> list[int]:
    return [int(part) if part.isdecimal() else 0 for part in version.split(".")]
