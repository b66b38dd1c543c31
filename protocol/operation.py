"""The journal's operations: past-tense facts about the memory, one frozen class each.

Invariants: applying an operation is pure (no clock, randomness or model); a payload names other records by id and never
quotes them; an unknown kind decodes to `Unknown` and every projection skips it. Tags are written by hand, so renaming a
class never changes stored bytes.
"""

from __future__ import annotations

from functools import cache
from typing import Literal, get_args

import msgspec

from .agent_outcomes import TaskOutcome
from .errors import JournalCorrupt
from .event import Origin
from .fading import Archived, Counted, FeedbackGiven, Folded, Operation, Released, Restored, Reviewed, Slept
from .record import Evidence, Layer, Record, Status
from .remote import CallOutcome

VERSION = 1
"""Version of the operations' layout. memd upcasts older payloads on read."""


class Neighbour(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A record that *reconcile* compared with a candidate: its revision then, the similarity in [0, 1], the verdict."""

    id: str
    rev: int
    similarity: float
    label: str


class Step(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The action of one stage on a candidate, in words for `memd why`."""

    stage: str
    what: str


class Decision(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """Why memd wrote an operation (W6). `rounds`: how often the worker judged the candidate."""

    action: Literal["add", "update", "invalidate", "noop"]
    reason: str
    steps: tuple[Step, ...] = ()
    neighbours: tuple[Neighbour, ...] = ()
    rounds: int = 1


class Retirement(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A record that an operation retires; `valid_to` is world time."""

    id: str
    valid_to: str
    reason: str


class Failure(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A dead letter: a capture (archive seq) that a stage could not distil after its retries (P-12)."""

    seq: int
    document: str
    turn: str
    stage: str
    error: str


class PoolOpened(Operation, tag="pool_opened", frozen=True, kw_only=True):
    """memd opened a pool with a permanent identity (P3), or changed an agent's role and perspectives (P5) or its
    prompt (O5)."""

    pool: str
    title: str = ""
    roots: tuple[str, ...] = ()
    evidence: str = ""
    role: str = ""
    perspectives: tuple[str, ...] = ()
    prompt: str = ""


class AliasAdded(Operation, tag="alias_added", frozen=True, kw_only=True):
    """New names lead to a pool, because of later evidence or by order of the user (P3). A name is
    `repository:ROOT@REMOTE`, `id:ID`, `checkout:FOLDER`, `folder:FOLDER` or `pool:POOL`."""

    pool: str
    names: tuple[str, ...]
    evidence: str = ""
    by: Literal["memd", "user"] = "memd"


class SessionOpened(Operation, tag="session_opened", frozen=True, kw_only=True):
    """memd saw a document for the first time; `project` is the pool that it feeds. `family`: its session family,
    set where its first turns are those of an earlier document, of which it is a copy or a continuation."""

    document: str
    origin: Origin
    project: str
    at: str
    family: str = ""


class SessionClosed(Operation, tag="session_ended", frozen=True, kw_only=True):
    """A document's session ended."""

    document: str
    at: str
    reason: str = ""


class SessionResumed(Operation, tag="session_resumed", frozen=True, kw_only=True):
    """A live session that had ended continues; it will end again (W2)."""

    document: str
    at: str


class Added(Operation, tag="added", frozen=True, kw_only=True):
    """A new record became active; the same entry retires the records that it contradicts (T1, P-8)."""

    record: Record
    retires: tuple[Retirement, ...] = ()
    decision: Decision


class Updated(Operation, tag="updated", frozen=True, kw_only=True):
    """A record of a local pool has a new revision under the same id (W6)."""

    record: Record
    retires: tuple[Retirement, ...] = ()
    decision: Decision


class Merged(Operation, tag="merged", frozen=True, kw_only=True):
    """A candidate repeated a record: its turn became evidence, nothing else changed (P-7)."""

    id: str
    evidence: Evidence
    decision: Decision


class Invalidated(Operation, tag="invalidated", frozen=True, kw_only=True):
    """A record was retired; its history stays (T1)."""

    id: str
    valid_to: str
    reason: str
    by: str = ""


class Distilled(Operation, tag="distilled", frozen=True, kw_only=True):
    """The distiller's cursor: captures up to `archive_seq` are done. Committed with the operations that they led to."""

    archive_seq: int
    captures: int
    candidates: int
    rejected: dict[str, int] = msgspec.field(default_factory=dict[str, int])
    failed: tuple[Failure, ...] = ()


class Retried(Operation, tag="retried", frozen=True, kw_only=True):
    """A dead letter was tried again. `failed`: the reason, if it stays a dead letter (P-12)."""

    archive_seq: int
    document: str
    turn: str
    failed: Failure | None = None


class Pinned(Operation, tag="pinned", frozen=True, kw_only=True):
    """The user pinned or unpinned a record. memd never retires a pinned record automatically (T13).

    `layer`: its new layer (R9), "" in journals older than layers; a promotion also ends quarantine (T8). `principle`:
    whether it has that tag (Q8), None for no change.
    """

    id: str
    pinned: bool
    layer: Layer | Literal[""] = ""
    principle: bool | None = None


class Granted(Operation, tag="granted", frozen=True, kw_only=True):
    """The user signed a pass for a subject (A1), or, without `grant`, lifted the revocation of these sources."""

    grant: str = ""
    subject: str = ""
    pools: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    expires_at: str = ""


class Revoked(Operation, tag="revoked", frozen=True, kw_only=True):
    """The user revoked passes, or sources: memd shows no record that rests on them (A3)."""

    grants: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()


class PatchStep(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One operation of a patch (G2), by ids of records. `add`, `promote`: revision `rev` of `id` becomes part of
    `layer`, with this confidence, change condition and evidence (type, reference, note); `supersede`: `to` replaces
    `id`; `deprecate`: `id` no longer holds; `review`: of a day, with the day of the next one."""

    op: Literal["add", "promote", "supersede", "deprecate", "review"]
    id: str
    rev: int = 0
    to: str = ""
    layer: Layer | Literal[""] = ""
    confidence: float = 0.0
    reason: str = ""
    day: str = ""
    next_review: str = ""
    change_condition: str = ""
    evidence: tuple[tuple[str, str, str], ...] = ()


class ChangeProposed(Operation, tag="proposed", frozen=True, kw_only=True):
    """A proposal waits for the user: an agent asks to forget `record`, `against` contradicts it (T13), `record` says
    what `against` says (T12), a role proposes a patch of these steps (G2), whose first one changes `record`, or memd
    proposes the draft `record` as a skill, or to change or retire the skill of `record` (K1, K2). `label` and `reason`
    come from the rule that found it. `pool`, `own`, `rounds`: of a draft its pool, the digests of its own steps, and
    how often it had been done."""

    id: str
    what: Literal["forget", "conflict", "duplicate", "patch", "skill", "skill_edit", "skill_retire"]
    record: str
    against: str = ""
    document: str = ""
    by: str = ""
    label: str = ""
    reason: str = ""
    steps: tuple[PatchStep, ...] = ()
    pool: str = ""
    own: tuple[str, ...] = ()
    rounds: int = 0


class ChangeDecided(Operation, tag="decided", frozen=True, kw_only=True):
    """The user decided a proposal. Its consequence is in the same commit or in an earlier one (G7). `lapsed`: nobody
    decided it in time, so it counts as rejected."""

    id: str
    accepted: bool
    lapsed: bool = False


class ChangeReopened(Operation, tag="reopened", frozen=True, kw_only=True):
    """The user took the decision on a proposal back; it waits again (G7). `after`: the state of the record that the
    decision had retired, now as before it."""

    id: str
    after: tuple[Shift, ...] = ()


class Turns(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A tombstone: turns of one document that memd never stores again, whoever sends them (T10)."""

    document: str
    turns: tuple[str, ...]


class Remnant(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The substitute for a journal entry whose payload was removed: an encoded operation without text."""

    seq: int
    kind: str
    payload: bytes


class Cut(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A secret: characters `start:end` of the text of the capture at archive seq `seq`, found by `rule` (P-18)."""

    seq: int
    start: int
    end: int
    rule: str


class Redacted(Operation, tag="redacted", frozen=True, kw_only=True):
    """The user forgot records and captures permanently, or memd cut secrets out; pending until `purged` names it (T10).

    It has neither the removed text nor a hash of it. `captures`: archive seqs; `entries`: journal entries with their
    substitutes, so that replay gives the same state for all other records; `cuts`: in order of place, each replaced by
    a placeholder. `marks`: hashes of turns and sessions whose names are forgotten too, in place of these names.
    """

    records: tuple[str, ...] = ()
    turns: tuple[Turns, ...] = ()
    captures: tuple[int, ...] = ()
    entries: tuple[Remnant, ...] = ()
    sessions: tuple[str, ...] = ()
    cuts: tuple[Cut, ...] = ()
    marks: tuple[bytes, ...] = ()


class Purged(Operation, tag="purged", frozen=True, kw_only=True):
    """memd removed the bytes of a `redacted` operation (its seq) from every store (T10)."""

    redacted: int


class Erased(Operation, tag="erased", frozen=True, kw_only=True):
    """Read in place of a removed payload, never written: the records that the entry touched, and those it retired."""

    ids: tuple[str, ...] = ()
    retires: tuple[Retirement, ...] = ()
    by: str = ""


class Rebased(Operation, tag="rebased", frozen=True, kw_only=True):
    """Forgetting removed one of a record's sources: the whole record as it rests on the remaining ones."""

    record: Record


class Shift(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The fields of a record that `hidden` changes and `unhidden` restores."""

    id: str
    status: Status
    valid_to: str = ""
    retired_at: int = 0
    superseded_by: str = ""


class Hidden(Operation, tag="hidden", frozen=True, kw_only=True):
    """The user undid sessions. `after`: the new state of their records, now hidden, and of the records that those had
    retired, now active again; `before`: the state that `unhidden` restores."""

    documents: tuple[str, ...]
    before: tuple[Shift, ...]
    after: tuple[Shift, ...]


class RecordJudged(Operation, tag="judged", frozen=True, kw_only=True):
    """The user said that a record is right or wrong, or took that back. `after`: its new state; a right record also
    gets evidence of the time `at` (RFC 3339), which taking it back removes."""

    id: str
    verdict: Literal["right", "wrong", "undone"]
    at: str
    before: Shift
    after: Shift


class Unhidden(Operation, tag="unhidden", frozen=True, kw_only=True):
    """The user redid the sessions that the operation at seq `hidden` undid; `after` has the records that changed."""

    hidden: int
    documents: tuple[str, ...]
    after: tuple[Shift, ...]


class Moved(Operation, tag="moved", frozen=True, kw_only=True):
    """The user moved records into another pool; they keep their history (P3). `unkeyed`: those that lost their key,
    because a live record of that pool holds it; they need a review."""

    ids: tuple[str, ...]
    pool: str
    reason: str
    unkeyed: tuple[str, ...] = ()


class RemoteConsented(Operation, tag="remote_consented", frozen=True, kw_only=True):
    """The user consented that a remote model reads the sessions of a pool until a time, or withdrew it with `until` "".
    It covers one URL and the models whose names begin with `family` (W4)."""

    pool: str
    provider: str
    url: str
    family: str
    until: str = ""
    private: bool = False


class RemoteReserved(Operation, tag="remote_reserved", frozen=True, kw_only=True):
    """memd is about to send a part of a session to a remote model, and reserved tokens of a local day (such as
    20260131) for it (W4). `sent`: archive seq of the capture with the bytes; `upto`: seq of the last turn in them."""

    id: str
    day: int
    tokens: int
    reader: str
    document: str
    sent: int
    upto: int
    size: int = 0


class RemoteSettled(Operation, tag="remote_settled", frozen=True, kw_only=True):
    """The outcome of a call of a remote model. `tokens` replace the reserved ones; `status`: of HTTP, 0 for none."""

    id: str
    outcome: CallOutcome
    tokens: int
    size: int = 0
    pointed: int = 0
    dropped: int = 0
    status: int = 0


class ShareOpened(Operation, tag="share_opened", frozen=True, kw_only=True):
    """The user shares a project's memory, or changed how (H1). `root`, `remote`: the project's mark when sharing began,
    with a hub "" and the hub's name of the pool; `address`: the remote that carries it. Another `partition` follows one
    that a second device writes too, and one with another mark."""

    pool: str
    partition: str
    root: str = ""
    remote: str = ""
    address: str = ""
    name: str = ""
    new_sessions: bool = False


class ShareClosed(Operation, tag="share_closed", frozen=True, kw_only=True):
    """The user no longer shares a project's memory. `withdraw`: every own line becomes gone."""

    pool: str
    withdraw: bool = False


class ShareChosen(Operation, tag="share_chosen", frozen=True, kw_only=True):
    """The user decided that records of a shared project go to the others, or that they stay (`keep`)."""

    pool: str
    ids: tuple[str, ...]
    keep: bool = False


class Offered(Operation, tag="offered", frozen=True, kw_only=True):
    """Line `n` of the own partition exists (H1). `what` `add`: revision `rev` of the record `id`, from which the line
    is rendered; `inv`: the line named `ref` no longer holds. `hash`: of the line's bytes; `blind`: makes it
    unguessable."""

    pool: str
    partition: str
    n: int
    what: Literal["add", "inv"]
    id: str = ""
    rev: int = 0
    ref: str = ""
    of: tuple[str, ...] = ()
    until: str = ""
    why: str = ""
    lamport: int
    at: int
    blind: bytes
    hash: bytes


class Delivered(Operation, tag="delivered", frozen=True, kw_only=True):
    """The remote has the own partition: `count` lines of an epoch, of which `gone` are gone. `address`: of an earlier
    remote, which gets no new lines; "" for the present one."""

    pool: str
    partition: str
    epoch: int
    count: int
    gone: int = 0
    commit: str = ""
    address: str = ""


class ArrivedLine(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A line that was taken: its number, its Lamport time, and what it is. `ref`: the line that an `inv` names."""

    n: int
    lamport: int
    what: Literal["add", "inv", "other"]
    ref: str = ""
    until: str = ""
    why: str = ""


class Arrived(Operation, tag="arrived", frozen=True, kw_only=True):
    """memd took lines of another author's partition, or refused it (`problem`). It is the cursor: committed with the
    operations that the lines led to (H2). `segments`: number and hash of those that changed; `gone`: lines that became
    gone; `refused`: number and reason of lines that memd did not take. `after`: new states of records that other lines
    retire now; `review`: shared records and whether another line holds their key, so that they need a review."""

    pool: str
    partition: str
    name: str
    epoch: int
    count: int
    lamport: int = 0
    closed: bool = False
    segments: tuple[tuple[int, bytes], ...] = ()
    lines: tuple[ArrivedLine, ...] = ()
    gone: tuple[int, ...] = ()
    refused: tuple[tuple[int, str], ...] = ()
    problem: str = ""
    after: tuple[Shift, ...] = ()
    review: tuple[tuple[str, bool], ...] = ()


class AuthorJudged(Operation, tag="author_judged", frozen=True, kw_only=True):
    """The user trusts or mutes the author of a partition, or took that back; or a hub's lease hides the author
    (`withheld`), or shows him again, whatever the user thinks of him. `after`: the new state of his records and of
    those that he invalidated; `review`: as in `arrived`."""

    pool: str
    partition: str
    standing: Literal["new", "trusted", "muted"]
    withheld: bool = False
    after: tuple[Shift, ...] = ()
    review: tuple[tuple[str, bool], ...] = ()


class ShareLeased(Operation, tag="share_leased", frozen=True, kw_only=True):
    """A hub said until when this home may read what others share in a project's pool (A1), in microseconds. `subject`:
    whom the hub knows the user as; `withheld`: partitions that the hub shows to nobody (A3)."""

    pool: str
    subject: str = ""
    until: int = 0
    withheld: tuple[str, ...] = ()


class PatchApplied(Operation, tag="patch_applied", frozen=True, kw_only=True):
    """The user accepted a patch of a pool, or wrote it for others to decide (`sent`, without effect here). Its effects
    are in the same commit; its file is rendered from these steps. `names`: seed ids and the records that they mean;
    `hash`: of the file's bytes, which stands in their place once a record is forgotten."""

    pool: str
    patch: str
    day: str
    generated_by: str
    steps: tuple[PatchStep, ...]
    names: tuple[tuple[str, str], ...] = ()
    proposal: str = ""
    sent: bool = False
    hash: str = ""


class PatchTaken(Operation, tag="patch_taken", frozen=True, kw_only=True):
    """A patch arrived in the committed tree of a trusted project; its effects are in the same commit (G2). `blob`: the
    hash of the file; `author`: of the commit that brought it; `refused`: seed ids that memd did not take, and why;
    `after`: records that a patch which came back shows again, or retires again."""

    pool: str
    patch: str
    blob: str
    commit: str = ""
    author: str = ""
    day: str = ""
    generated_by: str = ""
    steps: tuple[PatchStep, ...] = ()
    names: tuple[tuple[str, str], ...] = ()
    refused: tuple[tuple[str, str], ...] = ()
    after: tuple[Shift, ...] = ()


class PatchGone(Operation, tag="patch_gone", frozen=True, kw_only=True):
    """A patch is no longer in the tree: its commit was reverted. `after`: the new states of the records it changed."""

    pool: str
    patch: str
    after: tuple[Shift, ...] = ()


class PiTrusted(Operation, tag="pi_trusted", frozen=True, kw_only=True):
    """The user lets memd read a project's `.pi` folder, or took that back. `after`: the new states of the records that
    came from there, or that its patches retired."""

    pool: str
    trusted: bool = True
    after: tuple[Shift, ...] = ()


class PolicySet(Operation, tag="policy_set", frozen=True, kw_only=True):
    """A pool's policy is this text of `pi.config.yaml` (G5), "" for the default. `accepted`: the user accepted what it
    loosens."""

    pool: str
    digest: str
    text: str = ""
    accepted: bool = False


RevisedBy = Literal["placed", "tuned", "retired", "user", "offered"]


class SkillRevised(Operation, tag="skill_revised", frozen=True, kw_only=True):
    """The file of a skill, whose record names its path, has other bytes (K2). `sha`: their SHA-256, "" if the file is
    gone; `by`: memd placed or tuned it, or retired it, or somebody else changed it, or these bytes lie on a branch and
    are `offered`, and are what `then` says when the file has them; `own`: as in a proposal."""

    record: str
    sha: str
    by: RevisedBy
    then: RevisedBy = "placed"
    pool: str = ""
    own: tuple[str, ...] = ()
    rounds: int = 0


class CoursePart(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A section or a question of a course: the number of its chapter from 0, and its turn in the course's document."""

    chapter: int
    turn: str


class CourseAnswer(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A question that was asked: its turn, whether the memory had the answer, and in how many days it is asked again,
    0 for a question that was asked before the course was read."""

    question: str
    right: bool
    days: int


CourseTest = Literal["before", "after", "review"]
"""A test before the course was read, the first one after it, a later one."""


class CourseOpened(Operation, tag="course_opened", frozen=True, kw_only=True):
    """An agent reads a course, or its changed state (O3). The texts are captures of `document`."""

    pool: str
    document: str
    sections: tuple[CoursePart, ...]
    questions: tuple[CoursePart, ...]


class CourseAsked(Operation, tag="course_asked", frozen=True, kw_only=True):
    """memd asked questions of a course."""

    document: str
    test: CourseTest
    answers: tuple[CourseAnswer, ...]


class CourseClosed(Operation, tag="course_closed", frozen=True, kw_only=True):
    """memd asks no more questions of a course, and its records fade as others do."""

    document: str


class JudgedTask(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What memd observed of a task of an agent: the turn that gave it, and the time of that turn in microseconds."""

    agent: str
    turn: str
    at: int
    outcome: TaskOutcome


class TasksJudged(Operation, tag="tasks_judged", frozen=True, kw_only=True):
    """memd judged the tasks of a document, which replaces its earlier judgement (O2). `archive_seq`: captures up to it
    are judged; `document`: "" if these had nothing to judge."""

    archive_seq: int
    document: str = ""
    tasks: tuple[JudgedTask, ...] = ()


class TaskRated(Operation, tag="task_rated", frozen=True, kw_only=True):
    """The user said what became of an agent's task (O2), or took it back with `outcome` "". `at`: of the task, in
    microseconds."""

    agent: str
    document: str
    turn: str
    at: int
    outcome: TaskOutcome | Literal[""] = ""
    perspective: str = ""


class Checkpoint(Operation, tag="checkpoint", frozen=True, kw_only=True):
    """Both logs are verified up to these headers (seq and hash); a start verifies only later entries."""

    journal_seq: int = 0
    journal_tip: bytes = b""
    archive_seq: int = 0
    archive_tip: bytes = b""


class Unknown(Operation, tag="unknown", frozen=True, kw_only=True):
    """An operation of a later version: it stays in the journal and every projection skips it."""

    name: str = ""


_Pools = PoolOpened | AliasAdded | Moved
_Sessions = SessionOpened | SessionClosed | SessionResumed | Hidden | Unhidden
_Records = Added | Updated | Merged | Invalidated | Pinned | Distilled | Retried
_Decisions = Granted | Revoked | ChangeProposed | ChangeDecided | ChangeReopened | FeedbackGiven | RecordJudged
_Forgetting = Redacted | Purged | Erased | Rebased
_Decay = Counted | Slept | Archived | Restored | Released | Reviewed | Folded
_Remote = RemoteConsented | RemoteReserved | RemoteSettled
_Sharing = ShareOpened | ShareClosed | ShareChosen | Offered | Delivered | Arrived | AuthorJudged | ShareLeased
_Policy = PatchApplied | PatchTaken | PatchGone | PiTrusted | PolicySet | SkillRevised
_Courses = CourseOpened | CourseAsked | CourseClosed
_Outcomes = TasksJudged | TaskRated
_Memory = _Pools | _Sessions | _Records | _Decisions | _Forgetting | _Decay
AnyOperation = _Memory | _Remote | _Sharing | _Policy | _Courses | _Outcomes | Checkpoint | Unknown

_encoder = msgspec.msgpack.Encoder()
_known = {str(cls.__struct_config__.tag) for cls in get_args(AnyOperation)} - {"unknown"}


@cache
def _decoder() -> msgspec.msgpack.Decoder[AnyOperation]:
    """Built for the first operation, because it takes 3 ms and most clients need none."""
    return msgspec.msgpack.Decoder(AnyOperation)


def kind(operation: AnyOperation) -> str:
    """Return the stored tag of an operation, such as `added`."""
    return str(operation.__struct_config__.tag)


def encode(operation: AnyOperation) -> bytes:
    """Encode an operation as MessagePack."""
    return _encoder.encode(operation)


def decode(name: str, payload: bytes) -> AnyOperation:
    """Decode the operation of kind `name`; a kind of a later version gives `Unknown`. Raises JournalCorrupt."""
    if name not in _known:
        return Unknown(name=name)
    try:
        return _decoder().decode(payload)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise JournalCorrupt(
            f"cannot decode an operation of kind {name!r}: {error}", hint="run `memd verify`"
        ) from error
