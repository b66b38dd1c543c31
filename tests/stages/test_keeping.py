"""Which records of a session are worth keeping, and what they need to be understood alone (P-5, R2, U5)."""

from collections.abc import Callable

import pytest

from memd.protocol.event import Said
from memd.stages.batch import Batch, Candidate
from memd.stages.subjects import dangling, description

Distil = Callable[..., Batch]
AT = "2026-03-10T09:00:00+01:00"


def kept(distil: Distil, text: str, role: str = "assistant", project: str = "project/x") -> tuple[Candidate, ...]:
    said = "assistant" if role == "assistant" else "user"
    return distil(Said(turn="t", at=AT, role=said, text=text), project=project).candidates


def told(distil: Distil, text: str, role: str = "assistant") -> list[str]:
    return [one.description for one in kept(distil, text, role)]


def test_a_walk_through_a_file_is_forgotten_unless_it_says_why_P5(distil: Distil) -> None:
    walk, plain = "- Unpaid orders never reach the warehouse", "## Order flow\n\n**Save order**\n"
    assert told(distil, plain + walk) == ["Unpaid orders never reach the warehouse (Order flow)"]
    assert told(distil, plain.replace("order**", "order (lines 20-61):**") + walk) == []
    why = "- Orders are stored with their outbox row, so that none is announced and then lost"
    assert told(distil, plain.replace("order**", "order (lines 20-61):**") + why)


def test_an_item_is_told_with_the_item_that_holds_it_R2(distil: Distil) -> None:
    report = (
        "All done. Here's a summary:\n\n**Epic: Reports for the accountants**\n\n"
        "1. **rep-7.2** — Reworked `ReportWriter`\n"
        "   - Removed the silent limit of 500 rows because auditors need all of them\n"
    )
    (line,) = told(distil, report)
    assert line == "Removed the silent limit of 500 rows because auditors need all of them (Reworked ReportWriter)"


def test_what_a_part_has_needs_a_heading_that_says_what_it_is_for_R2(distil: Distil) -> None:
    item = "- `ReportPanels` with shared templates for tables, charts, footers and the print view\n"
    assert told(distil, f"All done. Here's a summary:\n\n{item}") == []
    assert told(distil, f"All done. Here's a summary:\n\n**Printed reports**\n{item}") == [
        "`ReportPanels` with shared templates for tables, charts, footers and the print view (Printed reports)"
    ]


@pytest.mark.parametrize(
    "words",
    [
        "Both `CartView` and `OrderView` now use the shared layout",
        "The exporter now gets everything it lacked: filters, totals, a footer",
        "The worker now needs 300 MB instead of 6 GB.",
        "There are also 14 GB of core dumps from the `ingest` pods.",
        "**Receipt preview** - Building an index of the templates to look up the fonts",
    ],
)
def test_what_the_work_came_to_so_far_is_no_result_P5(distil: Distil, words: str) -> None:
    assert told(distil, f"All done. Here's a summary:\n\n**What changed**\n- {words}\n") == []


@pytest.mark.parametrize(
    "words",
    [
        "The `render/2` helper needs `Mail.Conn` imported.",
        'PageRouter auto-generates `handle_event("toggle_row", params, socket)`.',
        "Dialyzer says `Chain.run` returns `{:error, chain, reason}` — the error is a 3-tuple with the chain.",
        "`enqueue` is for jobs that should wake a worker.",
        "The tests use raw `ExUnit.Case`, not a case of the project.",
    ],
)
def test_what_a_named_thing_needs_or_gives_outlasts_the_step_P5(distil: Distil, words: str) -> None:
    assert [one.quote for one in kept(distil, f"{words} Let me update the callers.")] == [words]


def test_a_finding_is_kept_with_why_it_does_no_harm_P5(distil: Distil) -> None:
    words = (
        "Looking at the template, when `@missing` is set, no chart is drawn, so its data isn't read. "
        "But `mount_chart` is never called for that branch which means that `@chart` doesn't exist. "
        "That's fine because the template only reads `@chart` in the else branch."
    )
    (one,) = kept(distil, words)
    assert one.quote == words
    assert one.description.startswith("When `@missing` is set, no chart is drawn")


