"""The connection of a command to the daemon, or to the daemon's offline commands."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, TypeVar

import msgspec

from ... import __version__
from ...protocol.errors import InvalidRequest, MemdError, ModelMissing, NotFound, Refused, StoreError, Unavailable
from ..python.client import Client
from .output import CommandAnswer
from .wording import count

if TYPE_CHECKING:
    import subprocess

    from ..python.spool_writer import Drained

T = TypeVar("T")
PATIENCE_MS = 30_000
"""Deadline of requests that take the daemon long to answer."""

_BY_EXIT_CODE: dict[int, type[MemdError]] = {2: InvalidRequest, 4: NotFound, 5: StoreError, 6: ModelMissing, 7: Refused}


def reach(deadline_ms: float | None = None) -> Client:
    """A client of this user's daemon; it connects with its first request."""
    return Client(deadline_ms=deadline_ms)


def deliver(client: Client, answer: CommandAnswer) -> Drained:
    """Deliver the spool and warn about the outcome; resume following sessions that grew while memd was down.

    Every command that writes calls this after its own work, so that its user never waits for older requests (W10).
    """
    drained = client.drain()
    from ..hooks.notes import has_notes

    if has_notes(client.places.hooks) and not client.disabled:
        from ..hooks.follow import start

        start()
    if drained.delivered:
        answer.warn(f"delivered {count(drained.delivered, 'request')} spooled while the daemon was down")
    if drained.rejected:
        answer.warn(f"{count(drained.rejected, 'spooled request')} rejected; kept in {client.spool.rejected}")
    if drained.left:
        answer.warn(f"{count(drained.left, 'request')} still in the spool: {drained.reason}")
    return drained


def offline(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run one of the daemon's offline commands, `python -m memd.daemon NAME …`; it needs no running daemon."""
    import subprocess

    from ..python import launch

    environment = launch.daemon_environment(os.environ)
    command = [*launch.command(), *arguments]
    return subprocess.run(command, capture_output=True, check=False, text=True, cwd="/", env=environment)


def reported(done: subprocess.CompletedProcess[str], kind: type[T]) -> T:
    """The report of an offline command. Raises the error that it ended with."""
    if done.returncode:
        raise ended_with(done)
    return msgspec.json.decode(done.stdout, type=kind)


def ended_with(done: subprocess.CompletedProcess[str]) -> MemdError:
    """The error of an offline command that failed, with its message and hint."""
    printed = [line.partition(": ")[2] for line in done.stderr.splitlines() if line.startswith(("memd: ", "hint: "))]
    kind = _BY_EXIT_CODE.get(done.returncode, Unavailable)
    message = printed[0] if printed else f"it ended with exit code {done.returncode}"
    return kind(message, hint=printed[1] if len(printed) > 1 else "\n".join(done.stderr.splitlines()[-3:]))


def is_older(version: str) -> bool:
    """Whether that version is older than this command's: an upgrade left an old daemon running (P-26)."""
    return _numbers(version) < _numbers(__version__)


def _numbers(version: str) -> list[int]:
    """The parts of a version; a part that is no number counts as 0."""
    return [int(part) if part.isdecimal() else 0 for part in version.split(".")]
