"""Markdown files (CLAUDE.md, AGENTS.md, notes) as one session each; each list item and each paragraph is a turn.

A turn's text begins with the headings above it and the line that announces its list. A keyed hash of the text names the
turn: it reveals no words (T10), and a paragraph that moves within its section keeps its name. The session is complete,
so that a turn whose paragraph was deleted is withdrawn (W13).
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from hashlib import blake2b
from itertools import groupby, zip_longest
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from ...protocol.errors import StoreError
from ...protocol.event import AnyEvent, Origin, Wrote
from .transcript import AccountBuilder, CapturedSession, Transcript, changed_at

if TYPE_CHECKING:
    from markdown_it.token import Token

HOST = "markdown"
FILE_LIMIT = 16 * 1024 * 1024
PATH_LIMIT = 400  # characters of a path that is a document's name; of a longer one it is a hash
NESTING = 100  # lists and quotes within each other that are read
_INCLUDE = re.compile(r"@\S+$")
_TEXT = frozenset({"paragraph_open", "blockquote_open", "html_block"})
# the kind of noise that the rows of a block are
_KINDS = {"heading_open": "heading", "fence": "code", "code_block": "code", "hr": "rule"}


class MarkdownPart(msgspec.Struct, frozen=True):
    """One item or paragraph: the headings above it, outermost first, the line that announces it, its own words."""

    headings: tuple[str, ...]
    lead: str
    words: str

    @property
    def text(self) -> str:
        """The words below their headings and lead, without a title above everything: that is the session's."""
        inner = self.headings[1:] if len(self.headings) > 1 else self.headings
        above = [f"{'#' * level} {heading}" for level, heading in enumerate(inner, 1)]
        return "\n".join((*above, *((self.lead,) if self.lead else ()), self.words))


def read(path: Path, key: bytes, times: dict[str, str]) -> Transcript:
    """Read a file. `times`: when each turn was first read by an earlier import, which is kept. Raises StoreError."""
    place = path.resolve()
    ledger = AccountBuilder()
    title, parts = "", list[MarkdownPart]()
    try:
        status = place.stat()
        at = changed_at(status).isoformat()
        content = place.read_bytes() if status.st_size <= FILE_LIMIT else None
    except OSError as error:
        raise StoreError(f"{path} can't be read: {error.strerror}", hint="see its mode and owner") from error
    text = _decoded(content, ledger)
    if text:
        title, parts = _Sections(ledger).read(text)
    events = tuple(_events(place, parts, key, at, times))
    name = str(place) if len(str(place)) <= PATH_LIMIT else blake2b(bytes(place), digest_size=16).hexdigest()
    origin = Origin(host=HOST, session=name, cwd=_cwd(place), live=False, title=(title or place.name)[:200])
    sessions = () if text is None else (CapturedSession(origin=origin, events=events, is_all=True),)
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


def _events(place: Path, parts: list[MarkdownPart], key: bytes, at: str, times: dict[str, str]) -> Iterator[AnyEvent]:
    seen: dict[str, int] = {}
    for part in parts:
        name = blake2b(part.text.encode(), key=key, digest_size=10).hexdigest()
        seen[name] = seen.get(name, 0) + 1
        turn = name if seen[name] == 1 else f"{name}-{seen[name]}"
        section = " > ".join(part.headings)
        where = f"{place}#{section}" if section else str(place)
        yield Wrote(turn=turn, at=times.get(turn) or at, text=part.text, path=where[:1000])


