"""Reconcile, the judging half: candidates held against what is known, one proposal each (W6, T1).

Comes in: candidates in order, and for each the records near it. Goes out: proposals with finished records, decisions
explained by ids and keys alone. Invariants: pure, no clock and no model; candidates of one batch are neighbours of each
other; precedence is world time where both claims name theirs, then the time they were said, then the capture, never
arrival; what an assistant or a document says retires nothing of the user's; in doubt both claims stay.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import msgspec
import numpy as np

from ..protocol.instant import micros
from ..protocol.operation import Decision, Neighbour, Retirement, Step
from ..protocol.record import LIVE, QUOTE_LIMIT, Evidence, Provenance, Record, Signal, Span, explicit_id, record_id
from .batch import Candidate, Known, Proposal
from .contradictions import Verdict, compare, of_another
from .restatement import CERTAIN, PARAPHRASED, PairReader, in_full, noted_down, says_again, told_again
from .rules import VERSION
from .words import STOP, tokens

NEAR = 0.1
"""Cosine below which records of one batch are not neighbours of each other, unless they share a key."""

MOST_NEIGHBOURS = 8
"""Neighbours that a decision names."""

LIKE, ALIKE = 0.5, 0.85
"""Cosine from which the pair model is asked, and from which it may say "the same"."""

SHORT, SHARED = 16, 0.4
"""Words of a statement that the pair model is asked about, and the share of content that two must have in common."""

_MOST = 16


def candidate_id(candidate: Candidate) -> str:
    """The id that the record of a candidate has for good: the same input replayed gives the same (P-7)."""
    if candidate.explicit:
        return explicit_id(candidate.span.document, candidate.span.turn)
    span = candidate.span
    return record_id(candidate.pool, span.document, span.turn, span.start, candidate.ordinal)


def judge(
    candidates: Sequence[Candidate],
    known: Mapping[str, Sequence[Known]],
    distiller: str = "rules",
    reader: PairReader | None = None,
    recalled: Mapping[str, frozenset[str]] | None = None,
) -> list[Proposal]:
    """One proposal a candidate, in order. `known`: the records near a candidate, by the candidate's record id.

    `reader` is asked where the rules see two different things that are near each other. `recalled`: the records that
    memd gave to a session, by its document: what says the same there adds nothing, not even evidence (W9).
    """
    state = _State(reader=reader, recalled=recalled or {})
    return [_Judgement(one, known.get(candidate_id(one), ()), distiller, state).proposal() for one in candidates]


@dataclass(slots=True)
class _State:
    """What the earlier candidates of this batch came to: records by id with their vectors, and who is retired."""

    records: dict[str, tuple[Record, bytes]] = field(default_factory=dict[str, tuple[Record, bytes]])
    retired: set[str] = field(default_factory=set[str])
    reader: PairReader | None = None
    recalled: Mapping[str, frozenset[str]] = field(default_factory=dict[str, frozenset[str]])


@dataclass(frozen=True, slots=True)
class _Judged:
    record: Record
    similarity: float
    verdict: Verdict
    later: bool
    """Whether the candidate takes precedence over this record."""


class _Judgement:
    """One candidate's way to its proposal."""

    def __init__(self, candidate: Candidate, known: Sequence[Known], distiller: str, state: _State) -> None:
        self._one = candidate
        self._id = candidate_id(candidate)
        self._state = state
        self._record = _record(candidate, self._id, distiller)
        near = self._near(known)
        self._own = next((each.record for each in near if each.record.id == self._id), None)
        self._judged = [self._verdict(each) for each in near if each.record.id != self._id]

    def proposal(self) -> Proposal:
        if self._own is not None and not self._one.explicit:
            return self._noop(self._own, "this clause is a record already", None)
        echo = next((each for each in self._judged if self._is_recalled(each)), None)
        if echo is not None and self._own is None:
            return self._noop(echo.record, f"says what {echo.record.id} told this session", None)
        same = next((each for each in self._judged if each.verdict.label == "same"), None)
        if same is not None:
            return self._said_before(same)
        changed = [each for each in self._judged if each.verdict.label in {"replaces", "contradicts"}]
        return self._changed(changed)

    def _is_recalled(self, each: _Judged) -> bool:
        """Whether a record was given to this session, and the candidate says it again, in whatever words."""
        if each.record.id not in self._state.recalled.get(self._one.span.document, ()):
            return False
        alike = each.verdict.label in {"unrelated", "refines"} and each.similarity >= PARAPHRASED
        return each.verdict.label == "same" or (
            alike and says_again(self._one.quote, each.record.content, self._state.reader)
        )

    def _near(self, known: Sequence[Known]) -> list[Known]:
        """What the daemon found, as this batch left it, and the batch's own records; nearest first."""
        found: dict[str, Known] = {}
        for each in known:
            if each.record.id in self._state.retired or each.record.status not in LIVE:
                continue
            current = self._state.records.get(each.record.id)
            found[each.record.id] = Known(record=current[0], similarity=each.similarity) if current else each
        mine = np.frombuffer(self._one.vector, "<f4")
        for id_, (record, vector) in self._state.records.items():
            beside = record.pool == self._one.pool or record.provenance.source == self._one.span.document
            if id_ in found or id_ in self._state.retired or not beside:
                continue
            theirs = np.frombuffer(vector, "<f4")
            similarity = float(mine @ theirs) if len(mine) and len(mine) == len(theirs) else 0.0
            if similarity >= NEAR or self._same_key(record):
                found[id_] = Known(record=record, similarity=similarity)
        nearest = sorted(found.values(), key=lambda each: (-each.similarity, each.record.id))
        keyed = [each for each in nearest[_MOST:] if each.record.id == self._id or self._same_key(each.record)]
        return nearest[:_MOST] + keyed

    def _same_key(self, record: Record) -> bool:
        return bool(self._one.key) and record.key == self._one.key

    def _verdict(self, each: Known) -> _Judged:
        record = each.record
        later = _later(self._record, record)
        if noted_down(record, self._record, each.similarity):
            return _Judged(record, each.similarity, Verdict("same", "the user said so"), later)
        if noted_down(self._record, record, each.similarity):
            return _Judged(record, each.similarity, Verdict("replaces", "in the user's own words"), later=True)
        if record.pool != self._one.pool:
            label = "same" if record.content == self._one.quote and self._one.explicit else "unrelated"
            return _Judged(record, each.similarity, Verdict(label, "another pool"), later)
        if in_full(record, self._record, each.similarity):
            return _Judged(record, each.similarity, Verdict("same", "said there in full"), later)
        if in_full(self._record, record, each.similarity):
            return _Judged(record, each.similarity, Verdict("replaces", "says it in full"), later=True)
        if told_again(record, self._record, each.similarity):
            return _Judged(record, each.similarity, Verdict("same", "told there more fully"), later)
        if told_again(self._record, record, each.similarity):
            return _Judged(record, each.similarity, Verdict("replaces", "tells it more fully"), later=True)
        older, newer = (record, self._record) if later else (self._record, record)
        return _Judged(record, each.similarity, _compared(older, newer, each.similarity, self._state.reader), later)

    def _decision(self, action: str, reason: str) -> Decision:
        neighbours = tuple(
            Neighbour(
                each.record.id, each.record.rev, round(max(0.0, min(1.0, each.similarity)), 4), each.verdict.label
            )
            for each in self._judged[:MOST_NEIGHBOURS]
        )
        steps = (*self._one.steps, Step("reconcile", f"{action}: {reason}"))
        return msgspec.convert(
            {"action": action, "reason": reason, "steps": steps, "neighbours": neighbours},
            Decision,
            from_attributes=True,
        )

    def _noop(self, target: Record, reason: str, evidence: Evidence | None) -> Proposal:
        return Proposal(
            record=self._record,
            decision=self._decision("noop", reason),
            target=target.id,
            evidence=evidence,
            vector=self._one.vector,
        )

    def _said_before(self, same: _Judged) -> Proposal:
        """The statement is known: evidence for it, or none where the same mouth said it in the same turn."""
        known, reason = same.record, f"says what {same.record.id} says ({same.verdict.reason})"
        evidence = _evidence(self._one, known)
        if self._own is not None:
            record = msgspec.structs.replace(
                self._record,
                rev=self._own.rev + 1,
                status="retired",
                valid_to=max(self._record.valid_from, known.valid_from, key=micros),
                superseded_by=known.id,
            )
            self._state.retired.add(record.id)
            return Proposal(
                record=record,
                decision=self._decision("update", reason),
                target=known.id,
                evidence=evidence,
                vector=self._one.vector,
            )
        if (self._one.explicit and known.provenance.trust == "user") or self._one.trust != "user":
            return self._noop(known, reason, evidence)
        if known.provenance.trust == "user":
            return self._noop(known, reason, evidence)
        return self._confirmed(known, reason)

    def _confirmed(self, known: Record, reason: str) -> Proposal:
        """The user says what so far only an assistant or a document said: their words take its place."""
        retirement = Retirement(known.id, self._record.valid_from, f"the user says it: {self._id}")
        return self._kept("add", f"{reason}, now in the user's words", (retirement,), self._record)

    def _changed(self, changed: Sequence[_Judged]) -> Proposal:
        rank = _rank(self._record)
        flagged = "injection" in self._record.flags
        lost = next((each for each in changed if not each.later and _rank(each.record) >= rank), None)
        gone = [each for each in changed if each.later and _rank(each.record) <= rank and not flagged]
        held = [each for each in changed if _rank(each.record) > rank or (flagged and each.later)]
        record, reasons = self._record, [_why(each, self._one) for each in gone]
        if lost is not None and not flagged:
            until = max(record.valid_from, lost.record.valid_from, key=micros)
            record = msgspec.structs.replace(record, status="retired", valid_to=until, superseded_by=lost.record.id)
            reasons.append(f"older than {lost.record.id}, which stands: kept as history")
        elif held:
            record = msgspec.structs.replace(record, needs_review=True)
            reasons.append(f"against {held[0].record.id}, which the user said: left for review")
        retirements = tuple(
            Retirement(
                each.record.id,
                max(record.valid_from, each.record.valid_from, key=micros),
                f"{each.verdict.reason}: {self._id}",
            )
            for each in gone
        )
        refined = next((each for each in self._judged if each.verdict.label == "refines"), None)
        if not reasons:
            reasons.append(f"says more or less than {refined.record.id}: both stay" if refined else "new")
        action = "update" if self._one.explicit and self._own is not None else "add"
        return self._kept(action, "; ".join(reasons), retirements, record)

    def _kept(self, action: str, reason: str, retires: tuple[Retirement, ...], record: Record) -> Proposal:
        record = msgspec.structs.replace(
            record,
            rev=self._own.rev + 1 if self._own is not None else 1,
            supersedes=tuple(each.id for each in retires),
        )
        if self._own is not None:
            record = msgspec.structs.replace(
                record, learned_at=self._own.learned_at, review=self._own.review, learnings=self._own.learnings
            )
        self._state.retired.update(each.id for each in retires)
        if record.status in LIVE:
            self._state.records[record.id] = (record, self._one.vector)
        return Proposal(
            record=record, decision=self._decision(action, reason), retires=retires, vector=self._one.vector
        )


