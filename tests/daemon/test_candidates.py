"""Every implementation of `Candidates` finds the same: only the pools that are named, and in them the best (Q2)."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memd.clients.hub.database import HubDatabase
from memd.clients.hub.hub_candidates import HubCandidates
from memd.clients.hub.partitions_at_hub import granted, put
from memd.daemon.projections.stores import Stores
from memd.daemon.projections.vector_index import GRAPH_ABOVE
from memd.daemon.services.recall.local_candidates import LocalCandidates
from memd.daemon.world import real_world
from memd.models import registry
from memd.protocol.candidates import EXACT, CandidateRecord, Candidates, best_first
from memd.protocol.hub import HubPut, LineVector, PutAtHub
from memd.protocol.operation import Added, Decision, Invalidated
from memd.protocol.record import Provenance, Record, Span
from memd.protocol.shared_lines import ShareMark
from tests.clients.hub_server import Hub, postgres
from tests.conftest import EXAMPLES
from tests.daemon.shared_authors import Author

__all__ = ["postgres"]

AT = "2026-01-01T00:00:00Z"
WHY = Decision(action="add", reason="a test")
DIMENSION = 384
ROUNDING = 0.004
"""How far a stored vector may move a cosine: 8 or 16 bits a number."""

Row = tuple[str, str, str, bytes | None]
"""Id, pool, text and vector. Rows of the same text have the same vector, as of a model."""


# --- the implementations ---------------------------------------------------------------------------------------------
class FilledStore(Protocol):
    """A store that a test fills, and searches through the port."""

    def fill(self, rows: Iterable[Row]) -> None: ...
    def search(
        self, terms: Sequence[str], vector: bytes | None, pools: Sequence[str], k: int
    ) -> list[CandidateRecord]: ...
    def withhold(self, id: str) -> None: ...
    def close(self) -> None: ...


class LocalStore:
    """The stores of a home. `indexed`: the keyword index has committed what `fill` brought, else it waits in memory."""

    def __init__(self, folder: Path, *, indexed: bool) -> None:
        self._stores, self._indexed = Stores(folder, real_world(), registry.info()), indexed
        candidates: Candidates = LocalCandidates(self._stores.keywords, self._stores.vectors)
        self.search = candidates.search

    def fill(self, rows: Iterable[Row]) -> None:
        rows = list(rows)
        self._stores.vector_store.put((text, vector) for _, _, text, vector in rows if vector is not None)
        self._stores.commit([Added(record=record(*row[:3]), decision=WHY) for row in rows])
        if self._indexed:
            self._stores.keywords.commit()

    def withhold(self, id: str) -> None:
        self._stores.commit([Invalidated(id=id, valid_to=AT, reason="withheld")])

    def close(self) -> None:
        self._stores.close()


def record(id: str, pool: str, text: str) -> Record:
    spans = (Span("h:s", id, 0, 1),)
    provenance = Provenance(author="user", source="h:s", trust="user", spans=spans, quote="q", said_at=AT)
    return Record(id=id, pool=pool, kind="note", content=text, description=text, provenance=provenance)


class HubStore:
    """A hub: an author each pool puts lines, and retracts one to withhold it."""

    def __init__(self, folder: Path, postgres: str) -> None:
        folder.mkdir()
        self._hub = Hub(postgres, folder)
        self._database = HubDatabase(self._hub.gateway_url, 2)
        self._database.open()
        self._authors: dict[str, Author] = {}
        self._numbers: dict[str, int] = {}
        self._ids: dict[str, str] = {}
        """The id of a row by that of its candidate, which has the number of its pool, its partition and its line."""

    def _author(self, pool: str) -> Author:
        if pool not in self._authors:
            name = f"p{len(self._authors)}"
            self._hub.grant("ada", name)
            with self._database.transaction("reader", "ada") as connection:
                place = granted(connection, [name], 2**62)[name]
            self._numbers[pool] = place.number
            self._authors[pool] = Author(len(self._authors), mark=ShareMark(remote=place.at_hub.mark))
        return self._authors[pool]

    def fill(self, rows: Iterable[Row]) -> None:
        vectors: dict[str, list[LineVector]] = {}
        for id, pool, text, vector in rows:
            author = self._author(pool)
            number = len(author.lines)
            self._ids[f"{self._numbers[pool]}/{author.partition}/{number}"] = id
            author.add(text)
            half = np.frombuffer(vector, np.float32).astype("<f2").tobytes() if vector is not None else None
            vectors.setdefault(pool, []).extend([LineVector(number, half)] if half is not None else [])
        for pool, of_pool in vectors.items():
            self._put(pool, of_pool)

    def _put(self, pool: str, vectors: Sequence[LineVector] = ()) -> None:
        author = self._authors[pool]
        request = HubPut(
            pool="p",
            head=author.head(),
            hashes=author.hashes(),
            segments=author.segments(),
            model="m",
            vectors=tuple(vectors),
        )
        with self._database.transaction("writer", "ada") as connection:
            places = granted(connection, [], 2**62).values()
            (place,) = (place for place in places if place.number == self._numbers[pool])
            assert put(connection, place, "ada", request) == PutAtHub()

    def search(self, terms: Sequence[str], vector: bytes | None, pools: Sequence[str], k: int) -> list[CandidateRecord]:
        with self._database.transaction("reader", "ada") as connection:
            candidates: Candidates = HubCandidates(connection, self._numbers, "m")
            answer = candidates.search(terms, vector, pools, k)
        assert answer == best_first(answer)
        return best_first(msgspec.structs.replace(one, id=self._ids[one.id]) for one in answer)

    def withhold(self, id: str) -> None:
        (name,) = (name for name, row in self._ids.items() if row == id)
        number, _, line = name.partition("/")
        (pool,) = (pool for pool, place in self._numbers.items() if place == int(number))
        self._authors[pool].invalidate(line)
        self._put(pool)

    def close(self) -> None:
        self._database.close()


IMPLEMENTATIONS: dict[str, Callable[[Path, pytest.FixtureRequest], FilledStore]] = {
    "local": lambda folder, request: LocalStore(folder, indexed=False),
    "local_indexed": lambda folder, request: LocalStore(folder, indexed=True),
    "hub": lambda folder, request: HubStore(folder, request.getfixturevalue("postgres")),
}


# --- vectors and answers ---------------------------------------------------------------------------------------------
def unit(vector: Any) -> Any:
    return (vector / np.linalg.norm(vector)).astype(np.float32)


ASKED = unit(np.random.default_rng(1).standard_normal(DIMENSION))
QUESTION = ASKED.tobytes()


def at(cosine: float, seed: int) -> bytes:
    """A vector with that cosine to the question's."""
    other = np.random.default_rng(1000 + seed).standard_normal(DIMENSION)
    beside = unit(other - (other @ ASKED) * ASKED)
    return unit(cosine * ASKED + np.sqrt(1 - cosine**2) * beside).tobytes()


