"""Requests and replies about large input: the worth of its items, its summary, and the passages behind a summary (W12).

The client reads files and asks the user; the daemon keeps nothing of a decision that is not made.
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from .record import Record, record_id
from .request_fields import Request, ScopedRequest

SUMMARY = "summary"
"""Tag of a record that summarises a document: lines of its words, each with the number of its passage."""

TURN = "summary"
"""The turn in the id of a summary."""

SUMMARY_TOKENS = 1000
"""Most tokens of a summary."""

CHUNK_TOKENS = 6000
"""Most tokens of a part of the input that is read at once."""

ITEMS_LIMIT = 20
"""Items up to which memd takes everything and asks nobody."""

WEIGHED_ITEMS = 5000

WeighedBy = Literal["both", "worth", "topic"]


def summary_id(document: str) -> str:
    """Return the id of the summary of a document, which has at most one."""
    return record_id("note", document, TURN, 0, 0)


class WeighItems(Request, tag="weigh_items", frozen=True, kw_only=True):
    """Tell the worth or the topic of each of these texts, or both, as a job; memd stores nothing of it (W12)."""

    texts: Annotated[tuple[str, ...], msgspec.Meta(min_length=1, max_length=WEIGHED_ITEMS)]
    by: WeighedBy = "both"


class SummariseDocument(Request, tag="summarise_document", frozen=True, kw_only=True):
    """Summarise the captured turns of a document in this order, as a job; without `turns` all, in the order in which
    they came. Turns that the archive lacks are left out; the same turns again write nothing (W12)."""

    document: str
    turns: Annotated[tuple[str, ...], msgspec.Meta(max_length=500_000)] = ()


class GetDetail(ScopedRequest, tag="detail", frozen=True, kw_only=True):
    """Return the passage number `number` of a summary, by the summary's id or its prefix; "" for the newest summary in
    scope (W12)."""

    number: Annotated[int, msgspec.Meta(ge=1, le=10_000)]
    summary: str = ""


class Detail(msgspec.Struct, frozen=True, kw_only=True):
    """Reply to `detail`: the characters `start:end` of `text` are the line of the summary. `path`: the file and the
    headings above the passage; `total`: passages of the summary."""

    summary: Record
    number: int
    total: int
    document: str
    turn: str
    at: str
    text: str
    start: int
    end: int
    path: str = ""


class ListTopics(ScopedRequest, tag="topics", frozen=True, kw_only=True):
    """List what the memories in scope are about: groups of records whose words are near to each other (W12)."""

    most: Annotated[int, msgspec.Meta(ge=1, le=40)] = 12


class RecordTopic(msgspec.Struct, frozen=True, kw_only=True):
    """A group of records: the words that set it apart, its size, and the ids of its most central records."""

    label: str
    records: int
    ids: tuple[str, ...]


class TopicList(msgspec.Struct, frozen=True, kw_only=True):
    """Reply to `topics`, the largest first. `left`: records in scope that are in no topic: they are older than the
    newest that memd groups, or have no vector yet."""

    topics: tuple[RecordTopic, ...]
    left: int = 0
