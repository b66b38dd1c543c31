"""Reconcile: propose a change for each candidate by the records near it and in its batch (W6, T1). Pure: no clock and
no model of its own. Precedence: world time where both claims name theirs, then the time they were said, then the
capture, never arrival. The words of an assistant or document never retire the user's; in doubt both claims stay."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import msgspec
import numpy as np

from ..protocol.event import Wrote
from ..protocol.instant import micros
from ..protocol.operation import Decision, Neighbour, Retirement, Step
from ..protocol.record import (
    LIVE,
    OPEN_QUESTION,
    QUOTE_LIMIT,
    Evidence,
    Provenance,
    Record,
    Signal,
    Span,
    explicit_id,
    record_id,
)
from .batch import SAME_KEY, Candidate, Conflict, Known, Proposal, chosen_pool
from .contradictions import Verdict, compare, of_another
from .documents import is_part as is_part_of_document
from .links import joined
from .open_questions import decides
from .restatement import CERTAIN, PARAPHRASED, PairReader, in_full, noted_down, says_again, told_again
from .rules import VERSION
from .words import STOP, tokens

NEAR = 0.1  # Cosine below which records of one batch are not neighbours of each other, unless they share a key
MOST_NEIGHBOURS = 8  # Neighbours that a decision names
TEAM_CONFLICTS = 3  # Most records of other authors that a statement asks the user about
LIKE, ALIKE = 0.5, 0.85  # Cosine from which the pair model is asked, and from which it may say "the same"
# Words of a statement that the pair model is asked about, and the share of content that two must have in common.
SHORT, SHARED = 16, 0.4
TOGETHER = 60_000_000  # Microseconds within which somebody hands over the items of one list
_MOST = 16
# Each rule by which one statement restates another, with the reasons where the known one says it, and the new one.
_RESTATEMENTS = (
    (noted_down, "the user said so", "in the user's own words"),
    (in_full, "said there in full", "says it in full"),
    (told_again, "told there more fully", "tells it more fully"),
)


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
    """One proposal a candidate, in order. `known`: the records near a candidate, by the candidate's record id. `reader`
    is asked where the rules see two different things that are near each other. `recalled`: the records that memd gave
    to a session, by its document: what says the same there adds nothing, not even evidence (W9)."""
    state = _BatchState(reader=reader, recalled=recalled or {})
    return [
        _Judgement(candidate, known.get(candidate_id(candidate), ()), distiller, state).proposal()
        for candidate in candidates
    ]


@dataclass(slots=True)
class _BatchState:
    """The outcome of the earlier candidates of this batch: records by id with their vectors, and retired ids."""

    records: dict[str, tuple[Record, bytes]] = field(default_factory=dict[str, tuple[Record, bytes]])
    retired: set[str] = field(default_factory=set[str])
    reader: PairReader | None = None
    recalled: Mapping[str, frozenset[str]] = field(default_factory=dict[str, frozenset[str]])


@dataclass(frozen=True, slots=True)
class _JudgedRecord:
    record: Record
    similarity: float
    verdict: Verdict
    later: bool
    """Whether the candidate takes precedence over this record."""


def _beside(judged: _JudgedRecord) -> _JudgedRecord:
    """The judgement of a neighbour; another author's record neither retires nor is retired, nor is it evidence (W7)."""
    if not judged.record.is_team:
        return judged
    return _JudgedRecord(judged.record, judged.similarity, Verdict("unrelated", "another author's"), judged.later)


