"""Permanent deletion: the order of its steps, and their completion after a kill at any of them.

Invariants:
- the pending `redacted` operation is on the disk first; from then on memd serves, takes and learns nothing of it;
- then payloads and blinds leave journal and archive (a capture with a secret is rewritten without it), and each file
  that held them is replaced: LMDB by compact copies, projections by new ones, vectors by those that records need,
  backups by a new one; captures wait only for the logs;
- each step may run twice; a start finishes pending steps before memd serves requests; `purged` ends them;
- the forgotten words are in memory only, for the search of bytes at the end, and never in a log.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Literal

from ....protocol.errors import InvalidRequest, NotFound, StorageFull, Unavailable
from ....protocol.event import AnyEvent, text, with_text
from ....protocol.operation import AnyOperation, Purged, Rebased, Redacted
from ....protocol.record import Record
from ....protocol.reply import ForgetPlan, Going, JobState
from ....protocol.request import Compact, Forget, PreviewForget, ScanSecrets
from ...failpoint import reach
from ...projections.forgotten import turn_key
from ...projections.records import digest
from ...storage.archive import decode
from ...storage.tombstone_carryover import carried, settle
from ..core import Core
from ..jobs import Progress, Report
from ..provenance_rebase import Turn
from ..service import Handlers, Service, owner
from ..shared_belief import is_withheld
from ..write_thread import Writer
from .compaction import NAMES, Rebuild, clear, compact, compact_log, renew, start_compaction
from .copy_removal import drop_copies
from .forget_closure import ForgetScope, Loss, find_loss, words_of
from .residue_scan import pieces_of, search, wipe
from .secret_audit import audit
from .secret_redaction import plan_redaction
from .spool_redaction import discard_unreadable, scrub, unreadable, waiting

SHOWN = 200
"""Records that a preview lists, one line each."""

STEPS = 5
SHARED_LINES = "forget shared lines"
"""Name of the job that removes the lines that other authors forgot."""

OUT_OF_REACH = (
    "files of other programs: their transcripts, editors, shells, terminals",
    "other people's clones, exports, and copies elsewhere",
    "backups outside memd's folder: `memd backup --to`, system backups, disk snapshots",
    "free disk blocks that are not overwritten yet",
)
Forgetter = Callable[[Callable[[str], bool]], None]
"""Removes the entries of a state file whose name the given test holds for."""

log = logging.getLogger("memd.forget")


class ForgettingService(Service):
    """Forgets in one home, by jobs; captures wait while the write thread erases."""

    name = "forgetting"

    def __init__(
        self,
        core: Core,
        writer: Writer,
        *,
        rebuild: Rebuild,
        forget_injected: Callable[[Sequence[bytes]], None],
        forget_given: Forgetter,
        forget_paused: Forgetter,
    ) -> None:
        """`rebuild`: rebuilds the named projections beside the daemon and swaps them in; `forget_injected`: removes
        these byte strings from the texts that sessions received; `forget_given`: removes what sessions received, by
        their documents; `forget_paused`: removes ended pauses, by their folders."""
        self._stores, self._places, self._world = core.stores, core.places, core.world
        self._writer, self._jobs, self._rebuild, self._known = writer, core.jobs, rebuild, core.known
        self._forget_injected, self._forget_given, self._forget_paused = forget_injected, forget_given, forget_paused
        self._begun: list[tuple[Loss, int]] = []
        """Forgotten shared lines whose bytes the job is still to remove."""

    @property
    def handlers(self) -> Handlers:
        """Jobs of the slow lane, and the preview."""
        return {
            PreviewForget: owner("slow", self.preview),
            Forget: owner("slow", self.start_forgetting),
            ScanSecrets: owner("slow", self.scan),
            Compact: owner(
                "slow", lambda request: start_compaction(self._stores, self._writer, self._jobs, self._rebuild)
            ),
        }

    def preview(self, request: PreviewForget) -> ForgetPlan:
        """Return what a request would forget. Raises InvalidRequest without exactly one scope, NotFound."""
        scope, spool = self._scope(request), self._places.spool
        loss = find_loss(self._stores, scope, waiting(spool))
        chosen = [self._going(record, "chosen") for id, record in loss.gone.items() if id in loss.chosen]
        lineage = [self._going(record, "source") for id, record in loss.gone.items() if id not in loss.chosen]
        staying = [self._going(record, "loses a source") for record in loss.rebased.values()]
        return ForgetPlan(
            records=tuple([*chosen, *lineage, *staying][:SHOWN]),
            record_count=len(loss.gone),
            captures=sum(len(seqs) for seqs in loss.turns.values()),
            documents=tuple(sorted({document for document, _ in loss.turns})),
            spooled=sum(not seqs for seqs in loss.turns.values()) + unreadable(spool, words_of(self._stores, scope)),
            names=loss.name_count,
        )

    def _going(self, record: Record, why: Literal["chosen", "source", "loses a source"]) -> Going:
        line = "" if is_withheld(self._stores, record) else record.description[:200]
        return Going(id=record.id, type=record.type, status=record.status, line=line, why=why)

    def start_forgetting(self, request: Forget, before: Sequence[AnyOperation] = ()) -> JobState:
        """Start to forget; `before` is in the first commit. Raises InvalidRequest without exactly one scope, NotFound,
        Unavailable beside a job."""
        scope = self._scope(request)
        return self._jobs.start("forget", lambda progress: self._forget(scope, progress, before))

    def forget_lines(self, turns: frozenset[Turn], before: Sequence[AnyOperation]) -> None:
        """Forget shared lines that their author forgot. When this returns, the journal has the tombstones and `before`;
        a job removes the bytes from every file. Raises Unavailable beside another job.

        Only these turns are forgotten: words of this home that say the same are no words of the author.
        """
        job = self._jobs.current
        if job is not None and job.name != SHARED_LINES:
            raise Unavailable(
                f"another job is running: {job.name}", hint="pull again when it has finished; `memd status` shows it"
            )
        begun = self._writer.run(lambda: self._begin(self._loss(ForgetScope(turns=turns)), before)).result()
        self._begun.append(begun)
        with suppress(Unavailable):  # the job that runs removes these bytes too
            self._jobs.start(SHARED_LINES, self._remove_lines)

    def _remove_lines(self, progress: Progress) -> Report:
        records = 0
        while self._begun:
            loss, seq = self._begun.pop(0)
            if seq in self._stores.forgotten.pending():
                self._carry_out(loss, seq, progress)
            records += len(loss.gone)
        progress(STEPS, STEPS, "done")
        return {"records": records}

    def scan(self, request: ScanSecrets) -> JobState:
        """Start to look for secrets with the current rules, and to redact them unless `dry_run`. Raises Unavailable
        beside a job."""
        if request.dry_run:
            return self._jobs.start("scan", lambda progress: audit(self._stores, self._jobs, progress, self._known)[1])
        return self._jobs.start("scan", self._clean)

    def finish(self) -> int:
        """Complete interrupted requests, before anything else runs; return their number. Raises StorageFull."""
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
        """Forget again the turns that a restored older journal brought back."""
        before = carried(self._stores.folder)
        turns = frozenset(before.turns) | self._marked(frozenset(before.marks))
        if left := turns - self._stores.forgotten.among(turns):
            loss, seq = self._begin(self._loss(ForgetScope(turns=left)))
            renew(self._stores)
            self._sweep_vectors()
            self._sweep(self._redaction(seq), pieces_of(loss.texts))
            self._stores.commit([Purged(redacted=seq)], reserve=True)
            log.info("forgot %d turns again after a restore", len(left))
        settle(self._stores.folder)

    def _marked(self, marks: frozenset[bytes]) -> frozenset[Turn]:
        """Return the archive's turns with these marks."""
        if not marks:
            return frozenset()
        captures = filter(None, map(decode, self._stores.archive.log.read()))
        turns = ((captured.document, captured.event.turn) for captured in captures)
        return frozenset(turn for turn in turns if turn_key(*turn) in marks)

    def finish_at_start(self) -> None:
        """Call `finish`; on a full disk the requests stay pending and unserved until the next try. Raises
        JournalCorrupt."""
        try:
            self.finish()
        except (StorageFull, Unavailable) as error:
            log.error("a forgotten item is still on the disk: %s (%s)", error.message, error.hint)

    def _scope(self, request: Forget | PreviewForget) -> ForgetScope:
        given = [name for name in ("ids", "query", "session", "source", "letter") if getattr(request, name)]
        if len(given) != 1:
            raise InvalidRequest(
                "nothing to forget was named" if not given else f"{' and '.join(given)} cannot be combined",
                hint="give exactly one of: record ids, a query, a session, a source, a failed capture",
            )
        if request.letter:
            return self._capture(request.letter)
        documents: frozenset[str] = frozenset()
        if name := request.session or request.source:
            documents = self._stores.sources.documents_named(name, source=bool(request.source))
        return ForgetScope(ids=request.ids, query=request.query, documents=documents)

    def _capture(self, number: int) -> ForgetScope:
        """Return the turn of a failed capture."""
        letter = self._stores.dead_letters.get(number)
        if letter is None or not letter.document:
            problem = "no failed capture" if letter is None else "it can't be read which turn that is:"
            raise NotFound(f"{problem} {number}", hint="`memd retry` lists them; for a whole session: --session")
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

        holds = words_of(self._stores, scope)
        discarded = discard_unreadable(self._places.spool, holds)  # first: after a kill, memd has the words no more
        loss, seq = run(lambda: self._begin(self._loss(scope), before)).result()
        if not seq:
            proof = self._prove(pieces_of([scope.query] if scope.query else ()))
            return {"records": 0, "captures": 0, "names": 0, "discarded": discarded, **proof}
        done = self._carry_out(loss, seq, progress)
        documents = sorted({document for document, _ in loss.turns})
        log.info("forgot %d records and %d captures", len(loss.gone), len(loss.turns))
        progress(STEPS, STEPS, "done")
        return {
            "records": len(loss.gone),
            "rebased": len(loss.rebased),
            "captures": sum(len(seqs) for seqs in loss.turns.values()),
            "names": loss.name_count,
            "discarded": discarded,
            **done,
            "documents": documents,
            "out_of_reach": list(OUT_OF_REACH),
        }

    def _clean(self, progress: Progress) -> Report:
        run = self._writer.run
        run(self.finish).result()
        findings, report = audit(self._stores, self._jobs, progress, self._known)
        if not findings:
            return report
        loss, seq = run(lambda: self._begin(plan_redaction(self._stores, findings))).result()
        if not seq:
            return report
        done = self._carry_out(loss, seq, progress)
        log.info("redacted %d secrets in captures, changed %d records", len(loss.cuts), len(loss.changed))
        progress(STEPS, STEPS, "done")
        changed = {"cuts": len(loss.cuts), "changed": sorted(loss.changed)}
        return {**report, **changed, **done, "out_of_reach": list(OUT_OF_REACH)}

    def _carry_out(self, loss: Loss, seq: int, progress: Progress) -> Report:
        """Remove a begun loss from every file, and prove it."""
        run = self._writer.run
        self._rebuild(NAMES, lambda done, total, detail: progress(1, STEPS, f"fresh indexes: {detail}"))
        run(self._sweep_vectors).result()
        progress(2, STEPS, "spools and backups")
        pieces = pieces_of(loss.texts)
        self._forget_paused(loss.names.holds)
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
        """Commit the redaction, then erase; return its seq, 0 for no loss. On the write thread."""
        if not loss:
            return loss, 0
        rows = [Rebased(record=record) for record in loss.rebased.values()]
        entries = self._stores.commit([*before, loss.redacted(), *rows, *loss.after], reserve=True)
        reach("forget:redacted")
        seq = next(entry.seq for entry in entries if isinstance(entry.operation, Redacted))
        records = self._stores.records
        successors = {records.successor(record) for record in loss.gone.values()}
        self._stores.keywords.refresh(id for id in successors if id)  # without the words that they replaced
        self._erase(self._redaction(seq), seq)
        return loss, seq

    def _erase(self, redacted: Redacted, seq: int) -> None:
        """Erase from both logs and their files. On the write thread."""
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
        """Drop vectors that no record needs. On the write thread."""
        reach("forget:projections-renewed")
        stores = self._stores
        stores.keep_vectors()
        compact(stores.vector_store.environment)
        reach("forget:vectors-swept")

    def _sweep(self, redacted: Redacted, pieces: list[bytes]) -> Report:
        """Clean spools, copies, log files and profiles in files. Off the write thread: clients may deliver."""
        gone = {(tombstone.document, turn) for tombstone in redacted.turns for turn in tombstone.turns}
        marks = frozenset(redacted.marks)

        def left(document: str, event: AnyEvent) -> AnyEvent | None:
            if (document, event.turn) in gone or (marks and turn_key(document, event.turn) in marks):
                return None
            return with_text(event, self._known.of(document).redact(text(event))[0]) if redacted.cuts else event

        spooled = scrub(self._places.spool, left)
        reach("forget:spools-scrubbed")
        self._forget_injected(pieces)
        if marks:
            self._forget_given(lambda document: digest(document) in marks)
        dropped, written = drop_copies(self._stores, redacted, self._world, self._jobs.stopping)
        reach("forget:copies-dropped")
        logs = [path for path in self._places.state.glob("*.log*") if path.is_file() and path.stat().st_size]
        wiped = sum(wipe(path, pieces) for path in logs if pieces)
        for given in self._places.hooks.glob("*.md"):  # a profile may cut its texts; the host's next turn fills it
            given.write_bytes(b"")
        return {"spooled": spooled, "backups_dropped": dropped, "backup_written": written, "wiped": wiped}

    def _prove(self, pieces: list[bytes]) -> Report:
        folders = (self._stores.folder, self._places.state)
        searched = search(folders, pieces)
        said = self._said_elsewhere({piece for held in searched.found.values() for piece in held})
        left = {
            path: remaining
            for path, held in searched.found.items()
            if (remaining := [p for p in held if p not in said])
        }
        for path in left:
            log.error("forgotten text is still in %s", path)
        return {
            "searched_files": searched.files,
            "searched_bytes": searched.size_bytes,
            "searched_texts": searched.pieces,
            "left": sorted(left),
            "said_elsewhere": len(said),
        }

    def _said_elsewhere(self, pieces: set[bytes]) -> set[bytes]:
        """Return the pieces that other turns contain too."""
        present: set[bytes] = set()
        for log_ in (self._stores.journal.log, self._stores.archive.log):
            for entry in log_.read() if pieces - present else ():
                present.update(piece for piece in pieces if entry.payload and piece in entry.payload)
        return present
