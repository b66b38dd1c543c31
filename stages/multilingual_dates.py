"""Read dates in Arabic, Chinese, German, Japanese and Korean by the tables of `rules/dates.toml` (P-21, P-22). A
deadline ("until Friday") and a recurring day ("every Friday") name no time."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from functools import cache
from typing import Any, NamedTuple

from .calendar_math import place_date, shift, weekday
from .rules import table

LANGUAGES = ("ar", "de", "ja", "ko", "zh")

_ARABIC = str.maketrans("أإآىة٠١٢٣٤٥٦٧٨٩", "ااايه0123456789", "ًٌٍَُِّْـ")
_ISO = re.compile(r"(?<!\d)(?P<y>(?:19|20)\d\d)-(?P<m>\d\d)(?:-(?P<d>\d\d))?(?!\d)")
_YEAR = r"(?P<y>(?:19|20)\d\d)"
_Phrases = tuple[re.Pattern[str], Mapping[str, tuple[str, int]]]


class NamedTime(NamedTuple):
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


def named_time(clause: str, midnight: datetime, tongue: str) -> NamedTime | None:
    """The time that a clause names. Raises ValueError and OverflowError for a day that no calendar has."""
    text, rules = _folded(clause), _read(tongue)
    if rules.deadline.search(text):
        return None
    return _Dates(text, midnight, rules).named()


def is_habit(clause: str, tongue: str) -> bool:
    """Whether a clause tells what recurs, and not since when, so that a date in it is not a beginning."""
    text, rules = _folded(clause), _read(tongue)
    return rules.habit.search(text) is not None and rules.since.search(text) is None


class _Dates:
    def __init__(self, text: str, midnight: datetime, rules: _Table) -> None:
        self._text, self._midnight, self._rules = text, midnight, rules
        self._ahead = rules.ahead.search(text) is not None

    def named(self) -> NamedTime | None:
        if (moved := self._counted() or self._moved()) is not None:
            return moved
        hit = self._first(self._rules.whole[0])
        unit, by = self._rules.whole[1][str(hit.lastgroup)] if hit else ("", 0)
        if dated := self._dated(self._midnight.year + by if unit == "year" else None):
            return dated
        start = shift(self._midnight, unit, by, start=True) if hit else None
        if unit == "month" and start and (day := self._first(self._rules.day_of_month)):
            return NamedTime(start.replace(day=_number(day["d"], self._rules.numbers)), "day")
        if unit in {"", "week"} and (day := self._first(self._rules.day_of_week)):
            return NamedTime(self._on(day, start), "day")
        return NamedTime(start, unit) if start else None

    def _counted(self) -> NamedTime | None:
        """A number of units ago, or ahead."""
        for pattern, sign in self._rules.counted:
            if (sign < 0 or self._ahead) and (hit := self._first(pattern)):
                unit = next(name for name in ("day", "week", "month", "year") if hit[name])
                return NamedTime(shift(self._midnight, unit, sign * _number(hit["n"], self._rules.numbers)), unit)
        return None

    def _moved(self) -> NamedTime | None:
        """A word for a near day: "yesterday"."""
        if hit := self._first(self._rules.moved[0]):
            unit, by = self._rules.moved[1][str(hit.lastgroup)]
            return NamedTime(shift(self._midnight, unit, by), unit)
        return None

    def _dated(self, year: int | None) -> NamedTime | None:
        """A day, a month or a year by its number. `year`: the one that the clause names in words."""
        for pattern in (_ISO, *self._rules.dates):
            if not (hit := self._first(pattern)):
                continue
            parts = hit.groupdict()
            in_year = int(parts["y"]) if parts.get("y") else year
            if not parts.get("m"):
                return NamedTime(self._midnight.replace(year=int(parts["y"]), month=1, day=1), "year")
            month = _number(parts["m"], self._rules.months)
            day = _number(parts["d"], self._rules.numbers) if parts.get("d") else 1
            date = place_date(self._midnight, month, day, in_year, self._ahead)
            return NamedTime(date, "day" if parts.get("d") else "month")
        return None

    def _on(self, hit: re.Match[str], week: datetime | None) -> datetime:
        day = _number(hit["w"], self._rules.weekdays) - 1
        if week is not None:
            return week + timedelta(days=day)
        parts = hit.groupdict()
        which = -1 if parts.get("last") else 1 if parts.get("next") or self._ahead else 0
        return weekday(self._midnight, day, which)

    def _first(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        """The first match that is neither a deadline nor recurring."""
        for hit in pattern.finditer(self._text):
            front = self._text[max(0, hit.start() - 24) : hit.start()]
            if not self._rules.before.search(front) and not self._rules.after.match(self._text, hit.end()):
                return hit
        return None


def _folded(text: str) -> str:
    """Lower case of one width; Arabic without vowel signs, and with one form of each letter."""
    return unicodedata.normalize("NFKC", text).lower().translate(_ARABIC)


def _number(word: str, names: Sequence[re.Pattern[str]]) -> int:
    if word.isdecimal():
        return int(word)
    return next(value for value, name in enumerate(names, 1) if name.fullmatch(word))


@cache
def _read(tongue: str) -> _Table:
    data: dict[str, Any] = table("dates")[tongue]
    numbers, days = data["numbers"], data["weekdays"]
    months = data.get("months", numbers)
    units = "|".join(f"(?P<{name}>{pattern})" for name, pattern in data["units"].items())
    parts = {
        "n": rf"(?P<n>(?<!\d)\d{{1,3}}|{_either(numbers)})",
        "u": rf"(?:{units})",
        "y": _YEAR,
        "m": rf"(?P<m>(?<!\d)\d{{1,2}}|{_either(months)})" if "months" not in data else rf"(?P<m>{_either(months)})",
        "d": rf"(?P<d>(?<!\d)\d{{1,2}}|{_either(numbers)})",
        "w": rf"(?P<w>{_either(days)})",
    }

    def compiled(pattern: str) -> re.Pattern[str]:
        for name, meant in parts.items():
            pattern = pattern.replace(f"{{{name}}}", meant)
        return re.compile(pattern.translate(_ARABIC))

    def phrases(patterns: Mapping[str, str]) -> _Phrases:
        meant = [(f"g{at}", pattern, text.split()) for at, (pattern, text) in enumerate(patterns.items())]
        whole = "|".join(f"(?P<{name}>{pattern})" for name, pattern, _ in meant)
        return compiled(whole), {name: (unit, int(by)) for name, _, (unit, by) in meant}

    single = ("day_of_month", "day_of_week", "deadline", "ahead", "habit", "since")
    return _Table(
        numbers=[compiled(pattern) for pattern in numbers],
        months=[compiled(pattern) for pattern in months],
        weekdays=[compiled(pattern) for pattern in days],
        moved=phrases(data["moved"]),
        whole=phrases(data["whole"]),
        counted=[(compiled(pattern), sign) for name, sign in (("ago", -1), ("hence", 1)) for pattern in data[name]],
        dates=[compiled(pattern) for pattern in data["dates"]],
        before=compiled(rf"(?:{data['before']})\s*$"),
        after=compiled(rf"\s*(?:{data['after']})"),
        **{name: compiled(data[name]) for name in single},
    )


def _either(patterns: Sequence[str]) -> str:
    """One of them, the longest first, so that "eleven" is not read as "one"."""
    words = sorted((word for pattern in patterns for word in pattern.split("|")), key=len, reverse=True)
    return "|".join(words)
