"""Warm recall: finds and ranks relevant records by keywords, vectors, neighbours and graph, without a model (Q2).

Invariants: only records of the scope become candidates; relevance alone decides whether a record is a candidate, the
rest orders (Q5); only the best candidates are read from the disk; an answer reports what it left out (Q10).
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
from .feedback import RecentAnswers
from .question import PARSED, parse_question
from .scorer import ScorerNetwork, features, final, scored, standing
from .selection import PRINCIPLE_SHARE, PRINCIPLES, by_chance, deduplicated, within
from .time_expression import WIDER, TimeFilter, time_filter


class SearchIndexes(NamedTuple):
    """The projections that give candidates, their records and their present strength (R6)."""

    records: RecordReader
    keywords: TextIndex
    lines: ConversationOrder
    counters: Counters


CANDIDATES = 80
"""Most candidates from keywords, and most from vectors."""

LEADING = 28
"""Candidates, the best by own match, whose neighbours are weighed too; more for a large limit."""

READ = 30
"""Records that are read for ranking; half more than the request's limit, if that is more."""

QUARANTINE = 0.85
"""Factor on the score of an unconfirmed record (T8). A half ranked all else before a mostly imported memory."""

COMPANY = 0.5
"""Share of the floor that further records of an answer must reach; the best one must reach the floor."""

SAME_TURN = 0.75
"""Factor on the score of each further record of a turn, which adds less that is new."""

_DEFAULT = Weights()


def doubt(record: Record) -> float:
    """Return the factor on the score of an unconfirmed record."""
    return SUSPECT if record.flags else QUARANTINE


class _Ranked(NamedTuple):
    """A ranked record: its place among the candidates, the scorer's input and output, its near duplicates, and the
    factor for other records of its turn that rank before it."""

    score: float
    record: Record
    place: int
    features: tuple[float, ...]
    priority: float | None
    alike: list[str]
    again: float = 1.0


class _Query(NamedTuple):
    """A request with the pools that it reads, the permitted records, and the time at which it asks."""

    request: Recall
    scope: Sequence[str]
    view: View | None
    permits: Permits | None


