"""Fit the selection (stages/rules/selection.json): which clauses of a session are worth keeping.

In memd's own environment, in about a minute on one core:

    python train_selection.py CORPUS [--folds FOLDER] [--out FILE]

Input: the corpus of sessions with gold lists (not included) and the authored sessions in `data/sessions_*.txt`, each of
which counts `AUTHORED` of a real one. A clause of the corpus is kept if it holds a gold quote by the scorer's own
measure; an authored one by the worth that its author gave it. Output: a logistic regression, and the two thresholds,
above which `BELIEVED` and `NOTED` of 100 clauses of the corpus lie.
"""

from __future__ import annotations

import argparse
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import ModuleType

import msgspec
import numpy as np
from logistic import fit, probabilities
from numpy.typing import NDArray

from memd.clients.bench.corpus import load_scorer, read_session, repository
from memd.clients.importers.transcript import CapturedSession
from memd.models.distiller import Distiller
from memd.protocol.event import Captured, Said
from memd.stages import extraction_gate as gate
from memd.stages.batch import AgentText, Item
from memd.stages.clauses import Clause
from memd.stages.extract import turn_clauses
from memd.stages.linear_model import path
from memd.stages.selection import Place, Selection, features
from memd.stages.subjects import untitled
from memd.stages.words import is_english

