"""`python -m memd.clients.hooks.follow`: captures the new lines of the sessions that hooks noted, by importers (W13).

Invariants: one process runs at a time; a note stays until the daemon has all lines of its file, so that nothing is lost
while memd is down (W10).
"""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import time
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from ...protocol.errors import MemdError, Unavailable
from ...protocol.event import AnyEvent, SessionEnded, Wrote
from ...protocol.places import Places
from ..importers.agent_files import Read, output_limit, reader
from ..importers.cursors import Cursors
from ..importers.delivery import ImportSource, hand_over
from ..importers.transcript import Mark, Transcript
from ..python.client import Client, places_here
from . import notes
from .notes import SessionNote
from .program import following

DEADLINE_MS = 10_000
SETTLE_S = 0.3  # a host writes the last lines of a turn after its hooks


def follow(places: Places) -> int:
    """Read until no note is left; return the number of files. Raises Unavailable, and keeps the notes."""
    done = 0
    while notes.has_notes(places.hooks):
        with _alone(places.hooks / "follow.lock") as alone:
            if not alone:  # the process with the lock looks for notes again after it releases the lock
                return done
            done += _round(places)
    return done


def _round(places: Places) -> int:
    taken, size = notes.take_notes(places.hooks)
    with Client(places, DEADLINE_MS, surface="hook") as client:
        for note in taken:
            read_on(client, note, places)
        client.drain()
        if any(note.urgent for note in taken):
            client.distil()
    notes.drop_notes(places.hooks, size)
    return len(taken)


def read_on(client: Client, note: SessionNote, places: Places) -> None:
    """Capture the new lines of a session's file and of its subagents' files. Raises Unavailable."""
    cursors = Cursors(places.state)
    limit = output_limit(client)
    for path in _files(Path(note.path)):
        read = live(reader(note.agent, path, "", cursors, output_limit=limit), ended=note.ended)
        try:
            hand_over(client, ImportSource(note.agent, path, read), cursors)
        except Unavailable:
            raise
        except MemdError as error:  # of this file alone: `memd import` reports details
            print(f"{path}: {error.message}", file=sys.stderr)


def _files(path: Path) -> Iterator[Path]:
    if path.is_file():
        yield path
        yield from sorted(path.with_suffix("").glob("subagents/agent-*.jsonl"))


def live(read: Read, *, ended: bool) -> Read:
    """Return a reader of running sessions, which end when their host ends them."""

    def read_live(mark: Mark | None) -> Transcript:
        transcript = read(mark)
        sessions = (
            msgspec.structs.replace(
                session,
                origin=msgspec.structs.replace(session.origin, live=True),
                events=tuple(event for event in session.events if ended or not _tells_end(event)),
            )
            for session in transcript.sessions
        )
        return msgspec.structs.replace(transcript, sessions=tuple(sessions))

    return read_live


def _tells_end(event: AnyEvent) -> bool:
    """Whether an event tells the end of a session, or what is open there."""
    return isinstance(event, SessionEnded) or (isinstance(event, Wrote) and event.form == "open" and bool(event.text))


@contextmanager
def _alone(path: Path) -> Generator[bool]:
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield True
    except BlockingIOError:
        yield False
    finally:
        os.close(file)


def start() -> None:
    """Start this program in the background."""
    nothing = subprocess.DEVNULL
    subprocess.Popen(following(), stdin=nothing, stdout=nothing, stderr=nothing, cwd="/", start_new_session=True)


def main(arguments: Iterable[str] = ()) -> int:
    """Run at low priority, after the host has written the end of the turn; without the right to write, not at all."""
    if "MEMD_PASS" in os.environ:  # the notes stay for a process of the owner
        return 3
    os.nice(10)
    time.sleep(SETTLE_S)
    try:
        follow(places_here())
    except MemdError:  # the notes stay
        return 3
    return 0


if __name__ == "__main__":
    sys.exit(main())