def _record(one: Candidate, id_: str, distiller: str) -> Record:
    quote = one.quote[:QUOTE_LIMIT]
    end = one.span.start + len(quote)
    spans: tuple[Span, ...] = (msgspec.structs.replace(one.span, end=end),)
    if end < one.span.end:
        spans = (*spans, msgspec.structs.replace(one.span, start=end))
    return Record(
        id=id_,
        pool=one.pool,
        kind=one.kind,
        content=one.quote,
        description=one.description,
        provenance=Provenance(
            author=one.item.author if one.trust == "user" else one.trust,
            source=one.span.document,
            trust=one.trust,
            spans=spans,
            quote=quote,
            said_at=one.item.captured.event.at,
            distiller=distiller,
            rules=VERSION,
        ),
        status=one.status,
        key=one.key,
        value=one.value,
        tags=tuple(dict.fromkeys((one.type, *one.keywords))),
        language=one.language,
        valid_from=one.valid_from,
        valid_to=one.valid_to,
        confidence=one.confidence,
        volatility=one.volatility,
        flags=one.flags,
        injection=one.injection,
        signal=Signal(importance=one.importance),
    )


def _compared(older: Record, newer: Record, cosine: float, reader: PairReader | None) -> Verdict:
    """Exact key first, then the words, then the pair model where the words leave it open."""
    if older.key and older.key == newer.key:
        if older.kind != "fact" or _value(older.value) == _value(newer.value):
            return Verdict("same", f"the same key {older.key} and value")
        return Verdict("replaces", f"the same key {older.key}, another value")
    verdict = compare(older.content, newer.content, cosine)
    if verdict.label == "unrelated" and reader is not None and cosine >= LIKE:
        verdict = _read(older, newer, cosine, reader) or verdict
    change = verdict.label in {"replaces", "contradicts"}
    if change and older.type == "event" and _dated(older):
        return Verdict("unrelated", "what happened stays so")
    if change and newer.type == "commitment" and verdict.reason == "another value in the same place":
        return Verdict("unrelated", "a plan beside another")
    if change and _turn(older) == _turn(newer) and verdict.reason != "the old value is given up":
        return Verdict("unrelated", "said together")
    if change and newer.provenance.trust != "user" and verdict.reason == "another value in the same place":
        return Verdict("unrelated", "alike in form only")
    return verdict


