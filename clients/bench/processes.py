"""CPU and memory of a process and its children. Needs psutil, which the extra `bench` installs."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from ...protocol.errors import InvalidRequest


def _readings(pid: int, read: Callable[[Any], float]) -> list[float]:
    """`read` of a process and of each of its children, as far as they still run. Raises InvalidRequest."""
    try:
        import psutil
    except ImportError as error:
        raise InvalidRequest("psutil is not installed", hint="pip install 'memd[bench]'") from error
    readings: list[float] = []
    with suppress(psutil.NoSuchProcess):
        process = psutil.Process(pid)
        for member in (process, *process.children(recursive=True)):
            with suppress(psutil.NoSuchProcess):
                readings.append(read(member))
    return readings


def cpu_s(pid: int) -> float:
    """CPU seconds that a process and its children have used, ended children included."""

    def spent(process: Any) -> float:
        times = process.cpu_times()
        ended = times.children_user + times.children_system if process.pid == pid else 0.0
        return times.user + times.system + ended

    return sum(_readings(pid, spent))


def memory_bytes(pid: int) -> int:
    """Resident bytes of a process and its children."""
    return int(sum(_readings(pid, lambda process: process.memory_info().rss)))


def anonymous_bytes(pid: int) -> int:
    """Resident bytes of a process that no file backs, so that a memory map does not count; 0 once it is gone.

    Where the system does not tell them apart: all resident bytes of it and its children.
    """
    try:
        lines = Path(f"/proc/{pid}/status").read_text(encoding="ascii", errors="replace").splitlines()
    except OSError:
        return memory_bytes(pid) if not Path("/proc/self/status").exists() else 0
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("RssAnon:")), 0)


def highest_niceness(pid: int) -> int:
    """The highest niceness of a process and its children; 0 or more."""
    return int(max([0, *_readings(pid, lambda process: process.nice())]))
