"""Abstention: are questions told apart that the store can't answer from those that it can (P-23, Q10).

Comes in: LoCoMo's conversations, and questions of a developer that nothing there answers. Goes out: AUROC of an
answer's strength, and the share that abstains at the floor that ships. Invariant: nothing is fitted here.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

from ....protocol.recall import RecallOptions
from ...python.client import Client
from ..figure import Figure, at_least, at_most, share
from ..part import Part, Setting
from .store import Filled, ask, bench_daemon, embedded, fill
from .talks import ANSWERABLE, Talk, conversations

STRANGE = 40
UNKNOWN = Path(__file__).parents[1] / "samples" / "unknown.txt"
"""Written for this: plausible questions of a developer about projects that no store here knows."""

Told = tuple[float, bool]
"""The strength of an answer, and whether it abstained."""


def abstention(setting: Setting) -> Part:
    """LoCoMo: answerable questions against those of other conversations and those of a developer nobody knows."""
    talks = conversations(setting)
    unknown = UNKNOWN.read_text(encoding="utf-8").splitlines()
    chance = random.Random(7)
    with bench_daemon() as client:
        pools = [fill(client, f"project/talk-{number}", talk.notes) for number, talk in enumerate(talks)]
        embedded(client)
        known: list[Told] = []
        fifth: list[Told] = []
        strange: list[Told] = []
        nobody: list[Told] = []
        for talk, pool in zip(talks, pools, strict=True):
            for asked in talk.questions:
                (known if asked.category in ANSWERABLE else fifth).append(_told(client, asked.text, pool))
            others = [each for each in talks if each.name != talk.name]
            strange += [_told(client, text, pool) for other in others for text in _some(other, chance)]
            nobody += [_told(client, text, pool) for text in unknown]
    return Part(
        figures=(
            _apart("AUROC, other conversations' questions (a)", known, strange, 0.93),
            _apart("AUROC, unknown developer questions (b)", known, nobody, 0.90),
            _apart("AUROC, category 5", known, fifth, None),
            share("abstained, (a)", *_count(strange), at_least(0.80)),
            share("abstained, (b)", *_count(nobody), at_least(0.80)),
            share("abstained, answerable", *_count(known), at_most(0.05)),
            share("abstained, category 5", *_count(fifth)),
        ),
        shows_not="whether what is given when it does not abstain is right",
    )


def _some(talk: Talk, chance: random.Random) -> list[str]:
    texts = [asked.text for asked in talk.questions if asked.category in ANSWERABLE]
    return chance.sample(texts, min(STRANGE, len(texts)))


def _told(client: Client, text: str, pool: Filled) -> Told:
    answer = ask(client, text, pool.pool, RecallOptions())
    return answer.strength, answer.abstained


def _count(told: Sequence[Told]) -> tuple[int, int]:
    return sum(abstained for _, abstained in told), len(told)


def _apart(name: str, known: Sequence[Told], others: Sequence[Told], target: float | None) -> Figure:
    return Figure(
        name=name,
        value=auroc([strength for strength, _ in known], [strength for strength, _ in others]),
        samples=len(known) + len(others),
        target=None if target is None else at_least(target),
    )


def auroc(positive: Sequence[float], negative: Sequence[float]) -> float:
    """The chance that a positive lies above a negative; ties count half."""
    import numpy as np

    above = np.array(positive)[:, None] - np.array(negative)
    return float((above > 0).mean() + (above == 0).mean() / 2)
