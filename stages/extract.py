"""Extract: from captures to typed candidates, each a whole clause quoted to the letter.

Comes in: items in order of archive seq. Goes out: candidates in order of place, and a rejection with its reason for
everything left out. Invariants: `quote == text(event)[start:end]`, always (P-5); identity and preference come from the
user's own words only (P-19); what someone asked to remember is one candidate, whole, and is never refused unless it is
blank (W2).
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

import msgspec

from ..models.distiller import Reading
from ..protocol.event import Noted, Said, Trust, Wrote, text, trust
from ..protocol.operation import Step
from ..protocol.record import QUOTE_LIMIT, Span
from .batch import Batch, Candidate, Item, Rejection
from .clauses import Clause, cut
from .cues import count_words, foreign, lasting, noise, plain, weights
from .meaning import Meaning, Reader
from .prototypes import Embedder, Prototypes
from .rules import any_of, table
from .sections import (
    announced,
    asked,
    context,
    defines,
    edited,
    faults,
    headed,
    hearsay,
    instructs,
    obscure,
    repairs,
    results,
    section,
    sums_up,
    troubled,
    under,
    whole,
)
from .subjects import dangling, follows, unnamed, untitled
from .words import language
from .worth import FLOOR, SET, Place, explains, mended, outlasting, personal, specific, thin, too_little, typed

STAGE = "extract"

FEWEST_WORDS: dict[Trust, int] = {"user": 3, "assistant": 4, "document": 4, "tool": 99}
FOREIGN = 0.6
"""Score of a clause in a language that no model here reads: kept verbatim, if the user said it."""

TALK = 0.9
"""Salience from which a remark outside of a project is no small talk: people tell of themselves in passing."""

PERSONAL_TALK = frozenset({"reaction", "aside", "report", "verdict"})
"""What the words of a remark about work in hand and of one about one's life have in common."""

SHARE = 12
"""Candidates of one turn of an assistant or document: the best ones."""

READ_CHARACTERS = 1000
"""What is read of a long text that was asked to be remembered, to tell its type."""

FEWEST_OF_FIX = 6
"""Words of a sentence that says what is done about a finding."""

REMARK, LONG_REMARK = 400, 1000
"""Characters of a turn that is a remark between two steps of the work, if it ends with the next one; and of one that
ends with what its speaker does then, in so many words."""

REPORT = 2500
"""Characters of a turn that is a report, if it has headings."""

PASTED_CHARACTERS = 2500
"""A user turn longer than this that is built like a document was pasted, not said."""

_FIX, _MENDING, _HARMLESS, _NEXT = (
    any_of(table("noise")["leads"][name]) for name in ("fix", "mending", "harmless", "next")
)
_DATA = re.compile(r"""["'}\]]\s*:\s*["'\[{]|["'}\]]\s*,\s*["'{\[]\s*["']?\w+["']?\s*:|\}\s*\]|"\}""")
_TITLE = re.compile(r"\*\*[^*]+\*\*:?$|^[\w`'-]+(?: [\w`'-]+){0,3}$")


@dataclass(frozen=True, slots=True)
class _Found:
    item: Item
    trust: Trust
    clause: Clause
    following: Clause | None
    place: Place
    meant: bool
    """Its author marked it as lasting, or wrote it into a file for agents."""
    doubt: str = ""
    """The word rule that takes it for a passing remark, where only the distiller can tell."""
    on_the_way: bool = False
    """Said before its speaker's next step: what a thing does was found out by the work: that is a lesson."""
    read: Reading | None = None


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
        found = [read for one in found if (read := self._meant(one, rejections))]
        nearness = self._prototypes.near([_bare(one.clause.text) for one in found])
        scored = [_scored(one, near, rejections) for one, near in zip(found, nearness, strict=True)]
        candidates.extend(_best([one for one in scored if one is not None], rejections))
        candidates.sort(key=lambda one: (one.item.seq, one.span.start))
        return msgspec.structs.replace(
            batch,
            candidates=batch.candidates + tuple(candidates),
            rejections=batch.rejections + tuple(rejections),
        )

    def _meant(self, one: _Found, rejections: list[Rejection]) -> _Found | None:
        """The clause with what the distiller reads in it, None if it is not meant as it stands."""
        words = one.clause.text
        if language(words) != "en":
            return one
        bare = untitled(words).replace("**", "")
        following = _bare(one.following.text) if one.following else ""
        read = self._meaning.read(bare, one.trust)
        telling = not one.item.project and read.salience >= TALK
        reason = (
            one.doubt
            if one.doubt and not telling
            else self._meaning.objection(read, bare, following, one.trust, lasting=one.meant, telling=telling)
        )
        if reason:
            rejections.append(Rejection(stage=STAGE, reason=reason, seq=one.item.seq, quote=words[:QUOTE_LIMIT]))
            return None
        return replace(one, read=read)

    def _noted(self, item: Item, event: Noted, candidates: list[Candidate], rejections: list[Rejection]) -> None:
        words = event.text
        said = words[:READ_CHARACTERS]
        if not words.strip():
            rejections.append(Rejection(stage=STAGE, reason="blank", seq=item.seq))
            return
        source = trust(event)
        type_, read = foreign(said), None
        if language(said) == "en":
            (near,) = self._prototypes.near([_bare(said)])
            read = self._meaning.read(said, source)
            type_, _ = typed(said, "user", near, read)
        span = Span(item.captured.document, event.turn, 0, len(words))
        candidates.append(_candidate(item, source, span, type_, 1.0, read))


