"""Undo and redo of sessions: reversible, unlike forgetting.

Invariants: a record that rests on the undone documents alone becomes `hidden`; one with other sources stays, in the
words that it had before an undone edit, and without what the agent of an undone session learnt from it; records that
the hidden ones had retired become active again unless something else replaced them; the operation stores each record's
state, so redo restores the identical set; a record that changed meanwhile, or whose key is held by another now, is left
and counted.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence

import msgspec

from ....protocol.errors import NotFound, Stopping, Unavailable
from ....protocol.event import Reflected
from ....protocol.operation import AnyOperation, Decision, Hidden, Revoked, Shift, Unhidden, Updated
from ....protocol.record import LIVE, Record, Status
from ....protocol.reply import JobState
from ...projections.stores import Stores
from .. import provenance_rebase as grounds
from ..jobs import Jobs, Progress, Report
from ..playbook_belief import no_longer_retired
from ..record_history import versions
from ..shared_belief import no_longer_invalidated, still_invalidated
from ..statements import is_edited
from ..write_thread import Writer

POLL_S = 0.05
STALLED_S = 60.0
REMOTE = "remote:"
"""Prefix of the names of remote models, which are undone like sources (W4)."""


class SessionUndo:
    """Undo and redo in one home. `distil` wakes the distiller: it processes waiting captures first."""

    def __init__(self, stores: Stores, writer: Writer, jobs: Jobs, distil: Callable[[], None]) -> None:
        self._stores, self._writer, self._jobs, self._distil = stores, writer, jobs, distil

    def undo(self, names: Sequence[str]) -> JobState:
        """Start to undo sessions. Raises NotFound, InvalidRequest for an ambiguous name, Unavailable beside a job."""
        documents = self._documents(names)

        def work(progress: Progress) -> Report:
            self._settle(documents, progress)
            return self._writer.run(lambda: self._hide(documents)).result()

        return self._jobs.start("undo", work)

    def redo(self, names: Sequence[str]) -> JobState:
        """Start to redo sessions. Raises NotFound if they were not undone, Unavailable beside a job."""
        documents = self._documents(names)
        if not any(self._stores.forgotten.hiding(document) for document in documents):
            raise NotFound(f"{', '.join(names)} was not undone", hint="`memd undo` undoes a session")
        return self._jobs.start("redo", lambda _: self._writer.run(lambda: self._redo(documents)).result())

    def hide_source(self, documents: tuple[str, ...], revoked: Revoked) -> tuple[int, int]:
        """Hide all records derived from these documents, in the commit that revokes them; return the numbers of hidden
        and revived records. On the write thread."""
        hidden, revived, _ = self._resting_on(documents, derived=True)
        operations: list[AnyOperation] = [revoked]
        operations += self._hiding(documents, hidden, revived)
        self._stores.commit(operations)
        return len(hidden), len(revived)

    def show_revoked(self, documents: tuple[str, ...]) -> int:
        """Show the records that revoking these documents hid; return their number."""
        return self._show(documents, revoked=True)[0]

    def _documents(self, names: Sequence[str]) -> tuple[str, ...]:
        documents: set[str] = set()
        for name in names:
            if name.startswith(REMOTE):
                documents.add(self._reader(name))
                continue
            try:
                documents |= self._stores.sources.documents_named(name, source=True)
            except NotFound:
                documents |= self._stores.sources.documents_named(name, source=False)
        return tuple(sorted(documents))

    def _reader(self, name: str) -> str:
        """Return the name of a remote model, or of a provider with all its models. Raises NotFound if memd never called
        it."""
        if not any(_covers(name, call.reserved.reader) for call in self._stores.remote.calls()):
            raise NotFound(f"memd never called {name}", hint="`memd remote status` lists the calls")
        return name

    def _settle(self, documents: Iterable[str], progress: Progress) -> None:
        """Wait until the captures so far are distilled."""
        stores = self._stores
        upto = stores.archive.last
        done = before = stores.sources.progress().archive_seq
        waited_s = 0.0
        self._distil()
        while done < upto:
            progress(done - before, upto - before, "distilling the waiting captures first")
            if self._jobs.stopping.wait(POLL_S):
                raise Stopping("memd is stopping")
            now = stores.sources.progress().archive_seq
            waited_s, done = (0.0, now) if now > done else (waited_s + POLL_S, done)
            if waited_s > STALLED_S:
                raise Unavailable(
                    "distillation makes no progress", hint="`memd status` shows the reason; memd undid nothing"
                )

    # --- on the write thread -----------------------------------------------------------------------------------
    def _hide(self, documents: tuple[str, ...]) -> Report:
        hidden, revived, staying = self._resting_on(documents, derived=False)
        taught = self._taught(documents)
        changes = (
            (record, undone_edit(self._stores, record, documents) or unlearnt(record, taught)) for record in staying
        )
        edits = [(record, edit) for record, edit in changes if edit]
        operations = self._hiding(documents, hidden, revived, edits)
        if not operations and not all(map(self._stores.forgotten.hiding, documents)):  # they taught nothing
            operations = [Hidden(documents=documents, before=(), after=())]
        if operations:
            self._stores.commit([*operations, *(edit for _, edit in edits)])
        self._distil()  # records with their old words may lack a vector
        return {
            "documents": list(documents),
            "hidden": len(hidden),
            "believed_again": len(revived),
            "reworded": len(edits),
            "kept": len(staying) - len(edits),
        }

    def _taught(self, documents: Iterable[str]) -> set[tuple[str, str]]:
        """Return what the agents of these sessions learnt there, each with its perspective (O4)."""
        events = (captured.event for document in documents for captured in self._stores.archive.turns(document))
        statements = (statement for event in events if isinstance(event, Reflected) for statement in event.statements)
        return {learning for statement in statements for learning in statement.learnings.items()}

    def _resting_on(
        self, documents: tuple[str, ...], *, derived: bool
    ) -> tuple[dict[str, Record], list[Record], list[Record]]:
        """Return the records that stand on these documents alone (with `derived`: that quote them), the records that
        become active without them, and the records that other sources support. The subject of a correction does not
        support it."""
        inside = set(documents)
        hidden: dict[str, Record] = {}
        before: dict[str, Record] = {}
        staying: list[Record] = []
        retired: list[Record] = []
        for record in self._stores.records.everything():
            if record.status == "hidden":
                before[record.id] = record
                continue
            if record.status == "retired" and record.superseded_by:
                retired.append(record)
            if _is_by(record, documents) and not is_edited(record):
                hidden[record.id] = record
                continue
            if not _documents(grounds.cited(record)) & inside:
                continue
            words = {span.document for span in record.provenance.spans}
            if _documents(grounds.stands_on(record)) <= inside or (derived and words & inside):
                hidden[record.id] = record
            else:
                staying.append(record)
        revived = [record for record in retired if record.id not in hidden and self._is_free(record, hidden, before)]
        revived += [
            record
            for record in (*no_longer_invalidated(self._stores, documents), *no_longer_retired(self._stores, documents))
            if record.id not in hidden and not self._is_taken(record, self._before_retirement(record), set(hidden))
        ]
        return hidden, revived, staying

    def _hiding(
        self,
        documents: tuple[str, ...],
        hidden: dict[str, Record],
        revived: Sequence[Record],
        edits: Sequence[tuple[Record, Updated]] = (),
    ) -> list[AnyOperation]:
        before = tuple(standing(record) for record in (*hidden.values(), *revived, *(record for record, _ in edits)))
        after = tuple(standing(record, "hidden") for record in hidden.values())
        after += tuple(self._before_retirement(record) for record in revived)
        after += tuple(standing(edit.record) for _, edit in edits)
        return [Hidden(documents=documents, before=before, after=after)] if before else []

    def _is_free(self, record: Record, hidden: dict[str, Record], before: dict[str, Record]) -> bool:
        """Return whether all successors of a record are hidden, now or `before`, and its key is free."""
        by, seen = record.superseded_by, set[str]()
        while by not in seen and (replacement := hidden.get(by) or before.get(by)):
            seen.add(by)
            by = replacement.superseded_by
        if not seen & hidden.keys() or (by and by not in seen and self._stores.records.get(by) is not None):
            return False
        return not self._is_taken(record, self._before_retirement(record), set(hidden))

    def _before_retirement(self, record: Record) -> Shift:
        """Return the state in which a retired record was last active."""
        last = record
        for _, version in versions(self._stores, record.id):
            if version is not None and version.status not in ("retired", "hidden"):
                last = version
        if last is record:  # it was never believed
            return standing(record)
        return Shift(record.id, last.status, last.valid_to, 0, "")

    def _redo(self, documents: tuple[str, ...]) -> Report:
        shown, left = self._show(documents, revoked=False)
        return {"documents": list(documents), "brought_back": shown, "left": left}

    def _show(self, documents: tuple[str, ...], *, revoked: bool) -> tuple[int, int]:
        """Reverse undos, or revocations; return how many records came back and how many were left."""
        wanted = {seq for document in documents for seq in self._stores.forgotten.hiding(document)}
        shown = left = 0
        for seq in sorted(wanted, reverse=True):
            entry = self._stores.journal.get(seq)
            if entry is None or not isinstance(entry.operation, Hidden) or self._by_revoking(seq) != revoked:
                continue
            shifts, skipped = self._restorable(entry.operation)
            hidden = entry.operation
            stayed = {shift.id for shift in hidden.after if shift.status in LIVE}
            edited = self._stores.records.many(was.id for was in shifts if was.status in LIVE and was.id in stayed)
            candidates = (
                redone_edit(self._stores, record, hidden.documents, seq) or learnt_again(self._stores, record, seq)
                for record in edited.values()
            )
            edits = [edit for edit in candidates if edit]
            self._stores.commit([Unhidden(hidden=seq, documents=hidden.documents, after=tuple(shifts)), *edits])
            since = len(edited) - len(edits)  # edited again since
            shown, left = shown + len(shifts) - since, left + skipped + since
        if invalidated := still_invalidated(self._stores, documents):
            self._stores.commit(invalidated)
        self._distil()
        return shown, left

    def _by_revoking(self, seq: int) -> bool:
        """Return whether records were hidden by a revocation, which is the operation before."""
        entry = self._stores.journal.get(seq - 1)
        return entry is not None and isinstance(entry.operation, Revoked)

    def _restorable(self, hidden: Hidden) -> tuple[list[Shift], int]:
        """Return the shifts that still fit, and how many do not: the record was forgotten, changed or replaced again,
        or its key is held."""
        now = self._stores.records.many(shift.id for shift in hidden.before)
        anew = {was.superseded_by for was in hidden.before if was.id in now and _is_replaced_anew(now[was.id], was)}
        shifts: list[Shift] = []
        skipped = 0
        ids = set(now)
        for was, became in zip(hidden.before, hidden.after, strict=True):
            record = now.get(was.id)
            if record is None or standing(record) != became or was.id in anew or self._is_taken(record, was, ids):
                skipped += record is not None
            else:
                shifts.append(was)
        return shifts, skipped

    def _is_taken(self, record: Record, was: Shift, ids: set[str]) -> bool:
        if was.status not in LIVE or not record.key:
            return False
        holder = self._stores.records.holding_key(record.pool, record.key)
        return bool(holder) and holder not in ids


def _is_by(record: Record, names: Iterable[str]) -> bool:
    """Whether a remote model of one of these names, `remote:PROVIDER` or `remote:PROVIDER/MODEL`, led to a record."""
    reader = record.provenance.distiller
    return reader.startswith(REMOTE) and any(_covers(name, reader) for name in names)


def _covers(name: str, reader: str) -> bool:
    """Whether a name is that of a reader, or of its provider."""
    return reader == name or reader.startswith(f"{name}/")


def _documents(turns: Iterable[grounds.Turn]) -> set[str]:
    return {document for document, _ in turns}


def _is_replaced_anew(record: Record, was: Shift) -> bool:
    """Return whether another record than before replaced a revived one."""
    return (
        bool(was.superseded_by) and record.status == "retired" and record.superseded_by not in ("", was.superseded_by)
    )


def standing(record: Record, status: Status | None = None) -> Shift:
    """Return the state of a record that an operation may change and restore, with its own or another status."""
    return Shift(
        record.id,
        status or record.status,
        record.valid_to,
        record.retired_at,
        record.superseded_by,
    )


def undone_edit(stores: Stores, now: Record, documents: Collection[str]) -> Updated | None:
    """Return `now` with the words from before these documents' edits; None if its words are from elsewhere."""
    if not is_edited(now) or not _is_of(now, documents):
        return None
    then = next((row for row in _versions(stores, now.id) if not _is_of(row, documents)), None)
    return _reworded(stores, now, then, documents, "the edit was undone") if then else None


