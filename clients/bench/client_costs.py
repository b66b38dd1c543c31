"""Costs of memd in its clients: a hook call, reading a session on, the MCP server's answers, a shell's prompt.

Alternately a hook and a bare interpreter run, and a shell with memd and one without it. A shell that records less than
was typed fails.
"""

from __future__ import annotations

import json
import os
import pty
import resource
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from statistics import median
from typing import NamedTuple

from ...protocol.errors import Unavailable
from ...protocol.places import Places
from ..hooks import program
from ..hooks.agent_host import server_command
from ..hooks.notes import folder
from ..python.folder import make_private
from ..shell import script
from .measurement import BenchOptions, Figure, PartResult, Target, at_most, elapsed_ms, percentile_figure
from .processes import cpu_s
from .session_data import SAMPLE
from .temporary_daemon import empty_home, running, settle

ROUNDS = 100
STATEMENT, QUESTION = "I prefer tabs over spaces.", "tabs or spaces"
RECALLED = "The brewery's pressure gauges are calibrated by Halvorsen Metrology."
PROMPT = "Which vendor calibrates the pressure gauges of the brewery?"
_LIKED = "oak jazz tea rust walnut linen chess trains snow basil clay copper wool plums ferns quartz".split()
_PREFERENCES = tuple(
    f"I prefer the painted {liked} of the north to the {other} of the south, always."
    for step in (1, 5)
    for liked, other in zip(_LIKED, _LIKED[step:] + _LIKED[:step], strict=True)
)
"""They fill the profile, which RECALLED then has no line of."""
_TURNS = {
    "claude-code": ("UserPromptSubmit", "Stop"),
    "codex": ("UserPromptSubmit", "Stop"),
    "gemini": ("BeforeAgent", "AfterAgent"),
    "opencode": ("chat.message", "session.idle"),
    "pi": ("before_agent_start", "agent_end"),
    "cursor": ("sessionStart", "stop"),
    "aider": ("turn_end",),
}
"""The calls of each host in a turn; in Cursor those of a session's first turn."""
_BUSY = "a busy machine, on which a process waits for a core before it begins"


class ProcessCost(NamedTuple):
    """Milliseconds of CPU, milliseconds from start to end, and the output of one process."""

    cpu_ms: float
    wall_ms: float
    output: bytes


