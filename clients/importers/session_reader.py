"""The reading of a session's file, from its beginning or from a mark.

Invariants: a mark stands before a line that gave an event, where later lines can't change earlier events, so that
reading on from it gives what reading the whole file gives (W13); a torn last line lies behind the mark.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Literal, NamedTuple

import msgspec

from ...protocol.errors import StoreError
from ...protocol.event import (
    ARGUMENT_LIMIT,
    AnyEvent,
    Interrupted,
    Origin,
    Ran,
    Returned,
    Said,
    SessionEnded,
    SessionStarted,
    ToolCalled,
)
from ...protocol.text_limits import TEXT_LIMIT
from ...protocol.tool_calls import AGENT_NAME, command_of, delegation
from . import json_line, summary
from .command_sources import WINDOW, CommandSources
from .edit_history import EDITS_WINDOW, EditHistory
from .facts import facts
from .json_line import TAKEN, BadLine, ContentBlock, checked_time
from .todo_list import TodoList
from .transcript import AccountBuilder, CapturedSession, Mark, Transcript

Role = Literal["user", "assistant"]
REFLECT_COMMAND = "Tell memd what lasts of this session."
"""Begins the text of memd's own command, which some hosts write down as the user's turn."""

_OF_AGENTS = re.compile(
    r"\s*(?:Another Claude session sent a message:\s*)?"
    r"<(agent-message|teammate-message|cross-session-message|task-notification)\b[^>]*>.*</\1>",
    re.DOTALL,
)
"""A message of another agent that a host delivers as a user's turn; the host may add sentences of its own to it."""

Outcome = Literal["ok", "error", "refused", "unknown"]


class ReadSoFar(msgspec.Struct, frozen=True, kw_only=True):
    """A document at a mark. `is_under_way`: some of its events lie before the mark."""

    session: str
    agent: str = ""
    cwd: str = ""
    first: str = ""
    last: str = ""
    is_under_way: bool = False


class SharedHistory(NamedTuple):
    """What the documents of a reader share."""

    sources: CommandSources
    edits: EditHistory


