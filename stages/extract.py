"""Extract: turn captures into typed candidates. Invariants: `quote == text(event)[start:end]` (P-5); identity and
preference come from the user's own words only (P-19); a text that somebody asked to remember is one candidate, whole,
and is refused only if it is blank (W2). Every clause that is left out has a rejection with its reason."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import msgspec

from ..models.distiller import ClauseReading
from ..protocol.event import Noted, Reflected, Said, SentPart, Trust, Wrote, text, trust
from ..protocol.operation import Step
from ..protocol.record import OPEN_QUESTION, QUOTE_LIMIT, Span
from . import documents, links, other_languages, sections
from . import extraction_gate as gate
from .batch import AgentText, Batch, Candidate, Item, Rejection, RulesOff
from .clauses import Clause, split
from .commitments import closes, subject
from .cues import LEADS, count_words, foreign, lasting, lasting_in_other_language, noise, noises, plain, weights
from .embed import SentenceEmbedder
from .lead_ins import LeadIn, language_behind, lead_in, lead_in_within
from .open_questions import is_undecided
from .ownership import about_user
from .reports import behind_topic, is_first_person, is_reported
from .selection import Place, Tier, features, selection
from .speakers import foreign_passages
from .subjects import dangling, follows, unnamed, untitled
from .words import is_english

STAGE = "extract"

FEWEST_WORDS: dict[Trust, int] = {"user": 3, "assistant": 4, "document": 4, "tool": 99}
FOREIGN = 0.6  # Score of a clause in a language that no model here reads: kept verbatim, if the user said it
TALK = 0.9  # Salience from which a remark outside of a project is not small talk: people tell of themselves in passing
# Word rules that match remarks about work in hand and remarks about one's life alike.
PERSONAL_TALK = frozenset({"reaction", "aside", "report", "verdict"})
# Word rules that take the topic in front of a statement for what the statement does.
TOPIC_TALK = PERSONAL_TALK | {"request"}
BEYOND = "beyond the share of a turn"
SHARE = 5  # Candidates of one turn of an assistant or document: the best ones
CUED = 0.5  # Weight of the cue words from which prose of a document is a decision or a lesson
READ_CHARACTERS = 1000  # Characters of a text that was asked to be remembered which decide its type
# Rules whose clauses cannot be used at all; and those whose clauses are never believed: they state nothing.
UNUSABLE = frozenset({"too long", "retraction", "data", "log", "link", "placeholder", "quoted"})
DOUBTFUL = frozenset("question asked hypothetical retracted irony social report verdict reaction weak".split())
NO_STATEMENT = frozenset({"too short", "title"})  # Rules that apply to what is undecided as well
APPROVED = frozenset[tuple[Trust, str]]({("assistant", "plan")})
"""The rule that leaves out what is only planned, which does not hold once the user approved the plan."""
RULES = frozenset({"convention", "procedure"})
ANSWERED = frozenset({"convention", "preference"})  # Types of answers; any other answer decides something
FEWEST_OF_FIX = 6  # Words of a sentence that says what is done about a finding
# Characters of a turn between two steps of the work, if it ends with the next step; and of one that announces the next
# step in so many words.
REMARK, LONG_REMARK = 400, 1000
FEWEST_REPEATED = 80  # Characters of a user's turn that may repeat what the agent wrote
PASTED_CHARACTERS = 2500  # A user turn longer than this that is built like a document was pasted, not said
_DATA = re.compile(r"""["'}\]]\s*:\s*["'\[{]|["'}\]]\s*,\s*["'{\[]\s*["']?\w+["']?\s*:|\}\s*\]|"\}""")
_TITLE = re.compile(r"\*\*[^*]+\*\*:?$|^[\w`'-]+(?: [\w`'-]+){0,3}$")


