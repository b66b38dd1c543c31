"""Claude Code's session files (`~/.claude/projects/<folder>/<session>.jsonl`), as capture events.

Invariants: document and turn ids come from the file alone, so that live capture gives the same ones (W13); whole tool
outputs are never kept; a machine's text is never the user's word (W5), but text typed while the agent worked, or behind
a slash command, is. The lasting parts of a compaction summary are the assistant's.
"""

from __future__ import annotations

import os
import re
from contextlib import suppress
from functools import lru_cache
from itertools import islice
from pathlib import Path

import msgspec

from ...protocol.event import ToolCalled
from ...protocol.tool_calls import delegation
from .json_line import BadLine, ContentBlock, arguments, decode, output_words
from .session_reader import Document, ReadSoFar, Role, SessionReader, combined, named_blocks, read_into, read_lines
from .subagents import file_of, type_of
from .summary import KIND as SUMMARY
from .transcript import CapturedSession, Mark, Transcript

HOST = "claude-code"
TITLES = 1000
"""Most lines at the head of a file that are read for titles of other sessions."""


class ClaudeMessage(msgspec.Struct, frozen=True):
    """A message: a text, or blocks."""

    content: str | list[ContentBlock]
    role: str = ""
    model: str | None = None


class ClaudeLine(msgspec.Struct, frozen=True, rename="camel"):
    """A line, without fields that no importer reads."""

    type: str = ""
    uuid: str | None = None
    session_id: str | None = None
    agent_id: str | None = None
    timestamp: str | None = None
    cwd: str | None = None
    is_sidechain: bool | None = None
    is_meta: bool | None = None
    is_compact_summary: bool | None = None
    is_api_error_message: bool | None = None
    forked_from: msgspec.Raw = msgspec.Raw()
    message: msgspec.Raw = msgspec.Raw()
    tool_use_result: msgspec.Raw = msgspec.Raw()
    summary: str | None = None
    leaf_uuid: str | None = None
    turn_origin: str | None = None
    origin: msgspec.Raw = msgspec.Raw()
    operation: str | None = None
    content: msgspec.Raw = msgspec.Raw()
    attachment: msgspec.Raw = msgspec.Raw()


class ClaudeAttachment(msgspec.Struct, frozen=True):
    """An addition of the host to a turn, such as a prompt that waited in the queue."""

    type: str = ""
    prompt: str | list[ContentBlock] = ""


class ClaudeOrigin(msgspec.Struct, frozen=True):
    """The sender of a prompt."""

    kind: str | None = None


class ClaudeTodo(msgspec.Struct, frozen=True):
    """An item of a todo list."""

    content: str = ""
    status: str = ""


class ClaudeTask(msgspec.Struct, frozen=True):
    """A new task."""

    id: str = ""
    subject: str = ""


class ClaudeStatusChange(msgspec.Struct, frozen=True):
    """A new status of a task."""

    to: str = ""


class ClaudeToolResult(msgspec.Struct, frozen=True, rename="camel"):
    """The result of one of the host's own tools: the user's answers by question, a plan that the user approved, a whole
    todo list, a new task, or a change of a task."""

    answers: dict[str, str] = {}
    plan: str | None = None
    new_todos: tuple[ClaudeTodo, ...] | None = None
    task: ClaudeTask | None = None
    task_id: str = ""
    status_change: ClaudeStatusChange | None = None


OWN_TURNS = frozenset({None, "", "human", "user", "sdk"})
"""Origins of a turn that a person began, unlike a loop's wake-up, a schedule or another agent (W5)."""

OWN_TOOLS = frozenset(
    "AskUserQuestion Edit ExitPlanMode MultiEdit NotebookEdit TaskCreate TaskUpdate TodoWrite Write".split()
)
"""Tools of the host whose errors hold no text of a program, a page or a server."""

INTERRUPTION = "interruption"
_NOT_ALLOWED = re.compile(r"(?:Error: )?The user doesn't want to (?:proceed with this tool use|take this action)")
_REFUSED = re.compile(
    r"(?:Error: )?The user doesn't want to proceed with this tool use\..*?\bthe user said:\s*(.+)", re.DOTALL
)

_lines = msgspec.json.Decoder(ClaudeLine)
_messages = msgspec.json.Decoder(ClaudeMessage)
_attachments = msgspec.json.Decoder(ClaudeAttachment)
_origins = msgspec.json.Decoder(ClaudeOrigin)
_texts = msgspec.json.Decoder(str)
_results: msgspec.json.Decoder[str | ClaudeToolResult] = msgspec.json.Decoder(str | ClaudeToolResult)


