"""Evidence: how much speaks for each candidate, from its own match and from what stands around it (Q2, Q5).

Comes in: candidates with the scores that keywords and vectors gave them. Goes out: a relevance in [0, 1] each, and its
parts. Invariants: pure; the best match of an answer says how good the answer is (`strength`), evidence only orders
below it; a candidate that neither matches nor stands beside one that does is none, whatever else speaks for it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from ...projections.lines import ConversationOrder, OrderCard

COSINE_FLOOR, COSINE_CEILING = 0.3, 0.7
"""Between these a cosine says how well a record answers; below the first it says nothing."""

NEAR_FLOOR, NEAR_CEILING = 0.1, 0.7
"""The same, to order by: cosines below that of an answer still tell better from worse."""

RELATED = 0.3
"""What the cosines of a model that does not know the language are worth where it shares names and loans, by its script;
in other scripts they are noise."""

ALONE, IN_BIGRAMS = 4.0, 8.0
"""Where the words must tell alone, a share of them that is so many times smaller is as good: how a question is put is
never in a note, and in bigrams that is most of it (right notes reach .03 to .11 there, other talk at most .02)."""

BIGRAMS = frozenset(("ja", "ko", "th", "zh"))
LATIN = frozenset("da de es fi fr it nl no pl pt sv tr".split())

BESIDE = 0.7
"""What a match beside a record counts for it: in full where that asks, else at most twice its own match."""

LED = 1.1
"""How far what is nearest by words and by sense stands before the best of the others."""

SURE = 0.7
"""The own match of what holds nearly all words of a question, and its sense."""

AS_NEAR = 0.05
"""Cosines so little apart tell nothing: a question is encoded by the table, a record by the model."""

LONG = 5.0
"""The natural logarithm of the words (150) beyond which a record says no more by being longer."""


class Weights(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What each part counts. All but `match`, which is set by hand, are fitted on invented talk, of projects and of
    people's lives, with `words` as one: `memd bench read/weights` fits them again, and tries them on other talk."""

    match: float = 0.5
    """Of an answer's strength, the share of the words that were found; the rest is the cosine's."""
    words: float = 1.0
    """BM25, as a share of the best."""
    sense: float = 1.35
    """The cosine."""
    before: float = 2.47
    """What the two lines before say to the question, on average."""
    after: float = 0.91
    """What the two lines after say to it."""
    reply: float = 0.25
    """What the line right before says to it, as far as that line asks: this one may be the answer."""
    named: float = 0.76
    """The question names who said it, or whom it is about."""
    when: float = 1.78
    """It lies in the time that the question names."""
    graph: float = 0.44
    """It is linked to a thing that the question names: in full by an edge, in part by two."""
    size: float = 2.49
    """How much it says: the logarithm of its words."""
    asks: float = -1.73
    """The share of it that asks."""


class QueryTerms(msgspec.Struct, frozen=True, kw_only=True):
    """What of a question evidence looks at: its words in lower case, the time it names in microseconds."""

    words: frozenset[str]
    period: tuple[int, int] | None = None


Numbers = NDArray[np.float32]


class Matches(NamedTuple):
    """What keywords and vectors gave: each id's place, and in that order the scores: float32 in [0, 1], but cosines.

    `words`: BM25 as a share of the best; `match`: as a share of what the question's terms could reach; `sense`: the
    cosine, to order by; `direct`: how well it matches by itself, on a scale that is the same for every question.
    """

    places: Mapping[str, int]
    words: Numbers
    match: Numbers
    cosine: Numbers
    sense: Numbers
    direct: Numbers


class WeighedCandidates(NamedTuple):
    """The candidates that evidence was looked at for, best first. `parts`: a column for each of `names`.

    `pull` is what the floor is held against: the own match, or most of that of a record beside it.
    """

    ids: Sequence[str]
    relevance: Sequence[float]
    pull: Sequence[float]
    direct: Sequence[float]
    names: Sequence[str]
    parts: Numbers

    def parts_of(self, place: int) -> dict[str, float]:
        """The parts of one candidate by name, those that are nothing left out."""
        values = self.parts[place].tolist()
        return {name: round(value, 4) for name, value in zip(self.names, values, strict=True) if abs(value) >= 5e-5}


def _between(values: Numbers, floor: float, ceiling: float) -> Numbers:
    return np.minimum(np.maximum((values - np.float32(floor)) / np.float32(ceiling - floor), 0), 1)


class Proficiency(NamedTuple):
    """What a model's cosines are worth for a question, from 0 to 1, and how many times its words count in turn."""

    trust: float = 1.0
    words: float = 1.0


def grasp(code: str, languages: Sequence[str]) -> Proficiency:
    """What a model knows of a language."""
    if code in languages or "*" in languages:
        return Proficiency()
    trust = RELATED if code in LATIN else 0.0
    return Proficiency(trust, 1 + (1 - trust) * ((IN_BIGRAMS if code in BIGRAMS else ALONE) - 1))


