"""Which sessions the chosen remote model may read now (W4).

Invariants: a session needs the consent of every pool that it feeds, its agent's too; nothing undone, revoked, of a
project that the user left or of another pool is read; consent ends by itself.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from ....protocol.ingestion import summary_id
from ....protocol.instant import micros
from ....protocol.operation import RemoteConsented
from ....stages.batch import PERSONAL
from ...projections.placement import agent_pool
from ...projections.pool_directory import PoolDirectory
from ...projections.sources import SessionEntry
from ...projections.stores import Stores
from .provider import RemoteChoice

PRIVATE = "its visibility is private"


class Allowed(NamedTuple):
    """Whether a session may be sent: `why` not, "" if it may."""

    why: str = ""

    def __bool__(self) -> bool:
        return not self.why


class ConsentCheck:
    """Reads the consents in force. Any thread may call it."""

    def __init__(self, stores: Stores, directory: PoolDirectory, now: Callable[[], int]) -> None:
        self._stores, self._directory, self._now = stores, directory, now

    def holds(self, consent: RemoteConsented | None) -> bool:
        """Whether a consent is in force."""
        return consent is not None and bool(consent.until) and micros(consent.until) > self._now()

    def of(self, choice: RemoteChoice, pool: str) -> RemoteConsented | None:
        """Return the consent in force for a pool and a model."""
        consent = self._stores.remote.consent(pool, choice.url, choice.family)
        return consent if self.holds(consent) else None

    def pools(self, session: SessionEntry) -> tuple[str, ...]:
        """Return the pools that a session feeds: its project's or the user's own, and its agent's."""
        home = self._stores.aliases.home(session.opened.project or PERSONAL)
        agent = agent_pool(session.opened.origin.agent)
        is_known = bool(agent) and self._stores.sources.pool(agent) is not None
        return (home, agent) if is_known else (home,)

    def is_ended(self, session: SessionEntry) -> bool:
        """Whether a session has ended. A document is whole once `memd ingest` has summarised it (W12)."""
        if session.closed_at or session.opened.origin.live:
            return bool(session.closed_at)
        return self._stores.records.get(summary_id(session.opened.document)) is not None

    def check(self, choice: RemoteChoice, session: SessionEntry) -> Allowed:
        """Return whether the chosen model may read an ended session now."""
        document = session.opened.document
        if not self.is_ended(session):
            return Allowed("the session has not ended")
        if self._stores.forgotten.hiding(document):
            return Allowed("the session was undone")
        if any(_covers(entry.source, document) for entry in self._stores.grants.sources()):
            return Allowed("its source was revoked")
        is_private = session.opened.origin.visibility == "private" and not choice.trusted
        for pool in self.pools(session):
            if self._directory.is_left(pool):
                return Allowed(f"you left {self._directory.title(pool) or pool}")
            consent = self.of(choice, pool)
            if consent is None:
                return Allowed(f"no consent for {self._directory.title(pool) or pool}: `memd remote consent POOL`")
            if is_private and not consent.private:
                return Allowed(PRIVATE)
        return Allowed()


def _covers(source: str, document: str) -> bool:
    """Whether a revoked source, a host or a session's document, includes a document."""
    return document == source or document.startswith((f"{source}:", f"{source}/"))