def _candidate(
    item: Item, source: Trust, span: Span, type_: str, score: float, read: Reading | None, about: str = ""
) -> Candidate:
    event = item.captured.event
    explicit = isinstance(event, Noted)
    said = f", read as {read.type}, salience {read.salience:.1f} of 3" if read else ""
    what = f"{type_}, asked to remember" if explicit else f"{type_}, score {score:.2f}{said}"
    return Candidate(
        item=item,
        ordinal=0,
        span=span,
        quote=text(event)[span.start : span.end],
        trust=source,
        type=type_,
        score=score,
        explicit=explicit,
        context=about,
        salience=round(read.salience, 2) if read else None,
        marked=" ".join(read.words(tag) for tag in ("subject", "attribute", "value")) if read else "",
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
    told, ordered = source != "user" and sums_up(words), instructs(event)
    clauses = whole(parts.clauses, words)
    on_the_way = source == "assistant" and _goes_on(clauses, words)
    for at, clause in enumerate(clauses):
        clause = under(event, clause)
        reason = _rejected(clause, source, ordered)
        if reason == "hypothetical" and source != "user" and kept and dangling(clause.text):
            reason = "" if clause.listed and _leans(words, kept[-1].clause, clause) else reason
        if reason == "retraction" and kept and at and kept[-1].clause == clauses[at - 1]:
            gone = kept.pop()
            rejections.append(
                Rejection(stage=STAGE, reason="retracted", seq=item.seq, quote=gone.clause.text[:QUOTE_LIMIT])
            )
        doubt = reason if reason in PERSONAL_TALK and source == "user" and not item.project else ""
        if reason and not doubt:
            rejections.append(Rejection(stage=STAGE, reason=reason, seq=item.seq, quote=clause.text[:QUOTE_LIMIT]))
            continue
        if source != "user" and (dangling(clause.text) or follows(clause.text)):
            before = kept[-1].clause if kept else None
            if before is not None and _leans(words, before, clause):
                kept.pop()
                clause = replace(clause, start=before.start, text=words[before.start : clause.end])
            elif dangling(clause.text):
                reason = "dangling"
        elif source != "user" and unnamed(clause.text):
            reason = "dangling"
        elif item.project and dangling(clause.text) and not lasting(clause.text):
            reason = "" if kept and _leans(words, kept[-1].clause, clause) else "dangling"
        if reason and not doubt:
            rejections.append(Rejection(stage=STAGE, reason=reason, seq=item.seq, quote=clause.text[:QUOTE_LIMIT]))
            continue
        following = clauses[at + 1] if at + 1 < len(clauses) else None
        place = Place(
            listed=clause.listed,
            summed_up=clause.listed and (told or results(clause) or defines(clause)),
            announced=source != "user" and announced(clause),
            explained=source != "user" and defines(clause),
            narrated=on_the_way and not _outlasts(words, clause, following),
            outlasting=math.inf if source == "user" else outlasting(clause.text),
            reported=clause.listed and (explains(clause.text) or (len(words) >= REPORT and len(clause.path) > 1)),
            project=bool(item.project),
        )
        meant = ordered or (source == "user" and lasting(clause.text))
        kept.append(_Found(item, source, clause, following, place, meant, doubt, on_the_way))
    return kept


def _goes_on(clauses: Sequence[Clause], words: str) -> bool:
    """Whether a short turn ends with what its speaker does next."""
    if not clauses or len(words) > LONG_REMARK:
        return False
    last = clauses[-1].text
    if words.rstrip().endswith(":") or _NEXT.search(plain(last)):
        return True
    return len(words) <= REMARK and noise(last, "assistant") == "progress"


def _rejected(clause: Clause, source: Trust, ordered: bool) -> str:
    words = clause.text
    if len(words) > QUOTE_LIMIT:
        return "too long"
    if count_words(words) < FEWEST_WORDS[source]:
        return "retraction" if noise(words, source) == "retraction" else "too short"
    if language(words) != "en":
        question = noise(words, "tool") == "question"
        return "question" if question else ("" if source == "user" or ordered else "no cue")
    if ordered or (source != "user" and defines(clause)):
        return "title" if not ordered and obscure(clause) else noise(words, "tool")
    if source != "user" and (reason := section(clause)):
        return reason
    if source == "assistant" and edited(clause):
        return "edit"
    if source == "assistant" and hearsay(clause):
        return "hearsay"
    if source == "assistant" and clause.listed and thin(words):
        return "title"
    if (
        clause.listed
        and source == "user"
        and clause.heading
        and not (lasting(words) or (max((*_strongest(words), 0.0)) >= 0.5 and not asked(clause)))
    ):
        return "request"
    if _DATA.search(words):
        return "data"
    if source != "user" and _TITLE.fullmatch(words):
        return "title"
    return noise(words, source)


def _leans(words: str, before: Clause, clause: Clause) -> bool:
    """Whether `clause` goes on with the sentence right before it: then both are quoted together."""
    between = words[before.end : clause.start]
    return not between.strip() and between.count("\n") < 2 and clause.end - before.start <= QUOTE_LIMIT


def _outlasts(words: str, clause: Clause, after: Clause | None) -> bool:
    """Whether a clause of a turn on the way may be worth more than the step: an item, a finding that is mended."""
    if clause.listed or clause.path or _HARMLESS.search(clause.text):
        return True
    return _is_mended(words, clause, after) and not specific(clause.text)


def _is_mended(words: str, clause: Clause, after: Clause | None) -> bool:
    """Whether the sentence right behind a finding says what is done about it."""
    fixed = _behind(words, clause, after, _FIX)
    return fixed and after is not None and count_words(after.text) >= FEWEST_OF_FIX


def _behind(words: str, clause: Clause, after: Clause | None, pattern: re.Pattern[str]) -> bool:
    """Whether a sentence of this form stands right behind the clause, near enough to be quoted with it."""
    if after is None or not pattern.match(after.text) or words[clause.end : after.start] != " ":
        return False
    return after.end - clause.start <= QUOTE_LIMIT


def _strongest(words: str) -> list[float]:
    """Cue weights of what a user's list item must be to be more than a part of their request."""
    found = weights(words, "user")
    return [found.get(name, 0.0) for name in ("identity", "preference", "decision", "convention", "lesson")]


def _scored(found: _Found, near: dict[str, float], rejections: list[Rejection]) -> Candidate | None:
    item, clause, source = found.item, found.clause, found.trust
    document, turn = item.captured.document, item.captured.event.turn
    if found.read is None:
        type_, score = foreign(clause.text), FOREIGN
    else:
        type_, score = typed(clause.text, source, near, found.read, headed(clause))
        if type_ == "identity" and item.project and not personal(clause.text):
            type_ = "fact"
        if type_ == "fact" and found.on_the_way and found.place.outlasting != SET:
            type_ = "lesson"
        score = max(score, 0.75) if found.meant else score
        if found.place.summed_up and ("`" in clause.text or score >= FLOOR[source]):
            score = min(1.0, score + 0.15)
        reason = "" if found.meant else too_little(source, score, found.read, found.place)
        if source != "user" and not found.meant and type_ != "lesson" and troubled(clause):
            reason = reason or "trouble"
        if source != "user" and not found.meant and repairs(clause) and mended(clause.text, faults(clause)):
            reason = reason or "mended"
        if reason:
            words = clause.text[:QUOTE_LIMIT]
            rejections.append(Rejection(stage=STAGE, reason=f"{reason} {type_}", seq=item.seq, quote=words))
            return None
    end = clause.end
    after = found.following
    whole_turn = text(item.captured.event)
    if source == "assistant" and after is not None:
        told = _is_mended(whole_turn, clause, after) or _behind(whole_turn, clause, after, _MENDING)
        end = after.end if told else end
    about = context(clause, written=source == "document") if source != "user" else ""
    return _candidate(item, source, Span(document, turn, clause.start, end), type_, score, found.read, about)


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
