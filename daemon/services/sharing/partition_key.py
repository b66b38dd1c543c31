"""Keys of own partitions: Ed25519, one a shared project and device, which sign heads (H1).

Invariants: a private key is readable only by its owner and never leaves the home; `cryptography` is imported only where
a head is signed.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from ....protocol.errors import StoreError
from ....protocol.shared_lines import ShareHead, decode_head, encode_head, partition_of, signed_bytes
from ...storage.durable_files import sync

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

SEED_BYTES = 32


class PartitionKey:
    """The private key of one own partition."""

    def __init__(self, private: Ed25519PrivateKey) -> None:
        self._private = private
        self.public = private.public_key().public_bytes_raw()
        self.partition = partition_of(self.public)

    @classmethod
    def of(cls, seed: bytes) -> PartitionKey:
        """Return the key of 32 random bytes."""
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

        return cls(Ed25519PrivateKey.from_private_bytes(seed))

    def signed(self, head: ShareHead) -> bytes:
        """Return the bytes of a head, signed."""
        raw = encode_head(msgspec.structs.replace(head, key=self.public.hex(), partition=self.partition, signature=""))
        signature = self._private.sign(signed_bytes(raw)).hex()
        return encode_head(msgspec.structs.replace(decode_head(raw), signature=signature))


def key_file(folder: Path, partition: str) -> Path:
    """Return the file of a partition's private key."""
    return folder / f"{partition}.key"


def make_key(folder: Path, seed: bytes) -> PartitionKey:
    """Store a new key, durably, before its partition is named anywhere. Raises StoreError."""
    key = PartitionKey.of(seed)
    file = key_file(folder, key.partition)
    fresh = file.with_suffix(".new")
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with suppress(FileNotFoundError):
            fresh.unlink()
        descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(seed)
            stream.flush()
            os.fsync(stream.fileno())
        fresh.replace(file)
        sync(folder)
    except OSError as error:
        raise StoreError(
            f"{file} can't be written: {error.strerror}", hint="free some space, then try again"
        ) from error
    return key


def load_key(folder: Path, partition: str) -> PartitionKey | None:
    """Return the key of an own partition; None if it is lost or damaged."""
    try:
        seed = key_file(folder, partition).read_bytes()
    except OSError:
        return None
    if len(seed) != SEED_BYTES:
        return None
    key = PartitionKey.of(seed)
    return key if key.partition == partition else None
