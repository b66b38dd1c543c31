"""Cursor's conversations, as capture events: the agent's transcripts `~/.cursor/projects/<folder>/agent-transcripts/`
of the editor and of `cursor-agent`, and the editor's database `User/globalStorage/state.vscdb`.

The database has conversations of each mode with the ids and times of their messages; those that have a transcript too
are read from there alone, so that none is told twice. A transcript has no times, so its events have that of the file.
Invariants: the number of a line, or the id of a message, names a turn; of a user's text only `<user_query>` is the
user's word where it is marked (W5). What `cursor-agent` keeps in `~/.cursor/chats/*/*/store.db` has no known format,
and is not read.
"""

from __future__ import annotations

import os
import re
import sqlite3
from collections.abc import Iterator
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import msgspec

from ...protocol.event import ToolCalled
from .json_line import TAKEN, BadLine, ContentBlock, arguments, arguments_in, decode
from .session_reader import Outcome, Role, SingleReader, combined, named_blocks, read_lines, take_line
from .store_reader import StoreReader, database, instant_of
from .text_reader import TextReader, decoded
from .transcript import AccountBuilder, Mark, Transcript, changed_at

HOST = "cursor"
DATABASE = "state.vscdb"
_USER = 1
_QUERY = re.compile(r"<user_query>(.*?)(?:</user_query>|\Z)", re.DOTALL)
_INSERTED = re.compile(r"<([a-z_]+)\b[^>]*>.*?</\1>\s*", re.DOTALL)
_TEXT_ROLES: dict[str, Role] = {"user:": "user", "assistant:": "assistant", "A:": "assistant"}
_SIGN = re.compile(r"\[(Thinking|Tool call|Tool result)\]")
_UNSAFE = re.compile(r"[^A-Za-z0-9]+")
_OUTCOMES: dict[str, Outcome] = {"completed": "ok", "error": "error", "cancelled": "refused", "rejected": "refused"}


class CursorMessage(msgspec.Struct, frozen=True):
    """The content of a line."""

    content: str | list[ContentBlock] = ""


class CursorLine(msgspec.Struct, frozen=True):
    """A line of a transcript: a message, or a sign such as `turn_ended`."""

    role: str = ""
    type: str = ""
    message: CursorMessage = CursorMessage()


class CursorUri(msgspec.Struct, frozen=True):
    """The address of a folder."""

    fs_path: str | None = msgspec.field(default=None, name="fsPath")
    path: str | None = None


class CursorWorkspace(msgspec.Struct, frozen=True):
    """The workspace of a conversation; an empty window has no folder."""

    uri: CursorUri | None = None


class CursorHeader(msgspec.Struct, frozen=True, rename="camel"):
    """The place of a message in a conversation."""

    bubble_id: str = ""


class CursorSubagent(msgspec.Struct, frozen=True, rename="camel"):
    """The conversation whose agent began this one."""

    parent_composer_id: str | None = None
    subagent_type_name: str | None = None


class CursorTool(msgspec.Struct, frozen=True, rename="camel"):
    """A tool call with its result; `raw_args` and `params` are JSON within a text."""

    name: str | None = None
    status: str | None = None
    raw_args: str | None = None
    params: str | None = None
    result: msgspec.Raw = msgspec.Raw()


class CursorBubble(msgspec.Struct, frozen=True, rename="camel"):
    """A message; `type` is 1 for the user's."""

    type: int = 0
    bubble_id: str = ""
    text: str | None = None
    created_at: str | float | None = None
    tool_former_data: CursorTool | None = None


class CursorComposer(msgspec.Struct, frozen=True, rename="camel"):
    """A conversation. Earlier versions keep its messages inside it."""

    name: str | None = None
    created_at: float | None = None
    last_updated_at: float | None = None
    full_conversation_headers_only: list[CursorHeader] = []
    conversation: list[msgspec.Raw] = []
    workspace_identifier: CursorWorkspace | None = None
    subagent_info: CursorSubagent | None = None


class CursorTrust(msgspec.Struct, frozen=True, rename="camel"):
    """Cursor's note that the user trusts a folder."""

    workspace_path: str = ""


