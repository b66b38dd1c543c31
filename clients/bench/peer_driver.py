"""Drives one peer inside that peer's own environment, with the standard library and the peer alone.

Prints one JSON object a line. A peer that takes vectors gets memd's; the peer's own function is timed, and each vector
that it takes adds the time of its encoding.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import sys
import time
from array import array
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any


class KnownVectors:
    """The vectors of the texts and questions; also an embedder for the peers that want one. `spent_ms`: the time that
    the vectors took that were asked for."""

    class config:
        """The settings that mem0 reads from an embedder."""

        embedding_dims = 384

    def __init__(self, path: str, texts: Sequence[str], dimension: int, encode_ms: Sequence[float]) -> None:
        with open(path, "rb") as file:
            self._raw = file.read()
        self._row = {text: at for at, text in enumerate(texts)}
        self._size, self._encode_ms, self.spent_ms = dimension * 4, encode_ms, 0.0

    def raw(self, text: str) -> bytes:
        """The float32 numbers of a text as bytes; of an unknown text, such as a probe, those of the first one."""
        row = self._row.get(text, 0)
        self.spent_ms += self._encode_ms[row]
        return self._raw[row * self._size : (row + 1) * self._size]

    def embed(self, text: str, action: object = None) -> list[float]:
        return array("f", self.raw(text)).tolist()

    def embed_batch(self, texts: list[str], action: object = None) -> list[list[float]]:
        return [self.embed(text) for text in texts]

    def encode(self, texts: Any, **_: object) -> Any:
        return self.embed(texts) if isinstance(texts, str) else self.embed_batch(texts)


Peer = tuple[Callable[[str, str], object], Callable[[str, int], list[str]]]
"""A function that stores a text under a name, and one that finds the best texts, at most so many."""


def chroma(folder: str, vectors: KnownVectors) -> Peer:
    """chromadb, a persistent collection with cosine."""
    chromadb: Any = import_module("chromadb")
    client = chromadb.PersistentClient(folder, settings=chromadb.Settings(anonymized_telemetry=False))
    space = {"hnsw:space": "cosine"}
    collection = client.get_or_create_collection("memory", metadata=space, embedding_function=None)

    def add(name: str, text: str) -> None:
        collection.add(ids=[name], documents=[text], embeddings=[vectors.embed(text)])

    def search(query: str, limit: int) -> list[str]:
        return collection.query(query_embeddings=[vectors.embed(query)], n_results=limit)["documents"][0]

    return add, search


def mem0(folder: str, vectors: KnownVectors) -> Peer:
    """mem0 without its language model (`infer=False`), over its default store on this disk."""
    os.environ["MEM0_DIR"], os.environ["MEM0_TELEMETRY"] = folder, "False"
    factory: Any = import_module("mem0.utils.factory")
    factory.EmbedderFactory.create = staticmethod(lambda *_, **__: vectors)  # pyright: ignore[reportUnknownLambdaType]
    store = {"collection_name": "memory", "path": f"{folder}/qdrant", "embedding_model_dims": 384, "on_disk": True}
    config = {
        "vector_store": {"provider": "qdrant", "config": store},
        "llm": {"provider": "openai", "config": {"api_key": "none"}},
        "history_db_path": f"{folder}/history.db",
    }
    memory: Any = import_module("mem0").Memory.from_config(config)

    def search(query: str, limit: int) -> list[str]:
        answer = memory.search(query, top_k=limit, filters={"user_id": "bench"}, threshold=0.0)
        return [result["memory"] for result in answer["results"]]

    return lambda name, text: memory.add(text, user_id="bench", infer=False), search


def _sqlite(connection: Any, columns: str) -> None:
    """Make a table that is flushed at each commit, as memd's storage is."""
    connection.execute("pragma journal_mode=wal")
    connection.execute("pragma synchronous=full")
    connection.execute(f"create virtual table if not exists held using {columns}")


def sqlite_vec(folder: str, vectors: KnownVectors) -> Peer:
    """sqlite-vec in a file with a write-ahead log."""
    connection: Any = import_module("apsw").Connection(f"{folder}/memory.db")
    connection.enableloadextension(True)
    connection.loadextension(import_module("sqlite_vec").loadable_path())
    connection.setbusytimeout(10_000)
    _sqlite(connection, "vec0(vector float[384] distance_metric=cosine, +text text)")

    def add(name: str, text: str) -> None:
        connection.execute("insert into held(vector, text) values(?, ?)", (vectors.raw(text), text))

    def search(query: str, limit: int) -> list[str]:
        statement = "select text from held where vector match ? and k = ? order by distance"
        return [row[0] for row in connection.execute(statement, (vectors.raw(query), limit))]

    return add, search


