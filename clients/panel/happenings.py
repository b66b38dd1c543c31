"""The journal's operations in plain words: what the user did, what memd did, what agents asked for, newest first.

Invariants: one happening is one operation, or operations of one kind that follow each other and concern one session;
bookkeeping of memd is left out. Numbers are of the operations shown.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from ...protocol import operation as ops
from ...protocol.fading import FeedbackGiven, Reviewed
from ...protocol.profile import Injection
from ...protocol.record import LIVE, Record
from ...protocol.reply import Logged
from ...protocol.skills import SKILL_COMMANDS
from . import wording
from .screen import Undoing

Actor = Literal["you", "memd", "agents"]

CORRECTIONS, EDITS, INTERNAL, REMOTE = "memd:corrections/", "memd:edits/", "memd:", "remote:"
"""Prefixes of documents: of corrections, of edits, of all documents of memd's own, and of remote models."""

NAMED = 5
"""Records that one happening names; the others are counted."""


@dataclass(frozen=True)
class NamedRecord:
    """A record as a happening names it. `words` are of the time of the operation, "" while only the id is known;
    `is_missing`: it is hidden or forgotten."""

    id: str
    words: str = ""
    is_archived: bool = False
    is_gone: bool = False
    is_missing: bool = False


@dataclass(frozen=True)
class Happening:
    """Something that happened. `at`: microseconds; `first`, `seq`: its oldest and newest operation. `document`: the
    session that it came from, or ""; `href`: another place to look at. `undo`: how to take it back, or to put it back,
    with the button's word `undo_word`; with `while_live` only while its first record is live. `exact`: a text that an
    agent received."""

    seq: int
    first: int
    at: int
    by: Actor
    text: str
    records: tuple[NamedRecord, ...] = ()
    count: int = 0
    note: str = ""
    document: str = ""
    href: str = ""
    undo: Undoing | None = None
    undo_word: str = "Undo"
    while_live: bool = False
    exact: str = ""

    @property
    def more(self) -> int:
        """The number of records that it does not name."""
        return max(0, self.count - len(self.records)) if self.records else 0


@dataclass
class _Reading:
    """What the words of an operation need: titles of pools, and from newer operations what was decided since."""

    titles: Mapping[str, str]
    judged: set[str] = field(default_factory=set[str])
    pinned: set[str] = field(default_factory=set[str])
    reworded: set[str] = field(default_factory=set[str])
    undone: set[str] = field(default_factory=set[str])
    decided: set[str] = field(default_factory=set[str])

    def is_newest(self, seen: set[str], id: str) -> bool:
        """Return whether no newer operation of the kind concerns a record, and note this one."""
        is_new = id not in seen
        seen.add(id)
        return is_new

    def stands(self, document: str) -> bool:
        """Return whether no newer operation undid or redid a session."""
        return document not in self.undone

    def title(self, pool: str) -> str:
        """Return the title of a pool."""
        return self.titles.get(pool, pool)


Telling = Callable[[_Reading, Logged, Any], Happening | None]


def happenings(entries: Sequence[Logged], titles: Mapping[str, str]) -> list[Happening]:
    """Return what entries of the journal, given in order, tell, newest first."""
    reading = _Reading(titles)
    told: list[Happening] = []
    for entry in reversed(entries):
        tell = _TELLINGS.get(type(entry.operation))
        happening = tell(reading, entry, entry.operation) if tell else None
        if happening is None:
            continue
        if told and (joined := _joined(told[-1], happening)):
            told[-1] = joined
        else:
            told.append(happening)
    return [_worded(happening) for happening in told]


def is_by_user(entry: Logged) -> bool:
    """Return whether the user did it, as far as the operation tells."""
    happening = next(iter(happenings([entry], {})), None)
    return happening is not None and happening.by == "you"


