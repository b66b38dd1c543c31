"""The files that the hook program writes in its folder: sessions that grew, and turns without memory.

Unknown lines are skipped.
"""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

import msgspec

T = TypeVar("T")
DAY_S = 86_400.0


class SessionNote(msgspec.Struct, frozen=True, kw_only=True):
    """A session's file grew. `cwd`: the folder that the agent works in; `urgent`: its context is about to be cut, so
    that memd distils it at once (W2)."""

    agent: str
    path: str
    cwd: str = ""
    ended: bool = False
    urgent: bool = False


class Skipped(msgspec.Struct, frozen=True, kw_only=True):
    """A turn without memory. `at`: seconds since 1970."""

    at: float
    agent: str
    event: str
    reason: str


class SkipCount(msgspec.Struct, frozen=True, kw_only=True):
    """The turns of the last day without memory, by reason, and the last of them."""

    total: int
    reasons: dict[str, int]
    last: Skipped


_notes, _skips = msgspec.json.Decoder(SessionNote), msgspec.json.Decoder(Skipped)


def has_notes(folder: Path) -> bool:
    """Whether a session waits to be read."""
    return any((folder / name).exists() for name in ("queue", "queue.taken"))


def take_notes(folder: Path) -> tuple[list[SessionNote], int]:
    """Return the latest note of each session, and the size of all notes in bytes. The notes stay until `drop_notes`,
    so that the next call returns those of an interrupted one."""
    queue, taken = folder / "queue", folder / "queue.taken"
    if not taken.exists():
        with suppress(FileNotFoundError):
            queue.rename(taken)
    try:
        content = taken.read_bytes()
    except OSError:
        return [], 0
    latest: dict[str, SessionNote] = {}
    for note in _decoded(_notes, content):
        was_urgent = note.path in latest and latest[note.path].urgent
        latest[note.path] = msgspec.structs.replace(note, urgent=note.urgent or was_urgent)
    return list(latest.values()), len(content)


def drop_notes(folder: Path, size: int) -> None:
    """Delete the taken notes, unless a hook has just appended to the file."""
    taken = folder / "queue.taken"
    with suppress(FileNotFoundError):
        if taken.stat().st_size == size:
            taken.unlink()


def skipped(folder: Path, now_s: float) -> SkipCount | None:
    """Count the turns of the last day without memory; None for none (U6, P-3)."""
    turns: list[Skipped] = []
    with suppress(OSError):
        turns = [turn for turn in _decoded(_skips, (folder / "skips").read_bytes()) if turn.at > now_s - DAY_S]
    if not turns:
        return None
    reasons = Counter(turn.reason for turn in turns)
    return SkipCount(total=len(turns), reasons=dict(reasons.most_common()), last=turns[-1])


def _decoded(decoder: msgspec.json.Decoder[T], content: bytes) -> list[T]:
    lines: list[T] = []
    for line in content.splitlines():
        with suppress(msgspec.MsgspecError, UnicodeDecodeError):
            lines.append(decoder.decode(line))
    return lines
