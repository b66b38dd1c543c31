"""Disabled, paused, retried, decided, as a user does it (W14, P-2, P-12, T13)."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from memd.clients.cli.options import seconds
from memd.clients.python import Client
from memd.protocol.errors import Disabled, InvalidRequest
from memd.protocol.event import Origin, Said
from memd.protocol.places import Places

AT = "2026-03-04T18:30:00+01:00"


@pytest.mark.parametrize("command", ["recall x", "remember x", "profile", "import claude-code ."])
def test_disabled_commands_do_nothing_and_say_nothing_W14(memd: Callable[..., Any], home: Any, command: str) -> None:
    told = memd(*command.split(), MEMD_DISABLED="1")
    assert (told.code, told.text, told.errors) == (0, "", "")
    assert list(Path(home["MEMD_HOME"]).iterdir()) == []


def test_status_says_that_memd_is_disabled_and_by_what_W14(memd: Callable[..., Any], home: Any) -> None:
    assert "MEMD_DISABLED=yes" in memd("status", MEMD_DISABLED="yes").text
    assert memd("status", MEMD_DISABLED="0").code == 3
    config = Path(home["MEMD_HOME"]) / "config"
    config.mkdir(mode=0o700)
    (config / "disabled").touch()
    assert memd("up", "--json").data == {"disabled": str(config / "disabled")}
    assert memd("up").code == 0 and not (Path(home["MEMD_HOME"]) / "data").exists()


def test_a_disabled_daemon_ends_at_once_and_well_W14(home: dict[str, str]) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "memd.daemon"], check=False, env={**home, "MEMD_DISABLED": "1"}, capture_output=True
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert list(Path(home["MEMD_HOME"]).iterdir()) == []


def test_a_running_daemon_ends_when_it_is_disabled_by_the_file_W14(daemon: Any) -> None:
    (daemon.places.config / "disabled").touch()
    assert daemon.process.wait(20) == 0


def test_a_disabled_client_spools_nothing_and_recalls_nothing_W14(
    here: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMD_DISABLED", "1")
    with Client(here) as client:
        event = Said(turn="1", at=AT, role="user", text="I use vim.")
        assert client.capture_or_spool(Origin(host="h", session="s"), [event]).why == "disabled"  # type: ignore[union-attr]
        assert client.recall("vim").abstained and client.profile().text == ""
        with pytest.raises(Disabled):
            client.remember_or_spool("I use vim.")
    assert not here.spool.exists()


@pytest.mark.parametrize(("text", "value"), [("", 0), ("90s", 90), ("2h", 7200), ("1h30m", 5400), ("1.5h", 5400)])
def test_a_length_of_time_is_read_as_it_is_written(text: str, value: float) -> None:
    assert seconds(text) == value


@pytest.mark.parametrize("text", ["2", "h", "2 h", "-1h", "two"])
def test_no_length_of_time_is_told_how_to_write_one(text: str) -> None:
    with pytest.raises(InvalidRequest):
        seconds(text)


def test_pause_resume_retry_and_inbox_on_the_command_line_P2_P12_T13(daemon: Any, memd: Callable[..., Any]) -> None:
    assert memd("pause", "--for", "2h", "--json").data["pauses"][0]["folder"] == ""
    assert "paused" in memd("status").text and "everywhere, until" in memd("status").text
    refused = memd("remember", "I use vim.")
    assert refused.code == 2 and "memd resume" in refused.errors
    assert "resumed" in memd("resume").text and "not paused" in memd("resume").text
    assert "and below" in memd("pause", "--here").text
    assert "resumed" in memd("resume", "--here").text
    assert memd("pause", "--for", "soon").code == 2
    assert "nothing failed" in memd("retry").text and "nothing failed" in memd("retry", "--all").text
    assert memd("retry", "7").code == 4 and memd("forget", "--failed", "7", "--yes").code == 4
    assert memd("forget", "--letter", "7", "--yes").code == 4
    record = memd("remember", "The lamp is in the attic.", "--json").data["record"]["id"]
    with daemon.client() as client:
        client.propose_forget([record], by="an agent")
    listed = memd("inbox")
    assert "an agent" in listed.text and "The lamp is in the attic." in listed.text
    id = memd("inbox", "--json").data["proposals"][0]["id"]
    assert "0 proposals left" in memd("inbox", "reject", id[:8]).text
    assert memd("inbox", "accept", "zzzz").code == 4
    assert "no proposals" in memd("inbox").text and "rejected" in memd("inbox", "--all").text


def test_decisions_on_several_proposals_and_their_undo_on_the_command_line_G7(
    daemon: Any, memd: Callable[..., Any]
) -> None:
    records = [memd("remember", text, "--json").data["record"]["id"] for text in ("I keep a newt.", "I keep an owl.")]
    with daemon.client() as client:
        first, second = client.propose_forget(records, by="an agent", hide=True).ids
    assert memd("inbox", "reject", first, "nosuch").code == 4
    assert len(memd("inbox", "--json").data["proposals"]) == 2, "all of them or none"
    told = memd("inbox", "reject", first, second).text
    assert "0 proposals left" in told and f"memd inbox reopen {second}" in told
    assert memd("show", records[0]).code == 0
    reopened = memd("inbox", "reopen", first[:8])
    assert "→ hidden" in reopened.text and "1 proposal to decide" in reopened.text
    assert memd("show", records[0]).code == 4
    assert memd("inbox", "reopen", first).code == memd("inbox", "accept", second).code != 0
    assert memd("inbox", "reopen", "nosuch").code == 4
    assert memd("inbox", "reopen", second, "--json").data["open"] == 2
