"""Codex's session files (`~/.codex/sessions/YYYY/MM/DD/rollout-*.jsonl`), as capture events.

Comes in: a file, of today's form (`{timestamp, type, payload}`) or the first one's (bare items after a header). Goes
out: a `Transcript`. Invariants: every line is accounted for; a turn is named by its role and line, since Codex only
ever appends; what the user typed stands in the file twice and is taken once: from the events where the file has any,
since the items hold instructions and surroundings in the user's name as well (W5, P-7).
"""

from __future__ import annotations

import mmap
import re
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from ...protocol.event import ToolCalled
from .document import Begun, Document, Outcome, Role, read_lines
from .json_line import BadLine, Block, arguments, arguments_in, checked_time, decode
from .summary import KIND as SUMMARY
from .summary import lessons
from .transcript import Mark, Session, Transcript

HOST = "codex"
FOLDER = "~/.codex/sessions/YYYY/MM/DD/rollout-<time>-<uuid>.jsonl"

_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$")
_REQUEST = re.compile(r"\A# Context from my IDE setup:.*?^## My request for Codex:\s*", re.DOTALL | re.MULTILINE)
_INJECTED = re.compile(
    r"\s*(?:<(?P<tag>environment_context|user_instructions|user_shell_command|turn_aborted|skill|subagent_notification|"
    r"permissions instructions|collaboration_mode|goal_context|INSTRUCTIONS|codex_internal_context|memd-context)\b|"
    r"# AGENTS\.md instructions for )"
)
_EXIT = re.compile(r'"exit_code":\s*(-?\d+)|(?:^|\n)(?:Process exited with code|Exit code:) (-?\d+)')
_ANSWERED = (b'"role":"assistant"', b'"role": "assistant"', b'function_call"', b'_call"', b'"reasoning"')
_TYPED = b'"user_message"'


class Payload(msgspec.Struct, frozen=True):
    """What a line carries, as far as an importer looks at it."""

    type: str = ""
    id: str | None = None
    session_id: str | None = None
    timestamp: str | None = None
    cwd: str | None = None
    source: msgspec.Raw = msgspec.Raw()
    role: str | None = None
    content: str | list[Block] | None = None
    message: msgspec.Raw = msgspec.Raw()
    name: str | None = None
    call_id: str | None = None
    arguments: msgspec.Raw = msgspec.Raw()
    input: msgspec.Raw = msgspec.Raw()
    action: msgspec.Raw = msgspec.Raw()
    output: msgspec.Raw = msgspec.Raw()
    exit_code: int | None = None


class Line(msgspec.Struct, frozen=True):
    """A line's envelope."""

    type: str = ""
    timestamp: str | None = None
    payload: msgspec.Raw = msgspec.Raw()


class _State(msgspec.Struct, frozen=True, kw_only=True):
    time: str = ""
    is_agent: bool = False
    by_items: bool = False
    begun: Begun


_lines = msgspec.json.Decoder(Line)
_payloads = msgspec.json.Decoder(Payload)
_any = msgspec.json.Decoder(Any)


def read(path: Path, cwd: str = "", mark: Mark | None = None) -> Transcript:
    """The session in a file, from `mark` on; `cwd` replaces the folder that it names. Raises StoreError."""
    reader = _Reader(path, mark)
    account, after = read_lines(path, reader, mark)
    return Transcript(path=str(path), sessions=reader.sessions(cwd), account=account, mark=after)


def _by_items(path: Path) -> bool:
    """Whether what the user typed has to be taken from the items: an answer is there, and no event tells of a prompt.

    A file that was cut between the two waits for the next import.
    """
    with (
        suppress(OSError, ValueError),
        path.open("rb") as file,
        mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content,
    ):
        return content.find(_TYPED) < 0 and any(content.find(sign) >= 0 for sign in _ANSWERED)
    return False


