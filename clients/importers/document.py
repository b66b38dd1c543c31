"""A session while its lines are read, and the reading of a file of lines, from its beginning or from a mark.

Comes in: a file, a reader that knows its form, perhaps the mark of an earlier import. Goes out: the account of the
lines, and the next mark. Invariants: a mark stands before a line that gave an event, where nothing said before can
change any more, so that reading on from it gives what reading the whole file gives (W13); the torn last line of a
session that still runs lies behind it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal, Protocol

import msgspec

from ...protocol import wire
from ...protocol.errors import StoreError
from ...protocol.event import AnyEvent, Origin, Said, SessionEnded, SessionStarted, ToolCalled
from . import json_line
from .json_line import TAKEN, BadLine
from .transcript import Account, Ledger, Mark, Session

Role = Literal["user", "assistant"]
Outcome = Literal["ok", "error", "unknown"]


class Reader(Protocol):
    """What knows one form of lines."""

    @property
    def is_settled(self) -> bool:
        """Whether nothing that was read so far can change the events of before."""
        ...

    def state(self) -> bytes:
        """What it has to know in order to read on from here, without any words of the session."""
        ...

    def take(self, content: bytes, number: int) -> str:
        """Takes line `number`: the kind of noise, or `TAKEN`. Raises BadLine."""
        ...


def read_lines(path: Path, reader: Reader, mark: Mark | None) -> tuple[Account, Mark | None]:
    """Hands a file's lines to a reader, from `mark` on. Raises StoreError if the file can't be read."""
    ledger = Ledger(mark.lines if mark else 0)
    try:
        with path.open("rb") as file:
            for content, begin, is_last in json_line.lines(file, mark.offset if mark else 0, json_line.LINE_LIMIT):
                here = None
                if reader.is_settled:
                    here = Mark(offset=begin, lines=ledger.number, state=reader.state().decode())
                if _take(content, is_last, reader, ledger) and here:
                    mark = here
    except OSError as error:
        raise StoreError(f"{path} can't be read: {error.strerror}", hint="see its mode and owner") from error
    return ledger.close(), mark


def _take(content: bytes | None, is_last: bool, reader: Reader, ledger: Ledger) -> bool:
    """One line into the account; whether it gave something."""
    if content is None:
        ledger.refuse(f"longer than {json_line.LINE_LIMIT:,} bytes")
    elif not content.strip():
        ledger.drop("blank line")
    else:
        try:
            kind = reader.take(content, ledger.number + 1)
        except BadLine as error:
            torn = "the file ends within this line (is the session still running?): " if is_last else ""
            ledger.refuse(f"{torn}{error}")
            return False
        if kind == TAKEN:
            ledger.take()
            return True
        ledger.drop(kind)
    return False


class Begun(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a document at a mark. `is_under_way`: something of it lies before."""

    session: str
    agent: str = ""
    cwd: str = ""
    first: str = ""
    last: str = ""
    is_under_way: bool = False


class Document:
    """The events of one document. `settle` tells how a tool call ended."""

    def __init__(self, session: str, agent: str = "", begun: Begun | None = None) -> None:
        self.session, self.agent = session, agent
        self.cwd, self.first, self.last = (begun.cwd, begun.first, begun.last) if begun else ("", "", "")
        self.title = ""
        self.events: list[AnyEvent] = []
        self._turns: dict[str, int] = {}
        self._open: set[str] = set()
        self._is_resumed = begun is not None and begun.is_under_way

    @property
    def begun(self) -> Begun:
        """What reading on has to know of it."""
        return Begun(
            session=self.session,
            agent=self.agent,
            cwd=self.cwd,
            first=self.first,
            last=self.last,
            is_under_way=self._is_resumed or bool(self.events),
        )

    @property
    def is_settled(self) -> bool:
        """Whether every tool call is answered."""
        return not self._open

    def seen(self, at: str, cwd: str = "") -> None:
        """Notes what any line tells of its session."""
        self.first, self.last = self.first or at, at or self.last
        self.cwd = self.cwd or cwd

    def add(self, event: AnyEvent) -> str:
        """Appends an event; `repeated` if its turn is there already."""
        if event.turn in self._turns:
            return "repeated"
        self._turns[event.turn] = len(self.events)
        self.events.append(event)
        if isinstance(event, ToolCalled) and event.outcome == "unknown":
            self._open.add(event.turn)
        return TAKEN

    def say(self, turn: str, at: str, role: Role, text: str, *, is_between: bool = False) -> str:
        """Appends what was said, if it is anything; a user's turn ends the calls of before, unless it came in between.

        Raises BadLine for a text beyond the limit.
        """
        if not text.strip():
            return "empty text"
        if len(text) > wire.TEXT_LIMIT:
            raise BadLine(f"a text of {len(text):,} characters; at most {wire.TEXT_LIMIT:,} are taken")
        if role == "user" and not is_between:
            self._open.clear()
        return self.add(Said(turn=turn, at=at, role=role, text=text))

    def settle(self, call: str, outcome: Outcome) -> None:
        """Notes how a tool call ended."""
        self._open.discard(call)
        place = self._turns.get(call)
        if place is not None and isinstance(self.events[place], ToolCalled):
            self.events[place] = msgspec.structs.replace(self.events[place], outcome=outcome)

    def close(self, host: str, is_main: bool, cwd: str = "") -> Session:
        """The session; its start and end are told by the file that is its own, not by copies of some lines."""
        name = f"{self.session}/{self.agent}" if self.agent else self.session
        origin = Origin(
            host=host, session=name, cwd=cwd or self.cwd, agent=self.agent, live=False, title=self.title[:200]
        )
        events = tuple(self.events)
        if is_main:
            start = () if self._is_resumed else (SessionStarted(turn="session-start", at=self.first),)
            events = (*start, *events, SessionEnded(turn="session-end", at=self.last))
        return Session(origin=origin, events=events)
