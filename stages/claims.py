"""Two claims held against each other: the same, a closer one, a change, or two different things.

Comes in: two clauses, the older first, and the cosine of their descriptions. Goes out: a label with its reason.
Invariants: pure; a pair is called a change only on a sign in the words themselves (a value in the same place, a number
of the same thing, a negation, a word that drops the old value); in doubt two claims are unrelated, so that none is
lost (P-8).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Literal

from .cues import plain
from .keys import one_of_a_kind
from .rules import any_of, table
from .words import NEGATIONS, PREPOSITIONS, STOP, Token, stem, tokens

Label = Literal["same", "refines", "replaces", "contradicts", "unrelated"]

LONGEST = 28
"""Tokens of a claim that is compared word by word; longer ones are only ever the same or unrelated."""

_DATA = table("claims")
_PREAMBLES = re.compile("^" + any_of(_DATA["preambles"]).pattern, re.IGNORECASE)
_RELEASED = tuple(re.compile(pattern, re.IGNORECASE) for pattern in _DATA["released"])
_ADDITIVE = re.compile(_DATA["additive"], re.IGNORECASE)
_ORDINALS: dict[str, str] = _DATA["ordinals"]
_CLASSES = {word: name for name, words in _DATA["classes"].items() for word in words.split()}
_PAST = frozenset(_DATA["past"].split())
_HABIT = frozenset(_DATA["habit"].split())
_SINGLE = frozenset(_DATA["single"].split())
_INSTRUMENT = _SINGLE | frozenset(_DATA["instrument"].split())
_ANNOUNCES = re.compile(_DATA["announces"], re.IGNORECASE)
_SKIPPED = STOP - {"like", "go", "goes", "going"}
_BE = frozenset({"is", "are", "be", "am", "i'm", "it's", "was", "were", "been"})
_MODALS = frozenset({"should", "must", "can", "will", "shall", "may", "to", "not"})
_SPEAKERS = frozenset({"i", "we", "they", "you"})
_PARTING = _BE | {"has", "have", "had", "must", "should", "can", "will", "may"}
_PARTED = re.compile(r"(?<=[a-z])-(?=[a-z])", re.IGNORECASE)


def _stems(name: str) -> frozenset[str]:
    return frozenset(stem(word) for word in _DATA[name].split())


_UPDATE, _PASSING, _OPINIONS = (_stems(name) for name in ("update", "passing", "opinions"))
_FUNCTIONAL, _SEVERAL, _ROLES, _PLACED = (_stems(name) for name in ("functional", "several", "roles", "placed"))
_NAMING = _stems("naming")
_VERBS = _FUNCTIONAL | _SEVERAL | _stems("verbs")


@dataclass(frozen=True, slots=True)
class Claim:
    """A clause taken apart. `content`: stems in order, None where a preposition or mark parts them."""

    content: tuple[str | None, ...]
    numbers: tuple[str, ...]
    negated: bool
    released: frozenset[str]
    changed: bool
    adds: bool
    past: bool
    names: frozenset[str]
    personal: bool
    words: tuple[str, ...]

    @property
    def stems(self) -> frozenset[str]:
        """The content words, without partings and numbers."""
        return frozenset(word for word in self.content if word and word[0] != "#")


@dataclass(frozen=True, slots=True)
class Verdict:
    """How the newer claim stands to the older one, and why in a few words without quoting either."""

    label: Label
    reason: str


@lru_cache(maxsize=4096)
def claim(clause: str) -> Claim:
    """The clause taken apart."""
    text = " ".join(plain(clause).replace("`", "").replace("**", "").split())
    found = _PREAMBLES.match(text)
    body = text[found.end() :] if found and len(text) - found.end() > 8 else text
    all_tokens = tokens(_PARTED.sub(" ", body))
    released = _released(text)
    content: list[str | None] = []
    numbers: list[str] = []
    names: set[str] = set()
    changed = bool(found) or _ANNOUNCES.search(text) is not None
    for at, token in enumerate(all_tokens):
        low = token.text.lower()
        if token.kind == "mark" or low in PREPOSITIONS or low in _PARTING:
            content.append(None)
        elif token.kind == "number" or low in _ORDINALS:
            number = _ORDINALS.get(low, token.stem)
            if number not in released:
                numbers.append(number)
                content.append(f"#{number}")
        elif token.stem in _UPDATE and not token.text[:1].isupper():
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
        personal=bool(re.match(r"(?:i|my|we|our)\b", body, re.I)),
        words=tuple(token.text.lower() for token in all_tokens),
    )


def compare(older: str, newer: str, cosine: float) -> Verdict:
    """How `newer` stands to `older`. `cosine`: of their descriptions."""
    old, new = claim(older), claim(newer)
    alike = old.stems == new.stems and old.numbers == new.numbers and old.negated == new.negated
    if alike and (len(old.stems) >= 2 or old.words == new.words):
        return Verdict("same", "the same words")
    if len(old.words) > LONGEST or len(new.words) > LONGEST or not old.stems or not new.stems:
        return Verdict("unrelated", "too long to compare")
    common = old.stems & new.stems
    if not common and not (new.released & old.stems):
        return Verdict("unrelated", "no word in common")
    return (
        _restated(old, new, common, cosine)
        or _dropped(old, new, common)
        or _denied(old, new, common, cosine)
        or _renumbered(old, new, common)
        or _substituted(old, new, common, cosine)
        or Verdict("unrelated", "different things")
    )


def _restated(old: Claim, new: Claim, common: frozenset[str], cosine: float) -> Verdict | None:
    if old.negated != new.negated or sorted(old.numbers) != sorted(new.numbers):
        return None
    left, right = old.stems - common, new.stems - common
    share = len(common) / len(old.stems | new.stems)
    if not (left and right) and share >= 0.8 and cosine >= 0.9:
        return Verdict("same", "nearly the same words")
    if (not left or not right) and len(common) >= 2 and share >= 0.5 and not new.released:
        return Verdict("refines", "one says more than the other")
    return None


def _dropped(old: Claim, new: Claim, common: frozenset[str]) -> Verdict | None:
    """The newer claim names what the older one says and drops it."""
    gone = new.released & old.stems
    if not gone or new.adds or old.past:
        return None
    about = (common | (old.stems & new.released)) - gone
    kept = old.stems - gone
    shared_subject = bool(about) or (old.personal and new.personal) or len(gone) >= max(2, len(kept))
    # What is dropped must be what the older claim asserts, not what it is about.
    last = next((word for word in reversed(old.content) if word and word[0] != "#"), "")
    objects = {after for before, after in pairwise(old.content) if before in _VERBS and after}
    value = last in gone or bool(gone & objects) or len(gone) * 2 >= len(old.stems) or bool(gone & old.names)
    if shared_subject and value and len(kept - common) <= 2:
        return Verdict("replaces", "the old value is given up")
    return None


def _denied(old: Claim, new: Claim, common: frozenset[str], cosine: float) -> Verdict | None:
    if old.negated == new.negated or new.released or old.past or new.past:
        return None
    share = len(common) / max(1, min(len(old.stems), len(new.stems)))
    spread = len(old.stems ^ new.stems)
    if share >= 0.99 and spread <= 1 and old.numbers == new.numbers and cosine >= 0.5:
        return Verdict("contradicts", "one denies the other")
    return None


def _renumbered(old: Claim, new: Claim, common: frozenset[str]) -> Verdict | None:
    if not old.numbers or not new.numbers or set(old.numbers) & set(new.numbers) == set(old.numbers):
        return None
    if old.past or old.negated != new.negated or new.adds or len(old.numbers) != len(new.numbers):
        return None
    left, right = old.stems - common, new.stems - common
    whole = not left and (len(right) <= 1 or (new.changed and len(right) <= 2))
    close = new.changed and len(left) <= 1 and len(right) <= 1 and len(common) >= 2
    if common and (whole or close):
        return Verdict("replaces", "the same measure, another number")
    return None


def _substituted(old: Claim, new: Claim, common: frozenset[str], cosine: float) -> Verdict | None:
    """One value stands where another stood, and the rest is the same."""
    if old.negated != new.negated or new.adds or old.past or (new.past and not new.changed):
        return None
    shared = common | {f"#{number}" for number in set(old.numbers) & set(new.numbers)}
    given_up = _FUNCTIONAL - common if new.changed else frozenset[str]()
    left = _gaps([word for word in old.content if word not in given_up], shared)
    right = _gaps([word for word in new.content if word not in given_up], shared)
    if len(left) != 1 or not 1 <= len(right) <= (2 if new.changed else 1):
        return None
    before, after = left[0], right[-1]
    if len(before) > 4 or len(after) > 4 or not common:
        return None
    if _predicates_differ(old, new, common) or _OPINIONS & ({*before, *after} - new.names):
        return None
    things = common - {_verb(old)}
    if not things and not _alike(before, after) and not _still_one(old, new, common, before, cosine):
        return None
    if not _holds_one(old, new, common, before, after, cosine):
        return None
    return Verdict("replaces", "another value in the same place")


def _still_one(old: Claim, new: Claim, common: frozenset[str], before: Sequence[str], cosine: float) -> bool:
    """Whether a verb alone is enough in common: `I live in X`, `I always order X`, `I meditate with X`."""
    if not old.personal or common & _SEVERAL:
        return False
    if common & _PLACED and _led_in(old, before, _SINGLE):
        return True
    habit = bool(_HABIT & set(old.words) & set(new.words))
    return _framed(old, new) and cosine >= 0.6 and (habit or _led_in(old, before, _INSTRUMENT))


def _predicates_differ(old: Claim, new: Claim, common: frozenset[str]) -> bool:
    """Whether the two claims say different kinds of things: their verbs are not the same."""
    if _verb(old) in common or (_BE & set(old.words) and _BE & set(new.words)):
        return False
    return bool(_predicates(old) ^ _predicates(new)) and not new.changed


def _predicates(one: Claim) -> frozenset[str]:
    """The words of a claim that are verbs by their form and place: `fish` in `fish tacos` is none."""
    found: set[str] = set()
    for before, word in pairwise(("", *one.words)):
        inflected = (
            word.endswith("s")
            or before in _MODALS
            or before in _SPEAKERS
            or (before.endswith("s") and not before.endswith("'s"))
        )
        if inflected and stem(word) in _VERBS:
            found.add(stem(word))
    return frozenset(found)


def _holds_one(
    old: Claim, new: Claim, common: frozenset[str], before: Sequence[str], after: Sequence[str], cosine: float
) -> bool:
    """Whether the place in which the values differ can hold only one of them."""
    verbs = common & _VERBS
    order = [word for word in old.content if word]
    verbs = common & {_verb(old)} & _VERBS
    at = order.index(before[0])
    verb_at = min((order.index(verb) for verb in verbs), default=-1)
    alike = _alike(before, after)
    if at == 0 and not old.personal and not _copular_front(old):
        return (bool(verbs & _ROLES) and not old.names & set(before)) or (
            new.changed and (alike or (bool(verbs) and len(common) >= 2))
        )
    if verb_at > at > 0 and not new.changed:
        return alike  # the values are part of the subject: Leo's and Mira's are two things
    if new.changed and (alike or len(common) >= 2 or (_head(old) == _head(new) and cosine >= 0.4)):
        return not old.personal or len(common) >= 2 or alike
    beyond = any(word in common for word in order[verb_at + 1 :])
    if verbs & _SEVERAL:
        return beyond and (alike or at > verb_at + 1)
    if _HABIT & set(old.words) & set(new.words):
        return True
    framed = _framed(old, new)
    led = [_led_in(*each, _INSTRUMENT) for each in ((old, before), (new, after))]
    placed = all(led) and (framed or (_led_in(old, before, _SINGLE) and _led_in(new, after, _SINGLE)))
    if verbs & _FUNCTIONAL:
        plain_object = at == verb_at + 1 and not beyond and not verbs & _NAMING and not any(led)
        return alike or not plain_object or (cosine >= 0.55 and not _thing_used(old, verbs) and not old.names)
    if placed and (len(common) >= 2 or framed):
        return True
    if framed and beyond and _then_shared(old, before, common):
        return True
    if verbs:
        return alike or (beyond and at > verb_at + 1)
    pointing = old.words[0] in {"it", "that", "these", "those", "there", "what"}
    told = bool(_BE & set(old.words)) and not pointing and not old.words[0].startswith("i'")
    return told and (alike or (not _described(old) and cosine >= 0.4))


def _framed(old: Claim, new: Claim) -> bool:
    """Whether the two claims are word for word the same but for one stretch."""
    one, two = old.words, new.words
    front = next((at for at, (a, b) in enumerate(zip(one, two, strict=False)) if a != b), min(len(one), len(two)))
    rest = zip(reversed(one[front:]), reversed(two[front:]), strict=False)
    back = next((at for at, (a, b) in enumerate(rest) if a != b), min(len(one), len(two)) - front)
    return front + back >= 2 and len(one) - front - back <= 4 and len(two) - front - back <= 4


def _then_shared(one: Claim, value: Sequence[str], common: frozenset[str]) -> bool:
    """Whether the value only describes a shared thing that follows it: `rounded buttons`."""
    order = [word for word in one.content if word]
    at = order.index(value[-1])
    return at + 1 < len(order) and order[at + 1] in common


def _verb(one: Claim) -> str:
    """The stem that a claim most likely says of its subject: the first word after `I`, else the first known verb."""
    order = [word for word in one.content if word]
    if one.personal and one.words[0] in _SPEAKERS:
        return order[0] if order else ""
    return next((word for word in order[1:] if word in _VERBS), "")


def _led_in(one: Claim, value: Sequence[str], prepositions: frozenset[str]) -> bool:
    """Whether a value stands behind a preposition that leads to one place, tool or name."""
    named = next((word for word in value if word[0] != "#"), value[0][1:])
    at = next((at for at, word in enumerate(one.words) if stem(word) == named), 0)
    return any(word in prepositions for word in one.words[max(0, at - 3) : at])


def _head(one: Claim) -> str:
    """The first word of what a claim is about."""
    return next((word for word in one.content if word), "")


def _thing_used(old: Claim, verbs: frozenset[str]) -> bool:
    """`I use X` alone: many things may be used, unless it is said what for."""
    return bool(verbs & {"use", "prefer", "run", "take", "want"}) and len(old.stems) <= 3


def _alike(before: Sequence[str], after: Sequence[str]) -> bool:
    """Whether two values are of one known class, such as days, colours or editors."""
    left, right = " ".join(before), " ".join(after)
    if one_of_a_kind(left, right):
        return True
    classes = {_CLASSES[word] for word in before if word in _CLASSES}
    return bool(classes & {_CLASSES[word] for word in after if word in _CLASSES})


def _copular_front(old: Claim) -> bool:
    """`X is my pick`, `X is the minimum`: the value comes first."""
    text = " ".join(old.words)
    return bool(re.search(r"\b(?:is|are|has become|became) (?:my|the|our|now my|what (?:i|we))\b", text))


def _described(old: Claim) -> bool:
    """`X is a Y`: one thing may be many a's."""
    return bool(re.search(r"\b(?:is|are|am|i'm) an? ", " ".join(old.words)))


