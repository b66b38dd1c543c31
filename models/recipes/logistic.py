"""Fit a logistic regression: Newton's method on the penalised likelihood (McCullagh and Nelder 1989, section 4.4)."""

import numpy as np
from numpy.typing import NDArray

from memd.stages.linear_model import LinearModel

ROUNDS, NO_STEP = 30, 1e-9
Array = NDArray[np.float64]


def fit(inputs: Array, share: Array, counts: Array, penalty: float) -> LinearModel:
    """Fit on `inputs` (rows × features). `share`: how much of each row is positive, in [0, 1]; `counts`: how much each
    row counts; `penalty`: of half the squared weights."""
    means, deviations = inputs.mean(axis=0), inputs.std(axis=0) + 1e-9
    scaled = np.hstack([(inputs - means) / deviations, np.ones((len(inputs), 1))])
    penalties = np.diag([penalty] * inputs.shape[1] + [0.0])
    weights = np.zeros(scaled.shape[1])
    for _ in range(ROUNDS):
        likely = 1 / (1 + np.exp(-scaled @ weights))
        slope = scaled.T @ (counts * (share - likely)) - penalties @ weights
        bend = (scaled * (counts * likely * (1 - likely))[:, None]).T @ scaled + penalties
        step = np.linalg.solve(bend, slope)
        weights = weights + step
        if np.abs(step).max() < NO_STEP:
            break
    return LinearModel(
        weights=rounded(weights[:-1]),
        means=rounded(means),
        deviations=rounded(deviations),
        bias=round(float(weights[-1]), 5),
    )


def rounded(values: Array) -> tuple[float, ...]:
    return tuple(float(f"{value:.5g}") for value in values)


def probabilities(model: LinearModel, inputs: Array) -> Array:
    return np.array([model.probability(row.tolist()) for row in inputs])
