"""The agents whose sessions can be imported: their folders, their session files and the readers of those."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from ...protocol.errors import InvalidRequest, NotFound
from ...protocol.repository_folder import repository_folder
from .transcript import Mark, Transcript

if TYPE_CHECKING:  # it loads OpenSSL, which costs `memd status` 5 ms
    from ..python.client import Client
    from .cursors import Cursors


class FilesToImport(list[Path]):
    """Files to import. `outside`: links in the named folders that lead out of them, which an import does not follow."""

    def __init__(self, files: Iterable[Path] = (), outside: Iterable[Path] = ()) -> None:
        super().__init__(files)
        self.outside = tuple(outside)


Read = Callable[[Mark | None], Transcript]

# Folders with other people's Markdown, or with Markdown that tests read; and folders whose own files alone are read.
_SKIPPED = set(
    "node_modules vendor third_party dist build target venv site-packages __pycache__ fixtures testdata samples".split()
)
_TESTS = {"test", "tests", "spec", "__tests__"}
_NO_SESSIONS = {"history.jsonl", "logs.json"}
_UNSEARCHED = {"node_modules", "site-packages", "__pycache__", ".git", ".venv"}
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
    others: tuple[str, ...] = ()
    """More folders or files with sessions: patterns of paths below `~`."""

    def folder(self, environment: Mapping[str, str]) -> Path:
        """Return the folder of its sessions on this machine, which may not exist."""
        home = environment.get(self.variable) or os.path.join(environment.get("HOME") or "/", self.home)
        return Path(home) / self.inside

    def places(self, environment: Mapping[str, str]) -> list[Path]:
        """Return the folders and the files with its sessions that are on this machine."""
        user = Path(environment.get("HOME") or "/")
        more = (place for pattern in self.others for place in sorted(user.glob(pattern)))
        return [place for place in (self.folder(environment), *more) if place.exists()]


class ProjectAgent(ImportableAgent, frozen=True):
    """An agent whose sessions are in each project; `inside` is their place in a project's folder."""

    def folder(self, environment: Mapping[str, str]) -> Path:
        """Return the place of the sessions in the current folder's repository, or in the current folder."""
        here = Path.cwd()
        return (repository_folder(here) or here) / self.inside


