"""Sessions in other languages: what memd learns from them, and whether a question in the language finds it.

`samples/languages/LANGUAGE-NUMBER.json` holds four authored sessions of a developer and an agent in each language, with
gold lists. Each session is imported into an empty home, in a project. A developer of memd reads only the half `open`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal, get_args

import msgspec

from ...protocol.event import Origin, Said
from ...protocol.record import LIVE, Record
from ..python.client import Client
from .measurement import BenchOptions, Figure, PartResult, Target, at_least, at_most, share
from .session_data import new_repository, record_text, records
from .temporary_daemon import settle, temporary_daemon

FOLDER = Path(__file__).parent / "samples" / "languages"
OPEN = ("1", "2")
"""Numbers of the sessions of the half `open`."""

Kind = Literal["explicit", "decision", "preference", "other"]
Half = Literal["open", "held"]
WHOLE = 0.6
"""Share of a quote's words from which a record holds it."""

FIRST = 5
"""Hits of an answer among which a question must find its statement."""

_UNSPACED = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]")
_WORDS = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]+|[^\W_]+")


class Turn(msgspec.Struct, frozen=True):
    by: Literal["user", "agent"]
    text: str


class GoldItem(msgspec.Struct, frozen=True):
    """A statement that is worth keeping. `quote`: its words in number `turn` of the turns."""

    kind: Kind
    whose: Literal["user", "project"]
    by: Literal["user", "agent"]
    turn: int
    quote: str


class UnworthyQuote(msgspec.Struct, frozen=True):
    """Words that must not be kept."""

    turn: int
    quote: str


class LanguageQuestion(msgspec.Struct, frozen=True):
    """A question about a gold item; `answer`: words that the answer holds."""

    question: str
    answer: str


class LanguageSession(msgspec.Struct, frozen=True):
    language: str
    persona: str
    turns: tuple[Turn, ...]
    gold: tuple[GoldItem, ...]
    must_not: tuple[UnworthyQuote, ...]
    questions: tuple[LanguageQuestion, ...]


@dataclass(frozen=True)
class Learnt:
    """What one session left. `kept`: of each gold item, and of each quote that must not be kept, the records that hold
    it; `found`: the place of the first right hit of each question, or None."""

    name: str
    session: LanguageSession
    kept: tuple[tuple[Record, ...], ...]
    refused: tuple[tuple[Record, ...], ...]
    found: tuple[int | None, ...]
    records: int

    @property
    def half(self) -> Half:
        return "open" if self.name.rpartition("-")[2] in OPEN else "held"

    @cached_property
    def items(self) -> tuple[tuple[GoldItem, tuple[Record, ...]], ...]:
        return tuple(zip(self.session.gold, self.kept, strict=True))


def sessions(options: BenchOptions) -> PartResult:
    """Sessions in German, Spanish, Chinese, Russian and Vietnamese: what is kept, believed, and found."""
    learnt: list[Learnt] = []
    for path in sorted(FOLDER.glob("*-1.json" if options.quick else "*.json")):
        options.progress(f"languages: {path.stem}")
        learnt.append(_learn(path.stem, msgspec.json.decode(path.read_bytes(), type=LanguageSession)))
    figures: list[Figure] = []
    for half in get_args(Half):
        of_half = [one for one in learnt if one.half == half]
        figures += _figures(half, of_half, is_target=True)
        for language in sorted({one.session.language for one in of_half}):
            figures += _figures(f"  {half} {language}", [one for one in of_half if one.session.language == language])
    notes = [note for one in learnt if one.half == "open" for note in _misses(one)]
    return PartResult(tuple(figures), notes=tuple(notes), shows_not="meaning: words are compared")


def _learn(name: str, session: LanguageSession) -> Learnt:
    """Import a session into an empty home, and ask its questions: of a first live session nothing is believed yet."""
    with TemporaryDirectory(prefix="memd-bench-") as folder, temporary_daemon() as client:
        cwd = new_repository(Path(folder) / "project")
        begin = datetime.now(UTC) - timedelta(days=7)
        client.capture(
            Origin(host="bench", session=name, cwd=cwd, live=False),
            [
                Said(
                    turn=str(number),
                    at=(begin + timedelta(minutes=number)).isoformat(),
                    role="user" if turn.by == "user" else "assistant",
                    text=turn.text,
                )
                for number, turn in enumerate(session.turns)
            ],
        )
        settle(client)
        live = [record for record in records(client) if record.status in LIVE]
        return Learnt(
            name,
            session,
            tuple(_holding(live, item.quote) for item in session.gold),
            tuple(_holding(live, item.quote) for item in session.must_not),
            tuple(_place(client, cwd, asked) for asked in session.questions),
            len(live),
        )


