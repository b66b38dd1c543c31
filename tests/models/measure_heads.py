"""Measure the heads on texts by others than those who wrote the training sets.

With memd installed (`pip install -e '.[test]'`), from the root of the checkout:

    python -m tests.models.measure_heads [--data FOLDER] [clauses|traps|pairs|injection|extraction|salience|speed ...]

Comes in: the authored tests in `tests/data/`, and from `--data` the sets that you bring: labelled real sentences,
injection texts, LoCoMo conversations. Goes out: a table for each, with 95 % intervals (bootstrap, 2,000 draws). Nothing
is fitted here but the cross-validated salience figure, which is thrown away.
"""

import argparse
import contextlib
import gzip
import json
import re
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from memd.models.distiller import TYPES, Distiller, Speaker
from memd.models.injection import InjectionJudge, Place
from memd.models.pair import RELATIONS, PairJudge, Relation
from memd.models.recipes.labelled import MODALITIES, SPEAKERS, TESTS, clauses, pairs
from memd.models.trunk import Trunk
from memd.stages.batch import Batch, Item
from memd.stages.contradictions import compare
from memd.stages.pipeline import pipeline, run
from memd.stages.scan import ALONE, highest_score, is_order
from memd.stages.scan import flags_of as rules_found

CHANGES = ("replaces", "contradicts")
Rows = np.ndarray


def interval(right: Sequence[float] | np.ndarray) -> str:
    """Mean and 95 % interval of a row of zeros and ones (or scores)."""
    values = np.asarray(right, float)
    draws = np.random.default_rng(7).choice(values, (2000, len(values))).mean(axis=1)
    low, high = np.percentile(draws, [2.5, 97.5])
    return f"{values.mean():.3f} [{low:.3f}, {high:.3f}]"


def macro(truth: Sequence[str], guess: Sequence[str], least: int = 1) -> tuple[float, dict[str, float]]:
    """Mean F1 over the labels that occur `least` times, and each of them."""
    each: dict[str, float] = {}
    for label in sorted(set(truth)):
        count = sum(t == label for t in truth)
        if count >= least:
            hit = sum(t == g == label for t, g in zip(truth, guess, strict=True))
            each[label] = 2 * hit / (count + sum(g == label for g in guess))
    return float(np.mean(list(each.values()))), each


def spread(truth: list[str], guess: list[str], least: int = 1) -> str:
    """Macro F1 with its 95 % interval."""
    chance = np.random.default_rng(7)
    draws: list[float] = []
    for _ in range(500):
        at = chance.integers(0, len(truth), len(truth))
        draws.append(macro([truth[i] for i in at], [guess[i] for i in at], least)[0])
    low, high = np.percentile(draws, [2.5, 97.5])
    return f"{macro(truth, guess, least)[0]:.3f} [{low:.3f}, {high:.3f}]"


def report_clauses(name: str, rows: list[tuple[str, Speaker, str, str, int]]) -> None:
    distiller = Distiller()
    read = [distiller.read(text.replace("**", ""), speaker) for text, speaker, *_ in rows]
    for what, truth, guess in (
        ("type", [row[2] for row in rows], [str(one.type) for one in read]),
        ("modality", [row[3] for row in rows], [str(one.modality) for one in read]),
    ):
        right = [t == g for t, g in zip(truth, guess, strict=True)]
        print(f"{name}, {len(rows)} {what}s: accuracy {interval(right)}, macro F1 {spread(truth, guess)}", end="")
        print(f" (of 5 or more: {macro(truth, guess, 5)[0]:.3f})")
        for label, score in macro(truth, guess)[1].items():
            print(f"    {label:12} F1 {score:.2f}  n {truth.count(label)}")
    worth = np.array([row[4] >= 1 for row in rows])
    scores = np.array([one.salience for one in read])
    print(f"  salience: worth keeping at all against not, AUC {auc(scores, worth):.3f}", flush=True)


