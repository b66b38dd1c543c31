"""A keyword index over our own terms: tantivy on disk, and in memory the tail of uncommitted texts.

Invariants: a text is found from the moment it is put (the tail is searched with the same formula), and never after it
is dropped; commits run off the request server's thread; `applied` is written after the commit it describes, and putting
a text twice is harmless; an unreadable index is deleted, and its owner replays. A scoped index keeps the terms of each
group and state apart, so that a search reads only its groups and counts reveal nothing of others: three times as fast
as a filter with few groups.
"""

from __future__ import annotations

import math
import shutil
import threading
from collections import Counter
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from hashlib import blake2b
from itertools import islice
from pathlib import Path
from typing import NamedTuple, cast

import tantivy

from ..failpoint import reach
from .tokens import TermTokens

K1, B = 1.2, 0.75
"""BM25's parameters, tantivy's own."""

HEAP_BYTES = 15_000_000
EXTRA = 0.3
"""Weight of a word that only widens a question, relative to its own words."""

USUAL = 40
"""Assumed mean number of terms of an empty index and of records, large so that a short text weighs more while it waits
for the index and for its vector."""

CATEGORY = 1.0
"""Weight of a category word, relative to a word that stands once in a text of mean length: an own word reaches twice
as much."""

BESIDE = 24
"""Terms of the text beside a document that are indexed, at most."""

LEAST_WEIGHT = 1e-7
"""Least weight of a term in the index, by which its weight in a scope is divided: that of one in all of many texts."""

CACHED_NAMES = 200_000
COMMIT_AT = 20_000
"""Texts that a long replay puts before it commits."""

LIVE_STATE, PAST_STATE = "live", "past"

EVERY = "*"
"""The group of every text."""


class TermDocument(NamedTuple):
    """A text to index: a search finds `live` texts, with `past` also others. `beside` is the surrounding text in its
    source, which also finds it: each of its terms counts once, at most `BESIDE` of them. `categories`: the words that
    people ask with about what it names, and `replaced` those of what it replaced; in a scoped index both find it, with
    the weight `CATEGORY`."""

    id: str
    group: str
    live: bool
    words: str
    beside: str = ""
    categories: str = ""
    replaced: str = ""


class TermQuery(NamedTuple):
    """The words of a question, and others that only widen it (Q7)."""

    words: str
    wider: str = ""


class TermScores(NamedTuple):
    """BM25 by id, the highest score that the question's own words can reach, the weight of each of these terms: its
    inverse document frequency; `unknown`: those that no text of a scoped index's groups has."""

    by_id: dict[str, float]
    possible: float
    weights: dict[str, float]
    unknown: frozenset[str] = frozenset()


class _Uncommitted(NamedTuple):
    group: str
    live: bool
    counts: Counter[str]
    length: int
    seq: int
    categories: frozenset[str] = frozenset()


_GONE = _Uncommitted("", False, Counter(), 0, 0)


def _schema(scoped: bool, categories: str) -> tantivy.Schema:
    builder = tantivy.SchemaBuilder()
    builder.add_text_field("id", stored=True, tokenizer_name="raw", index_option="basic")
    builder.add_unsigned_field("number", fast=True)
    builder.add_text_field("group", tokenizer_name="raw", index_option="basic")
    if not scoped:
        builder.add_text_field("state", tokenizer_name="raw", index_option="basic")
    if categories:
        builder.add_text_field(categories, tokenizer_name="whitespace", index_option="basic")
    builder.add_text_field("terms", tokenizer_name="whitespace", index_option="freq")
    builder.add_bytes_field("own", stored=True)
    return builder.build()


def check_of(group: str, live: bool, terms: Sequence[str], replaced: Sequence[str] = ()) -> bytes:
    """Return the checksum that `contents` yields: of text, replaced texts, group and state, without the surrounding
    text."""
    before = ("", *replaced) if replaced else ()
    return blake2b("\0".join((group, str(live), *terms, *before)).encode(), digest_size=8).digest()


def _scope_mark(group: str, live: bool) -> str:
    """Return the prefix of each term in a scoped index."""
    return blake2b(f"{group}\0{live}".encode(), digest_size=5).hexdigest()


def _number(id: str) -> int:
    return int.from_bytes(blake2b(id.encode(), digest_size=8).digest())