def redone_edit(stores: Stores, now: Record, documents: Collection[str], seq: int) -> Updated | None:
    """Return `now` with the words that the operation at `seq` undid; None if it has newer ones."""
    then = next(iter(_versions(stores, now.id, seq)), None)
    if then is None or not is_edited(then) or not _is_of(then, documents) or _is_of(now, documents):
        return None
    return _reworded(stores, now, then, documents, "the edit was redone")


def unlearnt(now: Record, taught: Collection[tuple[str, str]]) -> Updated | None:
    """Return `now` without these learnings; None if it has none of them."""
    left = {name: words for name, words in now.learnings.items() if (name, words) not in taught}
    return _teaching(now, left, "what a session taught was undone")


def learnt_again(stores: Stores, now: Record, seq: int) -> Updated | None:
    """Return `now` with the learnings that the operation at `seq` undid; None if there are none."""
    then = next(iter(_versions(stores, now.id, seq)), now)
    return _teaching(now, {**then.learnings, **now.learnings}, "what a session taught was redone")


def _teaching(now: Record, learnings: dict[str, str], reason: str) -> Updated | None:
    if learnings == now.learnings or now.status not in LIVE:
        return None
    record = msgspec.structs.replace(now, learnings=learnings, rev=now.rev + 2)  # the undo before it is a revision too
    return Updated(record=record, decision=Decision(action="update", reason=reason))


def _is_of(record: Record, documents: Collection[str]) -> bool:
    """Return whether a record's words are from one of these documents."""
    return record.provenance.spans[0].document in documents


def _versions(stores: Stores, id: str, before: int = 0) -> list[Record]:
    """Return the states of a record, newest first, up to the operation `before` if one is given."""
    return [version for _, version in versions(stores, id, before) if version][::-1]


def _reworded(stores: Stores, now: Record, then: Record, documents: Collection[str], reason: str) -> Updated | None:
    if now.status not in LIVE or then.status not in LIVE:
        return None
    provenance = then.provenance
    since = [e for e in now.provenance.evidence if e not in provenance.evidence and e.span.document not in documents]
    taken = stores.records.holding_key(now.pool, then.key) not in ("", now.id) if then.key else False
    record = msgspec.structs.replace(
        then,
        pool=now.pool,
        placed=now.placed,
        rev=now.rev + 2,  # the undo or redo before it is a revision too
        key="" if taken else then.key,
        needs_review=taken or then.needs_review,
        review=now.review,
        provenance=msgspec.structs.replace(provenance, evidence=(*provenance.evidence, *since)),
    )
    return Updated(record=record, decision=Decision(action="update", reason=reason))
