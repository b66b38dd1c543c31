"""Search in the words of archived turns, beside the records, while there are few sessions (Q4).

Invariants: only sessions that feed the pools in scope are searched; a turn that a given record rests on is not shown
twice; a turn of which nothing that a record says still holds is left out, so that its text does not bring it back;
where a part still holds, the rest is marked.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate, islice
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from ....protocol.event import Captured, Said, text, trust
from ....protocol.instant import micros, parse
from ....protocol.recall import Heard, Hit, Outdated, Recall, Recalled
from ....protocol.record import LIVE, QUOTE_LIMIT, Record, Span
from ....stages.words import language
from ...projections.stores import Stores
from ...projections.tokens import TermTokens
from ...storage.archive import Archive, decode
from ..pass_limits import may_read
from ..search_model import SearchModel, nearness
from ..service import Caller
from ..statements import covered, is_edited, stated_spans
from ..token_estimate import tokens
from .coverage import Asked
from .evidence import grasp
from .question import parse_question
from .time_expression import OPEN, TimePeriod, period
from .warm import COMPANY

if TYPE_CHECKING:
    from ....stages.turn_text import Passage

CANDIDATES = 40
READ = 12
"""Turns that are read, the best by their words; more for a large limit."""

BY_USER, BY_OTHERS = 0.85, 0.77
"""Factor on the score of a turn, by its writer: a record says the same in fewer words."""

WHOLE, SPREAD = 0.5, 1.5
"""Weight of a whole turn's share of the best possible score (BM25), beside how well its passage answers; and the factor
that brings such shares, which long questions lower, to the same scale."""

SURER = 1.35
"""What the best turn must reach where no record answers, as a multiple of the floor: nobody judged whether it is worth
remembering."""

AGENT_TURNS = 24
"""Turns before a user's turn in which its words are searched."""

FEWEST_REPEATED = 80
"""Characters of a user's turn that may repeat what the agent wrote."""

KNOWN_TURNS = 4096
"""Turns whose parts by writer are remembered: to find them takes longer than all else."""

MOST = 0.5
"""Share of a turn's passage from which a record that quotes it makes the turn superfluous."""


NEAR, BESIDE = 4, 0.2
"""Captures before and after a turn in which another one raises it, and the weight of that one's score."""


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


class _AskedTurn(NamedTuple):
    """What a question asks for, and how near the meaning of a passage is to it: the cosine, 0 without an encoder."""

    asked: Asked
    cosine: Callable[[str], float]


def _is_reported(words: str) -> bool:
    from ....stages.reports import is_reported  # late, as above

    return is_reported(words)


