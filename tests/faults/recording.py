"""A run of memd whose file calls are recorded, with what it acknowledged and when.

Comes in: a folder. Goes out: the recording, and promises: from which byte of the trace on which capture, record or
forgotten word must hold. Real daemons, real clients, SIGKILL and clean stops in between.
"""

from __future__ import annotations

import json
import os
import platform
import shutil
import subprocess
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from memd.protocol.event import Origin, Said
from memd.protocol.request import Remember
from tests.conftest import RunningDaemon

HERE = Path(__file__).parent


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
        environment = recorded({**os.environ, **settings}, build(folder), self.data, self.trace)
        self.daemon = RunningDaemon(environment)
        self._number = 0

    def _promise(self, what: str, name: str, words: str) -> None:
        self.promises.append(Promise(self.trace.stat().st_size, what, name, words))

    def capture(self, client: Any, count: int, session: str) -> None:
        """Some turns, each promised once it is acknowledged."""
        origin = Origin(host="power", session=session)
        for _ in range(count):
            self._number += 1
            turn, words = f"t{self._number}", f"I prefer tool{self._number} for job{self._number} in my shell."
            event = Said(turn=turn, at="2026-01-01T00:00:00Z", role="user", text=words)
            assert client.capture(origin, [event]).accepted == 1
            self._promise("turn", f"{origin.document}\0{turn}", words)

    def remember(self, client: Any, count: int) -> None:
        """Some records, each promised once it is acknowledged."""
        for _ in range(count):
            self._number += 1
            words = f"The lamp{self._number} stands in room{self._number}."
            origin = Origin(host="power", session="notes")
            request = Remember(text=words, turn=f"r{self._number}", at="2026-01-01T00:00:00Z", origin=origin)
            self._promise("record", client.remember(request).record.id, words)

    def forget(self, client: Any, session: str) -> None:
        """Forget a session; from the request on nothing of it is promised, from the end of the job on its absence."""
        document, asked = Origin(host="power", session=session).document, self.trace.stat().st_size
        finish(client, client.forget(session=document))
        for number, promise in enumerate(self.promises):
            if promise.what == "turn" and promise.name.startswith(document + "\0") and not promise.until:
                self.promises[number] = replace(promise, until=asked)
                self._promise("gone", promise.name, promise.words)

    def run(self) -> None:
        """Everything that writes: captures, records, distilling, forgetting, jobs, SIGKILL, clean stops, starts."""
        for round_ in range(3):
            self.daemon.start()
            with self.daemon.client() as client:
                self.capture(client, 6, f"s{round_}")
                self.remember(client, 6)
            self.daemon.settle()
            with self.daemon.client() as client:
                self.remember(client, 4)
                self.forget(client, f"s{round_}")
                finish(client, (client.compact, client.rebuild, client.backup)[round_]())
                self.capture(client, 4, f"late{round_}")
            if round_ == 0:
                self.daemon.kill()
            else:
                self.daemon.terminate()


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
