"""How a command reaches the daemon, and what it delivers when it does.

Comes in: a command's wish to talk. Goes out: a client. Invariant: whatever writes also delivers what waits in the
spool, after its own work, so that a user's request never waits for older ones (W10).
"""

from __future__ import annotations

import os
import re
from typing import Annotated

import typer

from ..hooks.notes import has_notes
from ..python.client import Client
from ..python.spool import Drained
from .output import Answer
from .wording import count

_DAY = re.compile(r"\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])")

PATIENCE_MS = 30_000
"""The deadline of what keeps the daemon busy itself: its answers may be late, and its user waits anyway."""


def reach(deadline_ms: float | None = None) -> Client:
    """A client of this user's daemon; it connects when it is first asked."""
    return Client(deadline_ms=deadline_ms)


def here(cwd: str | None) -> str:
    """The folder that decides the project: the one named, else the current one."""
    return os.path.abspath(cwd) if cwd is not None else os.getcwd()


AsOf = Annotated[str, typer.Option("--as-of", help="What was true then: a day, or RFC 3339 with an offset.")]
BelievedAt = Annotated[str, typer.Option("--believed-at", help="What memd believed then: a day, or RFC 3339.")]


def instant(text: str) -> str:
    """A moment as the protocol takes it: a bare day is its beginning where the user is."""
    from datetime import datetime

    return datetime.fromisoformat(text).astimezone().isoformat() if _DAY.fullmatch(text) else text


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
