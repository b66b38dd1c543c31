"""What each part of the ranking is worth: LoCoMo by the weights that ship, with one part after the other left out.

Comes in: the data folder. Goes out: recall@10 and MRR with their 95 % intervals, whole and without each part.
Invariants: nothing is fitted; it is asked as anybody asks, but for the floor; an interval is a bootstrap over the
questions, the same each time; each turn is one memory, as in `relevance`.
"""

from __future__ import annotations

from collections.abc import Sequence

from ....protocol.recall import RecallOptions
from ..figure import Figure
from ..part import Part, Setting
from .fitting import recall_at, reciprocal_rank
from .relevance import ranks
from .store import bench_daemon, embedded, fill
from .talks import conversations

RESAMPLED = 1000
ALONE = "words alone"
LISTED = 50

WITHOUT: dict[str, RecallOptions] = {
    "words (BM25)": RecallOptions(weights={"words": 0.0}),
    "vectors": RecallOptions(weights={"sense": 0.0}),
    "neighbours": RecallOptions(weights={"before": 0.0, "after": 0.0}),
    "replies": RecallOptions(weights={"reply": 0.0, "asks": 0.0}),
    "size": RecallOptions(weights={"size": 0.0}),
    "named subjects": RecallOptions(weights={"named": 0.0}),
    "dates and short forms": RecallOptions(expand=False),
    "graph": RecallOptions(graph=False),
    "folding": RecallOptions(fold=False),
    "whose word, use, age": RecallOptions(priority=False),
    ALONE: RecallOptions(
        weights=dict.fromkeys(("sense", "before", "after", "reply", "named", "when", "graph", "size", "asks"), 0.0),
        expand=False,
        graph=False,
        priority=False,
    ),
}


def ablation(setting: Setting) -> Part:
    """LoCoMo, each turn one memory, the weights that ship: what is lost without each part of the ranking."""
    talks = conversations(setting)
    figures: list[Figure] = []
    with bench_daemon({"MEMD_RELEVANCE_FLOOR": "0"}) as client:
        pools = [fill(client, f"project/talk-{number}", talk.notes) for number, talk in enumerate(talks)]
        embedded(client)
        for name, options in {"whole": RecallOptions(), **WITHOUT}.items():
            setting.tell(f"read/ablation: {name}")
            found = [
                each
                for talk, pool in zip(talks, pools, strict=True)
                for each in ranks(client, talk, pool, options, LISTED)
            ]  # fmt: skip
            label = name if name in ("whole", ALONE) else f"without {name}"
            hits = [recall_at(names, evidence) for _, names, evidence in found]
            places = [reciprocal_rank(names, evidence) for _, names, evidence in found]
            figures += [_figure(f"recall@10, {label}", hits), _figure(f"MRR, {label}", places)]
    return Part(
        figures=tuple(figures),
        notes=("no record of this data is an edge, and none was ever used: graph and use can show nothing here",),
        shows_not="what a part is worth where people say other things than these",
    )


def _figure(name: str, values: Sequence[float]) -> Figure:
    """The mean, with the interval that a bootstrap gives it (Efron 1979)."""
    import numpy as np

    array = np.asarray(values)
    drawn = np.random.default_rng(7).integers(0, len(array), (RESAMPLED, len(array)))
    low, high = np.percentile(array[drawn].mean(axis=1), (2.5, 97.5))
    return Figure(name=name, value=float(array.mean()), samples=len(array), low=float(low), high=float(high))
