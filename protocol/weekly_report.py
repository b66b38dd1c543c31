"""The weekly report (G6): what needs the user, what memd believes since, where work stands, what gets old.

Invariants: a line tells in words who did what, and names the ids and the command that it needs; the same journal seq
and week give the same report, except that changed documents follow the files on disk.
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from .request_fields import Request

SectionName = Literal["needs", "beliefs", "work", "old", "used", "health"]

TITLES: dict[SectionName, str] = {
    "needs": "Needs you",
    "beliefs": "Learnt and changed",
    "work": "Where work stands",
    "old": "Getting old",
    "used": "Used",
    "health": "Health",
}
"""The heading of each section, in order."""

MOST: dict[SectionName, int] = {"needs": 5, "beliefs": 10, "work": 12, "old": 6, "used": 8, "health": 4}
"""Most lines of each section: with headings, blank lines and `UNDECIDED`, at most 60 in all."""

UNDECIDED = (
    "Agents follow a rule from when you accept it; until you decide, nothing changes. "
    "To refuse: `memd inbox reject ID`. The reasons: `memd inbox`."
)
"""What a reader needs to know below the section `needs`."""


class GetReport(Request, tag="report", frozen=True, kw_only=True):
    """Return the report of an ISO week, such as 2026-W47, in the daemon's local time; "" for the present week."""

    week: Annotated[str, msgspec.Meta(max_length=10)] = ""


class ReportLine(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A line. `ids`: the records, sessions or proposals that it speaks of; `command`: what to type, "" for nothing to
    do; `level`: 1 for a line that belongs to the one of level 0 above it."""

    text: str
    ids: tuple[str, ...] = ()
    command: str = ""
    level: int = 0


class ReportSection(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A section with lines. `more`: lines that found no place."""

    name: SectionName
    lines: tuple[ReportLine, ...]
    more: int = 0


class WeeklyReport(msgspec.Struct, frozen=True, kw_only=True):
    """Reply to `report`. `since` and `until`: the local Monday and the next one, RFC 3339; `before`, `after`: the weeks
    beside it; `seq`: of the last operation that it has. Sections without lines are left out."""

    week: str
    since: str
    until: str
    before: str
    after: str
    seq: int
    sections: tuple[ReportSection, ...] = ()