def received(injections: Iterable[Injection], exact: bool) -> Iterator[Happening]:
    """Yield the texts that agents received. `exact`: with the text itself."""
    for text in injections:
        times = f", {text.times} times" if text.times > 1 else ""
        yield Happening(
            seq=0,
            first=0,
            at=wording.micros(text.at),
            by="agents",
            text=f"{wording.host_name(text.document)} received {text.tokens} tokens{times}",
            note=f"for the prompt “{text.prompt}”" if text.prompt else text.why,
            document=text.document,
            exact=text.text if exact else "",
        )


def named_ids(told: Iterable[Happening], most: int) -> list[str]:
    """Return the ids of records that happenings name, each once, newest first."""
    ids = dict.fromkeys(record.id for happening in told for record in happening.records)
    return list(ids)[:most]


def with_records(happening: Happening, known: Mapping[str, Record | None]) -> Happening:
    """Return a happening whose records have their words and their present state; what can't be taken back any more has
    no undo. `known` has None for a record that memd does not tell."""
    named = tuple(_present(record, known[record.id]) if record.id in known else record for record in happening.records)
    is_over = happening.while_live and named[0].is_gone
    return replace(happening, records=named, undo=None if is_over else happening.undo)


def _present(named: NamedRecord, record: Record | None) -> NamedRecord:
    if record is None:
        return replace(named, words="", is_gone=True, is_missing=True)
    return replace(
        named,
        words=named.words or record.description,
        is_archived=record.status == "archived",
        is_gone=record.status not in LIVE and record.status != "archived",
    )


def _joined(newer: Happening, older: Happening) -> Happening | None:
    """Return two happenings as one, None where they differ in what they tell."""
    can_join = newer.by == older.by == "memd" and newer.count and older.count
    if not can_join or (newer.document, newer.note) != (older.document, older.note):
        return None
    short, long = sorted((newer.text, older.text), key=len)  # a record of the user's own pool names no project
    if not (newer.document and long.startswith(f"{short} in ")) and short != long:
        return None
    records = (*newer.records, *older.records)[:NAMED]
    return replace(newer, first=older.first, text=long, records=records, count=newer.count + older.count)


def _worded(happening: Happening) -> Happening:
    """Return a happening with its number in the text."""
    memories = "1 memory" if happening.count == 1 else f"{happening.count:,} memories"
    return replace(happening, text=happening.text.replace("{memories}", memories))


def _told(entry: Logged, by: Actor, text: str, *records: NamedRecord, **more: Any) -> Happening:
    count = more.pop("count", len(records))
    return Happening(entry.seq, entry.seq, entry.at, by, text, records[:NAMED], count, **more)


def _of_session(reading: _Reading, document: str, pool: str) -> str:
    place = f" in {reading.title(pool)}" if pool != "personal" else ""
    if document.startswith("git:"):
        return f"the commits{place}"
    return f"a session of {wording.host_name(document)}{place}"


# --- statements -------------------------------------------------------------------------------------------------------
def _added(reading: _Reading, entry: Logged, operation: ops.Added) -> Happening:
    record = operation.record
    document = record.provenance.spans[0].document if record.provenance.spans else record.provenance.source
    old = tuple(NamedRecord(retired.id, is_gone=True) for retired in operation.retires)
    named = NamedRecord(record.id, record.description)
    if document.startswith(CORRECTIONS):
        happening = _told(entry, "you", "You put right", named, *old)
        return replace(happening, undo=_undo_session(document) if reading.stands(document) else None, while_live=True)
    if not record.provenance.distiller:
        return _said(reading, entry, record, named, document)
    reader = record.provenance.distiller
    by = f"{reader.removeprefix(REMOTE)} pointed at" if reader.startswith(REMOTE) else "memd learnt"
    text = f"{by} {{memories}} from {_of_session(reading, document, record.pool)}"
    note = ""
    if old:
        text, note = f"memd learnt from {_of_session(reading, document, record.pool)}", "it replaces what memd believed"
    return _told(entry, "memd", text, named, *old, document=document, note=note, count=0 if old else 1)


