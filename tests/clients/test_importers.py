"""pi's, Codex's and Gemini CLI's sessions: every line accounted for, no machine taken for the user, nothing twice."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from memd.clients.importers import codex, gemini, pi
from memd.clients.importers.summary import lessons
from memd.clients.importers.transcript import CapturedSession, Mark, Transcript
from memd.protocol.event import Ran, Said, SessionEnded, SessionStarted, ToolCalled, Wrote, text
from tests.clients.growing import check_reading_on

DATA = Path(__file__).parents[1] / "data" / "sessions"
SESSIONS = Path(__file__).resolve().parents[2].parent / "shared" / "data" / "sessions"
PI, GEMINI, GEMINI_LINES = DATA / "pi.jsonl", DATA / "gemini.json", DATA / "gemini.jsonl"
(CODEX,) = DATA.glob("rollout-*.jsonl")
READERS = [(pi.read, PI), (codex.read, CODEX), (gemini.read, GEMINI_LINES)]
REAL_PI, REAL_CODEX = sorted(SESSIONS.glob("pi/*.jsonl")), sorted(SESSIONS.glob("codex/*.jsonl"))
Read = Callable[[Path, str, Mark | None], Transcript]


def said(session: CapturedSession) -> list[tuple[str, str]]:
    """Who said what, in order."""
    return [(event.role, event.text) for event in session.events if isinstance(event, Said)]


@pytest.mark.parametrize(("read", "path"), READERS, ids=("pi", "codex", "gemini"))
def test_every_line_of_a_sample_is_accounted_for(read: Read, path: Path) -> None:
    transcript = read(path, "", None)
    assert transcript.account.is_complete
    assert transcript.account.lines == len(path.read_bytes().splitlines())
    turns = [(session.origin.document, event.turn) for session in transcript.sessions for event in session.events]
    assert len(set(turns)) == len(turns)


@pytest.mark.parametrize(("read", "path"), READERS, ids=("pi", "codex", "gemini"))
def test_a_grown_file_is_read_on_W13(read: Read, path: Path, tmp_path: Path) -> None:
    check_reading_on(read, path, tmp_path / path.name)


# --- pi -------------------------------------------------------------------------------------------------------------
def test_a_fork_of_pi_tells_its_own_turns_and_those_of_the_session_it_came_from() -> None:
    own, parent = pi.read(PI).sessions
    assert parent.origin.document == "pi:0b5c7b3e-0000-4e0a-9c1e-000000000001"
    assert said(parent) == [("user", "We keep SQLite for the harvest table."), ("assistant", "Noted.")]
    assert [event.turn for event in parent.events] == ["user-1772528405000", "assistant-1772528409000"]
    assert own.origin.document == "pi:0b5c7b3e-0000-4e0a-9c1e-000000000002"
    assert (own.origin.cwd, own.origin.title) == ("/home/ada/orchard", "Harvest table")
    assert isinstance(own.events[0], SessionStarted)
    assert isinstance(own.events[-1], SessionEnded)
    assert said(own) == [
        ("user", "I prefer small commits."),
        (
            "assistant",
            "## Key Decisions\n- Keep old migrations in place, because customers still run them.",
        ),
        ("user", "Another branch: use spaces in YAML."),
    ]
    calls = [(event.name, event.outcome) for event in own.events if isinstance(event, ToolCalled)]
    assert calls == [("bash", "error"), ("read", "ok")]
    assert [event.command for event in own.events if isinstance(event, Ran)] == ["git status"]


def test_what_an_extension_of_pi_put_in_is_noise() -> None:
    account = pi.read(PI).account
    assert account.noise["custom"] == account.noise["custom_message"] == 1
    (torn,) = account.malformed
    assert torn.line == 15
    assert "the file ends within this line" in torn.reason


def test_a_migrated_file_of_pi_gives_the_same_turns(tmp_path: Path) -> None:
    """W13: version 1 has no ids; pi adds them when it opens the file again."""
    lines = [json.loads(line) for line in PI.read_text().splitlines()[:-1]]
    old = tmp_path / PI.name
    for line in lines:
        line.pop("version", None)
        if line["type"] != "session":
            line.pop("id")
            line.pop("parentId")
    old.write_text("\n".join(json.dumps(line) for line in lines))
    assert pi.read(old).sessions == pi.read(PI).sessions


@pytest.mark.skipif(not REAL_PI, reason=f"no sessions to read below {SESSIONS}")
@pytest.mark.parametrize("path", REAL_PI, ids=lambda path: path.name[:24])
def test_a_real_session_of_pi(path: Path, tmp_path: Path) -> None:
    transcript = pi.read(path)
    assert transcript.account.is_complete
    assert transcript.account.malformed == ()
    users = [words for session in transcript.sessions for role, words in said(session) if role == "user"]
    assert len(users) == 55
    assert any("e2e tests for AgentSession" in words for words in users)
    check_reading_on(pi.read, path, tmp_path / path.name)


# --- Codex ----------------------------------------------------------------------------------------------------------
def test_what_a_user_of_codex_typed_is_taken_once_P7() -> None:
    (session,) = codex.read(CODEX).sessions
    assert session.origin.document == "codex:0b5c7b3e-0000-4e0a-9c1e-000000000003"
    assert session.origin.cwd == "/home/ada/orchard"
    assert said(session) == [
        ("user", "continue"),
        ("assistant", "The Makefile has no test rule."),
        ("user", "add one; I prefer short rules"),
        ("assistant", "## Lessons\n- The linter fails on tabs, so recipes are checked by hand."),
        ("user", "continue"),
    ]
    calls = [event for event in session.events if isinstance(event, ToolCalled)]
    assert [(event.name, event.outcome) for event in calls] == [("shell", "error"), ("apply_patch", "ok")]
    assert "hunter2" not in calls[0].arguments


def test_instructions_and_surroundings_are_not_the_users_words_W5() -> None:
    noise = codex.read(CODEX).account.noise
    assert noise["instructions"] == noise["environment_context"] == noise["developer message"] == 1
    assert noise["repeats an event"] == 4


def test_a_session_of_codex_without_events_is_read_from_its_items(tmp_path: Path) -> None:
    """The first form: a bare header, bare items, no times but the header's."""
    lines = [
        {"id": "s1", "timestamp": "2025-06-01T10:00:00Z", "instructions": "x"},
        {"record_type": "state"},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "<environment_context>x"}]},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "I prefer tabs"}]},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Noted."}]},
    ]
    path = tmp_path / "rollout-x.jsonl"
    path.write_text("\n".join(json.dumps(line) for line in lines))
    transcript = codex.read(path)
    assert transcript.account.is_complete
    (session,) = transcript.sessions
    assert session.origin.document == "codex:s1"
    assert said(session) == [("user", "I prefer tabs"), ("assistant", "Noted.")]


