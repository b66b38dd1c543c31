"""The closure of a forget request: the named records, the turns that they rest on, and the records that rest on those.

Invariants: nothing is written here; a record goes if all of its sources go, and otherwise stays on the rest; each
journal entry with forgotten words is listed with a replacement that changes no other record.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Iterable, Iterator, Sequence

import msgspec

from ....protocol import operation
from ....protocol.errors import InvalidRequest, NotFound
from ....protocol.event import AnyEvent, Captured, Reflected, SentPart, text
from ....protocol.ingestion import SUMMARY
from ....protocol.operation import (
    Added,
    AnyOperation,
    ChangeProposed,
    Cut,
    Distilled,
    Erased,
    Invalidated,
    Merged,
    PatchApplied,
    PatchTaken,
    Rebased,
    Redacted,
    Remnant,
    Retirement,
    Retried,
    SessionClosed,
    SessionOpened,
    TaskRated,
    TasksJudged,
    Updated,
)
from ....protocol.record import Record
from ....protocol.reply import Logged
from ...projections.patches import without_words
from ...projections.record_reducer import touched
from ...projections.stores import Stores
from ...storage.archive import decode
from ..provenance_rebase import CORRECTIONS, Turn, cited, in_own_words, rebased, stands_on, without
from ..record_history import entries
from ..statements import folded
from .forgotten_names import NameSearch, tombstones

SHORTEST = 3
"""Fewest characters of a query: a shorter one matches nearly everything."""

STATEMENT = 12
"""Fewest characters of a statement for which memd forgets all turns that contain it."""

REASON = "retired by a forgotten record"
REPLACED = "replaced a forgotten record"
JUDGING = frozenset({"reconcile", "inbox"})
"""Stages whose steps may quote the records that a candidate was compared with."""


class ForgetScope(msgspec.Struct, frozen=True, kw_only=True):
    """What to forget: exactly one of records, a query, documents; or turns of an earlier request."""

    ids: tuple[str, ...] = ()
    query: str = ""
    documents: frozenset[str] = frozenset()
    turns: frozenset[Turn] = frozenset()


class Loss(msgspec.Struct, kw_only=True):
    """The items to forget. `texts` are forgotten words, for the search at the end; they stay in memory. `learnings`:
    what agents learnt from forgotten turns. `name_count`:
    journal entries that lose a name, a title, a folder or a reason."""

    gone: dict[str, Record] = {}
    chosen: set[str] = set()
    rebased: dict[str, Record] = {}
    turns: dict[Turn, list[int]] = {}
    entries: list[Remnant] = []
    after: list[AnyOperation] = []
    sessions: tuple[str, ...] = ()
    texts: set[str] = set()
    learnings: set[str] = set()
    cuts: tuple[Cut, ...] = ()
    changed: list[str] = []
    names: NameSearch = msgspec.field(default_factory=lambda: NameSearch(""))
    name_count: int = 0

    def __bool__(self) -> bool:
        return bool(self.gone or self.turns or self.entries or self.cuts)

    def reopen(self, stores: Stores, opened: SessionOpened) -> None:
        """Commit a session again under its changed title, closed if it was."""
        self.after.append(opened)
        session = stores.sources.session(opened.document)
        if session is not None and session.closed_at:
            self.after.append(SessionClosed(document=opened.document, at=session.closed_at))

    def set_replacements(self, changes: dict[int, AnyOperation], redactions: Iterable[Logged]) -> None:
        """Set the replacements of journal entries, which earlier redactions no longer replace."""
        for entry in redactions:
            if isinstance(entry.operation, Redacted):
                earlier = changes.get(entry.seq, entry.operation)
                remaining = tuple(remnant for remnant in entry.operation.entries if remnant.seq not in changes)
                if len(remaining) < len(entry.operation.entries) and isinstance(earlier, Redacted):
                    changes[entry.seq] = msgspec.structs.replace(earlier, entries=remaining)
        self.entries = [
            Remnant(seq, operation.kind(change), operation.encode(change)) for seq, change in sorted(changes.items())
        ]

    def redacted(self) -> Redacted:
        """Return the operation that records the loss, by ids alone."""
        return Redacted(
            records=tuple(sorted(self.gone)),
            turns=tombstones(turn for turn in self.turns if not self.names.turn(turn)),
            captures=tuple(sorted(seq for seqs in self.turns.values() for seq in seqs)),
            entries=tuple(self.entries),
            sessions=tuple(document for document in self.sessions if not self.names.document(document)),
            cuts=self.cuts,
            marks=self.names.marked(self.turns, self.sessions),
        )


def find_loss(stores: Stores, scope: ForgetScope, spooled: Iterable[tuple[str, AnyEvent]]) -> Loss:
    """Return everything that a scope includes. Raises NotFound, InvalidRequest for a short query."""
    names = NameSearch(scope.query)
    loss = Loss(names=names)
    named = {document for document in stores.sources.sessions() if names.document(document)}
    names.texts |= named
    scope = msgspec.structs.replace(scope, documents=scope.documents.union(named))
    others: list[Logged] = []
    loss.chosen.update(scope.ids)
    holds = _finder(_needles(stores, scope))
    _read_journal(stores, holds, loss, others)
    loss.turns.update((turn, []) for turn in scope.turns)
    for id in loss.chosen:
        for entry in entries(stores, id):
            loss.turns.update((turn, []) for turn in _rests_on(entry.operation, id))
    _read_archive(stores, scope, holds, loss)
    for document, event in spooled:
        named = document in scope.documents or (document, event.turn) in loss.turns
        if named or holds(text(event)) or names.event(document, event):
            loss.turns.setdefault((document, event.turn), [])
            loss.texts.add(text(event))
    _read_records(stores, loss)
    loss.sessions = tuple(
        sorted(document for document in scope.documents if stores.sources.session(document) is not None)
    )
    _list_entries(stores, loss, others)
    return loss


def words_of(stores: Stores, scope: ForgetScope) -> Callable[[str], bool]:
    """Return a test for texts of no known turn: with the words of a scope, or the id of one of its sessions. Raises
    NotFound, InvalidRequest for a short query."""
    sessions = (document.partition(":")[2] for document in scope.documents)
    return _finder([*_needles(stores, scope), *(id for id in sessions if len(id) >= STATEMENT)])


def _needles(stores: Stores, scope: ForgetScope) -> list[str]:
    if scope.query and len(scope.query.strip()) < SHORTEST:
        raise InvalidRequest(
            f"{scope.query!r} is too short", hint=f"give at least {SHORTEST} characters, exactly as in the text"
        )
    if scope.query:
        return [scope.query]
    return [statement for statement in _statements(stores, scope) if len(statement) >= STATEMENT]


# --- reading -----------------------------------------------------------------------------------------------------
def _finder(needles: Sequence[str]) -> Callable[[str], bool]:
    """Return a test for texts that contain one of these, ignoring case and spacing."""
    wanted = [folded(needle) for needle in needles]

    def holds(words: str) -> bool:
        said = folded(words) if wanted else ""
        return any(needle in said for needle in wanted)

    return holds


def _words(record: Record) -> tuple[str, ...]:
    provenance = record.provenance
    return (record.content, record.description, provenance.quote, *record.learnings.values())


def _statements(stores: Stores, scope: ForgetScope) -> set[str]:
    """Return the words of the named records, in all their revisions; not those of summaries, which others said."""
    said: set[str] = set()
    for id in scope.ids:
        record = stores.records.get(id)
        if record is None:
            raise NotFound(f"no record {id!r}", hint="see `memd list`")
        if SUMMARY in record.tags:
            continue
        for entry in entries(stores, id):
            match entry.operation:
                case Added() | Updated() | Rebased() if entry.operation.record.id == id:
                    said.update(words for words in _words(entry.operation.record) if words.strip())
                case _:
                    pass
    return said


def _rests_on(change: AnyOperation, id: str) -> Iterator[Turn]:
    """Yield the turns that an operation gave a record; a retirement gives none. A summary only repeats its document,
    which stays: of its turns, those with the user's own words go."""
    match change:
        case Added() | Updated() | Rebased() if change.record.id == id:
            is_summary = SUMMARY in change.record.tags
            yield from (turn for turn in stands_on(change.record) if not is_summary or turn[0].startswith(CORRECTIONS))
        case Merged():
            yield change.evidence.span.document, change.evidence.span.turn
        case _:
            pass


