"""Five languages: captured verbatim, found by a word of their own, with the right dates and zones (P-21, P-22)."""

from __future__ import annotations

from pathlib import Path

import msgspec

from ....protocol import request
from ....protocol.event import Origin, Said
from ...python.client import Client
from ..measurement import BenchOptions, Figure, PartResult, at_least, share
from ..temporary_daemon import settle, temporary_daemon

SAMPLES = Path(__file__).parents[1] / "samples" / "languages.json"
CHECKS = ("verbatim", "by keyword", "zone", "date")


class DatedSentence(msgspec.Struct, frozen=True):
    """A sentence, a word to ask for it, when it was said, and the day from which it holds."""

    text: str
    word: str
    at: str
    day: str


def languages(options: BenchOptions) -> PartResult:
    """zh, ja, ko, ar, de: captured verbatim, recalled by keyword; dates and zones right."""
    samples = msgspec.json.decode(SAMPLES.read_bytes(), type=dict[str, list[DatedSentence]])
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
