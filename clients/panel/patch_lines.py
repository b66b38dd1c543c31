"""The lines of a proposed patch in parts: what joins the playbook, what is replaced, what goes (G2, G7)."""

from __future__ import annotations

import re
from dataclasses import dataclass

from .word_diff import Part, beside

_ADDED = re.compile(r"add “(?P<new>.*)” · confidence (?P<confidence>[\d.]+)(?: · (?P<proof>.*))?", re.DOTALL)
_REPLACED = re.compile(r"replace “(?P<old>.*)” · by “(?P<new>.*)”", re.DOTALL)
_RETIRED = re.compile(r"retire “(?P<old>.*)”(?: · (?P<proof>[^”]*))?", re.DOTALL)


@dataclass(frozen=True)
class PatchLine:
    """A line of a patch. `old`, `new`: the parts of the text that goes and of the one that comes, empty for none;
    `proof`: what proves it, or why it goes; `other`: the line as it came, if it is neither."""

    old: list[Part]
    new: list[Part]
    proof: str = ""
    confidence: str = ""
    other: str = ""


def patch_line(line: str) -> PatchLine:
    """Return a line that the daemon wrote for a proposal in parts."""
    if found := _ADDED.fullmatch(line):
        return PatchLine([], [("same", found["new"])], found["proof"] or "", found["confidence"])
    if found := _REPLACED.fullmatch(line):
        return PatchLine(*beside(found["old"], found["new"]))
    if found := _RETIRED.fullmatch(line):
        return PatchLine([("same", found["old"])], [], found["proof"] or "")
    return PatchLine([], [], other=line)
