"""Train the injection head (weights/injection.onnx): a text in material that is aimed at an agent.

In the environment of `export_trunk.py`, and with the trunk that it made:

    python train_injection.py --out FIRST [--trunk FILE] [--epochs 3] [--seed 0]
    python train_injection.py --start FIRST/injection.onnx --sessions FOLDER --epochs 1

The first course reads the passages in `data/`, labelled as LABELS.md says, with honest talk and passages in company:
a head that has only seen short passages takes length and working talk for signs of an attack, and an attack seldom
stands alone. The second course goes on from there with the texts of `injection_texts.py`, some of the passages, and
pieces of real sessions of agents, which are all benign. Then one scale and one offset are fitted to the logits of the
held-out passages, so that a score is a probability (Platt 1999).
Output: figures on every tenth passage, held out by blocks, and `injection.onnx` beside the trunk. Where a passage
stands (user, document, tool) is added to each token. The products run in bfloat16, 2.5 times as fast on processors
that have it; others give other bytes.
"""

import argparse
import random
import re
from pathlib import Path

import numpy as np
import onnx
import torch
from adapted import WIDTH, Adapted, mean, options, padded, predict, train, word_pieces, write
from injection_texts import spun
from labelled import DATA, PLACES, passages, unmarked
from torch import nn
from transcripts import pieces

TOKENS = 256
BLOCK = 25
TALK = 0.12  # Share of the talk that is read: more of it costs time
REPEATED = 3500  # Passages of the first course that the second one reads again
REAL, SHORT = 3000, 260  # Pieces of real sessions that the second course reads, and their length at most
COMPANY = 0.1  # Share of the filled templates that are read once more, in company
SOFT = 0.01  # How far the second course's targets lie from 0 and 1: no logit grows without bound
COMPOSED = 0.12  # Share of the texts that are read once more, in company
# Addresses, which models/injection.py takes out in the same way: an invented host must not give an attack away.
_LINK = re.compile(r"https?://\S+|\b[\w.+-]+@[\w-]+(?:\.[\w-]+)+")
Row = tuple[tuple[list[int], list[int]], int]
Passage = tuple[str, int, int]  # A text, its place as an index into PLACES, 1 for an attack
RUNS = (1, 1, 2, 3, 5, 8)  # How many clauses in a row become one text
# Characters of a passage, and of what precedes an attack: the whole must lie within the tokens that are read.
LONGEST = 500
_USER, _DOCUMENT, _TOOL = range(len(PLACES))


