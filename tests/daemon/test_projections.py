"""Projections: folds that can be thrown away. Replay equals live; every record is found from the moment it is there."""

import shutil
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memd.daemon.projections.profile import PARTS
from memd.daemon.projections.records import digest
from memd.daemon.projections.stores import Stores
from memd.daemon.projections.terms import TermDocument, TermIndex, TermScores
from memd.daemon.projections.tokens import TermTokens
from memd.daemon.projections.vector_index import ExactIndex
from memd.daemon.projections.vector_store import VectorStore
from memd.daemon.world import real_world
from memd.models import registry
from memd.protocol.operation import Added, AnyOperation, Decision, Distilled, Invalidated, Merged, Retirement, Updated
from memd.protocol.record import Evidence, Provenance, Record, Span
from tests.conftest import EXAMPLES

AT = "2026-01-01T00:00:00Z"
WHY = Decision(action="add", reason="a test")


def record(number: int, key: str = "", words: str = "", rev: int = 1, **more: Any) -> Record:
    provenance = Provenance(
        author="user", source="h:s", trust="user", spans=(Span("h:s", str(number), 0, 5),), quote="quote", said_at=AT
    )
    text = words or f"statement number{number}"
    return Record(
        id=f"id{number}",
        pool=more.pop("pool", "personal"),
        kind="note",
        content=text,
        description=text,
        provenance=provenance,
        key=key,
        rev=rev,
        **more,
    )


def opened(folder: Path) -> Stores:
    return Stores(folder, real_world(), registry.info())


STEPS = st.lists(
    st.tuples(st.sampled_from("add update retire merge replace cursor".split()), st.integers(0, 6), st.integers(0, 6)),
    max_size=25,
)


def operations(steps: list[tuple[str, int, int]]) -> list[AnyOperation]:
    made: list[AnyOperation] = []
    for number, (what, one, other) in enumerate(steps):
        evidence = Evidence(kind="restated", span=Span("h:s", f"e{number}", 0, 1), trust="user", at=AT)
        made.append(
            {
                "add": Added(record=record(one, key=f"k{other % 3}"), decision=WHY),
                "update": Updated(record=record(one, words=f"reworded {other}", rev=2), decision=WHY),
                "retire": Invalidated(id=f"id{one}", valid_to=AT, reason="wrong"),
                "merge": Merged(id=f"id{one}", evidence=evidence, decision=WHY),
                "replace": Added(
                    record=record(10 + one, key=f"k{one % 3}"),
                    retires=(Retirement(f"id{other}", AT, "new"),),
                    decision=WHY,
                ),
                "cursor": Distilled(archive_seq=number, captures=1, candidates=0, rejected={"noise": 1}),
            }[what]
        )
    return made


def state(stores: Stores) -> dict[str, object]:
    """Everything a read could see."""
    records = {each.id: each for each in stores.records.everything()}
    return {
        "records": records,
        "keys": {key: stores.records.holding_key("personal", key) for key in ("k0", "k1", "k2")},
        "history": {id: stores.sources.history(id) for id in records},
        "recent": [each.id for each in stores.records.recent("personal", None, 100)],
        "cited": stores.records.citing("h:s"),
        "tally": stores.records.tally(),
        "progress": stores.sources.progress(),
        "found": {
            id: id in stores.keywords.search(each.description, ["personal"], 50)[0] for id, each in records.items()
        },
        "profile": sorted(each.id for part in PARTS for each in stores.profile.cards("personal", part)),
    }


@pytest.mark.slow
@settings(max_examples=25 * EXAMPLES, deadline=None)
@given(STEPS, STEPS)
def test_replay_equals_live_from_nothing_and_from_any_applied_seq_U3(
    tmp_path_factory: Any, first: list[tuple[str, int, int]], second: list[tuple[str, int, int]]
) -> None:
    folder = tmp_path_factory.mktemp("stores")
    stores = opened(folder)
    for step in (first, second):
        for operation in operations(step):
            stores.commit([operation])
        stores.keywords.commit()
    live = state(stores)
    stores.close()
    shutil.rmtree(folder / "projections")
    stores = opened(folder)
    assert state(stores) == live
    stores.close()
    stores = opened(folder)
    assert state(stores) == live
    stores.close()