def cosine_of(vector: bytes, question: bytes = QUESTION) -> float:
    return float(np.frombuffer(vector, np.float32) @ np.frombuffer(question, np.float32))


def found(
    store: FilledStore, terms: Sequence[str], vector: bytes | None, pools: Sequence[str], k: int
) -> list[CandidateRecord]:
    """The answer, once it is clear that it names each record once, in the order of all answers, and twice alike."""
    answer = store.search(terms, vector, pools, k)
    assert len({candidate.id for candidate in answer}) == len(answer)
    assert answer == best_first(answer) == store.search(terms, vector, pools, k)
    return answer


def ids(answer: Iterable[CandidateRecord]) -> set[str]:
    return {candidate.id for candidate in answer}


def by_similarity(answer: Iterable[CandidateRecord]) -> list[str]:
    near = [candidate for candidate in answer if candidate.similarity is not None]
    return [candidate.id for candidate in sorted(near, key=lambda candidate: -(candidate.similarity or 0.0))]


@pytest.fixture(params=list(IMPLEMENTATIONS))
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[FilledStore]:
    """An empty store."""
    opened = IMPLEMENTATIONS[request.param](tmp_path / "store", request)
    yield opened
    opened.close()


class Filled(NamedTuple):
    """A store that tests only read, and its rows by id."""

    store: FilledStore
    rows: dict[str, Row]

    def of(self, pools: Sequence[str]) -> dict[str, Row]:
        return {id: row for id, row in self.rows.items() if row[1] in pools}