class InjectionNet(nn.Module):
    """ids, segments (the place, at each token), mask -> logit (n)."""

    def __init__(self) -> None:
        super().__init__()
        self.adapted = Adapted(segments=len(PLACES))
        self.head = nn.Sequential(
            nn.Dropout(0.2), nn.Linear(3 * WIDTH, 64), nn.GELU(), nn.Dropout(0.2), nn.Linear(64, 1)
        )

    def forward(self, ids: torch.Tensor, segments: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        states = self.adapted(ids, segments, mask)
        highest = (states - (1.0 - mask)[:, :, None] * 100.0).amax(dim=1)
        return self.head(torch.cat([mean(states, mask), highest, states[:, 0]], dim=1))[:, 0]


def talk(paths: list[Path], chance: random.Random) -> list[Passage]:
    """Runs of consecutive clauses as benign texts. What a user orders stands in the user's place alone: the same
    words in a tool's result are an attack."""
    passages: list[Passage] = []
    for path in paths:
        for block in re.split(r"\n\s*\n", path.read_text(encoding="utf-8")):
            lines = [line.split(" | ", 4) for line in block.splitlines() if line.strip() and line[0] != "#"]
            at = 0
            while at < len(lines):
                part = lines[at : at + chance.choice(RUNS)]
                at += len(part)
                ordered = any(type_.strip() == "instruction" for type_, *_ in part)
                users = part[0][3].strip() == "user" and chance.random() < 0.6
                place = _USER if ordered or users else chance.choice((_DOCUMENT, _DOCUMENT, _TOOL))
                text = chance.choice((" ", "\n")).join(unmarked(line[4].strip())[0] for line in part)
                passages.append((text, place, 0))
    return passages


def composed(known: list[Passage], share: float, chance: random.Random) -> list[Passage]:
    """A `share` of the shorter passages among one to four benign ones of the same place: its label stays."""
    calm = [[text for text, at, label in known if at == place and not label] for place in range(len(PLACES))]
    passages: list[Passage] = []
    for text, place, label in known:
        if chance.random() >= share or len(text) > LONGEST:
            continue
        around = chance.sample(calm[place], chance.choice((1, 2, 2, 3, 4)))
        at = chance.randrange(len(around) + 1)
        while sum(map(len, around[:at])) > LONGEST:
            at -= 1
        joint = chance.choice((" ", "\n", "\n\n"))
        passages.append((joint.join([*around[:at], text, *around[at:]]), place, label))
    return passages


def rows(found: list[Passage]) -> list[Row]:
    tokenizer = word_pieces()
    out: list[Row] = []
    for text, place, label in found:
        ids = tokenizer.encode(_LINK.sub("link", text)).ids[:TOKENS]
        out.append(((ids, [place] * len(ids)), label))
    return out


def logits(net: InjectionNet, group: list[Row]) -> torch.Tensor:
    with torch.autocast("cpu", torch.bfloat16):
        return net(*padded([one for one, _ in group])).float()


def report(name: str, scores: np.ndarray, truth: np.ndarray) -> None:
    calm = np.sort(scores[truth == 0])[::-1]
    floor = calm[int(0.02 * len(calm))]
    caught = (scores[truth == 1] > floor).mean()
    print(f"{name}: recall {caught:.3f} at 2 % false alarms, accuracy {((scores > 0) == truth).mean():.3f}", flush=True)


def first_course(known: list[Passage], chance: random.Random) -> list[Passage]:
    said = talk(sorted(DATA.glob("clauses*.txt")), chance)
    texts = known + chance.sample(said, int(TALK * len(said)))
    return texts + composed(texts, COMPOSED, chance)


def second_course(known: list[Passage], sessions: Path, chance: random.Random) -> list[Passage]:
    filled = spun()
    real = pieces(sessions)
    chance.shuffle(real)
    texts = filled + chance.sample(known, REPEATED)
    texts += [piece for piece in real if len(piece[0]) <= SHORT][:REAL]
    return texts + composed(filled, COMPANY, chance)


def resume(net: InjectionNet, path: Path) -> None:
    """Take the adapter and the head of an exported network; its trunk is the same."""
    held = {
        one.name: onnx.numpy_helper.to_array(one)
        for one in onnx.load(path, load_external_data=False).graph.initializer
        if one.data_location == onnx.TensorProto.DEFAULT
    }
    state = net.state_dict()
    for name, value in held.items():
        if name in state and tuple(state[name].shape) == value.shape:
            state[name] = torch.tensor(value.astype(np.float32))
    for layer in ("head.1", "head.4"):
        steps = held[f"{layer}.weight_quantized"].astype(np.float32) - held[f"{layer}.weight_zero_point"]
        state[f"{layer}.weight"] = torch.tensor((steps * held[f"{layer}.weight_scale"]).T.copy())
    net.load_state_dict(state)


def calibrate(net: InjectionNet, test: list[Row], truth: np.ndarray) -> None:
    """Fit scale and offset of the logits to the held-out passages, by the likelihood, and put them into the head."""
    scores = torch.tensor(predict(test, lambda group: logits(net, group), 16))
    wanted = torch.tensor(truth, dtype=torch.float32)
    fit = torch.nn.Parameter(torch.tensor([1.0, 0.0]))
    optimizer = torch.optim.LBFGS([fit], max_iter=100)

    def loss() -> torch.Tensor:
        optimizer.zero_grad()
        value = nn.functional.binary_cross_entropy_with_logits(scores * fit[0] + fit[1], wanted)
        value.backward()
        return value

    optimizer.step(loss)
    last = net.head[-1]
    with torch.no_grad():
        last.weight *= fit[0]
        last.bias.mul_(fit[0]).add_(fit[1])
    print(f"calibration: logit x {fit[0].item():.3f} + {fit[1].item():.3f}", flush=True)


def course() -> argparse.Namespace:
    """The options of both courses."""
    more = argparse.ArgumentParser(add_help=False)
    more.add_argument("--start", type=Path)
    more.add_argument("--sessions", type=Path)
    return options("the injection head", epochs=3, more=more)


def main() -> None:
    chosen = course()
    chance = random.Random(chosen.seed)
    everything = passages(*sorted(DATA.glob("passages*.txt")))
    held = [at // BLOCK % 10 == 9 for at in range(len(everything))]
    texts = [one for one, out in zip(everything, held, strict=True) if not out]
    test = rows([one for one, out in zip(everything, held, strict=True) if out])
    truth = np.array([label for _, label in test])
    net = InjectionNet()
    if chosen.start:
        resume(net, chosen.start)
        known = rows(second_course(texts, chosen.sessions, chance))
    else:
        known = rows(first_course(texts, chance))
    least = SOFT if chosen.start else 0.0

    def loss_of(group: list[int]) -> torch.Tensor:
        part = [known[at] for at in group]
        wanted = torch.tensor([least + (1 - 2 * least) * label for _, label in part])
        return nn.functional.binary_cross_entropy_with_logits(logits(net, part), wanted)

    def after(epoch: int, lost: float) -> None:
        report(f"epoch {epoch}, loss {lost:.3f}", predict(test, lambda group: logits(net, group), 16), truth)

    size, pace = (24, 0.6) if chosen.start else (16, 1.0)
    train(net, [len(one[0][0]) for one in known], loss_of, after, chosen, size=size, pace=pace)
    if chosen.start:
        calibrate(net, test, truth)
    write(net, padded([one[0] for one in known[:2]]), {"logit": {0: "texts"}}, "injection", chosen)


if __name__ == "__main__":
    main()