def test_a_key_names_one_live_record_and_is_free_after_it_retires_R1(tmp_path: Path) -> None:
    stores = opened(tmp_path)
    stores.commit([Added(record=record(1, key="user.prefers.indentation"), decision=WHY)])
    assert stores.records.holding_key("personal", "user.prefers.indentation") == "id1"
    new = Added(
        record=record(2, key="user.prefers.indentation"), retires=(Retirement("id1", AT, "replaced"),), decision=WHY
    )
    stores.commit([new])
    assert stores.records.holding_key("personal", "user.prefers.indentation") == "id2"
    old = stores.records.get("id1")
    assert (
        old is not None and old.status == "retired" and old.superseded_by == "id2" and old.retired_at > old.learned_at
    )
    stores.commit([Invalidated(id="id2", valid_to=AT, reason="wrong")])
    assert stores.records.holding_key("personal", "user.prefers.indentation") == ""
    stores.close()


def test_a_record_is_found_before_and_after_the_index_commits_W1(tmp_path: Path) -> None:
    stores = opened(tmp_path)
    stores.commit([Added(record=record(1, words="the harbour crane is blue"), decision=WHY)])
    assert list(stores.keywords.search("which crane", ["personal"], 5)[0]) == ["id1"]
    stores.keywords.commit()
    assert list(stores.keywords.search("which crane", ["personal"], 5)[0]) == ["id1"]
    assert stores.keywords.search("which crane", ["project/x"], 5)[0] == {}
    stores.commit([Updated(record=record(1, words="the harbour ferry is red", rev=2), decision=WHY)])
    assert stores.keywords.search("crane", ["personal"], 5)[0] == {}
    stores.commit([Invalidated(id="id1", valid_to=AT, reason="sold")])
    assert stores.keywords.search("ferry", ["personal"], 5)[0] == {}
    assert list(stores.keywords.search("ferry", ["personal"], 5, past=True)[0]) == ["id1"]
    stores.close()


def test_after_a_power_cut_projections_are_made_anew(tmp_path: Path) -> None:
    stores = opened(tmp_path)
    stores.commit([Added(record=record(1), decision=WHY)])
    live = state(stores)
    stores.close()
    (tmp_path / "running").write_text("another boot")
    (tmp_path / "projections" / "tables" / "data.mdb").write_bytes(b"half a write")
    stores = opened(tmp_path)
    assert state(stores) == live
    stores.close()


def test_terms_of_five_languages_meet_their_questions_P22() -> None:
    tokens = TermTokens()
    for document, question in [
        ("数据库迁移在星期五完成", "什么时候迁移"),
        ("テストは毎晩実行される", "テスト"),
        ("데이터베이스를 옮겼다", "데이터베이스"),
        ("انتقلت المدرسة إلى برلين", "مدرسة"),
        ("Die Größe beträgt fünf Meter", "GRÖSSE"),
        ("uses test/support/ConnCase.ex", "conn case"),
        ("switched the databases", "switching a database"),
    ]:
        assert set(tokens.query(question)) & set(tokens.document(document)), question


def test_the_exact_index_finds_the_nearest_and_forgets_what_is_dropped() -> None:
    random = np.random.default_rng(7)
    rows = random.standard_normal((1500, 8)).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    index = ExactIndex(8)
    index.put([str(number) for number in range(900)], rows[:900])
    for number in range(900, 1500):
        index.put([str(number)], rows[number : number + 1])
    index.put(["3", "5"], rows[[3, 5]])
    index.drop("4")
    for number in (3, 700, 1499):
        found = index.nearest(rows[number], 3)
        truth = [str(n) for n in np.argsort(-(rows @ rows[number])) if n != 4][:3]
        assert [id for id, _ in found] == truth
    assert len(index) == 1499 and all(id != "4" for id, _ in index.nearest(rows[4], 50))


