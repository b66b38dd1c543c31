"""Where and on what something was measured: figures without these are hearsay.

Comes in: the machine. Goes out: frozen values for a report's head. Invariant: nothing here names the user or a folder.
"""

from __future__ import annotations

import os
import platform
import subprocess
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from ... import __version__

ROOT = Path(__file__).resolve().parents[2]


class Machine(msgspec.Struct, frozen=True, kw_only=True):
    """The machine's size; `cores` are those that this process may use."""

    system: str
    processor: str
    cores: int
    memory_gb: float
    python: str


def machine() -> Machine:
    """This machine."""
    try:
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9
    except (ValueError, OSError):
        memory = 0.0
    return Machine(
        system=f"{platform.system()} {platform.release().split('-')[0]}",
        processor=_processor(),
        cores=len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1,
        memory_gb=round(memory, 1),
        python=platform.python_version(),
    )


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    named = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(named, "") or platform.machine()


def version() -> str:
    """memd's version, and the commit of the checkout it runs from, with `+` if files differ from it."""

    def git(*arguments: str) -> str:
        command = ["git", "-C", str(ROOT), "-c", f"safe.directory={ROOT}", *arguments]
        try:
            return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
        except (OSError, subprocess.CalledProcessError):
            return ""

    if not (ROOT / ".git").exists() or not (found := git("rev-parse", "--short=10", "HEAD")):
        return __version__
    return f"{__version__} ({found}{'+' if git('status', '--porcelain', '--untracked-files=no') else ''})"


def load() -> float:
    """How many processes wanted to run, on average over the last minute."""
    return round(os.getloadavg()[0], 1)


def now() -> str:
    """The time, to the minute, in UTC."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%MZ")
