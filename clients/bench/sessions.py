"""Real sessions for a measurement, and what a daemon believes after it was given them.

Comes in: a folder of sessions by host, a client. Goes out: documents with their events, records. Invariant: a file that
its reader can't read is named, never left out in silence.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from ...protocol.errors import StoreError
from ...protocol.event import AnyEvent
from ...protocol.record import Record
from ..importers.agent_files import AGENTS, reader
from ..importers.cursors import Cursors
from ..importers.transcript import CapturedSession, batches
from ..python.client import Client
from .part import Setting

SAMPLE = Path(__file__).parents[1] / "cli" / "sample" / "session.jsonl"
LARGE_BYTES = 1_000_000
PAGE = 500


class Found(msgspec.Struct, frozen=True):
    """The sessions of a folder, and what of it was left out: files that can't be read, turns that two files tell
    differently (only the first telling counts: no order of importing both could give the same)."""

    sessions: tuple[CapturedSession, ...]
    left_out: tuple[str, ...] = ()


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
    sessions: list[CapturedSession] = []
    left_out: list[str] = []
    known: dict[tuple[str, str], AnyEvent] = {}
    for agent, path in files(setting, sample):
        try:
            transcript = reader(agent, path, "", Cursors(path.parent), dry_run=True)(None)
        except StoreError as error:
            left_out.append(f"{path.name}: {error.message}")
            continue
        for session in transcript.sessions:
            document = session.origin.document
            events = tuple(each for each in session.events if known.setdefault((document, each.turn), each) == each)
            if events:
                sessions.append(msgspec.structs.replace(session, events=events))
            if more := len(session.events) - len(events):
                left_out.append(f"{path.name}: {more} turns that another file tells differently")
    return Found(tuple(sessions), tuple(left_out))


def large_session(setting: Setting) -> Path:
    """The session of 2.7 MB that speed is measured on: the first one of Claude Code above a megabyte."""
    folder = setting.find("sessions/claude-code")
    return next(path for path in sorted(folder.glob("*.jsonl")) if path.stat().st_size > LARGE_BYTES)


def deliver(client: Client, sessions: Iterable[CapturedSession]) -> int:
    """Sends them, in order, in batches as an import does; how many events were new."""
    return sum(
        client.capture(session.origin, batch).accepted for session in sessions for batch in batches(session.events)
    )


def records(client: Client) -> Iterator[Record]:
    """Every record that is listed, newest first: those that were retired as well."""
    after = ""
    while True:
        page = client.list(after=after, limit=PAGE)
        yield from page.records
        if not (after := page.next):
            return