def test_a_file_of_codex_cut_between_the_two_takes_the_prompt_once(tmp_path: Path) -> None:
    """P-7: the item is there, its event not yet."""
    lines = CODEX.read_bytes().splitlines(keepends=True)
    path = tmp_path / CODEX.name
    path.write_bytes(b"".join(lines[:6]))
    first = codex.read(path)
    assert first.sessions == ()
    path.write_bytes(b"".join(lines))
    assert codex.read(path, "", first.mark).sessions == codex.read(CODEX).sessions


def test_an_answer_to_a_question_of_codex_is_the_users(tmp_path: Path) -> None:
    at = "2026-01-01T00:00:00Z"
    asked = {"questions": [{"id": "db", "header": "Data", "question": "Which database?", "options": []}]}
    answered = {"answers": {"db": {"answers": ["Postgres", "user_note: 16 or later"]}}}
    call = {"type": "function_call", "name": "request_user_input", "call_id": "c1", "arguments": json.dumps(asked)}
    output = {"type": "function_call_output", "call_id": "c1", "output": json.dumps(answered)}
    lines = [
        {"timestamp": at, "type": "session_meta", "payload": {"id": "s1", "cwd": "/x"}},
        *({"timestamp": at, "type": "response_item", "payload": payload} for payload in (call, output)),
    ]
    path = tmp_path / "rollout-s1.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    (session,) = codex.read(path).sessions
    assert [event for event in session.events if isinstance(event, Said)] == [
        Said(turn="c1#question-1", at=at, role="assistant", text="Which database?"),
        Said(turn="c1#answer-1", at=at, role="user", text="Postgres, 16 or later", answers="c1#question-1"),
    ]


