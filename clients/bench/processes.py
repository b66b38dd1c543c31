"""Processes beside a measurement: what a daemon and its children burn, and one that burns as much for nothing.

Comes in: process ids. Goes out: seconds of a core, bytes. Invariant: needs psutil, which the extra `bench` brings.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from ...protocol.errors import InvalidRequest

SLICE_S = 0.02


def psutil() -> Any:
    """The library. Raises InvalidRequest with what to install."""
    try:
        import psutil as library
    except ImportError as error:
        raise InvalidRequest("psutil is not installed", hint="pip install 'memd[bench]'") from error
    return library


def cpu_s(pid: int) -> float:
    """Seconds of a core that a process and its children have used, those that ended included."""
    library = psutil()
    total = 0.0
    with suppress(library.NoSuchProcess):
        process = library.Process(pid)
        own = process.cpu_times()
        total += own.user + own.system + own.children_user + own.children_system
        for child in process.children(recursive=True):
            with suppress(library.NoSuchProcess):
                spent = child.cpu_times()
                total += spent.user + spent.system
    return total


def memory_bytes(pid: int) -> int:
    """Resident bytes of a process and its children."""
    library = psutil()
    total = 0
    with suppress(library.NoSuchProcess):
        process = library.Process(pid)
        for each in (process, *process.children(recursive=True)):
            with suppress(library.NoSuchProcess):
                total += each.memory_info().rss
    return total


def anonymous_bytes(pid: int) -> int:
    """Resident bytes of a process that are no file's: a memory map that grows with what is stored is left out. All of
    its resident bytes where the system does not tell them apart; 0 once it is gone."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text(encoding="ascii", errors="replace").splitlines()
    except OSError:
        return memory_bytes(pid) if not Path("/proc/self/status").exists() else 0
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("RssAnon:")), 0)


def children(pid: int) -> list[tuple[int, int]]:
    """Id and niceness of each process that a process started."""
    library = psutil()
    found: list[tuple[int, int]] = []
    with suppress(library.NoSuchProcess):
        for child in library.Process(pid).children(recursive=True):
            with suppress(library.NoSuchProcess):
                found.append((child.pid, child.nice()))
    return found


@contextmanager
def burning(share: float, niceness: int) -> Generator[None]:
    """A process that keeps `share` of a core busy, as nice as that, while the block lasts."""
    module = __spec__.name if __spec__ else __name__
    command = [sys.executable, "-P", "-m", module, str(share), str(niceness)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        assert process.stdout is not None
        process.stdout.readline()
        yield
    finally:
        process.kill()
        process.wait()


def burn(share: float, niceness: int) -> None:
    """Burns until it is killed, or its parent is gone."""
    os.nice(max(0, niceness - os.nice(0)))
    print("burning", flush=True)
    parent = os.getppid()
    while os.getppid() == parent:
        end = time.perf_counter() + SLICE_S
        busy = time.process_time() + min(1.0, share) * SLICE_S
        while time.process_time() < busy:
            sum(range(500))
        time.sleep(max(0.0, end - time.perf_counter()))


if __name__ == "__main__":
    burn(float(sys.argv[1]), int(sys.argv[2]))
