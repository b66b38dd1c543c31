"""`python -m memd.clients.hooks.follow`: reads on in the sessions whose hooks noted that they grew.

Comes in: notes. Goes out: live captures. Invariants: an importer reads, so live capture gives the documents and turns
that a later import gives, and that import adds nothing (W13); one process at a time; a note stays until the daemon has
all that its file held: the host's own file is the queue, and nothing is lost while memd is down (W10).
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
from ...protocol.event import SessionEnded
from ...protocol.places import Places
from ..importers.agent_files import Read, reader
from ..importers.cursors import Cursors
from ..importers.delivery import ImportSource, hand_over
from ..importers.transcript import Mark, Transcript
from ..python.client import Client, places_here
from . import notes
from .notes import Note
from .program import following

DEADLINE_MS = 10_000
SETTLE_S = 0.3
"""Hosts write the last lines of a turn after they ran its hooks."""


def follow(places: Places) -> int:
    """Reads on until nothing is noted; how many files were read. Raises Unavailable: then all of it is still noted."""
    done = 0
    while notes.has_notes(places.state):
        with _alone(notes.folder(places.state) / "follow.lock") as alone:
            if not alone:  # whoever holds it looks again after letting go
                return done
            done += _round(places)
    return done


def _round(places: Places) -> int:
    taken, size = notes.take_notes(places.state)
    with Client(places, DEADLINE_MS) as client:
        for note in taken:
            read_on(client, note, places)
        client.drain()
    notes.drop_notes(places.state, size)
    return len(taken)


def read_on(client: Client, note: Note, places: Places) -> None:
    """What is new in a session's file and in those of its subagents, as live captures. Raises Unavailable."""
    cursors = Cursors(places.state)
    for path in _files(Path(note.path)):
        read = live(reader(note.agent, path, "", cursors), ended=note.ended)
        try:
            hand_over(client, ImportSource(note.agent, path, read), cursors)
        except Unavailable:
            raise
        except MemdError as error:  # of this file alone: `memd import` tells more of it
            print(f"{path}: {error.message}", file=sys.stderr)


def _files(path: Path) -> Iterator[Path]:
    if path.is_file():
        yield path
        yield from sorted(path.with_suffix("").glob("subagents/agent-*.jsonl"))


def live(read: Read, *, ended: bool) -> Read:
    """The same reader, of sessions that are going on now: they end when their host says so."""

    def read_live(mark: Mark | None) -> Transcript:
        found = read(mark)
        sessions = (
            msgspec.structs.replace(
                each,
                origin=msgspec.structs.replace(each.origin, live=True),
                events=tuple(event for event in each.events if ended or not isinstance(event, SessionEnded)),
            )
            for each in found.sessions
        )
        return msgspec.structs.replace(found, sessions=tuple(sessions))

    return read_live


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
    """Starts it in the background, and waits for nothing."""
    nothing = subprocess.DEVNULL
    subprocess.Popen(following(), stdin=nothing, stdout=nothing, stderr=nothing, cwd="/", start_new_session=True)


def main(arguments: Iterable[str] = ()) -> int:
    """Runs at low priority, after the host has written what it was about to write."""
    os.nice(10)
    time.sleep(SETTLE_S)
    try:
        follow(places_here())
    except MemdError:  # the notes are still there
        return 3
    return 0


if __name__ == "__main__":
    sys.exit(main())
