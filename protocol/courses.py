"""Courses: what an agent is taught from a handbook, and the questions that show what it has of it (O3)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import msgspec

from .operation import CourseTest
from .request_fields import Request
from .scope import Name

COURSE = "course"
"""Tag of a record that is a section of a course."""

SECTION_LIMIT = 700
"""Characters of a section, which is one record."""

TEST_TOKENS = 600
"""Tokens of the records within which the answer to a question must stand."""

Title = Annotated[str, msgspec.Meta(min_length=1, max_length=200)]
Keyword = Annotated[str, msgspec.Meta(min_length=1, max_length=100)]
AnyName = Annotated[str, msgspec.Meta(max_length=200)]


class CourseSection(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A section, verbatim. `heading`: the headings between the chapter and the text, joined by " > "."""

    text: Annotated[str, msgspec.Meta(min_length=1, max_length=SECTION_LIMIT)]
    heading: Annotated[str, msgspec.Meta(max_length=400)] = ""


class CourseQuestion(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A question, and the keywords that its answer has."""

    question: Annotated[str, msgspec.Meta(min_length=1, max_length=500)]
    keywords: Annotated[tuple[Keyword, ...], msgspec.Meta(min_length=1, max_length=12)]


class CourseChapter(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A chapter with its sections and questions."""

    title: Title
    sections: Annotated[tuple[CourseSection, ...], msgspec.Meta(max_length=2000)] = ()
    questions: Annotated[tuple[CourseQuestion, ...], msgspec.Meta(max_length=1000)] = ()


class Teach(Request, tag="teach", frozen=True, kw_only=True):
    """Let an agent read a course, or what changed in it since (O3). Its title names the course."""

    agent: Name
    title: Title
    chapters: Annotated[tuple[CourseChapter, ...], msgspec.Meta(max_length=200)]


class CourseTaught(msgspec.Struct, frozen=True, kw_only=True):
    """Reply to `teach`. `added`, `kept`, `gone`: sections; `forgotten`: sections and questions that the user forgot,
    which are not taught again; `questions`: of the course; `right`: how many of the new ones the memory answered before
    it had the course."""

    course: str
    title: str
    added: int
    kept: int
    gone: int = 0
    forgotten: int = 0
    questions: int = 0
    asked: int = 0
    right: int = 0


class AskCourses(Request, tag="ask_courses", frozen=True, kw_only=True):
    """Ask an agent's memory the questions that are due now, of all its open courses (O3)."""

    agent: Name


class AskedQuestion(msgspec.Struct, frozen=True, kw_only=True):
    """A question with its outcome. `days`: until it is asked again."""

    course: str
    chapter: str
    question: str
    right: bool
    days: int


class CoursesAsked(msgspec.Struct, frozen=True, kw_only=True):
    """Reply to `ask_courses`. `is_read`: false while memd still reads new sections; then it asks nothing, and the
    client sends the request again."""

    asked: tuple[AskedQuestion, ...]
    is_read: bool = True


class TestScore(msgspec.Struct, frozen=True, kw_only=True):
    """One test of a chapter. `at`: microseconds; `right` of `asked`; `known`: questions whose last answer is right, of
    all `questions`."""

    __test__ = False

    at: int
    test: CourseTest
    asked: int
    right: int
    known: int
    questions: int


class ChapterState(msgspec.Struct, frozen=True, kw_only=True):
    """A chapter with its tests, the oldest first."""

    title: str
    sections: int
    questions: int
    tests: tuple[TestScore, ...] = ()


class CourseGap(msgspec.Struct, frozen=True, kw_only=True):
    """A question whose last answer was wrong. `at`: microseconds, when."""

    chapter: str
    question: str
    keywords: tuple[str, ...]
    at: int


class CourseState(msgspec.Struct, frozen=True, kw_only=True):
    """What a course brought. `due`: questions to ask now; `next`: when the next one is due, in microseconds, 0 for
    none."""

    course: str
    title: str
    is_open: bool
    opened_at: int
    chapters: tuple[ChapterState, ...]
    gaps: tuple[CourseGap, ...] = ()
    due: int = 0
    next: int = 0


class GetSchool(Request, tag="school", frozen=True, kw_only=True):
    """Return an agent's courses: the tests of each chapter, and the questions that it can't answer (O3)."""

    agent: Name


class School(msgspec.Struct, frozen=True, kw_only=True):
    """Reply to `school`."""

    agent: str
    courses: tuple[CourseState, ...]


class CloseCourse(Request, tag="close_course", frozen=True, kw_only=True):
    """Ask no more questions of a course; from then on its sections fade as other records do (O3). `course`: its title
    or the beginning of it."""

    agent: Name
    course: Annotated[str, msgspec.Meta(min_length=1, max_length=200)]


class GetAgent(Request, tag="agent", frozen=True, kw_only=True):
    """Return what memd keeps of an agent: its role, perspectives, prompt (O5) and courses."""

    agent: Name


class AgentState(msgspec.Struct, frozen=True, kw_only=True):
    """Reply to `agent`. `prompt`: verbatim, "" for none; `records`: live ones of its pool."""

    pool: str
    role: str
    perspectives: tuple[str, ...]
    prompt: str
    records: int
    courses: tuple[CourseState, ...] = ()


def share_known(tests: Sequence[TestScore]) -> float:
    """Return the share of a chapter's questions that its memory answers since the last test; 0 without a test."""
    last = tests[-1] if tests else None
    return last.known / last.questions if last and last.questions else 0.0
