"""The summary of a session: what was asked, done, learnt and left open, in the session's own words (C2).

A session that was taken up again has a part for each sitting; only the last part tells what is open. A check that
failed or is unclear is never told as passed.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from ....protocol.event import Captured, Checked, Committed, Said, ToolCalled
from ....protocol.record import Record
from ....protocol.session import SummaryLine
from ....protocol.tool_calls import edited_path
from ....stages.commitments import subject
from ...projections.records import Records
from .reading import (
    SENTENCE,
    SessionReading,
    cut,
    first_line,
    is_answer,
    is_answered,
    is_request,
    parts_of,
    path_of,
)

ASKED, FILES, FIRST_COMMITS, LAST_COMMITS, LEARNT = 6, 6, 3, 4, 2
"""Most of each in a part."""

STEPS = 4
"""Last Git commands that are told beside commits."""

SUBJECT = 60
"""Most characters of the subject of a commit whose result is not known."""

ASKED_WIDTH = 120
"""Most characters of a request at which a session ends."""

REFUSED = 120
"""Most characters of a call that the user refused."""

CALLS = 3
"""Calls after the last message, without an edit, that are told."""

STEMS = 3
"""Least stems, without stop words, of a request that is told: "yes, do it" tells nothing alone."""

MOST = 25
"""Lines of a part."""

_NO_END = re.compile(r"API Error|No response requested|\[Request interrupted|Request timed out", re.IGNORECASE)
_COMMAND = re.compile(r'"(?:command|cmd)"\s*:\s*"((?:[^"\\]|\\.)+)')
_FENCED = re.compile(r"```.*?(?:```|$)", re.DOTALL)
_NEXT = re.compile(r"(?:let me|i.ll|i will|now i|next,? i|let.s)\b", re.IGNORECASE)
_UNTOLD = (":", "?", "…")
_LEARNT = frozenset({"decision", "convention", "preference", "lesson", "principle", "procedure"})


def lines_of(captures: Sequence[Captured], records: Records, learnt: Iterable[Record]) -> tuple[SummaryLine, ...]:
    """Return the lines of all parts. `learnt`: the records that rest on the session."""
    resting = list(learnt)
    parts = [part for part in (SessionReading(part, records) for part in parts_of(captures)) if part.is_worth_telling]
    lines: list[SummaryLine] = []
    for number, part in enumerate(parts, 1):
        turns = {captured.event.turn for captured in part.captures}
        own = (record for record in resting if record.provenance.spans[0].turn in turns)
        opened = _open(part) if number == len(parts) else ()
        told = [*_asked(part), *_done(part), *_learnt(own), *_ended(part), *_handed_over(part), *opened][:MOST]
        lines += [msgspec.structs.replace(line, part=number) for line in told]
    return tuple(lines)


def _asked(part: SessionReading) -> Iterator[SummaryLine]:
    """Yield the requests that led to most work, in their order."""
    weights = part.weights()
    telling = [
        place
        for place, captured in enumerate(part.requests)
        if len(subject(part.words(captured))) >= STEMS and not is_answer(captured)
    ]
    lines: dict[str, int] = {}  # each once: a request that was typed again
    for place in sorted(telling, key=lambda place: (-weights[place], place)):
        if len(lines) < ASKED:
            lines.setdefault(cut(first_line(part.words(part.requests[place]))), place)
    for words, place in sorted(lines.items(), key=lambda row: row[1]):
        yield SummaryLine(section="asked", text=words, turn=part.requests[place].event.turn)


def _done(part: SessionReading) -> Iterator[SummaryLine]:
    if kept := part.kept_files:
        yield SummaryLine(section="done", text=_files("edited", kept))
    if done := [item.text for item in part.plan if item.status == "done"]:
        yield SummaryLine(
            section="done", text=cut(f"ticked in the plan ({len(done)} of {len(part.plan)}): {' · '.join(done)}")
        )
    commits = part.commits
    if len(commits) > FIRST_COMMITS + LAST_COMMITS:
        left = len(commits) - FIRST_COMMITS - LAST_COMMITS
        yield from map(_committed, commits[:FIRST_COMMITS])
        yield SummaryLine(section="done", text=f"{left:,} commits between")
        commits = commits[-LAST_COMMITS:]
    yield from map(_committed, commits)
    if unseen := part.unseen_commits:
        subjects = [cut(subject, SUBJECT) for subject in unseen if subject]
        more = f"{len(subjects) - LAST_COMMITS:,} and " if len(subjects) > LAST_COMMITS else ""
        told = f": {more}{' · '.join(subjects[-LAST_COMMITS:])}" if subjects else ""
        yield SummaryLine(section="done", text=f"ran git commit without output that tells the result{told}")
    if part.commits and (pending := part.edited_since_commit):
        yield SummaryLine(section="done", text=_files("edited after the last commit:", pending))
    if steps := part.git_steps:
        yield SummaryLine(section="done", text=cut(f"ran {' · '.join(steps[-STEPS:])}"))
    if refused := part.refused_calls:
        count = f"{len(refused):,} calls, the last one" if len(refused) > 1 else "a call"
        text = cut(f"you refused {count}: {refused[-1].name} {_told(refused[-1])}".rstrip(), REFUSED)
        yield SummaryLine(section="done", text=text, turn=refused[-1].turn)
    if part.checks:
        last = part.checks[-1]
        runs = f"{len(part.checks):,} checks, the last" if len(part.checks) > 1 else "one check, it"
        state = "is unclear" if last.state == "unclear" else last.state
        after = "" if last.state == "failed" else _edits_after(part, last)
        yield SummaryLine(section="done", text=f"{runs} {state}: {last.what}{after}", turn=last.turn)


def _told(call: ToolCalled) -> str:
    """Return what a call was about: its file, else its command, "" where it has neither."""
    command = _COMMAND.search(call.arguments)
    return edited_path(call) or (command[1] if command else "")


def _files(what: str, files: Counter[str]) -> str:
    shown = ", ".join(f"{path} ×{count}" if count > 1 else path for path, count in files.most_common(FILES))
    rest = len(files) - FILES
    return cut(f"{what} {shown}{f' and {rest} more' if rest > 0 else ''}")


def _edits_after(part: SessionReading, check: Checked) -> str:
    """Return how many edits a check did not see."""
    place = next(number for number, captured in enumerate(part.captures) if captured.event is check)
    edits = sum(isinstance(c.event, ToolCalled) and bool(path_of(c.event)) for c in part.captures[place:])
    return f", before {edits:,} more edit{'s' if edits > 1 else ''}" if edits else ""


def _committed(commit: Committed) -> SummaryLine:
    return SummaryLine(section="done", text=cut(f"{commit.id} {commit.subject}"), turn=commit.turn)


def _learnt(records: Iterable[Record]) -> Iterator[SummaryLine]:
    """Yield what the session taught: confirmed records of lasting types, the weightiest first."""
    telling = [record for record in records if record.status == "active" and not record.flags]
    telling = [record for record in telling if record.type in _LEARNT and not record.description.endswith(_UNTOLD)]
    telling.sort(key=lambda record: (-record.signal.importance, record.id))
    for record in telling[:LEARNT]:
        yield SummaryLine(section="learnt", text=cut(record.description), turn=record.provenance.spans[0].turn)


def _ended(part: SessionReading) -> Iterator[SummaryLine]:
    """Yield the end of the last message that says something: the last one of an answer, if there is one, since what is
    said between calls tells the next call."""
    places = [place for place, captured in enumerate(part.captures) if _is_message(captured)]
    final = [place for place in places if _is_last_of_answer(part.captures, place)]
    for place in (*reversed(final), *reversed(places)):
        captured = part.captures[place]
        words = _FENCED.sub("", part.words(captured))
        said = [sentence.strip(" #*>-\n") for sentence in SENTENCE.findall(words)]
        telling = [
            sentence
            for sentence in said
            if any(map(str.isalpha, sentence)) and not sentence.endswith(":") and not _NEXT.match(sentence)
        ]
        if telling:
            yield SummaryLine(section="ended", text=cut(" ".join(telling[:2])), turn=captured.event.turn)
            yield from _without_a_word(part, part.captures[place + 1 :])
            return


def _is_message(captured: Captured) -> bool:
    event = captured.event
    return isinstance(event, Said) and event.role == "assistant" and not _NO_END.search(event.text)


def _is_last_of_answer(captures: Sequence[Captured], place: int) -> bool:
    """Whether no call follows a message before the next request."""
    for captured in captures[place + 1 :]:
        if is_request(captured):
            return True
        if isinstance(captured.event, ToolCalled):
            return False
    return True


def _without_a_word(part: SessionReading, captures: Sequence[Captured]) -> Iterator[SummaryLine]:
    """Yield what the agent still did after its last message, and for which request."""
    place = max((place for place, captured in enumerate(captures) if is_request(captured)), default=-1)
    asked, captures = captures[place] if place >= 0 else None, captures[place + 1 :]
    if is_answered(captures):  # in words that tell nothing alone
        return
    calls = [captured.event for captured in captures if isinstance(captured.event, ToolCalled)]
    edits = sum(bool(path_of(call)) for call in calls)
    counts = [(edits, "edit"), (len(calls) - edits, "other call")]
    told = [f"{count:,} {name}{'s' if count > 1 else ''}" for count, name in counts if count]
    if asked and calls:
        words = cut(first_line(part.words(asked)), ASKED_WIDTH)
        text = f"then asked “{words}”: {' and '.join(told)} without a last word"
        yield SummaryLine(section="ended", text=text, turn=asked.event.turn)
    elif edits or len(calls) >= CALLS:
        yield SummaryLine(section="ended", text=f"then {' and '.join(told)} without a word")


def _handed_over(part: SessionReading) -> Iterator[SummaryLine]:
    """Yield what the agent wrote for the next session, except what is open."""
    for line in part.handover:
        if line.section != "open":
            words = f"{line.section}: {line.text}"
            yield SummaryLine(
                section="handover", text=cut(words if line.state == "verified" else f"{words} (the agent says)")
            )


def _open(part: SessionReading) -> Iterator[SummaryLine]:
    if part.broke_off == "user" and part.requests:
        last = part.requests[-1]
        yield SummaryLine(section="open", text=cut(f"stopped by you: {part.words(last)}"), turn=last.event.turn)
    for item in part.open_items():
        words = (
            f"{item.text} failed" if item.kind == "check" else f"{item.note}: {item.text}" if item.note else item.text
        )
        yield SummaryLine(section="open", text=cut(words), turn=item.turn)
