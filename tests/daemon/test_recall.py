"""What a question finds: pools apart, evidence around a record, selection, feedback (Q2-Q10, P2, P8)."""

import time
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memd.daemon.services.recall.scorer import FEATURES, LEAD, decoded, encoded, final, trained
from memd.daemon.services.recall.selection import by_chance, deduplicated, within
from memd.protocol import request
from memd.protocol.errors import InvalidRequest, NotFound
from memd.protocol.event import Origin, Said
from memd.protocol.fading import Sample
from memd.protocol.operation import PoolOpened, SessionOpened
from memd.protocol.recall import Recall, Recalled
from memd.protocol.record import Provenance, Record, Signal, Span, record_id
from memd.protocol.reply import ExportedRecord
from tests.conftest import EXAMPLES

POOLS = ("personal", "project/orchard", "project/quarry")
WORDS = "bucket parser migration friday orders retries printer queue lemon invoice tabs sqlite".split()


def record(pool: str, talk: str, turn: int, text: str, **changes: Any) -> Record:
    at = f"2026-03-{1 + turn % 27:02d}T09:00:{turn % 60:02d}+00:00" if talk.startswith("days") else (
        f"2026-03-05T09:{turn % 60:02d}:00+00:00"
    )  # fmt: skip
    provenance = Provenance(
        author="user", source=talk, trust="user", spans=(Span(talk, f"t{turn}", 0, len(text)),), quote=text, said_at=at
    )
    fields: dict[str, Any] = {"kind": "note", "content": text, "description": text, "valid_from": at, **changes}
    return Record(id=record_id(pool, talk, f"t{turn}", 0, 0), pool=pool, provenance=provenance, **fields)


def bring(client: Any, records: list[Record]) -> None:
    """Import records, each talk as a session of its pool."""
    homes = {each.provenance.source: each.pool for each in records}
    sessions = tuple(
        SessionOpened(
            document=talk,
            origin=Origin(host="t", session=talk),
            project="" if pool == "personal" else pool,
            at="2026-03-01T00:00:00+00:00",
        )
        for talk, pool in homes.items()
    )
    pools = tuple(PoolOpened(pool=pool, title=pool) for pool in sorted({*homes.values()} - {"personal"}))
    told = client.import_records(
        request.ImportRecords(
            records=tuple(ExportedRecord(record=each) for each in records), sessions=sessions, pools=pools
        )
    )
    assert not told.refused, told


def test_no_query_in_one_project_returns_a_record_of_the_other_P2_P8_S2(daemon: Any) -> None:
    with daemon.client() as client:
        records = [
            record(
                pool, f"{pool}-{n}", n, f"The {WORDS[n]} of room {n} waits for the {WORDS[(n * 5 + 1) % len(WORDS)]}."
            )
            for pool in POOLS
            for n in range(len(WORDS))
        ]
        records += [
            record(pool, f"{pool}-edge", 0, "The user uses bucket.", kind="edge", key="user uses bucket")
            for pool in POOLS[1:]
        ]
        records += [
            record(pool, f"{pool}-rule", 0, f"Never deploy the {WORDS[n]}.", tags=("convention", "principle"))
            for n, pool in enumerate(POOLS)
        ]
        bring(client, records)

        @settings(max_examples=40 * EXAMPLES, deadline=None)
        @given(
            st.lists(st.sampled_from([*WORDS, "room", "user", "waits", "yesterday"]), min_size=1, max_size=6),
            st.sampled_from([("project/orchard",), ("personal", "project/quarry"), ("personal",)]),
            st.booleans(),
            st.booleans(),
            st.integers(1, 60),
        )
        def ask(words: list[str], scope: tuple[str, ...], retired: bool, deep: bool, limit: int) -> None:
            wish = Recall(
                query=" ".join(words), pools=scope, include_retired=retired, deep=deep, limit=limit, keywords=("lemon",)
            )
            answer = client.ask(wish, Recalled)
            found = [hit.record for hit in (*answer.hits, *answer.principles)]
            assert {each.pool for each in found} <= set(scope)
            if answer.nearest:
                near = client.get(answer.nearest.id)
                assert near.pool in scope
            assert not answer.turns

        ask()
        outside = client.recall("bucket", cwd="/")
        assert outside.scope == ("personal",)


def test_an_answer_stands_beside_the_question_that_was_asked_Q2(daemon: Any) -> None:
    talk = [
        "Maren: Which tool do you take for screenshots in the manual?",
        "Jonas: I take Flameshot, it blurs names.",
        "Maren: Lunch is at twelve today.",
        "Jonas: The lift is broken again.",
    ]
    with daemon.client() as client:
        bring(client, [record("personal", "talk", n, text) for n, text in enumerate(talk)])
        answer = client.recall("Which tool is taken for screenshots?", explain=True)
        texts = [hit.record.description for hit in answer.hits]
        assert talk[1] in texts[:2], texts
        assert talk[2] not in texts[:2]
        parts = next(hit.parts for hit in answer.hits if hit.record.description == talk[1])
        assert parts["reply"] > 0 and parts["before"] > 0
        assert answer.strength > 0 and not answer.abstained


