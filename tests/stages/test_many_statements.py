"""Hundreds of statements that only look alike: every one of them stays (T1 is for contradictions, P-9)."""

import random
from collections.abc import Sequence

import numpy as np
import pytest

from memd.models.trunk import Trunk
from memd.protocol.event import Captured, Noted
from memd.protocol.record import LIVE, Record
from memd.stages.batch import Batch, Candidate, Item, Known
from memd.stages.pipeline import pipeline, run
from memd.stages.reconcile import candidate_id, judge

THINGS = "lamp router kettle sensor bicycle drone printer camera piano scooter server boiler".split()
DOES = ["stands in", "was bought in", "was repaired in", "belongs to", "was lent to"]


def candidates_of(texts: Sequence[str]) -> tuple[Candidate, ...]:
    items = tuple(
        Item(seq=n, captured=Captured(document="h:s", event=Noted(turn=f"t{n}", at="2026-01-01T00:00:00Z", text=text)))
        for n, text in enumerate(texts, 1)
    )
    batch, _ = run(Batch(items=items), pipeline(Trunk()), lambda: 0.0)
    return batch.candidates


@pytest.mark.parametrize(
    "template", ["The {thing} of {name} {does} street {n}.", "{name}'s {thing} {does} street {n}."]
)
def test_statements_about_different_things_retire_nothing_T1(template: str) -> None:
    draw = random.Random(5)
    names = [
        f"{draw.choice('bdfgklmnprst')}{draw.choice('aeiou')}{draw.choice('bdfgklmnprst')}o{n}" for n in range(300)
    ]
    texts = [
        template.format(thing=draw.choice(THINGS), name=name, does=draw.choice(DOES), n=n)
        for n, name in enumerate(names)
    ]
    records: dict[str, Record] = {}
    vectors: dict[str, np.ndarray] = {}
    retired: list[tuple[str, str]] = []
    for one in candidates_of(texts):
        mine = np.frombuffer(one.vector, np.float32)
        near = sorted(vectors, key=lambda id: -float(vectors[id] @ mine))[:8]
        known = [Known(record=records[id], similarity=float(vectors[id] @ mine)) for id in near]
        (proposal,) = judge([one], {candidate_id(one): known})
        retired += [(records[each.id].content, one.quote) for each in proposal.retires]
        assert proposal.decision.action != "noop" and proposal.record.status in LIVE
        records[proposal.record.id], vectors[proposal.record.id] = proposal.record, mine
    assert retired == []
