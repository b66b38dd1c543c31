"""Detects in captured answers which of the recalled records, or of those in an agent's context, they used.

No model runs: the query table encodes sentences. A record counts once a recall, and once a session while it is in its
context. A recall is dropped after `WINDOW_S` without an answer, a session after `SESSION_S` without a turn, and the
oldest go first when there are many.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import msgspec
import numpy as np

from ....protocol.event import Said
from ....protocol.instant import micros
from ....protocol.record import LIVE, Record
from ...forgetting_rules import Rules
from ...projections.records import digest
from ...projections.stores import Stores
from ..search_model import Encode
from .counting import UseCounter

WINDOW_S = 600.0
"""Seconds that memd waits for the answer to a recall."""

SESSION_S = 6 * 3600.0
"""Seconds after its last turn in which memd waits for a session's answer: an agent may work that long."""

KEPT = 64
"""Most recalls, and most sessions, that wait for an answer."""

READ = 256
"""Captures to read at a time."""

SENTENCES = 200
"""Most sentences of an answer to compare."""

_WORD = re.compile(r"[^\W_]+")
_SENTENCE = re.compile(r"[^.!?。！？\n]+")


class PendingRecall(msgspec.Struct):
    """A recall without an answer yet; `archive_seq` is the end of the archive that was read.

    `document`: the session whose context has the records, "" for a recall, which any session may answer; `used`: those
    that its answers used; `answer`: the name of what recall gave, asked under `perspective`.
    """

    query: str
    pools: frozenset[str]
    ids: set[str]
    archive_seq: int
    until: float
    document: str = ""
    used: set[str] = msgspec.field(default_factory=set[str])
    answer: str = ""
    perspective: str = ""

    def may_be_answered(self, document: str, pools: frozenset[str]) -> bool:
        """Whether an answer of a session with these pools may be one to this recall."""
        return self.document == document if self.document else self.pools <= pools


