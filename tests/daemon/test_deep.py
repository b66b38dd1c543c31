"""DEEP: the transcript around what is found, how a belief changed, edges near it, what is archived (Q3, Q12, T7)."""

import time
from typing import Any

from memd.protocol.event import Noted, Origin, Said
from memd.protocol.recall import Recall, Recalled
from memd.protocol.reply import Hit
from memd.protocol.request import Remember, is_quick
from tests.daemon.test_recall import bring, record

TALK = Origin(host="test", session="talk")
AT = "2026-03-05T09:00:00+00:00"


def said(turn: str, text: str, role: Any = "user") -> Said:
    return Said(turn=turn, at=AT, role=role, text=text)


def deep(client: Any, query: str, **more: Any) -> Recalled:
    return client.ask(Recall(query=query, deep=True, **more), Recalled)


def hit_of(answer: Recalled, id: str) -> Hit:
    return next(hit for hit in answer.hits if hit.record.id == id)


def remember(client: Any, turn: str, text: str, origin: Origin = TALK) -> str:
    return client.remember(Remember(text=text, turn=turn, at=AT, origin=origin)).record.id


def done(client: Any, job: Any) -> None:
    end = time.monotonic() + 60
    while (state := client.job(job.id)).state not in ("done", "failed"):
        assert time.monotonic() < end
        time.sleep(0.02)
    assert state.state == "done", state


def test_a_question_in_depth_waits_in_the_slow_lane_Q3() -> None:
    assert is_quick(Recall(query="x")) and not is_quick(Recall(query="x", deep=True))


def test_depth_gives_the_turns_around_and_forgotten_or_hidden_ones_never_Q3_T10(daemon: Any) -> None:
    with daemon.client() as client:
        client.capture(TALK, [said("1", "Which tool do you take for screenshots in the manual?", "assistant")])
        id = remember(client, "2", "I take Flameshot for the screenshots of the manual.")
        client.capture(TALK, [said("3", "It blurs names.", "user"), said("4", "Lunch is at twelve.", "user")])
        plain = client.recall("Flameshot screenshots")
        assert not hit_of(plain, id).lines and not plain.linked
        answer = deep(client, "Flameshot screenshots")
        lines = hit_of(answer, id).lines
        assert [(each.turn, each.who, each.cited) for each in lines] == [
            ("1", "assistant", False),
            ("2", "user", True),
            ("3", "user", False),
        ]
        assert answer.tokens <= 1500 and not hit_of(answer, id).history

        secret = remember(client, "5", "My locker for the Flameshot posters is number nine.")
        client.capture(TALK, [said("6", "Flameshot posters hang in the hall.")])
        hidden = remember(client, "7", "The hall with the Flameshot posters is locked.")
        kept = remember(client, "8", "I clean the Flameshot lens on Mondays.")
        assert "7" in {each.turn for each in hit_of(deep(client, "Flameshot lens Mondays"), kept).lines}
        client.propose_forget([hidden], "a test", hide=True)
        done(client, client.forget([secret]))
        told = deep(client, "Flameshot lens Mondays posters hall locker")
        assert kept in {hit.record.id for hit in told.hits}
        words = " ".join(line.text for each in (*told.hits, *told.turns) for line in each.lines)
        assert "lens" in words and "locked" not in words and "locker" not in words
        assert all("locked" not in turn.quote and "locker" not in turn.quote for turn in told.turns)


def test_depth_searches_what_was_said_and_stays_in_its_project_Q3_P2(daemon: Any, tmp_path: Any) -> None:
    with daemon.client() as client:
        inside = tmp_path / "orchard"
        inside.mkdir()
        (inside / ".memd-id").write_text("orchard-orchard-1\n")
        there = Origin(host="test", session="there", cwd=str(inside))
        client.capture(there, [said("1", "The orchard counts its marimba lessons in a ledger.", "assistant")])
        bring(client, [record("personal", "test:there", 2, "I play the marimba at noon.")])
        outside = deep(client, "marimba at noon", pools=("personal",))
        assert [hit.record.description for hit in outside.hits] == ["I play the marimba at noon."]
        assert not outside.turns and not outside.hits[0].lines
        found = deep(client, "marimba lessons ledger", cwd=str(inside))
        assert [turn.quote for turn in found.turns] == ["The orchard counts its marimba lessons in a ledger."]


