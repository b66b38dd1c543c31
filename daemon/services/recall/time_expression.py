"""The time that a question names ("last March", "in 2023", "before May"), and the filter that it becomes (Q2, Q12).

Invariants: parsing is pure and reads no clock, and a question without a hint of a time costs one search; "may" and
"march" are months only where they cannot be anything else; "every May" and the next one are not times of the past. A
filter never empties an answer, and applies only where a match of that time is nearly as good as the best of any time.
"""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from typing import NamedTuple

from ....protocol.instant import from_micros, micros
from ....protocol.record import Record
from ....stages.calendar_math import shift
from ....stages.multilingual_dates import LANGUAGES, is_habit, named_time
from ...projections.lines import ConversationOrder
from .evidence import Matches

OPEN = 2**62
"""Microseconds of an open end."""

DAY = 86_400_000_000
TOLD_LATER_DAYS = 3
"""People tell of a period up to so many days later, or a quarter of its length if that is more."""

_MONTHS = tuple[str, ...](
    "january february march april may june july august september october november december".split()
)
_DAYS = tuple[str, ...]("monday tuesday wednesday thursday friday saturday sunday".split())
_COUNTS = {
    "a": 1,
    "an": 1,
    "one": 1,
    "two": 2,
    "couple of": 2,
    "a couple of": 2,
    "three": 3,
    "few": 3,
    "a few": 3,
    **{word: n for n, word in enumerate("four five six seven eight nine ten eleven twelve".split(), 4)},
}

_MONTH = "|".join(f"{name[:3]}(?:{name[3:]}|t)?" if name[3:] else name for name in _MONTHS)
_COUNT = r"\d{1,3}|" + "|".join(word.replace(" ", r"\s") for word in sorted(_COUNTS, key=len, reverse=True))
_UNIT = "day|week|month|year"
_SEASONS = {"spring": 3, "summer": 6, "autumn": 9, "fall": 9, "winter": 12}
"""The first month of each season, in the north."""
_SEASON = rf"(?:{'|'.join(_SEASONS)})(?!\sboot)"
_HINT = re.compile(
    rf"\b(?:(?:19|20)\d\d|today|yesterday|ago|last|past|previous|this|{_MONTH}|{'|'.join(_DAYS)})\b", re.IGNORECASE
)
_POINT = re.compile(
    rf"""
      (?P<ago>{_COUNT})\s(?P<ago_unit>{_UNIT})s?\sago
    | (?:last|past|previous)\s(?P<spell>\d{{1,3}}|two|three|four|five|six|seven|eight|nine|ten|few|couple\sof)
      \s(?P<spell_unit>{_UNIT})s
    | (?P<which>last|past|previous|this)\s(?P<what>night|morning|evening|weekend|{_UNIT}|{"|".join(_DAYS)}|{_SEASON}
      |{_MONTH})(?:\s(?P<which_year>(?:19|20)\d\d))?
    | (?P<near>today|(?:the\s)?day\sbefore\syesterday|yesterday)
    | (?P<iso_year>(?:19|20)\d\d)-(?P<iso_month>\d\d)(?:-(?P<iso_day>\d\d))?
    | (?:the\s)?(?P<day>\d{{1,2}})(?:st|nd|rd|th)?\s(?:of\s)?(?P<day_month>{_MONTH})\.?
      (?:,?\s(?P<day_year>(?:19|20)\d\d))?
    | (?P<month_day>{_MONTH})\.?\s(?P<day_of>\d{{1,2}})(?:st|nd|rd|th)?(?:,?\s(?P<month_day_year>(?:19|20)\d\d))?(?!\d)
    | (?P<month>{_MONTH})\.?(?:,?\s(?:of\s)?(?P<month_year>(?:19|20)\d\d))?
    | (?P<year>(?:19|20)\d\d)
    | (?P<weekday>{"|".join(_DAYS)})
    """,
    re.IGNORECASE | re.VERBOSE,
)
_EDGE = re.compile(
    r"\b(?P<word>in|on|during|since|from|after|before|until|till|by|of|between|around|about|early|mid|late|back in|"
    r"end of|start of|beginning of|throughout)\s(?:the\s|early\s|mid\s|late\s|last\s)?$",
    re.IGNORECASE,
)
_THROUGH = re.compile(r"\s*(?:and|to|until|till|through|-|–)\s*", re.IGNORECASE)
PAST_TENSE = re.compile(
    r"\b(?:did|didn't|was|wasn't|were|weren't|had|hadn't|been|used to|said|told|made|chose|went|wrote|\w{3,}ed)\b",
    re.IGNORECASE,
)
_BEFORE, _AFTER, _SINCE = (
    frozenset(("before", "until", "till", "by")),
    frozenset(("after",)),
    frozenset(("since", "from")),
)


