"""The gate (U5): real records drawn by seed for grading by hand, and the verdict of a graded sheet."""

from __future__ import annotations

import random
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal, get_args

import msgspec

from ...protocol.errors import InvalidRequest
from ...protocol.event import text
from ...protocol.instant import micros
from ...protocol.record import LIVE, Record
from ..importers.transcript import CapturedSession
from .corpus import corpus_folder, is_corpus, load_scorer, models_without, read_session, repository, session_names
from .measurement import BenchOptions, Figure, PartResult, Tier, at_least, at_most, share, zero_figure
from .session_data import RealSessions, deliver, new_repository, read, records
from .temporary_daemon import settle, temporary_daemon

Grade = Literal["right", "trivial", "wrong", "invented"]
GRADES: tuple[Grade, ...] = get_args(Grade)
TIERS: tuple[Tier, ...] = get_args(Tier)

DRAWN, MOST_AN_HOUR, LEAST_OF_LARGE = 50, 25, 30  # `DRAWN` of each tier
LEAST_RIGHT: dict[Tier, int] = {"believed": 45, "noted": 30}
MOST_WRONG: dict[Tier, int] = {"believed": 2}
NO_PROBATION = {"MEMD_FORGETTING": "{old_import_days = 0}"}
"""Settings with which no record is unconfirmed only because its session is old."""
LONGEST_GAP_S = 300  # the most that a gap between two events of a session counts
AROUND = 400  # characters of the turn that are shown before and after the quote
_COPIED = "id valid_from kind type key value description".split()
_HEAD = re.compile(rf"^## \d+, ({'|'.join(TIERS)})$", re.MULTILINE)
_GRADED = re.compile(r"^grade:[ \t]*(\w*)", re.MULTILINE)


class SheetRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One record of the sheet: the quote it rests on, the text before and after it, its grade once it has one."""

    number: int
    tier: Tier
    id: str
    session: str
    speaker: str
    said_at: str
    valid_from: str
    kind: str
    type: str
    key: str
    value: str
    description: str
    quote: str
    before: str
    after: str
    grade: str = ""


class Sheet(msgspec.Struct, frozen=True, kw_only=True):
    """The drawn records, the seed that drew them, and the number of records and hours they were drawn from."""

    seed: int
    records: int
    hours: float
    drawn: tuple[SheetRecord, ...]


def gate(options: BenchOptions) -> PartResult:
    """Fifty believed and fifty noted records of real sessions for grading by hand; or the verdict of a sheet."""
    return _verdict(options.grades) if options.grades else _draw(options)


# --- drawing ---------------------------------------------------------------------------------------------------------
def _draw(options: BenchOptions) -> PartResult:
    if options.data and is_corpus(options.data):
        real, live = _of_corpus(options)
    else:
        real = read(options, sample=False)
        options.progress(f"gate: {len(real.sessions)} sessions")
        live = _distilled(real.sessions)
    hours = hours_of(real.sessions)
    counts = defaultdict[str, int](int)
    for record in live:
        counts[_session(record.provenance.source)] += 1
    large = real.large & hours.keys()
    total_hours = round(sum(hours.values()), 2)
    drawn_records = drawn(live, real.sessions, options.seed, TIERS if options.tier == "both" else (options.tier,))
    sheet = Sheet(seed=options.seed, records=len(live), hours=total_hours, drawn=drawn_records)
    markdown, _ = write(sheet, options.sheet or Path.cwd() / "memd-gate")
    of_large, hours_large = sum(counts[name] for name in large), sum(hours[name] for name in large)

    def rate(name: str, count: int, hours: float) -> Figure:
        return Figure(name, count / max(hours, 1e-9), samples=count, target=at_most(MOST_AN_HOUR))

    figures = [rate("records an hour of session", len(live), total_hours)]
    if large:
        figures += [
            rate("  of the large ones of Claude Code", of_large, hours_large),
            Figure("records from these", of_large, samples=len(large), target=at_least(LEAST_OF_LARGE)),
        ]
    figures.append(Figure("hours of session", total_hours, "h", samples=len(hours)))
    by_session = [f"{name}: {counts[name]} records in {hours[name]:.2f} h" for name in sorted(hours)]
    next_step = f"grade {markdown} by docs/RUBRIC.md, then: memd bench gate --grades {markdown}"
    return PartResult(
        tuple(figures),
        notes=(next_step, *real.left_out, *by_session),
        shows_not="whether the records are right: the grades show that",
    )


def _of_corpus(options: BenchOptions) -> tuple[RealSessions, list[Record]]:
    """The sessions of the corpus and their records, each repository in a home of its own, with the selection that was
    fitted without it."""
    folder, scorer = corpus_folder(options), load_scorer(corpus_folder(options))
    by_repository = defaultdict[str, list[str]](list)
    for name in session_names(options):
        by_repository[repository(name)].append(name)
    sessions: list[CapturedSession] = []
    live: list[Record] = []
    with TemporaryDirectory(prefix="memd-bench-") as place:
        for own, names in by_repository.items():
            options.progress(f"gate: {', '.join(names)}")
            cwd = new_repository(Path(place) / own)
            of_own = [session for name in names for session in read_session(folder, scorer, name, cwd)]
            live += _distilled(of_own, models_without(own))
            sessions += of_own
    return RealSessions(tuple(sessions)), live


def _distilled(sessions: Iterable[CapturedSession], settings: Mapping[str, str] | None = None) -> list[Record]:
    """The live records that a daemon with these settings makes of sessions, however old they are."""
    with temporary_daemon({**NO_PROBATION, **(settings or {})}) as client:
        deliver(client, sessions)
        settle(client)
        return sorted((record for record in records(client) if record.status in LIVE), key=lambda record: record.id)


def tier_of(record: Record) -> Tier:
    """Whether a live record is believed, or only noted."""
    return "noted" if record.status == "quarantined" else "believed"


def _session(document: str) -> str:
    """The session of a document: documents of subagents belong to the session that started them."""
    return document.partition("/")[0]


def hours_of(sessions: Iterable[CapturedSession]) -> dict[str, float]:
    """Hours of each session: the time between its events, each gap at most five minutes."""
    at = defaultdict[str, list[int]](list)
    for session in sessions:
        at[_session(session.origin.document)] += [micros(event.at) for event in session.events]
    return {
        name: sum(min((later - earlier) / 1e6, LONGEST_GAP_S) for earlier, later in pairwise(sorted(moments))) / 3600
        for name, moments in at.items()
    }


def drawn(
    live: Sequence[Record], sessions: Iterable[CapturedSession], seed: int, tiers: Sequence[Tier] = TIERS
) -> tuple[SheetRecord, ...]:
    """Fifty of the records of each tier, or all if there are fewer, mixed in an order that the seed decides."""
    turns = {(session.origin.document, event.turn): text(event) for session in sessions for event in session.events}
    chance, chosen = random.Random(seed), list[Record]()
    for tier in tiers:
        of_tier = [record for record in live if tier_of(record) == tier]
        chosen += chance.sample(of_tier, min(DRAWN, len(of_tier)))
    chance.shuffle(chosen)
    records: list[SheetRecord] = []
    for number, record in enumerate(chosen, 1):
        source, quote = record.provenance, record.provenance.quote
        span = source.spans[0]
        turn = turns.get((span.document, span.turn), "")
        start = span.start if turn[span.start :].startswith(quote) else max(0, turn.find(quote))
        end = start + len(quote)
        records.append(
            SheetRecord(
                **{name: getattr(record, name) for name in _COPIED},
                number=number,
                tier=tier_of(record),
                session=source.source,
                speaker=source.trust,
                said_at=source.said_at,
                quote=quote,
                before=turn[max(0, start - AROUND) : start],
                after=turn[end : end + AROUND],
            )
        )
    return tuple(records)


# --- the sheet -------------------------------------------------------------------------------------------------------
def write(sheet: Sheet, folder: Path) -> tuple[Path, Path]:
    """Write the sheet to a folder as Markdown, for grading, and as JSON."""
    folder.mkdir(parents=True, exist_ok=True)
    markdown, json = folder / "gate.md", folder / "gate.json"
    head = f"# {len(sheet.drawn)} of {sheet.records} records, {sheet.hours} hours of session, seed {sheet.seed}\n\n"
    head += f"Write one word behind each `grade:`, as docs/RUBRIC.md says: {', '.join(GRADES)}.\n"
    markdown.write_text(head + "".join(_markdown(record) for record in sheet.drawn), encoding="utf-8")
    json.write_bytes(msgspec.json.format(msgspec.json.encode(sheet)))
    return markdown, json


def _markdown(record: SheetRecord) -> str:
    keyed = f", `{record.key}` = {record.value or 'so'}" if record.key else ""
    about = f"{record.type} ({record.kind}{keyed}), said by {record.speaker} at {record.said_at}"
    quoted = "\n".join(f"> {line}" for line in f"{record.before} ⟦{record.quote}⟧ {record.after}".splitlines())
    head = f"\n## {record.number}, {record.tier}\n\n**{record.description}**\n\n{about}, {record.session}, {record.id}"
    return f"{head}\n\n{quoted}\n\ngrade: {record.grade}\n"


# --- the verdict -----------------------------------------------------------------------------------------------------
def grades(path: Path) -> list[tuple[Tier, str]]:
    """The tier and the grade of each record of a sheet, in order. Raises InvalidRequest for a missing or an unknown
    grade."""
    given: list[tuple[Tier, str]]
    try:
        content = path.read_text(encoding="utf-8")
        if path.suffix == ".json":
            given = [(record.tier, record.grade) for record in msgspec.json.decode(content, type=Sheet).drawn]
        else:
            tiers, sections = _HEAD.split(content)[1::2], _HEAD.split(content)[2::2]
            lines = (_GRADED.search(section[section.rfind("\ngrade:") + 1 :]) for section in sections)
            words = [line[1] if line else "" for line in lines]
            given = [(msgspec.convert(tier, Tier), word) for tier, word in zip(tiers, words, strict=True)]
    except (OSError, UnicodeDecodeError, msgspec.MsgspecError) as error:
        raise InvalidRequest(f"{path} can't be read as a sheet: {error}", hint="memd bench gate writes one") from error
    for number, (_, grade) in enumerate(given, 1):
        if grade not in GRADES:
            what = f"{grade!r} is no grade" if grade else "there is no grade"
            raise InvalidRequest(f"record {number} of {path}: {what}", hint=f"one of {', '.join(GRADES)}")
    if not given:
        raise InvalidRequest(f"there is no record in {path}", hint="memd bench gate writes a sheet")
    return given


def _verdict(path: Path) -> PartResult:
    given = grades(path)
    figures = [figure for tier in TIERS for figure in _graded(tier, [grade for of, grade in given if of == tier])]
    numbers = {grade: [str(n) for n, (_, other) in enumerate(given, 1) if other == grade] for grade in GRADES[1:]}
    notes = tuple(f"{grade}: {', '.join(of_grade)}" for grade, of_grade in numbers.items() if of_grade)
    shows_not = "facts that were said and not recorded; how another reader would have graded"
    return PartResult(tuple(figures), notes=notes, shows_not=shows_not)


def _graded(tier: Tier, given: Sequence[str]) -> Iterator[Figure]:
    if not given:
        return
    count = {grade: given.count(grade) for grade in GRADES}
    most_wrong = at_most(MOST_WRONG[tier] / DRAWN) if tier in MOST_WRONG else None
    yield share(f"{tier}: right and worth keeping", count["right"], len(given), at_least(LEAST_RIGHT[tier] / DRAWN))
    yield share("  borne out, not worth keeping", count["trivial"], len(given))
    yield share("  borne out, but wrong", count["wrong"], len(given), most_wrong)
    yield zero_figure("  not borne out", count["invented"], len(given))