@dataclass(frozen=True, slots=True)
class _Statement:
    """A clause that may be kept. `meant`: its author marked it as lasting, or wrote it into a file for agents. `doubt`:
    the word rule that takes it for a passing remark, where only the distiller can tell. `in_progress`: said before its
    speaker's next step of work. `place`: where it stands, if the selection decides on it; `reason`: the rule that would
    leave it out; `is_noted`: it is kept, and not believed; `asked_in`: its language, where its author asked to remember
    it; `is_open`: it says that something is undecided; `language`: of its words."""

    item: Item
    trust: Trust
    clause: Clause
    following: Clause | None
    position: gate.Position
    meant: bool
    doubt: str = ""
    in_progress: bool = False
    reading: ClauseReading | None = None
    place: Place | None = None
    reason: str = ""
    is_noted: bool = False
    asked_in: str = ""
    is_open: bool = False
    language: str = "en"


class Extract:
    """The stage. The trunk is asked for vectors only for the first steps of a project."""

    def __init__(self, trunk: SentenceEmbedder, reader: gate.ClauseReader, off: RulesOff = frozenset()) -> None:
        self._off = off
        self._first_steps = documents.FirstSteps(trunk)
        self._reader = reader

    def __call__(self, batch: Batch) -> Batch:
        candidates: list[Candidate] = []
        rejections: list[Rejection] = []
        unread: list[_Statement] = []
        answers: list[tuple[Item, links.Question]] = []
        for item in batch.items:
            event = item.captured.event
            if isinstance(event, Noted):
                self._note(item, event, candidates, rejections)
            elif isinstance(event, Wrote) and event.form == "open":
                self._left_open(item, batch.agent.get(item.captured.document, ()), candidates, rejections)
            elif isinstance(event, Wrote) and documents.is_part(event):
                self._part(item, event, candidates, rejections)
            elif isinstance(event, Said | Wrote):
                agent = batch.agent.get(item.captured.document, ())
                if question := links.question(item, agent):
                    answers.append((item, question))
                elif approval := links.approval(item, agent):
                    candidates.append(_approved(item, approval))
                if question is None or not question.is_stated:
                    off = self._off | APPROVED if _is_approved(item) else self._off
                    unread.extend(_Turn(item, agent, rejections, off).statements())
            elif not isinstance(event, Reflected | SentPart):
                rejections.append(_rejection(item, "not prose"))
        statements = [meant for statement in unread if (meant := self._meant(statement, rejections))]
        scored = [self._scored(statement, rejections) for statement in statements]
        candidates.extend(self._best([candidate for candidate in scored if candidate is not None], rejections))
        taken = {candidate.item.seq for candidate in candidates}
        for item, question in answers:
            if item.seq not in taken:
                self._answer(item, question, candidates, rejections)
        candidates.sort(key=lambda candidate: (candidate.item.seq, candidate.span.start))
        return msgspec.structs.replace(
            batch, candidates=(*batch.candidates, *candidates), rejections=(*batch.rejections, *rejections)
        )

    def _meant(self, statement: _Statement, rejections: list[Rejection]) -> _Statement | None:
        words = statement.clause.text
        if not _is_readable(words, statement.asked_in, statement.language):
            return self._chosen(statement, statement.reason, rejections)
        following = _bare(statement.following.text) if statement.following else ""
        reading = gate.read(self._reader, untitled(words).replace("**", ""), statement.trust)
        telling = not statement.item.project and reading.salience >= TALK
        reason = statement.reason or ("" if telling else statement.doubt)
        reason = reason or gate.unmeant(self._reader, reading, following, statement.trust, statement.meant, telling)
        if reason and not statement.reason and statement.trust == "user" and (rest := behind_topic(words)):
            reading = gate.read(self._reader, rest, statement.trust)  # a topic reads like the name of a speaker
            reason = gate.unmeant(self._reader, reading, following, statement.trust, statement.meant, telling)
        reason = "" if statement.is_open and reason != "retracted" else reason
        return self._chosen(replace(statement, reading=reading), reason, rejections)

    def _scored(self, statement: _Statement, rejections: list[Rejection]) -> Candidate | None:
        item, clause, source = statement.item, statement.clause, statement.trust
        if statement.reading is None:
            type_, score = foreign(clause.text), FOREIGN
        else:
            type_, score = _typed(statement, statement.reading)
            reason = "" if statement.reason else _unworthy(statement, type_, score, statement.reading)
            chosen = self._chosen(statement, f"{reason} {type_}" if reason else "", rejections)
            if chosen is None:
                return None
            statement = chosen
        span = Span(item.captured.document, item.captured.event.turn, clause.start, _end(statement))
        if source == "user" and not statement.asked_in and is_reported(clause.text):
            reported = candidate_of(item, "document", span, "fact", score, statement.reading)
            return msgspec.structs.replace(reported, flags=("reported",))
        about = sections.context(clause, written=source == "document") if source != "user" else ""
        candidate = candidate_of(item, source, span, type_, score, statement.reading, about)
        candidate = msgspec.structs.replace(candidate, is_noted=statement.is_noted, asked_in=statement.asked_in)
        return candidate if statement.reading else _in_language(candidate, statement.language)

    def _chosen(self, statement: _Statement, reason: str, rejections: list[Rejection]) -> _Statement | None:
        """The statement as it is kept, or None. `reason`: the rule that leaves it out, or "". Where the selection
        decides, it outweighs every rule but those about what cannot be used; what states nothing by itself is at most
        noted."""
        source = statement.trust
        reason = "" if {(source, reason), (source, reason.partition(" ")[0])} & self._off else reason
        tier: Tier = "" if reason else "believed"
        if statement.reading is None and other_languages.is_read(statement.language):
            tier = _tier_in_other_language(statement, reason)
        elif statement.place and reason not in UNUSABLE and (reason or not statement.meant):
            likely = selection().probability(features(statement.place, statement.clause, statement.reading))
            tier = selection().tier(likely) or ("noted" if (source, "not selected") in self._off else "")
        if not tier:
            rejections.append(_rejection(statement.item, reason or "not selected", statement.clause.text))
            return None
        is_noted = statement.is_noted or tier == "noted" or reason.partition(" ")[0] in DOUBTFUL
        return replace(statement, reason=statement.reason or reason, is_noted=is_noted)

    def _best(self, candidates: list[Candidate], rejections: list[Rejection]) -> list[Candidate]:
        """At most `SHARE` candidates a turn from anyone but the user."""
        best: list[Candidate] = []
        taken: Counter[int] = Counter()
        for candidate in sorted(candidates, key=lambda it: (it.item.seq, -it.score, it.span.start)):
            taken[candidate.item.seq] += 1
            is_kept = candidate.trust == "user" or taken[candidate.item.seq] <= SHARE
            if is_kept or (candidate.trust, BEYOND) in self._off:
                best.append(candidate)
            else:
                rejections.append(_rejection(candidate.item, BEYOND, candidate.quote))
        return best

    def _answer(
        self, item: Item, question: links.Question, candidates: list[Candidate], rejections: list[Rejection]
    ) -> None:
        """Take a whole turn of the user as the answer to a question of the agent."""
        words = text(item.captured.event)
        if (reason := _rejected(Clause(0, len(words), words, False), "user", False)) in UNUSABLE:
            rejections.append(_rejection(item, reason, words))
            return
        asked, answered = gate.read(self._reader, question.text, "assistant"), gate.read(self._reader, words, "user")
        likely = links.answers().probability(links.features(asked, answered, question.text, words))
        tier = links.answers().tier(likely, question)
        if not tier:
            rejections.append(_rejection(item, "passing answer", words))
            return
        span = Span(item.captured.document, item.captured.event.turn, 0, len(words))
        type_ = answered.type if answered.type in ANSWERED else "decision"
        both = gate.read(self._reader, links.joined(question.text, words), "user")
        candidate = candidate_of(item, "user", span, type_, likely, answered)
        candidates.append(
            msgspec.structs.replace(
                candidate,
                description=links.joined(question.text, words),
                question=question.text,
                asked_at=question.span,
                about_user=about_user(both),
                is_noted=tier == "noted",
            )
        )

    def _note(self, item: Item, event: Noted, candidates: list[Candidate], rejections: list[Rejection]) -> None:
        words = event.text
        if not words.strip():
            rejections.append(_rejection(item, "blank"))
            return
        lead, source = lead_in(words[:READ_CHARACTERS]), trust(event)
        start = lead.end if lead and lead.end < len(words) else 0
        front = words[start : start + READ_CHARACTERS]
        asked_in = language_behind(lead, front) if lead and start else ""
        type_, reading = foreign(front), None
        spoken = asked_in or other_languages.language(front)
        if _is_readable(front, asked_in, spoken):
            reading = gate.read(self._reader, front, source)
            type_, _ = gate.typed(Clause(start, start + len(front), front, False), "user", reading)
            type_ = OPEN_QUESTION if is_undecided(front) else type_
        span = Span(item.captured.document, event.turn, start, len(words))
        candidate = candidate_of(item, source, span, type_, 1.0, reading)
        candidates.append(_in_language(msgspec.structs.replace(candidate, asked_in=asked_in), spoken))

    def _part(self, item: Item, event: Wrote, candidates: list[Candidate], rejections: list[Rejection]) -> None:
        """Take a part of a document, whole."""
        statements = documents.statements(event)
        if not statements:
            rejections.append(_rejection(item, "not prose"))
        for clause in statements:
            words = untitled(clause.text).replace("**", "")
            reading = gate.read(self._reader, words, "document") if is_english(words) else None
            type_, score = documents.TYPES.get(event.form, ""), 0.0
            if not type_:
                type_, score = self._prose_type(clause, words, reading)
            is_slight = reading is not None and documents.is_slight(event, clause.text, reading.salience)
            if reading and is_slight and gate.too_little("document", score, reading, gate.Position()):
                rejections.append(_rejection(item, "slight", clause.text))
                continue
            span = Span(item.captured.document, event.turn, clause.start, clause.end)
            line = documents.line(event, clause)
            candidate = candidate_of(item, "document", span, type_, 1.0, reading, documents.context(clause))
            salience = self._first_steps.salience(line) if type_ == "procedure" and line else candidate.salience
            candidates.append(msgspec.structs.replace(candidate, description=line, salience=salience))

    def _left_open(
        self, item: Item, agent: Sequence[AgentText], candidates: list[Candidate], rejections: list[Rejection]
    ) -> None:
        """Take the first items that a todo list leaves open; agents report items as done and do not tick them off."""
        kept = 0
        for clause in split(text(item.captured.event)).clauses:
            wanted = subject(clause.text)
            reason = _rejected(clause, "document", True)
            reason = reason if reason in UNUSABLE | NO_STATEMENT else ""
            if not reason and any(closes(told.text, wanted) for told in agent):
                reason = "done"
            reason = reason or (BEYOND if kept == SHARE else "")
            if reason:
                rejections.append(_rejection(item, reason, clause.text))
                continue
            kept += 1
            reading = gate.read(self._reader, clause.text, "document") if is_english(clause.text) else None
            span = Span(item.captured.document, item.captured.event.turn, clause.start, clause.end)
            candidate = candidate_of(item, "document", span, "commitment", 1.0, reading)
            described = f"Left open: {' '.join(clause.text.split())}"
            language = other_languages.language(clause.text)
            candidates.append(
                msgspec.structs.replace(candidate, description=described, is_noted=True, language=language)
            )

    def _prose_type(self, clause: Clause, words: str, reading: ClauseReading | None) -> tuple[str, float]:
        """Return the type of prose of a document, and its score. What a document tells, nobody found out just now."""
        if reading is None:
            return foreign(words), FOREIGN
        type_, score = gate.typed(clause, "document", reading)
        is_announced = type_ in (sections.headed(clause), "convention")
        is_meant = is_announced or weights(words, "document").get(type_, 0.0) >= CUED
        return type_ if is_meant and type_ != "procedure" else "fact", score


