"""What agents pay: a hook's call, the reading on behind it, and the MCP server, each a process of its own.

Comes in: a setting. Goes out: milliseconds of a core, from start to end, and until an answer. Invariants: the hook is
run by the command line that a host runs; calls of it and of a bare interpreter take turns, so that a busy moment of
the machine hits both.
"""

from __future__ import annotations

import resource
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from ..hooks import program
from ..hooks.hosts import server_command
from ..hooks.notes import folder
from ..python.client import Client
from .figure import Figure, at_most, percentile
from .home import empty_home, running, settle
from .part import Part, Setting

ROUNDS = 100
_SAMPLE = Path(__file__).parents[1] / "cli/sample/session.jsonl"
_BUSY = "a busy machine: a process waits for its turn before it begins"


def hook(setting: Setting) -> Part:
    """A turn's call of the hook, with the profile printed, and the note after it."""
    with empty_home() as (places, environment), running(places, environment) as client:
        client.remember("I prefer tabs over spaces.")
        settle(client)
        program.install(places, environment)
        command = program.command(places, "pi")
        asked = b'{"session_id": "bench", "cwd": "/"}'
        noted = b'{"session_id": "bench", "cwd": "/", "transcript_path": "/nowhere.jsonl"}'
        inject, note, bare = list[_Spent](), list[_Spent](), list[_Spent]()
        for _ in range(ROUNDS // 10 if setting.quick else ROUNDS):
            bare.append(_run([*command[:3], "-c", "pass"], b"", environment))
            inject.append(_run([*command, "before_agent_start"], asked, environment))
            note.append(_run([*command, "agent_end"], noted, environment))
        printed = sum(bool(each.output) for each in inject)
    figures = (
        *_figures("a turn", inject, bare, with_target=True),
        *_figures("a note", note, bare, with_target=True),
    )
    note_of = f"{printed} of {len(inject)} turns printed the profile, the others were counted as skipped"
    return Part(figures=figures, notes=(note_of,), shows_not=_BUSY)


def reading_on(setting: Setting) -> Part:
    """What is burnt in the background after a turn, to read a session on and to send what is new."""
    with empty_home() as (places, environment), running(places, environment):
        lines = _SAMPLE.read_bytes().splitlines(keepends=True)
        session = places.state / "session.jsonl"
        folder(places.state).mkdir(mode=0o700, exist_ok=True)
        spent: list[_Spent] = []
        rounds = 5 if setting.quick else 20
        for number in range(1, rounds + 1):
            session.write_bytes(b"".join(lines[: len(lines) * number // rounds]))
            line = f'{{"agent": "claude-code", "path": "{session}"}}\n'
            (folder(places.state) / "queue").write_text(line)
            spent.append(_run(program.following(), b"", environment))
    figures = _figures("reading on", spent, ())
    return Part(figures=tuple(figures[:1]), shows_not="what the daemon does with it")


def server(setting: Setting) -> Part:
    """The MCP server: from its start to its first answer, and a recall over it."""
    rounds = 3 if setting.quick else 10
    starts, calls = list[float](), list[float]()
    with empty_home() as (places, environment), running(places, environment) as client:
        client.remember("I prefer tabs over spaces.")
        floor = _recalls(client, 20 * rounds)
        for _ in range(rounds):
            first, others = _served(environment)
            starts.append(first)
            calls += others
    return Part(
        figures=(
            Figure(name="until it answers p50", value=percentile(starts, 50), unit="ms", samples=len(starts)),
            Figure(
                name="recall p50",
                value=percentile(calls, 50),
                unit="ms",
                floor=percentile(floor, 50),
                samples=len(calls),
            ),
        ),
        notes=("the floor is the same recall by the library",),
        shows_not="what a host adds",
    )


class _Spent:
    """What one process took: milliseconds of a core, milliseconds from start to end, what it printed."""

    def __init__(self, cpu_ms: float, wall_ms: float, output: bytes) -> None:
        self.cpu_ms, self.wall_ms, self.output = cpu_ms, wall_ms, output


def _run(command: Sequence[str], content: bytes, environment: Mapping[str, str]) -> _Spent:
    """Runs a process to its end; what it started and left running is not counted."""
    before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run(list(command), input=content, capture_output=True, env=dict(environment), check=False)
    end, after = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    ran = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return _Spent(ran * 1000, (end - begin) * 1000, done.stdout)


def _figures(name: str, spent: Sequence[_Spent], bare: Sequence[_Spent], *, with_target: bool = False) -> list[Figure]:
    cpu = [each.cpu_ms for each in spent]
    wall = [each.wall_ms for each in spent]
    return [
        Figure(
            name=f"{name}, of a core, p50",
            value=percentile(cpu, 50),
            unit="ms",
            floor=percentile([each.cpu_ms for each in bare], 50) if bare else 0.0,
            samples=len(cpu),
            target=at_most(30) if with_target else None,
        ),
        Figure(
            name=f"{name}, from start to end, p50",
            value=percentile(wall, 50),
            unit="ms",
            floor=percentile([each.wall_ms for each in bare], 50) if bare else 0.0,
            samples=len(wall),
        ),
    ]


def _recalls(client: Client, rounds: int) -> list[float]:
    times: list[float] = []
    for _ in range(rounds):
        begin = time.perf_counter()
        client.recall("tabs or spaces", cwd="/", limit=8)
        times.append((time.perf_counter() - begin) * 1000)
    return times


def _served(environment: Mapping[str, str]) -> tuple[float, list[float]]:
    """Milliseconds until a server's first answer, and of each recall after it."""
    params = '{"name": "memory_recall", "arguments": {"query": "tabs or spaces"}}'
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
    return times[0], times[1:]
