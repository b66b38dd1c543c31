"""When a question of a course is asked again (O3).

Invariants: no clock; a question that was not asked since the course was read is due at once; after a wrong answer it is
due in a day, after a right one after the next longer interval.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from ....protocol.operation import CourseAnswer
from ...projections.courses import StoredCourse
from ...projections.strength import DAY

INTERVALS = (1, 3, 7, 14, 30)
"""Days until the next question; after the last one they double."""


EARLIER = DAY // 24
"""A question may be asked an hour earlier, so that a test at the same time of each day asks it that day."""


class LastAnswer(NamedTuple):
    """The last answer to a question since the course was read. `at`: microseconds."""

    at: int
    answer: CourseAnswer

    @property
    def due_at(self) -> int:
        """When the question is asked again, in microseconds."""
        return self.at + self.answer.days * DAY - EARLIER


def next_days(before: int, right: bool) -> int:
    """Return the days until a question is asked again. `before`: the days before, 0 for the first time."""
    if not right:
        return INTERVALS[0]
    longer = (days for days in INTERVALS if days > before)
    return next(longer, 2 * before)


def last_answers(course: StoredCourse) -> dict[str, LastAnswer]:
    """Return the last answer to each question that was asked since the course was read."""
    read = (test for test in course.tests if test.test != "before")
    return {answer.question: LastAnswer(test.at, answer) for test in read for answer in test.answers}


def due(course: StoredCourse, now: int) -> Iterator[tuple[str, int]]:
    """Yield the questions to ask now, each with the days before, 0 for one that was not asked yet."""
    last = last_answers(course)
    for part in course.questions if course.is_open else ():
        known = last.get(part.turn)
        if known is None or known.due_at <= now or known.at > now + DAY:  # the clock was ahead
            yield part.turn, known.answer.days if known else 0


def next_due(course: StoredCourse) -> int:
    """Return when the next question is due, in microseconds; 0 for a closed course and one without questions."""
    last = last_answers(course)
    if not course.is_open:
        return 0
    times = (last[part.turn].due_at if part.turn in last else course.opened_at for part in course.questions)
    return min(times, default=0)
