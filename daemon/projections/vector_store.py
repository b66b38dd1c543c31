"""Vectors on the disk by content: computed once, whichever record has the text (R2, P-14).

Invariants: a vector is stored under the model's id and a keyed hash of its text, so models never mix and the file
reveals no text; a damaged vector counts as missing, and is computed again.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Sequence
from copy import copy
from hashlib import blake2b
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ..storage.checksummed_rows import CHECK
from ..storage.lmdb_environment import Environment, Table, Transaction
from ..world import World
from .records import digest

Vector = NDArray[np.float32]
StoredVectors = Callable[[Sequence[bytes]], tuple[Sequence[int], Vector]]
"""`VectorStore.get`."""

SCALE = 4
"""Bytes of the float32 scale of a stored vector."""


class VectorStore:
    """Vectors on disk with 8 bits per number and one scale each, addressed by (model id, keyed hash of the text). The
    cosine of two moves by 0.0004 (standard deviation, measured); the size is half of 16-bit floats."""

    def __init__(
        self,
        folder: Path,
        model: str,
        dimension: int,
        world: World,
        *,
        readonly: bool = False,
        on_full: Callable[[], None] = lambda: None,
    ) -> None:
        """`readonly` and `on_full`: as for `Environment`."""
        self.model, self.dimension = model, dimension
        self._kept = {model}
        self.environment = Environment(folder, ("meta", "vectors"), durable=True, readonly=readonly, on_full=on_full)
        meta = self.environment.db("meta")

        def secret(transaction: Transaction) -> bytes:
            key = transaction.get(b"key", db=meta)
            if key is None:
                key = world.token(32)
                transaction.put(b"key", key, db=meta)
            return key

        if readonly:
            with self.environment.read() as transaction:
                self._key = bytes(transaction.get(b"key", db=meta) or b"")
        else:
            self._key = self.environment.write(secret)

    def of(self, model: str, dimension: int) -> VectorStore:
        """Return the vectors of another model in the same environment; `keep` then spares both."""
        other = copy(self)
        other.model, other.dimension = model, dimension
        self._kept.add(model)
        return other

    @property
    def _vectors(self) -> Table:
        return self.environment.db("vectors")

    def _address(self, mark: bytes, model: str = "") -> bytes:
        return blake2b(mark + (model or self.model).encode(), digest_size=16, key=self._key).digest()

    def put(self, vectors: Iterable[tuple[str, bytes]]) -> None:
        """Store `(text, float32 numbers as bytes)` pairs."""
        rows = [(self._address(digest(text)), _packed(np.frombuffer(raw, np.float32))) for text, raw in vectors]

        def work(transaction: Transaction) -> None:
            for address, row in rows:
                transaction.put(address, _sealed(row), db=self._vectors)

        if rows:
            self.environment.write(work)

    def get(self, marks: Sequence[bytes]) -> tuple[Sequence[int], Vector]:
        """Return the places of those texts, named by digest, that have a vector, and the vectors as rows. A damaged
        vector, or one in the old format of 16-bit floats, counts as missing."""
        key, model = self._key, self.model.encode()
        addresses = [blake2b(mark + model, digest_size=16, key=key).digest() for mark in marks]  # `_address`, inline
        with self.environment.read() as transaction:
            vectors = _sound(transaction.cursor(self._vectors).getmulti(addresses), CHECK + SCALE + self.dimension)
        places: Sequence[int] = range(len(addresses))
        if len(vectors) < len(addresses):
            having = {address for address, _ in vectors}
            places = [number for number, address in enumerate(addresses) if address in having]
        rows = np.frombuffer(b"".join([sealed for _, sealed in vectors]), np.int8)
        rows = rows.reshape(-1, CHECK + SCALE + self.dimension)[:, CHECK:]
        scales = rows[:, :SCALE].copy().view(np.float32)
        return places, rows[:, SCALE:] * scales

    def keep(self, texts: Iterable[str]) -> None:
        """Delete every vector except those of these texts by models in use since the start (T10)."""
        wanted = {self._address(mark, model) for mark in map(digest, texts) for model in self._kept}

        def work(transaction: Transaction) -> None:
            held = [address for address, _ in transaction.cursor(self._vectors).iternext()]
            for address in held:
                if address not in wanted:
                    transaction.delete(address, db=self._vectors)

        self.environment.write(work)

    def size_bytes(self) -> int:
        """Bytes on disk."""
        return self.environment.size_bytes()

    def close(self) -> None:
        """Bring everything to the disk and close."""
        self.environment.sync()
        self.environment.close()


def _packed(vector: Vector) -> bytes:
    """Return the scale, which preserves the length, and the numbers, the largest of which is 127."""
    numbers = np.rint(vector * (127 / max(float(np.abs(vector).max()), 1e-30)))
    scale = np.float32(np.linalg.norm(vector) / max(float(np.linalg.norm(numbers)), 1.0))
    return scale.tobytes() + numbers.astype(np.int8).tobytes()


def _sealed(row: bytes) -> bytes:
    """Prepend a checksum of the row alone: a vector whose key changed is missing, and computed again."""
    return zlib.crc32(row).to_bytes(CHECK) + row


def _sound(found: list[tuple[bytes, bytes]], size: int) -> list[tuple[bytes, bytes]]:
    """Return the rows with the right size and checksum, many at once: a start reads a hundred thousand."""
    crc32 = zlib.crc32
    return [row for row in found if len(row[1]) == size and crc32(row[1][CHECK:]).to_bytes(CHECK) == row[1][:CHECK]]
