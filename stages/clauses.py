"""A turn cut into clauses: whole sentences and list items, each with its exact place.

Comes in: the text of one event. Goes out: clauses in order, with offsets into that same text, and how much was left
out as boilerplate. Invariants: offsets count characters of the text as it is in the archive; a clause is never half a
sentence, so that its negation, its condition and its reporting verb stay with it (P-5); every pass is linear in the
length of the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from .rules import any_of, table, words

_DATA = table("boilerplate")
_TAGS = words("boilerplate", "tags")
_OPENING = re.compile(r"<([a-zA-Z][\w:-]*)(?:\s[^<>]*)?>")
_MACHINE = re.compile(r"\s*(?:" + "|".join(_DATA["turns"]) + ")", re.IGNORECASE)
_LOG = re.compile(r"\s*(?:" + any_of(_DATA["logs"]).pattern + ")")
_ABBREVIATIONS = words("boilerplate", "abbreviations")

_ITEM = re.compile(r"[ \t]*(?:[-*+•‣–]|\(?\d{1,3}[.)]|[a-z][.)])[ \t]+(?:(?:\[[ xX]\]|[✅✔✓☑❌⚠🎉]\ufe0f?)[ \t]+)?")
_HEADING = re.compile(r"[ \t]{0,3}#{1,6}[ \t]+(.*)")
_FENCE = re.compile(r"[ \t]*(?:>[ \t]*)*(```+|~~~+)")
_BOLD_LINE = re.compile(r"[ \t]*\*\*[^*\n]{1,120}\*\*:?[ \t]*$")
_RULE = re.compile(r"[ \t]*(?:[-*_=]{3,}|[─━═]{3,})[ \t]*$")
_CODE = re.compile(r"(`+)[^`\n]{1,400}\1(?!`)")
_END = re.compile(r"(?<![.!?…])[.!?…]++[)\"'”’»*_\]]*+(?=\s)|[。！？؟]++[」』”）)]*+")
_OPENS_CODE = re.compile(
    r"[ \t]*(?:defmodule|def|defp|class|import|from|const|let|var|return|fn|func|public|SELECT)\s\S"
)
DEEPEST, LONGEST = 6, 300
"""List items that a clause is known to stand below, and characters of what stands above it."""

BOLD = 7
"""The level of a line in bold, below all of Markdown's."""

FEWEST_WORDS = 3
"""Words that each part of a joined sentence has at least."""

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


def split(text: str) -> SplitTurn:
    """`text` in clauses; machine-written turns give none."""
    if _MACHINE.match(text):
        return SplitTurn((), ("machine-written",))
    masked, dropped = _mask(text)
    found: list[Clause] = []
    for block in _blocks(masked, dropped):
        found.extend(_sentences(text, block))
    return SplitTurn(tuple(found), tuple(dropped))


def _mask(text: str) -> tuple[str, list[str]]:
    """`text` with every injected element blanked out by line feeds of the same length."""
    parts: list[str] = []
    dropped: list[str] = []
    at = 0
    lowered = text.lower() if len(text.lower()) == len(text) else text
    for match in _OPENING.finditer(text):
        name = match.group(1).lower()
        if match.start() < at or name not in _TAGS:
            continue
        end = lowered.find(f"</{name}>", match.end())
        end = len(text) if end < 0 else end + len(name) + 3
        parts.append(text[at : match.start()])
        parts.append("\n" * (end - match.start()))
        dropped.append("injected")
        at = end
    parts.append(text[at:])
    return "".join(parts), dropped


@dataclass(slots=True)
class _Block:
    start: int
    end: int
    listed: bool
    heading: str
    path: tuple[str, ...]
    holder: str


def _lines(text: str) -> Iterator[tuple[int, str]]:
    at = 0
    for line in text.split("\n"):
        yield at, line
        at += len(line) + 1


def _blocks(text: str, dropped: list[str]) -> list[_Block]:
    """Paragraphs and list items of prose; code, tables, quotes, logs and headings are left out."""
    blocks: list[_Block] = []
    current: _Block | None = None
    fence = ""
    above = _Above(text)
    for at, line in _lines(text):
        opened = _FENCE.match(line)
        if opened and (not fence or opened.group(1).startswith(fence)):
            if not fence:
                dropped.append("code")
            fence = "" if fence else opened.group(1)
            current = None
            continue
        if fence:
            continue
        skipped, title = _structure(line)
        if title:
            above.titled(line, title)
        if skipped:
            if skipped not in {"blank", "heading"}:
                dropped.append(skipped)
            current = None
            continue
        item = _ITEM.match(line)
        start = at + (item.end() if item else len(line) - len(line.lstrip()))
        end = at + len(line.rstrip())
        if item is None and current is not None and _joins(text[current.start : current.end], line, current.listed):
            current.end = end
            continue
        heading, path, holder = above.listed(line, blocks) if item else above.plain(line, blocks)
        current = _Block(start, end, item is not None, heading, path, holder)
        if end > start:
            blocks.append(current)
            if item:
                above.opened(line, current)
    return blocks


