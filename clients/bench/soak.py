"""Soak: hours of use in an hour. Mixed load while the daemon is killed, its clock jumps and its disk fills up.

Comes in: a setting. Goes out: what was lost, what came back, how memory grew, whether the stores verify at the end.
Invariants: what counts as promised was acknowledged before; a refusal with a reason, while the disk is full or the
daemon is down, is no loss. Disk pressure needs the right to mount a file system, jumps of the clock need Linux and a
C compiler; the part says which it had.
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
from collections.abc import Generator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec

from ...protocol.errors import DaemonDown, DeadlineExceeded, MemdError, NotFound, StorageFull, Unavailable
from ...protocol.event import Origin
from ...protocol.instant import from_micros
from ...protocol.places import Places
from ...protocol.request import Remember
from ..python import launch
from ..python.client import Client
from .figure import Figure, at_least, at_most
from .home import START_S, empty_home, settle
from .offline import offline
from .part import Part, Setting
from .processes import anonymous_bytes
from .turns import turns

SECONDS, QUICK_SECONDS = 3600.0, 300.0
EPISODE_S, QUICK_EPISODE_S = 60.0, 20.0
"""How long the daemon lives before the next kill."""
CLIENTS = 4
DISK_MB = 700
FULL_S = 4.0
PAUSE_S = 0.05
JUMPS_S = (0, 86_400, -3_600, 40 * 86_400, -20 * 86_400, 1)
"""Where the clock jumps to in the middle of each life, in turn, in seconds ahead of the machine's."""
DEADLINE_MS = 20_000.0
NOTHING_LOST, GROWTH = 0, 1.5
EXPECTED = (DaemonDown, DeadlineExceeded, Unavailable)


class Ledger:
    """What was acknowledged and must be there, what was forgotten and must not; shared by the clients."""

    def __init__(self) -> None:
        self.promised: dict[str, str] = {}
        self.forgotten: dict[str, str] = {}
        self.done: Counter[str] = Counter()
        self.refused: Counter[str] = Counter()
        self.wrong: list[str] = []
        self.lock = threading.Lock()

    def failed(self, name: str, error: MemdError) -> None:
        """A request was refused: as it may be while the daemon is down or its disk is full, or wrongly."""
        with self.lock:
            if isinstance(error, (*EXPECTED, StorageFull)):
                self.refused[type(error).__name__] += 1
            else:
                self.wrong.append(f"{name}: {type(error).__name__}: {error.message}")


