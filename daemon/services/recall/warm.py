"""Warm recall: finds and ranks relevant records by keywords, vectors, neighbours and graph, without a model (Q2).

Invariants: only records of the scope become candidates; relevance alone decides whether a record is a candidate, the
rest orders (Q5); only the best candidates are read from the disk; an answer reports what it left out (Q10).
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

import msgspec
import numpy as np

from ....protocol.errors import InvalidRequest
from ....protocol.ingestion import SUMMARY
from ....protocol.recall import Hit, Nearest, Recall, Recalled
from ....protocol.record import LIVE, Record
from ....stages.batch import PERSONAL
from ...projections.counters import Counters
from ...projections.keywords import PAST, predecessors
from ...projections.lines import ConversationOrder
from ...projections.ports import RecordReader, TextIndex
from ...projections.profile import PARTS, ProfileCards
from ...projections.project_pointer import DOCUMENT as POINTERS
from ...projections.records import digest
from ...projections.terms import TermQuery, TermScores
from ...projections.timeline import View
from ...world import World
from ..outgoing_screen import SUSPECT
from ..search_model import SearchModel, nearness
from ..service import Permits
from .coverage import Asked, RecordTerms
from .evidence import WeighedCandidates, Weights, grasp, matches, weigh
from .feedback import RecentAnswers
from .general_questions import general_questions, relevances
from .local_candidates import LocalCandidates
from .question import PARSED, parse_question
from .scorer import ScorerNetwork, features, final, scored, standing
from .selection import PRINCIPLE_SHARE, PRINCIPLES, by_chance, cost, deduplicated, within
from .spelling import KnownText, corrected
from .states import asks_for_history, newest_first
from .time_expression import WIDER, TimeFilter, time_filter


class SearchIndexes(NamedTuple):
    """The projections that give candidates, their records and their present strength (R6), and the best records of a
    pool."""

    records: RecordReader
    keywords: TextIndex
    lines: ConversationOrder
    counters: Counters
    profile: ProfileCards


CANDIDATES = 80
"""Most candidates from keywords, and most from vectors."""

CORRECTING = 80
"""Records whose words may correct a question."""

LEADING = 28
"""Candidates, the best by own match, whose neighbours are weighed too; more for a large limit."""

READ = 30
"""Records that are read for ranking; half more than the request's limit, if that is more."""

QUARANTINE = 0.95
"""Factor on the score of an unconfirmed record (T8). A half ranked all else before a mostly imported memory."""

COMPANY, COMPARED = 0.4, 0.55
"""Share of the floor, and of the best record's relevance, that further records of an answer must reach; the best one
must reach the floor."""

SMALL, LARGE = 0.6, 80
"""Share of the floor in a store with one candidate, and the number of candidates from which the whole floor counts: the
best of many texts that do not answer is nearer to a question than the best of few."""

ALONE = 0.5
"""Share of how well a record answers by itself in its relevance; the rest is that of its evidence."""

ORDERED = 0.25
"""The same share where only the order of relevant records is decided: what stands beside a record tells better which
one of them answers than whether any does."""

STATES = 3
"""Candidates that are read although only some words of them are near the question."""

STATE = 0.9
"""Share of how well a record and those that it replaced answer together in its relevance: a change is found by what it
changed."""

SAME_TURN = 0.75
"""Factor on the score of each further record of a turn, which adds less that is new."""

_DEFAULT = Weights()
_IRRELEVANT, _UNMATCHED = "no record is relevant enough", "no record matches by keyword or by meaning"


def doubt(record: Record) -> float:
    """Return the factor on the score of an unconfirmed record."""
    return SUSPECT if record.flags else QUARANTINE


class _Ranked(NamedTuple):
    """A ranked record: its relevance, the scorer's input and output, its near duplicates, and the factor for other
    records of its turn that rank before it."""

    score: float
    record: Record
    relevance: float
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
    history: bool = False
    """Whether it asks for what was so before."""

    def wants(self, record: Record) -> bool:
        """Return whether a record is permitted, of a type that is asked for, and neither a link between pools nor a
        persona block, which no search returns."""
        types = self.request.types
        if record.provenance.source == POINTERS or record.kind == "persona":
            return False
        return (not types or record.type in types) and (self.permits is None or self.permits(record))


