"""The lines of a profile: which records of a pool it contains, under which heading, in which words (Q1, Q11).

A line needs to make sense to a reader who was not there (P-5); pinned and remembered records always may be lines. The
rules of English words apply to English lines only. Invariants: the static part depends on its own cards only and is
in the order of learning, so that a new line moves no other; unconfirmed lines are marked; no two lines say the same. An
order that the user did not give is quoted with its source, and only of an agent, a file for agents or an own commit;
of another document only the commands with which something is done (P-19).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, Protocol

from ....protocol.instant import day, micros
from ....protocol.record import OPEN_QUESTION, PRINCIPLE, Record, Signal
from ....stages.batch import PERSONAL
from ....stages.rules import any_of, table
from ....stages.words import STOP, tokens
from ...forgetting_rules import Rules
from ...projections.profile import Part, is_explicit
from ...projections.salience import salience, standing
from ..outgoing_screen import flags_in, secrets_in
from ..service import Permits
from .open_items import NearbyCaptures, is_open

WORDS = 4
"""Least words of a line that a reader who was not there understands."""

_LEANING = re.compile(
    r"(?:this|that|these|those|it|its|they|them|he|she|both|same|such|here|there|also|then|and|but|or|so|now|currently|"
    r"(?:the )?(?:above|following|latter|former|first|second|next|other)|"
    r"(?:the|each|every) (?:pattern|issue|problem|fix|bug|error|change|idea|reason|cause|point|plan|step|option|result|"
    r"approach|solution|refactor|strategy|innermost|old|new))\b",
    re.IGNORECASE,
)
"""Beginnings that refer to a sentence before."""

_POINTING = re.compile(
    r"\b(?:that|this|these|those) (?:branch|file|function|module|case|tests?|lines?|call|method|class|component|hook|"
    r"code|error|issue|one|commit|session)\b",
    re.IGNORECASE,
)

_SPOKEN = re.compile(
    r"you (?:will|can|need|should|may|might|could|have|want)\b"
    r"|.*\b(?:i (?:can.?t|cannot|will|need|should|must)|let me|i.ll|i.m going to|needs? to be \w+ed)\b",
    re.IGNORECASE,
)
"""What an agent says to the user about the present moment."""

_LOGGED = re.compile(
    r"(?:added|removed|renamed|moved|replaced|consolidated|merged|updated|fixed|created|implemented|refactored|extracted|"
    r"deleted|changed|converted|split|introduced|cleaned|improved|simplified|switched|rewrote|dropped)\b",
    re.IGNORECASE,
)
_REASON = re.compile(
    r"\b(?:because|since|so that|instead of|rather than|over|to avoid|due to|in order to|otherwise|unless|must|never|"
    r"always|prefer)\b",
    re.IGNORECASE,
)
_GENERAL = re.compile(
    r"\b(?:because|since|so that|must|never|always|requires?|needs?|cannot|can.?t|does(?:n.t| not)|do(?:n.t| not)|"
    r"unless|only|instead|rather|before|after|when|whenever|otherwise|avoid|lesson|"
    r"no \w+ (?:\w+ ){0,2}(?:exists?|is available|are available|supports?))\b",
    re.IGNORECASE,
)
"""Words that distinguish a lesson from a finding of one moment."""

_FILE = re.compile(
    r"(?<![\w.])[a-z0-9_][\w./-]*\.(?:tsx?|jsx?|mjs|py|go|rs|exs?|rb|java|kt|swift|c|h|cc|cpp|hpp|cs|php|lua|sh|sql|css|html)\b"
    r"|\w\(\)"
)
_CODE = re.compile(r"`[^`]*`")
_DEBRIS = re.compile(r'"\s*[}\]]|":\s*["{\[]|\\n|```|\|\s*-{2,}')
_ELSEWHERE = re.compile(r"\]\(https?:|\]\[")
"""A link out of a document: what has one mostly says where to read more."""


def is_worth_a_line(record: Record) -> bool:
    """Whether a record is a useful line of a profile."""
    line = record.description.strip()
    if is_imposed(record):
        return False
    if record.held or is_explicit(record):
        return True
    if line.endswith(("…", ":")) or _DEBRIS.search(line):
        return False
    if record.provenance.trust == "document" and _ELSEWHERE.search(record.content):
        return False
    if record.pool == PERSONAL and record.kind == "note" and _is_of_a_project(record, line):
        return False
    if record.language != "en":
        return True
    bare = _CODE.sub(" ", line)
    spoken = record.provenance.trust == "assistant" and record.type != "commitment" and _SPOKEN.match(line)
    logged = record.provenance.trust != "user" and _LOGGED.match(line) and not _REASON.search(bare)
    leans = _LEANING.match(line) or _POINTING.search(line)
    finding = record.provenance.trust != "user" and record.type == "lesson" and not _GENERAL.search(bare)
    return len(line.split()) >= WORDS and not (leans or spoken or logged or finding)


def is_own(record: Record) -> bool:
    """Whether a record is the user's word, or the user made it theirs."""
    return record.provenance.trust == "user" or record.held or record.is_confirmed


