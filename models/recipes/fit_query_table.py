"""Fit the query table (weights/query-table.npy): one row per word piece, so that rows added up give the trunk's vector.

In a clean environment of Python 3.11, after export_trunk.py and spin_texts.py:

    pip install numpy==2.4.6 scipy onnxruntime==1.31.1 tokenizers==0.23.3
    python fit_query_table.py [--weights FOLDER] [--extra FILE] [--cache FILE]

Input: the trunk and tokenizer in `--weights` (default: ../weights), which are the teacher; data/*.txt; with
`--extra`, further texts, one a line (none were used for the table in git). Output: query-table.npy in `--weights`,
and its name and hash in manifest.json. `--cache` keeps the teacher's vectors between runs.

Texts: the spun lines; every word of the vocabulary in short frames; spun lines with one to three other words. The fit
is ridge regression towards the teacher's vector of each word piece alone (preconditioned conjugate gradients), then one
step of reweighting, which turns squared error into an error of direction. Nothing is fitted on a benchmark.
"""

import argparse
import hashlib
import json
import random
import re
import time
from pathlib import Path

import numpy as np
import onnxruntime
import scipy.sparse as sparse
from tokenizers import Tokenizer

HERE = Path(__file__).parent
DATA = HERE / "data"
TABLE = "query-table.npy"
WIDTH, MAX_TOKENS = 384, 256
SWEEPS, SWAPS = 4, 4
RIDGE = 0.01
CLS, SEP, FIRST_WORD = 101, 102, 1996
ENTRY = np.dtype([("scale", "<f4"), ("row", "i1", (WIDTH,))])


def lines(name: str) -> list[str]:
    return (DATA / name).read_text(encoding="utf-8").splitlines()


def common(words: list[str], chance: random.Random) -> str:
    """Any word, the early ones (which are the frequent ones) more often."""
    return words[int(len(words) * chance.random() ** 2)]


def sweep(words: list[str], chance: random.Random) -> list[str]:
    """Every word SWEEPS times in one of the frames, two thirds of them questions."""
    both = "\n".join(lines("sweep_templates.txt")).split("\n\n")
    questions, statements = (part.split("\n") for part in both)
    listed = (DATA / "vocabulary.txt").read_text(encoding="utf-8")
    names = [name.strip() for name in listed.split("[person]\n")[1].split("\n")[0].split(";")]
    pronouns = ["I", "we", "she", "he", "they", "you"]
    out: list[str] = []
    for word in words * SWEEPS:
        frame = chance.choice(questions if chance.random() < 2 / 3 else statements)
        filled = {slot: common(words, chance) for slot in "abc"}
        filled[chance.choice([slot for slot in "abc" if f"{{{slot}}}" in frame])] = word
        person = chance.choice(names if chance.random() < 0.8 else pronouns)
        out.append(frame.format(p=person, **filled))
    return out


def swap(words: list[str], chance: random.Random) -> list[str]:
    """Every word SWAPS times in the place of a word of a spun line, with up to two other strangers."""
    queries, statements = lines("queries.txt"), lines("statements.txt")
    out: list[str] = []
    for word in words * SWAPS:
        parts = re.findall(r"\w+|\W+", chance.choice(queries if chance.random() < 0.7 else statements))
        places = [at for at, part in enumerate(parts) if len(part) > 2 and part.isalpha()] or [0]
        for turn, at in enumerate(chance.sample(places, min(len(places), chance.choice((1, 2, 2, 3))))):
            parts[at] = common(words, chance) if turn else word
        out.append("".join(parts))
    return out


def training_texts(tokenizer: Tokenizer, extra: Path | None) -> list[str]:
    pieces = sorted(tokenizer.get_vocab().items(), key=lambda piece: piece[1])
    words = [w for w, at in pieces if at >= FIRST_WORD and w.isascii() and w.isalpha() and len(w) > 2]
    more = extra.read_text(encoding="utf-8").splitlines() if extra else []
    texts = lines("queries.txt") + lines("statements.txt")
    return texts + sweep(words, random.Random(3)) + swap(words, random.Random(9)) + more


def embed(trunk: Path, rows: list[list[int]]) -> np.ndarray:
    """Unit vectors (n x 384) of rows of token ids by the trunk, one text at a time, on one thread."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(str(trunk), options, providers=["CPUExecutionProvider"])
    out = np.empty((len(rows), WIDTH), np.float32)
    for at, row in enumerate(rows):
        ids = np.array([row])
        out[at] = session.run(None, {"input_ids": ids, "attention_mask": np.ones_like(ids)})[0][0]
        if at % 20000 == 0:
            print(f"teacher: {at} of {len(rows)}", flush=True)
    return out


def taught(trunk: Path, rows: list[list[int]], pieces: int, cache: Path | None) -> tuple[np.ndarray, np.ndarray]:
    """The teacher's vectors of `rows`, and of every word piece alone."""
    key = hashlib.sha256(repr(rows).encode()).hexdigest()
    if cache and cache.exists():
        cached = np.load(cache)
        if str(cached["key"]) == key:
            return cached["targets"], cached["prior"]
    targets = embed(trunk, rows)
    prior = embed(trunk, [[CLS, piece, SEP] for piece in range(pieces)])
    if cache:
        np.savez(cache, key=np.array(key), targets=targets, prior=prior)
    return targets, prior


