"""The gate: what real sessions were distilled to, drawn for grading by hand, and the verdict of a graded sheet (U5).

Comes in: a setting with real sessions, or a graded sheet. Goes out: figures, and a sheet as Markdown and as JSON.
Invariants: every live record can be drawn, each as likely as another, the same ones for the same seed; a record stands
beside its quote and the words around it; a sheet that is not graded to its end gives no verdict.
"""

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
from .figure import Figure, at_least, at_most, share
from .home import empty_home, running, settle
from .part import Part, Setting
from .sessions import LARGE_BYTES, deliver, files, read, records

Grade = Literal["right", "trivial", "wrong", "invented"]
GRADES: tuple[Grade, ...] = get_args(Grade)

DRAWN, LEAST_RIGHT, MOST_AN_HOUR, LEAST_OF_LARGE = 50, 45, 25, 30
LONGEST_GAP_S = 300
"""Seconds that a gap between two lines of a session counts at most."""

AROUND = 400
"""Characters of the turn that stand before and after the quote."""

_HEAD = re.compile(r"^## (\d+)\b", re.MULTILINE)
_GRADED = re.compile(r"^grade:[ \t]*(\w*)", re.MULTILINE)


class Drawn(msgspec.Struct, frozen=True, kw_only=True):
    """One record of the sheet, with the words it rests on, and its grade once it has one."""

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
    """What is graded: which seed drew it, from how many records of how many hours."""

    seed: int
    records: int
    hours: float
    drawn: tuple[Drawn, ...]


def gate(setting: Setting) -> Part:
    """Fifty records over all real sessions for grading by hand, and how many there are; or the verdict of a sheet."""
    return _verdict(setting.grades) if setting.grades else _draw(setting)


# --- drawing ---------------------------------------------------------------------------------------------------------
def _draw(setting: Setting) -> Part:
    found = read(setting, sample=False)
    setting.tell(f"gate: {len(found.sessions)} sessions")
    with empty_home() as (where, environment), running(where, environment) as client:
        deliver(client, found.sessions)
        settle(client)
        kept = sorted((one for one in records(client) if one.status in LIVE), key=lambda one: one.id)
    hours = hours_of(found.sessions)
    whose = defaultdict[str, list[Record]](list)
    for record in kept:
        whose[_session(record.provenance.source)].append(record)
    large = {name for name in _large(setting) if name in hours}
    sheet = Sheet(seed=setting.seed, records=len(kept), hours=round(sum(hours.values()), 2),
                  drawn=drawn(kept, found.sessions, setting.seed))  # fmt: skip
    paths = write(sheet, setting.sheet or Path.cwd() / "memd-gate")
    of_large, hours_large = sum(len(whose[name]) for name in large), sum(hours[name] for name in large)
    figures = (
        Figure(name="records an hour of session", value=len(kept) / max(sheet.hours, 1e-9), samples=len(kept),
               target=at_most(MOST_AN_HOUR)),
        Figure(name="  of the large ones of Claude Code", value=of_large / max(hours_large, 1e-9), samples=of_large,
               target=at_most(MOST_AN_HOUR)),
        Figure(name="records from these", value=of_large, samples=len(large), target=at_least(LEAST_OF_LARGE)),
        Figure(name="hours of session", value=sheet.hours, unit="h", samples=len(hours)),
    )  # fmt: skip
    told = [f"{name}: {len(whose[name])} records in {hours[name]:.2f} h" for name in sorted(hours)]
    notes = (f"grade {paths[0]} by docs/RUBRIC.md, then: memd bench gate --grades {paths[0]}", *found.left_out, *told)
    return Part(
        figures=figures, notes=notes, shows_not="whether the records are right: that is what the grades are for"
    )


def _session(document: str) -> str:
    """The session of a document: an agent's helpers belong to the session that called them."""
    return document.partition("/")[0]


def _large(setting: Setting) -> set[str]:
    """The sessions of Claude Code whose files are large."""
    paths = (path for agent, path in files(setting, sample=False) if agent == "claude-code")
    return {f"claude-code:{path.stem}" for path in paths if path.stat().st_size > LARGE_BYTES}


def hours_of(sessions: Iterable[CapturedSession]) -> dict[str, float]:
    """Hours of each session: the time between its lines, each gap at most five minutes."""
    at = defaultdict[str, list[int]](list)
    for session in sessions:
        at[_session(session.origin.document)] += [micros(event.at) for event in session.events]
    hours: dict[str, float] = {}
    for name, moments in at.items():
        moments.sort()
        gaps = (later - earlier for earlier, later in pairwise(moments))
        hours[name] = sum(min(gap / 1e6, LONGEST_GAP_S) for gap in gaps) / 3600
    return hours


