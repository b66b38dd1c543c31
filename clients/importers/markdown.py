"""Markdown files (README.md, CLAUDE.md, notes) as one session each. A turn is a list item, a paragraph, a table row
told with its column names, or a code block that holds commands.

A turn's text begins with the headings above it and the line that announces it. A keyed hash of the text names the
turn: it reveals no words (T10), and a paragraph that moves within its section keeps its name. The session is complete,
so that a turn whose paragraph was deleted is withdrawn (W13).
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from hashlib import blake2b
from itertools import groupby, takewhile, zip_longest
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from ...protocol.errors import StoreError
from ...protocol.event import AnyEvent, Form, Origin, Wrote
from ..pi.agents_block import without_block
from .transcript import Account, AccountBuilder, CapturedSession, Transcript, changed_at

if TYPE_CHECKING:
    from markdown_it.token import Token

HOST = "markdown"
FILE_LIMIT = 16 * 1024 * 1024
PATH_LIMIT = 400  # characters of a path that is a document's name; of a longer one it is a hash
NESTING = 100  # lists and quotes within each other that are read
_INCLUDE = re.compile(r"@\S+$")
COMMANDS_LIMIT, STEPS_LIMIT = 400, 480  # characters of commands, and of numbered steps, in one part
_TEXT = frozenset({"paragraph_open", "blockquote_open", "html_block"})
_CODE = frozenset({"fence", "code_block"})
# the kind of noise that the rows of a block are
_KINDS = {"heading_open": "heading", "fence": "code", "code_block": "code", "hr": "rule"}
_SHELLS = frozenset("sh bash zsh fish shell console terminal shell-session powershell pwsh ps1 bat cmd".split())
_PROMPT = re.compile(r"[ \t]*[$%>] ")
_COMMAND = re.compile(
    r"(?!.*[a-z)]\.$)(?!.*[,;:{]$)(?:[A-Z_][A-Z0-9_]*=\S* )*(?:\./|~/)?[a-z][\w.+@-]*(?:/[\w.+@-]+)*(?: +(?!=)\S.*)?$"
)
_CODE_SPAN = re.compile(r"`([^`\n]+ [^`\n]+)`")
_CODE_CELL = re.compile(r"`([^`]+ [^`]+)`$")
_LINKS = re.compile(r"!?\[(?:[^\[\]]|!?\[[^\[\]]*\](?:\([^()]*\))?)*\](?:\([^()]*\)|\[[^\[\]]*\])")
_TAG = re.compile(r"<[^<>]*>")
_HTML_HEADING = re.compile(r"<h([1-6])\b[^<>]*>([^<]+)<", re.IGNORECASE)
_SUMMARY = re.compile(r"<summary\b[^<>]*>([^<]+)<", re.IGNORECASE)
_FOLDED = 7  # the level of the heading of a part that the reader unfolds, below all of Markdown's
_QUOTE_MARK = re.compile(r"^[ \t]*>[ \t]?(?:\[![A-Z]+\])?", re.MULTILINE)
# what is left out of the words of a block
_MARKS = {"blockquote_open": _QUOTE_MARK, "html_block": _TAG}


class MarkdownPart(msgspec.Struct, frozen=True):
    """One turn: the headings above it, outermost first, the line that announces it, its own words. `row`: the first row
    of the file that it is made of."""

    headings: tuple[str, ...]
    lead: str
    words: str
    form: Form = ""
    row: int = 0

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
        text = without_block(text)
        title, parts = _Sections(ledger, place.stem.lower() == "readme").read(text, blocks_of(text))
    events = tuple(_events(place, parts, key, at, times))
    origin = Origin(
        host=HOST, session=document_name(place), cwd=_cwd(place), live=False, title=(title or place.name)[:200]
    )
    sessions = () if text is None else (CapturedSession(origin=origin, events=events, has_all="everywhere"),)
    return Transcript(path=str(path), sessions=sessions, account=ledger.close())


def parts_of(
    text: str, blocks: Sequence[Token], *, is_readme: bool = False
) -> tuple[str, tuple[MarkdownPart, ...], Account]:
    """Return the title of a Markdown text, "" without one, its parts in order, and the account of its rows."""
    ledger = AccountBuilder()
    title, parts = _Sections(ledger, is_readme).read(text, blocks)
    return title, tuple(parts), ledger.close()


def blocks_of(text: str) -> list[Token]:
    """Return the blocks of a Markdown text by CommonMark, each with its rows, what is written within a line as it is;
    not those of its front matter."""
    from markdown_it import MarkdownIt  # here, for the start of the command line

    parser = MarkdownIt("commonmark", {"maxNesting": NESTING}).enable("table")
    parser.core.ruler.enableOnly(["block"])
    rows = text.removesuffix("\n").split("\n")
    front = _front_matter(rows)
    return parser.parse("\n".join([*[""] * front, *rows[front:]]))


def document_name(place: Path) -> str:
    """Return what names the document of a file: its absolute path, of a long one a hash."""
    return str(place) if len(str(place)) <= PATH_LIMIT else blake2b(bytes(place), digest_size=16).hexdigest()


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


def turn_names(texts: Iterable[str], key: bytes) -> Iterator[str]:
    """Yield the name of each turn of a document: a keyed hash of its text, which reveals no words (T10)."""
    seen: dict[str, int] = {}
    for text in texts:
        name = blake2b(text.encode(), key=key, digest_size=10).hexdigest()
        seen[name] = seen.get(name, 0) + 1
        yield name if seen[name] == 1 else f"{name}-{seen[name]}"


def _events(place: Path, parts: list[MarkdownPart], key: bytes, at: str, times: dict[str, str]) -> Iterator[AnyEvent]:
    for part, turn in zip(parts, turn_names([part.text for part in parts], key), strict=True):
        section = " > ".join(part.headings)
        where = f"{place}#{section}" if section else str(place)
        yield Wrote(turn=turn, at=times.get(turn) or at, text=part.text, path=where[:1000], form=part.form)


class _Sections:
    """Divides a file's rows into parts and noise, and accounts for each row."""

    def __init__(self, ledger: AccountBuilder, opens: bool) -> None:
        """`opens`: the first paragraph says what the project is for."""
        self._ledger, self._opens = ledger, opens
        self._rows: list[str] = []
        self._noise: dict[int, str] = {}
        self._headings: list[tuple[int, str]] = []
        self._parts: list[MarkdownPart] = []
        self._lead, self._is_led = "", False
        self._columns: list[str] = []
        self._told = 0
        self._row, self._lead_row = 0, 0
        self._title = ""

    def read(self, text: str, tokens: Sequence[Token]) -> tuple[str, list[MarkdownPart]]:
        """The document's title, and its parts in order. `tokens`: its blocks."""
        self._rows = text.removesuffix("\n").split("\n")
        front = _front_matter(self._rows)
        self._noise = _noise(self._rows, tokens) | dict.fromkeys(range(front), "front matter")
        for at, token in enumerate(tokens):
            self._take(token, tokens, at + 1)
        self._leave_lead()
        for at in range(len(self._rows)):
            if kind := self._noise.get(at):
                self._ledger.drop(kind)
            else:
                self._ledger.take()
        return self._title, self._parts

    def _take(self, token: Token, tokens: Sequence[Token], after: int) -> None:
        """Take a heading, or parts: a block of the document, an item of one of its lists, a row of a table. The tokens
        behind it begin at `after`."""
        rows = range(*(token.map or (0, 0)))
        self._row = rows.start if token.map else self._row
        if token.type == "heading_open" and token.level == 0:
            self._head(int(token.tag[1:]), " ".join(tokens[after].content.split("\n")))
        elif token.type == "ordered_list_open" and token.level == 0 and self._are_steps(rows):
            self._add(self._words(rows), "commands")
            self._told = rows.stop
        elif token.type == "list_item_open" and token.level == 1 and rows.start >= self._told:
            has_commands = any(map(_is_commands, _inside(token, tokens, after)))
            self._add(self._words(rows), "commands" if has_commands else "")
        elif token.type in _CODE and token.level == 0 and _is_commands(token):
            for piece in _pieces(token):
                self._add(f"```\n{piece}\n```", "commands")
        elif token.type == "tr_open" and token.level == 2:
            self._take_row([cell.content for cell in _inside(token, tokens, after) if cell.type == "inline"], rows)
        elif token.type in _TEXT and token.level == 0:
            self._take_text(token, rows)

    def _are_steps(self, rows: range) -> bool:
        """Whether the items of a list are the steps of one procedure: it holds commands, and is short."""
        words = self._words(rows)
        has_commands = "```" in words or any(map(_COMMAND.match, _CODE_SPAN.findall(words)))
        return has_commands and len(words) <= STEPS_LIMIT

    def _take_text(self, token: Token, rows: range) -> None:
        if token.type == "html_block":
            for level, heading in _HTML_HEADING.findall(token.content):
                self._head(int(level), heading.strip())
            if "</details" in token.content.lower():
                self._headings = [heading for heading in self._headings if heading[0] < _FOLDED]
            for heading in _SUMMARY.findall(token.content):
                self._head(_FOLDED, heading.strip())
        for is_noise, run in groupby(rows, lambda at: self._noise.get(at, "blank line") != "blank line"):
            if not is_noise:
                words = self._words(run)
                self._say((mark.sub("", words) if (mark := _MARKS.get(token.type)) else words).strip())

    def _take_row(self, cells: list[str], rows: range) -> None:
        """Take a row of a table as "column: cell; column: cell"; the first one names the columns."""
        if self._noise.get(rows.start) == "column names":
            self._leave_lead()
            self._columns = cells
        elif "|" not in self._rows[rows.start]:
            self._say(self._words(rows))  # a line right below a table is text
        else:
            named = ((name, cell) for name, cell in zip_longest(self._columns, cells, fillvalue="") if cell)
            commands = any(_CODE_CELL.match(cell) and _COMMAND.match(cell.strip("`")) for cell in cells)
            told = "; ".join(f"{name}: {cell}" if name else cell for name, cell in named)
            self._add(told, "commands" if commands else "row")

    def _say(self, words: str) -> None:
        """Take a paragraph: one that ends with a colon announces what follows."""
        self._leave_lead()
        if words.endswith(":"):
            self._lead, self._lead_row = words, self._row
        else:
            self._add(words, "purpose" if self._opens else "")

    def _head(self, level: int, words: str) -> None:
        self._leave_lead()
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

    def _add(self, words: str, form: Form = "") -> None:
        if words:
            self._is_led, self._opens = True, False
            self._parts.append(MarkdownPart(self._section, self._lead, words, form, self._row))

    def _leave_lead(self) -> None:
        """End the list that a paragraph announced; one that announced nothing is a part itself."""
        if self._lead and not self._is_led:
            self._parts.append(MarkdownPart(self._section, "", self._lead, "", self._lead_row))
        self._lead, self._is_led = "", False

    @property
    def _section(self) -> tuple[str, ...]:
        return tuple(heading for _, heading in self._headings)


