"""DEEP: an answer with what lies around it: transcript, history of each belief, the edges near it (Q3, Q12, R8).

Comes in: WARM's answer, with the turns that were found beside it. Goes out: the same hits, each with the turns around
its spans and with every state of the belief on both timelines, and the edges one or two hops away. Invariants: read in
the slow lane; nothing here is ranked or left out of WARM's answer; all of it together holds the request's budget; a
forgotten turn is in no archive, one whose records are all hidden is left out, and so is a transcript of another project
than the one that is asked.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import msgspec

from ....protocol.event import Captured, text, trust
from ....protocol.recall import Belief, Hit, Line, Linked, Recall, Recalled
from ....protocol.record import LIVE, QUOTE_LIMIT, Record
from ...projections.graph import edge
from ...projections.lines import HUBS, ConversationOrder
from ...projections.record_reducer import apply, reason
from ...projections.records import Records
from ...projections.sources import SourceTable
from ...projections.timeline import View
from ...storage.archive import Archive
from ...storage.journal import JournalLog
from ..outgoing_screen import flags_in
from ..service import Permits
from ..statements import speaker
from ..token_estimate import tokens
from .question import things
from .selection import cost

HITS, EDGES = 0.5, 0.15
"""Shares of the budget of tokens: at most so much for hits, and for edges; the rest is for what is around the hits."""

LOOK = 4
"""Captures before and after a turn among which the nearest with words are taken: between two lie tool calls."""

STATES, CHAIN = 12, 16
"""States of a belief, the newest, and records that replaced one another, at most."""


class DeepSources(NamedTuple):
    """The stores that an answer in depth is read from."""

    records: Records
    sources: SourceTable
    archive: Archive
    journal: JournalLog
    lines: ConversationOrder


class DeepCaller(NamedTuple):
    """Who asks: the pools in reach, those whose sessions are heard there, what may be seen, at which time."""

    scope: Sequence[str]
    heard: Sequence[str]
    permits: Permits | None = None
    view: View | None = None


def narrowed(request: Recall) -> Recall:
    """What WARM is asked, so that there is room for the rest."""
    return msgspec.structs.replace(request, budget_tokens=max(1, int(request.budget_tokens * HITS)))


class DeepRecall:
    """Adds depth to answers. The slow lane's thread asks."""

    def __init__(self, kept: DeepSources) -> None:
        self._records, self._sources, self._archive, self._journal, self._lines = kept

    def around(self, answer: Recalled, request: Recall, asker: DeepCaller) -> Recalled:
        """The answer with edges, transcripts and histories, the best hit's first, as far as the budget reaches."""
        spent = answer.tokens
        linked: list[Linked] = []
        for each in self._linked(answer, request, asker):
            price = cost(each.record)
            if spent + price <= answer.tokens + request.budget_tokens * EDGES:
                linked.append(each)
                spent += price
        hits: list[Hit] = []
        seen: set[tuple[str, str]] = set()
        for hit in answer.hits:
            history = self.history(hit.record, asker)
            price = sum(tokens(state.text) for state in history)
            if spent + price > request.budget_tokens:
                history, price = (), 0
            lines, more = self._fitting(self._passages(hit.record, asker), seen, request.budget_tokens - spent - price)
            spent += price + more
            hits.append(msgspec.structs.replace(hit, lines=lines, history=history))
        turns = list(answer.turns)
        for number, turn in enumerate(turns):
            beside = (line for line in self._passage(turn.document, turn.turn, 0, 0, asker) if not line.cited)
            lines, more = self._fitting(beside, seen, request.budget_tokens - spent)
            spent += more
            turns[number] = msgspec.structs.replace(turn, lines=lines)
        return msgspec.structs.replace(answer, hits=tuple(hits), turns=tuple(turns), linked=tuple(linked), tokens=spent)

    @staticmethod
    def _fitting(lines: Iterable[Line], seen: set[tuple[str, str]], room: int) -> tuple[tuple[Line, ...], int]:
        """Those lines that no hit before has shown, while there is room; what they cost."""
        kept: list[Line] = []
        spent = 0
        for line in lines:
            price = tokens(line.text)
            if (line.document, line.turn) not in seen and spent + price <= room:
                seen.add((line.document, line.turn))
                kept.append(line)
                spent += price
        return tuple(kept), spent

    # --- the transcript ----------------------------------------------------------------------------------------------
    def _passages(self, record: Record, asker: DeepCaller) -> Iterator[Line]:
        for span in record.provenance.spans:
            yield from self._passage(span.document, span.turn, span.start, span.end, asker)

    def _passage(self, document: str, turn: str, start: int, end: int, asker: DeepCaller) -> Iterator[Line]:
        """The turn before, the turn, the turn after, of a session that is heard in this scope."""
        if not self._sources.feeds(document, asker.heard):
            return
        captures = [each for _, each in self._archive.around(document, turn, LOOK, LOOK) if self._may_show(each)]
        place = next((number for number, each in enumerate(captures) if each.event.turn == turn), None)
        if place is None:
            return
        for number in range(max(0, place - 1), min(len(captures), place + 2)):
            words = text(captures[number].event)
            if number == place:
                begin, stop = _window(words, start, end)
            elif number < place:
                begin, stop = _window(words, len(words), len(words))
            else:
                begin, stop = _window(words, 0, 0)
            yield _line(captures[number], words, begin, stop, cited=number == place)

    def _may_show(self, captured: Captured) -> bool:
        """Whether somebody said something there that is not hidden and does not speak to an agent (W5)."""
        words = text(captured.event)
        if not words or (trust(captured.event) != "user" and flags_in(words)):
            return False
        ids = self._records.citing(captured.document, captured.event.turn)
        return not ids or any(each.status != "hidden" for each in self._records.many(ids).values())

    # --- the history -------------------------------------------------------------------------------------------------
    def history(self, record: Record, asker: DeepCaller) -> tuple[Belief, ...]:
        """Every state of a belief: of the record, of those it replaced and of those that replaced it, by world time;
        nothing where it never changed."""
        states = [state for each in self._chain(record, asker) for state in self._states(each)]
        if len(states) < 2 and not any(state.believed_until for state in states):
            return ()
        states.sort(key=lambda state: (state.believed_from, state.id))
        return tuple(states[-STATES:])

    def _chain(self, record: Record, asker: DeepCaller) -> list[Record]:
        found = {record.id: record}
        ahead = [*record.supersedes, record.superseded_by]
        while ahead and len(found) < CHAIN:
            each = self._records.get(id) if (id := ahead.pop(0)) and id not in found else None
            if each is None or not self._is_seen(each, asker):
                continue
            found[each.id] = each
            ahead += [*each.supersedes, each.superseded_by]
        return list(found.values())

    @staticmethod
    def _is_seen(record: Record, asker: DeepCaller) -> bool:
        return (
            record.status != "hidden"
            and record.pool in asker.scope
            and (asker.permits is None or asker.permits(record))
        )

    def _states(self, record: Record) -> list[Belief]:
        """What a record said while it was believed: a new state for new words or times, or when it came back."""
        states: list[Belief] = []
        then: Record | None = None
        for seq in self._sources.history(record.id):
            entry = self._journal.get(seq)
            if entry is None:
                continue
            before, then = then, apply(then, record.id, entry)
            state = _state(then, entry.at) if then is not None and then.status in LIVE else None
            going_on = states[-1] if states and not states[-1].believed_until else None
            if going_on is not None and (state is None or not _same(going_on, state)):
                until = then.valid_to if then is not None and state is None else going_on.valid_to
                states[-1] = msgspec.structs.replace(
                    going_on, believed_until=entry.at, valid_to=until, ended=reason(entry, record.id)
                )
                going_on = None
            if state is not None and going_on is None:
                states.append(state)
            if state is None and before is None and then is not None and then.status == "retired":  # as it was imported
                states.append(
                    msgspec.structs.replace(_state(then, then.learned_at), believed_until=then.retired_at or entry.at)
                )
        return states

    # --- the graph ---------------------------------------------------------------------------------------------------
    def _linked(self, answer: Recalled, request: Recall, asker: DeepCaller) -> list[Linked]:
        """The edges near what was asked and found, the nearest and weightiest first."""
        named = dict.fromkeys(things(request.query))
        for hit in answer.hits:
            named.update(dict.fromkeys((*_ends(hit.record), *things(hit.record.description))))
        near = {thing for thing in named if thing not in HUBS}
        weights = self._lines.linked(asker.scope, near)
        shown = {hit.record.id for hit in (*answer.hits, *answer.principles)}
        ids = [id for id in weights if id not in shown]
        records = self._records.many(ids) if asker.view is None else asker.view.many(ids)
        kept = [each for each in records.values() if self._is_seen(each, asker) and each.status in LIVE]
        first = {end for each in kept if weights[each.id] == 1.0 for end in _ends(each)} - HUBS
        linked = [
            Linked(record=each, hops=1, via=_via(each, near))
            if weights[each.id] == 1.0
            else Linked(record=each, hops=2, via=_via(each, first))
            for each in kept
        ]
        return sorted(linked, key=lambda each: (each.hops, -each.record.signal.importance, each.record.id))


