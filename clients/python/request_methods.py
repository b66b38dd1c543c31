"""The methods that `Client` and `AsyncClient` share: one for each request of the protocol.

A method is declared by its signature alone: each parameter fills the request's field of that name. A `Client` returns
the reply, an `AsyncClient` a coroutine of it.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Coroutine, Sequence
from datetime import datetime
from functools import partial, update_wrapper
from typing import TYPE_CHECKING, Any, Concatenate, Generic, Literal, ParamSpec, Protocol, TypeVar, cast, overload

import msgspec

from ...protocol import corrections, decay, reply, request, wire
from ...protocol.agent_outcomes import AgentOutcomes, AgentRanking, ExplainAgent, RankAgents, RateTask, Rating
from ...protocol.courses import AgentState, CourseChapter, CoursesAsked, CourseState, CourseTaught, School
from ...protocol.curation import Curation
from ...protocol.document_links import LinkList, ListLinks
from ...protocol.errors import Disabled, InvalidRequest
from ...protocol.event import AnyEvent, Origin, Visibility
from ...protocol.governance import PatchBytes, PatchesTaken, PatchList, TreeFile
from ...protocol.history import GetHistory, GetTimeline, History
from ...protocol.ingestion import Detail, GetDetail, ListTopics, SummariseDocument, TopicList, WeighedBy, WeighItems
from ...protocol.map import MARKS, Clock, GetMap, GetRhythm, MemoryMap, Rhythm
from ...protocol.places import Places
from ...protocol.places import places as places_of
from ...protocol.policy import AcceptPolicy, CheckPolicy, GetPolicy, PolicyState
from ...protocol.profile import Delivery, Trigger
from ...protocol.recall import BUDGET_TOKENS, LIMIT, TaskOutcome
from ...protocol.record import Kind, Record, Status
from ...protocol.reflection import ReflectedLearning, Statement
from ...protocol.remote import CONSENT_DAYS, Dialect, RemotePreview, RemoteState
from ...protocol.request_fields import Surface
from ...protocol.share import (
    Outbox,
    PartitionTaken,
    PreparedShare,
    SegmentData,
    ShareList,
    ShareLog,
    ShareReview,
    ShareState,
    Standing,
)
from ...protocol.skills import (
    ListSkills,
    PlacedBy,
    PlacedSkill,
    PlaceSkill,
    ProposeSkills,
    RetireSkill,
    SharedSkill,
    ShareSkill,
    SkillList,
    SkillProposals,
    SkillTuning,
    TuneSkill,
)
from ...protocol.state import Rewording
from ...protocol.weekly_report import WeeklyReport

if TYPE_CHECKING:
    from .spool_writer import SpoolReceipt

P = ParamSpec("P")
T = TypeVar("T")
R = TypeVar("R")

QUICK_MS, OTHER_MS = 2_000, 10_000


def deadline_ms(message: request.Request) -> int:
    """Return the milliseconds that a request may take, connecting included, without a deadline of the client's own."""
    return QUICK_MS if request.is_quick(message) else OTHER_MS


class Blocking(Protocol):
    """A client that waits for the reply to each request, such as `Client`."""

    def ask(self, message: request.Request, data: type[R]) -> R: ...


class NonBlocking(Protocol):
    """A client that returns a coroutine of each reply, such as `AsyncClient`."""

    def ask(self, message: request.Request, data: type[R]) -> Coroutine[Any, Any, R]: ...


class RequestMethod(Generic[P, T]):
    """A method of both clients: `build` makes the request from the method's arguments, `reply` is the reply's type."""

    def __init__(
        self, request: type[request.Request], reply: type[T], build: Callable[P, object], *, may_spool: bool = False
    ) -> None:
        self.request, self.reply, self.build, self.may_spool = request, reply, build, may_spool
        self.__doc__ = build.__doc__

    @overload
    def __get__(self, client: None, owner: type) -> RequestMethod[P, T]: ...
    @overload
    def __get__(self, client: Blocking, owner: type) -> Callable[P, T]: ...
    @overload
    def __get__(self, client: NonBlocking, owner: type) -> Callable[P, Coroutine[Any, Any, T]]: ...
    def __get__(self, client: Blocking | NonBlocking | None, owner: type) -> object:
        return self if client is None else partial(self._send, client)

    def _send(self, client: Any, *positional: Any, **named: Any) -> object:
        message = self.build(*positional, **named)
        return (client._ask_or_spool if self.may_spool else client.ask)(message, self.reply)

    def or_spool(self) -> RequestMethod[P, T | SpoolReceipt]:
        """Return a variant that spools the request when the daemon can't be reached in time, or raises TooLarge."""
        reply: type[T | SpoolReceipt] = cast("Any", self.reply)
        return RequestMethod(self.request, reply, self.build, may_spool=True)