def hook(options: BenchOptions) -> PartResult:
    """A turn's call of the hook; one with a prompt that recalls a line; a note; all calls of a turn in each host."""
    with empty_home() as (home, environment), running(home, environment) as client:
        for statement in (STATEMENT, *_PREFERENCES, RECALLED):
            client.remember(statement)
        settle(client)
        program.install(home, environment)
        command = program.command(home, "pi")
        turn = b'{"session_id": "bench", "cwd": "/"}'
        prompted = b'{"session_id": "bench", "cwd": "/", "prompt": "%b"}' % PROMPT.encode()
        turn_end = b'{"session_id": "bench", "cwd": "/", "transcript_path": "/nowhere.jsonl"}'
        inject, recall, note, bare = list[ProcessCost](), list[ProcessCost](), list[ProcessCost](), list[ProcessCost]()
        for _ in range(ROUNDS // 10 if options.quick else ROUNDS):
            bare.append(_run([*command[:3], "-c", "pass"], b"", environment))
            inject.append(_run([*command, "before_agent_start"], turn, environment))
            recall.append(_run([*command, "before_agent_start"], prompted, environment))
            note.append(_run([*command, "agent_end"], turn_end, environment))
        turns = {name: _host_turns(home, environment, name, len(bare)) for name in _TURNS}
    printed = sum(bool(cost.output) for cost in inject)
    count = f"{printed} of {len(inject)} turns printed the profile, the others were counted as skipped"
    recalled = sum(RECALLED[:-1].encode() in cost.output for cost in recall)
    prompts = f"{recalled} of {len(recall)} prompts recalled the line that answers them"
    given = ", ".join(f"{name} {sum(bool(cost.output) for cost in costs)}" for name, costs in turns.items())
    figures = (
        *_figures("a turn", inject, bare),
        *_figures("a turn with a prompt", recall, bare, at_most(35)),
        *_figures("a note", note, bare),
        *(_figures(f"{name}, all calls of a turn", costs, bare, at_most(35))[0] for name, costs in turns.items()),
    )
    notes = (count, prompts, f"turns of {len(bare)} with a text for the agent: {given}")
    return PartResult(figures, notes=notes, shows_not=f"{_BUSY}; what the host itself does to start the hook")


def _host_turns(home: Places, environment: Mapping[str, str], name: str, rounds: int) -> list[ProcessCost]:
    """The cost of each turn of a host, each turn in a session of its own, so that each one gets the whole profile."""
    history = home.state / "project/.aider.chat.history.md"
    history.parent.mkdir(mode=0o700, exist_ok=True)
    history.touch()
    given = folder(home.state) / "aider.md"
    turns: list[ProcessCost] = []
    for number in range(rounds):
        session, cwd = f"bench-{name}-{number}", str(history.parent)
        payload = {"session_id": session, "conversation_id": session, "cwd": cwd, "workspace_roots": [cwd]}
        content = json.dumps({**payload, "prompt": PROMPT, "transcript_path": "/nowhere.jsonl"}).encode()
        given.unlink(missing_ok=True)
        calls = [_run([*program.command(home, name), event], content, environment, cwd) for event in _TURNS[name]]
        output = b"".join(call.output for call in calls) or (given.read_bytes() if given.exists() else b"")
        turns.append(ProcessCost(sum(call.cpu_ms for call in calls), sum(call.wall_ms for call in calls), output))
    return turns


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
            (folder(home.state) / "queue").write_text(f'{{"agent": "claude-code", "path": "{session}"}}\n')
            costs.append(_run(program.following(), b"", environment))
    return PartResult(_figures("reading on", costs)[:1], shows_not="the daemon's own work on the events")


def server(options: BenchOptions) -> PartResult:
    """The MCP server: from its start to its first answer, and a recall over it."""
    rounds = 3 if options.quick else 10
    starts, calls = list[float](), list[float]()
    with empty_home() as (home, environment), running(home, environment) as client:
        client.remember(STATEMENT)
        floors = [elapsed_ms(client.recall, QUESTION, cwd="/") for _ in range(20 * rounds)]
        for _ in range(rounds):
            first, *others = _answer_times(environment)
            starts.append(first)
            calls += others
    return PartResult(
        (percentile_figure("until it answers p50", starts, 50), percentile_figure("recall p50", calls, 50, floors)),
        notes=("the floor is the same recall by the Python client",),
        shows_not="the time that a host adds",
    )


def _run(command: Sequence[str], content: bytes, environment: Mapping[str, str], cwd: str = ".") -> ProcessCost:
    """Run a process to its end; processes that it leaves running are not counted."""
    before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run(
        list(command), input=content, capture_output=True, env=dict(environment), cwd=cwd, check=False
    )
    end, after = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return ProcessCost(cpu * 1000, (end - begin) * 1000, done.stdout)


def _figures(
    name: str, costs: Sequence[ProcessCost], bare: Sequence[ProcessCost] = (), target: Target | None = None
) -> tuple[Figure, ...]:
    """Medians beside those of the `bare` interpreter, with a target of 30 ms, or another one, if there are any."""
    cpu, wall = [cost.cpu_ms for cost in costs], [cost.wall_ms for cost in costs]
    target = (target or at_most(30)) if bare else None
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


# --- a shell's prompt ------------------------------------------------------------------------------------------------
PROMPT_ROUNDS, TYPED, LOOPED = 40, 40, 200
HANDED_OVER_S = 1.2
"""Seconds between commands that may hold a secret, so that each starts a process in the background."""

_MARK = "MEMD-BENCH> "
_MEMD = [sys.executable, "-P", "-m", "memd.clients.cli.main"]
_WAIT_S = 30.0
_SHELLS = {"bash": ("bash", "--norc", "-i"), "zsh": ("zsh", "-f", "-i"), "fish": ("fish", "-i")}
_LOOPS = {
    "bash": 'memd_bench() { for ((i = 0; i < $1; i++)); do : "${PS0@P}"; __memd_prompt; done; }',
    "zsh": "memd_bench() { for ((i = 0; i < $1; i++)); do __memd_preexec ': git status'; __memd_precmd; done }",
    "fish": "function memd_bench; for i in (seq $argv[1]); __memd_began ': git status 0 0'; __memd_ended; end; end",
}
PROMPT_TARGET_MS = 0.1

_BARE_LOOP = "memd_bench() { for ((i = 0; i < $1; i++)); do :; done; }"
_BARE_LOOPS = {"bash": _BARE_LOOP, "zsh": _BARE_LOOP, "fish": "function memd_bench; for i in (seq $argv[1]); end; end"}
_PROMPT = "unset zle_bracketed_paste PROMPT_COMMAND; PS1='MEMD-''BENCH> '"
_PROMPTS = {
    "bash": _PROMPT,
    "zsh": _PROMPT,
    # fish prints its prompt at each key; what is defined last runs last
    "fish": "function fish_prompt; end; function memd_ready --on-event fish_prompt; echo MEMD-'BENCH> '; end",
}


def prompt(options: BenchOptions) -> PartResult:
    """The cost of memd at each prompt of bash, zsh and fish that records the command, beside a prompt without it."""
    figures, notes = list[Figure](), list[str]()
    rounds = PROMPT_ROUNDS // 8 if options.quick else PROMPT_ROUNDS
    for shell in _SHELLS:
        if reason := _why_not(shell):
            notes.append(f"{shell} was not measured: {reason}")
        else:
            figures += _measured(shell, rounds)
    if figures:
        figures += _spooling(rounds)
    return PartResult(
        tuple(figures),
        notes=(*notes, "the floor is the whole prompt of the same shell without memd"),
        shows_not="a prompt after minutes without one, which finds the processor's caches cold",
    )


def _why_not(shell: str) -> str:
    """Why a shell can't be measured here, "" if it can."""
    if not shutil.which(shell):
        return "it is not installed"
    if shell == "bash" and subprocess.run(["bash", "-c", "((BASH_VERSINFO[0] >= 5))"], check=False).returncode:
        return "it is older than 5"
    return ""


def _measured(shell: str, rounds: int) -> list[Figure]:
    """In a terminal, and the hooks alone in a loop. Raises Unavailable if fewer commands were recorded than typed."""
    with empty_home() as (home, environment):
        make_private(home.spool)
        loaded = home.state / f"memd.{shell}"
        loaded.write_text(script(shell, home, _MEMD), encoding="utf-8")
        environment = {**environment, "HOME": str(home.state), "TERM": "dumb", "HISTFILE": "", "MEMD_DISABLED": ""}
        with closing(_Terminal(shell, environment)) as bare, closing(_Terminal(shell, environment)) as ours:
            ours.type(f"source {loaded}" + (f"; {_PROMPTS[shell]}" if shell == "fish" else ""))
            bare.type(_BARE_LOOPS[shell])
            ours.type(_LOOPS[shell])
            typed = [_alternated(bare, ours, [f": git status {n} {k}" for k in range(TYPED)]) for n in range(rounds)]
            looped = [_alternated(bare, ours, [f"memd_bench {LOOPED}"]) for _ in range(rounds)]
            recorded = sum(path.read_bytes().count(b'"event":"ran"') for path in home.spool.glob("*.lines"))
            handed_over = [_handed_over(bare, ours, n) for n in range(max(4, rounds // 4))]
    if recorded < (expected := rounds * (TYPED + LOOPED)):
        message = f"{shell} recorded {recorded:,} of {expected:,} commands"
        raise Unavailable(message, hint=f"run `memd shell init {shell}`")
    return [
        _prompt_figure(f"{shell}, in a terminal", typed, TYPED, at_most(PROMPT_TARGET_MS)),
        _prompt_figure(f"{shell}, its hooks in a loop", looped, LOOPED),
        _prompt_figure(f"{shell}, a command that may hold a secret", handed_over, 1),
    ]


def _spooling(rounds: int) -> tuple[Figure, ...]:
    """The process that stores a command that may hold a secret, in the background."""
    with empty_home() as (home, environment):
        make_private(home.spool)
        command = [*_MEMD, "spool", str(home.spool / "bench-1-1.lines")]
        event = '{"event": "ran", "turn": "1", "at": "2026-03-04T18:30:00+01:00", "command": ": --password hunter2"}'
        line = f'{{"request": "capture", "origin": {{"host": "bench", "session": "s"}}, "events": [{event}]}}\n'
        costs = [_run(command, line.encode(), environment) for _ in range(rounds)]
        if (home.spool / "bench-1-1.lines").read_bytes().count(b"[redacted:password]") < rounds:
            raise Unavailable("`memd spool` stored fewer commands than it got")
    return _figures("`memd spool` for it", costs)


def _alternated(bare: _Terminal, ours: _Terminal, lines: list[str]) -> tuple[float, float]:
    """CPU seconds of these lines without memd and with it; each line is typed into both shells."""
    costs = [(bare.spent(line), ours.spent(line)) for line in lines]
    return sum(without for without, _ in costs), sum(with_memd for _, with_memd in costs)


def _handed_over(bare: _Terminal, ours: _Terminal, number: int) -> tuple[float, float]:
    time.sleep(HANDED_OVER_S)
    return _alternated(bare, ours, [f": --password hunter{number}"])


def _prompt_figure(name: str, rounds: list[tuple[float, float]], times: int, target: Target | None = None) -> Figure:
    """The median of what memd adds, over the rounds but the first, in which caches fill."""
    rounds = rounds[1:]
    added = median((ours - bare) * 1000 / times for bare, ours in rounds)
    floor = median(bare * 1000 / times for bare, _ in rounds) if target else 0.0
    return Figure(name, added, "ms", floor, len(rounds) * times, target)


def _clock(pid: int) -> float:
    """CPU seconds of a process: on Linux from its own clock, which counts nanoseconds."""
    return time.clock_gettime(-8 * pid - 6) if sys.platform == "linux" else cpu_s(pid)


class _Terminal:
    def __init__(self, name: str, environment: Mapping[str, str]) -> None:
        self._pid, self._fd = pty.fork()
        if not self._pid:
            try:
                os.chdir("/")  # the name of a folder may hold a word that can announce a secret
                os.execvpe(_SHELLS[name][0], _SHELLS[name], dict(environment))
            finally:
                os._exit(127)
        self._output = select.poll()  # `select` takes no file above 1,023
        self._output.register(self._fd, select.POLLIN)
        self.type(_PROMPTS[name])

    def close(self) -> None:
        os.kill(self._pid, signal.SIGKILL)
        os.waitpid(self._pid, 0)
        os.close(self._fd)

    def type(self, line: str) -> None:
        """Type a line and wait for the next prompt. Raises Unavailable when none comes."""
        os.write(self._fd, line.encode() + b"\n")
        output, end = b"", time.monotonic() + _WAIT_S
        while _MARK.encode() not in output:
            left = end - time.monotonic()
            if left < 0 or not self._output.poll(left * 1000):
                raise Unavailable(f"the shell gives no prompt after {line!r}")
            try:
                output += os.read(self._fd, 65536)
            except OSError as error:
                raise Unavailable(f"the shell ended after {line!r}") from error

    def spent(self, line: str) -> float:
        """CPU seconds from a typed line to the next prompt."""
        before = _clock(self._pid)
        self.type(line)
        return _clock(self._pid) - before