class _Searched(NamedTuple):
    """Keyword scores, the cosines of all candidates, and how near the meaning of a text is to the question."""

    words: TermScores
    by_sense: dict[str, float]
    cosine: Callable[[str], float]


class RecordAnswer(NamedTuple):
    """How well a record answers: the relevance of its evidence, how well it answers by itself, and together with those
    that it replaced."""

    evidence: float
    own: float
    state: float = 0.0

    def relevance(self, share: float) -> float:
        """Return the relevance in [0, 1]. `share`: that of how well it answers by itself."""
        return max((1 - share) * self.evidence + share * self.own, STATE * self.state)


class _Found(NamedTuple):
    """The number of matches, the weighed candidates, what the question asks for, the filter by the time that it names,
    how near the meaning of a text is to it, and the question as it was corrected, if it was."""

    matched: int
    weighed: WeighedCandidates
    asked: Asked
    period: TimeFilter | None
    cosine: Callable[[str], float]
    corrected: str = ""


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
        self._records, self._keywords, self._lines, self._counters, self._cards = indexes
        self._sense, self._floor, self._world = sense, floor, world
        self._recent, self._network = recent, network
        self._terms = RecordTerms()

    def recall(
        self,
        request: Recall,
        scope: Sequence[str],
        pending: int,
        view: View | None = None,
        permits: Permits | None = None,
        *,
        noted: bool = True,
        has_floor: bool = True,
    ) -> Recalled:
        """Answer a question over these pools, today or at another time; today's indexes give the candidates (Q12).

        An answer whose best record is below the floor says that it abstains, and holds what may stand beside a turn.
        Records that `permits` rejects (A1), or of another type than those that the request asks for, are dropped before
        anything is weighed, ranked or counted. `noted`: whether it is a client's question, which may be general and
        whose answer feedback may name. `has_floor`: whether the floor counts.
        """
        history = view is None and asks_for_history(request.query[:PARSED])
        query = _Query(request, scope, view, permits, history)
        floor, weights = self.floor(request) if has_floor else 0.0, _weights(request)
        now = self._world.now()
        past = request.include_retired or request.deep or view is not None
        found = self._candidates(query, weights, now, floor, past=past or query.history)
        count, candidates, period_filter = found.matched, found.weighed, found.period
        least = COMPANY * floor
        near = [id for id, pull in zip(candidates.ids, candidates.pull, strict=True) if pull >= least]
        records = self._read(near if past else near[: max(READ, request.limit * 3 // 2)], query)
        states = self._read(_by_words(candidates, least), query)
        records |= {id: record for id, record in states.items() if record.supersedes}
        answers = self._answers(records, found)
        relevance = {id: answer.relevance(ALONE) for id, answer in answers.items()}
        strength = max(relevance.values(), default=0.0)
        if not past:
            floor = max(request.threshold, floor * _share_of_floor(count))
        records = {id: record for id, record in records.items() if relevance[id] >= COMPANY * floor}
        if period_filter is not None:
            in_period = {id: record for id, record in records.items() if period_filter.has(record)}
            records, period_filter = (in_period, period_filter) if in_period else (records, None)
        if floor and not past:
            records = _near_best(records, relevance)
        general = self._general(query, found.asked) if noted and not past else {}
        relevance |= _for_order(records, relevance, answers)
        relevance |= {record.id: weight for record, weight in general.values() if weight > relevance.get(record.id, 0)}
        records |= {id: record for id, (record, _) in general.items()}
        strength = max(relevance.values(), default=0.0) if general else strength
        if query.history:
            records, relevance = self._with_earlier(records, relevance, query)
        ranked = self._ranked(request, records, relevance, now)
        principles, spent = self._principles(query) if view is None else ((), 0)
        shown = {principle.record.id for principle in principles}
        given = {row.record.id: row for row in ranked if row.record.id not in shown}
        fitting = within((row.record for row in given.values()), max(1, request.limit), request.budget_tokens - spent)
        prices = {record.id: price for record, price in fitting}
        hits = tuple(self._hit(given[id], candidates.parts_of(id)) for id in prices)
        abstained = not hits or strength < floor
        return Recalled(
            hits=hits,
            scope=tuple(scope),
            principles=principles,
            recall=self._noted(request, {id: given[id].features for id in prices}) if noted else "",
            strength=round(strength, 4),
            abstained=abstained,
            reason=(_IRRELEVANT if count else _UNMATCHED) if abstained else "",
            nearest=self._nearest(found, query) if abstained else None,
            filtered=max(0, count - len(hits)),
            pending=pending,
            tokens=spent + sum(prices.values()),
            corrected=found.corrected,
            method="overview" if general else "records",
            period=period_filter.period.named() if period_filter and hits else None,
        )

    def _general(self, query: _Query, asked: Asked) -> dict[str, tuple[Record, float]]:
        """Return the records that a general question asks for, with their relevance; none for a specific one."""
        model = self._sense()
        if query.request.types or model.encode is None or not model.is_own:
            return {}
        kind = general_questions().kind(model.encode(query.request.query), asked.weights)
        if not kind:
            return {}
        cards = (card for pool in query.scope for part in PARTS for card in self._cards.cards(pool, part))
        records = {card.id: card for card in cards if query.wants(card)}
        return {id: (records[id], weight) for id, weight in relevances(records.values(), kind, query.scope).items()}

    def _noted(self, request: Recall, rows: Mapping[str, tuple[float, ...]]) -> str:
        """Keep an answer for feedback; return its name, "" under a pass, which allows no feedback."""
        return "" if request.token else self._recent.note(request.agent, request.perspective, dict(rows))

    def floor(self, request: Recall) -> float:
        """Return what the best answer to a request must reach."""
        options = request.options
        return options.floor if options is not None and options.floor >= 0 else self._floor()

    def _candidates(self, query: _Query, weights: Weights, now: int, floor: float, *, past: bool) -> _Found:
        request, scope, _, permits = query[:4]
        self._lines.load()
        request = self._named(query)
        question = parse_question(request, now)
        few = bool(question.period and question.period.past) or bool(request.types)
        most = CANDIDATES * (WIDER if few else 1)
        matched_by = self._searched(request, question.searched, scope, most, past=past)
        right = self._corrected(query, matched_by) if matched_by.words.unknown else ""
        if right:
            request = msgspec.structs.replace(request, query=right)
            question = parse_question(request, now)
            matched_by = self._searched(request, question.searched, scope, most, past=past)
        (by_words, possible, terms, _), by_sense, cosine = matched_by
        if permits is not None or request.types:
            wanted = self._wanted({**by_words, **by_sense}, query)
            by_words = {id: score for id, score in by_words.items() if id in wanted}
            by_sense = {id: score for id, score in by_sense.items() if id in wanted}
        known = grasp(question.language, self._sense().languages)
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
        weighed = weigh(matched, question.asked, weights, linked, self._lines, marks, leading)
        return _Found(count, weighed, Asked(terms, known), fits, cosine, right)

    def _searched(self, request: Recall, words: TermQuery, scope: Sequence[str], most: int, *, past: bool) -> _Searched:
        """Search by words and by meaning."""
        model = self._sense()
        sense = model.encode(request.query) if model.encode is not None else None
        candidates = LocalCandidates(self._keywords, model.vectors)
        by_words, by_sense = candidates.find(words, sense, scope, most, past=past, deep=request.deep)
        return _Searched(by_words, by_sense, nearness(model.encode, sense))

    def _corrected(self, query: _Query, found: _Searched) -> str:
        """Return the question with its slips corrected by the nearest records; "" if it has none."""
        pieces, by_words = self._sense().pieces, found.words.by_id
        if pieces is None:
            return ""
        ids = {*by_words, *found.by_sense}
        near = sorted(ids, key=lambda id: (-by_words.get(id, 0.0), -found.by_sense.get(id, 0.0)))
        asked = query.request.query[:PARSED]
        records = self._read(near[:CORRECTING], query).values()
        texts = (KnownText(record.description, self._terms.of(record)) for record in records)
        right = corrected(asked, found.words.unknown, texts, pieces)
        return right if right != asked else ""

    def _wanted(self, ids: Iterable[str], query: _Query) -> set[str]:
        """Return the candidates that the question wants; for another time, `_read` selects by their types then."""
        if query.view is not None:
            query = query._replace(request=msgspec.structs.replace(query.request, types=()))
        return {id for id, record in self._records.many(ids).items() if query.wants(record)}

    def _named(self, query: _Query) -> Recall:
        """Return the request with the other names of the things that its question names; `permits` decides on each."""
        request, scope, view, permits = query[:4]
        others = {} if view else self._lines.other_names(scope, request.query[:PARSED])
        if not others:
            return request
        records = self._records.many(others).values()
        names = dict.fromkeys(others[record.id] for record in records if permits is None or permits(record))
        return msgspec.structs.replace(request, query=f"{request.query} {' '.join(names)}")

    def _answers(self, records: Mapping[str, Record], found: _Found) -> dict[str, RecordAnswer]:
        """Return how well each of these records answers."""
        weighed, cosine = found.weighed, found.weighed.names.index("cosine")
        places = {id: place for place, id in enumerate(weighed.ids)}
        answers: dict[str, RecordAnswer] = {}
        for id, record in records.items():
            terms, near = self._terms.of(record), float(weighed.parts[places[id], cosine])
            before = predecessors(self._records, record) if record.supersedes else ()
            state = self._as_state(before, terms, near, found) if before else 0.0
            answers[id] = RecordAnswer(weighed.relevance[places[id]], found.asked.answered(terms, near), state)
        return answers

    def _as_state(self, before: Sequence[Record], terms: frozenset[str], cosine: float, found: _Found) -> float:
        """Return how well a record and those that it replaced answer together: a change is found by what it changed."""
        terms = terms.union(*map(self._terms.of, before))
        cosine = max((cosine, *(found.cosine(record.description) for record in before)))
        return found.asked.answered(terms, cosine)

    def _read(self, ids: Sequence[str], query: _Query) -> dict[str, Record]:
        """Read the records of candidates that the asker may see, only from the scope."""
        request, scope, view, _ = query[:4]
        records = self._records.many(ids) if view is None else view.many(ids)
        shown = LIVE | {"archived"} if request.deep else LIVE
        signals = self._counters.signals(records.values())
        return {
            id: msgspec.structs.replace(record, signal=signals[id])
            for id, record in records.items()
            if record.pool in scope
            and query.wants(record)
            and (
                view
                or record.status in shown
                or (request.include_retired and record.status in PAST)
                or (query.history and record.status == "retired")
            )
        }

    def _with_earlier(
        self, records: Mapping[str, Record], relevance: Mapping[str, float], query: _Query
    ) -> tuple[dict[str, Record], dict[str, float]]:
        """Add the states before those that answer a question for the history, as relevant as these."""
        all_records, all_relevance = dict(records), dict(relevance)
        for id, record in records.items():
            before = [earlier.id for earlier in predecessors(self._records, record)]
            for earlier in self._read(before, query).values():
                all_records[earlier.id] = earlier
                all_relevance[earlier.id] = max(all_relevance.get(earlier.id, 0.0), relevance[id])
        return all_records, all_relevance

    def _ranked(
        self,
        request: Recall,
        records: Mapping[str, Record],
        relevance: Mapping[str, float],
        now: int,
    ) -> list[_Ranked]:
        """Order the records by priority and fold near duplicates into the first.

        Scores that are shown alike count as equal, so that ageing and rounding between two questions swap no records.
        """
        words = frozenset(request.query.lower().split())
        rows = [features(record, relevance[id], words, request.perspective, now) for id, record in records.items()]
        prioritised = request.options is None or request.options.priority
        priorities = scored(rows, self._network(request.agent)) if prioritised else [None] * len(rows)
        ranked: list[_Ranked] = []
        for (id, record), row, priority in zip(records.items(), rows, priorities, strict=True):
            score = relevance[id]
            if priority is not None:
                score = final(score, priority, standing(record, record.pool == PERSONAL))
            if record.status == "quarantined":
                score *= doubt(record)
            ranked.append(_Ranked(score, record, relevance[id], row, priority, []))
        ranked.sort(key=lambda row: (-round(row.score, 4), -round(row.relevance, 4), row.record.id))
        ranked = newest_first(_spread(ranked), self._records.successor, lambda row, score: row._replace(score=score))
        ranked = [row for row in ranked if row.score >= request.threshold]
        distinct = deduplicated(ranked) if request.options is None or request.options.fold else ranked
        return by_chance(distinct, max(1, request.limit), self._world.token) if request.by_chance else distinct

    def _hit(self, ranked: _Ranked, parts: Mapping[str, float]) -> Hit:
        parts = {**parts, "relevance": round(ranked.relevance, 4)}
        if ranked.priority is not None:
            parts["priority"] = round(ranked.priority, 4)
        if ranked.record.status == "quarantined":
            parts["quarantined"] = doubt(ranked.record)
        if ranked.again < 1:
            parts["same_turn"] = ranked.again
        record = ranked.record
        details = len(record.provenance.spans) if SUMMARY in record.tags else 0
        score = round(ranked.score, 4)
        return Hit(record=record, score=score, parts=parts, alike=tuple(ranked.alike), details=details)

    def _nearest(self, found: _Found, query: _Query) -> Nearest | None:
        weighed = found.weighed
        best = sorted(range(len(weighed.ids)), key=lambda place: -weighed.direct[place])[:5]
        records = self._read([weighed.ids[place] for place in best], query)
        relevance = {id: answer.relevance(ALONE) for id, answer in self._answers(records, found).items()}
        first = max(records.values(), key=lambda record: relevance[record.id], default=None)
        return first and Nearest(id=first.id, description=first.description, score=round(relevance[first.id], 4))

    def _principles(self, query: _Query) -> tuple[tuple[Hit, ...], int]:
        """Return the principles of the scope within their share of the budget, and their cost (Q8)."""
        request, scope, _, permits = query[:4]
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


def _by_words(candidates: WeighedCandidates, least: float) -> list[str]:
    """Return the best candidates by their words whose evidence is below `least`: the words may be of what they
    replaced, which is as near to a question as they are."""
    match = candidates.parts[:, candidates.names.index("match")]
    order: list[int] = np.argsort(-match, kind="stable")[: 2 * STATES].tolist()
    return [candidates.ids[n] for n in order if match[n] > 0 and candidates.pull[n] < least][:STATES]


def silent(answer: Recalled) -> Recalled:
    """Return an answer that abstains, without its records."""
    spent = sum(cost(hit.record) for hit in answer.hits)
    filtered = answer.filtered + len(answer.hits)
    tokens = answer.tokens - spent
    return msgspec.structs.replace(answer, hits=(), recall="", period=None, filtered=filtered, tokens=tokens)


def _for_order(
    ids: Iterable[str], relevance: Mapping[str, float], answers: Mapping[str, RecordAnswer]
) -> dict[str, float]:
    """Return the relevance of an answer's records by which they are ordered; the best one has that of the best one."""
    ordered = {id: answers[id].relevance(ORDERED) for id in ids}
    best = max(ordered.values(), default=0.0)
    scale = max(relevance[id] for id in ordered) / best if best else 1.0
    return {id: scale * value for id, value in ordered.items()}


def _near_best(records: Mapping[str, Record], relevance: Mapping[str, float]) -> dict[str, Record]:
    least = COMPARED * max((relevance[id] for id in records), default=0.0)
    return {id: record for id, record in records.items() if relevance[id] >= least}


def _share_of_floor(candidates: int) -> float:
    """Return the share of the floor that counts for the best of so many candidates; it grows with their logarithm, as
    the expected maximum of as many chance values with an exponential tail does."""
    return min(1.0, SMALL + (1 - SMALL) * math.log(max(1, candidates)) / math.log(LARGE))


def _weights(request: Recall) -> Weights:
    """Return the weights of a request. Raises InvalidRequest for options outside of benchmarks, or unknown ones."""
    if request.options is None:
        return _DEFAULT
    if os.environ.get("MEMD_BENCH") != "1":
        raise InvalidRequest("`options` are for benchmarks only", hint="start the daemon with MEMD_BENCH=1")
    try:
        return msgspec.structs.replace(_DEFAULT, **request.options.weights)
    except TypeError as error:
        raise InvalidRequest(f"weights: {error}", hint=f"there are {', '.join(Weights.__struct_fields__)}") from error


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
    return sorted(spread, key=lambda row: -round(row.score, 4)) if len(shares) < len(spread) else spread
