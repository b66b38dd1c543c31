"""The quality of ranking: LoCoMo by fitted and by shipped weights, without each part, the fit of those; abstention.

Each turn is one memory. Weights are tried on other conversations than those they were fitted on; what ships is fitted
on invented conversations alone, then rounded.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from statistics import fmean
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from ....protocol.recall import RecallOptions
from ...python.client import Client
from ..measurement import (
    BenchOptions,
    Figure,
    PartResult,
    Target,
    at_least,
    at_most,
    bootstrapped_figure,
    mean_figure,
    share,
)
from ..temporary_daemon import temporary_daemon
from .conversations import (
    ANSWERABLE,
    SAMPLES,
    WITH_OPTIONS,
    Conversation,
    SeededPool,
    await_vectors,
    dialogues,
    fill,
    locomo,
    projects,
)
from .plain_search import PlainSearch

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

PARTS: tuple[str, ...] = ("words", "sense", "before", "after", "reply", "named", "when", "graph", "size", "asks")
STEPS, RATE, DECAY = 120, 0.3, 1e-3
FIRST, LISTED = 10, 200
OFF = RecallOptions(floor=0.0, priority=False)
UNFOLDED = RecallOptions(floor=0.0, priority=False, fold=False)
"""With every line listed on its own: many lines say nearly the same, and the right one must rank above those."""
ALONE = "words alone"


class RankingVariants(msgspec.Struct, frozen=True):
    """`cumulative`: parts of a score, from one to all; `without`: options without one part, or all but one."""

    cumulative: dict[str, tuple[str, ...]]
    without: dict[str, RecallOptions]


VARIANTS = msgspec.json.decode((SAMPLES / "ranking_variants.json").read_bytes(), type=RankingVariants)


# --- questions with their ranked answers -----------------------------------------------------------------------------
class Ranking(NamedTuple):
    """The names found for a question, best first, and those that answer it."""

    category: int
    names: Sequence[str]
    evidence: frozenset[str]

    @property
    def recall(self) -> float:
        return recall_at(self.names, self.evidence)


class CandidateList(NamedTuple):
    """A question's candidates: their parts (candidates × parts), their names, and the names that answer."""

    group: int
    category: int
    parts: NDArray[np.float64]
    names: tuple[str, ...]
    evidence: frozenset[str]


def recall_at(names: Sequence[str], evidence: frozenset[str], count: int = 10) -> float:
    """The share of the evidence among the first `count` names."""
    return len(evidence.intersection(names[:count])) / len(evidence)


def reciprocal_rank(names: Sequence[str], evidence: frozenset[str]) -> float:
    """One divided by the rank of the first name that answers; 0 if none does."""
    return next((1.0 / rank for rank, name in enumerate(names, 1) if name in evidence), 0.0)


def _rankings(
    client: Client, conversation: Conversation, pool: SeededPool, options: RecallOptions | None, limit: int
) -> list[Ranking]:
    return [
        Ranking(item.category, pool.ranked(pool.ask(client, item.text, options, limit)), item.evidence)
        for item in conversation.questions
    ]


def _plain(conversation: Conversation) -> list[Ranking]:
    search = PlainSearch([note.text for note in conversation.notes])
    return [
        Ranking(item.category, [conversation.notes[place].name for place in search.find(item.text)], item.evidence)
        for item in conversation.questions
    ]


def _candidates(
    client: Client, group: int, conversation: Conversation, pool: SeededPool, options: RecallOptions = OFF
) -> list[CandidateList]:
    import numpy as np

    lists: list[CandidateList] = []
    for item in conversation.questions:
        answer = pool.ask(client, item.text, options, LISTED)
        parts = np.array([[hit.parts.get(part, 0.0) for part in PARTS] for hit in answer.hits]).reshape(-1, len(PARTS))
        lists.append(CandidateList(group, item.category, parts, pool.ranked(answer), item.evidence))
    return lists


def _figures(
    label: str, rankings: Sequence[Ranking], recall: Target | None = None, mrr: Target | None = None
) -> list[Figure]:
    places = [reciprocal_rank(ranking.names, ranking.evidence) for ranking in rankings]
    return [
        mean_figure(f"recall@10, {label}", [ranking.recall for ranking in rankings], recall),
        mean_figure(f"MRR, {label}", places, mrr),
    ]


def _against_plain(rankings: Sequence[Ranking], plain: Sequence[Ranking]) -> list[Figure]:
    """How much more is found than by plain BM25 for the same questions; above zero if the interval is."""
    found = [ours.recall - theirs.recall for ours, theirs in zip(rankings, plain, strict=True)]
    places = [
        reciprocal_rank(ours.names, ours.evidence) - reciprocal_rank(theirs.names, theirs.evidence)
        for ours, theirs in zip(rankings, plain, strict=True)
    ]
    return [
        bootstrapped_figure("  recall@10, more than BM25", found),
        bootstrapped_figure("  MRR, more than BM25", places),
    ]


def _filled(client: Client, conversations: dict[str, Conversation]) -> list[tuple[Conversation, SeededPool]]:
    return [(item, fill(client, f"project/{name}", item.notes)) for name, item in conversations.items()]


