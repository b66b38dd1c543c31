"""SpecStory's copies of other agents' sessions (`.specstory/history/*.md`), as capture events.

A line `_**User**_`, `_**Assistant**_` or `_**Agent**_` begins a message; later versions add the model and the time.
Invariants: a session that its own agent still has on this machine is left to the importer of that agent, so that none
is told twice; thoughts, tool calls and their results are no one's words, nor is a marked line within them or within a
code block (W5); a file that git has from another author is left out, since it holds another person's words.
"""

from __future__ import annotations

import os
import re
from functools import lru_cache
from html import unescape
from pathlib import Path

from ...protocol.event import ToolCalled
from .json_line import TAKEN, BadLine, arguments_in, checked_time
from .session_reader import read_lines
from .text_reader import TextReader, decoded, name_of
from .transcript import Mark, Transcript, changed_at

HOST = "specstory"
_SESSION = re.compile(r"<!--\s*(?P<agent>[\w .-]{1,60}?) Session (?P<id>[\w.-]{6,80}) \((?P<at>[^)]{1,40})\)\s*-->\s*")
_TITLE = re.compile(r"# (?P<title>[^\n]{1,300}?)\s*(?:\((?P<at>\d{4}-\d\d-\d\d[^()]{4,20})\))?\s*")
_ROLE = re.compile(
    r"_\*\*(?P<role>User|Assistant|Agent)(?P<side> - sidechain)?"
    r"(?: \((?P<more>[^()\n]{0,200}(?:\([^()\n]*\))?[^()\n]*)\))?\*\*_\s*"
)
_TIME = re.compile(r"(\d{4}-\d\d-\d\d)[ T](\d\d:\d\d(?::\d\d)?)\s?(Z|[+-]\d\d:?\d\d)?")
_NAME_TIME = re.compile(r"(\d{4}-\d\d-\d\d)_(\d\d)-(\d\d)(?:-(\d\d))?(Z|[+-]\d{4})?")
_TOOL = re.compile(r'<tool-use data-tool-type="([^"]{0,60})" data-tool-name="([^"]{0,120})">')
_OLD_TOOL = re.compile(r"Tool use: \*\*(?P<name>[\w .:-]{1,120})\*\*\s*")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_NOT_TYPED = re.compile(r"\s*<(?:command-|local-command|system-reminder|task-notification|environment_context)")
_HOLDS = {"<think>": "</think>", "<tool-use ": "</tool-use>", "<details>": "</details>"}


def read(path: Path, cwd: str = "", mark: Mark | None = None, output_limit: int = 0) -> Transcript:
    """Read the session in a file, from `mark` on. Raises StoreError."""
    folder = cwd or next((str(above.parent) for above in path.resolve().parents if above.name == ".specstory"), "")
    return read_lines(path, lambda: SpecStoryReader(path, mark), mark, folder, output_limit)