class CursorFolder(msgspec.Struct, frozen=True):
    """The address of a workspace's folder."""

    folder: str = ""


class CursorComposers(msgspec.Struct, frozen=True, rename="camel"):
    """The conversations of a workspace."""

    all_composers: list[CursorNamed] = []


class CursorNamed(msgspec.Struct, frozen=True, rename="camel"):
    """The id of a conversation."""

    composer_id: str = ""


_lines = msgspec.json.Decoder(CursorLine)
_composers = msgspec.json.Decoder(CursorComposer)
_bubbles = msgspec.json.Decoder(CursorBubble)
_trusts = msgspec.json.Decoder(CursorTrust)
_folders = msgspec.json.Decoder(CursorFolder)
_workspaces = msgspec.json.Decoder(CursorComposers)


class CursorMark(msgspec.Struct, frozen=True):
    """`since`: when the newest conversation changed, in milliseconds."""

    since: float = 0


def read(path: Path, cwd: str = "", mark: Mark | None = None, output_limit: int = 0) -> Transcript:
    """Read a transcript or the editor's database, from `mark` on. Raises StoreError."""
    if path.name == DATABASE:
        return _read_database(path, cwd, mark, output_limit)
    folder = cwd or _folder_of_transcript(path)
    reader = TextTranscriptReader if path.suffix == ".txt" else TranscriptReader
    return read_lines(path, lambda: reader(path, mark), mark, folder, output_limit)


# --- transcripts ------------------------------------------------------------------------------------------------------
class TranscriptReader(SingleReader):
    """Reads the lines of an agent's transcript."""

    host = HOST

    def __init__(self, path: Path, mark: Mark | None) -> None:
        super().__init__(path.stem, mark)
        if path.parent.name == "subagents":
            self.is_agent = True
            self.document.session, self.document.agent = path.parent.parent.name, path.stem
        with suppress(OSError):
            self.time = self.time or changed_at(path.stat()).isoformat()

    def take(self, content: bytes, number: int) -> str:
        """Take a line; return its kind. Raises BadLine."""
        line = decode(_lines, content)
        if line.role not in {"user", "assistant"}:
            return (line.type or line.role or "line without a role")[:40]
        self.check_time()
        self.document.seen(self.time)
        turn = f"{line.role}-{number}"
        kinds = [self._block(line.role, turn, place, *block) for place, block in
                 enumerate(named_blocks(line.message.content, turn), 1)]  # fmt: skip
        return combined(kinds)

    def _block(self, role: str, turn: str, place: int, block: ContentBlock, name: str) -> str:
        match role, block.type:
            case "user", "text" if self.is_agent:
                return "subagent's task"
            case "user", "text":
                return self.document.say(name, self.time, "user", typed_text(block.text or ""))
            case "assistant", "text":
                return self.document.say(name, self.time, "assistant", block.text or "")
            case "assistant", "tool_use":
                call = f"{turn}#call-{place}"
                kind = self.document.add(
                    ToolCalled(turn=call, at=self.time, name=block.name or "tool", arguments=arguments(block.input))
                )
                self.document.settle(call, "unknown")
                return kind
            case _:
                return (block.type or "block without a type")[:40]


class TextTranscriptReader(TextReader):
    """Reads the lines of a transcript of earlier versions, which is text."""

    host = HOST

    def __init__(self, path: Path, mark: Mark | None) -> None:
        super().__init__(mark)
        self._skips_until = ""
        if mark is None:
            self.enter(path.stem)
        with suppress(OSError):
            self.time = self.time or changed_at(path.stat()).isoformat()

    @property
    def is_settled(self) -> bool:
        """Whether a mark may stand here: never, since each line belongs to the message before it."""
        return False

    def take(self, content: bytes, number: int) -> str:
        """Take a line; return its kind. Raises BadLine."""
        line = decoded(content)
        if role := _TEXT_ROLES.get(line.rstrip()):
            self._skips_until = ""
            self.begin_message(role)
            return TAKEN
        if self.role == "assistant" and (sign := _SIGN.match(line)):
            return self._sign(sign[1], line[sign.end() :].strip())
        if self._skips_until or self.role is None:
            return "tool or thought"
        return self.add_line(line)

    def pass_blank_line(self) -> None:
        """Take a blank line, which ends a thought."""
        if self._skips_until == "blank":
            self._skips_until = ""
        super().pass_blank_line()

    def _sign(self, kind: str, name: str) -> str:
        self._skips_until = "blank" if kind == "Thinking" else "end"
        if kind != "Tool call" or not self.document or not name:
            return "tool or thought"
        call = self.turn("call")
        self.document.seen(self.time)
        kind = self.document.add(ToolCalled(turn=call, at=self.time, name=name[:120], arguments=""))
        self.document.settle(call, "unknown")
        return kind

    def cleaned(self, text: str) -> str:
        """Return the user's words of a user's message, which Cursor marks."""
        if self.role != "user":
            return text
        return "\n".join(filter(None, (query.strip() for query in _QUERY.findall(text))))


