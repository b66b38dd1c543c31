"""A run of memd whose file calls are recorded, with what it acknowledged and when.

Comes in: a folder. Goes out: the recording, and promises: from which byte of the trace on which capture, record or
forgotten word must hold. Real daemons, real clients, SIGKILL and clean stops in between.
"""

from __future__ import annotations

import json
import os
import platform
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from memd.daemon.projections.stores import Stores
from memd.daemon.world import real_world
from memd.models import registry
from memd.protocol.event import Captured, Origin, Said
from memd.protocol.operation import Added, Decision
from memd.protocol.record import Provenance, Record, Span
from memd.protocol.request import Remember
from tests.conftest import RunningDaemon
from tests.faults.disk import HEAD
from tests.faults.migrations import downgrade

HERE, AT = Path(__file__).parent, "2026-01-01T00:00:00Z"


@dataclass(frozen=True)
class Promise:
    """From `since` (bytes of trace) until `until` this must be found: a `turn` with its words, a `record` by id.

    Of what is `gone`, no byte must be found. An `until` of 0 is never.
    """

    since: int
    what: str
    name: str
    words: str
    until: int = 0

    def holds(self, at: int) -> bool:
        """Whether it must hold when the power goes at that byte."""
        return self.since <= at and not 0 < self.until <= at


def why_not() -> str:
    """Why nothing can be recorded here, "" if it can."""
    if platform.system() != "Linux" or platform.machine() not in ("x86_64", "aarch64"):
        return "file calls are recorded on Linux only, on x86-64 or arm64"
    return "" if shutil.which("cc") else "no C compiler (cc) to build the recorder with"


def build(folder: Path) -> Path:
    """The recorder, compiled."""
    library = folder / "recorder.so"
    command = ["cc", "-O2", "-shared", "-fPIC", "-o", str(library), str(HERE / "recorder.c"), "-ldl", "-lpthread"]
    subprocess.run(command, check=True, capture_output=True)
    return library


def recorded(environment: dict[str, str], library: Path, root: Path, trace: Path) -> dict[str, str]:
    """An environment in which every call below `root` goes into `trace`."""
    return {**environment, "LD_PRELOAD": str(library), "FAULTS_ROOT": str(root), "FAULTS_TRACE": str(trace)}


