"""The recall service: answers questions from the projections, takes feedback, lists records that are never used.

No model runs here: a question is encoded by a table (`search_model`), candidates come from the indexes, and the rest is
arithmetic.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Protocol

import msgspec

from ....protocol.errors import InvalidRequest
from ....protocol.recall import Feedback, Heard, NeverUsed, Recall, Recalled
from ..core import Core
from ..outgoing_screen import screened
from ..search_model import SearchModel
from ..service import Caller, Handler, Handlers, Lane, Service, owner
from .deep import DeepCaller, DeepRecall, DeepSources, narrowed
from .feedback import CountUse, FeedbackLearner
from .recent_answers import RecentAnswers
from .simple import TurnSearch, with_turns
from .warm import SearchIndexes, WarmRecall


class RecallListener(Protocol):
    """Counts what recalls retrieved."""

    def recalled(self, query: str, scope: Sequence[str], ids: Sequence[str]) -> None:
        """Count records that a question of the present retrieved."""
        ...

    def reactivated(self, ids: Sequence[str]) -> None:
        """Bring back archived records that the user's question retrieved."""
        ...


class Models(Protocol):
    """The embedding models, as far as recall needs them."""

    @property
    def sense(self) -> SearchModel:
        """The vectors and the encoder that search now."""
        ...

    @property
    def note(self) -> str:
        """What an answer must say of the model; "" for nothing."""
        ...


class RecallService(Service):
    """Answers questions at two depths: warm (one search) and deep (with transcripts, history and edges)."""

    name = "recall"

    def __init__(
        self,
        core: Core,
        models: Models,
        *,
        listener: RecallListener,
        count_use: CountUse,
        told: Callable[[str, Recalled], None],
    ) -> None:
        """`count_use`: counts a use durably; `told`: records what a session was told."""
        stores, world, config = core.stores, core.world, core.config
        self._stores, self._directory, self._timeline, self._models = stores, core.directory, core.timeline, models
        self._activity, self._world, self._listener, self._told = core.activity, world, listener, told
        recent = RecentAnswers(world)
        self._learner = FeedbackLearner(stores, core.process, recent, count_use)
        indexes = SearchIndexes(stores.records, stores.keywords, stores.lines, stores.counters)

        def floor() -> float:
            return config().relevance_floor

        self._warm = WarmRecall(indexes, lambda: models.sense, floor, recent, self._learner.network, world)
        sources = (stores.records, stores.sources, stores.archive, stores.turns)
        self._turns = TurnSearch(*sources, lambda: config().simple_below_sessions)
        self._all_turns = TurnSearch(*sources, lambda: sys.maxsize)  # a deep recall searches turns of any number
        self._deep = DeepRecall(
            DeepSources(stores.records, stores.sources, stores.archive, stores.journal, stores.lines)
        )

    @property
    def handlers(self) -> Handlers:
        """Recall on the fast lane; a deep one reads the archive and waits on the slow lane."""
        return {
            Recall: Handler(_lane, self.recall, under_pass=True, scoped=True),
            Feedback: owner("write", self._learner.take),
            NeverUsed: owner("slow", self._learner.never_used),
        }

    def stop(self) -> None:
        """Wait for a scorer that is being fitted."""
        self._learner.stop()

    def recall(self, request: Recall, caller: Caller) -> Recalled:
        """Answer a question. Raises InvalidRequest for an empty one."""
        if not request.query.strip():
            raise InvalidRequest("the query is empty", hint="give some words to search for, or use `memd list`")
        view = self._timeline.view(request.as_of, request.believed_at)
        question = narrowed(request) if request.deep else request
        answer = self._warm.recall(question, caller.scope, self._stores.pending, view, caller.permits)
        if view is None:
            self._count(request, caller, answer)
            if turns := self._heard(question, caller, answer):
                answer = with_turns(answer, turns, question)
        if request.deep:
            heard_in = self._directory.joined(caller.scope)
            answer = self._deep.around(answer, request, DeepCaller(caller.scope, heard_in, caller.permits, view))
        self._told(request.document, answer)
        answer = screened(answer)
        if note := self._models.note:
            answer = msgspec.structs.replace(answer, note=note)
        outcome = f"{len(answer.hits)} records, {len(answer.turns)} turns"
        self._activity.note("recalled", f"abstained: {answer.reason}" if answer.abstained else outcome)
        return answer

    def _count(self, request: Recall, caller: Caller, answer: Recalled) -> None:
        self._listener.recalled(request.query, caller.scope, [hit.record.id for hit in answer.hits])
        if not request.token:
            self._listener.reactivated([hit.record.id for hit in answer.hits if hit.record.status == "archived"])

    def _heard(self, request: Recall, caller: Caller, answer: Recalled) -> tuple[Heard, ...]:
        search = self._all_turns if request.deep else self._turns
        pools = self._directory.joined(caller.scope)
        return search.heard(request, self._world.now(), pools, answer.hits, caller.hears)


def _lane(request: Recall) -> Lane:
    return "slow" if request.deep else "fast"