def auc(scores: Rows, truth: Rows) -> float:
    ranks = scores.argsort().argsort() + 1
    good = int(truth.sum())
    return float((ranks[truth].sum() - good * (good + 1) / 2) / (good * (len(truth) - good)))


def measure_clauses(data: Path) -> None:
    test = clauses(TESTS / "test_clauses.txt")
    rows: list[tuple[str, Speaker, str, str, int]] = [
        (one.text, SPEAKERS[one.speaker], TYPES[one.type], MODALITIES[one.modality], one.salience) for one in test
    ]
    report_clauses("authored test", rows)
    if (data / "sessions").exists():
        from tests.models.real_sentences import real_sentences

        drawn = real_sentences()
        who: dict[str, Speaker] = {"user": "user", "assistant": "assistant"}
        for which in ("random", "picked", ""):
            part = [one for one in drawn if which in one.drawn]
            report_clauses(
                f"real sentences, {which or 'all'}",
                [(one.text, who.get(one.speaker, "other"), one.type, one.modality, one.salience) for one in part],
            )


def measure_traps(_data: Path) -> None:
    """What the stages keep of each trap: false if it lacks the words that it must hold."""
    from memd.protocol.event import Captured, Said

    stages = pipeline(Trunk())
    lines = [line for line in (TESTS / "test_traps.txt").read_text(encoding="utf-8").splitlines() if line.strip()]
    turned: dict[str, list[int]] = defaultdict(list)
    kept = 0
    for at, line in enumerate(line for line in lines if line[0] != "#"):
        kind, speaker, must, text = (part.strip() for part in line.split(" | ", 3))
        said = Said(
            turn=f"t{at}", at="2026-01-01T09:00:00Z", role="user" if speaker == "user" else "assistant", text=text
        )
        item = Item(seq=1, captured=Captured(document=f"trap:{at}", event=said))
        batch, _ = run(Batch(items=(item,)), stages, time.monotonic)
        quotes = [one.quote for one in batch.candidates]
        kept += bool(quotes)
        words = [] if must == "-" else [word.strip().lower() for word in must.split("/")]
        wrong = [quote for quote in quotes if not any(word in quote.lower() for word in words)]
        turned[kind].append(int(bool(wrong)))
        if wrong:
            print(f"    {kind}: {wrong[0]!r} of {text!r}")
    everything = [one for ones in turned.values() for one in ones]
    print(f"traps: {len(everything)}, something kept of {kept}, turned {interval(everything)}")
    for kind, ones in turned.items():
        print(f"    {kind:14} {sum(ones)} of {len(ones)}", flush=True)


def measure_pairs(_data: Path) -> None:
    rows = pairs(TESTS / "test_pairs.txt")
    judge, trunk = PairJudge(), Trunk()
    found = [judge.judge(a, b) for a, b, _ in rows]
    truth = [RELATIONS[label] for *_, label in rows]
    ruled = [compare(a, b, float(np.prod(trunk.embed([a, b]), axis=0).sum())).label for a, b, _ in rows]
    print_pairs("rules alone", truth, list(ruled))
    for sure in (0.0, 0.5, 0.6, 0.7, 0.8, 0.9):
        print_pairs(f"head, change claimed from {sure}", truth, [claimed(one, sure) for one in found])


def claimed(probabilities: Mapping[Relation, float], sure: float) -> str:
    """The most likely label; a change only where it is likely enough, else the best of the others."""
    return next(label for label, p in probabilities.items() if label not in CHANGES or p >= sure)


def print_pairs(name: str, truth: Sequence[str], guess: Sequence[str]) -> None:
    right = [t == g for t, g in zip(truth, guess, strict=True)]
    wrong = [g in CHANGES and t not in CHANGES for t, g in zip(truth, guess, strict=True)]
    each = " ".join(f"{label} {f1:.2f}" for label, f1 in macro(list(truth), list(guess))[1].items())
    print(f"pairs, {name}: accuracy {interval(right)}, change claimed wrongly {interval(wrong)} ({each})", flush=True)


