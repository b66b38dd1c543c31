"""Other languages: notes that share their words, asked for in their own words and reworded (P-22).

Comes in: notes of five languages, written for this. Goes out: recall@5 by language. Invariants: every thing is joined
with every attribute, so that each note has some forty that share half of its words; a question has one right note; half
of the questions are reworded or inflected.
"""

from __future__ import annotations

import random
import tomllib
from pathlib import Path

import msgspec

from ....protocol.recall import RecallOptions
from ..figure import at_least, share
from ..part import Part, Setting
from .store import Note, ask, bench_daemon, embedded, fill

QUESTIONS = 40
AMONG = 5
NOTES = Path(__file__).parents[1] / "samples" / "tongues.toml"
_AT = "2026-03-05T09:00:00+00:00"


class Tongue(msgspec.Struct, frozen=True, kw_only=True):
    """A language: things in two forms; attributes as statement, values, question, reworded question."""

    things: tuple[tuple[str, str], ...]
    attributes: tuple[tuple[str, tuple[str, ...], str, str], ...]


def tongues() -> dict[str, Tongue]:
    """Every language of the sample."""
    return msgspec.convert(tomllib.loads(NOTES.read_text(encoding="utf-8")), dict[str, Tongue])


def languages(setting: Setting) -> Part:
    """Chinese, Japanese, Korean, Arabic, German: the right note among the first five of five hundred alike."""
    found: dict[str, tuple[int, int, int]] = {}
    told = tongues()
    with bench_daemon() as client:
        pools = {name: fill(client, f"project/{name}", notes(name, told[name])) for name in told}
        embedded(client)
        for name, tongue in told.items():
            plain = reworded = 0
            for number, (place, text) in enumerate(questions(tongue)):
                answer = ask(client, text, pools[name].pool, RecallOptions())
                names = [pools[name].names[hit.record.id] for hit in answer.hits[:AMONG]]
                if number % 2:
                    reworded += place in names
                else:
                    plain += place in names
            found[name] = (plain, reworded, len(pools[name].names))
    figures = [
        share(f"recall@{AMONG}, {name}, {count} notes", plain + reworded, QUESTIONS, at_least(0.85))
        for name, (plain, reworded, count) in found.items()
    ]
    halves = [
        share(f"  {name}, {kind}", right, QUESTIONS // 2)
        for name, (plain, reworded, _) in found.items()
        for kind, right in (("as noted", plain), ("reworded", reworded))
    ]
    return Part(
        figures=(*figures, *halves),
        shows_not="free text: notes and questions come from a grammar of real sentences, written by one hand",
    )


def notes(name: str, tongue: Tongue) -> list[Note]:
    """Every thing with every attribute, each in a talk of its own."""
    chance = random.Random(11)
    return [
        Note(
            name=f"{thing}-{attribute}",
            text=_capital(statement.replace("{t}", form).replace("{v}", chance.choice(values))),
            at=_AT,
            talk=f"{name}-{thing}-{attribute}",
            language=name,
        )
        for thing, (form, _) in enumerate(tongue.things)
        for attribute, (statement, values, _, _) in enumerate(tongue.attributes)
    ]


def questions(tongue: Tongue) -> list[tuple[str, str]]:
    """The right note's name and the question, plain and reworded in turns; each attribute about twice."""
    chance = random.Random(13)
    asked: list[tuple[str, str]] = []
    for number in range(QUESTIONS):
        attribute, thing = number * 4 % len(tongue.attributes), chance.randrange(len(tongue.things))
        _, _, plain, reworded = tongue.attributes[attribute]
        form, other = tongue.things[thing]
        text = reworded.replace("{o}", other) if number % 2 else plain.replace("{t}", form)
        asked.append((f"{thing}-{attribute}", _capital(text)))
    return asked


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
