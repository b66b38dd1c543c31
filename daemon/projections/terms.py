"""A keyword index over terms of our own: tantivy on disk, and in memory the tail of what it has not committed yet.

Comes in: texts with an id and a group (a pool, a document). Goes out: BM25 scores by id. Invariants: a text is found
from the moment it is put (the tail is searched beside the index, with the same formula), and never again once it is
dropped; the index commits off the door's thread; `applied` is written after the commit it speaks of, and putting a text
twice is harmless; an index that can't be read is thrown away, its owner replays.
"""

from __future__ import annotations

import math
import shutil
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple, cast

import tantivy

from ..failpoint import reach
from .tokens import Tokens

K1, B = 1.2, 0.75
"""BM25's parameters, tantivy's own."""

HEAP_BYTES = 15_000_000
COMMIT_AT = 20_000
"""Texts that wait at most in a long replay, before it commits by itself."""

LIVE_STATE, PAST_STATE = "live", "past"


class Text(NamedTuple):
    """What is indexed: `live` texts are found by default, others only if asked for."""

    id: str
    group: str
    live: bool
    words: str


class _Waiting(NamedTuple):
    group: str
    live: bool
    counts: Counter[str]
    length: int
    seq: int


_GONE = _Waiting("", False, Counter(), 0, 0)


def _schema() -> tantivy.Schema:
    builder = tantivy.SchemaBuilder()
    builder.add_text_field("id", stored=True, tokenizer_name="raw", index_option="basic")
    builder.add_text_field("group", tokenizer_name="raw", index_option="basic")
    builder.add_text_field("state", tokenizer_name="raw", index_option="basic")
    builder.add_text_field("terms", tokenizer_name="whitespace", index_option="freq")
    builder.add_bytes_field("check", stored=True)
    return builder.build()


def check_of(group: str, live: bool, terms: Sequence[str]) -> bytes:
    """What `contents` holds beside an id: the same for the same text, group and state."""
    return blake2b("\0".join((group, str(live), *terms)).encode(), digest_size=8).digest()


