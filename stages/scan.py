"""Scan: trust, injection, invisible characters (W5, P-19). Marks the candidate, never the capture.

Comes in: routed candidates. Goes out: the same with status and flags; a candidate that still holds a secret becomes a
rejection. Invariants: what the user did not say themselves starts in quarantine; a flag is added, never taken away;
emoji, flags, joined scripts and right-to-left text are not flagged for what they need.
"""

from __future__ import annotations

import re
import unicodedata

import msgspec

from ..protocol.record import Status
from .batch import Batch, Candidate, Rejection, step
from .rules import any_of, table
from .secrets.scan import find

STAGE = "scan"

_DATA = table("injection")
_PHRASES = any_of(_DATA["phrases"])
_INVISIBLE = re.compile("[" + "".join(f"{chr(first)}-{chr(last)}" for first, last in _DATA["invisible"]) + "]")
_JOINERS = "\u200c\u200d"
_TAGS = re.compile("\U0001f3f4[\U000e0061-\U000e007a\U000e0030-\U000e0039]{1,10}\U000e007f")
_DIRECTION = "\u200e\u200f\u061c"


def scan(batch: Batch) -> Batch:
    """The batch with every candidate judged; those that hold a secret are rejected without their words."""
    kept: list[Candidate] = []
    rejections: list[Rejection] = []
    for candidate in batch.candidates:
        if find(candidate.quote):
            rejections.append(Rejection(stage=STAGE, reason="secret", seq=candidate.item.seq))
            continue
        kept.append(_judged(candidate))
    return msgspec.structs.replace(batch, candidates=tuple(kept), rejections=batch.rejections + tuple(rejections))


def _judged(candidate: Candidate) -> Candidate:
    flags = found(candidate.quote, material=candidate.trust != "user")
    status: Status = "active" if candidate.trust == "user" and not flags else "quarantined"
    what = ", ".join((f"trust {candidate.trust}", *flags)) + f": {status}"
    return step(candidate, STAGE, what, status=status, flags=(*candidate.flags, *flags))


def found(text: str, material: bool = True) -> tuple[str, ...]:
    """The flags that `text` earns: `injection`, `invisible`. `material`: somebody else's words, not the user's own."""
    flags: list[str] = []
    hidden = invisible(text)
    bare = unicodedata.normalize("NFKC", _INVISIBLE.sub("", text))
    if _PHRASES.search(bare) and (material or hidden):
        flags.append("injection")
    elif _PHRASES.search(bare):
        flags.append("instruction-like")
    if hidden:
        flags.append("invisible")
    return tuple(flags)


def invisible(text: str) -> bool:
    """Whether `text` holds characters that no reader sees and no script needs."""
    if text.isascii():
        return False
    shown = _TAGS.sub("", text)
    return any(not _needed(shown, hit.start()) for hit in _INVISIBLE.finditer(shown))


def _needed(text: str, at: int) -> bool:
    """Whether the invisible character at `at` does its proper work there."""
    char = text[at]
    before, after = text[at - 1 : at], text[at + 1 : at + 2]
    if char in _JOINERS:
        return bool(before and after) and (
            (_pictured(before) and (char == "\u200c" or _pictured(after))) or _joining(before)
        )
    if "\ufe00" <= char <= "\ufe0f":
        return bool(before) and (
            _pictured(before) or before in "0123456789#*" or unicodedata.category(before) in {"So", "Sm", "Lo", "Po"}
        )
    if "\U000e0100" <= char <= "\U000e01ef":
        return "\u3400" <= before <= "\u9fff"
    if char in _DIRECTION:
        return any(unicodedata.bidirectional(near) in {"R", "AL", "AN"} for near in text[max(0, at - 12) : at + 12])
    if char == "\u00ad":
        return before.isalpha() and after.isalpha() and text.count("\u00ad") <= 3
    return (char == "\ufeff" and at == 0) or (char in "\u180b\u180c\u180d" and "\u1800" <= before <= "\u18aa")


def _pictured(char: str) -> bool:
    return ord(char) >= 0x203C and unicodedata.category(char) in {"So", "Sk", "Sm", "Mn", "Cf", "Po"}


def _joining(char: str) -> bool:
    """Scripts in which a joiner changes the shape of letters: Arabic, Indic and their neighbours."""
    return (
        "\u0600" <= char <= "\u08ff"
        or "\u0900" <= char <= "\u0dff"
        or "\u1000" <= char <= "\u109f"
        or "\u1780" <= char <= "\u17ff"
    )
