"""How a command reaches the daemon, and what it delivers when it does.

Comes in: a command's wish to talk. Goes out: a client. Invariant: whatever writes also delivers what waits in the
spool, after its own work, so that a user's request never waits for older ones (W10).
"""

from __future__ import annotations

import os

from ..python.client import Client
from ..python.spool import Drained
from .output import Answer
from .wording import count

PATIENCE_MS = 30_000
"""The deadline of what keeps the daemon busy itself: its answers may be late, and its user waits anyway."""


def reach(deadline_ms: float | None = None) -> Client:
    """A client of this user's daemon; it connects when it is first asked."""
    return Client(deadline_ms=deadline_ms)


def here(cwd: str | None) -> str:
    """The folder that decides the project: the one named, else the current one."""
    return os.path.abspath(cwd) if cwd is not None else os.getcwd()


def deliver(client: Client, answer: Answer) -> Drained:
    """Hands over what waits in the spool, and says so."""
    drained = client.drain()
    if drained.delivered:
        answer.warn(f"{count(drained.delivered, 'request')} from the time without the daemon delivered")
    if drained.rejected:
        answer.warn(f"{count(drained.rejected, 'spooled request')} refused, kept in {client.spool.rejected}")
    return drained