def test_a_stored_vector_is_the_given_one_but_for_a_trifle(tmp_path: Path) -> None:
    store = VectorStore(tmp_path / "vectors", "m", 384, real_world())
    given_rows = np.random.default_rng(7).standard_normal((200, 384)).astype(np.float32)
    given_rows /= np.linalg.norm(given_rows, axis=1, keepdims=True)
    rows = np.concatenate([given_rows, np.zeros((1, 384), np.float32)])
    store.put((f"text{number}", row.tobytes()) for number, row in enumerate(rows))
    places, stored = store.get([digest(f"text{number}") for number in range(201)])
    store.close()
    assert list(places) == list(range(201)) and not stored[200].any()
    assert (stored[:200] * given_rows).sum(axis=1).min() > 0.9998
    assert np.abs(stored @ given_rows.T - rows @ given_rows.T).max() < 0.003


def test_a_record_reads_back_whatever_stands_for_its_words(tmp_path: Path) -> None:
    stores = Stores(tmp_path, real_world(), registry.info())
    same, other = record(1), record(2)
    quote = msgspec.structs.replace(same.provenance, quote=same.content)
    wanted = [
        msgspec.structs.replace(same, provenance=quote),
        msgspec.structs.replace(other, description="other words"),
    ]
    stores.commit([Added(record=each, decision=WHY) for each in wanted])
    found = [stores.records.get(each.id) for each in wanted]
    stores.close()
    for each, back in zip(wanted, found, strict=True):
        assert back is not None
        assert (back.content, back.description) == (each.content, each.description)
        assert back.provenance == each.provenance


def test_a_turn_scores_the_same_before_and_after_the_index_commits_Q4(tmp_path: Path) -> None:
    words = "bucket parser friday orders retries printer queue lemon".split()
    texts = [
        TermDocument(f"t{n}", "personal", True, " ".join(words[(n * k) % 8] for k in range(1, 4 + n % 7)))
        for n in range(40)
    ]
    index = TermIndex(tmp_path / "terms")

    def scores() -> dict[str, float]:
        return index.search("the parser and the lemon queue", ["personal"], 50)[0]

    index.put([(text, n) for n, text in enumerate(texts[:15], 1)], (), 15)
    index.commit()
    index.put([(text, n) for n, text in enumerate(texts[15:], 16)], (), 40)
    between = scores()
    index.commit()
    after = scores()
    index.close()
    assert between.keys() == after.keys() and len(after) > 20
    for id, score in after.items():
        assert between[id] == pytest.approx(score, rel=0.08), "its committed half has a mean length of its own"
    index = TermIndex(tmp_path / "terms")
    index.put([(texts[9]._replace(id="new"), 41)], (), 41)
    tail = scores()
    index.close()
    assert tail["new"] == pytest.approx(tail["t9"], rel=0.02), "the mean is known after a start"


@pytest.mark.parametrize("scoped", [True, False])
def test_texts_that_were_put_again_leave_the_scores_as_they_are_Q4(tmp_path: Path, scoped: bool) -> None:
    """A dropped text counts in the index until its segment is merged: it must not make every term look rare."""
    texts = [TermDocument(f"t{n}", "personal", True, f"order {'pump' if n % 2 else 'rotor'} {n}") for n in range(40)]

    def scores(name: str, *rounds: list[TermDocument]) -> TermScores:
        index = TermIndex(tmp_path / name, scoped=scoped)
        for upto, each in enumerate(rounds, 1):
            index.put([(text, upto) for text in each], (), upto)
            index.commit()
        found = index.search("pump order", ["personal"], 40)
        index.close()
        return found

    (once, most, *_), (again, most_again, *_) = scores("once", texts), scores("again", texts, texts[:30])
    assert once.keys() == again.keys()
    assert max(again.values()) / most_again == pytest.approx(max(once.values()) / most, rel=0.1)