def typed_text(text: str) -> str:
    """Return the user's words in a text that Cursor sent to a model as the user's, "" if there are none."""
    queries = _QUERY.findall(text)
    if queries:
        return "\n".join(filter(None, (query.strip() for query in queries)))
    return _INSERTED.sub("", text).strip()


def _folder_of_transcript(path: Path) -> str:
    """Return the project's folder: that which Cursor notes, else the only one that has the name of Cursor's folder."""
    project = next((folder.parent for folder in path.parents if folder.name == "agent-transcripts"), None)
    if project is None:
        return ""
    with suppress(OSError, BadLine):
        return decode(_trusts, (project / ".workspace-trusted").read_bytes()).workspace_path
    return folder_of_name(project.name)


@lru_cache(maxsize=256)
def folder_of_name(name: str, root: str = "/") -> str:
    """Return the folder below `root` that Cursor gives this name; "" if no folder or several folders fit. Cursor writes
    a hyphen for each run of characters that are neither letters nor digits."""
    matching = list(_folders_named(root, name.strip("-")))
    return matching[0] if len(matching) == 1 else ""


def _folders_named(root: str, rest: str) -> Iterator[str]:
    try:
        entries = [entry.name for entry in os.scandir(root) if entry.is_dir(follow_symlinks=False)]
    except OSError:
        return
    for entry in sorted(entries):
        safe = _UNSAFE.sub("-", entry).strip("-")
        if safe and safe == rest:
            yield os.path.join(root, entry)
        elif safe and rest.startswith(f"{safe}-"):
            yield from _folders_named(os.path.join(root, entry), rest[len(safe) + 1 :])


# --- the editor's database --------------------------------------------------------------------------------------------
def _read_database(path: Path, cwd: str, mark: Mark | None, output_limit: int) -> Transcript:
    """Read the conversations that changed since a mark."""
    since = msgspec.json.decode(mark.state, type=CursorMark).since if mark else 0
    reader, account = ComposerReader(), AccountBuilder(mark.lines if mark else 0)
    reader.output_limit, reader.sources.folder = output_limit, cwd
    elsewhere, folders, newest = _transcribed(path), _workspace_folders(path), since
    with database(path) as connection:
        for composer, session in _changed(connection, since, account):
            newest = max(newest, session.last_updated_at or session.created_at or 0)
            if composer in elsewhere:
                account.drop("conversation with a transcript")
                continue
            reader.begin(composer, session, folders.get(composer, ""))
            for content in _messages(connection, composer, session):
                take_line(content, False, reader, account)
    after = Mark(offset=0, lines=account.number, state=msgspec.json.encode(CursorMark(newest)).decode())
    return Transcript(path=str(path), sessions=reader.sessions(cwd), account=account.close(), mark=after)


def _changed(
    connection: sqlite3.Connection, since: float, account: AccountBuilder
) -> Iterator[tuple[str, CursorComposer]]:
    """Yield the ids and the conversations that changed at a time or later, in the order in which they began."""
    listed: list[tuple[float, str]] = []
    query = "SELECT key, value FROM cursorDiskKV WHERE key >= 'composerData:' AND key < 'composerData;'"
    for key, value in connection.execute(query):
        if value is None:
            continue
        try:
            session = decode(_composers, _bytes(value), key)
        except BadLine as error:
            account.refuse(str(error))
            continue
        if (session.last_updated_at or session.created_at or 0) >= since:
            listed.append((session.created_at or 0, key))
    for _, key in sorted(listed):
        row = connection.execute("SELECT value FROM cursorDiskKV WHERE key = ?", (key,)).fetchone()
        yield key.partition(":")[2], decode(_composers, _bytes(row[0]), key)


