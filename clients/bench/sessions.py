"""Real sessions for a measurement, and what a daemon believes after it was given them.

Comes in: a folder of sessions by host, a client. Goes out: documents with their events, records. Invariant: a file that
its reader can't read is named, never left out in silence.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from ...protocol.errors import MemdError, StoreError
from ...protocol.record import Record
from ..importers.agents import AGENTS, reader
from ..importers.cursors import Cursors
from ..importers.transcript import Session, batches
from ..python.client import Client
from .part import Setting

SAMPLE = Path(__file__).parents[1] / "cli" / "sample" / "session.jsonl"
LARGE_BYTES = 1_000_000
PAGE = 500


class Found(msgspec.Struct, frozen=True):
    """The sessions of a folder, and the files that could not be read, each with the reason."""

    sessions: tuple[Session, ...]
    unread: tuple[str, ...] = ()


def files(setting: Setting, sample: bool = True) -> list[tuple[str, Path]]:
    """Agent and path of every session of the data, with the `sample` before them; small ones only under `quick`.

    Raises DataMissing.
    """
    found = [("claude-code", SAMPLE)] if sample else []
    for folder in sorted(setting.find("sessions").iterdir()):
        agent = folder.name.removesuffix("-edge")
        if agent in AGENTS:
            found += [(agent, path) for path in sorted(folder.rglob("*.json*")) if path.is_file()]
    return [each for each in found if not setting.quick or each[1].stat().st_size < LARGE_BYTES]


def read(setting: Setting, sample: bool = True) -> Found:
    """Every session of the data, and of the `sample`. Raises DataMissing."""
    sessions: list[Session] = []
    unread: list[str] = []
    for agent, path in files(setting, sample):
        try:
            transcript = reader(agent, path, "", Cursors(path.parent), dry_run=True)(None)
        except StoreError as error:
            unread.append(f"{path.name}: {error.message}")
            continue
        sessions += [each for each in transcript.sessions if each.events]
    return Found(tuple(sessions), tuple(unread))


def large_session(setting: Setting) -> Path:
    """The session of 2.7 MB that speed is measured on: the first one of Claude Code above a megabyte."""
    folder = setting.find("sessions/claude-code")
    return next(path for path in sorted(folder.glob("*.jsonl")) if path.stat().st_size > LARGE_BYTES)


def deliver(client: Client, sessions: Iterable[Session]) -> int:
    """Sends them, in order, in batches as an import does; how many events were new."""
    return sum(
        client.capture(session.origin, batch).accepted for session in sessions for batch in batches(session.events)
    )


def records(client: Client) -> Iterator[Record]:
    """Every live record, newest first."""
    after = ""
    while True:
        page = client.list(after=after, limit=PAGE)
        yield from page.records
        if not (after := page.next):
            return


def told(error: MemdError) -> str:
    """An error on one line."""
    return f"{error.message} ({error.hint})" if error.hint else error.message
