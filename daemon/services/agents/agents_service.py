"""Agents: what became of their tasks (O2), and which of them fits a task (O1).

Invariants: memd judges a session by its captures alone, so that judging it again changes nothing; a copy of a task in
another session counts once; a session that is hidden counts nowhere; the task's text stays in its session and is read
there. memd ranks, and the host chooses.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

import msgspec

from ....protocol.agent_outcomes import (
    RATED,
    USER_WEIGHT,
    WEIGHTS,
    AgentOutcome,
    AgentOutcomes,
    AgentRanking,
    ExplainAgent,
    RankAgents,
    RankedAgent,
    RateTask,
)
from ....protocol.agent_ranking import PastTask, RankCandidate, ranked
from ....protocol.errors import InvalidRequest, MemdError, NotFound
from ....protocol.event import Said, ToolCalled, text
from ....protocol.instant import from_micros, micros
from ....protocol.operation import TaskRated, TasksJudged
from ....protocol.tool_calls import delegation
from ...projections.outcomes import SessionTasks
from ...projections.placement import AGENT
from ..core import Core
from ..search_model import Encode, nearness
from ..service import Handlers, Service, owner
from ..write_thread import Writer
from .judging import judged

LOOK_S = 60.0
PAGE = 2000
"""Captures that are read at once."""

MARKED = 5000
"""Captures without anything to judge, after which the mark is stored all the same."""

TOGETHER = 64
"""Judgements of one commit, so that captures do not wait long behind the first judgement of a large home."""

MOST_TASKS = 400
"""Newest outcomes that a ranking reads."""

RECENT = 5
SHOWN = 200
"""Characters of a task that are shown."""

log = logging.getLogger("memd.agents")


class KnownTask(NamedTuple):
    """An outcome of an agent's task."""

    agent: str
    at: int
    shown: AgentOutcome


