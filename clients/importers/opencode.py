"""opencode's sessions: the database `~/.local/share/opencode/opencode.db` and, of versions before 1.2, JSON files in
`storage/session/<project>/`, `storage/message/<session>/` and `storage/part/<message>/` beside it.

Invariants: the ids of parts and calls name the turns, and opencode kept them when it moved the files into the database,
so that both give the same turns; texts that opencode or an agent wrote into a user's message are not the user's words
(W5). A database is read from the last session that changed since its mark.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import msgspec

from ...protocol.errors import StoreError
from ...protocol.event import ToolCalled
from .json_line import BadLine, arguments, decode
from .session_reader import Document, Outcome, Role, combined, take_line
from .store_reader import StoreReader, database, instant_of, read_whole, unquoted
from .transcript import AccountBuilder, Mark, Transcript

HOST = "opencode"
PLANNING = "todowrite"
"""Name of the host's tool with which the agent keeps its todo list."""

_OUTCOMES: dict[str, Outcome] = {"completed": "ok", "error": "error"}


class OpencodeTime(msgspec.Struct, frozen=True):
    """Times in milliseconds."""

    created: float | None = None
    start: float | None = None
    updated: float | None = None


class OpencodeTodo(msgspec.Struct, frozen=True):
    """An item of a todo list."""

    content: str = ""
    status: str = ""


class OpencodeInput(msgspec.Struct, frozen=True):
    """The arguments of a call that sets the todo list."""

    todos: tuple[OpencodeTodo, ...] = ()


class OpencodeCallState(msgspec.Struct, frozen=True):
    """The state of a tool call."""

    status: str = ""
    input: msgspec.Raw = msgspec.Raw()
    output: msgspec.Raw = msgspec.Raw()
    error: msgspec.Raw = msgspec.Raw()


class OpencodePart(msgspec.Struct, frozen=True, rename={"call_id": "callID"}):
    """A part of a message. `synthetic`, `ignored`: opencode wrote it, or does not send it."""

    type: str = ""
    text: str = ""
    synthetic: bool | None = None
    ignored: bool | None = None
    tool: str = ""
    call_id: str = ""
    state: OpencodeCallState = OpencodeCallState()
    time: OpencodeTime = OpencodeTime()


class OpencodeError(msgspec.Struct, frozen=True):
    """An error that ended a message."""

    name: str = ""


class OpencodeMessage(msgspec.Struct, frozen=True):
    """A message without its parts."""

    role: str = ""
    summary: msgspec.Raw = msgspec.Raw()
    time: OpencodeTime = OpencodeTime()
    error: OpencodeError | None = None


class OpencodeFile(msgspec.Struct, frozen=True, rename={"parent_id": "parentID"}):
    """The file of a session."""

    id: str
    directory: str = ""
    title: str = ""
    parent_id: str | None = None
    time: OpencodeTime = OpencodeTime()


class OpencodeSession(NamedTuple):
    """A session. `parent`: the session whose agent began it, "" for one that the user began."""

    id: str
    parent: str
    directory: str
    title: str
    agent: str


_messages = msgspec.json.Decoder(OpencodeMessage)
_parts = msgspec.json.Decoder(OpencodePart)
_files = msgspec.json.Decoder(OpencodeFile)
_inputs = msgspec.json.Decoder(OpencodeInput)
Parts = Iterator[tuple[str, bytes]]
"""The ids and the contents of a message's parts, in order."""


class OpencodeMark(msgspec.Struct, frozen=True):
    """`since`: when the newest session changed, in milliseconds."""

    since: int = 0


def read(path: Path, cwd: str = "", mark: Mark | None = None, output_limit: int = 0) -> Transcript:
    """Read a database, from the session of `mark` on, or a session's file. Raises StoreError."""
    reader, account = OpencodeReader(), AccountBuilder(mark.lines if mark else 0)
    reader.output_limit, reader.sources.folder = output_limit, cwd
    after: Mark | None = None
    if path.suffix == ".json":
        _read_file(path, reader, account)
    else:
        since = msgspec.json.decode(mark.state, type=OpencodeMark).since if mark else 0
        newest = _read_database(path, since, reader, account)
        state = msgspec.json.encode(OpencodeMark(max(since, newest))).decode()
        after = Mark(offset=0, lines=account.number, state=state)
    return Transcript(path=str(path), sessions=reader.sessions(cwd), account=account.close(), mark=after)


