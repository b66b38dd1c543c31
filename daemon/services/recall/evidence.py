"""Evidence: weighs each candidate by its own match and by its surroundings (Q2, Q5).

Invariants: pure; the best own match of an answer is its `strength`, and evidence only orders below it; a candidate that
neither matches nor stands beside a match gets no relevance from anything else.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from ...projections.lines import ConversationOrder, OrderCard

COSINE_FLOOR, COSINE_CEILING = 0.3, 0.7
"""The range in which a cosine measures how well a record answers; below it a cosine means nothing."""

NEAR_FLOOR, NEAR_CEILING = 0.1, 0.7
"""The range for ordering: cosines below that of an answer still separate better from worse."""

RELATED = 0.3
"""Trust in cosines for an unknown language in Latin script, which shares names and loan words; else it is 0."""

ALONE, IN_BIGRAMS = 4.0, 8.0
"""Factors on the matched share of the words where only words count, without and with bigrams: a note never contains
the question's phrasing, which is most of its bigrams (right notes reach .03 to .11 there, other talk at most .02)."""

BIGRAMS = frozenset(("ja", "ko", "th", "zh"))
LATIN = frozenset("da de es fi fr it nl no pl pt sv tr".split())

BESIDE = 0.7
"""Weight of a neighbour's match for the floor: in full if the neighbour asks, else at most twice the own match."""

LED = 1.1
"""Factor by which the nearest by words and by sense leads the best of the others."""

SURE = 0.7
"""The own match of a record that has nearly all words of a question, and its sense."""

AS_NEAR = 0.05
"""A smaller difference of cosines is noise: a table encodes the question, the model the record."""

LONG = 5.0
"""The natural logarithm of the number of words (150) beyond which a longer record gains nothing."""


