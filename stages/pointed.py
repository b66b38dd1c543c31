"""Take the statements that another reader of a session points at (W4): its agent, or a model of the user's.

Such a reader gives a type and places in the archive, no words of its own, so it can invent nothing. From here on its
statements pass the same stages as those of memd's own model. They are noted, and believed only where the model that
selects memd's own statements agrees.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import msgspec

from ..protocol.event import Captured, Pointed, Pointer, Reflected, Said, Trust, Wrote, text, trust
from ..protocol.operation import Step
from ..protocol.record import QUOTE_LIMIT, Span
from . import extraction_gate as gate
from . import other_languages
from .batch import AgentText, Batch, Candidate, Item, Rejection
from .extract import READ_CHARACTERS, candidate_of, own_clauses
from .links import joined
from .selection import features, selection
from .subjects import untitled
from .words import is_english

STAGE = "extract"
GAP = 300
"""Most characters between two quotes of one turn that are quoted as one."""

ABOUT = {"user": 1.0, "project": 0.0}
"""Probability that a statement is about the user, by what the reader says."""


class _Passage(NamedTuple):
    """Characters of a capture; `seq`: its archive seq."""

    seq: int
    captured: Captured
    start: int
    end: int

    @property
    def trust(self) -> Trust:
        return trust(self.captured.event)

    @property
    def span(self) -> Span:
        return Span(self.captured.document, self.captured.event.turn, self.start, self.end)

    @property
    def words(self) -> str:
        return text(self.captured.event)[self.start : self.end]


class Reflections:
    """The stage: it adds a candidate for each statement of a `Reflected` capture."""

    def __init__(self, reader: gate.ClauseReader) -> None:
        self._reader = reader

    def __call__(self, batch: Batch) -> Batch:
        candidates: list[Candidate] = []
        rejections: list[Rejection] = []
        for item in batch.items:
            event = item.captured.event
            if not isinstance(event, Reflected):
                continue
            agent = batch.agent.get(item.captured.document, ())
            for pointed in event.statements:
                if passages := _passages(item, pointed.quotes):
                    candidates.append(self._candidate(item, event.reader, pointed, passages, agent))
                else:
                    rejections.append(Rejection(stage=STAGE, reason="no such words", seq=item.seq))
        return msgspec.structs.replace(
            batch, candidates=(*batch.candidates, *candidates), rejections=(*batch.rejections, *rejections)
        )

    def _candidate(
        self, item: Item, reader: str, pointed: Pointed, passages: Sequence[_Passage], agent: Sequence[AgentText]
    ) -> Candidate:
        """Return the candidate of a statement: its last passage, whose speaker gives the trust, after the others."""
        *others, main = passages
        quoted = msgspec.structs.replace(item, seq=main.seq, captured=main.captured, quoted=())
        earlier = [told for told in agent if told.seq < main.seq]
        source, is_believed = self._judged(quoted, main, earlier)
        words = untitled(main.words).replace("**", "")[:READ_CHARACTERS]
        reading = gate.read(self._reader, words, source) if is_english(words) else None
        candidate = candidate_of(quoted, source, main.span, pointed.type, 1.0, reading)
        question = " … ".join(passage.words for passage in others)
        return msgspec.structs.replace(
            candidate,
            reader=reader,
            read_at=item.seq,
            description=joined(question, main.words) if question else "",
            question=question,
            asked_at=others[0].span if others else None,
            also=tuple(passage.span for passage in others[1:]),
            about_user=ABOUT.get(pointed.about, candidate.about_user) if source == "user" else None,
            language=other_languages.language(main.words),
            is_noted=not is_believed,
            learnings=pointed.learnings,
            steps=(Step(STAGE, f"{pointed.type}, pointed at by {reader}{_taught(pointed)}"),),
        )

    def _judged(self, quoted: Item, main: _Passage, agent: Sequence[AgentText]) -> tuple[Trust, bool]:
        """Return the trust in a passage, and whether it is believed. What a user pasted is a document."""
        if main.trust != "user" or not isinstance(main.captured.event, Said):
            return main.trust, False
        clauses = [
            (place, clause)
            for place, clause in own_clauses(quoted, agent)
            if clause.start < main.end and main.start < clause.end
        ]
        if not clauses:
            return "document", False
        chances = [
            selection().probability(features(place, clause, gate.read(self._reader, untitled(clause.text), "user")))
            for place, clause in clauses
            if quoted.project and is_english(clause.text)
        ]
        return "user", bool(chances) and max(chances) >= selection().believed


def _taught(pointed: Pointed) -> str:
    return f", which learnt from it for {', '.join(sorted(pointed.learnings))}" if pointed.learnings else ""


def _passages(item: Item, pointers: Sequence[Pointer]) -> list[_Passage]:
    """Return the passages that pointers name, in order; none if one of them names no words of a speaker."""
    captures = {captured.event.turn: (seq, captured) for seq, captured in item.quoted}
    passages: list[_Passage] = []
    for pointer in pointers:
        seq, captured = captures.get(pointer.turn, (0, None))
        if captured is None or not isinstance(captured.event, Said | Wrote):
            return []
        if not 0 <= pointer.start < pointer.end <= len(text(captured.event)):
            return []
        passages.append(_Passage(seq, captured, pointer.start, pointer.end))
    return list(_merged(sorted(passages, key=lambda passage: (passage.seq, passage.start))))


def _merged(passages: Sequence[_Passage]) -> Iterator[_Passage]:
    """Yield the passages in order; those of one turn that are near each other become one."""
    last: _Passage | None = None
    for passage in passages:
        if last and passage.seq == last.seq and passage.start - last.end <= GAP:
            end = max(last.end, passage.end)
            if end - last.start <= QUOTE_LIMIT:
                last = last._replace(end=end)
                continue
        if last:
            yield last
        last = passage
    if last:
        yield last
