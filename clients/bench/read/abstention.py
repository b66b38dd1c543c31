"""Abstention: whether recall tells questions that the store can't answer from those that it can (P-23, Q10).

Nothing is fitted here: it is measured at the abstention floor that ships.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import NamedTuple

from ....protocol.recall import RecallOptions
from ...python.client import Client
from ..measurement import BenchOptions, Figure, PartResult, Target, at_least, at_most, share
from ..temporary_daemon import temporary_daemon
from .conversations import ANSWERABLE, SAMPLES, Conversation, locomo
from .seeded_pools import WITH_OPTIONS, SeededPool, await_vectors, fill

OTHER_QUESTIONS = 40
UNKNOWN = SAMPLES / "unknown.txt"
"""Authored questions of a developer about projects that no store here knows."""


class AnswerStrength(NamedTuple):
    """The strength of an answer, and whether it abstained."""

    strength: float
    abstained: bool


def abstention(options: BenchOptions) -> PartResult:
    """LoCoMo: answerable questions against those of other conversations and those of an unknown developer."""
    conversations = locomo(options)
    unknown_texts = UNKNOWN.read_text(encoding="utf-8").splitlines()
    chance = random.Random(7)
    known: list[AnswerStrength] = []
    fifth: list[AnswerStrength] = []
    others: list[AnswerStrength] = []
    unknown: list[AnswerStrength] = []
    with temporary_daemon(WITH_OPTIONS) as client:
        pools = [fill(client, f"project/talk-{n}", item.notes) for n, item in enumerate(conversations)]
        await_vectors(client)
        for conversation, pool in zip(conversations, pools, strict=True):
            for question in conversation.questions:
                strengths = known if question.category in ANSWERABLE else fifth
                strengths.append(_strength(client, question.text, pool))
            for other in conversations:
                if other.name != conversation.name:
                    others += [_strength(client, text, pool) for text in _some(other, chance)]
            unknown += [_strength(client, text, pool) for text in unknown_texts]
    return PartResult(
        figures=(
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


def _some(conversation: Conversation, chance: random.Random) -> list[str]:
    texts = [question.text for question in conversation.questions if question.category in ANSWERABLE]
    return chance.sample(texts, min(OTHER_QUESTIONS, len(texts)))


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