def _is_approved(item: Item) -> bool:
    """Whether the user approved the whole text."""
    event = item.captured.event
    return isinstance(event, Said) and event.approved


def _is_readable(words: str, asked_in: str, spoken: str) -> bool:
    """Whether the networks can read a statement: they know English only."""
    return asked_in == "en" or (not asked_in and spoken == "en" and is_english(words))


def _in_language(candidate: Candidate, spoken: str) -> Candidate:
    """The candidate with its language and, where the model of other languages knows it, what its words are about."""
    if not other_languages.is_read(spoken):
        return msgspec.structs.replace(candidate, language=spoken)
    reading = other_languages.read(candidate.quote[:READ_CHARACTERS], candidate.trust)
    about = reading.about_user if candidate.trust == "user" else None
    return msgspec.structs.replace(candidate, language=spoken, type=reading.type, about_user=about)


def candidate_of(
    item: Item, source: Trust, span: Span, type_: str, score: float, reading: ClauseReading | None, about: str = ""
) -> Candidate:
    """Return the candidate of a span of an item. `about`: the heading that names what it is about."""
    event = item.captured.event
    explicit = isinstance(event, Noted)
    as_read = f", read as {reading.type}, salience {reading.salience:.1f} of 3" if reading else ""
    what = f"{type_}, asked to remember" if explicit else f"{type_}, score {score:.2f}{as_read}"
    return Candidate(
        item=item,
        ordinal=0,
        span=span,
        quote=text(event)[span.start : span.end],
        trust=source,
        type=type_,
        score=score,
        explicit=explicit,
        about_user=about_user(reading) if reading and source == "user" else None,
        context=about,
        salience=round(reading.salience, 2) if reading else None,
        marked=" ".join(reading.words(tag) for tag in ("subject", "attribute", "value")) if reading else "",
        steps=(Step(STAGE, what),),
    )


