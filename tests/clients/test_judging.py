"""The user says that a record is right or wrong, without pinning it and without a replacement (T1, T8)."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from memd.protocol.errors import InvalidRequest, NotFound
from memd.protocol.event import Origin, Said
from tests.conftest import RunningDaemon
from tests.daemon.test_deep import AT, done

CLAIM = "The root cause is that the parser always drops the last line because the buffer is flushed too late."


@pytest.fixture
def unconfirmed(daemon: RunningDaemon, memd: Callable[..., Any]) -> str:
    with daemon.client() as client:
        asked = Said(turn="t1", at=AT, role="user", text="Why does the parser lose a line?")
        client.capture(Origin(host="test", session="s"), [asked, Said(turn="t2", at=AT, role="assistant", text=CLAIM)])
        daemon.settle()
        return next(
            record.id for record in client.list(statuses=("quarantined",)).records if "buffer" in record.content
        )


def test_a_confirmed_record_is_believed_until_the_user_takes_it_back_T8(
    daemon: RunningDaemon, memd: Callable[..., Any], unconfirmed: str
) -> None:
    assert "unconfirmed → active" in memd("confirm", unconfirmed, "--dry-run").text
    assert memd("show", unconfirmed, "--json").data["status"] == "quarantined"
    assert "unconfirmed → active" in memd("confirm", unconfirmed).text
    shown = memd("show", unconfirmed, "--json").data
    assert shown["status"] == "active" and not shown.get("pinned")
    assert [item["kind"] for item in shown["provenance"]["evidence"]] == ["confirmed"]
    assert "confirmed by the user" in memd("show", unconfirmed, "--history").text
    assert "stays active" in memd("confirm", unconfirmed).text
    assert len(memd("show", unconfirmed, "--json").data["provenance"]["evidence"]) == 1
    assert "active → unconfirmed" in memd("confirm", unconfirmed, "--undo").text
    back = memd("show", unconfirmed, "--json").data
    assert back["status"] == "quarantined" and not back["provenance"].get("evidence")


def test_a_rejected_record_is_in_no_answer_until_the_user_takes_it_back_T1(
    daemon: RunningDaemon, memd: Callable[..., Any]
) -> None:
    id = memd("remember", "I always deploy with the green cello script.", "--wait", "--json").data["record"]["id"]
    assert "active → retired" in memd("reject", id).text
    assert "cello" not in memd("profile").text + memd("recall", "green cello script deploy").text
    assert "rejected by the user" in memd("show", id, "--history").text
    with pytest.raises(InvalidRequest), daemon.client() as client:
        client.confirm([id])
    with daemon.client() as client:  # the state follows from the journal
        done(client, client.rebuild("records"))
    assert memd("show", id, "--json").data["status"] == "retired"
    assert "retired → active" in memd("reject", id, "--undo").text
    assert "cello" in memd("recall", "green cello script deploy").text
    assert memd("reject", id, "--undo").code == 2


def test_nothing_is_judged_if_one_record_is_unknown_T1(daemon: RunningDaemon, memd: Callable[..., Any]) -> None:
    id = memd("remember", "I always deploy on Tuesdays.", "--wait", "--json").data["record"]["id"]
    with daemon.client() as client:
        with pytest.raises(NotFound):
            client.confirm([id, "nosuch"], right=False)
        with pytest.raises(InvalidRequest):
            client.confirm([])
        assert client.get(id).status == "active"


def test_the_candidates_can_be_looked_through_with_their_sources_W5(
    daemon: RunningDaemon, memd: Callable[..., Any], unconfirmed: str
) -> None:
    listed = memd("inbox", "--candidates")
    assert (
        unconfirmed[:8] in listed.text
        and "buffer is flushed too late" in " ".join(listed.text.split())
        and "memd confirm" in listed.text
    )
    page = memd("inbox", "--candidates", "--json").data
    assert unconfirmed in [record["id"] for record in page["records"]]
    assert {record["status"] for record in page["records"]} <= {"quarantined", "provisional"}
    memd("confirm", unconfirmed)
    assert unconfirmed[:8] not in memd("inbox", "--candidates").text


def test_a_dry_run_shows_what_a_correction_would_change_and_changes_nothing_T1(
    daemon: Any, memd: Callable[..., Any], tmp_path: Path
) -> None:
    (tmp_path / ".memd-id").write_text("orchard-0001\n")
    id = memd("remember", "The team deploys on Tuesdays.", "--personal", "--wait", "--json").data["record"]["id"]
    memd("remember", "The orchard service has two replicas.", "--cwd", str(tmp_path), "--wait")
    project = next(pool["pool"] for pool in memd("pools", "--json").data["pools"] if pool["pool"] != "personal")
    before, journal = memd("show", id, "--json").data, memd("tail", "--json").data["last"]
    edited = memd("edit", id, "The team deploys on Wednesdays.", "--dry-run")
    assert "Wednesdays" in edited.text and "nothing changed" in edited.text and "to undo" not in edited.text
    corrected = memd("correct", id, "The team deploys on Fridays.", "--dry-run", "--json").data
    assert corrected["dry_run"] and corrected["record"]["supersedes"] == [id]
    pinned = memd("pin", id, "--principle", "--dry-run", "--json").data[0]["record"]
    assert pinned["pinned"] and pinned["layer"] == "L1" and "principle" in pinned["tags"]
    assert "would be in" in memd("scope", "move", id, project, "--dry-run").text
    assert (memd("show", id, "--json").data, memd("tail", "--json").data["last"]) == (before, journal)
    with daemon.client() as client:
        proposed = client.propose_forget([id], "mcp", hide=True).ids[0]
    assert "deleted permanently" in memd("inbox", "accept", proposed, "--dry-run").text
    assert "hidden → " in memd("inbox", "reject", proposed, "--dry-run").text
    assert memd("show", id).code == 4  # hidden as before
    assert len(memd("inbox", "--json").data["proposals"]) == 1


def test_the_inbox_names_the_one_that_stays_T12(daemon: Any, memd: Any) -> None:
    with daemon.client() as client:
        first = client.remember("The cellar door is green.").record.id
        second = client.remember("The attic lamp is red.").record.id
        daemon.settle()
        client.pin(first)
        client.edit(second, "The cellar door is green.")
        client.sleep(pools=("personal",))
    text = memd("inbox").text
    assert "twice " + second[:8] in text and "keep  " + first[:8] in text
