"""Claude Code's configuration: a plugin in a marketplace of its own, enabled in `settings.json`.

memd also edits the list of marketplaces, because with the settings alone the first session starts before the plugin is
loaded. Invariants: memd touches its own three entries alone; hooks can neither fail nor block (P-3).
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from ... import __version__
from ...protocol.errors import StoreError
from ...protocol.places import Places
from .edits import FileEdit, read
from .notes import folder
from .program import shell_line

NAME = "claude-code"
PLUGIN = "memd@memd"
LISTING = "plugins/known_marketplaces.json"
EVENTS = ("SessionStart", "UserPromptSubmit", "SubagentStop", "Stop", "PreCompact", "SessionEnd")
TIMEOUT_S = 2  # that Claude Code waits for a hook, much longer than the program runs


def home(environment: Mapping[str, str]) -> Path:
    """Return the folder of Claude Code's configuration."""
    return Path(environment.get("CLAUDE_CONFIG_DIR") or Path(environment.get("HOME") or "/") / ".claude")


def marketplace(places: Places) -> Path:
    """Return the folder that Claude Code loads the plugin from."""
    return folder(places.state) / NAME


def own_files(places: Places, server: list[str], command: str, *, reflects: bool) -> dict[Path, bytes]:
    """Return the files of the marketplace with its one plugin: hooks, the MCP server with the command `server`, and the
    slash command `/memd:reflect` with the text `command`. `reflects`: whether the agent is asked for a reflection."""
    about = {"name": "memd", "version": __version__, "description": "One memory for all your tools, on this machine"}
    plugin = {**about, "author": {"name": "memd"}, "license": "Apache-2.0"}
    plugins = [{**about, "source": "./plugin"}]
    listing = {"name": "memd", "description": about["description"], "owner": {"name": "memd"}, "plugins": plugins}
    lines = {event: shell_line(places, NAME, event) for event in EVENTS}
    if reflects:
        lines["Stop"] = shell_line(places, NAME, "Stop", "reflect")
    hooks = {
        event: [{"hooks": [{"type": "command", "command": line, "timeout": TIMEOUT_S}]}]
        for event, line in lines.items()
    }
    servers = {"memd": {"command": server[0], "args": server[1:]}}
    root = marketplace(places)
    return {
        root / ".claude-plugin/marketplace.json": _json(listing),
        root / "plugin/.claude-plugin/plugin.json": _json(plugin),
        root / "plugin/hooks/hooks.json": _json({"hooks": hooks}),
        root / "plugin/.mcp.json": _json({"mcpServers": servers}),
        root / "plugin/commands/reflect.md": command.encode(),
    }


def edits(places: Places, environment: Mapping[str, str]) -> list[FileEdit]:
    """Return the edits of the user's settings and of Claude Code's list of marketplaces. Raises StoreError."""
    path = home(environment) / "settings.json"
    before = read(path)
    settings = _settings(path, before)
    known = _object(settings, "extraKnownMarketplaces", path)
    known["memd"] = {"source": {"source": "directory", "path": str(marketplace(places))}}
    _object(settings, "enabledPlugins", path)[PLUGIN] = True
    after = _as_before(before, settings)
    settings_edit = FileEdit(path=path, before=before, after=before if _settings(path, before) == settings else after)
    return [settings_edit, _listed(home(environment) / LISTING, marketplace(places))]


def _listed(path: Path, folder: Path) -> FileEdit:
    """Return the edit that adds this folder to the known marketplaces, unless it is there with any `lastUpdated`."""
    before = read(path)
    listing = _settings(path, before)
    entry = {"source": {"source": "directory", "path": str(folder)}, "installLocation": str(folder)}
    known = listing.get("memd")
    if isinstance(known, dict) and known.items() >= entry.items():
        return FileEdit(path=path, before=before, after=before)
    now = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    listing["memd"] = {**entry, "lastUpdated": now}
    return FileEdit(path=path, before=before, after=_as_before(before, listing))


def without(path: Path, content: bytes) -> bytes | None:
    """Return either file without memd's entries, None if it has no others. Raises StoreError."""
    settings = _settings(path, content)
    if path.name == Path(LISTING).name:
        settings.pop("memd", None)
    else:
        for name, entry in (("extraKnownMarketplaces", "memd"), ("enabledPlugins", PLUGIN)):
            entries = _object(settings, name, path)
            entries.pop(entry, None)
            if not entries:
                del settings[name]
    if settings == _settings(path, content):
        return content
    return _as_before(content, settings) if settings else None


def noted(environment: Mapping[str, str]) -> list[FileEdit]:
    """Return the edit that removes the plugin from Claude Code's list of installed ones. Raises StoreError."""
    path = home(environment) / "plugins/installed_plugins.json"
    before = read(path)
    notes = _settings(path, before)
    if _object(notes, "plugins", path).pop(PLUGIN, None) is None:
        return []
    return [FileEdit(path=path, before=before, after=_as_before(None, notes)[:-1])]


def problem(environment: Mapping[str, str]) -> str:
    """Return the setting of the user that keeps the plugin from running, "" for none."""
    path = home(environment) / "settings.json"
    settings = _settings(path, read(path))
    if settings.get("disableAllHooks"):
        return f"`disableAllHooks` is set in {path}"
    if not _object(settings, "enabledPlugins", path).get(PLUGIN):
        return f"the plugin is not enabled in {path}"
    if "memd" not in _object(settings, "extraKnownMarketplaces", path):
        return f"the marketplace is missing in {path}"
    return ""


def _settings(path: Path, content: bytes | None) -> dict[str, Any]:
    try:
        return msgspec.json.decode(content, type=dict[str, Any]) if content and content.strip() else {}
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise StoreError(
            f"{path} is not JSON: {error}", hint="repair the file first: memd did not change it"
        ) from error


def _object(settings: dict[str, Any], name: str, path: Path) -> dict[str, Any]:
    entries = settings.setdefault(name, {})
    if not isinstance(entries, dict):
        raise StoreError(f"{name} in {path} is not an object", hint="repair the file first: memd did not change it")
    return entries  # pyright: ignore[reportUnknownVariableType]


def _as_before(before: bytes | None, settings: dict[str, Any]) -> bytes:
    """Return the settings in the file's own indentation, with or without its last line break."""
    import json

    text = before.decode() if before else "{\n  \n}\n"
    second = next((line for line in text.splitlines()[1:] if line.strip() or not before), "  ")
    indent = second[: len(second) - len(second.lstrip())] or "  "
    ending = text[len(text.rstrip()) :]
    whole = json.dumps(settings, indent=indent, ensure_ascii=False)
    head, brace, _ = text.rstrip().rpartition("}")
    ours = {name: entry for name, entry in settings.items() if f'"{name}"' not in head}
    if before and ours and brace:  # the existing text stays unchanged, memd's entries follow it
        added = json.dumps(ours, indent=indent, ensure_ascii=False)[1:]
        longer = head.rstrip() + ("," if head.strip() != "{" else "") + added
        if _settings(Path(), longer.encode()) == settings:
            whole = longer
    return (whole + ending).encode()


def _json(value: object) -> bytes:
    return msgspec.json.format(msgspec.json.encode(value)) + b"\n"
