"""The daemon's offline commands, as a measurement runs them: `python -m memd.daemon NAME …` in a home of its own.

Comes in: an environment, a command. Goes out: the JSON it prints, or Unavailable with its reason.
"""

from __future__ import annotations

import subprocess
from collections.abc import Mapping

from ...protocol.errors import Unavailable
from ..python import launch


def offline(environment: Mapping[str, str], *arguments: str) -> bytes:
    """What an offline command of the daemon prints. Raises Unavailable with its reason."""
    command = [*launch.command(), *arguments]
    done = subprocess.run(
        command, capture_output=True, check=False, cwd="/", env=launch.daemon_environment(environment)
    )
    if done.returncode:
        raise Unavailable(f"{arguments[0]} ended with {done.returncode}", hint=done.stderr.decode(errors="replace"))
    return done.stdout
