"""Claude Code's configuration: a plugin in a marketplace of its own, enabled in `settings.json`.

memd also edits the list of marketplaces, because with the settings alone the first session starts before the plugin is
loaded. Invariants: memd touches its own three entries alone; hooks can neither fail nor block (P-3).
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from ... import __version__
from ...protocol.places import Places
from ..importers.agent_files import AGENTS
from .agent_host import AgentHost, SetUp, server_command
from .command_files import slash_command
from .command_hooks import group, groups
from .config_text import JsonText
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
    hooks = groups(places, NAME, EVENTS, TIMEOUT_S)
    if reflects:
        hooks["Stop"] = [group(shell_line(places, NAME, "Stop", "reflect"), TIMEOUT_S)]
    servers = {"memd": {"command": server[0], "args": server[1:]}}
    root = marketplace(places)
    return {
        root / ".claude-plugin/marketplace.json": _json(listing),
        root / "plugin/.claude-plugin/plugin.json": _json(plugin),
        root / "plugin/hooks/hooks.json": _json({"hooks": hooks}),
        root / "plugin/.mcp.json": _json({"mcpServers": servers}),
        root / "plugin/commands/reflect.md": command.encode(),
    }


def edits(set_up: SetUp) -> list[FileEdit]:
    """Return the edits of the user's settings and of Claude Code's list of marketplaces. Raises StoreError."""
    folder = marketplace(set_up.places)
    path = home(set_up.environment) / "settings.json"
    before = read(path)
    settings = JsonText(before, path)
    settings.put(("extraKnownMarketplaces", "memd"), {"source": {"source": "directory", "path": str(folder)}})
    settings.put(("enabledPlugins", PLUGIN), True)
    return [
        FileEdit(path=path, before=before, after=settings.content()),
        _listed(home(set_up.environment) / LISTING, folder),
    ]


def _listed(path: Path, folder: Path) -> FileEdit:
    """Return the edit that adds this folder to the known marketplaces, unless it is there with any `lastUpdated`."""
    before = read(path)
    listing = JsonText(before, path)
    entry = {"source": {"source": "directory", "path": str(folder)}, "installLocation": str(folder)}
    known = listing.get("memd")
    if isinstance(known, dict) and known.items() >= entry.items():
        return FileEdit(path=path, before=before, after=before)
    now = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    listing.put(("memd",), {**entry, "lastUpdated": now})
    return FileEdit(path=path, before=before, after=listing.content())


def without(path: Path, content: bytes, before: bytes | None) -> bytes | None:
    """Return either file without memd's entries, None if memd made it and it has no others. Raises StoreError."""
    text = JsonText(content, path)
    names = ("memd",), ("extraKnownMarketplaces", "memd"), ("enabledPlugins", PLUGIN)
    for place in names[:1] if path.name == Path(LISTING).name else names[1:]:
        text.drop(place)
    return text.content() if before is not None or text.value else None


def noted(environment: Mapping[str, str]) -> list[FileEdit]:
    """Return the edit that removes the plugin from Claude Code's list of installed ones. Raises StoreError."""
    path = home(environment) / "plugins/installed_plugins.json"
    before = read(path)
    notes = JsonText(before, path)
    if notes.get("plugins", PLUGIN) is None:
        return []
    notes.drop(("plugins", PLUGIN))
    return [FileEdit(path=path, before=before, after=notes.content())]


def _problem(set_up: SetUp) -> str:
    """Return the setting of the user that keeps the plugin from running, "" for none."""
    path = home(set_up.environment) / "settings.json"
    settings = JsonText(read(path), path)
    if settings.get("disableAllHooks"):
        return f"`disableAllHooks` is set in {path}"
    if not settings.get("enabledPlugins", PLUGIN):
        return f"the plugin is not enabled in {path}"
    if settings.get("extraKnownMarketplaces", "memd") is None:
        return f"the marketplace is missing in {path}"
    return ""


def _own_files(set_up: SetUp) -> dict[Path, bytes]:
    server = [*server_command(), *(("--tools", "reflect") if set_up.options.reflects else ())]
    return own_files(set_up.places, server, slash_command(), reflects=set_up.options.reflects)


HOST = AgentHost(
    name=NAME,
    title=AGENTS[NAME].title,
    is_here=lambda set_up: home(set_up.environment).exists(),
    edits=edits,
    without=without,
    own_files=_own_files,
    own_folder=marketplace,
    problem=_problem,
    hooked=True,
)


def _json(value: object) -> bytes:
    return msgspec.json.format(msgspec.json.encode(value)) + b"\n"
