"""The maintenance service: backups with rotation, retention of the archive, index commits, verification, rebuilds.

Invariants: everything runs as a job, so nothing runs beside a compaction; memd writes a backup only after a change;
retention removes captures on the write thread in small groups; no request waits for an index commit.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path

from ....protocol.errors import InvalidRequest, Stopping, Unavailable
from ....protocol.instant import from_micros
from ....protocol.record import Record
from ....protocol.reply import JobState, Outcome
from ....protocol.request import Backup, Backups, DiskUsage, Expire, GetJob, Rebuild, Verify
from ....stages.batch import PERSONAL
from ...config import Config, Keep
from ...projections.keywords import NEAR
from ...projections.stores import Stores
from ...storage.backup import FOLDER, backups, is_newer, listed, rotate, write_backup
from ...storage.retention import SLICE, Retention, StoredCapture
from ..core import Core
from ..jobs import Progress, Report
from ..service import Handlers, Service, owner
from ..write_thread import Writer
from .disk_usage import disk_use
from .rebuild import ProjectionRebuild, names_of, start_verify
from .vector_graphs import VectorGraphBuilder

HOUR, DAY_S = 3_600_000_000, 86_400.0
"""An hour in microseconds, a day in seconds."""

RESTFUL_S = 60.0
"""Longest time between two commits of the indexes while nothing changes."""

STOP_S = 3.0
"""Longest wait for a commit in progress when memd stops."""

log = logging.getLogger("memd.upkeep")


class IndexCommits:
    """The thread that commits the keyword indexes, at most once an interval while things change."""

    def __init__(self, stores: Stores, save: Callable[[], None], every_s: Callable[[], float]) -> None:
        """`save`: saved after each commit."""
        self._stores, self._save, self._every_s = stores, save, every_s
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="keywords", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """End the thread after the commit in progress; the stores commit the rest when they close."""
        self._stopping.set()
        self._stores.changed.set()
        self._thread.join(STOP_S)

    def _run(self) -> None:
        changed = self._stores.changed
        while not self._stopping.is_set():
            changed.wait(RESTFUL_S)
            if self._stopping.wait(self._every_s()):
                return
            changed.clear()
            if not self._stores.index():
                changed.set()
            self._save()


class MaintenanceService(Service):
    """Backups, retention, verification, rebuilds, index commits and vector graphs of one home."""

    name = "maintenance"

    def __init__(self, core: Core, writer: Writer, *, save: Callable[[], None]) -> None:
        """`save`: called after each commit of the keyword indexes."""
        self._core, self._writer = core, writer
        self._stores, self._jobs, self._activity = core.stores, core.jobs, core.activity
        self._config, self._world = core.config, core.world
        self.rebuild = ProjectionRebuild(core.stores, writer, core.process)
        self._graphs = VectorGraphBuilder(core.stores, writer, core.process)
        self._indexes = IndexCommits(core.stores, save, lambda: core.config().keyword_commit_s)
        self._folder = core.stores.folder / FOLDER
        self._expired_at = -DAY_S
        self._evidence: set[tuple[str, str]] | None = None
        self._every_s = 0.0
        if finished := backups(self._folder):
            self._note_backup(finished[-1][1].at, finished[-1][0])

    @property
    def handlers(self) -> Handlers:
        """Jobs and their results."""
        return {
            GetJob: owner("fast", lambda request: self._jobs.get(request.id)),
            Verify: owner("slow", lambda request: start_verify(self._jobs, self._core.process, self._stores)),
            Rebuild: owner("slow", self.start_rebuild),
            Backup: owner("slow", self.start_backup),
            Backups: owner("slow", lambda request: listed(self._folder, request.folder)),
            Expire: owner("slow", self.expire),
            DiskUsage: owner("slow", lambda request: disk_use(self._stores, self._core.places)),
        }

    def start(self) -> None:
        """Begin to check for due work."""
        self._indexes.start()
        self._core.scheduler.every(self._config().upkeep_s, self._graphs.tick, "graphs")
        self.reload(self._config())

    def reload(self, config: Config) -> None:
        """Check at the interval of the settings."""
        if config.upkeep_s != self._every_s:
            self._every_s = config.upkeep_s
            self._core.scheduler.every(config.upkeep_s, self.tick, "upkeep")

    def stop(self) -> None:
        """End the maintenance child and the threads."""
        self._core.process.end()
        self._graphs.stop()
        self._jobs.stop()
        self._indexes.stop()

    def start_rebuild(self, request: Rebuild) -> JobState:
        """Start to rebuild projections. Raises InvalidRequest, Unavailable."""
        names = names_of(request.name)
        return self._jobs.start("rebuild", lambda progress: self.rebuild.run(names, progress))

    def tick(self) -> None:
        """Start due work; memd tries again at the next tick."""
        self._stores.evict_pages()
        try:
            if self._backup_due():
                self.start_backup(Backup())
            elif self._world.monotonic() - self._expired_at >= DAY_S and self._limits_exist():
                self.expire(Expire())
        except (Unavailable, Stopping) as error:
            log.info("postponed maintenance: %s", error.message)

    def _limits_exist(self) -> bool:
        config = self._config()
        return bool(config.archive_keep_days or config.archive_keep_mb or config.archive_keep_by_pool)

    # --- backups -----------------------------------------------------------------------------------------------------
    def _backup_due(self) -> bool:
        every = self._config().backup_every_h * HOUR
        if not every:
            return False
        existing = backups(self._folder)
        if existing and self._world.now() - existing[-1][1].at < every:
            return False
        return is_newer(self._stores.journal, self._stores.archive, self._folder)

    def start_backup(self, request: Backup) -> JobState:
        """Start a backup. Raises Unavailable while another job runs, InvalidRequest for a relative folder."""
        to, keep = request.to, request.keep
        if to and not Path(to).is_absolute():
            raise InvalidRequest(f"{to!r} is not an absolute path", hint="the daemon does not know your folder")
        if keep < 0:
            raise InvalidRequest("the number of backups to keep is negative", hint="0 keeps all")
        folder = Path(to) if to else self._folder

        def work(progress: Progress) -> Report:
            total = self._stores.journal.last + self._stores.archive.last
            progress(0, total, "copying and verifying")
            path = write_backup(self._stores.journal, self._stores.archive, folder, self._world, self._jobs.stopping)
            progress(total, total, "verified")
            removed = [] if to else rotate(folder, keep or self._config().backup_keep)
            info = next(manifest for name, manifest in backups(folder) if name == path.name).info(path.name)
            if not to:
                self._note_backup(self._world.now(), path.name)
            log.info("backup %s: %d operations, %d captures", path.name, info.journal_seq, info.archive_seq)
            return {
                "path": str(path),
                "operations": info.journal_seq,
                "captures": info.archive_seq,
                "size_bytes": info.size_bytes,
                "removed": removed,
            }

        return self._jobs.start("backup", work)

    def _note_backup(self, at: int, name: str) -> None:
        self._activity.put("backed up", Outcome(at=from_micros(at), what=f"verified: {name}"))

    # --- retention ---------------------------------------------------------------------------------------------------
    def expire(self, request: Expire) -> JobState:
        """Start the archive's retention. Raises Unavailable while another job runs."""
        return self._jobs.start("expire", lambda progress: self._expire(progress, request.dry_run))

    def _expire(self, progress: Progress, dry_run: bool) -> Report:
        config, stores = self._config(), self._stores
        keep = Keep(days=config.archive_keep_days, mb=config.archive_keep_mb)
        retention = Retention(stores.archive, keep, config.archive_keep_by_pool, self._pool_of, self._is_cited)
        upto = stores.sources.progress().archive_seq
        self._evidence = None
        captures = removed_bytes = 0
        doomed = retention.over_limit(upto, self._world.now(), lambda seq: progress(seq, upto, "looking"))
        while group := list(islice(doomed, SLICE)):
            if self._jobs.stopping.is_set():
                raise Stopping("memd is stopping", hint="memd removes the rest after the next start")
            captures += len(group)
            removed_bytes += sum(capture.size_bytes for capture in group) if dry_run else self._remove(retention, group)
        report: Report = {
            "captures": captures,
            "bytes": removed_bytes,
            "compaction_frees": stores.archive.log.environment.free_bytes(),
        }
        if not dry_run:
            self._expired_at = self._world.monotonic()
            summary = (
                f"{captures} captures, {removed_bytes} bytes removed" if captures else "no capture exceeds a limit"
            )
            self._activity.put("expired", Outcome(at=from_micros(self._world.now()), what=summary))
        return report

    def _remove(self, retention: Retention, group: list[StoredCapture]) -> int:
        def work() -> int:
            size = retention.remove(group)
            self._stores.keywords.refresh(self._answers(group))
            return size

        return self._writer.run(work).result()

    def _answers(self, gone: Iterable[StoredCapture]) -> Iterator[str]:
        """Yield the records whose keywords may include words of these captures, the turns right before theirs."""
        for capture in gone:
            for _, captured in self._stores.archive.after(capture.seq, NEAR):
                if captured.document == capture.document:
                    yield from self._stores.records.citing(captured.document, captured.event.turn)

    def _pool_of(self, document: str) -> str:
        session = self._stores.sources.session(document)
        return (session.opened.project if session else "") or PERSONAL

    def _is_cited(self, document: str, turn: str) -> bool:
        """Return whether a record that is not retired cites a turn, or a course has it."""
        if self._stores.courses.has(document, turn):
            return True
        if self._evidence is None:
            self._evidence = {
                (evidence.span.document, evidence.span.turn)
                for record in self._stores.records.everything()
                if _counts(record)
                for evidence in record.provenance.evidence
            }
        records = self._stores.records
        cited = any(_counts(record) for record in records.many(records.citing(document, turn)).values())
        return cited or (document, turn) in self._evidence


def _counts(record: Record) -> bool:
    return record.status != "retired"
