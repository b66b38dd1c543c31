"""Split a turn into clauses: whole sentences and list items, with offsets in characters of the archived text. A clause
is never half a sentence, so that its negation, condition and reporting verb stay with it (P-5). Every pass is
linear."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise, zip_longest
from typing import TYPE_CHECKING, NamedTuple

from .rules import any_of, table, words

if TYPE_CHECKING:
    from markdown_it import MarkdownIt

_DATA = table("boilerplate")
_TAGS = words("boilerplate", "tags")
_OPENING = re.compile(r"<([a-zA-Z][\w:-]*)(?:\s[^<>]*)?>")
_MACHINE = re.compile(r"\s*(?:" + "|".join(_DATA["turns"]) + ")", re.IGNORECASE)
_LOG = re.compile(r"\s*(?:" + any_of(_DATA["logs"]).pattern + ")")
_ABBREVIATIONS = words("boilerplate", "abbreviations")

_ITEM = re.compile(r"[ \t]*(?:[-*+•‣–]|\(?\d{1,3}[.)]|[a-z][.)])[ \t]+(?:(?:\[[ xX]\]|[✅✔✓☑❌⚠🎉]\ufe0f?)[ \t]+)?")
_BOLD_LINE = re.compile(r"[ \t]*\*\*[^*\n]{1,120}\*\*:?[ \t]*$")
_RULE = re.compile(r"[ \t]*(?:[-*_=]{3,}|[─━═]{3,})[ \t]*$")
_CODE = re.compile(r"(`+)[^`\n]{1,400}\1(?!`)")
_END = re.compile(r"(?<![.!?…])[.!?…]++[)\"'”’»*_\]]*+(?=\s)|[。！？؟]++[」』”）)]*+")
_OPENS_CODE = re.compile(
    r"[ \t]*(?:defmodule|def|defp|class|import|from|const|let|var|return|fn|func|public|SELECT)\s\S"
)
CODE_INDENT = 4  # Columns by which code may be set in
NESTING = 100  # Lists and quotes within each other that are read
DEEPEST, LONGEST = 6, 300  # List items that a clause is known to stand below, and characters of what stands above it
BOLD = 7  # The level of a line in bold, below all of Markdown's
FEWEST_WORDS = 3  # Words that each part of a joined sentence has at least
_ANNOUNCED = re.compile(
    r"(?:(?:one|two|three|four|a few|some|several|more|here are|these are|my|our|the)\s+){1,3}"
    r"(?:(?:more|quick|small|other|important|general)\s+)?"
    r"(?:things?|facts?|notes?|points?|conventions?|rules?|preferences?|decisions?|lessons?)\b[^:.!?\n]{0,50}:\s+",
    re.IGNORECASE,
)
_JOINED = re.compile(r",\s+and\s+(?=(?:please|I|we|my|our)\s+\S+\s+\S+)|;\s+(?=(?:please|I|we|my|our)\s+\S+\s+\S+)")
_GOVERNED = re.compile(
    r"\b(?:if|when|whenever|unless|until|while|although|though|because|since|so|whether|once|before|after|"
    r"sa(?:id|ys?)|told|tells?|think|thinks|thought|claims?|believes?|suppose|imagine|either|neither|both)\b",
    re.IGNORECASE,
)
_LAST_WORD = re.compile(r"([\w.]+)[.!?…]*[)\"'”’»*_\]]*$")


@dataclass(frozen=True, slots=True)
class Clause:
    """Characters `start:end` of the turn. `listed`: a list item; `heading`: the line or heading that leads to it;
    `path`: all headings above it, from the outermost; `holder`: the item that it is a part of."""

    start: int
    end: int
    text: str
    listed: bool = False
    heading: str = ""
    path: tuple[str, ...] = ()
    holder: str = ""


@dataclass(frozen=True, slots=True)
class SplitTurn:
    """The clauses of a turn, and the reasons for which parts of it were left out, one entry a part."""

    clauses: tuple[Clause, ...]
    dropped: tuple[str, ...] = ()


def split(text: str, left_out: Sequence[tuple[int, int]] = ()) -> SplitTurn:
    """The clauses of `text` outside of the characters `left_out`; a machine-written turn has none."""
    if _MACHINE.match(text):
        return SplitTurn((), ("machine-written",))
    masked, dropped = _mask(without(text, left_out))
    blocks = _BlockReader(masked, dropped).read()
    return SplitTurn(tuple(clause for block in blocks for clause in _sentences(text, block)), tuple(dropped))


def is_log(line: str) -> bool:
    """Whether a line is a log's, a trace's, a listing's or a diff's."""
    return _LOG.match(line) is not None


def without(text: str, spans: Sequence[tuple[int, int]]) -> str:
    """`text` with these characters, in order, blanked out by line feeds."""
    pieces: list[str] = []
    at = 0
    for start, end in spans:
        pieces += text[at:start], "\n" * (end - start)
        at = end
    return "".join((*pieces, text[at:]))


def _mask(text: str) -> tuple[str, list[str]]:
    """`text` with every injected element blanked out by line feeds of the same length."""
    masked, at = "", 0
    dropped: list[str] = []
    lowered = text.lower() if len(text.lower()) == len(text) else text
    for match in _OPENING.finditer(text):
        name = match.group(1).lower()
        if match.start() < at or name not in _TAGS:
            continue
        end = lowered.find(f"</{name}>", match.end())
        end = len(text) if end < 0 else end + len(name) + 3
        masked += text[at : match.start()] + "\n" * (end - match.start())
        dropped.append("injected")
        at = end
    return masked + text[at:], dropped


class _Above(NamedTuple):
    listed: bool
    heading: str
    path: tuple[str, ...]
    holder: str


@dataclass(slots=True)
class _Block:
    start: int
    end: int
    above: _Above


class _Mark(NamedTuple):
    """A line that is no prose: why it is left out ("" where that goes uncounted), and the heading that it is."""

    dropped: str
    level: int = 0
    title: str = ""


def _lines(text: str) -> Iterator[tuple[int, str]]:
    at = 0
    for line in text.split("\n"):
        yield at, line
        at += len(line) + 1


@cache
def _parser() -> MarkdownIt:
    """A parser of blocks, without the rules that misread chat: a line of dashes there is no underline of a heading."""
    from markdown_it import MarkdownIt  # here, for the start of whoever never cuts a turn

    parser = MarkdownIt("commonmark", {"maxNesting": NESTING})
    parser.disable(["lheading", "html_block", "code", "reference"])
    parser.core.ruler.enableOnly(["block"])
    return parser


def _marks(text: str) -> dict[int, _Mark]:
    """The lines, by number, that Markdown makes a heading or code. A fence that stands within another one, or that ends
    behind its list, leaves a mark that seems to open one more: such a mark is one line, and not all that follows."""
    text = text.replace("\r", " ")  # or no fence would close in text with Windows line ends
    lines = text.split("\n")
    marks: dict[int, _Mark] = {}
    tokens = _parser().parse(text)
    quotes, last_end, last_closed = 0, -1, True
    for token, following in zip_longest(tokens, tokens[1:]):
        quotes += (token.type == "blockquote_open") - (token.type == "blockquote_close")
        start, end = token.map or (0, 0)
        if token.type == "heading_open" and following and not quotes and _indent(lines[start]) < CODE_INDENT:
            marks[start] = _Mark("", int(token.tag[1:]), following.content)
        elif token.type == "fence":
            is_closed = end > start + 1 and lines[end - 1].strip("> \t").startswith(token.markup)
            is_stray = not is_closed and not token.info and (start == last_end or not last_closed)
            marks.update(dict.fromkeys(range(start, start + 1 if is_stray else end), _Mark("")))
            marks[start] = _Mark("" if is_stray else "code")
            last_end, last_closed = end, is_closed
    return marks


class _BlockReader:
    """Divides a turn into paragraphs and list items, and knows what stands above each: headings by level, the paragraph
    that announces a list, the items that hold deeper ones."""

    def __init__(self, text: str, dropped: list[str]) -> None:
        self._text, self._dropped = text, dropped
        self._blocks: list[_Block] = []
        self._current: _Block | None = None
        self._titles: list[tuple[int, str]] = []
        self._items: list[tuple[int, _Block]] = []
        self._lead = ""

    def read(self) -> list[_Block]:
        marks = _marks(self._text)
        for number, (at, line) in enumerate(_lines(self._text)):
            if mark := marks.get(number) or _mark(line):
                self._skip(mark)
            else:
                self._take(at, line)
        return self._blocks

    def _skip(self, mark: _Mark) -> None:
        """Leave a line out: it ends the paragraph above it, and as a heading the titles of its level and below."""
        self._current = None
        if mark.dropped:
            self._dropped.append(mark.dropped)
        if mark.title:
            self._titles = [*(title for title in self._titles if title[0] < mark.level), (mark.level, mark.title)]
            self._items, self._lead = [], ""

    def _take(self, at: int, line: str) -> None:
        item = _ITEM.match(line)
        start = at + (item.end() if item else len(line) - len(line.lstrip()))
        end = at + len(line.rstrip())
        current = self._current
        if not item and current and _joins(self._text[current.start : current.end], line, current.above.listed):
            current.end = end
            return
        self._current = _Block(start, end, self._above_item(line, True) if item else self._above_paragraph(line))
        if end > start:
            self._blocks.append(self._current)
            if item:
                self._items.append((_indent(line), self._current))

    def _above_paragraph(self, line: str) -> _Above:
        """Unless a paragraph is part of a list item, it ends all lists, and with them the bold line above them."""
        if line.startswith("  ") and self._items:
            return self._above_item(line, False)
        if self._blocks and self._blocks[-1].above.listed:
            self._titles = [title for title in self._titles if title[0] < BOLD]
        self._items, self._lead = [], ""
        titles = tuple(title for _, title in self._titles)
        return _Above(False, titles[-1] if titles else "", titles, "")

    def _above_item(self, line: str, listed: bool) -> _Above:
        indent = _indent(line)
        self._items = [item for item in self._items if item[0] < indent][-DEEPEST:]
        titles = tuple(title for _, title in self._titles)
        last = self._blocks[-1] if self._blocks else None
        if last and not last.above.listed and last.above.path == titles:
            words = self._text[max(last.start, last.end - LONGEST) : last.end].rstrip("* ")
            self._lead = words if words.endswith(":") else ""
        held = (self._text[block.start : min(block.end, block.start + LONGEST)] for _, block in self._items)
        holders = tuple(words.strip("* ") for words in held)
        path = (*titles, *((self._lead,) if self._lead else ()), *(words for words in holders if words))
        holder = holders[-1] if holders else ""
        announced = holder if holder.endswith(":") else ""
        return _Above(listed, announced or self._lead or (titles[-1] if titles else ""), path, holder)


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _mark(line: str) -> _Mark | None:
    """The mark of a line that is no prose by its own form, whatever Markdown makes of it."""
    stripped = line.strip()
    if not stripped or _RULE.match(line):
        return _Mark("")
    if _BOLD_LINE.match(line):
        return _Mark("", BOLD, stripped.strip("*: "))
    if stripped.startswith("|") or (stripped.count("|") >= 3 and stripped.endswith("|")):
        return _Mark("table")
    if stripped.startswith(">"):
        return _Mark("quoted")
    if is_log(line):
        return _Mark("log")
    is_indented = _indent(line) >= CODE_INDENT and not _ITEM.match(line)
    return _Mark("code") if (is_indented or _OPENS_CODE.match(line)) and _codelike(stripped) else None


def _codelike(stripped: str) -> bool:
    signs = sum(stripped.count(sign) for sign in "{}()=;<>|\\$[]")
    return signs >= 3 or stripped.endswith(("{", ";", "->", "do", "=>"))


def _joins(above: str, line: str, listed: bool) -> bool:
    """Whether `line` goes on with the sentence above it, as in text that was wrapped."""
    tail = above.rstrip()
    first = line.lstrip()[:1]
    inside = listed and line[:2] == "  "
    if tail.endswith((".", "!", "?", ":", "…", "。", "！", "？")) and not (
        tail[-1] == ":" and inside and first.islower()
    ):
        return False
    return first.islower() or inside or len(tail) - tail.rfind("\n") > 50  # the line was wrapped


def _sentences(text: str, block: _Block) -> Iterator[Clause]:
    body = text[block.start : block.end]
    shielded = [match.span() for match in _CODE.finditer(body)]
    cuts = [0]
    for match in _END.finditer(body):
        if not any(start < match.start() < end for start, end in shielded) and _ends(body, match, cuts[-1]):
            cuts.append(match.end())
    for left, right in pairwise((*cuts, len(body))):
        sentence = body[left:right].strip()
        start = block.start + right - len(body[left:right].lstrip())
        for first, last in _coordinated(sentence):
            yield Clause(start + first, start + last, sentence[first:last], *block.above)


def _ends(body: str, match: re.Match[str], at: int) -> bool:
    """Whether the punctuation at `match` ends the sentence that began at `at`."""
    mark = match.group(0)
    if mark[0] in "。！？؟":
        return True
    following = body[match.end() :].lstrip()
    if not following:
        return True
    if mark[0] in ".…":
        before = _LAST_WORD.search(body[max(at, match.start() - 30) : match.start()])
        word = before.group(1).lower().rstrip(".") if before else ""
        is_short = word in _ABBREVIATIONS or (len(word) == 1 and word.isalpha())
        is_number = (not word and match.start() == at) or (word.isdigit() and match.start() - at <= 3)
        if is_short or is_number or (mark.startswith(("..", "…")) and following[0].islower()):
            return False
    return body.count("(", at, match.end()) <= body.count(")", at, match.end())


def _coordinated(sentence: str) -> Iterator[tuple[int, int]]:
    """The statements of a sentence that joins several, each with a subject of its own: one may change, others stay.
    Nothing that governs the whole is cut off: a sentence with a condition, a report or a reason is one statement."""
    if not sentence:
        return
    cuts = [] if _GOVERNED.search(sentence) else [match.span() for match in _JOINED.finditer(sentence)]
    announced = _ANNOUNCED.match(sentence) if cuts else None
    start = announced.end() if announced else 0
    for left, right in cuts:
        if len(sentence[start:left].split()) >= FEWEST_WORDS:
            yield start, left
            start = right
    yield start, len(sentence)
