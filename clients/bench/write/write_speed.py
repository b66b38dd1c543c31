"""Speed of the write path: a long session imported by `memd import`, the profile meanwhile beside an echo under the
same CPU load, and the cost of idling."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable

from ....protocol import wire
from ....protocol.errors import Unavailable
from ...importers import claude_code
from ...python import launch
from ...python.client import Client
from ..latency import echo_call
from ..measurement import BenchOptions, Figure, PartResult, at_most, elapsed_ms, percentile_figure
from ..processes import cpu_load, cpu_s, highest_niceness
from ..session_data import deliver, large_session
from ..temporary_daemon import empty_home, running, settle, temporary_daemon

ROUNDS = 3
PACE_S = 0.004
IDLE_S = 300.0
QUICK_IDLE_S = 30.0
REST_S = 15.0


def imported(options: BenchOptions) -> PartResult:
    """A real session of 2.7 MB imported and distilled by `memd import`, from its start to the last record."""
    path = large_session(options)
    with empty_home() as (home, environment), running(home, environment) as client:
        begin, cpu = time.perf_counter(), cpu_s(client.status().pid)
        command = [sys.executable, "-P", "-m", "memd.clients.cli.main", "import", "claude-code", str(path), "--json"]
        environment = launch.daemon_environment(environment)
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
        seconds = time.perf_counter() - begin
        if done.returncode:
            raise Unavailable(f"the import ended with {done.returncode}", hint=done.stdout[-500:])
        status = client.status()
        if status.pending or status.failures:
            raise Unavailable(f"{status.pending} captures wait, {len(status.failures)} failed", hint=status.worker)
        cpu = cpu_s(status.pid) - cpu
    figures = (
        Figure(f"{path.stat().st_size / 1e6:.1f} MB imported, distilled", seconds, "s", target=at_most(20)),
        Figure("  seconds of a core, all processes", cpu, "s"),
        Figure("  captures", status.archive_seq),
        Figure("  records", sum(status.records.values())),
    )
    return PartResult(figures, shows_not="whether the records are any good: the gate measures that")


def hot(options: BenchOptions) -> PartResult:
    """The profile while a long session is distilled, beside an echo next to a process that uses as much CPU."""
    path = large_session(options)
    times, floors, shares = list[float](), list[float](), list[float]()
    for number in range(1 if options.quick else ROUNDS):
        options.progress(f"write/hot: round {number + 1}")
        with temporary_daemon() as client:
            deliver(client, claude_code.read(path).sessions)
            size = len(wire.encode_data(client.profile(), 0, "msgpack"))
            core_share, niceness = _distilling(client, times)
            shares.append(core_share)
            with cpu_load(core_share, niceness), echo_call(client.places.run / "echo.sock", size) as echo:
                _paced(echo, len(times) - len(floors), floors)
    figures = (
        percentile_figure("profile p99 while distilling", times, 99, floors, at_most(5, times=True)),
        percentile_figure("  p50", times, 50, floors),
        Figure("  share of a core that distilling burns", sum(shares) / len(shares), samples=len(shares)),
    )
    return PartResult(figures, shows_not="more than one client, or a machine that is busy with other things as well")


def _distilling(client: Client, times: list[float]) -> tuple[float, int]:
    """Ask for the profile until all is distilled, and add the milliseconds of each call to `times`. Returns the share
    of a core that distilling used, and the niceness of the worker. Raises Unavailable."""
    pid = client.status().pid
    client.distil()
    niceness, cpu, begin = 0, cpu_s(pid), time.perf_counter()
    before = len(times)
    while client.status().pending:
        _paced(client.profile, 50, times)
        niceness = max(niceness, highest_niceness(pid))
    seconds = time.perf_counter() - begin
    if len(times) == before:
        raise Unavailable("all was distilled before the first question: take a longer session")
    return (cpu_s(pid) - cpu) / seconds, niceness


def _paced(call: Callable[[], object], count: int, times: list[float]) -> None:
    for _ in range(count):
        time.sleep(PACE_S)
        times.append(elapsed_ms(call))


def idle(options: BenchOptions) -> PartResult:
    """The CPU that an idle daemon uses after it has learnt a session."""
    seconds = QUICK_IDLE_S if options.quick else IDLE_S
    with temporary_daemon() as client:
        deliver(client, claude_code.read(large_session(options)).sessions)
        settle(client)
        pid = client.status().pid
        client.close()
        time.sleep(REST_S)
        begin, cpu = time.perf_counter(), cpu_s(pid)
        while (passed := time.perf_counter() - begin) < seconds:
            options.progress(f"write/idle: {seconds - passed:.0f} s more")
            time.sleep(min(5.0, seconds - passed))
        core_share = (cpu_s(pid) - cpu) / (time.perf_counter() - begin)
    figure = Figure(f"idle, share of a core over {seconds:.0f} s", core_share * 100, "%", target=at_most(0.1))
    return PartResult((figure,), shows_not="wake-ups, which use more of a battery than their CPU time shows")
