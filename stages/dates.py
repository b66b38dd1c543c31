"""World time: resolve "yesterday" or "since March" against the time and offset of the event (P-21). English is read
here, five others by `multilingual_dates.py`. A vague date ("soon", "the other day") gives none."""

from __future__ import annotations

import re
from datetime import datetime, timedelta

from ..protocol.instant import parse
from .calendar_math import place_date, shift, weekday
from .multilingual_dates import LANGUAGES, named_time

_MONTHS = tuple[str, ...](
    "january february march april may june july august september october november december".split()
)
_DAYS = tuple[str, ...]("monday tuesday wednesday thursday friday saturday sunday".split())
_NUMBERS = "one two three four five six seven eight nine ten eleven twelve".split()
_COUNTS = {"a": 1, "an": 1, "couple": 2, "few": 3} | {word: number for number, word in enumerate(_NUMBERS, 1)}
_MONTH = r"(?:" + "|".join(f"{name[:3]}(?:{name[3:]})?" if name != "may" else "may" for name in _MONTHS) + r")\.?"
_COUNT = r"(?P<count>\d{1,3}|" + "|".join(_COUNTS) + r")(?: of)?"
_UNIT = r"(?P<unit>day|week|weekend|month|year)"

_AGO = re.compile(rf"\b{_COUNT} {_UNIT}s? (?:ago|back)(?! to)\b", re.I)
_IN = re.compile(rf"\bin {_COUNT} {_UNIT}s?\b", re.I)
_NEAR = re.compile(
    r"\b(?P<which>last|this|next|past|previous) (?P<what>night|day|week|weekend|month|year|"
    + "|".join(_DAYS)
    + rf"|{_MONTH})\b",
    re.I,
)
_DAY = re.compile(r"\b(?P<word>today|tonight|yesterday|tomorrow|this (?:morning|afternoon|evening))\b", re.I)
_ISO = re.compile(r"\b(?P<year>(?:19|20)\d\d)-(?P<month>\d\d)(?:-(?P<day>\d\d))?\b")
_YEAR_TOO = r"(?:,? (?P<year>(?:19|20)\d\d))?\b"
_DATE = re.compile(
    rf"\b(?:(?P<month>{_MONTH}) (?P<day>\d{{1,2}})(?:st|nd|rd|th)?"
    rf"|(?:the )?(?P<day2>\d{{1,2}})(?:st|nd|rd|th)? (?:of )?(?P<month2>{_MONTH})){_YEAR_TOO}",
    re.I,
)
_IN_MONTH = re.compile(
    r"\b(?:in|since|from|as of|effective|starting|until|during)(?: early| late| mid)? "
    rf"(?P<month>{_MONTH}){_YEAR_TOO}(?! \d)",
    re.I,
)
_YEAR = re.compile(r"\b(?:in|since|from|as of|back in)(?: early| late| mid)? (?P<year>(?:19|20)\d\d)\b", re.I)
_ON_DAY = re.compile(r"\b(?:on|since|as of|from|this past) (?P<day>" + "|".join(_DAYS) + r")\b", re.I)
_CLOCK = r"(?:(?:at|around) )?(?:\d{1,2}:\d\d(?: ?[ap]m)?|\d{1,2} ?[ap]m|noon|midnight)"
_HOURS = r"(?: (?:morning|afternoon|evening|night))?"
_TIME = "|".join(
    re.sub(r"\?P<\w+>", "?:", pattern)
    for pattern in (
        rf"(?:{_COUNT} {_UNIT}s? (?:ago|back)\b(?! to\b))",
        _NEAR.pattern + _HOURS,
        _DAY.pattern + _HOURS,
        rf"(?:on|in|at|during) (?:(?:early|late|mid) )?(?:{_ISO.pattern}|{_DATE.pattern})",
        rf"(?:in|during)(?: early| late| mid)? {_MONTH}{_YEAR_TOO}(?! \d)",
        r"in (?:19|20)\d\d\b",
        rf"on (?:{'|'.join(_DAYS)})\b{_HOURS}",
        _CLOCK,
    )
)
TIME_PHRASE = re.compile(rf"(?<![\w-])(?:(?:just|earlier|later) )?(?:{_TIME})(?:,? (?:{_TIME}))*(?![\w'’/-])", re.I)
"""An English phrase that says when something happened, or several in a row; no word around it depends on it."""
_NAMED_DAY = re.compile(rf"\b(?:{'|'.join(_DAYS)}|the other day|earlier (?:today|this \w+))\b", re.I)
_UNTIL = re.compile(r"\b(?:by|before|until|due) (?:on |the |next |this |end of )*\w+(?: \d+)?")
_DEADLINE = re.compile(r"\b(?:deadline|due (?:on|date)|expires?)\b", re.I)
_FUTURE = re.compile(
    r"\b(?:will|'ll|going to|gonna|plan|planning|by|until|before|due|deadline|scheduled|starts?|upcoming)\b", re.I
)


