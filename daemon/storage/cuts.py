"""Secrets cut out of words: the words after it, and where everything else in them stands then (P-18).

Comes in: a text and its cuts, in order and apart. Goes out: the text with placeholders, and places moved along.
Invariants: pure; `moved` of a place in the old words is the same place in the new ones, and a place inside of a secret
becomes the edge of its placeholder, so that a span never begins or ends within one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ...protocol.operation import Cut


def placeholder(cut: Cut) -> str:
    """What stands where the secret was."""
    return f"[redacted:{cut.rule}]"


def replaced(words: str, cuts: Sequence[Cut]) -> str:
    """`words` with a placeholder for each cut."""
    parts: list[str] = []
    at = 0
    for cut in cuts:
        parts += (words[at : cut.start], placeholder(cut))
        at = cut.end
    return "".join(parts) + words[at:]


def moved(start: int, end: int, cuts: Sequence[Cut]) -> tuple[int, int]:
    """Where characters `start:end` stand after these cuts; those of a secret that they hold a part of, whole."""
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
    """These cuts of one capture in order; where some overlap, the whole of them under the first's rule."""
    found: list[Cut] = []
    for cut in sorted(cuts, key=lambda each: (each.start, -each.end)):
        if found and cut.start < found[-1].end:
            last = found[-1]
            found[-1] = Cut(last.seq, last.start, max(last.end, cut.end), last.rule)
        else:
            found.append(cut)
    return tuple(found)
