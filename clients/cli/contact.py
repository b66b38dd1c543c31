"""How a command reaches the daemon, and what it delivers when it does.

Comes in: a command's wish to talk. Goes out: a client. Invariant: whatever writes also delivers what waits in the
spool, after its own work, so that a user's request never waits for older ones (W10).
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Annotated

import typer

from ...protocol.errors import InvalidRequest
from ..hooks.notes import has_notes
from ..python.client import Client
from ..python.spool_writer import Drained
from .output import Answer
from .wording import count

_DAY = re.compile(r"\d{4}-\d\d-\d\d")
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
_SPAN = re.compile(r"(?:\d+(?:\.\d+)?[smhdw])+")
_LONGEST_S = 1e9

PATIENCE_MS = 30_000
"""The deadline of what keeps the daemon busy itself: its answers may be late, and its user waits anyway."""


def reach(deadline_ms: float | None = None) -> Client:
    """A client of this user's daemon; it connects when it is first asked."""
    return Client(deadline_ms=deadline_ms)


def path(named: str) -> Path:
    """A file or a folder as it was named, the `parser` of every option that takes one. Raises typer.BadParameter for
    "", an unset variable of the shell: a `Path` of that is the current folder."""
    if not named:
        raise typer.BadParameter("it is empty; write . for the current folder")
    return Path(named)


def here(cwd: str | None) -> str:
    """The folder that decides the project: the one named, else the current one. Raises InvalidRequest for ""."""
    if cwd == "":
        raise InvalidRequest("the folder's name is empty", hint="name one; the current folder is .")
    return os.path.abspath(cwd) if cwd is not None else os.getcwd()


AsOf = Annotated[str, typer.Option("--as-of", help="What was true then: a day, or RFC 3339 with an offset.")]
BelievedAt = Annotated[str, typer.Option("--believed-at", help="What memd believed then: a day, or RFC 3339.")]


def instant(text: str) -> str:
    """A moment as the protocol takes it, "" for none: a bare day is its beginning where the user is. Raises
    InvalidRequest."""
    from datetime import datetime

    try:
        found = datetime.fromisoformat(text) if text else None
        return text if found is None or not _DAY.fullmatch(text) else found.astimezone().isoformat()
    except (ValueError, OverflowError) as error:
        hint = "write a day, 2026-03-04, or a time with its offset, 2026-03-04T18:30:00+01:00"
        raise InvalidRequest(f"{text!r} is not a time", hint=hint) from error


def seconds(text: str) -> float:
    """The seconds of `90s`, `2h`, `1h30m`; 0 of "". Raises InvalidRequest."""
    if not text:
        return 0
    found = 0.0
    if _SPAN.fullmatch(text):
        found = sum(float(part[:-1]) * _UNITS[part[-1]] for part in re.findall(r"[\d.]+[smhdw]", text))
    if not 1 <= found <= _LONGEST_S:
        raise InvalidRequest(f"{text!r} is no length of time", hint="write it like 90s, 30m, 2h, 1h30m, 3d or 8w")
    return found


def deliver(client: Client, answer: Answer) -> Drained:
    """Hands over what waits in the spool, and says so; has sessions read on that grew while memd was down."""
    drained = client.drain()
    if has_notes(client.places.state) and not client.disabled:
        from ..hooks.follow import start

        start()
    if drained.delivered:
        answer.warn(f"{count(drained.delivered, 'request')} from the time without the daemon delivered")
    if drained.rejected:
        answer.warn(f"{count(drained.rejected, 'spooled request')} refused, kept in {client.spool.rejected}")
    if drained.left:
        answer.warn(f"{count(drained.left, 'request')} still waiting: {drained.reason}")
    return drained
