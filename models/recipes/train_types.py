"""Fit the types (stages/rules/types.json): what a clause is, or whether nobody looks for it later.

In memd's own environment, in about four minutes on one core:

    python train_types.py CORPUS SESSIONS [--folds FOLDER] [--out FILE]

Input: the corpus of sessions with gold lists and the folder of other sessions (both not included) with the labels in
`data/session_labels.tsv`; the authored sessions in `data/sessions_*.txt` and statements in `data/about_*.tsv`.
Each authored clause counts `AUTHORED` of a real one; a seldom type counts more. Output: a logistic regression for each
type against all others; with `--folds` also one without each repository, and by these the F1 of each type.
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np
from logistic import fit
from train_selection import DATA, authored_turns, real_clauses

from memd.clients.bench.corpus import load_scorer, read_session, repository
from memd.clients.importers.agent_files import reader
from memd.clients.importers.cursors import Cursors
from memd.clients.importers.transcript import CapturedSession
from memd.models.distiller import Distiller
from memd.protocol.event import Trust
from memd.stages import extraction_gate as gate
from memd.stages.clause_types import IDLE, TYPES, TypeModel, features
from memd.stages.clauses import Clause
from memd.stages.cues import noise, weights
from memd.stages.linear_model import path
from memd.stages.subjects import untitled
from memd.stages.words import is_english

AUTHORED = 0.4
PENALTY = 100.0
KINDS = {name: name for name in TYPES} | {"identity": "fact", "open": "commitment", "request": IDLE, "chatter": IDLE}
"""Type of a label's kind; a correction may be of any type."""
NAMES = (*TYPES, IDLE)


class Row(NamedTuple):
    """A labelled clause. `repository`: of a real session, or ""."""

    repository: str
    is_user: bool
    type: str
    values: list[float]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", type=Path)
    parser.add_argument("sessions", type=Path)
    parser.add_argument("--folds", type=Path, help="write a folder for each repository into this one as well")
    parser.add_argument("--out", type=Path, default=path("types"))
    chosen = parser.parse_args()
    rows = [*_real(chosen.corpus, chosen.sessions), *_authored(), *_statements()]
    print(len(rows), "clauses", flush=True)
    chosen.out.write_bytes(msgspec.json.encode(fit_types(rows)) + b"\n")
    told: list[tuple[Row, str]] = []
    for left_out in sorted({row.repository for row in rows if row.repository}) if chosen.folds else ():
        model = fit_types([row for row in rows if row.repository != left_out])
        file = chosen.folds / left_out / "types.json"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(msgspec.json.encode(model) + b"\n")
        told += [(row, _type(model, row)) for row in rows if row.repository == left_out and row.type != IDLE]
    for is_user in (True, False) if told else ():
        _report("user" if is_user else "agent", [(row.type, guess) for row, guess in told if row.is_user == is_user])


def fit_types(rows: list[Row]) -> TypeModel:
    """Fit one model for each type."""
    inputs, types = np.array([row.values for row in rows]), np.array([row.type for row in rows])
    counts = np.array([1.0 if row.repository else AUTHORED for row in rows])
    sums = {name: float(counts[types == name].sum()) for name in TYPES}
    mean = sum(sums.values()) / len(sums)
    counts *= np.array([(mean / sums[name]) ** 0.5 if name in sums else 1.0 for name in types])
    models = {name: fit(inputs, (types == name).astype(float), counts, PENALTY) for name in NAMES}
    first = models[IDLE]
    weights, biases = ({name: getattr(model, part) for name, model in models.items()} for part in ("weights", "bias"))
    return TypeModel(means=first.means, deviations=first.deviations, weights=weights, biases=biases)


def _type(model: TypeModel, row: Row) -> str:
    likely = model.probabilities(row.values)
    return max((name for name in TYPES if row.is_user or name != "preference"), key=lambda name: likely[name])


def _report(who: str, pairs: list[tuple[str, str]]) -> None:
    scores: list[float] = []
    for name in TYPES:
        count, claimed = (sum(pair[at] == name for pair in pairs) for at in (0, 1))
        if count >= 5:
            scores.append(2 * sum(pair == (name, name) for pair in pairs) / (count + claimed))
            print(f"{who} {name}: F1 {scores[-1]:.2f} of {count}")
    print(f"{who}: macro F1 {np.mean(scores):.3f}, accuracy {np.mean([a == b for a, b in pairs]):.3f}", flush=True)


def _row(source: str, is_user: bool, kind: str, clause: Clause, distiller: Distiller) -> Iterator[Row]:
    """The row of a clause; none of a kind that may be of any type, and of what no model reads."""
    who: Trust = "user" if is_user else "assistant"
    is_noise = not kind and noise(clause.text, who)
    type_ = KINDS.get(kind, "") if kind else IDLE
    if type_ and not is_noise and is_english(clause.text):
        words = untitled(clause.text).replace("**", "")
        reading = gate.read(distiller, words, who)
        yield Row(source, is_user, type_, features(clause, reading, weights(clause.text, who), is_user))


def _real(corpus: Path, sessions: Path) -> Iterator[Row]:
    distiller = Distiller()
    with (DATA / "session_labels.tsv").open(encoding="utf-8", newline="") as lines:
        labels = list(csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE))
    kinds = {(label["session"], label["turn"], int(label["start"])): label["kind"] for label in labels}
    for source, read in _sessions(corpus, sessions):
        for session, turn, place, clause in real_clauses(read):
            kind = kinds.get((session, turn, clause.start), "")
            yield from _row(source, place.is_user, kind, clause, distiller)


def _sessions(corpus: Path, others: Path) -> Iterator[tuple[str, tuple[CapturedSession, ...]]]:
    """The sessions of each file, and their repository."""
    scorer = load_scorer(corpus)
    for file in sorted((corpus / "dev/sessions").iterdir()):
        yield repository(file.stem), read_session(corpus, scorer, file.stem)
    for host, name, source in (("pi", "*.jsonl", "mario"), ("claude-code", "*-*.jsonl", "spotter")):
        for file in sorted((others / host).glob(name)):
            yield source, reader(host, file, "", Cursors(file.parent), dry_run=True)(None).sessions


def _authored() -> Iterator[Row]:
    distiller = Distiller()
    for file in sorted(DATA.glob("sessions_*.txt")):
        for turn in (turn for session in authored_turns(file) for turn in session):
            for place, clause, label in turn:
                yield from _row("", place.is_user, label[2] if label else "", clause, distiller)


def _statements() -> Iterator[Row]:
    distiller = Distiller()
    for file in sorted(DATA.glob("about_*.tsv")):
        with file.open(encoding="utf-8", newline="") as lines:
            for row in csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE):
                text = row["text"]
                yield from _row("", True, row["kind"], Clause(0, len(text), text, False), distiller)


if __name__ == "__main__":
    main()
