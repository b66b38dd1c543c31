"""The plan of a shared project follows each operation as if it were made anew (H1, W7)."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from memd.daemon.services.sharing.gate import ShareGate
from memd.daemon.services.sharing.share_plan import SharePlan
from memd.protocol.operation import Arrived, ArrivedLine, Delivered, Invalidated, Moved, Pinned, Redacted
from memd.protocol.shared_lines import line_name
from tests.daemon.shared_home import OTHER, POOL, SESSION, WHOLE, SharedHome, added, identified, record, session

NEIGHBOUR = "b" * 24


def step(home: SharedHome, chance: Random, number: int) -> None:
    """Do one of the things that change what the others get."""
    rows = {n: home.stores.records.get(identified(n)) for n in range(number)}
    known = [n for n, row in rows.items() if row and row.pool == POOL]
    one = chance.choice(known)
    entry = home.stores.sharing.share(POOL)
    assert entry is not None
    match chance.randrange(12):
        case 0:
            home.commit(*added(record(number, document=WHOLE, visibility="shared")))
        case 1:
            home.choose(one)
        case 2:
            home.choose(keep=(one,))
        case 3:
            home.reword(one, f"The orchard service number {one} listens on port {number}.")
        case 4:
            home.commit(Invalidated(id=identified(one), valid_to="", reason="a test"))
        case 5:
            home.prepared()
        case 6 if entry.count:
            home.commit(Delivered(pool=POOL, partition=entry.opened.partition, epoch=0, count=entry.count))
        case 7 if entry.count:
            ref = line_name(entry.opened.partition, chance.randrange(entry.count))
            line = ArrivedLine(number, number, "inv", ref)
            home.commit(Arrived(pool=POOL, partition=NEIGHBOUR, name="Ben", epoch=0, count=number + 1, lines=(line,)))
        case 8:
            home.commit(Moved(ids=(identified(one),), pool=chance.choice((OTHER, POOL)), reason="a test"))
        case 9:
            home.commit(Redacted(records=(identified(one),)))
        case 10:
            home.commit(session(f"h:{number}", POOL), Pinned(id=identified(one), pinned=True))
        case _:
            home.share(new_sessions=chance.random() < 0.5)


@pytest.mark.parametrize("seed", range(6))
def test_a_plan_that_follows_equals_one_that_is_made_anew_H1_W7(tmp_path: Path, seed: int) -> None:
    home, chance = SharedHome(tmp_path), Random(seed)
    try:
        home.found()
        home.share()
        home.commit(*added(*(record(n, document=chance.choice((SESSION, WHOLE))) for n in range(12))))
        plan = SharePlan(home.stores, ShareGate(home.stores))
        for number in range(12, 72):
            step(home, chance, number)
            entry = home.stores.sharing.share(POOL)
            assert entry is not None
            anew = SharePlan(home.stores, ShareGate(home.stores))
            assert plan.steps(entry) == anew.steps(entry)
            assert plan.undecided(entry) == anew.undecided(entry)
            assert plan.waiting(entry) == len({line.id for line in anew.steps(entry)})
    finally:
        home.close()


def test_a_plan_reads_only_what_changed_H1(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = SharedHome(tmp_path)
    try:
        home.found()
        home.share()
        home.commit(*added(*(record(n) for n in range(50))))
        gate = ShareGate(home.stores)
        plan, judged = SharePlan(home.stores, gate), list[str]()
        entry = home.stores.sharing.share(POOL)
        assert entry is not None and len(plan.undecided(entry)) == 50
        why_not = gate.why_not
        monkeypatch.setattr(gate, "why_not", lambda one, pool: judged.append(one.id) or why_not(one, pool))
        home.reword(7, "The orchard service number 7 moved to the cellar.")
        assert len(plan.undecided(entry)) == 50 and judged == [identified(7)]
    finally:
        home.close()
