"""Points in time: RFC 3339 text with an offset (world times), and microseconds since 1970 in UTC (system times).

Invariants: memd rejects a time without an offset (P-21); text keeps the offset of its source, so that memd can resolve
"yesterday evening" there.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Annotated

import msgspec

from .errors import InvalidRequest, NaiveTime

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST_YEAR, _LAST_YEAR = 1, 9999  # a time in them has no year in some zones
_MICROSECOND = timedelta(microseconds=1)

SHORTEST_TIME, LONGEST_TIME = 17, 40

Instant = Annotated[str, msgspec.Meta(min_length=SHORTEST_TIME, max_length=LONGEST_TIME)]
"""RFC 3339 with an offset, such as `2026-03-04T18:30:00.120+09:00`; `checked` rejects other text."""


def parse(text: str) -> datetime:
    """Parse an RFC 3339 text. Raises NaiveTime without an offset, InvalidRequest if it is not a time."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise InvalidRequest(
            f"{text!r} is not a time", hint="use the form 2026-03-04T18:30:00+01:00 or 2026-03-04T17:30:00Z"
        ) from error
    if moment.tzinfo is None:
        raise NaiveTime(f"{text!r} has no UTC offset", hint="append Z for UTC or an offset such as +01:00")
    return moment


def checked(text: str) -> str:
    """Return `text` if it is a time with an offset, in any zone. Raises NaiveTime, InvalidRequest."""
    if not _FIRST_YEAR < parse(text).year < _LAST_YEAR:
        raise InvalidRequest(f"{text!r} is not a time from the year {_FIRST_YEAR + 1} to {_LAST_YEAR - 1}")
    return text


def micros(text: str) -> int:
    """Convert RFC 3339 text to microseconds. Raises NaiveTime, InvalidRequest."""
    return (parse(text) - _EPOCH) // _MICROSECOND


def moment(micros_utc: int) -> datetime:
    """Convert microseconds to an aware datetime."""
    return _EPOCH + timedelta(microseconds=micros_utc)


def from_micros(micros_utc: int, offset_min: int = 0) -> str:
    """Convert microseconds to RFC 3339 text with an offset in minutes."""
    zone = UTC if offset_min == 0 else timezone(timedelta(minutes=offset_min))
    return moment(micros_utc).astimezone(zone).isoformat().replace("+00:00", "Z")


def day(text: str) -> str:
    """Return the calendar day of an instant in its own offset, `2026-03-04`."""
    return parse(text).date().isoformat()
