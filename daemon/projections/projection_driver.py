"""What keeps the projections in step with the journal, whatever goes wrong while one of them applies an operation.

Comes in: entries that are durable in the journal. Goes out: projections that have applied them, or the reason why not.
Invariants: an operation that is in the journal is never taken back, so a projection that failed on it is broken, not
the commit; reads go on against what it had; it is replayed before anything else is committed; nothing that reads the
tables is applied before the tables are.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence

from ...protocol.errors import MemdError, StoreError
from ...protocol.reply import Logged
from ..failpoint import reach
from ..storage.journal import JournalLog
from .projection import Projection
from .replay import GROUP

log = logging.getLogger("memd.store")


class ProjectionDriver:
    """The projections of one journal, in the order in which an operation reaches them; the first one is the tables."""

    def __init__(self, journal: JournalLog, projections: Callable[[], Iterable[Projection]]) -> None:
        self._journal, self._projections = journal, projections
        self.broken: dict[str, str] = {}
        """By projection: why it is behind the journal."""

    def catch_up(self, projection: Projection, progress: Callable[[int], None] | None = None) -> None:
        """Replay what a projection has not seen yet."""
        while group := self._journal.slice(projection.applied_seq, GROUP):
            projection.apply(group)
            if progress:
                progress(projection.applied_seq)

    def follow(self, entries: Sequence[Logged] = ()) -> None:
        """Bring every projection to the journal's end; `entries` are the last ones, if they are at hand.

        Raises StorageFull, or StoreError when the tables fail: they are the state that is decided on. Any other
        projection that fails is tried again the next time.
        """
        for number, projection in enumerate(self._projections()):
            if projection.applied_seq >= self._journal.last:
                continue
            reach("projection:before-apply")
            try:
                if entries and projection.applied_seq + 1 == entries[0].seq:
                    projection.apply(entries)
                else:
                    self.catch_up(projection)
            except Exception as error:
                self.broke(projection.name, error)
                if number:
                    continue
                if isinstance(error, MemdError):
                    raise
                raise StoreError(
                    f"{projection.name} failed to apply operation {projection.applied_seq + 1}: {error!r}",
                    hint="no data is lost: run `memd rebuild`; the daemon's log has details",
                ) from error
            self.broken.pop(projection.name, None)
            reach("projection:applied")

    def broke(self, name: str, error: Exception) -> None:
        """A projection failed; it is behind until `follow` brings it back."""
        told = getattr(error, "message", None) or repr(error)
        if self.broken.get(name) != told:
            log.error(
                "%s failed; memd will replay it from the journal: %s",
                name,
                told,
                exc_info=not isinstance(error, MemdError),
            )
        self.broken[name] = told
