"""The description of a skill's file, which tells an agent when the skill is wanted (K1, K2, K3).

memd writes it in one frame, `Use when asked: "…" or "…". Runs make.` A description of another form is the user's own,
and no function here changes it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

MOST = 400
"""Most characters of a description."""

_LINE = re.compile(r'^description: (".*")$', re.MULTILINE)
_FRAME = re.compile(r'Use when asked: (?P<asks>"[^"]+"(?: or "[^"]+")*)\. (?P<rest>Runs .*)')


def description(asks: Sequence[str], programs: Sequence[str]) -> str:
    """Return a description that quotes requests of the user."""
    return _framed(asks, f"Runs {', '.join(programs)}.")


def quoted_asks(text: str) -> tuple[str, ...]:
    """Return the requests that the description in a file's text quotes, () for a description of the user's own."""
    found = _FRAME.fullmatch(_description(text))
    return tuple(re.findall(r'"([^"]+)"', found["asks"])) if found else ()


def with_asks(text: str, asks: Sequence[str]) -> str:
    """Return a file's text with other requests in its description; the same text if it quotes none."""
    found = _FRAME.fullmatch(_description(text))
    return with_description(text, _framed(asks, found["rest"])) if found else text


def with_description(text: str, words: str) -> str:
    """Return a file's text with another description; the same text without a line for one that memd can read."""
    return _LINE.sub(lambda _: f"description: {as_yaml(words[:MOST])}", text, count=1)


def as_yaml(text: str) -> str:
    """Return a string as YAML, of which JSON is a part."""
    return json.dumps(text, ensure_ascii=False)


def _framed(asks: Sequence[str], rest: str) -> str:
    quoted = " or ".join(f'"{ask}"' for ask in asks)
    return f"Use when asked: {quoted}. {rest}"[:MOST]


def _description(text: str) -> str:
    found = _LINE.search(text)
    try:
        return json.loads(found[1]) if found else ""
    except ValueError:
        return ""
