"""Requests and replies about the versions of a record and its place in time (T1, Q12)."""

from __future__ import annotations

from typing import Annotated

import msgspec

from .record import Record
from .request_fields import Request, ScopedRequest


class GetHistory(Request, tag="history", frozen=True, kw_only=True):
    """List every version of a record, by id or unambiguous prefix (T1, Q12)."""

    id: str


class Version(msgspec.Struct, frozen=True, kw_only=True):
    """A record after one operation, None if that removed it. `at`: microseconds."""

    seq: int
    at: int
    kind: str
    why: str = ""
    record: Record | None = None


class History(msgspec.Struct, frozen=True, kw_only=True):
    """Reply to `history`: the record with its current signal, and its versions, oldest first."""

    record: Record
    versions: tuple[Version, ...]


class GetTimeline(ScopedRequest, tag="timeline", frozen=True, kw_only=True):
    """List records about a key, a key prefix or words by world time, retired and archived ones too (T1, Q12)."""

    subject: str
    limit: Annotated[int, msgspec.Meta(ge=1, le=500)] = 50
