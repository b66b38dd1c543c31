"""What keeps the stores small and safe without being asked: backups with rotation, the archive's retention.

Comes in: the settings, and time. Goes out: jobs, and their last outcomes for `memd status`. Invariants: everything runs
as a job, so nothing runs beside itself or beside a compaction; a backup is made only when something changed, and old
ones go, so neither piles up; removal from the archive happens on the write thread, in small groups.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path

from ....protocol.errors import InvalidRequest, Stopping, Unavailable
from ....protocol.instant import from_micros
from ....protocol.places import Places
from ....protocol.record import Record
from ....protocol.reply import BackupList, DiskUse, JobState, Outcome
from ....protocol.request import Backup, Backups, DiskUsage, Expire, GetJob, Rebuild, Verify
from ....stages.batch import PERSONAL
from ...config import Config, Keep
from ...projections.keywords import NEAR
from ...projections.stores import Stores
from ...storage.backup import FOLDER, backups, is_newer, listed, rotate, write_backup
from ...storage.retention import SLICE, Held, Retention
from ...world import World
from ..activity import Activity
from ..jobs import Jobs, Progress, Report
from ..maintenance_process import MaintenanceProcess
from ..scheduler import Scheduler
from ..service import Handlers, Service, owner
from ..write_thread import Writer
from .disk_usage import disk_use
from .index_commits import IndexCommits
from .rebuild import ProjectionRebuild, names_of, start_verify
from .vector_graphs import VectorGraphBuilder

HOUR, DAY_S = 3_600_000_000, 86_400.0
log = logging.getLogger("memd.upkeep")


class MaintenanceService(Service):
    """Backups, retention, verification, rebuilds, index commits and vector graphs of one home."""

    name = "maintenance"

    def __init__(
        self,
        stores: Stores,
        places: Places,
        writer: Writer,
        jobs: Jobs,
        process: MaintenanceProcess,
        scheduler: Scheduler,
        activity: Activity,
        config: Callable[[], Config],
        world: World,
        save: Callable[[], None],
    ) -> None:
        """`save`: writes down what is saved as often as the keyword indexes are committed."""
        self._stores, self._places, self._writer, self._jobs, self._process = stores, places, writer, jobs, process
        self._scheduler, self._activity, self._config, self._world = scheduler, activity, config, world
        self._rebuilding = ProjectionRebuild(stores, writer, process)
        self._graphs = VectorGraphBuilder(stores, writer, process)
        self._indexes = IndexCommits(stores, save, lambda: config().keyword_commit_s)
        self._folder = stores.folder / FOLDER
        self._expired_at = -DAY_S
        self._evidence: set[tuple[str, str]] | None = None
        self._every_s = 0.0
        if finished := backups(self._folder):
            self._note_backup(finished[-1][1].at, finished[-1][0])

    @property
    def handlers(self) -> Handlers:
        """Jobs, and what they left."""
        return {
            GetJob: owner("fast", self.job),
            Verify: owner("slow", self.verify),
            Rebuild: owner("slow", self.start_rebuild),
            Backup: owner("slow", self.start_backup),
            Backups: owner("slow", self.list_backups),
            Expire: owner("slow", self.expire),
            DiskUsage: owner("slow", self.disk_usage),
        }

    def start(self) -> None:
        """Begin to look for what is due."""
        self._indexes.start()
        self._scheduler.every(self._config().upkeep_s, self._graphs.tick, "graphs")
        self.reload(self._config())

    def reload(self, config: Config) -> None:
        """Look as often as the settings demand."""
        if config.upkeep_s != self._every_s:
            self._every_s = config.upkeep_s
            self._scheduler.every(config.upkeep_s, self.tick, "upkeep")

    def stop(self) -> None:
        """End the maintenance child and what waits for it."""
        self._process.end()
        self._graphs.stop()
        self._jobs.stop()
        self._indexes.stop()

    @property
    def rebuild(self) -> ProjectionRebuild:
        """The rebuild of projections, for those that make them anew."""
        return self._rebuilding

    def job(self, request: GetJob) -> JobState:
        """Return the state of a job. Raises NotFound."""
        return self._jobs.get(request.id)

    def verify(self, request: Verify) -> JobState:
        """Start to verify every store. Raises Unavailable."""
        return start_verify(self._jobs, self._process, self._stores)

    def start_rebuild(self, request: Rebuild) -> JobState:
        """Start to rebuild projections. Raises InvalidRequest, Unavailable."""
        names = names_of(request.name)
        return self._jobs.start("rebuild", lambda progress: self._rebuilding.run(names, progress))

    def disk_usage(self, request: DiskUsage) -> DiskUse:
        """Return the bytes on disk by part."""
        return disk_use(self._stores, self._places)

    def tick(self) -> None:
        """Start what is due; what can't start now is due again next time."""
        self._stores.let_go()
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
        found = backups(self._folder)
        if found and self._world.now() - found[-1][1].at < every:
            return False
        return is_newer(self._stores.journal, self._stores.archive, self._folder)

    def start_backup(self, request: Backup) -> JobState:
        """Start a backup. Raises Unavailable while another job runs, InvalidRequest for a folder that is no path."""
        to, keep = request.to, request.keep
        if to and not Path(to).is_absolute():
            raise InvalidRequest(f"{to!r} is not an absolute path", hint="the daemon does not know your folder")
        if keep < 0:
            raise InvalidRequest("the number of backups to keep is negative", hint="keep at least one")
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

    def list_backups(self, request: Backups) -> BackupList:
        """The finished backups in a folder, and what migrations kept there. Raises NotFound."""
        return listed(self._folder, request.folder)

    # --- retention ---------------------------------------------------------------------------------------------------
    def expire(self, request: Expire) -> JobState:
        """Start the archive's retention. Raises Unavailable while another job runs."""

        def work(progress: Progress) -> Report:
            return self._expire(progress, request.dry_run)

        return self._jobs.start("expire", work)

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
            removed_bytes += sum(each.size_bytes for each in group) if dry_run else self._remove(retention, group)
        report: Report = {
            "captures": captures,
            "bytes": removed_bytes,
            "compaction_frees": stores.archive.log.environment.free_bytes(),
        }
        if not dry_run:
            self._expired_at = self._world.monotonic()
            what = f"{captures} captures, {removed_bytes} bytes removed" if captures else "no capture exceeds a limit"
            self._activity.put("expired", Outcome(at=from_micros(self._world.now()), what=what))
        return report

    def _remove(self, retention: Retention, group: list[Held]) -> int:
        def work() -> int:
            size = retention.remove(group)
            self._stores.keywords.refresh(self._answers(group))
            return size

        return self._writer.run(work).result()

    def _answers(self, gone: Iterable[Held]) -> Iterator[str]:
        """The records that may have been found by the words of these captures, which stood right before theirs."""
        for each in gone:
            for _, captured in self._stores.archive.after(each.seq, NEAR):
                if captured.document == each.document:
                    yield from self._stores.records.citing(captured.document, captured.event.turn)

    def _pool_of(self, document: str) -> str:
        session = self._stores.sources.session(document)
        return (session.opened.project if session else "") or PERSONAL

    def _is_cited(self, document: str, turn: str) -> bool:
        """Whether a record that is not retired rests on a turn, by a span or as evidence."""
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
