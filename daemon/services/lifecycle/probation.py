"""Probation: records of a pool's first live session or of an old import stay unconfirmed until their first use.

Records that the user asked to remember, pinned or corrected are exempt.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from ....protocol.event import Noted
from ....protocol.instant import micros
from ....protocol.record import Record
from ....stages.batch import PERSONAL
from ...forgetting_rules import Rules
from ...projections.stores import Stores
from ...projections.strength import DAY

NO_SESSIONS = frozenset({"memd", "cli", "python"})
"""Hosts whose documents are single statements, not sessions in which somebody works."""


class Probation:
    """Judges the records of one batch. On the write thread."""

    def __init__(self, stores: Stores, rules: Callable[[], Rules], now: Callable[[], int]) -> None:
        self._stores, self._rules, self._now = stores, rules, now
        self._first: dict[str, str] = {}

    def judged(self, record: Record) -> Record:
        """Return the record, unconfirmed if it is on probation."""
        if record.status != "active" or record.held or record.supersedes or not self._is_doubtful(record):
            return record
        span = record.provenance.spans[0]
        captured = self._stores.archive.turn(span.document, span.turn)
        if captured is not None and isinstance(captured.event, Noted):
            return record
        return msgspec.structs.replace(record, status="quarantined")

    def _is_doubtful(self, record: Record) -> bool:
        rules, document = self._rules(), record.provenance.source
        session = self._stores.sources.session(document)
        if session is None or document.partition(":")[0] in NO_SESSIONS or rules.is_off(record.pool):
            return False
        if session.opened.origin.live:
            return rules.first_session and self._first_live(record.pool) == document
        age_days = (self._now() - micros(record.provenance.said_at)) / DAY
        return bool(rules.old_import_days) and age_days > rules.old_import_days

    def _first_live(self, pool: str) -> str:
        """Return the document of a pool's first live session; all sessions belong to the user's own pool."""
        if pool not in self._first:
            sources = self._stores.sources
            documents = sources.sessions() if pool == PERSONAL else sources.documents([pool])
            live = [
                (micros(session.opened.at), document)
                for document, session in sources.sessions_of(documents).items()
                if session.opened.origin.live and document.partition(":")[0] not in NO_SESSIONS
            ]
            self._first[pool] = min(live)[1] if live else ""
        return self._first[pool]
