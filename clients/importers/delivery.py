"""Delivers imported sessions to the daemon, from the end of the last import on.

Invariants: repeating a delivery changes nothing, so an interrupted one is repeated (W13); a cursor is valid only while
the daemon knows the turn it names; an unreadable file is reported, and the others are imported all the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import get_args

import msgspec

from ...protocol.errors import InvalidRequest, StoreError
from ...protocol.event import AnyEvent, Origin, Said, Wrote
from ...protocol.instant import micros
from ...protocol.record import LIVE, Status, explicit_id
from ...protocol.reply import Problem, Refusal
from ..python.client import Client
from .agent_files import Read
from .cursors import Cursor, Cursors, digest_of, holds, stamp
from .transcript import Account, CapturedSession, Transcript, batches, changed_at

PAGE = 200


class ImportSource(msgspec.Struct, frozen=True):
    """A file to import, its agent and its reader. `keeps`: it has a cursor."""

    agent: str
    path: Path
    read: Read
    keeps: bool = True


class Sent(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of one document's events: their pool, and how many the daemon accepted, knew, or changed. `vanished`:
    earlier turns that the document no longer has."""

    document: str
    events: int
    pool: str = ""
    accepted: int = 0
    duplicate: int = 0
    changed: int = 0
    vanished: int = 0
    forgotten: int = 0
    skipped: int = 0
    why: str = ""
    refused: tuple[Refusal, ...] = ()


class Imported(msgspec.Struct, frozen=True, kw_only=True):
    """One file: its account, its documents, and a warning about it. `is_read`: False for one that can't be read."""

    path: str
    account: Account
    sessions: tuple[Sent, ...]
    odd: str = ""
    is_read: bool = True


Watch = Callable[[float], None]
"""Takes the part of a file's events that the daemon has, from 0 to 1."""


def unwatched(part: float) -> None:
    """Take no note of the progress."""


def look(source: ImportSource, cursors: Cursors) -> Imported:
    """Read a file as an import would, and send nothing."""
    try:
        _check_name(source.path)
        cursor = cursors.get(source.path) if source.keeps else None
        transcript = source.read(holds(cursor, source.path))
    except StoreError as error:
        return _unreadable(source, error)
    return imported(transcript, source, sent=tuple(_planned(session, cursor) for session in transcript.sessions))


def _planned(session: CapturedSession, cursor: Cursor | None) -> Sent:
    known = set(cursor.times) if cursor else set[str]()
    turns = {event.turn for event in session.events}
    if session.has_all != "everywhere":
        return Sent(document=session.origin.document, events=len(session.events))
    return Sent(document=session.origin.document, events=len(turns - known), vanished=len(known - turns))


def hand_over(client: Client, source: ImportSource, cursors: Cursors, watch: Watch = unwatched) -> Imported:
    """Read a file from the end of the last import, send it, and store its cursor."""
    try:
        _check_name(source.path)
        cursor = cursors.get(source.path) if source.keeps else None
        mark = holds(cursor, source.path)
        transcript = source.read(mark)
        if mark and cursor and not _is_known(client, transcript, cursor):
            transcript = source.read(None)  # the file was imported into another memory
        written = stamp(source.path) if source.keeps else None
    except StoreError as error:
        return _unreadable(source, error)
    sent = send(client, transcript, cursor, watch)
    if written and not any(outcome.skipped for outcome in sent):  # a later import may deliver the skipped events
        _store_cursor(source, transcript, written, cursors)
    return imported(transcript, source, sent=sent)


def _is_known(client: Client, transcript: Transcript, cursor: Cursor) -> bool:
    for session in transcript.sessions:
        for event in session.events:
            if (session.origin.document, event.turn) == cursor.probe:
                return not client.capture(session.origin, (event,)).accepted
    return False


def _store_cursor(source: ImportSource, transcript: Transcript, written: tuple[int, int], cursors: Cursors) -> None:
    mark = transcript.mark
    digest, probe = "", ("", "")
    if mark:
        digest = digest_of(source.path, mark.offset)
        first = next((session for session in source.read(mark).sessions if session.events), None)
        turns = [event for event in first.events if not event.turn.startswith("session-")] if first else []
        probe = (first.origin.document, turns[0].turn) if first and turns else probe
    whole = (session for session in transcript.sessions if session.has_all == "everywhere")
    times = {event.turn: event.at for session in whole for event in session.events}
    cursors.put(
        Cursor(
            path=str(source.path.resolve()),
            agent=source.agent,
            size=written[0],
            mtime_ns=written[1],
            imported_at=datetime.now(UTC).isoformat(),
            mark=mark if digest and probe[1] else None,
            digest=digest,
            probe=probe,
            times=times,
        )
    )


