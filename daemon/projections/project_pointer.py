"""The edge `user works_on project` of the personal pool (P2, P4).

Invariants: a project has one edge, whose id follows from its pool; only a retired edge closes a project, forgetting and
fading do not; the edge quotes nobody.
"""

from __future__ import annotations

import msgspec

from ...protocol.event import Captured, SessionStarted
from ...protocol.operation import Added, AnyOperation, Decision, Invalidated, Updated
from ...protocol.record import Provenance, Record, Signal, Span, explicit_id
from ...stages.batch import PERSONAL
from .records import Records

DOCUMENT = "memd:projects"
"""The document of memd's own that every edge rests on; a project's turn there is its pool."""


def pointer_id(pool: str) -> str:
    """The id of a project's edge."""
    return explicit_id(DOCUMENT, pool)


def is_left(records: Records, pool: str) -> bool:
    """Whether the user left this project and has not come back."""
    edge = records.get(pointer_id(pool))
    return edge is not None and edge.status == "retired"


def seen(pool: str, title: str, at: str) -> Captured:
    """What the edge rests on: that there was a first session."""
    event = SessionStarted(turn=pool, at=at, reason=f"first session in {title}")
    return Captured(document=DOCUMENT, event=event, live=False)


def opened(pool: str, title: str, remote: str, at: str) -> Added:
    """The edge of a project that was not known before."""
    named = f"{title} ({remote})" if remote and title else title or remote or pool
    line = f"The user works on {named}."
    provenance = Provenance(
        author="memd",
        source=DOCUMENT,
        trust="tool",
        spans=(Span(DOCUMENT, pool, 0, 0),),
        quote="",
        said_at=at,
    )
    record = Record(
        id=pointer_id(pool),
        pool=PERSONAL,
        kind="edge",
        content=line,
        description=line,
        key=f"user works_on {pool}",
        tags=("works_on",),
        valid_from=at,
        volatility="stable",
        confidence=1.0,
        signal=Signal(importance=0.3),
        provenance=provenance,
    )
    return Added(record=record, decision=Decision(action="add", reason="the first session in this project"))


def left(pool: str, at: str) -> Invalidated:
    """The edge is true no more."""
    return Invalidated(id=pointer_id(pool), valid_to=at, reason="the user left the project")


def returned(edge: Record, at: str) -> AnyOperation:
    """The edge is true again."""
    record = msgspec.structs.replace(
        edge, status="active", valid_from=at, valid_to="", retired_at=0, superseded_by="", rev=edge.rev + 1
    )
    return Updated(record=record, decision=Decision(action="update", reason="the user came back to the project"))