def _said(reading: _Reading, entry: Logged, record: Record, named: NamedRecord, document: str) -> Happening:
    if document.startswith(INTERNAL):
        return _told(entry, "memd", "memd noted", named)
    if record.provenance.trust != "user":
        text = f"{wording.host_name(document)} asked memd to remember"
        return _told(entry, "agents", text, named, document=document)
    undo = Undoing(f"/memories/{record.id}/reject", {}) if record.id not in reading.judged else None
    return _told(entry, "you", "You told memd", named, undo=undo, while_live=True)


def _updated(reading: _Reading, entry: Logged, operation: ops.Updated) -> Happening | None:
    record = operation.record
    document = record.provenance.spans[0].document if record.provenance.spans else ""
    named = NamedRecord(record.id, record.description)
    if document.startswith(EDITS):
        is_last = reading.is_newest(reading.reworded, record.id) and reading.stands(document)
        undo = _undo_session(document) if is_last else None
        return _told(entry, "you", "You put into your words", named, undo=undo, while_live=True)
    if not operation.retires:
        return None  # memd read again what the user told it
    old = (NamedRecord(retired.id, is_gone=True) for retired in operation.retires)
    return _told(entry, "memd", "memd replaced what it believed", named, *old, count=0)


def _merged(reading: _Reading, entry: Logged, operation: ops.Merged) -> Happening:
    document = operation.evidence.span.document
    text = "memd heard {memories} again in " + _of_session(reading, document, "personal")
    return _told(entry, "memd", text, NamedRecord(operation.id), document=document)


def _invalidated(reading: _Reading, entry: Logged, operation: ops.Invalidated) -> Happening:
    return _told(entry, "memd", "memd no longer believes {memories}", NamedRecord(operation.id), note=operation.reason)


def _pinned(reading: _Reading, entry: Logged, operation: ops.Pinned) -> Happening:
    reverse = "unpin" if operation.pinned else "pin"
    is_last = reading.is_newest(reading.pinned, operation.id)
    undo = Undoing(f"/memories/{operation.id}/{reverse}", {}) if is_last else None
    word = "You pinned" if operation.pinned else "You unpinned"
    return _told(entry, "you", word, NamedRecord(operation.id), undo=undo)


_VERDICTS = {"right": "You kept", "wrong": "You said that it is wrong", "undone": "You took back your judgement of"}


def _judged(reading: _Reading, entry: Logged, operation: ops.RecordJudged) -> Happening:
    is_last = reading.is_newest(reading.judged, operation.id) and operation.verdict != "undone"
    undo = Undoing(f"/memories/{operation.id}/unjudge", {}) if is_last else None
    return _told(entry, "you", _VERDICTS[operation.verdict], NamedRecord(operation.id), undo=undo)


def _moved(reading: _Reading, entry: Logged, operation: ops.Moved) -> Happening:
    records = map(NamedRecord, operation.ids)
    return _told(entry, "you", f"You moved {{memories}} to {reading.title(operation.pool)}", *records)


# --- sessions as a whole ----------------------------------------------------------------------------------------------
def _undo_session(document: str) -> Undoing:
    return Undoing("/undo/session", {"name": document})


def _hidden(reading: _Reading, entry: Logged, operation: ops.Hidden) -> Happening:
    gone = [NamedRecord(shift.id) for shift in operation.after if shift.status == "hidden"]
    can_redo = all(reading.stands(document) for document in operation.documents)
    reading.undone.update(operation.documents)
    undo = Undoing("/activity/show", {"names": "\n".join(operation.documents)}) if can_redo else None
    text = f"You hid everything learnt from {_names(operation.documents)}"
    if operation.documents[0].startswith((CORRECTIONS, EDITS)):
        text = "You took a change back"
    document = "" if operation.documents[0].startswith((INTERNAL, REMOTE)) else operation.documents[0]
    return _told(entry, "you", text, *gone, undo=undo, undo_word="Put back", document=document)


