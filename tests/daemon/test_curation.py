"""The curator proposes what was said in several conversations on several days, and nothing else (G3, G4)."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from memd.daemon.forgetting_rules import Rules
from memd.daemon.services.curation.instances import EvidenceInstance, confidence, independent
from memd.daemon.services.lifecycle.review import condition
from memd.protocol.curation import LayerRule, Thresholds
from memd.protocol.event import Checked, Committed, Said, ToolCalled
from memd.protocol.operation import Added, ChangeDecided, Decision, Invalidated, Neighbour, PatchApplied, PatchStep
from memd.protocol.record import Artifact, Review
from tests.conftest import EXAMPLES

from .curated import AGAIN, DAY, PROJECT, PUSH, Orchard
from .living import WHY
from .test_document_links import git, write


@pytest.fixture
def orchard(tmp_path: Path) -> Iterator[Orchard]:
    found = Orchard(tmp_path)
    yield found
    found.close()


def repository(folder: Path, text: str, name: str = "GUIDE.md", day: int = 0) -> tuple[str, str]:
    """A repository with one document, committed today or on a day of January 2026; its path, and its commit."""
    root = folder / "repository"
    root.mkdir()
    git(root, "init", "-q", "-b", "main")
    write(root, name, text)
    at = f"2026-01-{day:02}T08:00:00Z"
    git(root, "add", "-A")
    git(root, "commit", "-q", "-m", "Work", **({"GIT_AUTHOR_DATE": at, "GIT_COMMITTER_DATE": at} if day else {}))
    return str(root / name), git(root, "rev-parse", "HEAD")


# --- the table of evidence -----------------------------------------------------------------------------------------
def one_session(o: Orchard) -> None:
    o.tell("pi:a", 1)
    o.tell("pi:a", 1, AGAIN)


def one_session_on_two_days(o: Orchard) -> None:
    o.tell("pi:a", 1)
    o.tell("pi:a", 2, AGAIN)


def two_sessions_of_one_day(o: Orchard) -> None:
    o.tell("pi:a", 1)
    o.tell("pi:b", 1, AGAIN)


def a_fork(o: Orchard) -> None:
    o.tell("pi:a", 1)
    family = o.stores.sources.sessions_of(["pi:a"])["pi:a"].family
    o.tell("pi:b", 2, AGAIN, family=family)


def a_turn_copied_into_a_file_of_no_known_family(o: Orchard) -> None:
    o.tell("pi:a", 1, turn="same")
    o.tell("pi:b", 1, turn="same")


def a_subagent(o: Orchard) -> None:
    o.tell("claude-code:s", 1)
    o.tell("claude-code:s/agent1", 2, AGAIN, by="assistant")


def told_by_memd(o: Orchard) -> None:
    first = o.tell("pi:a", 1)
    o.given["pi:b"] = (first.id,)
    o.tell("pi:b", 2, AGAIN, by="assistant")


def a_saved_transcript(o: Orchard) -> None:
    answer = "I committed the last change and pushed it to the remote."
    path, _ = repository(o.folder, f"# Session\n\n## User\n\n{PUSH}\n\n## Assistant\n\n{answer}\n")
    o.tell("pi:a", 1)
    o.write(f"markdown:{path}", 2, path=f"{path}#Session > User")
    o.write(f"markdown:{path}", 2, answer, path=f"{path}#Session > Assistant", tags=("note",))


def a_transcript_without_speakers(o: Orchard) -> None:
    lines = ["The harvest table has a row for each tree and each picker.", "I committed it and pushed it to main."]
    path, _ = repository(o.folder, "\n\n".join([PUSH, *lines]))
    o.tell("pi:a", 1)
    o.capture("pi:a", Said(turn="more", at="2026-01-01T11:00:00Z", role="assistant", text=lines[0]))
    o.write(f"markdown:{path}", 2, path=f"{path}#Log")


def a_document_that_the_session_wrote_and_committed(o: Orchard) -> None:
    path, mark = repository(o.folder, PUSH)
    o.tell("pi:a", 1)
    o.capture("pi:a", ToolCalled(turn="w", at="2026-01-01T11:00:00Z", name="Write", arguments=path))
    o.capture("pi:a", Committed(turn="c", at="2026-01-01T11:01:00Z", id=mark[:7], subject="Add a guide"))
    o.write(f"markdown:{path}", 2, path=f"{path}#Guide")


def a_document_that_a_subagent_wrote(o: Orchard) -> None:
    path, mark = repository(o.folder, PUSH)
    o.tell("claude-code:s", 1)
    o.capture("claude-code:s/x", ToolCalled(turn="w", at="2026-01-01T11:00:00Z", name="Write", arguments=path))
    o.capture("claude-code:s/x", Committed(turn="c", at="2026-01-01T11:01:00Z", id=mark[:7], subject="Add a guide"))
    o.write(f"markdown:{path}", 2, path=f"{path}#Guide")


def a_document_that_no_commit_has(o: Orchard) -> None:
    path, _ = repository(o.folder, "Something else.")
    o.tell("pi:a", 1)
    o.write(f"markdown:{path}", 2, path=f"{path}#Guide")


def a_document_that_the_session_wrote_and_the_user_committed(o: Orchard) -> None:
    path, _ = repository(o.folder, PUSH)
    o.tell("pi:a", 1)
    o.capture("pi:a", ToolCalled(turn="w", at="2026-01-01T11:00:00Z", name="Write", arguments=path))
    o.write(f"markdown:{path}", 2, path=f"{path}#Guide")


def a_document_of_the_same_day(o: Orchard) -> None:
    path, _ = repository(o.folder, PUSH)
    o.tell("pi:a", 1)
    o.write(f"markdown:{path}", 1, path=f"{path}#Guide")


def an_older_document(o: Orchard) -> None:
    path, _ = repository(o.folder, PUSH, day=2)
    o.tell("pi:a", 3)
    o.write(f"markdown:{path}", 3, path=f"{path}#Guide")


def a_later_document_of_two_conversations(o: Orchard) -> None:
    path, _ = repository(o.folder, PUSH)
    o.tell("pi:a", 1)
    o.tell("pi:b", 2, AGAIN)
    o.write(f"markdown:{path}", 3, path=f"{path}#Guide")


def a_file_for_agents(o: Orchard) -> None:
    path, _ = repository(o.folder, PUSH, "AGENTS.md")
    o.tell("pi:a", 1)
    o.tell("pi:b", 2, AGAIN)
    o.write(f"markdown:{path}", 1, path=f"{path}#Rules")


def only_documents(o: Orchard) -> None:
    path, _ = repository(o.folder, PUSH)
    o.write(f"markdown:{path}", 1, path=f"{path}#Guide")
    o.write("git:root", 2, AGAIN)


def a_later_commit(o: Orchard) -> None:
    o.tell("pi:a", 1, by="assistant")
    o.write("git:root", 3, AGAIN)


def an_older_commit(o: Orchard) -> None:
    o.write("git:root", 1, AGAIN)
    o.tell("pi:a", 3, by="assistant")


def the_commit_of_the_session(o: Orchard) -> None:
    o.tell("pi:a", 1, by="assistant")
    o.capture("pi:a", Committed(turn="c", at="2026-01-01T11:01:00Z", id="abcdef1", subject="Push"))
    o.write("git:root", 1, AGAIN, turn="abcdef1234567890")


def a_merged_request(o: Orchard) -> None:
    o.write("git:root", 1, AGAIN + "\n\nFrom review (#12)")
    o.tell("pi:a", 3, by="assistant")


def a_commit_that_the_user_named(o: Orchard) -> None:
    o.tell("pi:a", 1, artifacts=(Artifact(type="commit", ref="0123456789abcdef"),))


def an_agent_on_two_days(o: Orchard) -> None:
    o.tell("pi:a", 1, by="assistant")
    o.tell("pi:b", 2, AGAIN, by="assistant")


def the_user_on_two_days(o: Orchard) -> None:
    o.tell("pi:a", 1)
    o.tell("pi:b", 2, AGAIN)


def one_record_with_evidence_of_another_day(o: Orchard) -> None:
    first = o.tell("pi:a", 1)
    again = o.restate(first, "pi:b", 4)
    source = replace(first.provenance, evidence=(again,))
    o.stores.commit([Added(record=replace(first, provenance=source), decision=WHY)])


def facts_on_two_days(o: Orchard) -> None:
    o.tell("pi:a", 1, tags=("fact",))
    o.tell("pi:b", 2, AGAIN, tags=("fact",))


def flagged_on_two_days(o: Orchard) -> None:
    o.tell("pi:a", 1, flags=("injection",))
    o.tell("pi:b", 2, AGAIN, flags=("injection",))


def a_rule_and_its_denial(o: Orchard) -> None:
    o.tell("pi:a", 1, "I always push on Fridays.")
    o.tell("pi:b", 2, "I never push on Fridays.")


def words_that_lean_on_others(o: Orchard) -> None:
    o.tell("pi:a", 1, "It sets goals and tracks my achievements each week.")
    o.tell("pi:b", 2, "It sets goals and tracks my achievements every week.")


def a_decision_in_two_projects(o: Orchard) -> None:
    o.tell("pi:a", 1, tags=("decision",))
    o.tell("pi:b", 2, AGAIN, project="project/other", pool="project/other", tags=("decision",))
    o.tell("pi:c", 3, "The orchard has pears.", tags=("fact",), pool="personal")


def a_decision_in_one_project_that_two_pools_have(o: Orchard) -> None:
    o.tell("pi:a", 1, tags=("decision",))
    o.tell("pi:b", 2, AGAIN, pool="personal", tags=("decision",))


def two_pools(o: Orchard) -> None:
    o.tell("pi:a", 1, by="assistant")
    o.tell("pi:b", 2, AGAIN, by="assistant", pool="project/other")


def the_user_in_two_projects(o: Orchard) -> None:
    o.tell("pi:a", 1)
    o.tell("pi:b", 2, AGAIN, pool="project/other")
    o.tell("pi:c", 3, "The orchard has pears.", tags=("fact",), pool="personal")


def the_user_in_a_project_and_for_all(o: Orchard) -> None:
    o.tell("pi:a", 1)
    o.tell("pi:b", 2, AGAIN, project="", pool="personal")


def personal(days: int, by: Any = "user", tags: tuple[str, ...] = ("preference",)) -> Callable[[Orchard], None]:
    def tell(o: Orchard) -> None:
        for day in range(1, days + 1):
            words = (PUSH, AGAIN, "After every finished change, always commit and push.")[day - 1]
            o.tell(f"pi:{day}", day, words, by=by, pool="personal", tags=tags)

    return tell


def two_days_of_the_user_and_one_of_an_agent(o: Orchard) -> None:
    personal(2)(o)
    o.tell("pi:3", 3, "After every finished change, always commit and push.", by="assistant", pool="personal",
           tags=("preference",))  # fmt: skip


TABLE: list[tuple[Callable[[Orchard], None], str, float]] = [
    (one_session, "", 0),
    (one_session_on_two_days, "", 0),
    (two_sessions_of_one_day, "", 0),
    (a_fork, "", 0),
    (a_turn_copied_into_a_file_of_no_known_family, "", 0),
    (a_subagent, "", 0),
    (told_by_memd, "", 0),
    (a_saved_transcript, "", 0),
    (a_transcript_without_speakers, "", 0),
    (a_document_that_the_session_wrote_and_committed, "", 0),
    (a_document_that_a_subagent_wrote, "", 0),
    (a_document_that_no_commit_has, "", 0),
    (a_document_that_the_session_wrote_and_the_user_committed, "", 0),
    (a_document_of_the_same_day, "", 0),
    (an_older_document, "L2", 0.94),
    (a_later_document_of_two_conversations, "L2", 0.95),
    (a_file_for_agents, "", 0),
    (only_documents, "", 0),
    (a_later_commit, "", 0),
    (an_older_commit, "L2", 0.82),
    (the_commit_of_the_session, "", 0),
    (a_merged_request, "L2", 0.82),
    (a_commit_that_the_user_named, "L2", 0.94),
    (an_agent_on_two_days, "L2", 0.7975),
    (the_user_on_two_days, "L2", 0.95),
    (one_record_with_evidence_of_another_day, "L2", 0.95),
    (facts_on_two_days, "", 0),
    (flagged_on_two_days, "", 0),
    (a_rule_and_its_denial, "", 0),
    (words_that_lean_on_others, "", 0),
    (a_decision_in_two_projects, "", 0),
    (a_decision_in_one_project_that_two_pools_have, "L2", 0.95),
    (two_pools, "", 0),
    (the_user_in_two_projects, "", 0),
    (the_user_in_a_project_and_for_all, "L2", 0.95),
    (personal(2), "L2", 0.95),
    (personal(3), "L1", 0.95),
    (personal(3, by="assistant"), "L2", 0.9089),
    (personal(3, tags=("lesson",)), "L2", 0.95),
    (two_days_of_the_user_and_one_of_an_agent, "L2", 0.95),
]


@pytest.mark.parametrize(
    ("told", "layer", "sure"), TABLE, ids=[f"{n} {row[0].__name__}" for n, row in enumerate(TABLE)]
)
def test_a_set_of_evidence_leads_to_the_expected_proposal_G3(
    orchard: Orchard, told: Callable[[Orchard], None], layer: str, sure: float
) -> None:
    told(orchard)
    curation = orchard.curate()
    assert [(each.layer, each.confidence) for each in curation.proposals] == ([(layer, sure)] if layer else [])
    assert len(orchard.waiting()) == len(curation.proposals)
    for proposal in curation.proposals:
        record = orchard.stores.records.get(proposal.record)
        assert record is not None and proposal.statement == record.content, "a clause that somebody said, verbatim"


WORDS = (PUSH, AGAIN, "After every finished change, always commit and push.")
turns = st.lists(
    st.tuples(
        st.integers(1, 28),
        st.sampled_from(["s", "s/agent1", "s/agent2", "fork"]),
        st.sampled_from(["user", "assistant"]),
        st.sampled_from(WORDS),
    ),
    min_size=1,
    max_size=8,
)


@settings(max_examples=25 * EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(turns, st.sampled_from(["personal", PROJECT]))
def test_nothing_of_one_conversation_ever_passes_G3(
    tmp_path_factory: pytest.TempPathFactory, told: list[tuple[int, str, Any, str]], pool: str
) -> None:
    orchard = Orchard(tmp_path_factory.mktemp("orchard"))
    try:
        orchard.tell("claude-code:s", 1, "The orchard has pears.", tags=("fact",))
        family = orchard.stores.sources.sessions_of(["claude-code:s"])["claude-code:s"].family
        for day, session, by, words in told:
            copied = family if session == "fork" else ""
            orchard.tell(f"claude-code:{session}", day, words, by=by, family=copied, pool=pool, tags=("preference",))
        assert orchard.curate(dry_run=True).proposals == ()
    finally:
        orchard.close()


instances = st.lists(
    st.builds(
        EvidenceInstance,
        st.just("user"),
        st.sampled_from("abcd"),
        st.sampled_from(["2026-01-01", "2026-01-02", "2026-01-03"]),
        st.sampled_from([0.55, 0.85]),
        st.just(""),
    ),
    max_size=12,
)


@settings(max_examples=200 * EXAMPLES, deadline=None)
@given(instances)
def test_independent_instances_share_no_conversation_and_no_day_and_are_as_many_as_can_be_G3(
    told: list[EvidenceInstance],
) -> None:
    found = independent(told)
    assert len({each.family for each in found}) == len({each.day for each in found}) == len(found)
    assert len(found) == most({(each.family, each.day) for each in told})
    assert set(found) <= set(told) and 0 <= confidence(found) <= 0.95


def most(pairs: set[tuple[str, str]]) -> int:
    """The most pairs without a common part, by trying all."""
    if not pairs:
        return 0
    first = min(pairs)
    rest = pairs - {first}
    taken = {pair for pair in rest if pair[0] != first[0] and pair[1] != first[1]}
    return max(1 + most(taken), most(rest))


def test_a_passed_check_of_what_an_agent_names_is_more_than_its_word_G3(orchard: Orchard) -> None:
    words = "Run npm test before each commit, because the hooks are slow."
    orchard.tell("pi:a", 1, words, by="assistant")
    orchard.capture("pi:a", Checked(turn="c", at="2026-01-01T11:00:00Z", what="npm test", passed=3, state="passed"))
    orchard.tell("pi:b", 2, words, by="assistant")
    (proposal,) = orchard.curate().proposals
    assert proposal.confidence == 0.82
    assert proposal.evidence[0].note == "beside a passed check"


# --- the proposal --------------------------------------------------------------------------------------------------
def test_a_proposal_has_the_users_words_its_evidence_and_what_would_change_it_G3(orchard: Orchard) -> None:
    orchard.tell("pi:a", 1, by="assistant")
    own = orchard.tell("pi:b", 2, AGAIN)
    (proposal,) = orchard.curate().proposals
    (waiting,) = orchard.waiting()
    (step,) = waiting.what.steps
    assert (waiting.what.what, waiting.what.by, waiting.what.record) == ("patch", "curator", own.id)
    assert (step.op, step.id, step.rev, step.layer, step.confidence) == ("promote", own.id, own.rev, "L2", 0.9325)
    assert step.evidence == (("user", "2026-01-02", ""), ("session", "2026-01-01", ""))
    assert step.change_condition == "3 sessions on different days say otherwise" and step.next_review > step.day
    assert proposal.statement == AGAIN and "2026-01-01" in proposal.why
    stated = condition(replace(own, review=Review(change_condition=step.change_condition)), Rules())
    assert stated is not None and (stated.least, stated.projects) == (3, False), "the review job counts it"


def test_a_record_keeps_the_change_condition_that_the_user_gave_it_G3(orchard: Orchard) -> None:
    orchard.tell("pi:a", 1, review=Review(change_condition="2 independent projects deviate"))
    orchard.tell("pi:b", 2, AGAIN, by="assistant")
    assert orchard.curate().proposals[0].change_condition == "2 independent projects deviate"


def test_what_the_user_said_in_a_project_too_is_proposed_for_the_user_by_the_personal_record_alone_R9(
    orchard: Orchard,
) -> None:
    the_user_in_a_project_and_for_all(orchard)
    (proposal,) = orchard.curate().proposals
    (step,) = orchard.waiting()[0].what.steps
    assert (proposal.pool, step.op, proposal.statement) == ("personal", "promote", AGAIN)
    record = orchard.stores.records.get(step.id)
    assert record is not None and record.pool == "personal"


def test_a_dry_run_writes_nothing_G3(orchard: Orchard) -> None:
    the_user_on_two_days(orchard)
    before = orchard.stores.journal.last
    assert len(orchard.curate(dry_run=True).proposals) == 1
    assert orchard.stores.journal.last == before and not orchard.waiting()
    orchard.curate()
    assert [entry.what.what for entry in orchard.waiting()] == ["patch"]
    assert orchard.curate().proposals == (), "once"


def test_a_run_of_one_pool_reads_no_other_G3(orchard: Orchard) -> None:
    the_user_on_two_days(orchard)
    orchard.tell("pi:z", 5, "The orchard has pears.", pool="personal")
    assert orchard.curate(pool="personal", dry_run=True).proposals == ()


# --- few proposals ---------------------------------------------------------------------------------------------------
THINGS = (
    "Name every branch after its ticket.",
    "Write commit subjects in the present tense.",
    "Format Python with ruff before a commit.",
    "Keep secrets out of the compose file.",
    "Use tabs in the Makefile of the press.",
    "Always ask before you delete a table of the harvest.",
    "Only deploy the web shop from the main branch.",
)


def many(orchard: Orchard) -> None:
    for number, words in enumerate(THINGS):
        orchard.tell(f"pi:{number}a", 1, words)
        orchard.tell(f"pi:{number}b", 2, words)


def test_at_most_five_wait_and_five_are_made_in_a_week_G4(orchard: Orchard) -> None:
    many(orchard)
    first = orchard.curate()
    assert len(first.proposals) == 5 and dict(first.left_out)["more than 5 in a week"] == 2
    for waiting in orchard.waiting():
        orchard.stores.commit([ChangeDecided(id=waiting.what.id, accepted=False)])
    assert orchard.curate().proposals == (), "the same week"
    orchard.now += 8 * DAY
    assert len(orchard.curate().proposals) == 2
    orchard.now += 8 * DAY
    assert orchard.curate().proposals == (), "what was rejected has no new evidence"


def test_a_proposal_lapses_after_thirty_days_and_a_dry_run_only_says_so_G4(orchard: Orchard) -> None:
    the_user_on_two_days(orchard)
    orchard.curate()
    orchard.now += 29 * DAY
    assert orchard.curate().lapsed == 0 and len(orchard.waiting()) == 1
    orchard.now += 2 * DAY
    assert orchard.curate(dry_run=True).lapsed == 1 and len(orchard.waiting()) == 1
    again = orchard.curate()
    assert (again.lapsed, again.open, again.proposals) == (1, 0, ()) and not orchard.waiting()


@pytest.mark.parametrize(("new", "comes"), [(1, False), (2, True)])
def test_a_rejected_belief_comes_back_with_two_new_instances_only_G4(orchard: Orchard, new: int, comes: bool) -> None:
    the_user_on_two_days(orchard)
    orchard.curate()
    orchard.stores.commit([ChangeDecided(id=orchard.waiting()[0].what.id, accepted=False)])
    for number in range(new):
        orchard.tell(f"pi:new{number}", 10 + number, (PUSH, AGAIN)[number], by="assistant")
    orchard.now += 8 * DAY
    assert bool(orchard.curate().proposals) == comes


def test_a_full_layer_gets_a_proposal_that_names_whom_to_let_go_G4(orchard: Orchard) -> None:
    orchard.thresholds = lambda pool: Thresholds(playbook=LayerRule(evidence=2, confidence=0.75, most=2))
    pinned = orchard.tell("pi:x", 1, THINGS[0], layer="L2", pinned=True, confidence=0.2)
    weak = orchard.tell("pi:x", 1, THINGS[1], layer="L2", confidence=0.8)
    the_user_on_two_days(orchard)
    (proposal,) = orchard.curate().proposals
    assert (proposal.let_go, proposal.let_go_statement) == (weak.id, THINGS[1]) and pinned.id != weak.id
    steps = orchard.waiting()[0].what.steps
    assert [(step.op, step.id) for step in steps][1:] == [("deprecate", weak.id)]
    assert orchard.curate(dry_run=True).notes == (f"L2 of {PROJECT} is full: 2 of 2 records",)


def test_what_the_playbook_says_already_is_proposed_as_a_merge_T12(orchard: Orchard) -> None:
    held = orchard.tell("pi:x", 1, THINGS[1], layer="L2")
    for session, day in (("pi:a", 2), ("pi:b", 3)):
        orchard.tell(session, day, "Write commit subjects in the present tense, always.")
    (proposal,) = orchard.curate().proposals
    assert (proposal.kind, proposal.against) == ("merge", held.id)
    assert (orchard.waiting()[0].what.what, orchard.waiting()[0].what.against) == ("duplicate", held.id)


def test_the_rules_of_a_pool_decide_G3(orchard: Orchard) -> None:
    the_user_on_two_days(orchard)
    strict = LayerRule(evidence=3, confidence=0.75, most=300)
    orchard.thresholds = lambda pool: Thresholds(playbook=strict)
    assert orchard.curate(dry_run=True).proposals == ()
    tagged = LayerRule(evidence=2, confidence=0.75, most=300, tags=("workflow",))
    orchard.thresholds = lambda pool: Thresholds(playbook=tagged)
    assert dict(orchard.curate(dry_run=True).left_out)["none of its tags is allowed in L2"] == 1
    loose = LayerRule(evidence=1, confidence=0.1, most=300)
    orchard.thresholds = lambda pool: Thresholds(playbook=loose)
    assert len(orchard.curate(dry_run=True).proposals) == 1


def test_one_conversation_is_too_little_under_any_policy_G3(orchard: Orchard) -> None:
    one_session_on_two_days(orchard)
    orchard.thresholds = lambda pool: Thresholds(playbook=LayerRule(evidence=1, confidence=0.1, most=300))
    assert orchard.curate(dry_run=True).proposals == ()


# --- the maintainer ------------------------------------------------------------------------------------------------
def test_a_contradicted_record_of_the_playbook_is_proposed_to_go_G4(orchard: Orchard) -> None:
    held = orchard.tell("pi:a", 1, layer="L2")
    assert orchard.curate(dry_run=True).proposals == ()
    other = orchard.tell("pi:b", 5, "We squash and push once a day instead.", needs_review=True)
    near = Decision(action="add", reason="against", neighbours=(Neighbour(held.id, 1, 0.9, "contradicts"),))
    orchard.stores.commit([Added(record=other, decision=near)])
    (proposal,) = orchard.curate().proposals
    (step,) = orchard.waiting()[0].what.steps
    assert (proposal.kind, proposal.by, proposal.against) == ("deprecate", "maintainer", other.id)
    assert (step.op, step.id) == ("deprecate", held.id)
    still = orchard.stores.records.get(held.id)
    assert still is not None and still.status == "active", "only proposed"
    orchard.now += 8 * DAY
    assert orchard.curate().proposals == (), "once"


def test_two_records_of_the_playbook_that_say_the_same_are_proposed_as_one_G4(orchard: Orchard) -> None:
    first = orchard.tell("pi:a", 1, "Always commit and push after every change.", layer="L2", confidence=0.9)
    second = orchard.tell("pi:b", 2, "always commit and push after every change", layer="L2", confidence=0.8)
    (proposal,) = orchard.curate().proposals
    (step,) = orchard.waiting()[0].what.steps
    assert (proposal.kind, step.op, step.id, step.to) == ("merge", "supersede", second.id, first.id)


def test_a_lapsed_review_becomes_a_step_of_a_patch_G4(orchard: Orchard) -> None:
    held = orchard.tell("pi:a", 1, layer="L2", confidence=0.6)
    step = PatchStep(op="promote", id=held.id, rev=1, layer="L2", confidence=0.9)
    patch = PatchApplied(
        pool=PROJECT, patch="patch_20260101_a", day="2026-01-01", generated_by="curator", steps=(step,)
    )
    orchard.stores.commit([patch])
    (proposal,) = orchard.curate().proposals
    (step,) = orchard.waiting()[0].what.steps
    assert (proposal.kind, step.op, step.confidence) == ("review", "review", 0.6)
    orchard.stores.commit([replace(patch, patch="patch_20260102_a", steps=(step,))])
    orchard.stores.commit([ChangeDecided(id=orchard.waiting()[0].what.id, accepted=True)])
    orchard.now += 8 * DAY
    assert orchard.curate().proposals == (), "the patch says it now"


def test_a_proposal_of_records_that_changed_meanwhile_is_not_written_G3(orchard: Orchard) -> None:
    the_user_on_two_days(orchard)
    proposals = orchard.curate(dry_run=True).proposals
    orchard.stores.commit([Invalidated(id=proposals[0].record, valid_to="", reason="a test")])
    assert orchard.curate().proposals == ()
