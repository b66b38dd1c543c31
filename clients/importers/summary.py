"""What a compaction summary holds beyond the state of the day: the decisions, mistakes and constraints of a session.

Comes in: the text that a host's model wrote to go on with. Goes out: the same without the host's frame around it, its
scratch work, and the sections that tell what was being done just then, which files lay open or what the user had said:
the transcript has that in their own words. Invariant: nothing is reworded; what stays is as it was written.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

KIND = "compaction summary"
"""The kind of noise of a summary that holds nothing else."""

_FRAMES = re.compile(
    r"\AThis session is being continued from a previous conversation[^\n]*\n*"
    r"|\AAnother language model started to solve this problem[^\n]*\n*"
    r"|\nIf you need specific details from before compaction[^\n]*"
    r"|\nPlease continue the conversation from where we left[^\n]*"
)
_SCRATCH = re.compile(r"\A\s*(?:<analysis>.*?</analysis>|Analysis:\n.*?(?=\n(?:<summary>|Summary:)))", re.DOTALL)
_WRAPPING = re.compile(r"\A\s*(?:<summary>|Summary:)|</summary>\s*\Z")
_TITLE = re.compile(r"^(?:#{1,6}[ \t]+(?:\d+\.[ \t]*)?|\d{1,2}\.[ \t]+)(?P<title>[^\n]{2,80}?):?[ \t]*$", re.MULTILINE)
_CURRENT = re.compile(r"^[ \t]*[-*][ \t]+\**CURRENT\b[^\n]*\n?", re.MULTILINE)
_PASSING = re.compile(
    r"next steps?|pending|current|remaining|to-?do|in progress|progress|completed|done|status|files?\b|file reorg|"
    r"user messages|primary request|request and intent|\bgoals?\b|branch|blocked|work packages",
    re.IGNORECASE,
)


def lessons(text: str) -> str:
    """What is worth keeping of a summary; "" if nothing is."""
    body = _WRAPPING.sub("", _SCRATCH.sub("", _FRAMES.sub("", text)).strip()).strip()
    return "\n\n".join(_kept(body)).strip()


def _kept(body: str) -> Iterator[str]:
    """The sections that stay, in order; what stands before the first one stays too."""
    titles = list(_TITLE.finditer(body))
    if not titles:
        yield body
        return
    yield body[: titles[0].start()].strip()
    for title, following in zip(titles, [*titles[1:], None], strict=True):
        end = following.start() if following else len(body)
        section = _CURRENT.sub("", body[title.start() : end]).strip()
        if not _PASSING.search(title["title"]) and section.count("\n"):
            yield section
