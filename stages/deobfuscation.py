"""Undo encodings, invisible characters and lookalike letters (W5, P-19). Nothing is decoded twice. Characters that a
script or a picture needs stay; a word in another script is a disguise only if all its letters of it look Latin."""

from __future__ import annotations

import base64
import codecs
import re
import unicodedata
from collections import Counter
from collections.abc import Iterator

from .rules import table
from .words import small_words

READ_CHARACTERS = 20_000  # What is looked at of a text
LEAST = 12  # Characters from which a decoded piece can be an order
MANY = 8  # Escapes, gaps between letters that stand apart: so many are no accident
# So many words with digits for letters among them, or so many small words in a text read backwards or by rot13 (and
# more than as it stands), and it is read so.
SMALL = 3
_BASE64 = re.compile(r"(?<![\w+/=-])[A-Za-z0-9+/_-]{16,}={0,2}(?![\w+/=])")
_HEX = re.compile(r"(?<![0-9A-Za-z])(?:[0-9A-Fa-f]{2}[ ,:]{0,2}){12,}(?![0-9A-Za-z])")
_BITS = re.compile(r"(?<![0-9A-Za-z])(?:[01]{8} ?){12,}(?![0-9A-Za-z])")
_ESCAPE = re.compile(r"(?:%|\\u00|\\x|0x|&#x)([0-9A-Fa-f]{2})[;, ]?")
_APART = re.compile(r"(?<=\b\w)[ .*|-](?=\w\b)")
_DIGITS_FOR = str.maketrans("0134578@$", "oieastbas")
_AMONG = re.compile(r"[^\W\d_][0134578@$]+[^\W\d_]")
_DISGUISED = re.compile(r"(?<!\w)(?=[^\W\d_]*[0134578@$])(?=[\d@$]*[^\W\d_])[\w@$]{3,}(?!\w)")
_WORDS = re.compile(r"[a-z]+")

_DATA = table("glyphs")
_INVISIBLE = re.compile("[" + "".join(f"{chr(first)}-{chr(last)}" for first, last in _DATA["invisible"]) + "]")
_JOINERS = "\u200c\u200d"
_TAGS = re.compile("\U0001f3f4[\U000e0061-\U000e007a\U000e0030-\U000e0039]{1,10}\U000e007f")
_DIRECTION = "\u200e\u200f\u061c"
_SELECTORS = re.compile("[\ufe00-\ufe0f\U000e0100-\U000e01ef]")

_LATIN = {pair[0]: pair[1] for pair in _DATA["lookalikes"].split()}
_LOOKALIKES = str.maketrans(_LATIN)
_WORD = re.compile(r"[^\W\d_]+")
_STYLED = re.compile(r"[\U0001d400-\U0001d7ff]{3}")
WHOLE = 4  # Letters of a word that is written in lookalikes alone, before it is taken for a disguise


def decoded(text: str) -> tuple[str, ...]:
    """What is encoded in `text`, without what does not look like words once it is decoded."""
    return tuple(piece for piece in _pieces(text[:READ_CHARACTERS]) if _readable(piece))


def _pieces(text: str) -> Iterator[str]:
    for run in _BASE64.findall(text):
        yield _plain(run)
    for run in _HEX.findall(text):
        yield bytes.fromhex(re.sub("[ ,:]", "", run)).decode("latin-1")
    for run in _BITS.findall(text):
        yield "".join(chr(int(byte, 2)) for byte in re.findall("[01]{8}", run))
    if len(_ESCAPE.findall(text)) >= MANY:
        yield _ESCAPE.sub(lambda hit: chr(int(hit[1], 16)), text)
    between = Counter(_APART.findall(text))
    if between.total() >= MANY:
        apart = between.most_common(1)[0][0]
        yield _APART.sub(lambda hit: "" if hit[0] == apart else hit[0], text)
    if len(_AMONG.findall(text)) >= SMALL:
        yield _DISGUISED.sub(lambda hit: hit[0].translate(_DIGITS_FOR), text)
    as_it_stands = _small(text)
    for turned in (codecs.encode(text, "rot13"), text[::-1]):
        if _small(turned) >= max(SMALL, as_it_stands + 1):
            yield turned


def _plain(run: str) -> str:
    """A run of base64, in either alphabet; "" for bytes that are no text."""
    bare = run.rstrip("=").translate(str.maketrans("-_", "+/"))
    try:
        return base64.b64decode(bare + "=" * (-len(bare) % 4)).decode()
    except ValueError:
        return ""


def _small(text: str) -> int:
    known = small_words("en")
    return sum(word in known for word in _WORDS.findall(text.lower()))


def _readable(piece: str) -> bool:
    plain = " ".join(piece.split())
    letters = sum(char.isalpha() or char == " " for char in plain)
    return len(plain) >= LEAST and " " in plain and plain.isprintable() and letters >= 0.7 * len(plain)


def as_read(text: str) -> str:
    """`text` as a reader takes it: nothing that is not seen, compatible forms made plain, disguised words in Latin."""
    bare = unicodedata.normalize("NFKC", _INVISIBLE.sub("", text))
    if bare.isascii():
        return bare
    return _WORD.sub(lambda hit: hit[0].translate(_LOOKALIKES) if _disguised(hit[0]) else hit[0], bare)


def disguised(text: str) -> bool:
    """Whether a word of `text` is written with letters that only look like those it seems to have."""
    if text.isascii():
        return False
    words = _WORD.findall(text)
    if _STYLED.search(text) or any(map(_disguised, words)):
        return True
    is_whole = any(len(word) >= WHOLE and not _LATIN.keys().isdisjoint(word) for word in words)
    return is_whole and all(char in _LATIN or _is_latin(char) for word in words for char in word)


def _disguised(word: str) -> bool:
    if word.isascii() or not any(char in _LATIN for char in word):
        return False
    return any(map(_is_latin, word)) and all(char in _LATIN or _is_latin(char) for char in word)


def _is_latin(char: str) -> bool:
    return char.isascii() or "\u00c0" <= char <= "\u024f"


def invisible(text: str) -> bool:
    """Whether `text` holds characters that no reader sees and no script needs."""
    shown = _TAGS.sub("", text)
    return not text.isascii() and any(not _needed(shown, hit.start()) for hit in _INVISIBLE.finditer(shown))


def _needed(text: str, at: int) -> bool:
    """Whether the invisible character at `at` does its proper work there."""
    char = text[at]
    before, after = text[at - 1 : at], text[at + 1 : at + 2]
    if char in _JOINERS:
        in_picture = before and after and _pictured(before) and (char == "\u200c" or _pictured(after))
        return bool(in_picture or (before and after and _joining(before)))
    if "\ufe00" <= char <= "\ufe0f":
        if not before or _SELECTORS.match(before):
            return False
        category = unicodedata.category(before)
        return _pictured(before) or before in "0123456789#*" or category in {"So", "Sm", "Lo", "Po"}
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
    return "\u0600" <= char <= "\u0dff" or "\u1000" <= char <= "\u109f" or "\u1780" <= char <= "\u17ff"
