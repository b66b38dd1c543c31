"""A host that runs the installed hook as it would: the same command line, its own JSON on standard input."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from memd.clients.hooks import memd_hook, notes, program
from memd.protocol.places import Places, places


class Host:
    """An agent of which memd is set up: `call` gives what the hook printed, decoded; "" is nothing."""

    def __init__(self, agent: str, environment: Mapping[str, str]) -> None:
        self.agent, self.environment = agent, dict(environment)
        self.places: Places = places(environment, os.getuid())
        program.install(self.places, environment)

    def run(self, event: str, content: bytes, **changes: str) -> subprocess.CompletedProcess[bytes]:
        """The process, ended. It hangs for ever in no test: 30 s are a failure."""
        command = [*program.command(self.places, self.agent), event]
        environment = {**self.environment, **changes}
        return subprocess.run(command, input=content, capture_output=True, env=environment, timeout=90, check=False)

    def call(self, event: str, payload: Mapping[str, Any]) -> Any:
        """What it printed; as a host would, an empty output is nothing, and any exit code but 0 a failure."""
        done = self.run(event, json.dumps(payload).encode())
        assert (done.returncode, done.stderr) == (0, b"")
        return json.loads(done.stdout) if done.stdout else ""

    def inject(self, event: str, payload: Mapping[str, Any]) -> str:
        """The text that reaches the model's context. A turn that the machine was too busy for is run again."""
        told: Any = ""
        for _ in range(20):
            before = self.skips
            told = self.call(event, payload)
            if told or self.skips == before:
                break
        if not told:
            return ""
        return told["context"] if self.agent == "pi" else told["hookSpecificOutput"]["additionalContext"]

    @property
    def skips(self) -> int:
        """Turns without memory so far."""
        found = notes.skipped(self.places.hooks, time.time())
        return found.total if found else 0

    @property
    def reasons(self) -> dict[str, int]:
        """Why."""
        found = notes.skipped(self.places.hooks, time.time())
        return found.reasons if found else {}

    @property
    def skips_but_late(self) -> int:
        """Those that a busy machine does not explain."""
        return self.skips - self.reasons.get(f"no answer within {memd_hook.LIMIT_MS} ms", 0)

    def noted(self) -> list[notes.SessionNote]:
        """The sessions that are to be read on."""
        queue = self.places.hooks / "queue"
        lines = queue.read_bytes().splitlines() if queue.exists() else []
        return [notes.SessionNote(**json.loads(line)) for line in lines]


def started(source: str = "startup", **more: Any) -> dict[str, Any]:
    """What Claude Code tells a SessionStart hook."""
    return {**_base("SessionStart"), "source": source, **more}


def prompted(prompt: str, **more: Any) -> dict[str, Any]:
    """What Claude Code tells a UserPromptSubmit hook."""
    return {**_base("UserPromptSubmit"), "permission_mode": "default", "prompt": prompt, **more}


def stopped(path: Path, event: str = "Stop", **more: Any) -> dict[str, Any]:
    """What Claude Code tells a Stop hook, or another one after a turn."""
    base = {**_base(event), "transcript_path": str(path)}
    return {**base, "stop_hook_active": False, "last_assistant_message": "Done.", **more}


def _base(event: str) -> dict[str, Any]:
    return {
        "session_id": "ec584067-fa36-44f4-a757-79b173260bf3",
        "transcript_path": "/nowhere/session.jsonl",
        "cwd": "/",
        "hook_event_name": event,
    }