class ClaudeState(msgspec.Struct, frozen=True, kw_only=True):
    """A reader's state at a mark; `main` is the document whose own file this is."""

    time: str = ""
    is_agent: bool | None = None
    main: tuple[str, str] = ("", "")
    begun: tuple[ReadSoFar, ...] = ()


def read(path: Path, cwd: str = "", mark: Mark | None = None, output_limit: int = 0) -> Transcript:
    """Read the sessions in a file, from `mark` on; `cwd` replaces the folder that its lines name. Raises StoreError."""
    return read_lines(path, lambda: ClaudeReader(path, mark), mark, cwd, output_limit)


class ClaudeReader(SessionReader):
    """Reads Claude Code's lines."""

    host = HOST
    lists_empty_main = True

    def __init__(self, path: Path, mark: Mark | None) -> None:
        state = msgspec.json.decode(mark.state, type=ClaudeState) if mark else ClaudeState()
        super().__init__(state.time, state.begun)
        self._path = path
        self._stem = path.stem
        self._main = state.main
        self._is_agent = True if path.stem.startswith("agent-") else state.is_agent
        self._has_own_file: dict[str, bool] = {}
        self._titles: dict[str, str] = {}
        self._uuids: dict[str, Document] = {}
        self._waiting: list[str] = []
        self._removed = 0

    @property
    def is_settled(self) -> bool:
        """Whether no tool call is open and no queued prompt may come again as a turn."""
        return not self._waiting and super().is_settled

    @property
    def main(self) -> Document | None:
        """The document of the mark, else the first with events, one of the file's own session before others."""
        if self._main != ("", ""):
            return self.documents.get(self._main)
        filled = [document for document in self.documents.values() if document.events]
        return min(filled, key=lambda document: document.session != self._stem, default=None)

    def state(self) -> bytes:
        """Return the state at this line."""
        begun = tuple(document.begun for document in self.documents.values())
        main = (self.main.session, self.main.agent) if self.main else self._main
        return msgspec.json.encode(ClaudeState(time=self.time, is_agent=self._is_agent, main=main, begun=begun))

    def sessions(self, cwd: str) -> tuple[CapturedSession, ...]:
        """Return the sessions with events, the file's own first, with their titles and the types of subagents; the host
        writes the title of a session into files of later ones."""
        is_untitled = self.main is not None and not self._titles.keys() & self._uuids.keys()
        beside = titles_in(self._path.parent) if is_untitled and not self._is_agent else {}
        for leaf, title in {**beside, **self._titles}.items():
            if document := self._uuids.get(leaf):
                document.title = document.title or title
        for document in self.documents.values():
            if document.agent:
                document.agent_type = type_of(self._path, document.session, document.agent)
        return super().sessions(cwd)

    def take(self, content: bytes, number: int) -> str:
        """Take a line; return its kind. Raises BadLine."""
        line = decode(_lines, content)
        if not line.type:
            raise BadLine("it has no type")
        if self._is_agent is None and line.is_sidechain is not None:
            self._is_agent = line.is_sidechain
        problem = self._time_problem(line)
        if line.session_id and self._lies_elsewhere(line.session_id):
            return "copy of another session"
        document = self._document(line)
        if document:
            document.seen(self.time, line.cwd or "")
            if line.uuid:
                self._uuids[line.uuid] = document
        if line.type == "summary" and line.summary and line.leaf_uuid:
            self._titles[line.leaf_uuid] = line.summary
        if words := queued(line):
            return self._queued(line, words, problem, document or self.open(self._stem))
        if line.type not in {"user", "assistant"}:
            self._removed += line.operation == "remove"
            return line.type[:40]
        if line.type == "assistant":  # prompts that left the queue reached it and do not come again
            del self._waiting[: self._removed]
            self._removed = 0
        self._check(problem)
        if not line.uuid:
            raise BadLine("it has no uuid")
        document = document or self.open(self._stem)
        if line.is_api_error_message:
            return document.interrupt(line.uuid, self.time, "error")
        return _noise_of(line, bool(self._is_agent)) or self._message(line, document)

    def _check(self, problem: BadLine | None) -> None:
        if problem:
            raise problem
        self.check_time()

    def _time_problem(self, line: ClaudeLine) -> BadLine | None:
        """Note the line's time. Return the problem with it, which matters for some lines alone."""
        try:
            self.note_time(line.timestamp)
        except BadLine as error:
            return error
        return None

    def _lies_elsewhere(self, session: str) -> bool:
        """Whether a session has a file of its own beside this one, which holds all of it but its subagents."""
        if session == self._stem or self._is_agent:
            return False
        if session not in self._has_own_file:
            name = f"{session}.jsonl"
            self._has_own_file[session] = Path(name).name == name and os.path.exists(self._path.with_name(name))
        return self._has_own_file[session]

    def _document(self, line: ClaudeLine) -> Document | None:
        if not line.session_id:
            return None
        agent = (line.agent_id or self._stem.removeprefix("agent-")) if self._is_agent else ""
        return self.open(line.session_id, agent)

    def _queued(self, line: ClaudeLine, words: str, problem: BadLine | None, document: Document) -> str:
        """Take a prompt that was typed while the agent worked: some reach the agent without a line of their own."""
        self._check(problem)
        if kind := machine(words):
            return kind
        said = command_words(words) if is_command(words) else words
        if not said:
            return "command"
        turn = f"queued-{self.time}"
        if line.type != "attachment":
            self._waiting.append(said)
        elif self._was_queued(said):
            return "repeated"
        else:
            turn = line.uuid or turn
        return document.say(turn, self.time, "user", said, is_between=True)

    def _was_queued(self, words: str) -> bool:
        """Whether these words left the queue; the prompts before them in the queue left it too."""
        if words not in self._waiting:
            return False
        del self._waiting[: self._waiting.index(words) + 1]
        return True

    def _message(self, line: ClaudeLine, document: Document) -> str:
        if not bytes(line.message):
            raise BadLine("it has no message")
        message = decode(_messages, bytes(line.message), "message")
        if message.model == "<synthetic>":
            return "written by the host"
        if message.role != line.type:
            return f"{message.role or 'unknown'} message in a line of the {line.type}"[:60]
        blocks = named_blocks(message.content, line.uuid or "")
        return combined([self._block(line, block, name, document) for block, name in blocks])

    def _block(self, line: ClaudeLine, block: ContentBlock, name: str, document: Document) -> str:
        match block.type:
            case "text":
                return self._text(line, block.text or "", name, document)
            case "tool_use" if line.type == "assistant" and block.name:
                turn = block.id or f"{line.uuid}#{block.name}"
                called = ToolCalled(turn=turn, at=self.time, name=block.name, arguments=arguments(block.input))
                return document.add(called)
            case "tool_result":
                return self._result(line, block, document)
            case "thinking" | "redacted_thinking":
                return "thinking"
            case _:
                return (block.type or "block without a type")[:40]

    def _result(self, line: ClaudeLine, block: ContentBlock, document: Document) -> str:
        """Take what the user said through a tool. The host writes the results of these tools; those of others are left
        out, because their text may imitate one (W5)."""
        call = block.tool_use_id or ""
        is_refused = block.is_error and _NOT_ALLOWED.match(output_words(block.content)) is not None
        tool = document.settle(call, "refused" if is_refused else "error" if block.is_error else "ok")
        self._adopt(line, call, document)
        result = _own_result(line) if tool in OWN_TOOLS and not self._is_agent else None
        if isinstance(result, str) and block.is_error and (reason := _refusal(result)):
            return document.say(f"{call}#refusal", self.time, "user", reason, is_between=True)
        if isinstance(result, ClaudeToolResult) and not block.is_error:
            if tool == "ExitPlanMode" and result.plan:
                return document.say(f"{call}#plan", self.time, "assistant", result.plan, approved=True)
            if tool == "AskUserQuestion":
                return document.say_answers(call, self.time, result.answers.items())
            self._list(result, document)
        return self.take_output(call, block.content)

    def _adopt(self, line: ClaudeLine, call: str, document: Document) -> None:
        """Take the edits of the subagent that answered a call, whose own file has no turn of the user (O2)."""
        event = document.call(call)
        if self._is_agent or event is None or event.outcome != "ok" or delegation(event) is None:
            return
        if file := file_of(self._path, document.session, bytes(line.tool_use_result)):
            reader = ClaudeReader(file, None)
            reader.edits.done = []
            read_into(reader, file)
            key, place = (document.session, document.agent), self.sources.place
            self.edits.adopt(key, call, event.at, place, reader.edits.done)

    def _list(self, result: ClaudeToolResult, document: Document) -> None:
        """Take a change of the agent's todo list."""
        if result.new_todos is not None:
            document.todos.replace(self.time, [(todo.content, todo.status) for todo in result.new_todos])
        elif result.task:
            document.todos.add(self.time, result.task.id, result.task.subject)
        elif result.status_change:
            document.todos.set_status(self.time, result.task_id, result.status_change.to)

    def _text(self, line: ClaudeLine, text: str, turn: str, document: Document) -> str:
        role: Role = "user" if line.type == "user" else "assistant"
        if role == "user" and text.strip():
            if self._is_agent:
                return "subagent's task"
            if line.turn_origin not in OWN_TURNS or _sender(line) not in OWN_TURNS:
                return "turn that the host began"
            kind = SUMMARY if line.is_compact_summary else machine(text)
            if kind == INTERRUPTION:
                return document.interrupt(turn, self.time)
            if kind == SUMMARY:
                return document.say_summary(turn, self.time, text)
            said = command_words(text) if kind else text
            if not said:
                return kind
            text = said
            if self._was_queued(text):
                return "repeated"
            self._waiting.clear()  # the queue is in order: the prompts before this one do not come any more
        return document.say(turn, self.time, role, text)


