"""What the user marked as nobody's business: `<private>…</private>` is never archived, whatever event it stands in.

Comes in: text, or an event. Goes out: the same with `[private]` in the place of each span. The door and every spool do
this, so neither holds private words. Invariants: spans nest; one that is not closed goes on to the end of the text;
where they stand (a code fence, JSON, HTML) makes no difference; what is shut twice is as shut once.
"""

from __future__ import annotations

import re

import msgspec

from .event import AnyEvent, ToolCalled, text, with_text

SHUT = "[private]"
"""What is seen in the place of a span."""

_OPENING, _CLOSING = r"(?:<|&lt;|\\u003c)", r"(?:>|&gt;|\\u003e)"
_MARK = re.compile(
    rf"{_OPENING}\s{{0,8}}(?P<end>\\?/)?\s{{0,8}}private"
    rf"(?P<rest>(?:\s(?:(?!{_OPENING}|{_CLOSING}).){{0,200}}|/)?){_CLOSING}",
    re.IGNORECASE | re.DOTALL,
)


def without_private(words: str) -> str:
    """`words` with `[private]` for each outermost private span. A closing mark without an opening one stays."""
    if "private" not in words.lower():
        return words
    kept: list[str] = []
    depth, upto = 0, 0
    for mark in _MARK.finditer(words):
        opens, empty = not mark["end"], mark["rest"].rstrip().endswith("/")
        if depth == 0 and opens:
            kept += (words[upto : mark.start()], SHUT)
        if opens and not empty:
            depth += 1
        elif not opens and depth:
            depth -= 1
        elif depth == 0 and not opens:
            continue
        if depth == 0:
            upto = mark.end()
    return "".join(kept) + (words[upto:] if depth == 0 else "")


def shut(event: AnyEvent) -> AnyEvent:
    """`event` without private words, in every field that a host fills with text."""
    if isinstance(event, ToolCalled):
        return msgspec.structs.replace(event, arguments=without_private(event.arguments))
    words = text(event)
    clean = without_private(words)
    return event if clean == words else with_text(event, clean)
