"""Archived records become active again: because a question retrieved them, or because the user asked (T7)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from ....protocol.fading import Archived, Restored
from ....protocol.record import Record
from ...forgetting_rules import Rules
from ...projections.record_reducer import apply
from ...projections.stores import Stores


def reactivate(stores: Stores, rules: Rules, ids: Iterable[str], why: Literal["asked", "recalled"]) -> tuple[str, ...]:
    """Those of these records that are archived come back (T7), unless a live record holds their key or stands for
    them; which ones did."""
    back: list[str] = []
    quarantined: list[str] = []
    for record in stores.records.many(ids).values():
        if record.status != "archived":
            continue
        holder = stores.records.holding_key(record.pool, record.key) if record.key else ""
        if holder and holder != record.id:
            continue
        back.append(record.id)
        if _was_quarantined(stores, record):
            quarantined.append(record.id)
    if back:
        restored = Restored(
            ids=tuple(back),
            why=why,
            quarantined=tuple(quarantined),
            strength=rules.restored_strength,
            levels_down=rules.restored_levels_down,
            level_uses=rules.level_uses,
        )
        stores.commit([restored])
    return tuple(back)


def _was_quarantined(stores: Stores, record: Record) -> bool:
    """Whether a record was in quarantine when it was archived."""
    then: Record | None = None
    quarantined = False
    for seq in stores.sources.history(record.id):
        entry = stores.journal.get(seq)
        if entry is not None:
            if isinstance(entry.operation, Archived):
                quarantined = then is not None and then.status == "quarantined"
            then = apply(then, record.id, entry)
    return quarantined