def test_depth_tells_how_a_belief_changed_on_both_timelines_Q12_T1(daemon: Any) -> None:
    with daemon.client() as client:
        first = remember(client, "1", "The team deploys the parser on Fridays.")
        between = client.get(first).learned_at
        second = client.correct(first, "The team deploys the parser on Thursdays.", since="2026-04-01T00:00:00Z").record
        client.edit(second.id, "The team deploys the parser every Thursday.")
        told = hit_of(deep(client, "When is the parser deployed?"), second.id).history
        assert [(state.id, state.text) for state in told] == [
            (first, "The team deploys the parser on Fridays."),
            (second.id, "The team deploys the parser on Thursdays."),
            (second.id, "The team deploys the parser every Thursday."),
        ]
        assert told[0].valid_to == "2026-04-01T00:00:00Z" and told[1].valid_from == "2026-04-01T00:00:00Z"
        assert told[0].ended == "corrected by the user"
        assert told[0].believed_from == between and told[0].believed_until == told[1].believed_from
        assert told[1].believed_until == told[2].believed_from and told[2].believed_until == 0
        then = deep(client, "When is the parser deployed?", as_of="2026-03-15T00:00:00Z")
        assert first in {hit.record.id for hit in then.hits}
        assert len(hit_of(then, first).history) == 3


def test_depth_follows_edges_two_steps_and_brings_back_what_is_archived_Q3_R8_T7(daemon: Any) -> None:
    edges = {
        "orders uses postgres": "The orders service uses Postgres.",
        "postgres runs-on harbour": "Postgres runs on the harbour machine.",
        "harbour stands-in cellar": "The harbour machine stands in the cellar.",
        "user likes tea": "The user likes tea.",
    }
    with daemon.client() as client:
        rows = [
            record("personal", f"e{n}", n, text, kind="edge", key=key) for n, (key, text) in enumerate(edges.items())
        ]
        lost = record("personal", "old", 3, "The lemon invoices of orders are printed twice.", status="archived")
        foreign = record("project/quarry", "q", 1, "Orders feeds the quarry.", kind="edge", key="orders feeds quarry")
        bring(client, [*rows, lost, foreign])
        assert lost.id not in {hit.record.id for hit in client.recall("lemon invoices printed twice").hits}
        answer = deep(client, "lemon invoices of orders printed twice", pools=("personal",), limit=1)
        assert [hit.record.id for hit in answer.hits] == [lost.id]
        linked = [(each.record.key, each.hops, each.via) for each in answer.linked]
        assert linked == [("orders uses postgres", 1, "orders"), ("postgres runs-on harbour", 2, "postgres")]
        end = time.monotonic() + 90
        while client.get(lost.id).status != "active":
            assert time.monotonic() < end
            time.sleep(0.02)


def test_depth_keeps_to_the_budget_Q10(daemon: Any) -> None:
    with daemon.client() as client:
        long = " ".join(f"The printer of room {n} hums." for n in range(120))
        client.capture(TALK, [Noted(turn=f"n{n}", at=AT, text=f"{long} {n}") for n in range(0, 30, 3)])
        for n in range(1, 30, 3):
            remember(client, f"n{n}", f"Printer number {n} prints the invoices of ward {n}.")
        for budget in (60, 300, 1500):
            answer = deep(client, "Which printer prints invoices?", budget_tokens=budget)
            assert answer.hits and (answer.tokens <= budget or len(answer.hits) == 1)
        assert any(hit.lines for hit in answer.hits)
        assert all(len(line.text) <= 500 for each in (*answer.hits, *answer.turns) for line in each.lines)
