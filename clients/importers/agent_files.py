"""The agents whose sessions can be imported: their folders, their session files and the readers of those.

A reader is imported when it is used, so that listing files starts fast.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from ...protocol.errors import InvalidRequest, NotFound
from .cursors import Cursors
from .transcript import Mark, Transcript

Read = Callable[[Mark | None], Transcript]

_SKIPPED = {"node_modules", "vendor", "dist", "build", "target", "venv", "site-packages", "__pycache__"}
"""Folders with other people's Markdown."""

_NO_SESSIONS = {"history.jsonl", "logs.json"}
_INSTRUCTIONS = ("CLAUDE.md", "CLAUDE.local.md", "AGENTS.md", "GEMINI.md", ".github/copilot-instructions.md")


class ImportableAgent(msgspec.Struct, frozen=True):
    """An agent. Its home is in the environment variable `variable` ("" for none), else it is `home` below `~`; sessions
    are in the folder `inside` it, with file names of these `patterns`."""

    name: str
    title: str
    variable: str
    home: str
    inside: str
    patterns: tuple[str, ...]
    example: str

    def folder(self, environment: Mapping[str, str]) -> Path:
        """Return the folder of its sessions on this machine, which may not exist."""
        home = environment.get(self.variable) or os.path.join(environment.get("HOME") or "/", self.home)
        return Path(home) / self.inside


AGENTS = {
    each.name: each
    for each in (
        ImportableAgent("claude-code", "Claude Code", "CLAUDE_CONFIG_DIR", ".claude", "projects", ("*.jsonl",),
              "~/.claude/projects/<folder>/<session>.jsonl"),
        ImportableAgent("codex", "Codex", "CODEX_HOME", ".codex", "sessions", ("*.jsonl",),
              "~/.codex/sessions/YYYY/MM/DD/rollout-*.jsonl"),
        ImportableAgent("pi", "pi", "PI_CODING_AGENT_DIR", ".pi/agent", "sessions", ("*.jsonl",),
              "~/.pi/agent/sessions/--<folder>--/*.jsonl"),
        ImportableAgent("gemini", "Gemini CLI", "", ".gemini", "tmp",
              ("session-*.json", "session-*.jsonl", "chats/*/*.jsonl"),
              "~/.gemini/tmp/<project>/chats/session-*.json"),
    )
}  # fmt: skip
MARKDOWN = "markdown"


def agent_named(name: str) -> ImportableAgent:
    """Return the agent of that name. Raises InvalidRequest."""
    if name not in AGENTS:
        raise _unknown(name)
    return AGENTS[name]


def _unknown(name: str) -> InvalidRequest:
    return InvalidRequest(f"there is no agent {name!r}", hint=f"one of {', '.join((*AGENTS, MARKDOWN))}")


def find(paths: Sequence[Path], patterns: Iterable[str], example: str) -> list[Path]:
    """Return the named files, and the sessions below the named folders. Raises NotFound."""
    found: dict[Path, None] = {}
    for path in paths:
        if path.is_dir():
            below = {each for pattern in patterns for each in path.rglob(pattern)}
            found.update(dict.fromkeys(sorted(each for each in below if each.is_file() and _is_session(each))))
        elif path.exists():
            found[path] = None
        else:
            raise NotFound(f"there is no {path}", hint=f"sessions are in {example}")
    return list(found)


def _is_session(path: Path) -> bool:
    return path.name not in _NO_SESSIONS


def find_markdown(paths: Sequence[Path]) -> list[Path]:
    """Return the named files, and the Markdown files in folders but hidden and foreign ones. Raises NotFound."""
    found: dict[Path, None] = {}
    for path in paths:
        if path.is_dir():
            found.update(dict.fromkeys(sorted(_walk(path))))
        elif path.exists():
            found[path] = None
        else:
            raise NotFound(f"there is no {path}", hint="name Markdown files, or folders with some")
    unique: dict[Path, Path] = {}
    for path in found:  # AGENTS.md is often a link to CLAUDE.md
        unique.setdefault(path.resolve(), path)
    return list(unique.values())


def _walk(folder: Path) -> Iterator[Path]:
    for here, folders, names in os.walk(folder):
        folders[:] = sorted(each for each in folders if not each.startswith(".") and each not in _SKIPPED)
        yield from (Path(here) / name for name in names if name.lower().endswith((".md", ".markdown")))


def instructions(environment: Mapping[str, str], cwd: Path) -> list[Path]:
    """Return the instruction files for agents: the user's, and those of the folders from `cwd` up."""
    homes = [agent.folder(environment).parent for agent in AGENTS.values()]
    repository = next((each for each in (cwd, *cwd.parents) if (each / ".git").exists()), cwd)
    inside = [each for each in (cwd, *cwd.parents) if each.is_relative_to(repository)]
    places = [folder / name for folder in (*homes, *inside) for name in _INSTRUCTIONS]
    return find_markdown([each for each in places if each.is_file()])


def reader(agent: str, path: Path, cwd: str, cursors: Cursors, *, dry_run: bool = False) -> Read:
    """Return the reader of one file, from a mark on. It raises InvalidRequest for an unknown agent."""

    def read(mark: Mark | None) -> Transcript:
        match agent:
            case "claude-code":
                from .claude_code import read as read_file
            case "codex":
                from .codex import read as read_file
            case "pi":
                from .pi import read as read_file
            case "gemini":
                from .gemini import read as read_file
            case "markdown":
                from .markdown import read as read_markdown

                cursor = cursors.get(path)
                return read_markdown(path, cursors.key(create=not dry_run), cursor.times if cursor else {})
            case _:
                raise _unknown(agent)
        return read_file(path, cwd, mark)

    return read


def documents(path: Path, environment: Mapping[str, str], cursors: Cursors) -> set[str]:
    """Return the documents that an import of a path, of any agent, would feed. Those of a folder are of the sessions in
    it and of every imported file below it. Raises StoreError."""
    places = {agent.name: agent.folder(environment).resolve() for agent in AGENTS.values()}
    name = next((each for each, folder in places.items() if path.resolve().is_relative_to(folder)), "")
    if path.is_dir():
        sessions = find([path], AGENTS[name or "claude-code"].patterns, "")
        known = [Path(each.path) for each in cursors.all() if Path(each.path).is_relative_to(path.resolve())]
        files = dict.fromkeys([*(each.resolve() for each in sessions), *(each for each in known if each.is_file())])
    else:
        files = [path]
    found: set[str] = set()
    for file in files:
        cursor = cursors.get(file)
        agent = cursor.agent if cursor else MARKDOWN if file.suffix == ".md" else name or "claude-code"
        read = reader(agent, file, "", cursors, dry_run=True)
        found.update(each.origin.document for each in read(None).sessions)
    return found
