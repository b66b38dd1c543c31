"""A clause taken apart for comparing: its words in order, its numbers, what it gives up, whether it tells of a change.

Comes in: a clause. Goes out: a `Claim`. Invariants: pure and cached; stems stand for words, so that `uses` and `used`
are one; words that only announce a change ("now", "since Monday", "renamed") are no part of what is claimed.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from .cues import plain
from .rules import any_of, table
from .words import NEGATIONS, PREPOSITIONS, STOP, Token, stem, tokens

BE = frozenset({"is", "are", "be", "am", "i'm", "it's", "was", "were", "been"})
SPEAKERS = frozenset({"i", "we", "they", "you"})

_DATA = table("claims")
_PREAMBLES = re.compile("^" + any_of(_DATA["preambles"]).pattern, re.IGNORECASE)
_TAILS = re.compile(_DATA["tails"], re.IGNORECASE)
_RELEASED = tuple(re.compile(pattern, re.IGNORECASE) for pattern in _DATA["released"])
_ADDITIVE = re.compile(_DATA["additive"], re.IGNORECASE)
_ANNOUNCES = re.compile(_DATA["announces"], re.IGNORECASE)
_ORDINALS: dict[str, str] = _DATA["ordinals"]
_PAST = frozenset(_DATA["past"].split())
_NOUNS = frozenset(_DATA["nouns"].split())
_SKIPPED = STOP - {"like", "go", "goes", "going"}
_PARTING = BE | {"has", "have", "had", "must", "should", "can", "will", "may"}
_SHORT: dict[str, str] = _DATA["short"]
_SHORTENED = re.compile(
    "|".join(
        rf"(?<![\w./-])(?{'' if re.search('[A-Z]', short) else 'i'}:{short})(?![\w/-]|\.\w)"
        for short in sorted(_SHORT, key=len, reverse=True)
    )
)
_PARTED = re.compile(r"(?<=[a-z])-(?=[a-z])", re.IGNORECASE)


def stems_of(name: str) -> frozenset[str]:
    """A list of `rules/claims.toml` as stems."""
    return frozenset(stem(word) for word in _DATA[name].split())


VERBS = stems_of("functional") | stems_of("several") | stems_of("acted") | stems_of("verbs")
_UPDATE, _PASSING = stems_of("update"), stems_of("passing")


@dataclass(frozen=True, slots=True)
class Claim:
    """A clause taken apart. `content`: stems in order, None where a preposition or mark parts them."""

    content: tuple[str | None, ...]
    numbers: tuple[str, ...]
    negated: bool
    released: tuple[frozenset[str], ...]
    changed: bool
    adds: bool
    past: bool
    names: frozenset[str]
    personal: bool
    words: tuple[str, ...]

    @property
    def gone(self) -> frozenset[str]:
        """The numbers in what it gives up."""
        return frozenset(word for phrase in self.released for word in phrase if word[0].isdigit())

    @property
    def stems(self) -> frozenset[str]:
        """The content words, without partings and numbers."""
        return frozenset(word for word in self.content if word and word[0] != "#")


@lru_cache(maxsize=4096)
def claim(clause: str) -> Claim:
    """The clause taken apart."""
    text = _written_out(" ".join(plain(clause).replace("`", "").replace("**", "").split()))
    found = _PREAMBLES.match(text)
    body = text[found.end() :] if found and len(text) - found.end() > 8 else text
    tail = _TAILS.search(body)
    body = body[: tail.start()] if tail and tail.start() > 8 else body
    all_tokens = tokens(_PARTED.sub(" ", body))
    released = _released(text)
    content: list[str | None] = []
    numbers: list[str] = []
    names: set[str] = set()
    changed = bool(found or tail) or _ANNOUNCES.search(text) is not None
    for at, token in enumerate(all_tokens):
        low = token.text.lower()
        if token.kind == "mark" or low in PREPOSITIONS or low in _PARTING:
            content.append(None)
        elif token.kind == "number" or low in _ORDINALS:
            number = _ORDINALS.get(low, token.stem)
            if not any(number in phrase for phrase in released):
                numbers.append(number)
                content.append(f"#{number}")
        elif token.stem in _UPDATE and low not in _NOUNS and not token.text[:1].isupper():
            changed = True
        elif token.stem in _PASSING and not token.text[:1].isupper():
            continue
        elif low not in _SKIPPED:
            content.append(token.stem)
            if token.text[0].isupper() and at:
                names.add(token.stem)
    return Claim(
        content=tuple(content),
        numbers=tuple(numbers),
        negated=any(token.text.lower() in NEGATIONS for token in all_tokens),
        released=released,
        changed=changed,
        adds=bool(_ADDITIVE.search(text)),
        past=_is_past(all_tokens),
        names=frozenset(names),
        personal=bool(re.match(r"(?:i|we)\b", body, re.I)),
        words=tuple(token.text.lower() for token in all_tokens),
    )


def _written_out(text: str) -> str:
    """Short forms as the words that they stand for: a DB is a database. In names ("db.py", "prod-1") they stay."""
    return _SHORTENED.sub(lambda found: _SHORT.get(found[0]) or _SHORT[found[0].lower()], text)


def _released(text: str) -> tuple[frozenset[str], ...]:
    """What the clause says is no longer so: the stems of each phrase."""
    gone: list[frozenset[str]] = []
    for pattern in _RELEASED:
        for hit in pattern.finditer(text):
            found = tokens(_PARTED.sub(" ", hit.group(1)))
            phrase = frozenset(one.stem for one in found if one.kind != "mark" and one.text.lower() not in STOP)
            if phrase:
                gone.append(phrase)
    return tuple(gone)


def _is_past(found: Sequence[Token]) -> bool:
    """Whether the clause tells of something that happened once, rather than of how things are."""
    low = [token.text.lower() for token in found]
    if {"is", "are", "am", "always", "usually", "must", "should"} & set(low):
        return False
    for at, word in enumerate(low[:6]):
        if word in _PAST:
            return True
        helped = at and low[at - 1] in {"is", "are", "be", "gets", "get", "has", "have", "been"}
        if word.endswith("ed") and len(word) > 4 and not helped and at <= 3 and stem(word) in VERBS:
            return True
    return False
