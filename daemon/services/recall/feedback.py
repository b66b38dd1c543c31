"""Feedback: the asker's word on an answer is written down, counted as use, and teaches the asker's scorer (Q6, T3, T4).

Comes in: `feedback`. Goes out: an operation; now and then a fitted scorer. Invariants: what was used is durable when it
is acknowledged; the features are those of the moment of the answer, or none are learnt from; a scorer is fitted by the
maintenance child from the journal alone, so it is disposable, and the same journal gives the same one.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress

import msgspec

from ....protocol.errors import InvalidRequest, MemdError
from ....protocol.fading import FeedbackGiven, Sample
from ....protocol.recall import Feedback, FeedbackTaken, NeverUsed, Unused, UnusedList
from ....protocol.record import LIVE
from ...forgetting_rules import UseOutcome
from ...projections.stores import Stores
from ...storage.durable_files import replace
from ..maintenance_process import MaintenanceProcess
from .recent_answers import RecentAnswer, RecentAnswers
from .scorer import SAMPLES, ScorerNetwork
from .scorer_training import decoded

FILE = "scorers.json"
SLICE = 500
AGAIN = 20
"""So many samples more, and the scorer is fitted again."""

FAILED = 0.5
UNUSED = 2
"""Of what was given and not used, at most so many for each that was (Q6)."""

log = logging.getLogger("memd.learning")


CountUse = Callable[[Sequence[str], str, UseOutcome], object]


class StoredScorer(msgspec.Struct, frozen=True):
    """A fitted scorer in the file: how many samples it knows, its numbers as text."""

    samples: int
    network: str


class FeedbackLearner:
    """Feedback and scorers of one home. The write thread takes, the door's asks for scorers."""

    def __init__(
        self, stores: Stores, maintenance: MaintenanceProcess, recent: RecentAnswers, count_use: CountUse
    ) -> None:
        """`count_use`: counts the use of records, under a perspective, with whether they were `helpful`."""
        self._stores, self._maintenance, self._recent, self._count_use = stores, maintenance, recent, count_use
        self._place = stores.projections_folder / FILE
        self._kept: dict[str, StoredScorer] = {}
        self._networks: dict[str, ScorerNetwork] = {}
        self._thread: threading.Thread | None = None
        with suppress(OSError, ValueError):  # none yet, or damaged: it is fitted again
            self._kept = msgspec.json.decode(self._place.read_bytes(), type=dict[str, StoredScorer])
            self._networks = {agent: decoded(kept.network) for agent, kept in self._kept.items()}

    def network(self, agent: str) -> ScorerNetwork | None:
        """The scorer that an agent's feedback made, None while there is too little of it."""
        return self._networks.get(agent)

    def never_used(self, request: NeverUsed) -> UnusedList:
        """Records that were given again and again, and never said to be used (Q9)."""
        records, found = self._stores.records, list[Unused]()
        for pool in request.pools or sorted(records.tally()):
            before: tuple[int, str] | None = None
            while group := records.recent(pool, before, SLICE):
                before = (group[-1].learned_at, group[-1].id)
                found += [
                    Unused(record=record, given=given)
                    for record in group
                    if (given := record.signal.candidate_count) >= max(1, request.least)
                    and not record.signal.access_count
                    and record.status in LIVE
                ]
                found = sorted(found, key=lambda each: (-each.given, each.record.id))[: max(1, request.limit)]
        return UnusedList(records=tuple(found))

    def take(self, request: Feedback) -> FeedbackTaken:
        """Write feedback down. Raises InvalidRequest for none, NotFound for a record that is not there."""
        named = tuple(dict.fromkeys((*request.used, *request.helpful, *request.wrong)))
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
        samples = _samples(answer, {*used, *helpful}, set(wrong), FAILED if request.failed else 1.0) if answer else ()
        agent = answer.agent if answer else ""
        given = FeedbackGiven(
            agent=agent, used=used, helpful=helpful, wrong=wrong, failed=request.failed, samples=samples
        )
        self._stores.commit([given])
        if only := [id for id in used if id not in helpful]:
            self._count_use(only, answer.perspective if answer else "", "")
        if helpful:
            self._count_use(helpful, answer.perspective if answer else "", "helpful")
        count = self._stores.lessons.count(agent)
        self._learn(agent, count)
        note = "" if answer or not request.recall else "the answer is too old to learn from"
        return FeedbackTaken(records=len(set(full.values())), samples=len(samples), learnt_from=count, note=note)

    def _learn(self, agent: str, count: int) -> None:
        known = self._kept[agent].samples if agent in self._kept else 0
        if count < SAMPLES or (known and count - known < AGAIN) or (self._thread and self._thread.is_alive()):
            return
        self._thread = threading.Thread(target=self._fit, args=(agent, count), name="learning", daemon=True)
        self._thread.start()

    def _fit(self, agent: str, count: int) -> None:
        try:
            told = self._maintenance.run("learn", self._stores.folder, [agent], lambda done, total, detail: None)
            text = str(told[agent])
            network = decoded(text)
        except (MemdError, KeyError, ValueError) as error:  # busy, or stopping: the next feedback tries again
            log.info("could not train the scorer of %r: %s", agent, error)
            return
        self._kept[agent], self._networks[agent] = StoredScorer(count, text), network
        with suppress(OSError):
            replace(self._place, msgspec.json.encode(self._kept))
        log.info("trained the scorer of %r on %d samples", agent, count)

    def stop(self) -> None:
        """Wait until a fit ends; its child has been ended."""
        if self._thread is not None:
            self._thread.join(5.0)


def _samples(answer: RecentAnswer, good: set[str], wrong: set[str], weight: float) -> tuple[Sample, ...]:
    """What an answer teaches: what was used, what was wrong, and the best of what was given in vain."""
    wanted = [Sample(id, row, True, weight) for id, row in answer.rows.items() if id in good]
    unwanted = [Sample(id, row, False, weight) for id, row in answer.rows.items() if id in wrong]
    vain = [Sample(id, row, False, weight) for id, row in answer.rows.items() if id not in good and id not in wrong]
    most = max(0, UNUSED * len(wanted) - len(unwanted))
    return (*wanted, *unwanted, *vain[:most])