def sends(
    request: type[request.Request], reply: type[T]
) -> Callable[[Callable[Concatenate[Any, P], None]], RequestMethod[P, T]]:
    """Make a method of a signature: each parameter fills the request's field of that name; `at` is the present."""
    make: Any = request
    has_at = "at" in request.__struct_fields__

    def decorate(signature: Callable[Concatenate[Any, P], None]) -> RequestMethod[P, T]:
        function: Any = signature
        names = function.__code__.co_varnames[1 : function.__code__.co_argcount]
        defaults = function.__defaults__ or ()
        preset = dict(zip(names[len(names) - len(defaults) :], defaults, strict=True))
        preset |= function.__kwdefaults__ or {}
        sequences = {name for name, kind in function.__annotations__.items() if kind.startswith("Sequence")}

        def build(*positional: Any, **named: Any) -> object:
            function(None, *positional, **named)  # raises the TypeError of a wrong call
            fields = preset | dict(zip(names, positional, strict=False)) | named
            given = {name for name in sequences & fields.keys() if fields[name] is not None}
            fields |= {name: tuple(fields[name]) for name in given}
            return make(**fields, at=now()) if has_at else make(**fields)

        return RequestMethod(request, reply, update_wrapper(build, signature))

    return decorate


def places_here() -> Places:
    """Return the places of this process's environment."""
    return places_of(os.environ, os.getuid())


def now() -> str:
    """Return the present as RFC 3339 text with the local offset."""
    return datetime.now().astimezone().isoformat(timespec="milliseconds")


def session_here() -> str:
    """Return the document of the agent session that runs this process, by the variable that its hook sets (W11); ""
    outside of one."""
    document = os.environ.get("MEMD_SESSION", "").strip()
    host, colon, session = document.partition(":")
    return document if host and colon and session else ""


def remembering(
    message: request.Remember | str,
    *,
    cwd: str = "",
    host: str = "python",
    role: Literal["user", "assistant"] = "user",
    pool: str = "",
    session: str = "",
    agent: str = "",
) -> request.Remember:
    """Save a text as a memory, which can be recalled when this returns (W2).

    `pool`: `personal`, `project` (of `cwd`) or a pool's name; "" lets the text's subject decide. `session`: the
    document (`host:session`) in which it was said (W11); "" stands for the folder, because a session belongs to one
    project for good. `agent`: who says it; the part of the session that is an agent's own is a session as well (P5).
    """
    if isinstance(message, request.Remember):
        return message
    host, _, name = session.partition(":") if session else (host, "", cwd or "anywhere")
    origin = Origin(host=host, session=f"{name}@{agent}" if agent else name, cwd=cwd, agent=agent)
    return request.Remember(text=message, turn=str(uuid.uuid4()), at=now(), origin=origin, role=role, pool=pool)


def _exported(message: request.ImportRecords) -> request.ImportRecords:
    """Add exported records, which are durable when this returns."""
    return message


def _environments_pass() -> str:
    """Return the pass in `MEMD_PASS`, "" without that variable; an empty one becomes a word that is no pass."""
    return os.environ.get("MEMD_PASS", "") or ("empty" if "MEMD_PASS" in os.environ else "")


