"""A question, looked at once: its words, the time and the things it names, what widens it (Q2, Q7).

Comes in: a request, the present. Goes out: what keywords, vectors, the graph and evidence are asked. Invariants: no
model and no search in here; what widens a question never outweighs its own words.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from ....protocol.instant import moment as moment_of
from ....protocol.instant import parse
from ....protocol.recall import Recall
from ....stages.words import language
from ...projections.terms import TermQuery as Searched
from ...projections.tokens import STOP
from .evidence import QueryTerms
from .time_expression import TimePeriod, period

LOOKED_AT = 2000
"""Characters of a question in which names and times are looked for."""

THINGS = 12
_WORD = re.compile(r"[^\W_][\w+#./-]*[^\W_]|[^\W_]")
_MINE = re.compile(r"\b(?:I|I'm|I've|my|me|mine|myself)\b")

ALIASES = {
    "auth": "authentication authorization login",
    "ci": "continuous integration pipeline",
    "cli": "command line",
    "config": "configuration settings",
    "db": "database",
    "deps": "dependencies",
    "dev": "development",
    "docs": "documentation",
    "env": "environment",
    "infra": "infrastructure",
    "js": "javascript",
    "k8s": "kubernetes",
    "lib": "library",
    "perf": "performance",
    "postgres": "postgresql",
    "pr": "pull request",
    "prod": "production",
    "py": "python",
    "repo": "repository",
    "ts": "typescript",
    "ui": "interface frontend",
}  # fmt: skip
"""Short forms that developers use, both ways."""

_LONG = {word: short for short, long in ALIASES.items() if " " not in long for word in (long,)}


class ParsedQuestion(NamedTuple):
    """What is asked, in the forms that its parts of the search take."""

    searched: Searched
    asked: QueryTerms
    things: tuple[str, ...]
    period: TimePeriod | None = None
    language: str = "en"


def look_at(request: Recall, now: int) -> ParsedQuestion:
    """A request's question. `now` in microseconds: "last March" is meant from there in this machine's zone, or from
    `as_of` in its own."""
    text = request.query[:LOOKED_AT]
    words = _words(text)
    names = {*words, "user"} if _MINE.search(text) else set(words)
    expand = request.options is None or request.options.expand
    moment = parse(request.as_of) if request.as_of else moment_of(now).astimezone()
    tongue = language(request.query)
    span = period(text, moment, tongue) if expand else None
    wider = " ".join([*request.keywords, *filter(None, map(_alias, dict.fromkeys(words)))]) if expand else ""
    query = request.query
    if span is not None and span.past:  # a record of that time need not name it
        start, end = span.written
        query, wider = f"{query[:start]} {query[end:]}", f"{wider} {query[start:end]}"
    return ParsedQuestion(
        Searched(query, wider),
        QueryTerms(words=frozenset(names), period=(span.start, span.end) if span else None),
        _things(words),
        span,
        tongue,
    )


def things(text: str) -> tuple[str, ...]:
    """The words of a text that may be the end of an edge, in lower case, at most `THINGS`."""
    return _things(_words(text[:LOOKED_AT]))


def _words(text: str) -> list[str]:
    return [word.lower().removesuffix("'s") for word in _WORD.findall(text)]


def _things(words: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(word for word in words if word not in STOP))[:THINGS]


def _alias(word: str) -> str:
    return ALIASES.get(word, "") or _LONG.get(word, "")
