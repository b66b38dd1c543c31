"""Fit the authorship model (stages/rules/authorship.json): which parts of a user's turn did somebody else write?

In memd's own environment, in about a minute on one core:

    python train_authorship.py [--out FILE] [--measure FILE ...]

Input: the authored turns in `data/turns_*.txt`, of which each line is marked `O|` (the user's own) or `X|` (somebody
else's; small letters go on with the line before); the turns of users in `data/sessions_*.txt`, all of them their own;
and the cases of the tests on which rules were tuned. Output: a conditional random field (Lafferty, McCallum and Pereira
2001) over the parts of a turn; and the share of right parts on each author's turns by a model without that author.
"""

from __future__ import annotations

import argparse
import re
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray
from train_selection import LABEL

from memd.stages.authorship import MOST, Authorship, features, states
from memd.stages.linear_model import path
from memd.stages.speakers import read_turn

DATA = Path(__file__).parent / "data"
TUNED, SESSIONS, SHORT = 1.0, 0.2, 3.0
"""How much a turn of a tuned case, of a session, and a short one, counts beside a marked one."""
LONG_TURN, MOST_SESSIONS = 120, 250
"""Characters from which a turn of a session is used, and the most of them."""
PENALTY, ROUNDS, RATE = 80.0, 120, 0.08
CAUTION = (0.15, 0.2)
"""Added to the scores: to believe somebody else's words is worse than to miss the user's."""
Array = NDArray[np.float64]


class Turn(NamedTuple):
    """A text, and the characters of it that somebody else wrote."""

    text: str
    others: tuple[tuple[int, int], ...]


class Rows(NamedTuple):
    """Features of a turn's parts (parts × names), which are somebody else's, and how much they count."""

    inputs: Array
    others: NDArray[np.bool_]
    count: float


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=path("authorship"))
    parser.add_argument(
        "--measure", type=Path, nargs="*", default=[], help="more marked turns, which are only measured"
    )
    chosen = parser.parse_args()
    marked_turns = {file.stem: _rows(turns(file), 1.0) for file in sorted(DATA.glob("turns_?.txt"))}
    more = [*_rows(_sessions(), SESSIONS), *_rows(turns(DATA / "turns_tuned.txt"), TUNED)]
    more += _rows(turns(DATA / "turns_short.txt"), SHORT)
    for author, held in marked_turns.items():
        rest = [rows for other, group in marked_turns.items() if other != author for rows in group]
        print(author, _score(fit([*rest, *more]), held), flush=True)
    model = fit([*(rows for group in marked_turns.values() for rows in group), *more])
    for file in chosen.measure:
        print(file.stem, _score(model, _rows(turns(file), 1.0)))
    chosen.out.write_bytes(msgspec.json.encode(model) + b"\n")


def turns(file: Path) -> list[Turn]:
    """Read marked turns."""
    out: list[Turn] = []
    for block in re.split(r"^=== .*\n", file.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]:
        text, others = "", list[tuple[int, int]]()
        for line in block.split("\n"):
            if line[1:2] != "|" or line[0] not in "OoXx":
                continue
            text += "\n" if text and line[0].isupper() else ""
            start = len(text)
            text += line[2:]
            if line[0] in "Xx":
                others.append((start, len(text)))
        out.append(Turn(text, tuple(others)))
    return out


def _rows(turns: list[Turn], count: float) -> list[Rows]:
    return [rows for turn in turns if (rows := _row(turn, count))]


def _row(turn: Turn, count: float) -> Rows | None:
    pieces, _, known, hints = read_turn(turn.text)
    unknown = [at for at, is_known in enumerate(known) if not is_known]
    if not unknown:
        return None
    others = [
        2 * sum(max(0, min(end, piece.end) - max(start, piece.start)) for start, end in turn.others)
        > piece.end - piece.start
        for piece in pieces
    ]
    return Rows(features(pieces, known, hints)[unknown].astype(float), np.array(others)[unknown], count)


