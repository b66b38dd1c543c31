"""Drives one peer from inside of that peer's own environment: standard library, and the peer itself.

Comes in: a peer's name, a phase, a folder for its store, a file of work. Goes out: one JSON object a line. Invariants:
nothing of memd is imported, and nothing of a peer but by the name it is installed under; a peer gets the vectors that
memd has, where it takes any; each call is timed around the peer's own function alone.
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


class Vectors:
    """The vector of each text that is known to the work."""

    def __init__(self, path: str, texts: Sequence[str], dimension: int) -> None:
        with open(path, "rb") as file:
            self._raw = file.read()
        self._row = {text: at for at, text in enumerate(texts)}
        self._size = dimension * 4

    def raw(self, text: str) -> bytes:
        """Its float32 numbers as bytes; of a text that is not part of the work, such as a probe, the first one's."""
        at = self._row.get(text, 0) * self._size
        return self._raw[at : at + self._size]

    def __call__(self, text: str) -> list[float]:
        return array("f", self.raw(text)).tolist()


class Chroma:
    """chromadb, a persistent collection with cosine."""

    def __init__(self, folder: str, vectors: Vectors) -> None:
        chromadb: Any = import_module("chromadb")
        settings = chromadb.Settings(anonymized_telemetry=False)
        client = chromadb.PersistentClient(folder, settings=settings)
        kept = {"hnsw:space": "cosine"}
        self._held = client.get_or_create_collection("memory", metadata=kept, embedding_function=None)
        self._vectors = vectors

    def add(self, name: str, text: str) -> None:
        """Keeps a text."""
        self._held.add(ids=[name], documents=[text], embeddings=[self._vectors(text)])

    def search(self, query: str) -> list[str]:
        """The best texts."""
        return self._held.query(query_embeddings=[self._vectors(query)], n_results=TOP)["documents"][0]


class Mem0:
    """mem0 without its language model (`infer=False`), over its default store on this disk."""

    def __init__(self, folder: str, vectors: Vectors) -> None:
        os.environ["MEM0_DIR"], os.environ["MEM0_TELEMETRY"] = folder, "False"
        factory: Any = import_module("mem0.utils.factory")

        class Embedder:
            """Gives the known vectors."""

            class config:
                """What mem0 asks an embedder for."""

                embedding_dims = 384

            def embed(self, text: str, action: object = None) -> list[float]:
                """One text's vector."""
                return vectors(text)

            def embed_batch(self, texts: list[str], action: object = None) -> list[list[float]]:
                """Several texts' vectors."""
                return [vectors(text) for text in texts]

        factory.EmbedderFactory.create = staticmethod(lambda *_, **__: Embedder())  # pyright: ignore[reportUnknownLambdaType]
        store = {"collection_name": "memory", "path": f"{folder}/qdrant", "embedding_model_dims": 384, "on_disk": True}
        self._memory = import_module("mem0").Memory.from_config(
            {
                "vector_store": {"provider": "qdrant", "config": store},
                "llm": {"provider": "openai", "config": {"api_key": "none"}},
                "history_db_path": f"{folder}/history.db",
            }
        )

    def add(self, name: str, text: str) -> None:
        """Keeps a text."""
        self._memory.add(text, user_id="bench", infer=False)

    def search(self, query: str) -> list[str]:
        """The best texts."""
        found = self._memory.search(query, top_k=TOP, filters={"user_id": "bench"}, threshold=0.0)
        return [each["memory"] for each in found["results"]]


class SqliteVec:
    """sqlite-vec in a file with a write-ahead log, flushed at each commit as memd does."""

    def __init__(self, folder: str, vectors: Vectors) -> None:
        apsw: Any = import_module("apsw")
        self._connection = apsw.Connection(f"{folder}/memory.db")
        self._connection.enableloadextension(True)
        self._connection.loadextension(import_module("sqlite_vec").loadable_path())
        self._connection.setbusytimeout(10_000)
        self._connection.execute("pragma journal_mode=wal")
        self._connection.execute("pragma synchronous=full")
        table = (
            "create virtual table if not exists held using vec0(vector float[384] distance_metric=cosine, +text text)"
        )
        self._connection.execute(table)
        self._vectors = vectors

    def add(self, name: str, text: str) -> None:
        """Keeps a text."""
        self._connection.execute("insert into held(vector, text) values(?, ?)", (self._vectors.raw(text), text))

    def search(self, query: str) -> list[str]:
        """The best texts."""
        asked = "select text from held where vector match ? and k = ? order by distance"
        return [row[0] for row in self._connection.execute(asked, (self._vectors.raw(query), TOP))]


