"""The user takes decisions of the inbox back: everything is as before, or memd refuses and changes nothing (G7)."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memd.daemon.projections.folded import TableSet
from memd.daemon.projections.inbox import proposal_id
from memd.daemon.services.corrections.inbox_service import InboxService
from memd.protocol.corrections import Decide, ListInbox, ProposeForget, Reopen
from memd.protocol.errors import InvalidRequest, NotFound
from memd.protocol.operation import AnyOperation, ChangeDecided, ChangeProposed, Invalidated, Merged, Pinned, Updated
from memd.protocol.record import Evidence, Record, Span
from tests.conftest import EXAMPLES
from tests.daemon.living import AT, WHY, Running, added

What = Literal["forget", "conflict", "duplicate"]
PAIRS: tuple[tuple[What, int, int], ...] = (
    ("conflict", 0, 1),  # the new one may take the key of the old one
    ("conflict", 0, 2),  # a second one against the same old one
    ("duplicate", 3, 4),
    ("duplicate", 5, 4),  # two duplicates of one record
    ("conflict", 4, 6),  # the survivor of duplicates is contradicted
)
HIDDEN = (7, 8)


class Desk:
    """An inbox with a proposal of each kind, in a home of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.running = Running(folder / "data")
        self.stores = self.running.stores
        self.service = InboxService(self.stores, self.running.writer, self._no_deletion)
        self.stores.commit(
            [
                added(0, key="k", pinned=True, value="tabs"),
                added(1, value="spaces", needs_review=True, status="provisional"),
                added(2, value="both", needs_review=True),
                added(3, tags=("fact", "tool")),
                added(4, tags=("fact",)),
                added(5, status="provisional", also=(Span("h:more", "x", 0, 1),)),
                added(6, key="k6"),
                added(7, key="k7"),
                added(8),
                added(9),
            ]
        )
        self.stores.commit([proposed(*pair) for pair in PAIRS])
        self.service.propose(ProposeForget(ids=tuple(f"id{number}" for number in HIDDEN), hide=True))
        self.service.propose(ProposeForget(ids=("id9",)))
        self.ids = [proposal.id for proposal in self.service.list(ListInbox()).proposals][::-1]

    @staticmethod
    def _no_deletion(*_: Any) -> Any:
        raise AssertionError("this test deletes nothing")

    def decide(self, ids: Sequence[str], accept: bool) -> None:
        self.service.decide(Decide(ids=tuple(ids), accept=accept))

    def reopen(self, id: str) -> None:
        self.running.writer.run(lambda: self.service.reopen(Reopen(id=id))).result()

    def records(self) -> dict[str, Record]:
        """All records as they are, whatever their revision."""
        return {record.id: msgspec.structs.replace(record, rev=0) for record in self.stores.records.everything()}

    def inbox(self) -> dict[str, str]:
        return {proposal.id: proposal.state for proposal in self.service.list(ListInbox(all=True)).proposals}

    def last(self) -> int:
        return self.stores.journal.last

    def close(self) -> None:
        self.running.close()


def proposed(what: What, old: int, new: int) -> ChangeProposed:
    id = proposal_id(f"id{old}", f"id{new}")
    return ChangeProposed(id=id, what=what, record=f"id{old}", against=f"id{new}", label=what, reason="a test")


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    made = Desk(tmp_path)
    yield made
    made.close()


