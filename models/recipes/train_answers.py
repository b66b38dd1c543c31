"""Fit the model of answers (stages/rules/answers.json): which answers to an agent's questions are worth keeping.

In memd's own environment, in some seconds on one core:

    python train_answers.py [--out FILE]

Input: the authored questions and answers in `data/answers.tsv`. Output: a logistic regression, and the two thresholds:
the least probabilities above which `BELIEVED` and `NOTED` of the answers are worth keeping, each judged by a model that
was fitted without it.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import msgspec
import numpy as np
from logistic import Array, fit, probabilities

from memd.models.distiller import Distiller
from memd.stages import extraction_gate as gate
from memd.stages.linear_model import path
from memd.stages.links import Answers, features

DATA = Path(__file__).parent / "data" / "answers.tsv"
PENALTY = 10.0
"""Of the squared weights: one over twice the inverse strength."""
BELIEVED, NOTED = 0.97, 0.9
PARTS = 8


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=path("answers"))
    chosen = parser.parse_args()
    rows = [line.split("\t") for line in DATA.read_text(encoding="utf-8").splitlines()[1:]]
    distiller = Distiller()
    inputs = np.array([_features(distiller, question, answer) for _, question, answer in rows])
    worth = np.array([float(kept) for kept, _, _ in rows])
    likely = _unseen(inputs, worth)
    thresholds = {name: _threshold(likely, worth, share) for name, share in (("believed", BELIEVED), ("noted", NOTED))}
    for name, least in thresholds.items():
        above = likely >= least
        print(name, least, f"precision {worth[above].mean():.3f}", f"recall {worth[above].sum() / worth.sum():.3f}")
    model = fit(inputs, worth, np.ones(len(worth)), PENALTY)
    chosen.out.write_bytes(msgspec.json.encode(Answers(**msgspec.structs.asdict(model), **thresholds)) + b"\n")


def _features(distiller: Distiller, question: str, answer: str) -> list[float]:
    asked, answered = gate.read(distiller, question, "assistant"), gate.read(distiller, answer, "user")
    return features(asked, answered, question, answer)


def _unseen(inputs: Array, worth: Array) -> Array:
    """The probability of each row by a model that was fitted without it."""
    likely, part = np.zeros(len(worth)), np.arange(len(worth)) % PARTS
    for left_out in range(PARTS):
        rest = part != left_out
        model = fit(inputs[rest], worth[rest], np.ones(int(rest.sum())), PENALTY)
        likely[~rest] = probabilities(model, inputs[~rest])
    return likely


def _threshold(likely: Array, worth: Array, share: float) -> float:
    """The least probability above which this share of the rows is worth keeping."""
    order = np.argsort(-likely)
    precision = np.cumsum(worth[order]) / np.arange(1, len(worth) + 1)
    last = np.flatnonzero(precision >= share)[-1]
    return round(float(likely[order][last]), 4)


if __name__ == "__main__":
    main()
