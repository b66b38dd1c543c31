"""Speed of the write path: a long session imported and distilled, the profile meanwhile, and what idling costs.

Comes in: a setting with real sessions. Goes out: figures. Invariants: the import is the command a user runs; the bare
echo is asked as often and for as many bytes as the daemon, in turns with it, beside a process that is as nice and burns
as much as the worker did.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from ....protocol import wire
from ....protocol.errors import Unavailable
from ...importers import claude_code
from ...python import launch
from ...python.client import Client
from ...python.zmtp import Connection, Deadline
from ..echo import echoing
from ..figure import Figure, at_most, percentile
from ..home import empty_home, running, settle
from ..part import Part, Setting
from ..processes import burning, children, cpu_s
from ..sessions import deliver, large_session

ROUNDS = 3
PACE_S = 0.004
IDLE_S = 300.0
QUICK_IDLE_S = 30.0
REST_S = 15.0


def imported(setting: Setting) -> Part:
    """A real session of 2.7 MB imported and distilled by `memd import`, start of the command to the last record."""
    path = large_session(setting)
    with empty_home() as (where, environment), running(where, environment) as client:
        begin, burnt = time.perf_counter(), cpu_s(client.status().pid)
        command = [sys.executable, "-P", "-m", "memd.clients.cli.main", "import", "claude-code", str(path), "--json"]
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, env=launch.daemon_environment(environment)
        )
        seconds = time.perf_counter() - begin
        if done.returncode:
            raise Unavailable(f"the import ended with {done.returncode}", hint=done.stdout[-500:])
        status = client.status()
        if status.pending or status.failures:
            raise Unavailable(f"{status.pending} captures wait, {len(status.failures)} failed", hint=status.worker)
        burnt = cpu_s(status.pid) - burnt
    size_mb = path.stat().st_size / 1e6
    figures = (
        Figure(name=f"{size_mb:.1f} MB imported, distilled", value=seconds, unit="s", target=at_most(20)),
        Figure(name="  seconds of a core, all processes", value=burnt, unit="s"),
        Figure(name="  captures", value=status.archive_seq),
        Figure(name="  records", value=sum(status.records.values())),
    )
    return Part(figures=figures, shows_not="whether the records are any good: that is the gate's question")


def hot(setting: Setting) -> Part:
    """The profile while a long session is distilled, beside an echo next to a process that burns the same CPU."""
    path = large_session(setting)
    times: list[float] = []
    floors: list[float] = []
    shares: list[float] = []
    for number in range(1 if setting.quick else ROUNDS):
        setting.tell(f"write/hot: round {number + 1}")
        with empty_home() as (where, environment), running(where, environment) as client:
            deliver(client, claude_code.read(path).sessions)
            size = len(wire.encode_data(client.profile(), 0, "msgpack"))
            share, niceness = _distilling(client, times)
            shares.append(share)
            with echoing(where.run / "echo.sock") as echo, burning(share, niceness):
                _echoed(echo, size, len(times) - len(floors), floors)
    figures = (
        Figure(
            name="profile p99 while distilling",
            value=percentile(times, 99),
            unit="ms",
            floor=percentile(floors, 99),
            samples=len(times),
            target=at_most(5, times=True),
        ),
        Figure(name="  p50", value=percentile(times, 50), unit="ms", floor=percentile(floors, 50), samples=len(times)),
        Figure(name="  share of a core that distilling burns", value=sum(shares) / len(shares), samples=len(shares)),
    )
    return Part(figures=figures, shows_not="more than one client, or a machine that is busy with other things as well")


def _distilling(client: Client, times: list[float]) -> tuple[float, int]:
    """Asks for the profile until all is distilled; the share of a core that is burnt, and how nice the worker is."""
    pid = client.status().pid
    client.distil()
    niceness, burnt, begin = 0, cpu_s(pid), time.perf_counter()
    asked = 0
    while client.status().pending:
        _paced(client.profile, 50, times)
        asked += 50
        niceness = max([niceness, *(nice for _, nice in children(pid))])
    seconds = time.perf_counter() - begin
    if not asked:
        raise Unavailable("all was distilled before the first question: take a longer session")
    return (cpu_s(pid) - burnt) / seconds, niceness


def _echoed(path: Path, size: int, number: int, floors: list[float]) -> None:
    connection = Connection(path, Deadline(5_000))
    body = bytes(size)

    def exchange() -> None:
        deadline = Deadline(5_000)
        connection.send(body, deadline)
        connection.receive(deadline)

    _paced(exchange, number, floors)
    connection.close()


def _paced(call: Callable[[], object], number: int, times: list[float]) -> None:
    """Adds the milliseconds of so many calls, with a pause before each, as one who asks now and then makes it."""
    for _ in range(number):
        time.sleep(PACE_S)
        begin = time.perf_counter()
        call()
        times.append((time.perf_counter() - begin) * 1000)


def idle(setting: Setting) -> Part:
    """The CPU that a daemon burns when nobody asks for anything, after it learnt a session."""
    seconds = QUICK_IDLE_S if setting.quick else IDLE_S
    with empty_home() as (where, environment), running(where, environment) as client:
        deliver(client, claude_code.read(large_session(setting)).sessions)
        settle(client)
        pid = client.status().pid
        client.close()
        time.sleep(REST_S)
        begin, burnt = time.perf_counter(), cpu_s(pid)
        while (passed := time.perf_counter() - begin) < seconds:
            setting.tell(f"write/idle: {seconds - passed:.0f} s more")
            time.sleep(min(5.0, seconds - passed))
        share = (cpu_s(pid) - burnt) / (time.perf_counter() - begin)
    name = f"idle, share of a core over {seconds:.0f} s"
    figure = Figure(name=name, value=share * 100, unit="%", target=at_most(0.1))
    return Part(figures=(figure,), shows_not="wake-ups, which cost a battery more than their CPU time says")
