"""Compare two claims. Only a sign in the words themselves makes a change (a value in the same place, a number of the
same thing, a negation, a word that drops the old value); in doubt claims are unrelated, so that none is lost (P-8)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import groupby, pairwise
from typing import Literal

from .claims import BE, SPEAKERS, VERBS, Claim, claim, stems_of
from .keys import one_of_a_kind
from .rules import table
from .words import PREPOSITIONS, Token, stem, tokens

Label = Literal["same", "refines", "replaces", "contradicts", "unrelated"]

LONGEST = 28  # Tokens of a claim that is compared word by word; longer ones are only ever the same or unrelated
LONGEST_VALUE = 4  # Stems of a value that may have replaced another one
_NAME = re.compile(r"[^\W\d].*\d|\d.*[^\W\d]")
_SIGN = re.compile(r"(?<![\w.)])[-\u2212+](?=\d)|[<>\u2264\u2265\u2260]=?|[!=]=")
_COPULAR_FRONT = re.compile(r"\b(?:is|are|has become|became) (?:my|the|our|now my|what (?:i|we))\b")
_INDEFINITE = re.compile(r"\b(?:is|are|am|i'm) an? ")
_DATA = table("claims")
_CLASSES = {word: name for name, words in _DATA["classes"].items() for word in words.split()}
_HABIT = frozenset(_DATA["habit"].split())
_SINGLE = frozenset(_DATA["single"].split())
_INSTRUMENT = _SINGLE | frozenset(_DATA["instrument"].split())
_MODALS = frozenset({"should", "must", "can", "will", "shall", "may", "to", "not"})
_POINTING = frozenset({"it", "that", "these", "those", "there", "what"})
_DEFINITE = frozenset(_DATA["definite"].split())
_FUNCTIONAL, _SEVERAL, _ROLES, _PLACED, _NAMING, _OPINIONS, _FEELINGS, _ACTED, _SETTLING = (
    stems_of(name)
    for name in ("functional", "several", "roles", "placed", "naming", "opinions", "feelings", "acted", "settling")
)


@dataclass(frozen=True, slots=True)
class Verdict:
    """How the newer claim stands to the older one, and why in a few words without quoting either. `is_slot`: whether
    both give a value to one attribute of one thing, which holds one value, or the newer one announces the change;
    elsewhere it is the time between them that makes the second one a change."""

    label: Label
    reason: str
    is_slot: bool = True


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
    old, new = ([token for token in tokens(words) if token.kind != "mark"] for words in (older, newer))
    if len(old) != len(new):
        return False
    differing = [at for at, (left, right) in enumerate(zip(old, new, strict=True)) if left.stem != right.stem]
    if not differing:
        return False
    first = differing[0]
    if not all(token.kind == "code" or _NAME.search(token.text) for token in (old[first], new[first])):
        return False
    return len(differing) > 1 or _acts(old[:first], old[first + 1 :])


def _turned(old: Claim, new: Claim) -> bool:
    """Whether words of the same claim changed places over one that did not: `Alice reports to Bob`, `Bob reports to
    Alice`. What only moved to the front did not."""
    left, right = ([word for word in claim.content if word] for claim in (old, new))
    if left == right or sorted(left) != sorted(right):
        return False
    fronts = [(set(left[: left.index(word)]), set(right[: right.index(word)])) for word in left]
    return len(left) == 2 or any(before - after and after - before for before, after in fronts)


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
    begins = len(before) <= 2 and not any(token.text.lower() in leads or token.stem in VERBS for token in before)
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
    gone = _given_up(old, new)
    if not gone & old.stems or new.adds or old.past:
        return None
    remaining = old.stems - gone
    shared_subject = bool(common - gone) or (old.personal and new.personal) or len(gone) >= max(2, len(remaining))
    # What is dropped must be what the older claim asserts, not what it is about.
    last = next((word for word in reversed(old.content) if word and word[0] != "#"), "")
    objects = {after for before, after in pairwise(old.content) if before in VERBS and after}
    value = last in gone or bool(gone & objects) or len(gone) * 2 >= len(old.stems) or bool(gone & old.names)
    if shared_subject and value and len(remaining - common) <= 2:
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
        return Verdict("replaces", "the same measure, another number", new.changed or _is_measured(old))
    return None


def _is_measured(claim: Claim) -> bool:
    """Whether a claim says how much something is or has: an order ("run test 1") and a list of objects do not."""
    verb = _verb(claim)
    return bool(BE & set(claim.words)) or (bool(verb) and verb not in _ACTED | _SEVERAL)


def _substituted(old: Claim, new: Claim, common: frozenset[str], cosine: float) -> Verdict | None:
    if old.negated != new.negated or new.adds or old.past or (new.past and not new.changed):
        return None
    shared = common | {f"#{number}" for number in set(old.numbers) & set(new.numbers)}
    ignored = _FUNCTIONAL - common if new.changed else frozenset[str]()
    old_runs = _gaps([word for word in old.content if word not in ignored], shared)
    new_runs = _gaps([word for word in new.content if word not in ignored], shared)
    if not common or len(old_runs) != 1 or not 1 <= len(new_runs) <= (2 if new.changed else 1):
        return None
    before, after = old_runs[0], new_runs[-1]
    if max(len(before), len(after)) > LONGEST_VALUE or _OPINIONS & ({*before, *after} - new.names):
        return None
    substitution = _Substitution(old, new, common, before, after, cosine)
    if not substitution.is_of_one_thing() or not substitution.holds_one_value():
        return None
    return Verdict("replaces", "another value in the same place", substitution.fills_a_slot())


class _Substitution:
    """Two claims that are alike but for one run of stems: `before` in the older one, `after` in the newer one.
    `common`: the stems of both; `cosine`: of their descriptions."""

    def __init__(
        self, old: Claim, new: Claim, common: frozenset[str], before: Sequence[str], after: Sequence[str], cosine: float
    ) -> None:
        self._old, self._new, self._common, self._cosine = old, new, common, cosine
        self._before, self._after = before, after
        self._order = [word for word in old.content if word]
        self._at = self._order.index(before[0])
        self._known_verb = _verb(old)
        self._verb = self._known_verb if self._known_verb in common & VERBS else ""
        self._verb_at = self._order.index(self._verb) if self._verb else -1

    def is_of_one_thing(self) -> bool:
        """Whether both claims say the same kind of thing of the same thing."""
        if _predicates_differ(self._old, self._new, self._common):
            return False
        things = self._common - {self._known_verb} - _OPINIONS
        if len(things) == 1 and self._known_verb not in self._common:
            return _head(self._old) == _head(self._new) and _head(self._new) in things
        return bool(things) or self._are_alike or self._is_verb_enough()

    def holds_one_value(self) -> bool:
        """Whether the place of the values can hold only one of them; the first rule that applies decides."""
        rules = (
            self._in_the_subject,
            self._after_a_change,
            self._as_an_acted_object,
            self._at_the_front_of_one,
            self._of_unlike_kinds,
            self._in_a_stated_place,
            self._after_a_verb_of_several,
            self._in_a_habit,
            self._after_a_functional_verb,
            self._in_the_same_frame,
            self._after_another_verb,
        )
        return next((decision for rule in rules if (decision := rule()) is not None), self._is_copular_value())

    def fills_a_slot(self) -> bool:
        """Whether the newer claim announces the change, or both say what one thing is, or name values of one class."""
        is_subject = self._at == 0 and not _copular_front(self._old)
        if self._new.changed or is_subject:
            return self._new.changed
        return self._is_stated or (self._are_alike and self._known_verb not in _ACTED | _SEVERAL)

    def _is_verb_enough(self) -> bool:
        """Whether a verb alone is enough in common: `I live in X`, `I always order X`, `I meditate with X`."""
        if not self._old.personal or self._common & _SEVERAL:
            return False
        if self._common & _PLACED and _led_in(self._old, self._before, _SINGLE):
            return True
        return self._are_framed and self._cosine >= 0.6 and (self._is_habit or self._led[0])

    def _in_the_subject(self) -> bool | None:
        """Decide where the older value is the subject, or a part of it before the verb."""
        if self._at == 0 and not self._old.personal and not _copular_front(self._old):
            is_role = self._verb in _ROLES and not self._old.names & set(self._before)
            return is_role or (self._new.changed and (self._are_alike or (bool(self._verb) and len(self._common) >= 2)))
        if self._verb_at > self._at > 0 and not self._new.changed:
            return self._are_alike  # Leo's and Mira's are two things
        return None

    def _after_a_change(self) -> bool | None:
        """Decide where the newer claim announces a change of something that both name."""
        same_head = _head(self._old) == _head(self._new) and self._cosine >= 0.4
        if not self._new.changed or not (self._are_alike or len(self._common) >= 2 or same_head):
            return None
        return not self._old.personal or len(self._common) >= 2 or self._are_alike

    def _as_an_acted_object(self) -> bool | None:
        values = ((self._old, self._before), (self._new, self._after))
        is_acted_on = all(_is_acted_on(self._verb, claim, value) for claim, value in values)
        return False if is_acted_on and not self._are_alike else None

    def _at_the_front_of_one(self) -> bool | None:
        if (self._at == 0) == (_head(self._new) == self._after[0]):
            return None
        return bool(self._verb) and (self._verb in _ROLES or self._led[0])

    def _of_unlike_kinds(self) -> bool | None:
        """Reject a number beside a word, and two things that somebody has a feeling for."""
        if _has_number(self._before) != _has_number(self._after) and not all(self._led):
            return False
        return False if self._common & _FEELINGS and not self._verb else None

    def _in_a_stated_place(self) -> bool | None:
        return True if self._are_placed and self._is_stated and len(self._common) >= 2 else None

    def _after_a_verb_of_several(self) -> bool | None:
        if self._verb not in _SEVERAL:
            return None
        return self._is_shared_beyond and (self._are_alike or self._at > self._verb_at + 1)

    def _in_a_habit(self) -> bool | None:
        return self._is_habit or None

    def _after_a_functional_verb(self) -> bool | None:
        if self._verb not in _FUNCTIONAL:
            return None
        is_named = self._verb in _NAMING or any(self._led)
        return self._are_alike or self._is_shared_beyond or is_named or self._at != self._verb_at + 1

    def _in_the_same_frame(self) -> bool | None:
        if self._are_placed and (len(self._common) >= 2 or self._are_framed):
            return True
        behind = self._order[self._order.index(self._before[-1]) + 1 :][:1]
        describes_shared = behind and behind[0] in self._common  # a shared thing follows: `rounded buttons`
        return bool(self._are_framed and self._is_shared_beyond and describes_shared) or None

    def _after_another_verb(self) -> bool | None:
        if not self._verb:
            return None
        return self._are_alike or (self._is_shared_beyond and self._at > self._verb_at + 1)

    def _is_copular_value(self) -> bool:
        """Whether the values say what a thing is, and it can be only one of them."""
        first = self._old.words[0]
        if not self._is_stated or first in _POINTING or first.startswith("i'"):
            return False
        is_one_of_many = _INDEFINITE.search(" ".join(self._old.words))  # `X is a Y`: one thing may be many a's
        return self._are_alike or (not is_one_of_many and self._cosine >= 0.4)

    @cached_property
    def _are_alike(self) -> bool:
        """Whether the values are of one known class, such as days, colours or editors."""
        old_classes = {_CLASSES[word] for word in self._before if word in _CLASSES}
        if old_classes & {_CLASSES[word] for word in self._after if word in _CLASSES}:
            return True
        return one_of_a_kind(" ".join(self._old.words), " ".join(self._new.words))

    @cached_property
    def _led(self) -> tuple[bool, bool]:
        """Whether a preposition of place, tool or name leads in the older value, and the newer one."""
        return _led_in(self._old, self._before, _INSTRUMENT), _led_in(self._new, self._after, _INSTRUMENT)

    @cached_property
    def _are_framed(self) -> bool:
        """Whether the two claims are word for word the same but for one stretch."""
        left, right = self._old.words, self._new.words
        shorter = min(len(left), len(right))
        front = next((at for at, (a, b) in enumerate(zip(left, right, strict=False)) if a != b), shorter)
        rest = zip(reversed(left[front:]), reversed(right[front:]), strict=False)
        back = next((at for at, (a, b) in enumerate(rest) if a != b), shorter - front)
        return front + back >= 2 and max(len(left), len(right)) - front - back <= 4

    @cached_property
    def _are_placed(self) -> bool:
        """Whether both values stand behind a preposition that leads to one place."""
        if not all(self._led):
            return False
        single = _led_in(self._old, self._before, _SINGLE) and _led_in(self._new, self._after, _SINGLE)
        return self._are_framed or single

    @property
    def _is_habit(self) -> bool:
        return bool(_HABIT & set(self._old.words) & set(self._new.words))

    @property
    def _is_stated(self) -> bool:
        """Whether both claims use a form of "to be"."""
        return bool(BE & set(self._old.words)) and bool(BE & set(self._new.words))

    @property
    def _is_shared_beyond(self) -> bool:
        return any(word in self._common for word in self._order[self._verb_at + 1 :])


def _predicates_differ(old: Claim, new: Claim, common: frozenset[str]) -> bool:
    """Whether the two claims say different kinds of things: their verbs are not the same."""
    if _verb(old) in common or (BE & set(old.words) and BE & set(new.words)):
        return False
    return bool(_predicates(old) ^ _predicates(new)) and not new.changed


def _predicates(claim: Claim) -> frozenset[str]:
    """The stems of a claim that are verbs by their form and place: `fish` in `fish tacos` is not one."""
    leads = _MODALS | SPEAKERS
    return VERBS & {
        stem(word)
        for before, word in pairwise(("", *claim.words))
        if word.endswith("s") or before in leads or (before.endswith("s") and not before.endswith("'s"))
    }


def _is_acted_on(verb: str, claim: Claim, value: Sequence[str]) -> bool:
    """Whether a verb's object is the thing that it acts on, not what was chosen: `test a parser`, `run the ledger`."""
    if (verb, value[0]) not in pairwise(claim.content):
        return False
    at = next((at for at, word in enumerate(claim.words) if stem(word) == value[0]), 0)
    return verb in _ACTED or (verb in _FUNCTIONAL - _NAMING and bool(at) and claim.words[at - 1] in _DEFINITE)


