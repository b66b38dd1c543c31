"""HOT: the profile, rendered from memory and cached until something in it changes (Q1).

Comes in: a scope and a token budget. Goes out: text with a revision, the static part first. Invariants: no model, no
search, no disk; the static part keeps its bytes as long as its records do, so a prompt cache stays warm; inside a
project half of the budget is the user's, half the project's.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b

from ...protocol.instant import day, micros
from ...protocol.record import Record
from ...protocol.reply import ProfileText
from ...stages.batch import PERSONAL
from ..projections.profile import ProfileCards
from .budget import tokens
from .screen import shown

HEADINGS = {"identity": "About the user", "preference": "Preferences", "fact": "Facts"}
DYNAMIC_HEADINGS = {
    "convention": "Conventions",
    "decision": "Recent decisions",
    "lesson": "Lessons",
    "commitment": "Open threads",
    "note": "Notes",
}
CACHE = 64


class Hot:
    """Profiles by scope and budget; a version of the cards later they are rendered again."""

    def __init__(self, cards: ProfileCards, title: dict[str, str] | None = None) -> None:
        self._cards = cards
        self._cache: dict[tuple[tuple[str, ...], int], tuple[int, ProfileText]] = {}

    def profile(self, scope: Sequence[str], budget_tokens: int, pending: int) -> ProfileText:
        """The profile of a scope: cached, or rendered now."""
        key = (tuple(scope), budget_tokens)
        version = self._cards.version
        cached = self._cache.get(key)
        if cached is None or cached[0] != version:
            if len(self._cache) >= CACHE:
                self._cache.clear()
            cached = self._cache[key] = (version, self._render(scope, budget_tokens))
        text = cached[1]
        return ProfileText(
            text=text.text, rev=text.rev, ids=text.ids, scope=text.scope, tokens=text.tokens, pending=pending
        )

    def _render(self, scope: Sequence[str], budget_tokens: int) -> ProfileText:
        share = budget_tokens // max(1, len(scope))
        lines: list[str] = []
        ids: list[str] = []
        for name, headings in (("static", HEADINGS), ("dynamic", DYNAMIC_HEADINGS)):
            for pool in scope:
                spent = 0
                cards = [card for card in self._cards.cards(pool, name) if not shown(card).seen]
                for heading, record in _ordered(cards, headings, pool):
                    line = _line(record)
                    cost = tokens(line)
                    if spent + cost > share * (0.6 if name == "static" else 0.4):
                        continue
                    spent += cost
                    if f"## {heading}" not in lines:
                        lines.append(f"## {heading}")
                    lines.append(line)
                    ids.append(record.id)
        text = "\n".join(lines)
        rev = blake2b(text.encode(), digest_size=6).hexdigest()
        return ProfileText(text=text, rev=rev, ids=tuple(ids), scope=tuple(scope), tokens=tokens(text))


def _ordered(cards: list[Record], headings: dict[str, str], pool: str) -> list[tuple[str, Record]]:
    """Cards with their headings: by heading, then the weightiest and newest first."""
    where = "" if pool == PERSONAL else " (project)"
    fallback = list(headings.values())[-1]
    order = list(headings)

    def rank(record: Record) -> tuple[int, float, int, str]:
        place = order.index(record.type) if record.type in order else len(order)
        weight = record.signal.importance * record.confidence
        return place, -round(weight, 1), -micros(record.provenance.said_at), record.id

    return [(headings.get(card.type, fallback) + where, card) for card in sorted(cards, key=rank)]


def _line(record: Record) -> str:
    unconfirmed = "" if record.provenance.trust == "user" else " (unconfirmed)"
    return f"- {' '.join(record.description.split())}{unconfirmed} [{day(record.provenance.said_at)}]"