def test_a_command_that_put_an_error_right_is_worth_its_record_P5(distil: Distil) -> None:
    told_ = told(
        distil,
        "Problem solving:\n"
        "- **Stale classes after a rename**: `gradle clean build` resolved the order of compilation.\n"
        "- **Locked wheels on the runner**: `uv cache prune` resolved the order of installation.\n",
    )
    assert [line.split(":")[0] for line in told_] == ["Locked wheels on the runner"]


def test_a_condition_stays_with_what_it_is_about_P5(distil: Distil) -> None:
    words = (
        "**`extraHeaders`** (map): Sent with every call. If several plugins set this field, their values are merged."
    )
    (one,) = kept(distil, f"## Plugin contract\n\n### Fields\n\n- {words}\n")
    assert one.quote == words


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("Default port is 8443.", "In the project, the default port is 8443."),
        ("Good. The default branch is `trunk`.", "In the project, the default branch is `trunk`."),
        ("The session timeout is 30 minutes.", "The session timeout is 30 minutes."),
    ],
)
def test_a_setting_says_what_it_is_of_R2(distil: Distil, words: str, expected: str) -> None:
    assert told(distil, words) == [expected]


def test_a_setting_is_the_projects_only_where_nothing_else_is_spoken_of_R2() -> None:
    assert description("Default port is 6379.", "assistant", "Redis runs beside the tests.") == "Default port is 6379."
    assert description("Default port is 6379.", "assistant", "", "Redis") == "Default port is 6379 (Redis)"


def test_a_wish_that_does_not_say_so_is_told_with_its_heading_R2(distil: Distil) -> None:
    listed = told(
        distil, "## Team Conventions\n- **E2E tests only** - no unit tests\n- Git commits after big changes\n"
    )
    assert listed == ["E2E tests only - no unit tests", "Git commits after big changes (Team Conventions)"]


def test_what_an_agent_says_that_its_user_wants_is_not_learnt_from_it_P19(distil: Distil) -> None:
    assert (
        told(distil, "## User Preferences\n- **E2E tests only** - no unit tests\n- Git commits after changes\n") == []
    )


def test_a_name_is_told_with_what_it_does_not_say_itself_P5(distil: Distil) -> None:
    summary = "All done. Here's a summary:\n\n**Printed reports**\n- `{}-mode.ts`: {} mode using Writer\n"
    assert told(distil, summary.format("csv", "CSV")) == []
    assert told(distil, summary.format("print", "Simple non-interactive")) == [
        "`print-mode.ts`: Simple non-interactive mode using Writer (Printed reports)"
    ]


@pytest.mark.parametrize(
    "words",
    [
        "dont touch the tax module, legal signed it off",
        "don't mock the database in tests, we got burned by that last quarter",
        "please no emojis in commit messages",
        "and don't use any mocks",
        "don't edit the generated client by hand",
        "and dont run the migrations yourself, ever",
        "do that, but through the migrations repo, we don't change roles by hand",
        "no inline styles in the templates please",
        "let's switch to uv, pip is too slow in CI",
        "the importer returns the wrong encoding on purpose, the mainframe expects it",
        "we're on the free tier of datadog so no custom metrics please",
    ],
)
def test_what_the_user_forbids_for_good_is_kept_P5(distil: Distil, words: str) -> None:
    assert [one.quote for one in kept(distil, words, "user")] == [words]


@pytest.mark.parametrize(
    "words",
    [
        "don't commit yet",
        "don't push, i'll review first",
        "lets go with option b",
        "let's use the new endpoint for this",
        "don't read the full file",
        "don't use that, it's wrong",
        "The date picker shows the wrong day for users in Auckland.",
        "our staging cluster runs out of disk every week",
        "the csv export keeps timing out",
        "we're prototyping so I can do anything needed because uptime isn't important right now",
        "no, but 100 is too low, partners burst up to 400",
    ],
)
def test_what_the_user_wants_now_or_reports_is_not_believed_P5(distil: Distil, words: str) -> None:
    assert all(one.is_noted for one in kept(distil, words, "user"))


def test_what_something_else_did_to_it_leans_on_what_was_said_before_P5() -> None:
    assert dangling("Flyway refused it because V111 is missing on staging.")
    assert not dangling("The flag makes it impossible to resume a download.")
    assert not dangling("The worker takes a row and locks it until the commit.")