def is_imposed(record: Record) -> bool:
    """Whether somebody else speaks for the user, of themselves, or gives an order that no agent need follow."""
    trust, author, line = record.provenance.trust, record.provenance.author, record.description.strip()
    if is_own(record):
        return False
    from ....stages.reports import is_first_person, names_the_user  # late: their expressions take long to compile

    if record.type in STATIC or names_the_user(line) or (trust == "document" and is_first_person(line)):
        return True
    is_chosen = trust == "assistant" or author == "user" or _FOR_AGENTS.search(record.provenance.source) is not None
    if is_chosen or (record.provenance.source.startswith("markdown:") and record.type in {"purpose", "procedure"}):
        return False
    return _orders(record, line)


def _orders(record: Record, line: str) -> bool:
    """Whether a line reads as the user's own order or view, if nobody is named who wrote it."""
    from ....stages.reports import is_first_person, is_order  # late, as above

    is_told = record.provenance.source.startswith("markdown:") and record.type == "convention"
    if record.language != "en" or (record.type in {"convention", "procedure"} and not is_told):
        return True
    return is_order(line) or is_first_person(line)


def _is_of_a_project(record: Record, line: str) -> bool:
    """Whether a line in the personal pool is about one project's code, or a lesson."""
    return record.type == "lesson" or _FILE.search(line) is not None


PERSONA = "Identity and tone"
PRINCIPLES, PINNED = "Principles", "Pinned by the user"
STATIC = {"identity": "About the user", "preference": "Preferences"}
OPEN_ITEMS, OPEN_QUESTIONS, OTHER = "Open items", "Open questions", "Facts"
PURPOSE = "Purpose"
RECENT = {
    "purpose": PURPOSE,
    "procedure": "How to build, run and test",
    "convention": "Conventions",
    "decision": "Recent decisions",
    "commitment": OPEN_ITEMS,
    "lesson": "Lessons learned",
    OPEN_QUESTION: OPEN_QUESTIONS,
}
_LAST = (OTHER, RECENT["lesson"], OPEN_QUESTIONS)
ORDER = (*STATIC.values(), *(name for name in RECENT.values() if name not in _LAST), *_LAST)
"""Headings of recent lines: what a new colleague is told first comes first, and what is found out or open last."""

AT_MOST, AT_FIRST = 6, 3
"""Most recent lines under one heading of one pool, because a profile is not a log; and how many of each heading are
chosen before any more of one."""

QUESTIONS = 2
"""Most open questions of a project; they take only the space that the other lines leave."""

SKIPS = 3
"""Lines that do not fit, after which no lesser line is tried."""

ALIKE = 0.7
"""Share of common words (Jaccard) above which two lines say the same."""

_READ_FIRST = any_of(table("noise")["instructions"]["first"])
_FOR_AGENTS = any_of(table("noise")["instructions"]["files"])
_INNER_QUOTES = str.maketrans("“”", "''")
_FENCE = re.compile(r"</?\s*memd-context", re.IGNORECASE)


class ChosenLine(NamedTuple):
    """A record of the profile, with the stems of its words."""

    id: str
    words: frozenset[str]


class Section(NamedTuple):
    """A heading with its lines, each with its record, and their tokens together."""

    heading: str
    lines: tuple[tuple[Record, str], ...]
    tokens: int


class Cards(Protocol):
    """The records that a profile may have (`ProfileCards`)."""

    def cards(self, pool: str, name: Part) -> list[Record]:
        """Return the records of a pool's part, in no order."""
        ...


