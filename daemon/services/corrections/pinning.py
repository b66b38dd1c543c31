"""`pin` and `unpin`: the user's own promotion of a record, and the way back (R9, T13).

Comes in: a record and the user's wish. Goes out: the operation that says so. Invariants: what is personal becomes L1,
what is a project's becomes its L2; a layer holds no more than its cap; nothing that reads like an order to an agent is
promoted (P-19); on the write thread.
"""

from __future__ import annotations

from ....protocol.errors import InvalidRequest
from ....protocol.fading import Released
from ....protocol.operation import Pinned
from ....protocol.record import LIVE, PRINCIPLE, Layer, Record
from ....protocol.reply import Remembered
from ....stages.batch import PERSONAL
from ...projections.stores import Stores
from ..statements import is_on_probation

CAPS: dict[Layer, int] = {"L1": 40, "L2": 300}
"""Records of a layer in one pool, at most (R9)."""

PRINCIPLES = 20
"""Principles of one pool, at most (Q8)."""

NAMES: dict[Layer, str] = {"L1": "identity (L1)", "L2": "the project's playbook (L2)"}


def pinned(stores: Stores, before: Record, wanted: bool, principle: bool = False) -> Remembered:
    """Promote a record, or let go of it. Raises InvalidRequest where that can't be, saying what to do."""
    layer: Layer = "L3"
    if wanted:
        layer = "L1" if before.pool == PERSONAL else "L2"
        _check(stores, before, layer, principle)
    if principle and not wanted:
        raise InvalidRequest("a principle must be pinned", hint="`memd unpin` removes the pin and the principle")
    is_principle = PRINCIPLE in before.tags
    if (before.pinned, before.layer) == (wanted, layer) and is_principle in (principle, wanted):
        return Remembered(record=before, duplicate=True)
    released = [Released(ids=(before.id,), why="pinned")] if wanted and is_on_probation(before) else []
    marked = wanted and (principle or is_principle)
    stores.commit([Pinned(id=before.id, pinned=wanted, layer=layer, principle=marked), *released])
    after = stores.records.get(before.id)
    assert after is not None
    return Remembered(record=after)


def _check(stores: Stores, before: Record, layer: Layer, principle: bool) -> None:
    if before.status not in LIVE:
        raise InvalidRequest(f"{before.id[:8]} is {before.status}", hint="only active records can be pinned")
    if before.flags:
        raise InvalidRequest(
            f"{before.id[:8]} is marked {', '.join(before.flags)}: a pinned record goes to every agent",
            hint=f"`memd edit {before.id[:8]} …` replaces its text with your own words; pin it after that",
        )
    held = stores.records.many(stores.inbox.held([before.pool])).values()
    others = [each for each in held if each.layer == layer and each.id != before.id]
    if principle and sum(PRINCIPLE in each.tags for each in others) >= PRINCIPLES:
        raise InvalidRequest(
            f"there are already {PRINCIPLES} principles, the maximum",
            hint="`memd unpin` one of them, or pin this record without --principle",
        )
    if len(others) >= CAPS[layer]:
        weakest = min(others, key=lambda each: (each.signal.importance * each.confidence, each.learned_at, each.id))
        raise InvalidRequest(
            f"{NAMES[layer]} is full: it holds {len(others)} of at most {CAPS[layer]} records",
            hint=f"`memd unpin` one that matters less, such as {weakest.id[:8]}: {weakest.description[:80]}",
        )
