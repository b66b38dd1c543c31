"""Invented dialogues: people and agents who talk over years, and questions with the lines that answer, in two sets.

Comes in: the sample that comes with memd. Goes out: conversations, one a dialogue. Invariants: every line was written
for its place, none is made from a pattern; nobody of the one set is in the other; the same always.
"""

from __future__ import annotations

import re
import tomllib
from datetime import datetime, timedelta
from pathlib import Path
from typing import Literal

import msgspec

from .store import Note
from .talks import Asked, Talk

SAMPLE = Path(__file__).parents[1] / "samples" / "talks.toml"
BETWEEN = timedelta(seconds=40)
SORTS = "fjwi"
"""One fact; joined from several lines; when or how long; what follows from a line: categories 1 to 4."""

_LINE = re.compile(r"(\w+)(?: (\w+))?: (.+)")


class Session(msgspec.Struct, frozen=True):
    """What was said at one time: a line each, "who: words", or "who name: words" where a question cites it."""

    at: str
    lines: str


class Dialogue(msgspec.Struct, frozen=True):
    """Sessions of the same people, by their initials; a question each line, "sort name name | words"."""

    set: Literal["train", "test"]
    people: dict[str, str]
    sessions: tuple[Session, ...]
    questions: str


class Authored(msgspec.Struct, frozen=True):
    """The sample."""

    talks: tuple[Dialogue, ...]


def dialogues(part: Literal["train", "test"]) -> list[Talk]:
    """The conversations of one set. Raises ValueError for a line or a question that is none."""
    authored = msgspec.convert(tomllib.loads(SAMPLE.read_text(encoding="utf-8")), Authored)
    return [_talk(each) for each in authored.talks if each.set == part]


def _talk(dialogue: Dialogue) -> Talk:
    name = "-".join(dialogue.people.values()).lower()
    notes: list[Note] = []
    places: dict[str, str] = {}
    for number, session in enumerate(dialogue.sessions):
        begin = datetime.fromisoformat(session.at)
        for place, line in enumerate(session.lines.strip().splitlines()):
            found = _LINE.fullmatch(line)
            if found is None or found[2] in places:
                raise ValueError(f"{name}: {line}")
            who, own = dialogue.people[found[1]], f"{number}:{place}"
            if found[2]:
                places[found[2]] = own
            at = (begin + place * BETWEEN).isoformat()
            notes.append(Note(name=own, text=f"{who}: {found[3]}", at=at, talk=f"{name}-{number}", author=who))
    questions = tuple(_asked(line, places) for line in dialogue.questions.strip().splitlines())
    return Talk(name=name, notes=tuple(notes), questions=questions)


def _asked(line: str, places: dict[str, str]) -> Asked:
    cited, _, text = line.partition(" | ")
    sort, *names = cited.split()
    return Asked(text=text, evidence=frozenset(places[name] for name in names), category=SORTS.index(sort) + 1)
