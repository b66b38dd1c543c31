"""Daemons for measurements, each in a temporary folder that is removed afterwards, never in the user's own home."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import msgspec

from ...protocol.errors import Unavailable
from ...protocol.places import Places, places
from ..python import launch
from ..python.client import Client

START_S = 60.0
SETTLE_S = 600.0
DEADLINE_MS = 60_000
_POLL_S = 0.1


@contextmanager
def empty_home(
    settings: Mapping[str, str] | None = None, prefix: str = "memd-bench-", keep: bool = False
) -> Generator[tuple[Places, dict[str, str]]]:
    """A temporary folder and the environment of a daemon in it; with `keep` the folder stays afterwards."""
    folder = Path(tempfile.mkdtemp(prefix=prefix))
    environment = {**os.environ, **(settings or {}), "MEMD_HOME": str(folder)}
    home = places(environment, os.getuid())
    try:
        yield home, environment
    finally:
        if not keep:
            shutil.rmtree(folder, ignore_errors=True)
            if not home.run.is_relative_to(folder):
                shutil.rmtree(home.run, ignore_errors=True)


@contextmanager
def running(home: Places, environment: Mapping[str, str], wait_s: float = START_S) -> Generator[Client]:
    """A client of a daemon that runs in `home` while the block lasts."""
    process, begin = launch.spawn(home, environment)
    try:
        launch.wait(process, home, begin, wait_s)
        with Client(home, DEADLINE_MS) as client:
            yield client
    finally:
        launch.end(process, home)


@contextmanager
def temporary_daemon(settings: Mapping[str, str] | None = None) -> Generator[Client]:
    with empty_home(settings) as (home, environment), running(home, environment) as client:
        yield client


def settle(client: Client, most_s: float = SETTLE_S) -> None:
    """Wait until every capture is distilled. Raises Unavailable when it takes longer than `most_s` seconds."""
    end = time.monotonic() + most_s
    while client.distil().pending:
        if time.monotonic() > end:
            raise Unavailable(f"{client.status().pending} captures are not distilled after {most_s:.0f} s")
        time.sleep(_POLL_S)


def offline(environment: Mapping[str, str], *arguments: str) -> bytes:
    """The JSON output of an offline command of the daemon. Raises Unavailable with the command's error output."""
    return _output(launch.command(), environment, arguments)


def measure(environment: Mapping[str, str], *arguments: str) -> bytes:
    """The JSON output of a measurement of `memd.benchmarks`. Raises Unavailable with its error output."""
    return _output([sys.executable, "-P", "-m", "memd.benchmarks"], environment, arguments)


def measure_texts(environment: Mapping[str, str], name: str, texts: Sequence[object]) -> bytes:
    """The JSON output of a measurement that reads texts from a file of JSON. Raises Unavailable."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "texts.json"
        path.write_bytes(msgspec.json.encode(texts))
        return measure(environment, name, str(path))


class TokenCount(NamedTuple):
    """Tokens of a text by the estimate that memd's budgets use, and its word pieces by memd's tokenizer."""

    estimated: int
    pieces: int


def token_counts(texts: Iterable[str]) -> dict[str, TokenCount]:
    """The tokens of each distinct text. Raises Unavailable."""
    distinct = list(dict.fromkeys(texts))
    with empty_home() as (_, environment):
        counts = msgspec.json.decode(measure_texts(environment, "count-tokens", distinct), type=dict[str, list[int]])
    return dict(zip(distinct, map(TokenCount, counts["estimated"], counts["pieces"]), strict=True))


def _output(program: Sequence[str], environment: Mapping[str, str], arguments: Sequence[str]) -> bytes:
    command, env = [*program, *arguments], launch.daemon_environment(environment)
    process = subprocess.run(command, capture_output=True, check=False, cwd="/", env=env)
    if process.returncode:
        errors = process.stderr.decode(errors="replace")
        raise Unavailable(f"{arguments[0]} ended with {process.returncode}", hint=errors)
    return process.stdout