@pytest.fixture(scope="module", params=list(IMPLEMENTATIONS))
def many(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Filled]:
    """30 pools: one of 2,000 rows, four of one row, the others of a few to 120; all the vectors of a pool lie on its
    own side, so that the nearest of the question are in few pools."""
    random = np.random.default_rng(3)
    sizes = [2000, 1, 1, 1, 1, *random.integers(2, 121, 25).tolist()]
    rows: dict[str, Row] = {}
    for number, size in enumerate(sizes):
        side = random.standard_normal(DIMENSION)
        for place, noise in enumerate(random.standard_normal((size, DIMENSION))):
            id = f"r{number:02}x{place:04}"
            text = f"remark {id} on topic{place % 7} of everybody"
            rows[id] = (id, f"team/{number:02}", text, unit(0.7 * side + noise).tobytes())
    opened = IMPLEMENTATIONS[request.param](tmp_path_factory.mktemp("many") / "store", request)
    opened.fill(rows.values())
    yield Filled(opened, rows)
    opened.close()


FEW = {"team/a": 3, "team/b": 1, "team/c": 0, "team/d": 7, "team/e": 2}
"""Rows of each pool; the last one of each has no vector."""


@pytest.fixture(scope="module", params=list(IMPLEMENTATIONS))
def few(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Filled]:
    """Five pools of which one is empty."""
    rows: dict[str, Row] = {}
    for pool, size in FEW.items():
        for place in range(size):
            id = f"{pool[-1]}{place}"
            vector = at(1 - len(rows) / 10, len(rows)) if place < size - 1 else None
            rows[id] = (id, pool, f"harbour remark {id}", vector)
    opened = IMPLEMENTATIONS[request.param](tmp_path_factory.mktemp("few") / "store", request)
    opened.fill(rows.values())
    yield Filled(opened, rows)
    opened.close()


SUBSETS = [subset for size in range(len(FEW) + 1) for subset in combinations(FEW, size)]


# --- the pools -------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("pools", SUBSETS, ids="+".join)
def test_every_subset_of_pools_gives_all_its_rows_and_no_other(few: Filled, pools: Sequence[str]) -> None:
    rows = few.of(pools)
    embedded = {id for id, row in rows.items() if row[3] is not None}
    assert ids(found(few.store, [], QUESTION, pools, 99)) == embedded
    assert ids(found(few.store, ["harbour"], None, pools, 99)) == rows.keys()
    answer = found(few.store, ["harbour"], QUESTION, pools, 99)
    assert ids(answer) == rows.keys()
    assert {candidate.id for candidate in answer if candidate.similarity is not None} == embedded
    assert all(candidate.text_score > 0 for candidate in answer)


@pytest.mark.parametrize("pools", SUBSETS, ids="+".join)
def test_every_subset_of_pools_gives_its_own_nearest(few: Filled, pools: Sequence[str]) -> None:
    vectors = {id: row[3] for id, row in few.of(pools).items() if row[3] is not None}
    nearest = sorted(vectors, key=lambda id: -cosine_of(vectors[id]))
    for k in range(1, len(vectors) + 1):
        assert by_similarity(found(few.store, [], QUESTION, pools, k))[:k] == nearest[:k]


@settings(max_examples=20 * EXAMPLES, deadline=None)
@given(st.data())
def test_any_of_thirty_pools_give_as_many_rows_as_were_asked_and_none_of_another_pool(
    many: Filled, data: st.DataObject
) -> None:
    names = sorted({row[1] for row in many.rows.values()})
    pools = data.draw(st.lists(st.sampled_from(names), max_size=30))
    k = data.draw(st.sampled_from([1, 2, 10, 80, 500]))
    rows = many.of(pools)
    for terms, vector in (([], QUESTION), (["topic3"], QUESTION), (["everybody"], None)):
        answer = found(many.store, terms, vector, pools, k)
        assert ids(answer) <= rows.keys()
        assert len(answer) >= min(k, len(rows))


def test_a_pool_of_one_row_is_found_among_many_however_far_its_row_is(many: Filled) -> None:
    for number in range(1, 5):
        (row,) = many.of([f"team/{number:02}"]).values()
        vector = np.frombuffer(row[3] or b"", np.float32)
        for question in (vector, -vector):
            for k in (1, 80):
                (candidate,) = found(many.store, [], question.tobytes(), [row[1]], k)
                assert candidate.id == row[0]
                assert candidate.similarity == pytest.approx(float(question @ vector), abs=ROUNDING)
        (candidate,) = found(many.store, ["everybody"], None, [row[1]], 5)
        assert candidate.id == row[0]


def test_no_pool_and_an_unknown_pool_give_nothing(many: Filled) -> None:
    for pools in ([], ["team/99"], [""]):
        assert found(many.store, ["everybody"], QUESTION, pools, 80) == []


