"""Skills: drafts of procedures that sessions repeated, and the skills that the user placed (K1, K2, K3).

Invariants: a draft is stored nowhere; the daemon writes no skill's file; only the user places, retires or edits one,
and only he decides a proposal.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import NamedTuple

import msgspec

from ....protocol.errors import InvalidRequest, MemdError, NotFound, Refused
from ....protocol.instant import from_micros
from ....protocol.operation import AnyOperation, ChangeDecided, ChangeProposed, Invalidated, SkillRevised
from ....protocol.record import LIVE, Record
from ....protocol.repository_folder import repository_folder
from ....protocol.skills import (
    SKILL_COMMANDS,
    ListSkills,
    PlacedSkill,
    PlaceSkill,
    ProposeSkills,
    RetireSkill,
    SharedSkill,
    ShareSkill,
    SkillDraft,
    SkillList,
    SkillProposals,
    SkillRound,
    SkillStep,
    SkillTuning,
    TuneSkill,
)
from ....stages.batch import PERSONAL
from ...projections.records import digest
from ..core import Core
from ..outgoing_screen import without_secrets
from ..own_documents import opening
from ..search_model import Encode
from ..service import Caller, Handler, Handlers, Service
from ..write_thread import Writer
from .instructions import stated_in
from .mining import Procedure
from .placed_skills import KEY, PlacedSkills, name_of
from .pool_work import PoolWork, pool_works
from .shared_text import Requests, shared_text
from .skill_file import read_skill, whole_text
from .skill_proposals import OwnSteps, SkillProposer, is_rejected, is_same, own_digests
from .skill_record import skill_record
from .skill_text import skill_text, why_refused
from .tuning import Tuner

WEEK_S, LOOK_S = 7 * 86_400.0, 3_600.0

log = logging.getLogger("memd.skills")


class FoundDraft(NamedTuple):
    """A draft, and the procedure that it tells."""

    draft: SkillDraft
    procedure: Procedure


class SkillsService(Service):
    """Finds procedures on the slow lane, and keeps what is known of placed skills."""

    name = "skills"

    def __init__(
        self, core: Core, writer: Writer, is_quiet: Callable[[], bool], encode: Callable[[], Encode | None]
    ) -> None:
        """`is_quiet`: whether the machine is idle and on power; `encode`: returns the encoder of the current model, if
        it has one."""
        self._stores, self._world, self._scheduler, self._gate = core.stores, core.world, core.scheduler, core.gate
        self._writer, self._is_quiet = writer, is_quiet
        self._placed, self._encode = PlacedSkills(core.stores), encode
        self._ran_at = -WEEK_S

    @property
    def handlers(self) -> Handlers:
        return {
            ListSkills: Handler("slow", self.list, scoped=True),
            PlaceSkill: Handler("slow", self.place, scoped=True),
            RetireSkill: Handler("slow", self.retire, scoped=True),
            TuneSkill: Handler("slow", self.tune, scoped=True),
            ShareSkill: Handler("slow", self.share, scoped=True),
            ProposeSkills: Handler("slow", self.propose),
        }

    def start(self) -> None:
        """Look once a week, while the machine is idle and on power."""
        self._scheduler.every(LOOK_S, self.look, "skills")

    def look(self) -> None:
        """Propose if a week has passed since the last look and the machine is idle and on power."""
        if self._world.monotonic() - self._ran_at < WEEK_S or not self._is_quiet():
            return
        self._ran_at = self._world.monotonic()
        try:
            made = self.propose(ProposeSkills(), Caller()).proposed
        except MemdError as error:  # a full disk or a stop; the next week tries again
            log.info("could not look for skills: %s", error.message)
            return
        if made:
            log.info("proposed %d skills or changes of skills", len(made))

    # --- reads -----------------------------------------------------------------------------------------------------
    def list(self, request: ListSkills, caller: Caller) -> SkillList:
        """Return drafts and placed skills. Raises NotFound for a pool that does not exist."""
        wanted = request.name.strip().lower()
        works = pool_works(self._stores, caller)
        pools = sorted(works) if request.everywhere else [pool for pool in caller.scope if pool in works]
        found = [each.draft for pool in pools for each in self._drafts(works[pool])]
        kept = [each for each in found if request.known or not each.stated_in]
        kept = [each for each in kept if not wanted or _is_named(each.name, each.id, wanted)]
        kept.sort(key=lambda each: (bool(each.stated_in), bool(each.refused), -len(each.rounds), each.id))
        in_reach = None if request.everywhere else caller.scope
        placed = [self._placed.told(record, works) for record in self._records(in_reach)]
        return SkillList(
            skills=tuple(kept),
            placed=tuple(each for each in placed if not wanted or _is_named(each.name, each.id, wanted)),
            sessions=sum(len(works[pool].sessions) for pool in pools),
            units=sum(len(works[pool].units) for pool in pools),
        )

    def _records(self, pools: tuple[str, ...] | None) -> Iterator[Record]:
        """Yield the records of placed skills of these pools and of the user's home; of all for None."""
        for record in self._placed.records():
            if pools is None or record.pool in (*pools, PERSONAL):
                yield record

    def _drafts(self, work: PoolWork) -> Iterator[FoundDraft]:
        rejected = SkillProposer(self._stores, self._world.now()).rejected(work.pool)
        for procedure in work.procedures:
            own = OwnSteps(frozenset(own_digests(work.pool, procedure.own)), len(procedure.rounds))
            yield FoundDraft(_draft(work, procedure, is_rejected(own, rejected)), procedure)

    def _named(self, name: str, caller: Caller) -> Record:
        """Return the record of a placed skill by name or beginning of its id. Raises NotFound."""
        wanted = name.strip().lower()
        found = [each for each in self._records(caller.scope) if _is_named(name_of(each), each.id, wanted)]
        if len(found) > 1 and len(own := [each for each in found if each.pool == PERSONAL]) == 1:
            return own[0]  # the user's own comes first
        if len(found) != 1:
            problem = "several skills are named" if found else "no skill is placed under the name"
            raise NotFound(f"{problem} {name!r}", hint="`memd skill list` shows them")
        return found[0]

    # --- changes ---------------------------------------------------------------------------------------------------
    def place(self, request: PlaceSkill, caller: Caller) -> PlacedSkill:
        """Store where a skill's file lies, and accept its proposal. Raises NotFound, InvalidRequest."""
        path = Path(request.path)
        is_there = request.by == "offered" or read_skill(path).sha == request.sha
        if not path.is_absolute() or path.name != "SKILL.md" or not is_there:
            raise InvalidRequest(f"{path} is no skill with these bytes", hint="`memd skill place NAME` writes one")
        works = pool_works(self._stores, caller)
        if request.by == "placed":
            record, operations = self._placing(request, self._draft_named(request.name, works, caller), works)
        else:
            record, operations = self._revising(request, self._named(request.name, caller), works)
        self._writer.run(lambda: self._stores.commit(operations)).result()
        return self._placed.told(record, works)

    def _revising(
        self, request: PlaceSkill, record: Record, works: Mapping[str, PoolWork]
    ) -> tuple[Record, list[AnyOperation]]:
        """Return the record of a skill that has other bytes, and the operations that store it; of one that was shared
        the record of its copy for the project."""
        if request.by != "offered" or request.path == str(self._placed.path(record, works)):
            revised = SkillRevised(record=record.id, sha=request.sha, by=request.by, then=request.then)
            return record, [revised, *self._accepted(record)]
        first = self._stores.skills.states(record.id)[0].what
        pool = _pool_of(request, first.pool)
        copy, operations = self._record(
            pool, Path(request.path), f"the user shared their skill {record.id[:8]}", record.id
        )
        offered = msgspec.structs.replace(first, record=copy.id, sha=request.sha, by="offered", then="placed")
        return copy, [*operations, offered]

    def _accepted(self, record: Record) -> Iterator[ChangeDecided]:
        """Yield the decisions of what was proposed about a placed skill."""
        for each in self._stores.inbox.list():
            if each.what.what in SKILL_COMMANDS and each.what.record == record.id:
                yield ChangeDecided(id=each.what.id, accepted=True)

    def _record(self, pool: str, path: Path, reason: str, copy_of: str = "") -> tuple[Record, list[AnyOperation]]:
        """Return the record of a skill's file, and the operations that add it if there is none."""
        holder = self._stores.records.holding_key(pool, f"{KEY}{path.parent.name}")
        record = self._stores.records.get(holder) if holder else None
        if record is not None and record.status in LIVE:
            return record, []
        now = from_micros(self._world.now())
        record, captured, added = skill_record(self._gate, pool, path, now, reason, copy_of)
        self._writer.run(lambda: self._stores.take([captured])).result()
        return record, [*opening(self._stores, captured.document, now), added]

    def _draft_named(self, name: str, works: Mapping[str, PoolWork], caller: Caller) -> FoundDraft:
        wanted = name.strip().lower()
        found = [
            each
            for pool in caller.scope
            if pool in works
            for each in self._drafts(works[pool])
            if _is_named(each.draft.name, each.draft.id, wanted)
        ]
        if len(found) != 1 or found[0].draft.refused:
            raise NotFound(f"no single draft is named {name!r}", hint="`memd skill list` lists them")
        return found[0]

    def _placing(
        self, request: PlaceSkill, found: FoundDraft, works: Mapping[str, PoolWork]
    ) -> tuple[Record, list[AnyOperation]]:
        """Return the record of a placed draft, and the operations that store it."""
        draft, path = found.draft, Path(request.path)
        own = own_digests(draft.pool, found.procedure.own)
        pool = _pool_of(request, draft.pool)
        record, operations = self._record(pool, path, f"the user placed the draft {draft.id[:8]} as a skill")
        waiting = [each.what for each in self._stores.inbox.list() if each.what.what == "skill"]
        decided = [each for each in waiting if each.pool == draft.pool and is_same(frozenset(each.own), frozenset(own))]
        rounds = len(draft.rounds)
        operations += [
            SkillRevised(record=record.id, sha=request.sha, by="placed", pool=draft.pool, own=own, rounds=rounds)
        ]
        operations += [ChangeDecided(id=each.id, accepted=True) for each in decided]
        return record, operations

    def retire(self, request: RetireSkill, caller: Caller) -> PlacedSkill:
        """Store that the user took a skill away, and accept its proposals. Raises NotFound."""
        record = self._named(request.name, caller)
        told = self._placed.told(record, pool_works(self._stores, caller))
        reason = f"the user retired the skill{f': {told.retire}' if told.retire else ''}"
        operations: list[AnyOperation] = [
            SkillRevised(record=record.id, sha="", by="retired"),
            Invalidated(id=record.id, valid_to="", reason=reason),
            *self._accepted(record),
        ]
        self._writer.run(lambda: self._stores.commit(operations)).result()
        return told

    def propose(self, request: ProposeSkills, caller: Caller) -> SkillProposals:
        """Put drafts and skills to retire in the inbox; note what became of placed files."""
        works = pool_works(self._stores, caller)
        if not request.dry_run and (changes := list(self._placed.changes(works))):
            self._writer.run(lambda: self._stores.commit(changes)).result()
        drafts = {
            pool: [(each.draft, each.procedure.own) for each in self._drafts(work)] for pool, work in works.items()
        }
        placed = [self._placed.told(record, works) for record in self._placed.records()]
        proposer = SkillProposer(self._stores, self._world.now())
        found = list(proposer.proposals(drafts, placed))
        if found and not request.dry_run:
            self._writer.run(lambda: self._stores.commit([each.operation for each in found])).result()
        return SkillProposals(
            proposed=tuple((each.name, each.reason) for each in found),
            left_out=tuple(proposer.left_out.most_common()),
            dry_run=request.dry_run,
        )

    def tune(self, request: TuneSkill, caller: Caller) -> SkillTuning:
        """Return edits that held-out work confirms. Raises NotFound, InvalidRequest."""
        record = self._named(request.name, caller)
        works = pool_works(self._stores, caller)
        work = works.get(self._stores.skills.states(record.id)[0].what.pool)
        return Tuner(self._placed.told(record, works), work, self._encode(), request.read_by_others).tuned()

    def share(self, request: ShareSkill, caller: Caller) -> SharedSkill:
        """Return the text of a skill for its project. Raises NotFound, InvalidRequest, Refused."""
        record = self._named(request.name, caller)
        works = pool_works(self._stores, caller)
        pool = self._stores.skills.states(record.id)[0].what.pool
        if pool == PERSONAL or pool not in caller.scope or pool not in works:
            hint = "run it in a checkout of the project whose work it tells"
            raise Refused("a skill can only be shared with the project in which its work was done", hint=hint)
        told, work = self._placed.told(record, works), works[pool]
        file = read_skill(Path(told.path))
        text = whole_text(Path(told.path), file)
        requests = Requests(partial(work.has_asked, in_private=False), work.repeats_private)
        shared = shared_text(text, request.description, requests, work.known)
        return SharedSkill(skill=told, text=shared.text, sha=file.sha, left_out=shared.left_out)

    # --- the inbox -------------------------------------------------------------------------------------------------
    def line(self, proposal: ChangeProposed) -> str:
        """Return what a proposal is about, "" if nothing stands behind it any more."""
        works = pool_works(self._stores, Caller())
        if proposal.what != "skill":
            record = self._stores.records.get(proposal.record)
            told = self._placed.told(record, works) if record and record.status in LIVE else None
            reason = (told.retire if proposal.what == "skill_retire" else told.mend) if told else ""
            return f"{told.name}: {told.path}" if told and reason else ""
        work = works.get(proposal.pool)
        for each in self._drafts(work) if work else ():
            if is_same(frozenset(own_digests(proposal.pool, each.procedure.own)), frozenset(proposal.own)):
                steps = " → ".join(step.text for step in each.draft.steps if not step.risk)
                return f"{each.draft.name}: {steps}" if not each.draft.refused else ""
        return ""


