"""Extract: what becomes a candidate, what does not, and why (W3, P-5, P-6, P-19)."""

from collections.abc import Callable

import msgspec
import pytest

from memd.models.distiller import Distiller
from memd.models.trunk import Trunk
from memd.protocol.event import Captured, Noted, Ran, Said, SessionEnded, ToolCalled, Wrote, text
from memd.stages.batch import Batch, Candidate, Item
from memd.stages.extract import Extract

AT = "2026-03-10T09:00:00+01:00"
Distil = Callable[..., Batch]


def said(text: str, role: str = "user", turn: str = "t1", at: str = "2026-03-10T09:00:00+01:00") -> Said:
    return Said(turn=turn, at=at, role="assistant" if role == "assistant" else "user", text=text)


def noted(text: str, turn: str = "t1", at: str = "2026-03-10T09:00:00+01:00") -> Noted:
    return Noted(turn=turn, at=at, text=text)


def only(batch: Batch) -> Candidate:
    (candidate,) = batch.candidates
    return candidate


def quotes(batch: Batch) -> list[str]:
    return [candidate.quote for candidate in batch.candidates]


def believed(batch: Batch) -> list[str]:
    return [candidate.quote for candidate in batch.candidates if not candidate.is_noted]


def test_a_quote_is_the_span_to_the_letter_P5(distil: Distil) -> None:
    batch = distil(
        said("Hello!  I prefer   tabs over spaces. Please fix the bug.\n\n- My wife’s name is Ana\n- ok"),
        said("**Root cause**: the pool was exhausted because sessions never closed. Let me fix it.", "assistant", "t2"),
        noted("  blank ends stay  ", "t3"),
        Wrote(turn="t4", at=AT, text="Switch to uv\n\nWe chose uv over pip because it resolves in parallel."),
    )
    assert len(batch.candidates) >= 4
    for candidate in batch.candidates:
        words = text(candidate.item.captured.event)
        assert words[candidate.span.start : candidate.span.end] == candidate.quote
        assert candidate.steps[0].stage == "extract"


@pytest.mark.parametrize(
    "words",
    [
        "Do I prefer tabs or spaces?",
        "should we use Postgres",
        "What if we used Postgres for this?",
        "If we used Postgres, the migration would be easier.",
        "Suppose we use Kafka for the queue.",
        "Maybe we use Redis.",
        "Please add a button to the settings page.",
        "Can you run the tests again",
        "Fix the failing test in the parser.",
        "<system-reminder>I prefer tabs over spaces.</system-reminder>",
        "thanks, that looks great!",
        "I prefer tabs. Just kidding.",
        "The login page is broken again.",
        "I live in ${CITY} and I prefer trains.",
        "My name is Jane Roe and I work as a nurse.",
        "Sure, I will love meetings when hell freezes over.",
        "I've got nothing better to do on a Sunday than rename columns.",
        "continue",
    ],
)
def test_no_candidate_from_what_is_not_stated(distil: Distil, words: str) -> None:
    batch = distil(said(words))
    assert quotes(batch) == []
    assert batch.rejections


@pytest.mark.parametrize(
    ("words", "type_"),
    [
        ("I prefer tabs over spaces.", "preference"),
        ("My name is Ada and I work as a data engineer.", "identity"),
        ("We decided to use Postgres instead of MySQL.", "decision"),
        ("Never push directly to main.", "convention"),
        ("I'll send the draft by Friday.", "commitment"),
        ("Yesterday I went to a concert with my sister.", "event"),
        ("I prefer to keep $EDITOR set to nvim.", "preference"),
    ],
)
def test_what_the_user_states_is_kept_with_its_type(distil: Distil, words: str, type_: str) -> None:
    assert only(distil(said(words))).type == type_


@pytest.mark.parametrize(
    "words",
    [
        "I don't like tabs.",
        "We never deploy on Fridays.",
        "Our API must not return HTML.",
        "Ana said that she prefers plain SQL.",
        "We can't use Redis because the host forbids it.",
    ],
)
def test_negation_modality_and_reporting_verb_stay_in_the_quote_and_the_description_P5(
    distil: Distil, words: str
) -> None:
    candidate = only(distil(said(words)))
    assert candidate.quote == words
    kept = {"don't", "never", "must", "not", "said", "can't", "because"} & set(words.lower().split())
    told = candidate.description.lower().replace("doesn't", "don't").split()
    assert kept <= set(told)


@pytest.mark.parametrize(
    "words",
    [
        "Let me check the config file.",
        "Now I'll run the tests.",
        "All 43 tests pass.",
        "I've updated the template.",
        "Everything is committed and pushed.",
        "Would you like me to continue?",
        "Task gqc.4 is ready.",
        "The import isn't used yet.",
        "I prefer tabs over spaces.",
        "I'm a backend developer from Lisbon.",
    ],
)
def test_an_assistant_narrating_teaches_nothing_P5(distil: Distil, words: str) -> None:
    assert quotes(distil(said(words, "assistant"))) == []


