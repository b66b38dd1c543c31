"""Enrich: whose statement it is, in one line, and since when it is true (R2, R3, P-21)."""

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memd.protocol.event import Noted, Said
from memd.protocol.instant import parse
from memd.stages.batch import Batch
from memd.stages.dates import valid_from
from memd.stages.subjects import LIMIT, description, subject
from memd.stages.words import keywords, language

Distil = Callable[..., Batch]
AT = "2026-03-10T23:30:00+09:00"  # a Tuesday, still 14:30 in UTC


@pytest.mark.parametrize(
    ("clause", "expected"),
    [
        ("Yesterday I met Ana.", "2026-03-09T00:00:00+09:00"),
        ("I met Ana today.", "2026-03-10T00:00:00+09:00"),
        ("I moved here two weeks ago.", "2026-02-24T00:00:00+09:00"),
        ("We switched to uv last month.", "2026-02-01T00:00:00+09:00"),
        ("We got a dog last March.", "2025-03-01T00:00:00+09:00"),
        ("I have lived here since 2023.", "2023-01-01T00:00:00+09:00"),
        ("I have lived here since June.", "2025-06-01T00:00:00+09:00"),
        ("On 2024-05-07 we moved.", "2024-05-07T00:00:00+09:00"),
        ("We married on May 4th, 2019.", "2019-05-04T00:00:00+09:00"),
        ("We met on Friday.", "2026-03-06T00:00:00+09:00"),
        ("I'm going to Rome next week.", "2026-03-16T00:00:00+09:00"),
        ("I will fly on Friday.", "2026-03-13T00:00:00+09:00"),
        ("I'll send it by Friday.", ""),
        ("The deadline is March 15.", ""),
        ("I'll do it soon.", ""),
        ("I prefer tabs.", ""),
    ],
)
def test_a_relative_date_is_resolved_where_it_was_said_P21(clause: str, expected: str) -> None:
    assert valid_from(clause, AT) == expected


def test_the_day_is_that_of_the_events_own_zone_P21() -> None:
    assert valid_from("I met Ana yesterday.", "2026-03-10T23:30:00-08:00") == "2026-03-09T00:00:00-08:00"
    assert valid_from("I met Ana yesterday.", "2026-03-11T07:30:00Z") == "2026-03-10T00:00:00Z"


@given(st.text(max_size=80), st.integers(1971, 2100), st.integers(1, 12), st.integers(1, 28))
@settings(max_examples=200, deadline=None)
def test_any_text_gives_a_time_with_an_offset_or_none(text: str, year: int, month: int, day: int) -> None:
    for clause in (text, f"two months ago {text}", f"last february {text}", f"since 31 june {text}"):
        found = valid_from(clause, f"{year}-{month:02d}-{day:02d}T12:00:00+02:00")
        assert not found or parse(found).tzinfo is not None


@pytest.mark.parametrize(
    ("clause", "expected"),
    [
        ("I prefer tabs over spaces.", "The user prefers tabs over spaces."),
        ("I'm a nurse and I've two kids.", "The user is a nurse and they've two kids."),
        ("I don't like my old desk.", "The user doesn't like their old desk."),
        ("My wife takes her coffee black.", "The user's wife takes her coffee black."),
        ("I always carry my keys.", "The user always carries their keys."),
        ("I went to Rome.", "The user went to Rome."),
        ("I can't eat nuts.", "The user can't eat nuts."),
        ("remember that i use fish", "The user uses fish"),
        ("Ana said she prefers SQL.", "Ana said she prefers SQL."),
    ],
)
def test_the_speaker_is_named_and_nothing_else_changes_R2(clause: str, expected: str) -> None:
    told = description(clause, "user", "")
    assert told == expected.replace("they've", "they have")


@pytest.mark.parametrize(
    ("clause", "expected"),
    [
        ("Lesson for us: never restart the broker during a deploy.", "Never restart the broker during a deploy."),
        ("ok, no, actually we deploy on Tuesdays, dude.", "We deploy on Tuesdays."),
        ("Claude, the fucking tests need Docker please!", "The tests need Docker!"),
        ("The short answer is: retries are capped at five.", "Retries are capped at five."),
        ("3. Please run make seed first", "Run make seed first"),
        ("OK responses carry a body.", "OK responses carry a body."),
        ("Great Expectations checks the data.", "Great Expectations checks the data."),
        ("Wait for the lock before writing the file.", "Wait for the lock before writing the file."),
        ("Root cause: the flag was read twice.", "Root cause: the flag was read twice."),
    ],
)
def test_talk_around_a_statement_is_left_out_R2(clause: str, expected: str) -> None:
    assert description(clause, "user", "") == expected


@pytest.mark.parametrize(
    ("clause", "expected"),
    [
        ('I keep mail in "On My Mac".', 'The user keeps mail in "On My Mac".'),
        ("I keep my notes in On My Mac.", "The user keeps their notes in On My Mac."),
        (
            "The button says “I agree to my plan”, and I hate it.",
            "The button says “I agree to my plan”, and the user hates it.",
        ),
        ("My flags are in `my_total` and ~/my-app/my.cnf.", "The user's flags are in `my_total` and ~/my-app/my.cnf."),
        ("We should move it, or am I wrong?", "We should move it, or is the user wrong?"),
    ],
)
def test_names_code_and_quotations_stay_as_they_are_R2(clause: str, expected: str) -> None:
    assert description(clause, "user", "") == expected


def test_an_agent_is_not_the_user_R2() -> None:
    told = description("I found that the parser skips my edits, so I changed the lexer.", "assistant", "")
    assert told == "The agent found that the parser skips the agent's edits, so the agent changed the lexer."