def _unhidden(reading: _Reading, entry: Logged, operation: ops.Unhidden) -> Happening:
    can_undo = all(reading.stands(document) for document in operation.documents)
    reading.undone.update(operation.documents)
    undo = Undoing("/activity/hide", {"names": "\n".join(operation.documents)}) if can_undo else None
    shown = (NamedRecord(shift.id) for shift in operation.after if shift.status in LIVE)
    document = "" if operation.documents[0].startswith((INTERNAL, REMOTE)) else operation.documents[0]
    text = f"You put back {_names(operation.documents)}"
    return _told(entry, "you", text, *shown, undo=undo, document=document)


def _names(documents: Sequence[str]) -> str:
    if len(documents) > 1:
        return f"{len(documents)} sessions"
    [document] = documents
    if document.startswith(REMOTE):
        return f"the remote model {document.removeprefix(REMOTE)}"
    return "a change" if document.startswith(INTERNAL) else f"a session of {wording.host_name(document)}"


# --- decay, proposals, access, forgetting, other readers --------------------------------------------------------------
_ARCHIVED = {
    "faded": "nothing used them",
    "capacity": "the pool is full; they counted least",
    "consolidated": "one summary stands for them",
}


def _archived(reading: _Reading, entry: Logged, operation: ops.Archived) -> Happening:
    records = map(NamedRecord, operation.ids)
    return _told(entry, "memd", "{memories} went to the archive", *records, note=_ARCHIVED[operation.why])


def _restored(reading: _Reading, entry: Logged, operation: ops.Restored) -> Happening:
    records = map(NamedRecord, operation.ids)
    if operation.why == "asked":
        return _told(entry, "you", "You took out of the archive", *records)
    return _told(entry, "memd", "{memories} came out of the archive", *records, note="a question needed them")


def _released(reading: _Reading, entry: Logged, operation: ops.Released) -> Happening | None:
    if operation.why != "used":
        return None
    return _told(entry, "memd", "memd now believes {memories}", *map(NamedRecord, operation.ids), note="they were used")


def _reviewed(reading: _Reading, entry: Logged, operation: Reviewed) -> Happening:
    return _told(entry, "memd", "memd looked again at", NamedRecord(operation.id), note=operation.why, count=0)


def _proposed(reading: _Reading, entry: Logged, operation: ops.ChangeProposed) -> Happening:
    records = tuple(NamedRecord(id) for id in (operation.record, operation.against) if id)
    text = "memd asks you about a contradiction" if operation.what == "conflict" else "memd asks you about a repetition"
    if operation.what in SKILL_COMMANDS:
        about = {"skill": "a skill", "skill_edit": "a change of a skill"}.get(operation.what, "taking a skill away")
        return _told(entry, "memd", f"memd asks you about {about}", href="/inbox", count=0)
    if operation.what == "forget":
        text = f"{wording.host_name(operation.document) if operation.document else 'An agent'} asks to forget"
    by: Actor = "agents" if operation.what == "forget" else "memd"
    return _told(entry, by, text, *records, href="/inbox", count=0)


def _decided(reading: _Reading, entry: Logged, operation: ops.ChangeDecided) -> Happening:
    undo = Undoing(f"/inbox/{operation.id}/reopen", {}) if reading.is_newest(reading.decided, operation.id) else None
    words = f"You {'accepted' if operation.accepted else 'rejected'} a proposal"
    return _told(entry, "you", words, href="/inbox", undo=undo)


def _reopened(reading: _Reading, entry: Logged, operation: ops.ChangeReopened) -> Happening:
    reading.decided.add(operation.id)
    return _told(entry, "you", "You took a decision back: the proposal waits again", href="/inbox")


def _feedback(reading: _Reading, entry: Logged, operation: FeedbackGiven) -> Happening | None:
    parts = ((operation.used, "used"), (operation.helpful, "helped"), (operation.wrong, "wrong"))
    ids = dict.fromkeys(id for named, _ in parts for id in named)
    words = ", ".join(f"{len(named)} {word}" for named, word in parts if named)
    return _told(entry, "agents", "An agent told memd what helped", *map(NamedRecord, ids), note=words) if ids else None


