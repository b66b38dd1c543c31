"""Decides which words of a command may stand in a file that agents obey (K1).

A name that a stranger chose can spell an order, a secret or a way out of the project. So a word stays only if it is
short and of one or two parts, or if the project's own files have it and it is no sentence. Of arguments that no file
has, two a command stay, and of values of options only numbers. What does not stay is `<word>`, `<path>`, `<option>`, or
`<text>`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

Known = Callable[[str], bool]
"""Whether the project has a path, or names a word where it defines commands."""

FREE = 2
"""Most arguments of a command that stay though no file of the project has them."""

_PART = r"(?:[A-Za-z]{1,15}\d{0,3})"
_SIMPLE = re.compile(rf"{_PART}(?:[_-]{_PART})?|\d{{1,5}}(?:\.\d{{1,3}})?", re.ASCII)
_SUB_COMMAND = re.compile(rf"{_PART}:{_PART}", re.ASCII)
_OPTION = re.compile(rf"-[A-Za-z]{{1,4}}\d?|--?{_PART}(?:-{_PART})?", re.ASCII)
_NAME = re.compile(rf"\.?{_PART}(?:[_.-]{_PART})?(?:\.\w{{1,5}})?", re.ASCII)
_NUMBER = re.compile(r"\d{1,5}(?:\.\d{1,3})?", re.ASCII)
_PARTS = re.compile(r"[^\W\d_]+")
MOST_PARTS = 4
"""Most words in one part of a path, or in a name, that the project's files have."""

_ENDING = re.compile(r"\.[A-Za-z]\w{0,4}$")


PLACEHOLDERS = frozenset(("<word>", "<path>", "<option>", "<text>"))


def placeholder(word: str) -> str:
    """Return what stands for a word."""
    if not word:
        return "<text>"
    if word.startswith("-"):
        return "<option>"
    return "<path>" if "/" in word or _ENDING.search(word) else "<word>"


def shown_words(words: Sequence[str], known: Known) -> Iterator[str]:
    """Yield the words behind a program as they may be shown; placeholders stay."""
    left = FREE
    for before, word in zip(("", *words), words, strict=False):
        name, equals, value = word.partition("=")
        if _SUB_COMMAND.fullmatch(word) and not before.startswith("-"):
            yield word
        elif equals and word not in PLACEHOLDERS:
            yield f"{_shown(name, known)}={placeholder(value)}"
        elif word in PLACEHOLDERS or word.startswith("-") or _is_known(word, known):
            yield _shown(word, known)
        elif before.startswith("-"):
            yield word if _NUMBER.fullmatch(word) else placeholder(word)
        else:
            yield _shown(word, known) if left > 0 else placeholder(word)
            left -= 1


def _shown(word: str, known: Known) -> str:
    return word if word in PLACEHOLDERS or _is_plain(word) or _is_known(word, known) else placeholder(word)


def _is_known(word: str, known: Known) -> bool:
    is_short = all(len(_PARTS.findall(part.partition(".")[0])) <= MOST_PARTS for part in word.split("/"))
    return is_short and known(word)


def _is_plain(word: str) -> bool:
    """Whether a word is short and of one or two parts; of a path each part, without hidden folders and ways out."""
    if word.startswith("-"):
        return _OPTION.fullmatch(word) is not None
    if "/" not in word and not _ENDING.search(word):
        return _SIMPLE.fullmatch(word) is not None
    parts = word.removeprefix("./").rstrip("/").split("/")
    return len(parts) <= 4 and all(_NAME.fullmatch(part) and not part.startswith(".") for part in parts)
