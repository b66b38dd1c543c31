"""The patches of each pool, the records that names of patch files mean, and each pool's policy (G2, G5).

Invariants: a patch is known once, by pool and name; a name of a patch file means one record of a pool.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Literal

import msgspec

from ...protocol.operation import PatchApplied, PatchGone, PatchStep, PatchTaken, PiTrusted, PolicySet, Redacted
from ...protocol.reply import Logged
from .projection import FoldTables, OperationBatch
from .records import digest

PatchStanding = Literal["sent", "applied", "taken", "gone"]
"""`sent`: written for others to decide; `applied`: accepted here; `taken`: it came with the repository; `gone`: it was
reverted there."""


class PatchEntry(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A patch. `at`: microseconds; `is_own`: this home made it; `blob`: the hash of its file in the tree, "" if it was
    never there; `hash`: of the bytes of an own file; `forgotten`: a record that it states was forgotten."""

    pool: str
    patch: str
    standing: PatchStanding
    at: int
    day: str = ""
    generated_by: str = ""
    is_own: bool = False
    blob: str = ""
    commit: str = ""
    author: str = ""
    steps: tuple[PatchStep, ...] = ()
    names: tuple[tuple[str, str], ...] = ()
    refused: tuple[tuple[str, str], ...] = ()
    forgotten: bool = False
    hash: str = ""
    proposal: str = ""


