"""What clients redact before they store text in a spool: a short list of patterns, and announced secrets.

Standard library only, so that it loads fast. The daemon scans all text again with the full rules (P-18).
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator
from functools import lru_cache

from .announced_forms import CLUES as ANNOUNCING
from .token_prefixes import TOKEN_PREFIXES

_TABLE: tuple[tuple[str, tuple[str, ...], str], ...] = (
    (
        "private-key",
        ("-----begin ",),
        r"-----BEGIN [A-Z ]*PRIVATE KEY(?: BLOCK)?-----.*?(?:-----END [A-Z ]*PRIVATE KEY(?: BLOCK)?-----|\Z)",
    ),
    ("aws-access-key", ("akia", "asia", "abia", "acca"), r"\b(?:AKIA|ASIA|ABIA|ACCA)[A-Z2-7]{16}\b"),
    (
        "github-token",
        ("ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_"),
        r"\b(?:gh[pousr]_[A-Za-z0-9]{36,255}|github_pat_[A-Za-z0-9_]{22,255})",
    ),
    ("gitlab-token", ("glpat-",), r"\bglpat-[A-Za-z0-9_-]{20,}"),
    ("slack-token", ("xox",), r"\bxox[abeoprs]-[A-Za-z0-9-]{10,}"),
    ("stripe-key", ("sk_", "rk_"), r"\b(?:sk|rk)_(?:live|test)_[A-Za-z0-9]{16,}"),
    ("model-api-key", ("sk-",), r"\bsk-(?:ant-|proj-|or-)?[A-Za-z0-9_-]{20,}"),
    ("google-api-key", ("aiza",), r"\bAIza[A-Za-z0-9_-]{35}"),
    ("npm-token", ("npm_",), r"\bnpm_[A-Za-z0-9]{36}"),
    ("pypi-token", ("pypi-",), r"\bpypi-[A-Za-z0-9_-]{50,}"),
    ("jwt", ("eyj",), r"\beyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}"),
    ("bearer-token", ("bearer",), r"(?i:\bbearer\s+)(?P<s1>[A-Za-z0-9._~+/-]{20,}=*)"),
    ("url-password", ("://",), r"\b[a-z][a-z0-9+.-]{1,20}://[^\s:/@]{1,100}:(?P<s2>[^\s:/@]{3,200})@"),
    (
        "assigned-secret",
        ("password", "passwd", "secret", "token", "key"),
        r"(?i:\b[a-z0-9_.-]{0,40}(?:password|passwd|secret|token|api[_-]?key)[\"']?\s{0,3}[:=]\s{0,3})"
        r"[\"'](?P<s3>[^\"'\s]{8,200})[\"']",
    ),
)
"""Name, clues and pattern of each rule. Each match contains a clue in folded case, so a text without one is skipped."""

_TOKEN = "access-token"
_IN_TOKEN = "[A-Za-z0-9_.~+/=-]"
_SIZES = {prefix: size for size, prefixes in TOKEN_PREFIXES.items() for prefix in prefixes.split()}
_BY_START: dict[str, list[tuple[str, int]]] = {}
for _prefix, _size in _SIZES.items():
    _BY_START.setdefault(_prefix[:3].lower(), []).append((_prefix.lower(), _size))
_RUN = re.compile(f"{_IN_TOKEN}{{{min(TOKEN_PREFIXES)},}}")
_WORD_IN_RUN = re.compile(r"(?<![A-Za-z0-9])[A-Za-z0-9]")
_TELLING = re.compile(f"(?={_IN_TOKEN}*?[0-9]){_IN_TOKEN}*?[A-Za-z0-9]{{10}}")
"""What random characters have, and few words."""

CLUES = tuple(
    dict.fromkeys(
        (*(clue for _, clues, _ in _TABLE for clue in clues), *(prefix.lower() for prefix in _SIZES), *ANNOUNCING)
    )
)
"""A text with a secret contains one of these in folded case, or `COLONS` colons, as a line of a `.pgpass` file has."""

COLONS = 4

RULES = (
    *((name, pattern) for name, _, pattern in _TABLE),
    (
        _TOKEN,
        f"(?<![A-Za-z0-9])(?={_TELLING.pattern})(?ai:"
        + "|".join(f"{re.escape(prefix)}{_IN_TOKEN}{{{size - len(prefix)},}}" for prefix, size in _SIZES.items())
        + r")(?<!\.)",
    ),
)
_RULE_OF_CLUE = [(clue, number) for number, (_, clues, _) in enumerate(_TABLE) for clue in clues]

_PATTERN_NAMES = frozenset(name for name, _ in RULES)
_PLACEHOLDER = re.compile(r"\[redacted:[\w-]{1,60}\]")
_SECRET_GROUPS = ("s1", "s2", "s3")


def redact(text: str) -> tuple[str, tuple[str, ...]]:
    """Replace each secret by `[redacted:<rule>]`; also return the rules that matched, in order."""
    parts: list[str] = []
    at = 0
    spans = _spans(text)
    for start, end, rule in spans:
        parts += text[at:start], f"[redacted:{rule}]"
        at = end
    return "".join((*parts, text[at:])), tuple(rule for _, _, rule in spans)


def _spans(text: str) -> list[tuple[int, int, str]]:
    """Start, end and rule of each secret, in order; those that overlap as one, under the pattern's name."""
    folded = text.casefold()
    spans = list(_in_short_list(text, folded))
    if text.count(":") >= COLONS or any(clue in folded for clue in ANNOUNCING):
        from .announced_secrets import announced  # late: its expressions take 20 ms to compile

        spans += announced(text)
    return _merged(spans, [match.span() for match in _PLACEHOLDER.finditer(text)] if "[redacted:" in text else [])