class SpecStoryReader(TextReader):
    """Reads the lines of a session's Markdown."""

    host = HOST

    def __init__(self, path: Path, mark: Mark | None) -> None:
        super().__init__(mark)
        self._left_out = foreign_author(path)
        self._fence = self._held_until = ""
        self._is_subagent = self._has_message = False
        self._path, self._title = path, ""
        if not self.time:
            self.time = _time_of_name(path)
        if mark is None and not self._left_out:
            self.enter(path.stem if _NAME_TIME.match(path.stem) else name_of(path))

    @property
    def is_settled(self) -> bool:
        """Whether a mark may stand here: never, since SpecStory writes the file anew."""
        return False

    def take(self, content: bytes, number: int) -> str:
        """Take a line; return its kind. Raises BadLine."""
        line = decoded(content)
        if not self._left_out and not self._has_message and (session := _SESSION.fullmatch(line)):
            self._begin(session["agent"], session["id"], session["at"])
        if self._left_out:
            return self._left_out
        if self._held_until:
            return self._held(line)
        if self._fence or _FENCE.match(line):
            return self._code(line)
        if role := _ROLE.fullmatch(line):
            return self._role_line(role)
        if not self._has_message:
            return self._head(line)
        if line.strip() == "---":
            return "separator"
        return self._text(line)

    def _begin(self, agent: str, session: str, at: str) -> None:
        holder = agent_with(session)
        if holder:
            self._left_out = f"session that {holder} has on this machine"
            self.documents.clear()
            return
        self.documents.clear()
        self._note_time(at)
        self.enter(session).title = self._title

    def _head(self, line: str) -> str:
        title = _TITLE.fullmatch(line)
        if title and self.document:
            self._note_time(title["at"] or title["title"])
            self._title = "" if _TIME.match(title["title"]) else title["title"]
            self.document.title = self._title
        return "header"

    def _role_line(self, role: re.Match[str]) -> str:
        self.end_message()
        self._has_message, self._is_subagent = True, bool(role["side"])
        self._note_time(role["more"] or "")
        if self._is_subagent:
            return "subagent's message"
        self.begin_message("user" if role["role"] == "User" else "assistant")
        return TAKEN

    def _text(self, line: str) -> str:
        for opening, closing in _HOLDS.items():
            if line.lstrip().startswith(opening):
                return self._hold(line, closing)
        if (tool := _OLD_TOOL.fullmatch(line)) and self.role == "assistant":
            return self._call(tool["name"])
        if self.role is None:
            return "subagent's message" if self._is_subagent else "text of no one"
        return self.add_line(line)

    def _hold(self, line: str, closing: str) -> str:
        """Pass over what is no one's words, up to a closing tag."""
        self._held_until = "" if closing in line else closing
        if (tool := _TOOL.match(line.lstrip())) and self.role == "assistant":
            return self._call(unescape(tool[2]))
        return "thought or tool"

    def _held(self, line: str) -> str:
        if self._held_until in line:
            self._held_until = ""
        return "thought or tool"

    def _code(self, line: str) -> str:
        fence = _FENCE.match(line)
        if not self._fence and fence:
            self._fence = fence[1]
        elif fence and fence[1].startswith(self._fence) and not line.strip(" `~\t"):
            self._fence = ""
        return self.add_line(line) if self.role else "code of no one"

    def _call(self, name: str) -> str:
        if self.document is None:
            return "tool"
        self.document.seen(self.time)
        call = self.turn("call")
        self.document.add(ToolCalled(turn=call, at=self.time, name=name, arguments=arguments_in("")))
        self.document.settle(call, "unknown")
        return TAKEN

    def cleaned(self, text: str) -> str:
        """Return a message without text that an agent's host wrote as the user's."""
        return "" if _NOT_TYPED.match(text) else text

    def _note_time(self, text: str) -> None:
        told = _TIME.search(text)
        if told:
            self.time = _instant(told[1], told[2], told[3] or "")


def _instant(day: str, time: str, zone: str) -> str:
    """Return a time; one without a zone is in UTC. Raises BadLine."""
    seconds = "" if time.count(":") == 2 else ":00"
    offset = "+00:00" if zone in ("", "Z") else zone if ":" in zone else f"{zone[:3]}:{zone[3:]}"
    return checked_time(f"{day}T{time}{seconds}{offset}")


def _time_of_name(path: Path) -> str:
    """Return the time in a file's name, else when the file changed."""
    if told := _NAME_TIME.match(path.name):
        day, hour, minute, second, zone = told.groups()
        try:
            return _instant(day, f"{hour}:{minute}:{second or '00'}", zone or "")
        except BadLine:
            pass
    return changed_at(path.stat()).isoformat() if path.exists() else ""


# --- sessions and people that are told elsewhere ----------------------------------------------------------------------
def agent_with(session: str) -> str:
    """Return the title of the agent whose folder on this machine has a session with that id, "" for no agent."""
    from .agent_files import AGENTS

    for agent in AGENTS.values():
        if any(session in name for name in _names(str(agent.folder(os.environ)))):
            return agent.title
    return ""


@lru_cache(maxsize=16)
def _names(folder: str) -> frozenset[str]:
    return frozenset(name for _, folders, names in os.walk(folder) for name in (*folders, *names))


def forget_listings() -> None:
    """List the files of agents again, when a session is asked for next."""
    _names.cache_clear()


def foreign_author(path: Path) -> str:
    """Return why a file is left out that git has from another author, "" for the user's own or one outside of git."""
    from . import git_log

    address = git_log.author_of(path)
    if not address or git_log.is_own(path.parent, address):
        return ""
    return "session of another person"
