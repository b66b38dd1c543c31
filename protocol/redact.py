"""The short list of secret patterns that clients redact before a spool or a shell hook stores text.

Standard library only, because thin clients carry a copy. The daemon scans all text again with the full rules (P-18).
"""

from __future__ import annotations

import re
from functools import lru_cache

_TABLE: tuple[tuple[str, tuple[str, ...], str], ...] = (
    ("private-key", ("-----begin ",), r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)"),
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

RULES = tuple((name, pattern) for name, _, pattern in _TABLE)
CLUES = {name: clues for name, clues, _ in _TABLE}
_RULE_OF_CLUE = [(clue, number) for number, (_, clues, _) in enumerate(_TABLE) for clue in clues]

_SECRET_GROUPS = ("s1", "s2", "s3")


def redact(text: str) -> tuple[str, tuple[str, ...]]:
    """Replace each secret by `[redacted:<rule>]`; also return the rules that matched, in order."""
    matched: list[str] = []

    def replacement(match: re.Match[str]) -> str:
        name = _rule_of(match)
        matched.append(name)
        groups = match.groupdict()
        for group in _SECRET_GROUPS:
            if groups.get(group) is not None:
                start, end = match.span(group)
                whole, offset = match.group(0), match.start()
                return f"{whole[: start - offset]}[redacted:{name}]{whole[end - offset :]}"
        return f"[redacted:{name}]"

    folded = text.casefold()
    rules = tuple(sorted({rule for clue, rule in _RULE_OF_CLUE if clue in folded}))
    return (_pattern(rules).sub(replacement, text) if rules else text), tuple(matched)


@lru_cache(256)
def _pattern(numbers: tuple[int, ...]) -> re.Pattern[str]:
    """Compile the numbered rules as one pattern. All rules cost 80 µs for 90 characters; most texts need none."""
    return re.compile("|".join(f"(?P<r{n}>{RULES[n][1]})" for n in numbers), re.DOTALL)


def _rule_of(match: re.Match[str]) -> str:
    groups = match.groupdict()
    return next(name for n, (name, _) in enumerate(RULES) if groups.get(f"r{n}") is not None)
