"""pi's session files (`~/.pi/agent/sessions/--<folder>--/<time>_<uuid>.jsonl`), linear or a tree with all its branches.

Invariants: a turn is named by its role and the time that pi stamped on the message, which pi keeps when it migrates a
file and tells an extension, so that live capture gives the same name (W13); lines that a fork copied belong to the
original session; texts that an extension inserted are never the user's words (W5).
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import msgspec

from ...protocol.event import Ran, ToolCalled
from ...protocol.instant import micros
from .json_line import BadLine, ContentBlock, arguments, checked_time, decode
from .session_reader import Document, ReadSoFar, Role, SessionReader, combined, named_blocks, read_lines
from .transcript import CapturedSession, Mark, Transcript

HOST = "pi"
ANCESTORS = 16  # forks of forks that are followed
_BROKEN_OFF: dict[str, Literal["user", "error"]] = {"aborted": "user", "error": "error"}
_INSERTED = re.compile(r"<(skill|file)\b[^>]*>.*?</\1>\s*", re.DOTALL)


class PiMessage(msgspec.Struct, frozen=True, rename="camel"):
    """A message of any role, without fields that no importer reads."""

    role: str = ""
    content: str | list[ContentBlock] | None = None
    timestamp: int | float | None = None
    tool_call_id: str | None = None
    is_error: bool | None = None
    command: str | None = None
    exit_code: int | None = None
    stop_reason: str | None = None


class PiLine(msgspec.Struct, frozen=True, rename="camel"):
    """A line: the session's header, or an entry."""

    type: str = ""
    id: str | None = None
    timestamp: str | None = None
    cwd: str | None = None
    name: str | None = None
    summary: str | None = None
    message: PiMessage | None = None
    parent_session: str | None = None
    branched_from: str | None = None


class PiAncestor(msgspec.Struct, frozen=True):
    """A session that this file was forked from: lines before `until` are its."""

    until: str
    session: str


class PiState(msgspec.Struct, frozen=True, kw_only=True):
    time: str = ""
    session: str = ""
    past: tuple[PiAncestor, ...] = ()
    begun: tuple[ReadSoFar, ...] = ()


_lines = msgspec.json.Decoder(PiLine)


def read(path: Path, cwd: str = "", mark: Mark | None = None, output_limit: int = 0) -> Transcript:
    """Read the session in a file, from `mark` on, and those it was forked from. Raises StoreError."""
    return read_lines(path, lambda: PiReader(path, mark), mark, cwd, output_limit)