def _holding(live: Iterable[Record], quote: str) -> tuple[Record, ...]:
    """The records that hold at least `WHOLE` of a quote's words."""
    words = _words(quote)
    needed = WHOLE * words.total()
    return tuple(record for record in live if (words & _words(_own_words(record))).total() >= needed)


def _own_words(record: Record) -> str:
    """The quote of a record, and of the question that it answers."""
    return f"{record.provenance.quote}\n{record.description}"


def _words(text: str) -> Counter[str]:
    """The words of a text; in a script without spaces every pair of letters."""
    words: Counter[str] = Counter()
    for word in _WORDS.findall(text.lower()):
        words.update([word[at : at + 2] for at in range(max(1, len(word) - 1))] if _UNSPACED.match(word) else [word])
    return words


def _place(client: Client, cwd: str, asked: LanguageQuestion) -> int | None:
    answer = client.recall(asked.question, cwd=cwd, limit=FIRST)
    scored = [(hit.score, record_text(hit.record)) for hit in answer.hits]
    scored += [(turn.score, turn.quote) for turn in answer.turns]
    texts = [text for _, text in sorted(scored, key=lambda pair: -pair[0])]
    return next((at for at, text in enumerate(texts) if asked.answer.lower() in text.lower()), None)


# --- figures ----------------------------------------------------------------------------------------------------------
def _figures(name: str, learnt: Sequence[Learnt], is_target: bool = False) -> Iterator[Figure]:
    items = [pair for one in learnt for pair in one.items]
    indent = "    " if name.startswith(" ") else "  "

    def of(
        detail: str, right: Callable[[GoldItem, Sequence[Record]], bool], kind: Kind | None, target: Target
    ) -> Figure:
        chosen = [right(item, kept) for item, kept in items if kind is None or item.kind == kind]
        return share(f"{indent}{detail}", sum(chosen), len(chosen), target if is_target else None)

    whole = [bool(kept) for _, kept in items]
    yield share(f"{name}: gold kept whole", sum(whole), len(whole))
    yield of("believed", lambda _, kept: any(map(_is_believed, kept)), None, at_least(0.17))
    yield of("explicit: believed, verbatim", _is_verbatim, "explicit", at_least(1))
    yield of("decision", lambda _, kept: bool(kept), "decision", at_least(0.29))
    yield of("preference", lambda _, kept: bool(kept), "preference", at_least(0.27))
    yield of("other", lambda _, kept: bool(kept), "other", at_least(0.27))
    pools = [_is_pool_right(item, kept) for item, kept in items if kept]
    yield share(f"{indent}right pool, of the gold that is kept", sum(pools), len(pools))
    explicit = [_is_pool_right(item, kept) for item, kept in items if kept and item.kind == "explicit"]
    yield share(f"{indent}right pool, of the explicit", sum(explicit), len(explicit))
    refused = [kept for one in learnt for kept in one.refused]
    yield share(
        f"{indent}kept that must not be", sum(map(bool, refused)), len(refused), at_most(0.1) if is_target else None
    )
    believed = [any(map(_is_believed, kept)) for kept in refused]
    yield share(f"{indent}believed that must not be", sum(believed), len(believed))
    found = [place for one in learnt for place in one.found]
    yield share(f"{indent}questions answered by the first hit", sum(place == 0 for place in found), len(found))
    yield share(
        f"{indent}by the first five",
        sum(place is not None for place in found),
        len(found),
        at_least(0.9) if is_target else None,
    )
    yield Figure(
        f"{indent}records of a session", sum(one.records for one in learnt) / max(1, len(learnt)), samples=len(learnt)
    )


def _is_believed(record: Record) -> bool:
    return record.status != "quarantined"


def _is_verbatim(item: GoldItem, kept: Sequence[Record]) -> bool:
    """Whether a believed record's quote contains the gold quote to the letter."""
    return any(_is_believed(record) and item.quote in record.provenance.quote for record in kept)


def _is_pool_right(item: GoldItem, kept: Sequence[Record]) -> bool:
    return all((record.pool == "personal") == (item.whose == "user") for record in kept)


def _misses(one: Learnt) -> Iterator[str]:
    """What went wrong in a session, for a developer."""
    for item, kept in one.items:
        if not kept or (item.kind == "explicit" and not _is_verbatim(item, kept)):
            yield f"{one.name} not kept, {item.kind} by {item.by}: {item.quote}"
        elif not _is_pool_right(item, kept):
            yield f"{one.name} wrong pool, of the {item.whose}: {item.quote}"
    for item, kept in zip(one.session.must_not, one.refused, strict=True):
        if kept:
            yield f"{one.name} kept: {item.quote}"
    for asked, place in zip(one.session.questions, one.found, strict=True):
        if place is None:
            yield f"{one.name} not found: {asked.question} → {asked.answer}"
