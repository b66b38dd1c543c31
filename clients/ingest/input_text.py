"""The text of an input as passages, and the items among which a user may choose (W12)."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from ...protocol.event import Form
from ..importers.markdown import MarkdownPart
from .passages import LONGEST, pieces

LABEL = 100
"""Characters of an item's label."""


class InputPassage(msgspec.Struct, frozen=True, kw_only=True):
    """One turn of the document: its text, its form, and the headings above it or the page that it stands on. `at`: when
    it was written, RFC 3339, "" for the time of the file."""

    text: str
    where: str = ""
    form: Form = ""
    at: str = ""


class InputItem(msgspec.Struct, frozen=True, kw_only=True):
    """An item: what it is called, the places of its passages, and its category, "" for none."""

    label: str
    passages: tuple[int, ...]
    category: str = ""


class InputItems(msgspec.Struct, frozen=True, kw_only=True):
    """The longest run of siblings. `of`: what they are, such as "list entries"."""

    of: str = ""
    items: tuple[InputItem, ...] = ()


class InputText(msgspec.Struct, frozen=True, kw_only=True):
    """An input that was read. `format`: how; `noise`: rows that hold no words, by kind."""

    format: str
    title: str = ""
    passages: tuple[InputPassage, ...] = ()
    items: InputItems = InputItems()
    noise: dict[str, int] = {}


def label_of(words: str) -> str:
    """Return a text as the label of an item."""
    line = " ".join(words.split())
    return line if len(line) <= LABEL else f"{line[: LABEL - 1].rstrip()}…"


def passages_of(part: MarkdownPart, where: str = "") -> tuple[InputPassage, ...]:
    """Return a part as passages: one, unless it is too long."""
    anchor = where or " > ".join(part.headings)
    if len(part.text) <= LONGEST:
        return (InputPassage(text=part.text, where=anchor, form=part.form),)
    room = max(LONGEST // 2, LONGEST - (len(part.text) - len(part.words)))
    parts = [msgspec.structs.replace(part, words=words) for words in pieces(part.words, longest=room)]
    texts = [part.text if len(part.text) <= LONGEST else part.words for part in parts]
    form: Form = "" if part.form in ("row", "purpose") else part.form
    return tuple(InputPassage(text=text, where=anchor, form=form) for text in texts)


def longest(runs: Sequence[InputItems]) -> InputItems:
    """Return the run with the most items, the first of equals."""
    return max(runs, key=lambda run: len(run.items), default=InputItems())
