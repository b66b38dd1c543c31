"""Recognises a question that names no subject of its own ("what should I know about this project", "my preferences"),
and weighs the records of the kind that it asks for (Q2, Q4).

A multinomial logistic regression reads the vector of the question; the recipe is `models/recipes/train_general.py`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ....protocol.record import OPEN_QUESTION, Record
from ....stages.batch import PERSONAL

SPECIFIC = "specific"
LEAST, GENERAL_WORDS = 0.55, 1 / 3
"""Least probability that a question is general, and least share of its words that general questions have."""

GENERAL, STEP = 0.5, 0.04
"""Relevance of the first record that a general question asks for, and the share that each further one of its type
loses."""


class GeneralQuestions(NamedTuple):
    """For each kind of question, weights over the vector of a question (kinds × 384) and a bias; `words`: the terms of
    general questions that specific ones seldom have."""

    kinds: tuple[str, ...]
    weights: NDArray[np.float32]
    biases: NDArray[np.float32]
    words: frozenset[str]

    def kind(self, vector: NDArray[np.float32], terms: Collection[str]) -> str:
        """Return what a general question asks for, by its vector and its terms; "" for a specific one."""
        if len(self.words.intersection(terms)) < GENERAL_WORDS * len(terms):
            return ""
        logits = self.weights @ vector + self.biases
        likely = np.exp(logits - logits.max())
        place = self.kinds.index(SPECIFIC)
        if likely[place] / likely.sum() > 1 - LEAST:
            return ""
        likely[place] = 0
        return self.kinds[int(likely.argmax())]

    def save(self, file: Path) -> None:
        names, weights = np.array(self.kinds), self.weights.astype(np.float16)
        np.savez_compressed(file, kinds=names, weights=weights, biases=self.biases, words=np.array(sorted(self.words)))


def path() -> Path:
    """Return the file of the fitted model."""
    from ....stages import rules

    return Path(rules.__file__).parent / "general.npz"


@cache
def general_questions() -> GeneralQuestions:
    """Load the fitted model, once."""
    with np.load(path(), allow_pickle=False) as stored:
        weights: NDArray[np.float32] = stored["weights"].astype(np.float32)
        words = frozenset[str](stored["words"].tolist())
        return GeneralQuestions(tuple(stored["kinds"].tolist()), weights, stored["biases"], words)


class KindWanted(NamedTuple):
    """Types of the records that a general question asks for, in order ("" for any other), and whether it asks for the
    user's own ones or, as far as the scope has a project, only for the project's."""

    types: tuple[str, ...]
    about: Literal["user", "project", ""] = ""

    def place(self, record: Record, scope: Sequence[str]) -> int:
        """Return the place of a record's type; -1 for a record that the question does not ask for."""
        is_personal = record.pool == PERSONAL
        if (self.about == "user" and not is_personal) or (self.about == "project" and is_personal and len(scope) > 1):
            return -1
        named = record.type if record.type in self.types else ""
        return self.types.index(named) if named in self.types else -1


WANTED = {
    "overview": KindWanted(("purpose", "convention", "procedure", "decision", ""), "project"),
    "person": KindWanted(("identity", "preference", "fact", ""), "user"),
    "preference": KindWanted(("preference", "convention")),
    "convention": KindWanted(("convention", "procedure", "preference")),
    "decision": KindWanted(("decision",)),
    "open": KindWanted((OPEN_QUESTION, "commitment")),
}


def relevances(records: Iterable[Record], kind: str, scope: Sequence[str]) -> dict[str, float]:
    """Return the relevance of the records that a general question of a kind asks for in a scope: `GENERAL` for the most
    important one of each type, and less for each further one, so that the types take turns."""
    wanted, turns = WANTED[kind], Counter[int]()
    ranked = sorted(records, key=lambda record: (-record.signal.importance, -record.learned_at, record.id))
    result: dict[str, float] = {}
    for record in ranked:
        if (place := wanted.place(record, scope)) >= 0:
            result[record.id] = GENERAL * (1 - STEP) ** (turns[place] + place / len(wanted.types))
            turns[place] += 1
    return result
