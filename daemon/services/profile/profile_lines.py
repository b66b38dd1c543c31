"""The lines of a profile: which records of a pool stand in it, under which heading, in which words (Q1, Q11).

Comes in: the cards of a pool, a share of the token budget, what is chosen already. Goes out: sections of lines.
Invariants: what is chosen for the static part depends on its own cards alone, and stands in the order in which it was
learnt, so that one more line moves nothing; the assistant's word is marked; two lines never say the same.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from ....protocol.instant import day, micros
from ....protocol.record import PRINCIPLE, Record
from ....stages.words import STOP, tokens
from ...forgetting_rules import Rules
from ...projections.profile import Part, ProfileCards
from ...projections.salience import salience
from ...storage.archive import Archive
from ..outgoing_screen import flags_in, secrets_in
from ..service import Permits
from .open_items import is_open
from .profile_line_filter import is_worth_a_line

PRINCIPLES, PINNED = "Principles", "Pinned by the user"
STATIC = {"identity": "About the user", "preference": "Preferences"}
THREADS, OTHER = "Open items", "Facts"
RECENT = {
    "decision": "Recent decisions",
    "convention": "Conventions",
    "lesson": "Lessons learned",
    "commitment": THREADS,
}
AT_MOST = 6
"""Lines of what is recent under one heading of one pool: a profile is not a log."""

SKIPS = 3
"""Lines that do not fit and are passed over, before lesser ones are no longer tried."""

ALIKE = 0.7
"""Two lines that share so much of their words (Jaccard) say the same."""

_FENCE = re.compile(r"</?\s*memd-context", re.IGNORECASE)


class ChosenLine(NamedTuple):
    """A record that stands in the profile, and its words."""

    id: str
    words: frozenset[str]


class Section(NamedTuple):
    """A heading with its lines, and what they cost together."""

    heading: str
    lines: tuple[str, ...]
    tokens: int


class ProfileLines:
    """Chooses and words the lines. `tokens` of the present model: word pieces of a text."""

    def __init__(
        self,
        cards: ProfileCards,
        archive: Archive,
        tokens: Callable[[str], int],
        boost: Callable[[Record], float] = lambda record: 1.0,
        salience: Callable[[Sequence[Record], int], Mapping[str, float]] | None = None,
    ) -> None:
        """`boost`: how much the tags of a record count; `salience`: how much each matters at a time in microseconds."""
        self._cards, self._archive, self._tokens = cards, archive, tokens
        self._boost, self._salience = boost, salience or fresh_first
        self._counted: dict[str, int] = {}

    def count(self, text: str) -> int:
        """Tokens of a text."""
        found = self._counted.get(text)
        if found is None:
            if len(self._counted) > 4096:
                self._counted.clear()
            found = self._counted[text] = self._tokens(text)
        return found

    @staticmethod
    def dated(record: Record) -> str:
        """A record's line with its day, marked where the user has not confirmed it."""
        return _dated(record)

    def _of(self, pool: str, name: Part, permits: Permits | None) -> list[Record]:
        cards = self._cards.cards(pool, name)
        seen = (each for each in cards if permits is None or permits(each))
        return [each for each in seen if is_worth_a_line(each) and is_clean(each.description)]

    # --- what lasts --------------------------------------------------------------------------------------------------
    def static(
        self, pool: str, title: str, budget: int, principles: int, permits: Permits | None, chosen: list[ChosenLine]
    ) -> list[Section]:
        """Principles first, within tokens of their own (Q8), then the rest of L1 or L2, then what the user said of
        themselves or of the project, the weightiest first."""
        ranked = sorted(self._of(pool, "static", permits), key=lambda each: (-self.standing(each), each.id))
        by_heading: dict[str, list[Record]] = {}
        spent = 0
        for record in ranked:
            heading = self._heading(record, title)
            most = min(budget, spent + principles) if PRINCIPLE in record.tags else budget
            cost = self.count(_line(record)) + (0 if heading in by_heading else self.count(f"## {heading}"))
            if spent + cost > most or not _take(record, chosen):
                continue
            spent += cost
            principles -= cost if PRINCIPLE in record.tags else 0
            by_heading.setdefault(heading, []).append(record)
        order = [_in(PRINCIPLES, title), PINNED, *STATIC.values()]
        headings = sorted(by_heading, key=lambda each: order.index(each) if each in order else len(order))
        return [self._section(each, sorted(by_heading[each], key=_learnt)) for each in headings]

    def standing(self, record: Record) -> float:
        """The weight of what lasts: its layer, then salience without a clock, so that time alone moves no line (T2)."""
        layer = {"L1": 2.0, "L2": 1.0}.get(record.layer, 0.0) + 2.0 * (PRINCIPLE in record.tags)
        said_again = min(4, len(record.provenance.evidence)) * 0.05
        weight = record.signal.importance * record.confidence * self._boost(record) + said_again
        return layer * 10 + round(weight, 2)

    @staticmethod
    def _heading(record: Record, title: str) -> str:
        if PRINCIPLE in record.tags:
            return _in(PRINCIPLES, title)
        if title:
            return f"Project {title}"
        return STATIC.get(record.type, PINNED if record.held else "Facts")

    # --- what is recent ----------------------------------------------------------------------------------------------
    def lately(
        self, pool: str, title: str, budget: int, permits: Permits | None, chosen: list[ChosenLine]
    ) -> list[Section]:
        """What was decided and learnt lately and what is still to be done: the most salient, in order of headings."""
        recent = self._of(pool, "recent", permits)
        threads = [each for each in self._of(pool, "threads", permits) if is_open(each, self._archive, recent)]
        now = max((micros(each.provenance.said_at) for each in (*recent, *threads)), default=0)
        shown = [each for each in (*recent, *threads) if each.type != "event" or each.provenance.trust == "user"]
        picked: dict[str, list[Record]] = {}
        spent = skipped = 0
        matters = self._salience(shown, now)  # seen from the pool's newest statement: no clock turns the profile over
        weight = {each.id: matters[each.id] * each.confidence * self._boost(each) for each in shown}
        for record in sorted(shown, key=lambda each: (-weight[each.id], each.id)):
            heading = RECENT.get(record.type, STATIC.get(record.type, OTHER))
            if len(picked.get(heading, ())) == AT_MOST:
                continue
            cost = self.count(_dated(record)) + (0 if heading in picked else self.count(f"## {_in(heading, title)}"))
            if spent + cost > budget:
                skipped += 1
                if skipped > SKIPS:
                    break
            elif _take(record, chosen):
                spent += cost
                picked.setdefault(heading, []).append(record)
        order = [*STATIC.values(), *RECENT.values(), OTHER]
        return [self._section(_in(each, title), picked[each], _dated) for each in order if each in picked]

    def _section(
        self, heading: str, records: Sequence[Record], words: Callable[[Record], str] | None = None
    ) -> Section:
        lines = tuple((words or _line)(record) for record in records)
        return Section(heading, lines, self.count(f"## {heading}") + sum(self.count(line) for line in lines))


