"""The short list: secrets that must not even reach a spool or a shell's history hook.

Comes in: text. Goes out: the text with typed placeholders, and the names of what was taken out. Pure standard library,
so that thin clients can carry a copy. The door scans everything again; this list is only the first net (P-18).
"""

from __future__ import annotations

import re

_RULES: tuple[tuple[str, str], ...] = (
    ("private-key", r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)"),
    ("aws-access-key", r"\b(?:AKIA|ASIA|ABIA|ACCA)[A-Z2-7]{16}\b"),
    ("github-token", r"\b(?:gh[pousr]_[A-Za-z0-9]{36,255}|github_pat_[A-Za-z0-9_]{22,255})"),
    ("gitlab-token", r"\bglpat-[A-Za-z0-9_-]{20,}"),
    ("slack-token", r"\bxox[abeoprs]-[A-Za-z0-9-]{10,}"),
    ("stripe-key", r"\b(?:sk|rk)_(?:live|test)_[A-Za-z0-9]{16,}"),
    ("model-api-key", r"\bsk-(?:ant-|proj-|or-)?[A-Za-z0-9_-]{20,}"),
    ("google-api-key", r"\bAIza[A-Za-z0-9_-]{35}"),
    ("npm-token", r"\bnpm_[A-Za-z0-9]{36}"),
    ("pypi-token", r"\bpypi-[A-Za-z0-9_-]{50,}"),
    ("jwt", r"\beyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}"),
    ("bearer-token", r"(?i:\bbearer\s+)(?P<s1>[A-Za-z0-9._~+/-]{20,}=*)"),
    ("url-password", r"\b[a-z][a-z0-9+.-]{1,20}://[^\s:/@]{1,100}:(?P<s2>[^\s:/@]{3,200})@"),
    (
        "assigned-secret",
        r"(?i:\b[a-z0-9_.-]{0,40}(?:password|passwd|secret|token|api[_-]?key)[\"']?\s{0,3}[:=]\s{0,3})"
        r"[\"'](?P<s3>[^\"'\s]{8,200})[\"']",
    ),
)
_PATTERN = re.compile("|".join(f"(?P<r{n}>{rule})" for n, (_, rule) in enumerate(_RULES)), re.DOTALL)
_SECRET_GROUPS = ("s1", "s2", "s3")


def redact(text: str) -> tuple[str, tuple[str, ...]]:
    """`text` with each secret replaced by `[redacted:<rule>]`, and the rules that hit, in order."""
    found: list[str] = []

    def replacement(match: re.Match[str]) -> str:
        name = _rule_of(match)
        found.append(name)
        for group in _SECRET_GROUPS:
            if match.group(group) is not None:
                start, end = match.span(group)
                whole, offset = match.group(0), match.start()
                return f"{whole[: start - offset]}[redacted:{name}]{whole[end - offset :]}"
        return f"[redacted:{name}]"

    return _PATTERN.sub(replacement, text), tuple(found)


def _rule_of(match: re.Match[str]) -> str:
    return next(name for n, (name, _) in enumerate(_RULES) if match.group(f"r{n}") is not None)
