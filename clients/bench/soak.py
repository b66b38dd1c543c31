"""Soak: an hour of mixed load while the daemon is killed, its clock jumps and its disk fills up.

Only acknowledged requests count as promised. Disk pressure needs the right to mount a file system, clock jumps need
Linux and a C compiler; the notes say which of them did not take place.
"""

from __future__ import annotations

import random
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

import msgspec

from ...protocol.errors import DaemonDown, DeadlineExceeded, MemdError, NotFound, StorageFull, Unavailable
from ...protocol.event import Origin
from ...protocol.instant import from_micros
from ...protocol.places import Places
from ...protocol.request import Remember
from ..python import launch
from ..python.client import Client
from .measurement import BenchOptions, Figure, PartResult, at_least, at_most, zero_figure
from .processes import anonymous_bytes
from .session_data import turns
from .temporary_daemon import START_S, empty_home, offline, running, settle

SECONDS, QUICK_SECONDS = 3600.0, 300.0
EPISODE_S, QUICK_EPISODE_S = 60.0, 20.0  # from one kill to the next
CLIENTS = 4
DISK_MB = 700
FULL_S = 4.0
PAUSE_S = 0.05
JUMPS_S = (0, 86_400, -3_600, 40 * 86_400, -20 * 86_400, 1)
"""Seconds ahead of the machine's clock to which the daemon's clock jumps, one in each run of the daemon, in turn."""
DEADLINE_MS = 20_000.0
GROWTH = 1.5
EXPECTED = (DaemonDown, DeadlineExceeded, Unavailable)


class SoakLedger:
    """What must be there because it was acknowledged, and what must not because it was forgotten; shared by threads."""

    def __init__(self) -> None:
        self.promised: dict[str, str] = {}
        self.forgotten: dict[str, str] = {}
        self.done: Counter[str] = Counter()
        self.refused: Counter[str] = Counter()
        self.wrong: list[str] = []
        self.lock = threading.Lock()

    def failed(self, name: str, error: MemdError) -> None:
        """Count a refusal: expected while the daemon is down or its disk is full, otherwise wrong."""
        with self.lock:
            if isinstance(error, (*EXPECTED, StorageFull)):
                self.refused[type(error).__name__] += 1
            else:
                self.wrong.append(f"{name}: {type(error).__name__}: {error.message}")


