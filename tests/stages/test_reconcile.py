"""Reconcile: one decision a candidate, a change keeps history, precedence is never arrival (W6, T1, P-8)."""

import json
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memd.protocol.event import Noted, Said
from memd.protocol.record import Record
from memd.stages.batch import Batch, Candidate, Known, Proposal
from memd.stages.reconcile import candidate_id, explicit_id, judge
from memd.stages.rules import VERSION

DATA = Path(__file__).resolve().parents[1]
Distil = Callable[..., Batch]
Judge = Callable[..., list[Proposal]]
PAIRS = [DATA.parent / "clients" / "bench" / "samples" / "contradictions.json", DATA / "stages" / "data" / "pairs.json"]


def said(text: str, role: str = "user", turn: str = "t1", at: str = "2026-03-10T09:00:00+01:00") -> Said:
    return Said(turn=turn, at=at, role="assistant" if role == "assistant" else "user", text=text)


def noted(text: str, turn: str = "t1", at: str = "2026-03-10T09:00:00+01:00") -> Noted:
    return Noted(turn=turn, at=at, text=text)


def retired(proposal: Proposal) -> list[str]:
    return [retirement.id for retirement in proposal.retires]


def known(record: Record, similarity: float = 0.9) -> Known:
    return Known(record=record, similarity=similarity)


@pytest.mark.slow
@pytest.mark.parametrize("path", PAIRS, ids=lambda path: path.stem)
def test_a_change_retires_the_old_and_a_second_thing_stays_beside_it_T1(remembered: Judge, path: Path) -> None:
    pairs = json.loads(path.read_text(encoding="utf-8"))
    right = {"change": 0, "keep": 0}
    total = {"change": 0, "keep": 0}
    for pair in pairs:
        old, new = remembered(pair["old"], pair["new"])
        keep = pair["shape"] == "keep"
        total["keep" if keep else "change"] += 1
        expected = [] if keep else [old.record.id]
        right["keep" if keep else "change"] += retired(new) == expected and new.record.status == "active"
    assert right["change"] >= 0.85 * total["change"]
    assert right["keep"] >= 0.9 * total["keep"]


def test_the_same_key_with_another_value_replaces_and_says_so_by_id(remembered: Judge) -> None:
    old, new = remembered("I prefer tabs.", "I now prefer spaces.")
    assert old.record.key == new.record.key == "user.prefers.indentation"
    assert retired(new) == [old.record.id] == list(new.record.supersedes)
    assert new.decision.reason == f"same key user.prefers.indentation, other value: replaces {old.record.id}"
    assert new.retires[0].valid_to == new.record.valid_from
    assert [(each.id, each.label) for each in new.decision.neighbours] == [(old.record.id, "replaces")]


def test_a_reason_never_quotes_another_record(remembered: Judge) -> None:
    _, new = remembered("I keep my bike in the basement.", "I keep my bike in the garage.")
    told = new.decision.reason + " ".join(step.what for step in new.decision.steps) + new.retires[0].reason
    assert "basement" not in told


def test_an_older_statement_that_arrives_late_is_history_from_the_start_W6(distil: Distil) -> None:
    newer = judge(distil(said("I prefer tabs.", turn="b", at="2026-03-10T09:00:00Z")).candidates, {})[0].record
    late = distil(said("I prefer spaces.", turn="a", at="2025-01-10T09:00:00Z"), document="test:two").candidates
    (proposal,) = judge(late, {candidate_id(late[0]): [known(newer)]})
    assert (proposal.record.status, proposal.record.superseded_by) == ("retired", newer.id)
    assert proposal.record.valid_to == newer.valid_from
    assert proposal.retires == () and proposal.decision.action == "add"


def test_the_order_of_arrival_changes_nothing(distil: Distil) -> None:
    events = [
        said("I live in Rome.", turn="1", at="2024-03-10T09:00:00Z"),
        said("I live in Oslo.", turn="2", at="2025-03-10T09:00:00Z"),
        said("I live in Bonn.", turn="3", at="2026-03-10T09:00:00Z"),
    ]
    for order in ([0, 1, 2], [2, 1, 0], [1, 2, 0], [2, 0, 1], [0, 2, 1], [1, 0, 2]):
        proposals = judge(distil(*(events[at] for at in order)).candidates, {})
        gone = {id_ for proposal in proposals for id_ in retired(proposal)}
        live = [p.record.content for p in proposals if p.record.status == "active" and p.record.id not in gone]
        assert live == ["I live in Bonn."], order


