"""The inbox: agents propose to forget or change records, the user decides.

Invariants: decisions and their effects are one commit; no proposal hides a pinned record; what comes back stands as it
stood, but retired if another record holds its key by now.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Literal, Protocol

import msgspec

from ....protocol.corrections import (
    Decide,
    Inbox,
    JudgedRecord,
    ListInbox,
    PlaybookChange,
    Proposed,
    ProposeForget,
    Reopen,
    Waiting,
)
from ....protocol.errors import InvalidRequest, NotFound
from ....protocol.operation import (
    AnyOperation,
    ChangeDecided,
    ChangeProposed,
    ChangeReopened,
    Decision,
    Hidden,
    Invalidated,
    Pinned,
    Retirement,
    Unhidden,
    Updated,
)
from ....protocol.record import LIVE, Record, Status
from ....protocol.reply import Decided, JobState
from ....protocol.request import Forget
from ....protocol.skills import SKILL_COMMANDS
from ...failpoint import reach
from ...projections.inbox import PendingProposal, proposal_id
from ...projections.stores import Stores
from ..merging import merged
from ..service import Handlers, Service, owner
from ..shared_belief import is_withheld
from ..write_thread import Writer
from .hiding import bring_back, hide, may_hide
from .reopening import stands, step_of, taken_back, why_retired

Retract = Callable[[Sequence[Record]], Sequence[AnyOperation]]
"""Returns what tells the others of a shared project that records that they shared do not hold. On the write thread."""


class PatchProposals(Protocol):
    """Decides proposals of patches, and shows them."""

    def stands(self, proposal: ChangeProposed) -> bool:
        """Whether the user can still decide a proposal."""
        ...

    def changes(self, proposal: ChangeProposed) -> tuple[PlaybookChange, ...]:
        """Return what a proposal would change."""
        ...

    def name(self, pending: PendingProposal) -> str:
        """Return the name of the patch that a proposal would become."""
        ...

    def accepted(self, pending: PendingProposal) -> list[AnyOperation]:
        """Return the decision with its effects. Raises InvalidRequest. On the write thread, or for a dry run."""
        ...

    def taken_back(self, pending: PendingProposal) -> list[AnyOperation]:
        """Return the operations that open a decided proposal again. Raises InvalidRequest. On the write thread."""
        ...


class InboxService(Service):
    """Proposals that wait for the user's decision."""

    name = "inbox"

    def __init__(
        self,
        stores: Stores,
        writer: Writer,
        forget: Callable[[Forget, Sequence[AnyOperation]], JobState],
        retract: Retract = lambda records: (),
        patches: PatchProposals | None = None,
        skill_line: Callable[[ChangeProposed], str] = lambda proposal: "",
    ) -> None:
        """`forget`: starts to forget, and commits these operations with it; `retract`: tells the others of a shared
        project that records of theirs do not hold; `patches`: decides proposals of patches;
        `skill_line`: tells what a proposal of skills is about, "" if it is moot."""
        self._patches, self._skill_line = patches, skill_line
        self._stores, self._writer, self._start_forgetting = stores, writer, forget
        self._retract = retract

    @property
    def handlers(self) -> Handlers:
        """An agent may propose; the user decides."""
        return {
            ProposeForget: owner("write", self.propose),
            ListInbox: owner("slow", self.list),
            Decide: owner("slow", self.decide),
            Reopen: owner("write", self.reopen),
        }

    def propose(self, request: ProposeForget) -> Proposed:
        """Propose to forget records, and hide them where that is allowed. Raises NotFound, InvalidRequest."""
        records = {record.id: record for record in map(self._stores.records.named, request.ids)}
        if not records:
            raise InvalidRequest("nothing to forget was named", hint="name records by id")
        ids = {proposal_id(id): id for id in records}
        fresh = [id for id in ids if self._stores.inbox.get(id) is None]
        operations: list[AnyOperation] = [
            ChangeProposed(id=id, what="forget", record=ids[id], by=request.by[:80]) for id in fresh
        ]
        hidden = [records[ids[id]] for id in fresh if may_hide(records[ids[id]])] if request.hide else []
        if hidden:
            operations.append(hide(hidden))
        if operations:
            self._stores.commit(operations)
        gone = tuple(record.id for record in hidden)
        shown = tuple(id for id in records if id not in gone) if request.hide else ()
        return Proposed(ids=tuple(ids), known=len(ids) - len(fresh), hidden=gone, shown=shown)

    def list(self, request: ListInbox) -> Inbox:
        """List the proposals, only open ones by default."""
        asked = self._stores.inbox.list(decided=request.all)
        shown = [self._waiting(pending) for pending in asked]
        listed = [proposal for proposal in shown if request.all or proposal.state == "open"]
        standing = sum(proposal.state == "open" for proposal in shown)
        return Inbox(proposals=tuple(listed[: max(1, request.limit)]), open=standing)

    def _waiting(self, asked: PendingProposal) -> Waiting:
        proposal = asked.what
        records = self._stores.records.many(filter(None, (proposal.record, proposal.against)))
        old, new = records.get(proposal.record), records.get(proposal.against)
        patches = self._patches if proposal.what == "patch" else None
        told = self._skill_line(proposal) if proposal.what in SKILL_COMMANDS else ""
        is_standing = patches.stands(proposal) if patches else bool(told) or stands(proposal, old, new)
        state = asked.state if asked.state != "open" or is_standing else "moot"
        return Waiting(
            id=proposal.id,
            what=proposal.what,
            record=proposal.record,
            line=told or self._line(old),
            state=state,
            by=proposal.by or proposal.document,
            against=proposal.against,
            against_line=self._line(new),
            label=proposal.label,
            reason=proposal.reason,
            at=asked.at,
            evidence=old.provenance.spans if old else (),
            against_evidence=new.provenance.spans if new else (),
            if_nothing=_if_nothing(proposal, old) if state == "open" else "",
            patch=patches.name(asked) if patches and state != "moot" else "",
            changes=patches.changes(proposal) if patches else (),
        )

    def _line(self, record: Record | None) -> str:
        """Return a record's description; "" for none, and for one that a hub's lease hides."""
        return "" if record is None or is_withheld(self._stores, record) else record.description

    def decide(self, request: Decide) -> Decided:
        """Accept or reject all named proposals, or none. Raises NotFound, InvalidRequest."""
        names = [name for name in (request.id, *request.ids) if name]
        if not names:
            raise InvalidRequest("no proposal was named", hint="`memd inbox` lists them")
        proposals = list({(asked := self._open_one(name)).id: asked for name in names}.values())
        if request.accept and (skill := next((each for each in proposals if each.what in SKILL_COMMANDS), None)):
            raise _is_a_file(skill, self._skill_line(skill))
        deletions = [proposal for proposal in proposals if request.accept and proposal.what == "forget"]
        if not deletions:
            if request.dry_run:
                changes = self._changes(self._effects(proposals, request.accept))
                return Decided(open=self._open(), records=changes, dry_run=True)
            return self._writer.run(lambda: self._settle(proposals, request.accept)).result()
        if len(deletions) < len(proposals):
            ids = " ".join(proposal.id[:8] for proposal in deletions)
            raise InvalidRequest(
                "some of these proposals delete a record permanently, others do not",
                hint=f"accept the deletions in a call of their own: {ids}",
            )
        if request.dry_run:
            records = self._stores.records.many(proposal.record for proposal in deletions)
            return Decided(
                open=self._open(), records=tuple(_judged(record, "") for record in records.values()), dry_run=True
            )
        return Decided(open=self._open(), job=self._forget(deletions))

    def reopen(self, request: Reopen) -> Decided:
        """Take the decision on a proposal back. Raises NotFound, InvalidRequest. On the write thread."""
        asked = self._named(request.id, hint="`memd inbox --all` lists them; what was deleted permanently is gone")
        patches = self._patches if asked.what.what == "patch" and asked.state != "open" else None
        operations = patches.taken_back(asked) if patches else taken_back(self._stores, asked)
        changes = self._changes(operations)
        self._stores.commit(operations)
        return Decided(open=self._open(), records=changes)

    def _named(self, name: str, hint: str) -> PendingProposal:
        """Return the proposal of an id or unambiguous prefix. Raises NotFound."""
        ids = self._stores.inbox.starting(name.strip().lower())
        asked = self._stores.inbox.get(ids[0]) if len(ids) == 1 else None
        if asked is None:
            problem = "several proposals start with" if ids else "no proposal"
            raise NotFound(f"{problem} {name!r}", hint=hint)
        return asked

    def _open_one(self, name: str) -> ChangeProposed:
        """Return the open proposal of an id or unambiguous prefix. Raises NotFound, InvalidRequest."""
        asked = self._named(name, hint="`memd inbox` lists them")
        if asked.state != "open":
            raise InvalidRequest(
                f"{asked.what.id[:8]} is already {asked.state}",
                hint=f"`memd inbox reopen {asked.what.id[:8]}` takes the decision back",
            )
        return asked.what

    def _forget(self, proposals: Sequence[ChangeProposed]) -> JobState:
        """Start the job of `memd forget`; its first commit contains the decisions."""
        request = Forget(ids=tuple(proposal.record for proposal in proposals))
        return self._start_forgetting(request, [ChangeDecided(id=proposal.id, accepted=True) for proposal in proposals])

    def _settle(self, proposals: Sequence[ChangeProposed], accept: bool) -> Decided:
        """Commit the decisions with their effects. On the write thread."""
        for proposal in proposals:
            asked = self._stores.inbox.get(proposal.id)
            if asked is None or asked.state != "open":
                raise InvalidRequest(
                    f"someone decided {proposal.id[:8]} in the meantime", hint="`memd inbox --all` shows it"
                )
        operations = self._effects(proposals, accept)
        changes = self._changes(operations)
        self._stores.commit(operations)
        reach("inbox:decided")
        return Decided(open=self._open(), records=changes)

    def _effects(self, proposals: Sequence[ChangeProposed], accept: bool) -> list[AnyOperation]:
        """Return the decisions with what they change. Raises InvalidRequest where one can't be accepted."""
        return self._accepted(proposals) if accept else self._rejected(proposals)

    def _accepted(self, proposals: Sequence[ChangeProposed]) -> list[AnyOperation]:
        operations: list[AnyOperation] = []
        ids = (id for proposal in proposals for id in (proposal.record, proposal.against) if id)
        records = self._stores.records.many(ids)
        changed: dict[str, Record] = {}
        patches = self._patches
        team: list[Record] = []
        for proposal in proposals:
            if proposal.what == "patch" and patches is not None:
                operations += patches.accepted(self._named(proposal.id, hint="`memd inbox` lists them"))
                continue
            if not proposal.against:
                operations += [_retired(proposal, records | changed), ChangeDecided(id=proposal.id, accepted=True)]
                continue
            old, new = _both(proposal, records | changed)
            update = _replaced(old, new, proposal)
            changed[new.id] = update.record
            changed[old.id] = msgspec.structs.replace(old, status="retired", superseded_by=new.id)
            operations += [update, ChangeDecided(id=proposal.id, accepted=True)]
            if old.is_shared and not new.is_team:
                team.append(old)
        return [*operations, *(self._retract(team) if team else ())]

    def _rejected(self, proposals: Sequence[ChangeProposed]) -> list[AnyOperation]:
        operations: list[AnyOperation] = []
        keys: set[tuple[str, str]] = set()
        for proposal in proposals:
            operations.append(ChangeDecided(id=proposal.id, accepted=False))
            back = bring_back(self._stores, proposal.record) if proposal.what == "forget" else None
            record = self._stores.records.get(proposal.record)
            if back is None or record is None:
                continue
            if record.key and back.after[0].status in LIVE:
                if (record.pool, record.key) in keys:
                    raise InvalidRequest(
                        f"{record.id[:8]} and another of these records answer the same question",
                        hint="reject the proposals one after another",
                    )
                keys.add((record.pool, record.key))
            operations.append(back)
        return operations

    def _changes(self, operations: Sequence[AnyOperation]) -> tuple[JudgedRecord, ...]:
        """Return the records that these operations change."""
        after: dict[str, Status] = {}
        for operation in operations:
            match operation:
                case Updated():
                    after |= {retirement.id: "retired" for retirement in operation.retires}
                    after[operation.record.id] = operation.record.status
                case Invalidated():
                    after[operation.id] = "retired"
                case Pinned(id=id, pinned=True):
                    after[id] = "active"
                case Hidden() | Unhidden() | ChangeReopened():
                    after |= {shift.id: shift.status for shift in operation.after}
                case _:
                    pass
        records = self._stores.records.many(after)
        return tuple(_judged(records[id], status) for id, status in after.items() if id in records)

    def _open(self) -> int:
        """Return how many proposals wait. Proposals of skills count unseen: to look for them reads many sessions."""
        waiting = self._stores.inbox.list()
        return sum(each.what.what in SKILL_COMMANDS or self._waiting(each).state == "open" for each in waiting)


