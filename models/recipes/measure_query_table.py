"""Measure what the query table loses against the trunk, on LoCoMo conversations (for measuring only).

    pip install numpy==2.4.6 onnxruntime==1.31.1 tokenizers==0.23.3 rank-bm25==0.2.2
    python measure_query_table.py LOCOMO.json [--weights FOLDER]

Input: a list of conversations in LoCoMo's own form. Output: recall@10 of evidence turns with the question encoded
by the trunk and by the table, alone and joined with BM25 (score / best, plus cosines stretched to 0..1, by a share),
and the paired difference with its standard error; then the time a question takes.

A document is "Speaker: text"; questions of categories 1-4 whose evidence can be found; stop words removed and a plural
-s stripped for BM25. The fit has never seen these texts.
"""

import argparse
import json
import re
import timeit
from functools import partial
from pathlib import Path

import numpy as np
import onnxruntime
from rank_bm25 import BM25Okapi
from tokenizers import Tokenizer

TOP = 10
SHARES = (0.4, 0.5, 0.6)
STOP_WORDS = set(
    "a an the of to in on at for with by from as is are was were be been being am do does did doing has have had "
    "having i you he she it we they me him her us them my your his its our their this that these those and or but if "
    "then than so what when where who whom which why how s t not no can could will would should".split()
)
Conversation = tuple[list[str], list[str], list[set[int]]]


def stems(text: str) -> list[str]:
    words = (word for word in re.findall(r"[a-z0-9]+", text.lower()) if word not in STOP_WORDS)
    return [word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word for word in words]


def conversations(path: Path) -> list[Conversation]:
    """Per conversation: its documents, its questions, and the numbers of the documents that answer each."""
    out: list[Conversation] = []
    for whole in json.loads(path.read_text(encoding="utf-8")):
        turns = [turn for part in whole["conversation"].values() if isinstance(part, list) for turn in part]
        places = {turn["dia_id"]: at for at, turn in enumerate(turns)}
        questions: list[str] = []
        answers: list[set[int]] = []
        for asked in whole["qa"]:
            cited = re.findall(r"D\d+:\d+", " ".join(asked["evidence"]))
            cited_turns = {places[turn] for turn in cited if turn in places}
            if asked["category"] in (1, 2, 3, 4) and cited_turns:
                questions.append(asked["question"])
                answers.append(cited_turns)
        out.append(([f"{turn['speaker']}: {turn['text']}" for turn in turns], questions, answers))
    return out


class Encoders:
    """Both ways from a text to a unit vector."""

    def __init__(self, folder: Path) -> None:
        self.tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self.tokenizer.no_padding()
        self.tokenizer.enable_truncation(256)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        path = str(folder / "minilm-l6-int8.onnx")
        self.session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        table = np.load(folder / "query-table.npy", mmap_mode="r")
        self.scales, self.rows = np.asarray(table["scale"]), np.asarray(table["row"])

    def trunk(self, texts: list[str]) -> np.ndarray:
        rows = (np.array([self.tokenizer.encode(text).ids]) for text in texts)
        feeds = ({"input_ids": ids, "attention_mask": np.ones_like(ids)} for ids in rows)
        return np.array([self.session.run(None, feed)[0][0] for feed in feeds])

    def table(self, texts: list[str]) -> np.ndarray:
        rows = (self.tokenizer.encode(text).ids for text in texts)
        summed = np.array([self.scales[ids] @ self.rows[ids].astype(np.float32) for ids in rows])
        return summed / np.linalg.norm(summed, axis=1, keepdims=True)


def recall(scores: np.ndarray, answers: list[set[int]]) -> np.ndarray:
    """Per question the share of its evidence among the TOP best, in points."""
    best = np.argsort(-scores, axis=1, kind="stable")[:, :TOP].tolist()
    return np.array([100 * len(answer & set(top)) / len(answer) for top, answer in zip(best, answers, strict=True)])


def joined(keywords: np.ndarray, cosines: np.ndarray, share: float) -> np.ndarray:
    low, high = cosines.min(axis=1, keepdims=True), cosines.max(axis=1, keepdims=True)
    best = np.maximum(keywords.max(axis=1, keepdims=True), 1e-9)
    return (1 - share) * keywords / best + share * (cosines - low) / np.maximum(high - low, 1e-9)


def main() -> None:
    options = argparse.ArgumentParser(description="Compare the query table with the trunk.")
    options.add_argument("locomo", type=Path)
    options.add_argument("--weights", type=Path, default=Path(__file__).parent.parent / "weights")
    chosen = options.parse_args()
    encoders = Encoders(chosen.weights)
    points: dict[str, list[np.ndarray]] = {}
    cosines: list[np.ndarray] = []
    every: list[str] = []
    for documents, questions, answers in conversations(chosen.locomo):
        every += questions
        vectors = encoders.trunk(documents)
        index = BM25Okapi([stems(text) for text in documents])
        keywords = np.array([index.get_scores(stems(question)) for question in questions])
        points.setdefault("BM25", []).append(recall(keywords, answers))
        by_trunk, by_table = encoders.trunk(questions), encoders.table(questions)
        cosines.append((by_trunk * by_table).sum(axis=1))
        for name, asked in (("trunk", by_trunk), ("table", by_table)):
            scores = asked @ vectors.T
            points.setdefault(f"{name} alone", []).append(recall(scores, answers))
            for share in SHARES:
                mixed = joined(keywords, scores, share)
                points.setdefault(f"{name} {share} + BM25", []).append(recall(mixed, answers))
    print(f"{len(every)} questions; cosine of table and trunk {np.concatenate(cosines).mean():.3f}")
    whole = {name: np.concatenate(parts) for name, parts in points.items()}
    print(f"BM25 {whole['BM25'].mean():.2f}")
    for kind in ("alone", *(f"{share} + BM25" for share in SHARES)):
        trunk, table = whole[f"trunk {kind}"], whole[f"table {kind}"]
        loss, error = (table - trunk).mean(), (table - trunk).std() / len(table) ** 0.5
        print(f"{kind:10} trunk {trunk.mean():.2f} table {table.mean():.2f} ({loss:+.2f}, standard error {error:.2f})")
    for name, encode in (("table", encoders.table), ("trunk", encoders.trunk)):
        best_s = min(timeit.repeat(partial(encode, every[:200]), number=1, repeat=5))
        print(f"{name}: {1e6 * best_s / len(every[:200]):.0f} us a question")


if __name__ == "__main__":
    main()
