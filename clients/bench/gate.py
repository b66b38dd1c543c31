"""The gate (U5): real records drawn by seed for grading by hand, and the verdict of a graded sheet."""

from __future__ import annotations

import random
import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Literal, get_args

import msgspec

from ...protocol.errors import InvalidRequest
from ...protocol.event import text
from ...protocol.instant import micros
from ...protocol.record import LIVE, Record
from ..importers.transcript import CapturedSession
from .measurement import BenchOptions, Figure, PartResult, at_least, at_most, share, zero_figure
from .session_data import LARGE_BYTES, deliver, files, read, records
from .temporary_daemon import settle, temporary_daemon

Grade = Literal["right", "trivial", "wrong", "invented"]
GRADES: tuple[Grade, ...] = get_args(Grade)

DRAWN, LEAST_RIGHT, MOST_AN_HOUR, LEAST_OF_LARGE = 50, 45, 25, 30
LONGEST_GAP_S = 300  # the most that a gap between two events of a session counts
AROUND = 400  # characters of the turn that are shown before and after the quote
_COPIED = "id valid_from kind type key value description".split()
_HEAD = re.compile(r"^## (\d+)\b", re.MULTILINE)
_GRADED = re.compile(r"^grade:[ \t]*(\w*)", re.MULTILINE)


class SheetRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One record of the sheet: the quote it rests on, the text before and after it, its grade once it has one."""

    number: int
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
    """Fifty records over all real sessions for grading by hand, and how many there are; or the verdict of a sheet."""
    return _verdict(options.grades) if options.grades else _draw(options)


# --- drawing ---------------------------------------------------------------------------------------------------------
def _draw(options: BenchOptions) -> PartResult:
    real = read(options, sample=False)
    options.progress(f"gate: {len(real.sessions)} sessions")
    with temporary_daemon() as client:
        deliver(client, real.sessions)
        settle(client)
        live = sorted((record for record in records(client) if record.status in LIVE), key=lambda record: record.id)
    hours = hours_of(real.sessions)
    counts = defaultdict[str, int](int)
    for record in live:
        counts[_session(record.provenance.source)] += 1
    paths = (path for agent, path in files(options, sample=False) if agent == "claude-code")
    large = {f"claude-code:{path.stem}" for path in paths if path.stat().st_size > LARGE_BYTES} & hours.keys()
    total_hours = round(sum(hours.values()), 2)
    drawn_records = drawn(live, real.sessions, options.seed)
    sheet = Sheet(seed=options.seed, records=len(live), hours=total_hours, drawn=drawn_records)
    markdown, _ = write(sheet, options.sheet or Path.cwd() / "memd-gate")
    of_large, hours_large = sum(counts[name] for name in large), sum(hours[name] for name in large)

    def rate(name: str, count: int, hours: float) -> Figure:
        return Figure(name, count / max(hours, 1e-9), samples=count, target=at_most(MOST_AN_HOUR))

    figures = (
        rate("records an hour of session", len(live), total_hours),
        rate("  of the large ones of Claude Code", of_large, hours_large),
        Figure("records from these", of_large, samples=len(large), target=at_least(LEAST_OF_LARGE)),
        Figure("hours of session", total_hours, "h", samples=len(hours)),
    )
    by_session = [f"{name}: {counts[name]} records in {hours[name]:.2f} h" for name in sorted(hours)]
    next_step = f"grade {markdown} by docs/RUBRIC.md, then: memd bench gate --grades {markdown}"
    return PartResult(
        figures,
        notes=(next_step, *real.left_out, *by_session),
        shows_not="whether the records are right: the grades show that",
    )


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


def drawn(live: Sequence[Record], sessions: Iterable[CapturedSession], seed: int) -> tuple[SheetRecord, ...]:
    """Fifty of the records, or all if there are fewer, in an order that the seed decides."""
    turns = {(session.origin.document, event.turn): text(event) for session in sessions for event in session.events}
    records: list[SheetRecord] = []
    for number, record in enumerate(random.Random(seed).sample(live, min(DRAWN, len(live))), 1):
        source, quote = record.provenance, record.provenance.quote
        span = source.spans[0]
        turn = turns.get((span.document, span.turn), "")
        start = span.start if turn[span.start :].startswith(quote) else max(0, turn.find(quote))
        end = start + len(quote)
        records.append(
            SheetRecord(
                **{name: getattr(record, name) for name in _COPIED},
                number=number,
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
    head = f"\n## {record.number}\n\n**{record.description}**\n\n{about}, {record.session}, {record.id}"
    return f"{head}\n\n{quoted}\n\ngrade: {record.grade}\n"


# --- the verdict -----------------------------------------------------------------------------------------------------
def grades(path: Path) -> list[str]:
    """The grades of a sheet, in order. Raises InvalidRequest for a missing or an unknown grade."""
    try:
        content = path.read_text(encoding="utf-8")
        if path.suffix == ".json":
            given = [record.grade for record in msgspec.json.decode(content, type=Sheet).drawn]
        else:
            sections = _HEAD.split(content)[2::2]
            lines = (_GRADED.search(section[section.rfind("\ngrade:") + 1 :]) for section in sections)
            given = [line[1] if line else "" for line in lines]
    except (OSError, UnicodeDecodeError, msgspec.MsgspecError) as error:
        raise InvalidRequest(f"{path} can't be read as a sheet: {error}", hint="memd bench gate writes one") from error
    for number, grade in enumerate(given, 1):
        if grade not in GRADES:
            what = f"{grade!r} is no grade" if grade else "there is no grade"
            raise InvalidRequest(f"record {number} of {path}: {what}", hint=f"one of {', '.join(GRADES)}")
    if not given:
        raise InvalidRequest(f"there is no record in {path}", hint="memd bench gate writes a sheet")
    return given


def _verdict(path: Path) -> PartResult:
    given = grades(path)
    counts = {grade: given.count(grade) for grade in GRADES}
    figures = (
        share("right and worth keeping", counts["right"], len(given), at_least(LEAST_RIGHT / DRAWN)),
        zero_figure("not borne out", counts["invented"], len(given)),
        Figure("borne out, not worth keeping", counts["trivial"], samples=len(given)),
        Figure("borne out, but wrong", counts["wrong"], samples=len(given)),
    )
    numbers = {grade: [str(n) for n, other in enumerate(given, 1) if other == grade] for grade in GRADES[1:]}
    notes = tuple(f"{grade}: {', '.join(of_grade)}" for grade, of_grade in numbers.items() if of_grade)
    shows_not = "facts that were said and not recorded; how another reader would have graded"
    return PartResult(figures, notes=notes, shows_not=shows_not)