class ProfileLines:
    """Chooses and words the lines."""

    def __init__(
        self,
        cards: Cards,
        archive: NearbyCaptures,
        tokens: Callable[[str], int],
        boost: Callable[[Record], float] = lambda record: 1.0,
        signals: Callable[[Sequence[Record]], Mapping[str, Signal]] | None = None,
        rules: Callable[[], Rules] = Rules,
    ) -> None:
        """`tokens`: word pieces of a text for the present model; `boost`: the factor of a record's tags; `signals`: the
        live signal of each record by id."""
        self._cards, self._archive, self._tokens = cards, archive, tokens
        self._boost, self._rules = boost, rules
        self._signals = signals or stored_signals
        self._counted: dict[str, int] = {}

    def count(self, text: str) -> int:
        """Return the tokens of a text, cached."""
        number = self._counted.get(text)
        if number is None:
            if len(self._counted) > 4096:
                self._counted.clear()
            number = self._counted[text] = self._tokens(text)
        return number

    def _of(self, pool: str, name: Part, permits: Permits | None) -> list[Record]:
        cards = (card for card in self._cards.cards(pool, name) if permits is None or permits(card))
        return [card for card in cards if is_worth_a_line(card) and is_clean(card.description)]

    # --- what lasts --------------------------------------------------------------------------------------------------
    def static(
        self, pool: str, title: str, budget: int, principles: int, permits: Permits | None, chosen: list[ChosenLine]
    ) -> list[Section]:
        """Choose principles within their own budget (Q8), then L1 and L2, then identity and preferences."""
        cards = self._of(pool, "static", permits)
        signals = self._signals(cards)
        ranked = sorted(cards, key=lambda record: (-self._standing(record, signals[record.id]), record.id))
        by_heading: dict[str, list[Record]] = {}
        spent = 0
        for record in ranked:
            heading = self._heading(record, title)
            most = min(budget, spent + principles) if PRINCIPLE in record.tags else budget
            cost = self.count(line_of(record)) + (0 if heading in by_heading else self.count(f"## {heading}"))
            if spent + cost > most or not _take(record, chosen):
                continue
            spent += cost
            principles -= cost if PRINCIPLE in record.tags else 0
            by_heading.setdefault(heading, []).append(record)
        order = [PERSONA, f"{PERSONA} of {title}", _in(PRINCIPLES, title), PINNED, *STATIC.values()]
        headings = sorted(by_heading, key=lambda name: order.index(name) if name in order else len(order))
        return [self._section(name, sorted(by_heading[name], key=_learned), line_of) for name in headings]

    def _standing(self, record: Record, signal: Signal) -> float:
        """Weigh a static line by layer, then by salience without a clock, so that time alone moves no line (T2); by use
        where the user does not hold it (T3)."""
        layer = {"L1": 2.0, "L2": 1.0}.get(record.layer, 0.0) + 2.0 * (PRINCIPLE in record.tags)
        said_again = min(4, len(record.provenance.evidence)) * 0.05
        weight = record.signal.importance * record.confidence * self._boost(record) + said_again
        return layer * 10 + round(weight if record.held else weight * standing(signal), 2)

    @staticmethod
    def _heading(record: Record, title: str) -> str:
        if PRINCIPLE in record.tags:
            return _in(PRINCIPLES, title)
        if record.kind == "persona":
            return PERSONA if not title else f"{PERSONA} of {title}"
        if title:
            return f"Project {title}"
        return STATIC.get(record.type, PINNED if record.held else "Facts")

    # --- what is recent ----------------------------------------------------------------------------------------------
    def recent(
        self, pool: str, title: str, budget: int, permits: Permits | None, chosen: list[ChosenLine]
    ) -> list[Section]:
        """Choose the most salient recent records and open items, in the order of headings."""
        recent = self._of(pool, "recent", permits)
        items = [item for item in self._of(pool, "threads", permits) if is_open(item, self._archive, recent)]
        now = max((micros(record.provenance.said_at) for record in (*recent, *items)), default=0)
        items = [item for item in items if title or item.type != OPEN_QUESTION]
        shown = [row for row in (*recent, *items) if row.type != "event" or row.provenance.trust == "user"]
        picked: dict[str, list[Record]] = {}
        spent = skipped = 0
        signals, rules = self._signals(shown), self._rules()

        def weigh(record: Record) -> float:
            signal = signals[record.id]
            vain = 1.0 if signal.access_count else standing(signal)
            return salience(record, signal, now, rules) * vain * record.confidence * self._boost(record)

        weight = {row.id: weigh(row) for row in shown}  # at the newest statement's time: no clock reorders the profile
        for heading, record in _in_turns(shown, weight):
            cost = self.count(dated(record)) + (0 if heading in picked else self.count(f"## {_in(heading, title)}"))
            if spent + cost > budget:
                skipped += 1
                if skipped > SKIPS:
                    break
            elif _take(record, chosen):
                spent += cost
                picked.setdefault(heading, []).append(record)
        return [self._section(_in(name, title), picked[name], dated) for name in ORDER if name in picked]

    def _section(self, heading: str, records: Sequence[Record], line: Callable[[Record], str]) -> Section:
        lines = tuple((record, line(record)) for record in records)
        return Section(heading, lines, self.count(f"## {heading}") + sum(self.count(text) for _, text in lines))