class PolicyEntry(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Whether memd reads a pool's `.pi` folder, and the pool's policy."""

    pool: str
    trusted: bool = False
    digest: str = ""
    text: str = ""
    accepted: bool = False


_patch = msgspec.msgpack.Decoder(PatchEntry)
_policy = msgspec.msgpack.Decoder(PolicyEntry)
_encode = msgspec.msgpack.Encoder().encode
_replace = msgspec.structs.replace
_SEPARATOR = b"\n"


class PatchTable(FoldTables):
    """The fold of patches and policies. `patches_of` leads from a record to the patches that change it."""

    databases = ("patches", "patch_names", "patches_of", "policies")
    reads = (PatchApplied, PatchTaken, PatchGone, PiTrusted, PolicySet, Redacted)

    def apply(self, batch: OperationBatch, entry: Logged) -> None:
        match entry.operation:
            case PatchApplied() as applied:
                self._keep(batch, self._applied(batch, applied, entry.at))
            case PatchTaken() as taken:
                self._keep(batch, self._taken(batch, taken, entry.at))
            case PatchGone(pool=pool, patch=patch):
                if known := self._in(batch, pool, patch):
                    self._keep(batch, _replace(known, standing="gone"))
            case PiTrusted(pool=pool, trusted=trusted):  # its shifts change records alone
                self._change(batch, pool, trusted=trusted)
            case PolicySet() as policy:
                changed = {"digest": policy.digest, "text": policy.text, "accepted": policy.accepted}
                self._change(batch, policy.pool, **changed)
            case Redacted(records=records):
                for id in records:
                    self._forget(batch, id)
            case _:
                pass

    def _applied(self, batch: OperationBatch, applied: PatchApplied, at: int) -> PatchEntry:
        known = self._in(batch, applied.pool, applied.patch)
        entry = known or PatchEntry(pool=applied.pool, patch=applied.patch, standing="applied", at=at)
        return _replace(
            entry,
            standing="sent" if applied.sent else "applied",
            at=at,
            day=applied.day,
            generated_by=applied.generated_by,
            is_own=True,
            steps=applied.steps,
            names=applied.names,
            hash=applied.hash,
            proposal=applied.proposal,
        )

    def _taken(self, batch: OperationBatch, taken: PatchTaken, at: int) -> PatchEntry:
        known = self._in(batch, taken.pool, taken.patch)
        entry = known or PatchEntry(pool=taken.pool, patch=taken.patch, standing="taken", at=at)
        entry = _replace(entry, standing="taken", blob=taken.blob, commit=taken.commit, author=taken.author)
        if known is not None:
            return entry
        return _replace(
            entry,
            day=taken.day,
            generated_by=taken.generated_by,
            steps=taken.steps,
            names=taken.names,
            refused=taken.refused,
        )

    def _in(self, batch: OperationBatch, pool: str, patch: str) -> PatchEntry | None:
        stored = batch.get(digest(pool) + patch.encode(), db=self._table("patches"))
        return _patch.decode(stored) if stored else None

    def _keep(self, batch: OperationBatch, entry: PatchEntry) -> None:
        place = digest(entry.pool) + entry.patch.encode()
        batch.put(place, _encode(entry), db=self._table("patches"))
        for name, id in entry.names:
            batch.put(digest(entry.pool) + name.encode(), id.encode(), db=self._table("patch_names"))
        for id in records_of(entry.steps):
            known = batch.get(id.encode(), db=self._table("patches_of")) or b""
            row = place.hex().encode() + _SEPARATOR
            if row not in known:
                batch.put(id.encode(), known + row, db=self._table("patches_of"))

    def _change(self, batch: OperationBatch, pool: str, **changed: object) -> None:
        stored = batch.get(digest(pool), db=self._table("policies"))
        entry = _policy.decode(stored) if stored else PolicyEntry(pool=pool)
        batch.put(digest(pool), _encode(_replace(entry, **changed)), db=self._table("policies"))

    def _forget(self, batch: OperationBatch, id: str) -> None:
        for row in (batch.get(id.encode(), db=self._table("patches_of")) or b"").split(_SEPARATOR)[:-1]:
            place = bytes.fromhex(row.decode())
            stored = batch.get(place, db=self._table("patches"))
            if stored:
                entry = _patch.decode(stored)
                entry = _replace(entry, steps=without_words(entry.steps, {id}), forgotten=True)
                batch.put(place, _encode(entry), db=self._table("patches"))
        batch.delete(id.encode(), db=self._table("patches_of"))

    # --- reads ---------------------------------------------------------------------------------------------------
    def get(self, pool: str, patch: str) -> PatchEntry | None:
        """Return a patch of a pool, or None."""
        stored = self._value("patches", digest(pool) + patch.encode(), "a patch")
        return _patch.decode(stored) if stored else None

    def all(self, pool: str) -> list[PatchEntry]:
        """Return the patches of a pool, by day and name."""
        keys = self._keys("patches", digest(pool))
        entries = (self.get(pool, key.decode()) for key in keys)
        return sorted((entry for entry in entries if entry), key=lambda entry: (entry.day, entry.patch))

    def record(self, pool: str, name: str) -> str:
        """Return the id of the record that a name of a patch file means in a pool, or ""."""
        return (self._value("patch_names", digest(pool) + name.encode(), "a name of a patch") or b"").decode()

    def of_record(self, id: str) -> list[PatchEntry]:
        """Return the patches that change a record."""
        rows = (self._value("patches_of", id.encode(), "the patches of a record") or b"").split(_SEPARATOR)[:-1]
        stored = (self._value("patches", bytes.fromhex(row.decode()), "a patch") for row in rows)
        return [_patch.decode(value) for value in stored if value]

    def policy(self, pool: str) -> PolicyEntry:
        """Return whether memd reads a pool's `.pi` folder, and the pool's policy."""
        stored = self._value("policies", digest(pool), "a policy")
        return _policy.decode(stored) if stored else PolicyEntry(pool=pool)


def without_words(steps: Iterable[PatchStep], ids: Collection[str]) -> tuple[PatchStep, ...]:
    """Return steps of which those on these records have no words: no reason, condition or evidence."""
    bare = {"reason": "", "change_condition": "", "evidence": ()}
    return tuple(_replace(step, **bare) if step.id in ids else step for step in steps)


def records_of(steps: Iterable[PatchStep]) -> tuple[str, ...]:
    """Return the ids of the records that steps name."""
    return tuple(dict.fromkeys(id for step in steps for id in (step.id, step.to) if id))