# --- fitting ---------------------------------------------------------------------------------------------------------
def fitted(lists: Sequence[CandidateList], columns: Sequence[int]) -> NDArray[np.float64]:
    """A weight for each column, by Adam on the cross entropy of each list with an answer (ListNet; Cao et al. 2007)."""
    import numpy as np

    samples: list[tuple[NDArray[np.float64], list[int]]] = []
    for candidates in lists:
        if rows := [row for row, name in enumerate(candidates.names) if name in candidates.evidence]:
            samples.append((candidates.parts[:, columns], rows))
    weights = np.zeros(len(columns))
    mean, square = np.zeros(len(columns)), np.zeros(len(columns))
    for step in range(1, STEPS + 1):
        slope = DECAY * len(samples) * weights
        for parts, rows in samples:
            scores = parts @ weights
            shares = np.exp(scores - scores.max())
            slope += (shares / shares.sum()) @ parts - parts[rows].mean(axis=0)
        slope /= len(samples)
        mean = 0.9 * mean + 0.1 * slope
        square = 0.99 * square + 0.01 * slope * slope
        weights -= RATE * (mean / (1 - 0.9**step)) / (np.sqrt(square / (1 - 0.99**step)) + 1e-8)
    return weights


def _without_group(lists: Sequence[CandidateList], group: int, columns: Sequence[int]) -> NDArray[np.float64]:
    return fitted([candidates for candidates in lists if candidates.group != group], columns)


def _cross_fitted(lists: Sequence[CandidateList], groups: Sequence[int], columns: Sequence[int]) -> list[Ranking]:
    """Rankings of each group by these columns, with weights fitted on the other groups."""
    import numpy as np

    rankings: list[Ranking] = []
    for group in groups:
        weights = _without_group(lists, group, columns)
        for candidates in lists:
            if candidates.group == group:
                order: list[int] = np.argsort(-(candidates.parts[:, columns] @ weights), kind="stable").tolist()
                names = [candidates.names[row] for row in order]
                rankings.append(Ranking(candidates.category, names, candidates.evidence))
    return rankings


# --- the parts -------------------------------------------------------------------------------------------------------
def relevance(options: BenchOptions) -> PartResult:
    """LoCoMo, each turn one memory: evidence among the first ten, and how high; weights from other conversations."""
    conversations = locomo(options)
    with temporary_daemon(WITH_OPTIONS) as client:
        filled = _filled(client, {f"talk-{number}": item for number, item in enumerate(conversations)})
        await_vectors(client)
        options.progress("read/relevance: asking")
        lists = [candidates for group, pair in enumerate(filled) for candidates in _candidates(client, group, *pair)]
        groups = range(len(conversations))
        options.progress("read/relevance: fitting")
        weights = [
            dict(zip(PARTS, map(float, _without_group(lists, group, range(len(PARTS)))), strict=True))
            for group in groups
        ]
        fit, shipped, given = list[Ranking](), list[Ranking](), list[Ranking]()
        for group, pair in enumerate(filled):
            fit += _rankings(client, *pair, RecallOptions(floor=0.0, priority=False, weights=weights[group]), LISTED)
            shipped += _rankings(client, *pair, OFF, LISTED)
            given += _rankings(client, *pair, None, FIRST)
    plain = [ranking for item in conversations for ranking in _plain(item)]
    figures = [
        *_figures("as a user gets it", given, at_least(0.82), at_least(0.62)),
        *_against_plain(given, plain),
        *_figures("fitted on other conversations, without the floor", fit, at_least(0.75), at_least(0.51)),
        *_figures("as shipped, without the floor", shipped),
        *_figures("BM25 over the turns", plain),
    ]
    for category in sorted({ranking.category for ranking in fit}):
        of_category = [ranking.recall for ranking in fit if ranking.category == category]
        figures.append(mean_figure(f"  recall@10, category {category}", of_category))
    for name, parts in VARIANTS.cumulative.items():
        figures += _figures(name, _cross_fitted(lists, groups, [PARTS.index(part) for part in parts]))
    means = ", ".join(f"{part} {fmean(weights[group][part] for group in groups):.2f}" for part in PARTS)
    return PartResult(
        tuple(figures),
        notes=(f"weights, mean of the folds: {means}", f"{len(fit)} questions of categories 1-5; goal 0.80 and 0.56"),
        shows_not="the part of a conversation that the pipeline records, or whether an answer is right",
    )


def ablation(options: BenchOptions) -> PartResult:
    """LoCoMo, each turn one memory, the weights that ship: what is lost without each part of the ranking."""
    conversations = locomo(options)
    figures: list[Figure] = []
    with temporary_daemon({**WITH_OPTIONS, "MEMD_RELEVANCE_FLOOR": "0"}) as client:
        filled = _filled(client, {f"talk-{number}": item for number, item in enumerate(conversations)})
        await_vectors(client)
        for name, recall_options in {"whole": RecallOptions(), **VARIANTS.without}.items():
            options.progress(f"read/ablation: {name}")
            rankings = [ranking for pair in filled for ranking in _rankings(client, *pair, recall_options, 50)]
            label = name if name in ("whole", ALONE) else f"without {name}"
            places = [reciprocal_rank(ranking.names, ranking.evidence) for ranking in rankings]
            figures.append(bootstrapped_figure(f"recall@10, {label}", [ranking.recall for ranking in rankings]))
            figures.append(bootstrapped_figure(f"MRR, {label}", places))
    return PartResult(
        tuple(figures),
        notes=("no record of this data is an edge, and none was ever used: graph and use can show nothing here",),
        shows_not="the worth of a part for other kinds of conversation",
    )


