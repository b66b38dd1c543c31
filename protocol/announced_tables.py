"""Find the values below a name in a table: CSV, TSV, Markdown, the output of a database, the rows of an INSERT."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice

WIDEST, MOST_ROWS = 2_000, 5_000
"""Characters of a line of a table, and its rows."""

_BEHIND = re.compile(r"[\"'`*]{0,3}(?: *(?P<delimiter>[|│,;\t])|(?P<gap> {2,})(?=\S)|\)| *\r?\n)")
_LAST_DELIMITER = re.compile(r"([|│,;\t]|  (?=\S))[^\n|│,;\t]*\Z")
_LISTED = re.compile(r"[(,]\s*[\"'`]?\Z")
_RULE = re.compile(r"(?=.*[-=─━═])[\s|+:=─-╿-]+")
_HEADING = re.compile(r"[ \t\"'`*]*(?:[\w.-]+ ){0,2}[\"'`*]*")
_FIELD = re.compile(r"\"(?:[^\"]|\"\")*\"|'(?:[^'\\]|''|\\.)*'|[^,()]*(?:\([^()]*\))?[^,()]*")
_INSERT = re.compile(r"\b(?:insert|replace)\b[^()\n]{1,120}\(\s*\Z", re.IGNORECASE)
_VALUES = re.compile(r"[^()]{0,1000}\)\s*(?:values\s*(?=\()|(?P<s>select\s))", re.IGNORECASE)
_ANYWHERE = re.compile("")
_ROW = re.compile(r"\s*,?\s*\(")


def may_head_column(text: str, end: int) -> bool:
    """Whether what stands behind a name, which ends here, is the end of a cell."""
    return bool(_BEHIND.match(text, end))


def cells_below(text: str, start: int, end: int) -> Iterator[tuple[int, int, bool]]:
    """Yield start and end of the cells below the name at this place, and whether a line rules off the table's head;
    nothing where the name heads no column."""
    behind = _BEHIND.match(text, end)
    if not behind:
        return
    delimiter = behind["delimiter"] or ("  " if behind["gap"] else "")
    if delimiter in ("", ",") and _LISTED.search(text, max(0, start - 4), start):
        yield from _inserted(text, start, end)
    if not delimiter:
        before = _LAST_DELIMITER.search(text, max(0, start - 40), start)
        delimiter = before[1] if before else ""
    if delimiter and delimiter != ")":
        yield from _rows(text, start, end, delimiter)


def _rows(text: str, start: int, end: int, delimiter: str) -> Iterator[tuple[int, int, bool]]:
    first = text.rfind("\n", max(0, start - WIDEST), start) + 1
    cell = max(first, text.rfind(delimiter, first, start) + len(delimiter))
    if not _HEADING.fullmatch(text, cell, start):
        return
    at = text.find("\n", end, end + WIDEST)
    if at < 0 or start - first > WIDEST:
        return
    head = _cells(text, first, at, delimiter)
    column = next(number for number, (_, last) in enumerate(head) if start <= last)
    if len(head) < 2:
        return
    ruled = False
    for _ in range(MOST_ROWS):
        first = at + 1
        at = text.find("\n", first, first + WIDEST)
        at = at if at >= 0 else min(len(text), first + WIDEST)
        if _RULE.fullmatch(text, first, at):
            ruled = True
        else:
            cells = _cells(text, first, at, delimiter)
            if len(cells) != len(head):
                return
            yield (*_trimmed(text, *cells[column]), ruled)
        if at >= len(text):
            return


def _cells(text: str, start: int, end: int, delimiter: str) -> list[tuple[int, int]]:
    """The places of a line's cells. A quoted cell of CSV may hold the delimiter."""
    cells: list[tuple[int, int]] = []
    while delimiter == "  " and start < end and text[start] in " \r":
        start += 1
    while delimiter == "  " and end > start and text[end - 1] in " \r":
        end -= 1
    while True:
        stop = -1
        if delimiter != "|" and text[start : start + 1] == '"':
            closing = text.find('"', start + 1, end)
            stop = text.find(delimiter, closing, end) if closing > 0 else -1
        else:
            stop = text.find(delimiter, start, end)
        if stop < 0:
            return [*cells, (start, end)]
        cells.append((start, stop))
        start = stop + len(delimiter)
        while delimiter == "  " and text[start : start + 1] == " ":
            start += 1


def _trimmed(text: str, start: int, end: int) -> tuple[int, int]:
    cell = text[start:end]
    start += len(cell) - len(cell.lstrip(" \t\"'`*"))
    return start, max(start, end - (len(cell) - len(cell.rstrip(" \t\r\"'`*"))))


def _inserted(text: str, start: int, end: int) -> Iterator[tuple[int, int, bool]]:
    opening = text.rfind("(", max(0, start - 1000), start)
    if opening < 0 or not _INSERT.search(text, max(0, opening - 140), opening + 1):
        return
    values = _VALUES.match(text, end)
    column = text.count(",", opening, start)
    at = values.end() if values else len(text)
    while row := _ROW.match(text, at) if not values or not values["s"] else _ANYWHERE.match(text, at):
        at = row.end()
        fields = list(islice(_fields(text, at), 200))
        if len(fields) <= column:
            return
        first, last = fields[column]
        if text[first : first + 1] in ("'", '"'):
            yield first + 1, last - 1, True
        at = fields[-1][1]
        at = text.find(")", at, at + 200) + 1
        if not at:
            return


def _fields(text: str, at: int) -> Iterator[tuple[int, int]]:
    """The places of the values of one row of an INSERT."""
    while True:
        at += len(text[at : at + 20]) - len(text[at : at + 20].lstrip())
        field = _FIELD.match(text, at)
        if not field:
            return
        yield field.span()
        at = field.end()
        if text[at : at + 1] != ",":
            return
        at += 1
