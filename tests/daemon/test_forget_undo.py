"""Taking back is reversible, compaction changes no answer, the past of everything else stays as it was (T10, P-9)."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memd.clients.importers.claude_code import read
from memd.clients.python.client import remembering
from memd.daemon.projections.record_reducer import apply as step
from memd.daemon.projections.stores import Stores
from memd.daemon.services.forgetting.compaction import compact_log, renew
from memd.daemon.services.forgetting.forget_closure import ForgetScope, find_loss
from memd.daemon.world import real_world
from memd.models import registry
from memd.protocol.block import plain
from memd.protocol.errors import InvalidRequest, NotFound
from memd.protocol.event import Captured, Origin, Said
from memd.protocol.operation import (
    Added,
    AnyOperation,
    Decision,
    Merged,
    Neighbour,
    Purged,
    Rebased,
    Retirement,
    SessionOpened,
    Step,
)
from memd.protocol.record import Evidence, Provenance, Record, Span
from tests.conftest import EXAMPLES

SAMPLE = Path(__file__).parents[2] / "clients" / "cli" / "sample" / "session.jsonl"
AT = "2026-01-01T00:00:00Z"
WHY = Decision(action="add", reason="a test")


def ended(client: Any, state: Any) -> dict[str, Any]:
    while state.state == "running":
        time.sleep(0.02)
        state = client.job(state.id)
    assert state.problem is None, state.problem
    return dict(state.report)


def beliefs(client: Any) -> list[tuple[str, ...]]:
    return sorted((each.id, each.status, each.description, each.key) for each in client.list(limit=500).records)


def user(number: int, session: str, text: str) -> tuple[Origin, list[Said]]:
    turn = Said(turn=f"t{number}", at=f"2026-01-{number:02}T00:00:00Z", role="user", text=text)
    return Origin(host="cli", session=session), [turn]


def test_undo_and_redo_give_back_the_identical_set_P9(daemon: Any) -> None:
    with daemon.client() as client:
        client.capture(*user(1, "mine", "I always use tabs for indentation."))
        daemon.settle()
        before = beliefs(client)
        (session, *_) = read(SAMPLE).sessions
        client.capture(session.origin, session.events)
        client.capture(*user(9, "other", "I now always use spaces for indentation."))
        daemon.settle()
        full, profile = beliefs(client), client.profile().text
        assert len(full) > len(before)
        report = ended(client, client.undo([session.origin.document, "other"]))
        assert report["hidden"] > 2
        assert beliefs(client) == before
        hidden = client.list(statuses=["hidden"], limit=500).records
        assert len(hidden) == report["hidden"]
        states = {state.document: (state.is_undone, state.records) for state in client.sessions().sessions}
        assert states[session.origin.document] == (True, 0) and states["cli:mine"] == (False, len(before))
        with pytest.raises(NotFound):
            client.get(hidden[0].id)
        for each in hidden[:5]:
            found = client.recall(each.description, include_retired=True)
            assert each.id not in {hit.record.id for hit in found.hits}
        daemon.terminate()
        daemon.start()
    with daemon.client() as client:
        assert beliefs(client) == before
        ended(client, client.redo([session.origin.document]))
        assert beliefs(client) == full and client.profile().text == profile
        with pytest.raises(NotFound):
            client.redo([session.origin.document])


def test_what_was_learnt_meanwhile_is_not_overruled_by_redo_P9(daemon: Any) -> None:
    with daemon.client() as client:
        client.capture(*user(1, "first", "I prefer tabs for indentation."))
        daemon.settle()
        ended(client, client.undo(["first"]))
        assert beliefs(client) == []
        client.capture(*user(2, "second", "I prefer spaces for indentation."))
        daemon.settle()
        report = ended(client, client.redo(["first"]))
        live = [each for each in client.list().records if each.status == "active" and each.key]
        assert len({each.key for each in live}) == len(live), "two live records of one key"
        assert report["brought_back"] + report["left"] == 1


def test_a_correction_is_taken_back_and_brought_back_P9(daemon: Any) -> None:
    with daemon.client() as client:
        client.capture(*user(1, "first", "I prefer tabs for indentation."))
        daemon.settle()
        (tabs,) = client.list().records
        before = beliefs(client)
        spaces = client.correct(tabs.id, "I prefer spaces for indentation.").record
        daemon.settle()
        after, session = beliefs(client), spaces.provenance.spans[0].document
        report = ended(client, client.undo([session]))
        assert (report["hidden"], report["believed_again"]) == (1, 1)
        assert beliefs(client) == before
        ended(client, client.redo([session]))
        assert beliefs(client) == after
        ended(client, client.undo(["first"]))
        assert client.get(spaces.id).status == "active", "what the user said since stays"


def test_an_edit_is_taken_back_and_brought_back_P9(daemon: Any) -> None:
    with daemon.client() as client:
        client.capture(*user(1, "first", "I prefer tabs for indentation."))
        daemon.settle()
        (tabs,) = client.list().records
        before, session = beliefs(client), f"edits/{tabs.id}"
        client.edit(tabs.id, "I prefer two spaces for indentation.")
        client.edit(tabs.id, "I prefer three spaces for indentation.")
        daemon.settle()
        after, edited = beliefs(client), client.get(tabs.id)
        report = ended(client, client.undo([session]))
        assert (report["hidden"], report["reworded"]) == (0, 1)
        back = client.get(tabs.id)
        assert beliefs(client) == before and back.provenance.spans == tabs.provenance.spans
        assert back.provenance.evidence == tabs.provenance.evidence
        assert client.why(tabs.id).quote_holds
        assert tabs.id in {hit.record.id for hit in client.recall("tabs or spaces").hits}
        assert ended(client, client.redo([session]))["brought_back"] == 1
        again = client.get(tabs.id)
        assert beliefs(client) == after and again.provenance == edited.provenance
        ended(client, client.undo([session]))
        client.edit(tabs.id, "I prefer four spaces for indentation.")
        assert ended(client, client.redo([session]))["left"] == 1
        assert client.get(tabs.id).content == "I prefer four spaces for indentation."


@pytest.mark.slow
def test_an_edit_of_what_nobody_confirmed_leaves_it_unconfirmed_when_it_is_taken_back_P9(daemon: Any) -> None:
    with daemon.client() as client:
        tabs = client.remember(remembering("The user prefers tabs for indentation.", role="assistant")).record
        daemon.settle()
        before, session = beliefs(client), f"edits/{tabs.id}"
        client.edit(tabs.id, "I prefer spaces for indentation.")
        after = beliefs(client)
        ended(client, client.undo([session]))
        assert beliefs(client) == before and client.get(tabs.id).status == "quarantined"
        ended(client, client.redo([session]))
        assert beliefs(client) == after and client.get(tabs.id).status == "active"


@pytest.mark.slow
def test_what_was_corrected_twice_comes_back_when_both_are_undone_P9(daemon: Any) -> None:
    with daemon.client() as client:
        client.capture(*user(1, "first", "I prefer tabs for indentation."))
        daemon.settle()
        (tabs,) = client.list().records
        spaces = client.correct(tabs.id, "I prefer spaces for indentation.").record
        both = client.correct(spaces.id, "I prefer tabs in Go and spaces elsewhere.").record
        daemon.settle()
        assert ended(client, client.undo([f"corrections/{tabs.id}"]))["believed_again"] == 0
        assert client.get(both.id).status == "active"
        assert ended(client, client.undo([f"corrections/{spaces.id}"]))["believed_again"] == 1
        assert client.get(tabs.id).status == "active"


@pytest.mark.slow
def test_redo_brings_no_correction_back_beside_a_newer_one_P9(daemon: Any) -> None:
    with daemon.client() as client:
        client.capture(*user(1, "first", "I prefer tabs for indentation."))
        daemon.settle()
        (tabs,) = client.list().records
        session = f"corrections/{tabs.id}"
        client.correct(tabs.id, "I prefer spaces for indentation.")
        ended(client, client.undo([session]))
        newer = client.correct(tabs.id, "I prefer four spaces for indentation.").record
        assert ended(client, client.redo([session]))["brought_back"] == 0
        (active,) = client.list(statuses=["active"]).records
        assert active.id == newer.id


@pytest.mark.slow
def test_what_is_believed_again_takes_no_key_from_another_P9(daemon: Any) -> None:
    with daemon.client() as client:
        client.capture(*user(1, "first", "I prefer tabs for indentation."))
        daemon.settle()
        (tabs,) = client.list().records
        assert tabs.key
        client.correct(tabs.id, "My editor formats everything.")
        client.remember("I prefer spaces for indentation.", host="other")
        daemon.settle()
        assert ended(client, client.undo([f"corrections/{tabs.id}"]))["believed_again"] == 0
        live = [each for each in client.list().records if each.status == "active" and each.key == tabs.key]
        assert len(live) == 1 and "spaces" in live[0].content


def test_undo_needs_a_name_that_is_known(daemon: Any) -> None:
    with daemon.client() as client:
        with pytest.raises(NotFound):
            client.undo(["nowhere"])
        client.capture(*user(1, "alpha-one", "I prefer tabs for indentation."))
        client.capture(*user(2, "alpha-two", "We deploy on Tuesdays."))
        with pytest.raises(InvalidRequest):
            client.undo(["alpha"])


def test_every_command_says_of_what_undo_hid_that_redo_shows_it_T10(daemon: Any) -> None:
    with daemon.client() as client:
        client.capture(*user(1, "first", "I always use tabs for indentation."))
        daemon.settle()
        (record,) = client.list().records
        ended(client, client.undo(["first"]))
        asked: tuple[Callable[[str], object], ...] = (
            client.get,
            client.why,
            client.history,
            client.pin,
            lambda id: client.correct(id, "I use spaces."),
            lambda id: client.edit(id, "I use spaces."),
            lambda id: client.restore([id]),
            lambda id: client.feedback(used=[id]),
            lambda id: client.propose_forget([id]),
            lambda id: client.move_records([id], "personal"),
        )
        for ask in asked:
            for id in (record.id, record.id[:8].upper()):
                with pytest.raises(NotFound, match=f"^no record '{id}'") as told:
                    ask(id)
                assert "`memd redo` brings back" in told.value.hint
        ended(client, client.redo(["first"]))
        for number in range(33):  # of 33 ids two begin with the same of 32 letters
            client.remember(f"Lamp {number} stands in room {number}.")
        beginnings = [each.id[0] for each in client.list(limit=100).records]
        shared = next(each for each in beginnings if beginnings.count(each) > 1)
        for ask in asked:
            with pytest.raises(NotFound, match=f"^several records start with '{shared}'") as told:
                ask(shared)
            assert told.value.hint == "give more characters of the id"


def test_compaction_changes_no_answer_and_frees_what_was_removed_P20(daemon: Any) -> None:
    with daemon.client() as client:
        for number in range(1, 9):
            client.capture(*user(number, f"s{number}", f"The lamp{number} stands in room{number}. " + "filler " * 9000))
        daemon.settle()
        ended(client, client.forget(session="s1"))
        before, hits = beliefs(client), client.recall("where is lamp3").hits
        report = ended(client, client.compact())
        assert report["after_bytes"] <= report["before_bytes"]
        assert beliefs(client) == before and client.recall("where is lamp3").hits == hits
        client.capture(*user(20, "later", "I prefer the brass kettle."))
        daemon.settle()
        assert len(beliefs(client)) > len(before)


# --- the past of everything else, over random lives -----------------------------------------------------------------
def record(number: int, rev: int = 1, turn: str = "") -> Record:
    words = f"statement number{number} revision{rev}"
    span = Span("h:s", turn or f"t{number}", 0, len(words))
    provenance = Provenance(author="user", source="h:s", trust="user", spans=(span,), quote=words, said_at=AT)
    return Record(
        id=f"id{number}", pool="personal", kind="note", content=words, description=words, provenance=provenance,
        key=f"k{number % 3}", rev=rev,
    )  # fmt: skip


STEPS = st.lists(
    st.tuples(st.sampled_from(["add", "replace", "merge", "correct"]), st.integers(0, 7), st.integers(0, 7)),
    min_size=3,
    max_size=18,
)


def life(steps: list[tuple[str, int, int]]) -> list[AnyOperation]:
    operations: list[AnyOperation] = [
        SessionOpened(document="h:s", origin=Origin(host="h", session="s"), project="", at=AT)
    ]
    known: dict[int, Record] = {}
    for what, one, other in steps:
        if what == "merge" and one in known:
            evidence = Evidence(kind="restated", span=Span("h:s", f"t{other}", 0, 9), trust="user", at=AT)
            operations.append(Merged(id=f"id{one}", evidence=evidence, decision=WHY))
        elif one not in known:
            known[one] = record(one)
            if what not in ("replace", "correct") or other not in known.keys() - {one}:
                operations.append(Added(record=known[one], decision=WHY))
                continue
            before = known[other]
            if what == "correct":
                known[one] = corrected(before, one)
            told = f"it is not so that {before.content}"
            decision = Decision(
                action="add",
                reason=told,
                steps=(Step("reconcile", told),),
                neighbours=(Neighbour(before.id, 1, 1.0, "replaces"),),
            )
            retires = (Retirement(before.id, AT, told),)
            operations.append(Added(record=known[one], retires=retires, decision=decision))
    return operations


def corrected(before: Record, number: int) -> Record:
    """What the user said against a record: it cites all that the record cited, and has its keywords."""
    new = record(number)
    span = Span(f"memd:corrections/{before.id}", f"{before.id}:1", 0, len(new.content))
    provenance = msgspec.structs.replace(
        before.provenance,
        quote=new.content,
        spans=(span, *before.provenance.spans),
        evidence=(*before.provenance.evidence, Evidence(kind="corrected", span=span, trust="user", at=AT)),
    )
    tags = ("note", *before.tags[1:], *before.content.split()[1:])
    return msgspec.structs.replace(new, provenance=provenance, tags=tags)


def turns_of(number: int, operations: list[AnyOperation]) -> set[tuple[str, str]]:
    """Where a record was said and restated, and whatever says the same; not where what it corrected was said."""
    turns = {("h:s", f"t{number}")}
    for each in operations:
        if isinstance(each, Added) and each.record.id == f"id{number}":
            turns.add((each.record.provenance.spans[0].document, each.record.provenance.spans[0].turn))
        elif isinstance(each, Merged) and each.id == f"id{number}":
            turns.add((each.evidence.span.document, each.evidence.span.turn))
    return turns


def past(stores: Stores, id: str) -> list[Record | None]:
    """What was believed of a record after each operation of the journal."""
    rows: list[Record | None] = []
    row: Record | None = None
    for entry in stores.journal.read():
        if id in _ids(entry.operation):
            row = step(row, id, entry)
        rows.append(row)
    return rows


def _ids(operation: AnyOperation) -> tuple[str, ...]:
    from memd.daemon.projections.record_reducer import touched

    return touched(operation)


@settings(max_examples=25 * EXAMPLES, deadline=None)
@given(STEPS, st.integers(0, 7))
def test_forgetting_one_leaves_the_present_and_the_past_of_the_others_T10(
    tmp_path_factory: Any, steps: list[tuple[str, int, int]], number: int
) -> None:
    stores = Stores(tmp_path_factory.mktemp("stores"), real_world(), registry.info())
    captures = [
        Captured(document="h:s", event=Said(turn=f"t{n}", at=AT, role="user", text=record(n).content)) for n in range(8)
    ]
    stores.take(captures)
    operations = life(steps)
    for operation in operations:
        stores.commit([operation])
    if stores.records.get(f"id{number}") is not None:
        rows = {each.id: each for each in stores.records.everything()}
        pasts = {id: past(stores, id) for id in rows}
        length = stores.journal.last
        loss = find_loss(stores, ForgetScope(ids=(f"id{number}",)), ())
        redacted = loss.redacted()
        entries = stores.commit([redacted, *(Rebased(record=each) for each in loss.rebased.values())])
        stores.journal.log.erase([left.seq for left in redacted.entries])
        stores.archive.log.erase(redacted.captures)
        compact_log(stores.journal.log)
        stores.commit([Purged(redacted=entries[0].seq)])
        assert set(loss.turns) == turns_of(number, operations)
        touched_ids = loss.gone.keys() | loss.rebased.keys()
        live = {each.id: each for each in stores.records.everything()}
        assert live.keys() == rows.keys() - loss.gone.keys()
        for id in rows.keys() - touched_ids:
            assert live[id] == rows[id]
            assert past(stores, id)[:length] == pasts[id]
        renew(stores)
        assert {each.id: each for each in stores.records.everything()} == live, "replay differs from live"
        assert stores.journal.log.verify() == stores.journal.last
        found = plain((stores.folder / "journal" / "data.mdb").read_bytes())
        for each in loss.gone.values():
            assert each.content.encode() not in found
            assert each.id != f"id{number}" or each.content.split()[1] not in str(live)
    stores.close()
