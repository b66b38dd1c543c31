"""Fit the models of other languages (stages/rules/other_languages.npz): a clause's language, and what it says.

In memd's own environment, in about two minutes on one core:

    python train_other_languages.py [--out FILE]

Input: the authored clauses of `data/other_*.txt` (`KIND TEXT`; kinds: `-` nothing, `d` decision, `p` preference, `f`
fact, `i` of the user, `y` approval; `A` in front: the agent's) and, for the language only, the English clauses of the
other recipes. Words that stand in the clauses of several languages are English or names: the content leaves them out.
"""

from __future__ import annotations

import argparse
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from memd.protocol.event import Trust
from memd.stages.other_languages import BUCKETS, CONTENTS, FILE, FORMS, form, grams

DATA = Path(__file__).parent / "data"
KINDS = dict(zip("-dpfiy", range(len(CONTENTS)), strict=True))
SHARED_BY = 3
"""Languages from which a word is a loan word."""

ROUNDS, RATE = 150, 0.5
CONTENT_PENALTY, LANGUAGE_PENALTY = 1e-4, 2e-5
FOLDS = 4
FEWEST_ENGLISH, MOST_ENGLISH = 12, 4000
_WORD = re.compile(r"[a-z][a-z0-9]+|[a-z]*\d+[a-z]*", re.IGNORECASE)
_CLAUSE = re.compile(r"^[^|]+\|[^|]+\|[^|]+\| *(?:user|assistant|other) *\| *(?P<text>.+)$")

Floats = NDArray[np.float32]


class Labelled(NamedTuple):
    language: str
    trust: Trust
    kind: int
    text: str


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=FILE)
    chosen = parser.parse_args()
    clauses = list(_clauses())
    english = list(_english())
    languages = sorted({"en", *(clause.language for clause in clauses)})
    loans = _loans(clauses)
    rows = _rows([(_without(clause.text, loans), clause.trust) for clause in clauses])
    labels = np.array([clause.kind for clause in clauses])
    _report(rows, labels, clauses)
    content = _fit(rows, labels, len(CONTENTS))
    spoken = [clause.text for clause in clauses] + english
    named = [languages.index(clause.language) for clause in clauses] + [languages.index("en")] * len(english)
    texts = _rows([(text, "user") for text in spoken], with_form=False)
    language = _fit(texts, np.array(named), len(languages), LANGUAGE_PENALTY)
    scales = [float(np.abs(weights).max()) / 127 for weights in (language, content)]
    np.savez_compressed(
        chosen.out,
        languages=np.array(" ".join(languages)),
        language=np.round(language / scales[0]).astype(np.int8),
        content=np.round(content / scales[1]).astype(np.int8),
        scales=np.array(scales, np.float32),
    )
    print(chosen.out, chosen.out.stat().st_size, "bytes")


def _clauses() -> Iterator[Labelled]:
    for path in sorted(DATA.glob("other_*.txt")):
        for line in path.read_text(encoding="utf-8").splitlines():
            mark, _, text = line.partition(" ")
            trust: Trust = "assistant" if mark[0] == "A" else "user"
            yield Labelled(path.stem.removeprefix("other_"), trust, KINDS[mark[-1]], text)


def _english() -> Iterator[str]:
    texts: list[str] = []
    for path in sorted(DATA.glob("clauses_*.txt")):
        hits = map(_CLAUSE.match, path.read_text(encoding="utf-8").splitlines())
        texts += [re.sub(r"\{\w:|\}", "", hit["text"]) for hit in hits if hit]
    for path in sorted(DATA.glob("sessions_*.txt")):
        lines = path.read_text(encoding="utf-8").splitlines()
        texts += [
            line.partition(" ## ")[0] for line in lines if line[:1] not in {"#", "="} and len(line) > FEWEST_ENGLISH
        ]
    step = max(1, len(texts) // MOST_ENGLISH)
    yield from texts[::step]


def _loans(clauses: Sequence[Labelled]) -> frozenset[str]:
    seen = {(word.lower(), clause.language) for clause in clauses for word in _WORD.findall(clause.text)}
    counts = Counter(word for word, _ in seen)
    return frozenset(word for word, count in counts.items() if count >= SHARED_BY and len(word) > 2)


def _without(text: str, loans: frozenset[str]) -> str:
    return _WORD.sub(lambda hit: " " if hit[0].lower() in loans else hit[0], text)


def _rows(texts: Sequence[tuple[str, Trust]], with_form: bool = True) -> Floats:
    rows = np.zeros((len(texts), BUCKETS + FORMS), np.float32)
    for row, (text, trust) in zip(rows, texts, strict=True):
        hashes = grams(text)
        np.add.at(row, hashes, 1 / np.sqrt(max(1, len(hashes))))
        row[BUCKETS:] = form(text, trust) if with_form else (1, *[0] * (FORMS - 1))
    return rows


def _fit(rows: Floats, labels: NDArray[np.int_], classes: int, penalty: float = CONTENT_PENALTY) -> Floats:
    """Minimise the mean loss and the penalty by Adam (Kingma and Ba 2015)."""
    weights = np.zeros((rows.shape[1], classes), np.float32)
    first, second = np.zeros_like(weights), np.zeros_like(weights)
    right = np.eye(classes, dtype=np.float32)[labels]
    for number in range(1, ROUNDS + 1):
        logits = rows @ weights
        likely = np.exp(logits - logits.max(axis=1, keepdims=True))
        likely /= likely.sum(axis=1, keepdims=True)
        slope = rows.T @ (likely - right) / len(rows) + penalty * weights
        first = 0.9 * first + 0.1 * slope
        second = 0.99 * second + 0.01 * slope**2
        rate = RATE * (1 - number / ROUNDS) + 1e-3
        weights -= rate * (first / (1 - 0.9**number)) / (np.sqrt(second / (1 - 0.99**number)) + 1e-6)
    return weights


def _report(rows: Floats, labels: NDArray[np.int_], clauses: Sequence[Labelled]) -> None:
    """Print how often a model that was fitted on other rows finds the kind, and what is worth keeping."""
    part = np.array([sum(map(ord, clause.text)) % FOLDS for clause in clauses])
    best = np.zeros(len(labels), int)
    for fold in range(FOLDS):
        weights = _fit(rows[part != fold], labels[part != fold], len(CONTENTS))
        best[part == fold] = (rows[part == fold] @ weights).argmax(axis=1)
    worthless = np.array([KINDS["-"], KINDS["y"]])
    for language in sorted({clause.language for clause in clauses}):
        own = np.array([clause.language == language for clause in clauses])
        worth, told = ~np.isin(labels[own], worthless), ~np.isin(best[own], worthless)
        found, right = (worth & told).sum() / worth.sum(), (worth & told).sum() / max(1, told.sum())
        kind = np.mean(best[own] == labels[own])
        print(f"{language}: kind {kind:.2f}, worth: recall {found:.2f}, precision {right:.2f}")


if __name__ == "__main__":
    main()