@settings(max_examples=10 * EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(
        st.tuples(st.booleans(), st.lists(st.sampled_from(range(len(PAIRS) + 3)), min_size=1, max_size=3)), max_size=6
    )
)
def test_decisions_taken_back_in_reverse_order_leave_everything_as_before_G7(
    tmp_path_factory: Any, steps: list[tuple[bool, list[int]]]
) -> None:
    desk = Desk(tmp_path_factory.mktemp("desk"))
    before, decided = desk.records(), list[str]()
    for accept, numbers in steps:
        states, seq, were = desk.inbox(), desk.last(), desk.records()
        named = dict.fromkeys(desk.ids[number] for number in numbers if not accept or number < len(PAIRS))
        ids = [id for id in named if states[id] == "open"]
        try:
            desk.decide(ids, accept)
        except InvalidRequest:
            assert (desk.inbox(), desk.last(), desk.records()) == (states, seq, were), "all of them or none"
            continue
        decided += ids
        assert {desk.inbox()[id] for id in ids} == {"accepted" if accept else "rejected"}
    for id in reversed(decided):
        desk.reopen(id)
    assert desk.records() == before
    assert set(desk.inbox().values()) == {"open"}
    replayed = TableSet(desk.folder / "replayed")
    replayed.tables.apply(desk.stores.journal.slice(0, 1000))
    assert replayed.inbox.list(decided=True) == desk.stores.inbox.list(decided=True)
    assert replayed.inbox.open() == desk.stores.inbox.open() == len(desk.ids)
    assert list(replayed.records.everything()) == list(desk.stores.records.everything())
    replayed.close()
    desk.close()


def test_an_accepted_conflict_is_taken_back_with_its_key_and_pin_G7(desk: Desk) -> None:
    conflict, before = desk.ids[0], desk.records()
    desk.decide([conflict], True)
    after = desk.records()
    assert (after["id0"].status, after["id1"].status, after["id1"].key) == ("retired", "active", "k")
    desk.reopen(conflict[:10])
    assert desk.records() == before and before["id0"].pinned
    assert desk.stores.records.holding_key("personal", "k") == "id0"
    desk.decide([conflict], True)
    assert desk.records()["id0"].status == "retired", "a reopened proposal is decided like a new one"


def test_duplicates_of_one_record_are_accepted_at_once_and_taken_back_last_first_T12_G7(desk: Desk) -> None:
    first, second = desk.ids[2:4]
    before = desk.records()
    changes = desk.service.decide(Decide(id=first, ids=(second, first), accept=True)).records
    assert {change.id: change.after for change in changes} == {"id3": "retired", "id5": "retired", "id4": "active"}
    evidence = desk.records()["id4"].provenance.evidence
    assert {item.span.document for item in evidence} == {"h:s", "h:more"}
    with pytest.raises(InvalidRequest, match="changed since"):
        desk.reopen(first)
    desk.reopen(second)
    desk.reopen(first)
    assert desk.records() == before


RESTATED = Evidence(kind="restated", span=Span("h:later", "t", 0, 1), trust="user", at=AT)
SINCE: dict[str, AnyOperation] = {
    "pinned": Pinned(id="id1", pinned=True, layer="L1"),
    "said again": Merged(id="id1", evidence=RESTATED, decision=WHY),
    "retired": Invalidated(id="id1", valid_to=AT, reason="a test"),
    "unpinned": Pinned(id="id0", pinned=False),
}


@pytest.mark.parametrize("name", SINCE)
def test_memd_refuses_to_take_back_what_changed_since_G7(desk: Desk, name: str) -> None:
    desk.decide([desk.ids[0]], True)
    desk.stores.commit([SINCE[name]])
    states, records, last = desk.inbox(), desk.records(), desk.last()
    with pytest.raises(InvalidRequest, match="changed since") as refused:
        desk.reopen(desk.ids[0])
    assert "--history" in refused.value.hint
    assert (desk.inbox(), desk.records(), desk.last()) == (states, records, last)


def test_a_key_that_another_record_took_since_is_not_taken_away_G7(desk: Desk) -> None:
    desk.stores.commit([added(10, key="k10", pinned=True), added(11, key="k11"), proposed("conflict", 10, 11)])
    asked = proposal_id("id10", "id11")
    desk.decide([asked], True)
    desk.stores.commit([added(12, key="k10")])
    with pytest.raises(InvalidRequest, match="id12 changed since"):
        desk.reopen(asked)


def test_a_rejected_proposal_is_open_again_and_a_shown_record_hidden_again_G7(desk: Desk) -> None:
    hidden = desk.ids[-3]
    before = desk.records()
    desk.decide([desk.ids[0], hidden], False)
    assert desk.records()["id7"].status == "active"
    for id in (desk.ids[0], hidden):
        desk.reopen(id)
    assert desk.records() == before and before["id7"].status == "hidden"
    desk.decide([hidden], False)
    assert desk.records()["id7"].status == "active", "it comes back as it was before the agent hid it"


