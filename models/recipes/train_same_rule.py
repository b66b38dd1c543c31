"""Train the same-rule head (weights/same_rule.onnx): whether two statements of different days state one lasting rule.

In the environment of `export_trunk.py`, and with the trunk that it made:

    python train_same_rule.py [--trunk FILE] [--out FOLDER] [--epochs 2] [--seed 0] [--held LETTERS]

Input: `data/told_*.jsonl`, where invented developers state their rules in other words each time, beside what only
sounds like them; `data/again_*.jsonl`, where tasks and facts come again, and rules are replaced. Each line is a
developer; `records` are the descriptions that memd made of a saying. `--held`: the files that only measure.
Two courses. First the adapter learns to put the statements of a rule near each other and away from all others of the
developer (supervised contrastive loss, arXiv:2004.11362). Then the network reads pairs: all of a rule, with the nearest
other statements of the same developer and some by chance. A task that comes again is no pair, nor are an old rule and
the one that replaces it.
Output: the average precision over all pairs of the held developers, and `same_rule.onnx` beside the trunk. The products
run in bfloat16 while it learns.
"""

import argparse
import itertools
import random
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from adapted import WIDTH, Adapted, mean, options, padded, predict, train, word_pieces, write
from told import Saying, developers
from torch import nn

WORDS, BEFORE, TURN = 44, 24, 44  # Tokens that count, as in models/same_rule.py
CONTEXT = 0.5  # Weight of the context in the first course
NEAR, CHANCE = 12, 0.5  # Nearest others from which negatives are drawn; share of negatives drawn from all others
NEGATIVES = 2  # Negatives for each statement of a rule, beside what sounds like it; others get one
FIRST_EPOCHS = 4

Row = tuple[tuple[list[int], list[int]], float]


class Told(NamedTuple):
    """A statement: `parts`, the tokens of its words and of its context; `rule`, -1 if it states none that is told
    again; `like`: what it sounds like, -1 for nothing; `saying`, of which no two statements are compared."""

    parts: tuple[list[int], list[int]]
    rule: int
    like: int
    saying: int


