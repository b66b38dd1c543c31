"""The simple method: while there are few sessions, what was said is searched as it was said, beside the records (Q4).

Comes in: a question and the pools its asker may read. Goes out: turns, each with session, words and score.
Invariants: the same pools and the same floor of honesty as for records; a turn that a given record rests on is not
shown twice; a turn whose records are all retired or hidden is masked, so that what memd no longer believes does not
come back by its transcript; text outside of the pools' sessions is never looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from ....protocol.event import Captured, text, trust
from ....protocol.instant import micros
from ....protocol.recall import Heard, Hit, Recall, Recalled
from ....protocol.record import LIVE, QUOTE_LIMIT
from ...projections.records import Records
from ...projections.sources import SourceTable
from ...projections.tokens import TermTokens
from ...projections.turns import TurnIndex
from ...storage.archive import Archive, decode
from ..token_estimate import tokens
from .question import look_at
from .warm import QUARANTINE

LOOKED_AT = 40
FLOOR = 0.13
"""Share of the best possible score below which a turn is no answer: two rare words pass, one common does not."""


class TurnSearch:
    """Search over archived turns. Not for two threads at once: the door's own."""

    def __init__(
        self,
        records: Records,
        sources: SourceTable,
        archive: Archive,
        turns: TurnIndex,
        below_sessions: Callable[[], int],
    ) -> None:
        self._records, self._sources, self._archive, self._turns = records, sources, archive, turns
        self._below_sessions = below_sessions
        self._tokens = TermTokens()

    def heard(
        self,
        request: Recall,
        now: int,
        scope: Sequence[str],
        hits: Sequence[Hit],
        hears: Callable[[str], bool] | None = None,
    ) -> tuple[Heard, ...]:
        """At most as many turns as a request wants that answer it, best first, of documents that the asker may hear
        (A1); none where there are many sessions. Those of the time that it names, where there are any."""
        most = self._below_sessions()
        documents = self._sources.documents(scope, most)
        if hears is not None and len(documents) < most:
            documents = list(filter(hears, documents))
        if not documents or len(documents) >= most:
            return ()
        question, limit = look_at(request, now), max(1, request.limit)
        query, then = question.searched.words, question.period
        most = LOOKED_AT if then is not None and then.past else limit
        scores, possible = self._turns.find(query, LOOKED_AT, documents=documents)
        shown = {(span.document, span.turn) for hit in hits for span in hit.record.provenance.spans}
        terms = set(self._tokens.query(query))
        found: list[Heard] = []
        for seq, score in scores:
            share = score / possible if possible else 0.0
            if share < FLOOR or len(found) == most:
                break
            entry = self._archive.log.get(seq)
            captured = decode(entry) if entry else None
            if captured is None or (captured.document, captured.event.turn) in shown or self._masked(captured):
                continue
            found.append(self._heard(captured, terms, min(1.0, share)))
        if then is not None and then.past:
            found = [turn for turn in found if then.told(micros(turn.at))] or found
        return tuple(found[:limit])

    def _masked(self, captured: Captured) -> bool:
        ids = self._records.citing(captured.document, captured.event.turn)
        return bool(ids) and not any(record.status in LIVE for record in self._records.many(ids).values())

    def _heard(self, captured: Captured, terms: set[str], score: float) -> Heard:
        words = text(captured.event)
        start, end = self._passage(words, terms)
        return Heard(
            document=captured.document,
            turn=captured.event.turn,
            at=captured.event.at,
            trust=trust(captured.event),
            quote=words[start:end],
            start=start,
            end=end,
            score=round(score if trust(captured.event) == "user" else score * QUARANTINE, 4),
        )

    def _passage(self, words: str, terms: set[str]) -> tuple[int, int]:
        """The part of a long turn that holds most of the question's words, at whole lines where that fits."""
        if len(words) <= QUOTE_LIMIT:
            return 0, len(words)
        best, start = (-1, 0), 0
        for line in words.splitlines(keepends=True):
            window = words[start : start + QUOTE_LIMIT]
            best = max(best, (len(terms.intersection(self._tokens.document(window))), -start))
            start += len(line)
        start, end = -best[1], min(len(words), -best[1] + QUOTE_LIMIT)
        if end < len(words) and (space := words.rfind(" ", start + 1, end)) > 0:
            end = space  # half a word may be half a secret, which no rule would know
        return start, end


def with_turns(answer: Recalled, turns: Sequence[Heard], request: Recall) -> Recalled:
    """An answer with what was heard: the best of both within the request's limit and budget of tokens."""
    ranked = sorted((*answer.hits, *turns), key=lambda each: -each.score)[: max(1, request.limit)]
    hits: list[Hit] = []
    heard: list[Heard] = []
    spent = 0
    for each in ranked:
        words = each.quote if isinstance(each, Heard) else each.record.description + each.record.provenance.quote
        spent += tokens(words)
        if (hits or heard) and spent > request.budget_tokens:
            break
        if isinstance(each, Heard):
            heard.append(each)
        else:
            hits.append(each)
    return msgspec.structs.replace(
        answer,
        hits=tuple(hits),
        turns=tuple(heard),
        abstained=False,
        reason="",
        nearest=None,
        filtered=answer.filtered + len(answer.hits) - len(hits),
        tokens=spent,
    )
