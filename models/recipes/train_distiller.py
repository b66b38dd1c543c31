"""Train the distiller (weights/distiller.onnx): what a clause is, how it is meant, what matters, whom it is about.

In the environment of `export_trunk.py`, and with the trunk that it made:

    python train_distiller.py [--trunk FILE] [--out FOLDER] [--epochs 3] [--seed 0]

Input: the clauses in `data/`, labelled as LABELS.md says, and for the figures `tests/data/test_clauses.txt` by
another author. Output: figures as trained, and `distiller.onnx` beside the trunk. One adapter feeds four heads: type,
modality and salience from the mean of the states, a tag for each token.
"""

import numpy as np
import torch
from adapted import WIDTH, Adapted, batches, mean, options, padded, train, word_pieces, write
from labelled import DATA, MODALITIES, SPEAKERS, TAGS, TESTS, TYPES, LabelledClause, clauses
from torch import nn

TOKENS = 128
IGNORED = -100
# Types whose spans were not always marked: an unmarked clause of them says nothing about tags.
UNTAGGED = {TYPES.index(name) for name in ("instruction", "question", "smalltalk", "noise", "lesson", "procedure")}
SALIENCES = 4
Row = tuple[tuple[list[int], list[int]], list[int], LabelledClause]


class DistillerNet(nn.Module):
    """ids of "user: We use tabs.", segments (the speaker), mask -> type, modality, salience, tags, pooled."""

    def __init__(self) -> None:
        super().__init__()
        self.adapted = Adapted(segments=len(SPEAKERS))
        self.head_type = self._head(len(TYPES))
        self.head_modality = self._head(len(MODALITIES))
        self.head_salience = self._head(SALIENCES)
        self.head_tags = nn.Linear(WIDTH, len(TAGS))

    @staticmethod
    def _head(classes: int) -> nn.Module:
        inside = nn.Linear(2 * WIDTH, 96)
        return nn.Sequential(nn.Dropout(0.2), inside, nn.GELU(), nn.Dropout(0.2), nn.Linear(96, classes))

    def forward(self, ids: torch.Tensor, segments: torch.Tensor, mask: torch.Tensor) -> tuple[torch.Tensor, ...]:
        states = self.adapted(ids, segments, mask)
        pooled = mean(states, mask)
        both = torch.cat([pooled, states[:, 0]], dim=1)  # [CLS] beside the mean: it sees the end of a sentence
        heads = (self.head_type, self.head_modality, self.head_salience)
        return *(head(both) for head in heads), self.head_tags(states), pooled


def rows(found: list[LabelledClause]) -> list[Row]:
    tokenizer = word_pieces()
    out: list[Row] = []
    for clause in found:
        who = tokenizer.encode(f"{SPEAKERS[clause.speaker]}:").ids[1:-1]
        encoded = tokenizer.encode(clause.text)
        ids = [encoded.ids[0], *who, *encoded.ids[1:]][:TOKENS]
        offsets = [(0, 0)] * (1 + len(who)) + encoded.offsets[1:][: TOKENS - 1 - len(who)]
        silent = clause.type in UNTAGGED and not clause.spans
        tags = [IGNORED if silent or end == 0 else 0 for _, end in offsets]
        for tag, first, last in clause.spans:
            for at, (start, end) in enumerate(offsets):
                if end and start >= first and end <= last:
                    tags[at] = tag
        out.append(((ids, [clause.speaker] * len(ids)), tags, clause))
    return out


def tensors(group: list[Row]) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    return padded([one[0] for one in group])


def predict(net: DistillerNet, rows: list[Row]) -> list[np.ndarray]:
    """Logits of type, modality and salience for each row."""
    out = [np.empty((len(rows), n), np.float32) for n in (len(TYPES), len(MODALITIES), SALIENCES)]
    with torch.no_grad():
        for group in batches([len(one[0][0]) for one in rows], 32, None):
            for logits, part in zip(out, net(*tensors([rows[at] for at in group]))[:3], strict=True):
                logits[group] = part.numpy()
    return out


def f1(truth: np.ndarray, guess: np.ndarray, classes: list[str]) -> dict[str, float]:
    """F1 of every class that occurs."""
    out: dict[str, float] = {}
    for at, name in enumerate(classes):
        hit = int(((truth == at) & (guess == at)).sum())
        if (truth == at).any():
            out[name] = 2 * hit / max(1, int((truth == at).sum() + (guess == at).sum()))
    return out


def report(name: str, net: DistillerNet, found: list[Row]) -> None:
    logits = predict(net, found)
    for field, classes, part in (("type", TYPES, logits[0]), ("modality", MODALITIES, logits[1])):
        truth = np.array([getattr(one[2], field) for one in found])
        scores = f1(truth, part.argmax(axis=1), classes)
        by_label = " ".join(f"{label[:6]} {score:.2f}" for label, score in scores.items())
        macro = float(np.mean(list(scores.values())))
        print(f"{name} {field}: accuracy {(part.argmax(axis=1) == truth).mean():.3f} macro F1 {macro:.3f} ({by_label})")
    truth = np.array([one[2].salience for one in found])
    print(f"{name} salience: exact {(logits[2].argmax(axis=1) == truth).mean():.3f}", flush=True)


def loss_of(net: DistillerNet, part: list[Row]) -> torch.Tensor:
    kind, modality, salience, tags, _ = net(*tensors(part))
    wide = torch.full(tags.shape[:2], IGNORED)
    for at, one in enumerate(part):
        wide[at, : len(one[1])] = torch.tensor(one[1])
    smooth = nn.CrossEntropyLoss(label_smoothing=0.05)
    loss = smooth(kind, torch.tensor([one[2].type for one in part]))
    loss = loss + smooth(modality, torch.tensor([one[2].modality for one in part]))
    loss = loss + 0.5 * smooth(salience, torch.tensor([one[2].salience for one in part]))
    if (wide != IGNORED).any():
        loss = loss + 0.5 * nn.functional.cross_entropy(tags.flatten(0, 1), wide.flatten(), ignore_index=IGNORED)
    return loss


def main() -> None:
    chosen = options("the distiller", epochs=3)
    known, test = rows(clauses(*sorted(DATA.glob("clauses*.txt")))), rows(clauses(TESTS / "test_clauses.txt"))
    net = DistillerNet()

    def after(epoch: int, lost: float) -> None:
        print(f"epoch {epoch}, loss {lost:.3f}")
        report("  test", net, test)
        torch.save(net.state_dict(), chosen.out / "distiller.pt")

    train(
        net, [len(one[0][0]) for one in known], lambda group: loss_of(net, [known[at] for at in group]), after, chosen
    )
    outputs = {name: {0: "texts"} for name in ("type", "modality", "salience", "tags", "pooled")}
    outputs["tags"][1] = "tokens"
    write(net, tensors(known[:2]), outputs, "distiller", chosen)


if __name__ == "__main__":
    main()
