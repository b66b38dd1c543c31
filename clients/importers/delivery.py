"""What was read, handed to the daemon: session by session, from where the last time ended.

Comes in: files with what reads them. Goes out: what the daemon accepted, knew already or refused. Invariants: handing
over the same again changes nothing, and what was interrupted is simply done again (W13); a cursor is written after all
before it is durable, and believed only while the daemon knows the turn it names; one file that can't be read is told,
and the others are read all the same.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from ...protocol.errors import StoreError
from ...protocol.event import AnyEvent, Origin, Wrote
from ...protocol.record import LIVE
from ...protocol.reply import Refusal
from ..python.client import Client
from .agents import Read
from .cursors import Cursor, Cursors, digest_of, holds
from .transcript import Account, Session, Transcript, batches

PAGE = 200


class Source(msgspec.Struct, frozen=True):
    """Something to import: of which agent, where, and what reads it. `keeps`: with a cursor."""

    agent: str
    path: Path
    read: Read
    keeps: bool = True


class Sent(msgspec.Struct, frozen=True, kw_only=True):
    """What became of one document's events: the pool they feed, and how many the daemon took, knew, took anew.

    `vanished`: turns of before that the document no longer holds.
    """

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
    """One file: its account, its documents, and what is odd about it ("" if nothing is)."""

    path: str
    account: Account
    sessions: tuple[Sent, ...]
    odd: str = ""


def look(source: Source, cursors: Cursors) -> Imported:
    """Reads what an import would send, and sends nothing."""
    try:
        cursor = cursors.get(source.path) if source.keeps else None
        transcript = source.read(holds(cursor, source.path))
    except StoreError as error:
        return _unreadable(source, error)
    return imported(transcript, source, tuple(_planned(each, cursor) for each in transcript.sessions))


def _planned(session: Session, cursor: Cursor | None) -> Sent:
    known = set(cursor.times) if cursor else set[str]()
    turns = {event.turn for event in session.events}
    new = len(turns - known) if session.is_all else len(session.events)
    return Sent(document=session.origin.document, events=new, vanished=len(known - turns) if session.is_all else 0)


def hand_over(client: Client, source: Source, cursors: Cursors) -> Imported:
    """Reads a file, from where the last import ended, sends it, and notes how far it came."""
    try:
        cursor = cursors.get(source.path) if source.keeps else None
        mark = holds(cursor, source.path)
        transcript = source.read(mark)
        if mark and cursor and not _is_known(client, transcript, cursor):
            transcript = source.read(None)  # another memory than the one it was imported into
        status = source.path.stat() if source.keeps else None
    except StoreError as error:
        return _unreadable(source, error)
    sent = send(client, transcript, cursor)
    if status and not any(each.skipped for each in sent):  # what is not taken now may be taken another time
        _keep(source, transcript, status, cursors)
    return imported(transcript, source, sent)


def _is_known(client: Client, transcript: Transcript, cursor: Cursor) -> bool:
    """Whether the daemon still has the turn at the cursor's mark."""
    for session in transcript.sessions:
        for event in session.events:
            if (session.origin.document, event.turn) == cursor.probe:
                return not client.capture(session.origin, (event,)).accepted
    return False


def _keep(source: Source, transcript: Transcript, status: os.stat_result, cursors: Cursors) -> None:
    """Notes how far a file was imported."""
    mark = transcript.mark
    digest, probe = "", ("", "")
    if mark:
        digest = digest_of(source.path, mark.offset)
        first = next((each for each in source.read(mark).sessions if each.events), None)
        turns = [event for event in first.events if not event.turn.startswith("session-")] if first else []
        probe = (first.origin.document, turns[0].turn) if first and turns else probe
    times = {event.turn: event.at for each in transcript.sessions if each.is_all for event in each.events}
    cursors.put(
        Cursor(
            path=str(source.path.resolve()),
            agent=source.agent,
            size=status.st_size,
            mtime_ns=status.st_mtime_ns,
            imported_at=datetime.now(UTC).isoformat(),
            mark=mark if digest and probe[1] else None,
            digest=digest,
            probe=probe,
            times=times,
        )
    )


def send(client: Client, transcript: Transcript, cursor: Cursor | None = None) -> tuple[Sent, ...]:
    """Hands a transcript to the daemon, in batches; each is durable when the next one goes."""
    done: list[Sent] = []
    for session in transcript.sessions:
        told = Sent(document=session.origin.document, events=len(session.events))
        gone = tuple(_vanished(client, session, transcript.path, cursor)) if session.is_all else ()
        for batch in batches(session.events):
            told = _counted(client, session.origin, batch, told)
        for batch in batches(gone):
            after = _counted(client, session.origin, batch, told)
            told = msgspec.structs.replace(after, changed=told.changed, vanished=after.changed - told.changed)
        done.append(told)
    return tuple(done)


def _counted(client: Client, origin: Origin, batch: Sequence[AnyEvent], told: Sent) -> Sent:
    taken = client.capture(origin, batch)
    return msgspec.structs.replace(
        told,
        pool=taken.pool,
        accepted=told.accepted + taken.accepted,
        duplicate=told.duplicate + taken.duplicate,
        changed=told.changed + taken.changed,
        forgotten=told.forgotten + taken.forgotten,
        skipped=told.skipped + taken.skipped,
        why=taken.why or told.why,
        refused=told.refused + taken.refused,
    )


def _vanished(client: Client, session: Session, path: str, cursor: Cursor | None) -> Iterator[AnyEvent]:
    """The turns that a document held once and holds no more, without words: so they say nothing any longer (W13)."""
    held = set(cursor.times) if cursor else set[str]()
    page = client.list(document=session.origin.document, statuses=tuple(sorted(LIVE)), limit=PAGE)  # pyright: ignore[reportArgumentType]
    while True:
        for record in page.records:
            spans = record.provenance.spans
            held.update(span.turn for span in spans if span.document == session.origin.document)
        if not page.next:
            break
        page = client.list(
            document=session.origin.document,
            statuses=tuple(sorted(LIVE)),  # pyright: ignore[reportArgumentType]
            after=page.next,
            limit=PAGE,
        )
    at = datetime.fromtimestamp(int(Path(path).stat().st_mtime)).astimezone().isoformat()
    for turn in sorted(held - {event.turn for event in session.events}):
        yield Wrote(turn=turn, at=at, text="")


def _unreadable(source: Source, error: StoreError) -> Imported:
    account = Account(lines=0, taken=0, noise={}, malformed=())
    return Imported(path=str(source.path), account=account, sessions=(), odd=f"{error.message}: {error.hint}")


def imported(transcript: Transcript, source: Source | None = None, sent: tuple[Sent, ...] | None = None) -> Imported:
    """What became of a transcript."""
    if sent is None:
        sent = tuple(Sent(document=each.origin.document, events=len(each.events)) for each in transcript.sessions)
    account = transcript.account
    odd = _odd(account, source.agent) if source and source.keeps and not account.before else ""
    return Imported(path=transcript.path, account=account, sessions=sent, odd=odd)


def _odd(account: Account, agent: str) -> str:
    """What is strange about a file, and what to do; "" for one like others."""
    if not account.lines:
        return "the file is empty: nothing to do"
    if len(account.malformed) == account.lines:
        return f"no line of it is one of {agent}'s: import it as another agent's, or leave it out"
    if len(account.malformed) > max(2, account.lines // 10):
        return "many lines can't be read: was the file damaged, or is it from another version?"
    if not account.taken and agent != "markdown":
        return "nobody says anything in it: nothing to do"
    return ""
