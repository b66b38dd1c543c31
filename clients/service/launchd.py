"""memd as a launch agent of macOS (U1). launchd expands neither ~ nor variables, so every path is absolute."""

from __future__ import annotations

import os
import plistlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ...protocol.places import Places
from . import TEMPLATES, ServiceFile, ServiceState, carried, program, run

LABEL = "dev.memd.daemon"


class Launchd:
    """The launch agent in the user's folder. A method returns the manager's error, "" for none."""

    def __init__(self, places: Places, environment: Mapping[str, str]) -> None:
        self._places, self._carried = places, carried(environment)
        self._home = Path(environment.get("HOME") or "/")
        self._domain = f"gui/{os.getuid()}"

    def files(self) -> tuple[ServiceFile, ...]:
        agent: dict[str, Any] = plistlib.loads((TEMPLATES / f"{LABEL}.plist").read_bytes())
        agent["ProgramArguments"] = [*program(), "up", "--foreground"]
        agent["StandardErrorPath"] = str(self._places.log)
        agent["EnvironmentVariables"] = {"ORT_DISABLE_TELEMETRY": "1", **self._carried}
        agent["WorkingDirectory"] = "/"
        mark = f"<!-- data: {self._places.data} -->\n" if "--" not in str(self._places.data) else ""
        text = plistlib.dumps(agent).decode().replace("<plist", f"{mark}<plist", 1)
        path = self._home / "Library" / "LaunchAgents" / f"{LABEL}.plist"
        return (ServiceFile(path=path, text=text),)

    def reachable(self) -> bool:
        """Whether the user has a login session."""
        return run(["launchctl", "print", self._domain])[0] == 0

    def enable(self) -> str:
        """Load the agent, or load it again."""
        self.disable()
        return self.start()

    def start(self) -> str:
        """Load and run the agent."""
        code, output = run(["launchctl", "bootstrap", self._domain, str(self.files()[0].path)])
        return output if code and "already" not in output else ""

    def stop(self) -> str:
        """Unload the agent until the next login."""
        code, output = run(["launchctl", "bootout", f"{self._domain}/{LABEL}"])
        return output if code and "No such process" not in output else ""

    disable = stop

    def state(self) -> ServiceState:
        (file,) = self.files()
        code, output = run(["launchctl", "print", f"{self._domain}/{LABEL}"])
        states = [line.strip() for line in output.splitlines() if line.strip().startswith("state = ")]
        return ServiceState(
            manager="launchd" if code in (0, 113) else "",
            installed=file.path.exists(),
            current=file.is_there(),
            enabled=code == 0,
            active="state = running" in states,
            detail=states[0] if states else output,
            files=(str(file.path),),
        )
