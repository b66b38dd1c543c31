"""Fit the general questions (stages/rules/general.npz): whether a question asks for all of a kind, and for which.

In memd's own environment, in about a minute on one core:

    python train_general.py [--out FILE]

Input: the questions of three authors in `data/general_*.tsv` (class, language, question; a third of the specific ones
has the words of general ones), those of the authored conversations, and texts of the query table. Output: a multinomial
logistic regression over the vector of the question table; and, with each author left out in turn, how many general
questions are known, of which class, and how many specific ones are taken for general.
"""

from __future__ import annotations

import argparse
import random
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from memd.clients.bench.read.conversations import dialogues, projects
from memd.daemon.projections.tokens import TermTokens
from memd.daemon.services.recall.general_questions import SPECIFIC, GeneralQuestions, path
from memd.models.query import QueryTable
from memd.stages import rules

DATA = Path(__file__).parent / "data"
PENALTY, ROUNDS = 0.1, 3000
OTHERS = 400
_TOKENS = TermTokens()
"""Texts of each other source, all specific."""


class Row(NamedTuple):
    author: str
    kind: str
    language: str
    question: str


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=path())
    chosen = parser.parse_args()
    rows, encode = [*_authored(), *_others()], QueryTable().encode
    inputs = np.stack([encode(row.question) for row in rows])
    fit_general(rows, inputs).save(chosen.out)
    for author in sorted({row.author for row in rows if row.author}):
        kept = np.array([row.author != author for row in rows])
        model = fit_general([row for row in rows if row.author != author], inputs[kept])
        _report(
            author, model, [(row, vector) for row, vector in zip(rows, inputs, strict=True) if row.author == author]
        )


def fit_general(rows: list[Row], inputs: NDArray[np.float32]) -> GeneralQuestions:
    """Fit a multinomial logistic regression: accelerated descent (Nesterov 1983) on the penalised likelihood."""
    kinds = np.array([row.kind for row in rows])
    names = tuple(sorted(set(kinds.tolist())))
    wanted = (kinds[:, None] == np.array(names)).astype(np.float64)
    features = np.hstack([inputs, np.ones((len(rows), 1))]).astype(np.float64)
    penalties = np.full((features.shape[1], 1), PENALTY)
    penalties[-1] = 0.0
    rate = 1 / (np.linalg.norm(features, 2) ** 2 / 2 + PENALTY)  # the curvature is at most half of the features' own
    weights = ahead = np.zeros((features.shape[1], len(names)))
    for turn in range(ROUNDS):
        logits = features @ ahead
        likely = np.exp(logits - logits.max(axis=1, keepdims=True))
        likely /= likely.sum(axis=1, keepdims=True)
        after = ahead - rate * (features.T @ (likely - wanted) + penalties * ahead)
        ahead = after + turn / (turn + 3) * (after - weights)
        weights = after
    return GeneralQuestions(names, weights[:-1].T.astype(np.float32), weights[-1].astype(np.float32), _words(rows))


def _words(rows: list[Row]) -> frozenset[str]:
    """The terms of general questions, without those that specific ones have more than twice as often."""
    general, specific = Counter[str](), Counter[str]()
    for row in rows:
        (specific if row.kind == SPECIFIC else general).update(set(_TOKENS.query(row.question)))
    return frozenset(term for term, count in general.items() if count * 2 >= specific[term])


def _report(author: str, model: GeneralQuestions, rows: list[tuple[Row, NDArray[np.float32]]]) -> None:
    for is_english in (True, False):
        own = [(row, vector) for row, vector in rows if (row.language == "en") == is_english]
        told = [(row.kind, model.kind(vector, _TOKENS.query(row.question))) for row, vector in own]
        known = [kind == guess for kind, guess in told if kind != SPECIFIC and guess]
        general = sum(kind != SPECIFIC for kind, _ in told)
        wrong = [bool(guess) for kind, guess in told if kind == SPECIFIC]
        print(
            f"{author}, {'English' if is_english else 'other languages'}: of {general} general ones {len(known)} are "
            f"known, {sum(known)} as what they are; of {len(wrong)} specific ones {sum(wrong)} are taken for general",
            flush=True,
        )


def _authored() -> list[Row]:
    return [
        Row(file.stem, *line.split("\t"))
        for file in sorted(DATA.glob("general_*.tsv"))
        for line in file.read_text(encoding="utf-8").splitlines()
    ]


def _others() -> list[Row]:
    """Questions of the authored conversations, words, names, and the questions and statements that the query table was
    fitted on."""
    told = [*dialogues("train"), *dialogues("test"), *projects("train"), *projects("test")]
    asked = [question.text for conversation in told for question in conversation.questions]
    files = [(DATA / name).read_text(encoding="utf-8").splitlines() for name in ("queries.txt", "statements.txt")]
    listed = (DATA / "vocabulary.txt").read_text(encoding="utf-8").splitlines()
    words = [word.strip() for line in listed if line[0] not in "#[" and "|" not in line for word in line.split(";")]
    names = [name.rstrip("?!") for _, _, names in rules.rows("categories") for name in names.split(", ")]
    chance = random.Random(1)
    return [
        Row("", SPECIFIC, "en", text)
        for texts in (asked, words, names, *files)
        for text in chance.sample(texts, OTHERS)
    ]


if __name__ == "__main__":
    main()
