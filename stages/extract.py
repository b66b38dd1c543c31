"""Extract: from captures to typed candidates, each a whole clause quoted to the letter.

Comes in: items in order of archive seq. Goes out: candidates in order of place, and a rejection with its reason for
everything left out. Invariants: `quote == text(event)[start:end]`, always (P-5); identity and preference come from the
user's own words only (P-19); what someone asked to remember is one candidate, whole, and is never refused unless it is
blank (W2).
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import msgspec

from ..protocol.event import Noted, Said, Trust, Wrote, text, trust
from ..protocol.operation import Step
from ..protocol.record import QUOTE_LIMIT, Span
from .batch import Batch, Candidate, Item, Rejection
from .clauses import Clause, cut
from .cues import count_words, foreign, lasting, noise, weights
from .meaning import Meaning, Reader
from .prototypes import Embedder, Prototypes
from .rules import any_of, table
from .subjects import dangling
from .words import language

STAGE = "extract"

FLOOR: dict[Trust, float] = {"user": 0.36, "assistant": 0.3, "document": 0.35, "tool": 1.1}
"""A clause whose score is lower is left out."""

FEWEST_WORDS: dict[Trust, int] = {"user": 3, "assistant": 4, "document": 4, "tool": 99}
SHARE = 12
"""Candidates of one turn of an assistant or document: the best ones."""

READ_CHARACTERS = 1000
"""What is read of a long text that was asked to be remembered, to tell its type."""

PASTED_CHARACTERS = 2500
"""A user turn longer than this that is built like a document was pasted, not said."""

WORK_TYPES = ("decision", "convention", "lesson", "procedure", "fact")
"""What an assistant or a document may teach; anything else only the user can say."""

_PLAN = any_of(table("noise")["leads"]["plan"])
_FINDING = any_of(table("noise")["leads"]["finding"])
_SUMMARY = any_of(table("noise")["leads"]["summary"])
_FIX = any_of(table("noise")["leads"]["fix"])
_TITLE = re.compile(r"\*\*[^*]+\*\*:?$|^[\w`'-]+(?: [\w`'-]+){0,3}$")


@dataclass(frozen=True, slots=True)
class _Found:
    item: Item
    trust: Trust
    clause: Clause
    following: Clause | None
    summed_up: bool


class Extract:
    """The stage. The trunk is asked for vectors only when a clause is left after the word rules."""

    def __init__(self, trunk: Embedder, reader: Reader) -> None:
        self._prototypes = Prototypes(trunk)
        self._meaning = Meaning(reader)

    def __call__(self, batch: Batch) -> Batch:
        candidates: list[Candidate] = []
        rejections: list[Rejection] = []
        found: list[_Found] = []
        for item in batch.items:
            event = item.captured.event
            if isinstance(event, Noted):
                self._noted(item, event, candidates, rejections)
            elif isinstance(event, Said | Wrote):
                found.extend(_survivors(item, rejections))
            else:
                rejections.append(Rejection(stage=STAGE, reason="not prose", seq=item.seq))
        found = [one for one in found if not self._unmeant(one, rejections)]
        nearness = self._prototypes.near([_bare(one.clause.text) for one in found])
        scored = [_scored(one, near, rejections) for one, near in zip(found, nearness, strict=True)]
        candidates.extend(_best([one for one in scored if one is not None], rejections))
        candidates.sort(key=lambda one: (one.item.seq, one.span.start))
        return msgspec.structs.replace(
            batch,
            candidates=batch.candidates + tuple(candidates),
            rejections=batch.rejections + tuple(rejections),
        )

    def _unmeant(self, one: _Found, rejections: list[Rejection]) -> bool:
        words = one.clause.text
        if language(words) != "en":
            return False
        following = _bare(one.following.text) if one.following else ""
        durable = one.trust == "user" and lasting(words)
        reason = self._meaning.objection(words.replace("**", ""), following, one.trust, lasting=durable)
        if reason:
            rejections.append(Rejection(stage=STAGE, reason=reason, seq=one.item.seq, quote=words[:QUOTE_LIMIT]))
        return bool(reason)

    def _noted(self, item: Item, event: Noted, candidates: list[Candidate], rejections: list[Rejection]) -> None:
        words = event.text
        said = words[:READ_CHARACTERS]
        if not words.strip():
            rejections.append(Rejection(stage=STAGE, reason="blank", seq=item.seq))
            return
        source = trust(event)
        if language(said) == "en":
            (near,) = self._prototypes.near([_bare(said)])
            type_, _ = _typed(said, "user", near)
        else:
            type_ = foreign(said)
        candidates.append(_candidate(item, source, Span(item.captured.document, event.turn, 0, len(words)), type_, 1.0))


def _candidate(item: Item, source: Trust, span: Span, type_: str, score: float) -> Candidate:
    event = item.captured.event
    explicit = isinstance(event, Noted)
    what = f"{type_}, asked to remember" if explicit else f"{type_}, score {score:.2f}"
    return Candidate(
        item=item,
        ordinal=0,
        span=span,
        quote=text(event)[span.start : span.end],
        trust=source,
        type=type_,
        score=score,
        explicit=explicit,
        steps=(Step(STAGE, what),),
    )


def _bare(words: str) -> str:
    """What the trunk reads of a clause: its words without Markdown's marks."""
    return re.sub(r"\*\*|__|`", "", words)


