"""The reading of sessions that a program wrote as text for people, in which marked lines begin the messages.

Invariants: a message is named by its role and its number in the session, since such files have no ids; a message ends
where the next marked line begins, and a mark stands only where no message is open.
"""

from __future__ import annotations

from hashlib import blake2b
from pathlib import Path

import msgspec

from ...protocol.text_limits import TEXT_LIMIT
from .json_line import TAKEN, BadLine
from .session_reader import Document, ReadSoFar, Role, SessionReader
from .transcript import CapturedSession, Mark


class TextState(msgspec.Struct, frozen=True, kw_only=True):
    """A reader's state at a mark. `numbers`: how many messages of each kind the session has."""

    time: str = ""
    begun: ReadSoFar | None = None
    numbers: dict[str, int] = {}


class TextReader(SessionReader):
    """Reads lines into messages. `document`: of the session to which the next line belongs."""

    has_whole_sessions = True

    def __init__(self, mark: Mark | None) -> None:
        state = msgspec.json.decode(mark.state, type=TextState) if mark else TextState()
        super().__init__(state.time, [state.begun] if state.begun else [])
        self.document: Document | None = next(iter(self.documents.values()), None)
        self._numbers = dict(state.numbers)
        self._numbers_of: dict[str, dict[str, int]] = {}
        self._role: Role | None = None
        self._lines: list[str] = []
        self._size = 0
        self._turn = ""

    @property
    def main(self) -> Document | None:
        """The session of the last line."""
        return self.document

    @property
    def is_settled(self) -> bool:
        """Whether no message is open."""
        return self._role is None and self.document is not None and self.document.is_settled

    def state(self) -> bytes:
        """Return the state at this line, without any words of the session."""
        begun = self.document.begun if self.document else None
        return msgspec.json.encode(TextState(time=self.time, begun=begun, numbers=self._numbers))

    def sessions(self, cwd: str) -> tuple[CapturedSession, ...]:
        """Return the sessions with events, each with its start and its end."""
        self.end_message()
        return tuple(document.close(self.host, True, cwd) for document in self.documents.values() if document.events)

    def enter(self, session: str) -> Document:
        """Go on with the lines of a session, a new one if need be."""
        self.end_message()
        if self.document:
            self._numbers_of[self.document.session] = self._numbers
        self._numbers = self._numbers_of.get(session, {})
        self.document = self.open(session)
        return self.document

    def turn(self, kind: str) -> str:
        """Return the name of the next message of a kind."""
        self._numbers[kind] = self._numbers.get(kind, 0) + 1
        return f"{kind}-{self._numbers[kind]}"

    def begin_message(self, role: Role) -> None:
        """Begin a message; its lines follow."""
        self.end_message()
        self._role, self._turn = role, self.turn(role)

    def add_line(self, line: str) -> str:
        """Add a line to the open message; return the line's kind. Raises BadLine for a text beyond the limit."""
        self._size += len(line) + 1
        if self._size > TEXT_LIMIT:
            was_over = self._size - len(line) - 1 > TEXT_LIMIT
            self._lines.clear()
            if was_over:
                return "rest of a text that is too long"
            raise BadLine(f"a text of more than {TEXT_LIMIT:,} characters")
        self._lines.append(line)
        return TAKEN

    def pass_blank_line(self) -> None:
        """Keep a blank line within the open message."""
        if self._lines:
            self._lines.append("")

    def end_message(self) -> None:
        """Take the open message, if there is one."""
        role, text = self._role, self.cleaned("\n".join(self._lines).strip("\n")).strip("\n")
        self._role, self._size, self._lines = None, 0, []
        if role and text and self.document:
            self.time = self.time_of(text) if role == "user" else self.time
            self.document.seen(self.time)
            self.document.say(self._turn, self.time, role, text)

    @property
    def role(self) -> Role | None:
        """The role of the open message, None if no message is open."""
        return self._role

    def cleaned(self, text: str) -> str:
        """Return a message's text as it is kept."""
        return text

    def time_of(self, text: str) -> str:
        """Return the time of a user's message."""
        return self.time


def decoded(content: bytes) -> str:
    """Return a line without its end. Raises BadLine."""
    try:
        return content.decode().rstrip("\r\n")
    except UnicodeDecodeError as error:
        raise BadLine(f"not valid UTF-8: {error.reason}") from error


def name_of(path: Path) -> str:
    """Return a name for a file that has none of its own."""
    return blake2b(bytes(path.resolve()), digest_size=8).hexdigest()