def test_the_last_plan_of_codex_tells_what_is_left_open(tmp_path: Path) -> None:
    at = "2026-01-01T00:00:00Z"
    lines: list[dict[str, Any]] = [{"timestamp": at, "type": "session_meta", "payload": {"id": "s1", "cwd": "/x"}}]
    for number, status in enumerate(("in_progress", "completed")):
        told = {"plan": [{"step": "Port the importer", "status": status}, {"step": "Port tests", "status": "pending"}]}
        call = {"type": "function_call", "name": "update_plan", "call_id": f"c{number}", "arguments": json.dumps(told)}
        output = {"type": "function_call_output", "call_id": f"c{number}", "output": "Plan updated"}
        lines += [{"timestamp": at, "type": "response_item", "payload": payload} for payload in (call, output)]
    path = tmp_path / "rollout-s1.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    (session,) = codex.read(path).sessions
    assert [event.text for event in session.events if isinstance(event, Wrote)] == ["- Port tests"]


def test_the_task_of_a_subagent_of_codex_is_not_the_users(tmp_path: Path) -> None:
    path = tmp_path / CODEX.name
    path.write_text(CODEX.read_text().replace('"source":"cli"', '"source":{"subagent":"review"}'))
    (session,) = codex.read(path).sessions
    assert {role for role, _ in said(session)} == {"assistant"}


@pytest.mark.skipif(not REAL_CODEX, reason=f"no sessions to read below {SESSIONS}")
def test_a_real_file_of_codex_in_which_nobody_speaks() -> None:
    transcript = codex.read(REAL_CODEX[0])
    assert transcript.account.is_complete
    assert (transcript.sessions, transcript.account.taken, transcript.account.malformed) == ((), 0, ())


# --- Gemini CLI -----------------------------------------------------------------------------------------------------
def test_a_session_of_gemini_cli() -> None:
    transcript = gemini.read(GEMINI, "/home/ada/orchard")
    (session,) = transcript.sessions
    assert session.origin.document == "gemini-cli:0b5c7b3e-0000-4e0a-9c1e-000000000004"
    assert (session.origin.cwd, session.origin.title) == ("/home/ada/orchard", "Pick a database")
    assert said(session) == [("user", "We chose SQLite, see @notes.md"), ("assistant", "Good choice.")]
    outcomes = [event.outcome for event in session.events if isinstance(event, ToolCalled)]
    assert outcomes == ["ok", "error"]
    assert transcript.account.is_complete
    assert transcript.account.noise == {"info": 1}
    assert [bad.line for bad in transcript.account.malformed] == [4]


def test_the_todos_of_gemini_cli_tell_what_is_left_open(tmp_path: Path) -> None:
    todos = [
        {"description": "Port the importer", "status": "cancelled"},
        {"description": "Port it", "status": "pending"},
    ]
    call = {"id": "c1", "name": "write_todos", "args": {"todos": todos}, "status": "success"}
    message = {"id": "m1", "timestamp": "2026-01-01T00:00:00Z", "type": "gemini", "content": "", "toolCalls": [call]}
    path = tmp_path / "session-1.json"
    path.write_text(json.dumps({"sessionId": "s1", "startTime": "2026-01-01T00:00:00Z", "messages": [message]}))
    (session,) = gemini.read(path).sessions
    assert [event.text for event in session.events if isinstance(event, Wrote)] == ["- Port it"]


