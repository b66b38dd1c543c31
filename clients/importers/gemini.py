"""Gemini CLI's session files (`~/.gemini/tmp/<project>/chats/session-*.json` and `.jsonl`), as capture events.

Comes in: a file: one object with all messages, or, in later versions, a message a line. Goes out: a `Transcript`.
Invariants: every message is accounted for, each as a line; a turn is named by the message's own id (W13); a message
that is written again, with its tool calls answered, is the same turn; files that a prompt pulled in are not the user's
words (W5).
"""

from __future__ import annotations

import re
from pathlib import Path

import msgspec

from ...protocol.errors import StoreError
from ...protocol.event import ToolCalled
from .document import Begun, Document, Outcome, Role, read_lines
from .json_line import TAKEN, BadLine, arguments, checked_time, decode
from .transcript import Ledger, Mark, Session, Transcript

HOST = "gemini-cli"
FOLDER = "~/.gemini/tmp/<project>/chats/session-<time>.json"
FILE_LIMIT = 64 * 1024 * 1024

_PULLED_IN = re.compile(r"\n?--- Content from referenced files ---.*\Z", re.DOTALL)
_OUTCOMES: dict[str, Outcome] = {"success": "ok", "error": "error", "cancelled": "error"}


class Call(msgspec.Struct, frozen=True):
    """A tool call of a message."""

    id: str | None = None
    name: str | None = None
    args: msgspec.Raw = msgspec.Raw()
    status: str | None = None


class Part(msgspec.Struct, frozen=True):
    """A part of a message's content; of files and pictures only that they are there."""

    text: str | None = None


class Message(msgspec.Struct, frozen=True, rename="camel"):
    """A message; in a file of lines also the header, which has no id, and changes to it."""

    id: str | None = None
    timestamp: str | None = None
    type: str = ""
    content: msgspec.Raw = msgspec.Raw()
    display_content: msgspec.Raw = msgspec.Raw()
    tool_calls: list[Call] | None = None
    session_id: str | None = None
    start_time: str | None = None
    kind: str | None = None


class Whole(msgspec.Struct, frozen=True, rename="camel"):
    """A file of one object."""

    session_id: str
    messages: list[msgspec.Raw]
    start_time: str | None = None
    kind: str | None = None
    summary: str | None = None


class _State(msgspec.Struct, frozen=True, kw_only=True):
    time: str = ""
    is_agent: bool = False
    begun: Begun


_messages = msgspec.json.Decoder(Message)
_wholes = msgspec.json.Decoder(Whole)
_contents: msgspec.json.Decoder[str | Part | list[str | Part]] = msgspec.json.Decoder(str | Part | list[str | Part])


def read(path: Path, cwd: str = "", mark: Mark | None = None) -> Transcript:
    """The session in a file; one of lines from `mark` on. Raises StoreError if it can't be read."""
    reader = _Reader(path, mark if path.suffix == ".jsonl" else None)
    folder = cwd or _folder_of(path)
    if path.suffix == ".jsonl":
        account, after = read_lines(path, reader, mark)
        return Transcript(path=str(path), sessions=reader.sessions(folder), account=account, mark=after)
    ledger = Ledger()
    try:
        if path.stat().st_size > FILE_LIMIT:
            raise BadLine(f"longer than {FILE_LIMIT:,} bytes")
        whole = decode(_wholes, path.read_bytes())
        reader.begin(whole.session_id, whole.start_time, whole.kind, whole.summary)
        for raw in whole.messages:
            _take(reader, bytes(raw), ledger)
    except BadLine as error:
        ledger.refuse(str(error))
    except OSError as error:
        raise StoreError(f"{path} can't be read: {error.strerror}", hint="see its mode and owner") from error
    return Transcript(path=str(path), sessions=reader.sessions(folder), account=ledger.close())


def _take(reader: _Reader, content: bytes, ledger: Ledger) -> None:
    try:
        kind = reader.take(content, ledger.number + 1)
    except BadLine as error:
        ledger.refuse(str(error))
        return
    if kind == TAKEN:
        ledger.take()
    else:
        ledger.drop(kind)


def _folder_of(path: Path) -> str:
    """The project's folder, where the host wrote it down."""
    for folder in path.parents[:3]:
        noted = folder / ".project_root"
        if noted.is_file():
            return noted.read_text(encoding="utf-8", errors="replace").strip()
    return ""


class _Reader:
    """Reads messages in order and keeps what they add up to."""

    def __init__(self, path: Path, mark: Mark | None) -> None:
        state = msgspec.json.decode(mark.state, type=_State) if mark else None
        self._time = state.time if state else ""
        self._is_agent = state.is_agent if state else False
        begun = state.begun if state else None
        self._document = Document(begun.session if begun else path.stem, begun=begun)

    @property
    def is_settled(self) -> bool:
        """Whether every tool call is answered."""
        return self._document.is_settled

    def state(self) -> bytes:
        """The reader at this line."""
        return msgspec.json.encode(_State(time=self._time, is_agent=self._is_agent, begun=self._document.begun))

    def sessions(self, cwd: str) -> tuple[Session, ...]:
        """The session, if it holds anything."""
        return (self._document.close(HOST, True, cwd),) if self._document.events else ()

    def begin(self, session: str, start: str | None, kind: str | None, title: str | None = None) -> None:
        """Takes what the header tells."""
        self._document.session = session or self._document.session
        self._document.title = title or ""
        self._is_agent = kind == "subagent"
        if start:
            self._time = checked_time(start)

    def take(self, content: bytes, number: int) -> str:
        """The kind of noise, or `TAKEN`. Raises BadLine."""
        message = decode(_messages, content)
        if message.session_id and not message.id:
            self.begin(message.session_id, message.start_time, message.kind)
            return "header"
        if not message.id:
            return "change of the header"
        if message.timestamp:
            self._time = checked_time(message.timestamp)
        if not self._time:
            raise BadLine("it has no timestamp, and none is known before it")
        self._document.seen(self._time)
        if message.type not in {"user", "gemini"}:
            return (message.type or "message without a type")[:40]
        kinds = [self._text(message)]
        for n, call in enumerate(message.tool_calls or (), 1):
            kinds.append(self._call(message, call, n))
        return TAKEN if TAKEN in kinds else kinds[0]

    def _text(self, message: Message) -> str:
        if message.type == "user" and self._is_agent:
            return "subagent's task"
        shown = _text(message.display_content) or _text(message.content)
        role: Role = "user" if message.type == "user" else "assistant"
        text = _PULLED_IN.sub("", shown) if role == "user" else shown
        return self._document.say(message.id or "", self._time, role, text)

    def _call(self, message: Message, call: Call, number: int) -> str:
        turn = call.id or f"{message.id}#{number}"
        outcome = _OUTCOMES.get(call.status or "", "unknown")
        kind = self._document.add(
            ToolCalled(turn=turn, at=self._time, name=call.name or "tool", arguments=arguments(call.args))
        )
        self._document.settle(turn, outcome)
        return kind


def _text(raw: msgspec.Raw) -> str:
    """The text of a message's content: a text, a part, or several."""
    content = bytes(raw)
    if not content or content == b"null":
        return ""
    found = decode(_contents, content, "content")
    parts = found if isinstance(found, list) else [found]
    return "".join(part if isinstance(part, str) else part.text or "" for part in parts)
