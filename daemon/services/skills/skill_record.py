"""The record of a placed skill: it names the file and what the skill runs, and never holds the file's text (K2)."""

from __future__ import annotations

from pathlib import Path

from ....protocol.event import Captured, Origin, Reworded, text
from ....protocol.operation import Added, Decision
from ....protocol.record import Provenance, Record, Span, record_id
from ....protocol.secret_gate import SecretGate
from ....protocol.skills import SkillDraft
from ...projections.records import digest
from ..admission import admit
from ..statements import line
from .placed_skills import KEY


def skill_record(
    gate: SecretGate, pool: str, name: str, draft: SkillDraft, path: str, at: str
) -> tuple[Record, Captured, Added]:
    """Return the record of a placed draft, the user's turn that states it, and the operation that adds it."""
    origin = Origin(host="memd", session=f"skill/{pool}/{name}", live=False)
    turn = digest(f"{path} {at}").hex()[:16]
    id = record_id(pool, origin.document, turn, 0, 0)
    commands = ", ".join(step.text.strip("`") for step in draft.steps if not step.risk)
    words = f"The skill {name} ({Path(path).parent.parent.name}/{name}) runs {commands}"
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
        value=path,
        tags=("procedure", "skill"),
        valid_from=at,
        confidence=1.0,
        volatility="stable",
    )
    decision = Decision(action="add", reason=f"the user placed the draft {draft.id[:8]} as a skill")
    return record, captured, Added(record=record, decision=decision)