def drawn(kept: Sequence[Record], sessions: Iterable[CapturedSession], seed: int) -> tuple[Drawn, ...]:
    """Fifty of the records, or all there are, in an order that the seed decides."""
    turns = {(each.origin.document, event.turn): text(event) for each in sessions for event in each.events}
    chosen = random.Random(seed).sample(kept, min(DRAWN, len(kept)))
    return tuple(_beside(number, record, turns) for number, record in enumerate(chosen, 1))


def _beside(number: int, record: Record, turns: dict[tuple[str, str], str]) -> Drawn:
    span = record.provenance.spans[0]
    words, quote = turns.get((span.document, span.turn), ""), record.provenance.quote
    start = span.start if words[span.start :].startswith(quote) else max(0, words.find(quote))
    return Drawn(
        number=number,
        id=record.id,
        session=record.provenance.source,
        speaker=record.provenance.trust,
        said_at=record.provenance.said_at,
        valid_from=record.valid_from,
        kind=record.kind,
        type=record.type,
        key=record.key,
        value=record.value,
        description=record.description,
        quote=quote,
        before=words[max(0, start - AROUND) : start],
        after=words[start + len(quote) : start + len(quote) + AROUND],
    )


# --- the sheet -------------------------------------------------------------------------------------------------------
def write(sheet: Sheet, folder: Path) -> tuple[Path, Path]:
    """The sheet as Markdown, for grading, and as JSON, in that folder."""
    folder.mkdir(parents=True, exist_ok=True)
    markdown, json = folder / "gate.md", folder / "gate.json"
    head = f"# {len(sheet.drawn)} of {sheet.records} records, {sheet.hours} hours of session, seed {sheet.seed}\n\n"
    head += f"Write one word behind each `grade:`, as docs/RUBRIC.md says: {', '.join(GRADES)}.\n"
    markdown.write_text(head + "".join(_told(one) for one in sheet.drawn), encoding="utf-8")
    json.write_bytes(msgspec.json.format(msgspec.json.encode(sheet)))
    return markdown, json


def _told(one: Drawn) -> str:
    keyed = f", `{one.key}` = {one.value or 'so'}" if one.key else ""
    about = f"{one.type} ({one.kind}{keyed}), said by {one.speaker} at {one.said_at}, {one.session}, {one.id}"
    source = f"{one.before} ⟦{one.quote}⟧ {one.after}"
    quoted = "\n".join(f"> {line}" for line in source.splitlines())
    return f"\n## {one.number}\n\n**{one.description}**\n\n{about}\n\n{quoted}\n\ngrade: {one.grade}\n"


# --- the verdict -----------------------------------------------------------------------------------------------------
def grades(path: Path) -> list[str]:
    """The grades of a sheet, in order. Raises InvalidRequest where one lacks or is none."""
    try:
        words = path.read_text(encoding="utf-8")
        if path.suffix == ".json":
            given = [one.grade for one in msgspec.json.decode(words, type=Sheet).drawn]
        else:
            parts = _HEAD.split(words)[2::2]
            given = [
                found[1] if (found := _GRADED.search(part[part.rfind("\ngrade:") + 1 :])) else "" for part in parts
            ]
    except (OSError, UnicodeDecodeError, msgspec.MsgspecError) as error:
        raise InvalidRequest(f"{path} can't be read as a sheet: {error}", hint="memd bench gate writes one") from error
    for number, grade in enumerate(given, 1):
        if grade not in GRADES:
            what = f"{grade!r} is no grade" if grade else "there is no grade"
            raise InvalidRequest(f"record {number} of {path}: {what}", hint=f"one of {', '.join(GRADES)}")
    if not given:
        raise InvalidRequest(f"there is no record in {path}", hint="memd bench gate writes a sheet")
    return given


def _verdict(path: Path) -> Part:
    given = grades(path)
    counts = {grade: given.count(grade) for grade in GRADES}
    right = share("right and worth keeping", counts["right"], len(given), at_least(LEAST_RIGHT / DRAWN))
    figures = (
        right,
        Figure(name="not borne out", value=counts["invented"], samples=len(given), target=at_most(0)),
        Figure(name="borne out, not worth keeping", value=counts["trivial"], samples=len(given)),
        Figure(name="borne out, but wrong", value=counts["wrong"], samples=len(given)),
    )
    at = {grade: [str(number) for number, one in enumerate(given, 1) if one == grade] for grade in GRADES[1:]}
    notes = tuple(f"{grade}: {', '.join(numbers)}" for grade, numbers in at.items() if numbers)
    shows_not = "what was said and not kept; and what another reader would have graded"
    return Part(figures=figures, notes=notes, shows_not=shows_not)
