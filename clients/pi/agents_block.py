"""The block of the playbook in AGENTS.md or CLAUDE.md, between two marker lines (G5).

Invariants: a file has no marker, or exactly one pair in order outside of fences and comments; any other file is refused
and stays byte for byte; the block has at most `MOST_LINES` lines and `MOST_TOKENS` tokens; writing it twice changes
nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ...protocol.errors import Refused

BEGIN, END = "<!-- memd:begin -->", "<!-- memd:end -->"
NOTE = "<!-- made by memd from .pi/memory; edit there -->"
MOST_LINES = 30
MOST_TOKENS = 600
_CHARACTERS_PER_TOKEN = 4
_FRAME = (BEGIN, NOTE, END)
_MARKER = re.compile(r"<!--+\s*/?\s*memd\s*:\s*(?:begin|end)\b", re.IGNORECASE)


class MadeBlock(NamedTuple):
    """A block. `left_out`: how many records did not fit."""

    lines: tuple[str, ...]
    left_out: int


class BlockedFile(NamedTuple):
    """A text with its block. `at`: lines of the block, empty if it has none; `newline`: how its lines end."""

    lines: list[str]
    at: range
    newline: str


def block_of(records: Iterable[dict[str, Any]]) -> MadeBlock:
    """Return the block of the active records, sorted by id; those with most confidence come in first. Raises Refused
    for a statement that has a marker."""
    active = [record for record in records if record["status"] == "active"]
    budget = MOST_TOKENS * _CHARACTERS_PER_TOKEN - sum(len(line) + 1 for line in _FRAME)
    chosen: list[tuple[str, str]] = []
    for record in sorted(active, key=lambda record: (-record["confidence"], record["id"])):
        line = line_of_block(record)
        if _MARKER.search(line):
            hint = "supersede that record by one without it"
            raise Refused(f"the statement of {record['id']} has a marker of the block", hint=hint)
        if len(chosen) < MOST_LINES - len(_FRAME) and len(line) < budget:
            chosen.append((record["id"], line))
            budget -= len(line) + 1
    lines = tuple(line for _, line in sorted(chosen))
    return MadeBlock((BEGIN, NOTE, *lines, END), len(active) - len(chosen))


def line_of_block(record: dict[str, Any]) -> str:
    """Return the line of a record."""
    return f"- {' '.join(record['statement'].split())}"


def with_block(data: bytes, block: Sequence[str]) -> bytes:
    """Return a file with the block in place of the one that it has, else after its end. Raises Refused."""
    text = _split(data)
    if text.at:
        lines = [*text.lines[: text.at.start], *block, *text.lines[text.at.stop :]]
    else:
        before = text.lines[:-1] if text.lines[-1] == "" else text.lines
        gap = [""] if any(before) else []
        lines = [*before, *gap, *block, ""]
    return text.newline.join(lines).encode()


def body_of(data: bytes) -> list[str]:
    """Return the lines that the file's block has now, without the frame. Raises Refused."""
    text = _split(data)
    return [line for line in (text.lines[at] for at in text.at) if line not in _FRAME]


def edited_lines(data: bytes, records: Iterable[dict[str, Any]]) -> list[str]:
    """Return the lines of the file's block that no record has: a person wrote them. Raises Refused."""
    known = {line_of_block(record) for record in records}
    return [line for line in body_of(data) if line not in known]


def without_block(text: str) -> str:
    """Return a text whose block is blank, with as many lines as before; one with broken markers as it is."""
    if not _MARKER.search(text):
        return text
    try:
        split = _split(text.encode())
    except Refused:
        return text
    return split.newline.join("" if at in split.at else line for at, line in enumerate(split.lines))


def _split(data: bytes) -> BlockedFile:
    """Return a file with the place of its block. Raises Refused for every state but the two legal ones."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise _refusal("it is not UTF-8") from error
    newline = "\r\n" if "\r\n" in text else "\n"
    if "\r" in text.replace("\r\n", "") or (newline == "\r\n" and text.count("\n") != text.count("\r\n")):
        raise _refusal("its lines end in different ways (CRLF and LF)")
    lines = text.split(newline)
    marked = [at for at, line in enumerate(lines) if _MARKER.search(line)]
    if not marked:
        return BlockedFile(lines, range(0), newline)
    if len(marked) != len(("begin", "end")) or [lines[at] for at in marked] != [BEGIN, END]:
        raise _refusal(f"it has other markers than one line {BEGIN} and one line {END} below it", marked[0])
    _check_outside(text, marked)
    return BlockedFile(lines, range(marked[0], marked[1] + 1), newline)


def _check_outside(text: str, marked: Sequence[int]) -> None:
    """Raise Refused if a marker is part of a fence, of a comment or of other HTML."""
    from markdown_it import MarkdownIt

    starts = {
        token.map[0] for token in MarkdownIt("commonmark").parse(text) if token.type == "html_block" and token.map
    }
    for at in marked:
        if at not in starts:
            raise _refusal("a marker is inside of a fence, a list, a comment or other HTML", at)


def _refusal(why: str, at: int | None = None) -> Refused:
    place = f" (line {at + 1:,})" if at is not None else ""
    return Refused(f"memd leaves the file as it is: {why}{place}", hint="mend or remove the markers, then run it again")


def target_of(file: Path, top: Path, also: Sequence[Path] = ()) -> Path:
    """Return the file that is written, behind links. `also`: files outside of `top` that may be written. Raises
    Refused for one that lies outside of the repository."""
    target = file.resolve()
    if target.is_relative_to(top.resolve()) or target in [path.resolve() for path in also]:
        return target
    raise Refused(f"{file} leads out of the repository, to {target}", hint="name a file of the repository")