def fresh_first(records: Sequence[Record], now: int) -> Mapping[str, float]:
    """Salience of records that nobody used yet (T2)."""
    return {each.id: salience(each, each.signal, now, Rules()) for each in records}


def _learnt(record: Record) -> tuple[int, int, str]:
    return {"L1": 0, "L2": 1}.get(record.layer, 2), record.learned_at, record.id


def _words(record: Record) -> frozenset[str]:
    return frozenset(t.stem for t in tokens(record.description) if t.kind != "mark" and t.text.lower() not in STOP)


def _take(record: Record, chosen: list[ChosenLine]) -> bool:
    """Whether a record says something that no line says yet; then it is one of the chosen."""
    words = _words(record)
    if any(_alike(words, each.words) for each in chosen):
        return False
    chosen.append(ChosenLine(record.id, words))
    return True


def _alike(some: frozenset[str], others: frozenset[str]) -> bool:
    return bool(some) and len(some & others) >= ALIKE * len(some | others)


def _line(record: Record) -> str:
    """One line, in which nothing can end the fence that it stands in."""
    return "- " + _FENCE.sub("‹memd-context", " ".join(record.description.split()))


def _in(heading: str, title: str) -> str:
    return f"{heading} in {title}" if title else heading


def _dated(record: Record) -> str:
    confirmed = record.provenance.trust == "user" and record.status != "quarantined"
    unconfirmed = "" if confirmed else ", unconfirmed"
    return f"{_line(record)} [{day(record.provenance.said_at)}{unconfirmed}]"


def is_clean(words: str) -> bool:
    """Whether the rules of today find neither a secret in words nor an order to whoever reads them (P-18, P-19)."""
    return not secrets_in(words) and not flags_in(words)
