"""aider, opencode and the Cline CLI themselves, where they are installed, with a scripted model on a loopback port:
what they write is imported, the user's words as the user's (W5), and importing again adds nothing (W13)."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from memd.clients.importers.agent_files import IMPORTABLE, find, reader
from memd.clients.importers.cursors import Cursors
from memd.clients.importers.delivery import ImportSource, hand_over
from memd.clients.importers.transcript import CapturedSession
from memd.protocol.event import Said, ToolCalled
from tests.clients.chat_api import Answer, ChatApi, tool_call

TYPED = "I prefer tabs in Go. Please list the files."
ANSWER = "We use sqlite because it needs no server."
TOOLS = {"bash": {"command": "ls", "description": "lists"}, "run_commands": {"commands": ["ls"]}}


def answer(body: dict[str, Any]) -> Answer:
    """Call a tool that lists files when the user asks for it, then answer."""
    offered = [tool["function"]["name"] for tool in body.get("tools", [])]
    name = next((name for name in TOOLS if name in offered), "")
    last = body["messages"][-1]
    if name and last["role"] == "user" and "list the files" in json.dumps(last["content"]):
        return tool_call(name, TOOLS[name])
    return {"content": ANSWER}


@pytest.fixture
def model() -> Iterator[ChatApi]:
    with ChatApi(answer) as api:
        yield api


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "ada" / "orchard"
    folder.mkdir(parents=True)
    (folder / "notes.txt").write_text("I prefer long functions.\n")
    return folder


def run(command: list[str], project: Path, **variables: str) -> None:
    """Run a program of a user of whom nothing else is on the machine; no key of anybody's is in its environment."""
    environment = {"HOME": str(project.parent), "PATH": os.environ["PATH"], "TERM": "dumb", **variables}
    done = subprocess.run(
        command, cwd=project, env=environment, capture_output=True, text=True, input="", timeout=300, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def imported(daemon: Any, name: str, folder: Path, root: Path) -> tuple[CapturedSession, ...]:
    """Import what the program wrote, twice; the second time adds nothing. Return its sessions."""
    agent, cursors = IMPORTABLE[name], Cursors(daemon.places.state)
    roots = [root] if name == "aider" else agent.places({"HOME": str(folder)})
    (path,) = find(roots, agent.patterns, agent.example)
    with daemon.client() as client:
        first = hand_over(client, ImportSource(name, path, reader(name, path, "", cursors)), cursors)
        assert first.account.malformed == () and first.account.is_complete
        assert sum(sent.accepted for sent in first.sessions) == sum(sent.events for sent in first.sessions) > 0
        for _ in range(2):
            again = hand_over(client, ImportSource(name, path, reader(name, path, "", cursors)), cursors)
            assert sum(sent.accepted + sent.changed for sent in again.sessions) == 0
            cursors.ignore([path])
    return reader(name, path, "", cursors)(None).sessions


def words(session: CapturedSession, role: str) -> list[str]:
    return [event.text for event in session.events if isinstance(event, Said) and event.role == role]


def calls(session: CapturedSession) -> list[tuple[str, str]]:
    return [(event.name, event.outcome) for event in session.events if isinstance(event, ToolCalled)]


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("aider"), reason="aider is not installed")
def test_what_aider_writes_is_imported(daemon: Any, model: ChatApi, project: Path) -> None:
    subprocess.run(["git", "init", "-q", str(project)], check=True)
    options = "--yes-always --no-check-update --no-show-model-warnings --analytics-disable --no-gitignore --no-stream"
    for text in (f"{TYPED}\nWhich database?", "What is next?"):
        command = ["aider", "--model", "openai/scripted", *options.split(), "--message", text]
        run(command, project, OPENAI_API_BASE=model.url, OPENAI_API_KEY="none")
    first, second = imported(daemon, "aider", project.parent, project)
    assert first.origin.cwd == str(project)
    assert words(first, "user") == [f"{TYPED}\nWhich database?"]
    assert words(second, "user") == ["What is next?"]
    assert words(first, "assistant") == words(second, "assistant") == [ANSWER]


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("opencode"), reason="opencode is not installed")
def test_what_opencode_writes_is_imported(daemon: Any, model: ChatApi, project: Path) -> None:
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "options": {"baseURL": model.url, "apiKey": "none"},
        "models": {"scripted": {"name": "scripted"}},
    }
    settings = {"provider": {"scripted": provider}, "model": "scripted/scripted", "autoupdate": False}
    (project / "opencode.json").write_text(json.dumps(settings))
    run(["opencode", "run", TYPED], project)
    (session,) = imported(daemon, "opencode", project.parent, project)
    assert session.origin.cwd == str(project)
    assert words(session, "user") == [TYPED]
    assert words(session, "assistant") == [ANSWER]
    assert calls(session) == [("bash", "ok")]


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("cline"), reason="the Cline CLI is not installed")
def test_what_cline_writes_is_imported(daemon: Any, model: ChatApi, project: Path) -> None:
    run(["cline", "auth", "openai-compatible", "-k", "none", "-m", "scripted", "-b", model.url], project)
    run(["cline", "--retries", "1", "-t", "120", TYPED], project)
    (session,) = imported(daemon, "cline", project.parent, project)
    assert session.origin.cwd == str(project)
    assert words(session, "user") == [TYPED]
    assert words(session, "assistant") == [ANSWER]
    assert calls(session) == [("run_commands", "ok")]
