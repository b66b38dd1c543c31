"""Five languages: taken verbatim, found by a word of their own, dates and zones as they were meant (P-21, P-22).

Comes in: authored sentences. Goes out: figures by language, and what was not found. Invariant: a date counts as right
only if it is the day that was named, in the zone in which it was said.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from ....protocol import request
from ....protocol.event import Origin, Said
from ...python.client import Client
from ..figure import Figure, at_least, share
from ..home import empty_home, running, settle
from ..part import Part, Setting


class Sentence(msgspec.Struct, frozen=True):
    """What was said when, a word to ask for it, and the day from which it holds."""

    text: str
    word: str
    at: str
    day: str


SAMPLES = Path(__file__).parents[1] / "samples" / "languages.json"


def languages(setting: Setting) -> Part:
    """zh, ja, ko, ar, de: captured verbatim, recalled by keyword; dates and zones right (P-22)."""
    spoken = msgspec.json.decode(SAMPLES.read_bytes(), type=dict[str, list[Sentence]])
    with empty_home() as (where, environment), running(where, environment) as client:
        for language, sentences in spoken.items():
            for number, each in enumerate(sentences):
                _tell(client, language, number, each)
        settle(client)
        found = {name: [_asked(client, name, *each) for each in enumerate(said)] for name, said in spoken.items()}
    figures: list[Figure] = []
    everything = [outcome for outcomes in found.values() for outcome in outcomes]
    for what, target in (
        ("verbatim", at_least(1)),
        ("by keyword", at_least(1)),
        ("zone", at_least(1)),
        ("date", at_least(1)),
    ):
        right = sum(outcome[what] for outcome in everything)
        figures.append(share(f"right: {what}", right, len(everything), target))
        for name, outcomes in found.items():
            right = sum(outcome[what] for outcome in outcomes)
            if right < len(outcomes):
                figures.append(Figure(name=f"  {name}", value=right / len(outcomes), samples=len(outcomes)))
    notes = [
        f"{name}: {', '.join(what for what, right in outcome.items() if not right)}: {each.text}"
        for name, outcomes in found.items()
        for each, outcome in zip(spoken[name], outcomes, strict=True)
        if not all(outcome.values())
    ]
    shows_not = "recall by meaning, among many, of inflected words: `memd bench read` asks for that"
    return Part(figures=tuple(figures), notes=tuple(notes), shows_not=shows_not)


def _tell(client: Client, language: str, number: int, each: Sentence) -> None:
    """Said in a session, and remembered outright."""
    origin = Origin(host="bench", session=f"said-{language}")
    client.capture(origin, [Said(turn=str(number), at=each.at, role="user", text=each.text)])
    told = Origin(host="bench", session=f"told-{language}")
    client.remember(request.Remember(text=each.text, turn=str(number), at=each.at, origin=told))


def _asked(client: Client, language: str, number: int, each: Sentence) -> dict[str, bool]:
    answer = client.recall(each.word, limit=20, budget_tokens=4000)
    records = [record for record in client.list(document=f"bench:told-{language}", limit=100).records
               if record.provenance.spans and record.provenance.spans[-1].turn == str(number)]  # fmt: skip
    quotes = [*(hit.record.provenance.quote for hit in answer.hits), *(turn.quote for turn in answer.turns)]
    verbatim = [quote for quote in quotes if len(quote) > len(each.text) // 2 and each.text.startswith(quote)]
    return {
        "verbatim": any(record.provenance.quote == each.text for record in records),
        "by keyword": bool(verbatim),
        "zone": any(record.provenance.said_at == each.at for record in records),
        "date": any(record.valid_from == f"{each.day}T00:00:00{each.at[19:]}" for record in records),
    }