@lru_cache(maxsize=4)
def titles_in(folder: Path) -> dict[str, str]:
    """Return the titles at the heads of a folder's session files, each by the last line of its session."""
    titles: dict[str, str] = {}
    for path in folder.glob("*.jsonl"):
        with suppress(OSError, BadLine), path.open("rb") as file:
            for content in islice(file, TITLES):
                if b'"summary"' not in content[:40]:
                    break
                line = decode(_lines, content)
                if line.type == "summary" and line.summary and line.leaf_uuid:
                    titles[line.leaf_uuid] = line.summary
    return titles


def _noise_of(line: ClaudeLine, is_agent: bool) -> str:
    """Return the kind of noise that a line's own fields tell; "" if its content decides."""
    if line.is_sidechain and not is_agent:
        return "sidechain"
    if is_agent and (line.is_compact_summary or (line.agent_id or "").startswith("acompact")):
        return SUMMARY
    if line.is_meta:
        return "meta"
    if bytes(line.forked_from) not in {b"", b"null"}:
        return "copy of another session"
    return ""


def _sender(line: ClaudeLine) -> str | None:
    """Return the kind of sender in a line's field `origin`, None without one."""
    raw = bytes(line.origin)
    return decode(_origins, raw, "origin").kind if raw[:1] == b"{" else None


