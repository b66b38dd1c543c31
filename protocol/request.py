"""All requests of the protocol, one class each (U8), and `AnyRequest`, their union."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from .access import Grant, ListGrants, Revoke
from .agent_outcomes import ExplainAgent, RankAgents, RateTask
from .corrections import (
    AddEvidence,
    Confirm,
    Correct,
    Decide,
    Learn,
    ListInbox,
    Pin,
    PlanReview,
    ProposeForget,
    Reopen,
    Restore,
    SetPersona,
)
from .courses import AskCourses, CloseCourse, GetAgent, GetSchool, Teach
from .curation import Curate
from .dead_letters import ListLetters, Retry
from .decay import ListFading, PutToSleep
from .document_links import ListLinks
from .event import AnyEvent, Origin, Repository, Visibility
from .governance import GetPatch, ListPatches, PublishPlaybook, SendPatch, TakePatches, TrustPi
from .history import GetHistory, GetTimeline
from .ingestion import GetDetail, ListTopics, SummariseDocument, WeighItems
from .instant import Instant
from .map import GetMap, GetRhythm
from .operation import PoolOpened, SessionOpened
from .pauses import Pause, Resume
from .policy import AcceptPolicy, CheckPolicy, GetPolicy
from .profile import GetContext, ListInjected, Printed, Profile
from .recall import Feedback, GetVectors, NeverUsed, Recall
from .record import Kind, Status
from .reflection import AskReflection, Reflect
from .remote import ConsentRemote, GetRemote, PreviewRemote, StopRemote, UseRemote
from .reply import ExportedRecord
from .request_fields import PROTOCOL, Many, Names, Request, WaitMs
from .scope import OpenAgent
from .session import FindSessions, GetSession, GetSummary, GetTranscript, HandOver, ListSessions
from .settings import ListSettings, PutSetting
from .share import (
    CloseShare,
    DisputeRecords,
    GetOutbox,
    GetShareLog,
    JudgeAuthor,
    ListShares,
    NoteDelivered,
    NoteLease,
    OfferRecords,
    OpenShare,
    PrepareShare,
    RenewPartition,
    ReviewShare,
    TakePartition,
)
from .skills import ListSkills, PlaceSkill, ProposeSkills, RetireSkill, ShareSkill, TuneSkill
from .state import ChangeState, GetState
from .weekly_report import GetReport

__all__ = ["PROTOCOL", "AnyRequest", "Request", "is_quick"]


class Capture(Request, tag="capture", frozen=True, kw_only=True):
    """Store events in the archive; the reply comes when they are on disk (W1, P-12)."""

    origin: Origin
    events: tuple[AnyEvent, ...]


class Remember(Request, tag="remember", frozen=True, kw_only=True):
    """Store a text as a record at once (W1, W2). `turn` makes a retry harmless. `pool`: `personal`, `project` for the
    one of the origin's folder, or a pool's name or unambiguous prefix; "" lets the text's subject decide (P1)."""

    text: str
    turn: str
    at: Instant
    origin: Origin
    role: Literal["user", "assistant"] = "user"
    pool: Annotated[str, msgspec.Meta(max_length=512)] = ""


class Edit(Request, tag="edit", frozen=True, kw_only=True):
    """Replace the text of a record; the id stays, the revision grows."""

    id: str
    text: str
    at: Instant
    dry_run: bool = False


class Get(Request, tag="get", frozen=True, kw_only=True):
    """Return a record by id or unambiguous prefix, at another time if one is given (Q12)."""

    id: str
    as_of: str = ""
    believed_at: str = ""


class List(Request, tag="list", frozen=True, kw_only=True):
    """List records by the time memd learned them, newest first; `after` is the cursor of the previous page. `since` and
    `until` bound that time; `as_of` and `believed_at` as in `recall` (Q12). All RFC 3339."""

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
    """Explain a record, from the captured lines to each decision on it (R4)."""

    id: str


class Journal(Request, tag="journal", frozen=True, kw_only=True):
    """List operations after the seq `after`, in order (W8). `wait_ms`: where there are none yet, memd answers when
    there are, or after this time (U9)."""

    after: Many = 0
    limit: Many = 100
    wait_ms: WaitMs = 0


class Distil(Request, tag="distil", frozen=True, kw_only=True):
    """Distil pending captures now (W2)."""