@pytest.mark.parametrize(
    "words",
    [
        "**Root cause**: the pool was exhausted because sessions were never closed.",
        "Chose Vite over Webpack because the dev server starts ten times faster.",
        "The generated migration uses `ALTER TABLE ... MODIFY`, which SQLite doesn't support.",
        "No ConnCase module — tests use raw `ExUnit.Case`.",
        "Default port is 1100.",
    ],
)
def test_an_assistant_finding_is_kept_in_quarantine_P19(distil: Distil, words: str) -> None:
    candidate = only(distil(said(words, "assistant"), project="project/x"))
    assert (candidate.status, candidate.pool, candidate.trust) == ("quarantined", "project/x", "assistant")
    assert candidate.type in {"decision", "lesson", "convention", "fact"}


def test_what_was_done_about_a_finding_stays_with_it(distil: Distil) -> None:
    words = "The view runs in a separate process that can't access the sandbox. I need to use the `:auto` mode for it."
    assert quotes(distil(said(words, "assistant"))) == [words]


def test_a_plan_is_no_result(distil: Distil) -> None:
    words = "I'll make these changes:\n\n- `Store` — keeps the tokens in memory\n- `Door` — validates the token"
    assert quotes(distil(said(words, "assistant"))) == []


PLAN = """# Plan: Move sessions out of Redis

## Approach

- Sessions are stored in Postgres, in the table `web_sessions`; Redis stays for the rate limiter only.

## Verification

1. Run the tests
2. Log in, redeploy, and check that the session is alive
"""


def test_a_plan_that_the_user_approved_decides_and_its_steps_do_not(distil: Distil) -> None:
    proposed = said(PLAN, "assistant")
    assert quotes(distil(proposed, project="shop")) == []
    decision = only(distil(msgspec.structs.replace(proposed, approved=True), project="shop"))
    assert decision.quote.startswith("Sessions are stored in Postgres")
    assert (decision.type, decision.status) == ("decision", "quarantined")


def left_open(*items: str) -> Wrote:
    text = "\n".join(f"- {item}" for item in items)
    return Wrote(turn="todo-list", at="2026-03-10T09:00:00+01:00", text=text, path="todo list", form="open")


def test_what_a_todo_list_leaves_open_is_a_commitment_that_is_not_believed(distil: Distil) -> None:
    batch = distil(
        left_open(
            "Port the importer to the new schema", "Tests", *(f"Move tenant {n} to Parquet files" for n in range(9))
        )
    )
    assert quotes(batch)[:2] == ["Port the importer to the new schema", "Move tenant 0 to Parquet files"]
    assert {(candidate.type, candidate.status) for candidate in batch.candidates} == {("commitment", "quarantined")}
    assert batch.candidates[0].description == "Left open: Port the importer to the new schema"
    assert len(batch.candidates) == 5


def test_asked_to_remember_is_one_candidate_whole_W2(distil: Distil) -> None:
    words = "Can you run the tests? I prefer tabs.\n\nLet me check."
    candidate = only(distil(noted(words)))
    assert (candidate.quote, candidate.ordinal, candidate.span.start, candidate.explicit) == (words, 0, 0, True)
    assert [rejection.reason for rejection in distil(noted(" \n ")).rejections] == ["blank"]


def test_a_list_of_fields_is_an_inventory_not_a_finding(distil: Distil) -> None:
    words = (
        "The hook gets:\n\n- `session_id`: the identifier of the session\n- `cwd`: the working directory of the host"
    )
    assert quotes(distil(said(words, "assistant"))) == []


def test_what_a_list_asks_for_is_part_of_the_request(distil: Distil) -> None:
    words = "I need to understand:\n\n- How the selection works in the panel\n- The service and what it returns"
    assert quotes(distil(said(words))) == []


def test_tools_and_commands_are_no_prose(distil: Distil) -> None:
    batch = distil(
        ToolCalled(turn="t1", at=AT, name="Bash", arguments="echo I prefer tabs"),
        Ran(turn="t2", at=AT, command="echo I prefer tabs"),
        SessionEnded(turn="t3", at=AT),
    )
    assert batch.candidates == ()
    assert [rejection.reason for rejection in batch.rejections] == ["not prose"] * 3