def _pool_of(request: PlaceSkill, pool: str) -> str:
    """Return the pool of a file: the one of its work if it lies in the caller's checkout."""
    root = repository_folder(Path(request.cwd)) if request.cwd else None
    return pool if root and Path(request.path).resolve().is_relative_to(root.resolve()) else PERSONAL


def _is_named(name: str, id: str, wanted: str) -> bool:
    """Whether what a user typed is the name, or the beginning of the id."""
    return wanted in (name, id[: len(wanted)])


def _draft(work: PoolWork, procedure: Procedure, rejected: bool) -> SkillDraft:
    words = work.draft(procedure)
    id = digest(" ".join((work.pool, *sorted(procedure.own)))).hex()[:26]
    good = sum(each.unit.end == "good" for each in procedure.rounds)
    told = f"{len(procedure.rounds)} times in {procedure.sessions} sessions on {procedure.days} days; {good} known good"
    text = skill_text(words, id, told)
    rule = work.forbidden(procedure)
    refused = f"a rule forbids a step: {without_secrets(rule)}" if rule else why_refused(words, text)
    own = procedure.own
    return SkillDraft(
        id=id,
        pool=work.pool,
        name=words.name,
        form=words.form,
        steps=tuple(
            SkillStep(
                text=step.text, rounds=step.rounds, own=source.name in own, risk=step.risk, document=step.document
            )
            for step, source in zip(words.steps, procedure.steps, strict=True)
        ),
        rounds=tuple(
            SkillRound(
                document=each.unit.document,
                turn=each.unit.turns[0],
                day=each.unit.day,
                end="good" if each.unit.end == "good" else "unknown",
            )
            for each in procedure.rounds
        ),
        agree=round(procedure.agree, 3),
        sessions=procedure.sessions,
        days=procedure.days,
        asks=words.asks,
        pitfalls=words.pitfalls,
        stated_in=tuple(stated_in(procedure.own, work.texts)),
        refused=refused,
        text="" if refused else text,
        rejected=rejected,
    )
