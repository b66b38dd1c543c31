"""Find the words at the front of a statement that ask to remember it: "merk dir: …", "lưu vào bộ nhớ của bạn rằng …".
The rules are data (`rules/remember.toml`). Letters are compared without accents and case, as people type them."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from .other_languages import BELIEVED, read
from .rules import table
from .words import language, small_words, tokens

LONGEST = 120  # Characters of such a front
FEWEST_ENGLISH = 2  # Small words of English from which the statement behind a front in another language is English
_SENTENCE_END = re.compile(r"[\n.!?。！？]\s*")
_OTHER_LETTERS = {"đ": "d", "ß": "s", "ø": "o", "ł": "l", "æ": "a", "œ": "o", "ı": "i", "’": "'"}
_UNSPACED = frozenset({"zh", "ja"})
_JOINS = r":：.。\n—–"
_MARK = r"[\s,:;.!~—–\-，。：；！、…]"


WORDS_BEFORE, LETTERS_BEFORE = 4, 8  # Words, in scripts without spaces letters, before an ask that stands within
_QUOTED = re.compile(r"[\"'«»“”„「『>]")
_STARTS = re.compile(r"(?<!\S)\w|[\u3040-\u30ff\u3400-\u9fff]")


class LeadIn(NamedTuple):
    """`end`: where the statement begins; it is the text's length where nothing follows. `language`: of the words."""

    end: int
    language: str


def _bare(language: str, rules: dict[str, Any]) -> re.Pattern[str]:
    """What may ask to remember, or to do something, without a "that" or a colon."""
    end = "" if language in _UNSPACED else r"(?:(?<=\W)|(?!\w))"
    return re.compile(
        f"(?:{'|'.join(rules['needs'])}){end}(?:{_MARK}*(?:{rules['polite']}|{rules['this']}){end}){{0,4}}{_MARK}+"
    )


def _pattern(language: str, rules: dict[str, Any], is_loose: bool = False) -> re.Pattern[str]:
    """A word ends where no letter follows, other than in scripts without spaces. `is_loose`: up to four other words
    stand between what asks and a "that" or a colon."""
    is_unspaced = language in _UNSPACED
    end, joins = ("", _JOINS + "，、") if is_unspaced else (r"(?:(?<=\W)|(?!\w))", _JOINS)
    polite, asks, needs = (
        f"(?:{words}){end}" for words in (rules["polite"], *map("|".join, (rules["asks"], rules["needs"])))
    )
    between = f"(?:{_MARK}*(?:{rules['polite']}|{rules['this']}){end}){{0,4}}"
    that = f"{_MARK}*(?:{rules['that']}){end}" if rules["that"] else f" *[{joins}]"
    asked = f"{asks}{between}(?:{that})?" if rules["asks"] else "(?!)"
    if is_loose and not is_unspaced:
        between = f"{between}(?:[ ,]*[^\\W\\d]+){{0,4}}?"
        asked = f"{asks}{between}{that}|{asked}" if rules["asks"] else asked
    return re.compile(f"(?:{polite}{_MARK}*){{0,4}}(?:{asked}|{needs}{between}(?:{that}| *[{joins}])){_MARK}*")


_PATTERNS = {language: _pattern(language, rules) for language, rules in table("remember").items()}
_WITHIN = {name: _pattern(name, rules, is_loose=True) for name, rules in table("remember").items() if name != "en"}
_BARE = {name: _bare(name, rules) for name, rules in table("remember").items() if name != "en" and rules["needs"]}


@lru_cache(maxsize=1024)
def lead_in(text: str) -> LeadIn | None:
    """The front of `text` that asks to remember what follows; None where it asks nothing, or for an answer."""
    return None if text.rstrip()[-1:] in {"?", "？"} else _front(text[:LONGEST])


@lru_cache(maxsize=1024)
def lead_in_within(text: str) -> LeadIn | None:
    """The ask in a language other than English that stands behind a few words ("ach und merk dir noch, dass …"); None
    where there is none. Quoted words do not count."""
    folded = _folded(text[:LONGEST])
    for begin in _STARTS.finditer(folded):
        before = folded[: begin.start()]
        if len(before.split()) > WORDS_BEFORE or _QUOTED.search(before):
            return None
        hits = [*_hits(_WITHIN, folded, begin.start())]
        hits = hits or [front for front in _hits(_BARE, folded, begin.start()) if _states(text[front.end :])]
        if hits and (end := max(hits)).end < len(text.rstrip()):
            return end
    return None


def _hits(patterns: Mapping[str, re.Pattern[str]], folded: str, begin: int) -> Iterator[LeadIn]:
    """The fronts at `begin`; in a script without spaces only where a sentence or phrase begins, or near the front."""
    is_inside = begin > LETTERS_BEFORE and folded[begin - 1 : begin].strip(" \n，。、！") != ""
    for name, pattern in patterns.items():
        if not (is_inside and name in _UNSPACED) and (hit := pattern.match(folded, begin)):
            yield LeadIn(hit.end(), name)


def _states(text: str) -> bool:
    """Whether a text in another language states something, and is no errand."""
    return read(text, "user").worth >= BELIEVED and text.rstrip()[-1:] not in {"?", "？"}


def is_asked_for(text: str, start: int) -> bool:
    """Whether such a front stands right before `start`, at the beginning of a sentence or behind a few words."""
    before = text[max(0, start - LONGEST) : start]
    begins = (0, *(hit.end() for hit in _SENTENCE_END.finditer(before)))
    heads = (text[start - len(before) + at : start + 1] for at in begins if at < len(before))
    return any(
        (front := look(head)) is not None and front.end == len(head) - 1
        for head in heads
        for look in (_front, lead_in_within)
    )


def language_behind(front: LeadIn, statement: str) -> str:
    """The language of a statement behind such a front, which tells more than a few words without accents do."""
    spoken = language(statement)
    if spoken != "en":
        return spoken if small_words(front.language) or front.language in _UNSPACED else front.language
    words = {token.text.lower() for token in tokens(statement)} - small_words(front.language)
    return "en" if len(words & small_words("en")) >= FEWEST_ENGLISH else front.language


def _front(text: str) -> LeadIn | None:
    front = _folded(text)
    hits = (LeadIn(hit.end(), name) for name, pattern in _PATTERNS.items() if (hit := pattern.match(front)))
    return max(hits, default=None)


def _folded(text: str) -> str:
    """`text` in small letters without accents, of the same length; other scripts keep their marks."""
    return "".join(map(_letter, text))


@lru_cache(maxsize=1024)
def _letter(letter: str) -> str:
    base = unicodedata.normalize("NFD", letter)[0]
    low = (base if base.isascii() else letter).lower()
    low = _OTHER_LETTERS.get(low, low)
    return low if len(low) == 1 else letter
