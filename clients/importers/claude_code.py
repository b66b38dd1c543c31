"""Claude Code's session files (`~/.claude/projects/<folder>/<session>.jsonl`), as capture events.

Comes in: files or folders. Goes out: a `Transcript` for each file. Invariants: every line is taken, noise of a kind, or
malformed with a reason; document and turn ids come from the file alone, so that live capture gives the same (W13);
whole tool outputs are never kept; what a machine wrote is never taken for the user's words (W5).
"""

from __future__ import annotations

import codecs
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO, Literal

import msgspec

from ...protocol import wire
from ...protocol.errors import NotFound, StoreError
from ...protocol.event import AnyEvent, Origin, Said, SessionEnded, SessionStarted, ToolCalled
from .claude_line import (
    LINE_LIMIT,
    BadLine,
    Block,
    Line,
    arguments,
    checked_time,
    decode_line,
    decode_message,
    machine,
)
from .transcript import Ledger, Session, Transcript

HOST = "claude-code"
_TAKEN = ""


def find(paths: Sequence[Path]) -> list[Path]:
    """The session files among `paths`: files as they are, folders with all below, subagents' included.

    Raises NotFound.
    """
    found: dict[Path, None] = {}
    for path in paths:
        if path.is_dir():
            found.update(dict.fromkeys(sorted(each for each in path.rglob("*.jsonl") if each.is_file())))
        elif path.exists():
            found[path] = None
        else:
            raise NotFound(f"there is no {path}", hint="sessions lie in ~/.claude/projects/<folder>/<session>.jsonl")
    return list(found)


def read(path: Path, cwd: str = "") -> Transcript:
    """The sessions in a file; `cwd` replaces the folder that its lines name. Raises StoreError if it can't be read."""
    reader = _Reader(path)
    try:
        with path.open("rb") as file:
            for content, is_last in _lines(file):
                reader.read(content, is_last)
    except OSError as error:
        raise StoreError(f"{path} can't be read: {error.strerror}", hint="see its mode and owner") from error
    return Transcript(path=str(path), sessions=reader.sessions(cwd), account=reader.ledger.close())


def _lines(file: BinaryIO) -> Iterator[tuple[bytes | None, bool]]:
    """Each line, and whether the file ends in it without a line break; None in place of one over the limit."""
    is_first = True
    while content := file.readline(LINE_LIMIT):
        if is_first:
            content, is_first = content.removeprefix(codecs.BOM_UTF8), False
            if not content:
                continue
        if len(content) < LINE_LIMIT or content.endswith(b"\n"):
            yield content, not content.endswith(b"\n")
            continue
        while content and not content.endswith(b"\n"):
            content = file.readline(LINE_LIMIT)
        yield None, False


class _Document:
    """A session while its lines are read."""

    def __init__(self, session: str, agent: str) -> None:
        self.session, self.agent = session, agent
        self.events: list[AnyEvent] = []
        self.turns: dict[str, int] = {}
        self.uuids: set[str] = set()
        self.cwd = self.first = self.last = ""

    def seen(self, line: Line, at: str) -> None:
        """Notes what any line tells of its session."""
        self.first, self.last = self.first or at, at or self.last
        self.cwd = self.cwd or line.cwd or ""
        if line.uuid:
            self.uuids.add(line.uuid)

    def add(self, event: AnyEvent) -> bool:
        """Appends an event; False if its turn is there already."""
        if event.turn in self.turns:
            return False
        self.turns[event.turn] = len(self.events)
        self.events.append(event)
        return True

    def settle(self, call: str, is_error: bool) -> None:
        """Notes how a tool call ended."""
        place = self.turns.get(call)
        if place is not None and isinstance(self.events[place], ToolCalled):
            outcome: Literal["ok", "error"] = "error" if is_error else "ok"
            self.events[place] = msgspec.structs.replace(self.events[place], outcome=outcome)

    def close(self, is_main: bool, cwd: str, title: str) -> Session:
        """The session; its start and end are told by the file that is its own, not by copies of some lines."""
        name = f"{self.session}/{self.agent}" if self.agent else self.session
        origin = Origin(host=HOST, session=name, cwd=cwd or self.cwd, agent=self.agent, live=False, title=title)
        events = tuple(self.events)
        if is_main:
            start = SessionStarted(turn="session-start", at=self.first)
            events = (start, *events, SessionEnded(turn="session-end", at=self.last))
        return Session(origin=origin, events=events)


