"""Replaces secrets in a text by placeholders, and maps places in the old text to the new one (P-18).

Invariants: a place inside a secret becomes the edge of its placeholder, so that no span starts or ends within one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ...protocol.operation import Cut


def placeholder(cut: Cut) -> str:
    """Return the text that replaces a secret."""
    return f"[redacted:{cut.rule}]"


def replaced(text: str, cuts: Sequence[Cut]) -> str:
    """Return `text` with a placeholder for each cut; cuts are in order and do not overlap."""
    parts: list[str] = []
    at = 0
    for cut in cuts:
        parts += (text[at : cut.start], placeholder(cut))
        at = cut.end
    return "".join(parts) + text[at:]


def moved(start: int, end: int, cuts: Sequence[Cut]) -> tuple[int, int]:
    """Return the place of characters `start:end` after these cuts, widened to whole placeholders."""
    return _moved(start, cuts, is_end=False), _moved(end, cuts, is_end=True)


def _moved(place: int, cuts: Sequence[Cut], *, is_end: bool) -> int:
    shift = 0
    for cut in cuts:
        size = len(placeholder(cut))
        if cut.end <= place and not (is_end and cut.end == place):
            shift += size - (cut.end - cut.start)
        elif cut.start < place:
            return cut.start + shift + (size if is_end else 0)
        else:
            break
    return place + shift


def joined(cuts: Iterable[Cut]) -> tuple[Cut, ...]:
    """Return the cuts of one capture in order, overlapping ones joined under the rule of the first."""
    joined: list[Cut] = []
    for cut in sorted(cuts, key=lambda cut: (cut.start, -cut.end)):
        if joined and cut.start < joined[-1].end:
            last = joined[-1]
            joined[-1] = Cut(last.seq, last.start, max(last.end, cut.end), last.rule)
        else:
            joined.append(cut)
    return tuple(joined)
