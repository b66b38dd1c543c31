"""Feedback on answers: stored, counted as use, and learned by the scorer of the asking agent (Q6, T3, T4).

Invariants: use is durable when it is acknowledged; samples have the features of the moment of the answer, so an answer
that is no longer in memory teaches nothing; the maintenance child trains a scorer from the journal alone, so a scorer
is disposable, and the same journal gives the same one.
"""

from __future__ import annotations

import logging
import re
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from typing import NamedTuple

import msgspec

from ....protocol.errors import InvalidRequest, MemdError, NotFound
from ....protocol.fading import FeedbackGiven, Sample
from ....protocol.recall import Feedback, FeedbackTaken, NeverUsed, Unused, UnusedList
from ....protocol.record import LIVE
from ...forgetting_rules import UseOutcome
from ...projections.stores import Stores
from ...storage.durable_files import replace
from ...world import World
from ..events import AnswerUsed
from ..maintenance_process import MaintenanceProcess
from .scorer import SAMPLES, ScorerNetwork, decoded

ANSWERS = 256
"""Recent answers in memory."""


class RecentAnswer(NamedTuple):
    """An answer: the agent that asked, its perspective, and the features of each record."""

    agent: str
    perspective: str
    rows: Mapping[str, tuple[float, ...]]


class RecentAnswers:
    """The last answers by name. The fast and the slow lane add them, the write thread reads them."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._start = world.token(4).hex()
        self._count = 0
        self._lock = threading.Lock()
        self._answers: dict[str, RecentAnswer] = {}

    def note(self, agent: str, perspective: str, rows: Mapping[str, tuple[float, ...]]) -> str:
        """Keep an answer and return its name, "" for an answer without records."""
        if not rows:
            return ""
        with self._lock:
            self._count += 1
            name = f"{self._start}{self._count:x}"
            self._answers[name] = RecentAnswer(agent, perspective, rows)
            if len(self._answers) > ANSWERS:
                self._answers.pop(next(iter(self._answers)), None)
        return name

    def get(self, name: str) -> RecentAnswer | None:
        """Return an answer, None if it is too old. Raises NotFound for a name that no answer has."""
        answer = self._answers.get(name)
        if answer is None and (not _NAME.fullmatch(name) or self._is_to_come(name)):
            raise NotFound(f"no answer {name!r}", hint="`memd recall` prints the id last; feedback also works without")
        return answer

    def _is_to_come(self, name: str) -> bool:
        return name.startswith(self._start) and int(name.removeprefix(self._start), 16) > self._count


_NAME = re.compile(r"[0-9a-f]{8}[1-9a-f][0-9a-f]{0,7}")
"""The start of a daemon, and the number of an answer."""

FILE = "scorers.json"
SLICE = 500
AGAIN = 20
"""New samples after which the scorer is trained again."""

FAILED, SEEN = 0.5, 0.5
"""Weights of the samples of a failed task, and of a use that memd detected itself."""

UNUSED = 2
"""Most unused records of an answer that become samples, for each used one (Q6)."""

log = logging.getLogger("memd.learning")


CountUse = Callable[[Sequence[str], str, UseOutcome], object]
Teach = Callable[[str, str, str, str], object]
"""Sets what a record teaches: its id, a perspective, the words, and why."""


class StoredScorer(msgspec.Struct, frozen=True):
    """A trained scorer in the file: the number of its samples, its parameters as text."""

    samples: int
    network: str


class FeedbackLearner:
    """Feedback and scorers of one home. The write thread calls `take`; the lanes of recall ask for scorers."""

    def __init__(
        self,
        stores: Stores,
        maintenance: MaintenanceProcess,
        recent: RecentAnswers,
        count_use: CountUse,
        uncounted: Callable[[], Mapping[str, int]],
        teach: Teach,
    ) -> None:
        """`count_use`: counts the use of records, under a perspective, with whether they were `helpful`; `uncounted`:
        returns the retrievals that no projection counts yet; `teach`: sets what a record teaches."""
        self._stores, self._maintenance, self._recent, self._count_use = stores, maintenance, recent, count_use
        self._teach = teach
        self._uncounted = uncounted
        self._place = stores.projections_folder / FILE
        self._stored: dict[str, StoredScorer] = {}
        self._networks: dict[str, ScorerNetwork] = {}
        self._thread: threading.Thread | None = None
        with suppress(OSError, ValueError):  # none yet, or damaged: it is trained again
            self._stored = msgspec.json.decode(self._place.read_bytes(), type=dict[str, StoredScorer])
            self._networks = {agent: decoded(stored.network) for agent, stored in self._stored.items()}

    def network(self, agent: str) -> ScorerNetwork | None:
        """Return the scorer of an agent, None while there is too little feedback."""
        return self._networks.get(agent)

    def never_used(self, request: NeverUsed) -> UnusedList:
        """List records that were given often and that nobody reported as used (Q9)."""
        records, unused, uncounted = self._stores.records, list[Unused](), self._uncounted()
        for pool in request.pools or sorted(records.tally()):
            found = (record for record in records.in_pool(pool) if record.status in LIVE)
            while live := list(islice(found, SLICE)):
                signals = self._stores.counters.signals(live)
                unused += [
                    Unused(record=msgspec.structs.replace(record, signal=signal), given=given)
                    for record in live
                    if not (signal := signals[record.id]).access_count
                    and (given := signal.candidate_count + uncounted.get(record.id, 0)) >= max(1, request.least)
                ]
                unused = sorted(unused, key=lambda row: (-row.given, row.record.id))[: max(1, request.limit)]
        return UnusedList(records=tuple(unused))

    def take(self, request: Feedback) -> FeedbackTaken:
        """Store feedback. Raises InvalidRequest for empty or contradicting feedback, NotFound for an unknown record or
        answer."""
        named = tuple(dict.fromkeys((*request.used, *request.helpful, *request.wrong, *(request.learned or ()))))
        if not named:
            raise InvalidRequest("the feedback names no record", hint="name records as used, helpful or wrong")
        full = {id: self._stores.records.named(id).id for id in named}
        used, helpful, wrong = (
            tuple(dict.fromkeys(full[id] for id in ids)) for ids in (request.used, request.helpful, request.wrong)
        )
        if both := set(wrong) & {*used, *helpful}:
            raise InvalidRequest(
                f"{min(both)} is named both as wrong and as used or helpful", hint="name each record once"
            )
        answer = self._recent.get(request.recall) if request.recall else None
        failed = request.failed or request.outcome == "failure"
        samples = _samples(answer, {*used, *helpful}, set(wrong), FAILED if failed else 1.0) if answer else ()
        agent = answer.agent if answer else ""
        perspective = request.perspective or (answer.perspective if answer else "")
        for id, words in (request.learned or {}).items():
            self._teach(full[id], perspective, words, "feedback on an answer told what it teaches")
        operation = FeedbackGiven(agent=agent, used=used, helpful=helpful, wrong=wrong, failed=failed, samples=samples)
        self._stores.commit([operation])
        if only := [id for id in used if id not in helpful]:
            self._count_use(only, perspective, "" if request.outcome == "failure" else request.outcome)
        if helpful:
            self._count_use(helpful, perspective, "helpful")
        count = self._stores.feedback_counts.count(agent)
        self._learn(agent, count)
        note = "" if answer or not request.recall else "the answer is too old to learn from"
        return FeedbackTaken(records=len(set(full.values())), samples=len(samples), learnt_from=count, note=note)

    def seen(self, use: AnswerUsed) -> None:
        """Learn from records of an answer that a session used without saying so; on the write thread."""
        try:
            answer = self._recent.get(use.answer)
        except NotFound:
            return
        if answer is not None and (samples := _samples(answer, set(use.ids), set(), SEEN)):
            self._stores.commit([FeedbackGiven(agent=answer.agent, samples=samples)])
            self._learn(answer.agent, self._stores.feedback_counts.count(answer.agent))

    def _learn(self, agent: str, count: int) -> None:
        known = self._stored[agent].samples if agent in self._stored else 0
        if count < SAMPLES or (known and count - known < AGAIN) or (self._thread and self._thread.is_alive()):
            return
        self._thread = threading.Thread(target=self._fit, args=(agent, count), name="learning", daemon=True)
        self._thread.start()

    def _fit(self, agent: str, count: int) -> None:
        try:
            report = self._maintenance.run("learn", self._stores.folder, [agent], lambda done, total, detail: None)
            text = str(report[agent])
            network = decoded(text)
        except (MemdError, KeyError, ValueError) as error:  # busy or stopping: the next feedback tries again
            log.info("could not train the scorer of an agent: %s", type(error).__name__)
            return
        self._stored[agent], self._networks[agent] = StoredScorer(count, text), network
        with suppress(OSError):
            replace(self._place, msgspec.json.encode(self._stored))
        log.info("trained the scorer of an agent on %d samples", count)

    def stop(self) -> None:
        """Wait for the training thread, whose child has been ended."""
        if self._thread is not None:
            self._thread.join(5.0)


def _samples(answer: RecentAnswer, good: set[str], wrong: set[str], weight: float) -> tuple[Sample, ...]:
    """Make samples of what was used, what was wrong, and the best of the unused records."""
    wanted = [Sample(id, row, True, weight) for id, row in answer.rows.items() if id in good]
    unwanted = [Sample(id, row, False, weight) for id, row in answer.rows.items() if id in wrong]
    unused = [Sample(id, row, False, weight) for id, row in answer.rows.items() if id not in good and id not in wrong]
    most = max(0, UNUSED * len(wanted) - len(unwanted))
    return (*wanted, *unwanted, *unused[:most])
