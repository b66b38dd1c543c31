"""Quotes what users asked for when a procedure was done (K1).

Of a request only the first sentence is quoted, and only if it is short, of plain letters and no order to an agent.
Versions, paths, and compounds that few of the requests have are "…".
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence

from .tables import table

INSIDE, OUTSIDE = 0.5, 0.2
"""Share of a procedure's asks that have one of its trigger words, and the most of all other asks."""

ASKS, ASK_LENGTH, ASK_WORDS = 3, 110, 2
"""Most asks that are quoted, their most characters and least words."""

LEFT_OUT = "…"

_WORD = re.compile(r"[^\W\d_][\w-]{2,}")
_SENTENCE_END = re.compile(r"(?<=[.!?;:。！？；：])\s+|(?<=[。！？；：])|\n")
_PLAIN_ASK = re.compile(r"[\w\s.,:;?!'’()\"“”„«»¿¡—–…。！？；：，、-]+")
_PLAIN_WORD = re.compile(r"\W*[^\W\d_]{1,24}(?:['’][^\W\d_]{1,4})?\W*")
_COMPOUND = re.compile(r"[(\"'„“«]?[^\W\d_]{1,24}-[^\W\d_]{1,24}[.,;:!?)\"'“”»]?")
_DASHES = frozenset("-–—")
_ORDER = re.compile("|".join(table("request_words")["orders"].values()), re.IGNORECASE)
_STOP = frozenset(" ".join(table("request_words")["stop"].values()).split())


def trigger_words(asks: Sequence[str], others: Sequence[str]) -> tuple[str, ...]:
    """Return the words that most of the asks have and few others do, the best ones first."""
    inside, outside = (Counter(word for text in texts for word in _words(text)) for texts in (asks, others))
    most = OUTSIDE * max(1, len(others))
    kept = [word for word, count in inside.items() if count >= INSIDE * len(asks) and outside[word] <= most]
    return tuple(sorted(kept, key=lambda word: (-inside[word], outside[word], word))) if len(asks) > 1 else ()


def quotable(asks: Sequence[str], words: Sequence[str]) -> tuple[str, ...]:
    """Return the shortest asks that have a trigger word, each as `quoted` tells."""
    texts = sorted([text for ask in asks if (text := quoted(ask, words))], key=lambda text: (len(text), text))
    fitting: dict[str, str] = {}
    for text in texts:
        if _words(text).intersection(words):
            fitting.setdefault(text.casefold(), text)
    return tuple(fitting.values())[:ASKS]


def quoted(ask: str, common: Sequence[str] = ()) -> str:
    """Return the first sentence of a user's turn as it may stand in a file that agents obey, "" for none. `common`:
    compounds that may stay."""
    sentence = _SENTENCE_END.split(ask.strip(), maxsplit=1)[0]
    words = list(_told(_unmarked(sentence).split(), common))
    text = " ".join(words)
    is_clean = all(unicodedata.category(letter) not in ("Cf", "Cc", "Co", "Cn") for letter in text)
    is_short = len(text) <= ASK_LENGTH and len([word for word in words if word != LEFT_OUT]) >= ASK_WORDS
    is_plain = _PLAIN_ASK.fullmatch(text) is not None and not _ORDER.search(sentence)
    return text.rstrip(":;：；") if is_clean and is_short and is_plain else ""


def is_quote(quote: str, ask: str) -> bool:
    """Whether a quote is of a request; "…" stands for any words."""
    words, place = _unmarked(" ".join(ask.split())), 0
    for part in quote.split(LEFT_OUT):
        part = " ".join(part.split())
        place = words.find(part, place)
        if place < 0:
            return False
        place += len(part)
    return True


def repeats(text: str, ask: str) -> bool:
    """Whether a text has three words of a request in a row."""
    words = [word.casefold() for word in _WORD.findall(ask)]
    runs = {tuple(words[place : place + 3]) for place in range(len(words) - 2)}
    said = [word.casefold() for word in _WORD.findall(text)]
    return any(tuple(said[place : place + 3]) in runs for place in range(len(said) - 2))


def _unmarked(text: str) -> str:
    """Return a text with other quotation marks, because a description puts a quote in double ones."""
    return text.replace('"', "'")


def _told(words: Sequence[str], common: Sequence[str]) -> Iterator[str]:
    before = ""
    for word in words:
        is_plain = _PLAIN_WORD.fullmatch(word) or (_COMPOUND.fullmatch(word) and _words(word).intersection(common))
        shown = word if is_plain or word in _DASHES else LEFT_OUT
        if shown != LEFT_OUT or before != LEFT_OUT:
            yield shown
        before = shown


def _words(text: str) -> set[str]:
    return {word.casefold() for word in _WORD.findall(text)} - _STOP
