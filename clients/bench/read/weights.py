"""The weights of evidence that ship: fitted on invented projects and invented dialogues, tried on others.

Comes in: the two samples that come with memd. Goes out: the weights of a fit on one half of both; recall@10 and MRR on
the other halves by that fit and by what ships. Invariants: nothing of anybody's data is in it; each question counts the
same; what ships is this fit, rounded.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

from ....protocol.recall import RecallOptions
from ...python.client import Client
from ..figure import Figure
from ..part import Part, Setting
from .dialogues import dialogues
from .fitting import PARTS, Listed, fitted, recall_at, reciprocal_rank
from .projects import talks
from .relevance import listed
from .store import Filled, ask, bench_daemon, embedded, fill
from .talks import Talk

BARE = RecallOptions(floor=0.0, priority=False, fold=False)
"""Every line for itself: many of these say nearly the same, and the right one is to stand above its like."""

SAMPLES = {"projects": talks, "dialogues": dialogues}
Pools = list[tuple[Talk, Filled]]


def weights(setting: Setting) -> Part:
    """Invented talk: the weights of evidence fitted on some projects and dialogues, tried on others."""
    with bench_daemon() as client:
        train = {name: _filled(client, name, sample("train")) for name, sample in SAMPLES.items()}
        test = {name: _filled(client, name, sample("test")) for name, sample in SAMPLES.items()}
        embedded(client)
        setting.tell("read/weights: fitting")
        lists: list[Listed] = []
        for pools in train.values():
            for number, (talk, pool) in enumerate(pools):
                lists += listed(client, number, talk, pool, BARE)
        found = fitted(lists, range(len(PARTS)))
        fit = {part: round(float(value / found[0]), 2) for part, value in zip(PARTS, found, strict=True)}
        figures: list[Figure] = []
        for name, pools in test.items():
            fits = RecallOptions(floor=0.0, priority=False, weights=fit)
            figures += _figures(client, f"{name}, as fitted", pools, fits)
            figures += _figures(client, f"{name}, as shipped", pools, RecallOptions(floor=0.0, priority=False))
    told = ", ".join(f"{part} {value:.2f}" for part, value in fit.items())
    return Part(figures=tuple(figures), notes=(f"fit on {len(lists)} questions, words as one: {told}",),
                shows_not="how people talk whom nobody invented: `read/relevance` asks for that")  # fmt: skip


def _filled(client: Client, name: str, talks: Sequence[Talk]) -> Pools:
    return [(talk, fill(client, f"project/{name}-{talk.name}", talk.notes)) for talk in talks]


def _figures(client: Client, name: str, filled: Pools, options: RecallOptions) -> list[Figure]:
    hits: list[float] = []
    places: list[float] = []
    for talk, pool in filled:
        for asked in talk.questions:
            names = [pool.names[hit.record.id] for hit in ask(client, asked.text, pool.pool, options).hits]
            hits.append(recall_at(names, asked.evidence))
            places.append(reciprocal_rank(names, asked.evidence))
    return [
        Figure(name=f"recall@10, {name}", value=fmean(hits), samples=len(hits)),
        Figure(name=f"MRR, {name}", value=fmean(places), samples=len(places)),
    ]