def place_of(source: str, kind: str) -> Place:
    """Where a text of the injection set stands: strings of BIPIA and AgentDojo lie inside tool results."""
    if source.startswith(("BIPIA", "agentdojo")):
        return "tool"
    return "document" if kind.startswith("indirect") else "user"


def measure_injection(data: Path) -> None:
    with gzip.open(data / "injection" / "injection_dev.jsonl.gz", "rt", encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    judge = InjectionJudge()
    scores = np.array([highest_score(judge, row["text"], place_of(row["source"], row["kind"])) for row in rows])
    truth = np.array([row["label"] == 1 for row in rows])
    ruled = np.array(["injection" in rules_found(row["text"]) for row in rows])
    print(f"injection, rules alone: recall {interval(ruled[truth])}, false alarms {interval(ruled[~truth])}")
    for floor in (0.5, 0.7, 0.8, 0.9, 0.95, 0.97, 0.98):
        caught, both = scores >= floor, (scores >= floor) | ruled
        print(f"  head from {floor}: recall {interval(caught[truth])}, false alarms {interval(caught[~truth])}", end="")
        print(f"; with rules {both[truth].mean():.3f}, {both[~truth].mean():.3f}")
    taken = ruled | [is_order(row["text"], score) for row, score in zip(rows, scores, strict=True)]
    print("  as the scan stage takes it: ", end="")
    print_by_source(rows, truth, taken, ruled)
    print_at_two_percent("head", rows, truth, scores, np.zeros_like(ruled))
    print_at_two_percent("head and rules", rows, truth, scores, ruled)
    if (data / "sessions").exists():
        measure_working_talk(judge, data / "sessions")


def measure_working_talk(judge: InjectionJudge, sessions: Path) -> None:
    """How many different sentences of real sessions would be flagged where they stood in a document."""
    from tests.models.real_sentences import said

    lines = [line for path in sorted(sessions.rglob("*.jsonl")) for line in path.read_bytes().splitlines()]
    sentences: dict[str, None] = {}
    for line in lines:
        with contextlib.suppress(msgspec.MsgspecError, UnicodeDecodeError):  # some are torn on purpose
            sentences.update(dict.fromkeys(said(line)[1]))
    scores = np.array([highest_score(judge, text, "document") for text in sentences])
    flagged = sum(
        "injection" in rules_found(text) or is_order(text, x) for text, x in zip(sentences, scores, strict=True)
    )
    size_mb = sum(map(len, sentences)) / 1e6
    print(
        f"  real sessions: {flagged} of {len(sentences)} sentences ({size_mb:.3f} MB) flagged; by the head alone ",
        end="",
    )
    print(
        ", ".join(f"{(scores >= floor).sum() / size_mb:.0f} a MB from {floor}" for floor in (0.5, 0.99, 0.999, ALONE))
    )


def print_at_two_percent(name: str, rows: list[dict[str, Any]], truth: Rows, scores: Rows, ruled: Rows) -> None:
    """Recall and false alarms, all and by source, from the lowest floor of the head that alarms 2 % at most."""
    calm = np.sort(scores[~truth & ~ruled])[::-1]
    left = int(0.02 * (~truth).sum()) - int(ruled[~truth].sum())
    if left < 0:
        print(f"  {name} at 2 % false alarms: the rules alone alarm more")
        return
    caught = (scores > calm[left]) | ruled
    print(f"  {name} at 2 % false alarms (floor {calm[left]:.5f}): ", end="")
    print_by_source(rows, truth, caught, ruled)


def print_by_source(rows: list[dict[str, Any]], truth: Rows, caught: Rows, ruled: Rows) -> None:
    """Recall and false alarms, all and by source."""
    print(f"recall {interval(caught[truth])}, false alarms {interval(caught[~truth])}, by source:")
    for source in sorted({row["source"] for row in rows}):
        part = np.array([row["source"] == source for row in rows])
        for label, what in ((True, "recall"), (False, "false alarms")):
            one = part & (truth == label)
            if one.any():
                print(f"    {source:26} {what} {interval(caught[one])}, rules {ruled[one].mean():.2f} (n {one.sum()})")


KINDS = {
    "identity": "fact",
    "convention": "fact",
    "lesson": "fact",
    "event": "fact",
    "procedure": "fact",
    "decision": "decision",
    "commitment": "commitment",
    "preference": "preference",
}
"""What the snippets call our types; they have opinions as well, which we have not."""


def measure_extraction(data: Path) -> None:
    """Sentences of the snippets with a type, against the labelled memories, each cited to its nearest sentence."""
    folder = data / "extraction"
    snippets = {row["id"]: row["text"] for row in _lines(folder / "snippets_dev.jsonl")}
    trunk, distiller = Trunk(), Distiller()
    hits: dict[str, list[int]] = defaultdict(list)
    for row in _lines(folder / "labels_dev.jsonl"):
        sentences = re.split(r"(?<=[.!?])\s+", snippets[row["id"]].strip())
        vectors = trunk.embed(sentences)
        wanted: set[tuple[int, str]] = set()
        for memory in row["memories"]:
            wanted.add((int((vectors @ trunk.embed([memory["content"]])[0]).argmax()), memory["type"]))
        read = [distiller.read(sentence, "user") for sentence in sentences]
        told = {(at, KINDS[one.type]) for at, one in enumerate(read) if one.type in KINDS and one.salience >= 1}
        hits["type and sentence, precision"] += [int(one in wanted) for one in told]
        hits["type and sentence, recall"] += [int(one in told) for one in wanted]
        cited = {at for at, _ in wanted}
        hits["sentence alone, precision"] += [int(at in cited) for at, _ in told]
        hits["sentence alone, recall"] += [int(at in {place for place, _ in told}) for at in cited]
    for name, ones in hits.items():
        print(f"extraction, {name}: {interval(ones)} (n {len(ones)})", flush=True)


def _lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]