class TermIndex:
    """The index, its writer, and the tail. One thread puts; any thread searches."""

    def __init__(self, folder: Path, *, scoped: bool = False, categories: str = "") -> None:
        """`categories`: the version of the category words, if they are indexed: another one makes another layout."""
        self.folder = folder
        self._scoped = scoped
        self._category_field = f"categories_{categories}" if categories else ""
        self._schema = _schema(scoped, self._category_field)
        self._names: dict[int, str] = {}
        self._lock = threading.Lock()  # tail and reading tokens: held for microseconds
        self._writing = threading.Lock()  # the writer: held through a commit, searches never wait
        self._write_tokens, self._read_tokens = TermTokens(), TermTokens()
        self._tail: dict[str, _Uncommitted] = {}
        self._open()

    def _open(self) -> None:
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        try:
            self._index = tantivy.Index(self._schema, str(self.folder), reuse=True)
        except ValueError:  # of another layout, or damaged
            _delete(self.folder)
            self.folder.mkdir(mode=0o700)
            self._index = tantivy.Index(self._schema, str(self.folder), reuse=True)
        self._writer = self._index.writer(HEAP_BYTES, 1)
        self.applied = self._marked = int(self._mark.read_text()) if self._mark.exists() else 0
        self._texts, self._terms = self._read_lengths()
        self.uncommitted = 0

    def _read_lengths(self) -> tuple[int, int]:
        """Return the number of texts ever put, and of their terms: tantivy does not tell their mean."""
        try:
            texts, terms = (self.folder / "lengths").read_text().split()
            return int(texts), int(terms)
        except (OSError, ValueError):
            return 0, 0

    @property
    def _mark(self) -> Path:
        return self.folder / "applied_seq"

    @property
    def is_committed(self) -> bool:
        """Whether the index has every text: until then it counts words without the newest ones."""
        return not self._tail

    def know(self, ids: Iterable[str]) -> None:
        """Cache ids that searches are likely to find: reading one from the index costs 10 µs and a block."""
        for id in islice(ids, CACHED_NAMES - len(self._names)):
            self._names[_number(id)] = id

    def put(self, texts: Iterable[tuple[TermDocument, int]], drops: Iterable[str], upto: int) -> None:
        """Index these texts, each with its seq, drop those ids, and note that `upto` is applied."""
        for id in drops:
            self._put(id, _GONE._replace(seq=upto), None)
        for text, seq in texts:
            own = self._write_tokens.document(text.words)
            terms = [*own, *self._beside(text.beside, own)] if text.beside else own
            replaced = self._write_tokens.document(text.replaced) if text.replaced else []
            kinds = self._categories(text.categories, replaced, terms)
            document = tantivy.Document()
            document.add_text("id", text.id)
            document.add_unsigned("number", number := _number(text.id))
            if len(self._names) < CACHED_NAMES:
                self._names[number] = text.id
            if self._scoped:
                mark = _scope_mark(text.group, text.live)
                document.add_text("group", mark)
                document.add_text("terms", " ".join([mark + term for term in terms]))
                if kinds:
                    document.add_text(self._category_field, " ".join([mark + term for term in kinds]))
            else:
                document.add_text("group", text.group)
                document.add_text("state", LIVE_STATE if text.live else PAST_STATE)
                document.add_text("terms", " ".join(terms))
            document.add_text("group", EVERY)
            document.add_bytes("own", check_of(text.group, text.live, own, replaced))
            self._texts, self._terms = self._texts + 1, self._terms + len(terms)
            waiting = _Uncommitted(text.group, text.live, Counter(terms), len(terms), seq, kinds)
            self._put(text.id, waiting, document)
        with self._writing:
            self.applied = upto
        if self.uncommitted > COMMIT_AT:
            self.commit()

    def _beside(self, words: str, own: Collection[str]) -> list[str]:
        """Return the terms of the surrounding text that are not among the text's own."""
        known = set(own)
        return [term for term in dict.fromkeys(self._write_tokens.document(words)) if term not in known][:BESIDE]

    def _categories(self, words: str, replaced: Iterable[str], terms: Collection[str]) -> frozenset[str]:
        """Return the terms of category words and of what a text replaced that are not among the text's terms."""
        if not self._category_field or not (words or replaced):
            return frozenset()
        return frozenset((*self._write_tokens.document(words), *replaced)).difference(terms)

    def _put(self, id: str, waiting: _Uncommitted, document: tantivy.Document | None) -> None:
        with self._lock:
            self._tail[id] = waiting
        with self._writing:
            self._writer.delete_documents_by_term("id", id)
            if document is not None:
                self._writer.add_document(document)
            self.uncommitted += 1

    def commit(self) -> None:
        """Commit the index and drop the committed texts from the tail. Not on the request server's thread."""
        with self._writing:
            upto = self.applied
            if self.uncommitted:
                reach("keywords:before-commit")
                self._writer.commit()
                reach("keywords:committed")
                self.uncommitted = 0
                self._index.reload()
                with self._lock:
                    self._tail = {id: waiting for id, waiting in self._tail.items() if waiting.seq > upto}
            elif upto == self._marked:
                return
            (self.folder / "lengths").write_text(f"{self._texts} {self._terms}")
            mark = self._mark.with_suffix(".new")
            mark.write_text(str(upto))
            mark.replace(self._mark)
            self._marked = upto

    def search(
        self, question: TermQuery | str, groups: Sequence[str] | None, limit: int, *, past: bool = False
    ) -> TermScores:
        """Return the scores of the best texts in these groups (None: in all). A scoped index needs groups."""
        question = TermQuery(question) if isinstance(question, str) else question
        with self._lock:
            own = self._read_tokens.query(question.words)
            wider = self._read_tokens.query(question.wider) if question.wider else []
            searcher, tail = self._index.searcher(), list(self._tail.items())
        if not own or (groups is not None and not groups):
            return TermScores({}, 0.0, {})
        shares = {**dict.fromkeys(wider, EXTRA), **dict.fromkeys(own, 1.0)}
        wanted = None if groups is None else frozenset(groups)
        near = [
            (id, waiting)
            for id, waiting in tail
            if (past or waiting.live) and (wanted is None or waiting.group in wanted)
        ]
        if self._scoped and groups is not None:
            marks = [_scope_mark(group, True) for group in groups]
            marks += [_scope_mark(group, False) for group in groups] if past else []
            query, idf, categories, known = self._scoped_query(
                searcher, shares, marks, [waiting for _, waiting in near]
            )
        else:
            categories, known = dict[str, float](), shares
            query, idf = self._filtered_query(searcher, shares, groups, past, [waiting for _, waiting in tail])
        scores = self._standing_hits(searcher, query, limit, dict(tail)) if query is not None else {}
        weights = {term: weight * shares[term] for term, weight in idf.items()}
        is_known = self._texts and not self._scoped  # a new record has no vector yet: its words count in full
        mean = self._terms / self._texts if is_known else USUAL
        for id, waiting in near:
            fullness = B * waiting.length / mean
            score = sum(weight * _saturation(waiting.counts[term], fullness) for term, weight in weights.items())
            score += sum(categories.get(term, 0.0) for term in waiting.categories)
            if score > 0:
                scores[id] = score
        best = sorted([(-score, id) for id, score in scores.items()])[:limit]
        asked = {term: idf[term] for term in own}
        unknown = frozenset(asked).difference(known)
        return TermScores({id: -score for score, id in best}, sum(asked.values()) * (K1 + 1), asked, unknown)

    def _scoped_query(
        self,
        searcher: tantivy.Searcher,
        shares: Mapping[str, float],
        marks: Sequence[str],
        near: Sequence[_Uncommitted],
    ) -> tuple[tantivy.Query | None, dict[str, float], dict[str, float], Collection[str]]:
        """Return the query over the terms with these marks, each term's weight among their texts, its weight as a
        category word, and the terms that some of these texts have."""
        query, occur, field = tantivy.Query, tantivy.Occur, self._category_field
        everything = _everything(searcher)
        total = len(near) + sum(searcher.doc_freq("group", mark) for mark in marks)
        clauses: list[tuple[tantivy.Occur, tantivy.Query]] = []
        idf: dict[str, float] = {}
        categories: dict[str, float] = {}
        known: list[str] = []
        for term, share in shares.items():
            counts = [searcher.doc_freq("terms", mark + term) for mark in marks]
            own = sum(counts) + sum(term in waiting.counts for waiting in near)
            kinds = [searcher.doc_freq(field, mark + term) for mark in marks] if field else []
            named = sum(kinds) + sum(term in waiting.categories for waiting in near)
            weight = idf[term] = _idf(total, own or named)
            if own or named:
                known.append(term)
            categories[term] = CATEGORY * share * _idf(total, own + named)
            for mark, count in zip(marks, counts, strict=True):
                if count:
                    match = query.term_query(self._schema, "terms", mark + term)
                    boost = weight * share / max(LEAST_WEIGHT, _idf(everything, count))
                    clauses.append((occur.Should, query.boost_query(match, boost)))
            for mark in [mark for mark, count in zip(marks, kinds, strict=False) if count]:
                match = query.term_query(self._schema, field, mark + term)
                clauses.append((occur.Should, query.const_score_query(match, categories[term])))
        return (query.boolean_query(clauses) if clauses else None), idf, categories, known

    def _filtered_query(
        self,
        searcher: tantivy.Searcher,
        shares: Mapping[str, float],
        groups: Sequence[str] | None,
        past: bool,
        tail: Sequence[_Uncommitted],
    ) -> tuple[tantivy.Query, dict[str, float]]:
        """Return the query over all texts, filtered by groups and state, and each term's weight among all texts."""
        query, occur, schema = tantivy.Query, tantivy.Occur, self._schema
        everything = _everything(searcher)
        total = everything + len(tail)
        idf: dict[str, float] = {}
        should: list[tuple[tantivy.Occur, tantivy.Query]] = []
        for term, share in shares.items():
            indexed = searcher.doc_freq("terms", term)
            weight = idf[term] = _idf(total, indexed + sum(term in waiting.counts for waiting in tail))
            boost = weight * share / max(LEAST_WEIGHT, _idf(everything, indexed))  # as if all were indexed
            should.append((occur.Should, query.boost_query(query.term_query(schema, "terms", term), boost)))
        clauses = [(occur.Must, query.boolean_query(should))]
        if groups is not None:
            inside = query.const_score_query(query.term_set_query(schema, "group", list(groups)), 0.0)
            clauses.append((occur.Must, inside))
        if not past:
            state = query.const_score_query(query.term_query(schema, "state", LIVE_STATE), 0.0)
            clauses.append((occur.Must, state))
        return query.boolean_query(clauses), idf

    def _standing_hits(
        self, searcher: tantivy.Searcher, query: tantivy.Query, wanted: int, tail: Container[str]
    ) -> dict[str, float]:
        """Return the scores of the best texts that the tail does not replace: at least `wanted`, or all."""
        limit = wanted
        while True:
            scores = self._hits(searcher, query, limit)
            standing = {id: score for id, score in scores.items() if id not in tail}
            if len(standing) >= wanted or len(scores) < limit:
                return standing
            limit *= 2

    def _hits(self, searcher: tantivy.Searcher, query: tantivy.Query, limit: int) -> dict[str, float]:
        """Return scores by id. Ids are cached by the number in the column `number`."""
        hits = searcher.search(query, limit, count=False).hits
        numbers = cast("list[int]", searcher.fast_field_values("number", [address for _, address in hits]))
        names = self._names if len(self._names) < CACHED_NAMES else {}
        self._names = names
        for (_, address), number in zip(hits, numbers, strict=True):
            if number not in names:
                names[number] = str(searcher.doc(address).get_first("id"))
        scores = cast("list[float]", [score for score, _ in hits])
        return dict(zip([names[number] for number in numbers], scores, strict=True))

    def replace(self, move: Callable[[], None]) -> None:
        """Take the index that `move` puts in the place of this one; searches use the old one until then."""
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
        """After a failure, go back to the last commit; replay brings the rest, and the tail serves it meanwhile."""
        with self._writing:
            del self._writer  # releases the lock on the folder
            self._open()

    def close(self) -> None:
        """Commit and stop the writer's threads."""
        self.commit()
        with self._writing:
            self._writer.wait_merging_threads()