def _read_journal(stores: Stores, holds: Callable[[str], bool], loss: Loss, others: list[Logged]) -> None:
    """Choose every record that ever contained the words; collect operations with turns or titles."""
    for entry in stores.journal.read():
        match entry.operation:
            case Added() | Updated() | Rebased():
                record = entry.operation.record
                if any(holds(words) for words in (*_words(record), record.key, record.value)):
                    loss.chosen.add(record.id)
            case SessionOpened() | Redacted() | Retried() | ChangeProposed() | PatchApplied() | PatchTaken():
                others.append(entry)
            case TasksJudged() | TaskRated():
                others.append(entry)
            case Distilled() if entry.operation.failed:
                others.append(entry)
            case _:
                pass


def _read_archive(stores: Stores, scope: ForgetScope, holds: Callable[[str], bool], loss: Loss) -> None:
    """Collect every capture of a forgotten turn, with all its versions, and those that repeat some of it: the calls of
    a remote model, and what an agent learnt from it."""
    repeating: list[tuple[int, Captured]] = []
    for entry in stores.archive.log.read():
        captured = decode(entry)
        if captured is None:
            continue
        if isinstance(captured.event, SentPart):
            repeating.append((entry.seq, captured))
            continue
        turn, words = (captured.document, captured.event.turn), text(captured.event)
        named = turn in loss.turns or captured.document in scope.documents
        if not (named or holds(words) or loss.names.event(captured.document, captured.event)):
            repeating += [(entry.seq, captured)] if _repeated(captured) else []
            continue
        seqs = loss.turns.setdefault(turn, [])
        before = captured.replaces
        while before and before not in seqs and (older := stores.archive.log.get(before)) is not None:
            seqs.append(before)
            version = decode(older)
            before = version.replaces if version else 0
        seqs.append(entry.seq)
        loss.texts.add(words)
        loss.learnings |= _learnings(captured)
    for seq, captured in repeating:
        if _has_lost(captured, scope, holds, loss):
            loss.turns.setdefault((captured.document, captured.event.turn), []).append(seq)
            loss.learnings |= _learnings(captured)


