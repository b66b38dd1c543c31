"""Persona blocks: who speaks and in which tone, in the user's own words (R1). They are in every profile of their pool,
and no search returns them.

Invariants: a pool has one record of each block; only the user writes one; the text before stays in the history.
"""

from __future__ import annotations

from collections.abc import Callable

from ....protocol.corrections import SetPersona
from ....protocol.errors import InvalidRequest
from ....protocol.event import Origin, Reworded, text
from ....protocol.instant import checked
from ....protocol.operation import (
    Added,
    Decision,
    Invalidated,
    Retirement,
)
from ....protocol.record import Provenance, Record, Span, record_id
from ....protocol.reply import Remembered
from ....protocol.secret_gate import SecretGate
from ....stages.batch import PERSONAL
from ...projections.placement import agent_pool
from ...projections.stores import Stores
from ..admission import admit
from ..outgoing_screen import flags_in
from ..own_documents import opening
from ..statements import line

LONGEST = 500
"""Characters of a block: it is in every context."""


class PersonaBlocks:
    """Writes blocks. On the write thread."""

    def __init__(self, stores: Stores, gate: SecretGate, token: Callable[[int], bytes]) -> None:
        self._stores, self._gate, self._token = stores, gate, token

    def set(self, request: SetPersona) -> Remembered:
        """Set a block, add a sentence to it, or with an empty text remove it. Raises InvalidRequest, NotFound."""
        checked(request.at)
        pool = self._pool(request.agent)
        key = f"persona.{request.block}"
        holder = self._stores.records.holding_key(pool, key)
        before = self._stores.records.get(holder) if holder else None
        if not request.text.strip():
            return self._removed(before, request)
        words = f"{before.content} {request.text}" if before and request.add else request.text
        words = " ".join(words.split())
        if len(words) > LONGEST:
            raise InvalidRequest(
                f"the block has {len(words)} characters", hint=f"at most {LONGEST}: it is in every context"
            )
        if before is not None and before.content == words:
            return Remembered(record=before, duplicate=True)
        origin = Origin(host="memd", session=f"persona/{pool}/{request.block}", live=False)
        turn = self._token(8).hex()
        event = Reworded(turn=turn, at=request.at, record=record_id(pool, origin.document, turn, 0, 0), text=words)
        captured = admit(self._gate, origin, event)
        words = text(captured.event)
        record = Record(
            id=event.record,
            pool=pool,
            placed=True,
            kind="persona",
            content=words,
            description=line(words),
            provenance=Provenance(
                author="user",
                source=origin.document,
                trust="user",
                spans=(Span(origin.document, turn, 0, len(words)),),
                quote=words,
                said_at=request.at,
            ),
            key=key,
            tags=("identity", "persona"),
            valid_from=request.at,
            confidence=1.0,
            volatility="stable",
            pinned=True,
            layer="L1" if pool == PERSONAL else "L2",
            flags=flags_in(words, False),
            supersedes=(before.id,) if before else (),
        )
        self._stores.take([captured])
        operations = opening(self._stores, origin.document, request.at)
        retires = (Retirement(before.id, request.at, f"the user set the block anew: {record.id}"),) if before else ()
        decision = Decision(action="add", reason="the user set it as a persona block")
        self._stores.commit([*operations, Added(record=record, retires=retires, decision=decision)])
        return Remembered(record=self._stores.records.get(record.id) or record)

    def _pool(self, agent: str) -> str:
        pool = agent_pool(agent) or PERSONAL
        if pool != PERSONAL and self._stores.sources.pool(pool) is None:
            raise InvalidRequest(
                f"agent {agent!r} has no memory of its own", hint=f"create it: `memd agent add {agent}`"
            )
        return pool

    def _removed(self, before: Record | None, request: SetPersona) -> Remembered:
        if before is None:
            raise InvalidRequest(f"there is no block {request.block!r}", hint="`memd persona show` lists the blocks")
        self._stores.commit([Invalidated(id=before.id, valid_to=request.at, reason="the user removed the block")])
        return Remembered(record=self._stores.records.get(before.id) or before)