_GRASPED = Proficiency()


def matches(
    by_words: Mapping[str, float],
    possible: float,
    by_sense: Mapping[str, float],
    held: Collection[str] | None,
    weights: Weights,
    known: Proficiency = _GRASPED,
) -> Matches:
    """The own match of every candidate. `held`: those that have a vector although it is not among the nearest; None
    where no question has one. What has none (just remembered, or retired) is judged by its words alone. `known`: what
    the model knows of the question's language."""
    place = {id: number for number, id in enumerate({**by_words, **by_sense})}  # those with words come first
    score, cosine = np.zeros((2, len(place)), np.float32)
    score[: len(by_words)] = list(by_words.values())
    cosine[[place[id] for id in by_sense]] = list(by_sense.values())
    best = float(score.max(initial=0.0))
    words = score / np.float32(best) if best else score
    match = np.minimum(score / np.float32(possible), 1) if possible else score
    sense = np.float32(known.trust) * _between(cosine, NEAR_FLOOR, NEAR_CEILING)
    answers = _between(cosine, COSINE_FLOOR, COSINE_CEILING)
    alone = np.full(len(place), held is None)
    if held is not None:
        alone[: len(by_words)] = [id not in by_sense and id not in held for id in by_words]
    share = np.float32(1 - (1 - weights.match) * known.trust)
    told = np.minimum(match * np.float32(known.words), 1)
    direct = np.where(alone, told, share * told + (1 - share) * answers)
    return Matches(place, words, match, cosine, np.where(alone, words, sense), direct)


def _chosen(
    leading: Iterable[str], linked: Iterable[str], lines: ConversationOrder, scope: Collection[bytes]
) -> dict[str, OrderCard | None]:
    """The leading candidates, those beside them, those that are linked: each with its card."""
    cards = lines.many(leading)
    for card in list(cards.values()):
        if card is not None:
            for near in card.around():
                if near is not None and near.pool in scope:
                    cards[near.id] = near
    for id in linked:
        if id not in cards:
            cards[id] = lines.get(id)
    return cards


def _around(cards: Mapping[str, OrderCard | None]) -> NDArray[np.intp]:
    """For each candidate the places of the two before and the two after it; one past the end, in a row of its own, for
    none."""
    none = len(cards)
    place = {id: number for number, id in enumerate(cards)}
    around = np.full((none + 1, 4), none, np.intp)
    for number, card in enumerate(cards.values()):
        if card is not None and (card.before or card.after):
            around[number] = [none if near is None else place.get(near.id, none) for near in card.around()]
    return around


def weigh(
    found: Matches,
    asked: QueryTerms,
    weights: Weights,
    linked: Mapping[str, float],
    lines: ConversationOrder,
    scope: Collection[bytes],
    leading: int,
) -> WeighedCandidates:
    """The best candidates by all that speaks for them: the `leading` ones by their own match, and what is beside them.

    `linked`: how near a record is to a thing that the question names. `scope`: the digests of the pools.
    """
    base = np.float32(weights.words) * found.words + np.float32(weights.sense) * found.sense
    all_ids = list(found.places)
    order: list[int] = np.argsort(-base, kind="stable")[:leading].tolist()
    chosen = _chosen([all_ids[number] for number in order], linked, lines, scope)
    columns = np.zeros((5, len(all_ids) + 1), np.float32)  # the last one stands for whatever is no candidate
    columns[:, :-1] = found.words, found.match, found.cosine, found.sense, found.direct
    words, match, cosine, sense, direct = columns[:, [*(found.places.get(id, -1) for id in chosen), -1]]
    cards = [*chosen.values(), None]  # and here for whoever stands beside none
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
    rank = _with_the_nearest_first(rank, words[:-1], sense[:-1], cosine[:-1], direct[:-1])
    strength, top = float(found.direct.max(initial=0.0)), float(rank.max(initial=0.0))
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


def _with_the_nearest_first(rank: Numbers, words: Numbers, sense: Numbers, cosine: Numbers, direct: Numbers) -> Numbers:
    """Ranks in which what is surely an answer by itself, the nearest by its words and as near as any by its sense, is
    first, however well others are surrounded; what has no vector yet is judged by its words."""
    if len(rank) and words[first := int(words.argmax())] > 0:
        waits = cosine[first] == 0 and sense[first] == words[first]
        if waits or (cosine[first] >= cosine.max() - AS_NEAR and direct[first] >= SURE):
            rank[first] = max(rank[first], np.float32(LED) * rank.max())
    return rank


def _column(values: Sequence[float]) -> Numbers:
    return np.array(values, np.float32)


def _inside(card: OrderCard | None, period: tuple[int, int] | None) -> bool:
    """Whether a record became true, or was said, in a time."""
    if card is None or period is None:
        return False
    return period[0] <= card.row.since < period[1] or period[0] <= card.row.at < period[1]
