"""Takes an input in: sends its passages as captures, then has the daemon summarise them (W12).

Invariants: nothing is sent before the user decided; the same input again changes nothing; a passage that the file no
longer has is retracted (W13); each share is a document of its own, so a break between two loses nothing.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from hashlib import blake2b
from pathlib import Path

import msgspec

from ...protocol.errors import MemdError, StoreError, Unavailable, by_code
from ...protocol.event import AnyEvent, Origin, Wrote
from ...protocol.ingestion import WEIGHED_ITEMS, WeighedBy
from ...protocol.instant import checked
from ...protocol.reply import JobState
from ..importers.cursors import Cursor, Cursors
from ..importers.delivery import Sent, cited_turns, send
from ..importers.markdown import HOST as MARKDOWN
from ..importers.markdown import document_name, turn_names
from ..importers.transcript import Account, CapturedSession, Transcript, changed_at
from ..python.client import Client
from .formats import STANDARD_INPUT, read_bytes, read_input
from .input_text import InputPassage, InputText
from .negotiation import Choice, Negotiation, Share, has_many, negotiation, shares

HOST = "ingest"
"""The host of documents that `memd ingest` takes in."""

WEIGHED_CHARACTERS = 600
"""Characters of an item that decide its worth and its topic."""

NAMED_TURNS = 100_000
"""Turns whose order a request can name; a longer document is read in the order in which it was first sent."""

POLL_S = 0.1
BUSY_S = 20.0
"""Seconds for which memd waits while another job runs, unless its caller can tell the user."""

WaitForJob = Callable[[JobState], JobState]
"""Waits for a job; returns its last state. Raises the error that it ended with."""


class Ingested(msgspec.Struct, frozen=True, kw_only=True):
    """One document that was taken in. `sent`: the outcome of its passages; `summary`: lines with pointers, "" if memd
    found nothing to say; `id`: the summary's record; `refs`: document and turn, start and end of each pointer's words;
    `details`: passages of the document; `written`: operations that the summary took, 0 if it stands as it was."""

    document: str
    pool: str
    category: str = ""
    sent: Sent
    id: str = ""
    summary: str = ""
    tokens: int = 0
    details: int = 0
    chunks: int = 0
    written: int = 0
    refs: tuple[tuple[str, str, int, int], ...] = ()


class ReadInput(msgspec.Struct, frozen=True, kw_only=True):
    """An input that was read: the file's name as the user gave it, its path, "" for standard input, and its text."""

    file: str
    path: str
    digest: str
    changed_at: str
    text: InputText


def read(name: str, content: bytes | None = None, title: str = "") -> ReadInput:
    """Read an input whole. `content`: the bytes of one that is no file. Raises InvalidRequest, NotFound, StoreError."""
    is_file = name != STANDARD_INPUT and content is None
    read_content = read_bytes(name) if content is None else content
    text = read_input(name, read_content)
    path = Path(name).resolve() if is_file else None
    try:
        str(path or "").encode()
    except UnicodeEncodeError as error:
        raise StoreError("the path is not UTF-8", hint="rename the file to ingest it") from error
    at = changed_at(path.stat()) if path else datetime.now().astimezone().replace(microsecond=0)
    fallback = path.name if path else "standard input"
    return ReadInput(
        file=name,
        path=str(path or ""),
        digest=blake2b(read_content, digest_size=16).hexdigest(),
        changed_at=at.isoformat(),
        text=msgspec.structs.replace(text, title=(title or text.title or fallback)[:200]),
    )


