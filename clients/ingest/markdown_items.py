"""The items of a Markdown text: entries of a list, and headings of one level below the same heading (W12).

Lists in several sections are one run if they are most of the text; then the heading above an entry is its category.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from .input_text import InputItem, InputItems, label_of

if TYPE_CHECKING:
    from markdown_it.token import Token

MOST_OF = 0.6
"""Share of the characters from which lists are most of a text."""

_ITEM = re.compile(r"[ \t]*(?:[-*+]|\d{1,9}[.)])[ \t]+(?:\[[ xX~-]\][ \t]+)?")
_TASK = re.compile(r"[ \t]*(?:[-*+]|\d{1,9}[.)])[ \t]+\[[ xX~-]\][ \t]")
_LABEL = re.compile(
    r"(?:\*\*|`)?\[(?P<bracketed>[^\W\d_][\w /-]{0,30})\](?!\()(?:\*\*|`)?"
    r"|(?P<named>[a-z][a-z-]{1,20})(?:\([\w./-]+\))?!?: "
)


class _Entry(NamedTuple):
    """An item by its rows, and the headings above it, each with its level."""

    rows: range
    headings: tuple[tuple[int, str], ...]
    is_task: bool = False


def category_of(words: str) -> str:
    """Return the label that an item begins with, "" without one: `[bug] …`, `fix(cli): …`."""
    label = _LABEL.match(words.strip())
    return (label["bracketed"] or label["named"]).strip().lower() if label else ""


def item_runs(text: str, blocks: Sequence[Token], rows: Sequence[int]) -> Iterator[InputItems]:
    """Yield the runs of siblings in a text. `rows`: the first row of each passage, in order."""
    lines = text.removesuffix("\n").split("\n")
    lists, headings = _entries(lines, blocks)
    for entries in lists:
        yield _run(entries, lines, rows)
    together = [entry for entries in lists for entry in entries]
    characters = sum(len(line.strip()) for line in lines)
    listed = sum(len(lines[row].strip()) for entry in together for row in entry.rows)
    if len(lists) > 1 and listed >= MOST_OF * characters:
        yield _run(together, lines, rows, by_heading=True)
    yield from _heading_runs(headings, lines, rows)


def _entries(lines: Sequence[str], tokens: Sequence[Token]) -> tuple[list[list[_Entry]], list[_Entry]]:
    """Return the entries of each list outside of others, and the headings with the rows below each."""
    lists: list[list[_Entry]] = []
    above: list[tuple[int, str]] = []
    headings: list[tuple[int, int, tuple[tuple[int, str], ...]]] = []
    for token, following in pairwise([*tokens, *tokens[-1:]]):
        rows = range(*(token.map or (0, 0)))
        if token.type == "heading_open" and token.level == 0:
            level = int(token.tag[1:])
            above = [heading for heading in above if heading[0] < level]
            headings.append((level, rows.start, tuple(above)))
            above.append((level, " ".join(following.content.split())))
        elif token.type in ("bullet_list_open", "ordered_list_open") and token.level == 0:
            lists.append([])
        elif token.type == "list_item_open" and token.level == 1:
            is_task = _TASK.match(lines[rows.start]) is not None
            lists[-1].append(_Entry(rows, tuple(above), is_task))
    sections: list[_Entry] = []
    nearest = [len(lines)] * 7  # by level: the row of the next heading
    for level, start, outer in reversed(headings):
        sections.append(_Entry(range(start, min(nearest[: level + 1])), (*outer, (level, ""))))
        nearest[level] = start
    return lists, sections[::-1]


def _heading_runs(headings: Sequence[_Entry], lines: Sequence[str], rows: Sequence[int]) -> Iterator[InputItems]:
    """Yield the headings of one level below the same heading."""
    groups: dict[tuple[tuple[int, str], ...], list[_Entry]] = {}
    for entry in headings:
        groups.setdefault(entry.headings, []).append(entry)
    for above, entries in groups.items():
        yield _run(entries, lines, rows, of=f"headings of level {above[-1][0]}")


def _run(
    entries: Sequence[_Entry], lines: Sequence[str], rows: Sequence[int], of: str = "", *, by_heading: bool = False
) -> InputItems:
    """Return entries as items, without those that have no passage."""
    items: list[InputItem] = []
    for entry in entries:
        places = range(bisect_left(rows, entry.rows.start), bisect_left(rows, entry.rows.stop))
        first = _ITEM.sub("", lines[entry.rows.start], count=1).strip("# \t")
        heading = entry.headings[-1][1] if by_heading and entry.headings else ""
        if places:
            category = category_of(first) or heading
            items.append(InputItem(label=label_of(first), passages=tuple(places), category=category))
    tasks = entries and all(entry.is_task for entry in entries)
    return InputItems(of=of or ("tasks" if tasks else "list entries"), items=tuple(items))