class Pools(Request, tag="pools", frozen=True, kw_only=True):
    """List all pools."""


class WhyScope(Request, tag="scope_why", frozen=True, kw_only=True):
    """Explain which pool a folder belongs to (P3). `repository` as in `recall`."""

    cwd: str
    repository: Repository | None = None


class BindScope(Request, tag="scope_bind", frozen=True, kw_only=True):
    """Bind a folder to a pool (P3): its repository at any place, or else the folder and all below.

    `pool` is an existing one, `personal`, or "" for a new one. Records of an unbound pool move too; with `join` those
    of a project's pool move too, with every other checkout.
    """

    cwd: str
    at: Instant
    pool: str = ""
    title: str = ""
    join: bool = False
    repository: Repository | None = None


class MoveRecords(Request, tag="scope_move", frozen=True, kw_only=True):
    """Move records to another pool, by id or unambiguous prefix; they keep their history (P3). With `copy` the records
    stay, and the pool gets copies that name them (R9). With `visibility` instead of `pool` they stay in their pool and
    more or fewer people may see them, one step up at a time (P7)."""

    ids: tuple[str, ...]
    pool: str = ""
    copy: bool = False
    visibility: Visibility | Literal[""] = ""
    dry_run: bool = False


class LeaveProject(Request, tag="leave", frozen=True, kw_only=True):
    """Leave a project, or return to it with `back` (P4): by its folder or by `pool`."""

    at: Instant
    cwd: str = ""
    pool: str = ""
    back: bool = False
    repository: Repository | None = None


class GetStatus(Request, tag="status", frozen=True, kw_only=True):
    """Return last outcomes, backlog, failures and sizes (U6)."""


class ListActivity(Request, tag="activity", frozen=True, kw_only=True):
    """List what the daemon did since event `after`, of the last events of this run. `wait_ms` as in `journal` (U9)."""

    after: Many = 0
    limit: Many = 100
    wait_ms: WaitMs = 0


class GetJob(Request, tag="job", frozen=True, kw_only=True):
    """Return the progress of a job."""

    id: str


class Verify(Request, tag="verify", frozen=True, kw_only=True):
    """Check hash chain, checksums, replay and quotes, as a job whose report has a verdict (W8, U3)."""


class Rebuild(Request, tag="rebuild", frozen=True, kw_only=True):
    """Rebuild one or all projections from the journal, as a job; reads use the old one meanwhile (U3)."""

    name: str = "all"


class ListModels(Request, tag="models", frozen=True, kw_only=True):
    """List models and the progress of a change of model (P-14)."""


class UseModel(Request, tag="use_model", frozen=True, kw_only=True):
    """Check a model's folder (an absolute path, or "default") and select it, as a job (P-14). memd then embeds all
    records again in the background; the old model searches until this is complete."""

    folder: str


class Backup(Request, tag="backup", frozen=True, kw_only=True):
    """Write a backup, as a job: to `to`, or to memd's folder, which keeps the newest `keep` (0: as configured)."""

    to: str = ""
    keep: int = 0


class Backups(Request, tag="backups", frozen=True, kw_only=True):
    """List finished backups in a folder, by default memd's own."""

    folder: str = ""


class DiskUsage(Request, tag="du", frozen=True, kw_only=True):
    """Return disk usage by part, with ways to reduce it (P-20)."""


class Expire(Request, tag="expire", frozen=True, kw_only=True):
    """Apply the archive's retention, as a job; with `dry_run` only count (T10)."""

    dry_run: bool = False


class Export(Request, tag="export", frozen=True, kw_only=True):
    """Return a page of records with their history; `after` is the cursor of the previous page (P-25). `shareable`: only
    records that may leave by `memd share` too, without quotes (A2, W5)."""

    pools: Names = ()
    after: str = ""
    limit: Many = 200
    shareable: bool = False


class ImportRecords(Request, tag="import_records", frozen=True, kw_only=True):
    """Import exported records under their ids; an existing record stays as it is (P-25)."""

    records: tuple[ExportedRecord, ...]
    sessions: tuple[SessionOpened, ...] = ()
    pools: tuple[PoolOpened, ...] = ()


class _ForgetSelection(Request, frozen=True, kw_only=True):
    """Exactly one field is set: records by id, all data with the words of `query`, a session, a source, or a dead
    letter by number. No request forgets everything."""

    ids: tuple[str, ...] = ()
    query: str = ""
    session: str = ""
    source: str = ""
    letter: Many = 0


