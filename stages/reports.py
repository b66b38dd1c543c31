"""Tell whether a sentence of the user reports what somebody else says, wants or prefers: then it is not the user's word
(P-19). A sentence that goes on with a statement of its own ("…, so use X") is the user's."""

from __future__ import annotations

import re

from .rules import any_of, table, words
from .words import STOP

_DATA = table("speakers")


def _either(listed: str | list[str]) -> str:
    return "|".join(listed.split() if isinstance(listed, str) else listed)


_OWNERS = rf"(?:(?:{_DATA['owners']})(?:\s+|(?<=['’])))"
_NAME = r"(?-i:[A-ZÀ-Þ][\w'’-]+(?: [A-ZÀ-Þ][\w'’-]+){0,2})"
_FROM = rf"(?:\s+(?:{_DATA['origins']})\s+(?:[\w'’-]+\s+){{0,2}}?[\w'’-]+|\s*\([^)]{{1,40}}\)|,[^,]{{2,40}},)?"
_PERSON = rf"{_OWNERS}(?:[\w-]+\s+){{0,3}}?(?:{_either(_DATA['persons'])})\b(?:\s+{_NAME})?{_FROM}"
_TEXT = rf"{_OWNERS}(?:[\w-]+\s+){{0,2}}?(?:{_DATA['texts']})\b{_FROM}"
_MANNER = rf"(?:\s+(?:{_DATA['adverbs']}))*\s+"
_FRONT = rf"^\W*(?:(?:{_DATA['fronts']})[,:]?\s+){{0,2}}"
_SAID, _WISHES = _either(_DATA["said"]), _either(_DATA["wishes"])


def _form(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)


_BY_PERSON = _form(rf"{_FRONT}{_PERSON}{_MANNER}(?:{_SAID}|{_WISHES})\b")
_BY_TEXT = _form(rf"{_FRONT}{_TEXT}{_MANNER}(?:{_SAID})\b")
_BY_NAME = _form(rf"{_FRONT}(?P<name>{_NAME}){_FROM}{_MANNER}(?:{_SAID}|{_WISHES})\b")
_OF_NAME = _form(rf"{_FRONT}(?P<name>{_NAME})['’]s (?:[\w-]+ )?(?:preference|rule|favou?rite|opinion|wish|advice)\b")
_BY_MANY = _form(
    rf"{_FRONT}(?:they|others|some people|other people)\s+(?:(?:{_DATA['adverbs']})\s+)?"
    r"(?:prefer|like|want|say|think|recommend|insist)\b"
)
_SOURCED = _form(rf"{_FRONT}(?:according to|laut|selon|d.après|según|secondo|segundo|volgens)\s")
_SPEAKS = _form(rf"\b(?:{_SAID})(?:[^\S\n]+[\w'’]+){{0,3}}\s*[:,]?\s*[:\"“„«']\s*[\"“„«']?\s*{_DATA['firsts']}")
_SPEAKER = _form(r"^\W*(?:[\w'’-]+\s+){0,3}?(?:i|we|ich|wir|je|j|nous|yo|io|noi|eu|ik|wij)\b")
_LABELLED = _form(rf"^\W*(?:from\s+)?(?P<name>{_NAME}|{_PERSON})\s*(?:\([^)]*\))?:\s+[\"“„«']?{_DATA['firsts']}")
_NAMED_BEHIND = _form(
    rf"[,\"”»“.!?]\s*(?:said|says|wrote|writes|sagt|sagte|dit|dijo|dice|disse|diz|zei|schrieb)\s+(?:{_PERSON}|(?P<name>{_NAME}))\W*$"
)
_USER = _form(rf"{_FRONT}(?:{_DATA['users']})(?:{_DATA['user_facts']}|{_MANNER}(?:{_SAID}|{_WISHES}|always|never)\b)")
_WHOLE_QUOTE = re.compile(r"[\"“„«][^\"“”„«»]+[\"”“»]\W*")
_QUOTED = re.compile(r"[\"“„«][^\"“”„«»]*[\"”“»]?")
_GOES_ON = _form(
    rf"[,;.—–-]\s*(?:(?:and\s+)?(?:{_DATA['turns']})\b,?\s+(?!(?:{_DATA['third']})\b)\S|(?:{_DATA['own']})\b)"
    rf"|\s(?:{_DATA['turns']})\s+(?:{_DATA['own']}|use)\b"
)
_ORDERS, _DEMANDS = words("speakers", "orders"), _form(_DATA["demands"])
_FIRST_WORD = re.compile(r"[A-Za-z]+(?:['’]t)?")
_SELF = re.compile(r"\b(?:I|I['’]\w+|[Mm]y|[Mm]yself|[Ii]ch|[Jj]e|yo|[Ii]o|[Ee]u|[Ii]k)\b")
_TOOLS = any_of(rf"(?<![\w-])(?:{names})(?![\w-])" for names in table("lexicon").values())
_TOPICS = words("speakers", "topics")
_NO_NAMES = STOP | words("speakers", "no_names")


def is_reported(clause: str) -> bool:
    """Whether the clause is somebody else's word: quoted, said, wanted or preferred by another one than its speaker."""
    if _WHOLE_QUOTE.fullmatch(clause.strip()) or _is_speech(clause) or names_the_user(clause):
        return True
    hit = _BY_PERSON.search(clause) or _BY_TEXT.search(clause) or _BY_MANY.search(clause) or _SOURCED.search(clause)
    hit = hit or _by_name(_BY_NAME, clause) or _by_name(_OF_NAME, clause)
    return hit is not None and not _goes_on(clause[hit.end() :])


def names_the_user(words: str) -> bool:
    """Whether the words speak of the user in the third person, as others do."""
    return _USER.search(words) is not None


def is_order(words_said: str) -> bool:
    """Whether a sentence tells its reader what to do."""
    first = _FIRST_WORD.search(words_said)
    return (first is not None and first[0].lower() in _ORDERS) or _DEMANDS.search(words_said) is not None


def is_first_person(words_said: str) -> bool:
    """Whether a sentence speaks of its own speaker."""
    return _SELF.search(words_said) is not None


def _is_speech(clause: str) -> bool:
    """Whether somebody else's first person stands in the clause, behind a name or a verb that says who speaks."""
    labelled = _LABELLED.search(clause)
    if labelled and _is_name(labelled["name"]):
        return True
    if _NAMED_BEHIND.search(clause):
        return True
    spoken = _SPEAKS.search(clause)
    return spoken is not None and not _SPEAKER.match(clause[: spoken.start() + 1])


def _by_name(pattern: re.Pattern[str], clause: str) -> re.Match[str] | None:
    hit = pattern.search(clause)
    return hit if hit and _is_name(hit["name"]) else None


def _is_name(name: str) -> bool:
    first = name.split(maxsplit=1)[0].lower()
    return first not in _NO_NAMES and first not in _TOPICS and not _TOOLS.search(name)


def _goes_on(rest: str) -> bool:
    """Whether the sentence goes on with what its own speaker says; behind a colon the other one speaks to its end."""
    bare = _QUOTED.sub(" ", rest)
    return _GOES_ON.search(bare.partition(":")[0]) is not None
