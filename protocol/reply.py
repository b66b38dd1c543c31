"""The data of replies, `{ok, rid, data}`, one type per request (U8), and of errors, `{ok, rid, error}`."""

from __future__ import annotations

from typing import Literal

import msgspec

from .access import Grants, PassGranted, Revocation
from .agent_outcomes import AgentOutcomes, AgentRanking
from .corrections import Inbox, JudgedRecord, Judgement, Proposed, RecordList
from .courses import AgentState, CoursesAsked, CourseState, CourseTaught, School
from .curation import Curation
from .dead_letters import DeadLetters
from .decay import FadingList, Slumbered
from .document_links import LinkList
from .governance import PatchBytes, PatchesTaken, PatchList
from .history import History
from .ingestion import Detail, TopicList
from .map import MemoryMap, Rhythm
from .operation import AnyOperation, Decision, PoolOpened, SessionOpened
from .pauses import Pauses, PauseState, Skip
from .policy import PolicyState
from .profile import ContextPackage, Injections, PrintNoted, ProfileText
from .recall import FeedbackTaken, Heard, Hit, Line, Nearest, Recalled, TextVectors, UnusedList
from .record import Record
from .reflection import Reflection, ReflectionQuestion
from .remote import RemotePreview, RemoteState, RemoteSummary
from .scope import Agent, Bound, Left, RecordsMoved, Scope
from .session import HandoverTaken, SessionOutcome, SessionPage, SessionsFound, SessionTurns, Summary
from .settings import SettingList
from .share import Outbox, PartitionTaken, PreparedShare, ShareList, ShareLog, ShareReview, ShareState
from .skills import PlacedSkill, SharedSkill, SkillList, SkillProposals, SkillTuning
from .state import CurrentState
from .weekly_report import WeeklyReport

__all__ = ["Heard", "Hit", "Line", "Nearest", "Recalled"]


class Problem(msgspec.Struct, frozen=True, omit_defaults=True):
    """The wire form of an error."""

    code: str
    message: str
    hint: str = ""


class Refusal(msgspec.Struct, frozen=True):
    """An event that memd rejected; it stored the others of the request."""

    turn: str
    problem: Problem


class Taken(msgspec.Struct, frozen=True, kw_only=True):
    """Reply to `capture`, with numbers of events. `changed`: replaced an earlier version; `forgotten`: turns that the
    user had forgotten (T10); `skipped`: not stored because of `why`, and final: a client need not send them again."""

    accepted: int
    duplicate: int
    changed: int
    refused: tuple[Refusal, ...]
    pool: str
    pending: int
    forgotten: int = 0
    skipped: int = 0
    why: Skip = ""


class Remembered(msgspec.Struct, frozen=True, kw_only=True):
    """Reply to `remember`, `edit`, `pin` and `correct`. `pool_open`: the record's pool is decided later, by what the
    text is about; until then it is `personal`. `dry_run`: nothing was changed, and `record` is what it would be."""

    record: Record
    duplicate: bool = False
    pool_open: bool = False
    dry_run: bool = False


class Page(msgspec.Struct, frozen=True, kw_only=True):
    """Reply to `list`. `next`: the cursor of the next page, "" at the end."""

    records: tuple[Record, ...]
    next: str = ""
    total: int = 0


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """One operation that changed a record."""

    seq: int
    at: int
    kind: str
    rev: int = 0
    by: str = ""
    decision: Decision | None = None
    reason: str = ""


class Explained(msgspec.Struct, frozen=True, kw_only=True):
    """Reply to `why`. `quote_holds`: the archive still has the quote, None if it cannot tell; `held_by`: the record's
    current successor, if it is not `replaced_by`; `changes_if`: its change condition in words, or ""."""

    record: Record
    lines: tuple[Line, ...]
    quote_holds: bool | None
    session: str
    project: str
    changes: tuple[Change, ...]
    replaced: tuple[Record, ...] = ()
    replaced_by: Record | None = None
    held_by: Record | None = None
    changes_if: str = ""


