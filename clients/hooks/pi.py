"""pi's configuration: one extension in the folder that pi loads extensions from.

Comes in: places, an environment. Goes out: the file. Invariant: it is the only thing of the user's that is touched.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from ...protocol.places import Places
from .edits import Edit, read
from .program import command

NAME = "pi"
_TEMPLATE = Path(__file__).with_name("pi_extension.ts")


def home(environment: Mapping[str, str]) -> Path:
    """Where pi keeps its configuration."""
    return Path(environment.get("PI_CODING_AGENT_DIR") or Path(environment.get("HOME") or "/") / ".pi/agent")


def edits(places: Places, environment: Mapping[str, str]) -> list[Edit]:
    """The extension as it should be. Raises StoreError."""
    path = home(environment) / "extensions/memd.ts"
    content = _TEMPLATE.read_text(encoding="utf-8").replace("__COMMAND__", json.dumps(command(places, NAME)))
    return [Edit(path=path, before=read(path), after=content.encode())]


def is_here(environment: Mapping[str, str]) -> bool:
    """Whether pi was ever used here."""
    return home(environment).is_dir()