class _Judgement:
    def __init__(self, candidate: Candidate, known: Sequence[Known], distiller: str, state: _BatchState) -> None:
        self._candidate = candidate
        self._id = candidate_id(candidate)
        self._state = state
        self._record = _record(candidate, self._id, distiller)
        near = self._near(known)
        self._own = next((known.record for known in near if known.record.id == self._id), None)
        self._judged = [self._judge(known) for known in near if known.record.id != self._id]

    def proposal(self) -> Proposal:
        if self._own is not None and not self._candidate.explicit:
            return self._proposal("noop", "this clause is a record already", target=self._own.id)
        echo = next((judged for judged in self._judged if self._is_recalled(judged)), None)
        if echo is not None and self._own is None:
            return self._proposal("noop", f"says what {echo.record.id} told this session", target=echo.record.id)
        against_team = [judged for judged in self._judged if self._speaks_against_team(judged)]
        self._judged = [_beside(judged) for judged in self._judged]
        same = next((judged for judged in self._judged if judged.verdict.label == "same"), None)
        proposal = self._said_before(same) if same is not None else self._changed()
        if proposal.decision.action == "noop" or "injection" in self._record.flags:
            return proposal
        asked = self._conflicts(proposal.record, against_team[:TEAM_CONFLICTS])
        return msgspec.structs.replace(proposal, conflicts=(*proposal.conflicts, *asked))

    def _speaks_against_team(self, judged: _JudgedRecord) -> bool:
        """Whether the candidate is against a record that another author shared: the user decides (W7)."""
        record = judged.record
        is_shown = record.is_team and record.pool == self._record.pool and not record.flags
        return is_shown and judged.later and judged.verdict.label in {"replaces", "contradicts"}

    def _is_recalled(self, judged: _JudgedRecord) -> bool:
        """Whether a record was given to this session, and the candidate says it again, in whatever words."""
        if judged.record.id not in self._state.recalled.get(self._candidate.span.document, ()):
            return False
        alike = judged.verdict.label in {"unrelated", "refines"} and judged.similarity >= PARAPHRASED
        return judged.verdict.label == "same" or (
            alike and says_again(self._candidate.quote, judged.record.content, self._state.reader)
        )

    def _near(self, known: Sequence[Known]) -> list[Known]:
        """The known records as this batch left them, and the batch's own records; nearest first."""
        near = {neighbour.record.id: neighbour for neighbour in known if self._is_live(neighbour.record)}
        for id_, (record, vector) in self._state.records.items():
            if id_ in near:
                near[id_] = msgspec.structs.replace(near[id_], record=record)
            elif own := self._of_this_batch(record, vector):
                near[id_] = own
        nearest = sorted(near.values(), key=lambda neighbour: (-neighbour.similarity, neighbour.record.id))
        far = (neighbour.record for neighbour in nearest[_MOST:])
        keyed = {record.id for record in far if record.id == self._id or self._same_key(record)}
        return [near for at, near in enumerate(nearest) if at < _MOST or near.record.id in keyed]

    def _is_live(self, record: Record) -> bool:
        return record.id not in self._state.retired and record.status in LIVE

    def _of_this_batch(self, record: Record, vector: bytes) -> Known | None:
        is_beside = record.pool == self._candidate.pool or record.provenance.source == self._candidate.span.document
        if record.id in self._state.retired or not is_beside:
            return None
        mine, theirs = np.frombuffer(self._candidate.vector, "<f4"), np.frombuffer(vector, "<f4")
        similarity = float(mine @ theirs) if len(mine) and len(mine) == len(theirs) else 0.0
        is_near = similarity >= NEAR or self._same_key(record)
        return Known(record=record, similarity=similarity) if is_near else None

    def _same_key(self, record: Record) -> bool:
        return bool(self._candidate.key) and record.key == self._candidate.key

    def _shares_its_key(self, judged: _JudgedRecord) -> bool:
        """Whether a record of the same turn has the key with another value: it keeps the key, and both stay."""
        is_beside = judged.verdict.label == "unrelated" and judged.record.pool == self._record.pool
        return is_beside and self._same_key(judged.record) and _turn(judged.record) == _turn(self._record)

    def _judge(self, known: Known) -> _JudgedRecord:
        record, similarity = known.record, known.similarity
        later = _later(self._record, record)
        if self._stands_beside(record):
            return _JudgedRecord(record, similarity, Verdict("unrelated", "another part of the document"), later)
        older, newer = (record, self._record) if later else (self._record, record)
        if decides(newer, older, similarity) and _rank(newer) >= _rank(older):
            return _JudgedRecord(record, similarity, Verdict("replaces", "decided"), later)
        for restates, known_already, replaced in _RESTATEMENTS:
            if restates is not noted_down and record.pool != self._candidate.pool:
                is_same = record.content == self._candidate.quote and self._candidate.explicit
                label = "same" if is_same and not chosen_pool(self._candidate) else "unrelated"
                return _JudgedRecord(record, similarity, Verdict(label, "another pool"), later)
            if restates(record, self._record, similarity):
                return _JudgedRecord(record, similarity, Verdict("same", known_already), later)
            if restates(self._record, record, similarity):
                return _JudgedRecord(record, similarity, Verdict("replaces", replaced), later=True)
        return _JudgedRecord(record, similarity, _compared(older, newer, similarity, self._state.reader), later)

    def _stands_beside(self, record: Record) -> bool:
        """Whether a record is of another part of the same document: both hold, however alike they are worded."""
        is_part = is_part_of_document(self._candidate.item.captured.event)
        is_beside = is_part and record.provenance.source == self._candidate.span.document
        return is_beside and record.content != self._candidate.quote

    def _proposal(
        self,
        action: Literal["add", "update", "noop"],
        reason: str,
        record: Record | None = None,
        retires: tuple[Retirement, ...] = (),
        target: str = "",
        evidence: Evidence | None = None,
    ) -> Proposal:
        neighbours = tuple(
            Neighbour(
                near.record.id, near.record.rev, round(max(0.0, min(1.0, near.similarity)), 4), near.verdict.label
            )
            for near in self._judged[:MOST_NEIGHBOURS]
        )
        steps = (*self._candidate.steps, Step("reconcile", f"{action}: {reason}"))
        return Proposal(
            record=record or self._record,
            decision=Decision(action=action, reason=reason, steps=steps, neighbours=neighbours),
            retires=retires,
            target=target,
            evidence=evidence,
            vector=self._candidate.vector,
        )

    def _said_before(self, same: _JudgedRecord) -> Proposal:
        """The statement is known: evidence for it, or none where the same speaker said it in the same turn."""
        known, reason = same.record, f"says what {same.record.id} says ({same.verdict.reason})"
        evidence = _evidence(self._candidate, known)
        if self._own is not None:
            record = msgspec.structs.replace(
                self._record,
                rev=self._own.rev + 1,
                status="retired",
                valid_to=max(self._record.valid_from, known.valid_from, key=micros),
                superseded_by=known.id,
            )
            self._state.retired.add(record.id)
            return self._proposal("update", reason, record, target=known.id, evidence=evidence)
        if self._candidate.trust != "user" or known.provenance.trust == "user":
            return self._proposal("noop", reason, target=known.id, evidence=evidence)
        # The user says what so far only an assistant or a document said: their words take its place.
        retirement = Retirement(known.id, self._record.valid_from, f"the user says it: {self._id}")
        return self._added("add", f"{reason}, now in the user's words", (retirement,), self._record)

    def _changed(self) -> Proposal:
        """A new record, which retires what it replaces; retired itself, or left for review, where another one wins."""
        changed = [judged for judged in self._judged if judged.verdict.label in {"replaces", "contradicts"}]
        rank, flagged = _rank(self._record), "injection" in self._record.flags
        winner = next((judged for judged in changed if not judged.later and _rank(judged.record) >= rank), None)
        later = [judged for judged in changed if judged.later]
        spared = [judged for judged in later if flagged or self._is_users_alone(judged.record)]
        replaced = [judged for judged in later if _rank(judged.record) <= rank and judged not in spared]
        opposed = [judged for judged in changed if _rank(judged.record) > rank or judged in spared]
        record, reasons = self._record, [_why(judged, self._candidate) for judged in replaced]
        if any(self._shares_its_key(judged) for judged in self._judged):
            record = msgspec.structs.replace(record, kind="note", key="", value="")
        if winner is not None and not flagged:
            until = max(record.valid_from, winner.record.valid_from, key=micros)
            record = msgspec.structs.replace(record, status="retired", valid_to=until, superseded_by=winner.record.id)
            reasons.append(f"older than {winner.record.id}, which stands: kept as history")
        elif opposed:
            record = msgspec.structs.replace(record, needs_review=True)
            reasons.append(f"against {opposed[0].record.id}, which the user said: left for review")
        retirements = tuple(
            Retirement(
                judged.record.id,
                max(record.valid_from, judged.record.valid_from, key=micros),
                f"{judged.verdict.reason}: {self._id}",
            )
            for judged in replaced
        )
        if not reasons:
            refined = next((judged for judged in self._judged if judged.verdict.label == "refines"), None)
            reasons.append(f"says more or less than {refined.record.id}: both stay" if refined else "new")
        action = "update" if self._candidate.explicit and self._own is not None else "add"
        proposal = self._added(action, "; ".join(reasons), retirements, record)
        return msgspec.structs.replace(proposal, conflicts=() if flagged else self._conflicts(record, spared))

    def _is_users_alone(self, record: Record) -> bool:
        """Whether a record rests on the user's words, which no reader but memd's own retires (W4)."""
        return bool(self._candidate.reader) and record.provenance.trust == "user"

    def _conflicts(self, record: Record, spared: Sequence[_JudgedRecord]) -> tuple[Conflict, ...]:
        """Return what the user decides: whether later words of theirs, at which another reader points, replace what
        memd believes (W4, T13), or what another author shared (W7)."""
        if record.status not in LIVE or not _rank(record):
            return ()
        shown = [old for old in spared if old.record.status == "active" or old.record.is_team]
        believed = [old for old in shown if _turn(old.record) != _turn(record)]
        return tuple(Conflict(old.record.id, self._id, old.verdict.label, old.verdict.reason) for old in believed)

    def _added(
        self, action: Literal["add", "update"], reason: str, retires: tuple[Retirement, ...], record: Record
    ) -> Proposal:
        record = msgspec.structs.replace(record, supersedes=tuple(retirement.id for retirement in retires))
        if own := self._own:
            record = msgspec.structs.replace(record, rev=own.rev + 1, learned_at=own.learned_at)
        self._state.retired.update(retirement.id for retirement in retires)
        if record.status in LIVE:
            self._state.records[record.id] = (record, self._candidate.vector)
        return self._proposal(action, reason, record, retires)


