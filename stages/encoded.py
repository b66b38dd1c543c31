"""What a text says once its encodings are undone: an order in base64 is an order (W5, P-19).

Comes in: a text. Goes out: what is encoded in it, piece by piece, where a reader would know it for words. Invariants:
nothing is decoded twice; pictures, keys and hashes give nothing, for they are no words.
"""

from __future__ import annotations

import base64
import codecs
import re
from collections import Counter
from collections.abc import Iterator

from .words import small_words

READ_CHARACTERS = 20_000
"""What is looked at of a text."""

LEAST = 12
"""Characters from which a decoded piece can be an order."""

MANY = 8
"""Escapes, gaps between letters that stand apart: so many are no accident."""

SMALL = 3
"""So many words with digits for letters among them, or so many small words in a text read backwards or by rot13 (and
more than as it stands), and it is read so."""

_BASE64 = re.compile(r"(?<![\w+/=-])[A-Za-z0-9+/_-]{16,}={0,2}(?![\w+/=])")
_HEX = re.compile(r"(?<![0-9A-Za-z])(?:[0-9A-Fa-f]{2}[ ,:]{0,2}){12,}(?![0-9A-Za-z])")
_BITS = re.compile(r"(?<![0-9A-Za-z])(?:[01]{8} ?){12,}(?![0-9A-Za-z])")
_ESCAPE = re.compile(r"(?:%|\\u00|\\x|0x|&#x)([0-9A-Fa-f]{2})[;, ]?")
_APART = re.compile(r"(?<=\b\w)[ .*|-](?=\w\b)")
_DIGITS_FOR = str.maketrans("0134578@$", "oieastbas")
_AMONG = re.compile(r"[^\W\d_][0134578@$]+[^\W\d_]")
_DISGUISED = re.compile(r"(?<!\w)(?=[^\W\d_]*[0134578@$])(?=[\d@$]*[^\W\d_])[\w@$]{3,}(?!\w)")
_WORD = re.compile(r"[a-z]+")


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
    return sum(word in known for word in _WORD.findall(text.lower()))


def _readable(piece: str) -> bool:
    plain = " ".join(piece.split())
    letters = sum(char.isalpha() or char == " " for char in plain)
    return len(plain) >= LEAST and " " in plain and plain.isprintable() and letters >= 0.7 * len(plain)
