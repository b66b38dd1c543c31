"""The own partition of a shared project: what may leave, what leaves, and what the others have of it (H1, W5, A2)."""

from __future__ import annotations

from ....protocol.share import (
    CloseShare,
    GetOutbox,
    NoteDelivered,
    OfferRecords,
    OpenShare,
    Outbox,
    PreparedShare,
    PrepareShare,
    RenewPartition,
    ReviewShare,
    ShareReview,
)
from ...projections.sharing import ShareEntry
from ..core import Core
from ..write_thread import Writer


class OwnPartition:
    """Offers, renders and signs the user's lines."""

    def __init__(self, core: Core, writer: Writer) -> None:
        self._core, self._writer = core, writer

    def open(self, request: OpenShare) -> ShareEntry:
        raise NotImplementedError

    def close(self, request: CloseShare) -> ShareEntry:
        raise NotImplementedError

    def review(self, request: ReviewShare) -> ShareReview:
        raise NotImplementedError

    def choose(self, request: OfferRecords) -> Outbox:
        raise NotImplementedError

    def outbox(self, request: GetOutbox) -> Outbox:
        raise NotImplementedError

    def prepare(self, request: PrepareShare) -> PreparedShare:
        raise NotImplementedError

    def delivered(self, request: NoteDelivered) -> ShareEntry:
        raise NotImplementedError

    def renew(self, request: RenewPartition) -> ShareEntry:
        raise NotImplementedError

    def waiting(self, entry: ShareEntry) -> int:
        """Return the number of records in the outbox."""
        raise NotImplementedError

    def undecided(self, entry: ShareEntry) -> int:
        """Return the number of records that the user may share and has not decided on."""
        raise NotImplementedError
