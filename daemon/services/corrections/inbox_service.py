"""The inbox: agents propose to forget or change records, the user decides.

Invariants: a decision and its effect are one commit; no proposal hides a pinned record; what comes back stands as it
stood, but retired if another record holds its key by now.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

import msgspec

from ....protocol.corrections import Decide, Inbox, JudgedRecord, ListInbox, Proposed, ProposeForget, Waiting
from ....protocol.errors import InvalidRequest, NotFound
from ....protocol.operation import (
    AnyOperation,
    ChangeDecided,
    ChangeProposed,
    Decision,
    Hidden,
    Retirement,
    Shift,
    Step,
    Unhidden,
    Updated,
)
from ....protocol.record import LIVE, Record, Status
from ....protocol.reply import Decided, JobState
from ....protocol.request import Forget
from ...failpoint import reach
from ...projections.inbox import PendingProposal, proposal_id
from ...projections.stores import Stores
from ..merging import merged
from ..record_history import entries
from ..service import Handlers, Service, owner
from ..write_thread import Writer


class InboxService(Service):
    """Proposals that wait for the user's decision."""

    name = "inbox"

    def __init__(
        self,
        stores: Stores,
        writer: Writer,
        forget: Callable[[Forget, Sequence[AnyOperation]], JobState],
    ) -> None:
        """`forget`: starts to forget, and commits these operations with it."""
        self._stores, self._writer, self._start_forgetting = stores, writer, forget

    @property
    def handlers(self) -> Handlers:
        """An agent may propose; the user decides."""
        return {
            ProposeForget: owner("write", self.propose),
            ListInbox: owner("slow", self.list),
            Decide: owner("slow", self.decide),
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
        state = asked.state if asked.state != "open" or _stands(proposal, old, new) else "moot"
        return Waiting(
            id=proposal.id,
            what=proposal.what,
            record=proposal.record,
            line=old.description if old else "",
            state=state,
            by=proposal.by or proposal.document,
            against=proposal.against,
            against_line=new.description if new else "",
            label=proposal.label,
            reason=proposal.reason,
            at=asked.at,
            evidence=old.provenance.spans if old else (),
            against_evidence=new.provenance.spans if new else (),
            if_nothing=_if_nothing(proposal, old) if state == "open" else "",
        )

    def decide(self, request: Decide) -> Decided:
        """Accept or reject a proposal. Raises NotFound, InvalidRequest."""
        ids = self._stores.inbox.starting(request.id.strip().lower())
        asked = self._stores.inbox.get(ids[0]) if len(ids) == 1 else None
        if asked is None:
            problem = "several proposals start with" if ids else "no proposal"
            raise NotFound(f"{problem} {request.id!r}", hint="`memd inbox` lists them")
        if asked.state != "open":
            raise InvalidRequest(f"{asked.what.id[:8]} is already {asked.state}", hint="`memd inbox --all` shows it")
        if request.dry_run:
            return Decided(open=self._open(), records=self._consequences(asked.what, request.accept), dry_run=True)
        if request.accept and asked.what.what == "forget":
            return Decided(open=self._open(), job=self._forget(asked.what))
        return self._writer.run(lambda: self._settle(asked.what, request.accept)).result()

    def _forget(self, proposal: ChangeProposed) -> JobState:
        """Start the job of `memd forget`; its first commit contains the decision."""
        return self._start_forgetting(Forget(ids=(proposal.record,)), [ChangeDecided(id=proposal.id, accepted=True)])

    def _settle(self, proposal: ChangeProposed, accept: bool) -> Decided:
        """Commit the decision with its effect. On the write thread."""
        asked = self._stores.inbox.get(proposal.id)
        if asked is None or asked.state != "open":
            raise InvalidRequest(
                f"someone decided {proposal.id[:8]} in the meantime", hint="`memd inbox --all` shows it"
            )
        operations: list[AnyOperation] = [ChangeDecided(id=proposal.id, accepted=accept)]
        if accept:
            operations.insert(0, _replaced(*self._both(proposal), proposal))
        elif proposal.what == "forget" and (back := bring_back(self._stores, proposal.record)):
            operations.append(back)
        self._stores.commit(operations)
        reach("inbox:decided")
        return Decided(open=self._open())

    def _both(self, proposal: ChangeProposed) -> tuple[Record, Record]:
        """Return the record and the one that replaces it. Raises InvalidRequest where one is no longer live."""
        records = self._stores.records.many((proposal.record, proposal.against))
        old, new = records.get(proposal.record), records.get(proposal.against)
        if old is None or new is None or not _stands(proposal, old, new):
            raise InvalidRequest(
                "one of the two records is no longer active, so the proposal cannot be accepted",
                hint=f"`memd inbox reject {proposal.id[:8]}` removes it from the list",
            )
        return old, new

    def _consequences(self, proposal: ChangeProposed, accept: bool) -> tuple[JudgedRecord, ...]:
        """Return the records that a decision changes. Raises InvalidRequest where it can't be accepted."""
        if accept and proposal.what != "forget":
            old, new = self._both(proposal)
            return (_judged(old, "retired"), _judged(new, _replaced(old, new, proposal).record.status))
        record = self._stores.records.get(proposal.record)
        if record is None or (not accept and record.status != "hidden"):
            return ()
        if accept:
            return (_judged(record, ""),)
        back = bring_back(self._stores, record.id)
        return (_judged(record, back.after[0].status),) if back else ()

    def _open(self) -> int:
        return self.list(ListInbox()).open


def _judged(record: Record, after: Status | Literal[""]) -> JudgedRecord:
    return JudgedRecord(id=record.id, description=record.description, before=record.status, after=after)


def _if_nothing(proposal: ChangeProposed, old: Record | None) -> str:
    """Return what happens as long as the user does not decide."""
    if proposal.what == "conflict":
        return "Both records stay, and an answer may have either."
    if proposal.what == "duplicate":
        return "Both records stay, although they say the same."
    if old is not None and old.status == "hidden":
        return "The record stays hidden: no answer has it."
    return "The record stays as it is."


def _stands(proposal: ChangeProposed, old: Record | None, new: Record | None) -> bool:
    if proposal.what == "forget":
        return old is not None
    return old is not None and new is not None and old.status in LIVE and new.status in LIVE


def _replaced(old: Record, new: Record, proposal: ChangeProposed) -> Updated:
    """Return `new` as the successor of `old`; it takes the key of `old` if that was withheld, and the sources of a
    duplicate."""
    steps = (Step("inbox", f"accepted by the user: proposal {proposal.id}"),)
    if proposal.what == "duplicate":
        reason = f"the user accepted that {old.id} says the same"
        return merged(old, new, Decision(action="update", reason=reason, steps=steps))
    key = new.key or (old.key if new.value and old.pool == new.pool else "")
    record = msgspec.structs.replace(
        new,
        rev=new.rev + 1,
        key=key,
        status="active" if new.status == "provisional" else new.status,
        needs_review=False,
        supersedes=tuple(dict.fromkeys((*new.supersedes, old.id))),
    )
    return Updated(
        record=record,
        retires=(Retirement(old.id, new.valid_from or new.provenance.said_at, f"{proposal.reason}: {new.id}"),),
        decision=Decision(action="update", reason=f"the user accepted it as the replacement of {old.id}", steps=steps),
    )


def may_hide(record: Record) -> bool:
    """Return whether an agent may hide a record."""
    return not record.held and record.status != "hidden"


def hide(records: Sequence[Record]) -> Hidden:
    """Return the operation that hides these records from all reads."""
    before = tuple(
        Shift(record.id, record.status, record.valid_to, record.retired_at, record.superseded_by) for record in records
    )
    return Hidden(documents=(), before=before, after=tuple(_hidden(shift) for shift in before))


def _hidden(was: Shift) -> Shift:
    return Shift(was.id, "hidden", was.valid_to, was.retired_at, was.superseded_by)


def bring_back(stores: Stores, id: str) -> Unhidden | None:
    """Return the operation that shows a record again that an agent hid; None if no agent hid it."""
    record = stores.records.get(id)
    if record is None or record.status != "hidden":
        return None
    for entry in entries(stores, id, newest_first=True):
        if not isinstance(entry.operation, Hidden):
            continue
        if entry.operation.documents:
            return None
        was = next(shift for shift in entry.operation.before if shift.id == id)
        return Unhidden(hidden=entry.seq, documents=(), after=(fitting(stores, record, was),))
    return None


def fitting(stores: Stores, record: Record, was: Shift) -> Shift:
    """Return a record's earlier state; retired if another record took its key meanwhile."""
    holder = stores.records.holding_key(record.pool, record.key) if record.key and was.status in LIVE else ""
    if not holder or holder == record.id:
        return was
    other = stores.records.get(holder)
    until = other.valid_from if other else ""
    return msgspec.structs.replace(was, status="retired", valid_to=until, superseded_by=holder)
