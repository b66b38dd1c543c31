"""The lasting parts of a compaction summary, verbatim: the decisions, mistakes and constraints of a session.

The work in progress, open files and the user's words are left out: the transcript has those verbatim.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

KIND = "compaction summary"  # the kind of noise of a summary without lasting parts
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
    """Return the lasting parts of a summary, "" if there are none."""
    body = _WRAPPING.sub("", _SCRATCH.sub("", _FRAMES.sub("", text)).strip()).strip()
    return "\n\n".join(_sections(body)).strip()


def _sections(body: str) -> Iterator[str]:
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