def _approved(item: Item, approval: links.Approval) -> Candidate:
    """A proposal of the agent that the user approves, in another language: the user's decision."""
    clause, (asked_at, proposal, _), likely = approval
    span = Span(item.captured.document, item.captured.event.turn, clause.start, clause.end)
    return msgspec.structs.replace(
        candidate_of(item, "user", span, "decision", likely, None),
        description=links.joined(proposal, clause.text),
        question=proposal,
        asked_at=asked_at,
        about_user=0.0,
        is_noted=likely < other_languages.NOTED,
        language=other_languages.language(proposal),
    )


def _rejection(item: Item, reason: str, words: str = "") -> Rejection:
    return Rejection(stage=STAGE, reason=reason, seq=item.seq, quote=words[:QUOTE_LIMIT])


def _bare(words: str) -> str:
    """The words of a clause without Markdown's marks, as the trunk reads them."""
    return re.sub(r"\*\*|__|`", "", words)


class _Turn:
    """The clauses of one turn in order: one may retract the clause before it, or be quoted together with it."""

    def __init__(
        self, item: Item, agent: Sequence[AgentText], rejections: list[Rejection], off: RulesOff = frozenset()
    ) -> None:
        event = item.captured.event
        self._off = off
        self._item, self._event, self._rejections = item, event, rejections
        self.source: Trust = trust(event)
        self._words = text(event)
        is_long = len(self._words) >= FEWEST_REPEATED
        said = [told.text for told in agent if is_long and told.seq < item.seq]
        passages = foreign_passages(self._words, said) if self.source == "user" else ()
        passages = tuple(passage for passage in passages if ("user", passage.writer) not in off)
        rejections.extend(_rejection(item, passage.writer) for passage in passages)
        parts = split(self._words, [passage[:2] for passage in passages])
        rejections.extend(_rejection(item, reason) for reason in parts.dropped)
        self._clauses = list(sections.whole(parts.clauses, self._words))
        self._asked = self._take_off_lead_ins() if self.source == "user" else {}
        self._sums_up = self.source != "user" and sections.sums_up(self._words)
        self._instructs = sections.instructs(event)
        self._in_progress = self.source == "assistant" and _goes_on(self._clauses, self._words)
        self._statements: list[_Statement] = []
        self._languages: list[str] = []

    def statements(self) -> list[_Statement]:
        """The clauses that no word rule leaves out."""
        is_long = self.source == "user" and len(self._words) > PASTED_CHARACTERS
        is_built = self._words.count("\n#") + self._words.count("\n- ") >= 4
        if is_long and is_built and ("user", "pasted") not in self._off:
            self._rejections.append(_rejection(self._item, "pasted"))
            return []
        self._languages = [other_languages.language(clause.text, self._words) for clause in self._clauses]
        for at, clause in enumerate(self._clauses):
            self._take(at, sections.under(self._event, clause))
        return self._statements

    def _take_off_lead_ins(self) -> dict[int, str]:
        """The language of each clause that the user asked to remember, by number; "-" for a clause that is no more than
        that: it speaks of the next one, or as the last one of the one before."""
        asked: dict[int, str] = {}
        for at, clause in enumerate(self._clauses):
            lead = lead_in(clause.text) or self._lead_in_within(clause)
            if lead is None:
                continue
            if lead.end < len(clause.text):
                self._clauses[at] = clause = replace(
                    clause, start=clause.start + lead.end, text=clause.text[lead.end :]
                )
                asked[at] = language_behind(lead, clause.text)
                continue
            asked[at] = "-"
            meant = at + 1 if at + 1 < len(self._clauses) else at - 1
            if meant >= 0 and meant not in asked:
                asked[meant] = language_behind(lead, self._clauses[meant].text)
        return asked

    def _lead_in_within(self, clause: Clause) -> LeadIn | None:
        spoken = other_languages.language(clause.text, self._words)
        lead = lead_in_within(clause.text) if spoken != "en" else None
        return lead if lead and lead.language == spoken else None

    def _take(self, at: int, clause: Clause) -> None:
        asked_in, is_open = self._asked.get(at, ""), is_undecided(clause.text)
        reason = "lead-in" if asked_in == "-" else self._word_rule(clause, self._languages[at])
        if asked_in not in {"", "-", "en"} and reason not in UNUSABLE:
            reason = ""
        if reason == "retraction":
            self._retract(at)
        if not reason and not asked_in and self._languages[at] == "en":
            clause, reason = self._with_context(clause)
            reason = "" if (self.source, reason) in self._off else reason
        reason = "" if is_open and reason not in UNUSABLE | NO_STATEMENT else reason
        is_personal = self.source == "user" and not self._item.project
        doubt = reason if is_personal and reason in PERSONAL_TALK else ""
        place = self._place(at) if reason not in UNUSABLE and asked_in != "-" else None
        if reason and not doubt and place is None:
            self._rejections.append(_rejection(self._item, reason, clause.text))
            return
        following = self._clauses[at + 1] if at + 1 < len(self._clauses) else None
        position = self._position(clause, following)
        meant = self._instructs or bool(asked_in) or (self.source == "user" and lasting(clause.text)) or is_open
        self._statements.append(
            _Statement(
                self._item,
                self.source,
                clause,
                following,
                position,
                meant,
                doubt,
                self._in_progress,
                place=place,
                reason="" if doubt else reason,
                asked_in=asked_in,
                is_open=is_open,
                language=asked_in or self._languages[at],
            )
        )

    def _place(self, at: int) -> Place | None:
        """Where a clause stands, if the selection decides on it: it was fitted on what users say in projects."""
        if self.source != "user" or not self._item.project:
            return None
        return self.places()[at][0]

    def places(self) -> list[tuple[Place, Clause]]:
        characters = sum(len(clause.text) for clause in self._clauses)
        is_user, count = self.source == "user", len(self._clauses)
        return [(Place(is_user, at, count, characters), clause) for at, clause in enumerate(self._clauses)]

    def _word_rule(self, clause: Clause, spoken: str) -> str:
        reason = _rejected(clause, self.source, self._instructs, spoken, self._off)
        if reason == "hypothetical" and self.source != "user" and clause.listed and dangling(clause.text):
            return "" if self._leans(clause) else reason
        return reason

    def _retract(self, at: int) -> None:
        """Leave out the clause that stands right before number `at`, if it is the last one kept."""
        if at and self._statements and self._statements[-1].clause == self._clauses[at - 1]:
            retracted = self._statements.pop().clause
            self._rejections.append(_rejection(self._item, "retracted", retracted.text))

    def _with_context(self, clause: Clause) -> tuple[Clause, str]:
        """The clause, joined to the one before it where it needs it; and "dangling" where that one is not kept."""
        leans = dangling(clause.text)
        if self.source == "user":
            needs = leans and self._item.project and not lasting(clause.text)
            return clause, "dangling" if needs and not self._leans(clause) else ""
        if leans or follows(clause.text):
            if self._leans(clause):
                before = self._statements.pop().clause
                return replace(clause, start=before.start, text=self._words[before.start : clause.end]), ""
            return clause, "dangling" if leans else ""
        return clause, "dangling" if unnamed(clause.text) else ""

    def _leans(self, clause: Clause) -> bool:
        """Whether the clause goes on with the sentence right before it, near enough to be quoted with it."""
        if not self._statements:
            return False
        before = self._statements[-1].clause
        between = self._words[before.end : clause.start]
        return not between.strip() and between.count("\n") < 2 and clause.end - before.start <= QUOTE_LIMIT

    def _position(self, clause: Clause, following: Clause | None) -> gate.Position:
        is_users = self.source == "user"
        # An item, or a finding that is mended, may be worth more than the step of a turn in progress.
        outlasts_step = clause.listed or clause.path or LEADS["harmless"].search(clause.text)
        outlasts_step = outlasts_step or (_is_mended(self._words, clause, following) and not gate.specific(clause.text))
        position = gate.Position(
            listed=clause.listed,
            summed_up=clause.listed and (self._sums_up or sections.results(clause) or sections.defines(clause)),
            announced=not is_users and sections.announced(clause),
            explained=not is_users and sections.defines(clause),
            narrated=self._in_progress and not outlasts_step,
            outlasting=math.inf if is_users else gate.outlasting(clause.text),
            project=bool(self._item.project),
        )
        defaults = gate.Position()._asdict()
        return position._replace(**{name: of for name, of in defaults.items() if (self.source, name) in self._off})


