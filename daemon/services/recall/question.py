"""Parses a question into the forms that keywords, vectors, the graph and evidence search with (Q2, Q7).

Invariants: no model and no search; what widens a question never outweighs its own words.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from ....protocol.instant import moment, parse
from ....protocol.recall import Recall
from ....stages.other_languages import language
from ...projections.terms import TermQuery
from ...projections.tokens import STOP
from .evidence import QueryTerms
from .time_expression import TimePeriod, period

PARSED = 2000
"""Characters of a question that are searched for names and times."""

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
"""Short forms that developers use; applied in both directions."""

_SYNONYMS = {long: short for short, long in ALIASES.items() if " " not in long} | ALIASES


class ParsedQuestion(NamedTuple):
    """A question in the forms that the parts of the search take."""

    searched: TermQuery
    asked: QueryTerms
    things: tuple[str, ...]
    period: TimePeriod | None = None
    language: str = "en"


def parse_question(request: Recall, now: int) -> ParsedQuestion:
    """Parse a request's question.

    Times such as "last March" are relative to `now` (microseconds) in this machine's zone, or to `as_of` in its own.
    """
    text = request.query[:PARSED]
    words = _words(text)
    names = {*words, "user"} if _MINE.search(text) else set(words)
    expand = request.options is None or request.options.expand
    at = parse(request.as_of) if request.as_of else moment(now).astimezone()
    code = language(request.query)
    span = period(text, at, code) if expand else None
    synonyms = (_SYNONYMS[word] for word in dict.fromkeys(words) if word in _SYNONYMS)
    wider = " ".join([*request.keywords, *synonyms]) if expand else ""
    query = request.query
    if span is not None and span.past:  # a record of that time need not contain the words
        start, end = span.written
        query, wider = f"{query[:start]} {query[end:]}", f"{wider} {query[start:end]}"
    return ParsedQuestion(
        TermQuery(query, wider),
        QueryTerms(words=frozenset(names), period=(span.start, span.end) if span else None),
        _things(words),
        span,
        code,
    )


def things(text: str) -> tuple[str, ...]:
    """Return at most `THINGS` words of a text that may be the end of an edge, in lower case."""
    return _things(_words(text[:PARSED]))


def _words(text: str) -> list[str]:
    return [word.lower().removesuffix("'s") for word in _WORD.findall(text)]


def _things(words: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(word for word in words if word not in STOP))[:THINGS]
