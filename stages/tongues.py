"""Dates outside English, read by one table a language: `rules/dates.toml` (P-21, P-22).

Comes in: a clause, the midnight of its event, its language. Goes out: the beginning of the day, week, month or year
that it names, and which of them that is. Invariants: pure; what a language says is in its table, what a calendar does
in `almanac.py`; a deadline ("until Friday") and what recurs ("every Friday") name no time.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from functools import cache
from typing import Any, NamedTuple

from .almanac import placed, shift, weekday
from .rules import table

TONGUES = ("ar", "de", "ja", "ko", "zh")

_ARABIC = str.maketrans("أإآىة٠١٢٣٤٥٦٧٨٩", "ااايه0123456789", "ًٌٍَُِّْـ")
_ISO = re.compile(r"(?<!\d)(?P<y>(?:19|20)\d\d)-(?P<m>\d\d)(?:-(?P<d>\d\d))?(?!\d)")
_YEAR = r"(?P<y>(?:19|20)\d\d)"
_Phrases = tuple[re.Pattern[str], Mapping[str, tuple[str, int]]]


class Named(NamedTuple):
    """The beginning of a time, and its unit: day, week, month or year."""

    start: datetime
    unit: str


class _Table(NamedTuple):
    """A language's table, compiled. Numbers, months and weekdays are patterns in order, from one, one and Monday."""

    numbers: Sequence[re.Pattern[str]]
    months: Sequence[re.Pattern[str]]
    weekdays: Sequence[re.Pattern[str]]
    moved: _Phrases
    whole: _Phrases
    counted: Sequence[tuple[re.Pattern[str], int]]
    dates: Sequence[re.Pattern[str]]
    day_of_month: re.Pattern[str]
    day_of_week: re.Pattern[str]
    deadline: re.Pattern[str]
    before: re.Pattern[str]
    after: re.Pattern[str]
    ahead: re.Pattern[str]
    habit: re.Pattern[str]
    since: re.Pattern[str]


def named(clause: str, midnight: datetime, tongue: str) -> Named | None:
    """The time that a clause names, or None. Raises ValueError, OverflowError: a day that no calendar has."""
    text, rules = _folded(clause), _read(tongue)
    if rules.deadline.search(text):
        return None
    return _Reading(text, midnight, rules).named()


def is_habit(clause: str, tongue: str) -> bool:
    """Whether a clause tells of what is so again and again and not since when, so that a date in it is no beginning."""
    text, rules = _folded(clause), _read(tongue)
    return rules.habit.search(text) is not None and rules.since.search(text) is None


