"""Divides text into passages without a model: by paragraphs, and a long one behind a sentence (W12).

Invariants: no passage is longer than `LONGEST`, which is fewer tokens than a chunk has in any script; the passages of a
text have all its words in their order; a cut lies behind a sentence or a line, unless one sentence is longer than that.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

LONGEST = 5_500
"""Characters of a passage: a chunk has 6,000 tokens, and a character is at most one."""

USUAL = 2_500
"""Characters from which a paragraph is cut behind a sentence."""

_BLANK_LINES = re.compile(r"\n[ \t]*(?:\n[ \t]*)+")
# A sentence ends here for every reader: a word of letters before the mark, no abbreviation; a capital or a line after.
_SENTENCE = re.compile(
    r"(?:(?<=[a-z]{4}[.!?])|(?<=[a-z]{4}[.!?][\"')\]”’»]))(?:[ \t]*\n|[ \t]+(?=[\"'(\[“‘«]?[A-Z]))|(?<=[。！？])\s*"
)
_LINE = re.compile(r"\n")
_BLANK = re.compile(r"\s+")
_ABBREVIATIONS = re.compile(
    r"\b(?:approx|dept|univ|prof|misc|orig|incl|excl|resp|corp|assn|conf|chap|vols?)\.$", re.IGNORECASE
)


def paragraphs(text: str) -> Iterator[str]:
    """Yield the paragraphs of a text, divided by blank lines."""
    for paragraph in _BLANK_LINES.split(text):
        if paragraph.strip():
            yield paragraph.strip("\n").rstrip()


def pieces(paragraph: str, usual: int = USUAL, longest: int = LONGEST) -> Iterator[str]:
    """Yield a paragraph, in pieces if it is long."""
    start = 0
    while len(paragraph) - start > usual:
        end = _cut(paragraph, start, usual, longest)
        if end >= len(paragraph):
            break
        if piece := paragraph[start:end].strip():
            yield piece
        start = end
    if rest := paragraph[start:].strip():
        yield rest


def _cut(text: str, start: int, usual: int, longest: int) -> int:
    """Return where to cut: behind the last sentence that fits the usual length, else the first one that fits at all,
    else behind a line, a word, or at the longest length."""
    within = [at.end() for at in _SENTENCE.finditer(text, start, min(len(text), start + longest)) if _is_end(text, at)]
    usually = [end for end in within if start < end <= start + usual]
    if usually:
        return usually[-1]
    if within and within[0] > start:
        return within[0]
    if len(text) - start <= longest:
        return len(text)
    for pattern in (_LINE, _BLANK):
        ends = [at.end() for at in pattern.finditer(text, start + 1, start + longest)]
        if ends:
            return ends[-1]
    return start + longest


def _is_end(text: str, at: re.Match[str]) -> bool:
    return _ABBREVIATIONS.search(text, max(0, at.start() - 12), at.start()) is None
