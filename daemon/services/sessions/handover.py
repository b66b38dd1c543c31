"""What an agent writes at the end of a session for the next one, checked against the session itself (C1).

Invariants: no model reads it; a line that names a path, a commit or a number that the session does not have is refused;
a line without a name that hardly another session has is the agent's word and no more; no hand-over proves another one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ....protocol.event import HANDOVER, Captured, Checked, Committed, HandedOver, SentPart, text
from ....protocol.session import HandOver, HandoverLine

_CODE = re.compile(r"`([^`\n]{2,200})`")
_PATH = re.compile(
    r"(?<![\w/.])/?(?:[\w.@-]+/)*[\w-][\w.-]*\.[a-z]{1,5}\b(?![\w./])|(?<![\w/.])/?(?:[\w.@-]+/){2,}[\w.-]*\w"
)
_COMMIT = re.compile(r"(?<![\w-])(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{7,40}(?![\w-])")
_IDENTIFIER = re.compile(r"(?<![\w.])(?:\w+_\w+|[a-z]+[A-Z]\w*|[A-Z][a-z]+[A-Z]\w*|[A-Z]{2,}-\d+|\w+\(\))")
_NUMBER = re.compile(r"(?<![\w.,:/-])\d[\d,.]*(?![\w/:-])")

_LINE = re.compile(r"\b[Ll]ines? \d+\b")

_KINDS = {"code": _CODE, "path": _PATH, "commit": _COMMIT, "identifier": _IDENTIFIER, "line": _LINE, "number": _NUMBER}
"""In the order in which the parts of a line are taken."""

_CAPTURED_WHOLE = frozenset({"path", "commit", "number"})
"""Kinds of which a line is refused where the session lacks one; other names may stand in outputs, which memd does not
keep."""

_ALTERNATIVES = re.compile(r"[A-Za-z]+(?:/[A-Za-z]+)+")
"""Words with slashes between them, such as score/pass/fail: no path, unless the session has one that begins so."""

_LIST_NUMBER = re.compile(r"\A\s*\d+[.)]\s")

_DISTINCT = re.compile(r"[/_ .]|[a-z][A-Z]")
LEAST_DISTINCT = 10
"""Least characters of a name that two sessions have by chance seldom."""


class HardToken(NamedTuple):
    """A part of a line that a session has or has not."""

    kind: str
    text: str

    @property
    def is_distinct(self) -> bool:
        """Whether hardly another session has it, too."""
        if self.kind in {"commit", "number", "line"}:
            return self.kind == "commit"
        return len(self.text) >= LEAST_DISTINCT and _DISTINCT.search(self.text) is not None


def hard_tokens(line: str) -> list[HardToken]:
    """Return the code, paths, commits, identifiers, line numbers and other numbers of a line."""
    found: list[HardToken] = []
    line = _LIST_NUMBER.sub("", line)
    for name, kind in _KINDS.items():
        found += [HardToken(name, text) for match in kind.findall(line) if (text := match.rstrip(".,"))]
        line = kind.sub(" ", line)
    return list(dict.fromkeys(found))


class SessionTokens:
    """What a session has said, called, committed and checked."""

    def __init__(self, captures: Sequence[Captured]) -> None:
        self._words = "\n".join(_told(captures)).casefold()

    def _has(self, token: HardToken) -> bool:
        text = token.text.casefold()
        if token.kind != "number":
            return text in self._words
        return re.search(rf"(?<![\w.,]){re.escape(text)}(?!\w|[.,]\d)", self._words) is not None

    def _is_words(self, token: HardToken) -> bool:
        """Whether a path is only words with slashes between them: the session has no path that begins with the first
        one."""
        if token.kind != "path" or not _ALTERNATIVES.fullmatch(token.text):
            return False
        first = re.escape(token.text.casefold().partition("/")[0])
        return re.search(rf"(?<![\w.-]){first}/\w", self._words) is None

    def checked(self, handed: HandedOver | HandOver) -> Iterator[HandoverLine]:
        """Yield the lines of a hand-over with their states."""
        for section in HANDOVER:
            for line in getattr(handed, section):
                yield self._checked(section, line)

    def _checked(self, section: str, line: str) -> HandoverLine:
        tokens = hard_tokens(line)
        missing = [token for token in tokens if not self._has(token)]
        wrong = tuple(token.text for token in missing if token.kind in _CAPTURED_WHOLE and not self._is_words(token))
        if wrong:
            return HandoverLine(section=section, text=line, state="refused", missing=wrong)
        is_verified = not missing and any(token.is_distinct for token in tokens)
        return HandoverLine(section=section, text=line, state="verified" if is_verified else "told")


def checked_handover(captures: Sequence[Captured]) -> tuple[HandedOver | None, list[HandoverLine]]:
    """Return a session's newest hand-over, and its lines without refused ones."""
    handed = next((c.event for c in reversed(captures) if isinstance(c.event, HandedOver)), None)
    lines = SessionTokens(captures).checked(handed) if handed else ()
    return handed, [line for line in lines if line.state != "refused"]


def missing_in(captures: Sequence[Captured], line: str) -> tuple[str, ...]:
    """Return the paths, commits and numbers of a line that a session does not have."""
    handed = HandedOver(turn="", at="", done=(line,))
    return next(SessionTokens(captures).checked(handed)).missing


def _told(captures: Sequence[Captured]) -> Iterator[str]:
    for captured in captures:
        match captured.event:
            case HandedOver() | SentPart():
                continue
            case Committed() as commit:
                yield f"{commit.id} {commit.subject} {commit.files}"
            case Checked() as check:
                yield f"{check.what} {check.passed} {check.failed}"
            case event:
                yield text(event)