def fts5(folder: str, vectors: KnownVectors) -> Peer:
    """SQLite's own full text index with Porter stems; finds the best texts by BM25 with any word of the query."""
    connection = import_module("sqlite3").connect(f"{folder}/memory.db", isolation_level=None, timeout=10)
    _sqlite(connection, "fts5(text, tokenize='porter unicode61')")

    def search(query: str, limit: int) -> list[str]:
        words = "".join(char if char.isalnum() else " " for char in query).split()
        match = " OR ".join(f'"{word}"' for word in words)
        statement = "select text from held where held match ? order by bm25(held) limit ?"
        return [row[0] for row in connection.execute(statement, (match, limit))]

    return lambda name, text: connection.execute("insert into held(text) values(?)", (text,)), search


def yantrikdb(folder: str, vectors: KnownVectors) -> Peer:
    database: Any = import_module("yantrikdb").YantrikDB(f"{folder}/memory.db", embedding_dim=384)
    database.set_embedder(vectors, allow_unverified_embedder=True)

    def search(query: str, limit: int) -> list[str]:
        return [result["text"] for result in database.recall(query=query, top_k=limit)]

    return lambda name, text: database.record(text), search


PEERS: dict[str, Callable[[str, KnownVectors], Peer]] = {
    "chroma": chroma,
    "mem0": mem0,
    "sqlite-vec": sqlite_vec,
    "fts5": fts5,
    "yantrikdb": yantrikdb,
}


def main(name: str, phase: str, folder: str, work_file: str) -> None:
    """Run a phase: `measure` writes and asks everything, `write` writes until it is killed, `held` lists the texts."""
    with open(work_file, encoding="utf-8") as file:
        work: dict[str, Any] = json.load(file)
    texts: list[str] = work["texts"]
    vectors = KnownVectors(work["vectors"], [*texts, *work["questions"]], work["dimension"], work["encode_ms"])
    begin = time.perf_counter()
    with contextlib.redirect_stdout(sys.stderr):
        add, search = PEERS[name](folder, vectors)
    _print({"opened_s": time.perf_counter() - begin})
    if phase == "write":
        sys.stdin.readline()  # all writers begin at once
    with contextlib.redirect_stdout(sys.stderr):
        if phase == "measure":
            outcome = _measured((add, search), work, vectors)
        elif phase == "write":
            outcome = _written(add, texts)
        else:
            outcome = {"held": [at for at, text in enumerate(texts) if text in search(text, work["limits"][0])]}
    _print(outcome)
    os._exit(0)  # threads that a peer leaves running would keep this process alive


def _measured(peer: Peer, work: dict[str, Any], vectors: KnownVectors) -> dict[str, Any]:
    add, search = peer

    def elapsed_ms(call: Callable[..., Any], *arguments: object) -> tuple[float, Any]:
        begin, spent_ms = time.perf_counter(), vectors.spent_ms
        result = call(*arguments)
        return (time.perf_counter() - begin) * 1000 + vectors.spent_ms - spent_ms, result

    writes = [elapsed_ms(add, str(at), text)[0] for at, text in enumerate(work["texts"])]
    reads: list[dict[str, Any]] = []
    for limit in work["limits"]:
        answers = [elapsed_ms(search, question, limit) for question in work["questions"]]
        reads.append({"reads_ms": [read for read, _ in answers], "found": [texts for _, texts in answers]})
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    return {"writes_ms": writes, "answers": reads, "memory_bytes": memory}


def _written(add: Callable[[str, str], object], texts: Sequence[str]) -> dict[str, Any]:
    failed = 0
    for at, text in enumerate(texts):
        try:
            add(f"{os.getpid()}-{at}", text)
        except Exception:
            failed += 1
            continue
        _print({"acknowledged": at})
    return {"failed": failed}


_OUT = os.fdopen(os.dup(1), "w")


def _print(message: dict[str, Any]) -> None:
    _OUT.write(json.dumps(message) + "\n")
    _OUT.flush()


if __name__ == "__main__":
    main(*sys.argv[1:5])
