"""The checks of each row of an export before it is imported: other programs may have written it.

Invariant: whatever these checks admit, every projection can fold, every reply can show, and a replay gives again.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, cast

import msgspec

from ....protocol.errors import InvalidRequest, TooLarge
from ....protocol.fading import LEVELS
from ....protocol.instant import LONGEST_TIME, checked
from ....protocol.message_texts import texts_of
from ....protocol.operation import PoolOpened, SessionOpened
from ....protocol.record import Record, Span
from ....protocol.reply import ExportedRecord
from ....protocol.text_limits import TEXT_LIMIT
from ..admission import NAME_LIMIT, PATH_LIMIT, host_of

LARGEST = 2**53
"""Largest integer: as microseconds it is in the year 2255."""

WIDEST = 1e6
"""Largest absolute value of a score."""

DAYS = 36_500
_ID = re.compile(r"[0-9a-hjkmnp-tv-z]{26}")
_POOL = re.compile(r"personal|(?:project|agent|unbound)/[^\s\x00-\x1f\x7f]{1,100}")
"""The name of a pool; with its status it is a key of the tables, which have at most 511 bytes."""


def check_record(exported: ExportedRecord) -> None:
    """Raise InvalidRequest, NaiveTime or TooLarge for a record that can't be imported."""
    record = exported.record
    for id in (record.id, *record.supersedes, *record.relates_to, *filter(None, (record.superseded_by,))):
        if not _ID.fullmatch(id):
            raise InvalidRequest(f"{id[:60]!r} is not a valid record id")
    if not record.content.strip():
        raise InvalidRequest("the record has no text")
    _check_pool(record.pool)
    provenance = record.provenance
    if not provenance.spans:
        raise InvalidRequest("the record has no provenance", hint="every imported record must name its source")
    for span in (*provenance.spans, *(item.span for item in provenance.evidence)):
        _check_span(span)
        _check_author(span.document)
    _check_time(provenance.said_at)
    planned = record.review.next if record.review else ""
    for time in (
        *filter(None, (record.valid_from, record.valid_to, planned)),
        *(item.at for item in provenance.evidence),
    ):
        _check_time(time)
    _check_ranges(record)
    _check_values(exported)


def check_session(opened: SessionOpened) -> None:
    """Raise InvalidRequest, NaiveTime or TooLarge for a session that can't be imported."""
    origin = opened.origin
    if not (origin.host and origin.session and 0 < len(opened.document) <= NAME_LIMIT >= len(origin.document)):
        raise InvalidRequest("a session must name its document, host and session, of at most 512 characters")
    for document in (opened.document, origin.document):
        _check_author(document)
    if len(origin.cwd) > PATH_LIMIT:
        raise TooLarge(f"the folder's path has {len(origin.cwd):,} characters", hint=f"at most {PATH_LIMIT:,}")
    if opened.project:
        _check_pool(opened.project)
    _check_time(opened.at)
    _check_values(opened)


def check_pool(opened: PoolOpened) -> None:
    """Raise InvalidRequest or TooLarge for a pool that can't be imported."""
    _check_pool(opened.pool)
    _check_values(opened)


def _check_pool(pool: str) -> None:
    if not _POOL.fullmatch(pool):
        raise InvalidRequest(f"{pool[:60]!r} is not a valid pool")


def _check_author(document: str) -> None:
    """Raise InvalidRequest for words of another author of a shared project, which arrive by `memd share pull` alone."""
    if host_of(document) == "team":
        raise InvalidRequest("another author shared this record", hint="`memd share pull` takes it from its author")


def _check_time(text: str) -> None:
    if len(text) > LONGEST_TIME:
        raise InvalidRequest(f"{text[:60]!r} is not a time")
    checked(text)


def _check_span(span: Span) -> None:
    if not span.document or len(span.document) > NAME_LIMIT or not span.turn or len(span.turn) > NAME_LIMIT:
        raise InvalidRequest("a span must name a document and a turn of at most 512 characters each")
    if not 0 <= span.start <= span.end <= TEXT_LIMIT:
        raise InvalidRequest(f"characters {span.start}:{span.end} are not part of a turn")


def _check_ranges(record: Record) -> None:
    signal = record.signal
    shares = {"confidence": record.confidence, "importance": signal.importance, "injection": record.injection or 0.0}
    for name, share in shares.items():
        if not 0 <= share <= 1:
            raise InvalidRequest(f"`{name}` is {share}, not between 0 and 1")
    if not all(strength >= 0 for strength in (signal.strength, *signal.strength_by.values())):
        raise InvalidRequest("`strength` is negative")
    if not signal.level < LEVELS:
        raise InvalidRequest(f"`level` is {signal.level}, not below {LEVELS}")
    if record.review and record.review.cadence_days > DAYS:
        raise InvalidRequest(f"`cadence_days` is {record.review.cadence_days:,}, at most {DAYS:,}")


def _check_values(row: msgspec.Struct) -> None:
    """Check every number and text of a row, in the fields that have no range of their own too."""
    for name, words in texts_of(row):
        if len(words) > TEXT_LIMIT:
            raise TooLarge(f"`{name}` has {len(words):,} characters, at most {TEXT_LIMIT:,}")
        if "\0" in words:
            raise InvalidRequest(f"`{name}` contains a zero character")
    for number in _numbers(msgspec.to_builtins(row)):
        if isinstance(number, int) and not 0 <= number <= LARGEST:
            raise InvalidRequest(f"{number} is out of range: an integer is from 0 to {LARGEST:,}")
        if isinstance(number, float) and not abs(number) <= WIDEST:  # nor is it NaN
            raise InvalidRequest(f"{number} is out of range: a score is at most {WIDEST:,.0f}")


def _numbers(value: Any) -> Iterator[int | float]:
    if isinstance(value, bool):
        return
    if isinstance(value, int | float):
        yield value
    elif isinstance(value, dict | list | tuple):
        rows = cast("dict[str, Any] | list[Any]", value)
        for item in rows.values() if isinstance(rows, dict) else rows:
            yield from _numbers(item)