class RequestMethods:
    """The methods by capability. Each raises DaemonDown, DeadlineExceeded, or the daemon's own error."""

    def __init__(
        self,
        places: Places | None = None,
        deadline_ms: float | None = None,
        token: str | None = None,
        surface: Surface = "user",
    ) -> None:
        """`token`: the access pass of the caller (A1), by default the one in `MEMD_PASS`. The daemon denies an empty
        variable, which a failed `memd grant` leaves behind. `surface`: whose requests these are (G1)."""
        self.places = places or places_here()
        self._token = _environments_pass() if token is None else token
        self._deadline_ms = deadline_ms
        self._surface: Surface = surface
        self._rid = 0

    @property
    def has_pass(self) -> bool:
        """Whether this client is the holder of a pass, who may only read (A1)."""
        return bool(self._token)

    def _encoded(self, message: request.Request) -> tuple[int, bytes, float]:
        """Return the request's number, its bytes and its deadline in ms. Raises InvalidRequest, TooLarge."""
        self._rid += 1
        token = message.token or self._token
        numbered = msgspec.structs.replace(self._labelled(message), rid=self._rid, token=token)
        try:
            body = wire.encode_request(numbered)
        except UnicodeEncodeError as error:
            raise InvalidRequest(f"the text is not valid Unicode: {error.reason}", hint="send it as UTF-8") from error
        except OverflowError as error:
            raise InvalidRequest("a number of the request is out of range", hint="send at most 64 bits") from error
        waits_ms = getattr(message, "wait_ms", 0)
        return self._rid, body, waits_ms + (self._deadline_ms or deadline_ms(message))

    def _labelled(self, message: T) -> T:
        """Return a request with this client's surface, unless it names one."""
        if self._surface == "user" or not isinstance(message, request.Request) or message.surface != "user":
            return message
        return msgspec.structs.replace(message, surface=self._surface)

    # --- capture -------------------------------------------------------------------------------------------------
    @sends(request.Capture, reply.Taken)
    def capture(self, origin: Origin, events: Sequence[AnyEvent]) -> None:
        """Capture events, which are durable when this returns (W1)."""

    remember = RequestMethod(request.Remember, reply.Remembered, remembering)
    capture_or_spool = capture.or_spool()
    remember_or_spool = remember.or_spool()

    @sends(request.Distil, reply.Done)
    def distil(self) -> None:
        """Distil pending captures now."""

    @sends(request.Pause, reply.Pauses)
    def pause(self, folder: str = "", for_s: float = 0) -> None:
        """Pause capture (P-2) everywhere, or in an absolute folder and below; for some seconds, or until `resume`."""

    @sends(request.Resume, reply.Pauses)
    def resume(self, folder: str = "") -> None:
        """End the pause of this folder, or the one that holds everywhere. Raises NotFound."""

    @sends(request.ListLetters, reply.DeadLetters)
    def dead_letters(self, limit: int = 50) -> None:
        """List the captures that could not be distilled (P-12)."""

    @sends(request.Retry, reply.JobState)
    def retry(self, ids: Sequence[int] = (), *, all: bool = False) -> None:
        """Start to distil failed captures again (P-12). Raises NotFound, InvalidRequest."""

    # --- recall --------------------------------------------------------------------------------------------------
    @sends(request.Recall, reply.Recalled)
    def recall(
        self,
        query: str,
        *,
        cwd: str = "",
        pools: Sequence[str] = (),
        limit: int = LIMIT,
        budget_tokens: int = BUDGET_TOKENS,
        include_retired: bool = False,
        explain: bool = False,
        as_of: str = "",
        believed_at: str = "",
        document: str = "",
        keywords: Sequence[str] = (),
        perspective: str = "",
        agent: str = "",
        threshold: float = 0.0,
        types: Sequence[str] = (),
        by_chance: bool = False,
        deep: bool = False,
    ) -> None:
        """Find the memories that answer a question, each with its source (Q2). `protocol.recall.Recall` has the
        fields' meanings."""

    @sends(request.Feedback, reply.FeedbackTaken)
    def feedback(
        self,
        recall: str = "",
        *,
        used: Sequence[str] = (),
        helpful: Sequence[str] = (),
        wrong: Sequence[str] = (),
        failed: bool = False,
        outcome: TaskOutcome = "",
        perspective: str = "",
        learned: dict[str, str] | None = None,
    ) -> None:
        """Rate an answer, named by its `recall`, or records, and tell how the task ended (T3, T4). Raises NotFound,
        InvalidRequest."""

    @sends(request.GetVectors, reply.TextVectors)
    def vectors(self, texts: Sequence[str]) -> None:
        """Return vectors of texts by the model that searches now (H3)."""

    @sends(request.NeverUsed, reply.UnusedList)
    def never_used(self, pools: Sequence[str] = (), least: int = 3, limit: int = 50) -> None:
        """List records that were returned at least `least` times and never used (Q9). Raises NotFound."""

    @sends(request.Get, Record)
    def get(self, id: str, *, as_of: str = "", believed_at: str = "") -> None:
        """Return one record by its id or an unambiguous prefix of it, as of a time (Q12). Raises NotFound."""

    @sends(request.List, reply.Page)
    def list(
        self,
        *,
        pools: Sequence[str] = (),
        kinds: Sequence[Kind] = (),
        statuses: Sequence[Status] = (),
        type: str = "",
        document: str = "",
        key: str = "",
        since: str = "",
        until: str = "",
        as_of: str = "",
        believed_at: str = "",
        after: str = "",
        limit: int = 50,
    ) -> None:
        """Return a page of records, newest first."""

    @sends(request.Why, reply.Explained)
    def why(self, id: str) -> None:
        """Explain a record: its captured lines and every decision on it (R4)."""

    @sends(GetHistory, History)
    def history(self, id: str) -> None:
        """Return every version of a record (T1). Raises NotFound."""

    @sends(GetTimeline, corrections.RecordList)
    def timeline(self, subject: str, cwd: str = "", *, pools: Sequence[str] = (), limit: int = 50) -> None:
        """List the statements about a subject in order of world time (T1). Raises InvalidRequest."""

    @sends(GetMap, MemoryMap)
    def map(
        self,
        around: str = "",
        *,
        pools: Sequence[str] = (),
        hops: int = 2,
        as_of: str = "",
        believed_at: str = "",
        limit: int = MARKS,
    ) -> None:
        """Return the pools with their topics, or what is near a record or a thing (U4). Raises NotFound."""

    @sends(GetRhythm, Rhythm)
    def rhythm(
        self,
        *,
        pools: Sequence[str] = (),
        clock: Clock = "world",
        since: str = "",
        until: str = "",
        buckets: int = 60,
        beside: str = "",
    ) -> None:
        """Return how much was learnt and retired when, and the changes beside a time (Q12). Raises InvalidRequest."""

    # --- profile and context -------------------------------------------------------------------------------------
    @sends(request.Profile, reply.ProfileText)
    def profile(
        self,
        *,
        cwd: str = "",
        pools: Sequence[str] = (),
        budget_tokens: int = 500,
        agent: str = "",
        document: str = "",
        delivery: Delivery = "per_turn",
        trigger: Trigger = "turn",
        prompt: str = "",
        as_of: str = "",
        believed_at: str = "",
        assuming: Sequence[Record] = (),
    ) -> None:
        """Return the profile of the user, and of the project that `cwd` lies in (Q1). `due`: print it now. `recalled`:
        what a `prompt` recalled (Q13)."""

    @sends(request.Printed, reply.PrintNoted)
    def printed(self, document: str, rev: str, recall: str = "") -> None:
        """Report that a revision of the profile, or of recalled lines (`recall`), was printed into a session."""

    @sends(request.ListInjected, reply.Injections)
    def injected(self, session: str = "", limit: int = 20) -> None:
        """List the exact texts that agents were given, newest first, and why. Raises NotFound."""

    @sends(request.GetContext, reply.ContextPackage)
    def context(
        self,
        *,
        cwd: str = "",
        pools: Sequence[str] = (),
        agent: str = "",
        tags: Sequence[str] = (),
        days: int = 0,
        as_of: str = "",
        believed_at: str = "",
    ) -> None:
        """Return the context package: L1 in full, L2 by tag and project, L3 of `days`, 0 for the policy's (Q11)."""

    @sends(request.HandOver, reply.HandoverTaken)
    def hand_over(
        self,
        document: str,
        *,
        done: Sequence[str] = (),
        decided: Sequence[str] = (),
        open: Sequence[str] = (),
        closed: Sequence[str] = (),
    ) -> None:
        """Keep what an agent writes at a session's end for the next one (C1). Raises NotFound, InvalidRequest."""

    @sends(request.Reflect, reply.Reflection)
    def reflect(
        self,
        document: str,
        *,
        title: str = "",
        statements: Sequence[Statement] = (),
        open: Sequence[str] = (),
        learnings: Sequence[ReflectedLearning] = (),
    ) -> None:
        """Take what the agent of a session found worth remembering in it (W4). Raises NotFound, InvalidRequest."""

    @sends(request.AskReflection, reply.ReflectionQuestion)
    def ask_reflection(self, document: str, *, now: bool = False) -> None:
        """Return whether the agent of a session should reflect (W4); with `now`, once a session, the question."""

    @sends(request.OpenShare, ShareState)
    def open_share(
        self,
        pool: str,
        address: str = "",
        *,
        mark: str = "",
        name: str = "",
        new_sessions: bool | None = None,
        dry_run: bool = False,
    ) -> None:
        """Begin to share a project's memory, or change how (H1). `mark`: the name by which a hub knows the pool. Raises
        NotFound, InvalidRequest."""

    @sends(request.CloseShare, ShareState)
    def close_share(self, pool: str, *, withdraw: bool = False) -> None:
        """End sharing a project's memory. Raises NotFound."""

    @sends(request.ListShares, ShareList)
    def shares(self, pools: Sequence[str] = ()) -> None:
        """Return the shared projects with their authors."""

    @sends(request.ReviewShare, ShareReview)
    def review_share(self, pool: str, *, limit: int = 100) -> None:
        """List records of a shared project that the user has not decided on. Raises NotFound."""

    @sends(request.OfferRecords, Outbox)
    def offer_records(self, pool: str, ids: Sequence[str] = (), *, all: bool = False, keep: Sequence[str] = ()) -> None:
        """Share records with the next push, or keep them from ever going. Raises NotFound, InvalidRequest."""

    @sends(request.GetOutbox, Outbox)
    def share_outbox(self, pool: str) -> None:
        """List what the next push would send, and what waits. Raises NotFound."""

    @sends(request.PrepareShare, PreparedShare)
    def prepare_share(self, pool: str, *, first: int = 0, dry_run: bool = False, earlier: str = "") -> None:
        """Render the own partition, after offering what is due; `earlier`: as far as an earlier remote has it. Raises
        NotFound, InvalidRequest."""

    @sends(request.NoteDelivered, ShareState)
    def note_delivered(
        self, pool: str, partition: str, epoch: int, count: int, commit: str = "", earlier: str = ""
    ) -> None:
        """Note what the remote has of the own partition. Raises NotFound, InvalidRequest."""

    @sends(request.NoteLease, ShareState)
    def note_lease(self, pool: str, subject: str, until: int, withheld: Sequence[str] = ()) -> None:
        """Note until when a hub lets this home read what others share (A1). Raises NotFound, InvalidRequest."""

    @sends(request.RenewPartition, ShareState)
    def renew_partition(self, pool: str, head: bytes, hashes: Sequence[bytes] = ()) -> None:
        """Begin a new own partition, because another device writes the present one too. Raises InvalidRequest."""

    @sends(request.TakePartition, PartitionTaken)
    def take_partition(
        self,
        pool: str,
        head: bytes,
        hashes: Sequence[bytes] = (),
        segments: Sequence[SegmentData] = (),
        *,
        dry_run: bool = False,
    ) -> None:
        """Take what another author's partition has new (H2). Raises NotFound."""

    @sends(request.JudgeAuthor, ShareState)
    def judge_author(self, pool: str, author: str, standing: Standing) -> None:
        """Trust or mute an author, or take that back. Raises NotFound."""

    @sends(request.DisputeRecords, Outbox)
    def dispute_records(self, ids: Sequence[str], why: str = "") -> None:
        """Retire shared records, and tell everybody with the next push. Raises NotFound, InvalidRequest."""

    @sends(request.GetShareLog, ShareLog)
    def share_log(self, pool: str, author: str = "", *, limit: int = 100) -> None:
        """List what authors shared, newest first. Raises NotFound."""

    @sends(request.UseRemote, RemoteState)
    def use_remote(
        self, provider: str, model: str, *, dialect: Dialect | Literal[""] = "", trusted: bool = False
    ) -> None:
        """Choose the remote model that may read ended sessions (W4). Raises InvalidRequest."""

    @sends(request.StopRemote, RemoteState)
    def stop_remote(self) -> None:
        """Switch the remote model off, also during a call."""

    @sends(request.ConsentRemote, RemoteState)
    def consent_remote(
        self, pool: str, *, days: float = CONSENT_DAYS, private: bool = False, withdraw: bool = False
    ) -> None:
        """Consent that the chosen model reads a pool's sessions, or withdraw it. Raises InvalidRequest, NotFound."""

    @sends(request.PreviewRemote, RemotePreview)
    def preview_remote(self, session: str = "", *, call: str = "") -> None:
        """Return the exact bodies that memd would send of a session, or sent in a call. Raises NotFound."""

    @sends(request.GetRemote, RemoteState)
    def remote(self) -> None:
        """Return the chosen remote model, the consents, today's tokens and the last calls."""

    @sends(request.GetState, reply.CurrentState)
    def state(self, *, cwd: str = "", pools: Sequence[str] = (), agent: str = "") -> None:
        """Return where a project or an agent stands: open items, decisions, what to watch, last sessions (C1)."""

    @sends(request.ChangeState, reply.CurrentState)
    def change_state(
        self,
        *,
        cwd: str = "",
        pools: Sequence[str] = (),
        agent: str = "",
        add: Sequence[str] = (),
        watch: Sequence[str] = (),
        close: Sequence[str] = (),
        reword: Sequence[Rewording] = (),
        if_rev: str = "",
    ) -> None:
        """Add items to the current state, close or reword some (C1). `if_rev`: the revision that the user saw. Raises
        NotFound, InvalidRequest."""

    @sends(ListLinks, LinkList)
    def links(self, ids: Sequence[str] = (), *, cwd: str = "", pools: Sequence[str] = (), stale: bool = False) -> None:
        """Return whether the documents behind records have changed; `stale`: only changed and gone ones (C3). Raises
        NotFound."""

    @sends(ListSkills, SkillList)
    def skills(
        self,
        name: str = "",
        *,
        cwd: str = "",
        pools: Sequence[str] = (),
        everywhere: bool = False,
        known: bool = False,
    ) -> None:
        """Return drafts of skills, which are procedures that sessions repeated with success (K1). `name`: of that name
        or beginning of an id; `known`: also those that the project's own instructions spell out."""

    @sends(PlaceSkill, PlacedSkill)
    def place_skill(
        self,
        name: str,
        path: str,
        sha: str,
        *,
        cwd: str = "",
        pools: Sequence[str] = (),
        by: PlacedBy = "placed",
        then: PlacedBy = "placed",
    ) -> None:
        """Store that the user placed a draft as a file, or that a skill's file has other bytes (K2). Raises NotFound,
        InvalidRequest."""

    @sends(RetireSkill, PlacedSkill)
    def retire_skill(self, name: str, *, cwd: str = "", pools: Sequence[str] = ()) -> None:
        """Store that the user took a placed skill away (K2). Raises NotFound."""

    @sends(ProposeSkills, SkillProposals)
    def propose_skills(self, dry_run: bool = False) -> None:
        """Put drafts of skills, and placed ones to retire, in the inbox, as memd does each week (K1, K2)."""

    @sends(TuneSkill, SkillTuning)
    def tune_skill(self, name: str, read_by_others: bool = False, *, cwd: str = "", pools: Sequence[str] = ()) -> None:
        """Return what mends a placed skill's file, or edits that held-out work confirms (K3). Raises NotFound,
        InvalidRequest."""

    @sends(ShareSkill, SharedSkill)
    def share_skill(self, name: str, description: str = "", *, cwd: str = "", pools: Sequence[str] = ()) -> None:
        """Return the text of a placed skill that the others of its project may read (K4). Raises NotFound,
        InvalidRequest, Refused."""

    # --- agents --------------------------------------------------------------------------------------------------
    @sends(ExplainAgent, AgentOutcomes)
    def explain_agent(self, agent: str) -> None:
        """Return what became of an agent's tasks (O2). Raises NotFound."""

    @sends(RateTask, AgentOutcomes)
    def rate_task(
        self, agent: str, session: str, turn: str = "", *, outcome: Rating | Literal[""] = "", perspective: str = ""
    ) -> None:
        """Store what became of an agent's task, or take it back without `outcome` (O2). Raises NotFound,
        InvalidRequest."""

    @sends(RankAgents, AgentRanking)
    def rank_agents(self, task: str, agents: Sequence[str] = ()) -> None:
        """Return the agents for a task, the best one first (O1)."""

    # --- large input ---------------------------------------------------------------------------------------------
    @sends(WeighItems, reply.JobState)
    def weigh_items(self, texts: Sequence[str], by: WeighedBy = "both") -> None:
        """Start to weigh items: the job's report has the `worth` and the `topics` of each, or one of them (W12)."""

    @sends(SummariseDocument, reply.JobState)
    def summarise_document(self, document: str, turns: Sequence[str]) -> None:
        """Start to summarise these turns of a document, in this order (W12). Raises NotFound."""

    @sends(GetDetail, Detail)
    def detail(self, number: int, *, summary: str = "", cwd: str = "", pools: Sequence[str] = ()) -> None:
        """Return a passage of a summary, by default of the newest one in scope (W12). Raises NotFound."""

    @sends(ListTopics, TopicList)
    def topics(self, *, cwd: str = "", pools: Sequence[str] = (), most: int = 12) -> None:
        """Return what the memories in scope are about (W12)."""

    # --- corrections ---------------------------------------------------------------------------------------------
    @sends(request.Edit, reply.Remembered)
    def edit(self, id: str, text: str, *, dry_run: bool = False) -> None:
        """Reword a record; the id stays."""

    @sends(corrections.Correct, reply.Remembered)
    def correct(self, id: str, text: str, *, since: str = "", dry_run: bool = False) -> None:
        """Replace a wrong record by a right one; `since`: the old one was right until then (T1). Raises NotFound,
        InvalidRequest."""

    @sends(request.Pin, reply.Remembered)
    def pin(
        self, id: str, pinned: bool = True, *, principle: bool = False, playbook: bool = False, dry_run: bool = False
    ) -> None:
        """Pin or unpin a record. A pinned record stands first in the profile, and no statement retires it by itself
        (R9, T13); a principle is in every answer (Q8). Raises InvalidRequest where its layer is full."""

    @sends(corrections.SetPersona, reply.Remembered)
    def set_persona(self, block: Literal["identity", "tone"], text: str, *, agent: str = "", add: bool = False) -> None:
        """Set who the user or an agent is, or the tone; "" removes it (R1). Raises InvalidRequest."""

    @sends(corrections.PlanReview, reply.Remembered)
    def plan_review(self, id: str, *, every_days: int | None = None, change_condition: str | None = None) -> None:
        """Set when to look at a record again, and what would change it (R5). Raises NotFound, InvalidRequest."""

    @sends(corrections.Learn, reply.Remembered)
    def learn(self, id: str, perspective: str, text: str) -> None:
        """Set what a record teaches under a perspective; "" removes it (R7). Raises NotFound, InvalidRequest."""

    @sends(corrections.AddEvidence, reply.Remembered)
    def add_evidence(self, id: str, refs: Sequence[str], *, note: str = "", remove: bool = False) -> None:
        """Add files, addresses and commits to a record as evidence, or remove them (R5). Raises NotFound,
        InvalidRequest."""

    @sends(request.Undo, reply.JobState)
    def undo(self, names: Sequence[str]) -> None:
        """Start to retract sessions; `redo` brings them back."""

    @sends(request.Redo, reply.JobState)
    def redo(self, names: Sequence[str]) -> None:
        """Start to bring back the sessions that `undo` retracted."""

    @sends(request.ProposeForget, reply.Proposed)
    def propose_forget(self, ids: Sequence[str], by: str = "", *, hide: bool = False) -> None:
        """Ask the user to forget records; with `hide` no read shows them until the user decides. Raises NotFound."""

    @sends(request.ListInbox, reply.Inbox)
    def inbox(self, *, all: bool = False, limit: int = 50) -> None:
        """List the proposals that the user has to decide (T13)."""

    @sends(request.Decide, reply.Decided)
    def decide(self, id: str, accept: bool, *, ids: Sequence[str] = (), dry_run: bool = False) -> None:
        """Decide a proposal, and those of `ids`, all or none; an accepted deletion is a job. Raises NotFound,
        InvalidRequest."""

    @sends(request.Reopen, reply.Decided)
    def reopen(self, id: str) -> None:
        """Take the decision on a proposal back. Raises NotFound, InvalidRequest."""

    # --- lifecycle -----------------------------------------------------------------------------------------------
    @sends(decay.PutToSleep, decay.Slumbered)
    def sleep(self, pools: Sequence[str] = (), *, dry_run: bool = False) -> None:
        """End a task (T6): fade the records of these pools, by default all, and archive the weakest."""

    @sends(decay.ListFading, decay.FadingList)
    def fading(self, cwd: str = "", *, pools: Sequence[str] = (), limit: int = 20, after_days: int = 0) -> None:
        """List the records that will be archived soon unless somebody uses them (T9)."""

    @sends(corrections.Confirm, corrections.Judgement)
    def confirm(self, ids: Sequence[str], *, right: bool = True, undo: bool = False, dry_run: bool = False) -> None:
        """Say that records are right, or wrong, or take that back (T1, T8). Raises NotFound, InvalidRequest."""

    @sends(corrections.Restore, corrections.RecordList)
    def restore(self, ids: Sequence[str]) -> None:
        """Make archived records active again (T7). Raises NotFound, InvalidRequest."""

    # --- forgetting ----------------------------------------------------------------------------------------------
    @sends(request.PreviewForget, reply.ForgetPlan)
    def preview_forget(
        self, ids: Sequence[str] = (), *, query: str = "", session: str = "", source: str = "", letter: int = 0
    ) -> None:
        """List the records that `forget` would delete. Raises InvalidRequest without exactly one scope."""

    @sends(request.Forget, reply.JobState)
    def forget(
        self, ids: Sequence[str] = (), *, query: str = "", session: str = "", source: str = "", letter: int = 0
    ) -> None:
        """Start to forget for good (T10). Raises InvalidRequest without exactly one scope."""

    @sends(request.Compact, reply.JobState)
    def compact(self) -> None:
        """Start to reclaim the disk space of removed entries (P-20)."""

    @sends(request.ScanSecrets, reply.JobState)
    def scan(self, *, dry_run: bool = True) -> None:
        """Start to scan stored data with the present rules for secrets. Without `dry_run` a placeholder replaces each
        secret for good (P-18)."""

    # --- pools, agents, access -----------------------------------------------------------------------------------
    @sends(request.Pools, reply.PoolList)
    def pools(self) -> None:
        """List every pool with its number of records."""

    @sends(request.WhyScope, reply.Scope)
    def why_scope(self, cwd: str) -> None:
        """Return the pool of a folder and the evidence for it (P3)."""

    @sends(request.BindScope, reply.Bound)
    def bind_scope(self, cwd: str, pool: str = "", *, title: str = "", join: bool = False) -> None:
        """Bind a folder to a pool; without one, to a new pool of its own. Raises NotFound."""

    @sends(request.MoveRecords, reply.RecordsMoved)
    def move_records(
        self,
        ids: Sequence[str],
        pool: str = "",
        *,
        copy: bool = False,
        visibility: Visibility | Literal[""] = "",
        dry_run: bool = False,
    ) -> None:
        """Move records into another pool, all or none. Raises NotFound."""

    @sends(request.LeaveProject, reply.Left)
    def leave(self, cwd: str = "", *, pool: str = "", back: bool = False) -> None:
        """Leave a project, or come back to it (P4). Raises NotFound."""

    @sends(request.OpenAgent, reply.Agent)
    def open_agent(self, agent: str, *, role: str = "", perspectives: Sequence[str] = (), prompt: str = "") -> None:
        """Open an agent's own pool, or change its role, perspectives (P5) and prompt (O5). Raises InvalidRequest."""

    @sends(request.GetAgent, AgentState)
    def agent(self, agent: str) -> None:
        """Return what memd keeps of an agent: role, perspectives, prompt (O5) and courses. Raises NotFound."""

    @sends(request.Teach, CourseTaught)
    def teach(self, agent: str, title: str, chapters: Sequence[CourseChapter]) -> None:
        """Let an agent read a course, or what changed in it (O3). Raises NotFound, InvalidRequest, Forgotten."""

    @sends(request.AskCourses, CoursesAsked)
    def ask_courses(self, agent: str) -> None:
        """Ask an agent's memory what is due in its courses (O3). Raises NotFound."""

    @sends(request.GetSchool, School)
    def school(self, agent: str) -> None:
        """Return an agent's courses with their tests and open gaps (O3). Raises NotFound."""

    @sends(request.CloseCourse, CourseState)
    def close_course(self, agent: str, course: str) -> None:
        """Ask no more questions of a course; its sections may fade (O3). Raises NotFound."""

    @sends(request.Grant, reply.PassGranted)
    def grant(
        self,
        subject: str = "",
        *,
        pools: Sequence[str] = (),
        sources: Sequence[str] = (),
        for_s: float = 30 * 86_400.0,
        back: bool = False,
    ) -> None:
        """Sign a pass (A1); with `back`, show again the records of revoked `sources`. Raises NotFound."""

    @sends(request.Revoke, reply.Revocation)
    def revoke(self, id: str = "", *, source: str = "") -> None:
        """Void a pass, or hide everything that was derived from a source (A3). Raises NotFound."""

    @sends(request.ListGrants, reply.Grants)
    def grants(self) -> None:
        """List every grant and every revoked source."""

    # --- sessions, settings, status ------------------------------------------------------------------------------
    @sends(request.ListSessions, reply.SessionPage)
    def sessions(self, host: str = "", *, is_open: bool = False, limit: int = 20) -> None:
        """List sessions, the latest first; of one host, or those that have not ended."""

    @sends(request.GetSession, reply.SessionOutcome)
    def session(self, id: str) -> None:
        """Return a session's contents and the records it produced. Raises NotFound."""

    @sends(request.GetSummary, reply.Summary)
    def summary(self, id: str) -> None:
        """Return what a session asked, did, taught and left open, in its own words (C2). Raises NotFound."""

    @sends(request.FindSessions, reply.SessionsFound)
    def find_sessions(self, words: str, *, host: str = "", limit: int = 10) -> None:
        """Return the sessions that have some words in their title or their turns, best first (C2)."""

    @sends(request.GetTranscript, reply.SessionTurns)
    def transcript(self, id: str, *, around: str = "", limit: int = 20) -> None:
        """Return turns of a session in order, around one or from the first, with the records that cite them. Raises
        NotFound."""

    @sends(request.ListSettings, reply.SettingList)
    def settings(self) -> None:
        """List every setting with its value and its source (U6)."""

    @sends(request.PutSetting, reply.SettingList)
    def put_setting(self, name: str, value: str | None) -> None:
        """Write a setting into memd.toml, or remove it there, and apply it. Raises BadConfig."""

    @sends(request.ListActivity, reply.ActivityPage)
    def activity(self, after: int = 0, limit: int = 100, *, wait_ms: int = 0) -> None:
        """Return what the daemon did after event `after`. Where that is nothing, wait for it this long (U9)."""

    @sends(request.GetStatus, reply.StatusText)
    def status(self) -> None:
        """Return the daemon's last activity, its backlog and its failures (U6)."""

    @sends(request.Stop, reply.Done)
    def stop(self) -> None:
        """Stop the daemon after it has finished the acknowledged work."""

    # --- data and maintenance ------------------------------------------------------------------------------------
    @sends(request.Journal, reply.Journaled)
    def journal(self, after: int = 0, limit: int = 100, *, wait_ms: int = 0) -> None:
        """Return the operations after `after`, in order (W8). Where there are none, wait for them this long (U9)."""

    @sends(request.ListPatches, PatchList)
    def patches(self, pool: str) -> None:
        """List the patches of a pool, by day (G2). Raises NotFound."""

    @sends(request.GetPatch, PatchBytes)
    def patch(self, pool: str, patch: str) -> None:
        """Return a patch of this home, or of a proposal, as a file. Raises NotFound."""

    @sends(request.SendPatch, PatchBytes)
    def send_patch(self, pool: str, proposal: str) -> None:
        """Turn a proposal into a patch file that others decide. Raises NotFound, InvalidRequest."""

    @sends(request.PublishPlaybook, PatchBytes)
    def publish_playbook(self, pool: str, *, dry_run: bool = False) -> None:
        """Make one patch of the playbook's records that no patch states yet. Raises NotFound."""

    @sends(request.TakePatches, PatchesTaken)
    def take_patches(
        self,
        pool: str,
        files: Sequence[TreeFile] = (),
        present: Sequence[str] | None = None,
        *,
        by_user: bool = False,
        dry_run: bool = False,
    ) -> None:
        """Take the new patches of a committed tree (G2). Raises NotFound, InvalidRequest."""

    @sends(request.TrustPi, PatchList)
    def trust_pi(self, pool: str, *, trusted: bool = True) -> None:
        """Let memd read a project's `.pi` folder, or take that back. Raises NotFound."""

    @sends(request.Curate, Curation)
    def curate(self, pool: str = "", *, dry_run: bool = False) -> None:
        """Propose what a pool's playbook should take in, merge, review or give up (G3). Raises NotFound."""

    @sends(GetPolicy, PolicyState)
    def policy(self, pool: str = "", cwd: str = "") -> None:
        """Return the policy of a pool, or of a folder's project. Raises NotFound."""

    @sends(CheckPolicy, PolicyState)
    def check_policy(self, data: bytes, pool: str = "", cwd: str = "") -> None:
        """Return what these bytes would be as a policy file; nothing changes. Raises NotFound."""

    @sends(AcceptPolicy, PolicyState)
    def accept_policy(self, digest: str, pool: str = "", cwd: str = "") -> None:
        """Let the policy file of this digest loosen what it asks for. Raises NotFound, InvalidRequest."""

    @sends(request.GetReport, WeeklyReport)
    def report(self, week: str = "") -> None:
        """Return the report of an ISO week such as 2026-W47, of the present one for "" (G6). Raises InvalidRequest."""

    @sends(request.GetJob, reply.JobState)
    def job(self, id: str) -> None:
        """Return the progress of a job."""

    @sends(request.Verify, reply.JobState)
    def verify(self) -> None:
        """Start the check of all stored data."""

    @sends(request.Rebuild, reply.JobState)
    def rebuild(self, name: str = "all") -> None:
        """Start to rebuild a projection, or all of them (U3)."""

    @sends(request.ListModels, reply.ModelList)
    def models(self) -> None:
        """List the models, and the progress of a change to another one (P-14)."""

    @sends(request.UseModel, reply.JobState)
    def use_model(self, folder: str = "default") -> None:
        """Start to check and select the model in an absolute path, or the package's own (P-14)."""

    @sends(request.Backup, reply.JobState)
    def backup(self, to: str = "", keep: int = 0) -> None:
        """Start a backup into an absolute path, or into memd's own folder, which retains the newest `keep`."""

    @sends(request.Backups, reply.BackupList)
    def backups(self, folder: str = "") -> None:
        """List the finished backups in a folder, by default memd's own."""

    @sends(request.Expire, reply.JobState)
    def expire(self, dry_run: bool = False) -> None:
        """Start the archive's retention (T10)."""

    @sends(request.DiskUsage, reply.DiskUse)
    def disk_usage(self) -> None:
        """Return the bytes on disk by part."""

    @sends(request.Export, reply.ExportPage)
    def export(self, pools: Sequence[str] = (), after: str = "", limit: int = 200, *, shareable: bool = False) -> None:
        """Return a page of records with their history (P-25); `shareable`: only those that may leave."""

    import_records = RequestMethod(request.ImportRecords, reply.RecordsImported, _exported)


def answer_while_disabled(message: request.Request, data: type[R], why: str) -> R:
    """Return the empty answer of a disabled memd to a capture, a recall or a profile. Raises Disabled for the rest."""
    empty: object = None
    if isinstance(message, request.Capture):
        skipped = len(message.events)
        empty = reply.Taken(
            accepted=0, duplicate=0, changed=0, refused=(), pool="", pending=0, skipped=skipped, why="disabled"
        )
    elif isinstance(message, request.Recall):
        empty = reply.Recalled(hits=(), scope=(), abstained=True, reason=f"memd is disabled by {why}")
    elif isinstance(message, request.Profile):
        empty = reply.ProfileText(text="", rev="", ids=(), scope=(), tokens=0)
    if isinstance(empty, data):
        return empty
    raise Disabled(f"memd is disabled by {why}", hint="unset the variable, or remove the file")
