"""Shared projects, the lines of the own partitions, and what was taken of the others (H1, H2).

Invariants: a line of the own partition is numbered once; what is known of another partition follows from the `arrived`
operations alone; an invalidation is kept by the line that it names, whether that line has come or not.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import msgspec

from ...protocol.instant import from_micros
from ...protocol.operation import (
    Arrived,
    ArrivedLine,
    AuthorJudged,
    Delivered,
    Offered,
    ShareChosen,
    ShareClosed,
    ShareLeased,
    ShareOpened,
)
from ...protocol.reply import Logged
from ...protocol.share import Standing, is_hub
from ...protocol.shared_lines import of_repository
from ..storage.checksummed_rows import keys_with
from .projection import FoldTables, OperationBatch
from .records import digest


class ShareEntry(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A shared project. `partitions`: all own ones, the present one last; `count`, `lamport`: of the present one, with
    the lines of others considered. `past`: lines of earlier partitions that the others have. `whole_since`: from when
    on sessions are shared as a whole, microseconds, 0 for none. `remotes`: what each remote has, by its address.
    `first`: the place of the first partition with the present mark in `partitions`; `lease`: what the hub said last.
    `withdrawals`: how often the user shared anew after a withdrawal, each of which ends the choices made before."""

    opened: ShareOpened
    at: str
    is_open: bool = True
    withdraw: bool = False
    partitions: tuple[str, ...] = ()
    count: int = 0
    lamport: int = 0
    delivered: Delivered | None = None
    past: dict[str, int] = {}
    whole_since: int = 0
    remotes: dict[str, Delivered] = {}
    first: int = 0
    lease: ShareLeased | None = None
    withdrawals: int = 0

    @property
    def audience(self) -> str:
        """The mark as a name: what the user decided to share is for those who have it."""
        return of_repository(self.opened.root, self.opened.remote)

    @property
    def hub(self) -> str:
        """The name by which a hub knows the pool, "" for a share that git carries."""
        return self.opened.remote if is_hub(self.opened.address) else ""

    @property
    def told(self) -> tuple[str, ...]:
        """The own partitions of the present audience, the present one last."""
        return self.partitions[self.first :]

    def wrote(self, partition: str, number: int) -> bool:
        """Whether a line is this home's: another device may go on under the key of an earlier partition, because one
        home is a copy of the other."""
        if partition == self.opened.partition:
            return True
        return partition in self.partitions and number < self.past.get(partition, 0)

    @property
    def earlier(self) -> list[Delivered]:
        """What the remotes before the present one have of the present partition, by address."""
        others = (self.remotes[address] for address in sorted(self.remotes.keys() - {self.opened.address}))
        return [each for each in others if each.partition == self.opened.partition]


