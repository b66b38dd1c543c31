"""Taking a session back, and bringing it back: reversible, unlike forgetting (T10, P-9).

Comes in: documents. Goes out: a report. Invariants: records that rest on those documents alone become `hidden`, those
that others vouch for stay, in the words they had before one of these edited them; what the hidden ones had retired is
believed again unless something else replaced it; the operation says how each record stood, so bringing back restores
the identical set; a record that changed meanwhile, or whose key another holds now, is left as it is and counted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from ....protocol.errors import NotFound, Stopping, Unavailable
from ....protocol.operation import AnyOperation, Hidden, Revoked, Shift, Unhidden, Updated
from ....protocol.record import LIVE, Record
from ....protocol.reply import JobState
from ...projections.record_reducer import apply
from ...projections.stores import Stores
from .. import provenance_rebase as grounds
from ..jobs import Jobs, Progress, Report
from ..write_thread import Writer
from .rewording import brought_back, taken_back

POLL_S = 0.05
STALLED_S = 60.0


class SessionUndo:
    """Undo and redo in one home. `distil` wakes the distiller: what waits is distilled first, so none comes later."""

    def __init__(self, stores: Stores, writer: Writer, jobs: Jobs, distil: Callable[[], None]) -> None:
        self._stores, self._writer, self._jobs, self._distil = stores, writer, jobs, distil

    def undo(self, names: Sequence[str]) -> JobState:
        """Take sessions back. Raises NotFound, InvalidRequest for a name of several, Unavailable beside a job."""
        documents = self._documents(names)

        def work(progress: Progress) -> Report:
            self._settle(documents, progress)
            return self._writer.run(lambda: self._hide(documents)).result()

        return self._jobs.start("undo", work)

    def redo(self, names: Sequence[str]) -> JobState:
        """Bring them back. Raises NotFound if nothing of them was taken back, Unavailable beside a job."""
        documents = self._documents(names)
        if not any(self._stores.forgotten.hiding(document) for document in documents):
            raise NotFound(f"{', '.join(names)} was not undone", hint="`memd undo` undoes a session")
        return self._jobs.start("redo", lambda _: self._writer.run(lambda: self._redo(documents)).result())

    def hide_source(self, documents: tuple[str, ...], revoked: Revoked) -> tuple[int, int]:
        """Hide all that was derived from these documents, whoever else vouches for it, in the commit that revokes them:
        records hidden, records believed again (A3). On the write thread."""
        hidden, revived, _ = self._resting_on(documents, derived=True)
        operations: list[AnyOperation] = [revoked]
        operations += self._hiding(documents, hidden, revived)
        self._stores.commit(operations)
        return len(hidden), len(revived)

    def show_revoked(self, documents: tuple[str, ...]) -> int:
        """Bring back what revoking these documents hid, and nothing that the user took back: how many records (A3)."""
        return self._show(documents, revoked=True)[0]

    def _documents(self, names: Sequence[str]) -> tuple[str, ...]:
        documents: set[str] = set()
        for name in names:
            try:
                documents |= self._stores.sources.documents_named(name, source=True)
            except NotFound:
                documents |= self._stores.sources.documents_named(name, source=False)
        return tuple(sorted(documents))

    def _settle(self, documents: Iterable[str], progress: Progress) -> None:
        """Wait until what is captured so far is distilled."""
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
        edits = [(each, edit) for each in staying if (edit := taken_back(self._stores, each, documents))]
        if operations := self._hiding(documents, hidden, revived, edits):
            self._stores.commit([*operations, *(edit for _, edit in edits)])
        self._distil()  # what has its old words again may have no vector for them
        return {
            "documents": list(documents),
            "hidden": len(hidden),
            "believed_again": len(revived),
            "reworded": len(edits),
            "kept": len(staying) - len(edits),
        }

    def _resting_on(
        self, documents: tuple[str, ...], *, derived: bool
    ) -> tuple[dict[str, Record], list[Record], list[Record]]:
        """Records that stand on these documents alone (with `derived`, that have words of theirs), those to believe
        again without them, and those that stay because something else vouches for them. What a correction put right
        does not vouch for it."""
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
            if not _documents(grounds.cited(record)) & inside:
                continue
            words = {span.document for span in record.provenance.spans}
            if _documents(grounds.stands_on(record)) <= inside or (derived and words & inside):
                hidden[record.id] = record
            else:
                staying.append(record)
        revived = [each for each in retired if each.id not in hidden and self._is_free(each, hidden, before)]
        return hidden, revived, staying

    def _hiding(
        self,
        documents: tuple[str, ...],
        hidden: dict[str, Record],
        revived: Sequence[Record],
        edits: Sequence[tuple[Record, Updated]] = (),
    ) -> list[AnyOperation]:
        before = tuple(_standing(record) for record in (*hidden.values(), *revived, *(each for each, _ in edits)))
        after = tuple(_standing(record, "hidden") for record in hidden.values())
        after += tuple(self._before_retirement(record) for record in revived)
        after += tuple(_standing(edit.record) for _, edit in edits)
        return [Hidden(documents=documents, before=before, after=after)] if before else []

    def _is_free(self, record: Record, hidden: dict[str, Record], before: dict[str, Record]) -> bool:
        """Whether all that replaced this record in turn is hidden, now or `before`, and its key is free."""
        by, seen = record.superseded_by, set[str]()
        while by not in seen and (found := hidden.get(by) or before.get(by)):
            seen.add(by)
            by = found.superseded_by
        if not seen & hidden.keys() or (by and by not in seen and self._stores.records.get(by) is not None):
            return False
        return not self._is_taken(record, self._before_retirement(record), set(hidden))

    def _before_retirement(self, record: Record) -> Shift:
        """How a retired record stood when it was last believed."""
        row: Record | None = None
        last = record
        for seq in self._stores.sources.history(record.id):
            entry = self._stores.journal.get(seq)
            row = apply(row, record.id, entry) if entry else row
            if row is not None and row.status not in ("retired", "hidden"):
                last = row
        if last is record:  # it was never believed
            return _standing(record)
        return Shift(record.id, last.status, last.valid_to, 0, "")

    def _redo(self, documents: tuple[str, ...]) -> Report:
        shown, left = self._show(documents, revoked=False)
        return {"documents": list(documents), "brought_back": shown, "left": left}

    def _show(self, documents: tuple[str, ...], *, revoked: bool) -> tuple[int, int]:
        """Bring back what undoing hid, or what revoking did: how many records, and how many are left as they are."""
        wanted = {seq for document in documents for seq in self._stores.forgotten.hiding(document)}
        shown = left = 0
        for seq in sorted(wanted, reverse=True):
            entry = self._stores.journal.get(seq)
            if entry is None or not isinstance(entry.operation, Hidden) or self._by_revoking(seq) != revoked:
                continue
            shifts, skipped = self._restorable(entry.operation)
            hidden = entry.operation
            stayed = {each.id for each in hidden.after if each.status in LIVE}
            edited = self._stores.records.many(was.id for was in shifts if was.status in LIVE and was.id in stayed)
            found = (brought_back(self._stores, each, hidden.documents, seq) for each in edited.values())
            edits = [edit for edit in found if edit]
            self._stores.commit([Unhidden(hidden=seq, documents=hidden.documents, after=tuple(shifts)), *edits])
            since = len(edited) - len(edits)  # they have other words by now
            shown, left = shown + len(shifts) - since, left + skipped + since
        self._distil()
        return shown, left

    def _by_revoking(self, seq: int) -> bool:
        """Whether records were hidden because their source was revoked: that stands right before it."""
        entry = self._stores.journal.get(seq - 1)
        return entry is not None and isinstance(entry.operation, Revoked)

    def _restorable(self, hidden: Hidden) -> tuple[list[Shift], int]:
        """The shifts that still fit, and how many don't: forgotten, changed, their key is held by another, or what they
        had replaced was replaced anew."""
        now = self._stores.records.many(shift.id for shift in hidden.before)
        anew = {was.superseded_by for was in hidden.before if was.id in now and _is_replaced_anew(now[was.id], was)}
        shifts: list[Shift] = []
        skipped = 0
        ids = set(now)
        for was, became in zip(hidden.before, hidden.after, strict=True):
            record = now.get(was.id)
            if record is None or _standing(record) != became or was.id in anew or self._is_taken(record, was, ids):
                skipped += record is not None
            else:
                shifts.append(was)
        return shifts, skipped

    def _is_taken(self, record: Record, was: Shift, ids: set[str]) -> bool:
        if was.status not in LIVE or not record.key:
            return False
        holder = self._stores.records.holding_key(record.pool, record.key)
        return bool(holder) and holder not in ids


def _documents(turns: Iterable[grounds.Turn]) -> set[str]:
    return {document for document, _ in turns}


def _is_replaced_anew(record: Record, was: Shift) -> bool:
    """Whether another than before replaced a record that was believed again."""
    return (
        bool(was.superseded_by) and record.status == "retired" and record.superseded_by not in ("", was.superseded_by)
    )


def _standing(record: Record, status: str = "") -> Shift:
    return Shift(
        record.id,
        "hidden" if status == "hidden" else record.status,
        record.valid_to,
        record.retired_at,
        record.superseded_by,
    )
