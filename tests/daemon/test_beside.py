"""A record is found by what stood around it when it was said, too: its line, and the question before (Q2, P1, T10)."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest

from memd.daemon.projections.folded import TableSet
from memd.daemon.projections.keywords import Keywords
from memd.protocol.event import Origin, Said
from memd.protocol.record import Record, Span, record_id
from tests.daemon.test_deep import AT, done
from tests.daemon.test_recall import bring, record

TALK = Origin(host="test", session="talk")
WORDS = "It rained at the regatta all day. I like to row before breakfast."


def said(turn: str, text: str, role: Any = "user") -> Said:
    return Said(turn=turn, at=AT, role=role, text=text)


def of(turn: int, text: str, words: str, pool: str = "personal") -> Record:
    """A record whose quote is `words` of the turn `text`."""
    made = record(pool, "test:talk", turn, words)
    start = text.index(words)
    spans = (Span("test:talk", f"t{turn}", start, start + len(words)),)
    id = record_id(pool, "test:talk", f"t{turn}", start, 0)
    return msgspec.structs.replace(made, id=id, provenance=msgspec.structs.replace(made.provenance, spans=spans))


def found(client: Any, query: str, **more: Any) -> list[str]:
    return [hit.record.id for hit in client.recall(query, **more).hits]


def test_the_line_and_the_question_before_find_what_was_answered_Q2_T10(daemon: Any) -> None:
    answer = "Patience before speed."
    with daemon.client() as client:
        client.capture(TALK, [said("t1", WORDS), said("t2", "What did the marathon teach you?", "assistant")])
        client.capture(TALK, [said("t3", answer), said("t4", "The violin is in the attic.\nBoth invoices were paid.")])
        rows, speed = of(1, WORDS, "I like to row before breakfast."), of(3, answer, answer)
        attic = of(4, "The violin is in the attic.\nBoth invoices were paid.", "The violin is in the attic.")
        bring(client, [rows, speed, attic])
        assert found(client, "rained at the regatta") == [rows.id]
        assert found(client, "teach marathon") == [speed.id]
        assert found(client, "attic violin")[0] == attic.id
        assert attic.id not in found(client, "invoices paid"), "another line says something else"

        done(client, client.rebuild("keywords"))
        assert found(client, "teach marathon") == [speed.id]
        told = client.job(client.verify().id)
        done(client, told)

        done(client, client.forget([rows.id]))
        assert not found(client, "rained at the regatta")


def test_what_is_personal_is_not_found_by_words_of_a_project_P1_P2(daemon: Any, tmp_path: Path) -> None:
    inside = tmp_path / "orchard"
    inside.mkdir()
    (inside / ".memd-id").write_text("orchard-orchard-1\n")
    with daemon.client() as client:
        client.capture(Origin(host="test", session="talk", cwd=str(inside)), [said("t1", WORDS)])
        rows = of(1, WORDS, "I like to row before breakfast.")
        bring(client, [rows])
        assert found(client, "row before breakfast") == [rows.id]
        assert not found(client, "rained at the regatta", pools=("personal",))


def test_a_second_record_of_a_turn_stands_behind_other_turns_Q9(daemon: Any) -> None:
    words = "The lemon invoice is printed on Monday. The lemon invoice is filed on Friday."
    with daemon.client() as client:
        first, second = (of(1, words, f"{each}.") for each in words.rstrip(".").split(". "))
        other = record("personal", "elsewhere", 2, "A lemon invoice is paid by card, mostly.")
        bring(client, [first, second, other])
        hits = client.recall("lemon invoice").hits
        assert {hits[0].record.id, hits[1].record.id} != {first.id, second.id}
        assert "same_turn" not in hits[0].parts
        assert [hit.parts["same_turn"] for hit in hits if "same_turn" in hit.parts] == [0.75]


@pytest.fixture
def rows(tmp_path: Path) -> Iterator[TableSet]:
    folded = TableSet(tmp_path / "tables")
    yield folded
    folded.close()


def test_what_stood_beside_a_record_goes_with_it_at_a_refresh_T10(rows: TableSet, tmp_path: Path) -> None:
    one = record("personal", "talk", 1, "Patience before speed.")
    around = {one.id: "the marathon taught me"}
    index = Keywords(tmp_path / "keywords", rows.records, lambda each: around[each.id])
    cast("Any", rows.records).many = lambda ids: {one.id: one} if one.id in ids else {}
    index.refresh([one.id])
    index.commit()
    assert index.search("marathon", ["personal"], 5)[0]
    around[one.id] = ""
    index.refresh([one.id])
    assert not index.search("marathon", ["personal"], 5)[0]
    index.commit()
    assert not index.search("marathon", ["personal"], 5)[0] and index.search("patience", ["personal"], 5)[0]
    index.close()


def test_what_waits_for_its_first_use_answers_before_what_does_not_T8(daemon: Any) -> None:
    with daemon.client() as client:
        known = record("personal", "a", 1, "The harbour office never gives up, even when it is hard.")
        old = record("personal", "b", 2, "The regatta in the harbour begins at nine.", status="quarantined")
        told = record("personal", "c", 3, "The regatta prize is a cup.", status="quarantined", flags=("injection",))
        bring(client, [known, old, told])
        hits = client.recall("When does the regatta in the harbour begin?").hits
        assert hits[0].record.id == old.id and hits[0].parts["quarantined"] == 0.95
        assert {hit.parts["quarantined"] for hit in hits if hit.record.id == told.id} <= {0.5}
