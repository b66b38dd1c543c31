"""Two claims held against each other: the same, a closer one, a change, or two different things.

Comes in: two clauses, the older first, and the cosine of their descriptions. Goes out: a label with its reason.
Invariants: pure; a pair is called a change only on a sign in the words themselves (a value in the same place, a number
of the same thing, a negation, a word that drops the old value); in doubt two claims are unrelated, so that none is
lost (P-8).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal

from .claims import BE, SPEAKERS, VERBS, Claim, claim, stems_of
from .keys import one_of_a_kind
from .rules import table
from .words import PREPOSITIONS, Token, stem, tokens

Label = Literal["same", "refines", "replaces", "contradicts", "unrelated"]

LONGEST = 28
"""Tokens of a claim that is compared word by word; longer ones are only ever the same or unrelated."""

_NAME = re.compile(r"[^\W\d].*\d|\d.*[^\W\d]")
_SIGN = re.compile(r"(?<![\w.)])[-\u2212+](?=\d)|[<>\u2264\u2265\u2260]=?|[!=]=")
_DATA = table("claims")
_CLASSES = {word: name for name, words in _DATA["classes"].items() for word in words.split()}
_HABIT = frozenset(_DATA["habit"].split())
_SINGLE = frozenset(_DATA["single"].split())
_INSTRUMENT = _SINGLE | frozenset(_DATA["instrument"].split())
_MODALS = frozenset({"should", "must", "can", "will", "shall", "may", "to", "not"})
_DEFINITE = frozenset(_DATA["definite"].split())
_FUNCTIONAL, _SEVERAL, _ROLES, _PLACED, _NAMING, _OPINIONS, _FEELINGS, _ACTED, _SETTLING = (
    stems_of(name)
    for name in ("functional", "several", "roles", "placed", "naming", "opinions", "feelings", "acted", "settling")
)


@dataclass(frozen=True, slots=True)
class Verdict:
    """How the newer claim stands to the older one, and why in a few words without quoting either."""

    label: Label
    reason: str


def compare(older: str, newer: str, cosine: float) -> Verdict:
    """How `newer` stands to `older`. `cosine`: of their descriptions."""
    old, new = claim(older), claim(newer)
    if _given_up(old, new):
        new = replace(new, changed=True)
    alike = old.stems == new.stems and old.numbers == new.numbers and old.negated == new.negated
    signed = _SIGN.findall(older) != _SIGN.findall(newer)  # `load < 5`, `-3 hours`: no word stands for them
    if old.gone != new.gone or (alike and (signed or _turned(old, new))) or _of_another_number(old, new):
        return Verdict("unrelated", "of like words, not of the same thing")
    share = len(set(old.words) & set(new.words)) / len(set(old.words) | set(new.words) | {""})
    if alike and ((len(old.stems) >= 2 and share >= 0.4) or (old.words and old.words == new.words)):
        return Verdict("same", "the same words")
    if len(old.words) > LONGEST or len(new.words) > LONGEST or not old.stems or not new.stems:
        return Verdict("unrelated", "too long to compare")
    common = old.stems & new.stems
    if not common and not _given_up(old, new):
        return Verdict("unrelated", "no word in common")
    return (
        _restated(old, new, common, cosine)
        or _dropped(old, new, common)
        or _denied(old, new, common, cosine)
        or _renumbered(old, new, common)
        or _substituted(old, new, common, cosine)
        or Verdict("unrelated", "different things")
    )


def of_another(older: str, newer: str) -> bool:
    """Whether they are of one form, but speak of another thing: "web1 listens on 8080", "web2 listens on 9090", or on
    8080 as well. Names are code, and words that hold a digit. What something is ("node18 is our default") may change.
    """
    one, other = ([token for token in tokens(words) if token.kind != "mark"] for words in (older, newer))
    if len(one) != len(other):
        return False
    apart = [number for number, (old, new) in enumerate(zip(one, other, strict=True)) if old.stem != new.stem]
    if not apart or not all(
        each.kind == "code" or _NAME.search(each.text) for each in (one[apart[0]], other[apart[0]])
    ):
        return False
    return len(apart) > 1 or _acts(one[: apart[0]], one[apart[0] + 1 :])


def _turned(old: Claim, new: Claim) -> bool:
    """Whether words of the same claim changed places over one that did not: `Alice reports to Bob`, `Bob reports to
    Alice`. What only moved to the front did not."""
    one, other = ([word for word in each.content if word] for each in (old, new))
    if one == other or sorted(one) != sorted(other):
        return False
    sides = [(set(one[: one.index(word)]), set(other[: other.index(word)])) for word in one]
    return len(one) == 2 or any(before - after and after - before for before, after in sides)


def _of_another_number(old: Claim, new: Claim) -> bool:
    """Whether a number tells which thing they speak of, and it is another: `Ticket 4711 is fixed`. One that a value
    stands for (`Port 22 is our pick`) may change."""
    if new.changed or not old.numbers or not new.numbers or old.numbers[0] == new.numbers[0]:
        return False
    order = [word for word in old.content if word]
    return len(order) > 2 and order[1][0] == "#" and order[0] not in VERBS and not _copular_front(old)


def _acts(before: Sequence[Token], after: Sequence[Token]) -> bool:
    """Whether a name between these words is what the clause speaks of, and does something."""
    leads = BE | SPEAKERS | PREPOSITIONS
    begins = len(before) <= 2 and not any(each.text.lower() in leads or each.stem in VERBS for each in before)
    return begins and len(after) > 1 and after[0].text.lower() not in BE


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
    gone = _given_up(old, new)
    if not gone & old.stems or new.adds or old.past:
        return None
    about = common - gone
    kept = old.stems - gone
    shared_subject = bool(about) or (old.personal and new.personal) or len(gone) >= max(2, len(kept))
    # What is dropped must be what the older claim asserts, not what it is about.
    last = next((word for word in reversed(old.content) if word and word[0] != "#"), "")
    objects = {after for before, after in pairwise(old.content) if before in VERBS and after}
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
    whole = not left and (not right or (new.changed and len(right) <= 2))
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
    verb = _verb(old)
    things = common - {verb} - _OPINIONS
    if len(things) == 1 and verb not in common and not _head(old) == _head(new) in things:
        return None
    if not things and not _alike(old, new, before, after) and not _still_one(old, new, common, before, cosine):
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
    if _verb(old) in common or (BE & set(old.words) and BE & set(new.words)):
        return False
    return bool(_predicates(old) ^ _predicates(new)) and not new.changed


def _predicates(one: Claim) -> frozenset[str]:
    """The words of a claim that are verbs by their form and place: `fish` in `fish tacos` is none."""
    found: set[str] = set()
    for before, word in pairwise(("", *one.words)):
        inflected = (
            word.endswith("s")
            or before in _MODALS
            or before in SPEAKERS
            or (before.endswith("s") and not before.endswith("'s"))
        )
        if inflected and stem(word) in VERBS:
            found.add(stem(word))
    return frozenset(found)


def _holds_one(
    old: Claim, new: Claim, common: frozenset[str], before: Sequence[str], after: Sequence[str], cosine: float
) -> bool:
    """Whether the place in which the values differ can hold only one of them."""
    order = [word for word in old.content if word]
    verb = _verb(old) if _verb(old) in common & VERBS else ""
    at, verb_at = order.index(before[0]), order.index(verb) if verb else -1
    alike = _alike(old, new, before, after)
    if at == 0 and not old.personal and not _copular_front(old):
        acted = verb in _ROLES and not old.names & set(before)
        return acted or (new.changed and (alike or (bool(verb) and len(common) >= 2)))
    if verb_at > at > 0 and not new.changed:
        return alike  # the values are part of the subject: Leo's and Mira's are two things
    if new.changed and (alike or len(common) >= 2 or (_head(old) == _head(new) and cosine >= 0.4)):
        return not old.personal or len(common) >= 2 or alike
    if not alike and _is_acted_on(verb, old, before) and _is_acted_on(verb, new, after):
        return False
    led = [_led_in(*each, _INSTRUMENT) for each in ((old, before), (new, after))]
    if (at == 0) != (next(word for word in new.content if word) == after[0]):
        return bool(verb) and (verb in _ROLES or led[0])
    if _counted(before) != _counted(after) and not all(led):
        return False
    framed, stated = _framed(old, new), bool(BE & set(old.words)) and bool(BE & set(new.words))
    placed = all(led) and (framed or (_led_in(old, before, _SINGLE) and _led_in(new, after, _SINGLE)))
    if common & _FEELINGS and not verb:
        return False
    if placed and stated and len(common) >= 2:
        return True
    beyond = any(word in common for word in order[verb_at + 1 :])
    if verb in _SEVERAL:
        return beyond and (alike or at > verb_at + 1)
    if _HABIT & set(old.words) & set(new.words):
        return True
    if verb in _FUNCTIONAL:
        return alike or beyond or verb in _NAMING or any(led) or at != verb_at + 1
    if placed and (len(common) >= 2 or framed):
        return True
    if framed and beyond and _then_shared(old, before, common):
        return True
    if verb:
        return alike or (beyond and at > verb_at + 1)
    pointing = old.words[0] in {"it", "that", "these", "those", "there", "what"} or old.words[0].startswith("i'")
    return stated and not pointing and (alike or (not _described(old) and cosine >= 0.4))


def _is_acted_on(verb: str, one: Claim, value: Sequence[str]) -> bool:
    """Whether a verb's object is the thing that it acts on, not what was chosen: `test a parser`, `run the ledger`."""
    if (verb, value[0]) not in pairwise(one.content):
        return False
    at = next((at for at, word in enumerate(one.words) if stem(word) == value[0]), 0)
    return verb in _ACTED or (verb in _FUNCTIONAL - _NAMING and bool(at) and one.words[at - 1] in _DEFINITE)