def _record(candidate: Candidate, id_: str, distiller: str) -> Record:
    quote = candidate.quote[:QUOTE_LIMIT]
    end = candidate.span.start + len(quote)
    spans: tuple[Span, ...] = (msgspec.structs.replace(candidate.span, end=end),)
    if end < candidate.span.end:
        spans = (*spans, msgspec.structs.replace(candidate.span, start=end))
    if candidate.asked_at is not None:
        spans = (*spans, candidate.asked_at, *candidate.also)
    return Record(
        id=id_,
        pool=candidate.pool,
        placed=bool(chosen_pool(candidate)),
        kind=candidate.kind,
        content=joined(candidate.question, candidate.quote) if candidate.question else candidate.quote,
        description=candidate.description,
        provenance=Provenance(
            author=candidate.item.author if _is_by_user(candidate) else candidate.trust,
            source=candidate.span.document,
            trust=candidate.trust,
            spans=spans,
            quote=quote,
            said_at=candidate.item.captured.event.at,
            distiller=candidate.reader or distiller,
            rules=VERSION,
        ),
        status=candidate.status,
        key=candidate.key,
        value=candidate.value,
        tags=tuple(dict.fromkeys((candidate.type, *candidate.keywords))),
        aliases=candidate.aliases,
        language=candidate.language,
        valid_from=candidate.valid_from,
        valid_to=candidate.valid_to,
        confidence=candidate.confidence,
        volatility=candidate.volatility,
        flags=candidate.flags,
        injection=candidate.injection,
        learnings=candidate.learnings,
        signal=Signal(importance=candidate.importance),
    )