def _granted(reading: _Reading, entry: Logged, operation: ops.Granted) -> Happening:
    if not operation.grant:
        return _told(entry, "you", f"You let memd show {', '.join(operation.sources)} again")
    return _told(entry, "you", f"You gave a pass to {operation.subject}", note="`memd grants` lists them")


def _revoked(reading: _Reading, entry: Logged, operation: ops.Revoked) -> Happening:
    what = f"the source {', '.join(operation.sources)}" if operation.sources else "a pass"
    return _told(entry, "you", f"You revoked {what}")


def _redacted(reading: _Reading, entry: Logged, operation: ops.Redacted) -> Happening:
    if operation.cuts and not operation.records:
        number = len(operation.cuts)
        return _told(entry, "memd", f"memd cut {number:,} secret{'' if number == 1 else 's'} out of what it keeps")
    return _told(entry, "you", "You forgot {memories} for good", count=len(operation.records))


def _consented(reading: _Reading, entry: Logged, operation: ops.RemoteConsented) -> Happening:
    pool, model = reading.title(operation.pool), f"{operation.provider} {operation.family}…"
    text = f"You let {model} read {pool} until {wording.day(operation.until)}"
    if not operation.until:
        text = f"You no longer let {model} read {pool}"
    return _told(entry, "you", text, href="/readers")


def _sent(reading: _Reading, entry: Logged, operation: ops.RemoteReserved) -> Happening:
    text = f"memd sent {wording.bytes_text(operation.size)} of a session to {operation.reader.removeprefix(REMOTE)}"
    return _told(entry, "memd", text, document=operation.document, href=f"/readers/bytes?call={operation.id}")


def _settled(reading: _Reading, entry: Logged, operation: ops.RemoteSettled) -> Happening:
    href = f"/readers/bytes?call={operation.id}"
    if operation.outcome not in ("taken", "dropped"):
        return _told(entry, "memd", "The remote call brought nothing", note=operation.outcome, href=href)
    taken = f"{operation.pointed} taken, {operation.dropped} dropped"
    return _told(entry, "memd", "The remote model answered", note=taken, href=href)


def _distilled(reading: _Reading, entry: Logged, operation: ops.Distilled) -> Happening | None:
    if not operation.failed:
        return None
    number = len(operation.failed)
    text = f"memd could not read {number:,} turn{'' if number == 1 else 's'}"
    return _told(entry, "memd", text, note=f"{operation.failed[0].error}; `memd retry` tries again")


def _opened(reading: _Reading, entry: Logged, operation: ops.PoolOpened) -> Happening:
    return _told(entry, "memd", f"memd opened a pool for {operation.title or operation.pool}")


def _aliased(reading: _Reading, entry: Logged, operation: ops.AliasAdded) -> Happening | None:
    if operation.by != "user":
        return None
    return _told(entry, "you", f"You bound a folder to {reading.title(operation.pool)}")


_TELLINGS: dict[type, Telling] = {
    ops.Added: _added,
    ops.Updated: _updated,
    ops.Merged: _merged,
    ops.Invalidated: _invalidated,
    ops.Pinned: _pinned,
    ops.RecordJudged: _judged,
    ops.Moved: _moved,
    ops.Hidden: _hidden,
    ops.Unhidden: _unhidden,
    ops.Archived: _archived,
    ops.Restored: _restored,
    ops.Released: _released,
    Reviewed: _reviewed,
    ops.ChangeProposed: _proposed,
    ops.ChangeDecided: _decided,
    ops.ChangeReopened: _reopened,
    FeedbackGiven: _feedback,
    ops.Granted: _granted,
    ops.Revoked: _revoked,
    ops.Redacted: _redacted,
    ops.RemoteConsented: _consented,
    ops.RemoteReserved: _sent,
    ops.RemoteSettled: _settled,
    ops.Distilled: _distilled,
    ops.PoolOpened: _opened,
    ops.AliasAdded: _aliased,
}
