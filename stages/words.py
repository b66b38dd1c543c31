"""Split text into words: language, tokens, stems, numbers, keywords. Stems are for comparing only."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from .rules import table, words

STOP = words("words", "stop")
PREPOSITIONS = words("words", "prepositions")
NEGATIONS = words("words", "negations")
_UNSTEMMED = words("words", "unstemmed")
_IRREGULAR: dict[str, str] = table("words")["irregular"]
_NUMBERS: dict[str, int] = table("words")["numbers"]
_SMALL = {name: frozenset(text.split()) for name, text in table("words")["languages"].items()}
_MORE_SMALL = {name: _SMALL[name] | set(text.split()) for name, text in table("words")["more_small"].items()}
FEWEST_SMALL = 2  # Small words of another language, beside none of English, in a clause that is not English
_SMALL_IN = {
    word: tuple(name for name in _SMALL if word in _SMALL[name]) for word in frozenset[str]().union(*_SMALL.values())
}
_RANGES = {
    "ja": r"\u3040-\u30ff",
    "ko": r"\uac00-\ud7af\u1100-\u11ff",
    "zh": r"\u3400-\u9fff",
    "ar": r"\u0600-\u06ff",
} | {
    "he": r"\u0590-\u05ff",
    "ru": r"\u0400-\u04ff",
    "el": r"\u0370-\u03ff",
    "hi": r"\u0900-\u097f",
    "th": r"\u0e00-\u0e7f",
}
_SCRIPTS = tuple((name, re.compile(f"[{range_}]")) for name, range_ in _RANGES.items())
_CODE = re.compile(r"`[^`]*`")
_SIGNS = re.compile(r"[/\\_(){}=<>]")
_LATIN = re.compile(r"(?<![\w'’])[^\W\d_]+(?:['’][^\W\d_]+)?(?!\w)")
_TOKEN = re.compile(
    r"(?P<code>`[^`\n]+`)|(?P<number>\d+(?:[.,:]\d+)*(?:st|nd|rd|th)?%?)|(?P<word>(?:(?<=\s)[./~@]+)?[^\W\d_][\w'’]*(?:[-./+#_]+\w+)*\+*#?)|(?P<mark>[,;:—–()])"
)
_IDENTIFIER = re.compile(r"[a-z0-9][A-Z]|_|\d|[./#+]|::")
_CJK = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]{2,8}")


@dataclass(frozen=True, slots=True)
class Token:
    """A word, number, span of code or mark at `start`. `stem`: what is compared; numbers are spelt in digits."""

    text: str
    stem: str
    kind: str
    start: int


@lru_cache(maxsize=4096)
def language(text: str) -> str:
    """ISO code of the language of `text`, by script and small words; `en` when there is nothing to tell by."""
    spoken = _CODE.sub(" ", text[:2000])
    bare = " ".join(word for word in spoken.split() if not _SIGNS.search(word)) if _SIGNS.search(spoken) else spoken
    if not bare.isascii() and (script := _script(bare)):
        return script
    small = [word.lower() for word in _LATIN.findall(bare)]
    counts = dict.fromkeys(_SMALL, 0)
    for word in small:
        for name in _SMALL_IN.get(word, ()):
            counts[name] += 1
    english = counts.pop("en")
    best = max(counts, key=lambda name: counts[name])
    if counts[best] * 6 < len(small):
        return "en"
    own = {word for word in small if word in _SMALL[best] and word not in _SMALL["en"]}
    if len(own) >= FEWEST_SMALL and _MORE_SMALL.get(best, _SMALL[best]).issuperset(_SMALL["en"] & set(small)):
        return best  # "in" is as German as it is English
    if counts[best] >= FEWEST_SMALL and counts[best] > english + 1:
        return best
    has_accent = any(char in "äöüßéèêàçñáíóúãõ" for char in bare)
    return best if counts[best] > english and has_accent else "en"


def _script(text: str) -> str:
    """The language whose script a third of the letters of `text` are in, "" for none."""
    letters = sum(1 for char in text if char.isalpha())
    for name, pattern in _SCRIPTS:
        hits = len(pattern.findall(text))
        if hits * 3 > letters and hits:
            return name
    return ""


def is_english(text: str) -> bool:
    """Whether a model that knows English only can read a clause, however short it is."""
    if language(text) != "en":
        return False
    spoken = {word.lower() for word in _LATIN.findall(text)}
    return not any(
        len(spoken & (small - _SMALL["en"])) >= FEWEST_SMALL and spoken.isdisjoint(_SMALL["en"] - small)
        for small in _MORE_SMALL.values()
    )


def small_words(code: str) -> frozenset[str]:
    """The function words of a language; none for an unknown one."""
    return _SMALL.get(code, frozenset())


def more_small_words() -> Iterable[frozenset[str]]:
    """The function words of each other language, with those that English has too."""
    return (frozenset(_MORE_SMALL[name]) for name in _SMALL if name != "en")


@lru_cache(maxsize=16384)
def stem(word: str) -> str:
    """A word without its plain English endings, in lower case."""
    word = word.lower().replace("’", "'").removesuffix("'s").rstrip("'")
    if word in _IRREGULAR:
        return _without_e(_IRREGULAR[word])
    if word in _UNSTEMMED or len(word) < 4 or not word.isascii() or not word.isalpha():
        return word
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    for ending in ("sses", "shes", "ches", "xes", "zzes"):
        if word.endswith(ending):
            return word[:-2]
    if word.endswith("s") and not word.endswith(("ss", "us", "is")):
        return _without_e(word[:-1])
    for ending in ("ing", "ed"):
        if word.endswith(ending) and len(word) > len(ending) + 2 and re.search(r"[aeiouy]", word[: -len(ending)]):
            base = word[: -len(ending)]
            if base[-1] == base[-2] and base[-1] not in "lsz":
                base = base[:-1]
            return _without_e(base)
    return _without_e(word)


def _without_e(word: str) -> str:
    return word[:-1] if word.endswith("e") and len(word) > 3 else word


@lru_cache(maxsize=4096)
def tokens(text: str) -> tuple[Token, ...]:
    """The words, numbers, code spans and marks of `text`, in order."""
    text = unicodedata.normalize("NFC", text)
    result: list[Token] = []
    for match in _TOKEN.finditer(text):
        kind, word = str(match.lastgroup), match.group()
        low = word.lower()
        if kind == "number":
            stemmed = re.sub(r"(?<=\d),(?=\d{3})|(?:st|nd|rd|th)$", "", low)
        elif kind == "word" and low in _NUMBERS:
            kind, stemmed = "number", str(_NUMBERS[low])
        elif kind == "code":
            stemmed = low.strip("`")
        else:
            stemmed = stem(word) if kind == "word" else word
        result.append(Token(word, stemmed, kind, match.start()))
    return tuple(result)


def keywords(text: str, marked: str = "", most: int = 8) -> tuple[str, ...]:
    """Identifiers first, then content words in order, lower case but for identifiers; at most `most`. Words that stand
    in `marked` as well, the clause's subject and value, come before the others."""
    names: list[str] = []
    plain: list[str] = []
    for token in tokens(text):
        word = token.text.strip("`'’.")
        if token.kind == "mark" or len(word) < 2 or len(word) > 60:
            continue
        if token.kind == "code" or (token.kind == "word" and _IDENTIFIER.search(word)):
            names.append(word)
        elif token.kind == "word" and word.lower() not in STOP and len(word) > 2:
            plain.extend(_CJK.findall(word) or [word.lower().replace("’", "'").removesuffix("'s")])
    telling = set(marked.lower().split())
    plain.sort(key=lambda word: word not in telling)
    return tuple(dict.fromkeys(names + plain))[:most]
