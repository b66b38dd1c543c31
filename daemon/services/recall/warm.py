"""WARM: the records relevant to a question, ranked; keywords, vectors, neighbours and graph, no model called (Q2).

Comes in: a question and the pools its asker may read. Goes out: hits with score parts, or an honest nothing.
Invariants: only records of the scope become candidates; relevance decides whether a record is a candidate at all, the
rest only orders (Q5); records are read from the disk for the best candidates alone; an answer says what it left out
(Q10).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import msgspec

from ....protocol.errors import InvalidRequest
from ....protocol.recall import Hit, Nearest, Recall, Recalled
from ....protocol.record import LIVE, Record
from ....stages.batch import PERSONAL
from ...projections.counters import Counters
from ...projections.lines import ConversationOrder
from ...projections.ports import RecordReader, TextIndex
from ...projections.records import digest
from ...projections.timeline import View
from ...world import World
from ..outgoing_screen import SUSPECT
from ..search_model import SearchModel
from ..service import Permits
from .evidence import WeighedCandidates, Weights, grasp, matches, weigh
from .question import look_at
from .recent_answers import RecentAnswers
from .scorer import ScorerNetwork, features, final, scored, standing
from .selection import PRINCIPLE_SHARE, PRINCIPLES, by_chance, folded, within
from .time_filter import WIDER, TimeFilter, during


class SearchIndexes(NamedTuple):
    """Where candidates come from, where their records lie, and how strong these are by now (R6)."""

    records: RecordReader
    keywords: TextIndex
    lines: ConversationOrder
    counters: Counters


POOL_OF_CANDIDATES = 80
"""Candidates that keywords and vectors give each, at most."""

LEADING = 28
"""The best of them by their own match, at least, whose neighbours are looked at too."""

READ = 30
"""Records that are read to be ranked, at least; half more than the question's limit, if that is more."""

QUARANTINE = 0.85
"""The share of its score that an unconfirmed record keeps (T8). Half put everything else before a memory that is mostly
imported."""

COMPANY = 0.5
"""The floor decides by the best record whether there is an answer; so much of it, what else stands in that answer."""

AGAIN = 0.75
"""What stands in one turn says less that is new the second time: so much is left of the score of its next record."""

_DEFAULT = Weights()


def doubt(record: Record) -> float:
    """What a quarantined record keeps of its score."""
    return SUSPECT if record.flags else QUARANTINE


class _Ranked(NamedTuple):
    """A record of an answer: its score, its place among the candidates, what the scorer saw and said, its twins, and
    what is left of the score because others of its turn come first."""

    score: float
    record: Record
    place: int
    features: tuple[float, ...]
    priority: float | None
    alike: list[str]
    again: float = 1.0


