"""How many of the lines that an agent wrote in a turn are gone soon after (O2).

A line that a later one of the next three turns takes away is lost, unless that turn writes the same line elsewhere,
or one with all its words in its place.
Invariants: no text leaves the reader, only numbers; turns further back in the file than the window are closed, and a
reader that goes on from a mark reads the window before it again, so that it tells what a reader of the whole file tells
(W13).
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Any, NamedTuple, cast

import msgspec

from ...protocol.event import Settled, ToolCalled
from ...protocol.tool_calls import is_edit
from .json_line import TEXT_WINDOW

EDITS_WINDOW = 4 * 1024 * 1024
"""Bytes of the file, from the begin of a turn, in which its lines may be lost."""

FOLLOWING = 3
"""Turns of the user in which a turn's lines may be lost."""

_PATHS = ("file_path", "path", "notebook_path", "filePath", "absolute_path")
_BEFORE = ("old_string", "oldText", "old_str", "oldString")
_AFTER = ("new_string", "newText", "new_str", "newString")
_WHOLE = ("content", "file_text")
_PATCH = "*** Begin Patch"
_FILE = re.compile(r"\*\*\* (?:Update|Add|Delete) File: (.+)")
_WORD = re.compile(r"\w+")
_COUNTED = re.compile(r"\w.*\w.*\w", re.DOTALL)
"""Lines that say something, unlike brackets."""


class FileChange(NamedTuple):
    """What a call takes from a file and puts into it, as lines. `is_whole`: it writes the whole file anew."""

    path: str
    before: Sequence[str]
    after: Sequence[str]
    is_whole: bool = False


class EditedTurn:
    """A turn of the user, and the lines that the agent wrote in it. `document`: session and agent; `place`: of its line
    in the file; `taken`: the lines of earlier turns that it took away."""

    def __init__(self, document: tuple[str, str], turn: str, at: str, place: int) -> None:
        self.document, self.turn, self.at, self.place = document, turn, at, place
        self.lines: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self.written: Counter[str] = Counter()
        self.taken: list[tuple[EditedTurn, str]] = []
        self.total = self.followed = 0
        self.has_edits = False

    def write(self, path: str, lines: Counter[str]) -> None:
        """Note lines that the agent wrote."""
        self.has_edits = True
        self.lines[path] += lines
        self.written += lines
        self.total += lines.total()

    def take_back(self, path: str, line: str) -> None:
        """Note that the agent removed one of its lines in the same turn."""
        self.lines[path][line] -= 1
        self.written[line] -= 1
        self.total -= 1


