"""What courses brought, as clients see it: tests by chapter, and the open gaps (O3)."""

from __future__ import annotations

from collections.abc import Mapping

from ....protocol.courses import ChapterState, CourseGap, CourseState, TestScore
from ....protocol.event import Captured
from ...projections.courses import StoredCourse
from ...projections.stores import Stores
from ..outgoing_screen import without_secrets
from .course_parts import question_of, titles_of
from .review_plan import due, last_answers, next_due


def course_state(stores: Stores, course: StoredCourse, now: int) -> CourseState:
    """Return what a course brought."""
    parts = (*course.sections, *course.questions)
    found = ((part, stores.archive.turn(course.document, part.turn)) for part in parts)
    captures = {part.turn: captured for part, captured in found if captured is not None}
    titles = {part.chapter: titles_of(captures[part.turn]) for part in parts if part.turn in captures}
    title = next((first for first, _ in titles.values()), "") or course.document.rpartition("/")[2]
    chapters = sorted({part.chapter for part in parts})
    names = {number: without_secrets(titles.get(number, ("", ""))[1]) or str(number + 1) for number in chapters}
    return CourseState(
        course=course.document,
        title=without_secrets(title),
        is_open=course.is_open,
        opened_at=course.opened_at,
        chapters=tuple(_chapter(course, number, names[number]) for number in chapters),
        gaps=tuple(_gaps(course, captures, names)) if course.is_open else (),
        due=sum(1 for _ in due(course, now)),
        next=next_due(course),
    )


def _chapter(course: StoredCourse, number: int, title: str) -> ChapterState:
    questions = {part.turn for part in course.questions if part.chapter == number}
    known: dict[str, bool] = {}
    tests: list[TestScore] = []
    for test in course.tests:
        answers = [answer for answer in test.answers if answer.question in questions]
        known |= {answer.question: answer.right for answer in answers}
        if answers:
            right = sum(answer.right for answer in answers)
            score = TestScore(
                at=test.at,
                test=test.test,
                asked=len(answers),
                right=right,
                known=sum(known.values()),
                questions=len(questions),
            )
            tests.append(score)
    sections = sum(part.chapter == number for part in course.sections)
    return ChapterState(title=title, sections=sections, questions=len(questions), tests=tuple(tests))


def _gaps(course: StoredCourse, captures: Mapping[str, Captured], names: Mapping[int, str]) -> list[CourseGap]:
    last = last_answers(course)
    gaps: list[CourseGap] = []
    for part in course.questions:
        if part.turn in last and part.turn in captures and not last[part.turn].answer.right:
            question, keywords = question_of(captures[part.turn])
            shown = tuple(map(without_secrets, keywords))
            at = last[part.turn].at
            gaps.append(
                CourseGap(chapter=names[part.chapter], question=without_secrets(question), keywords=shown, at=at)
            )
    return gaps


def chapter_of_questions(course: StoredCourse, state: CourseState) -> dict[str, str]:
    """Return the title of the chapter of each question."""
    numbers = sorted({part.chapter for part in (*course.sections, *course.questions)})
    titles = {number: chapter.title for number, chapter in zip(numbers, state.chapters, strict=True)}
    return {part.turn: titles[part.chapter] for part in course.questions}