class Caller(threading.Thread):
    """One client: captures, wishes and questions in a mixed order, each counted once it is answered."""

    def __init__(self, number: int, where: Places, ledger: Ledger, stop: threading.Event) -> None:
        super().__init__(name=f"caller-{number}", daemon=True)
        self._number, self._where, self._ledger, self._halt = number, where, ledger, stop
        self._chance = random.Random(number)
        self._events = turns(1000 + number)
        self._count = 0

    def run(self) -> None:
        """Until told to stop; a new connection after each trouble."""
        while not self._halt.is_set():
            try:
                with Client(self._where, DEADLINE_MS) as client:
                    while not self._halt.wait(PAUSE_S):
                        self._once(client)
            except MemdError as error:
                self._ledger.failed("connect", error)
                self._halt.wait(0.2)

    def _once(self, client: Client) -> None:
        name = self._chance.choices(("capture", "remember", "recall", "profile", "list"), (8, 3, 60, 22, 7))[0]
        try:
            getattr(self, f"_{name}")(client)
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
        words = f"The {word} stands in room {self._chance.randint(1, 999)} of the old harbour office."
        at = from_micros(time.time_ns() // 1000)
        origin = Origin(host="soak", session=f"wishes{self._number}")
        record = client.remember(Remember(text=words, turn=word, at=at, origin=origin)).record
        with self._ledger.lock:
            self._ledger.promised[record.id] = word

    def _recall(self, client: Client) -> None:
        with self._ledger.lock:
            known = list(self._ledger.promised.values())[-500:]
        client.recall(f"where does {self._chance.choice(known)} stand" if known else "what is in the harbour office")

    def _profile(self, client: Client) -> None:
        client.profile()

    def _list(self, client: Client) -> None:
        client.list(limit=20)


class Life(msgspec.Struct, frozen=True):
    """One life of the daemon: seconds from the start of the process to its first answer, bytes just before its end."""

    started_s: float
    memory: int


def mixed(setting: Setting) -> Part:
    """Mixed load of four clients for an hour (`--quick`: five minutes) with kills, clock jumps and a full disk."""
    seconds, episode = (QUICK_SECONDS, QUICK_EPISODE_S) if setting.quick else (SECONDS, EPISODE_S)
    settings = {"MEMD_IDLE_S": "2", "MEMD_BACKUP_EVERY_H": "0.05", "MEMD_BACKUP_KEEP": "2", "MEMD_UPKEEP_S": "30"}
    ledger = Ledger()
    with empty_home(settings, "memd-soak-") as (where, environment), small_disk(where) as small:
        clock = jumping_clock(where.state)
        lives = _lives(where, environment, ledger, Course(seconds, episode, small, clock), setting)
        lost, returned, report = _reckoning(where, environment, ledger, setting)
    notes = _notes(ledger, lost, returned)
    if not small:
        notes.append("no disk pressure: this user may not mount a file system")
    if clock is None:
        notes.append("the clock did not jump: that needs Linux and a C compiler")
    return Part(figures=_figures(ledger, lives, lost, returned, report), notes=tuple(notes), shows_not="weeks of use")


def jumping_clock(folder: Path) -> Clock | None:
    """A clock for the daemon, made of `clock.c`; None where it can't be."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if sys.platform != "linux" or compiler is None:
        return None
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    library = folder / "clock.so"
    command = [compiler, "-O1", "-shared", "-fPIC", "-o", str(library), str(Path(__file__).with_name("clock.c"))]
    if subprocess.run(command, check=False, capture_output=True).returncode:
        return None
    return Clock(library, folder / "clock")


class Clock:
    """A wall clock that jumps when it is told to; monotonic time goes on as it was."""

    def __init__(self, library: Path, file: Path) -> None:
        self._file = file
        self.environment = {"LD_PRELOAD": str(library), "SOAK_CLOCK_FILE": str(file)}
        self.put(0)

    def put(self, ahead_s: int) -> None:
        """Let it jump to so many seconds ahead of the machine's."""
        mode = "r+b" if self._file.exists() else "w+b"  # in place: the daemon has it mapped
        with self._file.open(mode, buffering=0) as opened:
            opened.write((ahead_s * 1_000_000_000).to_bytes(8, sys.byteorder, signed=True))


class Course(msgspec.Struct, frozen=True):
    """What is done to the daemon: for how long in all and in each life, on a small disk or not, with which clock."""

    seconds: float
    episode: float
    small: bool
    clock: Clock | None


@contextmanager
def small_disk(where: Places) -> Generator[bool]:
    """A file system of its own below the home's data, if this user may mount one."""
    where.data.mkdir(mode=0o700, parents=True, exist_ok=True)
    options = f"size={DISK_MB}m,mode=0700"
    command = ["mount", "-t", "tmpfs", "-o", options, "memd-soak", str(where.data)]
    try:
        mounted = subprocess.run(command, check=False, capture_output=True).returncode == 0
    except FileNotFoundError:
        mounted = False
    try:
        yield mounted
    finally:
        if mounted:
            subprocess.run(["umount", "-l", str(where.data)], check=False)


def _lives(
    where: Places,
    environment: Mapping[str, str],
    ledger: Ledger,
    course: Course,
    setting: Setting,
) -> list[Life]:
    stop = threading.Event()
    callers = [Caller(number, where, ledger, stop) for number in range(CLIENTS)]
    end = time.monotonic() + course.seconds
    clock = course.clock.environment if course.clock else {}
    lives: list[Life] = []
    try:
        while time.monotonic() < end:
            setting.tell(f"soak/mixed: life {len(lives) + 1}, {end - time.monotonic():.0f} s to go")
            begin = time.perf_counter()
            process = launch.start(where, {**environment, **clock}, START_S)
            started = time.perf_counter() - begin
            if not lives:
                for caller in callers:
                    caller.start()
            memory = _live(where, ledger, course, len(lives))
            lives.append(Life(started, max(memory, anonymous_bytes(process.pid))))
            process.send_signal(signal.SIGKILL)
            process.wait()
    finally:
        stop.set()
        for caller in callers:
            if caller.ident is not None:
                caller.join(30)
        with suppress(MemdError):
            launch.stop(where)
    return lives


def _live(where: Places, ledger: Ledger, course: Course, number: int) -> int:
    """A life but for its end: the clock jumps, something is forgotten, sometimes the disk is full; its memory."""
    time.sleep(course.episode / 4)
    if course.small and number % 3 == 1:
        with filled(where.data):
            time.sleep(FULL_S)
    if course.clock:
        course.clock.put(JUMPS_S[(number + 1) % len(JUMPS_S)])
    time.sleep(course.episode / 4)
    _forget_one(where, ledger)
    with Client(where, DEADLINE_MS) as client, suppress(MemdError):
        client.distil()
    time.sleep(course.episode / 2)
    with Client(where, DEADLINE_MS) as client, suppress(MemdError):
        return anonymous_bytes(client.status().pid)
    return 0


@contextmanager
def filled(folder: Path) -> Generator[None]:
    """Every free block of the folder's file system taken, while the block lasts."""
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


def _forget_one(where: Places, ledger: Ledger) -> None:
    with ledger.lock:
        id, word = next(iter(ledger.promised.items()), ("", ""))
    if not id:
        return
    try:
        with Client(where, DEADLINE_MS) as client:
            job = client.forget([id])
            with ledger.lock:  # from here on it may be gone, whether or not its end is heard of
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


def _reckoning(
    where: Places, environment: Mapping[str, str], ledger: Ledger, setting: Setting
) -> tuple[list[str], list[str], Mapping[str, object]]:
    """What is lost, what came back, and what `verify` says, after a last start with the right clock."""
    setting.tell("soak/mixed: reckoning")
    process = launch.start(where, environment, START_S)
    lost: list[str] = []
    returned: list[str] = []
    try:
        with Client(where, DEADLINE_MS) as client:
            settle(client)
            for id, word in ledger.promised.items():
                try:
                    client.get(id)
                except NotFound:
                    lost.append(word)
            for id, word in ledger.forgotten.items():
                with suppress(NotFound):
                    client.get(id)
                    returned.append(word)
    finally:
        launch.end(process, where)
    return lost, returned, msgspec.json.decode(offline(environment, "verify"), type=dict[str, object])


def _figures(
    ledger: Ledger, lives: list[Life], lost: list[str], returned: list[str], report: Mapping[str, object]
) -> tuple[Figure, ...]:
    third = max(1, len(lives) // 3)
    early, late = (max(life.memory for life in part) for part in (lives[:third], lives[-third:]))
    grown = late / early if early else 0.0
    return (
        Figure(name="requests answered", value=sum(ledger.done.values())),
        Figure(name="kills", value=len(lives)),
        Figure(
            name="acknowledged records lost",
            value=len(lost),
            samples=len(ledger.promised),
            target=at_most(NOTHING_LOST),
        ),
        Figure(
            name="forgotten records that came back",
            value=len(returned),
            samples=len(ledger.forgotten),
            target=at_most(NOTHING_LOST),
        ),
        Figure(name="refused without a cause", value=len(ledger.wrong), target=at_most(NOTHING_LOST)),
        Figure(name="stores sound at the end (1: yes)", value=float(bool(report.get("intact"))), target=at_least(1)),
        Figure(
            name="memory, last third of the lives to the first",
            value=grown,
            unit="×",
            samples=len(lives),
            target=at_most(GROWTH),
        ),
        Figure(name="  most memory of its own", value=late / 1e6, unit="MB", samples=third),
        Figure(name="  longest start after a kill", value=max(life.started_s for life in lives), unit="s"),
    )


def _notes(ledger: Ledger, lost: list[str], returned: list[str]) -> list[str]:
    answered = ", ".join(f"{name} {count:,}" for name, count in ledger.done.most_common())
    refused = ", ".join(f"{name} {count:,}" for name, count in ledger.refused.most_common()) or "nothing"
    notes = [f"answered: {answered}", f"refused while it was down or its disk full: {refused}"]
    notes += [f"wrong: {words}" for words in ledger.wrong[:10]]
    for what, words in (("lost", lost), ("came back", returned)):
        notes += [f"{what}: {', '.join(words[:10])}"] * bool(words)
    return notes
