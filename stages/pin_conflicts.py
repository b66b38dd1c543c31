"""Find new records that contradict pinned ones, by the rules of `contradictions.compare` (T13)."""

from __future__ import annotations

from collections.abc import Sequence

from ..protocol.instant import micros
from ..protocol.record import Record
from .batch import SAME_KEY, Conflict
from .contradictions import compare


def find_conflicts(
    held: Sequence[Record], fresh: Sequence[Record], cosines: Sequence[Sequence[float]]
) -> list[Conflict]:
    """Every pair that cannot both be true. `cosines[h][f]`: of their descriptions, 0.0 where one has no vector. Only a
    later statement conflicts, and never one with an injection's mark (P-19)."""
    return [
        conflict
        for old, row in zip(held, cosines, strict=True)
        for new, cosine in zip(fresh, row, strict=True)
        if (conflict := _conflict(old, new, cosine))
    ]


def _conflict(old: Record, new: Record, cosine: float) -> Conflict | None:
    is_later = micros(new.provenance.said_at) > micros(old.provenance.said_at)
    if new.id == old.id or "injection" in new.flags or not is_later:
        return None
    if old.key and old.key == new.key and old.kind == "fact" and _folded(old.value) != _folded(new.value):
        return Conflict(old.id, new.id, "replaces", SAME_KEY)
    verdict = compare(old.content, new.content, cosine)
    if verdict.label in {"replaces", "contradicts"}:
        return Conflict(old.id, new.id, verdict.label, verdict.reason)
    return None


def _folded(value: str) -> str:
    return " ".join(value.split()).casefold()
