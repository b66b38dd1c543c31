"""Claude Code and pi themselves, where they are installed, with a model on a loopback port: five turns each (Q1, W13).

At each turn the current profile stands before the model, over a change of it and a compaction; afterwards an import of
the whole session adds nothing.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from memd.clients.hooks import notes
from memd.clients.hooks.hosts import Hosts
from memd.clients.importers.agent_files import reader
from memd.clients.importers.cursors import Cursors
from memd.clients.importers.delivery import ImportSource, hand_over
from tests.clients.model_api import ModelApi
from tests.conftest import RunningDaemon

PROMPTS = ["We decided to use sqlite because it needs no server.", "I like short functions.", "What is next?"]


@pytest.fixture
def user(home: dict[str, str], tmp_path: Path) -> dict[str, str]:
    """The environment of a user of whom nothing else is on the machine; no key of anybody's is in it."""
    (tmp_path / "project").mkdir()
    return {"HOME": str(tmp_path), "PATH": os.environ["PATH"], "TERM": "dumb", "MEMD_HOME": home["MEMD_HOME"]}


@pytest.fixture
def remembering(user: dict[str, str], home: dict[str, str]) -> Iterator[RunningDaemon]:
    """A daemon that knows a preference."""
    daemon = RunningDaemon(home)
    daemon.start()
    with daemon.client() as client:
        client.remember("I prefer tabs over spaces.")
    yield daemon
    daemon.terminate()


@pytest.fixture
def model() -> Iterator[ModelApi]:
    with ModelApi() as api:
        yield api


def five_turns(daemon: RunningDaemon, model: ModelApi, cwd: str, turns: list[str], turn: Callable[[str], None]) -> None:
    """Each turn's request holds the profile as it was when the turn began; a turn that was skipped is counted."""
    held = skipped = 0
    for number, prompt in enumerate(turns):
        with daemon.client() as client:
            if number == 2:
                client.remember("I prefer two blank lines between functions.")
            before, count = client.profile(cwd=cwd).text, _skips(daemon)
            turn(prompt)
            after = client.profile(cwd=cwd).text  # what was just said may be distilled while the turn goes on
        if _skips(daemon) > count:
            skipped += 1
            continue
        if prompt.startswith("/"):  # a word to the host, after which the next turn has to bring the profile back
            continue
        assert before in model.context or after in model.context, f"turn {number}: {prompt}"
        held += 1
    assert held, f"{skipped} turns were skipped: the machine is too busy to tell"


def _skips(daemon: RunningDaemon) -> int:
    found = notes.skipped(daemon.places.state, time.time())
    return found.total if found else 0


def importing_adds_nothing(daemon: RunningDaemon, agent: str, folder: Path) -> None:
    end = time.monotonic() + 30
    while notes.has_notes(daemon.places.state):
        assert time.monotonic() < end
        time.sleep(0.1)
    (path,) = folder.rglob("*.jsonl")
    cursors = Cursors(daemon.places.state)
    cursors.ignore([path])
    with daemon.client() as client:
        (sent,) = hand_over(client, ImportSource(agent, path, reader(agent, path, "", cursors)), cursors).sessions
    assert (sent.accepted, sent.changed, sent.refused) == (0, 0, ())
    assert sent.duplicate == sent.events >= 10


def set_up(name: str, daemon: RunningDaemon, user: dict[str, str]) -> None:
    hosts = Hosts(daemon.places, user)
    hosts.set_up(name, hosts.edits(name))


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("claude"), reason="Claude Code is not installed")
def test_five_turns_of_claude_code(remembering: RunningDaemon, user: dict[str, str], model: ModelApi) -> None:
    project = f"{user['HOME']}/project"
    (Path(user["HOME"]) / ".claude").mkdir()
    set_up("claude-code", remembering, user)
    environment = {
        **user,
        "ANTHROPIC_BASE_URL": model.url,
        "ANTHROPIC_API_KEY": "none",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_AUTOUPDATER": "1",
    }
    command = ["claude", "-p", "--verbose", "--input-format", "stream-json", "--output-format", "stream-json"]
    pipes: Any = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(command, env=environment, cwd=project, text=True, **pipes) as claude:
        assert claude.stdin and claude.stdout

        def turn(prompt: str) -> None:
            assert claude.stdin and claude.stdout
            message = {"type": "user", "message": {"role": "user", "content": prompt}}
            claude.stdin.write(json.dumps(message) + "\n")
            claude.stdin.flush()
            assert any(json.loads(line).get("type") == "result" for line in iter(claude.stdout.readline, ""))

        five_turns(remembering, model, project, [*PROMPTS, "/compact", "Never push on a Friday.", "Thanks."], turn)
        claude.stdin.close()
    importing_adds_nothing(remembering, "claude-code", Path(user["HOME"]) / ".claude/projects")


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("pi"), reason="pi is not installed")
def test_five_turns_of_pi(remembering: RunningDaemon, user: dict[str, str], model: ModelApi) -> None:
    project = f"{user['HOME']}/project"
    agent = Path(user["HOME"]) / ".pi/agent"
    agent.mkdir(parents=True)
    provider = {"baseUrl": model.url, "api": "anthropic-messages", "apiKey": "NO_KEY", "models": [{"id": "one"}]}
    (agent / "models.json").write_text(json.dumps({"providers": {"loopback": provider}}))
    set_up("pi", remembering, user)
    begun: list[str] = []

    def turn(prompt: str) -> None:
        command = ["pi", "--provider", "loopback", "--model", "one", *begun, "-p", prompt]
        subprocess.run(
            command, env={**user, "NO_KEY": "none"}, cwd=project, capture_output=True, check=True, timeout=60
        )
        begun[:] = ["-c"]

    five_turns(remembering, model, project, [*PROMPTS, "Never push on a Friday.", "Thanks."], turn)
    importing_adds_nothing(remembering, "pi", agent / "sessions")