DATA = Path(__file__).parent / "data"
AUTHORED = 0.3
WORTH = (0.0, 0.05, 0.3, 1.0)
DEAD = 0.2
"""Share of its worth that an authored line has which turned out wrong, replaced or mended."""
PENALTY = 200.0
"""Of the squared weights: one over twice the inverse strength."""
BELIEVED, NOTED = 6.0, 6.0
HELD, ALIKE = 0.6, 0.15
FEATURES = 34
LABEL = re.compile(r"(.*?)\s*## ([0-3]) (\w+) (\w+) (\w+)\s*$")
ITEM = re.compile(r"\s*(?:[-*+•]|\d{1,3}[.)])\s+(.*)")
UNTRUE = ("refuted", "superseded", "fixed")
Label = tuple[int, str, str]
"""Worth, status at the end, kind."""
Turn = list[tuple[Place, Clause, Label | None]]
"""The clauses of a turn in order."""
Rows = tuple[NDArray[np.float64], NDArray[np.float64]]
"""Features (clauses × names), and for each clause how much it is worth, in [0, 1]."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--folds", type=Path, help="write a folder for each repository into this one as well")
    parser.add_argument("--out", type=Path, default=path("selection"))
    chosen = parser.parse_args()
    distiller, scorer = Distiller(), load_scorer(chosen.corpus)
    real = {path.stem: _real(path, scorer, distiller) for path in sorted((chosen.corpus / "dev/gold").glob("*.jsonl"))}
    authored = [rows for path in sorted(DATA.glob("sessions_*.txt")) for rows in _authored(path, distiller)]
    _write(select(list(real.values()), authored), chosen.out)
    for left_out in sorted({repository(name) for name in real}) if chosen.folds else ():
        rest = [rows for name, rows in real.items() if repository(name) != left_out]
        folder = chosen.folds / left_out
        folder.mkdir(parents=True, exist_ok=True)
        _write(select(rest, authored), folder / "selection.json")


def select(real: list[Rows], authored: list[Rows]) -> Selection:
    """Fit the model, and choose the thresholds on the real sessions."""
    every = (*real, *authored)
    inputs, worth = np.vstack([rows[0] for rows in every]), np.hstack([rows[1] for rows in every])
    sizes = [(len(rows[1]), 1.0 if at < len(real) else AUTHORED) for at, rows in enumerate(every)]
    model = fit(inputs, worth, np.hstack([np.full(size, count) for size, count in sizes]), PENALTY)
    likely = probabilities(model, inputs[: sum(len(rows[1]) for rows in real)])
    believed, noted = np.percentile(likely, [100 - BELIEVED, 100 - NOTED])
    thresholds = {"believed": round(float(believed), 4), "noted": round(float(noted), 4)}
    return Selection(**msgspec.structs.asdict(model), **thresholds)


def _write(model: Selection, file: Path) -> None:
    file.write_bytes(msgspec.json.encode(model) + b"\n")
    print(file.name, model.believed, model.noted)


def _row(place: Place, clause: Clause, distiller: Distiller) -> list[float]:
    words = untitled(clause.text).replace("**", "")
    reading = gate.read(distiller, words, "user" if place.is_user else "assistant") if is_english(clause.text) else None
    row = features(place, clause, reading)
    return row + [float("nan")] * (FEATURES - len(row))


def _filled(rows: list[list[float]]) -> NDArray[np.float64]:
    """What is not known of a clause in another language is the mean of the others."""
    array = np.array(rows)
    return np.where(np.isnan(array), np.nanmean(array, axis=0), array)


# --- the corpus ------------------------------------------------------------------------------------------------------
def real_clauses(sessions: Iterable[CapturedSession]) -> Iterator[tuple[str, str, Place, Clause]]:
    """The clauses of sessions that may be kept: session, turn, place and clause."""
    for session in sessions:
        agent: list[AgentText] = []
        for seq, event in enumerate(session.events):
            if isinstance(event, Said):
                item = Item(seq=seq, captured=Captured(document=session.origin.document, event=event), project="p")
                for place, clause in turn_clauses(item, agent):
                    yield session.origin.session, event.turn, place, clause
                if event.role == "assistant":
                    agent.append(AgentText(seq, event.text))


def _real(gold: Path, scorer: ModuleType, distiller: Distiller) -> Rows:
    path = gold.parents[1] / "sessions" / gold.name
    clauses = [
        (place, clause) for _, _, place, clause in real_clauses(read_session(gold.parents[2], scorer, gold.stem))
    ]
    items = (item for item in scorer.gold("dev", gold.stem) if item["type"] == "gold")
    quotes = [quote["text"] for item in items for quote in item["quotes"]]
    held = _overlaps(scorer, path, quotes, [clause.text for _, clause in clauses])
    best = held.max(axis=1, keepdims=True)
    kept = ((held >= HELD) & (held >= best - ALIKE)).any(axis=0)
    print(gold.stem, len(clauses), int(kept.sum()), flush=True)
    return _filled([_row(place, clause, distiller) for place, clause in clauses]), kept.astype(float)


def _overlaps(scorer: ModuleType, path: Path, quotes: list[str], texts: list[str]) -> NDArray[np.float64]:
    """The share of each quote's content words that each text holds close together (quotes × texts), as the scorer
    counts them."""
    entries = scorer.texts(str(path))
    frequency = Counter(word for entry in entries for word in entry)
    seldom = max(3, 0.02 * len(entries))
    sequences = [scorer.sequence(text) for text in texts]
    out = np.zeros((len(quotes), len(texts)))
    for row, quote in enumerate(quotes):
        words = scorer.words(quote)
        rare = {word for word in words if frequency[word] <= seldom}
        rare = rare or set(sorted(words, key=lambda word: frequency[word])[:2])
        names = [name.lower() for name in scorer.NAME.findall(quote)]
        for column, (text, sequence) in enumerate(zip(texts, sequences, strict=True)):
            missing = names and len(words) <= 6 and sum(name in text.lower() for name in names) * 2 <= len(names)
            common = words & set(sequence)
            if words and not missing and common & rare and len(common) >= min(2, len(words)):
                out[row, column] = len(common) / len(words)
    return out


# --- the authored sessions -------------------------------------------------------------------------------------------
def authored_turns(path: Path) -> Iterator[list[Turn]]:
    """The turns of each session of a file."""
    for session in re.split(r"^# session.*\n", path.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]:
        parts = (turn.partition("\n") for turn in re.split(r"^== ", session, flags=re.MULTILINE)[1:])
        yield [_turn(body, who[0] == "U") for who, _, body in parts if who[0] != "T"]


def _turn(body: str, is_user: bool) -> Turn:
    lines = [line for line in body.splitlines() if line.strip() and not line.startswith(("#", "```"))]
    labels = [LABEL.match(line) for line in lines]
    texts = [label[1] if label else line for label, line in zip(labels, lines, strict=True)]
    parted = [(item[1], True) if (item := ITEM.match(text)) else (text.strip(), False) for text in texts]
    characters = sum(len(text) for text, _ in parted)
    heading, turn = "", list[tuple[Place, Clause, Label | None]]()
    for at, ((text, listed), label) in enumerate(zip(parted, labels, strict=True)):
        heading = heading if listed else text if text.endswith(":") else ""
        clause = Clause(0, len(text), text, listed, heading if listed else "")
        told = (int(label[2]), label[5], label[3]) if label else None
        turn.append((Place(is_user, at, len(parted), characters), clause, told))
    return turn


def _authored(path: Path, distiller: Distiller) -> Iterator[Rows]:
    for turns in authored_turns(path):
        clauses = [clause for turn in turns for clause in turn]
        worth = [WORTH[told[0]] * (DEAD if told[1] in UNTRUE else 1.0) if told else 0.0 for *_, told in clauses]
        yield _filled([_row(place, clause, distiller) for place, clause, _ in clauses]), np.array(worth)


if __name__ == "__main__":
    main()