class Fts5:
    """SQLite's own full text index with Porter stems, flushed at each commit."""

    def __init__(self, folder: str, vectors: Vectors) -> None:
        self._connection = import_module("sqlite3").connect(f"{folder}/memory.db", isolation_level=None, timeout=10)
        self._connection.execute("pragma journal_mode=wal")
        self._connection.execute("pragma synchronous=full")
        self._connection.execute(
            "create virtual table if not exists held using fts5(text, tokenize='porter unicode61')"
        )

    def add(self, name: str, text: str) -> None:
        """Keeps a text."""
        self._connection.execute("insert into held(text) values(?)", (text,))

    def search(self, query: str) -> list[str]:
        """The best texts: any word counts, BM25 orders."""
        words = "".join(char if char.isalnum() else " " for char in query).split()
        asked = "select text from held where held match ? order by bm25(held) limit ?"
        return [row[0] for row in self._connection.execute(asked, (" OR ".join(f'"{word}"' for word in words), TOP))]


class Yantrik:
    """yantrikdb with the known vectors."""

    def __init__(self, folder: str, vectors: Vectors) -> None:
        class Embedder:
            """Gives the known vectors."""

            def encode(self, texts: Any, **_: object) -> Any:
                """One text's vector, or several."""
                return vectors(texts) if isinstance(texts, str) else [vectors(text) for text in texts]

        self._held = import_module("yantrikdb").YantrikDB(f"{folder}/memory.db", embedding_dim=384)
        self._held.set_embedder(Embedder(), allow_unverified_embedder=True)

    def add(self, name: str, text: str) -> None:
        """Keeps a text."""
        self._held.record(text)

    def search(self, query: str) -> list[str]:
        """The best texts."""
        return [each["text"] for each in self._held.recall(query=query, top_k=TOP)]


PEERS: dict[str, Callable[[str, Vectors], Any]] = {
    "chroma": Chroma,
    "mem0": Mem0,
    "sqlite-vec": SqliteVec,
    "fts5": Fts5,
    "yantrikdb": Yantrik,
}


def main(name: str, phase: str, folder: str, work: str) -> None:
    """One phase: `measure` writes all and asks all, `write` writes until it is killed, `held` says what is there."""
    with open(work, encoding="utf-8") as file:
        given: dict[str, Any] = json.load(file)
    texts: list[str] = given["texts"]
    vectors = Vectors(given["vectors"], [*texts, *given["questions"]], given["dimension"])
    begin = time.perf_counter()
    with contextlib.redirect_stdout(sys.stderr):
        peer = PEERS[name](folder, vectors)
    opened = time.perf_counter() - begin
    say: dict[str, Callable[[], dict[str, Any]]] = {
        "measure": lambda: _measured(peer, texts, given["questions"]),
        "write": lambda: _written(peer, texts),
        "held": lambda: {"held": [at for at, text in enumerate(texts) if text in peer.search(text)]},
    }
    _tell({"opened_s": opened})
    if phase == "write":
        sys.stdin.readline()  # all begin at once
    with contextlib.redirect_stdout(sys.stderr):
        told = say[phase]()
    _tell(told)
    os._exit(0)  # what a peer leaves running must not keep this process


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
    """Writes, and tells of each as soon as it is acknowledged; who can't write tells that too."""
    failed = 0
    for at, text in enumerate(texts):
        try:
            peer.add(f"{os.getpid()}-{at}", text)
        except Exception:
            failed += 1
            continue
        _tell({"acknowledged": at})
    return {"failed": failed}


_OUT = os.fdopen(os.dup(1), "w")


def _tell(told: dict[str, Any]) -> None:
    _OUT.write(json.dumps(told) + "\n")
    _OUT.flush()


if __name__ == "__main__":
    main(*sys.argv[1:5])
