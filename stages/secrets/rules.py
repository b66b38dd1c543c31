"""Read the rules of the secret scan, in the order in which they name a span that several rules find."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import msgspec

# Version of the rules; raise it whenever what they find changes, so that `memd scan` knows what it looked at.
VERSION = 5
_FOLDER = Path(__file__).parent
_FILES = ("gitleaks", "noseyparker", "more", "generic")
_BEFORE = r"""(?:[ \t\w.-]{0,20})[\s'"]{0,3}(?:=|>|:{1,3}=|\|\||:|=>|\?=|,)[\x60'"\s=]{0,5}"""
_NAMED = r"""[ \t\w.-]{0,20}[\s'"]{0,3}(?::{0,3}=|:|=>|\?=)[\x60'" \t]{0,5}"""
_PERHAPS = r"""[ \t\w.-]*[\s'"]*(?::{0,3}=|:|=>|\?=)[\x60'" \t]*"""
_TEN = r"[\w./+=-]{10}"
_LETTERS = "^[a-zA-Z_.-]+$"
# Ten characters that are not all letters, or more of which one is none: what is left of `_TEN` where letters alone are
# on the allow-list, and a twentieth of the texts.
_PARTS = (rf"[a-z_.-]{{{n}}}[0-9=+/][\w./+=-]{{{9 - n}}}" for n in range(1, 9))
_MIXED = "|".join((r"[0-9=+/][\w./+=-]{9}", *_PARTS, "[a-z_.-]{9,}[0-9=+/]"))
_AFTER = r"""(?:[\x60'"\s;,)<\]}]|\\[nr"']|$)"""
_EDGE = r"(?:[^\w+/=-]|=(?:[^\w=+/-]|$)|$)"
_LITERAL = re.compile(r"(?:[\w@~ -]|\\[.$-])+")
_RUN = re.compile(r"(?:\(\?i:)?(\[[^\]]+\])\{(\d+)")
# Characters of the run behind a keyword that are looked at with it: few words go on like the key that begins so.
_RUN_SEEN = 16
_OWN, _WIDE = 640, 1_024
BEFORE = 256  # Bytes before a keyword in which what it belongs to may begin


class SecretRule(msgspec.Struct, frozen=True, kw_only=True):
    """One kind of secret: the first group of `pattern` that took part, all of it without one. `keywords`: one of them
    stands in or near whatever matches, in any case where it is written small; with `run` behind it, it is a clue.
    `probe` is the clue instead of them: it matches in any case, and within whatever `pattern` finds and `allow` leaves;
    a keyword with a capital is its beginning. What is looked at begins `before` bytes before a clue and ends `reach`
    bytes behind it, unless the secret goes on."""

    name: str
    pattern: str
    keywords: tuple[str, ...]
    probe: str = ""
    run: str = ""
    reach: int
    before: int = BEFORE
    group: int = 0
    entropy: float = 0.0
    allow: tuple[str, ...] = ()
    allow_match: tuple[str, ...] = ()
    stop: tuple[str, ...] = ()


def read() -> tuple[SecretRule, ...]:
    """Every rule. Raises ValueError for one that has no keyword to be looked for by."""
    import tomllib  # here, for the daemon's start

    files = (tomllib.loads((_FOLDER / f"{file}.toml").read_text(encoding="utf-8")) for file in _FILES)
    forms = ((form, rows) for tables in files for form, rows in tables.items())
    return tuple(_rule(name, form, row) for form, rows in forms for name, row in rows.items())


def _rule(name: str, form: str, row: dict[str, Any]) -> SecretRule:
    regex: str = row["regex"]
    pattern = {
        "unique": rf"(?:\b|_)({regex}){_EDGE}",
        "assigned": f"(?i){row.get('near')}{_BEFORE}({regex}){_AFTER}",
        "named": f"(?i){row.get('near')}{_NAMED}({regex}){_AFTER}",
        "exact": regex,
    }[form]
    keywords = () if form == "named" else tuple(_keywords(name, form, row))
    return SecretRule(
        name=name,
        pattern=pattern,
        keywords=keywords,
        probe=_probe(row) if form == "named" else row.get("probe", ""),
        run=_run(row["regex"], keywords) if form == "unique" else "",
        reach=_OWN if form == "unique" else _WIDE,
        before=row.get("before", BEFORE),
        group=row.get("group", 0),
        entropy=row.get("entropy", 0.0),
        allow=tuple(row.get("allow", ())),
        allow_match=tuple(row.get("allow_match", ())),
        stop=(
            *row.get("stop", "").split(),
            *(word + joint for word in row.get("stop_short", "").split() for joint in "-._"),
        ),
    )


def _probe(row: dict[str, Any]) -> str:
    """What stands wherever such a name is given such a value, in any case."""
    value = _MIXED if _LETTERS in row.get("allow", ()) else _TEN
    return row["near"].replace("(?-i:", "(?:") + f"{_PERHAPS}(?:{value})"


def _keywords(name: str, form: str, row: dict[str, Any]) -> list[str]:
    if "keywords" in row:
        return row["keywords"]
    beginning = _LITERAL.match(row["near"] if form == "assigned" else row["regex"])
    word = beginning.group().replace("\\", "") if beginning else ""
    if len(word) < 3:
        raise ValueError(f"the rule {name} needs keywords")
    return [word.lower() if form == "assigned" else word]


def _run(regex: str, keywords: tuple[str, ...]) -> str:
    """What stands behind the one keyword that an expression begins with, if that is so many characters of a class."""
    regex = regex.removeprefix("(?i:")
    beginning = _LITERAL.match(regex)
    run = _RUN.match(regex, beginning.end()) if beginning else None
    if not beginning or not run or (beginning[0].replace("\\", ""),) != keywords or _has_branches(regex):
        return ""
    return f"{run[1]}{{{min(int(run[2]), _RUN_SEEN)}}}"


def _has_branches(regex: str) -> bool:
    """Whether an expression is one of several, outside of any group."""
    while (less := re.sub(r"\\.|\[[^\]]*\]|\([^()]*\)", "", regex)) != regex:
        regex = less
    return "|" in regex