class TurnSearch:
    """Search over archived turns. Not for two threads at once."""

    def __init__(self, stores: Stores, sense: Callable[[], SearchModel], below_sessions: Callable[[], int]) -> None:
        """`sense` is called for each question."""
        self._records, self._sources = stores.records, stores.sources
        self._archive, self._turns = stores.archive, stores.turns
        self._sense, self._below_sessions = sense, below_sessions
        self._tokens = TermTokens()
        self._known: dict[tuple[int, int], tuple[TurnPart, ...]] = {}  # By seq and hash of the text

    def search(
        self,
        request: Recall,
        now: int,
        scope: Sequence[str],
        answer: Recalled,
        caller: Caller,
        floor: float,
    ) -> tuple[Heard, ...] | None:
        """Return the turns that answer a request, best first, of those that the caller may see (A1); none below the
        floor or the request's threshold; None if the scope has too many sessions to search.

        If the question names a time and turns of that time match, only these are returned.
        """
        most = self._below_sessions()
        documents = self._sources.documents(scope, most)
        if caller.hears is not None and len(documents) < most:
            documents = list(filter(caller.hears, documents))
        if len(documents) >= most:
            return None
        if not documents:
            return ()
        question, limit = parse_question(request, now), max(1, request.limit)
        past = question.period if question.period is not None and question.period.past else None
        shares, weights = self._turns.find(question.searched.words, CANDIDATES, documents=documents)
        model = self._sense()
        asked = _AskedTurn(
            Asked(weights, grasp(question.language, model.languages)),
            nearness(model.encode, model.encode and model.encode(request.query)),
        )
        read = list(islice(self._readable(shares, caller), CANDIDATES if past else max(READ, limit)))
        judged = [self._turn(captured, self._parts(seq, captured), shares[seq], asked) for seq, captured in read]
        if answer.abstained and max((answered for answered, _ in judged), default=0.0) < SURER * floor:
            return ()
        turns = _beside([seq for seq, _ in read], [turn for _, turn in judged])
        least = max(COMPANY * floor, request.threshold)
        turns = [turn for turn in turns if turn.score >= least and not self._is_recorded(turn, scope)]
        distinct = reversed({turn.quote: turn for turn in sorted(turns, key=lambda turn: turn.score)}.values())
        best = [
            turn
            for turn in distinct
            if not any(_rests_on(hit, turn) and hit.score >= turn.score for hit in answer.hits)
        ]
        if past:
            best = [turn for turn in best if _tells(turn, past)] or best
        return tuple(self._marked(turn, caller) for turn in best[:limit])

    def _readable(self, seqs: Iterable[int], caller: Caller) -> Iterator[tuple[int, Captured]]:
        """Yield the turns of these captures that may be shown, with their seqs."""
        for seq in seqs:
            entry = self._archive.log.get(seq)
            captured = decode(entry) if entry else None
            if captured is None or self._masked(captured):
                continue
            if may_read(caller, captured.document, captured.event.turn):
                yield seq, captured

    def _masked(self, captured: Captured) -> bool:
        stating = stated_spans(self._records, captured.document, captured.event.turn)
        return bool(stating) and not any(_holds(record, spans) for record, spans in stating)

    def _marked(self, turn: Heard, caller: Caller) -> Heard:
        """Return a turn with what no longer holds of it: marked if it was corrected or retired, covered if hidden."""
        quote, outdated = turn.quote, dict[tuple[int, int], Outdated]()
        stating = stated_spans(self._records, turn.document, turn.turn)
        stating.sort(key=lambda stated: stated[0].status not in LIVE)  # a correction has the spans of what it corrects
        for record, spans in stating:
            if _holds(record, spans) or record.status == "archived":
                continue
            by = record.id if record.status in LIVE else self._records.successor(record)
            for span in spans:
                start, end = max(span.start, turn.start), min(span.end, turn.end)
                if start < end and record.status == "hidden":
                    quote = covered(quote, start - turn.start, end - turn.start)
                elif start < end:
                    seen = [id if self._may_see(id, caller) else "" for id in (record.id, by)]
                    outdated[start, end] = Outdated(start=start, end=end, record=seen[0], replaced_by=seen[1])
        return msgspec.structs.replace(turn, quote=quote, outdated=tuple(outdated.values()))

    def _may_see(self, id: str, caller: Caller) -> bool:
        if caller.permits is None or not id:
            return True
        record = self._records.get(id)
        return record is not None and caller.permits(record)

    def _is_recorded(self, turn: Heard, scope: Sequence[str]) -> bool:
        """Whether a record of the scope has most of the words of a passage."""
        ids = self._records.citing(turn.document, turn.turn)
        records = [record for record in self._records.many(ids).values() if record.status in LIVE] if ids else ()
        least = MOST * len(turn.quote)
        return any(record.pool in scope and len(record.provenance.quote) >= least for record in records)

    def _turn(
        self, captured: Captured, parts: Sequence[TurnPart], share: float, asked: _AskedTurn
    ) -> tuple[float, Heard]:
        """Return how well the best passage of a turn answers, and the passage with its score."""
        words, source = text(captured.event), trust(captured.event)
        code = language(words)
        passages = (self._passage(part, words, code, asked) for part in parts)
        part, terms = max(passages, key=lambda passage: asked.asked.covered(passage[1]))
        quote = part.of(words)
        flags = part.flags or (("reported",) if source == "user" and _is_reported(quote) else ())
        factor = BY_USER if source == "user" and not flags else BY_OTHERS
        passage, whole = asked.asked.answered(terms, asked.cosine(quote)), min(1.0, SPREAD * share)
        turn = Heard(
            document=captured.document,
            turn=captured.event.turn,
            at=captured.event.at,
            trust="document" if flags else source,
            quote=quote,
            start=part.start,
            end=part.end,
            score=round(factor * ((1 - WHOLE) * passage + WHOLE * whole), 4),
            parts={"words": round(whole, 4), "passage": round(passage, 4), "writer": factor},
            flags=flags,
        )
        return factor * passage, turn

    def _parts(self, seq: int, captured: Captured) -> tuple[TurnPart, ...]:
        key = seq, hash(text(captured.event))
        if key not in self._known:
            if len(self._known) >= KNOWN_TURNS:
                self._known.clear()
            self._known[key] = tuple(_by_writer(text(captured.event), foreign_parts(self._archive, captured)))
        return self._known[key]

    def _passage(self, part: TurnPart, words: str, code: str, asked: _AskedTurn) -> tuple[TurnPart, frozenset[str]]:
        """Return the passage of a part that has most of the question's information, from the start of a line, and its
        terms."""
        lines = part.of(words).splitlines(keepends=True)
        terms = [frozenset(self._tokens.document(line, code)) for line in lines]
        if part.end - part.start <= QUOTE_LIMIT:
            return part, frozenset[str]().union(*terms)
        starts = list(accumulate(map(len, lines), initial=part.start))
        best, chosen = -1.0, (part, frozenset[str]())
        for first, start in enumerate(starts[:-1]):
            last = max(first + 1, bisect_right(starts, start + QUOTE_LIMIT) - 1)
            found = frozenset[str]().union(*terms[first:last])
            if (covered := asked.asked.covered(found)) > best:
                best, chosen = covered, (TurnPart(start, _cut(words, start, part.end), part.flags), found)
        return chosen