def measure_salience(data: Path) -> None:
    from tests.models.salience_locomo import measure

    measure(data / "locomo" / "locomo_dev5.json")


def measure_speed(_data: Path) -> None:
    texts = [one.text for one in clauses(TESTS / "test_clauses.txt")]
    distiller, judge, trunk = Distiller(), PairJudge(), Trunk()
    runs: dict[str, Callable[[str], object]] = {
        "trunk alone": lambda text: trunk.embed([text]),
        "distiller (trunk and heads)": lambda text: distiller.read(text, "user"),
        "pair": lambda text: judge.judge(text, text),
    }
    taken: dict[str, list[float]] = {name: [] for name in runs}
    for text in texts:
        for name, work in runs.items():
            began = time.perf_counter()
            work(text)
            taken[name].append(time.perf_counter() - began)
    for name, seconds in taken.items():
        p50, mean = np.median(seconds) * 1e3, np.mean(seconds)
        print(f"{name}: p50 {p50:.2f} ms a clause, {1 / mean:.0f} a second, one thread, one text at a time")


def main() -> None:
    measures = {
        "clauses": measure_clauses,
        "traps": measure_traps,
        "pairs": measure_pairs,
        "injection": measure_injection,
        "extraction": measure_extraction,
        "salience": measure_salience,
        "speed": measure_speed,
    }
    options = argparse.ArgumentParser(description="Measure the heads.")
    options.add_argument("--data", type=Path, default=Path(__file__).parents[3] / "shared" / "data")
    options.add_argument("names", nargs="*", choices=[*measures, []], help="all, if none is named")
    chosen = options.parse_args()
    for name in chosen.names or measures:
        print(f"--- {name}")
        measures[name](chosen.data)


if __name__ == "__main__":
    sys.exit(main())