class WarmRecall:
    """Searches and ranks, on the fast and on the slow lane."""

    def __init__(
        self,
        indexes: SearchIndexes,
        sense: Callable[[], SearchModel],
        floor: Callable[[], float],
        recent: RecentAnswers,
        network: Callable[[str], ScorerNetwork | None],
        world: World,
    ) -> None:
        """`sense` and `floor` are called for each question; `network`: the learned scorer of an agent, if any."""
        self._records, self._keywords, self._lines, self._counters = indexes
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
        """Answer a question over these pools, today or at another time; today's indexes give the candidates (Q12).

        Records that `permits` rejects are dropped before anything is weighed, ranked or counted (A1).
        """
        query = _Query(request, scope, view, permits)
        floor, weights = self._settings(request)
        now = self._world.now()
        past = request.include_retired or request.deep or view is not None
        count, candidates, period_filter = self._candidates(query, weights, now, floor, past=past)
        strength = max(candidates.direct, default=0.0)
        places = [n for n, pull in enumerate(candidates.pull) if pull >= COMPANY * floor] if strength >= floor else []
        if not past:
            places = places[: max(READ, request.limit * 3 // 2)]
        records = self._read([candidates.ids[n] for n in places], query)
        if period_filter is not None:
            in_period = {id: record for id, record in records.items() if period_filter.has(record)}
            records, period_filter = (in_period, period_filter) if in_period else (records, None)
        place_of = {candidates.ids[n]: n for n in places if candidates.ids[n] in records}
        ranked = self._ranked(request, records, candidates, place_of, now)
        principles, spent = self._principles(query) if view is None else ((), 0)
        shown = {principle.record.id for principle in principles}
        given = {row.record.id: row for row in ranked if row.record.id not in shown}
        fitting = within((row.record for row in given.values()), max(1, request.limit), request.budget_tokens - spent)
        prices = {record.id: price for record, price in fitting}
        hits = tuple(self._hit(given[id], candidates) for id in prices)
        return Recalled(
            hits=hits,
            scope=tuple(scope),
            principles=principles,
            recall=self._noted(request, {id: given[id].features for id in prices}),
            strength=round(strength, 4),
            abstained=not hits,
            reason=""
            if hits
            else ("no record is relevant enough" if count else "no record matches by keyword or by meaning"),
            nearest=None if hits else self._nearest(candidates, query),
            filtered=max(0, count - len(hits)),
            pending=pending,
            tokens=spent + sum(prices.values()),
            period=period_filter.period.named() if period_filter and hits else None,
        )

    def _noted(self, request: Recall, rows: Mapping[str, tuple[float, ...]]) -> str:
        """Keep an answer for feedback; return its name, "" under a pass, which allows no feedback."""
        return "" if request.token else self._recent.note(request.agent, request.perspective, dict(rows))

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
        self, query: _Query, weights: Weights, now: int, floor: float, *, past: bool
    ) -> tuple[int, WeighedCandidates, TimeFilter | None]:
        """Return the number of matches, the weighed candidates, and the filter by the time that the question names."""
        request, scope, _, permits = query
        self._lines.load()
        request = self._named(query)
        question = parse_question(request, now)
        most = CANDIDATES * (WIDER if question.period and question.period.past else 1)
        by_words, possible = self._keywords.search(question.searched, scope, most, past=past)
        by_sense: dict[str, float] = {}
        vectors, encode, languages = self._sense()
        if encode is not None:
            sense = encode(request.query)
            by_sense = dict(vectors.nearest(sense, scope, most))
            if request.deep:
                by_sense |= vectors.nearest_shelved(sense, scope, most)
            by_sense |= vectors.cosines(sense, by_words.keys() - by_sense.keys())
        if permits is not None:
            permitted = {id for id, record in self._records.many({**by_words, **by_sense}).items() if permits(record)}
            by_words = {id: score for id, score in by_words.items() if id in permitted}
            by_sense = {id: score for id, score in by_sense.items() if id in permitted}
        known = grasp(question.language, languages)
        matched = matches(by_words, possible, by_sense, weights, known)
        count = len(matched.places)
        fits = time_filter(question.period, matched, self._lines, floor)
        if fits is not None:
            by_words = {id: score for id, score in by_words.items() if fits.may_have(id, self._lines)}
            by_sense = {id: score for id, score in by_sense.items() if fits.may_have(id, self._lines)}
            matched = matches(by_words, possible, by_sense, weights, known)
        graph = request.options is None or request.options.graph
        linked = self._lines.linked(scope, question.things) if graph else {}
        marks = {digest(pool) for pool in scope}
        leading = len(matched.places) if past else max(LEADING, 2 * request.limit)
        return count, weigh(matched, question.asked, weights, linked, self._lines, marks, leading), fits

    def _named(self, query: _Query) -> Recall:
        """Return the request with the other names of the things that its question names; `permits` decides on each."""
        request, scope, view, permits = query
        others = {} if view else self._lines.other_names(scope, request.query[:PARSED])
        if not others:
            return request
        records = self._records.many(others).values()
        names = dict.fromkeys(others[record.id] for record in records if permits is None or permits(record))
        return msgspec.structs.replace(request, query=f"{request.query} {' '.join(names)}")

    def _read(self, ids: Sequence[str], query: _Query) -> dict[str, Record]:
        """Read the records of candidates that the asker may see, only from the scope."""
        request, scope, view, permits = query
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
        candidates: WeighedCandidates,
        places: Mapping[str, int],
        now: int,
    ) -> list[_Ranked]:
        """Order the records by priority and fold near duplicates into the first."""
        words = frozenset(request.query.lower().split())
        relevance = candidates.relevance
        rows = [features(records[id], relevance[n], words, request.perspective, now) for id, n in places.items()]
        prioritised = request.options is None or request.options.priority
        priorities = scored(rows, self._network(request.agent)) if prioritised else [None] * len(rows)
        ranked: list[_Ranked] = []
        for (id, place), row, priority in zip(places.items(), rows, priorities, strict=True):
            record, score = records[id], relevance[place]
            if priority is not None:
                score = final(score, priority, standing(record, record.pool == PERSONAL))
            if record.status == "quarantined":
                score *= doubt(record)
            if score >= request.threshold:
                ranked.append(_Ranked(score, record, place, row, priority, []))
        ranked.sort(key=lambda row: (-row.score, -relevance[row.place], row.record.id))
        ranked = _spread(ranked)
        distinct = deduplicated(ranked) if request.options is None or request.options.fold else ranked
        return by_chance(distinct, max(1, request.limit), self._world.token) if request.by_chance else distinct

    def _hit(self, ranked: _Ranked, candidates: WeighedCandidates) -> Hit:
        parts = {**candidates.parts_of(ranked.place), "relevance": round(candidates.relevance[ranked.place], 4)}
        if ranked.priority is not None:
            parts["priority"] = round(ranked.priority, 4)
        if ranked.record.status == "quarantined":
            parts["quarantined"] = doubt(ranked.record)
        if ranked.again < 1:
            parts["same_turn"] = ranked.again
        return Hit(record=ranked.record, score=round(ranked.score, 4), parts=parts, alike=tuple(ranked.alike))

    def _principles(self, query: _Query) -> tuple[tuple[Hit, ...], int]:
        """Return the principles of the scope within their share of the budget, and their cost (Q8)."""
        request, scope, _, permits = query
        ids = [id for pool in scope for id in self._lines.principles([pool])[:PRINCIPLES]]
        if not ids:
            return (), 0
        records = [
            record
            for record in self._records.many(ids).values()
            if record.pool in scope and record.status in LIVE and (permits is None or permits(record))
        ]
        records.sort(key=lambda record: (record.pool != PERSONAL, -record.signal.importance, record.id))
        budget = int(request.budget_tokens * PRINCIPLE_SHARE)
        chosen = list(within(records, len(records), budget, at_least=0))
        hits = tuple(Hit(record=record, score=1.0, parts={"principle": 1.0}) for record, _ in chosen)
        return hits, sum(price for _, price in chosen)

    def _nearest(self, candidates: WeighedCandidates, query: _Query) -> Nearest | None:
        best = sorted(range(len(candidates.ids)), key=lambda place: -candidates.direct[place])[:5]
        records = self._read([candidates.ids[place] for place in best], query)
        for place in best:
            if (record := records.get(candidates.ids[place])) is not None:
                return Nearest(id=record.id, description=record.description, score=round(candidates.direct[place], 4))
        return None


def _spread(ranked: Sequence[_Ranked]) -> list[_Ranked]:
    """Lower each record of a turn that an earlier record comes from; return the records, best first."""
    shares: dict[tuple[str, str], float] = {}
    spread: list[_Ranked] = []
    for row in ranked:
        for span in row.record.provenance.spans[:1]:
            turn = span.document, span.turn
            again = shares.get(turn, 1.0)
            shares[turn] = again * SAME_TURN
            if again < 1:
                row = row._replace(score=row.score * again, again=round(again, 4))
        spread.append(row)
    return sorted(spread, key=lambda row: -row.score) if len(shares) < len(spread) else spread