@pytest.mark.parametrize(
    ("words", "tongue"),
    [
        ("Ich bevorzuge Tabs und nicht Leerzeichen.", "de"),
        ("Je préfère les onglets aux espaces.", "fr"),
        ("我更喜欢使用制表符而不是空格。", "zh"),
        ("私はスペースよりタブが好きです。", "ja"),
        ("저는 공백보다 탭을 선호합니다.", "ko"),
        ("أنا أفضل علامات الجدولة على المسافات", "ar"),
    ],
)
def test_other_languages_pass_verbatim_P22(distil: Distil, words: str, tongue: str) -> None:
    candidate = only(distil(said(words)))
    assert (candidate.quote, candidate.language, candidate.type) == (
        words,
        tongue,
        "preference" if tongue != "ar" else candidate.type,
    )
    assert candidate.description == words


def test_the_same_input_gives_the_same_output_whoever_stands_beside_it(distil: Distil, trunk: Trunk) -> None:
    words = "We decided to use Postgres instead of MySQL."
    alone = only(distil(said(words)))
    among = distil(said(words), said("I prefer dark roast coffee in the morning.", turn="t2"), said("ok", turn="t3"))
    assert among.candidates[0] == alone
    item = Item(seq=1, captured=Captured(document="test:one", event=said(words)))
    assert Extract(trunk, Distiller())(Batch(items=(item,))).candidates[0].score == alone.score


@pytest.mark.parametrize(
    "words",
    [
        "Returns the lines with their numbers and kinds.",
        "`show_badges` (render the badges)",
        "Option A (simple): block commands while the agent is busy.",
        "The login code could be extracted into a method of its own.",
        "The fix is simple: use the queue instead of the stack.",
        "As you can see, the decorator made the function run three times.",
        "A decorator is a design pattern that lets you change a function.",
        "Only `dispose()` clears them.",
        "The pattern is always the same: factory → decorator → wrapper function.",
    ],
)
def test_fragments_proposals_and_common_knowledge_are_no_findings_P5(distil: Distil, words: str) -> None:
    batch = distil(said(words, "assistant"), project="project/x")
    assert quotes(batch) == [] and batch.rejections


def test_a_sentence_that_leans_on_the_one_before_is_quoted_with_it_P5(distil: Distil) -> None:
    words = (
        "Errors and fixes:\n"
        "- **View test**: the view's process can't access the sandbox, because it has a connection of its own. "
        "Fixed by using the shared mode instead of a checkout.\n"
    )
    (quote,) = quotes(distil(said(words, "assistant"), project="project/x"))
    assert quote.startswith("**View test**") and quote.endswith("instead of a checkout.")
    alone = distil(said("Fixed by using the shared mode instead of a checkout.", "assistant"), project="project/x")
    assert [rejection.reason for rejection in alone.rejections] == ["dangling"]


def test_what_a_summary_lists_needs_less_than_what_is_said_in_passing(distil: Distil) -> None:
    item = "- `TokenStore` — ETS-backed GenServer for one-time tokens with TTL\n"
    told = distil(said(f"All done. Here's a summary:\n\n**Launch a review**\n{item}", "assistant"), project="project/x")
    assert only(told).description == (
        "`TokenStore` — ETS-backed GenServer for one-time tokens with TTL (Launch a review)"
    )
    assert quotes(distil(said(f"The next phase would hold:\n\n{item}", "assistant"), project="project/x")) == []


@pytest.mark.parametrize(
    "words",
    [
        "all i see is getters",
        "iiuc, they are shared by the old and the new renderer.",
        "i feel like there is a lot of duplication in the parser",
        "This is from another file, to test what happens.",
        'each call must have a result."},"request_id":"req_0123456789"}',
        "continue and give me a root cause analysis",
    ],
)
def test_talk_about_the_work_in_hand_is_not_believed_P5(distil: Distil, words: str) -> None:
    assert believed(distil(said(words), project="project/x")) == []


def test_outside_of_a_project_people_tell_of_themselves_in_passing(distil: Distil) -> None:
    words = "I'm over the moon, because now I can expand my clothing store and get closer to my customers."
    assert quotes(distil(said(words))) == [words]
    assert believed(distil(said(words), project="project/x")) == []


def test_each_line_of_a_file_for_agents_counts(distil: Distil) -> None:
    path = "/src/orchard/CLAUDE.md#Orchard > Testing"
    lines = ("Mark slow tests with `@slow`.", "We indent with tabs.", "Wir schreiben die Tests nicht auf Deutsch.")
    for line in lines:
        assert quotes(distil(Wrote(turn="t", at=AT, text=line, path=path), project="project/x")) == [line]
    other = Wrote(turn="t", at=AT, text=lines[0], path="/src/orchard/README.md#Orchard > Testing")
    assert quotes(distil(other, project="project/x")) == []


def test_the_steps_say_what_the_distiller_read_R4(distil: Distil) -> None:
    step = only(distil(said("I prefer tabs over spaces."))).steps[0]
    assert step.what.startswith("preference, score ") and ", read as preference, salience " in step.what