def _in_turns(records: Sequence[Record], weight: Mapping[str, float]) -> list[tuple[str, Record]]:
    """Return records with their headings in the order of choice: the weightiest few of each heading, then the next.

    A finding that the user did not tell, and what a commit says, wait for the rest of their heading's turn; an open
    question waits for all.
    """
    by_heading: dict[str, list[Record]] = {}
    for record in sorted(records, key=lambda row: (_depth(row), -weight[row.id], row.id)):
        by_heading.setdefault(RECENT.get(record.type, STATIC.get(record.type, OTHER)), []).append(record)
    turns = [
        (place // AT_FIRST + _wait(record), ORDER.index(heading), place, heading, record)
        for heading, rows in by_heading.items()
        for place, record in enumerate(rows[: {PURPOSE: 1, OPEN_QUESTIONS: QUESTIONS}.get(heading, AT_MOST)])
    ]
    return [(heading, record) for *_, heading, record in sorted(turns, key=lambda turn: turn[:3])]


def _wait(record: Record) -> int:
    """Return the turns that a record waits."""
    return 2 * AT_MOST if record.type == OPEN_QUESTION else AT_MOST if _is_found_out(record) else 0


def _depth(record: Record) -> int:
    """Return how far a line is from the start of a project's documents: a purpose by its folder, others by the file."""
    source = record.provenance.source
    if record.type == "purpose":
        return source.count("/")
    return int(source.startswith("markdown:") and not is_own(record) and _READ_FIRST.search(source) is None)


def _is_found_out(record: Record) -> bool:
    is_commit = record.provenance.source.startswith("git:")
    return not is_own(record) and (record.type == "lesson" or is_commit)


def stored_signals(records: Sequence[Record]) -> dict[str, Signal]:
    """Return the signal of each record as it was written."""
    return {record.id: record.signal for record in records}


def _learned(record: Record) -> tuple[int, int, str]:
    return {"L1": 0, "L2": 1}.get(record.layer, 2), record.learned_at, record.id


def _words(record: Record) -> frozenset[str]:
    return frozenset(t.stem for t in tokens(record.description) if t.kind != "mark" and t.text.lower() not in STOP)


def _take(record: Record, chosen: list[ChosenLine]) -> bool:
    """Choose a record unless a chosen line says the same; return whether it was chosen."""
    words = _words(record)
    if any(_alike(words, line.words) for line in chosen):
        return False
    chosen.append(ChosenLine(record.id, words))
    return True


def _alike(words: frozenset[str], others: frozenset[str]) -> bool:
    return bool(words) and len(words & others) >= ALIKE * len(words | others)


def line_of(record: Record) -> str:
    """Return the description as one line that cannot end the fence around the profile."""
    words = in_one_line(record.description)
    if is_own(record) or not _orders(record, words):
        return f"- {words}"
    return f"- {_teller(record)}: “{words.translate(_INNER_QUOTES)}”"


def in_one_line(words: str) -> str:
    """Return a text in one line, without tags of the fence."""
    return _FENCE.sub("‹memd-context", " ".join(words.split()))


def _teller(record: Record) -> str:
    """Return the source of an order that the user did not give, in words."""
    source = record.provenance.source
    if record.provenance.trust == "assistant":
        return "An agent wrote"
    return "A commit of the user says" if source.startswith("git:") else f"{source.rpartition('/')[2][:40]} says"


def _in(heading: str, title: str) -> str:
    return f"{heading} in {title}" if title else heading


def dated(record: Record) -> str:
    """Return a record's line with its day, marked if the user has not confirmed it."""
    confirmed = record.is_confirmed or (record.provenance.trust == "user" and record.status != "quarantined")
    unconfirmed = "" if confirmed else ", unconfirmed"
    return f"{line_of(record)} [{day(record.provenance.said_at)}{unconfirmed}]"


def is_clean(words: str) -> bool:
    """Whether today's rules find neither a secret nor an injection in a text (P-18, P-19)."""
    return not secrets_in(words) and not flags_in(words)
