"""Invented projects: talks of developers as notes, questions with the lines that answer them, in two separate sets.

Comes in: the sample that comes with memd. Goes out: conversations, one a project. Invariants: no topic, project or
person of the one set is in the other; a topic is talked through for several parts, so that the right line has its like;
the same always.
"""

from __future__ import annotations

import random
import tomllib
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Literal

import msgspec

from .store import Note
from .talks import Asked, Talk

SAMPLE = Path(__file__).parents[1] / "samples" / "projects.toml"
BEGIN, BETWEEN = datetime(2023, 1, 9, 9, tzinfo=UTC), timedelta(seconds=40)
DATED = 0.25
"""The share of the questions that say when it was."""

PARTS, NAMED, SHORT = 3, 0.5, 5
"""Parts of a project for which a topic is talked through; of its lines that have so many words, the share that name the
part themselves, as a statement does that is to be understood alone."""

MONTHS = "January February March April May June July August September October November December".split()


class Project(msgspec.Struct, frozen=True):
    """A project, its parts and its people."""

    name: str
    parts: tuple[str, ...]
    people: tuple[str, ...]


class Topic(msgspec.Struct, frozen=True):
    """What is talked about: lines, what fills their slots, questions with the places of their answers."""

    lines: tuple[str, ...]
    values: dict[str, tuple[str, ...]]
    questions: tuple[tuple[str, tuple[int, ...]], ...]


class Authored(msgspec.Struct, frozen=True):
    """One of the two sets."""

    projects: tuple[Project, ...]
    topics: tuple[Topic, ...]


def talks(part: Literal["train", "test"]) -> list[Talk]:
    """The conversations of one set, one a project."""
    authored = msgspec.convert(tomllib.loads(SAMPLE.read_text(encoding="utf-8")), dict[str, Authored])[part]
    chance = random.Random(5)
    return [_talk(project, authored.topics, chance) for project in authored.projects]


def _talk(project: Project, topics: tuple[Topic, ...], chance: random.Random) -> Talk:
    notes: list[Note] = []
    questions: list[Asked] = []
    pairs = [
        (topic, part)
        for topic in topics
        for part in chance.sample(project.parts, PARTS if any("{c}" in line for line in topic.lines) else 1)
    ]
    for number, (topic, part) in enumerate(pairs):
        begin = BEGIN + timedelta(days=chance.randrange(700), minutes=chance.randrange(400))
        first, second = chance.sample(project.people, 2)
        slots = {"c": part, "w": part.split()[-1], "p": first, "q": second, "when": chance.choice(MONTHS)}
        slots |= {name: chance.choice(values) for name, values in topic.values.items()}
        for place, line in enumerate(topic.lines):
            key, _, words = line.format_map(slots).rpartition(" | ")
            at = (begin + place * BETWEEN).isoformat()
            alone = (
                place
                and len(words.split()) >= SHORT
                and "{c}" in topic.lines[0]
                and part not in words
                and chance.random() < NAMED
            )
            text = f"In {part}: {words[:1].lower()}{words[1:]}" if alone else words[:1].upper() + words[1:]
            notes.append(Note(name=f"{number}:{place}", text=text, at=at, talk=f"{project.name}-{number}", key=key))
        for question, places in topic.questions:
            text = question.format_map(slots)
            if chance.random() < DATED:
                text = f"{text.removesuffix('?')}, in {MONTHS[begin.month - 1]} {begin.year}?"
            questions.append(Asked(text=text, evidence=frozenset(f"{number}:{place}" for place in places), category=1))
    return Talk(name=project.name, notes=tuple(notes), questions=tuple(questions))
