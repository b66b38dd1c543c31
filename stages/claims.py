"""Take a clause apart for comparing: words in order, numbers, phrases that it gives up, announced changes.
Stems stand for words, so that `uses` and `used` are equal. Words that only announce a change ("now", "since Monday",
"renamed") are not part of the claim."""

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
        """The numbers that it gives up."""
        return frozenset(word for phrase in self.released for word in phrase if word[0].isdigit())

    @property
    def stems(self) -> frozenset[str]:
        """The content words, without partings and numbers."""
        return frozenset(word for word in self.content if word and word[0] != "#")


@lru_cache(maxsize=4096)
def claim(clause: str) -> Claim:
    text = _written_out(" ".join(plain(clause).replace("`", "").replace("**", "").split()))
    body, is_cut = _body(text)
    body_tokens = tokens(_PARTED.sub(" ", body))
    released = _released(text)
    content = _Content(released)
    for token in body_tokens:
        content.add(token)
    return Claim(
        content=tuple(content.words),
        numbers=tuple(content.numbers),
        negated=any(token.text.lower() in NEGATIONS for token in body_tokens),
        released=released,
        changed=is_cut or content.changed or _ANNOUNCES.search(text) is not None,
        adds=bool(_ADDITIVE.search(text)),
        past=_is_past(body_tokens),
        names=frozenset(content.names),
        personal=bool(re.match(r"(?:i|we)\b", body, re.I)),
        words=tuple(token.text.lower() for token in body_tokens),
    )


def _body(text: str) -> tuple[str, bool]:
    """`text` without a preamble and a tail that announce a change, where enough is left; and whether it has one."""
    preamble = _PREAMBLES.match(text)
    body = text[preamble.end() :] if preamble and len(text) - preamble.end() > 8 else text
    tail = _TAILS.search(body)
    return (body[: tail.start()] if tail and tail.start() > 8 else body), bool(preamble or tail)


class _Content:
    def __init__(self, released: tuple[frozenset[str], ...]) -> None:
        self.words: list[str | None] = []
        self.numbers: list[str] = []
        self.names: set[str] = set()
        self.changed = False
        self._released = released
        self._is_first = True

    def add(self, token: Token) -> None:
        low = token.text.lower()
        is_first, self._is_first = self._is_first, False
        is_capitalised = token.text[:1].isupper()
        if token.kind == "mark" or low in PREPOSITIONS or low in _PARTING:
            self.words.append(None)
        elif token.kind == "number" or low in _ORDINALS:
            self._add_number(_ORDINALS.get(low, token.stem))
        elif token.stem in _UPDATE and low not in _NOUNS and not is_capitalised:
            self.changed = True
        elif low not in _SKIPPED and (is_capitalised or token.stem not in _PASSING):
            self.words.append(token.stem)
            if is_capitalised and not is_first:
                self.names.add(token.stem)

    def _add_number(self, number: str) -> None:
        if not any(number in phrase for phrase in self._released):
            self.numbers.append(number)
            self.words.append(f"#{number}")


def _written_out(text: str) -> str:
    """Short forms as the words that they stand for: a DB is a database. In names ("db.py", "prod-1") they stay."""
    return _SHORTENED.sub(lambda hit: _SHORT.get(hit[0]) or _SHORT[hit[0].lower()], text)


def _released(text: str) -> tuple[frozenset[str], ...]:
    hits = (hit for pattern in _RELEASED for hit in pattern.finditer(text))
    phrases = (_content_stems(tokens(_PARTED.sub(" ", hit.group(1)))) for hit in hits)
    return tuple(phrase for phrase in phrases if phrase)


def _content_stems(phrase: Sequence[Token]) -> frozenset[str]:
    return frozenset(token.stem for token in phrase if token.kind != "mark" and token.text.lower() not in STOP)


def _is_past(clause: Sequence[Token]) -> bool:
    """Whether the clause tells of something that happened once, rather than of how things are."""
    low = [token.text.lower() for token in clause]
    if {"is", "are", "am", "always", "usually", "must", "should"} & set(low):
        return False
    for at, word in enumerate(low[:6]):
        if word in _PAST:
            return True
        helped = at and low[at - 1] in {"is", "are", "be", "gets", "get", "has", "have", "been"}
        if word.endswith("ed") and len(word) > 4 and not helped and at <= 3 and stem(word) in VERBS:
            return True
    return False
