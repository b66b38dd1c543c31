"""The gate of a shared project: which records may leave (W5, A2, G7).

Invariants: a record passes only if all its sources lie in the shared pool, or the user moved it there; nothing that
another author said, that has a warning or that the rules of today find a secret in passes. The user's word is asked
elsewhere: the gate only refuses.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from ....protocol.operation import Moved
from ....protocol.record import STATES, Record, is_team_document
from ....protocol.shared_lines import LINE_BYTES
from ...projections.placement import PROJECT, Placing, SourcePool, documents_of, may_hold
from ...projections.pool_directory import OperationCache
from ...projections.stores import Stores
from ..outgoing_screen import flags_in, secrets_in
from ..record_history import entries
from .rendering import KINDS, bytes_of, shared_text, texts_of

KEPT = "you keep it for yourself"
"""Why a record stays for which the user decided so."""


def is_from_team(record: Record) -> bool:
    """Whether another author said any of a record."""
    return any(map(is_team_document, documents_of(record)))


SCREENED = 200_000
"""Records with a cached verdict on their words."""


class _Findings(NamedTuple):
    """What the rules of today find in the words of a record: flags, and the rule of a secret, "" for none."""

    flags: tuple[str, ...]
    secret: str


class ShareGate:
    """Judges records with the tables and the rules of today."""

    def __init__(self, stores: Stores) -> None:
        self._stores = stores
        self._placing = Placing(stores.sources, stores.aliases)
        self._known = OperationCache(stores)
        self._screened: dict[str, tuple[int, _Findings]] = {}
        """By record: the hash of its words and what the rules find in them. An operation changes few of many."""

    def why_not(self, record: Record, pool: str) -> str:
        """Return why a record may not leave the shared pool, in words for the user; "" if it may."""
        return (
            self._of_its_kind(record, pool)
            or self._of_its_warnings(record)
            or self._of_its_sources(record, pool)
            or self._of_its_words(record)
        )

    def why_not_exported(self, record: Record) -> str:
        """Return why a record may not be in a shareable export, in words for the user; "" if it may: it passes the gate
        of its own project, and the user did not keep it."""
        if not record.pool.startswith(PROJECT):
            return "it is not in a project"
        kept = self._known.get(("kept", record.pool), lambda: self._stores.sharing.kept(record.pool))
        return KEPT if record.id in kept else self.why_not(record, record.pool)

    def _of_its_kind(self, record: Record, pool: str) -> str:
        if record.pool != pool:
            return "it is not in this project"
        if record.kind not in KINDS:
            return f"a {record.kind} is not shared"
        if record.status != "active":
            if record.status == "quarantined":
                return f"it is {_state(record)}: `memd confirm {record.id[:8]}` says that it is right"
            return "memd has not read it closely yet" if record.status == "provisional" else f"it is {_state(record)}"
        return ""

    def _of_its_warnings(self, record: Record) -> str:
        from ....stages.scan import FLOOR  # late: its expressions take long to compile

        flags = record.flags or self._found(record).flags
        if flags:
            return f"it has a warning: {flags[0]}"
        if record.injection is not None and record.injection >= FLOOR:
            return "it reads like an order to an agent"
        return ""

    def _of_its_sources(self, record: Record, pool: str) -> str:
        documents = documents_of(record)
        if is_from_team(record):
            return "another author shared it"
        if revoked := self._revoked(documents):
            return f"its source {revoked} is revoked"
        if may_hold(pool, self._sources(documents)) or (documents and self._was_moved(record, pool)):
            return ""
        return "it rests on a session outside this project" if documents else "its source is unknown"

    def _revoked(self, documents: Iterable[str]) -> str:
        """Return the revoked source of one of these documents, "" for none."""
        sources = self._known.get("revoked", lambda: [each.source for each in self._stores.grants.sources()])
        documents = tuple(documents) if sources else ()
        return next((name for name in sources for document in documents if f"{document}:".startswith(f"{name}:")), "")

    def _sources(self, documents: tuple[str, ...]) -> tuple[SourcePool, ...]:
        return self._known.get(documents, lambda: self._placing.of(documents))

    def _was_moved(self, record: Record, pool: str) -> bool:
        """Whether the user moved a record into the pool: the only way over from a narrower one (A2)."""
        if not record.placed:
            return False
        moves = (entry.operation for entry in entries(self._stores, record.id, newest_first=True))
        last = next((operation for operation in moves if isinstance(operation, Moved)), None)
        return last is not None and last.pool == pool

    def _of_its_words(self, record: Record) -> str:
        if secret := self._found(record).secret:
            return f"it may hold a secret ({secret})"
        if not shared_text(record).replace("\n", " ").replace("\t", " ").isprintable():
            return "it has characters that can't be shown"
        size = bytes_of(record)
        return f"it is longer than a shared line may be ({size:,} of {LINE_BYTES:,} bytes)" if size > LINE_BYTES else ""

    def _found(self, record: Record) -> _Findings:
        """Return what the rules find in the words of a record. The verdict is cached while memd runs."""
        texts, material = texts_of(record), record.provenance.trust != "user"
        mark = hash((material, *texts))
        known = self._screened.get(record.id)
        if known is not None and known[0] == mark:
            return known[1]
        secret = next((found.rule for words in texts for found in secrets_in(words)), "")
        findings = _Findings(flags_in("\n".join(dict.fromkeys(texts)), material), secret)
        if len(self._screened) >= SCREENED:
            self._screened.clear()
        self._screened[record.id] = mark, findings
        return findings

    def is_shared_whole(self, record: Record) -> bool:
        """Whether the record and all sessions that it rests on are shared as a whole."""
        sources = self._sources(documents_of(record))
        levels = (record.provenance.visibility, *(source.visibility for source in sources))
        return bool(sources) and "private" not in levels and may_hold(record.pool, sources)


def _state(record: Record) -> str:
    return STATES.get(record.status, record.status)
