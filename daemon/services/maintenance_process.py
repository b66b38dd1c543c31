"""The daemon's side of the maintenance child: at most one runs, it reports its progress and can be ended at once.

A child that dies counts as a damaged store: a damaged page kills the process that reads it.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import cast

import msgspec

from ...protocol.errors import JournalCorrupt, NotFound, Stopping, Unavailable, by_code
from ...protocol.places import Places
from ..projections.replay import ReportProgress, TaskReport
from ..storage.folder_lock import FolderLock
from ..storage.layout_version import require_current
from ..world import World


class TaskStep(msgspec.Struct, frozen=True, tag="step"):
    """Progress of the task."""

    done: int
    total: int
    detail: str


class Finished(msgspec.Struct, frozen=True, tag="finished"):
    """The task is done, with its report."""

    report: TaskReport


class Failed(msgspec.Struct, frozen=True, tag="failed"):
    """The task failed with one of memd's errors."""

    code: str
    message: str
    hint: str


Line = TaskStep | Finished | Failed

_lines: msgspec.json.Decoder[Line] = msgspec.json.Decoder(Line)


class MaintenanceProcess:
    """Runs one child at a time."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()
        self._ended = False

    def run(self, task: str, folder: Path, names: Sequence[str], emit: ReportProgress) -> TaskReport:
        """Run a task and return its report. Raises its error, JournalCorrupt if it died, Unavailable, Stopping."""
        process = self._start(
            [sys.executable, "-P", "-m", "memd.daemon.server.maintenance_child", task, str(folder), *names]
        )
        detail = "opening the stores"
        assert process.stdout is not None
        try:
            for raw in process.stdout:
                match _lines.decode(raw):
                    case TaskStep() as step:
                        detail = step.detail
                        emit(step.done, step.total, step.detail)
                    case Finished() as finished:
                        return finished.report
                    case Failed() as failed:
                        raise by_code(failed.code, failed.message, failed.hint)
        finally:
            status = self._reap(process)
        if self._ended:
            raise Stopping("memd is stopping", hint="start the task again when memd runs")
        how = signal.Signals(-status).name if status < 0 else f"exit code {status}"
        raise JournalCorrupt(
            f"the maintenance process crashed while {detail} ({how}): a page of a store is damaged",
            hint="`memd down`, then `memd up` checks each store; `memd restore-backup` restores a backup",
        )

    def _start(self, command: Sequence[str]) -> subprocess.Popen[bytes]:
        with self._lock:
            if self._ended:
                raise Stopping("memd is stopping", hint="start the task again when memd runs")
            if self._process is not None:
                raise Unavailable("another maintenance task is running", hint="try again when it has finished")
            self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd="/")
            return self._process

    def _reap(self, process: subprocess.Popen[bytes]) -> int:
        assert process.stdin is not None and process.stdout is not None
        process.stdin.close()
        process.stdout.close()
        status = process.wait()
        with self._lock:
            self._process = None
        return status

    def end(self) -> None:
        """End the child and start no other; the next start of the daemon deletes what the child built so far."""
        with self._lock:
            self._ended = True
            if self._process is not None:
                self._process.kill()


def verify_command(home: Places, world: World, arguments: Sequence[str]) -> TaskReport:
    """Return the report of `memd verify` while no daemon runs.

    Raises JournalLocked while one runs, NotFound without a memory, UnsupportedFormat before a migration,
    JournalCorrupt for any damage, after it wrote the report to standard output.
    """
    if not (home.data / "journal" / "data.mdb").exists():
        raise NotFound(f"{home.data} holds no memory", hint="MEMD_HOME names the folder; `memd up` creates a memory")
    lock = FolderLock(home.data)
    try:
        require_current(home.data)
        report = MaintenanceProcess().run("verify", home.data, (), lambda done, total, detail: None)
    finally:
        lock.release()
    if report["damage"]:
        sys.stdout.write(msgspec.json.encode(report).decode() + "\n")
        raise JournalCorrupt(str(report["verdict"]), hint="; ".join(cast("list[str]", report["damage"])))
    return report