class Logged(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One journal entry."""

    seq: int
    at: int
    operation: AnyOperation


class Journaled(msgspec.Struct, frozen=True, kw_only=True):
    """Reply to `journal`: entries in order, and the journal's last seq."""

    entries: tuple[Logged, ...]
    last: int


class PoolSummary(msgspec.Struct, frozen=True, kw_only=True):
    """A pool with its records counted by status; an agent's has a role and perspectives (P5)."""

    pool: str
    title: str
    counts: dict[str, int]
    role: str = ""
    perspectives: tuple[str, ...] = ()


class PoolList(msgspec.Struct, frozen=True, kw_only=True):
    """Reply to `pools`."""

    pools: tuple[PoolSummary, ...]


class Outcome(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The last time of something, "" for never, with its reason (U6)."""

    at: str = ""
    what: str = ""


class Reembedding(msgspec.Struct, frozen=True, kw_only=True):
    """Progress of a change of model (P-14): `done` of `total` records have a vector of the new `model`. `by_words`: the
    old model is missing, so memd finds the other records by their words only. `problem`: why it stopped."""

    model: str
    done: int
    total: int
    by_words: bool = False
    problem: str = ""


class ModelState(msgspec.Struct, frozen=True, kw_only=True):
    """A model. `package`: it belongs to memd; `searches`: memd uses it now; `wanted`: the user selected it."""

    id: str = ""
    version: str = ""
    dimension: int = 0
    size_bytes: int = 0
    folder: str
    package: bool = False
    searches: bool = False
    wanted: bool = False
    problem: str = ""


class ModelList(msgspec.Struct, frozen=True, kw_only=True):
    """Reply to `models`."""

    models: tuple[ModelState, ...]
    reembedding: Reembedding | None = None


class ActivityEvent(msgspec.Struct, frozen=True, kw_only=True):
    """Something that the daemon did, such as `captured`, `distilling`, `distilled`, `failed`, `injected`, `recalled`,
    `refused` or `skipped`; `what`: with which session or for which reason."""

    seq: int
    at: str
    event: str
    what: str


class ActivityPage(msgspec.Struct, frozen=True, kw_only=True):
    """Reply to `activity`: events in order, and the last event's seq. Seqs begin at 1 when the daemon starts."""

    events: tuple[ActivityEvent, ...]
    last: int


class StatusText(msgspec.Struct, frozen=True, kw_only=True):
    """Reply to `status` (U6). `hosts`: the time of each host's last capture; `is_removed`: someone removed or replaced
    the data folder while the daemon ran, which rejects writes since then."""

    version: str
    protocol: int
    pid: int
    started_at: str
    data_dir: str
    model: str
    journal_seq: int
    archive_seq: int
    pending: int
    unembedded: int = 0
    worker: str
    records: dict[str, int]
    pools: int
    last: dict[str, Outcome]
    failures: tuple[str, ...]
    size_bytes: dict[str, int]
    troubles: tuple[str, ...] = ()
    reembedding: Reembedding | None = None
    pauses: tuple[PauseState, ...] = ()
    ignored: tuple[str, ...] = ()
    inbox: int = 0
    hosts: dict[str, str] = {}
    sessions_open: int = 0
    is_removed: bool = False
    remote: RemoteSummary | None = None


class JobState(msgspec.Struct, frozen=True, kw_only=True):
    """Reply to a request that starts a job, and to `job`. `done` of `total` are in the job's unit, 0 for unknown."""

    id: str
    name: str
    state: Literal["running", "done", "failed"]
    done: int = 0
    total: int = 0
    detail: str = ""
    report: dict[str, str | int | float | list[str]] = {}
    problem: Problem | None = None


class Decided(msgspec.Struct, frozen=True, kw_only=True):
    """Reply to `decide` and `reopen`. `open`: number of open proposals; `job`: deletes, if the user accepted a
    deletion. `records`: those that change, with `dry_run` those that would."""

    open: int
    job: JobState | None = None
    records: tuple[JudgedRecord, ...] = ()
    dry_run: bool = False


class BackupInfo(msgspec.Struct, frozen=True, kw_only=True):
    """A finished backup. `layout`: layout version of its stores, `current`: this memd writes that layout. The copy that
    a migration makes is a backup too, with `version` "" and -1 for a seq that was not counted."""

    name: str
    at: str
    version: str
    journal_seq: int
    archive_seq: int
    size_bytes: int
    layout: int = 0
    current: bool = True


class BackupList(msgspec.Struct, frozen=True, kw_only=True):
    """Reply to `backups`: the finished backups in a folder, oldest first."""

    folder: str
    backups: tuple[BackupInfo, ...]


class DiskPart(msgspec.Struct, frozen=True, kw_only=True):
    """Disk usage of one part of memd. `freed_by`: the command that frees `free_bytes`, "" for none."""

    name: str
    size_bytes: int
    free_bytes: int = 0
    freed_by: str = ""


class DiskUse(msgspec.Struct, frozen=True, kw_only=True):
    """Reply to `du`: each file of the data and state folders is in exactly one part."""

    parts: tuple[DiskPart, ...]
    total_bytes: int


class ExportedRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A record with every operation that changed it."""

    record: Record
    changes: tuple[Change, ...] = ()


class ExportPage(msgspec.Struct, frozen=True, kw_only=True):
    """Reply to `export`. `next`: the cursor of the next page; `screened`: redacted secrets by rule (P-18); `stayed`:
    how many of this page's records may not leave, by the reason, if the export is to be shareable."""

    records: tuple[ExportedRecord, ...]
    sessions: tuple[SessionOpened, ...]
    pools: tuple[PoolOpened, ...]
    next: str = ""
    total: int = 0
    screened: dict[str, int] = {}
    stayed: dict[str, int] = {}


class RecordsImported(msgspec.Struct, frozen=True, kw_only=True):
    """Reply to `import_records`. `differing`: records that exist with another text and stay as they are."""

    added: int
    known: int
    differing: int
    refused: tuple[Refusal, ...] = ()


class Going(msgspec.Struct, frozen=True, kw_only=True):
    """A record that `forget` would delete or change. `why`: `chosen`; `source` if all its sources go; `loses a source`
    if it stays and rests on the others."""

    id: str
    type: str
    status: str
    line: str
    why: str


class ForgetPlan(msgspec.Struct, frozen=True, kw_only=True):
    """Reply to `preview_forget`. `records`: the first of `record_count`; `documents`: sessions that would lose turns,
    whose hosts may have transcripts that memd cannot reach; `names`: journal entries that would lose a name, a title, a
    folder or a reason with the words of the query."""

    records: tuple[Going, ...]
    record_count: int
    captures: int
    documents: tuple[str, ...]
    spooled: int = 0
    names: int = 0


class Done(msgspec.Struct, frozen=True, kw_only=True):
    """Reply to `distil` and `stop`: number of pending captures."""

    pending: int


_AskData = Recalled | TextVectors | FeedbackTaken | UnusedList | ProfileText | PrintNoted | Injections | ContextPackage
_RecordData = Record | Page | Explained | Journaled | ExportPage | RecordsImported | History | RecordList | LinkList
_ChangeData = Taken | Remembered | Judgement | Proposed | Inbox | Decided | ForgetPlan | Slumbered | FadingList
_PoolData = PoolList | Scope | Bound | RecordsMoved | Left | Agent | PassGranted | Revocation | Grants
_ServiceData = StatusText | Done | JobState | ModelList | BackupList | DiskUse | DeadLetters | Pauses | SettingList
_SessionData = (
    ActivityPage
    | SessionPage
    | SessionOutcome
    | SessionTurns
    | Summary
    | SessionsFound
    | HandoverTaken
    | CurrentState
    | Reflection
    | ReflectionQuestion
    | RemoteState
    | RemotePreview
)
_IngestionData = Detail | TopicList
_OverviewData = MemoryMap | Rhythm
_SharingData = ShareList | ShareState | ShareReview | Outbox | PreparedShare | PartitionTaken | ShareLog
_GovernanceData = PatchList | PatchBytes | PatchesTaken | Curation | PolicyState | WeeklyReport
_SkillData = SkillList | PlacedSkill | SkillProposals | SkillTuning | SharedSkill
_AgentData = CourseTaught | CoursesAsked | School | CourseState | AgentState | AgentOutcomes | AgentRanking
AnyData = (
    _AskData
    | _RecordData
    | _ChangeData
    | _PoolData
    | _ServiceData
    | _SessionData
    | _IngestionData
    | _OverviewData
    | _SharingData
    | _GovernanceData
    | _SkillData
    | _AgentData
)