class _Reading:
    """One clause, read by one table."""

    def __init__(self, text: str, midnight: datetime, rules: _Table) -> None:
        self._text, self._midnight, self._rules = text, midnight, rules
        self._ahead = rules.ahead.search(text) is not None

    def named(self) -> Named | None:
        for pattern, sign in self._rules.counted:
            if (sign < 0 or self._ahead) and (hit := self._first(pattern)):
                unit = next(name for name in ("day", "week", "month", "year") if hit[name])
                return Named(shift(self._midnight, unit, sign * _number(hit["n"], self._rules.numbers)), unit)
        if hit := self._first(self._rules.moved[0]):
            unit, by = self._rules.moved[1][str(hit.lastgroup)]
            return Named(shift(self._midnight, unit, by), unit)
        hit = self._first(self._rules.whole[0])
        unit, by = self._rules.whole[1][str(hit.lastgroup)] if hit else ("", 0)
        year = self._midnight.year + by if unit == "year" else None
        if found := self._dated(year):
            return found
        start = shift(self._midnight, unit, by, start=True) if hit else None
        if unit == "month" and start and (day := self._first(self._rules.day_of_month)):
            return Named(start.replace(day=_number(day["d"], self._rules.numbers)), "day")
        if unit in {"", "week"} and (day := self._first(self._rules.day_of_week)):
            return Named(self._on(day, start), "day")
        return Named(start, unit) if start else None

    def _dated(self, year: int | None) -> Named | None:
        """A day, a month or a year by its number. `year`: what the clause says of it in words."""
        for pattern in (_ISO, *self._rules.dates):
            if not (hit := self._first(pattern)):
                continue
            parts = hit.groupdict()
            in_year = int(parts["y"]) if parts.get("y") else year
            if not parts.get("m"):
                return Named(self._midnight.replace(year=int(parts["y"]), month=1, day=1), "year")
            month = _number(parts["m"], self._rules.months)
            day = _number(parts["d"], self._rules.numbers) if parts.get("d") else 1
            found = placed(self._midnight, month, day, in_year, self._ahead)
            return Named(found, "day" if parts.get("d") else "month")
        return None

    def _on(self, hit: re.Match[str], week: datetime | None) -> datetime:
        day = _number(hit["w"], self._rules.weekdays) - 1
        if week is not None:
            return week + timedelta(days=day)
        parts = hit.groupdict()
        which = -1 if parts.get("last") else 1 if parts.get("next") or self._ahead else 0
        return weekday(self._midnight, day, which)

    def _first(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        """The first hit that is neither somebody's deadline nor what recurs."""
        return next(self._free(pattern), None)

    def _free(self, pattern: re.Pattern[str]) -> Iterator[re.Match[str]]:
        for hit in pattern.finditer(self._text):
            front = self._text[max(0, hit.start() - 24) : hit.start()]
            if not self._rules.before.search(front) and not self._rules.after.match(self._text, hit.end()):
                yield hit


def _folded(text: str) -> str:
    """Small letters of one width; Arabic without vowel signs, and with one form of each letter."""
    return unicodedata.normalize("NFKC", text).lower().translate(_ARABIC)


def _number(word: str, names: Sequence[re.Pattern[str]]) -> int:
    if word.isdecimal():
        return int(word)
    return next(value for value, name in enumerate(names, 1) if name.fullmatch(word))


@cache
def _read(tongue: str) -> _Table:
    told: dict[str, Any] = table("dates")[tongue]
    numbers, days = told["numbers"], told["weekdays"]
    months = told.get("months", numbers)
    units = "|".join(f"(?P<{name}>{pattern})" for name, pattern in told["units"].items())
    parts = {
        "n": rf"(?P<n>(?<!\d)\d{{1,3}}|{_either(numbers)})",
        "u": rf"(?:{units})",
        "y": _YEAR,
        "m": rf"(?P<m>(?<!\d)\d{{1,2}}|{_either(months)})" if "months" not in told else rf"(?P<m>{_either(months)})",
        "d": rf"(?P<d>(?<!\d)\d{{1,2}}|{_either(numbers)})",
        "w": rf"(?P<w>{_either(days)})",
    }

    def compiled(pattern: str) -> re.Pattern[str]:
        for name, meant in parts.items():
            pattern = pattern.replace(f"{{{name}}}", meant)
        return re.compile(pattern.translate(_ARABIC))

    def phrases(found: Mapping[str, str]) -> _Phrases:
        meant = [(f"g{at}", pattern, text.split()) for at, (pattern, text) in enumerate(found.items())]
        whole = "|".join(f"(?P<{name}>{pattern})" for name, pattern, _ in meant)
        return compiled(whole), {name: (unit, int(by)) for name, _, (unit, by) in meant}

    return _Table(
        numbers=[compiled(each) for each in numbers],
        months=[compiled(each) for each in months],
        weekdays=[compiled(each) for each in days],
        moved=phrases(told["moved"]),
        whole=phrases(told["whole"]),
        counted=[(compiled(each), sign) for name, sign in (("ago", -1), ("hence", 1)) for each in told[name]],
        dates=[compiled(each) for each in told["dates"]],
        day_of_month=compiled(told["day_of_month"]),
        day_of_week=compiled(told["day_of_week"]),
        deadline=compiled(told["deadline"]),
        before=compiled(rf"(?:{told['before']})\s*$"),
        after=compiled(rf"\s*(?:{told['after']})"),
        ahead=compiled(told["ahead"]),
        habit=compiled(told["habit"]),
        since=compiled(told["since"]),
    )


def _either(patterns: Sequence[str]) -> str:
    """One of them, the longest first, so that "eleven" is not read as "one"."""
    words = sorted((word for each in patterns for word in each.split("|")), key=len, reverse=True)
    return "|".join(words)