class Reader(nn.Module):
    """ids, segments, mask -> a logit for each pair."""

    def __init__(self) -> None:
        super().__init__()
        self.adapted = Adapted(segments=4)
        self.head = nn.Sequential(
            nn.Dropout(0.1), nn.Linear(5 * WIDTH, 128), nn.GELU(), nn.Dropout(0.1), nn.Linear(128, 1)
        )
        self.scale = nn.Parameter(torch.tensor(3.0))

    def near(self, ids: torch.Tensor, segments: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """Unit rows of single statements, for the first course."""
        states = self.adapted(ids, segments, mask)
        words, context = (mean(states, mask * (segments == part)) for part in (0, 1))
        return nn.functional.normalize(words + CONTEXT * context, dim=1)

    def forward(self, ids: torch.Tensor, segments: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        states = self.adapted(ids, segments, mask)
        u, v = (mean(states, mask * (segments == part).to(torch.float32)) for part in (0, 2))
        return self.head(torch.cat([states[:, 0], u, v, (u - v).abs(), u * v], dim=1))[:, 0]


def statements() -> dict[str, list[Told]]:
    """The statements of each developer."""
    tokenizer = word_pieces()

    def tokens(text: str) -> list[int]:
        return tokenizer.encode(text).ids[1:-1]

    def told(words: str, saying: Saying, number: int) -> Told:
        context = [*tokens(saying.before)[-BEFORE:], *tokens(saying.turn)[:TURN]]
        return Told((tokens(words)[:WORDS], context), saying.rule, saying.near, number)

    return {
        name: [told(words, saying, number) for number, saying in enumerate(sayings) for words in _texts(saying)]
        for name, sayings in developers()
    }


def _texts(saying: Saying) -> tuple[str, ...]:
    """The records of a saying; of one that states a rule those that state it, or else its own words."""
    found = saying.stating if saying.rule >= 0 else (*saying.stating, *saying.other)
    return found or (saying.states,)


def alone(told: Told) -> tuple[list[int], list[int]]:
    words, context = told.parts
    ids = [101, *words, 102, *context, 102]
    return ids, [0] * (len(words) + 2) + [1] * (len(context) + 1)


def row(first: Told, second: Told, label: float) -> Row:
    ids, segments = [101], [0]
    for place, part in enumerate((*first.parts, *second.parts)):
        ids += [*part, 102]
        segments += [place] * (len(part) + 1)
    return (ids, segments), label


def pairs(rows: list[Told], cosines: np.ndarray, chance: random.Random) -> list[Row]:
    """Both orders of all pairs of a rule and of what sounds like it, and other negatives."""
    found: list[Row] = []
    for place, told in enumerate(rows):
        others = [at for at, other in enumerate(rows) if other.saying != told.saying]
        same = [at for at in others if told.rule >= 0 and rows[at].rule == told.rule]
        found += [row(told, rows[at], 1.0) for at in same]
        alike = [at for at in others if at not in same and told.like >= 0 and rows[at].like == told.like]
        found += [row(told, rows[at], 0.0) for at in alike]
        differ = sorted((at for at in others if at not in same), key=lambda at: -cosines[place, at])
        for _ in range(NEGATIVES if same else 1):
            at = chance.choice(differ if chance.random() < CHANCE else differ[:NEAR])
            found.append(row(*chance.sample((told, rows[at]), 2), 0.0))
    return found


def contrast(net: Reader, all_rows: list[list[Told]], chosen: argparse.Namespace) -> None:
    """The first course."""

    def loss_of(group: list[int]) -> torch.Tensor:
        rows = all_rows[group[0]]
        with torch.autocast("cpu", torch.bfloat16):
            unit = net.near(*padded([alone(told) for told in rows])).float()
        rules = torch.tensor([told.rule for told in rows])
        sayings = torch.tensor([told.saying for told in rows])
        hidden = sayings[:, None] == sayings
        likely = (unit @ unit.T * net.scale.exp()).masked_fill(hidden, -1e9).log_softmax(dim=1)
        same = (rules[:, None] == rules) & (rules >= 0) & ~hidden
        having = same.any(dim=1)
        return -(likely.masked_fill(~same, 0.0).sum(dim=1)[having] / same.sum(dim=1)[having]).mean()

    epochs, chosen.epochs = chosen.epochs, FIRST_EPOCHS
    train(net, [0] * len(all_rows), loss_of, lambda epoch, lost: print(f"first course: {lost:.3f}"), chosen, size=1)
    chosen.epochs = epochs
    with torch.no_grad():
        net.adapted.segments[2:] = net.adapted.segments[:2]


def cosines(net: Reader, rows: list[Told]) -> np.ndarray:
    with torch.no_grad():
        unit = net.eval().near(*padded([alone(told) for told in rows])).numpy()
    return unit @ unit.T


def tensors(group: list[Row]) -> tuple[torch.Tensor, ...]:
    return padded([one[0] for one in group])


def report(name: str, net: Reader, held: dict[str, list[Told]]) -> None:
    """Print the average precision over all pairs of the held developers."""
    told = [
        pair for rows in held.values() for pair in itertools.combinations(rows, 2) if pair[0].saying != pair[1].saying
    ]
    if not told:
        return
    logits = predict([row(*pair, 0.0) for pair in told], lambda group: net(*tensors(group)))
    truth = np.array([first.rule == second.rule >= 0 for first, second in told])[np.argsort(-logits)]
    precision = truth.cumsum() / np.arange(1, len(truth) + 1)
    print(f"{name}: average precision {(precision * truth).sum() / truth.sum():.3f} of {truth.sum()} pairs", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--held", default="", help="files that only measure: told_f is f")
    chosen = options("the same-rule head", 2, parser)
    everyone = statements()
    held = {name: rows for name, rows in everyone.items() if name.split()[0][-1] in chosen.held}
    known = [rows for name, rows in everyone.items() if name not in held]
    net = Reader()
    contrast(net, [rows for rows in known if any(told.rule >= 0 for told in rows)], chosen)
    chance = random.Random(chosen.seed)
    taught = [pair for rows in known for pair in pairs(rows, cosines(net, rows), chance)]
    loss = nn.BCEWithLogitsLoss()

    def loss_of(group: list[int]) -> torch.Tensor:
        part = [taught[at] for at in group]
        with torch.autocast("cpu", torch.bfloat16):
            logits = net(*tensors(part)).float()
        return loss(logits, torch.tensor([one[1] for one in part]))

    train(
        net,
        [len(one[0][0]) for one in taught],
        loss_of,
        lambda epoch, lost: report(f"epoch {epoch}, loss {lost:.3f}", net, held),
        chosen,
    )
    del net.scale
    path = write(net, tensors(taught[:2]), {"logit": {0: "pairs"}}, "same_rule", chosen)
    print(path, Path(path).stat().st_size)


if __name__ == "__main__":
    main()