def test_a_remembered_statement_that_memd_refined_since_is_hidden_again_G7(desk: Desk) -> None:
    desk.stores.commit([added(20, status="provisional")])
    (hidden,) = desk.service.propose(ProposeForget(ids=("id20",), hide=True)).ids
    desk.decide([hidden], False)
    shown = desk.stores.records.get("id20")
    assert shown is not None and shown.status == "provisional"
    refined = msgspec.structs.replace(shown, status="active", rev=shown.rev + 1)
    desk.stores.commit([Updated(record=refined, decision=WHY)])
    desk.reopen(hidden)
    assert desk.records()["id20"].status == "hidden"
    desk.decide([hidden], False)
    assert desk.records()["id20"].status == "active"


def test_a_record_that_the_user_pinned_since_stays_shown_G7(desk: Desk) -> None:
    hidden = desk.ids[-3]
    desk.decide([hidden], False)
    desk.stores.commit([Pinned(id="id7", pinned=True)])
    desk.reopen(hidden)
    assert desk.inbox()[hidden] == "open" and desk.records()["id7"].status == "active"


REFUSED: dict[str, tuple[Callable[[Desk], object], str]] = {
    "nothing named": (lambda desk: desk.decide([], True), "no proposal was named"),
    "deletion and replacement": (lambda desk: desk.decide([desk.ids[0], desk.ids[-1]], True), "others do not"),
    "one is decided": (
        lambda desk: (desk.decide([desk.ids[2]], False), desk.decide([desk.ids[0], desk.ids[2]], True)),
        "already rejected",
    ),
    "two replace one": (lambda desk: desk.decide(desk.ids[:2], True), "no longer active"),
    "open already": (lambda desk: desk.reopen(desk.ids[0]), "is open already"),
    "a record is gone": (
        lambda desk: (
            desk.decide([desk.ids[0]], False),
            desk.stores.commit([Invalidated(id="id1", valid_to=AT, reason="a test")]),
            desk.reopen(desk.ids[0]),
        ),
        "nothing to decide",
    ),
    "a deletion": (
        lambda desk: (
            desk.stores.commit([ChangeDecided(id=desk.ids[-1], accepted=True)]),
            desk.reopen(desk.ids[-1]),
        ),
        "deleted the record",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_decided_or_reopened_is_refused_whole_G7(desk: Desk, name: str) -> None:
    act, message = REFUSED[name]
    records = {id: record for id, record in desk.records().items() if id != "id1"}
    with pytest.raises(InvalidRequest, match=message) as refused:
        act(desk)
    assert refused.value.hint
    assert {id: record for id, record in desk.records().items() if id != "id1"} == records


def test_two_hidden_records_with_one_key_come_back_one_after_another_G7(desk: Desk) -> None:
    hidden, before = desk.ids[-3], desk.records()
    desk.stores.commit([added(13, key="k7")])
    (other,) = desk.service.propose(ProposeForget(ids=("id13",), hide=True)).ids
    with pytest.raises(InvalidRequest, match="the same question") as refused:
        desk.decide([hidden, other], False)
    assert "one after another" in refused.value.hint and desk.records()["id7"] == before["id7"]
    for id in (hidden, other):
        desk.decide([id], False)
    assert [desk.records()[id].status for id in ("id7", "id13")] == ["active", "retired"]
    for id in (other, hidden):
        desk.reopen(id)
    assert desk.records()["id7"] == before["id7"] and desk.records()["id13"].status == "hidden"


def test_an_unknown_proposal_changes_none_of_the_others_G7(desk: Desk) -> None:
    before = desk.last()
    with pytest.raises(NotFound):
        desk.decide([desk.ids[0], "nosuch"], False)
    with pytest.raises(NotFound):
        desk.reopen("nosuch")
    assert desk.last() == before