class Recording:
    """A home whose daemon is recorded."""

    def __init__(self, folder: Path) -> None:
        self.home, self.trace = folder / "home", folder / "trace"
        self.data = self.home / "data"
        self.data.mkdir(mode=0o700, parents=True)
        self.home.chmod(0o700)
        self.promises: list[Promise] = []
        settings = {"MEMD_HOME": str(self.home), "MEMD_BALLAST_MB": "0.02", "MEMD_KEYWORD_COMMIT_S": "0.2"}
        self._environment = recorded({**os.environ, **settings}, build(folder), self.data, self.trace)
        self.daemon = RunningDaemon(self._environment)
        self._number = 0
        self.phases: list[tuple[str, int]] = []
        """What happened, each with the byte of the trace at which it began."""

    def _phase(self, name: str) -> None:
        self.phases.append((name, self.trace.stat().st_size))

    def phase(self, at: int) -> str:
        """What happened at a byte of the trace, "" before anything did."""
        return next((name for name, since in reversed(self.phases) if since < at), "")

    def _promise(self, what: str, name: str, words: str) -> None:
        self.promises.append(Promise(self.trace.stat().st_size, what, name, words))

    def capture(self, client: Any, count: int, session: str) -> None:
        """Some turns, each promised once it is acknowledged."""
        origin = Origin(host="power", session=session)
        for _ in range(count):
            self._number += 1
            turn, words = f"t{self._number}", f"I prefer tool{self._number} for job{self._number} in my shell."
            event = Said(turn=turn, at=AT, role="user", text=words)
            assert client.capture(origin, [event]).accepted == 1
            self._promise("turn", f"{origin.document}\0{turn}", words)

    def remember(self, client: Any, count: int) -> None:
        """Some records, each promised once it is acknowledged."""
        for _ in range(count):
            self._number += 1
            words = f"The lamp{self._number} stands in room{self._number}."
            origin = Origin(host="power", session="notes")
            request = Remember(text=words, turn=f"r{self._number}", at=AT, origin=origin)
            self._promise("record", client.remember(request).record.id, words)

    def forget(self, client: Any, session: str) -> None:
        """Forget a session; from the request on nothing of it is promised, from the end of the job on its absence."""
        document, asked = Origin(host="power", session=session).document, self.trace.stat().st_size
        finish(client, client.forget(session=document))
        for number, promise in enumerate(self.promises):
            if promise.what == "turn" and promise.name.startswith(document + "\0") and not promise.until:
                self.promises[number] = replace(promise, until=asked)
                self._promise("gone", promise.name, promise.words)

    def _begin_with_an_older_layout(self) -> None:
        """Captures and records that a former version wrote, on the disk before the recording begins."""
        stores, origin = Stores(self.data, real_world(), registry.info()), Origin(host="power", session="old")
        for number in range(10):
            words = f"The old boat{number} lies in dock{number}."
            said = Said(turn=f"t{number}", at=AT, role="user", text=words)
            stores.take([Captured(document=origin.document, event=said)])
            spans = (Span(origin.document, said.turn, 0, len(words)),)
            source = Provenance(
                author="user", source=origin.document, trust="user", spans=spans, quote=words, said_at=AT
            )
            record = Record(
                id=f"old{number}", pool="personal", kind="note", content=words, description=words, provenance=source
            )
            stores.commit([Added(record=record, decision=Decision(action="add", reason="it was said"))])
        stores.close()
        downgrade(self.data)
        self.trace.write_bytes(b"".join(_standing(self.data)))
        for number in range(10):
            words = f"The old boat{number} lies in dock{number}."
            self._promise("turn", f"{origin.document}\0t{number}", words)
            self._promise("record", f"old{number}", words)

    def _migrate(self) -> None:
        """Brought up by three starts, two of which are killed on the way."""
        self._phase("migrate")
        for point, status in (("migration:snapshot", -signal.SIGKILL), ("migration:done", -signal.SIGKILL), ("", 0)):
            command = [sys.executable, "-m", "tests.faults.migrations", str(self.data)]
            environment = {**self._environment, "MEMD_FAIL": point}
            done = subprocess.run(command, cwd=HERE.parents[1], check=False, env=environment)
            assert done.returncode == status

    def run(self) -> None:
        """Everything that writes: a migration, captures, records, distilling, forgetting, jobs, kills, stops."""
        self._begin_with_an_older_layout()
        self._migrate()
        for round_ in range(3):
            self._phase("start")
            self.daemon.start()
            self._phase("capture")
            with self.daemon.client() as client:
                self.capture(client, 6, f"s{round_}")
                self.remember(client, 6)
                self._phase("distil")
                self.daemon.settle()
                self._phase("capture")
                self.remember(client, 4)
                self._phase("forget")
                self.forget(client, f"s{round_}")
                job = ("compact", "rebuild", "backup")[round_]
                self._phase(job)
                finish(client, getattr(client, job)())
                self._phase("capture")
                self.capture(client, 4, f"late{round_}")
            self._phase("stop")
            if round_ == 0:
                self.daemon.kill()
            else:
                self.daemon.terminate()


def _standing(folder: Path) -> Iterator[bytes]:
    """The records of a trace that put a folder as it stands on the disk."""
    for path in sorted(folder.rglob("*")):
        name, inode = str(path).encode(), path.stat().st_ino
        if path.is_dir():
            yield HEAD.pack(b"m", inode, 0, len(name), 0) + name
        else:
            content = path.read_bytes()
            yield HEAD.pack(b"c", inode, 0, len(name), 0) + name
            yield HEAD.pack(b"W", inode, 0, len(content), 0) + content
    for path in (folder, *(path for path in folder.rglob("*") if path.is_dir())):
        name = str(path).encode()
        yield HEAD.pack(b"s", path.stat().st_ino, 0, len(name), 0) + name


def finish(client: Any, job: Any) -> None:
    """Wait for a job, which must succeed."""
    while job.state == "running":
        time.sleep(0.02)
        job = client.job(job.id)
    assert job.state == "done", job


def save(promises: list[Promise], file: Path) -> None:
    """Promises as JSON, for the child that checks them."""
    file.write_text(json.dumps([asdict(promise) for promise in promises]))


def load(file: Path) -> list[Promise]:
    """The same, read."""
    return [Promise(**each) for each in json.loads(file.read_text())]
