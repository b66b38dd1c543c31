"""Drives one peer inside that peer's own environment, with the standard library and the peer alone.

Prints one JSON object a line. Nothing of memd is imported, and a peer only by the name it is installed under. A peer
that takes vectors gets memd's. Only the peer's own function is timed.
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

TOP = 10


class KnownVectors:
    """The vectors of the texts and questions; also an embedder for the peers that want one."""

    class config:
        """The settings that mem0 reads from an embedder."""

        embedding_dims = 384

    def __init__(self, path: str, texts: Sequence[str], dimension: int) -> None:
        with open(path, "rb") as file:
            self._raw = file.read()
        self._row = {text: at for at, text in enumerate(texts)}
        self._size = dimension * 4

    def raw(self, text: str) -> bytes:
        """The float32 numbers of a text as bytes; of an unknown text, such as a probe, those of the first one."""
        at = self._row.get(text, 0) * self._size
        return self._raw[at : at + self._size]

    def embed(self, text: str, action: object = None) -> list[float]:
        """One text's vector."""
        return array("f", self.raw(text)).tolist()

    def embed_batch(self, texts: list[str], action: object = None) -> list[list[float]]:
        """The vectors of several texts."""
        return [self.embed(text) for text in texts]

    def encode(self, texts: Any, **_: object) -> Any:
        """One text's vector, or those of several."""
        return self.embed(texts) if isinstance(texts, str) else self.embed_batch(texts)


class Chroma:
    """chromadb, a persistent collection with cosine."""

    def __init__(self, folder: str, vectors: KnownVectors) -> None:
        chromadb: Any = import_module("chromadb")
        settings = chromadb.Settings(anonymized_telemetry=False)
        client = chromadb.PersistentClient(folder, settings=settings)
        space = {"hnsw:space": "cosine"}
        self._collection = client.get_or_create_collection("memory", metadata=space, embedding_function=None)
        self._vectors = vectors

    def add(self, name: str, text: str) -> None:
        """Store a text."""
        self._collection.add(ids=[name], documents=[text], embeddings=[self._vectors.embed(text)])

    def search(self, query: str) -> list[str]:
        """The best texts."""
        return self._collection.query(query_embeddings=[self._vectors.embed(query)], n_results=TOP)["documents"][0]


class Mem0:
    """mem0 without its language model (`infer=False`), over its default store on this disk."""

    def __init__(self, folder: str, vectors: KnownVectors) -> None:
        os.environ["MEM0_DIR"], os.environ["MEM0_TELEMETRY"] = folder, "False"
        factory: Any = import_module("mem0.utils.factory")
        factory.EmbedderFactory.create = staticmethod(lambda *_, **__: vectors)  # pyright: ignore[reportUnknownLambdaType]
        store = {"collection_name": "memory", "path": f"{folder}/qdrant", "embedding_model_dims": 384, "on_disk": True}
        self._memory = import_module("mem0").Memory.from_config(
            {
                "vector_store": {"provider": "qdrant", "config": store},
                "llm": {"provider": "openai", "config": {"api_key": "none"}},
                "history_db_path": f"{folder}/history.db",
            }
        )

    def add(self, name: str, text: str) -> None:
        """Store a text."""
        self._memory.add(text, user_id="bench", infer=False)

    def search(self, query: str) -> list[str]:
        """The best texts."""
        answer = self._memory.search(query, top_k=TOP, filters={"user_id": "bench"}, threshold=0.0)
        return [result["memory"] for result in answer["results"]]


class SqliteVec:
    """sqlite-vec in a file with a write-ahead log, flushed at each commit as memd does."""

    def __init__(self, folder: str, vectors: KnownVectors) -> None:
        apsw: Any = import_module("apsw")
        self._connection = apsw.Connection(f"{folder}/memory.db")
        self._connection.enableloadextension(True)
        self._connection.loadextension(import_module("sqlite_vec").loadable_path())
        self._connection.setbusytimeout(10_000)
        self._connection.execute("pragma journal_mode=wal")
        self._connection.execute("pragma synchronous=full")
        columns = "vector float[384] distance_metric=cosine, +text text"
        self._connection.execute(f"create virtual table if not exists held using vec0({columns})")
        self._vectors = vectors

    def add(self, name: str, text: str) -> None:
        """Store a text."""
        self._connection.execute("insert into held(vector, text) values(?, ?)", (self._vectors.raw(text), text))

    def search(self, query: str) -> list[str]:
        """The best texts."""
        statement = "select text from held where vector match ? and k = ? order by distance"
        return [row[0] for row in self._connection.execute(statement, (self._vectors.raw(query), TOP))]