def _ends(record: Record) -> tuple[str, ...]:
    found = edge(record)
    return () if found is None else (found.subject.casefold(), found.object.casefold())


def _via(record: Record, things: Iterable[str]) -> str:
    """The end of an edge by which it was reached."""
    among = frozenset(things)
    return next((end for end in _ends(record) if end in among), "")


def _state(record: Record, at: int) -> Belief:
    return Belief(
        id=record.id,
        text=record.content,
        valid_from=record.valid_from,
        valid_to=record.valid_to,
        believed_from=at,
    )


def _same(one: Belief, other: Belief) -> bool:
    return (one.text, one.valid_from, one.valid_to) == (other.text, other.valid_from, other.valid_to)


def _window(words: str, start: int, end: int) -> tuple[int, int]:
    """At most `QUOTE_LIMIT` characters around `start:end`, from blank to blank: half a word may be half a secret."""
    if len(words) <= QUOTE_LIMIT:
        return 0, len(words)
    spare = max(0, QUOTE_LIMIT - (end - start)) // 2
    begin = max(0, min(start - spare, len(words) - QUOTE_LIMIT))
    stop = min(len(words), begin + QUOTE_LIMIT)
    if begin and (blank := words.find(" ", begin, stop)) >= 0:
        begin = blank + 1
    if stop < len(words) and (blank := words.rfind(" ", begin, stop)) > begin:
        stop = blank
    return begin, stop


def _line(captured: Captured, words: str, start: int, stop: int, *, cited: bool) -> Line:
    return Line(
        turn=captured.event.turn,
        at=captured.event.at,
        who=speaker(captured),
        text=words[start:stop],
        cited=cited,
        document=captured.document,
        start=start,
    )
