"""Markdown files (CLAUDE.md, AGENTS.md, notes), as what a document says: each list item and each paragraph a turn.

Comes in: a file, and what an earlier import made of it. Goes out: a `Transcript` with one session, `markdown:<path>`.
Invariants: every line is accounted for; the headings that lead to a turn, and the line that announces its list, stand
above it in its text; a turn is named by a keyed hash of that text, so that a paragraph that moves within its section
stays what it was, a changed one is another, and the name tells nobody what was forgotten (T10); a document is never
the user's word (W5). The session says that it is all there is, so that what vanished from the file is taken back (W13).
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from datetime import datetime
from hashlib import blake2b
from pathlib import Path

import msgspec

from ...protocol.errors import StoreError
from ...protocol.event import AnyEvent, Origin, Wrote
from .transcript import AccountBuilder, CapturedSession, Transcript

HOST = "markdown"
FILE_LIMIT = 16 * 1024 * 1024
PATH_LIMIT = 400
"""Characters of a path that is a document's name; of a longer one it is a hash."""

_HEADING = re.compile(r" {0,3}(#{1,6})[ \t]+(.*?)[ \t#]*$")
_UNDERLINE = re.compile(r" {0,3}(=+|-{2,})[ \t]*$")
_ITEM = re.compile(r"([ \t]*)(?:[-*+]|\d{1,9}[.)])[ \t]+\S")
_FENCE = re.compile(r" {0,3}(```+|~~~+)")
_RULE = re.compile(r" {0,3}(?:(?:-[ \t]*){3,}|(?:\*[ \t]*){3,}|(?:_[ \t]*){3,})$")
_INCLUDE = re.compile(r"@\S+$")
_LINK = re.compile(r" {0,3}\[[^\]]+\]:[ \t]+\S+")


class Part(msgspec.Struct, frozen=True):
    """One item or paragraph: the headings above it, outermost first, the line that announces it, its own words."""

    headings: tuple[str, ...]
    lead: str
    words: str

    @property
    def text(self) -> str:
        """What is said, below what leads to it; a title that stands above everything is left to the file's name."""
        inner = self.headings[1:] if len(self.headings) > 1 else self.headings
        above = [f"{'#' * level} {heading}" for level, heading in enumerate(inner, 1)]
        return "\n".join((*above, *((self.lead,) if self.lead else ()), self.words))


def read(path: Path, key: bytes, times: dict[str, str]) -> Transcript:
    """What a file says. `times`: when each turn that an earlier import met was first met; such a time is kept.

    Raises StoreError if it can't be read.
    """
    place = path.resolve()
    ledger = AccountBuilder()
    title, parts = "", list[Part]()
    try:
        found = place.stat()
        at = datetime.fromtimestamp(int(found.st_mtime)).astimezone().isoformat()
        content = place.read_bytes() if found.st_size <= FILE_LIMIT else None
    except OSError as error:
        raise StoreError(f"{path} can't be read: {error.strerror}", hint="see its mode and owner") from error
    text = _decoded(content, ledger)
    if text:
        title, parts = _Sections(ledger).read(text)
    events = tuple(_events(place, parts, key, at, times))
    name = str(place) if len(str(place)) <= PATH_LIMIT else blake2b(bytes(place), digest_size=16).hexdigest()
    origin = Origin(host=HOST, session=name, cwd=_cwd(place), live=False, title=(title or place.name)[:200])
    is_whole = text is not None
    sessions = (CapturedSession(origin=origin, events=events, is_all=True),) if is_whole else ()
    return Transcript(path=str(path), sessions=sessions, account=ledger.close())


def _decoded(content: bytes | None, ledger: AccountBuilder) -> str | None:
    if content is None:
        ledger.refuse(f"a file of more than {FILE_LIMIT:,} bytes: split it")
        return None
    try:
        return content.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        ledger.refuse(f"not valid UTF-8: {error.reason}; save it as UTF-8")
        return None


def _cwd(place: Path) -> str:
    """The folder that decides the project; none for what an agent reads wherever it works: that goes with the user."""
    home = Path(os.path.expanduser("~"))
    folder = place.parent
    if folder.is_relative_to(home) and (folder == home or folder.relative_to(home).parts[0].startswith(".")):
        return ""
    return str(folder)