def valid_from(clause: str, at: str, tongue: str = "en") -> str:
    """The start of the day, week, month or year from which the clause holds, with the event's offset; "" for none.
    `at`: the event's instant. `tongue`: as `words.language` tells it; a language without a table gives none. A deadline
    ("by Friday", "before June") is not a beginning. Raises NaiveTime."""
    midnight, start = parse(at).replace(hour=0, minute=0, second=0, microsecond=0), None
    try:
        if tongue in LANGUAGES:
            time = named_time(clause, midnight, tongue)
            start = time.start if time else None
        elif tongue == "en" and not _DEADLINE.search(clause):
            clause = _UNTIL.sub(" ", clause.replace("’", "'"))
            start = _relative(clause, midnight) or _named(clause, midnight)
    except (ValueError, OverflowError):
        return ""
    return start.isoformat().replace("+00:00", "Z") if start else ""


def names_time(clause: str, tongue: str = "en") -> bool:
    """Whether the clause names a date, a near day or a time of the day, but no recurring day ("on Fridays")."""
    if tongue in LANGUAGES:
        return bool(valid_from(clause, "2024-01-01T00:00:00Z", tongue))
    dated = (_NAMED_DAY, TIME_PHRASE, _AGO, _DAY, _NEAR, _ISO, _DATE, _IN_MONTH, _YEAR)
    return any(pattern.search(clause) for pattern in dated)


def _relative(clause: str, midnight: datetime) -> datetime | None:
    if hit := _AGO.search(clause):
        return shift(midnight, hit["unit"].lower(), -_number(hit["count"]))
    if hit := _DAY.search(clause):
        word = hit["word"].lower()
        return midnight + timedelta(days={"yesterday": -1, "tomorrow": 1}.get(word, 0))
    if hit := _NEAR.search(clause):
        return _near(midnight, hit["which"].lower(), hit["what"].lower())
    if hit := _IN.search(clause):
        return shift(midnight, hit["unit"].lower(), _number(hit["count"]))
    return None


def _named(clause: str, midnight: datetime) -> datetime | None:
    if hit := _ISO.search(clause):
        return midnight.replace(year=int(hit["year"]), month=int(hit["month"]), day=int(hit["day"] or 1))
    if hit := _DATE.search(clause):
        month, day = _month(hit["month"] or hit["month2"]), int(hit["day"] or hit["day2"])
        return _placed(midnight, month, day, hit["year"], clause)
    if hit := _IN_MONTH.search(clause):
        return _placed(midnight, _month(hit["month"]), 1, hit["year"], clause)
    if hit := _YEAR.search(clause):
        return midnight.replace(year=int(hit["year"]), month=1, day=1)
    if hit := _ON_DAY.search(clause):
        return weekday(midnight, _DAYS.index(hit["day"].lower()), 1 if _FUTURE.search(clause) else 0)
    return None


def _placed(midnight: datetime, month: int, day: int, year: str | None, clause: str) -> datetime:
    low = clause.lower()
    ahead = _FUTURE.search(clause) is not None or "effective" in low or "starting" in low
    return place_date(midnight, month, day, int(year) if year else None, ahead)


def _near(midnight: datetime, which: str, what: str) -> datetime:
    back = which in {"last", "past", "previous"}
    sign = -1 if back else (1 if which == "next" else 0)
    if what in _DAYS:
        return weekday(midnight, _DAYS.index(what), -1 if back else 1)
    if what in {"night", "day"}:
        return midnight + timedelta(days=sign)
    if what == "weekend":
        return midnight + timedelta(days=5 - midnight.weekday() + 7 * sign)
    if what in {"week", "month", "year"}:
        return shift(midnight, what, sign, start=True)
    start = midnight.replace(month=_month(what), day=1)
    if back and start >= midnight.replace(day=1):
        return start.replace(year=start.year - 1)
    if which == "next" and start <= midnight:
        return start.replace(year=start.year + 1)
    return start


def _month(name: str) -> int:
    return next(at for at, month in enumerate(_MONTHS, 1) if month.startswith(name.lower().rstrip(".")[:3]))


def _number(word: str) -> int:
    return int(word) if word.isdigit() else _COUNTS[word.lower()]
