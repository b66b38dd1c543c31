"""Undo encodings, invisible characters and lookalike letters (W5, P-19). Nothing is decoded twice. Characters that a
script or a picture needs stay; a word in another script is a disguise only if all its letters of it look Latin."""

from __future__ import annotations

import base64
import re
import string
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from operator import itemgetter

from .rules import table
from .words import small_words

READ_CHARACTERS = 20_000  # What is looked at of a text
LEAST = 12  # Characters from which a decoded piece can be an order
MANY = 8  # Escapes, gaps between letters that stand apart: so many are no accident
# So many words with digits for letters among them, or so many small words in a text read backwards or with its letters
# shifted (and more than as it stands), and it is read so.
SMALL = 3
SHARE = 4  # Of a text that is turned, at least one word in so many is small
_BASE64 = re.compile(r"(?<![\w+/=-])[A-Za-z0-9+/_-]{16,}={0,2}(?![\w+/=])")
_HEX = re.compile(r"(?<![0-9A-Za-z])(?:[0-9A-Fa-f]{2}[ ,:]{0,2}){12,}(?![0-9A-Za-z])")
_BASE32 = re.compile(r"(?<![\w=])[A-Z2-7]{16,}={0,6}(?![\w=])")
_BASE85 = re.compile(r"<~(.{10,}?)~>|(?<!\S)([!-~]{20,})(?!\S)", re.DOTALL)
_BITS = re.compile(r"(?<![0-9A-Za-z])(?:[01]{8} ?){12,}(?![0-9A-Za-z])")
_ESCAPE = re.compile(r"(?:%|\\u00|\\x|0x|&#x|=(?=[0-9A-F]{2}))([0-9A-Fa-f]{2})[;, ]?|&#(\d{2,3});")
_MORSE = re.compile(r"(?<![.\-\w])(?:[.-]{1,5}(?: ?/ ?| {1,3}|$)){8,}", re.MULTILINE)
_MORSE_SIGNS = (
    ".- -... -.-. -.. . ..-. --. .... .. .--- -.- .-.. -- -. --- .--. --.- .-. ... - ..- ...- .-- -..- -.-- --.."
)
_MORSE_LETTERS: dict[str, str] = dict(zip(_MORSE_SIGNS.split(), string.ascii_lowercase, strict=True))
_APART = re.compile(r"(?<=\b\w)[ .*|-](?=\w\b)")
_DIGITS_FOR = str.maketrans("0134578@$", "oieastbas")
_AMONG = re.compile(r"[^\W\d_][0134578@$]+[^\W\d_]")
_DISGUISED = re.compile(r"(?<!\w)(?=[^\W\d_]*[0134578@$])(?=[\d@$]*[^\W\d_])[\w@$]{3,}(?!\w)")
_WORDS = re.compile(r"[a-z]+")
_URL_SAFE = str.maketrans("-_", "+/")
_SMALL_WORDS = tuple(small_words(code) for code in ("en", "de", "fr", "es", "it", "pt", "nl"))
_SMALL_IN = {
    word: tuple(number for number, known in enumerate(_SMALL_WORDS) if word in known)
    for word in frozenset[str]().union(*_SMALL_WORDS)
    if len(word) > 1
}
"""By function word: the places of its languages."""

_COMMON = tuple(string.ascii_lowercase.index(letter) for letter in "etaoinrs")  # In all languages that are read
_OFTEN = tuple(itemgetter(*(at - by for at in _COMMON)) for by in range(26))
"""By shift: the letters that it makes common, taken from a list of 26."""

_MOVES = tuple(
    str.maketrans(
        string.ascii_letters,
        "".join(letters[by:] + letters[:by] for letters in (string.ascii_lowercase, string.ascii_uppercase)),
    )
    for by in range(26)
)

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
    yield from _encoded_runs(text)
    if len(_ESCAPE.findall(text)) >= MANY:
        yield _ESCAPE.sub(_unescaped, text)
    between = Counter(_APART.findall(text))
    if between.total() >= MANY:
        apart = between.most_common(1)[0][0]
        yield _APART.sub(lambda hit: "" if hit[0] == apart else hit[0], text)
    if len(_AMONG.findall(text)) >= SMALL:
        yield _DISGUISED.sub(lambda hit: hit[0].translate(_DIGITS_FOR), text)
    yield from _turned(text)


def _encoded_runs(text: str) -> Iterator[str]:
    """Each run of `text` that an encoding of bytes or Morse code could have made, decoded; "" where it did not."""
    for run in _BASE64.findall(text):
        yield _as_text(base64.b64decode, _padded(run.translate(_URL_SAFE), 4))
    for run in _BASE32.findall(text):
        yield _as_text(base64.b32decode, _padded(run, 8))
    for framed, bare in _BASE85.findall(text):
        yield _as_text(base64.a85decode, framed or bare)
        yield _as_text(base64.b85decode, bare)
    for run in _HEX.findall(text):
        yield bytes.fromhex(re.sub("[ ,:]", "", run)).decode("latin-1")
    for run in _BITS.findall(text):
        yield "".join(chr(int(byte, 2)) for byte in re.findall("[01]{8}", run))
    for run in _MORSE.findall(text):
        words = re.split(r" ?/ ?| {3}", run.strip())
        yield " ".join("".join(_MORSE_LETTERS.get(sign, "?") for sign in word.split()) for word in words)


def _unescaped(hit: re.Match[str]) -> str:
    return chr(int(hit[1], 16)) if hit[1] else chr(int(hit[2]))


def _padded(run: str, unit: int) -> str:
    bare = run.rstrip("=")
    return bare + "=" * (-len(bare) % unit)


def _as_text(decode: Callable[[str], bytes], run: str) -> str:
    """What `decode` makes of `run`; "" for bytes that are no text."""
    try:
        return decode(run).decode()
    except ValueError:
        return ""


def _turned(text: str) -> Iterator[str]:
    """`text` with its letters shifted or reversed, wherever that has more small words than the text as it stands."""
    lowered = text.lower()
    words = _WORDS.findall(lowered)
    least = max(SMALL, len(words) // SHARE, _small(words) + 1)
    unshifted = _unshifted(lowered)
    if _small(_WORDS.findall(lowered.translate(unshifted))) >= least:
        yield text.translate(unshifted)
    if text.isascii() and _small([word[::-1] for word in words]) < least:
        return  # the letters of both turns below make these words
    for turned in (text[::-1], _WORD.sub(lambda hit: hit[0][::-1], text)):
        if _small(_WORDS.findall(turned.lower())) >= least:
            yield turned


def _unshifted(lowered: str) -> dict[int, int]:
    """The table that moves each letter on in the alphabet by the number that makes common letters most frequent."""
    often = [lowered.count(letter) for letter in string.ascii_lowercase]
    return _MOVES[max(range(26), key=[sum(common(often)) for common in _OFTEN].__getitem__)]


def _small(words: Iterable[str]) -> int:
    """How many of these words are function words, of the language that has the most of them."""
    counts = [0] * len(_SMALL_WORDS)
    for places in filter(None, map(_SMALL_IN.get, words)):
        for number in places:
            counts[number] += 1
    return max(counts)


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
