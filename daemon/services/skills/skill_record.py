"""The record of a placed skill: it names the file, and has no word of the file or of a session (K2).

So forgetting a session needs no change of the record.
"""

from __future__ import annotations

from pathlib import Path

from ....protocol.event import Captured, Origin, Reworded, text
from ....protocol.operation import Added, Decision
from ....protocol.record import Provenance, Record, Span, record_id
from ....protocol.secret_gate import SecretGate
from ...projections.records import digest
from ..admission import admit
from ..statements import line
from .placed_skills import KEY


def skill_record(
    gate: SecretGate, pool: str, path: Path, at: str, reason: str, copy_of: str = ""
) -> tuple[Record, Captured, Added]:
    """Return the record of a skill, the user's turn that states it, and the operation that adds it. `copy_of`: the
    record of the user's own skill that was shared."""
    name = path.parent.name
    origin = Origin(host="memd", session=f"skill/{pool}/{name}", live=False)
    turn = digest(f"{path} {at}").hex()[:16]
    id = record_id(pool, origin.document, turn, 0, 0)
    words = f"The skill {name} lies in {path.parent}"
    captured = admit(gate, origin, Reworded(turn=turn, at=at, record=id, text=words))
    words = text(captured.event)
    record = Record(
        id=id,
        pool=pool,
        placed=True,
        kind="procedure",
        content=words,
        description=line(words),
        provenance=Provenance(
            author="user",
            source=origin.document,
            trust="user",
            spans=(Span(origin.document, turn, 0, len(words)),),
            quote=words[:500],
            said_at=at,
        ),
        key=f"{KEY}{name}",
        value=str(path),
        tags=("procedure", "skill"),
        valid_from=at,
        confidence=1.0,
        volatility="stable",
        copy_of=copy_of,
    )
    return record, captured, Added(record=record, decision=Decision(action="add", reason=reason))
