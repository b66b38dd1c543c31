"""Where an announced value ends, and whether it can be a secret (W5, P-18)."""

from __future__ import annotations

import re
from itertools import groupby
from operator import itemgetter
from typing import NamedTuple

from . import announced_words as words

LEAST, MOST = 4, 1_024
"""Characters of a secret."""

REPEATED = 16
"""From so many characters on, a value that mostly repeats one of them is a placeholder."""


class Value(NamedTuple):
    """A value's place in characters; `quoted`: it stands in quotes."""

    start: int
    end: int
    quoted: bool


def listed(text: str) -> frozenset[str]:
    """The words of a list; `_` in one stands for a space."""
    return frozenset(word.replace("_", " ") for word in text.split())


def any_of(text: str) -> str:
    """An expression for any word of a list, the longest first. `re` tries one alternative for each first character."""
    ordered = sorted(listed(text), key=lambda word: (word[0], -len(word), word))
    groups = [(first, [word[1:] for word in words]) for first, words in groupby(ordered, itemgetter(0))]
    return "|".join(f"{re.escape(first)}(?:{'|'.join(map(_escaped, rests))})" for first, rests in groups)


def _escaped(words: str) -> str:
    return re.escape(words).replace(r"\ ", "[ _]")


_LISTED, _TECHNICAL = listed(words.LISTED), listed(words.TECHNICAL)
_PLACEHOLDER = re.compile("|".join(words.PLACEHOLDERS), re.IGNORECASE)
_CODE = re.compile("|".join(words.CODE))
_PATH = re.compile("|".join((*words.PATHS, rf"[\w./-]*\w\.(?:{any_of(words.FILE_ENDINGS)})")), re.IGNORECASE)
_NO_SECRET_IN_PROSE = re.compile("|".join(words.NO_SECRETS_IN_PROSE))

_HUMP = re.compile(r"[^\W\d_a-z]+(?![a-z])|[^\W\d_]?[^\W\d_A-Z]+|\d+")
_NO_LETTERS = re.compile(r"\d|[^\w\s.,:;/'’?!()-]")
_NO_WORDS = re.compile(r"[^\w\s.,:;/'’?!()*&\[\]<>=+#-]")
_MIXED_CASE = re.compile(r"[A-Z]{2,}[a-z]{1,2}[A-Z]")
_VOWELS = "aeiouyà-ɏаеёиоуыэюяіїєạ-ỹ\u3040-\u30ff\u4e00-\u9fff\uac00-\ud7af"
_VOWEL = re.compile(f"[{_VOWELS}]")
_UNPRONOUNCEABLE = re.compile(rf"[^{_VOWELS}]{{5}}|(.)\1\1|q[^u{_VOWELS[6:]}]")
_NUMBERED = re.compile(r"(?<=[A-Za-z])\d{1,3}!?$")
_DISGUISE = re.compile(r"[A-Za-z][@$013]")
_DISGUISED = str.maketrans("@$013", "asoie")
_JOINTS = re.compile(r"[-_/.,:]")
JOINED = 40
"""Characters of the longest run of letters that is split into words."""

_QUOTE = re.compile(r"(\\{0,8})([\"'`])|&quot;|[«“„‘]\s?")
_NOT_OPENED = frozenset(" \t\n+.,;)}]")
"""Characters behind a quote that closes a text, not one that opens a value."""
_CLOSING = {"«": "»", "“": "”", "„": "“", "‘": "’"}
_BARE = re.compile(r"[^\s\"'`<>«»“”|]+(?:['\"`][^\s\"'`<>,;)\]}]+)*")
_STOP = re.compile(r"&(?=[\w.-]+=|amp;)|\\+[nrt\"'\\]|[,;](?=$|[\w.-]+\s?[=:]|[\"'{\[])|;|&quot;|%26")
_OPENING_OF = {")": "(", "]": "[", "}": "{"}


# --- what a value can be ---------------------------------------------------------------------------------------------
def is_exempt(text: str, quoted: bool) -> bool:
    """Whether a value is no secret wherever it stands: a placeholder, variable, type, path, or listed words."""
    if not LEAST <= len(text) <= MOST or (len(text) >= REPEATED and max(map(text.count, set(text))) > len(text) * 0.6):
        return True
    text = text.strip("\"'")
    if _PLACEHOLDER.fullmatch(text) or text.lower() in _TECHNICAL or is_listed(text) or _PATH.fullmatch(text):
        return True
    return not quoted and bool(_CODE.fullmatch(text))