class Ingestion:
    """Takes inputs in over one client. `cwd`: the folder that decides the project."""

    def __init__(
        self,
        client: Client,
        state: Path,
        cwd: str,
        wait: WaitForJob | None = None,
        busy: Callable[[str], None] | None = None,
    ) -> None:
        """`wait`: waits for a job and shows its progress; without it, the client asks for it. `busy`: tells the user
        that another job runs, for whose end memd waits."""
        self._client, self._cwd, self._wait = client, cwd, wait or self._patiently
        self._busy = busy
        self._imported, self._ingested = Cursors(state), Cursors(state, "ingested")

    def negotiated(self, found: ReadInput) -> Negotiation:
        """Return what the user may decide about an input."""
        return negotiation(found.file, found.text, self.weigh)

    def take(self, found: ReadInput, decision: Choice) -> Iterator[Ingested | Negotiation]:
        """Take an input in, document by document; yield only the negotiation if it has many items and there is no
        decision. Raises InvalidRequest before anything is sent."""
        decision.check()
        if has_many(found.text) and not decision.is_made:
            yield self.negotiated(found)
            return
        for share in shares(found.text, decision, self.weigh):
            yield self._take(found, share)

    def weigh(self, texts: Sequence[str], by: WeighedBy) -> list[str]:
        """Return the worth or the topic of each text; of very many no topic."""
        if by == "topic" and len(texts) > WEIGHED_ITEMS:
            return [""] * len(texts)
        answers: list[str] = []
        for start in range(0, len(texts), WEIGHED_ITEMS):
            fronts = [_valid(text[:WEIGHED_CHARACTERS]) for text in texts[start : start + WEIGHED_ITEMS]]
            report = self._run(lambda fronts=fronts: self._client.weigh_items(fronts, by)).report
            named = report["worth" if by == "worth" else "topics"]
            assert isinstance(named, list)
            answers += named
        return answers

    def _run(self, start: Callable[[], JobState]) -> JobState:
        """Run a job of the daemon, after the one that runs now. Raises Unavailable, and the error of the job."""
        end = time.monotonic() + BUSY_S
        while True:
            try:
                started = start()
                break
            except Unavailable as error:
                if error.code != Unavailable.code or (self._busy is None and time.monotonic() > end):
                    raise
                if self._busy:
                    self._busy(error.message)
                time.sleep(POLL_S)
        return self._wait(started)

    def _patiently(self, state: JobState) -> JobState:
        while state.state == "running":
            time.sleep(POLL_S)
            state = self._client.job(state.id)
        if state.problem:
            raise by_code(state.problem.code, state.problem.message, state.problem.hint)
        return state

    def _take(self, found: ReadInput, share: Share) -> Ingested:
        origin = self._origin(found, share)
        cursors = self._imported if origin.host == MARKDOWN else self._ingested
        place = Path(found.path) if origin.host == MARKDOWN else Path("/") / origin.document
        cursor = cursors.get(place)
        names = list(turn_names([passage.text for passage in found.text.passages], self._imported.key()))
        taken = [(names[number], found.text.passages[number]) for number in share.passages]
        times = cursor.times if cursor else {}
        events = tuple(self._event(found, passage, turn, times) for turn, passage in taken)
        still = {turn for turn, _ in taken} if share.category else set(names)
        gone = self._vanished(origin.document, still, times, found.changed_at)
        session = CapturedSession(origin=origin, events=(*events, *gone))
        account = Account(lines=len(events), taken=len(events), noise={}, malformed=())
        (sent,) = send(self._client, Transcript(path=found.path, sessions=(session,), account=account))
        changed = max(0, sent.changed - len(gone))
        sent = msgspec.structs.replace(sent, events=len(events), changed=changed, vanished=len(gone))
        if not sent.skipped:
            held = {turn: at for turn, at in times.items() if turn in still}
            self._store(cursors, place, origin.host, found, held | {event.turn: event.at for event in events})
        return self._summarised(sent, share, names)

    def _origin(self, found: ReadInput, share: Share) -> Origin:
        """Return the origin of a document. A whole Markdown file is the document that `memd import markdown` makes."""
        name = document_name(Path(found.path)) if found.path else f"{STANDARD_INPUT}/{self._keyed(found.digest)}"
        host = MARKDOWN if share.is_whole and found.path and found.text.format == "Markdown" else HOST
        title = found.text.title
        if share.category:
            name, title = f"{name}#{share.category}", f"{title}: {share.category}"
        return Origin(host=host, session=name, cwd=self._cwd, live=False, title=title[:200])

    def _keyed(self, digest: str) -> str:
        return blake2b(digest.encode(), key=self._imported.key(), digest_size=10).hexdigest()

    def _event(self, found: ReadInput, passage: InputPassage, turn: str, times: dict[str, str]) -> AnyEvent:
        place = found.path or found.text.title
        where = f"{place}#{passage.where}" if passage.where else place
        at = times.get(turn) or _time(passage.at) or found.changed_at
        return Wrote(turn=turn, at=at, text=_valid(passage.text), path=_valid(where[:1000]), form=passage.form)

    def _vanished(self, document: str, names: set[str], times: dict[str, str], at: str) -> tuple[AnyEvent, ...]:
        """Return an empty event for each turn that the file no longer has, chosen or not (W13)."""
        held = {**times, **cited_turns(self._client, document)}
        return tuple(Wrote(turn=turn, at=at, text="") for turn in sorted(held.keys() - names))

    def _store(self, cursors: Cursors, place: Path, host: str, found: ReadInput, times: dict[str, str]) -> None:
        status = os.stat(found.path) if found.path else None
        cursors.put(
            Cursor(
                path=str(place.resolve()),
                agent=host,
                size=status.st_size if status else 0,
                mtime_ns=status.st_mtime_ns if status else 0,
                imported_at=datetime.now(UTC).isoformat(),
                times=times,
            )
        )

    def _summarised(self, sent: Sent, share: Share, names: Sequence[str]) -> Ingested:
        """Have the document summarised as the archive has it: a refused or skipped passage is left out."""
        result = Ingested(document=sent.document, pool=sent.pool, category=share.category, sent=sent)
        if sent.skipped == sent.events:
            return result
        order = names if len(names) <= NAMED_TURNS else ()
        report = self._run(lambda: self._client.summarise_document(sent.document, order)).report
        fields = {name: report[name] for name in ("id", "summary", "tokens", "details", "chunks", "written")}
        if not fields["id"]:
            return msgspec.structs.replace(result, **fields)
        spans = self._client.get(str(fields["id"])).provenance.spans
        refs = tuple((span.document, span.turn, span.start, span.end) for span in spans)
        return msgspec.structs.replace(result, **fields, refs=refs)


def _valid(text: str) -> str:
    """Return a text without lone surrogates, which a file name or a PDF may hold."""
    return text.encode("utf-8", "replace").decode()


def _time(at: str) -> str:
    """Return a time that memd takes, "" for any other."""
    try:
        return checked(at) if at else ""
    except MemdError:  # the time of a message is its sender's claim, and no reason to refuse the message
        return ""
