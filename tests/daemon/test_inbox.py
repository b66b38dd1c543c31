"""What only the user decides: deletions that an agent asked for, conflicts at a session's end (T13, G7)."""

import time
from typing import Any

import msgspec
import pytest

from memd.clients.python import Client
from memd.protocol.errors import Denied, InvalidRequest, NotFound
from memd.protocol.event import Origin, Said, SessionEnded
from memd.protocol.operation import ChangeDecided, ChangeProposed
from memd.protocol.record import Record
from memd.protocol.request import Remember

OLD, NEW = "2026-03-01T09:00:00+01:00", "2026-04-12T09:00:00+02:00"


def remember(daemon: Any, text: str, turn: str, at: str = OLD, session: str = "one") -> Record:
    with daemon.client() as client:
        record = client.remember(
            Remember(text=text, turn=turn, at=at, origin=Origin(host="cli", session=session))
        ).record
    daemon.settle()
    return record


def end(daemon: Any, session: str) -> None:
    with daemon.client() as client:
        client.capture(Origin(host="cli", session=session), [SessionEnded(turn="end", at=NEW)])
    daemon.settle()


def journaled(client: Any, kind: type) -> list[Any]:
    return [each.operation for each in client.journal(limit=500).entries if isinstance(each.operation, kind)]


def conflict(daemon: Any) -> tuple[Record, Record]:
    held = remember(daemon, "I prefer tabs for indentation.", "1")
    with daemon.client() as client:
        assert client.pin(held.id).record.pinned and client.pin(held.id).duplicate
    fresh = remember(daemon, "I now prefer spaces for indentation.", "2", NEW, "two")
    return held, fresh


def test_no_statement_retires_what_is_held_and_the_conflict_waits_for_the_user_T13(daemon: Any) -> None:
    held, fresh = conflict(daemon)
    end(daemon, "two")
    with daemon.client() as client:
        assert client.get(held.id).status == "active" and client.get(fresh.id).needs_review
        waiting = client.inbox()
        assert waiting.open == 1 == client.status().inbox
        asked = waiting.proposals[0]
        assert (asked.what, asked.record, asked.against) == ("conflict", held.id, fresh.id)
        assert (asked.evidence, asked.against_evidence) == (held.provenance.spans, fresh.provenance.spans)
        assert asked.if_nothing == "Both stay, and an answer may have either."
        told = client.decide(asked.id[:8], True)
        assert told.open == 0 and told.job is None
        old, new = client.get(held.id), client.get(fresh.id)
        assert (old.status, old.superseded_by, new.status, new.needs_review) == ("retired", fresh.id, "active", False)
        assert client.why(new.id).replaced == (old,)
        with pytest.raises(InvalidRequest):
            client.decide(asked.id, False)
        assert [each.accepted for each in journaled(client, ChangeDecided)] == [True]
    daemon.kill()
    daemon.start()
    end(daemon, "two")
    with daemon.client() as client:
        decided = client.inbox(all=True).proposals[0]
        assert client.inbox().proposals == () and decided.state == "accepted" and decided.if_nothing == ""


def test_a_decision_taken_back_stands_after_a_kill_and_in_fresh_tables_G7(daemon: Any) -> None:
    held, fresh = conflict(daemon)
    end(daemon, "two")
    with daemon.client() as client:
        (asked,) = client.inbox().proposals
        before = [msgspec.structs.replace(client.get(id), rev=0) for id in (held.id, fresh.id)]
        client.decide(asked.id, True)
        changed = client.reopen(asked.id[:8])
        assert changed.open == 1 == client.status().inbox and changed.job is None
        assert {(each.id, each.before, each.after) for each in changed.records} == {
            (held.id, "retired", "active"),
            (fresh.id, "active", before[1].status),
        }
    daemon.kill()
    daemon.start()
    with daemon.client() as client:
        for _ in range(2):
            assert [msgspec.structs.replace(client.get(id), rev=0) for id in (held.id, fresh.id)] == before
            assert client.inbox().proposals == (asked,)
            job = client.rebuild("tables")
            while (job := client.job(job.id)).state == "running":
                time.sleep(0.02)
            assert job.problem is None
        assert client.decide(asked.id, False).open == 0


def test_only_the_user_decides_and_takes_decisions_back_A1_G7(daemon: Any) -> None:
    record = remember(daemon, "The xylofon is in the attic.", "1")
    with daemon.client() as client:
        (id,) = client.propose_forget([record.id]).ids
        token = client.grant("reviewer", for_s=3600).token
        with Client(daemon.places, deadline_ms=20_000, token=token) as reader:
            for act in (lambda: reader.decide(id, False), lambda: reader.decide("", True, ids=[id])):
                with pytest.raises(Denied):
                    act()
            client.decide(id, False)
            with pytest.raises(Denied):
                reader.reopen(id)
        assert client.inbox(all=True).proposals[0].state == "rejected"


