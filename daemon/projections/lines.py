"""The live records in the order in which they were said, with their neighbours in their document.

Invariants: a card contains no words except names; a table row follows from one record alone; a record said long after
another is not its neighbour, even in the same document.
"""

from __future__ import annotations

import re
import threading
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import pairwise

import msgspec

from ...protocol.instant import micros
from ...protocol.record import LIVE, Record
from ...protocol.reply import Logged
from ..storage.checksummed_rows import unseal
from .graph import edge
from .projection import check_order
from .record_reducer import touched
from .records import Records, digest

NAME_WORDS = 4
_PHRASE = re.compile(r"[^\W_](?:[\w.+#/-]*\w)?")

APART = 3_600_000_000
"""Microseconds of silence after which a conversation ends."""

PRINCIPLE = "principle"
ROLES = frozenset({"", "user", "assistant", "tool", "document", "memd"})
_WIDE = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_SENTENCES = re.compile(r"(?<=[.!?؟])\s+|(?<=[。！？])")
_CLOSING, _ASKING = " \"'”’»)", ("?", "？", "؟")
_LEADING = re.compile(r"(?:The |Our )?([A-Z][^\W\d_]+)(?=[\s:']|$)")
_COMMON = frozenset("the this that these those there it we they he she you our my a an in on at for from with when if"
                    " use do never always project".split())  # fmt: skip


HUBS = frozenset({"user", "project"})
"""Ends that nearly every edge has, which therefore relate nothing."""

LINKED = 50
MARK = 16
"""Bytes of the digest of the embedded text before a row: the vectors share this table."""