def _is_by_user(candidate: Candidate) -> bool:
    event = candidate.item.captured.event
    return candidate.trust == "user" or (isinstance(event, Wrote) and event.own)


def _compared(older: Record, newer: Record, cosine: float, reader: PairReader | None) -> Verdict:
    """Exact key first, then the words, then the pair model where the words leave it open."""
    if older.key and older.key == newer.key:
        if older.kind != "fact" or _value(older.value) == _value(newer.value):
            return Verdict("same", f"the same key {older.key} and value")
        if _turn(older) != _turn(newer):
            return Verdict("replaces", f"the same key {older.key}, another value")
    verdict = compare(older.content, newer.content, cosine)
    if verdict.label == "unrelated" and reader is not None and cosine >= LIKE:
        verdict = _read(older, newer, cosine, reader) or verdict
    objection = _objection(older, newer, verdict) if verdict.label in {"replaces", "contradicts"} else ""
    return Verdict("unrelated", objection) if objection else verdict


def _objection(older: Record, newer: Record, change: Verdict) -> str:
    if OPEN_QUESTION in {older.type, newer.type}:
        return "what is undecided denies nothing, and only a decision settles it"
    in_place = change.reason == "another value in the same place"
    if older.type == "event" and _dated(older):
        return "what happened stays so"
    if newer.type == "commitment" and in_place:
        return "a plan beside another"
    if not change.is_slot and _asked_together(older, newer):
        return "asked to remember in one go"
    if _turn(older) == _turn(newer):
        return "said together"
    return "alike in form only" if newer.provenance.trust != "user" and in_place else ""