class PartnerEntry(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A partition of another author. `taken_at`: RFC 3339 of the last lines; `problem`: why it was refused last; `hub`:
    the name by which the hub that carried its lines knows the pool, "" if git did; `withheld`: a lease hides it."""

    pool: str
    partition: str
    name: str = ""
    standing: Standing = "new"
    epoch: int = 0
    count: int = 0
    lamport: int = 0
    closed: bool = False
    refused: int = 0
    problem: str = ""
    taken_at: str = ""
    hub: str = ""
    withheld: bool = False

    @property
    def effective(self) -> Standing:
        """What the standing amounts to: an author whom a lease hides is as muted as one whom the user muted."""
        return "muted" if self.withheld else self.standing


class TakenLine(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A line that was taken, at the time `at` (microseconds). `gone`: its author forgot it since."""

    line: ArrivedLine
    at: int
    gone: bool = False


class LineRef(NamedTuple):
    """A line that names another one."""

    partition: str
    n: int


_share = msgspec.msgpack.Decoder(ShareEntry)
_partner = msgspec.msgpack.Decoder(PartnerEntry)
_offered = msgspec.msgpack.Decoder(Offered)
_taken = msgspec.msgpack.Decoder(TakenLine)
_encode = msgspec.msgpack.Encoder().encode
_replace = msgspec.structs.replace
_KEEP = b"keep"


def _shared_with(entry: ShareEntry | None) -> bytes:
    """Return the row of a record that the user shares with the present audience, since the last withdrawal."""
    if entry is None:
        return b"share" + digest("")
    return b"share" + digest(f"{entry.audience}\n{entry.withdrawals}" if entry.withdrawals else entry.audience)


def _place(pool: str, partition: str, number: int | None = None) -> bytes:
    return digest(pool) + partition.encode() + (b"" if number is None else number.to_bytes(4))


class SharingTable(FoldTables):
    """The fold of shares. `share_records` leads from a record to the own lines that add it, `share_refs` from a named
    line to the lines, own and others', that invalidate it."""

    databases = (
        *("shares", "share_lines", "share_records", "share_choices", "share_refs"),
        *("partners", "partner_segments", "partner_lines"),
    )
    reads = (ShareOpened, ShareClosed, ShareChosen, Offered, Delivered, Arrived, AuthorJudged, ShareLeased)

    def apply(self, batch: OperationBatch, entry: Logged) -> None:
        match entry.operation:
            case ShareOpened() as opened:
                self._open(batch, opened, entry.at)
            case ShareClosed() as closed:
                self._change(batch, closed.pool, is_open=False, withdraw=closed.withdraw)
            case ShareChosen() as chosen:
                share = self._share_in(batch, chosen.pool)
                choice = _KEEP if chosen.keep else _shared_with(share)
                for id in chosen.ids:
                    batch.put(digest(chosen.pool) + id.encode(), choice, db=self._table("share_choices"))
            case Offered() as offered:
                self._offer(batch, offered)
            case Delivered() as delivered:
                self._deliver(batch, delivered)
            case Arrived() as arrived:
                self._arrive(batch, arrived, entry.at)
            case AuthorJudged() as judged:
                partner = self._partner_in(batch, judged.pool, judged.partition)
                self._keep(batch, _replace(partner, standing=judged.standing, withheld=judged.withheld))
            case ShareLeased() as leased:
                self._change(batch, leased.pool, lease=leased)
            case _:
                pass

    # --- own -----------------------------------------------------------------------------------------------------
    def _open(self, batch: OperationBatch, opened: ShareOpened, at: int) -> None:
        before = self._share_in(batch, opened.pool)
        entry = ShareEntry(opened=opened, at=from_micros(at), partitions=(opened.partition,))
        if before is not None:
            entry = _replace(before, opened=opened, is_open=True, withdraw=False)
            if before.withdraw:
                entry = _replace(entry, withdrawals=before.withdrawals + 1, whole_since=0)
            if entry.audience != before.audience:
                entry = _replace(entry, first=len(before.partitions), whole_since=0)
            if (last := before.opened.partition) != opened.partition:
                own = (*before.partitions, opened.partition)
                count = before.delivered.count if before.delivered and not before.withdraw else 0
                past = {**before.past, last: count}
                entry = _replace(entry, partitions=own, count=0, delivered=None, past=past)
        since = (entry.whole_since or at) if opened.new_sessions else 0
        batch.put(digest(opened.pool), _encode(_replace(entry, whole_since=since)), db=self._table("shares"))

    def _share_in(self, batch: OperationBatch, pool: str) -> ShareEntry | None:
        stored = batch.get(digest(pool), db=self._table("shares"))
        return _share.decode(stored) if stored else None

    def _change(self, batch: OperationBatch, pool: str, **changes: object) -> None:
        if (entry := self._share_in(batch, pool)) is not None:
            batch.put(digest(pool), _encode(_replace(entry, **changes)), db=self._table("shares"))

    def _offer(self, batch: OperationBatch, offered: Offered) -> None:
        place = offered.partition.encode() + offered.n.to_bytes(4)
        batch.put(place, _encode(offered), db=self._table("share_lines"))
        if offered.what == "add":
            batch.put(offered.id.encode() + place, b"", db=self._table("share_records"))
        else:
            batch.put(digest(offered.pool) + digest(offered.ref) + place, b"", db=self._table("share_refs"))
        if (entry := self._share_in(batch, offered.pool)) is not None:
            lamport = max(entry.lamport, offered.lamport)
            self._change(batch, offered.pool, count=max(entry.count, offered.n + 1), lamport=lamport)

    def _deliver(self, batch: OperationBatch, delivered: Delivered) -> None:
        if (entry := self._share_in(batch, delivered.pool)) is None:
            return
        address = delivered.address or entry.opened.address
        remotes = {**entry.remotes, address: _replace(delivered, address=address)}
        present = entry.delivered if delivered.address else delivered
        self._change(batch, delivered.pool, remotes=remotes, delivered=present)

    # --- others --------------------------------------------------------------------------------------------------
    def _partner_in(self, batch: OperationBatch, pool: str, partition: str) -> PartnerEntry:
        stored = batch.get(_place(pool, partition), db=self._table("partners"))
        return _partner.decode(stored) if stored else PartnerEntry(pool=pool, partition=partition)

    def _keep(self, batch: OperationBatch, partner: PartnerEntry) -> None:
        batch.put(_place(partner.pool, partner.partition), _encode(partner), db=self._table("partners"))

    def _arrive(self, batch: OperationBatch, arrived: Arrived, at: int) -> None:
        pool, partition = arrived.pool, arrived.partition
        partner = self._partner_in(batch, pool, partition)
        if arrived.problem:
            self._keep(batch, _replace(partner, name=partner.name or arrived.name, problem=arrived.problem))
            return
        share = self._share_in(batch, pool)
        partner = _replace(
            partner,
            name=arrived.name,
            epoch=arrived.epoch,
            count=arrived.count,
            lamport=max(partner.lamport, arrived.lamport),
            closed=arrived.closed,
            refused=partner.refused + len(arrived.refused),
            problem="",
            taken_at=from_micros(at),
            hub=share.hub if share else "",
        )
        self._keep(batch, partner)
        for number, hash in arrived.segments:
            batch.put(_place(pool, partition, number), hash, db=self._table("partner_segments"))
        lines = self._table("partner_lines")
        for line in arrived.lines:
            batch.put(_place(pool, partition, line.n), _encode(TakenLine(line=line, at=at)), db=lines)
            if line.what == "inv":
                place = partition.encode() + line.n.to_bytes(4)
                batch.put(digest(pool) + digest(line.ref) + place, b"", db=self._table("share_refs"))
        for number in arrived.gone:
            stored = batch.get(_place(pool, partition, number), db=lines)
            nothing = TakenLine(line=ArrivedLine(number, 0, "other"), at=at)
            taken = _replace(_taken.decode(stored) if stored else nothing, gone=True)
            if taken.line.what == "inv":
                place = partition.encode() + number.to_bytes(4)
                batch.delete(digest(pool) + digest(taken.line.ref) + place, db=self._table("share_refs"))
            batch.put(_place(pool, partition, number), _encode(taken), db=lines)
        if share is not None and arrived.lamport > share.lamport:
            self._change(batch, pool, lamport=arrived.lamport)

    # --- reads ---------------------------------------------------------------------------------------------------
    def share(self, pool: str) -> ShareEntry | None:
        """Return a shared project, also one that is closed."""
        stored = self._value("shares", digest(pool), "a share")
        return _share.decode(stored) if stored else None

    def shares_session(self, pool: str, at: int) -> bool:
        """Whether a session of a pool that begins at a time (microseconds) is shared as a whole."""
        entry = self.share(pool) if pool else None
        return entry is not None and entry.is_open and 0 < entry.whole_since <= at

    def shares(self) -> list[ShareEntry]:
        """Return all shared projects by pool, also closed ones."""
        rows = map(_share.decode, self._values("shares", "a share"))
        return sorted(rows, key=lambda entry: entry.opened.pool)

    def own_lines(self, partition: str, first: int = 0) -> list[Offered]:
        """Return the lines of an own partition in order, from number `first` on."""
        if not partition:
            return []
        rows = map(_offered.decode, self._values("share_lines", "a shared line", partition.encode()))
        return [offered for offered in rows if offered.n >= first]

    def own_line(self, partition: str, number: int) -> Offered | None:
        """Return one line of an own partition."""
        stored = self._value("share_lines", partition.encode() + number.to_bytes(4), "a shared line")
        return _offered.decode(stored) if stored else None

    def lines_of(self, id: str) -> list[LineRef]:
        """Return the own lines that add a record, oldest first within a partition."""
        return [_line_ref(key) for key in self._keys("share_records", id.encode())]

    def choices(self, entry: ShareEntry) -> dict[str, bool]:
        """Return the records of a pool that the user decided on: whether the present audience gets them."""
        place, shared = digest(entry.opened.pool), _shared_with(entry)
        values = self._values("share_choices", "a choice", place)
        rows = zip(self._keys("share_choices", place), values, strict=True)
        return {key.decode(): value == shared for key, value in rows if value in (_KEEP, shared)}

    def choice(self, entry: ShareEntry, id: str) -> bool | None:
        """Return whether the present audience gets a record, None before the user decided."""
        stored = self._value("share_choices", digest(entry.opened.pool) + id.encode(), "a choice")
        shared = _shared_with(entry)
        return stored == shared if stored in (_KEEP, shared) else None

    def kept(self, pool: str) -> frozenset[str]:
        """Return the records of a pool that the user keeps from everybody."""
        place = digest(pool)
        values = self._values("share_choices", "a choice", place)
        rows = zip(self._keys("share_choices", place), values, strict=True)
        return frozenset(key.decode() for key, value in rows if value == _KEEP)

    def invalidations(self, pool: str) -> dict[str, list[int]]:
        """Return the numbers of the lines of a pool that invalidate others, by their partition."""
        numbers: dict[str, list[int]] = {}
        for key in self._keys("share_refs", digest(pool)):
            line = _line_ref(key[16:])
            numbers.setdefault(line.partition, []).append(line.n)
        return numbers

    def invalidated(self, pool: str, refs: Iterable[str]) -> list[str]:
        """Return those of these names of lines that any line invalidates."""
        with self.environment.read() as snapshot:
            table, place = self._table("share_refs"), digest(pool)
            return [ref for ref in refs if any(True for _ in keys_with(snapshot, table, place + digest(ref)))]

    def invalidating(self, pool: str, ref: str) -> list[LineRef]:
        """Return the lines, own and others', that invalidate the line with this name."""
        return [_line_ref(key) for key in self._keys("share_refs", digest(pool) + digest(ref))]

    def partner(self, pool: str, partition: str) -> PartnerEntry | None:
        """Return what is known of another author's partition."""
        stored = self._value("partners", _place(pool, partition), "a partition")
        return _partner.decode(stored) if stored else None

    def partners(self, pool: str) -> list[PartnerEntry]:
        """Return the partitions of others in a pool, by name of the partition."""
        return [_partner.decode(row) for row in self._values("partners", "a partition", digest(pool))]

    def segments(self, pool: str, partition: str) -> list[bytes]:
        """Return the hashes of the segments taken of a partition, in order."""
        return self._values("partner_segments", "a segment's hash", _place(pool, partition))

    def taken(self, pool: str, partition: str, number: int) -> TakenLine | None:
        """Return a line that was taken of a partition."""
        stored = self._value("partner_lines", _place(pool, partition, number), "a line")
        return _taken.decode(stored) if stored else None

    def all_taken(self, pool: str, partition: str) -> list[TakenLine]:
        """Return the lines taken of a partition, in order."""
        return [_taken.decode(row) for row in self._values("partner_lines", "a line", _place(pool, partition))]


def _line_ref(key: bytes) -> LineRef:
    return LineRef(key[:-4].decode(), int.from_bytes(key[-4:]))