def test_world_time_comes_before_event_time_where_both_claims_name_theirs(distil: Distil) -> None:
    now = said("I have lived in Rome since 2023.", turn="1", at="2026-03-10T09:00:00Z")
    then = said("I moved to Oslo in 2019.", turn="2", at="2026-04-10T09:00:00Z")
    first, second = judge(distil(now, then).candidates, {})
    assert (first.record.status, second.record.status) == ("active", "retired")
    assert second.record.superseded_by == first.record.id


def test_an_assistant_never_retires_what_the_user_said_P19(distil: Distil) -> None:
    user = judge(distil(said("The rate limit is 100 requests per minute.")).candidates, {})[0].record
    told = distil(said("The rate limit is 500 requests per minute by default.", "assistant", "t2")).candidates
    clash = msgspec.structs.replace(told[0], key=user.key, kind="fact", value="500 requests per minute", pool=user.pool)
    (proposal,) = judge([clash], {candidate_id(clash): [known(user)]})
    assert proposal.retires == ()
    assert proposal.record.needs_review and proposal.record.status == "quarantined"


@pytest.mark.parametrize("name", ["", "agent:claude-code", "remote:ollama/qwen3:8b"])
def test_another_reader_never_retires_what_the_user_said_W4(distil: Distil, name: str) -> None:
    old = judge(distil(said("I prefer tabs.")).candidates, {})[0].record
    (candidate,) = distil(said("I now prefer spaces.", turn="t2", at="2026-04-10T09:00:00+01:00")).candidates
    pointed = msgspec.structs.replace(candidate, reader=name)
    (proposal,) = judge([pointed], {candidate_id(pointed): [known(old)]})
    assert retired(proposal) == ([] if name else [old.id]), "memd's own reader retires it"
    assert proposal.record.needs_review == bool(name)
    assert [(each.held, each.fresh) for each in proposal.conflicts] == ([(old.id, proposal.record.id)] if name else [])


def test_the_user_retires_what_an_assistant_said(distil: Distil) -> None:
    words = "The nightly backups are stored in `/srv/backup`."
    guess = judge(distil(said(words, "assistant", "t0"), project="project/x").candidates, {})
    assert len(guess) == 1
    mine = distil(said("The nightly backups are stored in `/mnt/nas`.", turn="t2"), project="project/x").candidates
    (proposal,) = judge(mine, {candidate_id(mine[0]): [known(guess[0].record)]})
    assert retired(proposal) == [guess[0].record.id]


def test_said_again_is_evidence_and_said_in_the_same_turn_is_none_P7(distil: Distil) -> None:
    first, again = judge(distil(said("I prefer tabs.", turn="1"), said("I prefer tabs.", turn="2")).candidates, {})
    assert (again.decision.action, again.target) == ("noop", first.record.id)
    assert again.evidence is not None and again.evidence.span.turn == "2"
    _, same = judge(distil(said("I prefer tabs. I prefer tabs.", turn="1")).candidates, {})
    assert (same.decision.action, same.evidence) == ("noop", None)


def test_an_assistant_repeating_its_session_is_no_evidence_P6(distil: Distil) -> None:
    words = "The generated migration uses `ALTER TABLE`, which SQLite doesn't support."
    _, again = judge(distil(said(words, "assistant", "1"), said(words, "assistant", "2")).candidates, {})
    assert (again.decision.action, again.evidence) == ("noop", None)


def test_a_replayed_clause_changes_nothing_P7(distil: Distil) -> None:
    candidates = distil(said("I prefer tabs. My wife's name is Ana.")).candidates
    before = {each.record.id: each.record for each in judge(candidates, {})}
    after = judge(candidates, {id_: [known(record) for record in before.values()] for id_ in before})
    assert [(each.decision.action, each.evidence) for each in after] == [("noop", None)] * len(candidates)


