"""Transcripts with the outputs of tools, on request (C4): capped, without secrets, never learned from, forgotten with
everything else."""

import json
from pathlib import Path
from typing import Any

import pytest

from memd.clients.importers.agent_files import reader
from memd.clients.importers.cursors import Cursors
from memd.protocol.event import Origin, Returned
from tests.conftest import RunningDaemon

ID = "6c1d2f60-0000-4000-8000-000000000000"
OUTPUT = "Deploying to the cluster zanzibar-7. We always deploy on Fridays.\n" + "line\n" * 2000 + "done in 7 s"
SECRET = "ghp_" + "q7Zt9vKd2LmXw4RbNc8PyHs6FgJa3UeT5oBi"


def session_file(folder: Path) -> Path:
    """A session of two turns and one tool call."""

    def line(number: int, kind: str, content: object) -> str:
        return json.dumps(
            {
                "type": kind,
                "uuid": f"00000000-0000-4000-8000-{number:012}",
                "sessionId": ID,
                "cwd": str(folder),
                "isSidechain": False,
                "timestamp": f"2026-11-02T09:{number:02}:00.000Z",
                "message": {"role": kind, "content": content},
            }
        )

    call = {"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {"command": "make deploy"}}
    result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": [{"type": "text", "text": OUTPUT}]}
    lines = [
        line(1, "user", "Please deploy the orchard service."),
        line(2, "assistant", [call]),
        line(3, "user", [result]),
        line(4, "user", f"Thanks. The token is {SECRET} by the way."),
    ]
    path = folder / f"{ID}.jsonl"
    path.write_text("\n".join(lines) + "\n")
    return path


def test_outputs_are_kept_on_request_alone_and_capped_C4(daemon: RunningDaemon, memd: Any, tmp_path: Path) -> None:
    path = session_file(tmp_path)
    assert memd("import", "claude-code", str(path)).code == 0
    with daemon.client() as client:
        assert "zanzibar" not in repr(client.transcript(ID, limit=100))
    assert memd("config", "set", "archive_keep_tool_output", "600").code == 0
    assert memd("import", "claude-code", str(path), "--whole").code == 0
    with daemon.client() as client:
        (output,) = [turn for turn in client.transcript(ID, limit=100).turns if turn.turn == "toolu_1#output"]
        assert output.text.startswith("Deploying to the cluster") and output.text.endswith("done in 7 s")
        assert "characters left out" in output.text and len(output.text) < 700
        assert output.who == "tool"
        contents = " ".join(record.content for record in client.list(limit=100).records)
        assert "Fridays" not in contents, "a tool's words are nobody's"
        assert not [turn for turn in client.recall("cluster zanzibar-7", cwd=str(tmp_path)).turns if turn.document]


def test_a_large_or_unwanted_output_is_not_taken_C4(daemon: RunningDaemon) -> None:
    origin = Origin(host="claude-code", session=ID, live=False)
    output = Returned(turn="a#output", at="2026-11-02T09:00:00Z", call="a", text="x" * 700)
    with daemon.client() as client:
        taken = client.capture(origin, (output,))
        assert (taken.accepted, taken.skipped, taken.why) == (0, 1, "tool output")
        client.put_setting("archive_keep_tool_output", "600")
        assert client.capture(origin, (output,)).skipped == 1
        client.put_setting("archive_keep_tool_output", "700")
        assert client.capture(origin, (output,)).accepted == 1


def test_outputs_have_no_secrets_and_forget_reaches_them_C4_T10_P18(daemon: RunningDaemon) -> None:
    origin = Origin(host="claude-code", session=ID, live=False)
    text = f"export GITHUB_TOKEN={SECRET}\nthe cluster is zanzibar-7"
    with daemon.client() as client:
        client.put_setting("archive_keep_tool_output", "1000")
        client.capture(origin, (Returned(turn="a#output", at="2026-11-02T09:00:00Z", call="a", text=text),))
        shown = repr(client.transcript(ID))
        assert "zanzibar-7" in shown and SECRET not in shown
        assert client.preview_forget(query="zanzibar-7").captures == 1
        job = client.forget(query="zanzibar-7")
        while job.state == "running":
            job = client.job(job.id)
        assert job.state == "done", job
    daemon.terminate()
    everything = b"".join(
        file.read_bytes() for file in Path(daemon.environment["MEMD_HOME"]).rglob("*") if file.is_file()
    )
    assert b"zanzibar-7" not in everything and SECRET.encode() not in everything


SESSIONS = Path(__file__).resolve().parents[2].parent / "shared" / "data" / "sessions"


@pytest.mark.parametrize("host", ["claude-code", "pi"])
def test_outputs_of_real_sessions_are_read_and_change_nothing_else_C4(host: str, tmp_path: Path) -> None:
    files = [path for path in sorted((SESSIONS / host).rglob("*.json*")) if path.is_file()]
    if not files:
        pytest.skip("the real sessions are not here")
    outputs = 0
    for path in files:
        plain, whole = (
            reader(host, path, "", Cursors(tmp_path), dry_run=True, output_limit=limit)(None) for limit in (0, 300)
        )
        for without, session in zip(plain.sessions, whole.sessions, strict=True):
            returned = [event for event in session.events if isinstance(event, Returned)]
            assert tuple(event for event in session.events if event not in returned) == without.events
            assert all(len(event.text) <= 364 and event.text.strip() for event in returned)
            outputs += len(returned)
    assert outputs > 0


AT = "2026-11-02T09:00:00.000Z"
CODEX = [
    {"type": "session_meta", "payload": {"id": "s", "cwd": "/x", "timestamp": AT}},
    {"type": "event_msg", "payload": {"type": "user_message", "message": "Please list the files."}},
    {"type": "response_item", "payload": {"type": "function_call", "name": "shell", "call_id": "c", "arguments": "{}"}},
    {
        "type": "response_item",
        "payload": {"type": "function_call_output", "call_id": "c", "output": '{"output":"the files","metadata":{}}'},
    },
]
GEMINI = {
    "sessionId": "s",
    "startTime": AT,
    "messages": [
        {"id": "1", "timestamp": AT, "type": "user", "content": "Please list the files."},
        {
            "id": "2",
            "timestamp": AT,
            "type": "gemini",
            "content": "",
            "toolCalls": [
                {
                    "id": "c",
                    "name": "list",
                    "args": {},
                    "status": "success",
                    "result": [{"functionResponse": {"id": "c", "name": "list", "response": {"output": "the files"}}}],
                }
            ],
        },
    ],
}


@pytest.mark.parametrize(
    ("host", "name", "content"),
    [
        ("codex", "rollout-s.jsonl", "\n".join(json.dumps({"timestamp": AT, **line}) for line in CODEX)),
        ("gemini", "session-s.json", json.dumps(GEMINI)),
    ],
)
def test_outputs_of_other_hosts_are_read_C4(host: str, name: str, content: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_text(content)
    (session,) = reader(host, path, "", Cursors(tmp_path), dry_run=True, output_limit=300)(None).sessions
    (output,) = [event for event in session.events if isinstance(event, Returned)]
    assert (output.call, "the files" in output.text) == ("c", True)