def _has_lost(captured: Captured, scope: ForgetScope, holds: Callable[[str], bool], loss: Loss) -> bool:
    """Whether a capture repeats a forgotten turn. Its other turns stay, so that it is no forgotten text."""
    event, document = captured.event, captured.document
    if document in scope.documents or (document, event.turn) in loss.turns or holds(text(event)):
        return True
    inside = any((document, turn) in loss.turns for turn in _repeated(captured))
    return inside or loss.names.event(document, event)


def _repeated(captured: Captured) -> Iterable[str]:
    """Return the turns of the same session that a capture repeats in its own text."""
    match captured.event:
        case SentPart(turns=turns):
            return turns
        case Reflected() as reflected:
            return reflected.learnt_from
        case _:
            return ()


def _learnings(captured: Captured) -> set[str]:
    """Return what an agent told in a reflection that it learnt (O4)."""
    statements = captured.event.statements if isinstance(captured.event, Reflected) else ()
    return {words for statement in statements for words in statement.learnings.values()}


def _without_learnings(record: Record, learnings: Container[str]) -> Record:
    left = {name: words for name, words in record.learnings.items() if words not in learnings}
    return msgspec.structs.replace(record, learnings=left)


def _read_records(stores: Stores, loss: Loss) -> None:
    """Decide which records go with the turns, and which stay on their other sources."""
    for record in stores.records.everything():
        turns = cited(record)
        lost = turns & loss.turns.keys()
        left = None
        if record.id not in loss.chosen:
            if not lost:
                continue
            stands = stands_on(record) - loss.turns.keys()
            left = rebased(stores, stores.counters.with_signal(record), loss.turns) if stands else None
            left = _without_learnings(left, loss.learnings) if left else None
        if left is None:
            loss.gone[record.id] = record
            loss.texts.update(_words(record))
        else:
            loss.rebased[record.id] = left
            loss.texts.update(set(_words(record)) - set(_words(left)))


# --- what stands in for the entries that go ----------------------------------------------------------------------
def _list_entries(stores: Stores, loss: Loss, others: Sequence[Logged]) -> None:
    seqs = {seq for id in (*loss.gone, *loss.rebased) for seq in stores.sources.history(id)}
    replacements: dict[int, AnyOperation] = {}
    for seq in seqs:
        entry = stores.journal.get(seq)
        left = _without(entry.operation, loss) if entry else None
        if entry is not None and left is not None:
            replacements[seq] = left
            if isinstance(entry.operation, Added | Updated | Rebased):
                remaining = _words(left.record) if isinstance(left, Added | Updated | Rebased) else ()
                loss.texts.update(set(_words(entry.operation.record)) - set(remaining))
    for entry in others:
        left = _beside(entry.operation, loss)
        if left is not None:
            replacements[entry.seq] = left
    _remove_names(stores, loss, replacements)
    loss.set_replacements(replacements, others)
    loss.texts.discard("")


