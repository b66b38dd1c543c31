"""A home for one measurement: a temporary folder with a daemon, both gone afterwards.

Comes in: nothing. Goes out: the places of a running daemon. Invariant: the user's own memory is never touched.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path

from ...protocol.errors import Unavailable
from ...protocol.places import Places, places
from ..python import launch
from ..python.client import Client

START_S = 60.0
SETTLE_S = 600.0
PATIENCE_MS = 60_000
_POLL_S = 0.1


@contextmanager
def empty_home(
    settings: Mapping[str, str] | None = None, prefix: str = "memd-bench-", keep: bool = False
) -> Generator[tuple[Places, dict[str, str]]]:
    """A folder of its own and the environment of a daemon in it; with `keep` the folder stays afterwards."""
    folder = Path(tempfile.mkdtemp(prefix=prefix))
    environment = {**os.environ, **(settings or {}), "MEMD_HOME": str(folder)}
    where = places(environment, os.getuid())
    try:
        yield where, environment
    finally:
        if not keep:
            shutil.rmtree(folder, ignore_errors=True)
            if not where.run.is_relative_to(folder):
                shutil.rmtree(where.run, ignore_errors=True)


@contextmanager
def running(where: Places, environment: Mapping[str, str], wait_s: float = START_S) -> Generator[Client]:
    """A daemon in that home while the block lasts, and a patient client of it."""
    process, begin = launch.spawn(where, environment)
    try:
        launch.wait(process, where, begin, wait_s)
        with Client(where, PATIENCE_MS) as client:
            yield client
    finally:
        launch.end(process, where)


@contextmanager
def temporary_home(
    settings: Mapping[str, str] | None = None, prefix: str = "memd-bench-", keep: bool = False
) -> Generator[Places]:
    """A running daemon in a folder of its own; with `keep` the folder stays, without its daemon."""
    with empty_home(settings, prefix, keep) as (where, environment), running(where, environment):
        yield where


def settle(client: Client, most_s: float = SETTLE_S) -> None:
    """Has everything that is pending distilled, and waits for it. Raises Unavailable when it takes longer."""
    end = time.monotonic() + most_s
    while client.distil().pending:
        if time.monotonic() > end:
            raise Unavailable(f"{client.status().pending} captures are not distilled after {most_s:.0f} s")
        time.sleep(_POLL_S)