def _merged(spans: list[tuple[int, int, str]], taken: list[tuple[int, int]]) -> list[tuple[int, int, str]]:
    merged: list[tuple[int, int, str]] = []
    for start, end, rule in sorted(spans, key=lambda span: (span[0], -span[1])):
        before = bisect_left(taken, (end, 0))
        if before and taken[before - 1][1] > start:
            continue
        if merged and start < (last := merged[-1])[1]:
            merged[-1] = (last[0], max(last[1], end), last[2] if last[2] in _PATTERN_NAMES else rule)
        else:
            merged.append((start, end, rule))
    return merged


def _in_short_list(text: str, folded: str) -> Iterator[tuple[int, int, str]]:
    rules = tuple(sorted({rule for clue, rule in _RULE_OF_CLUE if clue in folded}))
    for match in _pattern(rules).finditer(text) if rules else ():
        groups = match.groupdict()
        group = next((name for name in _SECRET_GROUPS if groups.get(name) is not None), None)
        yield (*(match.span(group) if group else match.span()), _rule_of(match))
    yield from _tokens(text)


def _tokens(text: str) -> Iterator[tuple[int, int, str]]:
    """The last of `RULES`, without one expression for all: it takes 16 ms to compile."""
    for run in _RUN.finditer(text):
        for word in _WORD_IN_RUN.finditer(text, *run.span()):
            start = word.start()
            sizes = _BY_START.get(text[start : start + 3].lower(), ())
            token = text[start : run.end()].rstrip(".") if sizes else ""
            if any(len(token) >= size and token.lower().startswith(prefix) for prefix, size in sizes):
                if _TELLING.match(token):
                    yield start, start + len(token), _TOKEN
                break


@lru_cache(256)
def _pattern(numbers: tuple[int, ...]) -> re.Pattern[str]:
    """Compile the numbered rules as one pattern. All rules cost 80 µs for 90 characters; most texts need none."""
    return re.compile("|".join(f"(?P<r{n}>{RULES[n][1]})" for n in numbers), re.DOTALL)


def _rule_of(match: re.Match[str]) -> str:
    groups = match.groupdict()
    return next(name for n, (name, _) in enumerate(RULES) if groups.get(f"r{n}") is not None)
