"""Every request of the protocol, one class each (U8): frozen tagged values; `intent.py` holds their common fields."""

from __future__ import annotations

from typing import Literal

from .access import Grant, ListGrants, Revoke
from .agent import OpenAgent
from .event import AnyEvent, Origin, Repository
from .instant import Instant
from .intent import PROTOCOL, Many, Names, Request
from .lifetime import AnyLifetime
from .operation import PoolOpened, SessionOpened
from .profile import GetContext, ListInjected, Printed, Profile
from .recall import Feedback, NeverUsed, Recall
from .record import Kind, Status
from .reply import ExportedRecord
from .running import Decide, ListInbox, ListLetters, Pause, Pin, ProposeForget, Resume, Retry
from .session import GetSession, ListSessions
from .settings import ListSettings, PutSetting

__all__ = ["PROTOCOL", "AnyRequest", "Request", "is_quick"]


class Capture(Request, tag="capture", frozen=True, kw_only=True):
    """Take these events into the archive; acknowledged when they are durable (W1, P-12)."""

    origin: Origin
    events: tuple[AnyEvent, ...]


class Remember(Request, tag="remember", frozen=True, kw_only=True):
    """Remember this text: a record before the acknowledgement (W1, W2). `turn` makes a retry harmless."""

    text: str
    turn: str
    at: Instant
    origin: Origin
    role: Literal["user", "assistant"] = "user"


class Edit(Request, tag="edit", frozen=True, kw_only=True):
    """The user puts a record into other words; the id stays, the revision grows."""

    id: str
    text: str
    at: Instant


class Get(Request, tag="get", frozen=True, kw_only=True):
    """One record by id, or by an unambiguous beginning of it; as it stood at another time, if one is given (Q12)."""

    id: str
    as_of: str = ""
    believed_at: str = ""


class List(Request, tag="list", frozen=True, kw_only=True):
    """Records in order of learning, newest first; `after` is the cursor of the page before.

    `since` and `until` bound when they were learnt; `as_of` and `believed_at` as in `recall` (Q12). All RFC 3339.
    """

    pools: Names = ()
    kinds: tuple[Kind, ...] = ()
    statuses: tuple[Status, ...] = ()
    type: str = ""
    document: str = ""
    key: str = ""
    since: str = ""
    until: str = ""
    as_of: str = ""
    believed_at: str = ""
    after: str = ""
    limit: Many = 50


class Why(Request, tag="why", frozen=True, kw_only=True):
    """The whole way of a record, from the captured line to each decision on it (R4)."""

    id: str


class Journal(Request, tag="journal", frozen=True, kw_only=True):
    """Operations after `after`, in order: what `memd tail` shows and a subscriber asks after a gap (W8)."""

    after: Many = 0
    limit: Many = 100


class Distil(Request, tag="distil", frozen=True, kw_only=True):
    """Do not wait for the session's end or for idleness: distil what is pending (W2)."""


class Pools(Request, tag="pools", frozen=True, kw_only=True):
    """Every pool, with its title and its number of records by status."""


class WhyScope(Request, tag="scope_why", frozen=True, kw_only=True):
    """Which pool a folder belongs to, by which evidence (P3); `repository` as in `recall`."""

    cwd: str
    repository: Repository | None = None


class BindScope(Request, tag="scope_bind", frozen=True, kw_only=True):
    """The user says which pool a folder belongs to (P3): its repository wherever it lies, or the folder and all below.

    `pool` is one that there is, or `personal`, or "" for a new one of its own. What lies in an unbound pool comes
    along; a project's own memory comes along with `join`, and every other checkout of it too.
    """

    cwd: str
    at: Instant
    pool: str = ""
    title: str = ""
    join: bool = False
    repository: Repository | None = None


class MoveRecords(Request, tag="scope_move", frozen=True, kw_only=True):
    """The user puts records into another pool, by ids or beginnings of them; their history stays (P3)."""

    ids: tuple[str, ...]
    pool: str


class LeaveProject(Request, tag="leave", frozen=True, kw_only=True):
    """Close the pointer to a project, or open it again with `back` (P4): by its folder, or by `pool`."""

    at: Instant
    cwd: str = ""
    pool: str = ""
    back: bool = False
    repository: Repository | None = None


class GetStatus(Request, tag="status", frozen=True, kw_only=True):
    """Actual outcomes: what was last captured, distilled, answered; backlog, failures, sizes (U6)."""


class GetJob(Request, tag="job", frozen=True, kw_only=True):
    """How far a long piece of work has come: verify, rebuild, backup, compact, forget."""

    id: str


class Verify(Request, tag="verify", frozen=True, kw_only=True):
    """Check chain, checksums, replay and quotes, a job; its report has a verdict (W8, U3)."""