def test_asked_to_remember_refines_its_provisional_record_in_place_W1(distil: Distil) -> None:
    candidates = distil(noted("I prefer tabs.", "note-7")).candidates
    id_ = explicit_id("test:one", "note-7")
    assert candidate_id(candidates[0]) == id_
    done = judge(candidates, {})[0].record
    provisional = msgspec.structs.replace(done, status="provisional", rev=1, description="I prefer tabs.", learned_at=7)
    (proposal,) = judge(candidates, {id_: [known(provisional, 1.0)]})
    assert (proposal.decision.action, proposal.record.id, proposal.record.rev) == ("update", id_, 2)
    assert (proposal.record.status, proposal.record.kind, proposal.record.learned_at) == ("active", "fact", 7)


def test_two_projects_do_not_overrule_each_other_P17(distil: Distil) -> None:
    first = judge(distil(said("We use pnpm for this."), project="project/a").candidates, {})[0].record
    other = distil(said("We use yarn for this.", turn="t2"), project="project/b").candidates
    (proposal,) = judge(other, {candidate_id(other[0]): [known(first)]})
    assert proposal.retires == () and proposal.record.status == "active"


def test_the_record_is_complete(remembered: Judge, distil: Distil) -> None:
    words = "Always use pnpm. " + "word " * 150
    candidate: Candidate = distil(noted(words)).candidates[0]
    record = judge([candidate], {}, distiller="rules+model")[0].record
    where = record.provenance.spans[0]
    assert record.provenance.quote == words[where.start : where.end] and len(record.provenance.quote) == 500
    assert (record.provenance.author, record.provenance.source, record.provenance.trust) == ("ada", "test:one", "user")
    assert (record.provenance.distiller, record.provenance.rules) == ("rules+model", VERSION)
    assert record.content == words and record.tags[0] == candidate.type and record.layer == "L3"
    assert len(record.description) <= 200 and "\n" not in record.description


def test_of_two_notes_of_an_agent_the_fuller_one_stands_in_any_order_P7(distil: Distil) -> None:
    short = "The compaction entry has `tokensBefore` but not `tokensAfter`."
    full = "The compaction entry has `tokensBefore` but not `tokensAfter`, because the summary is not counted."
    for texts in ((short, full), (full, short)):
        events = [said(text, "assistant", f"t{at}", f"2026-03-1{at}T09:00:00Z") for at, text in enumerate(texts)]
        first, second = judge(distil(*events, project="project/x").candidates, {})
        standing = [first.record] if second.decision.action == "noop" else [second.record]
        assert [record.content for record in standing] == [full]
        assert retired(second) == ([first.record.id] if texts[0] == short else [])


def test_what_the_user_says_in_fewer_words_stays_beside_it(distil: Distil) -> None:
    short, full = "Our staging server is in Frankfurt.", "Our staging server is in Frankfurt, behind the old gateway."
    events = [said(text, "user", f"t{at}", f"2026-03-1{at}T09:00:00Z") for at, text in enumerate((short, full))]
    proposals = judge(distil(*events, project="project/x").candidates, {})
    assert [proposal.record.status for proposal in proposals] == ["active", "active"]
    assert [retired(proposal) for proposal in proposals] == [[], []]


@given(order=st.permutations(range(7)))
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_what_is_believed_does_not_hang_on_the_order_of_arrival_W13(distil: Distil, order: list[int]) -> None:
    words = (
        ("I prefer tabs over spaces.", "user"),
        ("I now prefer spaces.", "user"),
        ("I switched from Slack to Zulip for chat.", "user"),
        ("The compaction entry has `tokensBefore` but not `tokensAfter`.", "assistant"),
        ("The compaction entry has `tokensBefore` but not `tokensAfter`, because nobody counts them.", "assistant"),
        ("**Root cause**: the pool was exhausted because sessions were never closed.", "assistant"),
        ("My sister lives in Rome.", "user"),
    )
    events = [said(text, who, f"t{at}", f"2026-03-1{at}T09:00:00Z") for at, (text, who) in enumerate(words)]
    arrived = [distil(events[at], project="project/x").candidates[0] for at in order]
    believed: dict[str, str] = {}
    for proposal in judge(arrived, {}):
        if proposal.decision.action != "noop" and proposal.record.status != "retired":
            believed[proposal.record.id] = proposal.record.content
        for gone in retired(proposal):
            believed.pop(gone, None)
    assert set(believed.values()) == {text for at, (text, _) in enumerate(words) if at not in {0, 3}}
