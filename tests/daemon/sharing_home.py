"""A home with a shared project, whose stores take partitions directly, without a socket."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from memd.daemon.config import Config
from memd.daemon.projections.aliases import of_repository
from memd.daemon.services.core import core_of
from memd.daemon.services.forgetting.forgetting_service import ForgettingService
from memd.daemon.services.maintenance.maintenance_service import MaintenanceService
from memd.daemon.services.shared_belief import shared_id
from memd.daemon.services.sharing.acceptance import segments_of
from memd.daemon.services.sharing.arrivals import Arrivals
from memd.protocol.operation import AliasAdded, PoolOpened, ShareOpened
from memd.protocol.places import Places, places
from memd.protocol.record import Record
from memd.protocol.share import JudgeAuthor, PartitionTaken, SegmentData, Standing, TakePartition
from tests.daemon.living import Running
from tests.daemon.shared_authors import MARK, Author

POOL = "project/orchard"
OWN = "a" * 24


class SharingHome(Running):
    """Stores with a write thread and the service that takes what arrives."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        super().__init__(folder / "data")
        self.places: Places = places({"MEMD_HOME": str(folder), "HOME": str(folder)}, 1000)
        self.core = core_of(self.stores, self.places, Config, self.world)
        maintenance = MaintenanceService(self.core, self.writer, save=lambda: None)
        self.forgetting = ForgettingService(
            self.core,
            self.writer,
            rebuild=maintenance.rebuild.run,
            forget_injected=lambda texts: None,
            forget_given=lambda holds: None,
            forget_paused=lambda holds: None,
        )
        self.said: list[tuple[str, str, str, str]] = []
        self.arrivals = Arrivals(
            self.core, self.writer, self.forgetting.forget_lines, lambda *words: self.said.append(words)
        )

    def open(self, pool: str = POOL, partition: str = OWN) -> None:
        """Open a shared project."""
        self.stores.commit(
            [
                PoolOpened(pool=pool, title=pool.partition("/")[2]),
                AliasAdded(pool=pool, names=(of_repository(MARK.root, MARK.remote),)),
                ShareOpened(pool=pool, partition=partition, root=MARK.root, remote=MARK.remote, name="me"),
            ]
        )

    def send(
        self,
        author: Author,
        segments: Sequence[SegmentData] | None = None,
        *,
        pool: str = POOL,
        head: bytes | None = None,
        hashes: Sequence[bytes] | None = None,
        dry_run: bool = False,
    ) -> PartitionTaken:
        """Send one request."""
        return self.arrivals.take(
            TakePartition(
                pool=pool,
                head=author.head() if head is None else head,
                hashes=tuple(author.hashes() if hashes is None else hashes),
                segments=tuple(author.segments()[:8] if segments is None else segments),
                dry_run=dry_run,
            )
        )

    def pull(self, *authors: Author, pool: str = POOL) -> list[PartitionTaken]:
        """Take everything of some authors, as a client does: it asks again while lines are left."""
        replies: list[PartitionTaken] = []
        for author in authors:
            segments = author.segments()
            reply = self.send(author, segments[:1], pool=pool)
            replies.append(reply)
            for _ in range(4 * segments_of(len(author.lines)) + 4):
                if not reply.left:
                    break
                reply = self.send(author, [segments[number] for number in reply.wanted], pool=pool)
                replies.append(reply)
            assert reply.problem or not reply.left, reply
        return replies

    def judge(self, author: str, standing: Standing, pool: str = POOL) -> None:
        """Say what the user thinks of an author."""
        self.arrivals.judge(JudgeAuthor(pool=pool, author=author, standing=standing))

    def shared(self, author: Author, number: int, pool: str = POOL) -> Record | None:
        """The record of a line."""
        return self.stores.records.get(shared_id(pool, author.partition, number))

    def state(self, author: Author, number: int) -> str:
        """The status of a line's record, "" for none."""
        record = self.shared(author, number)
        return record.status if record else ""

    def beliefs(self, *authors: Author) -> dict[str, Any]:
        """The states of all shared records, by the name of their line."""
        states: dict[str, Any] = {}
        for author in authors:
            for number in range(len(author.lines)):
                if record := self.shared(author, number):
                    states[f"{author.name}/{number}"] = (
                        record.status,
                        record.valid_to,
                        record.content,
                        record.key,
                        record.needs_review,
                    )
        return states

    def settled(self) -> None:
        """Wait until no job runs."""
        while self.core.jobs.current is not None:
            assert self.core.jobs._thread is not None
            self.core.jobs._thread.join(30)
