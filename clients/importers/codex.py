"""Codex's session files (`~/.codex/sessions/YYYY/MM/DD/rollout-*.jsonl`), as capture events.

A line is `{timestamp, type, payload}`, or a bare item after a header. Codex only appends, so role and line name a turn.
A prompt stands in the file twice; it is read from the events where the file has any, because the items hold
instructions in the user's name as well (W5, P-7).
"""

from __future__ import annotations

import mmap
import re
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from ...protocol.event import ToolCalled
from .json_line import BadLine, ContentBlock, arguments, arguments_in, decode
from .session_reader import Outcome, SingleReader, read_lines
from .transcript import Mark, Transcript

HOST = "codex"
ASKING = "request_user_input"
"""Name of the host's tool that asks the user."""
PLANNING = "update_plan"
"""Name of the host's tool with which the agent keeps its todo list."""

_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$")
_REQUEST = re.compile(r"\A# Context from my IDE setup:.*?^## My request for Codex:\s*", re.DOTALL | re.MULTILINE)
_INJECTED = re.compile(
    r"\s*(?:<(?P<tag>environment_context|user_instructions|user_shell_command|turn_aborted|skill|subagent_notification|"
    r"permissions instructions|collaboration_mode|goal_context|INSTRUCTIONS|codex_internal_context|memd-context)\b|"
    r"# AGENTS\.md instructions for )"
)
_EXIT = re.compile(r'"exit_code":\s*(-?\d+)|(?:^|\n)(?:Process exited with code|Exit code:) (-?\d+)')
_NOT_ALLOWED = re.compile(r"(?:exec command|patch|tool call) rejected by user", re.IGNORECASE)
_ROLE = re.compile(rb'"(?:agent_role|agent_type)"\s*:\s*"([\w.:-]{1,64})"')
"""The type of a subagent in the header of its file."""
_ANSWERED = (b'"role":"assistant"', b'"role": "assistant"', b'function_call"', b'_call"', b'"reasoning"')
_TYPED = b'"user_message"'


class CodexPayload(msgspec.Struct, frozen=True):
    """A line's payload, without fields that no importer reads."""

    type: str = ""
    id: str | None = None
    session_id: str | None = None
    timestamp: str | None = None
    cwd: str | None = None
    source: msgspec.Raw = msgspec.Raw()
    role: str | None = None
    content: str | list[ContentBlock] | None = None
    message: msgspec.Raw = msgspec.Raw()
    name: str | None = None
    call_id: str | None = None
    arguments: msgspec.Raw = msgspec.Raw()
    input: msgspec.Raw = msgspec.Raw()
    action: msgspec.Raw = msgspec.Raw()
    output: msgspec.Raw = msgspec.Raw()
    exit_code: int | None = None


class _Question(msgspec.Struct, frozen=True):
    id: str
    question: str


class _Questions(msgspec.Struct, frozen=True):
    """The arguments of a call that asks the user."""

    questions: tuple[_Question, ...]


class _Step(msgspec.Struct, frozen=True):
    step: str
    status: str


class _Plan(msgspec.Struct, frozen=True):
    """The arguments of a call that sets the todo list."""

    plan: tuple[_Step, ...]


class _Answer(msgspec.Struct, frozen=True):
    answers: tuple[str, ...]


class _Answers(msgspec.Struct, frozen=True):
    """The result of such a call: by question, the options that the user chose, and a note."""

    answers: dict[str, _Answer]

    def words(self, question: str) -> str:
        chosen = self.answers[question].answers if question in self.answers else ()
        return ", ".join(answer.removeprefix("user_note: ") for answer in chosen)


class _Envelope(msgspec.Struct, frozen=True):
    """The text of an output in older files: JSON with the output and its exit code."""

    output: str


class CodexLine(msgspec.Struct, frozen=True):
    """A line's envelope."""

    type: str = ""
    timestamp: str | None = None
    payload: msgspec.Raw = msgspec.Raw()


T = TypeVar("T")

_lines = msgspec.json.Decoder(CodexLine)
_payloads = msgspec.json.Decoder(CodexPayload)
_any = msgspec.json.Decoder(Any)


def read(path: Path, cwd: str = "", mark: Mark | None = None, output_limit: int = 0) -> Transcript:
    """Read the session in a file, from `mark` on. Raises StoreError."""
    return read_lines(path, lambda: CodexReader(path, mark), mark, cwd, output_limit)


def _by_items(path: Path) -> bool:
    """Whether the prompts are read from the items: the file has an answer, and no event of a prompt. The next import
    reads the prompts of a file that was cut between the two."""
    with (
        suppress(OSError, ValueError),
        path.open("rb") as file,
        mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content,
    ):
        return content.find(_TYPED) < 0 and any(content.find(sign) >= 0 for sign in _ANSWERED)
    return False


