"""pi's session files (`~/.pi/agent/sessions/--<folder>--/<time>_<uuid>.jsonl`), as capture events.

Comes in: a file, of any of its versions (linear, or a tree whose branches all lie in it). Goes out: a `Transcript`.
Invariants: every line is accounted for; a turn is named by its role and the time that pi stamped on the message, which
pi keeps when it migrates a file, and tells an extension too, so that live capture gives the same name (W13); what a
fork copied belongs to the session that it was copied from; what an extension put in is never the user's word (W5).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import msgspec

from ...protocol.event import Ran, ToolCalled
from ...protocol.instant import micros
from .document import Begun, Document, Role, read_lines
from .json_line import TAKEN, BadLine, Block, arguments, checked_time, decode
from .summary import KIND as SUMMARY
from .summary import lessons
from .transcript import Mark, Session, Transcript

HOST = "pi"
FOLDER = "~/.pi/agent/sessions/--<folder>--/<time>_<uuid>.jsonl"
ANCESTORS = 16
"""Forks of forks that are followed."""

_PUT_IN = re.compile(r"<(skill|file)\b[^>]*>.*?</\1>\s*", re.DOTALL)


class Message(msgspec.Struct, frozen=True, rename="camel"):
    """A message of any role, as far as an importer looks at it."""

    role: str = ""
    content: str | list[Block] | None = None
    timestamp: int | float | None = None
    tool_call_id: str | None = None
    is_error: bool | None = None
    command: str | None = None
    exit_code: int | None = None


class Line(msgspec.Struct, frozen=True, rename="camel"):
    """A line: the session's header, or an entry."""

    type: str = ""
    id: str | None = None
    timestamp: str | None = None
    cwd: str | None = None
    name: str | None = None
    summary: str | None = None
    message: Message | None = None
    parent_session: str | None = None
    branched_from: str | None = None


class _Past(msgspec.Struct, frozen=True):
    """Before `until`, a line was copied from this session."""

    until: str
    session: str


class _State(msgspec.Struct, frozen=True, kw_only=True):
    time: str = ""
    session: str = ""
    past: tuple[_Past, ...] = ()
    begun: tuple[Begun, ...] = ()


_lines = msgspec.json.Decoder(Line)


def read(path: Path, cwd: str = "", mark: Mark | None = None) -> Transcript:
    """The session in a file, from `mark` on, and those it was forked from. Raises StoreError if it can't be read."""
    reader = _Reader(path, mark)
    account, after = read_lines(path, reader, mark)
    return Transcript(path=str(path), sessions=reader.sessions(cwd), account=account, mark=after)