def _read(older: Record, newer: Record, cosine: float, reader: PairReader) -> Verdict | None:
    """The pair model's verdict on two short statements in the user's words; None in doubt: both stay (P-8). It learnt
    from short statements that share a subject. In free talk it takes any two warm sentences for a change."""
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
    return Verdict(label, f"read as {label}, {likely:.2f}", is_slot=False)


def _content(words: str) -> list[str]:
    return [token.stem for token in tokens(words) if token.kind in {"word", "code"} and token.text.lower() not in STOP]


def _value(words: str) -> tuple[str, ...]:
    return tuple(token.stem for token in tokens(words) if token.kind != "mark")


def _asked_together(older: Record, newer: Record) -> bool:
    """Whether somebody asked for both explicitly within a minute, as for the items of a list."""
    are_explicit = all(record.id == explicit_id(*_turn(record)) for record in (older, newer))
    return are_explicit and abs(micros(newer.provenance.said_at) - micros(older.provenance.said_at)) <= TOGETHER


def _turn(record: Record) -> tuple[str, str]:
    span = record.provenance.spans[0] if record.provenance.spans else Span("", record.id, 0, 0)
    return span.document, span.turn


def _rank(record: Record) -> bool:
    return record.provenance.trust == "user"


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


def _why(judged: _JudgedRecord, candidate: Candidate) -> str:
    same_key = candidate.key and candidate.key == judged.record.key
    reason = f"same key {candidate.key}, other value" if same_key else judged.verdict.reason
    return f"{reason}: replaces {judged.record.id}"


def _evidence(candidate: Candidate, known: Record) -> Evidence | None:
    """The turn as evidence; none for the turn that the record rests on, nor for an assistant repeating its session."""
    turns = {(span.document, span.turn) for span in known.provenance.spans}
    turns |= {(evidence.span.document, evidence.span.turn) for evidence in known.provenance.evidence}
    span, is_users = candidate.span, candidate.trust == "user"
    if (span.document, span.turn) in turns or (not is_users and span.document in {document for document, _ in turns}):
        return None
    return Evidence(kind="restated", span=span, trust=candidate.trust, at=candidate.item.captured.event.at)


def find_conflicts(
    held: Sequence[Record], fresh: Sequence[Record], cosines: Sequence[Sequence[float]]
) -> list[Conflict]:
    """Find new records that contradict pinned ones (T13). `cosines[h][f]`: of their descriptions, 0.0 where one has no
    vector. Only a later statement conflicts, and never one with an injection's mark (P-19)."""
    return [
        conflict
        for old, row in zip(held, cosines, strict=True)
        for new, cosine in zip(fresh, row, strict=True)
        if (conflict := _conflict(old, new, cosine))
    ]


def _conflict(old: Record, new: Record, cosine: float) -> Conflict | None:
    is_later = micros(new.provenance.said_at) > micros(old.provenance.said_at)
    if new.id == old.id or "injection" in new.flags or not is_later:
        return None
    folded = [" ".join(record.value.split()).casefold() for record in (old, new)]
    if old.key and old.key == new.key and old.kind == "fact" and folded[0] != folded[1]:
        return Conflict(old.id, new.id, "replaces", SAME_KEY)
    verdict = compare(old.content, new.content, cosine)
    if verdict.label in {"replaces", "contradicts"}:
        return Conflict(old.id, new.id, verdict.label, verdict.reason)
    return None
