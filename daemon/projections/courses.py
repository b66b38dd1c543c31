"""The courses of agents: their parts, and every test (O3).

Invariant: a row has names of turns, numbers and times, no text; forgetting a turn removes it from the row, forgetting
the course's document removes the row.
"""

from __future__ import annotations

from collections.abc import Container

import msgspec

from ...protocol.operation import (
    CourseAnswer,
    CourseAsked,
    CourseClosed,
    CourseOpened,
    CoursePart,
    CourseTest,
    Redacted,
)
from ...protocol.record import record_id
from ...protocol.reply import Logged
from .forgotten import turn_key
from .projection import FoldTables, OperationBatch
from .records import digest


class StoredTest(msgspec.Struct, frozen=True, array_like=True):
    """The answers of one test. `at`: microseconds."""

    at: int
    test: CourseTest
    answers: tuple[CourseAnswer, ...]


class StoredCourse(msgspec.Struct, frozen=True, kw_only=True):
    """A course as it is now. `opened_at`: microseconds of its first opening; `tests`: the oldest first."""

    pool: str
    document: str
    opened_at: int
    sections: tuple[CoursePart, ...] = ()
    questions: tuple[CoursePart, ...] = ()
    tests: tuple[StoredTest, ...] = ()
    is_open: bool = True

    @property
    def records(self) -> frozenset[str]:
        """The ids of the records of its sections."""
        return frozenset(section_id(self.pool, self.document, part.turn) for part in self.sections)


_course = msgspec.msgpack.Decoder(StoredCourse)
_encode = msgspec.msgpack.Encoder().encode


def section_id(pool: str, document: str, turn: str) -> str:
    """Return the id of the record of a section."""
    return record_id(pool, document, turn, 0, 0)


class CourseTable(FoldTables):
    """The fold of courses, by document."""

    databases = ("courses",)
    reads = (CourseOpened, CourseAsked, CourseClosed, Redacted)

    def apply(self, batch: OperationBatch, entry: Logged) -> None:
        match entry.operation:
            case CourseOpened(document=document) as opened:
                before = self._row(batch, document)
                row = StoredCourse(
                    pool=opened.pool,
                    document=document,
                    opened_at=before.opened_at if before else entry.at,
                    sections=opened.sections,
                    questions=opened.questions,
                    tests=before.tests if before else (),
                )
                self._put(batch, row)
            case CourseAsked(document=document) as asked:
                if before := self._row(batch, document):
                    test = StoredTest(entry.at, asked.test, asked.answers)
                    self._put(batch, msgspec.structs.replace(before, tests=(*before.tests, test)))
            case CourseClosed(document=document):
                if before := self._row(batch, document):
                    self._put(batch, msgspec.structs.replace(before, is_open=False))
            case Redacted() as redacted:
                self._forget(batch, redacted)
            case _:
                pass

    def _row(self, batch: OperationBatch, document: str) -> StoredCourse | None:
        stored = batch.get(digest(document), db=self._table("courses"))
        return _course.decode(stored) if stored else None

    def _put(self, batch: OperationBatch, row: StoredCourse) -> None:
        batch.put(digest(row.document), _encode(row), db=self._table("courses"))

    def _forget(self, batch: OperationBatch, redacted: Redacted) -> None:
        if not (redacted.turns or redacted.sessions or redacted.marks):
            return
        turns = {(stone.document, turn) for stone in redacted.turns for turn in stone.turns}
        marks = frozenset(redacted.marks)
        for key in batch.keys(self._table("courses")):
            row = _course.decode(batch.get(key, db=self._table("courses")) or b"")
            if row.document in redacted.sessions or key in marks:
                batch.delete(key, db=self._table("courses"))
                continue
            parts = (part.turn for part in (*row.sections, *row.questions))
            gone = {turn for turn in parts if (row.document, turn) in turns or turn_key(row.document, turn) in marks}
            if gone:
                self._put(batch, _without(row, gone))

    def get(self, document: str) -> StoredCourse | None:
        """Return a course."""
        stored = self._value("courses", digest(document), "a course")
        return _course.decode(stored) if stored else None

    def all(self) -> list[StoredCourse]:
        """Return every course, the oldest first."""
        rows = map(_course.decode, self._values("courses", "a course"))
        return sorted(rows, key=lambda row: (row.opened_at, row.document))

    def of(self, pool: str) -> list[StoredCourse]:
        """Return the courses of an agent's pool, the oldest first."""
        return [course for course in self.all() if course.pool == pool]

    def held(self, pool: str) -> frozenset[str]:
        """Return the ids of the records of a pool that no sleep archives: the sections of its open courses."""
        return frozenset(id for course in self.of(pool) if course.is_open for id in course.records)

    def taught(self, pool: str) -> frozenset[str]:
        """Return the ids of the records of a pool that are sections of its courses, open or closed."""
        return frozenset(id for course in self.of(pool) for id in course.records)

    def has(self, document: str, turn: str) -> bool:
        """Whether a turn is part of a course as it is now."""
        course = self.get(document)
        return course is not None and any(part.turn == turn for part in (*course.sections, *course.questions))


def _without(row: StoredCourse, gone: Container[str]) -> StoredCourse:
    tests = (
        StoredTest(test.at, test.test, tuple(answer for answer in test.answers if answer.question not in gone))
        for test in row.tests
    )
    return msgspec.structs.replace(
        row,
        sections=tuple(part for part in row.sections if part.turn not in gone),
        questions=tuple(part for part in row.questions if part.turn not in gone),
        tests=tuple(test for test in tests if test.answers),
    )