class UseDetector:
    """Matches recalls with later answers. Any thread may call it."""

    def __init__(
        self,
        stores: Stores,
        counting: UseCounter,
        rules: Callable[[], Rules],
        encode: Callable[[], Encode | None],
        monotonic: Callable[[], float],
        fed_by: Callable[[str], Sequence[str]],
        used: Callable[[str, Sequence[str]], object] = lambda answer, ids: None,
    ) -> None:
        """`encode`: returns the sentence encoder or None; `fed_by`: returns the pools of a session; `used`: is told the
        name of an answer and the records of it that a session used."""
        self._stores, self._counting, self._rules = stores, counting, rules
        self.encode, self._monotonic, self._fed_by = encode, monotonic, fed_by
        self._used = used
        self._waiting: list[PendingRecall] = []
        self._sessions: dict[str, PendingRecall] = {}
        self._uses: dict[str, dict[str, int]] = {}
        """By session the records that its answers used, with the time of the first use in microseconds."""
        self._lock, self._reading = threading.Lock(), threading.Lock()

    def recalled(
        self, query: str, pools: Sequence[str], ids: Sequence[str], answer: str = "", perspective: str = ""
    ) -> None:
        """Wait for the answer to a question that retrieved these records."""
        if ids:
            until, last = self._monotonic() + WINDOW_S, self._stores.archive.last
            pending = PendingRecall(query, frozenset(pools), set(ids), last, until)
            recall = msgspec.structs.replace(pending, answer=answer, perspective=perspective)
            with self._lock:
                self._waiting = [*self._waiting[-KEPT + 1 :], recall]

    def in_context(self, document: str, prompt: str, ids: Iterable[str]) -> None:
        """Wait for the answer of a session to a prompt, with these records in its context."""
        with self._lock:
            session = self._sessions.pop(document, None)
            if session is None:
                session = PendingRecall("", frozenset(), set(), self._stores.archive.last, 0.0, document)
            session.query, session.until = prompt, self._monotonic() + SESSION_S
            session.ids = {*session.ids, *ids} - session.used
            self._sessions[document] = session
            while len(self._sessions) > KEPT:
                del self._sessions[next(iter(self._sessions))]

    @property
    def is_waiting(self) -> bool:
        """Whether a recall or a session waits for its answer."""
        return bool(self._waiting or self._sessions)

    def heard(self) -> int:
        """Read new answers of assistants; return how many records they used. Not on the write thread. Raises
        StorageFull, Stopping."""
        with self._reading:
            return self._heard()

    def _heard(self) -> int:
        now = self._monotonic()
        with self._lock:
            self._waiting = [recall for recall in self._waiting if recall.until > now and recall.ids]
            self._sessions = {name: session for name, session in self._sessions.items() if session.until > now}
            waiting = [*self._waiting, *self._sessions.values()]
        if not waiting:
            return 0
        used: dict[int, set[str]] = {}
        last = 0
        for seq, captured in self._stores.archive.after(min(recall.archive_seq for recall in waiting), READ):
            last = seq
            event = captured.event
            if isinstance(event, Said) and event.role == "assistant" and captured.live:
                pools = frozenset(self._fed_by(captured.document))
                for number, recall in enumerate(waiting):
                    if seq > recall.archive_seq and recall.may_be_answered(captured.document, pools):
                        left = recall.ids - used.get(number, set())
                        fresh = self.used_in(event.text, recall.query, left)
                        used.setdefault(number, set()).update(fresh)
                        self._note(captured.document, fresh, micros(event.at))
        ids = self._counted(waiting, used)
        with self._lock:
            for number, recall in enumerate(waiting):
                recall.archive_seq = max(recall.archive_seq, last)
                recall.used |= used.get(number, set())
                recall.ids -= recall.used
        return ids

    def _note(self, document: str, ids: Iterable[str], at: int) -> None:
        """Note that a session used these records, for the outcome of its task."""
        with self._lock:
            uses = self._uses.setdefault(document, {})
            for id in ids:
                uses.setdefault(id, at)
            while len(self._uses) > KEPT:
                del self._uses[next(iter(self._uses))]

    def take_uses(self, document: str) -> dict[str, int]:
        """Return the records that a session's answers used, with the time of the first use in microseconds, once."""
        with self._lock:
            return self._uses.pop(document, {})

    def _counted(self, waiting: Sequence[PendingRecall], used: Mapping[int, set[str]]) -> int:
        """Count each used record once, under the perspective of its recall; return how many there are. Raises what a
        failed write raises; then all is read again."""
        perspectives: dict[str, str] = {}
        for number, ids in used.items():
            for id in ids:
                perspectives[id] = perspectives.get(id) or waiting[number].perspective
        for perspective in sorted(set(perspectives.values())):
            self._counting.used(
                sorted(id for id, of in perspectives.items() if of == perspective), perspective
            ).result()
        for number, ids in used.items():
            if ids and waiting[number].answer:
                self._used(waiting[number].answer, sorted(ids))
        return len(perspectives)

    def used_in(self, answer: str, query: str, ids: set[str]) -> set[str]:
        """Return which of these records an answer used: it contains a rare tag or a similar sentence."""
        records = [record for record in self._stores.records.many(ids).values() if record.status in LIVE]
        said, asked = _words(answer), _words(query)
        used = {
            record.id for record in records if any(self._is_rare(tag, record) for tag in _shown(record, said, asked))
        }
        left = [record for record in records if record.id not in used]
        return used | self._alike(answer, left)

    def _is_rare(self, tag: str, record: Record) -> bool:
        """Return whether at most the configured share of the pool has a tag; in a small pool this record alone."""
        counts = self._stores.records.tally().get(record.pool, {})
        most = max(1, int(sum(counts.get(status, 0) for status in LIVE) * self._rules().rare_tag))
        return len(self._stores.keywords.search(tag, [record.pool], most + 1)[0]) <= most

    def _alike(self, answer: str, records: Sequence[Record]) -> set[str]:
        encode = self.encode()
        if encode is None or not records:
            return set()
        places, vectors = self._stores.vector_store.get([digest(record.description) for record in records])
        sentences = [
            sentence
            for sentence in _SENTENCE.findall(answer)[:SENTENCES]
            if len(sentence.split()) > 2 or len(sentence) > 20
        ]
        if not sentences or not len(places):
            return set()
        said = np.stack([encode(sentence) for sentence in sentences])
        best = (vectors.astype(np.float32) @ said.T).max(axis=1)
        same = self._rules().same
        return {records[place].id for place, cosine in zip(places, best, strict=True) if cosine >= same}


def _words(text: str) -> str:
    return f" {' '.join(_WORD.findall(text.casefold()))} "


def _shown(record: Record, said: str, asked: str) -> Iterator[str]:
    """Yield tags that the answer contains and the question does not; the first tag is the type."""
    for tag in record.tags[1:]:
        word = _words(tag)
        if len(word) > 4 and word in said and word not in asked:
            yield tag