def test_nonsense_abstains_and_says_what_was_nearest_P23_Q10(daemon: Any) -> None:
    with daemon.client() as client:
        bring(
            client, [record("personal", f"n{n}", n, f"The {word} stands in room {n}.") for n, word in enumerate(WORDS)]
        )
        answer = client.recall("zebra xylophone of Saturn's rings")
        assert answer.abstained and answer.reason and not answer.hits
        with_words = client.recall("parser room nobody knows xylophone zebra saturn jupiter venus mercury uranus")
        assert with_words.abstained and with_words.nearest


def test_principles_come_with_every_answer_within_a_fifth_of_the_budget_Q8(daemon: Any) -> None:
    with daemon.client() as client:
        rules = [
            record("personal", f"rule{n}", n, f"Never compromise on quality {n}.")
            for n in range(30)
        ]  # fmt: skip
        bring(client, [*rules, record("personal", "one", 1, "The invoice parser reads lemon tables.")])
        for rule in rules[:20]:
            client.pin(rule.id, principle=True)
        answer = client.recall("lemon tables of the parser", budget_tokens=600)
        assert 1 <= len(answer.principles) <= 20
        assert answer.tokens <= 600
        assert [hit.record.description for hit in answer.hits][:1] == ["The invoice parser reads lemon tables."]


def test_a_search_by_type_takes_only_these_types_before_it_counts_Q9(daemon: Any) -> None:
    with daemon.client() as client:
        client.capture(
            Origin(host="t", session="s", cwd="/"),
            [Said(turn="1", at="2026-03-04T09:00:00Z", role="user", text="Do the printer tests run on the parser?")],
        )
        daemon.settle()
        facts = [
            record(
                "personal",
                f"n{n}",
                n,
                f"Do the printer tests run on the parser? Yes, all {n} do.",
                tags=("fact", "run"),
            )
            for n in range(120)
        ]
        text = "We decided that printer tests need a parser."
        bring(client, [*facts, record("personal", "last", 1, text, tags=("decision", "winter"))])
        question = "Do the printer tests run on the parser?"
        assert {hit.record.type for hit in client.recall(question, cwd="/").hits} == {"fact"}
        assert client.recall(question, cwd="/", limit=200, budget_tokens=100_000).turns
        for more in ({}, {"deep": True}, {"include_retired": True}, {"as_of": "2026-04-01T00:00:00Z"}):
            answer = client.recall(question, cwd="/", types=["decision", "lesson"], limit=1, **more)
            assert [hit.record.content for hit in answer.hits] == [text] and not answer.turns, more
        both = client.recall(question, cwd="/", types=["decision", "fact"])
        assert len(both.hits) == 10 and not both.turns
        assert client.recall(question, cwd="/", types=["lesson"]).abstained
        with pytest.raises(InvalidRequest, match="'decison' is not a type"):
            client.recall(question, cwd="/", types=["decison"])


def test_a_threshold_holds_for_turns_too_and_their_score_has_parts_Q9(daemon: Any) -> None:
    with daemon.client() as client:
        said = ("Is the printer lemon yellow?", "The queue is long.", "Is the printer loud, or yellow?")
        client.capture(
            Origin(host="t", session="s", cwd="/"),
            [
                Said(turn=str(number), at="2026-03-04T09:00:00Z", role="user", text=text)
                for number, text in enumerate(said)
            ],
        )
        daemon.settle()
        turns = client.recall("lemon yellow printer", cwd="/").turns
        assert len(turns) == 2 and turns[0].score > turns[1].score
        for turn in turns:
            of = turn.parts
            score = of["writer"] * (of["words"] + of["passage"]) / 2 + of["neighbour"]
            assert turn.score == pytest.approx(score, abs=0.001)
        least = (turns[0].score + turns[1].score) / 2
        assert client.recall("lemon yellow printer", cwd="/", threshold=least).turns == turns[:1]


def test_what_is_often_returned_and_never_used_is_listed_at_once_Q9(daemon: Any) -> None:
    with daemon.client() as client:
        ids = [client.remember(f"The {word} of the lighthouse is green.").record.id for word in ("door", "roof")]
        for count in range(3):
            assert not client.never_used().records, count
            answer = client.recall("Which door and roof of the lighthouse are green?")
            assert {hit.record.id for hit in answer.hits} == set(ids)
        assert {(row.record.id, row.given) for row in client.never_used().records} == {(id, 3) for id in ids}
        assert not client.never_used(least=4).records
        client.feedback(used=ids[:1])
        assert [row.record.id for row in client.never_used().records] == ids[1:]
    assert daemon.terminate() == 0
    daemon.start()
    with daemon.client() as client:
        client.recall("Which door and roof of the lighthouse are green?")
        rows = client.never_used().records
        assert [row.record.id for row in rows] == ids[1:] and rows[0].given in (1, 4), "a stop may lose waiting counts"