def _inside(token: Token, tokens: Sequence[Token], after: int) -> Iterator[Token]:
    """The tokens between an opening one and its end."""
    return takewhile(lambda inner: inner.level > token.level, (tokens[at] for at in range(after, len(tokens))))


def _is_commands(token: Token) -> bool:
    """Whether a code block holds commands: it is in a language of shells, or in none and each line reads like one."""
    if token.type not in _CODE:
        return False
    lines = [line for line in token.content.split("\n") if line.strip() and not line.startswith("#")]
    language = token.info.split(maxsplit=1)[0].lower() if token.info.strip() else ""
    is_shell = language in _SHELLS or (not language and all(_COMMAND.match(_PROMPT.sub("", line)) for line in lines))
    return bool(lines) and is_shell


def _pieces(token: Token) -> Iterator[str]:
    """The commands of a code block without prompts and output, in pieces that a part may hold."""
    lines = token.content.rstrip("\n").split("\n")
    prompted = [_PROMPT.sub("", line, count=1) for line in lines if _PROMPT.match(line)]
    piece: list[str] = []
    for line in prompted or lines:
        if piece and sum(map(len, piece)) + len(line) > COMMANDS_LIMIT and not piece[-1].endswith("\\"):
            yield "\n".join(piece).strip("\n")
            piece = []
        piece.append(line)
    yield "\n".join(piece).strip("\n")


