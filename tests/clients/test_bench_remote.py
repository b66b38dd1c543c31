"""`memd bench write --remote` (W4): a small corpus, real daemons, a real server on this machine."""

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from memd.clients.bench.measurement import BenchOptions, DataMissing, PartResult
from memd.clients.bench.session_data import SAMPLE
from memd.clients.bench.write.remote_reader import is_invented, remote
from memd.protocol.event import Origin, Said
from memd.protocol.places import places
from tests.conftest import RunningDaemon
from tests.daemon.remote_server import Behaviour, ModelServer, good, statement, status

AT = "2026-03-04T09:00:00Z"
KEY = "topsecretkeyfortests"
POINTED = "I'll start with the migration, then the route."
SCORER = """
import json
from pathlib import Path
HERE = Path(__file__).parent

def host_of(path):
    return "claude-code"

def gold(half, name):
    return [json.loads(line) for line in (HERE / half / "gold" / f"{name}.jsonl").read_text().splitlines()]

def grade(half, name, result):
    texts = [record["content"] for record in result["records"]]
    items = [{"got": "whole" if any(item["quotes"][0]["text"] in text for text in texts) else "no"}
             for item in gold(half, name)]
    return {"items": items, "must_not": []}
"""


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "corpus"
    for name in ("dev/sessions", "dev/gold"):
        (folder / name).mkdir(parents=True)
    (folder / "score.py").write_text(SCORER)
    shutil.copy(SAMPLE, folder / "dev/sessions/sample-one.jsonl")
    item = {"type": "gold", "quotes": [{"text": POINTED}]}
    (folder / "dev/gold/sample-one.jsonl").write_text(json.dumps(item) + "\n")
    return folder


@pytest.fixture
def chosen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A function that makes a server the user's choice."""
    home, servers = tmp_path / "users", list[ModelServer]()
    home.mkdir(mode=0o700)
    monkeypatch.setenv("MEMD_HOME", str(home))

    def choose(behaviour: Behaviour) -> ModelServer:
        server = ModelServer(behaviour)
        servers.append(server)
        of_user = places(os.environ, os.getuid())
        key = of_user.remote_key(server.host)
        key.parent.mkdir(mode=0o700, parents=True)
        key.touch(0o600)
        key.write_text(KEY)
        choice = {"provider": server.host, "url": server.url, "dialect": "openai", "model": "tiny-1", "trusted": False}
        (of_user.config / "remote.json").write_text(json.dumps(choice))
        return server

    yield choose
    for server in servers:
        server.close()


def figures(result: PartResult) -> dict[str, float]:
    return {figure.name.strip(): figure.value for figure in result.figures}


def test_nothing_is_asked_without_the_option_and_without_a_choice_W4(data: Path, chosen: Any) -> None:
    with pytest.raises(DataMissing, match="no remote model is chosen, so none was asked"):
        remote(BenchOptions(data=data, remote=True))
    server = chosen(good())
    with pytest.raises(DataMissing, match="asks a remote model"):
        remote(BenchOptions(data=data))
    assert not server.requests


@pytest.mark.slow
def test_a_perfect_and_an_inventing_model_are_told_apart_W4(data: Path, chosen: Any) -> None:
    invented = "The brewery was sold to a circus in spring, and nobody has told the cat."
    server = chosen(good(statement(POINTED, type="decision"), statement(invented), tokens=700))
    result = remote(BenchOptions(data=data, remote=True))
    found = figures(result)
    assert server.requests and KEY.encode() in server.requests[0]
    assert (found["invented"], found["records of the model"] > 0) == (0, True), result
    assert found["gold kept whole, with the model"] == 1.0
    assert (found["statements taken"], found["tokens"] >= 700) == (0.5, True)
    assert found["tokens a record"] == found["tokens"] / found["records of the model"]


@pytest.mark.slow
def test_a_model_that_fails_ends_the_measurement_and_is_told_W4(data: Path, chosen: Any) -> None:
    chosen(status(401))
    result = remote(BenchOptions(data=data, remote=True))
    assert figures(result)["records of the model"] == 0
    assert any("stopped early" in note and "401" in note for note in result.notes)


def test_words_that_the_archive_does_not_have_are_invented_W4(daemon: RunningDaemon) -> None:
    words = "We keep the apple ledger in SQLite, because the spreadsheet loses rows."
    with daemon.client() as client:
        client.capture(Origin(host="pi", session="one"), [Said(turn="1", at=AT, role="user", text=words)])
        daemon.settle()
        record = next(record for record in client.list().records if "ledger" in record.content)
        assert not is_invented(client, record)
        assert is_invented(client, replace(record, content="We keep the pear ledger in SQLite."))
        quoted = replace(record.provenance, quote="We keep no ledger.")
        assert is_invented(client, replace(record, provenance=quoted))


def test_the_command_says_what_it_needs_W4(memd: Any, data: Path) -> None:
    assert "asks a remote model" in memd("bench", "write/remote", "--data", str(data)).text
    assert "none was asked" in memd("bench", "write/remote", "--remote", "--data", str(data)).text