def _retired(proposal: ChangeProposed, records: Mapping[str, Record]) -> Invalidated:
    """Return the retirement of a record without a replacement. Raises InvalidRequest if it is no longer live."""
    old = records.get(proposal.record)
    if old is None or not stands(proposal, old, None):
        raise _no_longer_live(proposal)
    return Invalidated(id=old.id, valid_to="", reason=why_retired(proposal))


def _is_a_file(proposal: ChangeProposed, line: str) -> InvalidRequest:
    """Return why a proposal of a skill is not accepted here: the user reads its file first."""
    call = f"memd skill {SKILL_COMMANDS[proposal.what]} {line.partition(':')[0] or 'NAME'}"
    return InvalidRequest(f"{proposal.id[:8]} is about a file", hint=f"`{call}` shows it and asks")


def _no_longer_live(proposal: ChangeProposed) -> InvalidRequest:
    return InvalidRequest(
        f"one of the records of {proposal.id[:8]} is no longer active, so it cannot be accepted",
        hint=f"`memd inbox reject {proposal.id[:8]}` removes it from the list",
    )


def _both(proposal: ChangeProposed, records: Mapping[str, Record]) -> tuple[Record, Record]:
    """Return the record and the one that replaces it. Raises InvalidRequest where one is no longer live."""
    old, new = records.get(proposal.record), records.get(proposal.against)
    if old is None or new is None or not stands(proposal, old, new):
        raise _no_longer_live(proposal)
    return old, new