def test_the_name_of_a_pool_is_compared_whole(store: FilledStore) -> None:
    names = ["team/a", "team/a/b", "team/A", "team/%", "team/_", "team", "a", "team/a'--", '{"team/a"}', "team/ä"]
    store.fill((f"r{n}", name, f"harbour remark {n}", at(0.5, n)) for n, name in enumerate(names))
    for n, name in enumerate(names):
        assert ids(found(store, ["harbour"], QUESTION, [name], 99)) == {f"r{n}"}


# --- the nearest -----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("k", [1, 10, 80, 2000])
@pytest.mark.parametrize("numbers", [[0], [1], [0, 1], [9], range(5, 30), range(30)], ids=str)
def test_the_nearest_are_those_of_a_comparison_with_every_vector(many: Filled, numbers: Sequence[int], k: int) -> None:
    rows = many.of([f"team/{number:02}" for number in numbers])
    vectors = {id: row[3] or b"" for id, row in rows.items()}
    for seed in range(2):
        start = next(iter(vectors.values())) if seed else at(0.0, 77)
        question = unit(np.frombuffer(start, np.float32) + 0.3 * ASKED).tobytes()
        cosines = {id: cosine_of(vector, question) for id, vector in vectors.items()}
        answer = found(many.store, [], question, sorted({row[1] for row in rows.values()}), k)
        for candidate in answer:
            assert candidate.similarity == pytest.approx(cosines[candidate.id], abs=ROUNDING)
        ranked = sorted(cosines.values(), reverse=True)
        last = ranked[min(k, len(ranked)) - 1]
        assert {id for id, cosine in cosines.items() if cosine > last + 2 * ROUNDING} <= ids(answer)
        assert len(answer) >= min(k, len(rows))


def test_a_local_index_is_exact_as_far_as_the_port_promises() -> None:
    assert EXACT <= GRAPH_ABOVE


def test_more_than_there_are_gives_all_that_are_there(many: Filled) -> None:
    rows = many.of(["team/00", "team/03"])
    assert ids(found(many.store, [], QUESTION, ["team/00", "team/03"], 5000)) == rows.keys()
    assert ids(found(many.store, ["everybody"], None, ["team/00", "team/03"], 5000)) == rows.keys()


def test_a_pool_that_is_named_twice_counts_once(many: Filled) -> None:
    for k in (1, 40, 5000):
        once = found(many.store, ["topic3"], QUESTION, ["team/07", "team/03"], k)
        assert once == found(many.store, ["topic3"], QUESTION, ["team/03", "team/07", "team/03", "team/07"], k)


# --- the words -------------------------------------------------------------------------------------------------------
def test_the_record_with_all_words_comes_before_one_with_few(store: FilledStore) -> None:
    store.fill((f"r{n}", "team/a", f"harbour remark {n}", at(0.9 - n / 100, n)) for n in range(40))
    store.fill([("all", "team/a", "the harbour crane is painted yellow", at(0.0, 99))])
    first = found(store, ["yellow", "harbour", "crane"], QUESTION, ["team/a"], 1)[0]
    assert first.id == "all" and first.text_score > 0
    assert first.similarity == pytest.approx(0.0, abs=ROUNDING), "it has its similarity without being among the nearest"


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("Die Lieferung kommt immer am Dienstag an", ["Lieferung", "Dienstag"]),
        ("La réunion hebdomadaire est déplacée", ["réunion"]),
        ("Мы храним резервные копии в подвале", ["копии"]),
        ("Οι εφεδρείες φυλάσσονται στο υπόγειο", ["υπόγειο"]),
        ("Yedekler bodrumda saklanıyor", ["bodrumda"]),
        ("数据库迁移在星期五完成", ["数据库迁移"]),
        ("テストは毎晩実行される", ["テスト"]),
        ("데이터베이스를 어제 옮겼다", ["데이터베이스를"]),
        ("انتقلت المدرسة إلى برلين", ["المدرسة"]),
        ("Cơ sở dữ liệu được sao lưu", ["liệu"]),
        ("the HARBOUR crane", ["harbour"]),
        ("the harbour crane", ["HARBOUR"]),
    ],
    ids=lambda value: value[:12] if isinstance(value, str) else "",
)
def test_a_record_is_found_by_its_words_in_any_language_P22(store: FilledStore, text: str, terms: list[str]) -> None:
    store.fill([("told", "team/a", text, None), ("other", "team/a", "pelican zzyzx quokka", None)])
    (candidate,) = found(store, terms, None, ["team/a"], 10)
    assert candidate.id == "told" and candidate.text_score > 0


