"""Fit the lasting model (stages/rules/lasting.json): is a statement a rule or wish that an agent should follow from now
on, or a task, a fact, a question, a finding of the day?

In memd's own environment, in two minutes on one core:

    python train_lasting.py [--out FILE]

Input: the sayings of `told.py`, where a record that states another part of its turn counts as no rule; and, with less
weight, `data/clauses_*.txt`: preferences and conventions beside events, questions, commitments and tasks. Output: a
logistic regression over what the distiller reads in a statement as the user's; and, with each author of sayings left
out once, the area under the curve, and how many of the others fall below what nine of ten rules reach.
"""

import argparse
import random
from pathlib import Path

import msgspec
import numpy as np
from labelled import DATA, MODALITIES, SPEAKERS, TYPES, clauses
from logistic import fit, probabilities
from told import author, developers

from memd.models.distiller import Distiller
from memd.stages.lasting import features
from memd.stages.linear_model import path

PENALTY = 100.0
KEPT = 0.1
CLAUSES, WEIGHT = "clauses", 0.3
MOST = {True: 1200, False: 1500}  # Clauses of each kind that are read
LASTING = frozenset(("preference", "convention"))
PASSING = frozenset(("event", "commitment", "question", "smalltalk", "noise", "instruction"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=path("lasting"))
    chosen = parser.parse_args()
    known = [
        (author(name), text, bool(lasting))
        for name, sayings in developers()
        for saying in sayings
        for texts, lasting in ((saying.stating, saying.lasting), (saying.other, False))
        for text in texts
        if lasting is not None
    ]
    known += user_clauses()
    distiller = Distiller()
    inputs = np.array([features(distiller.read(text, "user")) for _, text, _ in known])
    authors = np.array([name for name, _, _ in known])
    truth = np.array([lasting for _, _, lasting in known], float)
    counts = np.where(authors == CLAUSES, WEIGHT, 1.0)
    likely = np.zeros(len(known))
    for name in sorted({*authors} - {CLAUSES}):
        rest = authors != name
        likely[~rest] = probabilities(fit(inputs[rest], truth[rest], counts[rest], PENALTY), inputs[~rest])
    report(likely[authors != CLAUSES], truth[authors != CLAUSES])
    chosen.out.write_bytes(msgspec.json.encode(fit(inputs, truth, counts, PENALTY)) + b"\n")


def user_clauses() -> list[tuple[str, str, bool]]:
    """Some of what users state in the clauses of the distiller's course."""
    found = [
        (CLAUSES, clause.text, TYPES[clause.type] in LASTING)
        for clause in clauses(*sorted(DATA.glob("clauses_*.txt")))
        if SPEAKERS[clause.speaker] == "user" and MODALITIES[clause.modality] == "stated"
        if TYPES[clause.type] in LASTING | PASSING
    ]
    random.Random(0).shuffle(found)
    return [row for kind, most in MOST.items() for row in [row for row in found if row[2] is kind][:most]]


def report(likely: np.ndarray, truth: np.ndarray) -> None:
    """Print the area under the curve, and how many others fall below what nine of ten rules reach."""
    least = np.quantile(likely[truth == 1], KEPT)
    ranks = likely.argsort().argsort()[truth == 1] + 1
    area = (ranks.sum() - len(ranks) * (len(ranks) + 1) / 2) / (len(ranks) * (truth == 0).sum())
    below = (likely[truth == 0] < least).mean()
    print(
        f"{len(truth)} statements, {len(ranks)} lasting; area {area:.3f}; {below:.2f} of the others below {least:.2f}"
    )


if __name__ == "__main__":
    main()