class _Above:
    """What stands above a line: headings by level, the paragraph that announces a list, items that hold items."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._titles: list[tuple[int, str]] = []
        self._items: list[tuple[int, _Block]] = []
        self._lead = ""

    def titled(self, line: str, title: str) -> None:
        """A heading: it ends what stands at its level and below."""
        level = _level(line)
        self._titles = [*(one for one in self._titles if one[0] < level), (level, title)]
        self._items, self._lead = [], ""

    def plain(self, line: str, blocks: list[_Block]) -> tuple[str, tuple[str, ...], str]:
        """Heading, path and holder of a paragraph. Unless it is part of a list item, it ends all lists, and with them
        the line in bold that announced them."""
        if line.startswith("  ") and self._items:
            return self.listed(line, blocks)
        if blocks and blocks[-1].listed:
            self._titles = [one for one in self._titles if one[0] < BOLD]
        self._items, self._lead = [], ""
        titles = tuple(title for _, title in self._titles)
        return (titles[-1] if titles else ""), titles, ""

    def listed(self, line: str, blocks: list[_Block]) -> tuple[str, tuple[str, ...], str]:
        """Heading, path and holder of a list item."""
        indent = len(line) - len(line.lstrip())
        self._items = [one for one in self._items if one[0] < indent][-DEEPEST:]
        titles = tuple(title for _, title in self._titles)
        if blocks and not blocks[-1].listed and blocks[-1].path == titles:
            self._lead = _lead(self._text, blocks[-1])
        held = (self._text[block.start : min(block.end, block.start + LONGEST)] for _, block in self._items)
        holders = tuple(words.strip("* ") for words in held)
        path = (*titles, *((self._lead,) if self._lead else ()), *(words for words in holders if words))
        announced = holders[-1] if holders and holders[-1].endswith(":") else ""
        return announced or self._lead or (titles[-1] if titles else ""), path, (holders[-1] if holders else "")

    def opened(self, line: str, block: _Block) -> None:
        """A list item: deeper ones that follow are held by it."""
        self._items.append((len(line) - len(line.lstrip()), block))


def _level(line: str) -> int:
    """How deep a heading stands: Markdown's levels, then lines in bold."""
    stripped = line.strip()
    return len(stripped) - len(stripped.lstrip("#")) or BOLD


def _lead(text: str, block: _Block) -> str:
    """The paragraph that announces a list: the one before it, if it ends with a colon."""
    words = text[max(block.start, block.end - LONGEST) : block.end].rstrip("* ")
    return words if words.endswith(":") else ""


def _structure(line: str) -> tuple[str, str]:
    """Why the line is no prose ("" if it is), and the heading it opens."""
    stripped = line.strip()
    if not stripped:
        return "blank", ""
    heading = _HEADING.match(line)
    if heading:
        return "heading", heading.group(1).strip()
    if _BOLD_LINE.match(line):
        return "heading", stripped.strip("*: ")
    if stripped.startswith("|") or (stripped.count("|") >= 3 and stripped.endswith("|")):
        return "table", ""
    if stripped.startswith(">"):
        return "quoted", ""
    if _RULE.match(line):
        return "blank", ""
    if _LOG.match(line):
        return "log", ""
    indent = len(line) - len(line.lstrip())
    if (indent >= 4 and not _ITEM.match(line) and _codelike(stripped)) or (
        _OPENS_CODE.match(line) and _codelike(stripped)
    ):
        return "code", ""
    return "", ""


def _codelike(stripped: str) -> bool:
    signs = sum(stripped.count(sign) for sign in "{}()=;<>|\\$[]")
    return signs >= 3 or stripped.endswith(("{", ";", "->", "do", "=>"))


def _joins(above: str, line: str, listed: bool) -> bool:
    """Whether `line` goes on with the sentence above it, as in text that was wrapped."""
    tail = above.rstrip()
    first = line.lstrip()[:1]
    announced = tail.endswith(":") and listed and line[:2] == "  " and first.islower()
    if tail.endswith((".", "!", "?", ":", "…", "。", "！", "？")) and not announced:
        return False
    wrapped = len(tail) - tail.rfind("\n") > 50
    return first.islower() or wrapped or (listed and line[:2] == "  ")


def _sentences(text: str, block: _Block) -> Iterator[Clause]:
    body = text[block.start : block.end]
    shielded = [match.span() for match in _CODE.finditer(body)]
    at = 0
    for match in _END.finditer(body):
        if any(start < match.start() < end for start, end in shielded) or not _ends(body, match, at):
            continue
        yield from _clause(text, block, at, match.end())
        at = match.end()
    yield from _clause(text, block, at, len(body))


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
        if word in _ABBREVIATIONS or (len(word) == 1 and word.isalpha()):
            return False
        if not word and match.start() == at:
            return False
        if mark.startswith(("..", "…")) and following[0].islower():
            return False
        if word.isdigit() and match.start() - at <= 3:
            return False
    depth = body.count("(", at, match.end()) - body.count(")", at, match.end())
    return depth <= 0


def _clause(text: str, block: _Block, start: int, end: int) -> Iterator[Clause]:
    start, end = block.start + start, block.start + end
    while start < end and (text[start].isspace()):
        start += 1
    while end > start and (text[end - 1].isspace()):
        end -= 1
    for left, right in _coordinated(text[start:end]):
        yield Clause(
            start + left,
            start + right,
            text[start + left : start + right],
            block.listed,
            block.heading,
            block.path,
            block.holder,
        )


def _coordinated(sentence: str) -> Iterator[tuple[int, int]]:
    """The statements of a sentence that joins several, each with a subject of its own: one may change, others stay.

    Nothing that governs the whole is cut off: a sentence with a condition, a report or a reason is one statement.
    """
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