def _counted(value: Sequence[str]) -> bool:
    """Whether a value holds a number."""
    return any(word[0] == "#" for word in value)


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
    if one.personal and one.words[0] in SPEAKERS:
        settled = len(order) > 1 and order[0] in _SETTLING and order[1] in VERBS
        return order[settled] if order else ""
    return next((word for word in order[1:] if word in VERBS), "")


def _led_in(one: Claim, value: Sequence[str], prepositions: frozenset[str]) -> bool:
    """Whether a value stands behind a preposition that leads to one place, tool or name."""
    named = next((word for word in value if word[0] != "#"), value[0][1:])
    at = next((at for at, word in enumerate(one.words) if stem(word) == named), 0)
    return any(word in prepositions for word in one.words[max(0, at - 3) : at])


def _head(one: Claim) -> str:
    """The first word of what a claim is about."""
    return next((word for word in one.content if word), "")


def _alike(old: Claim, new: Claim, before: Sequence[str], after: Sequence[str]) -> bool:
    """Whether two values are of one known class, such as days, colours or editors."""
    classes = {_CLASSES[word] for word in before if word in _CLASSES}
    if classes & {_CLASSES[word] for word in after if word in _CLASSES}:
        return True
    return one_of_a_kind(" ".join(old.words), " ".join(new.words))


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


def _given_up(old: Claim, new: Claim) -> frozenset[str]:
    """What of the older claim the newer one drops; of a phrase that is dropped, more than half must stand there."""
    said = old.stems | set(old.numbers)
    whole = (phrase for phrase in new.released if len(phrase & said) * 2 > len(phrase))
    return frozenset(word for phrase in whole for word in phrase) & said
