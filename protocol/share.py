"""Requests and replies about sharing a project's memory (H1, H2, W7): the daemon makes and checks lines, a client
carries them by git.

Invariants: the daemon makes no connection; only the user sends these requests; a request names one pool by its name,
title or unambiguous prefix.
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from .record import Record
from .request_fields import Names, Request

PoolField = Annotated[str, msgspec.Meta(min_length=1, max_length=512)]
Ids = Annotated[tuple[str, ...], msgspec.Meta(max_length=10_000)]

Standing = Literal["new", "trusted", "muted"]
"""What the user thinks of an author: `new`: his words are unconfirmed; `trusted`: they count; `muted`: hidden."""

TAKEN_SEGMENTS = 8
"""Most segments of one request or reply."""

NEW_LINES, FIRST_LINES = 2_000, 20_000
"""Most new lines of a partition in one request and in one pull: of one that memd knows, and of one that it does not."""

HUB_SCHEME = "hub+"
HUB_SCHEMES = (f"{HUB_SCHEME}https://", f"{HUB_SCHEME}http://")
"""Beginnings of a hub's address, `hub+https://HOST[:PORT]/POOL`; without TLS only on this machine."""

OUTBOX_HOURS = 24
"""Hours that a record of a session that is shared as a whole waits before it may leave."""


def is_hub(address: str) -> bool:
    """Whether a remote with this address is a hub, not a git repository."""
    return address.startswith(HUB_SCHEMES)


class OpenShare(Request, tag="open_share", frozen=True, kw_only=True):
    """Begin to share a project's memory, or change how. `address`: the remote that carries it; `mark`: the name by
    which a hub knows the pool, "" for no change, and with a git remote for the project's repository; `name`: how others
    see the user; `new_sessions`: whether sessions that begin from now on are shared as a whole, None for no change."""

    pool: PoolField
    address: Annotated[str, msgspec.Meta(max_length=2000)] = ""
    mark: Annotated[str, msgspec.Meta(max_length=512)] = ""
    name: Annotated[str, msgspec.Meta(max_length=2000)] = ""
    new_sessions: bool | None = None
    dry_run: bool = False


class CloseShare(Request, tag="close_share", frozen=True, kw_only=True):
    """End sharing a project's memory. `withdraw`: every own line becomes gone with the next push, which is the last."""

    pool: PoolField
    withdraw: bool = False


class ListShares(Request, tag="shares", frozen=True, kw_only=True):
    """Return the shared projects, or those of `pools`, with their authors."""

    pools: Names = ()


class ReviewShare(Request, tag="review_share", frozen=True, kw_only=True):
    """List records of a shared project that the user has not decided on, newest first, each with why it may not go."""

    pool: PoolField
    limit: Annotated[int, msgspec.Meta(ge=1, le=1000)] = 100


class OfferRecords(Request, tag="offer_records", frozen=True, kw_only=True):
    """Share records, or all that may go, with the next push; or keep records (`keep`) from ever going."""

    pool: PoolField
    ids: Ids = ()
    all: bool = False
    keep: Ids = ()


class GetOutbox(Request, tag="share_outbox", frozen=True, kw_only=True):
    """List what the next push would send, and what waits, byte by byte."""

    pool: PoolField


class PrepareShare(Request, tag="prepare_share", frozen=True, kw_only=True):
    """Render the own partition, from segment `first` on, after offering what is due. With `dry_run` nothing is
    offered. `earlier`: the address of an earlier remote; the partition is rendered as far as that remote has it, so
    that what was forgotten since goes there too, and nothing is offered."""

    pool: PoolField
    first: Annotated[int, msgspec.Meta(ge=0, le=3000)] = 0
    dry_run: bool = False
    earlier: Annotated[str, msgspec.Meta(max_length=2048)] = ""


class NoteDelivered(Request, tag="note_delivered", frozen=True, kw_only=True):
    """Note that the remote has the own partition up to `count` lines of an epoch, as the client read it back.
    `earlier`: the address of an earlier remote that has it."""

    pool: PoolField
    partition: str
    epoch: int
    count: int
    commit: Annotated[str, msgspec.Meta(max_length=128)] = ""
    earlier: Annotated[str, msgspec.Meta(max_length=2048)] = ""


class RenewPartition(Request, tag="renew_partition", frozen=True, kw_only=True):
    """Begin a new own partition: the remote's head of the own one (`head`) shows lines that this home never wrote, so
    that another device writes it too. What was not delivered goes to the new one. Raises InvalidRequest if `head` shows
    no such line."""

    pool: PoolField
    head: bytes
    hashes: Annotated[tuple[bytes, ...], msgspec.Meta(max_length=3000)] = ()


class SegmentData(msgspec.Struct, frozen=True, array_like=True):
    """A segment of a partition: its number and its lines."""

    number: int
    data: bytes


class TakePartition(Request, tag="take_partition", frozen=True, kw_only=True):
    """Take what another author's partition has new. `hashes`: of all segments; `segments`: some that changed. The
    client asks again while `left` is not 0. Nothing is taken with `dry_run`."""

    pool: PoolField
    head: bytes
    hashes: Annotated[tuple[bytes, ...], msgspec.Meta(max_length=3000)] = ()
    segments: Annotated[tuple[SegmentData, ...], msgspec.Meta(max_length=TAKEN_SEGMENTS)] = ()
    dry_run: bool = False


class JudgeAuthor(Request, tag="judge_author", frozen=True, kw_only=True):
    """Say what the user thinks of an author: his name, or a prefix of his partition. His records follow."""

    pool: PoolField
    author: Annotated[str, msgspec.Meta(min_length=1, max_length=200)]
    standing: Standing