def weights(options: BenchOptions) -> PartResult:
    """Invented conversations: the weights of evidence fitted on some projects and dialogues, tried on others."""
    samples = {"projects": projects, "dialogues": dialogues}
    with temporary_daemon(WITH_OPTIONS) as client:
        train = [_filled(client, {f"{name}-{item.name}": item for item in of("train")}) for name, of in samples.items()]
        test = {
            name: _filled(client, {f"{name}-{item.name}": item for item in of("test")}) for name, of in samples.items()
        }
        await_vectors(client)
        options.progress("read/weights: fitting")
        pairs = [pair for filled in train for pair in filled]
        lists = [item for group, pair in enumerate(pairs) for item in _candidates(client, group, *pair, UNFOLDED)]
        raw = fitted(lists, range(len(PARTS)))
        fit = {part: round(float(value / raw[0]), 2) for part, value in zip(PARTS, raw, strict=True)}
        figures: list[Figure] = []
        for name, filled in test.items():
            for label, recall_options in (
                ("as fitted", RecallOptions(floor=0.0, priority=False, weights=fit)),
                ("as shipped", OFF),
            ):
                rankings = [ranking for pair in filled for ranking in _rankings(client, *pair, recall_options, 20)]
                figures += _figures(f"{name}, {label}", rankings)
                figures += _against_plain(rankings, [ranking for talk, _ in filled for ranking in _plain(talk)])
    described = ", ".join(f"{part} {value:.2f}" for part, value in fit.items())
    return PartResult(
        tuple(figures),
        notes=(f"fit on {len(lists)} questions, words as one: {described}",),
        shows_not="how real people talk: `read/relevance` measures that",
    )


# --- abstention: recall must tell questions that the store can't answer from those that it can (P-23, Q10) -----------
OTHER_QUESTIONS = 40
UNKNOWN = SAMPLES / "unknown.txt"  # authored questions about projects that no store here knows


class AnswerStrength(NamedTuple):
    strength: float
    abstained: bool


def abstention(options: BenchOptions) -> PartResult:
    """LoCoMo: answerable questions against those of other conversations and those of an unknown developer."""
    conversations = locomo(options)
    unknown_texts = UNKNOWN.read_text(encoding="utf-8").splitlines()
    chance = random.Random(7)
    known, fifth, others = list[AnswerStrength](), list[AnswerStrength](), list[AnswerStrength]()
    unknown: list[AnswerStrength] = []
    with temporary_daemon(WITH_OPTIONS) as client:
        filled = _filled(client, {f"talk-{number}": item for number, item in enumerate(conversations)})
        await_vectors(client)
        for conversation, pool in filled:
            for question in conversation.questions:
                strengths = known if question.category in ANSWERABLE else fifth
                strengths.append(_strength(client, question.text, pool))
            for other in conversations:
                if other.name != conversation.name:
                    texts = [question.text for question in other.questions if question.category in ANSWERABLE]
                    texts = chance.sample(texts, min(OTHER_QUESTIONS, len(texts)))
                    others += [_strength(client, text, pool) for text in texts]
            unknown += [_strength(client, text, pool) for text in unknown_texts]
    return PartResult(
        (
            _separation("AUROC, other conversations' questions (a)", known, others, at_least(0.93)),
            _separation("AUROC, unknown developer questions (b)", known, unknown, at_least(0.90)),
            _separation("AUROC, category 5", known, fifth),
            _abstained("abstained, (a)", others, at_least(0.80)),
            _abstained("abstained, (b)", unknown, at_least(0.80)),
            _abstained("abstained, answerable", known, at_most(0.05)),
            _abstained("abstained, category 5", fifth),
        ),
        shows_not="whether an answer is right when recall does not abstain",
    )


def _strength(client: Client, text: str, pool: SeededPool) -> AnswerStrength:
    answer = pool.ask(client, text, RecallOptions())
    return AnswerStrength(answer.strength, answer.abstained)


def _abstained(name: str, answers: Sequence[AnswerStrength], target: Target | None = None) -> Figure:
    return share(name, sum(answer.abstained for answer in answers), len(answers), target)


def _separation(
    name: str, known: Sequence[AnswerStrength], others: Sequence[AnswerStrength], target: Target | None = None
) -> Figure:
    """AUROC: the chance that a known question's strength is above another one's; ties count half."""
    import numpy as np

    above = np.array([answer.strength for answer in known])[:, None] - [answer.strength for answer in others]
    auroc = float((above > 0).mean() + (above == 0).mean() / 2)
    return Figure(name, auroc, samples=len(known) + len(others), target=target)
