"""Claude Code's session files (`~/.claude/projects/<folder>/<session>.jsonl`), as capture events.

Comes in: files or folders. Goes out: a `Transcript` for each file. Invariants: every line is taken, noise of a kind, or
malformed with a reason; document and turn ids come from the file alone, so that live capture gives the same (W13);
whole tool outputs are never kept; what a machine wrote is never taken for the user's words (W5). What the user typed
while the agent worked, or behind a slash command, is theirs; what a compaction summary taught is the assistant's.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from ...protocol.event import ToolCalled
from .claude_line import OWN_TURNS, Line, command_words, decode_line, decode_message, is_command, machine, queued
from .document import Begun, Document, Role, read_lines
from .json_line import TAKEN, BadLine, Block, arguments, checked_time
from .summary import KIND as SUMMARY
from .summary import lessons
from .transcript import Mark, Session, Transcript

HOST = "claude-code"
FOLDER = "~/.claude/projects/<folder>/<session>.jsonl"


def read(path: Path, cwd: str = "", mark: Mark | None = None) -> Transcript:
    """The sessions in a file, from `mark` on; `cwd` replaces the folder that its lines name. Raises StoreError."""
    reader = _Reader(path, mark)
    account, after = read_lines(path, reader, mark)
    return Transcript(path=str(path), sessions=reader.sessions(cwd), account=account, mark=after)


class _State(msgspec.Struct, frozen=True, kw_only=True):
    """What a reader has to know at a mark; `main` is the document whose own file this is."""

    time: str = ""
    is_agent: bool | None = None
    main: tuple[str, str] = ("", "")
    begun: tuple[Begun, ...] = ()


class _Reader:
    """Reads a file's lines in order and keeps what they add up to."""

    def __init__(self, path: Path, mark: Mark | None) -> None:
        self._path = path
        self._stem = path.stem
        state = msgspec.json.decode(mark.state, type=_State) if mark else _State()
        self._main = state.main
        self._is_agent = True if path.stem.startswith("agent-") else state.is_agent
        self._documents = {(each.session, each.agent): Document(each.session, each.agent, each) for each in state.begun}
        self._time = state.time
        self._has_own_file: dict[str, bool] = {}
        self._titles: dict[str, str] = {}
        self._uuids: dict[str, Document] = {}
        self._waiting: list[str] = []
        self._removed = 0

    @property
    def is_settled(self) -> bool:
        """Whether no tool call is open and no queued prompt may come again as a turn."""
        return not self._waiting and all(each.is_settled for each in self._documents.values())

    def state(self) -> bytes:
        """The reader at this line."""
        begun = tuple(each.begun for each in self._documents.values())
        main = self._main if self._main != ("", "") else self._first()
        return msgspec.json.encode(_State(time=self._time, is_agent=self._is_agent, main=main, begun=begun))

    def _first(self) -> tuple[str, str]:
        filled = [key for key, each in self._documents.items() if each.events]
        return min(filled, key=lambda key: key[0] != self._stem) if filled else ("", "")

    def sessions(self, cwd: str) -> tuple[Session, ...]:
        """The sessions that hold anything, the file's own first."""
        main = self._main if self._main != ("", "") else self._first()
        for leaf, title in self._titles.items():
            if document := self._uuids.get(leaf):
                document.title = document.title or title
        filled = [(key, each) for key, each in self._documents.items() if each.events or key == self._main]
        filled.sort(key=lambda pair: pair[0] != main)
        return tuple(each.close(HOST, key == main, cwd) for key, each in filled)

    def take(self, content: bytes, number: int) -> str:
        """The kind of noise, or `TAKEN`. Raises BadLine."""
        line = decode_line(content)
        if not line.type:
            raise BadLine("it has no type")
        if self._is_agent is None and line.is_sidechain is not None:
            self._is_agent = line.is_sidechain
        problem = self._note_time(line)
        if line.session_id and self._lies_elsewhere(line.session_id):
            return "copy of another session"
        document = self._document(line)
        if document:
            document.seen(self._time, line.cwd or "")
            if line.uuid:
                self._uuids[line.uuid] = document
        if line.type == "summary" and line.summary and line.leaf_uuid:
            self._titles[line.leaf_uuid] = line.summary
        if words := queued(line):
            return self._queued(line, words, problem, document or self._open(self._stem, ""))
        if line.type not in {"user", "assistant"}:
            self._removed += line.operation == "remove"
            return line.type[:40]
        if line.type == "assistant":  # what left the queue was told to it: it comes no more
            del self._waiting[: self._removed]
            self._removed = 0
        self._check(problem)
        if not line.uuid:
            raise BadLine("it has no uuid")
        return _noise_of(line, bool(self._is_agent)) or self._message(line, document or self._open(self._stem, ""))

    def _check(self, problem: BadLine | None) -> None:
        if problem:
            raise problem
        if not self._time:
            raise BadLine("it has no timestamp, and no line before it has one")

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

    def _document(self, line: Line) -> Document | None:
        if not line.session_id:
            return None
        agent = (line.agent_id or self._stem.removeprefix("agent-")) if self._is_agent else ""
        return self._open(line.session_id, agent)

    def _open(self, session: str, agent: str) -> Document:
        return self._documents.setdefault((session, agent), Document(session, agent))

    def _queued(self, line: Line, words: str, problem: BadLine | None, document: Document) -> str:
        """A prompt that was typed while the agent worked: some reach it without ever becoming a line of their own."""
        self._check(problem)
        if kind := machine(words):
            return kind
        said = command_words(words) if is_command(words) else words
        if not said:
            return "command"
        if line.type == "attachment":
            return (
                "repeated"
                if self._was_queued(said)
                else document.say(line.uuid or f"queued-{self._time}", self._time, "user", said, is_between=True)
            )
        self._waiting.append(said)
        return document.say(f"queued-{self._time}", self._time, "user", said, is_between=True)

    def _was_queued(self, words: str) -> bool:
        """Whether these words came by the queue; what stood before them in it has been said as well."""
        if words not in self._waiting:
            return False
        del self._waiting[: self._waiting.index(words) + 1]
        return True

    def _message(self, line: Line, document: Document) -> str:
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
        return TAKEN if TAKEN in kinds else kinds[0]

    def _block(self, line: Line, block: Block, number: int, document: Document) -> str:
        match block.type:
            case "text":
                turn = line.uuid if number == 1 else f"{line.uuid}#{number}"
                return self._text(line, block.text or "", str(turn), document)
            case "tool_use" if line.type == "assistant" and block.name:
                turn = block.id or f"{line.uuid}#{block.name}"
                return document.add(
                    ToolCalled(turn=turn, at=self._time, name=block.name, arguments=arguments(block.input))
                )
            case "tool_result":
                document.settle(block.tool_use_id or "", "error" if block.is_error else "ok")
                return "tool result"
            case "thinking" | "redacted_thinking":
                return "thinking"
            case _:
                return (block.type or "block without a type")[:40]

    def _text(self, line: Line, text: str, turn: str, document: Document) -> str:
        role: Role = "user" if line.type == "user" else "assistant"
        if role == "user" and text.strip():
            if self._is_agent:
                return "subagent's task"
            if line.turn_origin not in OWN_TURNS:
                return "turn that the host began"
            kind = SUMMARY if line.is_compact_summary else machine(text)
            if kind == SUMMARY:
                taught = lessons(text)
                return document.say(turn, self._time, "assistant", taught) if taught else SUMMARY
            said = command_words(text) if kind else text
            if not said:
                return kind
            text = said
            if self._was_queued(text):
                return "repeated"
            self._waiting.clear()  # the queue is in order: whatever was waiting has gone its own way
        return document.say(turn, self._time, role, text)


def _noise_of(line: Line, is_agent: bool) -> str:
    """The kind of noise that a line's own fields make of it; "" if its content decides."""
    if line.is_sidechain and not is_agent:
        return "sidechain"
    if is_agent and (line.is_compact_summary or (line.agent_id or "").startswith("acompact")):
        return SUMMARY
    if line.is_meta:
        return "meta"
    if line.is_api_error_message:
        return "written by the host"
    if bytes(line.forked_from) not in {b"", b"null"}:
        return "copy of another session"
    return ""