@pytest.mark.parametrize("term", ["&", "|", "!", "crane:*", "'", '"', "(", "\\", "<->", "%s", "$1", "\0", "*", "--"])
def test_signs_in_a_term_have_no_meaning(store: FilledStore, term: str) -> None:
    store.fill([("told", "team/a", "the harbour pier", at(0.5, 1)), ("other", "team/b", "the harbour", at(0.9, 2))])
    assert ids(found(store, [term, "harbour"], None, ["team/a"], 10)) == {"told"}
    assert ids(found(store, [term], QUESTION, ["team/a"], 10)) == {"told"}


@pytest.mark.parametrize("terms", [[], [""], ["zzyzx"]], ids=str)
def test_without_a_matching_word_only_the_vectors_count(few: Filled, terms: list[str]) -> None:
    answer = found(few.store, terms, QUESTION, list(FEW), 3)
    assert len(answer) >= 3 and all(candidate.text_score == 0 for candidate in answer)
    assert found(few.store, terms, None, list(FEW), 3) == []


def test_without_a_vector_only_the_words_count(few: Filled) -> None:
    answer = found(few.store, ["harbour", "d6"], None, list(FEW), 1)
    assert answer[0].id == "d6"
    assert all(candidate.similarity is None and candidate.text_score > 0 for candidate in answer)


# --- what is withheld, and what is alike -----------------------------------------------------------------------------
def test_a_withheld_record_makes_place_for_the_next_ones(store: FilledStore) -> None:
    rows = [(f"r{n:02}", "team/a", f"harbour {'crane ' * n}", at(0.9 - n / 50, n)) for n in range(20)]
    store.fill(rows)
    for n in range(20):
        rest = {id for id, *_ in rows[n:]}
        by_words = found(store, ["harbour"], None, ["team/a"], 3)
        assert len(by_words) >= min(3, len(rest)) and ids(by_words) <= rest
        assert by_similarity(found(store, [], QUESTION, ["team/a"], 3))[:3] == sorted(rest)[:3]
        store.withhold(f"r{n:02}")
    assert found(store, ["harbour"], QUESTION, ["team/a"], 3) == []


@pytest.mark.parametrize("seed", range(3))
def test_what_is_withheld_is_never_found_and_all_else_always(store: FilledStore, seed: int) -> None:
    random = np.random.default_rng(seed)
    pools = ["team/a", "team/b", "team/c"]
    live: dict[str, str] = {}
    for step in range(12):
        fresh = {f"s{step}n{n}": pools[random.integers(3)] for n in range(random.integers(1, 9))}
        store.fill(
            (id, pool, f"harbour remark {id}", at(float(random.random()), 99 * step)) for id, pool in fresh.items()
        )
        live |= fresh
        for id in random.permutation(sorted(live))[: random.integers(0, 6)].tolist():
            store.withhold(id)
            del live[id]
        asked = [pool for pool in pools if random.random() < 0.6]
        wanted = {id for id, pool in live.items() if pool in asked}
        for terms, vector in ((["harbour"], None), ([], QUESTION), (["harbour"], QUESTION)):
            assert ids(found(store, terms, vector, asked, 200)) == wanted
            assert len(found(store, terms, vector, asked, 2)) >= min(2, len(wanted))


def test_equal_scores_come_in_the_order_of_the_ids(store: FilledStore) -> None:
    names = [f"r{n:02}" for n in np.random.default_rng(5).permutation(24).tolist()]
    pools = ["team/c", "team/a", "team/b"]
    store.fill((id, pools[n % 3], "the harbour crane", at(0.5, 1)) for n, id in enumerate(names))
    for terms, vector in ((["crane"], QUESTION), (["crane"], None), ([], QUESTION)):
        answer = found(store, terms, vector, pools, 50)
        assert [candidate.id for candidate in answer] == sorted(names)
        assert answer == found(store, terms, vector, sorted(pools), 50)
        assert len(found(store, terms, vector, pools, 5)) >= 5


def test_candidates_are_ordered_by_words_then_by_similarity_then_by_id() -> None:
    ordered = [
        CandidateRecord("b", 2.0, 0.1),
        CandidateRecord("c", 1.0, 0.9),
        CandidateRecord("a", 1.0, 0.2),
        CandidateRecord("d", 1.0, -1.0),
        CandidateRecord("a0", 1.0),
        CandidateRecord("e", 0.0, 0.9),
        CandidateRecord("f", 0.0, 0.9),
    ]
    assert best_first(reversed(ordered)) == ordered