class _Reader:
    """Reads a file's lines in order and keeps what they add up to."""

    def __init__(self, path: Path, mark: Mark | None) -> None:
        begun = None
        self._time, self._is_agent, self._is_first = "", False, mark is None
        if mark:
            state = msgspec.json.decode(mark.state, type=_State)
            self._time, self._is_agent, self._by_items, begun = state.time, state.is_agent, state.by_items, state.begun
        else:
            self._by_items = _by_items(path)
        named = _UUID.search(path.stem)
        self._document = Document(begun.session if begun else named[0] if named else path.stem, begun=begun)

    @property
    def is_settled(self) -> bool:
        """Whether every tool call is answered."""
        return self._document.is_settled

    def state(self) -> bytes:
        """The reader at this line."""
        begun = self._document.begun
        return msgspec.json.encode(
            _State(time=self._time, is_agent=self._is_agent, by_items=self._by_items, begun=begun)
        )

    def sessions(self, cwd: str) -> tuple[Session, ...]:
        """The session, if it holds anything."""
        return (self._document.close(HOST, True, cwd),) if self._document.events else ()

    def take(self, content: bytes, number: int) -> str:
        """The kind of noise, or `TAKEN`. Raises BadLine."""
        line = decode(_lines, content)
        is_bare = not bytes(line.payload)
        payload = decode(_payloads, content if is_bare else bytes(line.payload), "" if is_bare else "payload")
        if at := line.timestamp or (payload.timestamp if is_bare else None):
            self._time = checked_time(at)
        kind = line.type
        if is_bare:
            kind = "session_meta" if not kind and payload.id else "response_item" if kind else ""
        if not kind:
            raise BadLine("it has no type")
        if kind == "session_meta":
            return self._meta(payload)
        if not self._time:
            raise BadLine("it has no timestamp, and no line before it has one")
        self._document.seen(self._time, payload.cwd or "")
        match kind:
            case "response_item":
                return self._item(payload, number)
            case "event_msg":
                return self._event(payload, number)
            case "compacted":
                return self._compacted(payload, number)
            case _:
                return kind[:40]

    def _meta(self, payload: Payload) -> str:
        """The first one is the file's own; a fork's file repeats that of the session it came from."""
        if self._is_first:
            self._is_first = False
            self._document.session = payload.id or payload.session_id or self._document.session
            self._is_agent = b"subagent" in bytes(payload.source).lower()
        self._document.seen(self._time, payload.cwd or "")
        return "session_meta"

    def _compacted(self, payload: Payload, number: int) -> str:
        taught = lessons(_text(payload.message))
        return self._document.say(f"compacted-{number}", self._time, "assistant", taught) if taught else SUMMARY

    def _event(self, payload: Payload, number: int) -> str:
        if payload.type == "user_message":
            return self._user(_text(payload.message), number)
        if payload.type.endswith("_end") and payload.call_id and payload.exit_code is not None:
            self._document.settle(payload.call_id, "error" if payload.exit_code else "ok")
        return (payload.type or "event without a type")[:40]

    def _item(self, payload: Payload, number: int) -> str:
        document = self._document
        match payload.type:
            case "message" if payload.role == "assistant":
                return self._said(payload, "assistant", number)
            case "message" if payload.role == "user":
                text = _joined(payload.content)
                if found := _INJECTED.match(text):
                    return found["tag"] or "instructions"
                if not self._by_items:
                    return "told by an event as well"
                return self._user(text, number)
            case "message":
                return f"{payload.role} message"[:40]
            case "function_call" | "custom_tool_call" | "local_shell_call" | "web_search_call":
                call = payload.call_id or payload.id or f"call-{number}"
                name = payload.name or payload.type.removesuffix("_call")
                called = ToolCalled(turn=call, at=self._time, name=name, arguments=_arguments(payload))
                kind = document.add(called)
                if payload.type == "web_search_call":
                    document.settle(call, "unknown")  # no line tells how it ended
                return kind
            case "function_call_output" | "custom_tool_call_output":
                document.settle(payload.call_id or "", _outcome(payload.output))
                return "tool result"
            case _:
                return (payload.type or "item without a type")[:40]

    def _said(self, payload: Payload, role: Role, number: int) -> str:
        return self._document.say(f"{role}-{number}", self._time, role, _joined(payload.content))

    def _user(self, text: str, number: int) -> str:
        """What was typed, without what an editor put before it."""
        if self._is_agent:
            return "subagent's task"
        if found := _INJECTED.match(text):
            return found["tag"] or "instructions"
        return self._document.say(f"user-{number}", self._time, "user", _REQUEST.sub("", text, count=1))


def _text(raw: msgspec.Raw) -> str:
    value = decode(_any, bytes(raw), "message") if bytes(raw) else ""
    return value if isinstance(value, str) else ""


def _joined(content: str | list[Block] | None) -> str:
    """The text of a message: one, though it may come in parts."""
    if content is None or isinstance(content, str):
        return content or ""
    return "\n".join(each.text for each in content if each.text)


def _arguments(payload: Payload) -> str:
    """What a tool was called with: a text that holds JSON, a text that does not, or an object."""
    for raw in (payload.arguments, payload.input, payload.action):
        if bytes(raw):
            value = decode(_any, bytes(raw), "arguments")
            return arguments_in(value) if isinstance(value, str) else arguments(raw)
    return ""


def _outcome(output: msgspec.Raw) -> Outcome:
    """How a call ended, where its output says so; the output itself is not kept."""
    raw = bytes(output)
    if b'"success":false' in raw:
        return "error"
    value = decode(_any, raw, "output") if raw else ""
    found = _EXIT.search(value if isinstance(value, str) else raw.decode(errors="replace"))
    if found is None:
        return "unknown"
    return "ok" if int(found[1] or found[2]) == 0 else "error"
