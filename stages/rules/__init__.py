"""Read and compile the rules: the TOML files of this folder are the only place where a cue or pattern is written down.
A broken file fails at import, not at use. The JSON files beside them are fitted models (`../linear_model.py`)."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

# Version of the rules and of the stages that apply them, stored on every record that they made. Raise it with any
# change of the stages that makes other records of the same words; the files beside this one have a digest.
VERSION = 18
_FOLDER = Path(__file__).parent


@cache
def table(name: str) -> dict[str, Any]:
    """The contents of `<name>.toml`."""
    return tomllib.loads((_FOLDER / f"{name}.toml").read_text(encoding="utf-8"))


@cache
def rows(name: str) -> tuple[tuple[str, ...], ...]:
    """The columns of each line of `<name>.tsv`."""
    lines = (_FOLDER / f"{name}.tsv").read_text(encoding="utf-8").splitlines()
    return tuple(tuple(line.split("\t")) for line in lines)


@cache
def digest() -> str:
    """The first 8 hex digits of the hash of all files of rules: it changes when any of them does (R4)."""
    files = sorted(path for path in _FOLDER.iterdir() if path.suffix in {".json", ".toml"})
    return sha256(b"".join(path.name.encode() + b"\0" + path.read_bytes() + b"\0" for path in files)).hexdigest()[:8]


def words(name: str, section: str) -> frozenset[str]:
    """A list of words: `section` of `<name>.toml`, split at white space."""
    text: str = table(name)[section]
    return frozenset(text.split())


def any_of(patterns: Iterable[str]) -> re.Pattern[str]:
    """One case-blind pattern that matches where any of `patterns` does."""
    return re.compile("|".join(f"(?:{pattern})" for pattern in patterns), re.IGNORECASE)