def test_what_says_why_needs_no_cue_P5(distil: Distil) -> None:
    words = (
        "`consumer-groups.sh` only lists groups with committed offsets, so a new group is invisible until it commits."
    )
    passes = (
        "The pipeline passes the files in alphabetical order, so `values.yaml` comes last and overrides the others."
    )
    assert told(distil, words) == [words] and told(distil, passes) == [passes]


def test_what_a_team_says_of_itself_is_no_identity_of_the_user_P19(distil: Distil) -> None:
    (one,) = kept(distil, "we're on the free tier of datadog so no custom metrics please", "user")
    assert (one.type, one.pool) == ("fact", "project/x")


def test_what_was_done_about_a_finding_stays_with_it_P5(distil: Distil) -> None:
    words = "The table renders on every key because `rows` is a new list each time. I memoized it."
    assert [one.quote for one in kept(distil, words)] == [words]


def test_what_is_complete_or_was_changed_is_no_plan_P5(distil: Distil) -> None:
    item = "- ✅ Comments are anchored to the text instead of to offsets, so they move with it"
    for lead in (
        "**Implementation complete!** The comments now include:",
        "**Changes made**:",
        "Refunds are implemented:",
    ):
        assert [one.quote for one in kept(distil, f"{lead}\n\n{item}\n")] == [item[4:]], lead
    for lead in ("To implement comments:", "**Changes**:"):
        assert kept(distil, f"{lead}\n\n{item}\n") == (), lead


def test_a_choice_is_kept_with_its_reason_P5(distil: Distil) -> None:
    choices = (
        "Pinned `node` to 20.11 because 20.12 breaks `sharp`",
        "Chose SQLite over Postgres because the app runs on one machine",
        "Kept the old endpoint since mobile clients below 3.2 call it",
    )
    steps = ("Added an index on `user_id` because the list was slow", "Used it because the name was confusing")
    listed = "".join(f"- {one}\n" for one in (*choices, *steps))
    assert [one.quote for one in kept(distil, f"All done. Here's a summary:\n\n{listed}")] == list(choices)


def test_a_known_limit_of_a_tool_says_itself_what_it_is_of_P5(distil: Distil) -> None:
    words = "This is a known limitation of SQLite: it doesn't support `DROP COLUMN` before 3.35."
    assert told(distil, words) == [words]
    assert "dangling" in {
        one.reason for one in distil(Said(turn="t", at=AT, role="assistant", text="This is a mess.")).rejections
    }


@pytest.mark.parametrize(
    "words",
    [
        "The test fails because the fixture creates the order without a price.",
        "The scaler isn't used in the loop, but that wouldn't cause the wrong totals.",
        "The checkpoint is 14 GB because the state of the optimizer is saved too.",
        "The README now explains the structure and how comments work, and provides instructions for both apps.",
        "The plan ensures that edits feel smooth when somebody pulls while others are writing.",
        "Key decisions:\n- No `total` in `Receipt` - The existing type only has `amount`, so `Summary` reflects that",
    ],
)
def test_what_is_looked_into_and_mended_is_none_P5(distil: Distil, words: str) -> None:
    assert told(distil, words) == []


def test_what_is_to_be_implemented_is_a_plan_P5(distil: Distil) -> None:
    item = "- **Ledger** — append-only table of bookings; a correction is a new row with a negative amount\n"
    assert told(distil, f"To implement refunds:\n\n{item}") == []


@pytest.mark.parametrize(
    ("words", "trust", "expected"),
    [
        ("The pattern is: getters are cheap, setters save.", "assistant", "Getters are cheap, setters save."),
        ("One more thing: we name branches by ticket.", "user", "We name branches by ticket."),
        ("btw i prefer squash merges", "user", "The user prefers squash merges"),
        ("i dont want state in releases", "user", "The user doesn't want state in releases"),
        ("Before we start, note that every PR needs two reviews.", "assistant", "Every PR needs two reviews."),
        ("Looking at the view, no chart is drawn.", "assistant", "No chart is drawn."),
    ],
)
def test_what_leads_to_a_statement_is_left_off_R2(words: str, trust: str, expected: str) -> None:
    assert description(words, trust, "") == expected