class Rebuild(Request, tag="rebuild", frozen=True, kw_only=True):
    """Make a projection anew from the journal, or all of them, a job; reads go on against the old one (U3)."""

    name: str = "all"


class ListModels(Request, tag="models", frozen=True, kw_only=True):
    """The models there are: which one searches, which one is chosen, how far the way between them is (P-14)."""


class UseModel(Request, tag="use_model", frozen=True, kw_only=True):
    """Check a model's folder (an absolute path, "default" for the package's own) and choose it, a job (P-14).

    Records are embedded again in the background after the job; the present model searches until all of them are.
    """

    folder: str


class Backup(Request, tag="backup", frozen=True, kw_only=True):
    """Take a backup now, a job: into `to`, or memd's own folder, where the newest `keep` stay (0 = as configured)."""

    to: str = ""
    keep: int = 0


class Backups(Request, tag="backups", frozen=True, kw_only=True):
    """The finished backups in a folder, by default memd's own."""

    folder: str = ""


class DiskUsage(Request, tag="du", frozen=True, kw_only=True):
    """Bytes on disk by part, and what would free some (P-20)."""


class Expire(Request, tag="expire", frozen=True, kw_only=True):
    """Apply the archive's retention now, a job; with `dry_run` only count (T10)."""

    dry_run: bool = False


class Export(Request, tag="export", frozen=True, kw_only=True):
    """Records of these pools with their history, in slices; `after` is the cursor of the page before (P-25)."""

    pools: Names = ()
    after: str = ""
    limit: Many = 200


class ImportRecords(Request, tag="import_records", frozen=True, kw_only=True):
    """Bring exported records in, under the ids they have; a record that is here stays as it is (P-25)."""

    records: tuple[ExportedRecord, ...]
    sessions: tuple[SessionOpened, ...] = ()
    pools: tuple[PoolOpened, ...] = ()


class PreviewForget(Request, tag="preview_forget", frozen=True, kw_only=True):
    """What `forget` would take, without touching it; the same fields."""

    ids: tuple[str, ...] = ()
    query: str = ""
    session: str = ""
    source: str = ""
    letter: Many = 0


class Forget(Request, tag="forget", frozen=True, kw_only=True):
    """Forget for good, a job (T10): records by id, whatever holds these words, a session, all of one source, or what
    could not be distilled, by its number (`dead_letters`).

    Exactly one of them is given; there is no request that forgets everything.
    """

    ids: tuple[str, ...] = ()
    query: str = ""
    session: str = ""
    source: str = ""
    letter: Many = 0


class Undo(Request, tag="undo", frozen=True, kw_only=True):
    """Take sessions back, a job: each named by its document, its session or its source; `redo` brings it back."""

    names: tuple[str, ...]


class Redo(Request, tag="redo", frozen=True, kw_only=True):
    """Bring back what `undo` took back, a job."""

    names: tuple[str, ...]


class Compact(Request, tag="compact", frozen=True, kw_only=True):
    """Give the disk what removed entries still take of it, a job (P-20)."""


class ScanSecrets(Request, tag="scan", frozen=True, kw_only=True):
    """Look at all captures and records with the rules of today, a job (W5, P-18).

    Without `dry_run` each secret becomes a placeholder wherever it stands, and no byte of it stays.
    """

    dry_run: bool = True


class Stop(Request, tag="stop", frozen=True, kw_only=True):
    """Finish what is acknowledged and end."""


AnyRequest = (
    Capture
    | Remember
    | Edit
    | Recall
    | Profile
    | Get
    | List
    | Why
    | Journal
    | Distil
    | Pools
    | WhyScope
    | BindScope
    | MoveRecords
    | LeaveProject
    | OpenAgent
    | GetStatus
    | GetJob
    | Verify
    | Rebuild
    | ListModels
    | UseModel
    | Backup
    | Backups
    | DiskUsage
    | Expire
    | Export
    | ImportRecords
    | PreviewForget
    | Forget
    | Undo
    | Redo
    | Compact
    | ScanSecrets
    | Stop
    | Pause
    | Resume
    | ListLetters
    | Retry
    | ProposeForget
    | ListInbox
    | Decide
    | Pin
    | Feedback
    | NeverUsed
    | AnyLifetime
    | Printed
    | ListInjected
    | GetContext
    | Grant
    | Revoke
    | ListGrants
    | ListSessions
    | GetSession
    | ListSettings
    | PutSetting
)

QUICK = frozenset[type[Request]]({Recall, Profile, Get, Distil, Pools, GetStatus, GetJob, Stop})
"""Requests that memd answers from memory; a client waits for these a shorter time."""


def is_quick(request: Request) -> bool:
    """Whether memd answers a request from memory: a deep recall reads the archive."""
    return type(request) in QUICK and not (isinstance(request, Recall) and request.deep)
