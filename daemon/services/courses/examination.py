"""One test: what an agent's memory gives for each question, and what that changes (O3).

A question is answered right if all keywords of its answer stand in what a recall of the agent's own memory gives within
the budget; no model judges. A right answer is a use of the records that hold it. For a wrong one the records that are
found by the answer's keywords, and hold one, are strengthened as by a review.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple, Protocol

from ....protocol.courses import TEST_TOKENS
from ....protocol.fading import Count, Counted
from ....protocol.operation import AnyOperation, CourseAnswer, CourseAsked, CourseTest
from ....protocol.recall import Hit
from ...forgetting_rules import Rules
from ...projections.courses import StoredCourse
from ...projections.stores import Stores
from .course_parts import question_of, words_in
from .review_plan import next_days

REVIEWED = 5
"""Most records that a wrong answer strengthens."""

REVIEW_STEP = 0.2
"""Strength that each of them gains."""


class AgentMemory(Protocol):
    """The search in an agent's own memory."""

    def examined(self, question: str, agent: str, budget_tokens: int) -> tuple[Hit, ...]:
        """Return what a question to an agent's own memory gives within a budget, as any client would get it."""
        ...


class QuestionOutcome(NamedTuple):
    """What a question gave. `used`, `reviewed`: ids of the records that held the answer, or should have."""

    turn: str
    question: str
    right: bool
    used: tuple[str, ...] = ()
    reviewed: tuple[str, ...] = ()


class Examination:
    """Asks questions of a course; writes nothing."""

    def __init__(self, stores: Stores, memory: AgentMemory, rules: Callable[[], Rules]) -> None:
        self._stores, self._memory, self._rules = stores, memory, rules

    def asked(self, agent: str, questions: Iterable[tuple[str, str, tuple[str, ...]]]) -> list[QuestionOutcome]:
        """Return what each question gives, told as turn, question and keywords."""
        return [self._asked(agent, *question) for question in questions]

    def questions(self, course: StoredCourse, turns: Iterable[str]) -> list[tuple[str, str, tuple[str, ...]]]:
        """Return turns of a course as questions, without those of which the archive has no text."""
        found = ((turn, self._stores.archive.turn(course.document, turn)) for turn in turns)
        return [(turn, *question_of(captured)) for turn, captured in found if captured is not None]

    def _asked(self, agent: str, turn: str, question: str, keywords: tuple[str, ...]) -> QuestionOutcome:
        hits = self._memory.examined(question, agent, TEST_TOKENS)
        if len(set(words_in("\n".join(map(_shown, hits)), keywords))) == len(set(keywords)):
            return QuestionOutcome(turn, question, True, used=_holding(hits, keywords))
        hits = self._memory.examined(" ".join(keywords), agent, TEST_TOKENS * REVIEWED)
        return QuestionOutcome(turn, question, False, reviewed=_holding(hits, keywords)[:REVIEWED])

    def uses(self, pool: str, outcomes: Sequence[QuestionOutcome]) -> list[AnyOperation]:
        """Return what a test strengthens: records that held a right answer by a use, those of a wrong one by more."""
        used = [id for outcome in outcomes for id in outcome.used]
        reviewed = [id for outcome in outcomes for id in outcome.reviewed]
        return [*self._counted(pool, used, self._rules().use), *self._counted(pool, reviewed, REVIEW_STEP)]

    def _counted(self, pool: str, ids: Sequence[str], step: float) -> list[Counted]:
        """Return one use of each record in one test."""
        if not ids:
            return []
        rules, counts = self._rules(), {id: Count(uses=1) for id in sorted(set(ids))}
        return [Counted(pool=pool, counts=counts, step=step, level_uses=rules.level_uses)]


def test_of(
    document: str, test: CourseTest, outcomes: Sequence[QuestionOutcome], days: Mapping[str, int]
) -> CourseAsked:
    """Return a test as an operation. `days`: the interval before, by question. A test before the course was read plans
    nothing."""
    answers = tuple(
        CourseAnswer(
            outcome.turn,
            outcome.right,
            0 if test == "before" else next_days(days.get(outcome.turn, 0), outcome.right),
        )
        for outcome in outcomes
    )
    return CourseAsked(document=document, test=test, answers=answers)


def _shown(hit: Hit) -> str:
    """Return what an agent is shown of a record."""
    return f"{hit.record.description}\n{hit.record.provenance.quote}"


def _holding(hits: Iterable[Hit], keywords: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(hit.record.id for hit in hits if any(words_in(_shown(hit), keywords)))
