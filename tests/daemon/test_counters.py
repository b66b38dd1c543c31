"""Counters: what is counted, what sleep leaves, and that nothing of it depends on how it came to be (R6, T3-T7)."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memd.daemon.config import load_config
from memd.daemon.forgetting_rules import Rules
from memd.daemon.projections.stores import Stores
from memd.daemon.services.forgetting import compaction as folding
from memd.daemon.services.forgetting.compaction import renew
from memd.daemon.services.forgetting.forget_closure import ForgetScope, find_loss
from memd.daemon.services.lifecycle.counting import UseCounter
from memd.protocol.errors import BadConfig
from memd.protocol.fading import Archived, Count, Counted, Folded, Restored
from memd.protocol.operation import Added, AnyOperation, Moved, Purged, Rebased, Updated
from memd.protocol.record import Signal, Span
from tests.conftest import EXAMPLES
from tests.daemon.living import DAILY, WHY, Running, added, record, slept, used


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Running]:
    """Stores with a write thread."""
    found = Running(tmp_path / "data")
    yield found
    found.close()


def signal(stores: Stores, number: int = 0) -> Signal:
    found = stores.records.get(f"id{number}")
    assert found is not None
    return stores.counters.signals([found])[found.id]


def test_a_candidate_is_not_strengthened_and_a_use_is_T3_R6(running: Running) -> None:
    stores = running.stores
    stores.commit([added(0), added(1)])
    stores.commit([Counted(pool="personal", counts={"id0": Count(candidates=7), "id1": Count(candidates=1)})])
    assert signal(stores).candidate_count == 7 and signal(stores).strength == 1.0
    running.now += 5_000_000
    stores.commit([used(0, perspective="cost"), used(0, perspective="risk")])
    found = signal(stores)
    assert found.access_count == 2 and found.last_access > 0
    assert found.strength == pytest.approx(1.2) and found.strength_by == pytest.approx({"cost": 1.15, "risk": 1.25})
    assert signal(stores, 1).strength == 1.0 and signal(stores, 1).last_access == 0


def test_impact_strengthens_T4(running: Running) -> None:
    running.stores.commit([added(0)])
    running.stores.commit([used(0, impact=1.5)])
    assert signal(running.stores).impact == 1.5
    assert signal(running.stores).strength == pytest.approx(1.0 + 0.1 + 0.2 * 1.5)


@pytest.mark.parametrize(
    ("uses", "level"), [(0, 0), (4, 0), (5, 1), (14, 1), (15, 2), (30, 3), (60, 4), (99, 4), (100, 5)]
)
def test_levels_come_with_uses_and_each_fades_at_its_own_rate_T5(running: Running, uses: int, level: int) -> None:
    stores = running.stores
    stores.commit([added(0), added(1, kind="procedure")])
    stores.commit([used(0, uses, "cost")])
    before = signal(stores)
    for _ in range(10):
        stores.commit([slept()])
    after = signal(stores)
    assert after.level == level
    assert after.strength == pytest.approx(before.strength * DAILY[level] ** 10)
    assert after.strength_by == pytest.approx({"cost": (1 + 0.15 * uses) * DAILY[level] ** 10} if uses else {})
    assert signal(stores, 1).strength == 1.0, "a procedure does not fade by time (T9)"


def test_what_comes_back_is_half_as_strong_and_two_levels_lower_T7(running: Running) -> None:
    stores = running.stores
    stores.commit([added(0), used(0, 35)])
    stores.commit([Archived(pool="personal", ids=("id0",))])
    found = stores.records.get("id0")
    assert found is not None and found.status == "archived"
    stores.commit([Restored(ids=("id0",))])
    assert signal(stores).strength == 0.5 and signal(stores).level == 1 and signal(stores).access_count == 35
    stores.commit([used(0, 10)])
    assert signal(stores).level == 2, "uses count on from where its level begins"
    found = stores.records.get("id0")
    assert found is not None and found.status == "active"


def test_the_weakest_come_first_and_what_is_held_never_does_T6(running: Running) -> None:
    stores = running.stores
    stores.commit([added(0), added(1, pinned=True), added(2, layer="L2"), added(3), added(4, kind="persona")])
    stores.commit([used(3)])
    for _ in range(44):
        stores.commit([slept()])
    assert stores.counters.weakest("personal", 0.1, 9) == []
    stores.commit([slept()])
    assert [weak.id for weak in stores.counters.weakest("personal", 0.1, 9)] == ["id0"], "after 45 days"
    stores.commit([slept(), slept(), slept()])
    assert [weak.id for weak in stores.counters.weakest("personal", 0.1, 9)] == ["id0", "id3"]
    assert stores.counters.by_level("personal") == (3, 0, 0, 0, 0, 0)


NUMBERS = st.integers(0, 5)
STEPS: st.SearchStrategy[AnyOperation] = st.one_of(
    NUMBERS.map(added),
    st.builds(lambda n: added(n, also=(Span("h:s", "shared", 0, 1),)), NUMBERS),
    st.builds(lambda n: Updated(record=record(n, kind="fact", rev=2), decision=WHY), NUMBERS),
    st.builds(used, NUMBERS, st.integers(0, 30), st.sampled_from(["", "cost"])),
    st.sampled_from([slept(), slept("project/a")]),
    st.builds(lambda n: Archived(pool="personal", ids=(f"id{n}",)), NUMBERS),
    st.builds(lambda n: Restored(ids=(f"id{n}",)), NUMBERS),
    st.builds(lambda n: Moved(ids=(f"id{n}",), pool="project/a", reason="asked"), NUMBERS),
)


def rows(stores: Stores) -> dict[str, Any]:
    """Every row of the counters."""
    with stores.tables.environment.read() as transaction:
        return {
            name: list(transaction.cursor(stores.tables.environment.db(name)).iternext())
            for name in ("tallies", "rests", "fading")
        }


@settings(max_examples=10 * EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(STEPS, max_size=20), st.lists(STEPS, max_size=10), NUMBERS)
def test_counters_are_the_same_after_folding_and_after_forgetting_W8_T10(
    tmp_path_factory: Any, first: list[AnyOperation], then: list[AnyOperation], number: int
) -> None:
    running = Running(tmp_path_factory.mktemp("stores"))
    try:
        lives_on(running.stores, first, then, number)
    finally:
        running.close()


def lives_on(stores: Stores, first: list[AnyOperation], then: list[AnyOperation], number: int) -> None:
    """A life with a fold and a forgetting in it, compared with its replay."""
    for operation in first:
        stores.commit([operation])
    before = rows(stores)
    seqs, _ = folding._foldable(stores.journal.log)
    stores.commit([Folded(tallies=dict(stores.counters.everything())), Folded(pools=stores.counters.rests())])
    stores.journal.log.erase(seqs)
    assert rows(stores) == before
    for operation in then:
        stores.commit([operation])
    if stores.records.get(f"id{number}") is not None:
        loss = find_loss(stores, ForgetScope(ids=(f"id{number}",)), ())
        redacted = loss.redacted()
        entries = stores.commit([redacted, *(Rebased(record=each) for each in loss.rebased.values())])
        stores.journal.log.erase([left.seq for left in redacted.entries])
        stores.commit([Purged(redacted=entries[0].seq)])
    live = rows(stores)
    renew(stores)
    assert rows(stores) == live
    assert stores.journal.log.verify() == stores.journal.last


def test_old_counts_fold_into_one_state_and_the_journal_shrinks_W8(running: Running, monkeypatch: Any) -> None:
    monkeypatch.setattr(folding, "GROUP", 2)
    stores, writer = running.stores, running.writer
    stores.commit([added(n) for n in range(5)])
    for _ in range(100):
        stores.commit([Counted(pool="personal", counts={f"id{n}": Count(1) for n in range(5)}), slept()])
    before = rows(stores)
    freed = folding.fold_counters(stores, writer)
    assert freed > 5000 and rows(stores) == before
    assert folding.fold_counters(stores, writer) == 0, "not worth it again"
    renew(stores)
    assert rows(stores) == before


def test_uses_are_durable_at_once_and_candidates_wait_T3(running: Running) -> None:
    stores = running.stores
    stores.commit([added(0), added(1, pool="project/a"), added(2, status="quarantined")])
    counting = UseCounter(stores, running.writer, Rules)
    last = stores.journal.last
    counting.candidates(["id0", "id1", "id0", "unknown"])
    assert stores.journal.last == last
    assert counting.used(["id2"], "cost", "helpful").result() == 1
    found = stores.records.get("id2")
    assert found is not None and found.status == "active", "one real use ends its quarantine (T8)"
    assert signal(stores, 2).impact == 2.0
    assert counting.flush().result() == 2
    assert stores.journal.last == last + 4, "a use, a release, and one operation a pool"
    assert signal(stores).candidate_count == 2
    assert counting.flush().result() == 0 and stores.journal.last == last + 4


def test_a_use_does_not_prove_what_the_user_did_not_say_T8(running: Running) -> None:
    stores = running.stores
    flagged = record(0, status="quarantined", flags=("orders",))
    stores.commit([Added(record=flagged, decision=WHY)])
    UseCounter(stores, running.writer, Rules).used(["id0"]).result()
    found = stores.records.get("id0")
    assert found is not None and found.status == "quarantined"


def test_every_number_is_configured_in_one_table(tmp_path: Path) -> None:
    (tmp_path / "memd.toml").write_text('[forgetting]\noff = ["personal"]\nfloor = 0.2\nhalf_lives = {stable = 30}\n')
    rules = load_config(tmp_path, {}).forgetting
    assert rules.is_off("personal") and rules.floor == 0.2 and rules.half_lives.stable == 30 and rules.use == 0.1
    inline = load_config(tmp_path, {"MEMD_FORGETTING": "{old_import_days = 0}"}).forgetting
    assert inline.old_import_days == 0 and inline.floor == 0.1
    with pytest.raises(BadConfig):
        load_config(tmp_path, {"MEMD_FORGETTING": "nonsense"})
    (tmp_path / "memd.toml").write_text("[forgetting]\nflor = 0.2\n")
    with pytest.raises(BadConfig):
        load_config(tmp_path, {})