class TermIndex:
    """The index, its writer, and the tail. One thread puts; any thread searches."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._schema = _schema()
        self._lock = threading.Lock()  # the tail and the reading tokens: held for microseconds, the door waits on it
        self._writing = threading.Lock()  # the writer: held through a commit, the door never waits on it
        self._write_tokens, self._read_tokens = Tokens(), Tokens()
        self._tail: dict[str, _Waiting] = {}
        self._open()

    def _open(self) -> None:
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        try:
            self._index = tantivy.Index(self._schema, str(self.folder), reuse=True)
        except ValueError:  # of another layout, or damaged
            shutil.rmtree(self.folder)
            self.folder.mkdir(mode=0o700)
            self._index = tantivy.Index(self._schema, str(self.folder), reuse=True)
        self._writer = self._index.writer(HEAP_BYTES, 1)
        self.applied = self._marked = int(self._mark.read_text()) if self._mark.exists() else 0
        self.uncommitted = 0

    @property
    def _mark(self) -> Path:
        return self.folder / "applied_seq"

    def put(self, texts: Iterable[tuple[Text, int]], drops: Iterable[str], upto: int) -> None:
        """Index these texts, each with the seq it came with, drop those ids, and note that `upto` is applied."""
        for id in drops:
            self._put(id, _GONE._replace(seq=upto), None)
        for text, seq in texts:
            terms = self._write_tokens.document(text.words)
            document = tantivy.Document()
            document.add_text("id", text.id)
            document.add_text("group", text.group)
            document.add_text("state", LIVE_STATE if text.live else PAST_STATE)
            document.add_text("terms", " ".join(terms))
            document.add_bytes("check", check_of(text.group, text.live, terms))
            self._put(text.id, _Waiting(text.group, text.live, Counter(terms), len(terms), seq), document)
        with self._writing:
            self.applied = upto
        if self.uncommitted > COMMIT_AT:
            self.commit()

    def _put(self, id: str, waiting: _Waiting, document: tantivy.Document | None) -> None:
        with self._lock:
            self._tail[id] = waiting
        with self._writing:
            self._writer.delete_documents_by_term("id", id)
            if document is not None:
                self._writer.add_document(document)
            self.uncommitted += 1

    def commit(self) -> None:
        """Commit the index and drop from the tail what it now holds. Called off the door's thread."""
        with self._writing:
            upto = self.applied
            if self.uncommitted:
                reach("keywords:before-commit")
                self._writer.commit()
                reach("keywords:committed")
                self.uncommitted = 0
                self._index.reload()
                with self._lock:
                    self._tail = {id: kept for id, kept in self._tail.items() if kept.seq > upto}
            elif upto == self._marked:
                return
            mark = self._mark.with_suffix(".new")
            mark.write_text(str(upto))
            mark.replace(self._mark)
            self._marked = upto

    def search(
        self, query: str, groups: Sequence[str] | None, limit: int, *, past: bool = False
    ) -> tuple[dict[str, float], float]:
        """BM25 scores by id for a question in these groups (None: in all), and the most its terms could reach."""
        with self._lock:
            terms = self._read_tokens.query(query)
            searcher, tail = self._index.searcher(), list(self._tail.items())
        if not terms or (groups is not None and not groups):
            return {}, 0.0
        weights = self._weights(searcher, terms, [waiting for _, waiting in tail])
        scores = dict(self._indexed(searcher, terms, groups, limit, past))
        wanted = None if groups is None else set(groups)
        for id, waiting in tail:
            scores.pop(id, None)
            if (past or waiting.live) and (wanted is None or waiting.group in wanted):
                counts, length = waiting.counts, waiting.length
                score = sum(weight * _saturation(counts[term], length) for term, weight in weights.items())
                if score > 0:
                    scores[id] = score
        best = sorted(scores.items(), key=lambda pair: (-pair[1], pair[0]))[:limit]
        return dict(best), sum(weights.values()) * (K1 + 1)

    def _weights(self, searcher: tantivy.Searcher, terms: Iterable[str], tail: Sequence[_Waiting]) -> dict[str, float]:
        total = searcher.num_docs + len(tail)
        weights: dict[str, float] = {}
        for term in terms:
            count = searcher.doc_freq("terms", term) + sum(term in waiting.counts for waiting in tail)
            count = min(count, total)
            weights[term] = math.log(1 + (total - count + 0.5) / (count + 0.5))
        return weights

    def _indexed(
        self, searcher: tantivy.Searcher, terms: Sequence[str], groups: Sequence[str] | None, limit: int, past: bool
    ) -> Iterable[tuple[str, float]]:
        query, occur, schema = tantivy.Query, tantivy.Occur, self._schema
        wanted = query.boolean_query([(occur.Should, query.term_query(schema, "terms", term)) for term in terms])
        clauses = [(occur.Must, wanted)]
        if groups is not None:
            inside = query.const_score_query(query.term_set_query(schema, "group", list(groups)), 0.0)
            clauses.append((occur.Must, inside))
        if not past:
            state = query.const_score_query(query.term_query(schema, "state", LIVE_STATE), 0.0)
            clauses.append((occur.Must, state))
        for score, address in searcher.search(query.boolean_query(clauses), limit, count=False).hits:
            id = searcher.doc(address).get_first("id")
            if isinstance(id, str) and isinstance(score, float):
                yield id, score

    def replace(self, move: Callable[[], None]) -> None:
        """Take the index that `move` puts in the place of this one; searches go on against the old one until then."""
        with self._writing:
            self._writer.rollback()
            self._writer.wait_merging_threads()
            old = self._index, self._tail
            move()
            self._open()
            with self._lock:
                self._tail = {}
            del old

    def reopen(self) -> None:
        """After a failure: go back to what is committed; replay brings the rest. The tail serves it meanwhile."""
        with self._writing:
            del self._writer  # with it goes the lock on the folder
            self._open()

    def close(self) -> None:
        """Commit what waits and stop the writer's threads."""
        self.commit()
        self._writer.wait_merging_threads()


def contents(folder: Path) -> Iterator[tuple[str, bytes]]:
    """Every committed text of an index on disk: its id and its check. For a maintenance child: it takes no lock."""
    index = tantivy.Index.open(str(folder))
    searcher = index.searcher()
    if searcher.num_docs:
        for _, address in searcher.search(tantivy.Query.all_query(), searcher.num_docs, count=False).hits:
            document = searcher.doc(address)
            id, check = document.get_first("id"), document.get_first("check")
            yield str(id), bytes(cast("bytes", check))


def _saturation(count: int, length: int) -> float:
    if not count:
        return 0.0
    return count * (K1 + 1) / (count + K1 * (1 - B + B * length / 40))