def _read(older: Record, newer: Record, cosine: float, reader: PairReader) -> Verdict | None:
    """What the pair model is sure of, of two short statements in the user's words; None in doubt: both stay (P-8).

    It learnt from short statements that share a subject. In free talk it takes any two warm sentences for a change.
    """
    if newer.provenance.trust != "user" or "edge" in {older.kind, newer.kind}:
        return None
    left, right = set(_content(older.content)), set(_content(newer.content))
    shared = len(left & right) / max(1, min(len(left), len(right)))
    if max(len(older.content.split()), len(newer.content.split())) > SHORT or shared < SHARED:
        return None
    if of_another(older.content, newer.content):
        return None
    label, likely = next(iter(reader.judge(older.content, newer.content).items()))
    if label in {"unrelated", "refines"} or likely < CERTAIN or (label == "same" and cosine < ALIKE):
        return None
    return Verdict(label, f"read as {label}, {likely:.2f}")


def _content(words: str) -> list[str]:
    return [token.stem for token in tokens(words) if token.kind in {"word", "code"} and token.text.lower() not in STOP]


def _value(words: str) -> tuple[str, ...]:
    return tuple(token.stem for token in tokens(words) if token.kind != "mark")


def _turn(record: Record) -> tuple[str, str]:
    span = record.provenance.spans[0] if record.provenance.spans else Span("", record.id, 0, 0)
    return span.document, span.turn


