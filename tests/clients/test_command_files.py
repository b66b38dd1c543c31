"""`/memd:reflect` in Codex and Gemini CLI: its file, and the session in which the agent runs it (W4)."""

from __future__ import annotations

import json
import os
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from memd.clients.hooks.command_files import slash_command
from memd.clients.importers import codex, gemini
from memd.clients.importers.session_reader import REFLECT_COMMAND
from memd.protocol.event import Said
from tests.conftest import RunningDaemon

Memd = Callable[..., Any]
AT = "2026-11-02T09:00:00.000Z"
RULE = "We always rinse the jars twice, because the glue of the labels stays on."
OTHER = "We always bake the bread in the small oven, because the big one is uneven."
CODEX_FILE, GEMINI_FILE = ".codex/prompts/memd-reflect.md", ".gemini/commands/memd/reflect.toml"


@pytest.fixture
def machine(home: dict[str, str], tmp_path: Path) -> Path:
    """The home of a user with Codex and Gemini CLI."""
    for name in (".codex", ".gemini"):
        (tmp_path / name).mkdir()
    home.pop("CODEX_HOME", None)
    home.pop("CODEX_THREAD_ID", None)
    home["HOME"] = str(tmp_path)
    return tmp_path


def rollout(folder: Path, cwd: Path, session: str, *said: str) -> Path:
    """A session file of Codex."""
    lines: list[dict[str, Any]] = [{"type": "session_meta", "payload": {"id": session, "cwd": str(cwd)}}]
    lines += [{"type": "event_msg", "payload": {"type": "user_message", "message": words}} for words in said]
    path = folder / f".codex/sessions/2026/11/02/rollout-2026-11-02T09-00-00-{session}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps({"timestamp": AT, **line}) + "\n" for line in lines))
    return path


def chat(folder: Path, *said: str) -> Path:
    """A session file of Gemini CLI."""
    messages = [{"id": f"{n}", "timestamp": AT, "type": "user", "content": words} for n, words in enumerate(said)]
    path = folder / ".gemini/tmp/abc/chats/session-2026-11-02T09-00-1a2b3c4d.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"sessionId": "g1", "startTime": AT, "messages": messages}))
    return path


def test_setup_makes_the_command_and_unsetup_takes_it_away_W4(machine: Path, memd: Memd) -> None:
    told = memd("setup", "all").text
    assert "/prompts:memd-reflect asks the agent" in told and "/memd:reflect asks the agent" in told
    head, text = (machine / CODEX_FILE).read_text().split("---\n")[1:]
    assert head.startswith("description: ") and text.startswith(REFLECT_COMMAND)
    assert "session reflect codex -" in text and "$" not in text, "Codex replaces words after a dollar"
    command = tomllib.loads((machine / GEMINI_FILE).read_text())
    assert command["prompt"].strip() == slash_command("gemini").rpartition("---\n")[2].strip()
    assert "session reflect gemini -" in command["prompt"]
    assert not any(special in command["prompt"] for special in ("!{", "@{", "{{"))
    assert not any(state["problem"] for state in memd("setup", "--json").data)
    assert "Codex: set up" in memd("doctor").text
    (machine / CODEX_FILE).write_text("changed")
    assert "differs from memd's version" in memd("setup").text.replace("\n             ", " ")
    memd("setup", "codex")
    memd("unsetup", "all")
    assert not (machine / ".codex/prompts").exists() and not (machine / ".gemini/commands").exists()


def test_a_file_of_the_user_stays_W4(machine: Path, memd: Memd) -> None:
    (machine / CODEX_FILE).parent.mkdir()
    (machine / CODEX_FILE).write_text("mine")
    assert "is not memd's" in memd("setup", "codex").errors
    assert (machine / CODEX_FILE).read_text() == "mine"
    assert "can't ask the agent of Gemini CLI by itself" in memd("setup", "gemini", "--reflect").errors
    assert not (machine / GEMINI_FILE).exists()


def test_the_agent_reflects_on_the_session_that_runs_here_W4(
    machine: Path, daemon: RunningDaemon, memd: Memd, monkeypatch: pytest.MonkeyPatch
) -> None:
    here, there = machine / "jars", machine / "bread"
    here.mkdir()
    there.mkdir()
    monkeypatch.chdir(here)
    command = slash_command("codex").rpartition("---\n")[2]
    ours = rollout(machine, here, "s1", RULE, command)
    os.utime(ours, (1, 1))
    rollout(machine, there, "s2", OTHER)
    statements = [{"type": "convention", "quotes": [words]} for words in (RULE, OTHER)]
    given = json.dumps({"title": "Jars", "statements": statements})
    told = memd("session", "reflect", "codex", "-", "--json", input=given)
    assert (told.data["taken"], [refused["number"] for refused in told.data["refused"]]) == (1, [1])
    with daemon.client() as client:
        assert [session.document for session in client.sessions().sessions] == ["codex:s1"], "no other one is read"
        assert [turn.text for turn in client.transcript("codex:s1").turns] == [RULE, "Jars"]
        assert not client.session("codex:s1").session.ended_at
    monkeypatch.chdir(machine)
    assert "no session of Codex" in memd("session", "reflect", "codex", "-", input=given).errors


def test_codex_tells_which_of_two_sessions_runs_the_command_W4(
    machine: Path, daemon: RunningDaemon, memd: Memd, home: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(machine)
    os.utime(rollout(machine, machine, "s1", RULE), (1, 1))
    rollout(machine, machine, "s2", OTHER)
    home["CODEX_THREAD_ID"] = "s1"
    given = json.dumps({"statements": [{"type": "convention", "quotes": [RULE]}]})
    assert memd("session", "reflect", "codex", "-", "--json", input=given).data["taken"] == 1


def test_a_session_of_gemini_cli_is_reflected_on_W4(machine: Path, daemon: RunningDaemon, memd: Memd) -> None:
    chat(machine, RULE)
    given = json.dumps({"statements": [{"type": "convention", "quotes": [RULE]}]})
    assert memd("session", "reflect", "gemini", "-", "--json", input=given).data["taken"] == 1
    with daemon.client() as client:
        assert [session.document for session in client.sessions().sessions] == ["gemini-cli:g1"]


def test_the_text_of_the_command_is_not_the_users_W4(machine: Path) -> None:
    command = slash_command("codex").rpartition("---\n")[2]
    files = ((codex.read, rollout(machine, machine, "s1", command, RULE)), (gemini.read, chat(machine, command, RULE)))
    for read, path in files:
        transcript = read(path)
        (session,) = transcript.sessions
        assert [event.text for event in session.events if isinstance(event, Said)] == [RULE]
        assert transcript.account.noise["command of memd"] == 1
