"""The part of an imported Markdown file that a record came from. Nothing is stored for it: the turn names the file and
the headings, and its text is compared with the file (C3)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from ....protocol.event import Captured, Wrote
from .document_links import SEPARATOR, Link, root_of

MARKDOWN = "markdown:"
"""Prefix of the documents of the Markdown importer."""

_HEADING, _WORD = re.compile(r"#{1,6} +(.*)"), re.compile(r"\w+")
_REDACTED = re.compile(r"\[redacted:[\w-]+\]")


class ImportedPart(NamedTuple):
    """A part of a file. `pieces`: runs of words that stand in the file if nothing changed; `cells`: the same of a part
    that is a row of a table, of which `pieces` also has the names of the columns."""

    root: Path
    link: Link
    pieces: tuple[str, ...]
    cells: tuple[str, ...]

    def is_held(self, text: str) -> bool:
        """Whether a text has the part; marks of Markdown and blanks do not count."""
        words = f" {_words(text)} "
        if all(f" {piece} " in words for piece in self.pieces):
            return True
        rows = (f" {_words(row)} " for row in text.split("\n") if "|" in row)
        return bool(self.cells) and any(all(f" {cell} " in row for cell in self.cells) for row in rows)


def imported_part(captured: Captured) -> ImportedPart | None:
    """Return the part of a turn of a Markdown file; None for one that has no words or no path."""
    event, name = captured.event, captured.document.removeprefix(MARKDOWN)
    if not isinstance(event, Wrote):
        return None
    file, anchor = event.path.partition("#")[::2]
    if name.startswith("/"):  # of a longer path, the name is a hash
        file, anchor = name, event.path.removeprefix(name).removeprefix("#")
    lines = list(_lines(event.text, " ".join(anchor.split())))
    pieces = tuple(filter(None, (_words(piece) for line in lines for piece in _REDACTED.split(line))))
    if not file.startswith("/") or not pieces:
        return None
    root = root_of(Path(file))
    link = Link(path=str(Path(file).relative_to(root)), anchor=" ".join(anchor.split()))
    return ImportedPart(root, link, pieces, tuple(_cells(lines[0])) if len(lines) == 1 else ())


def _lines(text: str, anchor: str) -> Iterator[str]:
    """Yield the lines of a part without the headings above it."""
    headings, is_above = anchor.split(SEPARATOR), True
    for line in text.split("\n"):
        heading = _HEADING.fullmatch(line)
        is_above = is_above and heading is not None and " ".join(heading[1].split()) in headings
        if not is_above and not line.startswith("```"):
            yield line


def _cells(line: str) -> Iterator[str]:
    """Yield the words of each cell of "column: cell; column: cell"."""
    for cell in line.split("; "):
        if words := _words(cell.partition(": ")[2] or cell):
            yield words


def _words(text: str) -> str:
    return " ".join(_WORD.findall(text))
