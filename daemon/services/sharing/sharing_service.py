"""The sharing service: one author's lines out, the other authors' lines in (H1, H2, W7).

Invariants: the daemon makes no connection, a client carries heads and segments; only the user sends these requests.
"""

from __future__ import annotations

from collections.abc import Sequence

from ....protocol.instant import from_micros
from ....protocol.operation import Offered
from ....protocol.record import Record
from ....protocol.share import (
    CloseShare,
    DisputeRecords,
    GetOutbox,
    GetShareLog,
    JudgeAuthor,
    ListShares,
    NoteDelivered,
    NoteLease,
    OfferRecords,
    OpenShare,
    PrepareShare,
    RenewPartition,
    ReviewShare,
    ShareList,
    ShareState,
    TakePartition,
)
from ...projections.sharing import ShareEntry
from ..core import Core
from ..service import Handlers, Service, owner
from ..write_thread import Writer
from .arrivals import Arrivals
from .leases import Leases
from .own_partition import OwnPartition
from .taking import ForgetLines


class SharingService(Service):
    """Requests on the slow lane: rendering and checking many lines takes long, and only the commits need the write
    thread."""

    name = "sharing"

    def __init__(self, core: Core, writer: Writer, *, forget: ForgetLines) -> None:
        """`forget`: forgets lines that their author forgot, in one commit with these operations."""
        self._stores, self._directory = core.stores, core.directory
        self._own = own = OwnPartition(core, writer)

        def say_invalid(pool: str, name: str, until: str, why: str) -> None:
            writer.run(lambda: own.invalidate(pool, name, until, why)).result()

        self._arrivals = Arrivals(core, writer, forget, say_invalid)
        self.leases = Leases(core, writer)

    def retractions(self, records: Sequence[Record]) -> list[Offered]:
        """Return the lines that tell everybody that other authors' records do not hold. On the write thread."""
        return self._own.retractions(records)

    @property
    def handlers(self) -> Handlers:
        return {
            OpenShare: owner("slow", lambda request: self._state(self._own.open(request))),
            CloseShare: owner("slow", lambda request: self._state(self._own.close(request))),
            ListShares: owner("slow", self.shares),
            ReviewShare: owner("slow", self._own.review),
            OfferRecords: owner("slow", self._own.choose),
            GetOutbox: owner("slow", self._own.outbox),
            PrepareShare: owner("slow", self._own.prepare),
            NoteDelivered: owner("slow", lambda request: self._state(self._own.delivered(request))),
            RenewPartition: owner("slow", lambda request: self._state(self._own.renew(request))),
            TakePartition: owner("slow", self._arrivals.take),
            JudgeAuthor: owner("slow", lambda request: self._state(self._arrivals.judge(request))),
            NoteLease: owner("slow", lambda request: self._state(self.leases.note(request))),
            DisputeRecords: owner("slow", self._arrivals.dispute),
            GetShareLog: owner("slow", self._arrivals.log),
        }

    def shares(self, request: ListShares) -> ShareList:
        """Return the shared projects, open ones first. Raises NotFound."""
        wanted = {self._directory.named(pool) for pool in request.pools}
        entries = [entry for entry in self._stores.sharing.shares() if not wanted or entry.opened.pool in wanted]
        return ShareList(shares=tuple(map(self._state, sorted(entries, key=lambda entry: not entry.is_open))))

    def _state(self, entry: ShareEntry) -> ShareState:
        opened = entry.opened
        offered = entry.count
        return ShareState(
            pool=opened.pool,
            title=self._directory.title(opened.pool),
            is_open=entry.is_open,
            withdrawn=entry.withdraw,
            address=opened.address,
            mark=entry.hub,
            partition=opened.partition,
            lease_until=from_micros(entry.lease.until) if entry.lease and entry.lease.until else "",
            withheld=len(entry.lease.withheld) if entry.lease else 0,
            name=opened.name,
            new_sessions=opened.new_sessions,
            since=entry.at,
            offered=offered,
            delivered=entry.delivered.count if entry.delivered else 0,
            waiting=self._own.waiting(entry),
            undecided=self._own.undecided(entry),
            forgotten=self._own.forgotten(entry),
            authors=self._arrivals.authors(entry),
            earlier=self._own.earlier(entry),
        )