def contents(folder: Path) -> Iterator[tuple[str, bytes]]:
    """Yield id and checksum of every committed text of an index on disk, without a lock (for a maintenance child)."""
    index = tantivy.Index.open(str(folder))
    searcher = index.searcher()
    if searcher.num_docs:
        for _, address in searcher.search(tantivy.Query.all_query(), searcher.num_docs, count=False).hits:
            document = searcher.doc(address)
            id, check = document.get_first("id"), document.get_first("own")
            yield str(id), bytes(cast("bytes", check))


def _delete(folder: Path) -> None:
    """Delete the folder; once more if the reader of an index that was just closed put its lock file there meanwhile."""
    with suppress(OSError):
        shutil.rmtree(folder)
    if folder.exists():
        shutil.rmtree(folder)


def _everything(searcher: tantivy.Searcher) -> int:
    """Return the number of texts by which tantivy weighs a term: dropped texts count until their segment is merged, as
    in the count of each term; `num_docs` omits them."""
    return max(1, searcher.doc_freq("group", EVERY))


def _idf(total: int, count: int) -> float:
    count = min(count, total)
    return math.log(1 + (total - count + 0.5) / (count + 0.5))


def _saturation(count: int, fullness: float) -> float:
    return count * (K1 + 1) / (count + K1 * (1 - B + fullness)) if count else 0.0
