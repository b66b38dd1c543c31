"""Deep recall: adds transcripts, the history of each record and nearby edges to a warm answer (Q3, Q12, R8).

Invariants: nothing is ranked or removed here; the whole answer stays within the request's budget; a turn is left out if
it is forgotten, if all its records are hidden, or if its session does not feed the pools in scope.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import NamedTuple

import msgspec

from ....protocol.event import Captured, Returned, SentPart, text, trust
from ....protocol.recall import Belief, Hit, Line, Linked, Recall, Recalled
from ....protocol.record import LIVE, QUOTE_LIMIT, Record
from ...projections.graph import edge
from ...projections.lines import HUBS
from ...projections.record_reducer import apply, reason
from ...projections.stores import Stores
from ...projections.timeline import View
from ..outgoing_screen import flags_in
from ..pass_limits import may_read
from ..service import Caller
from ..statements import speaker
from ..token_estimate import tokens
from .question import things
from .selection import cost
from .turn_search import foreign_parts

HITS, EDGES = 0.5, 0.15
"""Shares of the token budget: most for hits, and most for edges; transcripts and histories get the rest."""

NEIGHBOURS = 4
"""Captures before and after a turn that are searched for the nearest with words; tool calls lie between them."""

STATES, CHAIN = 12, 16
"""Most states of a history, the newest, and most records in a chain of replacements."""


class DeepCaller(NamedTuple):
    """The asker, the pools whose sessions may be shown, and the time."""

    caller: Caller
    feeding: Sequence[str]
    view: View | None = None

    def permits(self, record: Record) -> bool:
        """Whether the asker may see a record, in its present or in a past state."""
        return self.caller.permits is None or self.caller.permits(record)


def narrowed(request: Recall) -> Recall:
    """Return the request for the warm recall, with a smaller budget."""
    return msgspec.structs.replace(request, budget_tokens=max(1, int(request.budget_tokens * HITS)))


class DeepRecall:
    """Adds depth to answers, on the slow lane's thread."""

    def __init__(self, stores: Stores) -> None:
        self._records, self._sources, self._archive = stores.records, stores.sources, stores.archive
        self._journal, self._lines = stores.journal, stores.lines

    def around(self, answer: Recalled, request: Recall, asker: DeepCaller) -> Recalled:
        """Add edges, then histories and transcripts from the best hit on, within the budget."""
        spent = answer.tokens
        linked: list[Linked] = []
        for link in self._linked(answer, request, asker):
            price = cost(link.record)
            if spent + price <= answer.tokens + request.budget_tokens * EDGES:
                linked.append(link)
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
    def _fitting(lines: Iterable[Line], seen: set[tuple[str, str]], budget: int) -> tuple[tuple[Line, ...], int]:
        """Return the lines that no earlier hit has shown and that fit the budget, and their cost."""
        fitting: list[Line] = []
        spent = 0
        for line in lines:
            price = tokens(line.text)
            if (line.document, line.turn) not in seen and spent + price <= budget:
                seen.add((line.document, line.turn))
                fitting.append(line)
                spent += price
        return tuple(fitting), spent

    # --- the transcript ----------------------------------------------------------------------------------------------
    def _passages(self, record: Record, asker: DeepCaller) -> Iterator[Line]:
        for span in record.provenance.spans:
            yield from self._passage(span.document, span.turn, span.start, span.end, asker)

    def _passage(self, document: str, turn: str, start: int, end: int, asker: DeepCaller) -> Iterator[Line]:
        """Yield the turn with its neighbours, if its session feeds the pools in scope."""
        if not self._sources.feeds(document, asker.feeding):
            return
        around = self._archive.around(document, turn, NEIGHBOURS, NEIGHBOURS)
        captures = [captured for _, captured in around if self._may_show(captured, asker)]
        place = next((number for number, captured in enumerate(captures) if captured.event.turn == turn), None)
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
            line = _line(captures[number], words, begin, stop, cited=number == place)
            parts = foreign_parts(self._archive, captures[number])
            is_mixed = any(part.start < stop and begin < part.end for part in parts)
            yield msgspec.structs.replace(line, who=f"{line.who}, pasting") if is_mixed else line

    def _may_show(self, captured: Captured, asker: DeepCaller) -> bool:
        """Whether a turn has words that the asker may see, that are not hidden, and do not instruct an agent (W5)."""
        words = text(captured.event)
        if (
            not words
            or isinstance(captured.event, Returned | SentPart)
            or not may_read(asker.caller, captured.document, captured.event.turn)
        ):
            return False
        material = [words] if trust(captured.event) != "user" else []
        material += (words[start:end] for start, end, _ in foreign_parts(self._archive, captured))
        if any(map(flags_in, material)):
            return False
        ids = self._records.citing(captured.document, captured.event.turn)
        return not ids or any(record.status != "hidden" for record in self._records.many(ids).values())

    # --- the history -------------------------------------------------------------------------------------------------
    def history(self, record: Record, asker: DeepCaller) -> tuple[Belief, ...]:
        """Return the states of a record, of its predecessors and successors, by time; empty if nothing changed."""
        states = [state for linked in self._chain(record, asker) for state in self._states(linked, asker)]
        if len(states) < 2 and not any(state.believed_until for state in states):
            return ()
        states.sort(key=lambda state: (state.believed_from, state.id))
        return tuple(states[-STATES:])

    def _chain(self, record: Record, asker: DeepCaller) -> list[Record]:
        chain = {record.id: record}
        ahead = [*record.supersedes, record.superseded_by]
        while ahead and len(chain) < CHAIN:
            other = self._records.get(id) if (id := ahead.pop(0)) and id not in chain else None
            if other is not None and self._is_visible(other, asker):
                chain[other.id] = other
                ahead += [*other.supersedes, other.superseded_by]
        return list(chain.values())

    @staticmethod
    def _is_visible(record: Record, asker: DeepCaller) -> bool:
        return record.status != "hidden" and record.pool in asker.caller.scope and asker.permits(record)

    def _states(self, record: Record, asker: DeepCaller) -> list[Belief]:
        """Return the states of a record while it was live: a new one for new words or times, or after a gap.

        A state that the asker could not have seen then, because the record was in another pool, is a gap.
        """
        states: list[Belief] = []
        after: Record | None = None
        for seq in self._sources.history(record.id):
            entry = self._journal.get(seq)
            if entry is None:
                continue
            before, after = after, apply(after, record.id, entry)
            now = after if after is not None and asker.permits(after) else None
            state = _state(now, entry.at) if now is not None and now.status in LIVE else None
            current = states[-1] if states and not states[-1].believed_until else None
            if current is not None and (state is None or not _same(current, state)):
                until = now.valid_to if now is not None and state is None else current.valid_to
                why = reason(entry, record.id) if now is not None else ""
                states[-1] = msgspec.structs.replace(current, believed_until=entry.at, valid_to=until, ended=why)
                current = None
            if state is not None and current is None:
                states.append(state)
            if state is None and before is None and now is not None and now.status == "retired":  # imported as such
                imported = _state(now, now.learned_at)
                states.append(msgspec.structs.replace(imported, believed_until=now.retired_at or entry.at))
        return states

    # --- the graph ---------------------------------------------------------------------------------------------------
    def _linked(self, answer: Recalled, request: Recall, asker: DeepCaller) -> list[Linked]:
        """Return the edges near the question and the hits, the nearest and most important first."""
        named = dict.fromkeys(things(request.query))
        for hit in answer.hits:
            named.update(dict.fromkeys((*_ends(hit.record), *things(hit.record.description))))
        near = {thing for thing in named if thing not in HUBS}
        weights = self._lines.linked(asker.caller.scope, near)
        shown = {hit.record.id for hit in (*answer.hits, *answer.principles)}
        ids = [id for id in weights if id not in shown]
        records = self._records.many(ids) if asker.view is None else asker.view.many(ids)
        edges = [record for record in records.values() if self._is_visible(record, asker) and record.status in LIVE]
        first = {end for record in edges if weights[record.id] == 1.0 for end in _ends(record)} - HUBS
        linked = [
            Linked(record=record, hops=1, via=_via(record, near))
            if weights[record.id] == 1.0
            else Linked(record=record, hops=2, via=_via(record, first))
            for record in edges
        ]
        linked += self._taught_beside(answer, asker, shown | records.keys())
        return sorted(linked, key=lambda link: (link.hops, -link.record.signal.importance, link.record.id))

    def _taught_beside(self, answer: Recalled, asker: DeepCaller, shown: Collection[str]) -> Iterator[Linked]:
        """Yield the records that the learnings of the hits relate to, each once (O4)."""
        via = {id: hit.record.id for hit in reversed(answer.hits) for id in hit.record.relates_to if id not in shown}
        records = self._records.many(via) if asker.view is None else asker.view.many(via)
        for id, record in records.items():
            if self._is_visible(record, asker) and record.status in LIVE:
                yield Linked(record=record, hops=1, via=via[id][:8])


def _ends(record: Record) -> tuple[str, ...]:
    relation = edge(record)
    return () if relation is None else (relation.subject.casefold(), relation.object.casefold())


def _via(record: Record, things: set[str]) -> str:
    """Return the end of an edge by which it was reached."""
    return next((end for end in _ends(record) if end in things), "")


def _state(record: Record, at: int) -> Belief:
    return Belief(
        id=record.id,
        text=record.content,
        valid_from=record.valid_from,
        valid_to=record.valid_to,
        believed_from=at,
    )


def _same(state: Belief, other: Belief) -> bool:
    return (state.text, state.valid_from, state.valid_to) == (other.text, other.valid_from, other.valid_to)


def _window(words: str, start: int, end: int) -> tuple[int, int]:
    """Return at most `QUOTE_LIMIT` characters around `start:end`, in whole words: half a word may be half a secret."""
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
