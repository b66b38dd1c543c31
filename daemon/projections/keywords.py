"""The keyword index of records: tantivy over our own terms, and the tail of what it has not committed yet.

Comes in: the operations that change a record's words or status. Goes out: BM25 scores by id. Invariants: every record
is found from the moment it is applied (the tail is searched beside the index, with the same formula); the index commits
off the door's thread; its `applied_seq` is written after the commit it speaks of, and replaying more is harmless.
"""

from __future__ import annotations

import math
import threading
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

import tantivy

from ...protocol.operation import Added, Invalidated, Merged, Updated
from ...protocol.record import LIVE, Record
from ...protocol.reply import Logged
from .records import Records
from .tokens import Tokens

K1, B = 1.2, 0.75
"""BM25's parameters, tantivy's own."""

HEAP_BYTES = 15_000_000
LIVE_STATE, PAST_STATE = "live", "past"


def words(record: Record) -> str:
    """What of a record is searched: its description, its words, its tags, its key."""
    return "\n".join((record.description, record.content, " ".join(record.tags), record.key))


def _schema() -> tantivy.Schema:
    builder = tantivy.SchemaBuilder()
    builder.add_text_field("id", stored=True, tokenizer_name="raw", index_option="basic")
    builder.add_text_field("pool", tokenizer_name="raw", index_option="basic")
    builder.add_text_field("state", tokenizer_name="raw", index_option="basic")
    builder.add_text_field("terms", tokenizer_name="whitespace", index_option="freq")
    return builder.build()


class Keywords:
    """The index, its writer, and the tail (R2, P-22)."""

    name = "keywords"

    def __init__(self, folder: Path, records: Records) -> None:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._records = records
        self._mark = folder / "applied_seq"
        self._schema = _schema()
        self._index = tantivy.Index(self._schema, str(folder), reuse=True)
        self._writer = self._index.writer(HEAP_BYTES, 1)
        self._applied = int(self._mark.read_text()) if self._mark.exists() else 0
        self._tail: dict[str, tuple[Record, Counter[str], int, int]] = {}
        self._lock = threading.Lock()  # the tail: held for microseconds, the door waits on it
        self._writing = threading.Lock()  # the writer: held through a commit, the door never waits on it
        self._write_tokens, self._read_tokens = Tokens(), Tokens()
        self._uncommitted = 0

    @property
    def applied_seq(self) -> int:
        """The seq of the last operation folded in, tail included."""
        return self._applied

    def apply(self, entries: Sequence[Logged]) -> None:
        """Put the records these operations touched into the tail and before the index's writer."""
        touched: dict[str, int] = {}
        for entry in entries:
            for id in _touched(entry):
                touched[id] = entry.seq
        for id, record in self._records.many(touched).items():
            terms = self._write_tokens.document(words(record))
            document = tantivy.Document()
            document.add_text("id", id)
            document.add_text("pool", record.pool)
            document.add_text("state", LIVE_STATE if record.status in LIVE else PAST_STATE)
            document.add_text("terms", " ".join(terms))
            with self._lock:
                self._tail[id] = (record, Counter(terms), len(terms), touched[id])
            with self._writing:
                self._writer.delete_documents_by_term("id", id)
                self._writer.add_document(document)
                self._uncommitted += 1
        if entries:
            with self._writing:
                self._applied = entries[-1].seq

    @property
    def uncommitted(self) -> int:
        """How many documents wait for the next commit."""
        return self._uncommitted

    def commit(self) -> None:
        """Commit the index and drop from the tail what it now holds. Called off the door's thread."""
        with self._writing:
            if not self._uncommitted:
                return
            upto = self._applied
            self._writer.commit()
            self._uncommitted = 0
        self._index.reload()
        with self._lock:
            self._tail = {id: kept for id, kept in self._tail.items() if kept[3] > upto}
        mark = self._mark.with_suffix(".new")
        mark.write_text(str(upto))
        mark.replace(self._mark)

    def search(
        self, query: str, pools: Sequence[str], limit: int, *, past: bool = False
    ) -> tuple[dict[str, float], float]:
        """BM25 scores by id for a question in these pools, and the highest score its terms could reach."""
        terms = self._read_tokens.query(query)
        if not terms or not pools:
            return {}, 0.0
        searcher = self._index.searcher()
        with self._lock:
            tail = list(self._tail.items())
        weights = self._weights(searcher, terms, [kept for _, kept in tail])
        scores = dict(self._indexed(searcher, terms, pools, limit, past))
        for id, (record, counts, length, _) in tail:
            scores.pop(id, None)
            if record.pool in pools and (past or record.status in LIVE):
                score = sum(weight * _saturation(counts[term], length) for term, weight in weights.items())
                if score > 0:
                    scores[id] = score
        best = sorted(scores.items(), key=lambda pair: (-pair[1], pair[0]))[:limit]
        return dict(best), sum(weights.values()) * (K1 + 1)

    def _weights(
        self,
        searcher: tantivy.Searcher,
        terms: Iterable[str],
        tail: Sequence[tuple[Record, Counter[str], int, int]],
    ) -> dict[str, float]:
        total = searcher.num_docs + len(tail)
        weights: dict[str, float] = {}
        for term in terms:
            count = searcher.doc_freq("terms", term) + sum(term in counts for _, counts, _, _ in tail)
            count = min(count, total)
            weights[term] = math.log(1 + (total - count + 0.5) / (count + 0.5))
        return weights

    def _indexed(
        self, searcher: tantivy.Searcher, terms: Sequence[str], pools: Sequence[str], limit: int, past: bool
    ) -> Iterable[tuple[str, float]]:
        query, occur, schema = tantivy.Query, tantivy.Occur, self._schema
        wanted = query.boolean_query([(occur.Should, query.term_query(schema, "terms", term)) for term in terms])
        inside = query.const_score_query(query.term_set_query(schema, "pool", list(pools)), 0.0)
        clauses = [(occur.Must, wanted), (occur.Must, inside)]
        if not past:
            state = query.const_score_query(query.term_query(schema, "state", LIVE_STATE), 0.0)
            clauses.append((occur.Must, state))
        for score, address in searcher.search(query.boolean_query(clauses), limit, count=False).hits:
            id = searcher.doc(address).get_first("id")
            if isinstance(id, str) and isinstance(score, float):
                yield id, score

    def close(self) -> None:
        """Commit what waits and stop the writer's threads."""
        self.commit()
        self._writer.wait_merging_threads()


def _saturation(count: int, length: int) -> float:
    if not count:
        return 0.0
    return count * (K1 + 1) / (count + K1 * (1 - B + B * length / 40))


def _touched(entry: Logged) -> Iterable[str]:
    match entry.operation:
        case Added() | Updated():
            yield entry.operation.record.id
            yield from (retirement.id for retirement in entry.operation.retires)
        case Invalidated() | Merged():
            yield entry.operation.id
        case _:
            pass