class SoakClient(threading.Thread):
    """One client that sends requests of mixed kinds in random order."""

    def __init__(self, number: int, home: Places, ledger: SoakLedger, stop: threading.Event) -> None:
        super().__init__(name=f"soak-client-{number}", daemon=True)
        self._number, self._home, self._ledger, self._halt = number, home, ledger, stop
        self._chance = random.Random(number)
        self._events = turns(1000 + number)
        self._count = 0

    def run(self) -> None:
        """Send requests until `stop` is set, on a new connection after each failure."""
        while not self._halt.is_set():
            try:
                with Client(self._home, DEADLINE_MS) as client:
                    while not self._halt.wait(PAUSE_S):
                        self._once(client)
            except MemdError as error:
                self._ledger.failed("connect", error)
                self._halt.wait(0.2)

    def _once(self, client: Client) -> None:
        name = self._chance.choices(("capture", "remember", "recall", "profile", "list"), (8, 3, 60, 22, 7))[0]
        requests: dict[str, Callable[[Client], object]] = {
            "capture": self._capture,
            "remember": self._remember,
            "recall": self._recall,
            "profile": lambda client: client.profile(),
            "list": lambda client: client.list(limit=20),
        }
        try:
            requests[name](client)
        except MemdError as error:
            self._ledger.failed(name, error)
            if isinstance(error, EXPECTED):
                raise
        else:
            with self._ledger.lock:
                self._ledger.done[name] += 1

    def _capture(self, client: Client) -> None:
        origin = Origin(host="soak", session=f"caller{self._number}.{self._count // 200}", live=True)
        self._count += 1
        client.capture(origin, [next(self._events) for _ in range(self._chance.randint(1, 3))])

    def _remember(self, client: Client) -> None:
        self._count += 1
        word = f"crate{self._number}x{self._count}"
        text = f"The {word} stands in room {self._chance.randint(1, 999)} of the old harbour office."
        at = from_micros(time.time_ns() // 1000)
        origin = Origin(host="soak", session=f"wishes{self._number}")
        record = client.remember(Remember(text=text, turn=word, at=at, origin=origin)).record
        with self._ledger.lock:
            self._ledger.promised[record.id] = word

    def _recall(self, client: Client) -> None:
        with self._ledger.lock:
            known = list(self._ledger.promised.values())[-500:]
        client.recall(f"where does {self._chance.choice(known)} stand" if known else "what is in the harbour office")


class JumpingClock:
    """A wall clock for the daemon that can be set; its monotonic time is unaffected."""

    def __init__(self, library: Path, file: Path) -> None:
        self._file = file
        self.environment = {"LD_PRELOAD": str(library), "SOAK_CLOCK_FILE": str(file)}
        self.set_ahead(0)

    def set_ahead(self, seconds: int) -> None:
        """Let the clock jump to so many seconds ahead of the machine's."""
        mode = "r+b" if self._file.exists() else "w+b"  # in place: the daemon has it mapped
        with self._file.open(mode, buffering=0) as opened:
            opened.write((seconds * 1_000_000_000).to_bytes(8, sys.byteorder, signed=True))


def jumping_clock(folder: Path) -> JumpingClock | None:
    """A clock compiled from `clock.c` into `folder`; None where that is not possible."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if sys.platform != "linux" or compiler is None:
        return None
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    library = folder / "clock.so"
    command = [compiler, "-O1", "-shared", "-fPIC", "-o", str(library), str(Path(__file__).with_name("clock.c"))]
    if subprocess.run(command, check=False, capture_output=True).returncode:
        return None
    return JumpingClock(library, folder / "clock")


@contextmanager
def small_disk(home: Places) -> Generator[bool]:
    """A small file system mounted on the home's data folder; yields whether this user may mount one."""
    home.data.mkdir(mode=0o700, parents=True, exist_ok=True)
    command = ["mount", "-t", "tmpfs", "-o", f"size={DISK_MB}m,mode=0700", "memd-soak", str(home.data)]
    mounted = shutil.which("mount") and subprocess.run(command, check=False, capture_output=True).returncode == 0
    try:
        yield bool(mounted)
    finally:
        if mounted:
            subprocess.run(["umount", "-l", str(home.data)], check=False)


@contextmanager
def filled_disk(folder: Path) -> Generator[None]:
    """Every free block of the folder's file system in use while the block lasts."""
    file = folder / "soak-filler"
    with file.open("wb", buffering=0) as filler:
        for size in (1 << 20, 1 << 12):
            with suppress(OSError):
                while True:
                    filler.write(bytes(size))
    try:
        yield
    finally:
        file.unlink()


class DaemonRun(NamedTuple):
    """One run of the daemon: seconds from the start of the process to its first answer, memory just before its end."""

    started_s: float
    memory: int


class Soak:
    """The disturbed daemon: its home, whether its disk is small, its clock, and seconds of each of its runs."""

    def __init__(self, home: Places, environment: Mapping[str, str], episode_s: float, small: bool) -> None:
        self._home, self._environment, self._episode_s, self._small = home, environment, episode_s, small
        self.clock = jumping_clock(home.state)
        self.ledger = SoakLedger()

    def runs(self, seconds: float, options: BenchOptions) -> list[DaemonRun]:
        """Start and kill the daemon until the time is over, with the clients running all the while."""
        stop = threading.Event()
        clients = [SoakClient(number, self._home, self.ledger, stop) for number in range(CLIENTS)]
        end = time.monotonic() + seconds
        environment = {**self._environment, **(self.clock.environment if self.clock else {})}
        runs: list[DaemonRun] = []
        try:
            while time.monotonic() < end:
                options.progress(f"soak/mixed: run {len(runs) + 1}, {end - time.monotonic():.0f} s to go")
                begin = time.perf_counter()
                process = launch.start(self._home, environment, START_S)
                started = time.perf_counter() - begin
                if not runs:
                    for client in clients:
                        client.start()
                memory = self._disturb(len(runs))
                runs.append(DaemonRun(started, max(memory, anonymous_bytes(process.pid))))
                process.send_signal(signal.SIGKILL)
                process.wait()
        finally:
            stop.set()
            for client in clients:
                if client.ident is not None:
                    client.join(30)
            with suppress(MemdError):
                launch.stop(self._home)
        return runs

    def _disturb(self, number: int) -> int:
        """Disturb one run of the daemon: a full disk in every third, a clock jump, a forget; returns its memory."""
        time.sleep(self._episode_s / 4)
        if self._small and number % 3 == 1:
            with filled_disk(self._home.data):
                time.sleep(FULL_S)
        if self.clock:
            self.clock.set_ahead(JUMPS_S[(number + 1) % len(JUMPS_S)])
        time.sleep(self._episode_s / 4)
        self._forget_one()
        with Client(self._home, DEADLINE_MS) as client, suppress(MemdError):
            client.distil()
        time.sleep(self._episode_s / 2)
        with Client(self._home, DEADLINE_MS) as client, suppress(MemdError):
            return anonymous_bytes(client.status().pid)
        return 0

    def _forget_one(self) -> None:
        ledger = self.ledger
        with ledger.lock:
            id, word = next(iter(ledger.promised.items()), ("", ""))
        if not id:
            return
        try:
            with Client(self._home, DEADLINE_MS) as client:
                job = client.forget([id])
                with ledger.lock:  # from here on the record may be gone, even if the job's end is never reported
                    del ledger.promised[id]
                while job.state == "running":
                    time.sleep(0.1)
                    job = client.job(job.id)
        except MemdError as error:
            ledger.failed("forget", error)
            return
        if job.state == "done":
            with ledger.lock:
                ledger.forgotten[id] = word
                ledger.done["forget"] += 1

    def outcome(self) -> tuple[list[str], list[str], bool]:
        """The promised words that are lost and the forgotten words that are back in a daemon that is started once
        more, with the machine's clock; and whether `verify` finds all stores intact."""

        def is_held(client: Client, id: str) -> bool:
            with suppress(NotFound):
                client.get(id)
                return True
            return False

        with running(self._home, self._environment) as client:
            settle(client)
            lost = [word for id, word in self.ledger.promised.items() if not is_held(client, id)]
            returned = [word for id, word in self.ledger.forgotten.items() if is_held(client, id)]
        report = msgspec.json.decode(offline(self._environment, "verify"), type=dict[str, object])
        return lost, returned, bool(report.get("intact"))


def mixed(options: BenchOptions) -> PartResult:
    """Mixed load of four clients for an hour (`--quick`: five minutes) with kills, clock jumps and a full disk."""
    seconds, episode = (QUICK_SECONDS, QUICK_EPISODE_S) if options.quick else (SECONDS, EPISODE_S)
    settings = {"MEMD_IDLE_S": "2", "MEMD_BACKUP_EVERY_H": "0.05", "MEMD_BACKUP_KEEP": "2", "MEMD_UPKEEP_S": "30"}
    with empty_home(settings, "memd-soak-") as (home, environment), small_disk(home) as small:
        soak = Soak(home, environment, episode, small)
        runs = soak.runs(seconds, options)
        options.progress("soak/mixed: comparing records with acknowledgements")
        lost, returned, intact = soak.outcome()
    ledger = soak.ledger
    third = max(1, len(runs) // 3)
    early, late = (max(run.memory for run in part) for part in (runs[:third], runs[-third:]))
    grown = late / early if early else 0.0
    figures = (
        Figure("requests answered", sum(ledger.done.values())),
        Figure("kills", len(runs)),
        zero_figure("acknowledged records lost", len(lost), len(ledger.promised)),
        zero_figure("forgotten records that came back", len(returned), len(ledger.forgotten)),
        zero_figure("refused without a cause", len(ledger.wrong)),
        Figure("stores sound at the end (1: yes)", float(intact), target=at_least(1)),
        Figure("memory, last third of the lives to the first", grown, "×", samples=len(runs), target=at_most(GROWTH)),
        Figure("  most memory of its own", late / 1e6, "MB", samples=third),
        Figure("  longest start after a kill", max(run.started_s for run in runs), "s"),
    )
    answered = ", ".join(f"{name} {count:,}" for name, count in ledger.done.most_common())
    refused = ", ".join(f"{name} {count:,}" for name, count in ledger.refused.most_common()) or "nothing"
    notes = [f"answered: {answered}", f"refused while it was down or its disk full: {refused}"]
    notes += [f"wrong: {text}" for text in ledger.wrong[:10]]
    notes += [f"{what}: {', '.join(words[:10])}" for what, words in (("lost", lost), ("came back", returned)) if words]
    if not small:
        notes.append("no disk pressure: this user may not mount a file system")
    if soak.clock is None:
        notes.append("the clock did not jump: that needs Linux and a C compiler")
    return PartResult(figures, notes=tuple(notes), shows_not="weeks of use")