def _tells(turn: Heard, past: TimePeriod) -> bool:
    """Whether a turn may tell of a period: it was said then or soon after, or it names a time of it, which is relative
    to the turn's own time."""
    if past.may_tell(micros(turn.at)):
        return True
    named = period(turn.quote, parse(turn.at), language(turn.quote))
    return named is not None and 0 < named.start < past.end and past.start < named.end < OPEN


def _holds(record: Record, spans: Sequence[Span]) -> bool:
    """Whether a record still says what these spans of a turn do: it is live, and no edit replaced its words since."""
    return record.status in LIVE and (not is_edited(record) or record.provenance.spans[0] in spans)


def _by_writer(words: str, foreign: Iterable[Passage]) -> Iterator[TurnPart]:
    """Yield the parts of a turn by writer: only the user's turns have several."""
    at = 0
    for start, end, writer in foreign:
        if words[at:start].strip():
            yield TurnPart(at, start)
        yield TurnPart(start, end, (writer,))
        at = end
    if words[at:].strip() or not at:
        yield TurnPart(at, len(words))


def _beside(seqs: Sequence[int], turns: Sequence[Heard]) -> list[Heard]:
    """Return the turns, each with a part of the score of the best one near it in its document."""
    raised: list[Heard] = []
    for seq, turn in zip(seqs, turns, strict=True):
        near = (
            other.score
            for at, other in zip(seqs, turns, strict=True)
            if 0 < abs(at - seq) <= NEAR and other.document == turn.document
        )
        if neighbour := BESIDE * max(near, default=0.0):
            parts = {**turn.parts, "neighbour": round(neighbour, 4)}
            turn = msgspec.structs.replace(turn, score=round(turn.score + neighbour, 4), parts=parts)
        raised.append(turn)
    return raised


def _rests_on(hit: Hit, turn: Heard) -> bool:
    return any((span.document, span.turn) == (turn.document, turn.turn) for span in hit.record.provenance.spans)


def _cut(words: str, start: int, end: int) -> int:
    """Return the end of a passage of at most `QUOTE_LIMIT` characters: half a word may be half a secret, which no rule
    detects."""
    if end - start <= QUOTE_LIMIT:
        return end
    space = words.rfind(" ", start + 1, start + QUOTE_LIMIT)
    return space if space > 0 else start + QUOTE_LIMIT


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
        strength=max(answer.strength, turns[0].score),
        hits=tuple(hits),
        turns=tuple(chosen),
        abstained=False,
        reason="",
        nearest=None,
        filtered=answer.filtered + len(answer.hits) - len(hits),
        tokens=spent,
    )