def _read_database(path: Path, since: int, reader: OpencodeReader, account: AccountBuilder) -> int:
    """Read the sessions that changed since a time; return when the newest changed."""
    with database(path) as connection:
        agent = "agent" if "agent" in _columns(connection, "session") else "''"
        query = (
            f"SELECT id, coalesce(parent_id, ''), directory, title, coalesce({agent}, ''), time_updated "
            "FROM session WHERE time_updated >= ? ORDER BY time_created, id"
        )
        newest = 0
        with closing(connection.cursor()) as cursor:
            for *fields, updated in connection.execute(query, (since,)):
                newest = max(newest, updated)
                document = reader.begin(OpencodeSession(*fields))
                listed = connection.execute(
                    "SELECT id, data FROM message WHERE session_id = ? ORDER BY time_created, id", (fields[0],)
                )
                for name, data in listed:
                    reader.expect(document, name, lambda name=name: _rows(cursor, name))
                    take_line(data.encode(), False, reader, account)
    return newest


def _rows(cursor: sqlite3.Cursor, message: str) -> Parts:
    rows = cursor.execute("SELECT id, data FROM part WHERE message_id = ? ORDER BY id", (message,))
    return ((name, data.encode()) for name, data in rows)


def _columns(connection: sqlite3.Connection, table: str) -> set[str]:
    return {row[1] for row in connection.execute(f"PRAGMA table_info({table})")}


def _read_file(path: Path, reader: OpencodeReader, account: AccountBuilder) -> None:
    """Read a session's file, and its messages and parts in the folders beside it."""
    try:
        session = decode(_files, read_whole(path))
    except BadLine as error:
        account.refuse(str(error))
        return
    storage = next((folder.parent for folder in path.parents if folder.name == "session"), path.parent)
    document = reader.begin(OpencodeSession(session.id, session.parent_id or "", session.directory, session.title, ""))
    for message in sorted((storage / "message" / session.id).glob("*.json")):
        reader.expect(document, message.stem, lambda message=message: _files_of(storage / "part" / message.stem))
        try:
            take_line(read_whole(message), False, reader, account)
        except (BadLine, StoreError) as error:
            account.refuse(str(error))


def _files_of(folder: Path) -> Parts:
    return ((part.stem, read_whole(part)) for part in sorted(folder.glob("*.json")))


class OpencodeReader(StoreReader):
    """Reads opencode's messages."""

    host = HOST

    def begin(self, session: OpencodeSession) -> Document:
        """Return the document of a session; one that an agent began belongs to that agent's session."""
        document = self.open(session.parent or session.id, session.id if session.parent else "")
        document.cwd = document.cwd or session.directory
        document.title = document.title or session.title
        document.agent_type = session.agent if session.parent else ""
        return document

    def expect(self, document: Document, name: str, parts: Callable[[], Parts]) -> None:
        """Name the document, the id and the parts of the next message."""
        self.document, self._name, self._message_parts = document, name, parts

    def take(self, content: bytes, number: int) -> str:
        """Take a message; return its kind. Raises BadLine."""
        message = decode(_messages, content)
        if message.role not in {"user", "assistant"}:
            return (message.role or "message without a role")[:40]
        self.time = instant_of(message.time.created)
        self.document.seen(self.time)
        is_summary = message.role == "assistant" and bytes(message.summary) == b"true"
        kinds = [self._part(message.role == "user", is_summary, *part) for part in self._message_parts()]
        if message.error and message.error.name == "MessageAbortedError":
            kinds.append(self.document.interrupt(f"{self._name}#end", self.time))
        return combined(kinds)

    def _part(self, is_user: bool, is_summary: bool, name: str, content: bytes) -> str:
        part = decode(_parts, content, f"part {name}")
        match part.type:
            case "text" if part.synthetic or part.ignored:
                return "text of opencode"
            case "text" if is_user and self.document.agent:
                return "subagent's task"
            case "text" if is_summary:
                return self.document.say_summary(name, self.time, part.text)
            case "text":
                role: Role = "user" if is_user else "assistant"
                return self.document.say(name, self.time, role, unquoted(part.text) if is_user else part.text)
            case "tool":
                return self._call(name, part)
            case _:
                return (part.type or "part without a type")[:40]

    def _call(self, name: str, part: OpencodePart) -> str:
        document, state = self.document, part.state
        at = instant_of(part.time.start) if part.time.start else self.time
        called = ToolCalled(turn=name, at=at, name=part.tool or "tool", arguments=arguments(state.input))
        kind = document.add(called)
        document.settle(name, _OUTCOMES.get(state.status, "unknown"))
        self.take_output(name, state.output if bytes(state.output) else state.error)
        if part.tool == PLANNING and state.status == "completed" and not document.agent:
            todos = decode(_inputs, bytes(state.input), "todo list").todos
            document.todos.replace(at, [(todo.content, todo.status) for todo in todos])
        return kind
