"""Removal of `<private>…</private>` spans, before a spool or the archive stores the text.

Invariants: spans nest; an unclosed span extends to the end of the text; code fences, JSON and HTML around it make no
difference; a second removal changes nothing.
"""

from __future__ import annotations

import re

import msgspec

from .event import AnyEvent, ToolCalled, text, with_text

PLACEHOLDER = "[private]"

_OPENING, _CLOSING = r"(?:<|&lt;|\\u003c)", r"(?:>|&gt;|\\u003e)"
_TAG = re.compile(
    rf"{_OPENING}\s{{0,8}}(?P<end>\\?/)?\s{{0,8}}private"
    rf"(?P<rest>(?:\s(?:(?!{_OPENING}|{_CLOSING}).){{0,200}}|/)?){_CLOSING}",
    re.IGNORECASE | re.DOTALL,
)


def without_private(words: str) -> str:
    """Replace each outermost private span by `[private]`. A closing tag without an opening one stays."""
    if "private" not in words.lower():
        return words
    pieces: list[str] = []
    depth, public_start = 0, 0
    for tag in _TAG.finditer(words):
        opens, empty = not tag["end"], tag["rest"].rstrip().endswith("/")
        if depth == 0 and opens:
            pieces += (words[public_start : tag.start()], PLACEHOLDER)
        if opens and not empty:
            depth += 1
        elif not opens and depth:
            depth -= 1
        elif depth == 0 and not opens:
            continue
        if depth == 0:
            public_start = tag.end()
    return "".join(pieces) + (words[public_start:] if depth == 0 else "")


def event_without_private(event: AnyEvent) -> AnyEvent:
    """Remove private spans from every field that a host fills with text."""
    if isinstance(event, ToolCalled):
        return msgspec.structs.replace(event, arguments=without_private(event.arguments))
    words = text(event)
    clean = without_private(words)
    return event if clean == words else with_text(event, clean)
