"""The time that a question names, and what an answer is held to by it (Q2, Q12, P-21)."""

from datetime import datetime
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memd.daemon.services.recall.time_expression import DAY, OPEN, TimePeriod, period
from memd.protocol.instant import micros
from memd.protocol.record import Record
from memd.stages.words import language
from tests.conftest import EXAMPLES
from tests.daemon.test_recall import bring, record

SUNDAY = "2026-11-22T08:40:00+09:00"
NAMED = {
    "what did we decide last March": ("2026-03-01", "2026-04-01"),
    "last November": ("2025-11-01", "2025-12-01"),
    "who left in 2023": ("2023-01-01", "2024-01-01"),
    "what happened yesterday": ("2026-11-21", "2026-11-22"),
    "what broke the day before yesterday": ("2026-11-20", "2026-11-21"),
    "what did we plan last spring": ("2026-03-01", "2026-06-01"),
    "which tests failed last autumn": ("2025-09-01", "2025-12-01"),
    "last winter": ("2025-12-01", "2026-03-01"),
    "What happened on May 8?": ("2026-05-08", "2026-05-09"),
    "the 8th of May 2023": ("2023-05-08", "2023-05-09"),
    "2026-05": ("2026-05-01", "2026-06-01"),
    "three weeks ago": ("2026-10-26", "2026-11-02"),
    "a couple of days ago": ("2026-11-20", "2026-11-21"),
    "in the last two weeks": ("2026-11-08", "2026-11-23"),
    "last week": ("2026-11-09", "2026-11-16"),
    "last weekend": ("2026-11-14", "2026-11-16"),
    "what did we say on Friday": ("2026-11-20", "2026-11-21"),
    "what was said between June and August": ("2026-06-01", "2026-09-01"),
    "which database did we use from November to February": ("2025-11-01", "2026-03-01"),
    "what did we use before May": ("", "2026-05-01"),
    "what changed since March": ("2026-03-01", ""),
    "who joined after 2023": ("2024-01-01", ""),
    "during early May 2022": ("2022-05-01", "2022-06-01"),
}


def at(day: str) -> int:
    return micros(f"{day}T00:00:00+09:00")


@pytest.mark.parametrize("question", NAMED)
def test_a_time_is_meant_from_the_askers_day_and_zone_Q12_P21(question: str) -> None:
    start, end = NAMED[question]
    found = period(question, datetime.fromisoformat(SUNDAY))
    assert found and found[:3] == (at(start) if start else 0, at(end) if end else OPEN, True)
    start_at, end_at = found.written
    assert period(question[:start_at] + question[end_at:], datetime.fromisoformat(SUNDAY)) is None


@pytest.mark.parametrize(
    ("question", "begin", "end"),
    [
        ("上个月我们决定了什么？", "2026-10-01", "2026-11-01"),
        ("昨日は何をしましたか。", "2026-11-21", "2026-11-22"),
        ("작년에 무엇을 배웠지?", "2025-01-01", "2026-01-01"),
        ("ماذا قررنا الأسبوع الماضي؟", "2026-11-09", "2026-11-16"),
        ("Was haben wir im Mai 2024 entschieden und warum ist das so?", "2024-05-01", "2024-06-01"),
    ],
)
def test_a_question_names_its_time_in_every_language_Q7(question: str, begin: str, end: str) -> None:
    assert period(question, datetime.fromisoformat(SUNDAY), language(question)) == TimePeriod(at(begin), at(end), True)


@pytest.mark.parametrize(
    "question",
    "may I deploy now|we may 8 things|is port 2023 open|march on|Who deploys on Friday?|February 29 2025|"
    "what do we march toward|in a while|the last one|this is it".split("|"),
)
def test_what_only_looks_like_a_time_is_none_Q2(question: str) -> None:
    assert period(question, datetime.fromisoformat(SUNDAY)) is None


@pytest.mark.parametrize("question", ["Which licence expires in May?", "the plan for this week", "due by March 2027"])
def test_what_may_lie_ahead_or_return_each_year_leaves_nothing_out_Q2(question: str) -> None:
    found = period(question, datetime.fromisoformat(SUNDAY))
    assert found is not None and not found.past


WORDS = (
    "last this may march 2023 2023-13-45 in between and from to before 31 february ago two weeks on friday did".split()
)


@settings(max_examples=200 * EXAMPLES, deadline=None)
@given(st.one_of(st.text(max_size=80), st.lists(st.sampled_from(WORDS), max_size=9).map(" ".join)))
def test_any_words_give_a_time_or_none_Q2(question: str) -> None:
    found = period(question, datetime.fromisoformat(SUNDAY))
    assert found is None or (0 <= found.start < found.end and any(found.named()))
    assert found is None or found.holds(found.start)


def test_what_is_told_a_little_later_belongs_to_its_time_Q12() -> None:
    march = TimePeriod(at("2026-03-01"), at("2026-04-01"), True)
    assert march.may_tell(at("2026-04-05")) and not march.holds(at("2026-04-05"))
    assert not march.may_tell(at("2026-04-05") + 10 * DAY)


def dated(talk: str, when: str, text: str) -> Record:
    """A note that was said, and true from, then."""
    made = record("personal", talk, 1, text, valid_from=when)
    return msgspec.structs.replace(made, provenance=msgspec.structs.replace(made.provenance, said_at=when))


def test_an_answer_is_held_to_the_time_that_its_question_names_Q2_Q12(daemon: Any) -> None:
    months = {"01": "Postgres", "03": "SQLite", "06": "MariaDB"}
    said = [
        dated(f"m{month}", f"2024-{month}-12T10:00:00Z", f"The team decided to keep the orders in {name}.")
        for month, name in months.items()
    ]
    ids = dict(zip(months, (each.id for each in said), strict=True))
    event = dated("old", "2024-01-20T10:00:00Z", "The audit of the printers took two days.")
    with daemon.client() as client:
        bring(client, [*said, event])
        every = client.recall("Where does the team keep the orders?")
        assert {hit.record.id for hit in every.hits} == set(ids.values()) and every.period is None
        march = client.recall("Where did the team decide to keep the orders in March 2024?")
        assert [hit.record.id for hit in march.hits] == [ids["03"]]
        assert march.period is not None and march.period[0].startswith(("2024-02-29", "2024-03-01")) and march.filtered
        before = client.recall("Where did the team keep the orders before May 2024?")
        assert {hit.record.id for hit in before.hits} == {ids["01"], ids["03"]}
        held = client.recall("Where did the team keep the orders in May 2024?")
        assert {hit.record.id for hit in held.hits} == {ids["01"], ids["03"]}, "what had begun before and still held"
        astray = client.recall("What did the audit of the printers find in June 2021?")
        assert [hit.record.id for hit in astray.hits] == [event.id] and astray.period is None
