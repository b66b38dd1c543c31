"""At a session's end: does what it said change anything that was held on to before (T13)?

Comes in: held records and the session's new ones, with the cosines of their descriptions. Goes out: conflicts.
Invariants: pure; the rules are those of reconcile (`contradictions.compare`), so a conflict rests on a sign in the
words; only what was said later conflicts, and never what carries an injection's mark (P-19).
"""

from __future__ import annotations

from collections.abc import Sequence

from ..protocol.instant import micros
from ..protocol.record import Record
from .batch import SAME_KEY, Conflict
from .contradictions import compare


def conflicts(held: Sequence[Record], fresh: Sequence[Record], cosines: Sequence[Sequence[float]]) -> list[Conflict]:
    """Every pair that can't both be true. `cosines[h][f]`: of their descriptions, 0.0 where one has no vector."""
    found: list[Conflict] = []
    for old, row in zip(held, cosines, strict=True):
        for new, cosine in zip(fresh, row, strict=True):
            if new.id == old.id or "injection" in new.flags or not _later(new, old):
                continue
            if old.key and old.key == new.key and old.kind == "fact" and _folded(old.value) != _folded(new.value):
                found.append(Conflict(old.id, new.id, "replaces", SAME_KEY))
                continue
            verdict = compare(old.content, new.content, cosine)
            if verdict.label in {"replaces", "contradicts"}:
                found.append(Conflict(old.id, new.id, verdict.label, verdict.reason))
    return found


def _later(new: Record, old: Record) -> bool:
    return micros(new.provenance.said_at) > micros(old.provenance.said_at)


def _folded(value: str) -> str:
    return " ".join(value.split()).casefold()
