"""What happened outside, as a client tells it: capture events, and where they come from.

Comes in: what a host showed (a turn, a tool call, a command, a commit). Goes out: frozen tagged values.
Invariants: `(document, turn)` names a capture for good (W13): live capture and import of the same turn give the same
pair; `at` carries an offset; trust follows from the event's class and role, never from its text.
"""

from __future__ import annotations

import re
from typing import Annotated, Literal

import msgspec

from .instant import Instant

Trust = Literal["user", "assistant", "tool", "document"]
Visibility = Literal["private", "shared"]

ARGUMENT_LIMIT = 200
"""Characters kept of a tool call's arguments: what was done, not what came back."""


class Repository(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A hint for a daemon that can't see the client's file system: a repository's root folder, root commit, remote."""

    root: str = ""
    root_commit: str = ""
    remote: str = ""


class Origin(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Where events come from. `host` and `session` name the document; `cwd` decides the project (P3).

    `visibility`: whether what is said there may ever be shared (P7): a record takes the narrowest of its sources.
    """

    host: str
    session: str
    cwd: str = ""
    repository: Repository | None = None
    agent: str = ""
    live: bool = True
    title: str = ""
    visibility: Visibility = "private"

    @property
    def document(self) -> str:
        """The document id, `host:session`: the same for hooks and import (W13)."""
        return f"{self.host}:{self.session}"


class Event(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="event"):
    """One thing that happened. `turn` is unique within its document and deterministic."""

    turn: str
    at: Instant


class Said(Event, tag="said", frozen=True, kw_only=True):
    """The user or the agent said something: a typed turn, or the prose of an assistant's message."""

    role: Literal["user", "assistant"]
    text: str


class Noted(Event, tag="noted", frozen=True, kw_only=True):
    """Someone asked memd to remember exactly this (W2)."""

    text: str
    role: Literal["user", "assistant"] = "user"


class Reworded(Event, tag="reworded", frozen=True, kw_only=True):
    """The user put a record into other words: the source of its new revision."""

    record: str
    text: str


class Wrote(Event, tag="wrote", frozen=True, kw_only=True):
    """A document says something: a commit message, a Markdown section."""

    text: str
    author: str = ""
    path: str = ""


class ToolCalled(Event, tag="tool_called", frozen=True, kw_only=True):
    """The agent called a tool: name, first characters of the arguments, outcome; never the output."""

    name: str
    arguments: str = ""
    outcome: Literal["ok", "error", "unknown"] = "unknown"


class Ran(Event, tag="ran", frozen=True, kw_only=True):
    """A shell command ended."""

    command: str
    exit_status: Annotated[int, msgspec.Meta(ge=-(2**31), lt=2**31)] = 0
    duration_ms: Annotated[int, msgspec.Meta(ge=0, le=2**53)] = 0


class SessionStarted(Event, tag="session_started", frozen=True, kw_only=True):
    """The host opened a session."""

    reason: str = ""


class SessionEnded(Event, tag="session_ended", frozen=True, kw_only=True):
    """The host closed a session, or was idle long enough to count as closed (W2)."""

    reason: str = ""


AnyEvent = Said | Noted | Reworded | Wrote | ToolCalled | Ran | SessionStarted | SessionEnded

_ROLE_TRUST: dict[str, Trust] = {"user": "user", "assistant": "assistant"}


def trust(event: AnyEvent) -> Trust:
    """How far an event's words may be believed (W5, P-19): by its source alone."""
    match event:
        case Said() | Noted():
            return _ROLE_TRUST[event.role]
        case Reworded():
            return "user"
        case Wrote():
            return "document"
        case _:
            return "tool"


def text(event: AnyEvent) -> str:
    """The words of an event: what is searched, quoted and distilled; empty where there are none."""
    match event:
        case Said() | Noted() | Reworded() | Wrote():
            return event.text
        case ToolCalled():
            return re.sub(r"\s+", " ", f"{event.name} {event.arguments}").strip()
        case Ran():
            return event.command
        case _:
            return ""


def with_text(event: AnyEvent, words: str) -> AnyEvent:
    """The same event with other words, as the door makes it after taking secrets out. Events without words stay."""
    match event:
        case Said() | Noted() | Reworded() | Wrote():
            return msgspec.structs.replace(event, text=words)
        case Ran():
            return msgspec.structs.replace(event, command=words)
        case ToolCalled():
            name = " ".join(event.name.split())
            arguments = words.removeprefix(name).strip() if words.startswith(name) else words
            return msgspec.structs.replace(event, name=name if words.startswith(name) else "", arguments=arguments)
        case _:
            return event


class Captured(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag="captured"):
    """One entry of the archive: an event as it was taken, secrets already out.

    `replaces` is the archive seq of the same turn's earlier version, when a host rewrote it (W13).
    """

    document: str
    event: AnyEvent
    live: bool = True
    redacted: tuple[str, ...] = ()
    replaces: int = 0
