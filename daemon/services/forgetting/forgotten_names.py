"""The words of a forgotten query outside of captured text: in names, folders, titles, subjects and reasons (T10).

Invariants: the walk follows the types of the operations, so a new field is covered; ids, times, pools and closed lists
are memd's own and stay. A short query must be a whole word of a session's or turn's name, because such names are often
random characters, of which any part may equal a short word.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import msgspec

from ....protocol.event import AnyEvent, text
from ....protocol.message_texts import rewritten, texts_of
from ....protocol.operation import (
    AliasAdded,
    AnyOperation,
    CourseAsked,
    CourseClosed,
    CourseOpened,
    Erased,
    Granted,
    Hidden,
    PoolOpened,
    Redacted,
    Revoked,
    SessionClosed,
    SessionResumed,
    TaskRated,
    TasksJudged,
    Unhidden,
)
from ....protocol.operation import Turns as Tombstone
from ....protocol.record import Evidence, Provenance, Record, Review, Signal, Span
from ...projections.forgotten import turn_key
from ...projections.records import digest
from ..provenance_rebase import Turn
from ..statements import folded

DISTINCT = 8
"""Fewest characters of a query that may be any part of a name."""

OWN = frozenset(
    "action after at before by_chance entries event expires_at grant grants host id ids kind language layer outcome "
    "pool pools project quarantined rejected said_at source stage status unkeyed valid_from valid_to".split()
)
"""Fields with words of memd or of a program, never of a person; `source` repeats a document."""

DOCUMENTS = frozenset({"document", "documents", "sources"})
PLACES = frozenset({"names", "root_commit", "roots"})
"""Fields with the names of repositories and folders, of which some are hashes."""

_ID = re.compile(r"[0-9a-hjkmnp-tv-z]{26}")
_HASH = re.compile(r"[0-9a-f]{16,}")
_OF_A_DOCUMENT = SessionClosed | SessionResumed | CourseOpened | CourseAsked | CourseClosed
"""Operations that are nothing without the name of their document."""

_OF_A_RECORD = frozenset[type]({Evidence, Provenance, Record, Review, Signal, Span})


class NameSearch:
    """Finds the words of a query in names and other short texts, ignoring case and spacing."""

    def __init__(self, query: str) -> None:
        """`query`: "" finds nothing."""
        wanted = folded(query)
        whole = rf"(?<![^\W_]){re.escape(wanted)}(?![^\W_])"
        self._wanted, self._name = wanted, re.compile(re.escape(wanted) if len(wanted) >= DISTINCT else whole)
        self.texts: set[str] = set()
        """The texts that `without` removed."""

    def holds(self, words: str) -> bool:
        """Whether a text has the words."""
        return bool(self._wanted) and self._wanted in folded(words)

    def names(self, name: str) -> bool:
        """Whether the name of a session or turn has the words."""
        return bool(self._wanted) and self._name.search(folded(name)) is not None

    def document(self, document: str) -> bool:
        """Whether a document's session has the words in its name; the name of a program does not count."""
        return self.names(document.partition(":")[2])

    def turn(self, turn: Turn) -> bool:
        """Whether a turn's name, or that of its session, has the words."""
        return self.document(turn[0]) or self.names(turn[1])

    def event(self, document: str, event: AnyEvent) -> bool:
        """Whether an event has the words in any field besides its text; note these fields."""
        if not self._wanted:
            return False
        fields = (words for name, words in texts_of(event) if name not in ("at", "record", "turn"))
        held = {words for words in fields if self.holds(words)}
        self.texts |= held - {text(event)}
        return bool(held) or self.turn((document, event.turn))

    def without(self, change: AnyOperation) -> AnyOperation:
        """Return an operation without the texts that have the words; the words of its record stay."""
        if not self._wanted:
            return change
        if isinstance(change, _OF_A_DOCUMENT) and self.document(change.document):
            return Erased()
        if isinstance(change, Redacted):
            return self._without_names(change)
        return _without_empty(rewritten(change, self._change))

    def marked(self, turns: Iterable[Turn], sessions: Iterable[str]) -> tuple[bytes, ...]:
        """Return the marks of the turns and sessions whose own names are forgotten."""
        marks = {turn_key(*turn) for turn in turns if self.turn(turn)}
        return tuple(sorted(marks | {digest(document) for document in sessions if self.document(document)}))

    def _change(self, owner: type, name: str, words: str) -> str:
        if not words or name in OWN or owner in _OF_A_RECORD or _ID.fullmatch(words) or not self._field(name, words):
            return words
        self.texts.add(words)
        return ""

    def _field(self, name: str, words: str) -> bool:
        if name in DOCUMENTS:
            return self.document(words)
        if name in ("turn", "session"):
            return self.names(words)
        return self.holds(_HASH.sub(" ", words) if name in PLACES else words) or self.names(words)

    def _without_names(self, change: Redacted) -> Redacted:
        """Return an older redaction whose tombstones name no forgotten name."""
        turns = [(tombstone.document, turn) for tombstone in change.turns for turn in tombstone.turns]
        marks = self.marked(turns, change.sessions)
        if not marks:
            return change
        left = [turn for turn in turns if not self.turn(turn)]
        sessions = tuple(document for document in change.sessions if not self.document(document))
        return msgspec.structs.replace(
            change, turns=tombstones(left), sessions=sessions, marks=tuple(sorted({*change.marks, *marks}))
        )


def tombstones(turns: Iterable[Turn]) -> tuple[Tombstone, ...]:
    """Return the tombstones of turns, one of each document."""
    by_document: dict[str, list[str]] = {}
    for document, turn in turns:
        by_document.setdefault(document, []).append(turn)
    return tuple(Tombstone(document, tuple(names)) for document, names in by_document.items())


def _without_empty(change: AnyOperation) -> AnyOperation:
    """Remove the empty names that the removal left in lists."""
    if isinstance(change, AliasAdded) and "" in change.names:
        names = tuple(filter(None, change.names))
        return msgspec.structs.replace(change, names=names) if names else Erased()
    if isinstance(change, PoolOpened) and "" in (*change.roots, *change.perspectives):
        roots, perspectives = tuple(filter(None, change.roots)), tuple(filter(None, change.perspectives))
        return msgspec.structs.replace(change, roots=roots, perspectives=perspectives)
    if isinstance(change, TasksJudged):
        tasks = tuple(task for task in change.tasks if change.document and task.agent and task.turn)
        return msgspec.structs.replace(change, tasks=tasks)
    if isinstance(change, TaskRated) and not (change.document and change.agent and change.turn):
        return Erased()
    if isinstance(change, Hidden | Unhidden) and "" in change.documents:
        return msgspec.structs.replace(change, documents=tuple(filter(None, change.documents)))
    if isinstance(change, Granted | Revoked) and "" in change.sources:
        return msgspec.structs.replace(change, sources=tuple(filter(None, change.sources)))
    return change
