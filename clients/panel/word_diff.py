"""Two texts compared word by word."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator

_WORD = re.compile(r"\s+|\w+|[^\w\s]")

Part = tuple[str, str]
"""A part of a text: "same", "gone" or "new", and its words."""


def word_diff(before: str, after: str) -> Iterator[Part]:
    """Yield parts of both texts in order as ("same" | "gone" | "new", text), word by word."""
    old, new = _WORD.findall(before), _WORD.findall(after)
    for name, i, j, k, m in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if name == "equal":
            yield "same", "".join(old[i:j])
            continue
        if i < j:
            yield "gone", "".join(old[i:j])
        if k < m:
            yield "new", "".join(new[k:m])


def beside(before: str, after: str) -> tuple[list[Part], list[Part]]:
    """Return the parts of each text for a view side by side."""
    parts = list(word_diff(before, after))
    return [part for part in parts if part[0] != "new"], [part for part in parts if part[0] != "gone"]
