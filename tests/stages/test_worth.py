"""What an agent says is worth keeping where it outlasts the step that it says it for (P-5, U5)."""

from collections.abc import Callable

import pytest

from memd.protocol.event import Said
from memd.stages.batch import Batch

Distil = Callable[..., Batch]
AT = "2026-03-10T09:00:00+01:00"


def learnt(distil: Distil, *turns: str, role: str = "assistant") -> list[str]:
    """What a project learns of these turns, as its descriptions say it."""
    said = "assistant" if role == "assistant" else "user"
    events = [Said(turn=f"t{at}", at=AT, role=said, text=text) for at, text in enumerate(turns)]
    return [one.description for one in distil(*events, project="project/x").candidates]


def reasons(distil: Distil, text: str) -> list[str]:
    return [one.reason for one in distil(Said(turn="t", at=AT, role="assistant", text=text), project="p").rejections]


LESSONS = (
    "**Root cause**: the connection pool was exhausted because sessions were never closed.",
    "The Stripe webhook retries on any non-2xx answer, which is why the order was charged twice.",
    "It turns out that pandas silently converts the ids to floats when a row is missing.",
    "Kubernetes only injects the secret at pod start, so rotating it needs a restart.",
    "Postgres can't use the index because the query casts the column to text.",
    "Terraform destroys the bucket when the name changes because names are immutable.",
)
REASONS_FOR_A_STEP = (
    "The config loader doesn't know the new field.",
    "The button isn't shown because the flag is off in the dev config.",
    "This function takes three arguments, but the caller passes two.",
    "The Dockerfile copies the whole folder, which is why the build is slow.",
    "The type is wrong because the mapper returns a list.",
    "The stylesheet is in `public/build/` which is gitignored.",
)


@pytest.mark.parametrize("words", LESSONS)
def test_a_lesson_told_between_two_steps_is_kept_P5(distil: Distil, words: str) -> None:
    assert len(learnt(distil, f"{words} Let me look at the callers.")) == 1


@pytest.mark.parametrize("words", REASONS_FOR_A_STEP)
def test_why_the_next_step_is_taken_is_forgotten_with_it_P5(distil: Distil, words: str) -> None:
    assert learnt(distil, f"{words} Let me change that:") == []


SETTINGS = (
    "The default branch is `trunk`.",
    "The session timeout is 30 minutes.",
    "Default port is 8443.",
)


def test_what_an_agent_finds_out_on_the_way_is_a_lesson_P5(distil: Distil) -> None:
    told = 'LedgerLive auto-generates `handle_event("toggle_row", params, socket)`.'
    said = f"{told} So I don't need a manual one. Let me remove my handler."
    event = Said(turn="t", at=AT, role="assistant", text=said)
    assert [one.type for one in distil(event, project="project/x").candidates] == ["lesson"]
    event = Said(turn="t", at=AT, role="assistant", text="Default port is 8443. Let me look at the callers.")
    assert [one.type for one in distil(event, project="project/x").candidates] == ["fact"]


@pytest.mark.parametrize("words", SETTINGS)
def test_what_something_is_set_to_outlasts_the_step_P5(distil: Distil, words: str) -> None:
    def narrated(told: str) -> bool:
        return any(each.startswith("narrated") for each in reasons(distil, f"Good. {told} Let me look at the callers."))

    assert not narrated(words)
    assert narrated("The default is not what we expected.")


def test_an_error_is_a_lesson_where_it_says_why_or_what_works_instead_P5(distil: Distil) -> None:
    told = learnt(
        distil,
        "Errors and fixes:\n"
        "- **Missing environment variable**: Added `MAIL_HOST` to the compose file.\n"
        "- **Unknown column**: Renamed `total` to `amount` in the mapper.\n"
        '- **Rejected upload**: error "Cannot read, because the part is empty." Fixed by adding the part\'s length.\n'
        "- **Flaky export test**: the clock of the container can't be set, so the test freezes time in the app "
        "instead of waiting.\n",
    )
    assert len(told) == 1 and told[0].startswith("Flaky export test")


def test_what_was_done_belongs_to_the_item_that_names_it_P5(distil: Distil) -> None:
    item = "Mail tests: The project had no mail server for tests. Added a stub server, which all tests must use."
    (told,) = learnt(distil, f"Problem solving:\n- {item}\n")
    assert told == item.rstrip(".") or told == item


def test_a_term_is_kept_with_all_that_is_said_of_it_R2(distil: Distil) -> None:
    told = learnt(
        distil,
        "2. Key Technical Concepts:\n"
        "   - **Outbox (ob)** - Table of events that a worker publishes after a commit. `publish/2` for single ones.\n"
        "   - **Ledger service** - Append-only store of bookings that all reports are made from\n"
        "   - Inputs: what is fed into the ledger\n"
        "   - **Shared layout** - Moving the header and the footer into one template\n"
        "   - React, TypeScript, hooks, context\n",
    )
    assert [line.split(" - ")[0] for line in told] == ["Outbox (ob)", "Ledger service"]
    assert "`publish/2` for single ones" in told[0]


def test_what_a_team_wants_is_known_by_its_heading(distil: Distil) -> None:
    told = learnt(
        distil, "## Team Conventions\n- **E2E tests only** - no unit tests\n- `make check` must pass before\n"
    )
    assert told[0] == "E2E tests only - no unit tests"
    assert learnt(distil, "i would only want property tests for the parser, anything else is noise.", role="user")
    assert learnt(distil, "i would want you to add a button", role="user") == []


@pytest.mark.parametrize(
    "item",
    [
        "Removed `old_door.py`, `old_store.py` (unused) and `helpers.py`",
        "Renamed `door_new.py` → `door.py`",
        "`Ledger` (412 lines): core of all bookings shared by the reports",
        "The project already has `ruff` as a dependency, with its configuration in `pyproject.toml`",
        "`make fetch` can download them from the mirror automatically",
        "Consolidated `load` and `reload` into one `read()` method with options",
        "Keep the old importer for reference - the new one lives in `importer_new.py`",
        "The exporter now has a robust core and provides complete reports with rich charts",
        "Since we share the `panel` template, the tooltip needs to be moved into it.",
    ],
)
def test_the_state_of_the_work_is_no_result_P5(distil: Distil, item: str) -> None:
    assert learnt(distil, f"All done. Here's a summary:\n\n**What changed**\n- {item}\n") == []


def test_them_may_be_what_the_clause_names_itself_P5(distil: Distil) -> None:
    words = "Exporters hold all rows in memory because the driver can't stream them without a cursor."
    assert "dangling" not in reasons(distil, words)
    assert "dangling" in reasons(distil, "The driver can't stream them without a cursor because it buffers.")


def test_what_an_exit_code_means_is_no_state_of_a_run(distil: Distil) -> None:
    assert learnt(distil, "You must exit with code 3 for the scheduler to run the job again.")
    assert learnt(distil, "The second run exited with code 3 because of the lock.") == []


def test_what_a_summary_says_plainly_needs_no_cue_and_what_is_to_be_cleaned_up_is_none_P5(distil: Distil) -> None:
    gained = "Guest users get every page that members have, but for billing and exports"
    repeated = "**Code duplication:** the retry loop is essentially identical in the importer and the exporter"
    assert learnt(distil, f"Key insights:\n- {gained}\n- {repeated}\n") == [gained]


def test_what_the_user_lays_down_needs_no_cue_P5(distil: Distil) -> None:
    ruling = "no, refunds go through the ledger, not through the payment provider"
    assert learnt(distil, ruling, role="user") == ["Refunds go through the ledger, not through the payment provider"]
