"""Gemini CLI's session files (`~/.gemini/tmp/c2w/<project>/chats/session-*.json` and `.jsonl`), as capture events.

A file is one object with all messages or, in later versions, one message a line. Invariants: the message's id names a
turn (W13), also when it is written again with its calls answered; referenced files are not the user's words (W5).
"""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path

import msgspec

from ...protocol.event import ToolCalled
from .json_line import BadLine, arguments, decode
from .session_reader import Outcome, Role, SingleReader, combined, read_lines, take_line, unreadable
from .transcript import AccountBuilder, Mark, Transcript

HOST = "gemini-cli"
FILE_LIMIT = 64 * 1024 * 1024

_PULLED_IN = re.compile(r"\n?--- Content from referenced files ---.*\Z", re.DOTALL)
_CANCELLED = re.compile(r"(?:User cancelled the request|Request cancelled)\.", re.IGNORECASE)
_OUTCOMES: dict[str, Outcome] = {"success": "ok", "error": "error", "cancelled": "refused"}


class GeminiCall(msgspec.Struct, frozen=True):
    """A tool call of a message."""

    id: str | None = None
    name: str | None = None
    args: msgspec.Raw = msgspec.Raw()
    status: str | None = None
    result: msgspec.Raw = msgspec.Raw()


class GeminiPart(msgspec.Struct, frozen=True):
    """A part of a message's content; a file or a picture has no text."""

    text: str | None = None


class GeminiMessage(msgspec.Struct, frozen=True, rename="camel"):
    """A message; in a file of lines also the header, which has no id, and its changes."""

    id: str | None = None
    timestamp: str | None = None
    type: str = ""
    content: msgspec.Raw = msgspec.Raw()
    display_content: msgspec.Raw = msgspec.Raw()
    tool_calls: list[GeminiCall] | None = None
    session_id: str | None = None
    start_time: str | None = None
    kind: str | None = None


class GeminiFile(msgspec.Struct, frozen=True, rename="camel"):
    """A file of one object."""

    session_id: str
    messages: list[msgspec.Raw]
    start_time: str | None = None
    kind: str | None = None
    summary: str | None = None


class GeminiTodo(msgspec.Struct, frozen=True):
    """An item of a todo list."""

    description: str = ""
    status: str = ""


class GeminiTodos(msgspec.Struct, frozen=True):
    """The arguments of a call that sets the todo list."""

    todos: tuple[GeminiTodo, ...] = ()


PLANNING = "write_todos"
"""Name of the host's tool with which the agent keeps its todo list."""

_messages = msgspec.json.Decoder(GeminiMessage)
_todos = msgspec.json.Decoder(GeminiTodos)
_files = msgspec.json.Decoder(GeminiFile)
_Content = str | GeminiPart | list[str | GeminiPart]
_contents: msgspec.json.Decoder[_Content] = msgspec.json.Decoder(_Content)


def read(path: Path, cwd: str = "", mark: Mark | None = None, output_limit: int = 0) -> Transcript:
    """Read the session in a file; a file of lines from `mark` on. Raises StoreError."""
    folder = cwd or _folder_of(path)
    if path.suffix == ".jsonl":
        return read_lines(path, lambda: GeminiReader(path.stem, mark), mark, folder, output_limit)
    reader, account = GeminiReader(path.stem, None), AccountBuilder()
    reader.output_limit, reader.sources.folder = output_limit, folder
    try:
        if path.stat().st_size > FILE_LIMIT:
            raise BadLine(f"longer than {FILE_LIMIT:,} bytes")
        file = decode(_files, path.read_bytes())
        reader.begin(file.session_id, file.start_time, file.kind, file.summary)
        for message in file.messages:
            take_line(content := bytes(message), False, reader, account)
            reader.sources.place += len(content)
    except BadLine as error:
        account.refuse(str(error))
    except OSError as error:
        raise unreadable(path, error) from error
    return Transcript(path=str(path), sessions=reader.sessions(folder), account=account.close())


def _folder_of(path: Path) -> str:
    for folder in path.parents[:3]:
        note = folder / ".project_root"
        with suppress(OSError):
            return note.read_text(encoding="utf-8", errors="replace").strip()
    return ""


class GeminiReader(SingleReader):
    """Reads Gemini CLI's messages."""

    host = HOST

    def begin(self, session: str, start: str | None, kind: str | None, title: str | None = None) -> None:
        """Take the header."""
        self.document.session = session or self.document.session
        self.document.title = title or ""
        self.is_agent = kind == "subagent"
        self.note_time(start)

    def take(self, content: bytes, number: int) -> str:
        """Take a message; return its kind. Raises BadLine."""
        message = decode(_messages, content)
        if message.session_id and not message.id:
            self.begin(message.session_id, message.start_time, message.kind)
            return "header"
        if not message.id:
            return "change of the header"
        self.note_time(message.timestamp)
        self.check_time()
        self.document.seen(self.time)
        if message.type == "info" and _CANCELLED.match(_text(message.content)):
            return self.document.interrupt(message.id, self.time)
        if message.type not in {"user", "gemini"}:
            return (message.type or "message without a type")[:40]
        calls = enumerate(message.tool_calls or (), 1)
        return combined([self._text(message), *(self._call(message, call, number) for number, call in calls)])

    def _text(self, message: GeminiMessage) -> str:
        if message.type == "user" and self.is_agent:
            return "subagent's task"
        shown = _text(message.display_content) or _text(message.content)
        role: Role = "user" if message.type == "user" else "assistant"
        text = _PULLED_IN.sub("", shown) if role == "user" else shown
        return self.document.say(message.id or "", self.time, role, text)

    def _call(self, message: GeminiMessage, call: GeminiCall, number: int) -> str:
        turn = call.id or f"{message.id}#{number}"
        outcome = _OUTCOMES.get(call.status or "", "unknown")
        kind = self.document.add(
            ToolCalled(turn=turn, at=self.time, name=call.name or "tool", arguments=arguments(call.args))
        )
        self.document.settle(turn, outcome)
        self.take_output(turn, call.result)
        if call.name == PLANNING and outcome == "ok" and not self.is_agent:
            with suppress(BadLine):
                todos = decode(_todos, bytes(call.args)).todos
                self.document.todos.replace(self.time, [(todo.description, todo.status) for todo in todos])
        return kind


def _text(raw: msgspec.Raw) -> str:
    content = bytes(raw)
    if not content or content == b"null":
        return ""
    value = decode(_contents, content, "content")
    parts = value if isinstance(value, list) else [value]
    return "".join(part if isinstance(part, str) else part.text or "" for part in parts)