def own_clauses(item: Item, agent: Sequence[AgentText]) -> list[tuple[Place, Clause]]:
    """The clauses of a turn that its speaker wrote, and where each stands."""
    return _Turn(item, agent, []).places()


def turn_clauses(item: Item, agent: Sequence[AgentText]) -> list[tuple[Place, Clause]]:
    """The clauses of a turn that may be kept, and where each stands."""
    turn = _Turn(item, agent, [])
    return [(place, clause) for place, clause in turn.places() if _rejected(clause, turn.source, False) not in UNUSABLE]


def _goes_on(clauses: Sequence[Clause], words: str) -> bool:
    """Whether a short turn ends with its speaker's next step."""
    if not clauses or len(words) > LONG_REMARK:
        return False
    last = clauses[-1].text
    if words.rstrip().endswith(":") or LEADS["next"].search(plain(last)):
        return True
    return len(words) <= REMARK and noise(last, "assistant") == "progress"


def _rejected(clause: Clause, source: Trust, instructs: bool, spoken: str = "en", off: RulesOff = frozenset()) -> str:
    """The first reason to leave a clause out, or ""."""
    return next((reason for reason in _reasons(clause, source, instructs, spoken) if (source, reason) not in off), "")


def _reasons(clause: Clause, source: Trust, instructs: bool, spoken: str) -> Iterator[str]:
    words = clause.text
    if len(words) > QUOTE_LIMIT:
        yield "too long"
    if count_words(words) < FEWEST_WORDS[source]:
        yield "retraction" if noise(words, source) == "retraction" else "too short"
    if spoken != "en" or not is_english(words):
        if noise(words, "tool") == "question":
            yield "question"
        if source != "user" and not instructs and not other_languages.is_read(spoken):
            yield "no cue"
    elif instructs or (source != "user" and sections.defines(clause)):
        if not instructs and sections.obscure(clause):
            yield "title"
        yield from noises(words, "tool")
    else:
        yield from _reasons_of_place(clause, source)
        if _DATA.search(words):
            yield "data"
        if source != "user" and _TITLE.fullmatch(words):
            yield "title"
        yield from _reasons_of_words(words, source)


