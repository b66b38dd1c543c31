"""Teaches agents: reads a course into an agent's own memory, and asks its questions again after growing times (O3).

Invariants: only the user teaches; the same course again changes nothing, another edition only the parts that differ; a
test runs no model; what the user forgot is not taught again. The texts of a course are captures of one document of
memd; no operation has them.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence

import msgspec

from ....protocol.courses import (
    AgentState,
    AskCourses,
    AskedQuestion,
    CloseCourse,
    CoursesAsked,
    CourseState,
    CourseTaught,
    GetAgent,
    GetSchool,
    School,
    Teach,
)
from ....protocol.errors import Forgotten, InvalidRequest, MemdError, NotFound
from ....protocol.event import Captured, Origin
from ....protocol.instant import from_micros
from ....protocol.operation import (
    Added,
    AnyOperation,
    CourseAsked,
    CourseClosed,
    CourseOpened,
    CourseTest,
    Decision,
    Invalidated,
    PoolOpened,
    Updated,
)
from ....protocol.record import LIVE
from ...projections.courses import StoredCourse, section_id
from ...projections.placement import agent_pool
from ..admission import admit
from ..core import Core
from ..outgoing_screen import without_secrets
from ..own_documents import opening
from ..service import Handlers, Service, owner
from ..write_thread import Writer
from .course_parts import TaughtPart, course_document, one_title, parts_of, section_record
from .course_states import chapter_of_questions, course_state
from .examination import AgentMemory, Examination, QuestionOutcome, test_of
from .review_plan import due

READ, GONE = "the agent reads a course", "the course no longer has this section"

log = logging.getLogger("memd.courses")


class CoursesService(Service):
    """Reads courses and asks their questions on the slow lane, and those that are due at intervals."""

    name = "courses"

    def __init__(
        self,
        core: Core,
        writer: Writer,
        memory: AgentMemory,
        *,
        sleep: Callable[[str], None],
        distil: Callable[[], None],
    ) -> None:
        """`sleep`: lets a pool sleep once; `distil`: wakes the distiller, which embeds new sections."""
        self._core, self._stores, self._gate, self._now = core, core.stores, core.gate, core.world.now
        self._writer, self._sleep, self._distil = writer, sleep, distil
        self._examination = Examination(core.stores, memory, lambda: core.config().forgetting)

    @property
    def handlers(self) -> Handlers:
        return {
            Teach: owner("slow", self.teach),
            AskCourses: owner("slow", self.ask),
            GetSchool: owner("slow", self.school),
            CloseCourse: owner("slow", self.close_course),
            GetAgent: owner("slow", self.agent),
        }

    def start(self) -> None:
        """Ask what is due at each upkeep."""
        self._core.scheduler.every(self._core.config().upkeep_s, self.look, "courses")

    # --- reading ---------------------------------------------------------------------------------------------------
    def teach(self, request: Teach) -> CourseTaught:
        """Let an agent read a course, or what changed in it. Raises NotFound, InvalidRequest, Forgotten."""
        pool = self._opened(request.agent).pool
        document, now = course_document(self._gate, request.agent, request.title), self._now()
        at = from_micros(now)
        if self._stores.forgotten.names(document):
            raise Forgotten("you forgot this course", hint="teach it under another title")
        sections, questions = parts_of(self._gate, request, now)
        if not sections:
            raise InvalidRequest("the course has no text", hint="write sections below its chapters")
        turns = {part.part.turn for part in (*sections, *questions)}
        gone = {turn for _, turn in self._stores.forgotten.among((document, turn) for turn in turns)}
        sections = [part for part in sections if part.part.turn not in gone]
        questions = [part for part in questions if part.part.turn not in gone]
        before = self._stores.courses.get(document)
        course = StoredCourse(
            pool=pool,
            document=document,
            opened_at=0,
            sections=tuple(part.part for part in sections),
            questions=tuple(part.part for part in questions),
        )
        known = {part.turn for part in before.sections} if before else set[str]()
        taught = CourseTaught(
            course=document,
            title=request.title,
            added=sum(part.part.turn not in known for part in sections),
            kept=sum(part.part.turn in known for part in sections),
            gone=len(known - {part.part.turn for part in sections} - gone),
            forgotten=len(gone),
            questions=len(questions),
        )
        if before and before.is_open and (before.sections, before.questions) == (course.sections, course.questions):
            return taught
        outcomes = self._before(request.agent, before, questions)
        captures = self._captured(document, [*sections, *questions], before)
        operations = [*opening(self._stores, document, at), *self._reading(course, before, captures, at)]
        if outcomes:
            operations.append(test_of(document, "before", outcomes, {}))

        def write() -> None:
            self._stores.take(captures)
            self._stores.commit(operations)

        self._writer.run(write).result()
        self._distil()
        self._sleep(pool)
        self._core.activity.note("taught", f"{request.agent}: {taught.added} sections, {taught.gone} gone")
        right = sum(outcome.right for outcome in outcomes)
        return msgspec.structs.replace(taught, asked=len(outcomes), right=right)

    def _opened(self, agent: str) -> PoolOpened:
        pool = self._stores.sources.pool(agent_pool(agent))
        if pool is None:
            raise NotFound(f"agent {agent!r} has no memory of its own", hint=f"create it: `memd agent add {agent}`")
        return pool

    def _before(
        self, agent: str, before: StoredCourse | None, questions: Sequence[TaughtPart]
    ) -> list[QuestionOutcome]:
        """Ask the questions that the course did not have before."""
        known = {part.turn for part in before.questions} if before else set[str]()
        new = [part for part in questions if part.part.turn not in known]
        texts = ((part.part.turn, part.event.text.split("\n")) for part in new)
        return self._examination.asked(agent, [(turn, words[0], tuple(words[1:])) for turn, words in texts])

    def _captured(self, document: str, parts: Sequence[TaughtPart], before: StoredCourse | None) -> list[Captured]:
        """Return the captures of the parts that the course did not have before."""
        known = {part.turn for part in (*before.sections, *before.questions)} if before else set[str]()
        host, _, session = document.partition(":")
        origin = Origin(host=host, session=session, live=False)
        return [admit(self._gate, origin, part.event) for part in parts if part.part.turn not in known]

    def _reading(
        self, course: StoredCourse, before: StoredCourse | None, captures: Sequence[Captured], at: str
    ) -> list[AnyOperation]:
        """Return the course as it is now, the records of new sections, and the retirement of those that are gone."""
        now = {part.turn for part in course.sections}
        operations: list[AnyOperation] = [
            CourseOpened(
                pool=course.pool, document=course.document, sections=course.sections, questions=course.questions
            )
        ]
        decision = Decision(action="add", reason=READ)
        for captured in (*captures, *self._archived(course)):
            if captured.event.turn in now:
                id = section_id(course.pool, course.document, captured.event.turn)
                earlier = self._stores.records.get(id)
                record = section_record(course.pool, captured, earlier.rev + 1 if earlier else 1)
                add = Updated if earlier else Added
                operations.append(add(record=record, decision=decision))
        old = (
            {section_id(course.pool, course.document, part.turn) for part in before.sections} if before else set[str]()
        )
        left = old - {section_id(course.pool, course.document, turn) for turn in now}
        records = self._stores.records.many(sorted(left)).values()
        operations += [
            Invalidated(id=record.id, valid_to=at, reason=GONE) for record in records if record.status in LIVE
        ]
        return operations

    def _archived(self, course: StoredCourse) -> Iterator[Captured]:
        """Yield the sections of a course whose records faded while it was closed."""
        records = self._stores.records.many(sorted(course.records))
        for part in course.sections:
            record = records.get(section_id(course.pool, course.document, part.turn))
            if record is not None and record.status == "archived":
                captured = self._stores.archive.turn(course.document, part.turn)
                yield from (captured,) if captured is not None else ()

    # --- tests -----------------------------------------------------------------------------------------------------
    @property
    def _is_read(self) -> bool:
        """Whether the indexes have every record, with its vector."""
        return self._stores.keywords.is_committed and not self._stores.vectors.missing(1)

    def ask(self, request: AskCourses) -> CoursesAsked:
        """Ask what is due now. Raises NotFound."""
        pool = self._opened(request.agent).pool
        if not self._is_read:
            self._distil()
            return CoursesAsked(asked=(), is_read=False)
        return CoursesAsked(asked=self._ask(pool))

    def look(self) -> None:
        """Ask what is due in all courses, unless new sections can't be found yet."""
        try:
            pools = {course.pool for course in self._stores.courses.all() if any(due(course, self._now()))}
            for pool in sorted(pools) if self._is_read else ():
                asked = self._ask(pool)
                log.info("asked questions: %d in %s", len(asked), pool)
        except MemdError as error:  # a full disk or a stop; the next upkeep asks
            log.info("could not ask what is due: %s", error.message)

    def _ask(self, pool: str) -> tuple[AskedQuestion, ...]:
        """Ask what is due in the courses of a pool, in one test; let the pool sleep after it."""
        agent, asked = pool.partition("/")[2], list[AskedQuestion]()
        operations: list[AnyOperation] = []
        for course in self._stores.courses.of(pool):
            days = dict(due(course, self._now()))
            first = [turn for turn in days if not days[turn]]
            again = [turn for turn in days if days[turn]]
            outcomes = self._asked(agent, course, first), self._asked(agent, course, again)
            names: tuple[CourseTest, CourseTest] = ("after", "review")
            for name, answered in zip(names, outcomes, strict=True):
                if answered:
                    test = test_of(course.document, name, answered, days)
                    operations += [test, *self._examination.uses(pool, answered)]
                    asked += self._told(course, answered, test)
        if operations:
            self._writer.run(lambda: self._stores.commit(operations)).result()
            self._sleep(pool)
            right = sum(question.right for question in asked)
            self._core.activity.note("tested", f"{agent}: {right} of {len(asked)} questions right")
        return tuple(asked)

    def _asked(self, agent: str, course: StoredCourse, turns: Sequence[str]) -> list[QuestionOutcome]:
        return self._examination.asked(agent, self._examination.questions(course, turns))

    def _told(
        self, course: StoredCourse, outcomes: Sequence[QuestionOutcome], test: CourseAsked
    ) -> Iterator[AskedQuestion]:
        state = course_state(self._stores, course, self._now())
        chapters = chapter_of_questions(course, state)
        for outcome, answer in zip(outcomes, test.answers, strict=True):
            yield AskedQuestion(
                course=state.title,
                chapter=chapters[outcome.turn],
                question=without_secrets(outcome.question),
                right=outcome.right,
                days=answer.days,
            )

    # --- reads -----------------------------------------------------------------------------------------------------
    def school(self, request: GetSchool) -> School:
        """Return an agent's courses with their tests. Raises NotFound."""
        return School(agent=request.agent, courses=self._states(self._opened(request.agent).pool))

    def _states(self, pool: str) -> tuple[CourseState, ...]:
        return tuple(course_state(self._stores, course, self._now()) for course in self._stores.courses.of(pool))

    def close_course(self, request: CloseCourse) -> CourseState:
        """Ask no more questions of a course. Raises NotFound."""
        pool, wanted = self._opened(request.agent).pool, one_title(request.course.strip()).casefold()
        courses = self._stores.courses.of(pool)
        titles = {course.document: course_state(self._stores, course, 0).title.casefold() for course in courses}
        found = [course for course in courses if titles[course.document] == wanted]
        found = found or [course for course in courses if titles[course.document].startswith(wanted)]
        if len(found) != 1:
            problem = "several courses begin with" if found else "no course begins with"
            raise NotFound(f"{problem} {request.course!r}", hint=f"`memd agent school {request.agent}` lists them")
        if found[0].is_open:
            closed = CourseClosed(document=found[0].document)
            self._writer.run(lambda: self._stores.commit([closed])).result()
        left = self._stores.courses.get(found[0].document)
        return course_state(self._stores, left or found[0], self._now())

    def agent(self, request: GetAgent) -> AgentState:
        """Return what memd keeps of an agent. Raises NotFound."""
        opened = self._opened(request.agent)
        counts = self._stores.records.tally().get(opened.pool, {})
        return AgentState(
            pool=opened.pool,
            role=opened.role,
            perspectives=opened.perspectives,
            prompt=opened.prompt,
            records=sum(count for status, count in counts.items() if status in LIVE),
            courses=self._states(opened.pool),
        )