def _remove_names(stores: Stores, loss: Loss, replacements: dict[int, AnyOperation]) -> None:
    """Remove the words of a query from every other text of the journal: titles, folders, subjects, reasons."""
    for entry in stores.journal.read():
        before = replacements.get(entry.seq, entry.operation)
        after = loss.names.without(before)
        if after != before:
            replacements[entry.seq] = after
            loss.name_count += 1
    loss.texts |= loss.names.texts


def _without(change: AnyOperation, loss: Loss) -> AnyOperation | None:
    """Return the replacement of an operation on a record, None if it may stay."""
    ids = touched(change)
    match change:
        case Added() | Updated() | Rebased():
            record = change.record
            first = record.provenance.spans[:1]
            sourceless = record.id in loss.rebased and any((s.document, s.turn) in loss.turns for s in first)
            if record.id not in loss.gone and not sourceless:
                changed = _staying(change, loss)
                return None if changed == change else changed
            retires = () if isinstance(change, Rebased) else change.retires
            remaining = tuple(
                Retirement(retirement.id, retirement.valid_to, REASON)
                for retirement in retires
                if retirement.id not in loss.gone
            )
            return Erased(ids=ids, retires=remaining, by=record.id)
        case Merged():
            span = change.evidence.span
            return Erased(ids=ids) if change.id in loss.gone or (span.document, span.turn) in loss.turns else None
        case Invalidated():
            return Erased(ids=ids) if change.id in loss.gone else None
        case _:
            return None


def _staying(change: Added | Updated | Rebased, loss: Loss) -> Added | Updated | Rebased:
    """Return an operation on a remaining record without its parts about forgotten ones."""
    record = change.record
    if record.id in loss.rebased:
        record = in_own_words(without(record, loss.turns))
    change = msgspec.structs.replace(change, record=record)
    if isinstance(change, Rebased) or not any(retirement.id in loss.gone for retirement in change.retires):
        return change
    decision = change.decision
    return msgspec.structs.replace(
        change,
        retires=tuple(retirement for retirement in change.retires if retirement.id not in loss.gone),
        decision=msgspec.structs.replace(
            decision,
            reason=REPLACED,
            steps=tuple(step for step in decision.steps if step.stage not in JUDGING),
            neighbours=tuple(neighbour for neighbour in decision.neighbours if neighbour.id not in loss.gone),
        ),
    )


def without_tasks(
    change: TasksJudged | TaskRated, turns: Collection[Turn], sessions: Collection[str]
) -> AnyOperation | None:
    """Return a judgement of tasks without those of forgotten turns, None if it may stay (O2)."""
    if isinstance(change, TaskRated):
        return Erased() if (change.document, change.turn) in turns or change.document in sessions else None
    if change.document in sessions:
        return TasksJudged(archive_seq=change.archive_seq)
    left = tuple(task for task in change.tasks if (change.document, task.turn) not in turns)
    return None if left == change.tasks else msgspec.structs.replace(change, tasks=left)


def _beside(change: AnyOperation, loss: Loss) -> AnyOperation | None:
    """Return the replacement of an operation that names turns, None if it may stay."""
    match change:
        case SessionOpened() if change.document in loss.sessions:
            return Erased()
        case Retried() if (change.document, change.turn) in loss.turns:
            return Erased()
        case Distilled() if any((failure.document, failure.turn) in loss.turns for failure in change.failed):
            remaining = tuple(
                failure for failure in change.failed if (failure.document, failure.turn) not in loss.turns
            )
            return msgspec.structs.replace(change, failed=remaining)
        case TasksJudged() | TaskRated():
            return without_tasks(change, loss.turns.keys(), loss.sessions)
        case ChangeProposed() | PatchApplied() | PatchTaken():
            steps = without_words(change.steps, loss.gone)
            return None if steps == change.steps else msgspec.structs.replace(change, steps=steps)
        case _:
            return None
