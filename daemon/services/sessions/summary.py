"""The summary of a session: what was asked, done, learnt and left open, in the session's own words (C2).

Nothing is composed by a model: each line quotes a turn, or counts calls. Words that the user hid are covered, as in a
transcript. A check that failed or is unclear is never told as passed.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from ....protocol.event import Captured, Checked, Committed, Noted, Said, ToolCalled, Wrote
from ....protocol.instant import micros
from ....protocol.record import LIVE, Record
from ....protocol.session import SummaryLine
from ...projections.records import Records
from .transcript import shown_words

ASKED, FILES, FIRST_COMMITS, LAST_COMMITS, LEARNT = 6, 6, 3, 4, 3
LEAST_REQUESTS = 2
"""Requests of a session without edits and commits, below which it has no summary."""

WIDTH = 200
"""Most characters of a line."""

EDIT, COMMIT, CALL = 1.0, 3.0, 0.15
"""What a request weighs by what the agent did until the next one; a request of fewer than eight words weighs less."""

_EDITS = frozenset(
    "edit write multiedit notebookedit update create_file apply_patch replace write_file str_replace".split()
)
_PATH = re.compile(r'"(?:file_path|path|notebook_path|filePath)"\s*:\s*"((?:[^"\\]|\\.)+)"')
_COMMAND_PATH = re.compile(r'"command"\s*:\s*"([\w./-]+\.\w+)"')
_DULL = re.compile(r"(?:release|merge|wip|bump|version)\b|v?\d+\.\d+", re.IGNORECASE)
_NO_END = re.compile(r"API Error|No response requested|\[Request interrupted|Request timed out", re.IGNORECASE)
_FENCED = re.compile(r"```.*?(?:```|$)", re.DOTALL)
_SENTENCE = re.compile(r"[^.!?\n]+(?:[.!?](?=\s|$)[\s]*|\n+|$)")
_NEXT = re.compile(r"(?:let me|i.ll|i will|now i|next,? i|let.s)\b", re.IGNORECASE)
_UNTOLD = (":", "?", "…")
_LEARNT = frozenset({"decision", "convention", "preference", "lesson", "principle", "procedure"})


class SessionSummary:
    """Reads one session's captures into lines."""

    def __init__(self, captures: Sequence[Captured], records: Records) -> None:
        """`captures`: the session's, in order."""
        self._captures, self._records = captures, records
        self._requests = [captured for captured in captures if _is_request(captured)]
        self._commits = _unamended(c.event for c in captures if isinstance(c.event, Committed))
        self._checks = [captured.event for captured in captures if isinstance(captured.event, Checked)]
        paths = (path_of(captured.event) for captured in captures if isinstance(captured.event, ToolCalled))
        self._files = Counter(filter(None, paths))

    @property
    def is_worth_telling(self) -> bool:
        """Whether the session has enough for a summary."""
        return len(self._requests) >= LEAST_REQUESTS or bool(self._files) or bool(self._commits)

    def title(self, given: str) -> str:
        """Return the host's title, else the subject of the commit with most files, else the first request."""
        if given:
            return given
        telling = [commit for commit in self._commits if not _DULL.match(commit.subject)]
        if telling:
            return _cut(max(telling, key=lambda commit: commit.files).subject)
        return _cut(_first(self._words(self._requests[0]))) if self._requests else ""

    def lines(self, learnt: Iterable[Record]) -> tuple[SummaryLine, ...]:
        """Return all lines. `learnt`: the records that rest on the session."""
        return (*self._asked(), *self._done(), *_learnt(learnt), *self._ended(), *self._open())

    def _words(self, captured: Captured) -> str:
        return shown_words(captured, self._records)

    def _asked(self) -> Iterator[SummaryLine]:
        """Yield the requests that led to most work, in their order."""
        weights = self._weights()
        most = sorted(range(len(weights)), key=lambda place: (-weights[place], place))[:ASKED]
        for place in sorted(most):
            captured = self._requests[place]
            yield SummaryLine(section="asked", text=_cut(_first(self._words(captured))), turn=captured.event.turn)
        if left := len(self._requests) - len(most):
            yield SummaryLine(section="asked", text=f"and {left:,} smaller")

    def _weights(self) -> list[float]:
        weights: list[float] = []
        for captured in self._captures:
            event = captured.event
            if _is_request(captured):
                weights.append(0.0)
            elif weights:
                weights[-1] += COMMIT * isinstance(event, Committed)
                if isinstance(event, ToolCalled):
                    weights[-1] += EDIT if path_of(event) else CALL
        lengths = (len(self._words(captured).split()) for captured in self._requests)
        return [(0.1 + weight) * min(1.0, words / 8) for weight, words in zip(weights, lengths, strict=True)]

    def _done(self) -> Iterator[SummaryLine]:
        if self._files:
            shown = ", ".join(
                f"{path} ×{count}" if count > 1 else path for path, count in self._files.most_common(FILES)
            )
            rest = len(self._files) - FILES
            yield SummaryLine(section="done", text=_cut(f"edited {shown}{f' and {rest} more' if rest > 0 else ''}"))
        commits = self._commits
        if len(commits) > FIRST_COMMITS + LAST_COMMITS:
            left = len(commits) - FIRST_COMMITS - LAST_COMMITS
            yield from map(_committed, commits[:FIRST_COMMITS])
            yield SummaryLine(section="done", text=f"{left:,} commits between")
            commits = commits[-LAST_COMMITS:]
        yield from map(_committed, commits)
        if self._checks:
            last = self._checks[-1]
            runs = f"{len(self._checks):,} checks, the last" if len(self._checks) > 1 else "one check, it"
            state = "is unclear" if last.state == "unclear" else last.state
            yield SummaryLine(section="done", text=f"{runs} {state}: {last.what}", turn=last.turn)

    def _ended(self) -> Iterator[SummaryLine]:
        """Yield the end of the last message that says something."""
        for captured in reversed(self._captures):
            event = captured.event
            if isinstance(event, Said) and event.role == "assistant" and not _NO_END.search(event.text):
                words = _FENCED.sub("", self._words(captured))
                said = [part.strip(" #*>-\n") for part in _SENTENCE.findall(words) if any(map(str.isalpha, part))]
                telling = [part for part in said if not part.endswith(":") and not _NEXT.match(part)]
                if telling:
                    yield SummaryLine(section="ended", text=_cut(" ".join(telling[:2])), turn=event.turn)
                    return

    def _open(self) -> Iterator[SummaryLine]:
        """Yield what the agent's list leaves open, a last check that failed, and a last request without an answer."""
        for captured in self._captures:
            if isinstance(captured.event, Wrote) and captured.event.form == "open":
                for item in self._words(captured).splitlines():
                    if item.strip(" -*"):
                        yield SummaryLine(section="open", text=_cut(item.strip(" -*")), turn=captured.event.turn)
        failing = [check for check in {check.what: check for check in self._checks}.values() if check.state == "failed"]
        for check in failing:
            yield SummaryLine(section="open", text=f"{check.what} failed", turn=check.turn)
        said = [captured for captured in self._captures if isinstance(captured.event, Said)]
        if said and _is_request(said[-1]):
            text = _cut(f"unanswered: {_first(self._words(said[-1]))}")
            yield SummaryLine(section="open", text=text, turn=said[-1].event.turn)

    @property
    def last_at(self) -> str:
        """The time of the last event, "" without one."""
        return max((captured.event.at for captured in self._captures), key=micros, default="")

    @property
    def counts(self) -> tuple[int, int, int, int]:
        """The requests, edits, edited files and commits."""
        return len(self._requests), self._files.total(), len(self._files), len(self._commits)


