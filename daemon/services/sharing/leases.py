"""Until when what others share through a hub may be read here (A1, A3).

Invariants: a hub's pass is a lease. Once it has ended, memd hides the records that came through the hub, also without a
network; a new lease shows them again; what the user thinks of an author stays as it is. memd hides a withheld author as
it hides a muted one, so that every reader of records respects it.
"""

from __future__ import annotations

import sys

from ....protocol.errors import InvalidRequest
from ....protocol.operation import AnyOperation, ShareLeased
from ....protocol.share import NoteLease
from ...projections.pool_directory import OperationCache
from ...projections.sharing import PartnerEntry, ShareEntry
from ..core import Core
from ..write_thread import Writer
from .standings import judged

NEVER = sys.maxsize


class Leases:
    """Hides what may no longer be read, and shows what may be read again. Any thread may call it."""

    def __init__(self, core: Core, writer: Writer) -> None:
        self._stores, self._directory, self._world, self._writer = core.stores, core.directory, core.world, writer
        self._cache = OperationCache(core.stores)

    def check(self) -> None:
        """Apply a lease that has ended since the last request. Called before each request is answered."""
        if self._world.now() >= self._cache.get("due", self._due):
            self._writer.run(self._apply).result()

    def note(self, request: NoteLease) -> ShareEntry:
        """Note a lease, and show or hide what follows from it. Raises NotFound, InvalidRequest."""
        pool = self._stores.aliases.home(self._directory.named(request.pool))
        entry = self._stores.sharing.share(pool)
        if entry is None or not entry.hub:
            title = self._directory.title(pool) or pool
            raise InvalidRequest(f"{title} is not shared through a hub", hint="`memd hub join URL` does that")
        leased = ShareLeased(
            pool=pool,
            subject=request.subject,
            until=request.until,
            withheld=tuple(sorted(set(request.withheld) & self._partitions(pool))),
        )

        def work() -> None:
            now = self._stores.sharing.share(pool)
            if now is not None and now.lease != leased:
                self._stores.commit([leased])
            self._apply()

        self._writer.run(work).result()
        after = self._stores.sharing.share(pool)
        assert after is not None, "a share ends and is never deleted"
        return after

    def _partitions(self, pool: str) -> set[str]:
        return {partner.partition for partner in self._stores.sharing.partners(pool)}

    def _due(self) -> int:
        """Return the time from which on an author is to be hidden or shown again: microseconds."""
        now, due = self._world.now(), NEVER
        for entry in self._of_hubs():
            for partner in self._stores.sharing.partners(entry.opened.pool):
                is_withheld = _is_withheld(entry, partner, now)
                if is_withheld != partner.withheld:
                    return 0
                if entry.lease and partner.hub and not is_withheld:
                    due = min(due, entry.lease.until)
        return due

    def _of_hubs(self) -> list[ShareEntry]:
        """Return the shares that a hub carries or carried."""
        return [entry for entry in self._stores.sharing.shares() if entry.hub or entry.lease]

    def _apply(self) -> None:
        """Commit what the leases of now hide and show. On the write thread."""
        now = self._world.now()
        for entry in self._of_hubs():
            for partner in self._stores.sharing.partners(entry.opened.pool):
                is_withheld = _is_withheld(entry, partner, now)
                if is_withheld != partner.withheld:
                    operations: list[AnyOperation] = judged(
                        self._stores, partner, partner.standing, now, is_withheld=is_withheld
                    )
                    self._stores.commit(operations)


def _is_withheld(entry: ShareEntry, partner: PartnerEntry, now: int) -> bool:
    """Whether nothing of an author may be read: the author's lines came through a hub, and its lease has ended, or was
    for another pool, or the hub shows the author to nobody."""
    if not partner.hub:
        return False
    lease = entry.lease if entry.hub == partner.hub else None
    return lease is None or lease.until <= now or partner.partition in lease.withheld