class CodexReader(SingleReader):
    """Reads Codex's lines."""

    host = HOST

    def __init__(self, path: Path, mark: Mark | None) -> None:
        named = _UUID.search(path.stem)
        super().__init__(named[0] if named else path.stem, mark)
        self._is_first = mark is None
        self._questions: dict[str, _Questions | None] = {}
        if mark is None:
            self.by_items = _by_items(path)

    def take(self, content: bytes, number: int) -> str:
        """Take a line; return its kind. Raises BadLine."""
        line = decode(_lines, content)
        is_bare = not bytes(line.payload)
        payload = decode(_payloads, content if is_bare else bytes(line.payload), "" if is_bare else "payload")
        self.note_time(line.timestamp or (payload.timestamp if is_bare else None))
        kind = line.type
        if is_bare:
            kind = "session_meta" if not kind and payload.id else "response_item" if kind else ""
        if not kind:
            raise BadLine("it has no type")
        if kind == "session_meta":
            return self._meta(payload)
        self.check_time()
        self.document.seen(self.time, payload.cwd or "")
        match kind:
            case "response_item":
                return self._item(payload, number)
            case "event_msg":
                return self._event(payload, number)
            case "compacted":
                return self.document.say_summary(f"compacted-{number}", self.time, _text(payload.message))
            case _:
                return kind[:40]

    def _meta(self, payload: CodexPayload) -> str:
        """Take a header. The first is the file's own; a fork's file repeats that of the session it came from."""
        if self._is_first:
            self._is_first = False
            self.document.session = payload.id or payload.session_id or self.document.session
            self.is_agent = b"subagent" in bytes(payload.source).lower()
            if self.is_agent and (role := _ROLE.search(bytes(payload.source))):
                self.document.agent_type = role[1].decode()
        self.document.seen(self.time, payload.cwd or "")
        return "session_meta"

    def _event(self, payload: CodexPayload, number: int) -> str:
        if payload.type == "user_message":
            return self._user(_text(payload.message), number)
        if payload.type == "turn_aborted":
            return self.document.interrupt(f"interrupted-{number}", self.time)
        if payload.type.endswith("_end") and payload.call_id and payload.exit_code is not None:
            self.document.settle(payload.call_id, "error" if payload.exit_code else "ok")
        return (payload.type or "event without a type")[:40]

    def _item(self, payload: CodexPayload, number: int) -> str:
        document = self.document
        match payload.type:
            case "message" if payload.role == "assistant":
                return document.say(f"assistant-{number}", self.time, "assistant", _joined(payload.content))
            case "message" if payload.role == "user":
                text = _joined(payload.content)
                if injected := _INJECTED.match(text):
                    return injected["tag"] or "instructions"
                if not self.by_items:
                    return "repeats an event"
                return self._user(text, number)
            case "message":
                return f"{payload.role} message"[:40]
            case "function_call" | "custom_tool_call" | "local_shell_call" | "web_search_call":
                call = payload.call_id or payload.id or f"call-{number}"
                name = payload.name or payload.type.removesuffix("_call")
                called = ToolCalled(turn=call, at=self.time, name=name, arguments=_arguments(payload))
                kind = document.add(called)
                if name == ASKING:
                    self._questions[call] = _json_in(_Questions, payload.arguments)
                if name == PLANNING and not self.is_agent and (told := _json_in(_Plan, payload.arguments)):
                    document.todos.replace(self.time, [(step.step, step.status) for step in told.plan])
                if payload.type == "web_search_call":
                    document.settle(call, "unknown")  # no line has its outcome
                return kind
            case "function_call_output" | "custom_tool_call_output":
                return self._result(payload.call_id or "", payload.output)
            case _:
                return (payload.type or "item without a type")[:40]

    def _result(self, call: str, output: msgspec.Raw) -> str:
        """Take the outcome of a call, and the user's answers to the questions that it asked."""
        asked = self._questions.pop(call, None)
        answered = _json_in(_Answers, output) if asked and not self.is_agent else None
        self.document.settle(call, "ok" if answered else _outcome(output))
        if asked is None or answered is None:
            envelope = _json_in(_Envelope, output)
            return self.take_output(call, envelope.output if envelope else output)
        pairs = ((question.question, answered.words(question.id)) for question in asked.questions)
        return self.document.say_answers(call, self.time, pairs)

    def _user(self, text: str, number: int) -> str:
        """Take a prompt, without the text that an editor put before it."""
        if self.is_agent:
            return "subagent's task"
        if injected := _INJECTED.match(text):
            return injected["tag"] or "instructions"
        return self.document.say(f"user-{number}", self.time, "user", _REQUEST.sub("", text, count=1))


def _text(raw: msgspec.Raw) -> str:
    value = decode(_any, bytes(raw), "message") if bytes(raw) else ""
    return value if isinstance(value, str) else ""


def _joined(content: str | list[ContentBlock] | None) -> str:
    if content is None or isinstance(content, str):
        return content or ""
    return "\n".join(block.text for block in content if block.text)


def _json_in(kind: type[T], raw: msgspec.Raw) -> T | None:
    """Return the object that a text of JSON holds, None for another text."""
    with suppress(msgspec.MsgspecError):
        return msgspec.json.decode(msgspec.json.decode(bytes(raw), type=str), type=kind)
    return None


def _arguments(payload: CodexPayload) -> str:
    """Return a tool call's arguments: a text that holds JSON or does not, or an object."""
    for raw in (payload.arguments, payload.input, payload.action):
        if bytes(raw):
            value = decode(_any, bytes(raw), "arguments")
            return arguments_in(value) if isinstance(value, str) else arguments(raw)
    return ""


def _outcome(output: msgspec.Raw) -> Outcome:
    """Return the outcome that a call's output tells; the output itself is not kept."""
    raw = bytes(output)
    if b'"success":false' in raw:
        return "error"
    value = decode(_any, raw, "output") if raw else ""
    if isinstance(value, str) and _NOT_ALLOWED.match(value):
        return "refused"
    status = _EXIT.search(value if isinstance(value, str) else raw.decode(errors="replace"))
    if status is None:
        return "unknown"
    return "ok" if int(status[1] or status[2]) == 0 else "error"
