"""Search in the words of archived turns, beside the records, while there are few sessions (Q4).

Invariants: only sessions that feed the pools in scope are searched; a turn that a given record rests on is not shown
twice; a turn whose records are all retired or hidden is left out, so that its text does not bring them back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from ....protocol.event import Captured, Said, text, trust
from ....protocol.instant import micros
from ....protocol.recall import Heard, Hit, Recall, Recalled
from ....protocol.record import LIVE, QUOTE_LIMIT
from ...projections.stores import Stores
from ...projections.tokens import TermTokens
from ...storage.archive import Archive, decode
from ..pass_limits import may_read
from ..service import Caller
from ..token_estimate import tokens
from .question import parse_question
from .warm import QUARANTINE

if TYPE_CHECKING:
    from ....stages.turn_text import Passage

CANDIDATES = 40
FLOOR = 0.13
"""Least share of the best possible score: two rare words pass, one common word does not."""


AGENT_TURNS = 24
"""Turns before a user's turn in which its words are searched."""

FEWEST_REPEATED = 80
"""Characters of a user's turn that may repeat what the agent wrote."""


class TurnPart(NamedTuple):
    """Characters `start:end` of a turn, with the flag of a part that the user did not write."""

    start: int
    end: int
    flags: tuple[str, ...] = ()

    def of(self, words: str) -> str:
        return words[self.start : self.end]


def foreign_parts(archive: Archive, captured: Captured) -> tuple[Passage, ...]:
    """Return the passages of a user's turn that somebody else wrote; none of any other turn."""
    from ....stages.speakers import foreign_passages  # late: its expressions take long to compile at the start

    event = captured.event
    if not isinstance(event, Said) or event.role != "user":
        return ()
    before = archive.around(captured.document, event.turn, AGENT_TURNS, 0) if len(event.text) >= FEWEST_REPEATED else ()
    events = (earlier.event for _, earlier in before)
    agent = [said.text for said in events if isinstance(said, Said) and said.role == "assistant"]
    return foreign_passages(event.text, agent)


def _is_reported(words: str) -> bool:
    from ....stages.reports import is_reported  # late, as above

    return is_reported(words)


class TurnSearch:
    """Search over archived turns. Not for two threads at once."""

    def __init__(self, stores: Stores, below_sessions: Callable[[], int]) -> None:
        self._records, self._sources = stores.records, stores.sources
        self._archive, self._turns = stores.archive, stores.turns
        self._below_sessions = below_sessions
        self._tokens = TermTokens()

    def search(
        self,
        request: Recall,
        now: int,
        scope: Sequence[str],
        hits: Sequence[Hit],
        caller: Caller,
    ) -> tuple[Heard, ...]:
        """Return the turns that answer a request, best first, of those that the caller may see (A1).

        Empty with many sessions. If the question names a time and turns of that time match, only these are returned.
        """
        most = self._below_sessions()
        documents = self._sources.documents(scope, most)
        if caller.hears is not None and len(documents) < most:
            documents = list(filter(caller.hears, documents))
        if not documents or len(documents) >= most:
            return ()
        question, limit = parse_question(request, now), max(1, request.limit)
        query, period = question.searched.words, question.period
        past = period if period is not None and period.past else None
        most = CANDIDATES if past else limit
        scores, possible = self._turns.find(query, CANDIDATES, documents=documents)
        shown = {(span.document, span.turn) for hit in hits for span in hit.record.provenance.spans}
        terms = set(self._tokens.query(query))
        turns: list[Heard] = []
        for seq, score in scores:
            share = score / possible if possible else 0.0
            if share < FLOOR or len(turns) == most:
                break
            entry = self._archive.log.get(seq)
            captured = decode(entry) if entry else None
            if captured is None or (captured.document, captured.event.turn) in shown or self._masked(captured):
                continue
            if not may_read(caller, captured.document, captured.event.turn):
                continue
            turns.append(self._turn(captured, terms, min(1.0, share)))
        if past:
            turns = [turn for turn in turns if past.may_tell(micros(turn.at))] or turns
        return tuple(turns[:limit])

    def _masked(self, captured: Captured) -> bool:
        ids = self._records.citing(captured.document, captured.event.turn)
        return bool(ids) and not any(record.status in LIVE for record in self._records.many(ids).values())

    def _turn(self, captured: Captured, terms: set[str], score: float) -> Heard:
        words, source = text(captured.event), trust(captured.event)
        part = max(
            self._parts(captured), key=lambda part: len(terms.intersection(self._tokens.document(part.of(words))))
        )
        start, end = (part.start + place for place in self._passage(part.of(words), terms))
        flags = part.flags or (("reported",) if source == "user" and _is_reported(words[start:end]) else ())
        source = "document" if flags else source
        return Heard(
            document=captured.document,
            turn=captured.event.turn,
            at=captured.event.at,
            trust=source,
            quote=words[start:end],
            start=start,
            end=end,
            score=round(score if trust(captured.event) == "user" else score * QUARANTINE, 4),
            flags=flags,
        )

    def _parts(self, captured: Captured) -> Iterator[TurnPart]:
        """Yield the parts of a turn by writer: only the user's turns have several."""
        words, at = text(captured.event), 0
        for start, end, writer in foreign_parts(self._archive, captured):
            if words[at:start].strip():
                yield TurnPart(at, start)
            yield TurnPart(start, end, (writer,))
            at = end
        if words[at:].strip() or not at:
            yield TurnPart(at, len(words))

    def _passage(self, words: str, terms: set[str]) -> tuple[int, int]:
        """Return the part of a long turn with most of the question's words, from the start of a line."""
        if len(words) <= QUOTE_LIMIT:
            return 0, len(words)
        best, start = (-1, 0), 0
        for line in words.splitlines(keepends=True):
            window = words[start : start + QUOTE_LIMIT]
            best = max(best, (len(terms.intersection(self._tokens.document(window))), -start))
            start += len(line)
        start, end = -best[1], min(len(words), -best[1] + QUOTE_LIMIT)
        if end < len(words) and (space := words.rfind(" ", start + 1, end)) > 0:
            end = space  # half a word may be half a secret, which no rule detects
        return start, end


def with_turns(answer: Recalled, turns: Sequence[Heard], request: Recall) -> Recalled:
    """Return the best hits and turns together, within the request's limit and token budget."""
    ranked = sorted((*answer.hits, *turns), key=lambda result: -result.score)[: max(1, request.limit)]
    hits: list[Hit] = []
    chosen: list[Heard] = []
    spent = 0
    for result in ranked:
        is_turn = isinstance(result, Heard)
        words = result.quote if is_turn else result.record.description + result.record.provenance.quote
        spent += tokens(words)
        if (hits or chosen) and spent > request.budget_tokens:
            break
        if isinstance(result, Heard):
            chosen.append(result)
        else:
            hits.append(result)
    return msgspec.structs.replace(
        answer,
        hits=tuple(hits),
        turns=tuple(chosen),
        abstained=False,
        reason="",
        nearest=None,
        filtered=answer.filtered + len(answer.hits) - len(hits),
        tokens=spent,
    )