def test_several_deletions_are_one_job_and_have_no_way_back_T10_G7(daemon: Any) -> None:
    first = remember(daemon, "The xylofon is in the attic.", "1")
    second = remember(daemon, "I keep an axolotl.", "2")
    with daemon.client() as client:
        ids = client.propose_forget([first.id, second.id], hide=True).ids
        planned = client.decide("", True, ids=ids, dry_run=True)
        assert planned.job is None and {each.after for each in planned.records} == {""} and planned.open == 2
        job = client.decide(ids[0], True, ids=ids[1:]).job
        assert job is not None
        while (job := client.job(job.id)).state == "running":
            time.sleep(0.02)
        assert job.problem is None and job.report["left"] == []
        assert [each.accepted for each in journaled(client, ChangeDecided)] == [True, True]
        for id in ids:
            with pytest.raises(NotFound, match="no proposal") as gone:
                client.reopen(id)
            assert "deleted permanently" in gone.value.hint


def test_a_record_whose_decision_was_taken_back_can_be_forgotten_T10_G7(daemon: Any) -> None:
    held, fresh = conflict(daemon)
    end(daemon, "two")
    with daemon.client() as client:
        (asked,) = client.inbox().proposals
        client.decide(asked.id, True)
        client.reopen(asked.id)
        for start in (lambda: client.forget([held.id]), client.verify):
            job = start()
            while (job := client.job(job.id)).state == "running":
                time.sleep(0.02)
            assert job.problem is None and not job.report.get("left") and not job.report.get("damage")
        assert client.get(fresh.id).needs_review
        assert client.inbox(all=True).proposals == ()


def test_a_rejected_conflict_changes_nothing_and_is_not_asked_again_T13(daemon: Any) -> None:
    held, fresh = conflict(daemon)
    with daemon.client() as client:
        before = (client.get(held.id), client.get(fresh.id))
        client.decide(client.inbox().proposals[0].id, False)
        assert (client.get(held.id), client.get(fresh.id)) == before
    end(daemon, "two")
    with daemon.client() as client:
        assert client.inbox().open == 0 and len(journaled(client, ChangeProposed)) == 1


def test_a_session_is_held_against_what_is_pinned_only_later_T13(daemon: Any) -> None:
    """The check at the end, not reconcile, finds it: the record was pinned after the session had spoken."""
    held = remember(daemon, "We deploy the orchard service on Tuesdays.", "1")
    with daemon.client() as client:
        said = Said(turn="9", at=NEW, role="assistant", text="We now deploy the orchard service on Fridays.")
        client.capture(Origin(host="cli", session="two"), [said])
        client.pin(held.id)
    daemon.settle()
    end(daemon, "two")
    with daemon.client() as client:
        assert client.get(held.id).status == "active"
        fresh = [each for each in client.list().records if "Fridays" in each.content]
        if fresh:  # where the distiller takes the statement at all
            assert [each.against for each in client.inbox().proposals] == [fresh[0].id]


def test_an_agent_asks_and_only_the_user_forgets_T10_G7(daemon: Any) -> None:
    record = remember(daemon, "The xylofon is in the attic.", "1")
    with daemon.client() as client:
        asked = client.propose_forget([record.id[:10]], by="an agent")
        assert client.propose_forget([record.id]).known == 1
        assert client.inbox().proposals[0].if_nothing == "It stays as it is."
        assert client.get(record.id).status == "active"
        with pytest.raises(NotFound):
            client.decide("zzzz", True)
        job = client.decide(asked.ids[0], True).job
        assert job is not None
        while job.state == "running":
            time.sleep(0.02)
            job = client.job(job.id)
        assert job.problem is None and job.report["left"] == []
        with pytest.raises(NotFound):
            client.get(record.id)
        assert client.inbox(all=True).proposals == ()
        assert [each.accepted for each in journaled(client, ChangeDecided)] == [True]


def test_a_word_that_was_cut_off_is_whole_or_not_there_G7(daemon: Any) -> None:
    held, fresh = conflict(daemon)
    with daemon.client() as client:
        id = client.inbox().proposals[0].id
    daemon.terminate()
    daemon.environment["MEMD_FAIL"] = "inbox:decided"
    daemon.start()
    with daemon.client() as client, pytest.raises(Exception, match=r".*"):
        client.decide(id, True)
    daemon.process.wait(20)
    del daemon.environment["MEMD_FAIL"]
    daemon.start()
    with daemon.client() as client:
        assert client.inbox().open == 0
        assert (client.get(held.id).status, client.get(fresh.id).status) == ("retired", "active")