def _front_matter(rows: list[str]) -> int:
    if rows[0].strip() != "---":
        return 0
    return next((at + 1 for at, row in enumerate(rows) if at and row.strip() == "---"), 0)


def _noise(rows: list[str], tokens: Sequence[Token]) -> dict[int, str]:
    kinds, held, told = dict[int, str](), set[int](), set[int]()
    for token in tokens:
        if token.map and not token.type.endswith(("list_open", "item_open")):
            lines = range(*token.map)
            held.update(lines)
            if token.type == "table_open" and token.level == 0:
                told.update(lines)
                kinds.update(dict.fromkeys(lines[:2], "column names"))
            elif kind := _kind(token):
                kinds.update(dict.fromkeys(lines, kind))
    for at, row in enumerate(rows):
        words = row.strip()
        if at in kinds:
            continue
        if not words:
            kinds[at] = "blank line"
        elif at not in held:
            kinds[at] = "link target" if words.startswith("[") else "empty item"
        elif words.startswith("|") and at not in told:
            kinds[at] = "table"  # one without a head, or within an item
        elif _INCLUDE.match(words):
            kinds[at] = "include"
        elif at not in told and _is_said(words) and not _is_said(_TAG.sub("", _LINKS.sub("", words))):
            kinds[at] = "links"
    return kinds


def _kind(token: Token) -> str:
    """The kind of noise that all rows of a block are, or ""."""
    if token.type == "html_block":
        words = _SUMMARY.sub("<", _HTML_HEADING.sub("<", token.content))
        return "" if _is_said(_TAG.sub("", words)) else "comment" if "<!--" in words else "markup"
    return "" if _is_commands(token) else _KINDS.get(token.type, "")


def _is_said(words: str) -> bool:
    return any(map(str.isalnum, words))
