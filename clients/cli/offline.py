"""Commands that need no running daemon: `python -m memd.daemon NAME …`, asked by a command of `memd`.

Comes in: a name and arguments. Goes out: its report, or the error that it ended with.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from typing import TypeVar

import msgspec

from ...protocol.errors import InvalidRequest, MemdError, ModelMissing, NotFound, StoreError, Unavailable
from ..python import launch

T = TypeVar("T")
_BY_EXIT_CODE: dict[int, type[MemdError]] = {2: InvalidRequest, 4: NotFound, 5: StoreError, 6: ModelMissing}


def offline(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs one command of the daemon's `offline.py`."""
    environment = launch.daemon_environment(os.environ)
    command: Sequence[str] = [*launch.command(), *arguments]
    return subprocess.run(command, capture_output=True, check=False, text=True, cwd="/", env=environment)


def reported(done: subprocess.CompletedProcess[str], kind: type[T]) -> T:
    """What an offline command printed. Raises the error that it ended with."""
    if done.returncode:
        raise ended_with(done)
    return msgspec.json.decode(done.stdout, type=kind)


def ended_with(done: subprocess.CompletedProcess[str]) -> MemdError:
    """The error of a command that failed, in its own words."""
    said = [line.partition(": ")[2] for line in done.stderr.splitlines() if line.startswith(("memd: ", "hint: "))]
    kind = _BY_EXIT_CODE.get(done.returncode, Unavailable)
    message = said[0] if said else f"it ended with exit code {done.returncode}"
    return kind(message, hint=said[1] if len(said) > 1 else "\n".join(done.stderr.splitlines()[-3:]))