def _messages(connection: sqlite3.Connection, composer: str, session: CursorComposer) -> Iterator[bytes]:
    yield from map(bytes, session.conversation)
    for header in session.full_conversation_headers_only:
        key = f"bubbleId:{composer}:{header.bubble_id}"
        row = connection.execute("SELECT value FROM cursorDiskKV WHERE key = ?", (key,)).fetchone()
        if row and row[0] is not None:
            yield _bytes(row[0])


def _bytes(value: Any) -> bytes:
    return value if isinstance(value, bytes) else str(value).encode(errors="replace")


def _transcribed(path: Path) -> set[str]:
    """Return the ids of the conversations that have a transcript in this user's `.cursor`."""
    home = next((folder for folder in path.resolve().parents if (folder / ".cursor" / "projects").is_dir()), None)
    if home is None:
        return set()
    return {file.stem for file in (home / ".cursor" / "projects").glob("*/agent-transcripts/**/*.jsonl")}


def _workspace_folders(path: Path) -> dict[str, str]:
    """Return the folders of conversations by their ids, as earlier versions list them in each workspace's database."""
    folders: dict[str, str] = {}
    for note in sorted((path.parent.parent / "workspaceStorage").glob("*/workspace.json")):
        with suppress(Exception):
            address = urlsplit(decode(_folders, note.read_bytes()).folder)
            if address.scheme != "file":
                continue
            with database(note.with_name(DATABASE)) as connection:
                query = "SELECT value FROM ItemTable WHERE key = 'composer.composerData'"
                row = connection.execute(query).fetchone()
            for named in decode(_workspaces, _bytes(row[0])).all_composers if row else ():
                folders[named.composer_id] = unquote(address.path)
    return folders


class ComposerReader(StoreReader):
    """Reads the messages of the editor's conversations."""

    host = HOST

    def begin(self, composer: str, session: CursorComposer, folder: str) -> None:
        """Begin a conversation; one that an agent began belongs to that agent's session."""
        subagent = session.subagent_info or CursorSubagent()
        parent = subagent.parent_composer_id or ""
        self.document = self.open(parent or composer, composer if parent else "")
        self.document.agent_type = (subagent.subagent_type_name or "") if parent else ""
        uri = (session.workspace_identifier or CursorWorkspace()).uri or CursorUri()
        self.document.cwd = uri.fs_path or uri.path or folder
        self.document.title = session.name or ""
        self.time = instant_of(session.created_at) if session.created_at else ""

    def take(self, content: bytes, number: int) -> str:
        """Take a message; return its kind. Raises BadLine."""
        bubble = decode(_bubbles, content)
        if isinstance(bubble.created_at, str):
            self.note_time(bubble.created_at)
        elif bubble.created_at:
            self.time = instant_of(bubble.created_at)
        self.check_time()
        document = self.document
        document.seen(self.time)
        turn = bubble.bubble_id or f"message-{number}"
        if bubble.type == _USER:
            return "subagent's task" if document.agent else self._typed(turn, bubble.text or "")
        kinds = [document.say(turn, self.time, "assistant", bubble.text or "")]
        if bubble.tool_former_data and bubble.tool_former_data.name:
            kinds.append(self._call(f"{turn}#call", bubble.tool_former_data))
        return combined(kinds)

    def _typed(self, turn: str, text: str) -> str:
        return self.document.say(turn, self.time, "user", typed_text(text))

    def _call(self, turn: str, tool: CursorTool) -> str:
        told = arguments_in(tool.raw_args or tool.params or "")
        kind = self.document.add(ToolCalled(turn=turn, at=self.time, name=tool.name or "tool", arguments=told))
        self.document.settle(turn, _OUTCOMES.get(tool.status or "", "unknown"))
        self.take_output(turn, tool.result)
        return kind