def _reasons_of_words(words: str, source: Trust) -> Iterator[str]:
    for reason in noises(words, source):
        rest = behind_topic(words) if source == "user" and reason in TOPIC_TALK else ""
        if is_first_person(rest):
            yield from noises(rest, source)
            return
        yield reason


def _reasons_of_place(clause: Clause, source: Trust) -> Iterator[str]:
    if source == "user":
        if clause.listed and clause.heading and _is_request(clause):
            yield "request"
    elif reason := sections.section(clause):
        yield reason
    if source != "assistant":
        return
    if sections.edited(clause):
        yield "edit"
    if sections.listed_under(clause, "hearsay"):
        yield "hearsay"


def _is_request(clause: Clause) -> bool:
    """Whether a user's list item is only a part of their request: no strong cue makes it more."""
    if lasting(clause.text) or (is_first_person(clause.text) and not sections.asked(clause)):
        return False
    cued = weights(clause.text, "user")
    strongest = max(cued.get(name, 0.0) for name in ("identity", "preference", "decision", "convention", "lesson"))
    return strongest < 0.5 or sections.asked(clause)


def _is_mended(words: str, clause: Clause, after: Clause | None) -> bool:
    """Whether the sentence right behind a finding says what is done about it."""
    is_followed = _is_followed(words, clause, after, LEADS["fix"])
    return is_followed and after is not None and count_words(after.text) >= FEWEST_OF_FIX


