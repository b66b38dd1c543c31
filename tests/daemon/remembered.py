"""Records as profiles are made of, and a profile over them, for the tests of both."""

from collections.abc import Callable
from typing import Any

from memd.daemon.projections.stores import Stores
from memd.daemon.services.distillation.model_selection import load_model
from memd.daemon.services.profile.hot import ProfileCache
from memd.daemon.services.profile.profile_lines import ProfileLines
from memd.daemon.services.service import Permits, Reader
from memd.protocol.operation import Added, Decision
from memd.protocol.record import Provenance, Record, Signal, Span

AT = "2026-03-04T18:30:00+01:00"
WHY = Decision(action="add", reason="a test")
PERSONAL, ORCHARD, QUARRY = "personal", "project/orchard", "project/quarry"
TYPES = "preference identity fact decision convention lesson commitment event note".split()
THINGS = "tabs kettle ledger harbour violin compiler meadow lantern printer garden bakery tunnel".split()


def record(number: int, type: str = "preference", pool: str = PERSONAL, **more: Any) -> Record:
    words = more.pop("words", f"The user keeps the {THINGS[number % 12]} on shelf number{number} in room{number * 7}.")
    span = Span("h:s", f"t{number}", 0, len(words))
    provenance = Provenance(
        author="user",
        source="h:s",
        trust=more.pop("trust", "user"),
        spans=(span,),
        quote=words,
        said_at=more.pop("said_at", AT),
    )
    return Record(
        id=f"id{number}",
        pool=pool,
        kind=more.pop("kind", "fact" if type == "fact" else "note"),
        content=words,
        description=words,
        tags=(type, "garden"),
        confidence=0.9,
        signal=Signal(importance=more.pop("importance", 0.7)),
        provenance=provenance,
        **more,
    )


def added(*records: Record) -> list[Any]:
    return [Added(record=each, decision=WHY) for each in records]


COUNT = load_model("").pieces


def hot_of(stores: Stores, permits: Callable[[Reader], Permits | None] = lambda reader: None) -> ProfileCache:
    lines = ProfileLines(stores.profile, stores.archive, COUNT)
    return ProfileCache(stores.profile, lines, lambda pool: pool.rpartition("/")[2], permits)
