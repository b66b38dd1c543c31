"""Everyday lines: plain statements, told or overheard, and the questions of the same person weeks later.

`samples/everyday.tsv` holds five people, each with one project, in 60 lines of six kinds. The lines of one person lie
in one home, and compete in its answers. A developer of memd reads only the lines of the half `open`.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal, get_args

import msgspec

from ...protocol.event import Origin, Said
from ...protocol.record import LIVE, Record
from ...protocol.request import Remember
from ..python.client import Client
from .measurement import BenchOptions, Figure, PartResult, at_least, share
from .session_data import has_words, new_repository, record_text, records
from .temporary_daemon import settle, temporary_daemon

FILE = Path(__file__).parent / "samples" / "everyday.tsv"
Kind = Literal["change", "keep", "route", "sense", "none", "list"]
KINDS: tuple[Kind, ...] = get_args(Kind)
TOLD_DAYS, THEN_DAYS = 20, 6
"""Days before now on which the first and the second statement are made."""
FIRST = 3
"""Hits of an answer among which a question by meaning must find its statement."""
MESSAGES, PARTS = " || ", " | "
NAMED = 40


class EverydayLine(msgspec.Struct, frozen=True, kw_only=True):
    """One line. `how`: whether the statements are told to memd (`remember`) or typed to an agent (`said`); `answer`:
    the words that the right statement holds; `not_answer`: words of the statement that no longer holds."""

    half: Literal["open", "held"]
    id: str
    kind: Kind
    how: Literal["remember", "said"]
    told: tuple[str, ...]
    then: tuple[str, ...]
    question: str
    answer: tuple[str, ...]
    not_answer: str
    pool: Literal["personal", "project", ""]

    @property
    def person(self) -> str:
        """The letter of the author, and of the person whose line it is."""
        return self.id[0]


@dataclass(frozen=True)
class _Judged:
    line: EverydayLine
    is_right: bool
    is_pool_right: bool | None
    why: str


def everyday(options: BenchOptions) -> PartResult:
    """300 everyday lines: changes, look-alikes, whose it is, questions by meaning, unknown things, lists."""
    judged: list[_Judged] = []
    every = lines()
    people = sorted({line.person for line in every})
    for person in people[:1] if options.quick else people:
        options.progress(f"everyday: person {person}")
        judged += _judged([line for line in every if line.person == person])
    figures = [*_figures(judged, "held"), *_figures(judged, "open")]
    wrong = [f"{one.line.id} {one.line.kind}: {one.why}" for one in judged if not one.is_right]
    shown = [text for text, one in zip(wrong, (j for j in judged if not j.is_right), strict=True) if _is_open(one)]
    return PartResult(
        tuple(figures), notes=tuple(shown[:NAMED]), shows_not="real sessions, and statements in other languages"
    )


def lines() -> tuple[EverydayLine, ...]:
    """The lines of the sample."""
    with FILE.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    return tuple(msgspec.convert({name: _cell(name, text) for name, text in row.items()}, EverydayLine) for row in rows)


def _cell(name: str, text: str) -> str | list[str]:
    mark = {"told": MESSAGES, "then": MESSAGES, "answer": PARTS}.get(name)
    return text if mark is None else text.split(mark) if text else []


def _is_open(judged: _Judged) -> bool:
    return judged.line.half == "open"


def _figures(judged: Sequence[_Judged], half: str) -> Iterator[Figure]:
    of_half = [one for one in judged if one.line.half == half]
    target = at_least(0.95) if half == "held" else None
    yield share(f"everyday lines right, half {half}", sum(one.is_right for one in of_half), len(of_half), target)
    for kind in KINDS:
        of_kind = [one.is_right for one in of_half if one.line.kind == kind]
        yield share(f"  {kind}", sum(of_kind), len(of_kind))
    for how in ("remember", "said"):
        of_way = [one.is_right for one in of_half if one.line.how == how]
        yield share(f"  {how}", sum(of_way), len(of_way))
    pools = [one.is_pool_right for one in of_half if one.is_pool_right is not None]
    yield share("  right pool, of the statements that are kept", sum(pools), len(pools))


def _judged(every: Sequence[EverydayLine]) -> list[_Judged]:
    """Tell all lines of one person to one daemon, the second statements two weeks later, and judge each line."""
    with TemporaryDirectory(prefix="memd-bench-") as name, temporary_daemon() as client:
        folder = new_repository(Path(name) / "project")
        now = datetime.now(UTC)
        _tell(client, folder, every, now)
        held = [record for record in records(client) if record.status in LIVE]
        return [_judge(client, folder, line, held) for line in every]


def _tell(client: Client, folder: str, every: Sequence[EverydayLine], now: datetime) -> None:
    for name, days in (("told", TOLD_DAYS), ("then", THEN_DAYS)):
        for number, line in enumerate(every):
            at = now - timedelta(days=days) + timedelta(minutes=number)
            messages: tuple[str, ...] = getattr(line, name)
            for part, text in enumerate(messages):
                moment = (at + timedelta(seconds=10 * part)).isoformat()
                origin = Origin(host="bench", session=f"{line.id}-{name}", cwd=folder)
                turn = f"{line.id}-{name}-{part}"
                if line.how == "remember":
                    client.remember(Remember(text=text, turn=turn, at=moment, origin=origin))
                else:
                    client.capture(origin, [Said(turn=turn, at=moment, role="user", text=text)])
        settle(client)


def _judge(client: Client, folder: str, line: EverydayLine, held: Sequence[Record]) -> _Judged:
    own = [record for record in held if line.id in record.provenance.source]
    right_ones = [record for record in own if _holds(record, line.answer)] if line.answer else own
    found = _hits(client, folder, line.question) if line.question else []
    match line.kind:
        case "change":
            is_right = bool(found) and has_words(found[0], line.answer) and not _still_believed(own, line)
        case "keep":
            is_right = bool(right_ones) and any("-then" in record.provenance.source for record in own)
        case "route":
            is_right = bool(own) and all(_pool(record) == line.pool for record in own)
        case "sense":
            is_right = any(has_words(text, line.answer) for text in found[:FIRST])
        case "none":
            is_right = not found
        case "list":
            is_right = all(any(_holds(record, (item,)) for record in own) for item in line.answer)
    pool = all(_pool(record) == line.pool for record in right_ones) if line.pool and right_ones else None
    why = "" if is_right else f"{line.question or line.told} → {[text[:80] for text in found[:2]]}; kept {len(own)}"
    return _Judged(line, is_right, pool, why)


def _hits(client: Client, folder: str, question: str) -> list[str]:
    """The texts of the records and turns of an answer, the best first."""
    answer = client.recall(question, cwd=folder, limit=5)
    scored = [(hit.score, record_text(hit.record)) for hit in answer.hits]
    scored += [(turn.score, turn.quote) for turn in answer.turns]
    return [text for _, text in sorted(scored, key=lambda pair: -pair[0])]


def _holds(record: Record, words: Iterable[str]) -> bool:
    return has_words(record_text(record), words)


def _still_believed(own: Sequence[Record], line: EverydayLine) -> bool:
    """Whether a live record says what no longer holds, and does not say what holds instead."""
    if not line.not_answer:
        return False
    return any(_holds(record, (line.not_answer,)) and not _holds(record, line.answer) for record in own)


def _pool(record: Record) -> str:
    return "personal" if record.pool == "personal" else "project"