class EditHistory:
    """The edits in one file so far. `earlier`: returns the history before the mark from which the reader goes on."""

    def __init__(self) -> None:
        self.earlier: Callable[[], EditHistory] | None = None
        self._turns: list[EditedTurn] = []
        self._open: deque[EditedTurn] = deque()
        self._called: list[EditedTurn] = []
        self.done: list[FileChange] | None = None
        """Set by a reader that only wants the changes, in order."""
        self._waiting: dict[str, list[FileChange]] = {}

    def begin(self, document: tuple[str, str], turn: str, at: str, place: int) -> None:
        """Take a turn of the user."""
        self._close_before(place)
        if len(self._open) > FOLLOWING:
            self._open.popleft()
        self._called = [call for call in self._called if call.followed < FOLLOWING]
        for open_turn in (*self._open, *self._called):
            open_turn.followed += 1
        self._open.append(EditedTurn(document, turn, at, place))
        self._turns.append(self._open[-1])

    def called(self, call: ToolCalled) -> None:
        """Take a call with its whole arguments."""
        if found := changes(call.name, call.arguments):
            self._waiting[call.turn] = found

    def returned(self, call: str, is_done: bool, place: int) -> None:
        """Take the outcome of a call."""
        found = self._waiting.pop(call, ())
        if found and is_done and self.done is not None:
            self.done += found
        elif found and is_done:
            self._close_before(place)
            for change in found if self._open else ():
                self._apply(change, self._open[-1])

    def adopt(self, document: tuple[str, str], call: str, at: str, place: int, changes: Iterable[FileChange]) -> None:
        """Take the changes of an agent that a call gave a task to: lines of its own, which the caller may take away."""
        self._close_before(place)
        turn = EditedTurn(document, call, at, place)
        for change in changes:
            self._apply(change, turn)
        if turn.has_edits:
            self._called.append(turn)
            self._turns.append(turn)

    def told(self, document: tuple[str, str]) -> Iterator[Settled]:
        """Yield what became of the lines of each turn of a document."""
        lost: Counter[EditedTurn] = Counter()
        for turn in self._turns:
            written = turn.written.copy()
            for owner, line in turn.taken:
                if written[line] > 0:
                    written[line] -= 1  # it stands elsewhere now
                else:
                    lost[owner] += 1
        for turn in self._turns:
            if turn.has_edits and turn.document == document:
                yield Settled(
                    turn=f"{turn.turn}#settled",
                    at=turn.at,
                    of=turn.turn,
                    lines=turn.total,
                    lost=min(lost[turn], turn.total),
                    followed=turn.followed,
                )

    def _close_before(self, place: int) -> None:
        """Close the turns that began before the window."""
        if self.earlier:
            before, self.earlier = self.earlier(), None
            self._turns, self._open, self._called = before._turns, before._open, before._called
        while self._open and self._open[0].place <= place - EDITS_WINDOW:
            self._open.popleft()
        self._called = [call for call in self._called if call.place > place - EDITS_WINDOW]

    def _apply(self, change: FileChange, now: EditedTurn) -> None:
        path, earlier = change.path, [*self._open, *self._called]
        owners = [now, *sorted((turn for turn in earlier if turn is not now), key=lambda turn: -turn.place)]
        before, after = Counter(change.before), Counter(change.after)
        if change.is_whole:
            for turn in owners:
                before += turn.lines[path]
        fresh = [frozenset(_WORD.findall(line)) for line in after - before]
        for line in (before - after).elements():
            words = frozenset(_WORD.findall(line))
            if any(words <= longer for longer in fresh):
                continue  # the line only grew
            owner = next((turn for turn in owners if turn.lines[path][line] > 0), None)
            if owner is now:
                now.take_back(path, line)
            elif owner is not None:
                owner.lines[path][line] -= 1
                now.taken.append((owner, line))
        now.write(path, after - before)


def changes(name: str, arguments: str) -> list[FileChange]:
    """Return what a call does to files, from its whole arguments; none for another call."""
    is_patch = _PATCH in arguments and "apply_patch" in f"{name} {arguments}"
    if not is_patch and not is_edit(name):
        return []
    value: Any = arguments
    with suppress(msgspec.MsgspecError):
        value = msgspec.json.decode(arguments)
    if is_patch:
        return [change for text in _texts(value) if _PATCH in text for change in _patched(text)]
    return list(_edited(cast("dict[str, Any]", value))) if isinstance(value, dict) else []


def _texts(value: Any) -> Iterator[str]:
    """Yield the texts in decoded JSON."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        parts = cast("dict[str, Any] | list[Any]", value)
        for part in parts.values() if isinstance(parts, dict) else parts:
            yield from _texts(part)


def _edited(fields: dict[str, Any]) -> Iterator[FileChange]:
    path = _text(fields, _PATHS)
    edits: Any = fields.get("edits")
    for edit in cast("list[Any]", edits) if isinstance(edits, list) else [fields]:
        if not isinstance(edit, dict):
            continue
        named = cast("dict[str, Any]", edit)
        before, after, whole = (_text(named, names) for names in (_BEFORE, _AFTER, _WHOLE))
        if before or after:
            yield FileChange(path, _lines(before), _lines(after))
        elif whole:
            yield FileChange(path, (), _lines(whole), is_whole=len(whole) < TEXT_WINDOW)


def _text(fields: dict[str, Any], names: Sequence[str]) -> str:
    return next((value for name in names if isinstance(value := fields.get(name), str)), "")


def _patched(text: str) -> Iterator[FileChange]:
    """Yield the parts of a patch, whose file each `*** Update File` names."""
    lines = text[text.index(_PATCH) :].splitlines()
    path, before, after = "", list[str](), list[str]()
    for line in lines:
        if named := _FILE.match(line):
            yield FileChange(path, before, after)
            path, before, after = named[1].strip(), [], []
        elif line.startswith("-"):
            before += _lines(line[1:])
        elif line.startswith("+"):
            after += _lines(line[1:])
    yield FileChange(path, before, after)


def _lines(text: str) -> list[str]:
    return [line for line in map(str.strip, text.splitlines()) if _COUNTED.search(line)]