def _rank(record: Record) -> int:
    return 1 if record.provenance.trust == "user" else 0


def _later(mine: Record, other: Record) -> bool:
    """Whether `mine` takes precedence: by world time where both name theirs, by when it was said, by capture (W6)."""
    if _dated(mine) and _dated(other) and micros(mine.valid_from) != micros(other.valid_from):
        return micros(mine.valid_from) > micros(other.valid_from)
    said = micros(mine.provenance.said_at) - micros(other.provenance.said_at)
    if said:
        return said > 0
    return _place(mine) > _place(other)


def _dated(record: Record) -> bool:
    """Whether the clause itself names since when it holds."""
    return bool(record.valid_from) and record.valid_from != record.provenance.said_at


def _place(record: Record) -> tuple[str, str, int, str]:
    span = record.provenance.spans[0] if record.provenance.spans else Span("", "", 0, 0)
    return span.document, span.turn, span.start, record.id


def _why(each: _Judged, one: Candidate) -> str:
    key = f"same key {one.key}, other value" if one.key and one.key == each.record.key else each.verdict.reason
    return f"{key}: replaces {each.record.id}"


def _evidence(one: Candidate, known: Record) -> Evidence | None:
    """The turn as evidence; none for the turn that the record rests on, nor for an assistant repeating its session."""
    turns = {(span.document, span.turn) for span in known.provenance.spans}
    turns |= {(each.span.document, each.span.turn) for each in known.provenance.evidence}
    documents = {document for document, _ in turns}
    if (one.span.document, one.span.turn) in turns or (one.trust != "user" and one.span.document in documents):
        return None
    return Evidence(kind="restated", span=one.span, trust=one.trust, at=one.item.captured.event.at)
