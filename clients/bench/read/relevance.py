"""LoCoMo: each turn one memory, the abstention floor off, weights fitted on the other conversations.

Comes in: the data folder. Goes out: recall@10 and MRR by the fitted weights, by those that ship, and by fewer parts.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import fmean

from ....protocol.recall import RecallOptions
from ...python.client import Client
from ..figure import Figure, Target, at_least
from ..part import Part, Setting
from .fitting import PARTS, Listed, fitted, ranked, recall_at, reciprocal_rank
from .store import Filled, ask, bench_daemon, embedded, fill
from .talks import Talk, conversations

LISTED = 200
OFF = RecallOptions(floor=0.0, priority=False)
ABLATIONS = {
    "words (BM25)": ("words",),
    "vectors": ("sense",),
    "words and vectors": ("words", "sense"),
    "+ neighbours": ("words", "sense", "before", "after"),
    "+ replies": ("words", "sense", "before", "after", "reply", "asks"),
    "+ size": ("words", "sense", "before", "after", "reply", "asks", "size"),
    "+ named subjects": ("words", "sense", "before", "after", "reply", "asks", "size", "named"),
    "+ dates, graph (all)": PARTS,
}
Ranks = list[tuple[int, list[str], frozenset[str]]]


def relevance(setting: Setting) -> Part:
    """LoCoMo, each turn one memory: evidence among the first ten, and how high; weights from other conversations."""
    talks = conversations(setting)
    with bench_daemon() as client:
        pools = [fill(client, f"project/talk-{number}", talk.notes) for number, talk in enumerate(talks)]
        embedded(client)
        setting.tell("read/relevance: asking")
        lists = [
            each
            for group, (talk, pool) in enumerate(zip(talks, pools, strict=True))
            for each in listed(client, group, talk, pool)
        ]
        groups = range(len(talks))
        setting.tell("read/relevance: fitting")
        weights = {
            group: _named(fitted([each for each in lists if each.group != group], range(len(PARTS))))
            for group in groups
        }
        fit: Ranks = []
        shipped: Ranks = []
        for group in groups:
            options = RecallOptions(floor=0.0, priority=False, weights=weights[group])
            fit += ranks(client, talks[group], pools[group], options)
            shipped += ranks(client, talks[group], pools[group], OFF)
    figures = [
        *_figures("fitted on other conversations", fit, at_least(0.75), at_least(0.51)),
        *_figures("as shipped", shipped),
        *_by_category(fit),
    ]
    for name, parts in ABLATIONS.items():
        figures += _figures(name, _ablated(lists, groups, [PARTS.index(part) for part in parts]))
    means = {part: fmean(weights[group][part] for group in groups) for part in PARTS}
    return Part(
        figures=tuple(figures),
        notes=(
            "weights, mean of the folds: " + ", ".join(f"{part} {value:.2f}" for part, value in means.items()),
            f"{len(fit)} questions of categories 1-5; goal 0.80 and 0.56",
        ),
        shows_not="what the pipeline keeps of a conversation, nor whether an answer is right",
    )


def _named(weights: Iterable[float]) -> dict[str, float]:
    return {part: float(weight) for part, weight in zip(PARTS, weights, strict=True)}


def listed(client: Client, group: int, talk: Talk, pool: Filled, options: RecallOptions = OFF) -> list[Listed]:
    """Every question with the parts of its candidates."""
    import numpy as np

    lists: list[Listed] = []
    for asked in talk.questions:
        hits = ask(client, asked.text, pool.pool, options, LISTED).hits
        parts = np.array([[hit.parts.get(part, 0.0) for part in PARTS] for hit in hits]).reshape(-1, len(PARTS))
        names = tuple(pool.names[hit.record.id] for hit in hits)
        lists.append(Listed(group, asked.category, parts, names, asked.evidence))
    return lists


def ranks(client: Client, talk: Talk, pool: Filled, options: RecallOptions, limit: int = LISTED) -> Ranks:
    """Of every question its category, the names of what was found, best first, and its evidence."""
    return [
        (
            asked.category,
            [pool.names[hit.record.id] for hit in ask(client, asked.text, pool.pool, options, limit).hits],
            asked.evidence,
        )
        for asked in talk.questions
    ]


def _ablated(lists: Sequence[Listed], groups: Sequence[int], columns: Sequence[int]) -> Ranks:
    found: Ranks = []
    for group in groups:
        weights = fitted([each for each in lists if each.group != group], columns)
        mine = (each for each in lists if each.group == group)
        found += [(each.category, ranked(each, columns, weights), each.evidence) for each in mine]
    return found


def _figures(name: str, ranks: Ranks, recall: Target | None = None, mrr: Target | None = None) -> list[Figure]:
    hits = [recall_at(names, evidence) for _, names, evidence in ranks]
    places = [reciprocal_rank(names, evidence) for _, names, evidence in ranks]
    return [
        Figure(name=f"recall@10, {name}", value=fmean(hits), samples=len(ranks), target=recall),
        Figure(name=f"MRR, {name}", value=fmean(places), samples=len(ranks), target=mrr),
    ]


def _by_category(ranks: Ranks) -> list[Figure]:
    found: list[Figure] = []
    for category in sorted({category for category, _, _ in ranks}):
        hits = [recall_at(names, evidence) for each, names, evidence in ranks if each == category]
        found.append(Figure(name=f"  recall@10, category {category}", value=fmean(hits), samples=len(hits)))
    return found
