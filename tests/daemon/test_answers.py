"""The user's answer to a question of the agent, from a session's file to the memory, and back out of it (P-5, T10)."""

import json
from pathlib import Path
from typing import Any

import pytest

from memd.clients.hooks import follow
from memd.clients.importers.agent_files import reader
from memd.clients.importers.cursors import Cursors
from memd.clients.importers.delivery import ImportSource, hand_over
from memd.protocol.record import Record
from tests.clients.hooked import Host
from tests.clients.test_follow import note
from tests.conftest import RunningDaemon
from tests.daemon.test_forget import ended, files_with

QUESTION, ANSWER = "Which message broker should the quokka importer use?", "NATS with jetstream"


def session(folder: Path) -> Path:
    """A session of Claude Code in which the agent asks, and the user chooses."""
    use = {"type": "tool_use", "id": "call", "name": "AskUserQuestion", "input": {}}
    done = {"type": "tool_result", "tool_use_id": "call", "content": "answered"}
    said = [
        ("user", "please write the importer of the harvest", {}),
        ("assistant", [use], {}),
        ("user", [done], {"toolUseResult": {"answers": {QUESTION: ANSWER}}}),
        ("assistant", "Thanks.", {}),
    ]
    lines = [
        {
            "type": role,
            "uuid": f"u{number}",
            "sessionId": "s1",
            "timestamp": f"2026-02-11T20:00:0{number}.000Z",
            "cwd": str(folder),
            "message": {"role": role, "content": content},
            **more,
        }
        for number, (role, content, more) in enumerate(said)
    ]
    path = folder / "s1.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    (folder / ".git").mkdir()
    return path


def learn(daemon: RunningDaemon, path: Path, how: str) -> Record:
    """Let memd read the session, by an import or by the hook's reader; return the record of the answer."""
    if how == "import":
        cursors = Cursors(daemon.places.state)
        with daemon.client() as client:
            hand_over(client, ImportSource("claude-code", path, reader("claude-code", path, "", cursors)), cursors)
    else:
        note(Host("claude-code", daemon.environment), path, ended=True)
        follow.follow(daemon.places)
    daemon.settle()
    with daemon.client() as client:
        (record,) = client.list(document="claude-code:s1").records
    return record


@pytest.mark.parametrize("how", ["import", "hook"])
def test_an_answer_is_found_and_explained_with_its_question_R4(daemon: RunningDaemon, tmp_path: Path, how: str) -> None:
    record = learn(daemon, session(tmp_path), how)
    assert (record.provenance.quote, record.provenance.trust) == (ANSWER, "user")
    assert [span.turn for span in record.provenance.spans] == ["call#answer-1", "call#question-1"]
    with daemon.client() as client:
        for question in ("which broker does the importer use", "where do we use jetstream"):
            assert record.id in {hit.record.id for hit in client.recall(question, pools=(record.pool,)).hits}
        why = client.why(record.id)
    assert [line.text for line in why.lines if line.cited] == [QUESTION, ANSWER]
    assert why.quote_holds


@pytest.mark.parametrize("word", ["quokka", "jetstream"])
def test_forgetting_either_turn_forgets_the_record_T10(daemon: RunningDaemon, tmp_path: Path, word: str) -> None:
    record = learn(daemon, session(tmp_path), "import")
    with daemon.client() as client:
        report: dict[str, Any] = ended(client, client.forget(query=word))
        assert (report["records"], report["left"]) == (1, [])
        assert record.id not in {other.id for other in client.list(limit=500).records}
    assert files_with(daemon, word) == []


def test_importing_the_answer_again_changes_nothing_W13(daemon: RunningDaemon, tmp_path: Path) -> None:
    path = session(tmp_path)
    first = learn(daemon, path, "hook")
    assert learn(daemon, path, "import") == first