class NoteLease(Request, tag="note_lease", frozen=True, kw_only=True):
    """Note until when a hub lets this home read what others share in a project's pool, as the client just heard it
    (A1): microseconds of UTC, 0 for no longer. `withheld`: partitions that the hub shows to nobody."""

    pool: PoolField
    subject: Annotated[str, msgspec.Meta(max_length=500)] = ""
    until: Annotated[int, msgspec.Meta(ge=0, lt=2**53)] = 0
    withheld: Annotated[tuple[str, ...], msgspec.Meta(max_length=100_000)] = ()


class DisputeRecords(Request, tag="dispute_records", frozen=True, kw_only=True):
    """Retire shared records here, and tell everybody with the next push that they are wrong."""

    ids: Ids
    why: Annotated[str, msgspec.Meta(max_length=500)] = ""


class GetShareLog(Request, tag="share_log", frozen=True, kw_only=True):
    """List what authors shared, newest first by arrival. `author`: a name or a prefix of a partition, "" for all."""

    pool: PoolField
    author: Annotated[str, msgspec.Meta(max_length=200)] = ""
    limit: Annotated[int, msgspec.Meta(ge=1, le=1000)] = 100


# --- replies ---------------------------------------------------------------------------------------------------------
class AuthorState(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A partition. `lines`: those taken; `live`: records of it that memd shows; `waiting`: invalidations of lines that
    have not come; `untrusted`: live records of other authors that its author invalidates, which takes effect once the
    user trusts the author; `refused`: lines that memd did not take; `problem`: why memd refused the partition at the
    last pull; `taken_at`: RFC 3339; `own`: it is this home's."""

    partition: str
    name: str
    standing: Standing = "new"
    epoch: int = 0
    lines: int = 0
    live: int = 0
    waiting: int = 0
    untrusted: int = 0
    refused: int = 0
    problem: str = ""
    taken_at: str = ""
    closed: bool = False
    own: bool = False


class EarlierRemote(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A remote that carried a project's share before. `lines`: own lines that it has; `forgotten`: those of them that
    are forgotten here and go there with the next push."""

    address: str
    lines: int = 0
    forgotten: int = 0


class ShareState(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A shared project. `address`: the remote that carries it; `offered`, `delivered`: own lines; `waiting`: records in
    the outbox; `undecided`: records that the user may share; `forgotten`: own lines that are forgotten here and that
    the remote has until the next push. `is_open`: sharing goes on; `withdrawn`: own lines go; `earlier`: the remotes
    before the present one. `mark`: the name by which a hub knows the pool, "" for a git remote; `lease_until`: until
    when this home may read what others share through it, RFC 3339, "" for no longer; `withheld`: authors that the hub
    shows to nobody."""

    pool: str
    title: str = ""
    is_open: bool = True
    withdrawn: bool = False
    address: str = ""
    mark: str = ""
    lease_until: str = ""
    withheld: int = 0
    partition: str = ""
    name: str = ""
    new_sessions: bool = False
    since: str = ""
    offered: int = 0
    delivered: int = 0
    waiting: int = 0
    undecided: int = 0
    forgotten: int = 0
    authors: tuple[AuthorState, ...] = ()
    earlier: tuple[EarlierRemote, ...] = ()


class ShareList(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Reply to `shares`: the shared projects, open ones first."""

    shares: tuple[ShareState, ...] = ()


class ShareCandidate(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A record and why it may not be shared, "" if it may."""

    record: Record
    why_not: str = ""


class ShareReview(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Reply to `review_share`. `left`: more than were listed."""

    candidates: tuple[ShareCandidate, ...] = ()
    left: int = 0


class OutboxItem(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A line that will go: `line` is its text as it will be, but for number, time and blind. `id`: the record; `due`:
    RFC 3339, "" for the next push; `why_not`: why it stays here all the same."""

    id: str
    line: str
    due: str = ""
    why_not: str = ""


class Outbox(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Reply to `share_outbox` and `offer_records`."""

    items: tuple[OutboxItem, ...] = ()


class PreparedShare(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Reply to `prepare_share`. `head`: signed; `hashes`: of all segments; `segments`: from the asked one on; `next`:
    the first that is left, 0 for none. `added`, `retired`, `gone`: lines that the remote does not have yet; `held`:
    records that were chosen and may not go, each with why."""

    pool: str
    partition: str
    address: str
    epoch: int
    count: int
    head: bytes
    hashes: tuple[bytes, ...] = ()
    segments: tuple[SegmentData, ...] = ()
    next: int = 0
    added: int = 0
    retired: int = 0
    gone: int = 0
    held: tuple[OutboxItem, ...] = ()


class LineRefusal(msgspec.Struct, frozen=True, array_like=True):
    """A line that memd did not take, and why."""

    n: int
    why: str


class PartitionTaken(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Reply to `take_partition`. `problem`: why memd refused the whole partition, which changes nothing; `left`: lines
    that are new and were not in the request. `proposed`: records of this home that the lines retract: proposals in the
    inbox. `wanted`: numbers of segments that memd needs next."""

    partition: str
    name: str = ""
    standing: Standing = "new"
    problem: str = ""
    added: int = 0
    retired: int = 0
    proposed: int = 0
    forgotten: int = 0
    waiting: int = 0
    refused: tuple[LineRefusal, ...] = ()
    left: int = 0
    wanted: tuple[int, ...] = ()
    closed: bool = False


class ShareEvent(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A line that arrived or was sent. `at`: when, RFC 3339; `text` of a record that memd still has; `why`: the reason
    of a retraction."""

    at: str
    author: str
    partition: str
    n: int
    what: Literal["add", "inv", "gone"]
    id: str = ""
    text: str = ""
    why: str = ""


class ShareLog(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Reply to `share_log`."""

    events: tuple[ShareEvent, ...] = ()
    left: int = 0
