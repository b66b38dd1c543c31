"""Claude Code's configuration: a plugin in a marketplace of its own, switched on in `settings.json`.

Comes in: places, an environment. Goes out: the files of the plugin, and the edits of the user's settings and of Claude
Code's list of marketplaces: by the settings alone, the first session would begin before the plugin is there.
Invariants: three entries are all that is added to files of the user's, and all that is taken from them; hooks can
neither fail nor block, whatever happens to memd (P-3).
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
from .edits import Edit, read
from .notes import folder
from .program import shell_line

NAME = "claude-code"
PLUGIN = "memd@memd"
LISTING = "plugins/known_marketplaces.json"
EVENTS = ("SessionStart", "UserPromptSubmit", "SubagentStop", "Stop", "PreCompact", "SessionEnd")
TIMEOUT_S = 2
"""What Claude Code waits for a hook; the program itself is over long before."""


def home(environment: Mapping[str, str]) -> Path:
    """Where Claude Code keeps its configuration."""
    return Path(environment.get("CLAUDE_CONFIG_DIR") or Path(environment.get("HOME") or "/") / ".claude")


def marketplace(places: Places) -> Path:
    """The folder that Claude Code loads the plugin from."""
    return folder(places.state) / NAME


def own_files(places: Places, server: list[str]) -> dict[Path, bytes]:
    """The marketplace with its one plugin: hooks, and the MCP server run as `server`."""
    about = {"name": "memd", "version": __version__, "description": "One memory for all your tools, on this machine"}
    plugin = {**about, "author": {"name": "memd"}, "license": "Apache-2.0"}
    listing = {
        "name": "memd",
        "description": about["description"],
        "owner": {"name": "memd"},
        "plugins": [{**about, "source": "./plugin"}],
    }
    hooks = {
        event: [{"hooks": [{"type": "command", "command": shell_line(places, NAME, event), "timeout": TIMEOUT_S}]}]
        for event in EVENTS
    }
    servers = {"memd": {"command": server[0], "args": server[1:]}}
    root = marketplace(places)
    return {
        root / ".claude-plugin/marketplace.json": _json(listing),
        root / "plugin/.claude-plugin/plugin.json": _json(plugin),
        root / "plugin/hooks/hooks.json": _json({"hooks": hooks}),
        root / "plugin/.mcp.json": _json({"mcpServers": servers}),
    }


def edits(places: Places, environment: Mapping[str, str]) -> list[Edit]:
    """The user's settings with the plugin switched on, and its marketplace where Claude Code lists those it knows.
    Raises StoreError."""
    path = home(environment) / "settings.json"
    before = read(path)
    settings = _settings(path, before)
    known = _object(settings, "extraKnownMarketplaces", path)
    known["memd"] = {"source": {"source": "directory", "path": str(marketplace(places))}}
    _object(settings, "enabledPlugins", path)[PLUGIN] = True
    after = _as_before(before, settings)
    switched = Edit(path=path, before=before, after=before if _settings(path, before) == settings else after)
    return [switched, _listed(home(environment) / LISTING, marketplace(places))]


def _listed(path: Path, folder: Path) -> Edit:
    """The list of known marketplaces with this folder in it. When Claude Code last looked at it is its own affair."""
    before = read(path)
    listing = _settings(path, before)
    entry = {"source": {"source": "directory", "path": str(folder)}, "installLocation": str(folder)}
    known = listing.get("memd")
    if isinstance(known, dict) and known.items() >= entry.items():
        return Edit(path=path, before=before, after=before)
    now = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    listing["memd"] = {**entry, "lastUpdated": now}
    return Edit(path=path, before=before, after=_as_before(before, listing))


def without(path: Path, content: bytes) -> bytes | None:
    """Either file without what is memd's; None if nothing else is in it. Raises StoreError."""
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


def noted(environment: Mapping[str, str]) -> list[Edit]:
    """Claude Code's own note of the plugin, without it: it would go on listing one that is gone. Raises StoreError."""
    path = home(environment) / "plugins/installed_plugins.json"
    before = read(path)
    notes = _settings(path, before)
    if _object(notes, "plugins", path).pop(PLUGIN, None) is None:
        return []
    return [Edit(path=path, before=before, after=_as_before(None, notes)[:-1])]


def problem(environment: Mapping[str, str]) -> str:
    """What in the user's settings keeps the plugin from running; "" if nothing does."""
    path = home(environment) / "settings.json"
    settings = _settings(path, read(path))
    if settings.get("disableAllHooks"):
        return f"`disableAllHooks` is set in {path}"
    if not _object(settings, "enabledPlugins", path).get(PLUGIN):
        return f"the plugin is not switched on in {path}"
    if "memd" not in _object(settings, "extraKnownMarketplaces", path):
        return f"the marketplace is not named in {path}"
    return ""


def is_here(environment: Mapping[str, str]) -> bool:
    """Whether Claude Code was ever used here."""
    return home(environment).is_dir()


def _settings(path: Path, content: bytes | None) -> dict[str, Any]:
    try:
        return msgspec.json.decode(content, type=dict[str, Any]) if content and content.strip() else {}
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise StoreError(f"{path} is not JSON: {error}", hint="mend it first: memd changes nothing in it") from error


def _object(settings: dict[str, Any], name: str, path: Path) -> dict[str, Any]:
    found = settings.setdefault(name, {})
    if not isinstance(found, dict):
        raise StoreError(f"{name} in {path} is no object", hint="mend it first: memd changes nothing in it")
    return found  # pyright: ignore[reportUnknownVariableType]


def _as_before(before: bytes | None, settings: dict[str, Any]) -> bytes:
    """The settings in the file's own indentation, with its last line break or without."""
    import json

    text = before.decode() if before else "{\n  \n}\n"
    second = next((line for line in text.splitlines()[1:] if line.strip() or not before), "  ")
    indent = second[: len(second) - len(second.lstrip())] or "  "
    ending = text[len(text.rstrip()) :]
    whole = json.dumps(settings, indent=indent, ensure_ascii=False)
    head, brace, _ = text.rstrip().rpartition("}")
    ours = {name: entry for name, entry in settings.items() if f'"{name}"' not in head}
    if before and ours and brace:  # what is there stays letter by letter: ours goes behind it
        added = json.dumps(ours, indent=indent, ensure_ascii=False)[1:]
        longer = head.rstrip() + ("," if head.strip() != "{" else "") + added
        if _settings(Path(), longer.encode()) == settings:
            whole = longer
    return (whole + ending).encode()


def _json(value: object) -> bytes:
    return msgspec.json.format(msgspec.json.encode(value)) + b"\n"