def _survivors(item: Item, rejections: list[Rejection]) -> list[_Found]:
    """The clauses of a turn that no word rule takes out."""
    event = item.captured.event
    source, words = trust(event), text(event)
    parts = cut(words)
    for reason in parts.dropped:
        rejections.append(Rejection(stage=STAGE, reason=reason, seq=item.seq))
    if source == "user" and len(words) > PASTED_CHARACTERS and words.count("\n#") + words.count("\n- ") >= 4:
        rejections.append(Rejection(stage=STAGE, reason="pasted", seq=item.seq))
        return []
    kept: list[_Found] = []
    summed_up = source != "user" and _SUMMARY.search(words) is not None
    for at, clause in enumerate(parts.clauses):
        reason = _rejected(clause, source, first=at == 0)
        if reason == "retraction" and kept and at and kept[-1].clause == parts.clauses[at - 1]:
            gone = kept.pop()
            rejections.append(
                Rejection(stage=STAGE, reason="retracted", seq=item.seq, quote=gone.clause.text[:QUOTE_LIMIT])
            )
        if reason:
            rejections.append(Rejection(stage=STAGE, reason=reason, seq=item.seq, quote=clause.text[:QUOTE_LIMIT]))
            continue
        following = parts.clauses[at + 1] if at + 1 < len(parts.clauses) else None
        kept.append(_Found(item, source, clause, following, summed_up and clause.listed))
    return kept


def _rejected(clause: Clause, source: Trust, first: bool) -> str:
    words = clause.text
    if len(words) > QUOTE_LIMIT:
        return "too long"
    if count_words(words) < FEWEST_WORDS[source]:
        return "retraction" if noise(words, source) == "retraction" else "too short"
    if language(words) != "en":
        question = noise(words, "tool") == "question"
        return "question" if question else ("" if source == "user" else "no cue")
    if (
        clause.listed
        and clause.heading
        and source != "user"
        and _PLAN.search(clause.heading)
        and not _FINDING.search(clause.heading)
    ):
        return "plan"
    if (
        clause.listed
        and source == "user"
        and clause.heading
        and not (lasting(words) or max((*_strongest(words), 0.0)) >= 0.5)
    ):
        return "request"
    if source != "user" and _TITLE.fullmatch(words):
        return "title"
    if source != "user" and first and dangling(words):
        return "dangling"
    return noise(words, source)


def _strongest(words: str) -> list[float]:
    """Cue weights of what a user's list item must be to be more than a part of their request."""
    found = weights(words, "user")
    return [found.get(name, 0.0) for name in ("identity", "preference", "decision", "convention", "lesson")]


def _typed(words: str, source: Trust, near: dict[str, float]) -> tuple[str, float]:
    """The clause's type and score, from its cue words and its nearest prototypes."""
    cued = weights(words, source)
    allowed = [name for name in near if name != "noise" and (source == "user" or name in WORK_TYPES)]
    best = max(allowed, key=lambda name: (0.55 * cued.get(name, 0.0) + near[name], name))
    margin = near[best] - near["noise"]
    tilt = min(1.0, max(0.0, 0.5 + 2.0 * margin))
    return best, round(0.5 * cued.get(best, 0.0) + 0.15 * min(1.0, sum(cued.values()) / 2) + 0.35 * tilt, 4)


def _scored(found: _Found, near: dict[str, float], rejections: list[Rejection]) -> Candidate | None:
    item, clause, source = found.item, found.clause, found.trust
    document, turn = item.captured.document, item.captured.event.turn
    if language(clause.text) != "en":
        type_, score = foreign(clause.text), 0.6
    else:
        type_, score = _typed(clause.text, source, near)
        if source == "user" and lasting(clause.text):
            score = max(score, 0.75)
    if found.summed_up and ("`" in clause.text or score >= FLOOR[source]):
        score = min(1.0, score + 0.15)
    if score < FLOOR[source]:
        rejections.append(Rejection(stage=STAGE, reason=f"weak {type_}", seq=item.seq, quote=clause.text[:QUOTE_LIMIT]))
        return None
    end = clause.end
    after = found.following
    if source == "assistant" and after is not None and _FIX.match(after.text):
        between = text(item.captured.event)[clause.end : after.start]
        if between == " " and after.end - clause.start <= QUOTE_LIMIT and count_words(after.text) >= 6:
            end = after.end
    return _candidate(item, source, Span(document, turn, clause.start, end), type_, score)


def _best(candidates: list[Candidate], rejections: list[Rejection]) -> list[Candidate]:
    """At most `SHARE` candidates a turn from anyone but the user: a report is not all memory."""
    ranked: dict[int, list[Candidate]] = {}
    for one in candidates:
        ranked.setdefault(one.item.seq, []).append(one)
    kept: list[Candidate] = []
    for ones in ranked.values():
        ones.sort(key=lambda one: (-one.score, one.span.start))
        share = len(ones) if ones[0].trust == "user" else SHARE
        kept.extend(ones[:share])
        for one in ones[share:]:
            rejections.append(
                Rejection(stage=STAGE, reason="beyond the share of a turn", seq=one.item.seq, quote=one.quote)
            )
    return kept
