"""What an agent tells twice in a session is kept once, where it is told best; two things stay two (P-7, U5)."""

from collections.abc import Callable

import msgspec
import pytest

from memd.protocol.event import Said
from memd.protocol.record import Record
from memd.stages.batch import Batch, Candidate, Proposal
from memd.stages.reconcile import judge
from memd.stages.restatement import told_again

Distil = Callable[..., Batch]

REMARK = "The worker process can't see the order because the transaction of the running test is open."
SUMMED_UP = (
    "**Worker test**: the worker process can't see the order because the transaction of the test is open. "
    "Fixed by committing the order in the setup, which must be deleted afterwards."
)


@pytest.fixture
def record(distil: Distil) -> Callable[..., Record]:
    """A statement of an assistant as the note it becomes, said in one turn of a session."""

    def made(words: str, turn: int = 1, document: str = "test:one") -> Record:
        event = Said(turn=f"t{turn}", at=f"2026-03-10T09:{turn:02d}:00+01:00", role="assistant", text=REMARK)
        (candidate,) = distil(event, project="project/x", document=document).candidates
        (proposal,) = judge([candidate], {})
        return msgspec.structs.replace(proposal.record, content=words, id=f"{document}{turn}{words}")

    return made


def told(distil: Distil, *turns: str) -> dict[str, Proposal]:
    events = [
        Said(turn=f"t{at}", at=f"2026-03-10T09:{at:02d}:00+01:00", role="assistant", text=text)
        for at, text in enumerate(turns)
    ]
    found: tuple[Candidate, ...] = distil(*events, project="project/x").candidates
    return {each.record.content: each for each in judge(found, {})}


def test_a_summary_takes_the_place_of_a_remark_P7(distil: Distil) -> None:
    found = told(distil, REMARK, f"Errors and fixes:\n- {SUMMED_UP}\n")
    assert [each.record.id for each in found.values()][:1] == [found[SUMMED_UP].retires[0].id]
    assert "more fully" in found[SUMMED_UP].decision.reason


def test_a_remark_that_comes_after_its_summary_adds_nothing_P7(distil: Distil) -> None:
    found = told(distil, f"Errors and fixes:\n- {SUMMED_UP}\n", REMARK)
    assert found[REMARK].decision.action == "noop" and found[REMARK].target == found[SUMMED_UP].record.id


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("The staging server runs Postgres behind a proxy.", "The production server runs Postgres behind a proxy."),
        ("`set_model()` validates the key and saves to the session.", "`set_level()` saves to the session."),
        ("The export takes 40 seconds for a year of bookings.", "The export takes 90 seconds for all the bookings."),
        ("The cache expires entries.", "The cache never expires entries, so the nightly job clears the folder."),
        ("GET /users returns the list of users.", "GET /orders returns the list of orders."),
    ],
)
def test_two_things_of_one_form_stay_two_P8(record: Callable[..., Record], one: str, other: str) -> None:
    first, second = record(one), record(other, 2)
    assert not told_again(first, second, 0.95) and not told_again(second, first, 0.95)


def test_the_fuller_one_stays_whichever_was_said_first_P7(record: Callable[..., Record]) -> None:
    brief, full = "The worker process can't see the order.", SUMMED_UP
    assert told_again(record(full, 1), record(brief, 2), 0.8) and told_again(record(full, 2), record(brief, 1), 0.8)
    assert not told_again(record(brief, 2), record(full, 1), 0.8)


def test_another_session_that_says_it_is_evidence_and_no_retelling_P7(record: Callable[..., Record]) -> None:
    assert not told_again(record(SUMMED_UP, 2, "test:two"), record(REMARK), 0.9)


def test_what_an_agent_means_to_do_about_a_finding_is_no_part_of_what_it_tells_P7(
    record: Callable[..., Record],
) -> None:
    assert told_again(
        record(SUMMED_UP, 2), record(f"{REMARK} I need to use the `:auto` mode for the worker here."), 0.8
    )


def test_what_an_agent_notes_down_of_its_users_words_adds_nothing_to_them_P19(distil: Distil) -> None:
    wish = Said(turn="t1", at="2026-03-10T09:01:00+01:00", role="user", text="I would only want end-to-end tests here.")
    for heading, trusts in (("User preferences", ["user"]), ("Team conventions", ["assistant", "user"])):
        note = Said(
            turn="t2",
            at="2026-03-10T09:02:00+01:00",
            role="assistant",
            text=f"## {heading}\n\n- Only end-to-end tests, no unit tests\n- Commits after each larger change\n",
        )
        for events in ((wish, note), (note, wish)):
            proposals = judge(distil(*events, project="project/x").candidates, {})
            gone = {retired.id for each in proposals for retired in each.retires}
            kept = [each.record for each in proposals if each.decision.action == "add" and each.record.id not in gone]
            assert sorted(each.provenance.trust for each in kept) == trusts
            assert not any("unit" in each.content for each in kept)
