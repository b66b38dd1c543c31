"""What the daemon answers: one typed value for each request, inside `{ok, rid, data}` or `{ok, rid, error}`.

Comes in: a result or an error. Goes out: a frozen value that every client shows the same way (U8). Invariant: an
answer that leaves something out says so (`abstained`, `filtered`, `pending`; Q10).
"""

from __future__ import annotations

from typing import Literal

import msgspec

from .access import Grants, PassGranted, Revocation
from .agent import Agent
from .keeping import BackupList, DiskUse
from .lifetime import AnyLifetimeData
from .operation import AnyOperation, Decision, PoolOpened, SessionOpened
from .profile import ContextPackage, Injections, PrintNoted, ProfileText
from .recall import FeedbackTaken, Heard, Hit, Line, Nearest, Recalled, UnusedList
from .record import Record
from .running import DeadLetters, Inbox, Pauses, PauseState, Proposed, Skip
from .scope import Bound, Left, RecordsMoved, Scope
from .session import SessionOutcome, SessionPage
from .settings import SettingList

__all__ = ["Heard", "Hit", "Line", "Nearest", "Recalled"]


class Problem(msgspec.Struct, frozen=True, omit_defaults=True):
    """The wire form of an error: stable code, message, what to do next."""

    code: str
    message: str
    hint: str = ""


class Refusal(msgspec.Struct, frozen=True):
    """An event that was not taken, and why; the others of its request were."""

    turn: str
    problem: Problem


class Taken(msgspec.Struct, frozen=True, kw_only=True):
    """Of a `capture`: durable now (`accepted`), known before (`duplicate`), rewritten (`changed`), refused.

    `forgotten`: turns that the user had forgotten; they are not taken again (T10). `skipped`: turns that are not taken
    because of a pause, an ignored folder or because memd is disabled, and `why`: nobody need send them again.
    """

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
    """Of a `remember` or an `edit`: the record, as it can be recalled from now on."""

    record: Record
    duplicate: bool = False


class Page(msgspec.Struct, frozen=True, kw_only=True):
    """Of a `list`: records, and the cursor of the next page ("" at the end)."""

    records: tuple[Record, ...]
    next: str = ""
    total: int = 0


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """One operation that touched a record: when, what, why."""

    seq: int
    at: int
    kind: str
    rev: int = 0
    by: str = ""
    decision: Decision | None = None
    reason: str = ""


class Explained(msgspec.Struct, frozen=True, kw_only=True):
    """Of a `why`: the record, the captured lines, the session, every operation, what it replaced, what replaced it, and
    what would change it ("" where nothing is said of that). `held_by`: what stands for it now, where that is another
    than what replaced it at first."""

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
    """One journal entry, for `memd tail`."""

    seq: int
    at: int
    operation: AnyOperation


class Journaled(msgspec.Struct, frozen=True, kw_only=True):
    """Of a `journal`: entries in order, and the journal's last seq."""

    entries: tuple[Logged, ...]
    last: int


class PoolSummary(msgspec.Struct, frozen=True, kw_only=True):
    """A pool and what lies in it; an agent's with its role and perspectives (P5)."""

    pool: str
    title: str
    counts: dict[str, int]
    role: str = ""
    perspectives: tuple[str, ...] = ()


class PoolList(msgspec.Struct, frozen=True, kw_only=True):
    """Of a `pools`."""

    pools: tuple[PoolSummary, ...]


class Outcome(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The last time something happened, with its reason (U6); `at` is "" if it never did."""

    at: str = ""
    what: str = ""


class Reembedding(msgspec.Struct, frozen=True, kw_only=True):
    """`done` of `total` records have a vector of that model. The model before searches meanwhile; where it is gone,
    records without a vector are found `by_words` alone. `problem`: why it does not get on (P-14)."""

    model: str
    done: int
    total: int
    by_words: bool = False
    problem: str = ""


class ModelState(msgspec.Struct, frozen=True, kw_only=True):
    """A model's folder: is it the `package`'s own, does it search now, is it the one that was chosen."""

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
    """Of `models`."""

    models: tuple[ModelState, ...]
    reembedding: Reembedding | None = None


class StatusText(msgspec.Struct, frozen=True, kw_only=True):
    """Of a `status`: one screen of actual outcomes (U6)."""

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
    """When each host was last heard, as far as this daemon knows."""
    sessions_open: int = 0


class JobState(msgspec.Struct, frozen=True, kw_only=True):
    """Of a request that starts long work, and of `job`: ask again until `state` is not `running`.

    `done` of `total` in the work's own unit (0 = not known yet); `report` is what there is to say at the end.
    """

    id: str
    name: str
    state: Literal["running", "done", "failed"]
    done: int = 0
    total: int = 0
    detail: str = ""
    report: dict[str, str | int | float | list[str]] = {}
    problem: Problem | None = None


class Decided(msgspec.Struct, frozen=True, kw_only=True):
    """Of `decide`: how many proposals are open now; the job that forgets, where that is what was accepted."""

    open: int
    job: JobState | None = None


class ExportedRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A record as it is, with every operation that touched it."""

    record: Record
    changes: tuple[Change, ...] = ()


class ExportPage(msgspec.Struct, frozen=True, kw_only=True):
    """Of `export`: records with their history, their sessions and pools, the next cursor, what was taken out (P-18)."""

    records: tuple[ExportedRecord, ...]
    sessions: tuple[SessionOpened, ...]
    pools: tuple[PoolOpened, ...]
    next: str = ""
    total: int = 0
    screened: dict[str, int] = {}


class RecordsImported(msgspec.Struct, frozen=True, kw_only=True):
    """Of `import_records`: added now, here already, here with other words (the one here stays), refused and why."""

    added: int
    known: int
    differing: int
    refused: tuple[Refusal, ...] = ()


class Going(msgspec.Struct, frozen=True, kw_only=True):
    """A record that `forget` would take or change, on one line. `why`: `chosen`, or `source` for one whose sources go,
    or `loses a source` for one that stays on what is left."""

    id: str
    type: str
    status: str
    line: str
    why: str


class ForgetPlan(msgspec.Struct, frozen=True, kw_only=True):
    """Of `preview_forget`: what would go. `records` are the first of `record_count`; captures may hold more than one.

    `documents` are the sessions whose turns go: their hosts may hold transcripts that memd can't reach.
    """

    records: tuple[Going, ...]
    record_count: int
    captures: int
    documents: tuple[str, ...]
    spooled: int = 0


class Done(msgspec.Struct, frozen=True, kw_only=True):
    """Of `distil` and `stop`: how many captures are still pending."""

    pending: int


AnyData = (
    Taken
    | Remembered
    | Recalled
    | ProfileText
    | Page
    | Explained
    | Journaled
    | PoolList
    | Scope
    | Bound
    | RecordsMoved
    | Agent
    | Left
    | StatusText
    | JobState
    | BackupList
    | DiskUse
    | ExportPage
    | RecordsImported
    | ModelList
    | ForgetPlan
    | Done
    | Pauses
    | DeadLetters
    | Proposed
    | Inbox
    | Decided
    | AnyLifetimeData
    | PrintNoted
    | Injections
    | ContextPackage
    | PassGranted
    | Revocation
    | Grants
    | SessionPage
    | SessionOutcome
    | SettingList
    | FeedbackTaken
    | UnusedList
    | Record
)