def test_options_are_for_measurements_alone(daemon: Any) -> None:
    from memd.protocol.recall import RecallOptions

    with daemon.client() as client, pytest.raises(InvalidRequest, match="benchmarks"):
        client.ask(Recall(query="x", options=RecallOptions(floor=0.0)), Recalled)


def test_feedback_is_written_down_and_teaches_the_asker_Q6_T3(daemon: Any) -> None:
    with daemon.client() as client:
        texts = [f"The {word} queue is number {n}." for n, word in enumerate(WORDS)]
        bring(client, [record("personal", f"n{n}", n, text) for n, text in enumerate(texts)])
        asked = Recall(query="queue number", agent="critic", limit=3)
        answer, learnt = client.ask(asked, Recalled), 0
        for _ in range(36):
            answer = client.ask(asked, Recalled)
            told = client.feedback(answer.recall, used=[answer.hits[0].record.id])
            learnt = told.learnt_from
        assert learnt >= 100
        again = client.feedback("0123abcd1", wrong=[answer.hits[0].record.id])
        assert again.samples == 0 and again.note
        with pytest.raises(NotFound):
            client.feedback(used=["nowhere"])
        with pytest.raises(InvalidRequest):
            client.feedback(answer.recall)
        kinds = [str(entry.operation.__struct_config__.tag) for entry in client.journal(limit=500).entries]
        assert kinds.count("feedback") == 37
        scorers = daemon.places.data / "projections" / "scorers.json"
        end = time.monotonic() + 90
        while not scorers.exists() and time.monotonic() < end:
            time.sleep(0.1)
        assert scorers.exists(), daemon.places.log.read_text()[-2000:]
        after = client.ask(Recall(query="queue number", agent="critic", limit=3), Recalled)
        assert after.hits


def sample(n: int) -> Sample:
    row = tuple(((n * 37 + place * 11) % 100) / 100 for place in range(len(FEATURES)))
    return Sample(str(n), row, row[1] > 0.5)


def test_the_scorer_is_the_same_from_the_same_feedback_and_learns_it_Q6() -> None:
    samples = [sample(n) for n in range(200)]
    one, two = trained(samples), trained(samples)
    assert encoded(one) == encoded(two) == encoded(decoded(encoded(one)))
    import numpy as np

    scores = one.scores(np.array([each.features for each in samples], np.float32))
    right = sum((score > 0.5) == each.wanted for score, each in zip(scores, samples, strict=True))
    assert right > 180


@given(st.floats(0, 1), st.floats(0, 1), st.floats(-0.2, 0.2), st.floats(0, 1), st.floats(-0.2, 0.2))
def test_similarity_leads_Q6(similarity: float, priority: float, standing: float, other: float, lift: float) -> None:
    score = final(similarity, priority, standing)
    assert 0 <= score <= 1 and abs(score - similarity) <= LEAD + 1e-9
    if similarity > 0.25:
        assert final(similarity - 0.25, other, lift) < score or score == 0


class Found(NamedTuple):
    """A record as it is ranked."""

    score: float
    record: Record
    alike: list[str]


def test_what_says_the_same_is_folded_and_what_differs_is_not_Q2() -> None:
    texts = [
        "The team deploys the parser on Friday evening after lunch",
        "The team deploys the parser on Friday after lunch",
        "The team never deploys the parser on Friday evening after lunch",
        "Port 8080 is open on the gateway of the lab",
        "Port 8081 is open on the gateway of the lab",
    ]
    kept = deduplicated([Found(1 - n / 10, record("personal", "t", n, text), []) for n, text in enumerate(texts)])
    assert [each.record.description for each in kept] == [texts[0], *texts[2:]]
    assert len(kept[0].alike) == 1


def test_a_budget_holds_and_chance_prefers_the_better_Q9_Q10() -> None:
    records = [record("personal", "t", n, "word " * (5 + 40 * (n == 1)), signal=Signal()) for n in range(6)]
    taken = list(within(records, 5, 60))
    assert records[1] not in [each for each, _ in taken] and len(taken) > 2
    assert sum(price for _, price in taken) <= 60
    rolls = iter(range(10**6))
    dice = lambda size: (next(rolls) * 2_654_435_761 % 2 ** (8 * size)).to_bytes(size)  # noqa: E731
    ranked = [Found(0.9 - 0.15 * n, each, []) for n, each in enumerate(records)]
    first = sum(ranked[0] in by_chance(ranked, 2, dice) for _ in range(200))
    last = sum(ranked[5] in by_chance(ranked, 2, dice) for _ in range(200))
    assert first > 150 > 40 > last
