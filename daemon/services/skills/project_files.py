"""Tells which words a project's own files have: its paths, and the words of the files that define commands (K1)."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from .instructions import read_text
from .shown_words import Known
from .tables import table

_MANIFESTS = table("shell")["manifests"].split()
_WORD = re.compile(r"[\w@/.:-]+")


def _words(root: Path) -> Iterator[str]:
    for name in _MANIFESTS:
        for word in _WORD.findall(read_text(root / name)):
            yield from (word.strip(".:"), *word.split(":"))


def known_words(root: Path | None) -> Known:
    """Return whether a project has a word. Without a project none is known; no path out of the project is."""
    if root is None:
        return lambda word: False
    named = frozenset(_words(root))

    def is_known(word: str) -> bool:
        path = PurePosixPath(word)
        is_inside = bool(path.parts) and not path.is_absolute() and not any(part.startswith(".") for part in path.parts)
        return word in named or (is_inside and os.path.exists(root / path))

    return is_known