def _has_number(value: Sequence[str]) -> bool:
    return any(word[0] == "#" for word in value)


def _verb(claim: Claim) -> str:
    """The stem that a claim most likely says of its subject: the first word after `I`, else the first known verb."""
    order = [word for word in claim.content if word]
    if claim.personal and claim.words[0] in SPEAKERS:
        settled = len(order) > 1 and order[0] in _SETTLING and order[1] in VERBS
        return order[settled] if order else ""
    return next((word for word in order[1:] if word in VERBS), "")


def _led_in(claim: Claim, value: Sequence[str], prepositions: frozenset[str]) -> bool:
    named = next((word for word in value if word[0] != "#"), value[0][1:])
    at = next((at for at, word in enumerate(claim.words) if stem(word) == named), 0)
    return any(word in prepositions for word in claim.words[max(0, at - 3) : at])


def _head(claim: Claim) -> str:
    """The first word of what a claim is about."""
    return next((word for word in claim.content if word), "")


def _copular_front(old: Claim) -> bool:
    """`X is my pick`, `X is the minimum`: the value comes first."""
    return _COPULAR_FRONT.search(" ".join(old.words)) is not None


def _gaps(content: Sequence[str | None], common: frozenset[str]) -> list[list[str]]:
    """The runs of words that the other claim doesn't have; prepositions and shared words part them."""
    runs = groupby(content, key=lambda word: word is not None and word not in common)
    return [[word for word in run if word] for is_own, run in runs if is_own]


def _given_up(old: Claim, new: Claim) -> frozenset[str]:
    """What of the older claim the newer one drops; of a phrase that is dropped, more than half must stand there."""
    said = old.stems | set(old.numbers)
    whole = (phrase for phrase in new.released if len(phrase & said) * 2 > len(phrase))
    return frozenset(word for phrase in whole for word in phrase) & said