class _Sections:
    """Divides a file's rows into parts and noise, and accounts for each row."""

    def __init__(self, ledger: AccountBuilder) -> None:
        self._ledger = ledger
        self._rows: list[str] = []
        self._noise: dict[int, str] = {}
        self._headings: list[tuple[int, str]] = []
        self._parts: list[MarkdownPart] = []
        self._lead, self._is_led = "", False
        self._title = ""

    def read(self, text: str) -> tuple[str, list[MarkdownPart]]:
        """The document's title, and its parts in order."""
        self._rows = text.removesuffix("\n").split("\n")
        front = _front_matter(self._rows)
        tokens = _blocks("\n".join([*[""] * front, *self._rows[front:]]))
        self._noise = _noise(self._rows, tokens) | dict.fromkeys(range(front), "front matter")
        for token, following in zip_longest(tokens, tokens[1:]):
            self._take(token, following.content if following else "")
        self._leave_lead()
        for at in range(len(self._rows)):
            if kind := self._noise.get(at):
                self._ledger.drop(kind)
            else:
                self._ledger.take()
        return self._title, self._parts

    def _take(self, token: Token, following: str) -> None:
        """Take a heading, or parts: a block of the document, or an item of one of its lists."""
        rows = range(*(token.map or (0, 0)))
        if token.type == "heading_open" and token.level == 0:
            self._leave_lead()
            self._head(int(token.tag[1:]), " ".join(following.split("\n")))
        elif token.type == "list_item_open" and token.level == 1:
            self._add(self._words(rows))
        elif token.type in _TEXT and token.level == 0:
            for is_noise, run in groupby(rows, lambda at: self._noise.get(at, "blank line") != "blank line"):
                if not is_noise:
                    self._say(self._words(run))

    def _say(self, words: str) -> None:
        """Take a paragraph: one that ends with a colon announces what follows."""
        self._leave_lead()
        if words.endswith(":"):
            self._lead = words
        else:
            self._add(words)

    def _head(self, level: int, words: str) -> None:
        self._headings = [heading for heading in self._headings if heading[0] < level]
        self._headings.append((level, words))
        self._title = self._title or words

    def _words(self, numbers: Iterable[int]) -> str:
        """Some rows without noise, and with one blank row for several."""
        rows: list[str] = []
        for at in numbers:
            kind = self._noise.get(at)
            if kind is None or (kind == "blank line" and rows and rows[-1]):
                rows.append("" if kind else self._rows[at])
        return "\n".join(rows).strip()

    def _add(self, words: str) -> None:
        if words:
            self._is_led = True
            self._parts.append(MarkdownPart(self._section, self._lead, words))

    def _leave_lead(self) -> None:
        """End the list that a paragraph announced; one that announced nothing is a part itself."""
        if self._lead and not self._is_led:
            self._parts.append(MarkdownPart(self._section, "", self._lead))
        self._lead, self._is_led = "", False

    @property
    def _section(self) -> tuple[str, ...]:
        return tuple(heading for _, heading in self._headings)


def _front_matter(rows: list[str]) -> int:
    if rows[0].strip() != "---":
        return 0
    return next((at + 1 for at, row in enumerate(rows) if at and row.strip() == "---"), 0)


def _blocks(text: str) -> list[Token]:
    """The blocks of a document, each with its rows; what is written within a line is left as it is."""
    from markdown_it import MarkdownIt  # here, for the start of the command line

    parser = MarkdownIt("commonmark", {"maxNesting": NESTING})
    parser.core.ruler.enableOnly(["block"])
    return parser.parse(text)


def _noise(rows: list[str], tokens: list[Token]) -> dict[int, str]:
    kinds, held = dict[int, str](), set[int]()
    for token in tokens:
        if token.map and not token.type.endswith(("list_open", "item_open")):
            held.update(range(*token.map))
            is_comment = token.type == "html_block" and token.content.lstrip().startswith("<!--")
            if kind := "comment" if is_comment else _KINDS.get(token.type):
                kinds.update(dict.fromkeys(range(*token.map), kind))
    for at, row in enumerate(rows):
        words = row.strip()
        if at in kinds:
            continue
        if not words:
            kinds[at] = "blank line"
        elif at not in held:
            kinds[at] = "link target" if words.startswith("[") else "empty item"
        elif words.startswith("|"):
            kinds[at] = "table"  # row by row: a line right below a table is text
        elif _INCLUDE.match(words):
            kinds[at] = "include"
    return kinds
