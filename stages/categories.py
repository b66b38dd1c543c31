"""Category words: the words that people ask with about a thing that a text names ("linter" for ruff, "pet" for a dog).

Each line of `rules/categories.tsv` holds a domain, category words and names. A name with "?" is also an ordinary word
or a person's name, and counts only in context; one with "!" is so common a word that only a capital inside a sentence
or code marks tell it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache, lru_cache
from hashlib import sha256
from typing import NamedTuple

from .rules import rows
from .words import STOP

MOST = 24
"""Category words of a text, at most."""
READ = 2000
"""Characters of a text that are read."""
SOFTWARE = "software"

_WORD = re.compile(r"(?P<mark>`)?(?P<word>\.?[^\W_](?:[\w.+#/&@'’:-]*[\w+#])?)")
_SENTENCE = re.compile(r"(?:^|[.!?:;\n])[\s\"'(*`-]*\Z")


class _Category(NamedTuple):
    domain: str
    words: tuple[str, ...]
    doubt: str


class _Name(NamedTuple):
    start: int
    marked: bool
    categories: tuple[_Category, ...]


class _Context(NamedTuple):
    text: str
    domains: set[str]


@cache
def _table() -> dict[str, tuple[_Category, ...]]:
    """The categories of each name, in lower case."""
    table: dict[str, tuple[_Category, ...]] = {}
    for domain, words, names in rows("categories"):
        split = tuple(words.split())
        for name in names.split(", "):
            bare = name.rstrip("?!")
            table[bare] = (*table.get(bare, ()), _Category(domain, split, name[len(bare) :]))
    return table


@cache
def _longer() -> dict[str, set[int]]:
    """The numbers of words of the names of several words that begin with a word."""
    longer: dict[str, set[int]] = {}
    for name in _table():
        first, *others = name.split()
        if others:
            longer.setdefault(first, set()).add(1 + len(others))
    return longer


@cache
def _domains() -> dict[str, frozenset[str]]:
    """The domain that a word shows a text to be of: a category word of one domain only."""
    domains: dict[str, frozenset[str]] = {}
    for category in (each for categories in _table().values() for each in categories):
        for word in category.words:
            domains[word] = domains.get(word, frozenset()) | {category.domain}
    return {word: names for word, names in domains.items() if len(names) == 1 and word not in STOP}


@cache
def digest() -> str:
    """The first 8 hex digits of the hash of the table: other categories need another index."""
    return sha256(repr(rows("categories")).encode()).hexdigest()[:8]


def categories(text: str) -> tuple[str, ...]:
    """Return the category words of the things that `text` names, in order, at most `MOST`."""
    text = text[:READ]
    words = [(match["word"].lower(), match) for match in _WORD.finditer(text)]
    names = list(_names(words))
    if not names:
        return ()
    sure = {category.domain for name in names for category in name.categories if not category.doubt}
    context = _Context(text, sure | {domain for word, _ in words for domain in _domains().get(word, ())})
    result: dict[str, None] = {}
    for name in names:
        for category in name.categories:
            if not category.doubt or _is_meant(name, category, context):
                result.update(dict.fromkeys(category.words))
    return tuple(result)[:MOST]


def _names(words: list[tuple[str, re.Match[str]]]) -> Iterator[_Name]:
    """Yield the names in a text, the longest at each place; a plural and a genitive are the name itself."""
    table, place = _table(), 0
    while place < len(words):
        word, first = words[place]
        for size in _sizes(word):
            name = word if size == 1 else " ".join([word for word, _ in words[place : place + size]])
            if found := table.get(name) or table.get(_singular(name)):
                yield _Name(first.start("word"), bool(first["mark"]), found)
                place += size - 1
                break
        place += 1


@lru_cache(8192)
def _sizes(word: str) -> tuple[int, ...]:
    """The numbers of words that a name which begins with a word may have, falling."""
    longer = sorted(_longer().get(word, ()), reverse=True)
    return (*longer, 1) if word in _table() or _singular(word) in _table() else tuple(longer)


def _singular(word: str) -> str:
    return word.removesuffix("'s").removesuffix("’s").removesuffix("s")


def _is_meant(name: _Name, category: _Category, context: _Context) -> bool:
    """Whether the text shows that an ambiguous name is of this category: a word or a sure name of its domain, for
    software also code marks, or a capital inside a sentence."""
    if category.doubt == "?" and category.domain in context.domains:
        return True
    if category.domain != SOFTWARE:
        return False
    return name.marked or (context.text[name.start].isupper() and _SENTENCE.search(context.text[: name.start]) is None)
