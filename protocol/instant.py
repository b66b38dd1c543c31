"""Points in time as they travel: RFC 3339 text with an offset, beside microseconds since 1970 in UTC.

Comes in: text or microseconds. Goes out: the other one. Invariant: a time without an offset never passes (P-21);
the offset that the source wrote is kept, so that "yesterday evening" can be resolved where it was said.
System times (when memd learned or retired something) are microseconds; world times are text. No clock is read here.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Annotated

import msgspec

from .errors import InvalidRequest, NaiveTime

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)

SHORTEST_TIME, LONGEST_TIME = 17, 40

Instant = Annotated[str, msgspec.Meta(min_length=SHORTEST_TIME, max_length=LONGEST_TIME)]
"""RFC 3339 with an offset, such as `2026-03-04T18:30:00.120+09:00`; `checked` refuses anything else."""


def parse(text: str) -> datetime:
    """The aware datetime of `text`. Raises NaiveTime without an offset, InvalidRequest when it is no time at all."""
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
    """`text`, if it is a time with an offset. Raises NaiveTime, InvalidRequest."""
    parse(text)
    return text


def micros(text: str) -> int:
    """Microseconds since 1970 in UTC of an RFC 3339 text. Raises NaiveTime, InvalidRequest."""
    return (parse(text) - _EPOCH) // _MICROSECOND


def moment(micros_utc: int) -> datetime:
    """Microseconds since 1970 as an aware datetime."""
    return _EPOCH + timedelta(microseconds=micros_utc)


def from_micros(micros_utc: int, offset_min: int = 0) -> str:
    """RFC 3339 text of microseconds since 1970, written with an offset in minutes."""
    zone = UTC if offset_min == 0 else timezone(timedelta(minutes=offset_min))
    return (_EPOCH + timedelta(microseconds=micros_utc)).astimezone(zone).isoformat().replace("+00:00", "Z")


def day(text: str) -> str:
    """The calendar day of an instant in its own offset, `2026-03-04`."""
    return parse(text).date().isoformat()