class Fts5:
    """SQLite's own full text index with Porter stems, flushed at each commit."""

    def __init__(self, folder: str, vectors: KnownVectors) -> None:
        self._connection = import_module("sqlite3").connect(f"{folder}/memory.db", isolation_level=None, timeout=10)
        self._connection.execute("pragma journal_mode=wal")
        self._connection.execute("pragma synchronous=full")
        columns = "text, tokenize='porter unicode61'"
        self._connection.execute(f"create virtual table if not exists held using fts5({columns})")

    def add(self, name: str, text: str) -> None:
        """Store a text."""
        self._connection.execute("insert into held(text) values(?)", (text,))

    def search(self, query: str) -> list[str]:
        """The best texts by BM25 with any word of the query."""
        words = "".join(char if char.isalnum() else " " for char in query).split()
        statement = "select text from held where held match ? order by bm25(held) limit ?"
        match = " OR ".join(f'"{word}"' for word in words)
        return [row[0] for row in self._connection.execute(statement, (match, TOP))]


class Yantrik:
    """yantrikdb with the known vectors."""

    def __init__(self, folder: str, vectors: KnownVectors) -> None:
        self._database = import_module("yantrikdb").YantrikDB(f"{folder}/memory.db", embedding_dim=384)
        self._database.set_embedder(vectors, allow_unverified_embedder=True)

    def add(self, name: str, text: str) -> None:
        """Store a text."""
        self._database.record(text)

    def search(self, query: str) -> list[str]:
        """The best texts."""
        return [result["text"] for result in self._database.recall(query=query, top_k=TOP)]


PEERS: dict[str, Callable[[str, KnownVectors], Any]] = {
    "chroma": Chroma,
    "mem0": Mem0,
    "sqlite-vec": SqliteVec,
    "fts5": Fts5,
    "yantrikdb": Yantrik,
}


def main(name: str, phase: str, folder: str, work_file: str) -> None:
    """Run a phase: `measure` writes and asks everything, `write` writes until it is killed, `held` lists the texts."""
    with open(work_file, encoding="utf-8") as file:
        work: dict[str, Any] = json.load(file)
    texts: list[str] = work["texts"]
    vectors = KnownVectors(work["vectors"], [*texts, *work["questions"]], work["dimension"])
    begin = time.perf_counter()
    with contextlib.redirect_stdout(sys.stderr):
        peer = PEERS[name](folder, vectors)
    _print({"opened_s": time.perf_counter() - begin})
    if phase == "write":
        sys.stdin.readline()  # all writers begin at once
    with contextlib.redirect_stdout(sys.stderr):
        if phase == "measure":
            outcome = _measured(peer, texts, work["questions"])
        elif phase == "write":
            outcome = _written(peer, texts)
        else:
            outcome = {"held": [at for at, text in enumerate(texts) if text in peer.search(text)]}
    _print(outcome)
    os._exit(0)  # threads that a peer leaves running would keep this process alive


def _measured(peer: Any, texts: Sequence[str], questions: Sequence[str]) -> dict[str, Any]:
    writes: list[float] = []
    reads: list[float] = []
    for at, text in enumerate(texts):
        begin = time.perf_counter()
        peer.add(str(at), text)
        writes.append((time.perf_counter() - begin) * 1000)
    found: list[list[str]] = []
    for question in questions:
        begin = time.perf_counter()
        found.append(peer.search(question))
        reads.append((time.perf_counter() - begin) * 1000)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    return {"writes_ms": writes, "reads_ms": reads, "found": found, "memory_bytes": memory}


def _written(peer: Any, texts: Sequence[str]) -> dict[str, Any]:
    """Write texts, and report each as soon as it is acknowledged."""
    failed = 0
    for at, text in enumerate(texts):
        try:
            peer.add(f"{os.getpid()}-{at}", text)
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
