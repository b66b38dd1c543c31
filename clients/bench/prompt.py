"""What a shell's prompt pays for memd: commands typed into a terminal, with what `memd shell init` prints and without.

Comes in: a setting. Goes out: milliseconds of a core for each prompt, of the shell's own process. Invariants: two
shells that differ in memd alone take turns, so that a busy moment of the machine hits both; what was typed is counted
in the spool, so that a shell that tells nothing is a failure and not a fast one; a shell that is missing is told.
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
from ...protocol.places import Places
from ..python.folder import make_private
from ..shell import script
from .figure import Figure, at_most
from .home import empty_home
from .part import Part, Setting
from .processes import cpu_s

ROUNDS, TYPED, LOOPED = 40, 40, 200
_MARK = "MEMD-BENCH> "
_WAIT_S = 30.0
_SHELLS = {"bash": ("bash", "--norc", "-i"), "zsh": ("zsh", "-f", "-i")}
_LOOPS = {
    "bash": 'memd_bench() { for ((i = 0; i < $1; i++)); do : "${PS0@P}"; __memd_prompt; done; }',
    "zsh": "memd_bench() { for ((i = 0; i < $1; i++)); do __memd_preexec ': git status'; __memd_precmd; done }",
}
_BARE_LOOP = "memd_bench() { for ((i = 0; i < $1; i++)); do :; done; }"


def prompt(setting: Setting) -> Part:
    """What bash and zsh pay at each prompt to tell memd what was run, beside a prompt without it."""
    figures, notes = list[Figure](), list[str]()
    rounds = ROUNDS // 8 if setting.quick else ROUNDS
    for name in _SHELLS:
        if why := _missing(name):
            notes.append(f"{name} was not measured: {why}")
        else:
            figures += _measured(name, rounds)
    return Part(
        figures=tuple(figures),
        notes=(*notes, "the floor is the whole prompt of the same shell without memd"),
        shows_not="a prompt after minutes without one, which finds the processor's caches cold",
    )


def _missing(name: str) -> str:
    """Why a shell can't be measured here, "" if it can."""
    if not shutil.which(name):
        return "it is not installed"
    if name == "bash" and subprocess.run(["bash", "-c", "((BASH_VERSINFO[0] >= 5))"], check=False).returncode:
        return "it is older than 5"
    return ""


def _measured(name: str, rounds: int) -> list[Figure]:
    """In a terminal, and the hooks alone in a loop. Raises Unavailable if the shell told less than was typed."""
    with empty_home() as (places, environment):
        make_private(places.spool)
        loaded = places.state / f"memd.{name}"
        loaded.write_text(script(name, places, ["memd"]), encoding="utf-8")
        environment = {**environment, "HOME": str(places.state), "TERM": "dumb", "HISTFILE": "", "MEMD_DISABLED": ""}
        with _Terminal(name, environment) as bare, _Terminal(name, environment) as ours:
            ours.type(f"source {loaded}")
            bare.type(_BARE_LOOP)
            ours.type(_LOOPS[name])
            typed = [_in_turns(bare, ours, [f": git status {n} {k}" for k in range(TYPED)]) for n in range(rounds)]
            looped = [_in_turns(bare, ours, [f"memd_bench {LOOPED}"]) for _ in range(rounds)]
        told = _told(places)
    if told < (expected := rounds * (TYPED + LOOPED)):
        raise Unavailable(f"{name} told {told:,} of {expected:,} commands", hint=f"run `memd shell init {name}`")
    return [
        _figure(f"{name}, in a terminal", typed, TYPED, with_target=True),
        _figure(f"{name}, its hooks in a loop", looped, LOOPED, with_target=False),
    ]


def _in_turns(bare: _Terminal, ours: _Terminal, lines: list[str]) -> tuple[float, float]:
    """Seconds of a core for these lines without memd, and with it: each is typed into both."""
    spent = [(bare.spent(line), ours.spent(line)) for line in lines]
    return sum(each for each, _ in spent), sum(each for _, each in spent)


def _figure(name: str, spent: list[tuple[float, float]], times: int, *, with_target: bool) -> Figure:
    """What memd adds, as the median of the turns but the first, in which caches fill."""
    turns = spent[1:]
    return Figure(
        name=name,
        value=median((ours - bare) * 1000 / times for bare, ours in turns),
        unit="ms",
        floor=median(bare * 1000 / times for bare, _ in turns) if with_target else 0.0,
        samples=len(turns) * times,
        target=at_most(0.1) if with_target else None,
    )


def _told(places: Places) -> int:
    """How many commands lie in the spool."""
    return sum(path.read_bytes().count(b'"event":"ran"') for path in places.spool.glob("*.lines"))


def _clock(pid: int) -> float:
    """Seconds of a core that a process used: its own clock where the system has one to the nanosecond."""
    return time.clock_gettime(-8 * pid - 6) if sys.platform == "linux" else cpu_s(pid)


class _Terminal:
    """A shell in a terminal of its own; a line is typed once the prompt of the one before is there."""

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
        """Types a line and waits for the next prompt. Raises Unavailable when none comes."""
        os.write(self._fd, line.encode() + b"\n")
        said, end = b"", time.monotonic() + _WAIT_S
        while _MARK.encode() not in said:
            left = end - time.monotonic()
            if left < 0 or not select.select([self._fd], [], [], left)[0]:
                raise Unavailable(f"the shell gives no prompt after {line!r}")
            try:
                said += os.read(self._fd, 65536)
            except OSError as error:
                raise Unavailable(f"the shell ended after {line!r}") from error

    def spent(self, line: str) -> float:
        """Seconds of a core from a typed line to the next prompt."""
        before = _clock(self._pid)
        self.type(line)
        return _clock(self._pid) - before