def _is_followed(words: str, clause: Clause, after: Clause | None, pattern: re.Pattern[str]) -> bool:
    """Whether a sentence of this form stands right behind the clause, near enough to be quoted with it."""
    if after is None or not pattern.match(after.text) or words[clause.end : after.start] != " ":
        return False
    return after.end - clause.start <= QUOTE_LIMIT


def _tier_in_other_language(statement: _Statement, reason: str) -> Tier:
    if statement.asked_in or reason in UNUSABLE | NO_STATEMENT:
        return "" if reason else "believed"
    words = statement.clause.text
    read = other_languages.read(words, statement.trust)
    return other_languages.tier(read, statement.trust, lasting=lasting_in_other_language(words, statement.language))


def _typed(statement: _Statement, reading: ClauseReading) -> tuple[str, float]:
    clause, source = statement.clause, statement.trust
    type_, score = gate.typed(clause, source, reading)
    if type_ == "identity" and statement.item.project and not gate.personal(clause.text):
        type_ = "fact"
    if type_ in RULES and sections.is_of_others(statement.item.captured.event):
        type_ = "fact"  # that somebody else asks for it makes it no rule
    if type_ == "fact" and _is_approved(statement.item):
        return "decision", score
    if type_ == "fact" and statement.in_progress and statement.position.outlasting != gate.SETTING:
        type_ = "lesson"  # the work found it out
    score = max(score, 0.75) if statement.meant else score
    if statement.is_open:
        return OPEN_QUESTION, score
    if statement.position.summed_up and ("`" in clause.text or score >= gate.FLOOR[source]):
        score = min(1.0, score + 0.15)
    return type_, score


def _unworthy(statement: _Statement, type_: str, score: float, reading: ClauseReading) -> str:
    clause, source = statement.clause, statement.trust
    if statement.meant:
        return ""
    if _is_approved(statement.item) and reading.salience < documents.SALIENT:
        return "slight"
    if reason := gate.too_little(source, score, reading, statement.position):
        return reason
    if source == "user":
        return ""
    if source == "document" and not _is_reasoned(statement, type_):
        return "change"
    return "trouble" if type_ != "lesson" and sections.troubled(clause) else ""


def _is_reasoned(statement: _Statement, type_: str) -> bool:
    """Whether what a commit says is a decision, a rule or a reason: the code shows the change itself."""
    return type_ == "decision" or type_ in RULES or LEADS["reason"].search(statement.clause.text) is not None


def _end(statement: _Statement) -> int:
    """Where the quote ends: an agent's finding is quoted with the sentence that says what was done about it."""
    clause, after = statement.clause, statement.following
    if statement.trust != "assistant" or after is None:
        return clause.end
    words = text(statement.item.captured.event)
    is_mended = _is_mended(words, clause, after) or _is_followed(words, clause, after, LEADS["mending"])
    return after.end if is_mended else clause.end