def _sessions() -> list[Turn]:
    out: list[Turn] = []
    for file in sorted(DATA.glob("sessions_*.txt")):
        for turn in re.split(r"^== ", file.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]:
            who, _, body = turn.partition("\n")
            lines = [LABEL.sub(r"\1", line) for line in body.splitlines() if not line.startswith("# session")]
            text = "\n".join(lines).strip()
            if who[0] == "U" and len(text) > LONG_TURN:
                out.append(Turn(text, ()))
    return out[:: max(1, len(out) // MOST_SESSIONS)]


def fit(rows: list[Rows]) -> Authorship:
    """Maximise the penalised likelihood by Adam (Kingma and Ba 2015)."""
    inputs = np.vstack([turn.inputs for turn in rows])
    means, deviations = inputs.mean(axis=0), inputs.std(axis=0)
    deviations[deviations < 1e-6] = 1.0
    scaled = np.hstack([np.clip((inputs - means) / deviations, -MOST, MOST), np.ones((len(inputs), 1))])
    lengths = np.array([len(turn.others) for turn in rows])
    mask = np.arange(lengths.max()) < lengths[:, None]
    other = np.zeros(mask.shape, bool)
    other[mask] = np.hstack([turn.others for turn in rows])
    before = np.hstack([np.zeros((len(rows), 1), bool), other[:, :-1]])
    gold = np.stack([other, other & ~before, mask & ~other & before], axis=2)
    counts = np.array([turn.count for turn in rows])[:, None, None]
    penalties = np.full((scaled.shape[1], 1), PENALTY)
    penalties[-1] = 0.01
    weights = np.zeros((scaled.shape[1], 3))
    slope, square = np.zeros_like(weights), np.zeros_like(weights)
    for number in range(1, ROUNDS + 1):
        scores = np.zeros((*mask.shape, 3))
        scores[mask] = scaled @ weights
        missed = (counts * (_expected(scores, mask) - gold))[mask]
        gradient = (scaled.T @ missed + penalties * weights) / (counts[:, 0] * mask).sum()
        slope, square = 0.9 * slope + 0.1 * gradient, 0.99 * square + 0.01 * gradient**2
        step = RATE * (1.0 if number < 0.6 * ROUNDS else 0.3)
        weights -= step * slope / (1 - 0.9**number) / (np.sqrt(square / (1 - 0.99**number)) + 1e-6)
    biases = weights[-1] + np.array([*CAUTION, 0.0])
    return Authorship(
        weights=tuple((_rounded(a), _rounded(b), _rounded(c)) for a, b, c in weights[:-1].tolist()),
        means=tuple(_rounded(value) for value in means.tolist()),
        deviations=tuple(_rounded(value) for value in deviations.tolist()),
        biases=(_rounded(biases[0]), _rounded(biases[1]), _rounded(biases[2])),
    )


def _rounded(value: float) -> float:
    return float(f"{value:.3g}")


def _expected(scores: Array, mask: NDArray[np.bool_]) -> Array:
    """The probabilities (turns × parts × 3) that a part is somebody else's, the first such, the first of the user's
    again, by the forward-backward algorithm."""
    stays, starts, ends = (scores[..., number] for number in range(3))
    count = mask.shape[1]
    ahead = np.zeros((2, *mask.shape))
    ahead[1, :, 0] = starts[:, 0] + stays[:, 0]
    for at in range(1, count):
        user = np.logaddexp(ahead[0, :, at - 1], ahead[1, :, at - 1] + ends[:, at])
        other = np.logaddexp(ahead[0, :, at - 1] + starts[:, at], ahead[1, :, at - 1]) + stays[:, at]
        ahead[:, :, at] = np.where(mask[:, at], (user, other), ahead[:, :, at - 1])
    total = np.logaddexp(*ahead[:, :, -1])[:, None]
    behind = np.zeros((2, *mask.shape))
    for at in range(count - 2, -1, -1):
        via = stays[:, at + 1] + behind[1, :, at + 1]
        user = np.logaddexp(behind[0, :, at + 1], starts[:, at + 1] + via)
        other = np.logaddexp(ends[:, at + 1] + behind[0, :, at + 1], via)
        behind[:, :, at] = np.where(mask[:, at + 1], (user, other), 0.0)
    out = np.zeros_like(scores)
    out[..., 0] = np.exp(ahead[1] + behind[1] - total)
    out[:, 0, 1] = out[:, 0, 0]
    out[:, 1:, 1] = np.exp(ahead[0, :, :-1] + starts[:, 1:] + stays[:, 1:] + behind[1, :, 1:] - total)
    out[:, 1:, 2] = np.exp(ahead[1, :, :-1] + ends[:, 1:] + behind[0, :, 1:] - total)
    return out * mask[..., None]


def _score(model: Authorship, held: list[Rows]) -> str:
    found = others = lost = own = 0
    for rows in held:
        scores = model.scores(rows.inputs.astype(np.float32))
        guess = np.array(states(scores))
        others, found = others + int(rows.others.sum()), found + int((guess & rows.others).sum())
        own, lost = own + int((~rows.others).sum()), lost + int((guess & ~rows.others).sum())
    return f"somebody else's {found}/{others} = {found / others:.3f}, own lost {lost}/{own} = {lost / own:.3f}"


if __name__ == "__main__":
    main()
