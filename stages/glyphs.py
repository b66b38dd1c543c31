"""Characters that are not what they seem: those that no reader sees, and letters that look like others (W5, P-19).

Comes in: a text. Goes out: whether it hides something, and the text as a reader takes it. Invariants: what a script or
a picture needs is left alone: joiners, selectors, flags, right-to-left marks; a word in another script is no disguise,
one whose letters of that script all look Latin beside Latin ones is.
"""

from __future__ import annotations

import re
import unicodedata

from .rules import table

_DATA = table("glyphs")
_INVISIBLE = re.compile("[" + "".join(f"{chr(first)}-{chr(last)}" for first, last in _DATA["invisible"]) + "]")
_JOINERS = "\u200c\u200d"
_TAGS = re.compile("\U0001f3f4[\U000e0061-\U000e007a\U000e0030-\U000e0039]{1,10}\U000e007f")
_DIRECTION = "\u200e\u200f\u061c"
_SELECTORS = re.compile("[\ufe00-\ufe0f\U000e0100-\U000e01ef]")

_LATIN = {pair[0]: pair[1] for pair in _DATA["lookalikes"].split()}
_WORD = re.compile(r"[^\W\d_]+")
_STYLED = re.compile(r"[\U0001d400-\U0001d7ff]{3}")
WHOLE = 4
"""Letters of a word that is written in lookalikes alone, before it is taken for a disguise."""


def as_read(text: str) -> str:
    """`text` as a reader takes it: nothing that is not seen, compatible forms made plain, disguised words in Latin."""
    bare = unicodedata.normalize("NFKC", _INVISIBLE.sub("", text))
    if bare.isascii():
        return bare
    return _WORD.sub(lambda word: _latin(word.group()) if _disguised(word.group()) else word.group(), bare)


def disguised(text: str) -> bool:
    """Whether a word of `text` is written with letters that only look like those it seems to have."""
    if text.isascii():
        return False
    if _STYLED.search(text):
        return True
    words = _WORD.findall(text)
    if any(_disguised(word) for word in words):
        return True
    foreign = [word for word in words if any(char in _LATIN for char in word)]
    return any(len(word) >= WHOLE for word in foreign) and all(
        char in _LATIN for word in words for char in word if not _is_latin(char)
    )


def _disguised(word: str) -> bool:
    if word.isascii() or not any(char in _LATIN for char in word):
        return False
    return any(map(_is_latin, word)) and all(char in _LATIN or _is_latin(char) for char in word)


def _is_latin(char: str) -> bool:
    return char.isascii() or "\u00c0" <= char <= "\u024f"


def _latin(word: str) -> str:
    return "".join(_LATIN.get(char, char) for char in word)


def invisible(text: str) -> bool:
    """Whether `text` holds characters that no reader sees and no script needs."""
    if text.isascii():
        return False
    shown = _TAGS.sub("", text)
    return any(not _needed(shown, hit.start()) for hit in _INVISIBLE.finditer(shown))


def _needed(text: str, at: int) -> bool:
    """Whether the invisible character at `at` does its proper work there."""
    char = text[at]
    before, after = text[at - 1 : at], text[at + 1 : at + 2]
    if char in _JOINERS:
        return bool(before and after) and (
            (_pictured(before) and (char == "\u200c" or _pictured(after))) or _joining(before)
        )
    if "\ufe00" <= char <= "\ufe0f":
        return (
            bool(before)
            and not _SELECTORS.match(before)
            and (
                _pictured(before)
                or before in "0123456789#*"
                or unicodedata.category(before) in {"So", "Sm", "Lo", "Po"}
            )
        )
    if "\U000e0100" <= char <= "\U000e01ef":
        return "\u3400" <= before <= "\u9fff"
    if char in _DIRECTION:
        around = (near for near in text[max(0, at - 12) : at + 12] if near not in _DIRECTION)
        return any(unicodedata.bidirectional(near) in {"R", "AL", "AN"} for near in around)
    if char == "\u00ad":
        return before.isalpha() and after.isalpha() and text.count("\u00ad") <= 3
    return (char == "\ufeff" and at == 0) or (char in "\u180b\u180c\u180d" and "\u1800" <= before <= "\u18aa")


def _pictured(char: str) -> bool:
    return ord(char) >= 0x203C and unicodedata.category(char) in {"So", "Sk", "Sm", "Mn", "Cf", "Po"}


def _joining(char: str) -> bool:
    """Scripts in which a joiner changes the shape of letters: Arabic, Indic and their neighbours."""
    return (
        "\u0600" <= char <= "\u08ff"
        or "\u0900" <= char <= "\u0dff"
        or "\u1000" <= char <= "\u109f"
        or "\u1780" <= char <= "\u17ff"
    )
