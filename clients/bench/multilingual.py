"""Other languages: sentences captured verbatim, dated and found by a word of their own (P-21); recall among notes that
share half of their words with some forty others, by plain and by reworded questions (P-22)."""

from __future__ import annotations

import random
import tomllib

import msgspec

from ...protocol import request
from ...protocol.event import Origin, Said
from ...protocol.recall import RecallOptions
from ..python.client import Client
from .measurement import BenchOptions, Figure, PartResult, at_least, share
from .read.conversations import SAMPLES, WITH_OPTIONS, SeedNote, await_vectors, fill
from .temporary_daemon import settle, temporary_daemon

CHECKS = ("verbatim", "by keyword", "zone", "date")


class DatedSentence(msgspec.Struct, frozen=True):
    """A sentence, a word to ask for it, when it was said, and the day from which it holds."""

    text: str
    word: str
    at: str
    day: str


def captured(options: BenchOptions) -> PartResult:
    """zh, ja, ko, ar, de: captured verbatim, recalled by keyword; dates and zones right."""
    samples = msgspec.json.decode((SAMPLES / "languages.json").read_bytes(), type=dict[str, list[DatedSentence]])
    with temporary_daemon() as client:
        for language, sentences in samples.items():
            for number, sentence in enumerate(sentences):
                turn, at, text = str(number), sentence.at, sentence.text
                said = Origin(host="bench", session=f"said-{language}")
                client.capture(said, [Said(turn=turn, at=at, role="user", text=text)])
                remembered = Origin(host="bench", session=f"told-{language}")
                client.remember(request.Remember(text=text, turn=turn, at=at, origin=remembered))
        settle(client)
        checked = {
            language: [_checked(client, language, *numbered) for numbered in enumerate(sentences)]
            for language, sentences in samples.items()
        }
    figures: list[Figure] = []
    for check in CHECKS:
        right = {language: [outcome[check] for outcome in outcomes] for language, outcomes in checked.items()}
        everything = [is_right for outcomes in right.values() for is_right in outcomes]
        figures.append(share(f"right: {check}", sum(everything), len(everything), at_least(1)))
        figures += [
            Figure(f"  {language}", sum(outcomes) / len(outcomes), samples=len(outcomes))
            for language, outcomes in right.items()
            if not all(outcomes)
        ]
    notes = [
        f"{language}: {', '.join(check for check in CHECKS if not outcome[check])}: {sentence.text}"
        for language, outcomes in checked.items()
        for sentence, outcome in zip(samples[language], outcomes, strict=True)
        if not all(outcome.values())
    ]
    shows_not = "recall by meaning, among many, of inflected words: `memd bench read` measures that"
    return PartResult(tuple(figures), notes=tuple(notes), shows_not=shows_not)


def _checked(client: Client, language: str, number: int, sentence: DatedSentence) -> dict[str, bool]:
    answer = client.recall(sentence.word, limit=20, budget_tokens=4000)
    records = [
        record
        for record in client.list(document=f"bench:told-{language}", limit=100).records
        if record.provenance.spans and record.provenance.spans[-1].turn == str(number)
    ]
    quotes = [*(hit.record.provenance.quote for hit in answer.hits), *(turn.quote for turn in answer.turns)]
    valid_from = f"{sentence.day}T00:00:00{sentence.at[19:]}"
    return {
        "verbatim": any(record.provenance.quote == sentence.text for record in records),
        "by keyword": any(len(q) > len(sentence.text) // 2 and sentence.text.startswith(q) for q in quotes),
        "zone": any(record.provenance.said_at == sentence.at for record in records),
        "date": any(record.valid_from == valid_from for record in records),
    }


# --- recall -----------------------------------------------------------------------------------------------------------
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


def recalled(options: BenchOptions) -> PartResult:
    """Chinese, Japanese, Korean, Arabic, German: the right note among the first five of five hundred alike."""
    content = (SAMPLES / "multilingual_notes.toml").read_text(encoding="utf-8")
    grammars = msgspec.convert(tomllib.loads(content), dict[str, LanguageGrammar])
    hits: dict[str, list[bool]] = {}
    with temporary_daemon(WITH_OPTIONS) as client:
        pools = {name: fill(client, f"project/{name}", grammar.notes(name)) for name, grammar in grammars.items()}
        await_vectors(client)
        for name, grammar in grammars.items():
            hits[name] = [
                note in pools[name].ranked(pools[name].ask(client, text, RecallOptions()))[:FIRST]
                for note, text in grammar.questions()
            ]
    figures = [
        share(f"recall@{FIRST}, {name}, {len(pools[name].names)} notes", sum(right), QUESTIONS, at_least(0.85))
        for name, right in hits.items()
    ]
    halves = [
        share(f"  {name}, {kind}", sum(right[first::2]), QUESTIONS // 2)
        for name, right in hits.items()
        for first, kind in enumerate(("as noted", "reworded"))
    ]
    shows_not = "free text: notes and questions come from one author's grammar of real sentences"
    return PartResult((*figures, *halves), shows_not=shows_not)