class _Reader:
    """Reads a file's lines in order and keeps what they add up to."""

    def __init__(self, path: Path, mark: Mark | None) -> None:
        self._path = path
        state = msgspec.json.decode(mark.state, type=_State) if mark else _State()
        self._session = state.session or session_of(path)
        self._past = state.past
        self._documents = {each.session: Document(each.session, begun=each) for each in state.begun}
        self._time = state.time
        self._title = ""

    @property
    def is_settled(self) -> bool:
        """Whether every tool call is answered."""
        return all(each.is_settled for each in self._documents.values())

    def state(self) -> bytes:
        """The reader at this line."""
        begun = tuple(each.begun for each in self._documents.values())
        return msgspec.json.encode(_State(time=self._time, session=self._session, past=self._past, begun=begun))

    def sessions(self, cwd: str) -> tuple[Session, ...]:
        """The sessions that hold anything, the file's own first."""
        filled = [each for each in self._documents.values() if each.events]
        filled.sort(key=lambda each: each.session != self._session)
        for each in filled:
            each.title = self._title if each.session == self._session else ""
        return tuple(each.close(HOST, each.session == self._session, cwd) for each in filled)

    def take(self, content: bytes, number: int) -> str:
        """The kind of noise, or `TAKEN`. Raises BadLine."""
        line = decode(_lines, content)
        if not line.type:
            raise BadLine("it has no type")
        if line.timestamp:
            self._time = checked_time(line.timestamp)
        if line.type == "session":
            return self._header(line)
        if not self._time:
            raise BadLine("it has no timestamp, and no line before it has one")
        document = self._document()
        document.seen(self._time)
        match line.type:
            case "message" if line.message:
                return self._message(line, line.message, document)
            case "message":
                raise BadLine("it has no message")
            case "compaction" | "branch_summary":
                taught = lessons(line.summary or "")
                turn = f"{line.type}-{self._time}"
                return document.say(turn, self._time, "assistant", taught) if taught else SUMMARY
            case "session_info":
                self._title = line.name or self._title
            case _:
                pass
        return line.type[:40]

    def _header(self, line: Line) -> str:
        self._session = line.id or self._session
        cwd = line.cwd or ""
        parent = line.parent_session or line.branched_from or ""
        if parent and line.timestamp:
            self._past = tuple(_ancestors(self._path, parent, line.timestamp))
        for past in self._past:
            self._open(past.session).cwd = cwd
        self._open(self._session).seen(self._time if not self._past else "", cwd)
        return "session"

    def _document(self) -> Document:
        """The session that the line at this time belongs to: the oldest one that ended later."""
        owner = self._session
        for past in self._past:
            if micros(self._time) < micros(past.until):
                owner = past.session
        return self._open(owner)

    def _open(self, session: str) -> Document:
        return self._documents.setdefault(session, Document(session))

    def _message(self, line: Line, message: Message, document: Document) -> str:
        at = self._time
        turn = f"{message.role}-{_stamp(message, line)}"
        match message.role:
            case "user" | "assistant":
                return self._said(message, turn, document)
            case "toolResult":
                for each in self._documents.values():
                    each.settle(message.tool_call_id or "", "error" if message.is_error else "ok")
                return "tool result"
            case "bashExecution" if message.command and message.command.strip():
                status = message.exit_code or 0
                return document.add(Ran(turn=turn, at=at, command=message.command, exit_status=status))
            case _:
                return (message.role or "message without a role")[:40]

    def _said(self, message: Message, turn: str, document: Document) -> str:
        role: Role = "user" if message.role == "user" else "assistant"
        content = message.content or []
        blocks = [Block("text", content)] if isinstance(content, str) else content
        kinds: list[str] = []
        texts = 0
        for block in blocks:
            match block.type:
                case "text":
                    texts += 1
                    name = turn if texts == 1 else f"{turn}#{texts}"
                    kinds.append(self._text(role, block.text or "", name, document))
                case "toolCall" if block.name and role == "assistant":
                    call = block.id or f"{turn}#{block.name}"
                    told = arguments(block.arguments)
                    kinds.append(document.add(ToolCalled(turn=call, at=self._time, name=block.name, arguments=told)))
                case _:
                    kinds.append((block.type or "block without a type")[:40])
        if not kinds:
            return "empty text"
        return TAKEN if TAKEN in kinds else kinds[0]

    def _text(self, role: Role, text: str, turn: str, document: Document) -> str:
        if role == "user" and (put_in := _PUT_IN.match(text.lstrip())):
            text = _PUT_IN.sub("", text)
            if not text.strip():
                return put_in[1]
        return document.say(turn, self._time, role, text)


def _stamp(message: Message, line: Line) -> str:
    """The time pi stamped on a message, in milliseconds; of one without, the entry's id or time."""
    return str(int(message.timestamp)) if message.timestamp else line.id or str(line.timestamp)


def session_of(path: Path) -> str:
    """The session that a file's name tells: `<time>_<uuid>.jsonl`."""
    return path.stem.rpartition("_")[2] or path.stem


def _ancestors(path: Path, parent: str, until: str) -> Iterator[_Past]:
    """The sessions that a fork's lines may come from, the nearest first; each as far as its file can be looked at."""
    for _ in range(ANCESTORS):
        found = Path(parent)
        yield _Past(until, session_of(found))
        beside = found if found.is_file() else path.with_name(found.name)
        try:
            with beside.open("rb") as file:
                header = decode(_lines, file.readline())
                until = checked_time(header.timestamp or "")
        except (OSError, ValueError, BadLine):
            return
        parent = header.parent_session or header.branched_from or ""
        if not parent:
            return
