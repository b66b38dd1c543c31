"""Forgetting for good: the order of its steps, and their completion after a kill at any of them (T10, P-10).

Comes in: a scope. Goes out: a report. Invariants:
- first the `redacted` operation, pending, on the disk; from then on nothing of it is served, taken again or learnt;
- then payload and blind go from journal and archive (a capture that held a secret is rewritten without it instead), and
  every file that held them is replaced: LMDB by compact copies, projections by fresh ones, vectors by what records
  need, backups by a new one; captures wait for the logs alone;
- each step may be done twice; a start finishes what is pending before the door opens; `purged` ends it;
- the words themselves are kept nowhere: they are in memory for the search of bytes at the end, and never in a log.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal

from ....protocol.errors import InvalidRequest, NotFound, StorageFull, Unavailable
from ....protocol.event import AnyEvent, text, with_text
from ....protocol.operation import AnyOperation, Purged, Rebased, Redacted
from ....protocol.places import Places
from ....protocol.record import Record
from ....protocol.reply import ForgetPlan, Going, JobState
from ....protocol.request import Compact, Forget, PreviewForget, ScanSecrets
from ....stages.secrets.scan import redact
from ...failpoint import reach
from ...projections.stores import Stores
from ...storage.tombstone_carryover import carried, settle
from ...world import World
from ..jobs import Jobs, Progress, Report
from ..service import Handlers, Service, owner
from ..write_thread import Writer
from .compaction import Rebuild, clear, compact, compact_log, start_compaction
from .copy_removal import drop_copies
from .forget_closure import ForgetScope, Loss, find_loss
from .projection_renewal import NAMES, renew
from .residue_scan import Searched, pieces_of, search, wipe
from .secret_audit import look
from .secret_redaction import find_cleaning
from .spool_redaction import scrub, waiting

SHOWN = 200
"""Records that a preview lists, one line each."""

STEPS = 5
OUT_OF_REACH = (
    "files of other programs: their transcripts, editors, shells, terminals",
    "other people's clones, exports, and copies elsewhere",
    "backups outside memd's folder: `memd backup --to`, system backups, disk snapshots",
    "free disk blocks that are not overwritten yet",
)
log = logging.getLogger("memd.forget")


class ForgettingService(Service):
    """Forgets in one home, by jobs; captures wait while the write thread erases."""

    name = "forgetting"

    def __init__(
        self,
        stores: Stores,
        places: Places,
        writer: Writer,
        jobs: Jobs,
        world: World,
        rebuild: Rebuild,
        forget_injected: Callable[[Sequence[bytes]], None],
    ) -> None:
        """`rebuild`: rebuilds the named projections beside the daemon and swaps them in; `forget_injected`: forgets
        these byte strings in what sessions were given."""
        self._stores, self._places, self._world = stores, places, world
        self._writer, self._jobs, self._rebuild = writer, jobs, rebuild
        self._forget_injected = forget_injected

    @property
    def handlers(self) -> Handlers:
        """All of them jobs of the slow lane, but for the preview."""
        return {
            PreviewForget: owner("slow", self.preview),
            Forget: owner("slow", self.start_forgetting),
            ScanSecrets: owner("slow", self.scan),
            Compact: owner("slow", self.compact),
        }

    def preview(self, request: PreviewForget) -> ForgetPlan:
        """What would go. Raises InvalidRequest without exactly one scope, NotFound."""
        loss = find_loss(self._stores, self._scope(request), waiting(self._places.spool))
        chosen = [_going(each, "chosen") for id, each in loss.gone.items() if id in loss.chosen]
        lineage = [_going(each, "source") for id, each in loss.gone.items() if id not in loss.chosen]
        staying = [_going(each, "loses a source") for each in loss.rebased.values()]
        return ForgetPlan(
            records=tuple([*chosen, *lineage, *staying][:SHOWN]),
            record_count=len(loss.gone),
            captures=sum(len(seqs) for seqs in loss.turns.values()),
            documents=tuple(sorted({document for document, _ in loss.turns})),
            spooled=sum(not seqs for seqs in loss.turns.values()),
        )

    def start_forgetting(self, request: Forget, before: Sequence[AnyOperation] = ()) -> JobState:
        """Start to forget; `before` is committed with the word that it is forgotten.

        Raises InvalidRequest without exactly one scope, NotFound, Unavailable beside a job.
        """
        scope = self._scope(request)
        return self._jobs.start("forget", lambda progress: self._forget(scope, progress, before))

    def compact(self, request: Compact) -> JobState:
        """Start to compact every store. Raises Unavailable."""
        return start_compaction(self._stores, self._writer, self._jobs, self._rebuild)

    def scan(self, request: ScanSecrets) -> JobState:
        """Start to look for secrets with the rules of today, and unless `dry_run` to cut them out for good (P-18).

        Raises Unavailable beside a job.
        """
        if request.dry_run:
            return self._jobs.start("scan", lambda progress: look(self._stores, self._jobs, progress)[1])
        return self._jobs.start("scan", self._clean)

    def finish(self) -> int:
        """Carry out what a stop cut off, before anything else runs; how many redactions. Raises StorageFull."""
        clear(self._stores.folder)
        pending = self._stores.forgotten.pending()
        for seq in pending:
            redacted = self._redaction(seq)
            self._erase(redacted, seq)
            renew(self._stores)
            self._sweep_vectors()
            self._sweep(redacted, [])
            self._stores.commit([Purged(redacted=seq)], reserve=True)
            log.info("finished forgetting for operation %d", seq)
        self._forget_carried()
        return len(pending)

    def _forget_carried(self) -> None:
        """What was forgotten before a restore put an older journal back."""
        turns = frozenset(carried(self._stores.folder))
        if left := turns - self._stores.forgotten.among(turns):
            loss, seq = self._begin(self._loss(ForgetScope(turns=left)))
            renew(self._stores)
            self._sweep_vectors()
            self._sweep(self._redaction(seq), pieces_of(loss.texts))
            self._stores.commit([Purged(redacted=seq)], reserve=True)
            log.info("forgot %d turns again after a restore", len(left))
        settle(self._stores.folder)

    def finish_at_start(self) -> None:
        """`finish`; what can't be finished now stays pending, unserved, and is tried again. Raises JournalCorrupt."""
        try:
            self.finish()
        except (StorageFull, Unavailable) as error:
            log.error("a forgotten item is still on the disk: %s (%s)", error.message, error.hint)

    def _scope(self, request: Forget | PreviewForget) -> ForgetScope:
        given = [name for name in ("ids", "query", "session", "source", "letter") if getattr(request, name)]
        if len(given) != 1:
            raise InvalidRequest(
                "forget what?" if not given else f"{' and '.join(given)} cannot be combined",
                hint="give exactly one of: record ids, a query, a session, a source, a failed capture",
            )
        if request.letter:
            return self._capture(request.letter)
        documents: frozenset[str] = frozenset()
        if name := request.session or request.source:
            documents = self._stores.sources.documents_named(name, source=bool(request.source))
        return ForgetScope(ids=request.ids, query=request.query, documents=documents)

    def _capture(self, number: int) -> ForgetScope:
        """The turn of a capture that could not be distilled (P-12)."""
        letter = self._stores.dead_letters.get(number)
        if letter is None or not letter.document:
            what = "no failed capture" if letter is None else "it can't be read which turn that is:"
            raise NotFound(f"{what} {number}", hint="`memd retry` lists them; a whole session goes by --session")
        return ForgetScope(turns=frozenset({(letter.document, letter.turn)}))

    def _redaction(self, seq: int) -> Redacted:
        entry = self._stores.journal.get(seq)
        assert entry is not None and isinstance(entry.operation, Redacted)
        return entry.operation

    # --- the work ------------------------------------------------------------------------------------------------
    def _forget(self, scope: ForgetScope, progress: Progress, before: Sequence[AnyOperation]) -> Report:
        progress(0, STEPS, "finding derived records, removing them")
        run = self._writer.run
        run(self.finish).result()

        loss, seq = run(lambda: self._begin(self._loss(scope), before)).result()
        if not seq:
            return {"records": 0, "captures": 0}
        done = self._carry_out(loss, seq, progress)
        documents = sorted({document for document, _ in loss.turns})
        log.info("forgot %d records and %d captures", len(loss.gone), len(loss.turns))
        progress(STEPS, STEPS, "done")
        return {
            "records": len(loss.gone),
            "rebased": len(loss.rebased),
            "captures": sum(len(seqs) for seqs in loss.turns.values()),
            **done,
            "documents": documents,
            "out_of_reach": list(OUT_OF_REACH),
        }

    def _clean(self, progress: Progress) -> Report:
        run = self._writer.run
        run(self.finish).result()
        sighting, report = look(self._stores, self._jobs, progress)
        if not sighting:
            return report
        loss, seq = run(lambda: self._begin(find_cleaning(self._stores, sighting))).result()
        if not seq:
            return report
        done = self._carry_out(loss, seq, progress)
        log.info("redacted %d secrets in captures, changed %d records", len(loss.cuts), len(loss.changed))
        progress(STEPS, STEPS, "done")
        changed = {"cuts": len(loss.cuts), "changed": sorted(loss.changed)}
        return {**report, **changed, **done, "out_of_reach": list(OUT_OF_REACH)}

    def _carry_out(self, loss: Loss, seq: int, progress: Progress) -> Report:
        """What `_begin` began: out of every file, and the proof of it."""
        run = self._writer.run
        self._rebuild(NAMES, lambda done, total, detail: progress(1, STEPS, f"fresh indexes: {detail}"))
        run(self._sweep_vectors).result()
        progress(2, STEPS, "spools and backups")
        pieces = pieces_of(loss.texts)
        swept = self._sweep(self._redaction(seq), pieces)
        progress(3, STEPS, "searching every byte")
        proof = self._prove(pieces)
        progress(4, STEPS, "closing")
        run(lambda: self._stores.commit([Purged(redacted=seq)], reserve=True)).result()
        reach("forget:purged")
        return {**swept, **proof}

    def _loss(self, scope: ForgetScope) -> Loss:
        return find_loss(self._stores, scope, waiting(self._places.spool))

    def _begin(self, loss: Loss, before: Sequence[AnyOperation] = ()) -> tuple[Loss, int]:
        """Say what goes, then remove it: that operation's seq, 0 for nothing. On the write thread."""
        if not loss:
            return loss, 0
        rows = [Rebased(record=record) for record in loss.rebased.values()]
        entries = self._stores.commit([*before, loss.redacted(), *rows, *loss.after], reserve=True)
        reach("forget:redacted")
        seq = next(entry.seq for entry in entries if isinstance(entry.operation, Redacted))
        self._erase(self._redaction(seq), seq)
        return loss, seq

    def _erase(self, redacted: Redacted, seq: int) -> None:
        """Out of both logs and of their files. On the write thread."""
        stores = self._stores
        stores.turns.mask(redacted.captures)
        stores.journal.log.erase([remnant.seq for remnant in redacted.entries])
        reach("forget:journal-erased")
        stores.archive.log.erase(redacted.captures)
        reach("forget:archive-erased")
        if redacted.cuts:
            stores.archive.cut(redacted.cuts, seq)
            reach("forget:archive-cut")
        compact_log(stores.journal.log)
        compact_log(stores.archive.log)
        reach("forget:logs-compacted")

    def _sweep_vectors(self) -> None:
        """Out of the vectors: those that no record needs go. On the write thread."""
        reach("forget:projections-renewed")
        stores = self._stores
        stores.keep_vectors()
        compact(stores.vector_store.environment)
        reach("forget:vectors-swept")

    def _sweep(self, redacted: Redacted, pieces: list[bytes]) -> Report:
        """Everything beside it: spools, copies, logs. Off the write thread: clients may be delivering."""
        gone = {(one.document, turn) for one in redacted.turns for turn in one.turns}

        def left(document: str, event: AnyEvent) -> AnyEvent | None:
            if (document, event.turn) in gone:
                return None
            return with_text(event, redact(text(event))[0]) if redacted.cuts else event

        spooled = scrub(self._places.spool, left)
        reach("forget:spools-scrubbed")
        self._forget_injected(pieces)
        dropped, written = drop_copies(self._stores, redacted, self._world, self._jobs.stopping)
        reach("forget:copies-dropped")
        wiped = sum(wipe(path, pieces) for path in self._logs() if pieces)
        return {"spooled": spooled, "backups_dropped": dropped, "backup_written": written, "wiped": wiped}

    def _logs(self) -> list[Path]:
        return [path for path in self._places.state.glob("*.log*") if path.is_file() and path.stat().st_size]

    def _prove(self, pieces: list[bytes]) -> Report:
        folders = (self._stores.folder, self._places.state)
        searched = search(folders, pieces)
        said = self._said_elsewhere({piece for held in searched.found.values() for piece in held})
        left = {path: kept for path, held in searched.found.items() if (kept := [p for p in held if p not in said])}
        for path in left:
            log.error("forgotten text is still in %s", path)
        return {**_searched(searched), "left": sorted(left), "said_elsewhere": len(said)}

    def _said_elsewhere(self, pieces: set[bytes]) -> set[bytes]:
        """Those that stand in what was not to be forgotten: the same words in another turn, or said since."""
        found: set[bytes] = set()
        for log_ in (self._stores.journal.log, self._stores.archive.log):
            for entry in log_.read() if pieces - found else ():
                found.update(piece for piece in pieces if entry.payload and piece in entry.payload)
        return found


def _searched(searched: Searched) -> dict[str, str | int | float | list[str]]:
    return {
        "searched_files": searched.files,
        "searched_bytes": searched.size_bytes,
        "searched_texts": searched.pieces,
    }


def _going(record: Record, why: Literal["chosen", "source", "loses a source"]) -> Going:
    return Going(id=record.id, type=record.type, status=record.status, line=record.description[:200], why=why)