def _events(place: Path, parts: list[Part], key: bytes, at: str, times: dict[str, str]) -> Iterator[AnyEvent]:
    seen: dict[str, int] = {}
    for part in parts:
        name = blake2b(part.text.encode(), key=key, digest_size=10).hexdigest()
        seen[name] = seen.get(name, 0) + 1
        turn = name if seen[name] == 1 else f"{name}-{seen[name]}"
        section = " > ".join(part.headings)
        where = f"{place}#{section}" if section else str(place)
        yield Wrote(turn=turn, at=times.get(turn) or at, text=part.text, path=where[:1000])


class _Sections:
    """Reads a file's lines, each into the account and most into a part."""

    def __init__(self, ledger: AccountBuilder) -> None:
        self._ledger = ledger
        self._headings: list[tuple[int, str]] = []
        self._parts: list[Part] = []
        self._open: list[str] = []
        self._lead, self._is_led = "", False
        self._gap = False
        self._title = ""
        self._fence = self._until = ""

    def read(self, text: str) -> tuple[str, list[Part]]:
        """The document's title, and its parts in order."""
        rows = text.split("\n")
        if rows[-1] == "":
            rows.pop()
        for row in rows:
            if kind := self._row(row, is_first=self._ledger.number == 0):
                self._ledger.drop(kind)
            else:
                self._ledger.take()
        self._close()
        self._leave_lead()
        return self._title, self._parts

    def _row(self, row: str, is_first: bool) -> str:
        """The kind of noise that a line is, "" if it belongs to a part."""
        words = row.strip()
        if kind := self._inside(row, words, is_first):
            return kind
        if not words:
            if not self._is_item:
                self._close()
            self._gap = True
            return "blank line"
        if heading := _HEADING.match(row):
            return self._head(len(heading[1]), heading[2])
        if (under := _UNDERLINE.match(row)) and len(self._open) == 1 and not self._is_item:
            return self._head(1 if under[1][0] == "=" else 2, self._open.pop().strip(), taken=True)
        if words.startswith("|"):
            return self._aside("table")
        if _RULE.match(row):
            return self._aside("rule")
        if _INCLUDE.match(words):
            return self._aside("include")
        if _LINK.match(row):
            return self._aside("link target")
        self._say(row)
        return ""

    def _inside(self, row: str, words: str, is_first: bool) -> str:
        """What a line is inside of a fence, a comment or front matter, or where it opens one."""
        if self._until:
            kind = "front matter" if self._until == "---" else "comment"
            if self._until in words:
                self._until = ""
            return kind
        fence = _FENCE.match(row)
        if self._fence:
            if fence and fence[1].startswith(self._fence) and words == fence[1]:
                self._fence = ""
            return "code"
        if fence:
            if not self._is_item:
                self._close()
            self._fence = fence[1]
            return "code"
        if is_first and words == "---":
            self._until = "---"
            return "front matter"
        if words.startswith("<!--"):
            self._until = "" if "-->" in words else "-->"
            return "comment"
        return ""

    def _aside(self, kind: str) -> str:
        self._close()
        return kind

    @property
    def _is_item(self) -> bool:
        return bool(self._open) and _ITEM.match(self._open[0]) is not None

    def _head(self, level: int, words: str, taken: bool = False) -> str:
        self._close()
        self._leave_lead()
        self._headings = [each for each in self._headings if each[0] < level]
        self._headings.append((level, words))
        self._title = self._title or words
        return "" if taken else "heading"

    def _say(self, row: str) -> None:
        """Goes on with what is open, or opens the next part."""
        item = _ITEM.match(row)
        first = _ITEM.match(self._open[0]) if self._open else None
        indent = len(row) - len(row.lstrip())
        deeper = first is not None and indent > len(first[1])
        if self._open and not deeper and (item or (first and self._gap)):
            self._close()
        if not item and not self._open:
            self._leave_lead()
        if self._open and self._gap:
            self._open.append("")
        self._gap = False
        self._open.append(row)

    def _close(self) -> None:
        """Ends the part that is open; one that only announces what follows becomes its lead."""
        rows, self._open = self._open, []
        words = "\n".join(rows).strip()
        if not words:
            return
        if not _ITEM.match(rows[0]) and words.endswith(":"):
            self._leave_lead()
            self._lead = words
            return
        self._is_led = True
        self._parts.append(Part(self._place, self._lead, words))

    def _leave_lead(self) -> None:
        """What announced nothing says something by itself."""
        if self._lead and not self._is_led:
            self._parts.append(Part(self._place, "", self._lead))
        self._lead, self._is_led = "", False

    @property
    def _place(self) -> tuple[str, ...]:
        return tuple(heading for _, heading in self._headings)