class WarmRecall:
    """Search and rank over records, keywords and vectors. The threads of the door and of the slow lane ask."""

    def __init__(
        self,
        sought: SearchIndexes,
        sense: Callable[[], SearchModel],
        floor: Callable[[], float],
        recent: RecentAnswers,
        network: Callable[[str], ScorerNetwork | None],
        world: World,
    ) -> None:
        """`sense` and `floor` are asked for each question; `network`: the learnt scorer of an agent, if any."""
        self._records, self._keywords, self._lines, self._counters = sought
        self._sense, self._floor, self._world = sense, floor, world
        self._recent, self._network = recent, network

    def recall(
        self,
        request: Recall,
        scope: Sequence[str],
        pending: int,
        view: View | None = None,
        permits: Permits | None = None,
    ) -> Recalled:
        """The answer to a question over these pools, today or to another time: candidates by today's words (Q12).

        What `permits` does not let the asker see is dropped before anything is weighed, ranked or counted (A1).
        """
        floor, weights = self._settings(request)
        now = self._world.now()
        past = request.include_retired or request.deep or view is not None
        count, found, then = self._candidates(request, scope, weights, now, permits, floor, past=past)
        strength = max(found.direct, default=0.0)
        places = [n for n, pull in enumerate(found.pull) if pull >= COMPANY * floor] if strength >= floor else []
        if not past:
            places = places[: max(READ, request.limit * 3 // 2)]
        records = self._read([found.ids[n] for n in places], scope, request, view, permits)
        if then is not None:
            of_then = {id: record for id, record in records.items() if then.has(record)}
            records, then = (of_then, then) if of_then else (records, None)
        standing_at = {found.ids[n]: n for n in places if found.ids[n] in records}
        ranked = self._ranked(request, records, found, standing_at, now)
        principles, spent = self._principles(request, scope, permits) if view is None else ((), 0)
        always = {each.record.id for each in principles}
        given = {each.record.id: each for each in ranked if each.record.id not in always}
        fitting = within((each.record for each in given.values()), max(1, request.limit), request.budget_tokens - spent)
        prices = {record.id: price for record, price in fitting}
        kept = tuple(self._hit(given[id], found) for id in prices)
        return Recalled(
            hits=kept,
            scope=tuple(scope),
            principles=principles,
            recall=self._recent.note(request.agent, request.perspective, {id: given[id].features for id in prices}),
            strength=round(strength, 4),
            abstained=not kept,
            reason=""
            if kept
            else ("no record is relevant enough" if count else "no record matches by keyword or by meaning"),
            nearest=None if kept else self._nearest(found, scope, request, view, permits),
            filtered=max(0, count - len(kept)),
            pending=pending,
            tokens=spent + sum(prices.values()),
            period=then.period.named() if then and kept else None,
        )

    def _settings(self, request: Recall) -> tuple[float, Weights]:
        options = request.options
        if options is None:
            return max(self._floor(), request.threshold), _DEFAULT
        if os.environ.get("MEMD_BENCH") != "1":
            raise InvalidRequest("`options` are for benchmarks only", hint="start the daemon with MEMD_BENCH=1")
        try:
            weights = msgspec.structs.replace(_DEFAULT, **options.weights)
        except TypeError as error:
            raise InvalidRequest(
                f"weights: {error}", hint=f"there are {', '.join(Weights.__struct_fields__)}"
            ) from error
        return (self._floor() if options.floor < 0 else options.floor), weights

    def _candidates(
        self,
        request: Recall,
        scope: Sequence[str],
        weights: Weights,
        now: int,
        permits: Permits | None,
        floor: float,
        *,
        past: bool,
    ) -> tuple[int, WeighedCandidates, TimeFilter | None]:
        """How many match at all; the best of them, with what stands beside them, by all that speaks for them; and the
        time that the answer is held to."""
        self._lines.load()
        question = look_at(request, now)
        most = POOL_OF_CANDIDATES * (WIDER if question.period and question.period.past else 1)
        by_words, possible = self._keywords.search(question.searched, scope, most, past=past)
        by_sense: dict[str, float] = {}
        held: frozenset[str] | None = None
        vectors, encode, languages = self._sense()
        if encode is not None:
            sense = encode(request.query)
            by_sense = dict(vectors.nearest(sense, scope, most))
            if request.deep:
                by_sense |= vectors.nearest_shelved(sense, scope, most)
            held = vectors.holding(by_words)
        if permits is not None:
            seen = {id for id, record in self._records.many({**by_words, **by_sense}).items() if permits(record)}
            by_words = {id: score for id, score in by_words.items() if id in seen}
            by_sense = {id: score for id, score in by_sense.items() if id in seen}
        known = grasp(question.language, languages)
        found = matches(by_words, possible, by_sense, held, weights, known)
        count = len(found.places)
        then = during(question.period, found, self._lines, floor)
        if then is not None:
            by_words = {id: score for id, score in by_words.items() if then.may_have(id, self._lines)}
            by_sense = {id: score for id, score in by_sense.items() if then.may_have(id, self._lines)}
            found = matches(by_words, possible, by_sense, held, weights, known)
        graph = request.options is None or request.options.graph
        linked = self._lines.linked(scope, question.things) if graph else {}
        marks = {digest(pool) for pool in scope}
        leading = len(found.places) if past else max(LEADING, 2 * request.limit)
        return count, weigh(found, question.asked, weights, linked, self._lines, marks, leading), then

    def _read(
        self,
        ids: Sequence[str],
        scope: Sequence[str],
        request: Recall,
        view: View | None,
        permits: Permits | None,
    ) -> dict[str, Record]:
        """The records of these candidates that the asker may see: none from outside of the scope, whoever found it."""
        records = self._records.many(ids) if view is None else view.many(ids)
        shown = LIVE | {"archived"} if request.deep else LIVE
        signals = self._counters.signals(records.values())
        return {
            id: msgspec.structs.replace(record, signal=signals[id])
            for id, record in records.items()
            if record.pool in scope
            and (permits is None or permits(record))
            and (
                view or record.status in shown or (request.include_retired and record.status in ("retired", "archived"))
            )
        }

    def _ranked(
        self,
        request: Recall,
        records: Mapping[str, Record],
        found: WeighedCandidates,
        places: Mapping[str, int],
        now: int,
    ) -> list[_Ranked]:
        """The records in order of priority, those that say the same folded into the first."""
        words = frozenset(request.query.lower().split())
        rows = [features(records[id], found.relevance[n], words, request.perspective, now) for id, n in places.items()]
        usual = request.options is None or request.options.priority
        priorities = scored(rows, self._network(request.agent)) if usual else [None] * len(rows)
        ranked: list[_Ranked] = []
        for (id, place), row, priority in zip(places.items(), rows, priorities, strict=True):
            record, score = records[id], found.relevance[place]
            if priority is not None:
                score = final(score, priority, standing(record, record.pool == PERSONAL))
            if record.status == "quarantined":
                score *= doubt(record)
            if score >= request.threshold:
                ranked.append(_Ranked(score, record, place, row, priority, []))
        ranked.sort(key=lambda each: (-each.score, -found.relevance[each.place], each.record.id))
        ranked = _spread(ranked)
        distinct = folded(ranked) if request.options is None or request.options.fold else ranked
        return by_chance(distinct, max(1, request.limit), self._world.token) if request.by_chance else distinct

    def _hit(self, ranked: _Ranked, found: WeighedCandidates) -> Hit:
        parts = {**found.parts_of(ranked.place), "relevance": round(found.relevance[ranked.place], 4)}
        if ranked.priority is not None:
            parts["priority"] = round(ranked.priority, 4)
        if ranked.record.status == "quarantined":
            parts["quarantined"] = doubt(ranked.record)
        if ranked.again < 1:
            parts["same_turn"] = ranked.again
        return Hit(record=ranked.record, score=round(ranked.score, 4), parts=parts, alike=tuple(ranked.alike))

    def _principles(
        self, request: Recall, scope: Sequence[str], permits: Permits | None
    ) -> tuple[tuple[Hit, ...], int]:
        """The principles of the scope, at most 20 a pool and a fifth of the budget, and what they cost (Q8)."""
        ids = [id for pool in scope for id in self._lines.principles([pool])[:PRINCIPLES]]
        if not ids:
            return (), 0
        found = self._records.many(ids).values()
        records = [each for each in found if each.pool in scope and each.status in LIVE]
        records = [each for each in records if permits is None or permits(each)]
        records.sort(key=lambda record: (record.pool != PERSONAL, -record.signal.importance, record.id))
        budget = int(request.budget_tokens * PRINCIPLE_SHARE)
        chosen = list(within(records, len(records), budget, at_least=0))
        return tuple(Hit(record=record, score=1.0, parts={"principle": 1.0}) for record, _ in chosen), sum(
            price for _, price in chosen
        )

    def _nearest(
        self,
        found: WeighedCandidates,
        scope: Sequence[str],
        request: Recall,
        view: View | None,
        permits: Permits | None,
    ) -> Nearest | None:
        best = sorted(range(len(found.ids)), key=lambda place: -found.direct[place])[:5]
        records = self._read([found.ids[place] for place in best], scope, request, view, permits)
        for place in best:
            if (record := records.get(found.ids[place])) is not None:
                return Nearest(id=record.id, description=record.description, score=round(found.direct[place], 4))
        return None


def _spread(ranked: Sequence[_Ranked]) -> list[_Ranked]:
    """The records, best first, those of a turn of which others stand before them put back."""
    shares: dict[tuple[str, str], float] = {}
    spread: list[_Ranked] = []
    for each in ranked:
        for span in each.record.provenance.spans[:1]:
            turn = span.document, span.turn
            again = shares.get(turn, 1.0)
            shares[turn] = again * AGAIN
            if again < 1:
                each = each._replace(score=each.score * again, again=round(again, 4))
        spread.append(each)
    return sorted(spread, key=lambda each: -each.score) if len(shares) < len(spread) else spread
