"""Hooks as several hosts have them in a JSON file: for each event a list of groups of shell commands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from ...protocol.places import Places
from .config_text import JsonText
from .program import SOURCE, shell_line


def group(line: str, timeout: int) -> dict[str, Any]:
    """Return the group of one command. `timeout`: in the host's own unit."""
    return {"hooks": [{"type": "command", "command": line, "timeout": timeout}]}


def groups(places: Places, agent: str, events: Sequence[str], timeout: int) -> dict[str, list[dict[str, Any]]]:
    """Return memd's one group for each event."""
    return {event: [group(shell_line(places, agent, event), timeout)] for event in events}


def put(text: JsonText, hooks: Mapping[str, list[Any]]) -> None:
    """Put memd's entries beside those of the user, in the place of older ones of memd. Raises StoreError."""
    drop(text, hooks)
    for event, entries in hooks.items():
        for entry in entries:
            text.add(("hooks", event), entry)


def drop(text: JsonText, kept: Mapping[str, list[Any]] | None = None) -> None:
    """Take memd's entries out, but those that are `kept` as they are. A command of the user in memd's group stays.
    Raises StoreError."""
    events = text.get("hooks")
    for event, items in list(cast("dict[str, object]", events).items()) if isinstance(events, dict) else ():
        if not isinstance(items, list):
            continue
        wanted = (kept or {}).get(event, [])
        for number, item in reversed(list(enumerate(cast("list[object]", items)))):
            if not is_ours(item) or item in wanted:
                continue
            commands = text.get("hooks", event, number, "hooks")
            is_shared = isinstance(commands, list) and not all(is_ours(each) for each in cast("list[object]", commands))
            text.drop(("hooks", event, number, "hooks") if is_shared else ("hooks", event, number), is_ours)


def is_ours(value: object) -> bool:
    """Whether memd's hook stands in a command of an entry."""
    if isinstance(value, dict):
        inside = cast("dict[str, object]", value)
        command = inside.get("command")
        return (isinstance(command, str) and SOURCE.name in command) or is_ours(inside.get("hooks"))
    return isinstance(value, list) and any(is_ours(item) for item in cast("list[object]", value))


def without(path: Path, content: bytes, before: bytes | None) -> bytes | None:
    """Return a file without memd's entries, None if memd made it and nothing else is in it. Raises StoreError."""
    text = JsonText(content, path)
    drop(text)
    return text.content() if before is not None or set(text.value) - {"version"} else None
