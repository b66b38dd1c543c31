"""Recall in other languages (P-22): a question has one right note, which shares half of its words with some forty
others; half of the questions are reworded or inflected."""

from __future__ import annotations

import random
import tomllib

import msgspec

from ....protocol.recall import RecallOptions
from ..measurement import BenchOptions, PartResult, at_least, share
from ..temporary_daemon import temporary_daemon
from .conversations import SAMPLES
from .seeded_pools import WITH_OPTIONS, SeedNote, await_vectors, fill

QUESTIONS = 40
FIRST = 5
_AT = "2026-03-05T09:00:00+00:00"


class LanguageGrammar(msgspec.Struct, frozen=True, kw_only=True):
    """A language: things in two forms; attributes as statement, values, question, reworded question."""

    things: tuple[tuple[str, str], ...]
    attributes: tuple[tuple[str, tuple[str, ...], str, str], ...]

    def notes(self, name: str) -> list[SeedNote]:
        """Every thing with every attribute, each in a session of its own."""
        chance = random.Random(11)
        return [
            SeedNote(
                name=f"{thing}-{attribute}",
                text=_capitalised(statement.replace("{t}", form).replace("{v}", chance.choice(values))),
                at=_AT,
                session=f"{name}-{thing}-{attribute}",
                language=name,
            )
            for thing, (form, _) in enumerate(self.things)
            for attribute, (statement, values, _, _) in enumerate(self.attributes)
        ]

    def questions(self) -> list[tuple[str, str]]:
        """The right note's name and the question, plain and reworded in turns; each attribute about twice."""
        chance = random.Random(13)
        questions: list[tuple[str, str]] = []
        for number in range(QUESTIONS):
            attribute, thing = number * 4 % len(self.attributes), chance.randrange(len(self.things))
            _, _, plain, reworded = self.attributes[attribute]
            form, other = self.things[thing]
            text = reworded.replace("{o}", other) if number % 2 else plain.replace("{t}", form)
            questions.append((f"{thing}-{attribute}", _capitalised(text)))
        return questions


def _capitalised(text: str) -> str:
    return text[:1].upper() + text[1:]


def languages(options: BenchOptions) -> PartResult:
    """Chinese, Japanese, Korean, Arabic, German: the right note among the first five of five hundred alike."""
    content = (SAMPLES / "multilingual_notes.toml").read_text(encoding="utf-8")
    grammars = msgspec.convert(tomllib.loads(content), dict[str, LanguageGrammar])
    found: dict[str, list[bool]] = {}
    with temporary_daemon(WITH_OPTIONS) as client:
        pools = {name: fill(client, f"project/{name}", grammar.notes(name)) for name, grammar in grammars.items()}
        await_vectors(client)
        for name, grammar in grammars.items():
            found[name] = [
                note in pools[name].ranked(pools[name].ask(client, text, RecallOptions()))[:FIRST]
                for note, text in grammar.questions()
            ]
    figures = [
        share(f"recall@{FIRST}, {name}, {len(pools[name].names)} notes", sum(right), QUESTIONS, at_least(0.85))
        for name, right in found.items()
    ]
    halves = [
        share(f"  {name}, {kind}", sum(right[first::2]), QUESTIONS // 2)
        for name, right in found.items()
        for first, kind in enumerate(("as noted", "reworded"))
    ]
    shows_not = "free text: notes and questions come from one author's grammar of real sentences"
    return PartResult((*figures, *halves), shows_not=shows_not)
