"""The journal's operations: what memd did, in the past tense, one frozen class each.

Comes in: decisions of the committer. Goes out: MessagePack bytes with a hand-written tag, so that renaming a class
never changes stored bytes. Invariants: applying one is pure (no clock, no chance, no model); a payload names other
records by id and never quotes them; an unknown kind decodes to `Unknown` and is skipped, never a crash.
"""

from __future__ import annotations

from functools import cache
from typing import Literal, get_args

import msgspec

from .envelope import Operation
from .errors import JournalCorrupt
from .event import Origin
from .fading import Archived, Counted, Folded, Released, Restored, Reviewed, Slept
from .learning import FeedbackGiven
from .record import Evidence, Layer, Record, Status

VERSION = 1
"""Version of the operations' layout; older payloads are upcast when read."""


class Neighbour(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A record that a candidate was judged against: its revision then, the similarity in [0, 1], the verdict."""

    id: str
    rev: int
    similarity: float
    label: str


class Step(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What one stage did with a candidate, in words for `memd why`."""

    stage: str
    what: str


class Decision(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """Why an operation was written: the stages' steps, the neighbours, the reason, the rounds it took (W6)."""

    action: Literal["add", "update", "invalidate", "noop"]
    reason: str
    steps: tuple[Step, ...] = ()
    neighbours: tuple[Neighbour, ...] = ()
    rounds: int = 1


class Retirement(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A record that an operation retires: which, until when it was true (world time), and why."""

    id: str
    valid_to: str
    reason: str


class Failure(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A capture that a stage could not distil after its retries: a dead letter (P-12)."""

    seq: int
    document: str
    turn: str
    stage: str
    error: str


class PoolOpened(Operation, tag="pool_opened", frozen=True, kw_only=True):
    """A pool exists from now on; its identity is decided once and kept (P3). An agent's has a role and perspectives,
    which a later one of these changes (P5)."""

    pool: str
    title: str = ""
    roots: tuple[str, ...] = ()
    evidence: str = ""
    role: str = ""
    perspectives: tuple[str, ...] = ()


class AliasAdded(Operation, tag="alias_added", frozen=True, kw_only=True):
    """These names lead to a pool from now on: later evidence of a project, or the user's own word (P3).

    A name is `repository:ROOT@REMOTE`, `id:ID`, `checkout:FOLDER`, `folder:FOLDER` or `pool:POOL`.
    """

    pool: str
    names: tuple[str, ...]
    evidence: str = ""
    by: Literal["memd", "user"] = "memd"


class SessionOpened(Operation, tag="session_opened", frozen=True, kw_only=True):
    """A document was seen for the first time: where it comes from and which project pool it feeds."""

    document: str
    origin: Origin
    project: str
    at: str


class SessionClosed(Operation, tag="session_ended", frozen=True, kw_only=True):
    """A document's session ended."""

    document: str
    at: str
    reason: str = ""


class SessionResumed(Operation, tag="session_resumed", frozen=True, kw_only=True):
    """A live session that had ended goes on: it will end once more (W2)."""

    document: str
    at: str


class Added(Operation, tag="added", frozen=True, kw_only=True):
    """A record is believed; what it contradicts is retired in the same entry (T1, P-8)."""

    record: Record
    retires: tuple[Retirement, ...] = ()
    decision: Decision


class Updated(Operation, tag="updated", frozen=True, kw_only=True):
    """A record of a local pool has a new revision, under the same id (W6)."""

    record: Record
    retires: tuple[Retirement, ...] = ()
    decision: Decision


class Merged(Operation, tag="merged", frozen=True, kw_only=True):
    """A candidate said what a record says already: its turn becomes evidence, nothing else changes (P-7)."""

    id: str
    evidence: Evidence
    decision: Decision


class Invalidated(Operation, tag="invalidated", frozen=True, kw_only=True):
    """A record is no longer believed; its history stays (T1)."""

    id: str
    valid_to: str
    reason: str
    by: str = ""


class Distilled(Operation, tag="distilled", frozen=True, kw_only=True):
    """The pipeline's cursor: captures up to `archive_seq` are done; committed with what they produced."""

    archive_seq: int
    captures: int
    candidates: int
    rejected: dict[str, int] = msgspec.field(default_factory=dict[str, int])
    failed: tuple[Failure, ...] = ()


class Retried(Operation, tag="retried", frozen=True, kw_only=True):
    """A dead letter was tried again, committed with what it led to; `failed` says why it stays one (P-12)."""

    archive_seq: int
    document: str
    turn: str
    failed: Failure | None = None


class Pinned(Operation, tag="pinned", frozen=True, kw_only=True):
    """The user holds on to a record, or lets go of it: while held, no statement retires it by itself (T13).

    `layer` is where it stands from then on (R9), "" in journals of before there were layers; what is promoted is out of
    quarantine by the user's own word (T8). `principle` gives or takes that tag (Q8), None leaves it.
    """

    id: str
    pinned: bool
    layer: Layer | Literal[""] = ""
    principle: bool | None = None


class Granted(Operation, tag="granted", frozen=True, kw_only=True):
    """The user signed a pass for a subject (A1), or shows again what was revoked of these sources (no `grant`)."""

    grant: str = ""
    subject: str = ""
    pools: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    expires_at: str = ""


class Revoked(Operation, tag="revoked", frozen=True, kw_only=True):
    """Passes are void from now on, or nothing that rests on these sources is shown any more (A3)."""

    grants: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()


class ChangeProposed(Operation, tag="proposed", frozen=True, kw_only=True):
    """Something that only the user decides: an agent asks to forget `record`, or `against` contradicts it (T13).

    `label` and `reason` are a rule's, in the rule's own words.
    """

    id: str
    what: Literal["forget", "conflict"]
    record: str
    against: str = ""
    document: str = ""
    by: str = ""
    label: str = ""
    reason: str = ""


class ChangeDecided(Operation, tag="decided", frozen=True, kw_only=True):
    """The user's word on a proposal; what follows from it is committed with it, or was done before (G7)."""

    id: str
    accepted: bool


class Turns(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Turns of one document: a tombstone. They are never taken or learnt again, whoever sends them (T10)."""

    document: str
    turns: tuple[str, ...]


class Remnant(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What is read in place of a journal entry whose payload was removed: an encoded operation without its words."""

    seq: int
    kind: str
    payload: bytes


class Cut(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Characters `start:end` of the text of the capture at `seq` are a secret of the kind `rule` (P-18)."""

    seq: int
    start: int
    end: int
    rule: str


class Redacted(Operation, tag="redacted", frozen=True, kw_only=True):
    """Records and captures are forgotten for good, or secrets cut out of them; pending until `purged` names it (T10).

    It holds no word that goes and no hash of any: ids of records, turns, `captures` as archive seqs, `entries` as
    journal seqs with what stands in for them, so that replay believes of everything else what it believed before, and
    `cuts` in order of place: there each capture gets a placeholder, and its other words stay.
    """

    records: tuple[str, ...] = ()
    turns: tuple[Turns, ...] = ()
    captures: tuple[int, ...] = ()
    entries: tuple[Remnant, ...] = ()
    sessions: tuple[str, ...] = ()
    cuts: tuple[Cut, ...] = ()


class Purged(Operation, tag="purged", frozen=True, kw_only=True):
    """The bytes of a `redacted` operation are gone from every store; `redacted` is its seq (T10)."""

    redacted: int


class Erased(Operation, tag="erased", frozen=True, kw_only=True):
    """Never written, only read in place of a removed payload: which records it touched, which it retired for whom."""

    ids: tuple[str, ...] = ()
    retires: tuple[Retirement, ...] = ()
    by: str = ""


class Rebased(Operation, tag="rebased", frozen=True, kw_only=True):
    """A record lost one of its sources to forgetting: the whole row, as it stands on what is left."""

    record: Record


class Shift(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The standing of a record: what hiding changes and bringing back restores."""

    id: str
    status: Status
    valid_to: str = ""
    retired_at: int = 0
    superseded_by: str = ""


class Hidden(Operation, tag="hidden", frozen=True, kw_only=True):
    """Sessions were taken back: their records leave every read, what those had retired is believed again.

    `after` is applied now; `before` is how to bring it back.
    """

    documents: tuple[str, ...]
    before: tuple[Shift, ...]
    after: tuple[Shift, ...]


class Unhidden(Operation, tag="unhidden", frozen=True, kw_only=True):
    """What the operation `hidden` at that seq took back is there again; `after` names what could be brought back."""

    hidden: int
    documents: tuple[str, ...]
    after: tuple[Shift, ...]


class Moved(Operation, tag="moved", frozen=True, kw_only=True):
    """The user put records into another pool; what happened to them before stays their history (P3).

    `unkeyed`: those of them whose key a live record of that pool holds; they come without, to be looked at.
    """

    ids: tuple[str, ...]
    pool: str
    reason: str
    unkeyed: tuple[str, ...] = ()


class Checkpoint(Operation, tag="checkpoint", frozen=True, kw_only=True):
    """Up to here both logs were verified, by the seqs and hashes of their headers: a start verifies what follows."""

    journal_seq: int = 0
    journal_tip: bytes = b""
    archive_seq: int = 0
    archive_tip: bytes = b""


class Unknown(Operation, tag="unknown", frozen=True, kw_only=True):
    """An operation of a later version: kept in the journal, skipped by every projection."""

    name: str = ""


AnyOperation = (
    PoolOpened
    | AliasAdded
    | SessionOpened
    | SessionClosed
    | SessionResumed
    | Added
    | Updated
    | Merged
    | Invalidated
    | Distilled
    | Retried
    | Pinned
    | Granted
    | Revoked
    | ChangeProposed
    | ChangeDecided
    | FeedbackGiven
    | Redacted
    | Purged
    | Erased
    | Rebased
    | Hidden
    | Unhidden
    | Moved
    | Checkpoint
    | Counted
    | Slept
    | Archived
    | Restored
    | Released
    | Reviewed
    | Folded
    | Unknown
)

_encoder = msgspec.msgpack.Encoder()
_known = {str(cls.__struct_config__.tag) for cls in get_args(AnyOperation)} - {"unknown"}


@cache
def _decoder() -> msgspec.msgpack.Decoder[AnyOperation]:
    """Built for the first operation, because it takes 3 ms and most clients need none."""
    return msgspec.msgpack.Decoder(AnyOperation)


def kind(operation: AnyOperation) -> str:
    """The stored tag of an operation, such as `added`."""
    return str(operation.__struct_config__.tag)


def encode(operation: AnyOperation) -> bytes:
    """MessagePack bytes of an operation."""
    return _encoder.encode(operation)


def decode(name: str, payload: bytes) -> AnyOperation:
    """The operation of kind `name` in `payload`; a kind of a later version gives `Unknown`. Raises JournalCorrupt."""
    if name not in _known:
        return Unknown(name=name)
    try:
        return _decoder().decode(payload)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise JournalCorrupt(
            f"cannot decode an operation of kind {name!r}: {error}", hint="run `memd verify`"
        ) from error