class Document:
    """The events of one document while its lines are read."""

    def __init__(self, heard: SharedHistory, session: str, agent: str = "", begun: ReadSoFar | None = None) -> None:
        self.session, self.agent = session, agent
        self._sources, self._edits = heard
        self.cwd, self.first, self.last = (begun.cwd, begun.first, begun.last) if begun else ("", "", "")
        self.title = self.agent_type = ""
        self.todos = TodoList()
        self.events: list[AnyEvent] = []
        self._turns: dict[str, int] = {}
        self._open: set[str] = set()
        self._commands: dict[str, str] = {}
        self._is_resumed = begun is not None and begun.is_under_way

    @property
    def begun(self) -> ReadSoFar:
        """The state that a reader needs to read on."""
        return ReadSoFar(
            session=self.session,
            agent=self.agent,
            cwd=self.cwd,
            first=self.first,
            last=self.last,
            is_under_way=self._is_resumed or bool(self.events),
        )

    @property
    def is_settled(self) -> bool:
        """Whether every tool call has a result, and no item of a todo list is open."""
        return not self._open and not self.todos.is_open

    def seen(self, at: str, cwd: str = "") -> None:
        """Note the time and the folder of a line."""
        self.first, self.last = self.first or at, at or self.last
        self.cwd = self.cwd or cwd

    def add(self, event: AnyEvent) -> str:
        """Append an event unless its turn is known; return the line's kind."""
        if event.turn in self._turns:
            return "repeated"
        self._turns[event.turn] = len(self.events)
        if isinstance(event, Ran):
            self._sources.typed(event.command)
        if isinstance(event, ToolCalled) and (said_by := self._sources.called(event, self.cwd)):
            event = msgspec.structs.replace(event, said_by=said_by)
        if isinstance(event, ToolCalled):
            self._edits.called(event)
            event = _agent_first(event)
        if isinstance(event, ToolCalled) and len(event.arguments) > ARGUMENT_LIMIT:
            self._commands[event.turn] = command_of(event.arguments)
            event = msgspec.structs.replace(event, arguments=event.arguments[:ARGUMENT_LIMIT])
        self.events.append(event)
        if isinstance(event, ToolCalled) and event.outcome == "unknown":
            self._open.add(event.turn)
        return TAKEN

    def say(
        self, turn: str, at: str, role: Role, text: str, *, is_between: bool = False, approved: bool = False
    ) -> str:
        """Append a text; return the line's kind. Raises BadLine for a text beyond the limit. A user's turn ends the
        open tool calls unless it `is_between` them. `approved`: by the user."""
        if not text.strip():
            return "empty text"
        if role == "user" and (message := _OF_AGENTS.match(text)):
            return message[1]
        if role == "user" and text.lstrip().startswith(REFLECT_COMMAND):
            return "command of memd"
        _check_length(text)
        if role == "user":
            self._sources.typed(text)
        if role == "user" and not is_between:
            self._open.clear()
            self.todos.pass_turn()
            if turn not in self._turns:
                self._edits.begin((self.session, self.agent), turn, at, self._sources.place)
        return self.add(Said(turn=turn, at=at, role=role, text=text, approved=approved))

    def say_summary(self, turn: str, at: str, text: str) -> str:
        """Append the lasting parts of a compaction summary as the assistant's words; return the line's kind."""
        lessons = summary.lessons(text)
        return self.say(turn, at, "assistant", lessons) if lessons else summary.KIND

    def say_answers(self, call: str, at: str, answers: Iterable[tuple[str, str]]) -> str:
        """Append the questions that a tool call asked, each followed by the user's answer; return the line's kind."""
        kind = "tool result"
        for number, (question, answer) in enumerate(answers, 1):
            if not question.strip() or not answer.strip():
                continue
            _check_length(answer)
            self._sources.typed(answer)
            asked = f"{call}#question-{number}"
            self.say(asked, at, "assistant", question)
            self.add(Said(turn=f"{call}#answer-{number}", at=at, role="user", text=answer, answers=asked))
            kind = TAKEN
        return kind

    def settle(self, call: str, outcome: Outcome) -> str:
        """Set the outcome of a tool call; return the tool's name, "" for an unknown call."""
        self._open.discard(call)
        event = self.call(call)
        if event is None:
            return ""
        self.events[self._turns[call]] = msgspec.structs.replace(event, outcome=outcome)
        self._edits.returned(call, outcome in ("ok", "unknown"), self._sources.place)
        return event.name

    def interrupt(self, turn: str, at: str, by: Literal["user", "error"] = "user") -> str:
        """Append that the work broke off; return the line's kind."""
        return self.add(Interrupted(turn=turn, at=at, by=by))

    def call(self, name: str) -> ToolCalled | None:
        """Return a tool call of this document by its turn."""
        place = self._turns.get(name)
        event = self.events[place] if place is not None else None
        return event if isinstance(event, ToolCalled) else None

    def command(self, call: str) -> str:
        """Return the whole shell command of a tool call, "" where it has none."""
        event = self.call(call)
        return self._commands.get(call) or (command_of(event.arguments) if event else "")

    def take_output(self, call: str, at: str, output: str, limit: int) -> str:
        """Append what the output of a tool call tells (C2), and the output itself, its begin and its end up to the
        limit (C4); return the line's kind."""
        event = self.call(call)
        if event is None:
            return "tool result"
        kinds = [self.add(fact) for fact in facts(event, self.command(call), at, output)]
        if limit and output.strip():
            left_out = len(output) - limit
            if left_out > 0:
                head, tail = output[: limit - limit // 3], output[len(output) - limit // 3 :]
                output = f"{head}\n[{left_out:,} characters left out]\n{tail}"
            kinds.append(self.add(Returned(turn=f"{call}#output", at=at, call=call, text=output)))
        return combined([*kinds, "tool result"])

    def close(self, host: str, is_main: bool, cwd: str = "") -> CapturedSession:
        """Return the session. Start and end come from the session's own file, not from copies of some lines."""
        name = f"{self.session}/{self.agent}" if self.agent else self.session
        origin = Origin(
            host=host,
            session=name,
            cwd=cwd or self.cwd,
            agent=self.agent_type or self.agent,
            live=False,
            title=self.title[:200],
        )
        events = tuple(self.events)
        if is_main:
            start = () if self._is_resumed else (SessionStarted(turn="session-start", at=self.first),)
            settled = self._edits.told((self.session, self.agent))
            ended = SessionEnded(turn="session-end", at=self.last)
            events = (*start, *events, *settled, *self.todos.left(self.first), ended)
        is_whole = is_main and not self._is_resumed
        return CapturedSession(origin=origin, events=events, has_all="between" if is_whole else "")


class SessionReader(ABC):
    """Reads one host's lines in order into documents. `time`: that of the last line which had one."""

    host: str
    lists_empty_main = False
    has_whole_sessions = False
    """Whether a file has many sessions, none of which undoes edits of another one."""
    output_limit = 0
    """Characters of each tool's output that are kept (C4)."""

    def __init__(self, time: str = "", begun: Iterable[ReadSoFar] = ()) -> None:
        self.time, self.sources, self.edits = time, CommandSources(), EditHistory()
        self.heard = SharedHistory(self.sources, self.edits)
        self.documents = {
            (state.session, state.agent): Document(self.heard, state.session, state.agent, state) for state in begun
        }

    @property
    def is_settled(self) -> bool:
        """Whether later lines can't change the events that were read so far."""
        return all(document.is_settled for document in self.documents.values())

    @property
    @abstractmethod
    def main(self) -> Document | None:
        """The document whose own file this is."""

    @abstractmethod
    def state(self) -> bytes:
        """Return the state from which reading can go on here, without any words of the session."""

    @abstractmethod
    def take(self, content: bytes, number: int) -> str:
        """Take line `number`; return its kind of noise, or `TAKEN`. Raises BadLine."""

    def pass_blank_line(self) -> None:
        """Take a blank line, which has a meaning only in a format of text."""
        return

    def open(self, session: str, agent: str = "") -> Document:
        """Return the document of a session, a new one if need be."""
        if (session, agent) not in self.documents:
            heard = SharedHistory(self.sources, EditHistory()) if self.has_whole_sessions else self.heard
            self.documents[session, agent] = Document(heard, session, agent)
        return self.documents[session, agent]

    def take_output(self, call: str, output: object) -> str:
        """Take the output of a tool call, decoded or as JSON; return the line's kind."""
        words, limit = json_line.output_words(output), self.output_limit
        self.sources.returned(call, words)
        return combined([each.take_output(call, self.time, words, limit) for each in self.documents.values()])

    def note_time(self, text: str | None) -> None:
        """Set the time to that of a line; a line without one has that of the line before. Raises BadLine."""
        if text:
            self.time = checked_time(text)

    def check_time(self) -> None:
        """Raise BadLine while no line had a time."""
        if not self.time:
            raise BadLine("it has no timestamp, and no line before it has one")

    def sessions(self, cwd: str) -> tuple[CapturedSession, ...]:
        """Return the sessions with events, the file's own first."""
        main = self.main
        listed = [
            document
            for document in self.documents.values()
            if document.events or (document is main and self.lists_empty_main)
        ]
        listed.sort(key=lambda document: document is not main)
        return tuple(document.close(self.host, document is main, cwd) for document in listed)


class SingleState(msgspec.Struct, frozen=True, kw_only=True):
    """The state of a `SingleReader` at a mark. `by_items` is Codex's alone."""

    time: str = ""
    is_agent: bool = False
    by_items: bool = False
    begun: ReadSoFar


class SingleReader(SessionReader):
    """Reads a file of one session. `is_agent`: an agent began it, so that its prompts are not the user's."""

    def __init__(self, session: str, mark: Mark | None) -> None:
        state = msgspec.json.decode(mark.state, type=SingleState) if mark else None
        super().__init__(state.time if state else "")
        self.is_agent = state.is_agent if state else False
        self.by_items = state.by_items if state else False
        begun = state.begun if state else None
        self.document = Document(self.heard, begun.session if begun else session, begun=begun)
        self.documents["", ""] = self.document

    @property
    def main(self) -> Document:
        """The only document."""
        return self.document

    def state(self) -> bytes:
        """Return the state at this line."""
        state = SingleState(time=self.time, is_agent=self.is_agent, by_items=self.by_items, begun=self.document.begun)
        return msgspec.json.encode(state)


def read_lines(
    path: Path, make: Callable[[], SessionReader], mark: Mark | None, cwd: str, output_limit: int = 0
) -> Transcript:
    """Read a file of lines from `mark` on. `make`: makes a reader that goes on from there; `cwd` replaces the folder
    that the file names; `output_limit`: characters of each tool's output that are kept. Raises StoreError."""
    reader = make()
    reader.output_limit, reader.sources.folder = output_limit, cwd
    account = AccountBuilder(mark.lines if mark else 0)
    try:
        with path.open("rb") as file:
            if mark and (before := mark.offset):
                reader.sources.earlier = lambda: _heard(path, make(), before, cwd, WINDOW).sources.texts
                reader.edits.earlier = lambda: _heard(path, make(), before, cwd, EDITS_WINDOW).edits
            for content, begin, is_last in json_line.lines(file, mark.offset if mark else 0, json_line.LINE_LIMIT):
                here = None
                if reader.is_settled:
                    here = Mark(offset=begin, lines=account.number, state=reader.state().decode())
                reader.sources.place = begin
                if take_line(content, is_last, reader, account) and here:
                    mark = here
    except OSError as error:
        raise unreadable(path, error) from error
    return Transcript(path=str(path), sessions=reader.sessions(cwd), account=account.close(), mark=mark)


def read_into(reader: SessionReader, path: Path) -> None:
    """Read a whole file with a reader; what can't be read is left out."""
    account = AccountBuilder()
    with suppress(OSError), path.open("rb") as file:
        for content, place, is_last in json_line.lines(file, 0, json_line.LINE_LIMIT):
            reader.sources.place = place
            take_line(content, is_last, reader, account)


def _heard(path: Path, reader: SessionReader, end: int, cwd: str, window: int) -> SessionReader:
    """Return a reader that read the window before an offset. Raises OSError."""
    reader.sources.folder = cwd
    account, begin = AccountBuilder(), max(0, end - window)
    with path.open("rb") as file:
        for content, place, _ in json_line.lines(file, begin, json_line.LINE_LIMIT):
            if place >= end:
                break
            if place > begin or not begin:  # the first line of a window may be a part of one
                reader.sources.place = place
                take_line(content, False, reader, account)
    return reader


def take_line(content: bytes | None, is_last: bool, reader: SessionReader, account: AccountBuilder) -> bool:
    """Read one line, None for one over the limit, and account for it. Return whether it gave an event."""
    if content is None:
        account.refuse(f"longer than {json_line.LINE_LIMIT:,} bytes")
    elif not content.strip():
        reader.pass_blank_line()
        account.drop("blank line")
    else:
        try:
            kind = reader.take(content, account.number + 1)
        except BadLine as error:
            torn = "the file ends within this line (is the session still running?): " if is_last else ""
            account.refuse(f"{torn}{error}")
            return False
        if kind == TAKEN:
            account.take()
            return True
        account.drop(kind)
    return False


def _agent_first(call: ToolCalled) -> ToolCalled:
    """Return a call that gives a task to another agent with its name first, which the cut of the arguments spares."""
    named = AGENT_NAME.search(call.arguments, 1) if delegation(call) else None
    if named is None or named.end() < ARGUMENT_LIMIT // 2:
        return call
    rest = call.arguments.replace(f"{named[0]},", "", 1).replace(f",{named[0]}", "", 1)
    return msgspec.structs.replace(call, arguments=f"{{{named[0]},{rest.removeprefix('{')}")


def _check_length(text: str) -> None:
    """Raise BadLine for a text beyond the limit."""
    if len(text) > TEXT_LIMIT:
        raise BadLine(f"a text of {len(text):,} characters; at most {TEXT_LIMIT:,} are taken")


def unreadable(path: Path, error: OSError) -> StoreError:
    """Return the error of a file that can't be read."""
    return StoreError(f"{path} can't be read: {error.strerror}", hint="check its mode and owner")


def named_blocks(content: str | list[ContentBlock] | None, turn: str) -> Iterator[tuple[ContentBlock, str]]:
    """Yield a message's blocks, each with a name: the first text has that of the turn, the second `turn#2`."""
    texts = 0
    for block in [ContentBlock("text", content)] if isinstance(content, str) else content or ():
        texts += block.type == "text"
        yield block, turn if texts < 2 else f"{turn}#{texts}"


def combined(kinds: list[str]) -> str:
    """Return the kind of a line whose parts have these kinds."""
    return TAKEN if TAKEN in kinds else next(iter(kinds), "empty text")