def is_listed(text: str) -> bool:
    """Whether `text` consists of words of documentation and code, perhaps with a number at the end."""
    bare = _NUMBERED.sub("", text)
    plain = bare.translate(_DISGUISED) if _DISGUISE.search(bare) else bare
    humps = _HUMP.findall(plain)
    if not humps or _NO_WORDS.search(plain):
        return False
    return bare.lower() in _LISTED or all(_is_joined(hump.lower()) for hump in humps)


def _is_joined(hump: str) -> bool:
    """Whether a run of letters is a listed word, or several without a gap: `mypassword`."""
    if hump in _LISTED or len(hump) > JOINED:
        return hump in _LISTED
    reached = {0}
    for end in range(2, len(hump) + 1):
        if any(hump[start:end] in _LISTED for start in reached if end - start > 1):
            reached.add(end)
    return len(hump) in reached


def is_wordlike(text: str) -> bool:
    """Whether letters and what joins them can be words: vowels in each, few changes of case, no digits."""
    if text.isascii() and text.isalpha() and text[1:].islower():  # most words have one hump
        return text.lower() in _LISTED or (len(text) > 2 and _is_pronounceable(text.lower()))
    if _NO_LETTERS.search(text):
        return False
    humps: list[str] = _HUMP.findall(text)
    known = [hump.lower() in _LISTED for hump in humps]
    least = 3 if len(humps) > 2 else 2.6
    if not humps or sum(map(len, humps)) < least * len(humps) or _MIXED_CASE.search(text):
        return all(known)
    if any(len(hump) < 2 and hump not in "aI" for hump in humps):
        return all(known)
    return all(is_known or _is_pronounceable(hump.lower()) for hump, is_known in zip(humps, known, strict=True))


def _is_pronounceable(hump: str) -> bool:
    return bool(_VOWEL.search(hump)) and not _UNPRONOUNCEABLE.search(hump)


def is_secretish(text: str, is_password: bool = False) -> bool:
    """Whether no word, number, name of a technique or file looks like this: what a secret in prose must be. A password
    may be a word with a number."""
    if not text or is_wordlike(text) or text.lower() in _TECHNICAL or _NO_SECRET_IN_PROSE.fullmatch(text):
        return False
    parts = [part for part in _JOINTS.split(text) if part]
    if is_password and text[0].isalpha() and text[-1].isdigit() and not is_listed(parts[0]):
        return True
    return not all(map(_is_ordinary, parts))


def _is_ordinary(part: str) -> bool:
    if part.lower() in _TECHNICAL or part.isdigit():
        return True
    return len(part) > 1 and (is_wordlike(part) or (len(part) < 4 and part.isalpha()))


def is_phrase(text: str) -> bool:
    """Whether several words in quotes can be a pass phrase: three to eight, few of documentation."""
    parts = text.split()
    return 3 <= len(parts) <= 8 and 3 * sum(part.strip(".,!?:").lower() in _LISTED for part in parts) <= len(parts)


# --- where a value ends ----------------------------------------------------------------------------------------------
def value_at(text: str, start: int) -> Value | None:
    """The value that begins at `start`, in quotes or without."""
    opening = _QUOTE.match(text, start)
    if not opening:
        return bare_at(text, start)
    begin, mark = opening.end(), opening[0].strip()
    if begin >= len(text) or text[begin] in _NOT_OPENED:
        return None
    line = text.find("\n", begin, begin + MOST)
    last = line if line >= 0 else min(len(text), begin + MOST)
    closing = _CLOSING.get(mark, mark)
    end = text.find(closing, begin, last)
    while end > 0 and not opening[1] and text[end - 1] == "\\" and mark in "\"'":
        end = text.find(closing, end + 1, last)
    if end < 0:
        return bare_at(text, begin)
    return Value(begin, begin + len(text[begin:end].rstrip(" »”")), True)


def bare_at(text: str, start: int) -> Value | None:
    """The value without quotes that begins at `start`."""
    match = _BARE.match(text, start, start + MOST)
    if not match:
        return None
    stop = _STOP.search(text, start + 1, match.end())
    return Value(start, trimmed(text, start, stop.start() if stop else match.end()), False)


def trimmed(text: str, start: int, end: int) -> int:
    """The end without the punctuation and the brackets of the sentence around the value."""
    while end > start:
        last = text[end - 1]
        is_surplus = last in _OPENING_OF and text.count(last, start, end) > text.count(_OPENING_OF[last], start, end)
        if last not in ".,;:?*\\" and not is_surplus:
            break
        end -= 1
    return end