def path_of(call: ToolCalled) -> str:
    """Return the file that a call edited, "" for another call; its last two parts, as a reader knows it."""
    if call.name.casefold() not in _EDITS or call.outcome in {"error", "refused"}:
        return ""
    found = _PATH.search(call.arguments) or _COMMAND_PATH.search(call.arguments)
    return "/".join(found[1].replace("\\\\", "/").split("/")[-2:]) if found else ""


def _is_request(captured: Captured) -> bool:
    event = captured.event
    return isinstance(event, Said | Noted) and event.role == "user" and bool(event.text.strip())


def _unamended(commits: Iterable[Committed]) -> list[Committed]:
    """Return the commits, without those that the next one amended: the same subject again."""
    kept: list[Committed] = []
    for commit in commits:
        if kept and kept[-1].subject == commit.subject:
            kept.pop()
        kept.append(commit)
    return kept


def _committed(commit: Committed) -> SummaryLine:
    return SummaryLine(section="done", text=_cut(f"{commit.id} {commit.subject}"), turn=commit.turn)


def _learnt(records: Iterable[Record]) -> Iterator[SummaryLine]:
    telling = [record for record in records if record.status in LIVE and not record.flags]
    telling = [record for record in telling if record.type in _LEARNT and not record.description.endswith(_UNTOLD)]
    telling.sort(key=lambda record: (record.status == "quarantined", -record.signal.importance, record.id))
    for record in telling[:LEARNT]:
        span = record.provenance.spans[0]
        yield SummaryLine(section="learnt", text=_cut(record.description), turn=span.turn)


def _first(words: str) -> str:
    """Return the first line of a request that has words, with the next one where it only announces that."""
    lines = [line for line in (line.strip(" #*>`-") for line in words.splitlines()) if sum(map(str.isalpha, line)) > 2]
    if not lines:
        return " ".join(words.split())
    return " ".join(lines[:2]) if lines[0].endswith(":") else lines[0]


def _cut(words: str) -> str:
    words = " ".join(words.split())
    return words if len(words) <= WIDTH else f"{words[: WIDTH - 1].rstrip()}…"