class _Reader:
    """Reads a file's lines in order and keeps what they add up to."""

    def __init__(self, path: Path) -> None:
        self.ledger = Ledger()
        self._path = path
        self._stem = path.stem
        self._is_agent: bool | None = True if path.stem.startswith("agent-") else None
        self._has_own_file: dict[str, bool] = {}
        self._documents: dict[tuple[str, str], _Document] = {}
        self._titles: dict[str, str] = {}
        self._time = ""

    def read(self, content: bytes | None, is_last: bool) -> None:
        """Takes one line into the account, and what it holds into its session."""
        if content is None:
            self.ledger.refuse(f"longer than {LINE_LIMIT:,} bytes")
        elif not content.strip():
            self.ledger.drop("blank line")
        else:
            try:
                kind = self._line(decode_line(content))
            except BadLine as error:
                torn = "the file ends within this line (is the session still running?): " if is_last else ""
                self.ledger.refuse(f"{torn}{error}")
                return
            if kind == _TAKEN:
                self.ledger.take()
            else:
                self.ledger.drop(kind)

    def sessions(self, cwd: str) -> tuple[Session, ...]:
        """The sessions that hold anything, the file's own first."""
        filled = [each for each in self._documents.values() if each.events]
        filled.sort(key=lambda each: each.session != self._stem)
        return tuple(each.close(n == 0, cwd, self._title(each)) for n, each in enumerate(filled))

    def _title(self, document: _Document) -> str:
        return next((title for leaf, title in self._titles.items() if leaf in document.uuids), "")

    def _line(self, line: Line) -> str:
        """The kind of noise, or `_TAKEN`. Raises BadLine."""
        if not line.type:
            raise BadLine("it has no type")
        if self._is_agent is None and line.is_sidechain is not None:
            self._is_agent = line.is_sidechain
        problem = self._note_time(line)
        if line.session_id and self._lies_elsewhere(line.session_id):
            return "copy of another session"
        document = self._document(line)
        if document:
            document.seen(line, self._time)
        if line.type == "summary" and line.summary and line.leaf_uuid:
            self._titles[line.leaf_uuid] = line.summary
        if line.type not in {"user", "assistant"}:
            return line.type[:40]
        if problem:
            raise problem
        if not self._time:
            raise BadLine("it has no timestamp, and no line before it has one")
        if not line.uuid:
            raise BadLine("it has no uuid")
        return _noise_of(line, bool(self._is_agent)) or self._message(line, document or self._open(self._stem, ""))

    def _note_time(self, line: Line) -> BadLine | None:
        """Moves the clock to the line's time; a line without one keeps that of the line before."""
        if line.timestamp:
            try:
                self._time = checked_time(line.timestamp)
            except BadLine as error:
                return error
        return None

    def _lies_elsewhere(self, session: str) -> bool:
        """Whether a session has a file of its own beside this one, which then tells all of it."""
        if session == self._stem:
            return False
        if session not in self._has_own_file:
            name = f"{session}.jsonl"
            self._has_own_file[session] = Path(name).name == name and self._path.with_name(name).exists()
        return self._has_own_file[session]

    def _document(self, line: Line) -> _Document | None:
        if not line.session_id:
            return None
        agent = (line.agent_id or self._stem.removeprefix("agent-")) if self._is_agent else ""
        return self._open(line.session_id, agent)

    def _open(self, session: str, agent: str) -> _Document:
        return self._documents.setdefault((session, agent), _Document(session, agent))

    def _message(self, line: Line, document: _Document) -> str:
        message = decode_message(line)
        if message.model == "<synthetic>":
            return "written by the host"
        blocks = [Block("text", message.content)] if isinstance(message.content, str) else message.content
        kinds: list[str] = []
        texts = 0
        for block in blocks:
            texts += block.type == "text"
            kinds.append(self._block(line, block, texts, document))
        if not kinds:
            return "empty text"
        return _TAKEN if _TAKEN in kinds else kinds[0]

    def _block(self, line: Line, block: Block, number: int, document: _Document) -> str:
        match block.type:
            case "text":
                turn = line.uuid if number == 1 else f"{line.uuid}#{number}"
                return self._text(line, block.text or "", str(turn), document)
            case "tool_use" if line.type == "assistant" and block.name:
                turn = block.id or f"{line.uuid}#{block.name}"
                called = ToolCalled(turn=turn, at=self._time, name=block.name, arguments=arguments(block.input))
                return _TAKEN if document.add(called) else "repeated"
            case "tool_result":
                document.settle(block.tool_use_id or "", bool(block.is_error))
                return "tool result"
            case "thinking" | "redacted_thinking":
                return "thinking"
            case _:
                return (block.type or "block without a type")[:40]

    def _text(self, line: Line, text: str, turn: str, document: _Document) -> str:
        role: Literal["user", "assistant"] = "user" if line.type == "user" else "assistant"
        if not text.strip():
            return "empty text"
        if role == "user":
            if self._is_agent:
                return "subagent's task"
            if kind := machine(text):
                return kind
        if len(text) > wire.TEXT_LIMIT:
            raise BadLine(f"a text of {len(text):,} characters; at most {wire.TEXT_LIMIT:,} are taken")
        said = Said(turn=turn, at=self._time, role=role, text=text)
        return _TAKEN if document.add(said) else "repeated"


def _noise_of(line: Line, is_agent: bool) -> str:
    """The kind of noise that a line's own fields make of it; "" if its content decides."""
    if line.is_sidechain and not is_agent:
        return "sidechain"
    if line.is_compact_summary or (is_agent and (line.agent_id or "").startswith("acompact")):
        return "compaction summary"
    if line.is_meta:
        return "meta"
    if line.is_api_error_message:
        return "written by the host"
    if bytes(line.forked_from) not in {b"", b"null"}:
        return "copy of another session"
    return ""
