"""Derive from the rules how public tokens begin, and write it as data of the protocol for the clients' short list:
`python -m memd.stages.secrets.token_prefixes`."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path
from typing import Any

from ...protocol.announced_values import is_listed
from .rules import read

FILE = Path(__file__).parents[2] / "protocol" / "token_prefixes.py"
LEAST_TOKEN, LEAST_LONG = 20, 30
"""Characters of a token that is listed, and of one whose beginning has `LEAST_PREFIX` of them."""
LEAST_PREFIX, LEAST_WITHOUT_SIGN, LONGEST_PREFIX = 3, 6, 16
"""Characters of a beginning; base64 contains any short one without a sign."""
MOST_PREFIXES = 64
"""Beginnings of one rule: more would be no beginning but a class of characters."""
_UNIQUE_START, _UNIQUE_END = r"(?:\b|_)(", r")(?:[^\w+/=-]"
_BEGINNING = re.compile(r"[A-Za-z0-9_.-]+")

_parser: Any = import_module("re._parser")  # the only reader of expressions; private, and only used before a release
_constants: Any = import_module("re._constants")


def prefixes() -> dict[str, int]:
    """The fewest characters of a token for each beginning that tells one."""
    shortest: dict[str, int] = {}
    for rule in read():
        if not rule.pattern.startswith(_UNIQUE_START):
            continue
        expression = _parser.parse(rule.pattern[len(_UNIQUE_START) : rule.pattern.rindex(_UNIQUE_END)])
        least = expression.getwidth()[0]
        for prefix, _ in _beginnings(expression):
            if _is_telling(prefix, least):
                prefix = prefix[:LONGEST_PREFIX]
                shortest[prefix] = min(least, shortest.get(prefix, least))
    return {prefix: shortest[prefix] for prefix in sorted(shortest) if not _is_covered(prefix, shortest)}


def _is_telling(prefix: str, least: int) -> bool:
    if len(prefix) < LEAST_PREFIX or least < LEAST_TOKEN or not _BEGINNING.fullmatch(prefix):
        return False
    if is_listed(prefix) or (prefix.isalnum() and len(prefix) < LEAST_WITHOUT_SIGN):
        return False
    return least >= LEAST_LONG or len(prefix) > LEAST_PREFIX


def _is_covered(prefix: str, shortest: dict[str, int]) -> bool:
    return any(
        prefix[:size] in shortest and shortest[prefix[:size]] <= shortest[prefix] for size in range(1, len(prefix))
    )


def _beginnings(items: Any) -> list[tuple[str, bool]]:
    """The texts that a match of an expression can begin with, up to the first class of characters, and whether each is
    all of it."""
    texts = [("", True)]
    for kind, value in items:
        if not any(is_whole for _, is_whole in texts):
            break
        following = _following(kind, value)
        texts = [
            (text + more, is_whole_too) if is_whole else (text, False)
            for text, is_whole in texts
            for more, is_whole_too in (following if is_whole else following[:1])
        ]
        if len(texts) > MOST_PREFIXES:
            return [("", False)]
    return texts


def _following(kind: Any, value: Any) -> list[tuple[str, bool]]:
    if kind is _constants.LITERAL:
        return [(chr(value), True)]
    if kind is _constants.SUBPATTERN:
        return _beginnings(value[3])
    if kind is _constants.BRANCH:
        return [beginning for branch in value[1] for beginning in _beginnings(branch)]
    if kind is _constants.IN and all(item is _constants.LITERAL for item, _ in value):
        return [(chr(code), True) for _, code in value]
    if kind is _constants.MAX_REPEAT and value[0] == 0 and value[1] == 1:
        return [("", True), *_beginnings(value[2])]
    return [("", False)]


def source() -> str:
    """The module of the protocol with the beginnings."""
    by_size: dict[int, list[str]] = {}
    for prefix, size in prefixes().items():
        by_size.setdefault(size, []).append(prefix)
    lines = [f'    {size}: "{" ".join(by_size[size])}",' for size in sorted(by_size)]
    return "\n".join(
        (
            '"""How public tokens begin; made by `python -m memd.stages.secrets.token_prefixes`."""',
            "",
            "TOKEN_PREFIXES: dict[int, str] = {",
            *lines,
            "}",
            '"""The beginnings of tokens that have at least so many characters."""',
            "",
        )
    )


if __name__ == "__main__":
    FILE.write_text(source(), encoding="utf-8")