def mean_of_pieces(rows: list[list[int]], pieces: int) -> sparse.csr_matrix:
    """One row per text: the share of each word piece in it."""
    sizes = np.array([len(row) for row in rows])
    columns = np.concatenate([np.array(row) for row in rows])
    shares = np.repeat(1 / sizes, sizes).astype(np.float32)
    return sparse.csr_matrix((shares, (np.repeat(np.arange(len(rows)), sizes), columns)), (len(rows), pieces))


def solve(
    texts: sparse.csr_matrix, targets: np.ndarray, prior: np.ndarray, start: np.ndarray, steps: int
) -> np.ndarray:
    """Rows W with least |texts W - targets|^2 + RIDGE |W - prior|^2, by conjugate gradients from `start`."""
    back = texts.T.tocsr()
    weigh = 1 / (np.asarray(texts.multiply(texts).sum(axis=0)).ravel() + RIDGE).astype(np.float32)[:, None]
    table = start.copy()
    rest = back @ (targets - texts @ table) - RIDGE * (table - prior)
    near = weigh * rest
    way, size = near.copy(), (rest * near).sum(axis=0)
    for _ in range(steps):
        along = back @ (texts @ way) + RIDGE * way
        reach = size / np.maximum((way * along).sum(axis=0), 1e-30)
        table += reach * way
        rest -= reach * along
        near = weigh * rest
        grown = (rest * near).sum(axis=0)
        way = near + grown / np.maximum(size, 1e-30) * way
        size = grown
    return table


def fit(texts: sparse.csr_matrix, targets: np.ndarray, prior: np.ndarray) -> np.ndarray:
    """Ridge, then once more with every text weighed by the length that its sum came out with."""
    table = solve(texts, targets, prior, prior, 16)
    lengths = np.asarray(((texts @ table) * targets).sum(axis=1))
    lengths = np.clip(lengths / lengths.mean(), 0.3, 3).astype(np.float32)
    return solve((sparse.diags(1 / lengths) @ texts).tocsr(), targets, prior, table, 12)


def rounded(table: np.ndarray) -> np.ndarray:
    """The table as int8 rows with a scale each."""
    packed = np.zeros(len(table), ENTRY)
    packed["scale"] = np.abs(table).max(axis=1) / 127
    packed["row"] = np.round(table / np.maximum(packed["scale"], 1e-12)[:, None])
    return packed


def cosine(texts: sparse.csr_matrix, table: np.ndarray, targets: np.ndarray) -> float:
    vectors = np.asarray(texts @ table)
    return float(((vectors * targets).sum(axis=1) / np.linalg.norm(vectors, axis=1)).mean())


def write(folder: Path, packed: np.ndarray) -> None:
    np.save(folder / TABLE, packed)
    path = folder / "manifest.json"
    manifest = json.loads(path.read_text(encoding="utf-8"))
    manifest["queries"] = TABLE
    manifest["files"][TABLE] = hashlib.sha256((folder / TABLE).read_bytes()).hexdigest()
    path.write_text(json.dumps(manifest, indent=2) + "\n", encoding="utf-8")
    print(manifest["files"][TABLE], TABLE)


def main() -> None:
    options = argparse.ArgumentParser(description="Fit the query table to the trunk.")
    options.add_argument("--weights", type=Path, default=HERE.parent / "weights")
    options.add_argument("--extra", type=Path)
    options.add_argument("--cache", type=Path)
    chosen = options.parse_args()
    tokenizer = Tokenizer.from_file(str(chosen.weights / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.enable_truncation(MAX_TOKENS)
    texts = training_texts(tokenizer, chosen.extra)
    rows = [encoding.ids for encoding in tokenizer.encode_batch(texts)]
    pieces = tokenizer.get_vocab_size()
    start = time.perf_counter()
    targets, prior = taught(chosen.weights / "minilm-l6-int8.onnx", rows, pieces, chosen.cache)
    print(f"{len(rows)} texts, teacher {time.perf_counter() - start:.0f} s")
    shares = mean_of_pieces(rows, pieces)
    first = np.random.default_rng(0).random(len(rows)) < 0.97
    trial = fit(shares[first], targets[first], prior)
    print(f"fitted on 97 % of the texts: cosine {cosine(shares[~first], trial, targets[~first]):.4f} on the others")
    packed = rounded(fit(shares, targets, prior))
    table = packed["row"].astype(np.float32) * packed["scale"][:, None]
    print(f"fitted on all, in int8: cosine {cosine(shares, table, targets):.4f} on all")
    write(chosen.weights, packed)
    print(f"{time.perf_counter() - start:.0f} s")


if __name__ == "__main__":
    main()
