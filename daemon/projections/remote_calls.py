"""Consents for remote models, their calls, the tokens of each day, and how far each model has read each session (W4).

Invariants: a reservation counts until a settlement replaces it; a second settlement of a call changes nothing; a
session that a model has read up to a capture is never sent to it up to there again.
"""

from __future__ import annotations

import msgspec

from ...protocol.instant import from_micros
from ...protocol.operation import RemoteConsented, RemoteReserved, RemoteSettled
from ...protocol.remote import CallOutcome, RemoteDay
from ...protocol.reply import Logged
from .projection import FoldTables, OperationBatch
from .records import digest

READ: frozenset[CallOutcome] = frozenset({"taken", "dropped"})
"""Outcomes after which the model has read what it was sent."""

FAILED: frozenset[CallOutcome] = frozenset({"refused", "unsent", "failed", "timed out", "unknown"})


class CallEntry(msgspec.Struct, frozen=True, kw_only=True):
    """A call: its reservation, the time and its outcome so far."""

    reserved: RemoteReserved
    at: str
    settled: RemoteSettled | None = None

    @property
    def tokens(self) -> int:
        """Tokens that count for the day."""
        return self.settled.tokens if self.settled else self.reserved.tokens

    @property
    def outcome(self) -> CallOutcome:
        return self.settled.outcome if self.settled else "sending"


_consent = msgspec.msgpack.Decoder(RemoteConsented)
_call = msgspec.msgpack.Decoder(CallEntry)
_day = msgspec.msgpack.Decoder(RemoteDay)
_encode = msgspec.msgpack.Encoder().encode


def consent_key(pool: str, url: str, family: str) -> bytes:
    """Return the key of a consent: a pool and a server with a family of models."""
    return digest(pool) + digest(f"{url}\n{family}")


class RemoteTable(FoldTables):
    """The fold of consents and calls. `remote_order` leads from a call's id to its row, which is named by seq."""

    databases = ("remote_consents", "remote_calls", "remote_order", "remote_open", "remote_days", "remote_read")
    reads = (RemoteConsented, RemoteReserved, RemoteSettled)

    def apply(self, batch: OperationBatch, entry: Logged) -> None:
        match entry.operation:
            case RemoteConsented() as consent:
                key = consent_key(consent.pool, consent.url, consent.family)
                if consent.until:
                    batch.put(key, _encode(consent), db=self._table("remote_consents"))
                else:
                    batch.delete(key, db=self._table("remote_consents"))
            case RemoteReserved() as reserved:
                key = entry.seq.to_bytes(8)
                call = CallEntry(reserved=reserved, at=from_micros(entry.at))
                batch.put(key, _encode(call), db=self._table("remote_calls"))
                batch.put(digest(reserved.id), key, db=self._table("remote_order"))
                batch.put(digest(reserved.id), b"", db=self._table("remote_open"))
                self._add_to_day(batch, reserved.day, RemoteDay(calls=1, tokens=reserved.tokens))
            case RemoteSettled() as settled:
                self._settle(batch, settled)
            case _:
                pass

    def _settle(self, batch: OperationBatch, settled: RemoteSettled) -> None:
        key = batch.get(digest(settled.id), db=self._table("remote_order"))
        stored = batch.get(key, db=self._table("remote_calls")) if key else None
        if key is None or stored is None or (call := _call.decode(stored)).settled is not None:
            return
        reserved, outcome = call.reserved, settled.outcome
        batch.put(key, _encode(msgspec.structs.replace(call, settled=settled)), db=self._table("remote_calls"))
        batch.delete(digest(settled.id), db=self._table("remote_open"))
        difference = RemoteDay(
            tokens=settled.tokens - reserved.tokens,
            pointed=settled.pointed,
            dropped=settled.dropped,
            timed_out=int(outcome == "timed out"),
            failed=int(outcome in FAILED - {"timed out"}),
        )
        self._add_to_day(batch, reserved.day, difference)
        if outcome in READ:
            place = digest(reserved.reader) + digest(reserved.document)
            before = int.from_bytes(batch.get(place, db=self._table("remote_read")) or b"")
            batch.put(place, max(before, reserved.upto).to_bytes(8), db=self._table("remote_read"))

    def _add_to_day(self, batch: OperationBatch, day: int, more: RemoteDay) -> None:
        key = day.to_bytes(8)
        stored = batch.get(key, db=self._table("remote_days"))
        before = _day.decode(stored) if stored else RemoteDay()
        names = RemoteDay.__struct_fields__
        after = RemoteDay(**{name: getattr(before, name) + getattr(more, name) for name in names})
        batch.put(key, _encode(after), db=self._table("remote_days"))

    def consent(self, pool: str, url: str, family: str) -> RemoteConsented | None:
        """Return the consent for a pool and a model, also one whose time has passed; None for none."""
        stored = self._value("remote_consents", consent_key(pool, url, family), "a consent")
        return _consent.decode(stored) if stored else None

    def consents(self) -> list[RemoteConsented]:
        """Return all consents by pool, also those whose time has passed."""
        rows = map(_consent.decode, self._values("remote_consents", "a consent"))
        return sorted(rows, key=lambda consent: (consent.pool, consent.url, consent.family))

    def day(self, day: int) -> RemoteDay:
        """Return the calls of a local day, such as 20260131."""
        stored = self._value("remote_days", day.to_bytes(8), "the tokens of a day")
        return _day.decode(stored) if stored else RemoteDay()

    def calls(self) -> list[CallEntry]:
        """Return every call, oldest first."""
        return [_call.decode(row) for row in self._values("remote_calls", "a call")]

    def open_calls(self) -> list[CallEntry]:
        """Return the calls without an outcome, oldest first."""
        return [call for call in self.calls() if call.settled is None] if self._keys("remote_open") else []

    def read_upto(self, reader: str, document: str) -> int:
        """Return the archive seq up to which a model has read a session, 0 for none of it."""
        return int.from_bytes(self._value("remote_read", digest(reader) + digest(document), "a place") or b"")