def queued(line: ClaudeLine) -> str:
    """Return the prompt that a line puts into the queue, or takes from it as an attachment, else ""."""
    if line.type == "queue-operation" and line.operation == "enqueue":
        return decode(_texts, bytes(line.content), "content") if bytes(line.content)[:1] == b'"' else ""
    if line.type == "attachment" and b"queued_command" in bytes(line.attachment):
        attachment = decode(_attachments, bytes(line.attachment), "attachment")
        if attachment.type == "queued_command":
            prompt = attachment.prompt
            return prompt if isinstance(prompt, str) else "\n".join(block.text or "" for block in prompt)
    return ""


def _own_result(line: ClaudeLine) -> str | ClaudeToolResult | None:
    """Return what the host notes beside a tool's result, None if it has another form."""
    with suppress(BadLine):
        return decode(_results, bytes(line.tool_use_result), "toolUseResult")
    return None


def _refusal(result: str) -> str:
    """Return the reason that the user gave for refusing a tool call, "" without one."""
    said = _REFUSED.match(result)
    return said[1].strip() if said else ""


_TAGS = (
    "task-notification|command-name|command-message|command-args|command-contents|local-command-stdout|"
    "local-command-stderr|local-command-caveat|bash-input|bash-stdout|bash-stderr|system-reminder|ide_opened_file|"
    "ide_selection|ide_diagnostics|memd-context"
)
_MACHINE = re.compile(rf"<({_TAGS})\b[^>]*>.*?</\1>", re.DOTALL)
_OPENINGS = {
    "<task-notification>": "task-notification",  # the host adds a sentence of its own after the tag
    '{"task_id":"': "task-notification",  # its older form
    "[Request interrupted by user": INTERRUPTION,
    "Operation stopped by hook: ": "stopped by a hook",
    "Caveat: The messages below were generated by the user while running local commands": "local-command-caveat",
    "This session is being continued from a previous conversation": SUMMARY,
}


def machine(text: str) -> str:
    """Return the kind of machine that wrote all of `text`, "" if a person may have written it."""
    words = text.strip()
    if not words:
        return "empty text"
    for opening, kind in _OPENINGS.items():
        if words.startswith(opening):
            return kind
    first = _MACHINE.match(words)
    return first[1] if first and not _MACHINE.sub("", words).strip() else ""


_ARGUMENTS = re.compile(r"<command-args>(.*?)</command-args>", re.DOTALL)
_SLASH = re.compile(r"/[\w:.-]+(?=\s|\Z)")


def command_words(text: str) -> str:
    """Return the user's words behind a slash command's name, "" if there are none."""
    if machine(text).startswith("command-"):
        written = _ARGUMENTS.search(text)
        return written[1].strip() if written else ""
    slash = _SLASH.match(text.strip())
    return text.strip()[slash.end() :].strip() if slash else ""


def is_command(text: str) -> bool:
    """Whether a typed text is a command to the host: `/mcp`, `!ls`."""
    words = text.strip()
    return words.startswith("!") or _SLASH.match(words) is not None
