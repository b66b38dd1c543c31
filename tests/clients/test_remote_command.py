"""`memd remote` as a user meets it (W4): a real daemon, a real server on this machine."""

import os
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from memd.protocol.event import Origin, Said, SessionEnded
from tests.conftest import RunningDaemon
from tests.daemon.remote_server import ModelServer, good, statement
from tests.daemon.test_remote import QUICK, wait

AT = "2026-03-04T09:00:00Z"
WORDS = "We keep the apple ledger in SQLite, because the spreadsheet loses rows."
SQUEAK = "The squeak comes from the worn idler pulley, as the wear marks show."


@pytest.fixture
def home(tmp_path: Path) -> dict[str, str]:
    folder = tmp_path / "home"
    folder.mkdir(mode=0o700)
    return {**os.environ, "MEMD_HOME": str(folder), **QUICK}


@pytest.fixture
def server() -> Iterator[ModelServer]:
    running = ModelServer(good(statement(SQUEAK, type="lesson")))
    yield running
    running.close()


def flat(text: str) -> str:
    return " ".join(text.split())


def test_a_model_is_chosen_consented_previewed_read_and_switched_off_W4(
    memd: Any, daemon: RunningDaemon, server: ModelServer, tmp_path: Path
) -> None:
    folder = tmp_path / "orchard"
    folder.mkdir()
    subprocess.run(["git", "init", "-q", str(folder)], check=True)
    with daemon.client() as client:
        events = [Said(turn="1", at=AT, role="user", text=WORDS), Said(turn="2", at=AT, role="assistant", text=SQUEAK)]
        origin = Origin(host="claude-code", session="one", cwd=str(folder))
        client.capture(origin, [*events, SessionEnded(turn="3", at=AT)])
    daemon.settle()

    assert "off" in memd("remote", "status").text
    told = memd("remote", "key", input="a-key-for-tests\n")
    assert told.code != 0 and "no remote model is chosen" in told.errors
    assert "no consent" in memd("remote", "use", server.url, "--model", "tiny-1").text
    told = memd("remote", "key", "--variable", "MODEL_KEY", MODEL_KEY="a-key-for-tests")
    assert told.code == 0
    file = daemon.places.remote_key(server.host)
    assert (file.read_text(), stat.S_IMODE(file.stat().st_mode)) == ("a-key-for-tests\n", 0o600)
    assert "a-key-for-tests" not in told.text + told.errors + memd("remote", "status", "--json").text

    shown = memd("remote", "preview", "one")
    assert "no consent" in shown.errors and WORDS in shown.text
    private = memd("remote", "consent", "orchard").text
    assert "1 not, because they are private" in flat(private)
    assert "consent: orchard for" in private, "the pool has the name by which the user called it"
    assert not server.requests
    assert "1 session left to send" in flat(memd("remote", "consent", "orchard", "--private", "--for", "30d").text)
    wait(lambda: "1 pointed, 0 dropped" in flat(memd("status").text))
    assert b"authorization: bearer a-key-for-tests" in server.requests[0].lower()
    assert server.requests[0].partition(b"\n\n")[2].decode() == shown.text.rstrip("\n")
    listed = memd("remote", "status")
    assert "0 sessions left to send" in flat(listed.text), "it was read"
    assert "1 call" in listed.text and "claude-code:one" in listed.text and "taken" in listed.text
    call = memd("remote", "status", "--json").json["data"]["calls"][0]["id"]
    assert memd("remote", "preview", "--call", call).text == shown.text

    daemon.settle()
    assert "1 record hidden" in memd("undo", f"remote:{server.host}").text
    assert "off" in memd("remote", "off").text
    assert not any(line.startswith("remote") for line in memd("status").text.splitlines())
    assert memd("remote", "key", "--remove").code != 0
    memd("remote", "use", server.url, "--model", "tiny-1")
    assert memd("remote", "key", "--remove").code == 0 and not file.exists()


def test_an_address_of_another_machine_needs_https_W4(memd: Any, daemon: RunningDaemon) -> None:
    told = memd("remote", "use", "http://models.example.org/v1", "--model", "tiny-1")
    assert told.code != 0 and "https" in told.errors