def _gaps(content: Sequence[str | None], common: frozenset[str]) -> list[list[str]]:
    """The runs of words that the other claim doesn't have; prepositions and shared words part them."""
    runs: list[list[str]] = []
    open_ = False
    for word in content:
        if word is None or word in common:
            open_ = False
        elif open_:
            runs[-1].append(word)
        else:
            runs.append([word])
            open_ = True
    return runs


def _released(text: str) -> frozenset[str]:
    """Stems of what the clause says is no longer so."""
    gone: set[str] = set()
    for pattern in _RELEASED:
        for hit in pattern.finditer(text):
            gone.update(
                token.stem for token in tokens(hit.group(1)) if token.kind != "mark" and token.text.lower() not in STOP
            )
    return frozenset(gone)


def _is_past(found: Sequence[Token]) -> bool:
    """Whether the clause tells of something that happened once, rather than of how things are."""
    low = [token.text.lower() for token in found]
    if {"is", "are", "am", "always", "usually", "must", "should"} & set(low):
        return False
    for at, word in enumerate(low[:6]):
        if word in _PAST:
            return True
        helped = at and low[at - 1] in {"is", "are", "be", "gets", "get", "has", "have", "been"}
        if word.endswith("ed") and len(word) > 4 and not helped and at <= 3 and stem(word) in _VERBS:
            return True
    return False
