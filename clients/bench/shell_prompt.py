"""The cost of memd at a shell's prompt: commands typed into a terminal with and without `memd shell init`.

The two shells differ in memd alone and take turns, so that a busy moment of the machine affects both. Every command
that was typed must be in the spool afterwards, so that a shell that records nothing fails instead of being fast.
"""

from __future__ import annotations

import os
import pty
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from statistics import median
from types import TracebackType

from ...protocol.errors import Unavailable
from ..python.folder import make_private
from ..shell import script
from .measurement import BenchOptions, Figure, PartResult, at_most
from .processes import cpu_s
from .temporary_daemon import empty_home

ROUNDS, TYPED, LOOPED = 40, 40, 200
_MARK = "MEMD-BENCH> "
_WAIT_S = 30.0
_SHELLS = {"bash": ("bash", "--norc", "-i"), "zsh": ("zsh", "-f", "-i")}
_LOOPS = {
    "bash": 'memd_bench() { for ((i = 0; i < $1; i++)); do : "${PS0@P}"; __memd_prompt; done; }',
    "zsh": "memd_bench() { for ((i = 0; i < $1; i++)); do __memd_preexec ': git status'; __memd_precmd; done }",
}
_BARE_LOOP = "memd_bench() { for ((i = 0; i < $1; i++)); do :; done; }"


def prompt(options: BenchOptions) -> PartResult:
    """The cost of memd at each prompt of bash and zsh, where it records the command, beside a prompt without it."""
    figures, notes = list[Figure](), list[str]()
    rounds = ROUNDS // 8 if options.quick else ROUNDS
    for shell in _SHELLS:
        if reason := _why_not(shell):
            notes.append(f"{shell} was not measured: {reason}")
        else:
            figures += _measured(shell, rounds)
    return PartResult(
        figures=tuple(figures),
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
        loaded.write_text(script(shell, home, ["memd"]), encoding="utf-8")
        environment = {**environment, "HOME": str(home.state), "TERM": "dumb", "HISTFILE": "", "MEMD_DISABLED": ""}
        with _Terminal(shell, environment) as bare, _Terminal(shell, environment) as ours:
            ours.type(f"source {loaded}")
            bare.type(_BARE_LOOP)
            ours.type(_LOOPS[shell])
            typed = [_alternated(bare, ours, [f": git status {n} {k}" for k in range(TYPED)]) for n in range(rounds)]
            looped = [_alternated(bare, ours, [f"memd_bench {LOOPED}"]) for _ in range(rounds)]
        recorded = sum(path.read_bytes().count(b'"event":"ran"') for path in home.spool.glob("*.lines"))
    if recorded < (expected := rounds * (TYPED + LOOPED)):
        message = f"{shell} recorded {recorded:,} of {expected:,} commands"
        raise Unavailable(message, hint=f"run `memd shell init {shell}`")
    return [
        _figure(f"{shell}, in a terminal", typed, TYPED, with_target=True),
        _figure(f"{shell}, its hooks in a loop", looped, LOOPED, with_target=False),
    ]


def _alternated(bare: _Terminal, ours: _Terminal, lines: list[str]) -> tuple[float, float]:
    """CPU seconds of these lines without memd and with it; each line is typed into both shells."""
    costs = [(bare.spent(line), ours.spent(line)) for line in lines]
    return sum(without for without, _ in costs), sum(with_memd for _, with_memd in costs)


def _figure(name: str, rounds: list[tuple[float, float]], times: int, *, with_target: bool) -> Figure:
    """The median of what memd adds, over the rounds but the first, in which caches fill."""
    rounds = rounds[1:]
    added = median((ours - bare) * 1000 / times for bare, ours in rounds)
    floor = median(bare * 1000 / times for bare, _ in rounds) if with_target else 0.0
    return Figure(name, added, "ms", floor, len(rounds) * times, at_most(0.1) if with_target else None)


def _clock(pid: int) -> float:
    """CPU seconds of a process: on Linux from its own clock, which counts nanoseconds."""
    return time.clock_gettime(-8 * pid - 6) if sys.platform == "linux" else cpu_s(pid)


class _Terminal:
    """A shell in a terminal of its own."""

    def __init__(self, name: str, environment: Mapping[str, str]) -> None:
        self._pid, self._fd = pty.fork()
        if not self._pid:
            try:
                os.chdir(environment["HOME"])
                os.execvpe(_SHELLS[name][0], _SHELLS[name], dict(environment))
            finally:
                os._exit(127)
        self.type("unset zle_bracketed_paste PROMPT_COMMAND; PS1='MEMD-''BENCH> '")

    def __enter__(self) -> _Terminal:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        os.kill(self._pid, signal.SIGKILL)
        os.waitpid(self._pid, 0)
        os.close(self._fd)

    def type(self, line: str) -> None:
        """Type a line and wait for the next prompt. Raises Unavailable when none comes."""
        os.write(self._fd, line.encode() + b"\n")
        output, end = b"", time.monotonic() + _WAIT_S
        while _MARK.encode() not in output:
            left = end - time.monotonic()
            if left < 0 or not select.select([self._fd], [], [], left)[0]:
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