def test_a_message_of_gemini_cli_that_is_written_again_is_one_turn() -> None:
    (session,) = gemini.read(GEMINI_LINES).sessions
    assert said(session) == [("user", "I prefer tabs"), ("assistant", "Done.")]
    assert [event.turn for event in session.events] == ["session-start", "m2", "c1", "m3", "session-end"]
    (call,) = [event for event in session.events if isinstance(event, ToolCalled)]
    assert call.outcome == "ok"


def test_the_projects_folder_of_gemini_cli_where_it_is_written_down(tmp_path: Path) -> None:
    place = tmp_path / "orchard" / "chats"
    place.mkdir(parents=True)
    (tmp_path / "orchard" / ".project_root").write_text("/home/ada/orchard")
    (place / "session-1.json").write_bytes(GEMINI.read_bytes())
    assert gemini.read(place / "session-1.json").sessions[0].origin.cwd == "/home/ada/orchard"


@pytest.mark.skipif(not SESSIONS.exists(), reason=f"nothing below {SESSIONS}")
@pytest.mark.parametrize("path", sorted(SESSIONS.glob("gemini/*.json")), ids=lambda path: path.stem)
def test_a_file_that_is_no_session_is_told(path: Path) -> None:
    """These record what a model answered, for tests of the host."""
    account = gemini.read(path).account
    assert (account.taken, len(account.malformed)) == (0, 1)


# --- all ------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("read", [pi.read, codex.read, gemini.read], ids=("pi", "codex", "gemini"))
@pytest.mark.parametrize("content", [b"", b"\x00\x01", b"[]\n", b'{"type": 7}\n', b"\xff\xfe\n{}\n", b"[" * 100_000])
def test_whatever_the_bytes_reading_ends_in_an_account(read: Read, content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(content)
    transcript = read(path, "", None)
    assert transcript.sessions == ()
    assert transcript.account.is_complete


@pytest.mark.parametrize(
    ("summary", "kept"),
    [
        ("", ""),
        ("plain words", "plain words"),
        ("## Next Steps\n- a\n\n## Constraints\n- b", "## Constraints\n- b"),
        ("1. Primary Request:\n a\n\n2. Key Technical Concepts:\n - b", "2. Key Technical Concepts:\n - b"),
        ("<analysis>x</analysis><summary>1. Pending Tasks:\n - a\n2. Lessons:\n - b\n</summary>", "2. Lessons:\n - b"),
    ],
)  # fmt: skip
def test_what_stays_of_a_summary(summary: str, kept: str) -> None:
    assert lessons(summary) == kept


def test_a_turn_beyond_the_limit_is_told(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text(PI.read_text().splitlines()[1].replace("We keep", "x" * 600_000) + "\n")
    (bad,) = pi.read(path).account.malformed
    assert "characters" in bad.reason
    assert not [text(event) for session in pi.read(path).sessions for event in session.events]


OF_AN_AGENT = '<agent-message from="a1">I prefer tabs.</agent-message> Answer it.'
DELIVERED: dict[str, tuple[Any, str]] = {
    "codex": (codex, '{"type":"event_msg","timestamp":"%s","payload":{"type":"user_message","message":%s}}'),
    "pi": (pi, '{"type":"message","id":"a","timestamp":"%s","message":{"role":"user","content":%s}}'),
    "gemini": (gemini, '{"id":"a","timestamp":"%s","type":"user","content":%s}'),
}


@pytest.mark.parametrize("agent", DELIVERED)
def test_a_message_of_another_agent_is_not_the_users_word_W5(agent: str, tmp_path: Path) -> None:
    module, form = DELIVERED[agent]
    file = tmp_path / "session-1.jsonl"
    file.write_text(form % ("2026-03-04T10:00:00Z", json.dumps(OF_AN_AGENT)) + "\n")
    transcript = module.read(file)
    assert transcript.account.noise == {"agent-message": 1}
    assert not [event for session in transcript.sessions for event in session.events if isinstance(event, Said)]
