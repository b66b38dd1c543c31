"""Match cue words: which clauses are noise, and which types a clause sounds like. A clause that its author marked as
lasting ("from now on", "always", "remember that") is never a passing request."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ..protocol.event import Trust
from .rules import any_of, table

Reasons = tuple[tuple[str, re.Pattern[str]], ...]
Weighted = tuple[tuple[str, tuple[tuple[re.Pattern[str], float], ...]], ...]

_NOISE = table("noise")
_CUES = table("cues")
# The patterns of headings and sentences that say what stands below or beside them, by name.
LEADS = {name: any_of(patterns) for name, patterns in _NOISE["leads"].items()}
_FRONT = re.compile(_NOISE["fillers"], re.IGNORECASE)
_DURABLE = any_of(_CUES["durable"]["patterns"])
_DURABLE_OTHER = {code: any_of(patterns) for code, patterns in _CUES["durable_other"].items()}
_PASSING = frozenset({"request", "promise", "reaction", "aside"})
_DENSE = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]")
_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")


def _reasons(section: str, place: str) -> Reasons:
    patterns_by_reason: dict[str, list[str]] = _NOISE.get(section, {}).get(place, {})
    return tuple((reason, any_of(patterns)) for reason, patterns in patterns_by_reason.items())


def _weighted(section: str) -> Weighted:
    types: dict[str, list[tuple[str, float]]] = _CUES[section]
    return tuple(
        (name, tuple((re.compile(pattern, re.IGNORECASE), weight) for pattern, weight in cues))
        for name, cues in types.items()
    )


_ROLES = ("both", "user", "assistant", "document")
_BY_ROLE = {role: (_reasons(role, "start"), _reasons(role, "anywhere")) for role in _ROLES}
_USER, _WORK = _weighted("user"), _weighted("work")
_OTHER = tuple((name, any_of(patterns)) for name, patterns in _CUES["other"].items())


def plain(text: str) -> str:
    """`text` with its curly apostrophes made straight, so that one pattern reads both; same length."""
    return text.replace("’", "'")


def noise(text: str, trust: Trust) -> str:
    """The first reason why a clause says nothing lasting, or "" (P-5)."""
    return next(noises(text, trust), "")


def noises(text: str, trust: Trust) -> Iterator[str]:
    """The reasons why a clause says nothing lasting."""
    text = plain(text)
    front = _FRONT.match(text)
    # Fillers may hide the mark ("good idea"), so both fronts are looked at.
    fronts = {front.end() if front else 0, 0}
    spared = _PASSING if trust == "user" and lasting(text) else frozenset[str]()
    for role in ("both", trust):
        start, anywhere = _BY_ROLE.get(role, ((), ()))
        for reason, pattern in start:
            if reason not in spared and any(pattern.match(text, at) for at in fronts):
                yield reason
        for reason, pattern in anywhere:
            if reason not in spared and pattern.search(text):
                yield reason


def lasting(text: str) -> bool:
    """Whether the author marks the clause as meant for later."""
    return _DURABLE.search(plain(text)) is not None


def lasting_in_other_language(text: str, code: str) -> bool:
    """Whether a clause says "always" or "never" in the language with this ISO code; False for one without patterns."""
    return code in _DURABLE_OTHER and _DURABLE_OTHER[code].search(text) is not None


def weights(text: str, trust: Trust) -> dict[str, float]:
    """Type → how strongly the clause's cue words speak for it, at most 1; types without a cue are absent."""
    text = plain(text)
    totals = {
        name: sum(weight for pattern, weight in cues if pattern.search(text))
        for name, cues in (_USER if trust == "user" else _WORK)
    }
    return {name: min(1.0, total) for name, total in totals.items() if total}


def foreign(text: str) -> str:
    """The type of a clause in another language, by its few cue words; `note` where none is known."""
    return next((name for name, pattern in _OTHER if pattern.search(text)), "note")


def count_words(text: str) -> int:
    """Words of a clause; in scripts without spaces, every two characters count as one."""
    words = _WORD.findall(text)
    return sum(max(1, len(word) // 2) if _DENSE.search(word) else 1 for word in words)