class OrderRow(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The stored row of a live record. `at`, `since` in microseconds; `size` in words; `who` in lower case.

    `asks`: the share of its words that stand in questions, from 0 to 1. `ends` are subject and object of an edge,
    `names` those of one thing.
    """

    document: bytes
    at: int
    start: int
    size: int
    asks: float
    who: tuple[str, ...]
    principle: bool
    since: int
    ends: tuple[str, ...]
    names: tuple[str, ...] = ()


_encode = msgspec.msgpack.Encoder().encode
_decoder = msgspec.msgpack.Decoder(OrderRow)


class OrderCard:
    """A live record among those of its document."""

    __slots__ = ("after", "before", "id", "pool", "row")

    def __init__(self, id: str, pool: bytes, row: OrderRow) -> None:
        self.id, self.pool, self.row = id, pool, row
        self.before: OrderCard | None = None
        self.after: OrderCard | None = None

    @property
    def _order(self) -> tuple[int, int, str]:
        return self.row.at, self.row.start, self.id

    def __lt__(self, other: OrderCard) -> bool:
        return self._order < other._order

    def around(self) -> tuple[OrderCard | None, OrderCard | None, OrderCard | None, OrderCard | None]:
        """Return the previous card, the one before it, the next card, and the one after it."""
        before, after = self.before, self.after
        return before, before and before.before, after, after and after.after

    def join(self, other: OrderCard | None) -> None:
        """Link `other` as the next card, unless the conversation ended between them."""
        near = other is not None and other.row.at - self.row.at <= APART
        self.after = other if near else None
        if other is not None:
            other.before = self if near else None


def _ends(row: OrderRow) -> Iterable[tuple[str, str]]:
    """An edge from both of its ends: each thing, with the thing at the other end."""
    return ((row.ends[0], row.ends[1]), (row.ends[1], row.ends[0])) if row.ends else ()


def _pairs(row: OrderRow) -> Iterable[tuple[str, str]]:
    """Both names of a thing, each with the other one."""
    return ((row.names[0], row.names[1]), (row.names[1], row.names[0])) if len(row.names) == 2 else ()


def about(record: Record) -> tuple[str, ...]:
    """The names of whoever said a record and whom it is about, in lower case; `user` for the user."""
    names = _names(record.provenance.author)
    if leading := _LEADING.match(record.description):
        names = names | {leading[1].lower()}
    return tuple(sorted(names - _COMMON)) if names else ()


@lru_cache(256)
def _names(author: str) -> frozenset[str]:
    return frozenset(author.lower().split()) - ROLES


def size(text: str) -> int:
    """Return about the number of words of a text, in any script."""
    return len(text.split()) + (0 if text.isascii() else len(_WIDE.findall(text)) // 2)


def asks(text: str) -> float:
    """Return the share of a text's words that are in its questions, in any script."""
    if not any(mark in text for mark in _ASKING):  # fast path: most texts have no question
        return 0.0
    sentences = _SENTENCES.split(text.strip())
    sizes = [(size(sentence), sentence.rstrip(_CLOSING).endswith(_ASKING)) for sentence in sentences]
    return sum(words for words, asking in sizes if asking) / max(1, sum(words for words, _ in sizes))


def row_of(record: Record) -> OrderRow:
    """Return the stored row of a record."""
    provenance, valid_from = record.provenance, record.valid_from
    span = provenance.spans[0] if provenance.spans else None
    at = micros(provenance.said_at)
    return OrderRow(
        document=digest(span.document if span else provenance.source),
        at=at,
        start=span.start if span else 0,
        size=size(record.description),
        asks=asks(record.description),
        who=about(record),
        principle=PRINCIPLE in record.tags,
        since=at if valid_from in ("", provenance.said_at) else micros(valid_from),
        ends=(relation.subject.casefold(), relation.object.casefold()) if (relation := edge(record)) else (),
        names=() if record.flags else record.aliases,
    )


def line_rows(record: Record) -> Iterable[tuple[bytes, bytes]]:
    """Return the row of a live record, after the digest of its embedded text."""
    if record.status in LIVE:
        yield digest(record.pool) + record.id.encode(), digest(record.description) + _encode(row_of(record))


class ConversationOrder:
    """The projection: the cards of all live records, in memory. One thread applies, any thread reads."""

    name = "lines"

    def __init__(self, records: Records, applied_seq: int) -> None:
        """`load`, or the first `apply`, fills it."""
        self._records, self._applied = records, applied_seq
        self._filled, self._filling = False, threading.Lock()
        self._clear()

    def _clear(self) -> None:
        self._cards: dict[str, OrderCard] = {}
        self._documents: dict[bytes, list[OrderCard]] = {}
        self._principles: dict[bytes, dict[str, None]] = {}
        self._edges: dict[tuple[bytes, str], dict[str, str]] = {}
        """By pool and thing: the edges that end there, each with its other end."""
        self._names: dict[tuple[bytes, str], dict[str, str]] = {}
        """By pool and name of a thing, in lower case: the records that state it, each with the other name."""

    def load(self) -> None:
        """Fill it, unless it is filled."""
        if not self._filled:
            with self._filling:
                if not self._filled:
                    self.reset(self._applied)

    def reset(self, applied_seq: int) -> None:
        """Fill everything from the tables, which are at `applied_seq`."""
        self._clear()
        documents: dict[bytes, list[OrderCard]] = {}
        for card in self._stored():
            self._cards[card.id] = card
            documents.setdefault(card.row.document, []).append(card)
            self._note(card)
        for cards in documents.values():
            cards.sort()
            for first, then in pairwise(cards):
                first.join(then)
        self._documents = documents
        self._applied, self._filled = applied_seq, True

    def _stored(self) -> Iterator[OrderCard]:
        environment = self._records.environment
        pools: dict[bytes, bytes] = {}
        with environment.read() as transaction:
            for key, value in transaction.cursor(environment.db("lines")).iternext():
                row = _decoder.decode(unseal(key, value, "the place of a record")[MARK:])
                yield OrderCard(key[16:].decode(), pools.setdefault(key[:16], key[:16]), row)

    @property
    def applied_seq(self) -> int:
        """The seq of the last operation applied."""
        return self._applied

    def apply(self, entries: Sequence[Logged]) -> None:
        """Move the records these operations touched in or out of their document."""
        self.load()
        check_order(self.name, self._applied, entries)
        ids = dict.fromkeys(id for entry in entries for id in touched(entry.operation))
        records = self._records.many(ids) if ids else {}
        for id in ids:
            self._drop(id)
            if (record := records.get(id)) is not None and record.status in LIVE:
                self._put(OrderCard(id, digest(record.pool), row_of(record)))
        if entries:
            self._applied = entries[-1].seq

    def _put(self, card: OrderCard) -> None:
        cards = self._documents.setdefault(card.row.document, [])
        place = bisect_left(cards, card)
        following = cards[place] if place < len(cards) else None
        cards.insert(place, card)
        if place:
            cards[place - 1].join(card)
        card.join(following)
        self._cards[card.id] = card
        self._note(card)

    def _note(self, card: OrderCard) -> None:
        if card.row.principle:
            self._principles.setdefault(card.pool, {})[card.id] = None
        for thing, other in _ends(card.row):
            self._edges.setdefault((card.pool, thing), {})[card.id] = other
        for name, other in _pairs(card.row):
            self._names.setdefault((card.pool, name.casefold()), {})[card.id] = other

    def _drop(self, id: str) -> None:
        card = self._cards.pop(id, None)
        if card is None:
            return
        self._principles.get(card.pool, {}).pop(id, None)
        for thing, _ in _ends(card.row):
            self._edges.get((card.pool, thing), {}).pop(id, None)
        for name, _ in _pairs(card.row):
            self._names.get((card.pool, name.casefold()), {}).pop(id, None)
        cards = self._documents[card.row.document]
        place = bisect_left(cards, card)
        cards.pop(place)
        following = cards[place] if place < len(cards) else None
        if place:
            cards[place - 1].join(following)
        elif following is not None:
            following.before = None
        if not cards:
            del self._documents[card.row.document]

    def get(self, id: str) -> OrderCard | None:
        """Return the card of a live record, or None."""
        return self._cards.get(id)

    def many(self, ids: Iterable[str]) -> dict[str, OrderCard | None]:
        """Return the cards of these records, None for those that are not live."""
        get = self._cards.get
        return {id: get(id) for id in ids}

    def principles(self, pools: Sequence[str]) -> list[str]:
        """Return the live principles of these pools, pool by pool (Q8)."""
        self.load()
        return [id for pool in pools for id in list(self._principles.get(digest(pool), ()))]

    def linked(self, pools: Sequence[str], things: Iterable[str]) -> dict[str, float]:
        """Return the edges near these things by id: 1.0 for an edge of a thing, 0.5 for an edge further (R8)."""
        marks = [digest(pool) for pool in pools]
        first = self._reach(marks, things)
        on = {other for other in first.values() if other not in HUBS}
        return {**dict.fromkeys(self._reach(marks, on), 0.5), **dict.fromkeys(first, 1.0)} if first else {}

    def other_names(self, pools: Sequence[str], text: str) -> dict[str, str]:
        """Return the records that give another name to a thing that a text names, each with that name."""
        self.load()
        found: dict[str, str] = {}
        words = _PHRASE.findall(text.casefold()) if self._names else []
        for start in range(len(words)):
            for end in range(start + 1, min(len(words), start + NAME_WORDS) + 1):
                for pool in pools:
                    found.update(self._names.get((digest(pool), " ".join(words[start:end])), {}))
        return dict(list(found.items())[:LINKED])

    def _reach(self, marks: Sequence[bytes], things: Iterable[str]) -> dict[str, str]:
        edges: dict[str, str] = {}
        for thing in things if self._edges else ():
            for mark in marks:
                edges.update(self._edges.get((mark, thing), {}))
        return dict(list(edges.items())[:LINKED])

    def __iter__(self) -> Iterator[str]:
        """The ids of all live records."""
        return iter(list(self._cards))

    def __len__(self) -> int:
        return len(self._cards)
