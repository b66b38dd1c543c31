"""How a user's turn reacts to the work before it."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

WORDS = 3
"""Most words of a turn that only says to go on."""

FIRST = 300
"""Characters of a turn in which a complaint stands: what comes later may be a pasted text."""

_TABLE = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
_REACTIONS = {
    name: re.compile(rf"\W*(?:{'|'.join(patterns.values())})", re.IGNORECASE) for name, patterns in _TABLE.items()
}


def goes_on(text: str) -> bool:
    """Whether a turn only says to go on."""
    return len(text.split()) <= WORDS and _REACTIONS["go_on"].match(text) is not None


def takes_back(text: str) -> bool:
    """Whether a turn takes the work back."""
    return _REACTIONS["takes_back"].match(text) is not None


def praises(text: str) -> bool:
    """Whether a turn praises the work."""
    return _REACTIONS["praise"].match(text) is not None


def complains(text: str) -> bool:
    """Whether a turn says that the work is not what was meant."""
    return takes_back(text) or _REACTIONS["complains"].search(text[:FIRST]) is not None
