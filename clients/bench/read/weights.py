"""The weights of evidence that ship: fitted on invented projects, tried on others.

Comes in: the sample that comes with memd. Goes out: the weights of a fit on its one set; recall@10 and MRR on the other
set by that fit and by what ships. Invariant: nothing of anybody's data is in it; what ships is this fit, rounded.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean
from typing import Literal

from ....protocol.recall import RecallOptions
from ...python.client import Client
from ..figure import Figure
from ..part import Part, Setting
from .fitting import PARTS, Listed, fitted, recall_at, reciprocal_rank
from .projects import talks
from .relevance import listed
from .store import Filled, ask, bench_daemon, embedded, fill
from .talks import Talk

BARE = RecallOptions(floor=0.0, priority=False, fold=False)
"""Every line for itself: many of these say nearly the same, and the right one is to stand above its like."""


def weights(setting: Setting) -> Part:
    """Invented projects: the weights of evidence fitted on three, tried on the questions of two others."""
    with bench_daemon() as client:
        filled: dict[str, list[tuple[Talk, Filled]]] = {}
        sets: tuple[Literal["train", "test"], ...] = ("train", "test")
        for name in sets:
            filled[name] = [(talk, fill(client, f"project/{talk.name}", talk.notes)) for talk in talks(name)]
        embedded(client)
        setting.tell("read/weights: fitting")
        lists: list[Listed] = []
        for group, (talk, pool) in enumerate(filled["train"]):
            lists += listed(client, group, talk, pool, BARE)
        found = fitted(lists, range(len(PARTS)))
        fit = {part: round(float(value / found[0]), 2) for part, value in zip(PARTS, found, strict=True)}
        figures = [
            *_figures(client, "as fitted", filled["test"], RecallOptions(floor=0.0, priority=False, weights=fit)),
            *_figures(client, "as shipped", filled["test"], RecallOptions(floor=0.0, priority=False)),
        ]
    told = ", ".join(f"{part} {value:.2f}" for part, value in fit.items())
    return Part(figures=tuple(figures), notes=(f"fit on {len(lists)} questions, words as one: {told}",),
                shows_not="how people talk whom nobody invented: `read/relevance` asks for that")  # fmt: skip


def _figures(client: Client, name: str, filled: Sequence[tuple[Talk, Filled]], options: RecallOptions) -> list[Figure]:
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
