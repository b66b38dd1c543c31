"""Finding candidates for a question in the hub's tables (H3), the same port as the daemon's own search.

Invariants: the asker's pools are named in the question, and row-level security is the second wall; the nearest rows are
exact: an approximate index over the rows of many pools, read behind access rules, answers with too few, unsaid.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from pgvector import HalfVector
from pgvector.psycopg import register_vector
from psycopg import Connection

from ...protocol.candidates import CandidateRecord, best_first

RRF = 60
"""Constant of reciprocal rank fusion (Cormack, Clarke and Büttcher 2009)."""

_UNSPACED = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\U00020000-\U0002ffff]+")
"""Runs of Thai, Lao, Burmese, Khmer, Japanese and Chinese characters."""

_ANY_WORD = (  # `plainto_tsquery` joins words by &, each lexeme in quotes
    "(select replace(plainto_tsquery('memd.any_language', %(text)s)::text, ' & ', ' | ')::tsquery"
    " || replace(plainto_tsquery('english', %(text)s)::text, ' & ', ' | ')::tsquery as any_word)"
)
_CANDIDATES = (  # materialized, because each row is read and compared once for both rankings
    "with compared as materialized (select r.pool, r.part, r.n,"
    " case when r.words @@ q.any_word then ts_rank(r.words, q.any_word) end as score,"
    " case when r.model = %(model)s then -(r.vec <#> %(vector)s) end as similarity"
    f" from memd.rec r, {_ANY_WORD} q where r.pool = any(%(pools)s) and r.held)"
    " (select * from compared where score is not null order by score desc, pool, part, n limit %(k)s) union"
    " (select * from compared where similarity is not null order by similarity desc, pool, part, n limit %(k)s)"
)


class RecordPlace(NamedTuple):
    """The key of a record: number of the pool, partition, number of the line."""

    pool: int
    part: str
    n: int


def place_of(id: str) -> RecordPlace:
    """Return the key in a candidate's id."""
    pool, part, n = id.split("/")
    return RecordPlace(int(pool), part, int(n))


class HubCandidates:
    """Searches within one transaction. `numbers`: the pools that may be named, with their numbers in the tables."""

    def __init__(self, connection: Connection, numbers: Mapping[str, int], model: str) -> None:
        self._connection, self._numbers, self._model = connection, numbers, model

    def search(self, terms: Sequence[str], vector: bytes | None, pools: Sequence[str], k: int) -> list[CandidateRecord]:
        """Return the `k` best by words and the `k` nearest, each once: see the port."""
        named = sorted({self._numbers[pool] for pool in pools if pool in self._numbers})
        if not named or k < 1:
            return []
        question: dict[str, object] = {
            "pools": named,
            "text": searchable(" ".join(terms)),
            "vector": as_halfvec(vector, "<f4") if vector is not None else None,
            "model": self._model,
            "k": k,
        }
        return best_first(
            CandidateRecord("/".join(map(str, place)), score or 0.0, similarity)
            for *place, score, similarity in self._connection.execute(_CANDIDATES, question)
        )


def best(candidates: Sequence[CandidateRecord], limit: int) -> list[CandidateRecord]:
    """Return the best candidates by reciprocal rank fusion of words and similarity."""
    by_words = sorted((one for one in candidates if one.text_score), key=lambda one: -one.text_score)
    near = [one for one in candidates if one.similarity is not None]
    by_sense = sorted(near, key=lambda one: -(one.similarity or 0.0))
    fused: dict[str, float] = {}
    for ranking in (by_words, by_sense):
        for rank, one in enumerate(ranking, 1):
            fused[one.id] = fused.get(one.id, 0.0) + 1 / (RRF + rank)
    return sorted(candidates, key=lambda one: -fused[one.id])[:limit]


def searchable(text: str) -> str:
    """Return a text with the pairs of characters of scripts that write no spaces between words, which PostgreSQL would
    take for one word, and without zero characters, which it can't store."""
    runs = _UNSPACED.findall(text)
    pairs = (run[place : place + 2] for run in runs for place in range(max(1, len(run) - 1)))
    return " ".join((text.replace("\0", " "), *pairs))


def as_halfvec(vector: bytes, kind: str = "<f2") -> HalfVector:
    """Return numbers of a kind as PostgreSQL takes them, in float16."""
    return HalfVector(np.frombuffer(vector, dtype=kind).astype("<f2", copy=False))


def widened(vector: bytes | None) -> bytes | None:
    """Return float16 numbers, as they are on the wire, as float32, as the port takes them."""
    return None if vector is None else np.frombuffer(vector, dtype="<f2").astype("<f4").tobytes()


def know_vectors(connection: Connection) -> None:
    """Teach a connection the types of the extension `vector`."""
    register_vector(connection)
