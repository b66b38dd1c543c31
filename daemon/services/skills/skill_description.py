"""The description of a skill's file, which tells an agent when the skill is wanted (K1, K2, K3).

memd writes it in one frame, `Use when asked: "…" or "…". Runs make.` A description of another form is the user's own,
and memd changes it only to one that the user gave.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

MOST = 400
"""Most characters of a description."""

_HEAD = re.compile(r"\A\ufeff?---[ \t]*\r?\n(?:(?!---)[^\n]*\n)*?description:(?P<rest>[^\r\n]*)")
_FRAME = re.compile(r'Use when asked: (?P<asks>"[^"]+"(?: or "[^"]+")*)\. (?P<rest>Runs .*)')


def description(asks: Sequence[str], programs: Sequence[str]) -> str:
    """Return a description that quotes requests of the user."""
    return _framed(asks, f"Runs {', '.join(programs)}.")


def described_as(text: str) -> str | None:
    """Return the description in a file's front matter, None if that has none on one line."""
    found = _HEAD.match(text)
    words = found["rest"].strip() if found else ""
    if not words or words[0] in "|>&*":
        return None
    if words[0] == "'" == words[-1] and len(words) > 1:
        return words[1:-1].replace("''", "'")
    try:
        told = json.loads(words) if words[0] == '"' else words
    except ValueError:
        return None
    return told if isinstance(told, str) else None


def quoted_asks(text: str) -> tuple[str, ...]:
    """Return the requests that the description in a file's text quotes, () for a description of the user's own."""
    found = _FRAME.fullmatch(described_as(text) or "")
    return tuple(re.findall(r'"([^"]+)"', found["asks"])) if found else ()


def with_asks(text: str, asks: Sequence[str]) -> str:
    """Return a file's text with other requests in its description; the same text if it quotes none."""
    found = _FRAME.fullmatch(described_as(text) or "")
    return (with_description(text, _framed(asks, found["rest"])) or text) if found else text


def with_description(text: str, words: str) -> str | None:
    """Return a file's text with another description, None if its front matter has none on one line."""
    found = _HEAD.match(text)
    if found is None or described_as(text) is None:
        return None
    return f"{text[: found.start('rest')]} {as_yaml(words[:MOST])}{text[found.end('rest') :]}"


def as_yaml(text: str) -> str:
    """Return a string as YAML, of which JSON is a part."""
    return json.dumps(text, ensure_ascii=False)


def _framed(asks: Sequence[str], rest: str) -> str:
    quoted = " or ".join(f'"{ask}"' for ask in asks)
    return f"Use when asked: {quoted}. {rest}"[:MOST]