class PiReader(SessionReader):
    """Reads pi's lines."""

    host = HOST

    def __init__(self, path: Path, mark: Mark | None) -> None:
        state = msgspec.json.decode(mark.state, type=PiState) if mark else PiState()
        super().__init__(state.time, state.begun)
        self._path = path
        self._session = state.session or session_of(path)
        self._past = state.past
        self._title = ""

    @property
    def main(self) -> Document | None:
        """The session of the file's header."""
        return self.documents.get((self._session, ""))

    def state(self) -> bytes:
        """Return the state at this line."""
        begun = tuple(document.begun for document in self.documents.values())
        return msgspec.json.encode(PiState(time=self.time, session=self._session, past=self._past, begun=begun))

    def sessions(self, cwd: str) -> tuple[CapturedSession, ...]:
        """Return the sessions with events, the file's own first and with its title."""
        if self.main:
            self.main.title = self._title
        return super().sessions(cwd)

    def take(self, content: bytes, number: int) -> str:
        """Take a line; return its kind. Raises BadLine."""
        line = decode(_lines, content)
        if not line.type:
            raise BadLine("it has no type")
        self.note_time(line.timestamp)
        if line.type == "session":
            return self._header(line)
        self.check_time()
        document = self._document()
        document.seen(self.time)
        match line.type:
            case "message" if line.message:
                return self._message(line, line.message, document)
            case "message":
                raise BadLine("it has no message")
            case "compaction" | "branch_summary":
                return document.say_summary(f"{line.type}-{self.time}", self.time, line.summary or "")
            case "session_info":
                self._title = line.name or self._title
                return line.type
            case _:
                return line.type[:40]

    def _header(self, line: PiLine) -> str:
        self._session = line.id or self._session
        cwd = line.cwd or ""
        parent = line.parent_session or line.branched_from or ""
        if parent and line.timestamp:
            self._past = tuple(_ancestors(self._path, parent, line.timestamp))
        for past in self._past:
            self.open(past.session).cwd = cwd
        self.open(self._session).seen(self.time if not self._past else "", cwd)
        return "session"

    def _document(self) -> Document:
        """Return the document of the line at this time: of the oldest session that ended later."""
        owner = self._session
        for past in self._past:
            if micros(self.time) < micros(past.until):
                owner = past.session
        return self.open(owner)

    def _message(self, line: PiLine, message: PiMessage, document: Document) -> str:
        at = self.time
        turn = f"{message.role}-{_stamp(message, line)}"
        match message.role:
            case "user" | "assistant":
                return self._said(message, turn, document)
            case "toolResult":
                for opened in self.documents.values():
                    opened.settle(message.tool_call_id or "", "error" if message.is_error else "ok")
                content = message.content
                texts = content if isinstance(content, str) else [block.text for block in content or ()]
                return self.take_output(message.tool_call_id or "", texts)
            case "bashExecution" if message.command and message.command.strip():
                status = message.exit_code or 0
                return document.add(Ran(turn=turn, at=at, command=message.command, exit_status=status))
            case _:
                return (message.role or "message without a role")[:40]

    def _said(self, message: PiMessage, turn: str, document: Document) -> str:
        role: Role = "user" if message.role == "user" else "assistant"
        kinds: list[str] = []
        for block, name in named_blocks(message.content, turn):
            match block.type:
                case "text":
                    kinds.append(self._text(role, block.text or "", name, document))
                case "toolCall" if block.name and role == "assistant":
                    call = block.id or f"{turn}#{block.name}"
                    called = ToolCalled(turn=call, at=self.time, name=block.name, arguments=arguments(block.arguments))
                    kinds.append(document.add(called))
                case _:
                    kinds.append((block.type or "block without a type")[:40])
        if by := _BROKEN_OFF.get(message.stop_reason or ""):
            kinds.append(document.interrupt(f"{turn}#end", self.time, by))
        return combined(kinds)

    def _text(self, role: Role, text: str, turn: str, document: Document) -> str:
        if role == "user" and (inserted := _INSERTED.match(text.lstrip())):
            text = _INSERTED.sub("", text)
            if not text.strip():
                return inserted[1]
        return document.say(turn, self.time, role, text)


def _stamp(message: PiMessage, line: PiLine) -> str:
    """Return the time of a message in milliseconds; of one without, the entry's id or time."""
    return str(int(message.timestamp)) if message.timestamp else line.id or str(line.timestamp)


def session_of(path: Path) -> str:
    """Return the session in a file's name: `<time>_<uuid>.jsonl`."""
    return path.stem.rpartition("_")[2] or path.stem


def _ancestors(path: Path, parent: str, until: str) -> Iterator[PiAncestor]:
    """Yield the sessions that a fork's lines may come from, the nearest first, as far as their files are readable."""
    for _ in range(ANCESTORS):
        file_of_parent = Path(parent)
        yield PiAncestor(until, session_of(file_of_parent))
        try:
            beside = file_of_parent if os.path.isfile(file_of_parent) else path.with_name(file_of_parent.name)
            with beside.open("rb") as file:
                header = decode(_lines, file.readline())
                until = checked_time(header.timestamp or "")
        except (OSError, ValueError, BadLine):
            return
        parent = header.parent_session or header.branched_from or ""
        if not parent:
            return