class TimePeriod(NamedTuple):
    """A period from `start` to `end` in microseconds, 0 and `OPEN` if open.

    `past`: the question surely asks for that time only. `written`: the characters of the question that name it.
    """

    start: int
    end: int
    past: bool
    written: tuple[int, int] = (0, 0)

    def named(self) -> tuple[str, str]:
        """Return start and end in RFC 3339, "" if open."""
        return from_micros(self.start) if self.start else "", from_micros(self.end) if self.end < OPEN else ""

    def holds(self, moment: int) -> bool:
        return self.start <= moment < self.end

    def may_tell(self, moment: int) -> bool:
        """Whether somebody who speaks at a moment may tell of the period: in it, or soon after."""
        later = max(TOLD_LATER_DAYS * DAY, (self.end - self.start) // 4 if self.start and self.end < OPEN else 0)
        return self.start <= moment < self.end + later


class _Span(NamedTuple):
    """A written point of time; `past`: only a time of the past is written so."""

    start: datetime
    end: datetime
    past: bool


def period(question: str, moment: datetime, code: str = "en") -> TimePeriod | None:
    """Return the time that a question names, relative to an aware moment, in whose zone days begin."""
    if code in LANGUAGES:
        return _multilingual(question, moment, code)
    if not _HINT.search(question):
        return None
    text = question.replace("’", "'")
    midnight = moment.replace(hour=0, minute=0, second=0, microsecond=0)
    for hit in _POINT.finditer(text):
        edge = _EDGE.search(text, 0, hit.start())
        word = edge["word"].lower() if edge else ""
        try:
            span = _span(hit, word, text, midnight)
            if span is None:
                continue
            through = _THROUGH.match(text, hit.end()) if word in ("between", "from") else None
            until = through and _POINT.match(text, through.end())
            end = _span(until, "to", text, midnight) if until else None
        except (ValueError, OverflowError):
            continue
        result = _between(span, end, word, moment, past=span.past or word == "since" or bool(PAST_TENSE.search(text)))
        start = edge.start() if edge else hit.start()
        return result._replace(written=(start, until.end() if until and end else hit.end()))
    return None


def _multilingual(question: str, moment: datetime, code: str) -> TimePeriod | None:
    midnight = moment.replace(hour=0, minute=0, second=0, microsecond=0)
    try:
        if (date := named_time(question, midnight, code)) is None:
            return None
        start, end = _micros(date.start), _micros(shift(date.start, date.unit, 1))
    except (ValueError, OverflowError):
        return None
    return TimePeriod(start, end, end <= _micros(moment) and not is_habit(question, code))


def _between(span: _Span, end: _Span | None, word: str, moment: datetime, *, past: bool) -> TimePeriod:
    now, start, stop = _micros(moment), _micros(span.start), _micros(span.end)
    if end is not None:
        if end.end <= span.start:  # "from November to February"
            start = _micros(span.start.replace(year=span.start.year - 1))
        return TimePeriod(start, _micros(end.end), past and _micros(end.start) <= now)
    if word in _BEFORE:
        return TimePeriod(0, start, past and start <= now)
    if word in _AFTER:
        return TimePeriod(stop, OPEN, past and stop <= now)
    if word in _SINCE:
        return TimePeriod(start, OPEN, past and start <= now)
    return TimePeriod(start, stop, past and start <= now)


def _span(hit: re.Match[str], word: str, text: str, midnight: datetime) -> _Span | None:
    """Return the span of a match; None if it is not a time, such as the verb "may"."""
    if hit["ago"]:
        unit = hit["ago_unit"].lower()
        return _Span(*_unit(_back(midnight, unit, _count(hit["ago"])), unit), True)
    if hit["spell"]:
        unit = hit["spell_unit"].lower()
        return _Span(_back(midnight, unit, _count(hit["spell"])), midnight + timedelta(days=1), True)
    if hit["near"]:
        back = ("today", "yesterday").index(near) if (near := hit["near"].lower()) in ("today", "yesterday") else 2
        start = midnight - timedelta(days=back)
        return _Span(start, start + timedelta(days=1), back > 0)
    if hit["which"]:
        return _which(hit["which"].lower(), hit["what"].lower(), hit["which_year"], midnight)
    if hit["iso_year"]:
        return _dated(hit["iso_year"], int(hit["iso_month"]), int(hit["iso_day"] or 0), midnight)
    if hit["day"]:
        return _dated(hit["day_year"], _month(hit["day_month"]), int(hit["day"]), midnight)
    if hit["month_day"]:
        verb = hit["month_day"] in ("may", "march") and not word and not hit["month_day_year"]
        return None if verb else _dated(
            hit["month_day_year"], _month(hit["month_day"]), int(hit["day_of"]), midnight
        )  # fmt: skip
    if hit["month"]:
        return _dated(hit["month_year"], _month(hit["month"]), 0, midnight) if word or hit["month_year"] else None
    if hit["year"]:
        start = midnight.replace(year=int(hit["year"]), month=1, day=1)
        return _Span(start, start.replace(year=start.year + 1), True) if word else None
    if word in ("on", "since") and PAST_TENSE.search(text):
        start = midnight - timedelta(days=(midnight.weekday() - _DAYS.index(hit["weekday"].lower())) % 7)
        return _Span(start, start + timedelta(days=1), False)
    return None


def _which(which: str, unit: str, year: str | None, midnight: datetime) -> _Span:
    """ "last night", "this week", "past Monday", "last March"."""
    back = which != "this"
    if unit in ("night", "morning", "evening"):
        start = midnight - timedelta(days=back)
        return _Span(start, midnight + timedelta(days=1), back)
    if unit == "weekend":
        monday = midnight - timedelta(days=midnight.weekday())
        start = monday + timedelta(days=5) - timedelta(days=7 * back)
        return _Span(start, start + timedelta(days=2), back)
    if unit in ("day", "week", "month", "year"):
        return _Span(*_unit(_back(midnight, unit, int(back)), unit), back)
    if unit in _DAYS:
        days = (midnight.weekday() - _DAYS.index(unit)) % 7
        start = midnight - timedelta(days=days or 7 * back)
        return _Span(start, start + timedelta(days=1), back)
    if unit in _SEASONS:
        return _season(_SEASONS[unit], year, midnight, back=back)
    span = _dated(year, _month(unit), 0, midnight)
    if back and not year and (span.start.year, span.start.month) == (midnight.year, midnight.month):
        span = _dated(str(midnight.year - 1), _month(unit), 0, midnight)
    return span._replace(past=back)


def _season(month: int, year: str | None, midnight: datetime, *, back: bool) -> _Span:
    """Return the three months from `month` on; without a year the last that has begun, or with `back` ended."""
    start = midnight.replace(year=int(year) if year else midnight.year, month=month, day=1)
    end = (start + timedelta(days=95)).replace(day=1)
    if not year and (end if back else start) > midnight:
        start, end = start.replace(year=start.year - 1), end.replace(year=end.year - 1)
    return _Span(start, end, back)


def _dated(year: str | None, month: int, day: int, midnight: datetime) -> _Span:
    """Return a day or a month, without a year the last one that has begun. Raises ValueError."""
    start = midnight.replace(year=int(year) if year else midnight.year, month=month, day=day or 1)
    if not year and start > midnight:
        start = start.replace(year=start.year - 1)
    return _Span(*_unit(start, "day" if day else "month"), bool(year))


def _unit(moment: datetime, unit: str) -> tuple[datetime, datetime]:
    """Return the day, week, month or year that contains a midnight."""
    if unit in ("day", "week"):
        start = moment - timedelta(days=moment.weekday() if unit == "week" else 0)
        return start, start + timedelta(days=7 if unit == "week" else 1)
    if unit == "month":
        start = moment.replace(day=1)
        return start, (start + timedelta(days=32)).replace(day=1)
    start = moment.replace(month=1, day=1)
    return start, start.replace(year=start.year + 1)


def _back(midnight: datetime, unit: str, count: int) -> datetime:
    if unit in ("day", "week"):
        return midnight - timedelta(days=count * (7 if unit == "week" else 1))
    months = midnight.year * 12 + midnight.month - 1 - count * (12 if unit == "year" else 1)
    return midnight.replace(year=months // 12, month=months % 12 + 1, day=min(midnight.day, 28))


def _month(name: str) -> int:
    return next(at for at, month in enumerate(_MONTHS, 1) if month.startswith(name.lower()[:3]))


def _count(word: str) -> int:
    return int(word) if word.isdigit() else _COUNTS[word.lower()]


def _micros(moment: datetime) -> int:
    return micros(moment.isoformat())


NEARLY = 0.6
"""Share of the best match of any time that a match of the named time must reach."""

WIDER = 8
"""Factor on the number of candidates if a time is named, which may be long ago."""


class TimeFilter(NamedTuple):
    """What was said or began in a period; with `held` also what began before and still held."""

    period: TimePeriod
    held: bool

    def _fits(self, said: int, began: int, ended: int, *, lasts: bool = True) -> bool:
        if self.period.holds(began) or self.period.may_tell(said):
            return True
        return self.held and lasts and began < self.period.end and (not ended or ended > self.period.start)

    def has(self, record: Record) -> bool:
        """Whether a record belongs to that time. An event does not last."""
        said = micros(record.provenance.said_at)
        began = micros(record.valid_from) if record.valid_from else said
        ended = micros(record.valid_to) if record.valid_to else 0
        return self._fits(said, began, ended, lasts=record.type != "event")

    def may_have(self, id: str, lines: ConversationOrder) -> bool:
        """Whether a record may belong to that time, judged by its card; True without one."""
        card = lines.get(id)
        return card is None or self._fits(card.row.at, card.row.since, 0)


def time_filter(
    period: TimePeriod | None, matched: Matches, lines: ConversationOrder, floor: float
) -> TimeFilter | None:
    """Return the narrowest filter that keeps an answer, or None."""
    if period is None or not period.past or not matched.places:
        return None
    enough = max(NEARLY * float(matched.direct.max()), floor)
    for held in (False, True):
        candidate = TimeFilter(period, held)
        if any(
            direct >= enough and lines.get(id) is not None and candidate.may_have(id, lines)
            for id, direct in zip(matched.places, matched.direct.tolist(), strict=True)
        ):
            return candidate
    return None