class PreviewForget(_ForgetSelection, tag="preview_forget", frozen=True, kw_only=True):
    """Report what `forget` would delete."""


class Forget(_ForgetSelection, tag="forget", frozen=True, kw_only=True):
    """Delete data permanently, as a job (T10)."""


class Undo(Request, tag="undo", frozen=True, kw_only=True):
    """Hide the records of sessions, as a job: each named by its document, session or source."""

    names: tuple[str, ...]


class Redo(Request, tag="redo", frozen=True, kw_only=True):
    """Show again the records that `undo` hid, as a job."""

    names: tuple[str, ...]


class Compact(Request, tag="compact", frozen=True, kw_only=True):
    """Free the disk space of removed entries, as a job (P-20)."""


class ScanSecrets(Request, tag="scan", frozen=True, kw_only=True):
    """Search all captures and records with the current secret rules, as a job (W5, P-18). Without `dry_run` memd
    replaces each secret by a placeholder in all files."""

    dry_run: bool = True


class Stop(Request, tag="stop", frozen=True, kw_only=True):
    """Finish acknowledged work and end the daemon."""


_Answers = Recall | GetVectors | Feedback | NeverUsed | Profile | Printed | ListInjected | GetContext
_Records = Get | List | Why | Journal | Export | ImportRecords | GetHistory | GetTimeline | ListLinks
_Overviews = GetMap | GetRhythm
_Sessions = (
    ListSessions
    | GetSession
    | GetTranscript
    | GetSummary
    | FindSessions
    | HandOver
    | GetState
    | ChangeState
    | Reflect
    | AskReflection
)
_Changes = (
    Capture | Remember | Edit | Correct | Restore | Pin | PlanReview | Learn | AddEvidence | SetPersona | Undo | Redo
)
_Decisions = Confirm | ProposeForget | ListInbox | Decide | Reopen
_Forgetting = PreviewForget | Forget | Compact | ScanSecrets | Expire | PutToSleep | ListFading
_PoolRequests = Pools | WhyScope | BindScope | MoveRecords | LeaveProject | OpenAgent
_Access = Grant | Revoke | ListGrants
_Distillation = Distil | ListLetters | Retry | ListModels | UseModel
_Ingestion = WeighItems | SummariseDocument | GetDetail | ListTopics
_Remote = UseRemote | StopRemote | ConsentRemote | PreviewRemote | GetRemote
_Sharing = (
    OpenShare
    | CloseShare
    | ListShares
    | ReviewShare
    | OfferRecords
    | GetOutbox
    | PrepareShare
    | NoteDelivered
    | NoteLease
    | RenewPartition
    | TakePartition
    | JudgeAuthor
    | DisputeRecords
    | GetShareLog
)
_Governance = ListPatches | GetPatch | SendPatch | PublishPlaybook | TakePatches | TrustPi | Curate | GetReport
_Policy = GetPolicy | CheckPolicy | AcceptPolicy
_Skills = ListSkills | PlaceSkill | RetireSkill | ProposeSkills | TuneSkill | ShareSkill
_Agents = Teach | AskCourses | GetSchool | CloseCourse | GetAgent | ExplainAgent | RateTask | RankAgents
_Stores = GetJob | Verify | Rebuild | Backup | Backups | DiskUsage
_Daemon = GetStatus | ListActivity | Stop | Pause | Resume | ListSettings | PutSetting
_Memory = _Answers | _Records | _Overviews | _Sessions | _Changes | _Decisions | _Forgetting | _PoolRequests | _Access
_Shared = _Sharing | _Governance | _Policy | _Skills | _Agents
AnyRequest = _Memory | _Distillation | _Ingestion | _Remote | _Shared | _Stores | _Daemon

QUICK = frozenset[type[Request]]({Recall, Profile, Get, Distil, Pools, GetStatus, GetJob, Stop})
"""Requests that memd answers from memory; a client waits a shorter time for them."""


def is_quick(request: Request) -> bool:
    """Return whether memd answers a request from memory; a deep recall reads the archive, a profile
    of another time the journal."""
    is_past = isinstance(request, Profile) and bool(request.as_of or request.believed_at)
    return type(request) in QUICK and not is_past and not (isinstance(request, Recall) and request.deep)
