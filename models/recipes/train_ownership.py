"""Fit the ownership model (stages/rules/ownership.json): is a statement about the user, or about the project?

In memd's own environment, in half a minute on one core:

    python train_ownership.py [--out FILE]

Input: the authored statements in `data/about_*.tsv`. Output: a logistic regression over what the distiller reads in a
statement as the user's; and, by ten-fold cross-validation, the share that it gets right.
"""

import argparse
import csv
from pathlib import Path

import msgspec
import numpy as np
from logistic import fit, probabilities

from memd.models.distiller import Distiller
from memd.stages.linear_model import path
from memd.stages.ownership import features

DATA = Path(__file__).parent / "data"
PENALTY = 33.0
FOLDS = 10


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=path("ownership"))
    chosen = parser.parse_args()
    distiller = Distiller()
    texts: list[str] = []
    owners: list[bool] = []
    for file in sorted(DATA.glob("about_*.tsv")):
        with file.open(encoding="utf-8", newline="") as lines:
            for row in csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE):
                texts.append(row["text"])
                owners.append(row["about"] == "user")
    inputs = np.array([features(distiller.read(text, "user")) for text in texts])
    shares, counts = np.array(owners, float), np.ones(len(owners))
    fold = np.arange(len(owners)) % FOLDS
    right = 0
    for number in range(FOLDS):
        rest = fold != number
        model = fit(inputs[rest], shares[rest], counts[rest], PENALTY)
        right += int(((probabilities(model, inputs[~rest]) > 0.5) == shares[~rest]).sum())
    print(f"{len(owners)} statements, right {right / len(owners):.3f}")
    chosen.out.write_bytes(msgspec.json.encode(fit(inputs, shares, counts, PENALTY)) + b"\n")


if __name__ == "__main__":
    main()