def send(
    client: Client, transcript: Transcript, cursor: Cursor | None = None, watch: Watch = unwatched
) -> tuple[Sent, ...]:
    """Send a transcript in batches; each is durable before the next is sent."""
    outcomes: list[Sent] = []
    total, done = sum(len(session.events) for session in transcript.sessions), 0
    for session in transcript.sessions:
        outcome = Sent(document=session.origin.document, events=len(session.events))
        gone = tuple(_vanished(client, session, transcript, cursor))
        for batch in batches(session.events):
            outcome = _counted(client, session.origin, batch, outcome)
            done += len(batch)
            watch(done / total)
        for batch in batches(gone):
            after = _counted(client, session.origin, batch, outcome)
            outcome = msgspec.structs.replace(after, changed=outcome.changed, vanished=after.changed - outcome.changed)
        outcomes.append(outcome)
    return tuple(outcomes)


def _counted(client: Client, origin: Origin, batch: Sequence[AnyEvent], outcome: Sent) -> Sent:
    try:
        taken = client.capture(origin, batch)
    except InvalidRequest as error:  # one event may be too large for a message
        if len(batch) == 1:
            refusal = Refusal(batch[0].turn, Problem(error.code, error.message, error.hint))
            return msgspec.structs.replace(outcome, refused=(*outcome.refused, refusal))
        middle = len(batch) // 2
        return _counted(client, origin, batch[middle:], _counted(client, origin, batch[:middle], outcome))
    summed = "accepted", "duplicate", "changed", "forgotten", "skipped", "refused"
    sums = {name: getattr(outcome, name) + getattr(taken, name) for name in summed}
    return msgspec.structs.replace(outcome, pool=taken.pool, why=taken.why or outcome.why, **sums)


def _vanished(
    client: Client, session: CapturedSession, transcript: Transcript, cursor: Cursor | None
) -> Iterator[AnyEvent]:
    """Yield an empty event for each turn that the document no longer has, which retracts the turn (W13). A file with a
    line that can't be read may still have the turn."""
    if not session.has_all or transcript.account.malformed:
        return
    held = cited_turns(client, session.origin.document)
    if session.has_all == "between":
        times = [micros(event.at) for event in session.events if isinstance(event, Said)]
        begin, end = min(times, default=0), max(times, default=0)
        held = {turn: at for turn, at in held.items() if begin < micros(at) < end}
    elif cursor:
        held = {**cursor.times, **held}
    at = changed_at(Path(transcript.path).stat()).isoformat()
    for turn in sorted(held.keys() - {event.turn for event in session.events}):
        yield Wrote(turn=turn, at=at, text="")


def cited_turns(client: Client, document: str) -> dict[str, str]:
    """Return the times of the turns of a document that a live record cites, without remembered texts: no file has
    them."""
    turns, remembered = dict[str, str](), set[str]()
    after, is_last = "", False
    while not is_last:
        page = client.list(document=document, statuses=get_args(Status), after=after, limit=PAGE)
        for record in page.records:
            here = {span.turn for span in record.provenance.spans if span.document == document}
            remembered.update(turn for turn in here if record.id == explicit_id(document, turn))
            if record.status in LIVE:
                turns.update(dict.fromkeys(here, record.provenance.said_at))
        after, is_last = page.next, not page.next
    return {turn: at for turn, at in turns.items() if turn not in remembered}


def _check_name(path: Path) -> None:
    """Raise StoreError for a path that is not UTF-8, which can name no document."""
    try:
        str(path.resolve()).encode()
    except UnicodeEncodeError as error:
        raise StoreError("the path is not UTF-8", hint="rename the file to import it") from error


def _unreadable(source: ImportSource, error: StoreError) -> Imported:
    account = Account(lines=0, taken=0, noise={}, malformed=())
    odd = f"{error.message}: {error.hint}"
    return Imported(path=str(source.path), account=account, sessions=(), odd=odd, is_read=False)


def imported(transcript: Transcript, source: ImportSource | None = None, *, sent: tuple[Sent, ...]) -> Imported:
    """Return the result of importing a transcript."""
    account = transcript.account
    odd = _odd(account, source.agent) if source and source.keeps and not account.before else ""
    return Imported(path=transcript.path, account=account, sessions=sent, odd=odd)


def _odd(account: Account, agent: str) -> str:
    """Return a warning about a file, with the next step; "" for an ordinary one."""
    if not account.lines:
        return "the file is empty: nothing to do"
    if len(account.malformed) == account.lines:
        return f"no line has {agent}'s format: import the file as another agent's, or leave it out"
    if len(account.malformed) > max(2, account.lines // 10):
        return "many lines can't be read: the file is damaged or has another version's format"
    if not account.taken and agent != "markdown":
        return "the file has no messages: nothing to do"
    return ""