def _judged(record: Record, after: Status | Literal[""]) -> JudgedRecord:
    return JudgedRecord(id=record.id, description=record.description, before=record.status, after=after)


def _if_nothing(proposal: ChangeProposed, old: Record | None) -> str:
    """Return what happens as long as the user does not decide."""
    if not proposal.against and proposal.what == "conflict":
        return "The record stays as it is."
    if proposal.what == "conflict":
        return "Both stay, and an answer may have either."
    if proposal.what == "duplicate":
        return "Both stay, although they say the same."
    if proposal.what == "patch":
        return "The playbook stays as it is."
    if proposal.what in SKILL_COMMANDS:
        return "No file is written." if proposal.what == "skill" else "The skill stays as it is."
    if old is not None and old.status == "hidden":
        return "It stays hidden: no answer has it."
    return "It stays as it is."


def _replaced(old: Record, new: Record, proposal: ChangeProposed) -> Updated:
    """Return `new` as the successor of `old`; it takes the key of `old` if that was withheld, and the sources of a
    duplicate."""
    steps = (step_of(proposal),)
    if proposal.what == "duplicate":
        reason = f"the user accepted that {old.id} says the same"
        return merged(old, new, Decision(action="update", reason=reason, steps=steps))
    key = new.key or (old.key if new.value and old.pool == new.pool else "")
    is_confirmed = new.status == "provisional" or (new.status == "quarantined" and not new.flags)
    record = msgspec.structs.replace(
        new,
        rev=new.rev + 1,
        key=key,
        status="active" if is_confirmed else new.status,
        needs_review=False,
        supersedes=tuple(dict.fromkeys((*new.supersedes, old.id))),
    )
    return Updated(
        record=record,
        retires=(Retirement(old.id, new.valid_from or new.provenance.said_at, f"{proposal.reason}: {new.id}"),),
        decision=Decision(action="update", reason=f"the user accepted it as the replacement of {old.id}", steps=steps),
    )
