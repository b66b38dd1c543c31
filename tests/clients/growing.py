"""A file that grows between imports: reading on from each mark must give what reading the whole file gives."""

from collections.abc import Callable
from pathlib import Path

from memd.clients.importers.transcript import Mark, Transcript
from memd.protocol.event import AnyEvent

Read = Callable[[Path, str, Mark | None], Transcript]
CUTS = 7


def by_turn(transcript: Transcript) -> dict[tuple[str, str], AnyEvent]:
    """The events by document and turn, as the archive keeps them."""
    return {(session.origin.document, event.turn): event for session in transcript.sessions for event in session.events}


def check_reading_on(read: Read, path: Path, place: Path) -> None:
    """Imports growing beginnings of a file, cut within a line each, then all of it."""
    content = path.read_bytes()
    known: dict[tuple[str, str], AnyEvent] = {}
    mark: Mark | None = None
    before = 0
    for cut in (*(len(content) * n // CUTS for n in range(1, CUTS)), len(content)):
        place.write_bytes(content[:cut])
        found = read(place, "", mark)
        assert found.account.is_complete
        assert found.account.before == (mark.lines if mark else 0)
        before = max(before, found.account.before)
        known.update(by_turn(found))
        mark = found.mark
    found = read(path, "", mark)
    whole = by_turn(read(path, "", None))
    assert known == whole
    assert found.account.before + found.account.lines == read(path, "", None).account.lines
    assert mark is None or before > 0 or found.account.lines < 2 * CUTS
