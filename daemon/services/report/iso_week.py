"""ISO weeks as periods of local time."""

from __future__ import annotations

import re
from datetime import date, datetime, time, timedelta, tzinfo
from typing import NamedTuple

from ....protocol.errors import InvalidRequest
from ....protocol.instant import micros

_WEEK = re.compile(r"([0-9]{4})-W([0-9]{2})")
_FIRST, _LAST = 1970, 2999


class Week(NamedTuple):
    """A week. `since` and `until`: its Monday and the next one at midnight, in microseconds; `opens`, `closes`: the
    same as RFC 3339 text."""

    name: str
    before: str
    after: str
    opens: str
    closes: str

    @property
    def since(self) -> int:
        return max(0, micros(self.opens))

    @property
    def until(self) -> int:
        return max(0, micros(self.closes))

    @property
    def days(self) -> tuple[date, ...]:
        """The seven days, Monday first."""
        monday = datetime.fromisoformat(self.opens).date()
        return tuple(monday + timedelta(days=number) for number in range(7))


def week_at(moment: int, zone: tzinfo | None = None) -> str:
    """Return the week of a time in microseconds. `zone`: None for the local one."""
    year, week, _ = datetime.fromtimestamp(moment / 1e6).astimezone(zone).isocalendar()
    return f"{year:04}-W{week:02}"


def week_named(name: str, zone: tzinfo | None = None) -> Week:
    """Return the week of a name such as 2026-W47. Raises InvalidRequest."""
    found = _WEEK.fullmatch(name)
    try:
        if found is None or not _FIRST <= int(found[1]) <= _LAST:
            raise ValueError
        monday = date.fromisocalendar(int(found[1]), int(found[2]), 1)
    except ValueError:
        raise InvalidRequest(f"{name!r} is not a week", hint="name it as 2026-W47") from None
    following = monday + timedelta(days=7)
    return Week(
        name=name,
        before=_name(monday - timedelta(days=7)),
        after=_name(following),
        opens=_midnight(monday, zone),
        closes=_midnight(following, zone),
    )


def _name(day: date) -> str:
    year, week, _ = day.isocalendar()
    return f"{year:04}-W{week:02}"


def _midnight(day: date, zone: tzinfo | None) -> str:
    """Return the beginning of a local day."""
    local = datetime.combine(day, time(), zone)
    return (local if zone else local.astimezone()).isoformat()
