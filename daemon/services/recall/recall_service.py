"""The recall service: answers questions from the projections, takes feedback, lists records that are never used.

No model runs here: a table encodes the question (`search_model`), indexes give candidates, and arithmetic orders them.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from msgspec.structs import replace

from ....protocol.courses import SECTION_LIMIT, TEST_TOKENS
from ....protocol.errors import InvalidRequest
from ....protocol.recall import Feedback, GetVectors, Heard, Hit, NeverUsed, Recall, Recalled, TextVectors
from ....protocol.record import QUOTE_LIMIT, Record, check_types
from ....protocol.scope import concern_keywords, concern_name
from ....stages.batch import PERSONAL
from ...projections.placement import agent_pool
from ...projections.pool_directory import OperationCache
from ...projections.project_pointer import DOCUMENT as POINTERS
from ...projections.records import digest
from ...projections.tokens import TermTokens
from ..core import Core
from ..events import AnswerUsed, Topic
from ..outgoing_screen import screened
from ..pass_limits import limited
from ..search_model import SearchModel
from ..service import Caller, Handler, Handlers, Lane, Permits, Service, owner
from ..shared_belief import with_author
from .deep import DeepCaller, DeepRecall, narrowed
from .feedback import CountUse, FeedbackLearner, RecentAnswers, Teach
from .selection import cost, within
from .turn_search import TurnSearch, with_turns
from .warm import SearchIndexes, WarmRecall, silent

PROMPT_FLOOR = 0.44
"""Relevance that a record must reach for a prompt (Q13), which is no question to memd in most cases."""

TAUGHT_NEAR = 0.26
"""Cosine that the nearest passage of an agent's course must reach for the agent's question: 19 of 20 questions about
four handbooks reach it, and half of those about another one."""

NEAR_SECTIONS = 50
"""Sections of courses from which the nearest are chosen."""

PROMPT_TERMS = 2
"""Least terms of a prompt, without stop words: "commit" or "go on" matches any record that has the word."""

PROMPT_RECORDS = 12
"""Records that a prompt recalls before those are left out that the agent has already."""


class RecallListener(Protocol):
    """Counts what recalls retrieved."""

    used: Topic[AnswerUsed]

    def recalled(self, query: str, scope: Sequence[str], ids: Sequence[str], answer: str, perspective: str) -> None:
        """Count records that a question of the present retrieved. `answer`: the name of the answer."""
        ...

    def uncounted(self) -> Mapping[str, int]:
        """Return the retrievals of records that no projection counts yet."""
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
        teach: Teach,
        log_answer: Callable[[str, Recalled], None],
    ) -> None:
        """`count_use`: counts a use durably; `teach`: sets what a record teaches; `log_answer`: records what a
        session received."""
        stores, world, config = core.stores, core.world, core.config
        self._stores, self._directory, self._timeline, self._models = stores, core.directory, core.timeline, models
        self._activity, self._world, self._listener, self._log_answer = core.activity, world, listener, log_answer
        self._sections = OperationCache(stores)
        recent = RecentAnswers(world)
        self._learner = FeedbackLearner(stores, core.process, recent, count_use, listener.uncounted, teach)
        listener.used.subscribe(self._learner.seen)
        indexes = SearchIndexes(stores.records, stores.keywords, stores.lines, stores.counters, stores.profile)

        def floor() -> float:
            return config().relevance_floor

        self._warm = WarmRecall(indexes, lambda: models.sense, floor, recent, self._learner.network, world)
        self._turns = TurnSearch(stores, lambda: models.sense, lambda: config().simple_below_sessions)
        # A deep recall searches the turns of all sessions.
        self._all_turns = TurnSearch(stores, lambda: models.sense, lambda: sys.maxsize)
        self._deep = DeepRecall(stores)
        self._tokens, self._scheduler = TermTokens(), core.scheduler
        self._is_preparing = self._is_ready = False
        core.captures.subscribe(lambda _: self.prepare())  # a home in use

    @property
    def handlers(self) -> Handlers:
        """A deep recall reads the archive, so it runs on the slow lane."""
        return {
            Recall: Handler(_lane, self.recall, under_pass=True, scoped=True),
            GetVectors: owner("slow", self.embed),
            Feedback: owner("write", self._learner.take),
            NeverUsed: owner("slow", self._learner.never_used),
        }

    def stop(self) -> None:
        """Wait for a scorer that is being trained."""
        self._learner.stop()

    def recall(self, request: Recall, caller: Caller) -> Recalled:
        """Answer a question. Raises InvalidRequest for an empty one, and for a type that does not exist."""
        if not request.query.strip():
            raise InvalidRequest("the query is empty", hint="give some words to search for, or use `memd list`")
        check_types(request.types)
        if request.agent and request.perspective and caller.is_owner:
            request = self._with_keywords(request)
        view = self._timeline.view(request.as_of, request.believed_at, caller.permits)
        question = narrowed(request) if request.deep else request
        answer = self._warm.recall(question, caller.scope, self._stores.pending, view, caller.permits)
        if answer.corrected:
            question = replace(question, query=answer.corrected)
        is_plain = view is None and not request.types and answer.method == "records"
        turns = self._turns_for(question, caller, answer) if is_plain else None
        if turns:
            answer = with_turns(answer, turns, question)
        elif is_plain and agent_pool(question.agent) in caller.scope:
            answer = self._with_sections(answer, question, caller.permits)
        if answer.abstained and not turns:
            answer = silent(answer)
        if turns is not None:
            answer = replace(answer, method="records and turns")
        if view is None and caller.is_owner:
            self._count(request, caller, answer)
        if request.deep:
            joined = self._directory.joined(caller.scope)
            answer = self._deep.around(answer, request, DeepCaller(caller, joined, view))
        answer = self._with_authors(answer)
        if not caller.is_owner:  # a pass is read-only: its requests are not counted, and no echo is expected of them
            return screened(self._limited(answer, caller))
        self._log_answer(request.document, answer)
        answer = screened(answer)
        if note := self._models.note:
            answer = replace(answer, note=note)
        outcome = f"{len(answer.hits)} records, {len(answer.turns)} turns"
        self._activity.note("recalled", f"no answer: {answer.reason}" if answer.abstained else outcome)
        return answer

    def embed(self, request: GetVectors) -> TextVectors:
        """Return vectors of texts: stored ones, else those of questions."""
        sense = self._models.sense
        store, encode = sense.vectors.store, sense.encode
        if encode is None:
            return TextVectors()
        places, rows = store.get([digest(text) for text in request.texts])
        stored = dict(zip(places, rows, strict=True))
        vectors = (stored[n] if n in stored else encode(text) for n, text in enumerate(request.texts))
        return TextVectors(model=store.model, vectors=tuple(vector.astype("<f2").tobytes() for vector in vectors))

    def _with_keywords(self, request: Recall) -> Recall:
        """Return a request that also searches the keywords of its perspective (Q7)."""
        pool = self._stores.sources.pool(agent_pool(request.agent))
        concerns = pool.perspectives if pool else ()
        keywords = [
            word
            for concern in concerns
            if concern_name(concern) == request.perspective
            for word in concern_keywords(concern)
        ]
        return replace(request, keywords=(*request.keywords, *keywords)) if keywords else request

    def prepare(self) -> None:
        """Load in the background what the first recall loads, up to half a second."""
        if not self._is_preparing:
            self._is_preparing = True
            self._scheduler.soon(self.load, "recall")

    def load(self) -> None:
        """Answer a question, so that no prompt waits for what the first one loads."""
        self._warm.recall(Recall(query="Which one?"), (PERSONAL,), 0, noted=False)
        self._is_ready = True

    def believed(self, prompt: str, caller: Caller) -> tuple[Hit, ...]:
        """Return the believed records that answer a prompt well, best first; memd counts none of them as given. None
        before `prepare` is done, because a hook does not wait for it."""
        if not self._is_ready:
            self.prepare()
            return ()
        if len(self._tokens.query(prompt)) < PROMPT_TERMS:
            return ()
        request = Recall(query=prompt, limit=PROMPT_RECORDS, budget_tokens=PROMPT_RECORDS * QUOTE_LIMIT)
        answer = self._warm.recall(request, caller.scope, 0, None, caller.permits, noted=False)
        floor = max(PROMPT_FLOOR, self._warm.floor(request))
        return tuple(hit for hit in answer.hits if hit.parts["relevance"] >= floor and _is_believed(hit.record))

    def _with_sections(
        self, answer: Recalled, request: Recall, permits: Permits | None, *, noted: bool = True
    ) -> Recalled:
        """Return an answer to an agent with the nearest sections of its courses, as many as a test gives, in the rest
        of the budget. The user taught them so that they answer, so the floor does not count for them."""
        pool = agent_pool(request.agent)
        sections = self._sections.get(pool, lambda: self._stores.courses.taught(pool)) if pool else frozenset[str]()
        if not sections:
            return answer
        wide = replace(request, limit=NEAR_SECTIONS, budget_tokens=NEAR_SECTIONS * SECTION_LIMIT)
        near = self._warm.recall(wide, (pool,), 0, None, permits, noted=noted, has_floor=False)
        own = [hit for hit in near.hits if hit.record.id in sections and _is_believed(hit.record)]
        if max((hit.parts.get("cosine", 0.0) for hit in own), default=0.0) < TAUGHT_NEAR:
            return answer
        ordered = sorted(own, key=lambda hit: -hit.parts.get("cosine", 0.0))
        first = () if answer.abstained else answer.hits
        known = {hit.record.id for hit in first}
        fresh = {hit.record.id: hit for hit in ordered if hit.record.id not in known}
        spent = answer.tokens - sum(cost(hit.record) for hit in answer.hits) if answer.abstained else answer.tokens
        left = max(1, request.limit) - len(first), min(request.budget_tokens - spent, TEST_TOKENS)
        given = list(within((hit.record for hit in fresh.values()), *left, at_least=not first))
        return replace(
            answer,
            hits=(*first, *(fresh[record.id] for record, _ in given)),
            tokens=spent + sum(price for _, price in given),
            recall=near.recall if answer.abstained else answer.recall,
            abstained=answer.abstained and not given,
            reason="" if given else answer.reason,
            nearest=None if given else answer.nearest,
        )

    def examined(self, question: str, agent: str, budget_tokens: int) -> tuple[Hit, ...]:
        """Return what a question to an agent's own memory gives within a budget; memd counts none of it as given."""
        request = Recall(query=question, budget_tokens=budget_tokens, agent=agent)
        answer = self._warm.recall(request, (agent_pool(agent),), 0, noted=False)
        answer = self._with_sections(answer, request, None, noted=False)
        return () if answer.abstained else answer.hits

    def _count(self, request: Recall, caller: Caller, answer: Recalled) -> None:
        ids = [hit.record.id for hit in answer.hits]
        self._listener.recalled(request.query, caller.scope, ids, answer.recall, request.perspective)
        self._listener.reactivated([hit.record.id for hit in answer.hits if hit.record.status == "archived"])

    def _with_authors(self, answer: Recalled) -> Recalled:
        """Return an answer with the names that other authors of shared projects have now."""
        if not any(hit.record.is_team for hit in (*answer.hits, *answer.principles)):
            return answer

        def named(hits: tuple[Hit, ...]) -> tuple[Hit, ...]:
            return tuple(replace(hit, record=with_author(self._stores, hit.record)) for hit in hits)

        return replace(answer, hits=named(answer.hits), principles=named(answer.principles))

    def _limited(self, answer: Recalled, caller: Caller) -> Recalled:
        """Return an answer for the holder of a pass: without the number of pending captures of the whole home."""
        records = self._stores.records

        def of_hits(hits: Sequence[Hit]) -> tuple[Hit, ...]:
            return tuple(replace(hit, record=limited(hit.record, caller, records)) for hit in hits)

        linked = tuple(replace(link, record=limited(link.record, caller, records)) for link in answer.linked)
        hits, principles = of_hits(answer.hits), of_hits(answer.principles)
        return replace(answer, hits=hits, principles=principles, linked=linked, pending=0)

    def _turns_for(self, request: Recall, caller: Caller, answer: Recalled) -> tuple[Heard, ...] | None:
        search = self._all_turns if request.deep else self._turns
        pools = self._directory.joined(caller.scope)
        return search.search(request, self._world.now(), pools, answer, caller, self._warm.floor(request))


def _is_believed(record: Record) -> bool:
    """Whether a record may be given to an agent that did not ask: not one in doubt, and no link between pools."""
    is_sure = record.status == "active" and not record.flags and not record.needs_review
    return is_sure and record.provenance.source != POINTERS


def _lane(request: Recall) -> Lane:
    return "slow" if request.deep else "fast"