def test_we_of_a_document_is_the_project() -> None:
    assert description("We use **pnpm** here.", "document", "") == "The project uses pnpm here."
    assert description("We're dropping Python 3.8.", "assistant", "") == "The project is dropping Python 3.8."
    assert description("We all use pnpm here.", "assistant", "") == "We all use pnpm here."
    assert description("We last deployed in May.", "assistant", "") == "The project last deployed in May."


def test_a_dangling_pronoun_gets_its_topic_from_the_turn() -> None:
    told = description("It needs a table rewrite.", "assistant", "The `ALTER TABLE` statement fails on SQLite. ")
    assert told == "It needs a table rewrite (ALTER TABLE)"


@given(st.text(max_size=600), st.text(max_size=100))
@settings(max_examples=200, deadline=None)
def test_a_description_is_one_line_within_its_limit_R2(clause: str, before: str) -> None:
    for trust in ("user", "assistant", "document"):
        told = description(clause, trust, before)
        assert len(told) <= LIMIT and "\n" not in told and "\r" not in told


@pytest.mark.parametrize(
    ("clause", "trust", "project", "expected"),
    [
        ("I prefer tabs.", "user", False, "user"),
        ("My sister lives in Rome.", "user", True, "sister"),
        ("Priya leads the platform team.", "user", False, "priya"),
        ("We use pnpm.", "user", False, "project"),
        ("The rate limit is 100.", "user", True, "project"),
        ("I chose Vite.", "assistant", True, "project"),
    ],
)
def test_who_a_clause_is_about(clause: str, trust: str, project: bool, expected: str) -> None:
    assert subject(clause, trust, project) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("I prefer tabs over spaces in Go.", "en"),
        ("git rebase --interactive HEAD~3", "en"),
        ("E2E tests only - no unit tests", "en"),
        ("Der Server ist nicht in Frankfurt und auch nicht in Wien.", "de"),
        ("Le serveur est à Paris et pas dans le sud.", "fr"),
        ("El servidor no está en Madrid pero es rápido.", "es"),
        ("サーバーは東京にあります。", "ja"),
        ("服务器在上海。", "zh"),
        ("서버는 서울에 있습니다.", "ko"),
        ("الخادم في القاهرة", "ar"),
    ],
)
def test_the_language_is_told_by_script_and_small_words_P22(text: str, expected: str) -> None:
    assert language(text) == expected


def test_identifiers_lead_the_keywords() -> None:
    assert keywords("The `mix quality` alias runs on src/main.rs with UserStore.")[:3] == (
        "mix quality",
        "src/main.rs",
        "UserStore",
    )


def test_a_candidate_says_since_when_and_how_sure_R3(distil: Distil) -> None:
    (one,) = distil(Said(turn="t", at=AT, role="user", text="Last month I moved to Porto.")).candidates
    assert one.valid_from == "2026-02-01T00:00:00+09:00"
    (two,) = distil(Said(turn="t", at=AT, role="user", text="I prefer tabs.")).candidates
    assert two.valid_from == AT
    assert 0 < two.importance <= 1 and two.confidence > 0.8


@pytest.mark.parametrize("words", ["Bob said: I prefer Oracle.", 'Priya wrote: "I never eat fish".'])
def test_somebody_elses_i_is_not_the_user_P19(distil: Distil, words: str) -> None:
    (one,) = distil(Noted(turn="t", at=AT, text=words)).candidates
    assert "the user" not in one.description.lower()


def test_what_was_meant_to_be_done_stays_in_the_quote_R2() -> None:
    words = "The view can't access the sandbox. I need to use the `:auto` mode for `get/2`."
    assert description(words, "assistant", "") == "The view can't access the sandbox."


@pytest.mark.parametrize(
    ("clause", "context", "expected"),
    [
        ("Any text is added.", "Hook contract", "Any text is added (Hook contract)"),
        ("Hooks of a contract are fast.", "Hook contract", "Hooks of a contract are fast."),
        ("**Important**: exit with 0.", "", "Exit with 0."),
        ("**ab-cd.7** — tokens have a TTL.", "", "Tokens have a TTL."),
        ("src/door.py: tokens have a TTL.", "", "src/door.py: tokens have a TTL."),
        ("w" * 195, "Hook contract", "W" + "w" * 194),
    ],
)
def test_a_heading_names_what_the_clause_leaves_open_R2(clause: str, context: str, expected: str) -> None:
    assert description(clause, "assistant", "", context) == expected


def test_a_long_description_ends_with_a_sentence_where_it_can_R2() -> None:
    first = "The importer reads the folder twice because the lock of the first pass may be gone by then, and says so."
    told = description(
        f"{first} " + "But the second pass is never asked for what the first one has " + "seen " * 20, "assistant", ""
    )
    assert told == f"{first} …" and len(told) <= LIMIT


def test_subject_and_value_come_before_other_keywords() -> None:
    words = "After lunch our colleagues always drink plenty of strong jasmine tea together outside"
    assert keywords(words, "colleagues jasmine tea")[:3] == ("colleagues", "jasmine", "tea")
    assert set(keywords(words, "colleagues jasmine tea")) <= set(keywords(words, most=20))


def test_salience_weighs_importance_R6(distil: Distil) -> None:
    told = distil(
        Said(turn="a", at=AT, role="user", text="My daughter is allergic to peanuts."),
        Said(turn="b", at=AT, role="user", text="My favourite mug is the blue one."),
    ).candidates
    assert [one.salience is not None for one in told] == [True, True]
    assert told[0].importance > told[1].importance
