"""Keeps the projections in step with the journal.

Invariants: an operation in the journal is never taken back, so a projection that fails on it is broken, not the commit;
reads continue with the state it had; it is replayed before the next commit; projections that read the tables apply an
operation after the tables.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence

from ...protocol.errors import MemdError, StoreError
from ...protocol.reply import Logged
from ..failpoint import reach
from ..storage.ports import EventLog
from .projection import Projection
from .replay import GROUP

log = logging.getLogger("memd.store")


class ProjectionDriver:
    """The projections of one journal, in the order in which they apply an operation; the tables come first."""

    def __init__(self, journal: EventLog, projections: Callable[[], Iterable[Projection]]) -> None:
        self._journal, self._projections = journal, projections
        self.broken: dict[str, str] = {}
        """By name of a projection: why it is behind the journal."""

    def catch_up(self, projection: Projection, progress: Callable[[int], None] | None = None) -> None:
        """Replay the operations that a projection has not applied."""
        while group := self._journal.slice(projection.applied_seq, GROUP):
            projection.apply(group)
            if progress:
                progress(projection.applied_seq)

    def follow(self, entries: Sequence[Logged] = ()) -> None:
        """Bring every projection to the journal's end; `entries` are the last operations, if the caller has them.

        Raises StorageFull, or StoreError if the tables fail, because decisions read them. The next call retries any
        other projection that failed.
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
                self.note_failure(projection.name, error)
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

    def note_failure(self, name: str, error: Exception) -> None:
        """Note that a projection failed and is behind."""
        reason = getattr(error, "message", None) or repr(error)
        if self.broken.get(name) != reason:
            log.error(
                "%s failed; memd will replay it from the journal: %s",
                name,
                reason,
                exc_info=not isinstance(error, MemdError),
            )
        self.broken[name] = reason
