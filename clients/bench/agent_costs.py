"""Costs for an agent: the CPU of a hook call and of reading a session on, and the time of the MCP server's answers.

A hook is run by the command line that a host runs, alternately with a bare interpreter, so that a busy moment of the
machine affects both.
"""

from __future__ import annotations

import resource
import subprocess
import time
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ..hooks import program
from ..hooks.hosts import server_command
from ..hooks.notes import folder
from .measurement import BenchOptions, Figure, PartResult, at_most, elapsed_ms, percentile_figure
from .session_data import SAMPLE
from .temporary_daemon import empty_home, running, settle

ROUNDS = 100
STATEMENT, QUESTION = "I prefer tabs over spaces.", "tabs or spaces"
_BUSY = "a busy machine, on which a process waits for a core before it begins"


class ProcessCost(NamedTuple):
    """Milliseconds of CPU, milliseconds from start to end, and the output of one process."""

    cpu_ms: float
    wall_ms: float
    output: bytes


def hook(options: BenchOptions) -> PartResult:
    """A turn's call of the hook, with the profile printed, and the note after it."""
    with empty_home() as (home, environment), running(home, environment) as client:
        client.remember(STATEMENT)
        settle(client)
        program.install(home, environment)
        command = program.command(home, "pi")
        turn = b'{"session_id": "bench", "cwd": "/"}'
        turn_end = b'{"session_id": "bench", "cwd": "/", "transcript_path": "/nowhere.jsonl"}'
        inject, note, bare = list[ProcessCost](), list[ProcessCost](), list[ProcessCost]()
        for _ in range(ROUNDS // 10 if options.quick else ROUNDS):
            bare.append(_run([*command[:3], "-c", "pass"], b"", environment))
            inject.append(_run([*command, "before_agent_start"], turn, environment))
            note.append(_run([*command, "agent_end"], turn_end, environment))
    printed = sum(bool(cost.output) for cost in inject)
    count = f"{printed} of {len(inject)} turns printed the profile, the others were counted as skipped"
    figures = (*_figures("a turn", inject, bare), *_figures("a note", note, bare))
    return PartResult(figures=figures, notes=(count,), shows_not=_BUSY)


def reading_on(options: BenchOptions) -> PartResult:
    """The CPU used in the background after a turn, to read the session file on and to send the new events."""
    with empty_home() as (home, environment), running(home, environment):
        lines = SAMPLE.read_bytes().splitlines(keepends=True)
        session = home.state / "session.jsonl"
        folder(home.state).mkdir(mode=0o700, exist_ok=True)
        costs: list[ProcessCost] = []
        rounds = 5 if options.quick else 20
        for number in range(1, rounds + 1):
            session.write_bytes(b"".join(lines[: len(lines) * number // rounds]))
            line = f'{{"agent": "claude-code", "path": "{session}"}}\n'
            (folder(home.state) / "queue").write_text(line)
            costs.append(_run(program.following(), b"", environment))
    return PartResult(figures=_figures("reading on", costs)[:1], shows_not="the daemon's own work on the events")


def server(options: BenchOptions) -> PartResult:
    """The MCP server: from its start to its first answer, and a recall over it."""
    rounds = 3 if options.quick else 10
    starts, calls = list[float](), list[float]()
    with empty_home() as (home, environment), running(home, environment) as client:
        client.remember(STATEMENT)
        floors = [elapsed_ms(client.recall, QUESTION, cwd="/", limit=8) for _ in range(20 * rounds)]
        for _ in range(rounds):
            first, *others = _answer_times(environment)
            starts.append(first)
            calls += others
    return PartResult(
        figures=(
            percentile_figure("until it answers p50", starts, 50),
            percentile_figure("recall p50", calls, 50, floors),
        ),
        notes=("the floor is the same recall by the Python client",),
        shows_not="the time that a host adds",
    )


def _run(command: Sequence[str], content: bytes, environment: Mapping[str, str]) -> ProcessCost:
    """Run a process to its end; processes that it leaves running are not counted."""
    before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run(list(command), input=content, capture_output=True, env=dict(environment), check=False)
    end, after = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return ProcessCost(cpu * 1000, (end - begin) * 1000, done.stdout)


def _figures(name: str, costs: Sequence[ProcessCost], bare: Sequence[ProcessCost] = ()) -> tuple[Figure, ...]:
    """Medians beside those of the `bare` interpreter, with a target if there are any."""
    cpu, wall = [cost.cpu_ms for cost in costs], [cost.wall_ms for cost in costs]
    target = at_most(30) if bare else None
    return (
        percentile_figure(f"{name}, of a core, p50", cpu, 50, [cost.cpu_ms for cost in bare], target),
        percentile_figure(f"{name}, from start to end, p50", wall, 50, [cost.wall_ms for cost in bare]),
    )


def _answer_times(environment: Mapping[str, str]) -> list[float]:
    """Milliseconds from a server's start to its first answer, then of each of twenty recalls."""
    params = f'{{"name": "memory_recall", "arguments": {{"query": "{QUESTION}"}}}}'
    question = f'{{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {params}}}\n'
    begin = time.perf_counter()
    pipe = subprocess.PIPE
    with subprocess.Popen(server_command(), env=dict(environment), cwd="/", stdin=pipe, stdout=pipe) as process:
        assert process.stdin and process.stdout
        times: list[float] = []
        for line in ['{"jsonrpc":"2.0","id":0,"method":"ping"}\n', *[question] * 20]:
            process.stdin.write(line.encode())
            process.stdin.flush()
            process.stdout.readline()
            times.append((time.perf_counter() - begin) * 1000)
            begin = time.perf_counter()
        process.stdin.close()
    return times