class AgentsService(Service):
    """Judges sessions in the background and before each answer, on the slow lane."""

    name = "agents"

    def __init__(self, core: Core, writer: Writer, encode: Callable[[], Encode | None]) -> None:
        """`encode`: returns the encoder of the current model, if it has one."""
        self._stores, self._scheduler, self._writer, self._encode = core.stores, core.scheduler, writer, encode
        self._judging = threading.Lock()
        self._upto = 0

    @property
    def handlers(self) -> Handlers:
        return {
            ExplainAgent: owner("slow", self.explain),
            RateTask: owner("slow", self.rate),
            RankAgents: owner("slow", self.rank),
        }

    def start(self) -> None:
        self._scheduler.every(LOOK_S, self.look, "agents")

    def look(self) -> None:
        """Judge the sessions that went on."""
        try:
            self.judge()
        except MemdError as error:  # a full disk or a stop; the next look tries again
            log.info("could not judge tasks: %s", error.message)

    # --- judging ---------------------------------------------------------------------------------------------------
    def judge(self) -> None:
        """Judge the sessions with captures since the last judgement. Raises StorageFull."""
        with self._judging:
            stored = self._stores.outcomes.archive_seq()
            upto, last = max(self._upto, stored), self._stores.archive.last
            documents: set[str] = set()
            for begin in range(upto, last, PAGE):
                size = min(PAGE, last - begin)
                documents.update(captured.document for _, captured in self._stores.archive.after(begin, size))
            judgements = [found for document in sorted(documents) for found in self._judgement(document, stored)]
            for start in range(0, len(judgements), TOGETHER):
                self._writer.run(partial(self._commit, judgements[start : start + TOGETHER])).result()
            if judgements or last - stored >= MARKED:
                self._writer.run(partial(self._stores.commit, [TasksJudged(archive_seq=last)])).result()
            self._upto = last

    def _commit(self, judgements: Sequence[TasksJudged]) -> None:
        """Commit judgements, without those of sessions in which turns were forgotten meanwhile. On the write thread."""
        turns = ((judgement.document, task.turn) for judgement in judgements for task in judgement.tasks)
        lost = {document for document, _ in self._stores.forgotten.among(turns)}
        kept = [each for each in judgements if each.document not in lost]
        if kept := [each for each in kept if not self._stores.forgotten.names(each.document)]:
            self._stores.commit(kept)

    def _judgement(self, document: str, upto: int) -> Iterator[TasksJudged]:
        session = self._stores.sources.session(document)
        if session is None:
            return
        origin = session.opened.origin
        events = [captured.event for captured in self._stores.archive.turns(document)]
        tasks = tuple(judged(events, origin.agent or origin.host))
        if tasks != self._stores.outcomes.of(document).judged:
            yield TasksJudged(archive_seq=upto, document=document, tasks=tasks)

    # --- reads -----------------------------------------------------------------------------------------------------
    def _known(self) -> list[KnownTask]:
        """Return the outcomes of all agents, the newest first; what the user said replaces what memd observed."""
        known: dict[tuple[str, str, int], KnownTask] = {}
        rows: list[tuple[int, SessionTasks, bool]] = []
        for row in self._stores.outcomes.all():
            session = self._stores.sources.session(row.document)
            if session is not None and not self._stores.forgotten.hiding(row.document):
                rows.append((micros(session.opened.at), row, bool(session.closed_at)))
        for _, row, is_closed in sorted(rows, key=lambda each: (each[0], each[1].document)):
            for task in row.judged:
                outcome = "silent" if task.outcome == "running" and is_closed else task.outcome
                shown = AgentOutcome(
                    at=from_micros(task.at),
                    document=row.document,
                    turn=task.turn,
                    outcome=outcome,
                    weight=WEIGHTS[outcome],
                )
                known.setdefault((task.agent, task.turn, task.at), KnownTask(task.agent, task.at, shown))
            for rated in row.rated:
                if rated.outcome:
                    known[rated.agent, rated.turn, rated.at] = KnownTask(rated.agent, rated.at, _told(rated))
        return sorted(known.values(), key=lambda task: (-task.at, task.shown.turn))

    def _task(self, document: str, turn: str) -> str:
        """Return the words that gave a task, "" if they are gone."""
        captured = self._stores.archive.turn(document, turn)
        if captured is None:
            return ""
        given = delegation(captured.event) if isinstance(captured.event, ToolCalled) else None
        return " ".join((given.task if given else text(captured.event)).split())

    def explain(self, request: ExplainAgent) -> AgentOutcomes:
        """Return the outcomes of an agent's tasks. Raises NotFound."""
        self.judge()
        return self._explained(request.agent)

    def _explained(self, agent: str) -> AgentOutcomes:
        outcomes = tuple(
            msgspec.structs.replace(task.shown, task=self._task(task.shown.document, task.shown.turn)[:SHOWN])
            for task in self._known()
            if task.agent == agent
        )
        if not outcomes and agent not in self._roles():
            hint = "`memd agent rank TASK` shows the agents that have outcomes or a memory"
            raise NotFound(f"no task of an agent {agent!r} is known", hint=hint)
        return AgentOutcomes(agent=agent, outcomes=outcomes)

    def _roles(self) -> dict[str, str]:
        """Return the roles of the agents with a memory of their own, by name."""
        pools = self._stores.sources.pools()
        return {each.pool.removeprefix(AGENT): each.role for each in pools if each.pool.startswith(AGENT)}

    def rank(self, request: RankAgents) -> AgentRanking:
        """Return the agents for a task, the best one first."""
        self.judge()
        known, roles = self._known(), self._roles()
        names = request.agents or tuple(sorted({*roles, *(task.agent for task in known)}))
        encode = self._encode()
        near = nearness(encode, encode(request.task) if encode else None)
        similar = {task: near(self._task(task.shown.document, task.shown.turn)) for task in known[:MOST_TASKS]}
        tasks = {name: [task for task in known if task.agent == name] for name in names}
        candidates = [
            RankCandidate(
                name=name,
                role_cosine=near(roles.get(name) or name.replace("-", " ")),
                past=[PastTask(similar.get(task, 0.0), task.shown.weight, age) for age, task in enumerate(tasks[name])],
                running=_running(tasks[name]),
            )
            for name in names
        ]
        return AgentRanking(
            agents=tuple(
                RankedAgent(
                    agent=rank.name,
                    score=rank.score,
                    low=rank.low,
                    high=rank.high,
                    n=rank.n,
                    n_eff=rank.n_eff,
                    by_role=rank.by_role,
                    role_fit=rank.role_fit,
                    recent=_recent(tasks[rank.name]),
                    running=_running(tasks[rank.name]),
                )
                for rank in ranked(candidates)
            )
        )

    # --- the user's word -------------------------------------------------------------------------------------------
    def rate(self, request: RateTask) -> AgentOutcomes:
        """Store what the user says became of a task. Raises NotFound, InvalidRequest."""
        self.judge()
        [document] = self._stores.sources.documents_named(request.session, source=False)
        turn, at = self._turn(document, request)
        rated = TaskRated(
            agent=request.agent,
            document=document,
            turn=turn,
            at=at,
            outcome=RATED[request.outcome] if request.outcome else "",
            perspective=request.perspective,
        )
        before = [task for task in self._stores.outcomes.of(document).rated if _key(task) == _key(rated)]
        if not request.outcome and not before:
            raise NotFound("you said nothing of this task", hint=f"`memd agent why {request.agent}` lists outcomes")
        if before != [rated]:
            self._writer.run(lambda: self._stores.commit([rated])).result()
        return self._explained(request.agent)

    def _turn(self, document: str, request: RateTask) -> tuple[str, int]:
        """Return the turn and the time of the task that a request means."""
        tasks = self._stores.outcomes.of(document)
        own = {task.turn: task.at for task in (*tasks.rated, *tasks.judged) if task.agent == request.agent}
        session = self._stores.sources.session(document)
        origin = session.opened.origin if session else None
        if origin and request.agent == (origin.agent or origin.host):
            asked = [captured.event for captured in self._stores.archive.turns(document)]
            own |= {each.turn: micros(each.at) for each in asked if isinstance(each, Said) and each.role == "user"}
        found = [turn for turn in own if not request.turn or turn == request.turn]
        found = found or [turn for turn in own if turn.startswith(request.turn)]
        if request.turn and len(found) > 1:
            raise InvalidRequest(f"{len(found)} tasks begin with {request.turn!r}", hint="give more of the turn's id")
        if not found:
            hint = f"`memd agent why {request.agent}` lists the sessions and turns of its tasks"
            raise NotFound(f"{request.agent!r} has no such task in {document}", hint=hint)
        turn = max(found, key=lambda each: own[each])
        return turn, own[turn]


def _key(rated: TaskRated) -> tuple[str, str]:
    return rated.agent, rated.turn


def _told(rated: TaskRated) -> AgentOutcome:
    outcome = rated.outcome or "silent"
    return AgentOutcome(
        at=from_micros(rated.at),
        document=rated.document,
        turn=rated.turn,
        outcome=outcome,
        weight=USER_WEIGHT * WEIGHTS[outcome],
        by="user",
        perspective=rated.perspective,
    )


def _running(tasks: list[KnownTask]) -> int:
    return sum(task.shown.outcome == "running" for task in tasks)


def _recent(tasks: list[KnownTask]) -> float:
    """Return the mean weight of the newest outcomes."""
    weights = [task.shown.weight for task in tasks if task.shown.weight][:RECENT]
    return sum(weights) / len(weights) if weights else 0.0