class Weights(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The weight of each part. All but `match`, which is set by hand, are fitted on invented talk with `words` as 1;
    `memd bench read/weights` fits them again and tests them on other talk."""

    match: float = 0.5
    """The share of the matched words in the own match; the rest is the cosine's."""
    words: float = 1.0
    """BM25, as a share of the best."""
    sense: float = 1.35
    """The cosine."""
    before: float = 2.47
    """The match of the two lines before, on average."""
    after: float = 0.91
    """The match of the two lines after, on average."""
    reply: float = 0.25
    """The match of the line right before, as far as that line asks: this one may be the answer."""
    named: float = 0.76
    """The question names its speaker or its subject."""
    when: float = 1.78
    """Its time is the one that the question names."""
    graph: float = 0.44
    """One edge (in full) or two (in part) link it to a thing that the question names."""
    size: float = 2.49
    """Its length: the logarithm of the number of words."""
    asks: float = -1.73
    """The share of its sentences that ask."""


class QueryTerms(msgspec.Struct, frozen=True, kw_only=True):
    """A question's words in lower case, and the time that it names in microseconds."""

    words: frozenset[str]
    period: tuple[int, int] | None = None


Numbers = NDArray[np.float32]


class Matches(NamedTuple):
    """The place of each id, and in that order the scores of keywords and vectors: float32 in [0, 1], except cosines.

    `words`: BM25 as a share of the best; `match`: BM25 as a share of the possible maximum; `sense`: the cosine scaled
    for ordering; `direct`: the own match, on one scale for all questions.
    """

    places: Mapping[str, int]
    words: Numbers
    match: Numbers
    cosine: Numbers
    sense: Numbers
    direct: Numbers


class WeighedCandidates(NamedTuple):
    """The weighed candidates, best first. `parts`: a column for each of `names`.

    `pull` is compared with the floor: the own match, or most of a neighbour's.
    """

    ids: Sequence[str]
    relevance: Sequence[float]
    pull: Sequence[float]
    direct: Sequence[float]
    names: Sequence[str]
    parts: Numbers

    def parts_of(self, id: str) -> dict[str, float]:
        """Return the non-zero parts of one candidate by name; none for a record that is no candidate."""
        if id not in self.ids:
            return {}
        place = self.ids.index(id)
        values = self.parts[place].tolist()
        return {name: round(value, 4) for name, value in zip(self.names, values, strict=True) if abs(value) >= 5e-5}


def _between(values: Numbers, floor: float, ceiling: float) -> Numbers:
    return np.minimum(np.maximum((values - np.float32(floor)) / np.float32(ceiling - floor), 0), 1)


class Proficiency(NamedTuple):
    """How far a model knows a language: the trust in its cosines in [0, 1], and the factor on the words instead."""

    trust: float = 1.0
    words: float = 1.0


def grasp(code: str, languages: Sequence[str]) -> Proficiency:
    if code in languages or "*" in languages:
        return Proficiency()
    trust = RELATED if code in LATIN else 0.0
    return Proficiency(trust, 1 + (1 - trust) * ((IN_BIGRAMS if code in BIGRAMS else ALONE) - 1))


_GRASPED = Proficiency()


def matches(
    by_words: Mapping[str, float],
    possible: float,
    by_sense: Mapping[str, float],
    weights: Weights,
    known: Proficiency = _GRASPED,
) -> Matches:
    """Compute the own match of every candidate.

    `by_sense`: the cosine of every candidate that has a vector; empty if the question has none. A candidate without a
    vector (new, or retired) is judged by its words alone. `known`: for the question's language.
    """
    place = {id: number for number, id in enumerate({**by_words, **by_sense})}  # those with words come first
    score, cosine = np.zeros((2, len(place)), np.float32)
    score[: len(by_words)] = list(by_words.values())
    cosine[[place[id] for id in by_sense]] = list(by_sense.values())
    best = float(score.max(initial=0.0))
    words = score / np.float32(best) if best else score
    match = np.minimum(score / np.float32(possible), 1) if possible else score
    sense = np.float32(known.trust) * _between(cosine, NEAR_FLOOR, NEAR_CEILING)
    answers = _between(cosine, COSINE_FLOOR, COSINE_CEILING)
    alone = np.array([id not in by_sense for id in place], bool)
    share = np.float32(1 - (1 - weights.match) * known.trust)
    covered = np.minimum(match * np.float32(known.words), 1)
    direct = np.where(alone, covered, share * covered + (1 - share) * answers)
    return Matches(place, words, match, cosine, np.where(alone, words, sense), direct)


def _chosen(
    leading: Iterable[str], linked: Iterable[str], lines: ConversationOrder, scope: Collection[bytes]
) -> dict[str, OrderCard | None]:
    """Return the leading candidates, their neighbours and the linked ones, each with its card."""
    cards = lines.many(leading)
    for card in list(cards.values()):
        if card is not None:
            for neighbour in card.around():
                if neighbour is not None and neighbour.pool in scope:
                    cards[neighbour.id] = neighbour
    for id in linked:
        if id not in cards:
            cards[id] = lines.get(id)
    return cards


def _around(cards: Mapping[str, OrderCard | None]) -> NDArray[np.intp]:
    """Return for each candidate the places of the two before and the two after it; `len(cards)` for none.

    The last row is for no candidate."""
    none = len(cards)
    place = {id: number for number, id in enumerate(cards)}
    around = np.full((none + 1, 4), none, np.intp)
    for number, card in enumerate(cards.values()):
        if card is not None and (card.before or card.after):
            around[number] = [none if near is None else place.get(near.id, none) for near in card.around()]
    return around


def weigh(
    matched: Matches,
    asked: QueryTerms,
    weights: Weights,
    linked: Mapping[str, float],
    lines: ConversationOrder,
    scope: Collection[bytes],
    leading: int,
) -> WeighedCandidates:
    """Weigh the `leading` candidates by their own match, their neighbours and the linked ones.

    `linked`: how near each record is to a thing that the question names. `scope`: the digests of the pools.
    """
    base = np.float32(weights.words) * matched.words + np.float32(weights.sense) * matched.sense
    all_ids = list(matched.places)
    order: list[int] = np.argsort(-base, kind="stable")[:leading].tolist()
    chosen = _chosen([all_ids[number] for number in order], linked, lines, scope)
    columns = np.zeros((5, len(all_ids) + 1), np.float32)  # the last column is for records that are no candidates
    columns[:, :-1] = matched.words, matched.match, matched.cosine, matched.sense, matched.direct
    words, match, cosine, sense, direct = columns[:, [*(matched.places.get(id, -1) for id in chosen), -1]]
    cards = [*chosen.values(), None]  # the last row is for a missing neighbour
    around = _around(chosen)
    near = ((words + sense) / 2)[around]
    asking = _column([0 if card is None else card.row.asks for card in cards])
    sizes = _column([0 if card is None else card.row.size for card in cards])
    none = np.zeros(len(cards), np.float32)
    parts = {
        "words": words,
        "sense": sense,
        "before": (near[:, 0] + near[:, 1]) / 2,
        "after": (near[:, 2] + near[:, 3]) / 2,
        "reply": near[:, 0] * asking[around[:, 0]],
        "named": _column([card is not None and not asked.words.isdisjoint(card.row.who) for card in cards]),
        "when": _column([_inside(card, asked.period) for card in cards]) if asked.period else none,
        "graph": _column([*(linked.get(id, 0.0) for id in chosen), 0.0]) if linked else none,
        "size": np.minimum(np.log1p(sizes) / np.float32(LONG), 1),
        "asks": asking,
    }
    table = np.array([*parts.values(), match, cosine])[:, :-1]
    rank = np.array([getattr(weights, name) for name in parts], np.float32) @ table[: len(parts)]
    beside = (np.float32(BESIDE) * direct)[around]
    answering = beside[:, 0] * np.ceil(asking)[around[:, 0]]
    beside = np.maximum(answering, np.minimum(beside.max(axis=1), 2 * direct))
    pull = np.maximum(np.maximum(direct, parts["graph"] / 2), beside)
    rank = _lead_by_nearest(rank, words[:-1], sense[:-1], cosine[:-1], direct[:-1])
    strength, top = float(matched.direct.max(initial=0.0)), float(rank.max(initial=0.0))
    relevance = np.maximum(rank, 0) * np.float32(strength / top if top > 0 else 0.0)
    ids, by_relevance = list(chosen), relevance.tolist()
    best = sorted(range(len(ids)), key=lambda number: (-by_relevance[number], ids[number]))
    return WeighedCandidates(
        [ids[number] for number in best],
        relevance[best].tolist(),
        pull[best].tolist(),
        direct[best].tolist(),
        (*parts, "match", "cosine"),
        table.T[best],
    )


def _lead_by_nearest(rank: Numbers, words: Numbers, sense: Numbers, cosine: Numbers, direct: Numbers) -> Numbers:
    """Raise a sure answer to the first rank: the nearest by words that is as near as any by sense, or has no vector."""
    if len(rank) and words[first := int(words.argmax())] > 0:
        unembedded = cosine[first] == 0 and sense[first] == words[first]
        if unembedded or (cosine[first] >= cosine.max() - AS_NEAR and direct[first] >= SURE):
            rank[first] = max(rank[first], np.float32(LED) * rank.max())
    return rank


def _column(values: Sequence[float]) -> Numbers:
    return np.array(values, np.float32)


def _inside(card: OrderCard | None, period: tuple[int, int] | None) -> bool:
    """Whether a record became true, or was said, in a period."""
    if card is None or period is None:
        return False
    return period[0] <= card.row.since < period[1] or period[0] <= card.row.at < period[1]