AGENTS = {
    agent.name: agent
    for agent in (
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
_EDITORS = (".config/*/User", "Library/Application Support/*/User", ".vscode-server/data/User")
IMPORTABLE = AGENTS | {
    agent.name: agent
    for agent in (
        ImportableAgent("opencode", "opencode", "XDG_DATA_HOME", ".local/share", "opencode",
              ("opencode*.db", "session/*/ses_*.json"),
              "~/.local/share/opencode/opencode.db"),
        ImportableAgent("cline", "Cline and Roo Code", "CLINE_DIR", ".cline", "data/sessions",
              ("*.messages.json", "tasks/*/ui_messages.json"),
              "~/.cline/data/sessions/<session>/<session>.messages.json",
              tuple(f"{editor}/globalStorage/{extension}/tasks" for editor in _EDITORS
                    for extension in ("saoudrizwan.claude-dev", "rooveterinaryinc.roo-cline"))),
        ImportableAgent("cursor", "Cursor", "", ".cursor", "projects",
              ("agent-transcripts/*.jsonl", "agent-transcripts/*/*.jsonl", "agent-transcripts/*/*/*.jsonl",
               "agent-transcripts/*.txt", "agent-transcripts/*/*.txt", "globalStorage/state.vscdb"),
              "~/.cursor/projects/<folder>/agent-transcripts/<session>/<session>.jsonl",
              tuple(f"{editor}/globalStorage/state.vscdb".replace("*", "Cursor") for editor in _EDITORS[:2])),
        ProjectAgent("aider", "aider", "", "", ".aider.chat.history.md", (".aider.chat.history.md",),
              "<project>/.aider.chat.history.md"),
        ProjectAgent("specstory", "SpecStory", "", "", ".specstory/history",
              (".specstory/history/*.md", ".specstory/history/*/*/*.md"),
              "<project>/.specstory/history/*.md"),
    )
}  # fmt: skip
"""All agents with an importer; those of `AGENTS` can also be set up."""

MARKDOWN = "markdown"


def agent_named(name: str) -> ImportableAgent:
    """Return the agent of that name. Raises InvalidRequest."""
    if name not in IMPORTABLE:
        raise _unknown(name)
    return IMPORTABLE[name]


def _unknown(name: str) -> InvalidRequest:
    return InvalidRequest(f"there is no agent {name!r}", hint=f"one of {', '.join((*IMPORTABLE, MARKDOWN))}")


def find(paths: Sequence[Path], patterns: Iterable[str], example: str) -> FilesToImport:
    """Return the named files, and the sessions below the named folders. Raises NotFound."""

    named = tuple(patterns)

    def sessions(folder: Path) -> Iterator[Path]:
        for here, folders, names in os.walk(folder):
            if "HEAD" in names and "objects" in folders:
                folders.clear()  # a repository's own files: opencode keeps many
            folders[:] = (name for name in folders if name not in _UNSEARCHED)
            below = (Path(here) / name for name in names if name not in _NO_SESSIONS)
            yield from (path for path in below if any(path.match(pattern) for pattern in named))

    return _files(paths, sessions, f"sessions are in {example}")


def find_markdown(paths: Sequence[Path], include: Sequence[str] = (), exclude: Sequence[str] = ()) -> FilesToImport:
    """Return the named files, and the Markdown files in folders but hidden and foreign ones. `include`, `exclude`:
    patterns of a file's name, or of its path below the named folder. Raises NotFound."""

    def chosen(folder: Path) -> Iterator[Path]:
        for path in _walk(folder):
            below = path.relative_to(folder).as_posix()
            if (not include or _matches(below, include)) and not _matches(below, exclude):
                yield path

    unique: dict[Path, Path] = {}
    files = _files(paths, chosen, "name Markdown files, or folders with some")
    for path in files:
        unique.setdefault(path.resolve(), path)  # AGENTS.md is often a link to CLAUDE.md
    return FilesToImport(unique.values(), files.outside)


def _matches(below: str, patterns: Sequence[str]) -> bool:
    name = below.rpartition("/")[2]
    return any(fnmatchcase(below, pattern) or fnmatchcase(name, pattern) for pattern in patterns)


def _files(paths: Iterable[Path], listed: Callable[[Path], Iterable[Path]], hint: str) -> FilesToImport:
    files: dict[Path, None] = {}
    outside: dict[Path, None] = {}
    for path in paths:
        if path.is_dir():
            root = path.resolve()
            for below in sorted(listed(path)):
                if not below.resolve().is_relative_to(root):
                    outside[below] = None
                elif below.is_file():
                    files[below] = None
        elif path.exists():
            files[path] = None
        else:
            raise NotFound(f"there is no {path}", hint=hint)
    return FilesToImport(files, (link for link in outside if link not in files))


def _walk(folder: Path) -> Iterator[Path]:
    """Yield the Markdown files below a folder, and the links to folders, which it does not enter."""
    for here, folders, names in os.walk(folder):
        entered = () if Path(here) != folder and Path(here).name in _TESTS else folders
        folders[:] = sorted(name for name in entered if not name.startswith(".") and name not in _SKIPPED)
        yield from (path for name in folders if (path := Path(here) / name).is_symlink())
        yield from (Path(here) / name for name in names if name.lower().endswith((".md", ".markdown")))


def instructions(environment: Mapping[str, str], cwd: Path) -> list[Path]:
    """Return the instruction files for agents: the user's, and those of the folders from `cwd` up."""
    homes = [agent.folder(environment).parent for agent in AGENTS.values()]
    repository = repository_folder(cwd) or cwd
    inside = [folder for folder in (cwd, *cwd.parents) if folder.is_relative_to(repository)]
    places = [folder / name for folder in (*homes, *inside) for name in _INSTRUCTIONS]
    return find_markdown([path for path in places if path.is_file()])


def reader(agent: str, path: Path, cwd: str, cursors: Cursors, *, dry_run: bool = False, output_limit: int = 0) -> Read:
    """Return the reader of one file, from a mark on; `output_limit`: characters of each tool's output that it keeps. It
    raises InvalidRequest for an unknown agent."""

    def read(mark: Mark | None) -> Transcript:
        if agent not in (*IMPORTABLE, MARKDOWN):
            raise _unknown(agent)
        module = import_module(f".{agent.replace('-', '_')}", __package__)  # late, so that listing files starts fast
        if agent != MARKDOWN:
            return module.read(path, cwd, mark, output_limit)
        cursor = cursors.get(path)
        return module.read(path, cursors.key(create=not dry_run), cursor.times if cursor else {})

    return read


def output_limit(client: Client) -> int:
    """Return how many characters of each tool's output the user wants to keep (C4)."""
    settings = {setting.name: setting.value for setting in client.settings().settings}
    return int(settings.get("archive_keep_tool_output", "0"))


def documents(path: Path, environment: Mapping[str, str], cursors: Cursors) -> set[str]:
    """Return the documents that an import of a path, of any agent, would feed. Those of a folder are of the sessions in
    it and of every imported file below it. Raises StoreError."""
    folders = [(agent.name, place.resolve()) for agent in IMPORTABLE.values() for place in agent.places(environment)]
    name = next((name for name, folder in folders if path.resolve().is_relative_to(folder)), "claude-code")
    files = [path]
    if path.is_dir():
        sessions = (session.resolve() for session in find([path], IMPORTABLE[name].patterns, ""))
        imported = (Path(cursor.path) for cursor in cursors.all())
        below = (file for file in imported if file.is_relative_to(path.resolve()) and file.is_file())
        files = list(dict.fromkeys([*sessions, *below]))
    fed: set[str] = set()
    for file in files:
        cursor = cursors.get(file)
        agent = cursor.agent if cursor else MARKDOWN if file.suffix == ".md" else name
        transcript = reader(agent, file, "", cursors, dry_run=True)(None)
        fed.update(session.origin.document for session in transcript.sessions)
    return fed
