"""The port through which partitions of a shared project travel: by git, or through a hub (H1, H3).

An exchange knows three states of a partition: `v1`, the own one as it was written; `new`, as the remote has it;
`taken`, as the daemon took it, or of the own one as the remote read it back.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Literal, Protocol

import msgspec

from .share import SegmentData
from .shared_lines import ShareHead, decode_head

Where = Literal["v1", "new", "taken"]


class StaleRemote(Exception):
    """The remote's partition is not the one that this home saw last; nothing was pushed."""


class LostLines(Exception):
    """The remote lacks lines that it had, as after a restore from an older backup; the exchange then has none of the
    partition's segments, so that the next push sends all of them."""


class SharedTree(msgspec.Struct, frozen=True, kw_only=True):
    """A state of a partition. `commit`: a name for it that the remote tells too; `blobs`: names of its segments, which
    differ where their bytes do within an epoch."""

    commit: str
    head: bytes
    blobs: tuple[str, ...]

    @property
    def decoded(self) -> ShareHead:
        """The head. Raises MalformedShare."""
        return decode_head(self.head)


class Exchange(Protocol):
    """Carries one project's partitions. Each call can be done again after a kill."""

    is_interactive: bool

    def exclusive(self) -> AbstractContextManager[None]:
        """Use the exchange for this process alone. Raises Unavailable, StoreError, StorageFull."""
        ...

    def partitions(self, where: Where) -> list[str]:
        """Return the names of the partitions that have such a state."""
        ...

    def tree(self, where: Where, partition: str) -> SharedTree | None:
        """Return a state of a partition. Raises MalformedShare."""
        ...

    def hashes(self, partition: str, tree: SharedTree) -> tuple[bytes, ...]:
        """Return the hashes of a partition's segments. Raises MalformedShare."""
        ...

    def changed(self, partition: str, tree: SharedTree) -> list[int]:
        """Return the numbers of the segments that may differ from those that the daemon took."""
        ...

    def segment(self, tree: SharedTree, number: int) -> SegmentData:
        """Return a segment. Raises RemoteUnreachable, RemoteRefusal."""
        ...

    def fetch(self) -> dict[str, str]:
        """Make `new` what the remote has; return the partitions that can't be read, each with why. Raises
        RemoteUnreachable, RemoteRefusal, StorageFull, Denied."""
        ...

    def fetch_one(self, partition: str) -> tuple[str, SharedTree | None]:
        """Make one partition's `new` what the remote has; return its name for the state, "" for none, and the state,
        None if it can't be read."""
        ...

    def take(self, partition: str) -> None:
        """Note that the daemon has `new`."""
        ...

    def write(self, head: bytes, segments: Mapping[int, bytes]) -> str:
        """Write the own partition with the segments that changed; return the name of the state."""
        ...

    def push(self, partition: str, *, over: str | None = None, many: bool = False) -> dict[str, str]:
        """Push the own partition over the state that the remote had last (`over`, "" for none), and return partitions
        as the remote tells them afterwards. Raises StaleRemote, RemoteUnreachable, RemoteRefusal, Denied."""
        ...

    def remote_refs(self) -> dict[str, str]:
        """Return the remote's partitions with the names of their states. Raises RemoteUnreachable, RemoteRefusal."""
        ...

    def restore(self, remote: Mapping[str, str]) -> tuple[str, ...]:
        """Put back partitions that the remote lost, as the daemon took them; return their names."""
        ...

    def collect(self, *, forgotten: bool = False) -> None:
        """Free what is no longer needed; at once if lines were `forgotten`."""
        ...

    def remove(self) -> None:
        """Remove all that this home stores of the exchange."""
        ...
