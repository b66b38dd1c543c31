"""What other authors of a shared project say: their lines become operations of the journal (H2)."""

from __future__ import annotations

from ....protocol.share import (
    AuthorState,
    DisputeRecords,
    GetShareLog,
    JudgeAuthor,
    Outbox,
    PartitionTaken,
    ShareLog,
    TakePartition,
)
from ...projections.sharing import ShareEntry
from ..core import Core
from ..write_thread import Writer


class Arrivals:
    """Checks partitions, and commits what they say."""

    def __init__(self, core: Core, writer: Writer) -> None:
        self._core, self._writer = core, writer

    def take(self, request: TakePartition) -> PartitionTaken:
        raise NotImplementedError

    def judge(self, request: JudgeAuthor) -> ShareEntry:
        raise NotImplementedError

    def dispute(self, request: DisputeRecords) -> Outbox:
        raise NotImplementedError

    def log(self, request: GetShareLog) -> ShareLog:
        raise NotImplementedError

    def authors(self, entry: ShareEntry) -> tuple[AuthorState, ...]:
        """Return the partitions of the others, and the own one."""
        raise NotImplementedError
