"""Weeks of work with planted procedures and look-alikes: which of them memd drafts as skills (K1), and which edits of
such a skill it accepts (K3)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from time import perf_counter
from typing import NamedTuple

import msgspec

from ...protocol.event import (
    ARGUMENT_LIMIT,
    AnyEvent,
    Checked,
    Committed,
    Interrupted,
    Origin,
    Said,
    SessionEnded,
    ToolCalled,
)
from ...protocol.skills import SkillDraft
from .measurement import BenchOptions, DataMissing, Figure, PartResult, at_least, at_most, share
from .session_data import new_repository
from .temporary_daemon import empty_home, measure, running

FOLDER = "owners"
HALF = 0.5
"""Share of a draft's rounds that lie in sessions of a planted procedure, from which the draft is that procedure."""


class WorkEvent(msgspec.Struct):
    """One event: exactly one of the first fields; the others tell how a run ended."""

    user: str = ""
    agent: str = ""
    run: str = ""
    edit: str = ""
    read: str = ""
    printed: str = ""
    interrupted: bool = False
    ok: bool = True
    refused: bool = False
    check: str = ""
    commit: str = ""


class WorkSession(msgspec.Struct):
    """A session; `copy_of`: it begins with all events of that one."""

    id: str
    day: str
    time: str
    repository: str
    events: list[WorkEvent]
    copy_of: str = ""


class PlantedProcedure(msgspec.Struct):
    """A procedure, and its rounds: the session, and the event with which it begins."""

    name: str
    repository: str
    units: list[tuple[str, int]]


class OwnerHistory(msgspec.Struct):
    """Weeks of one developer. `repositories`: the files of each."""

    who: str
    repositories: dict[str, dict[str, str]]
    sessions: list[WorkSession]
    planted: list[PlantedProcedure] = []


class StartTrials(msgspec.Struct):
    """Trials of edits from one start. `worse`: accepted ones that fit the rounds outside the train set worse;
    `worse_unseen`: accepted ones that fit those worse which the gate did not see either; `plain…`: the same if a
    strictly better mean were enough."""

    trials: int
    accepted: int
    worse: int
    worse_unseen: int
    plain: int
    plain_worse: int
    plain_worse_unseen: int


class EditTrials(msgspec.Struct):
    """The reply of `try-skill-edits`."""

    procedures: int
    starts: dict[str, StartTrials]


STARTS = {"good": "a good skill", "missing": "a step is missing", "junk": "a foreign step inside"}
"""The starts of the trials in words."""


def procedures(options: BenchOptions) -> PartResult:
    """Planted procedures that memd drafts, and drafts that are planted procedures."""
    files = _files(options)
    planted = found = drafts = right = sessions = units = 0
    seconds = 0.0
    details: list[str] = []
    for file in files[:3] if options.quick else files:
        options.progress(file.stem)
        owner = msgspec.json.decode(file.read_bytes(), type=OwnerHistory)
        drafted, read, took = _drafts(owner)
        units, seconds = units + read, seconds + took
        names = [_planted(draft, owner.planted) for draft in drafted]
        planted, drafts, sessions = planted + len(owner.planted), drafts + len(drafted), sessions + len(owner.sessions)
        found += len({name for name in names if name})
        right += sum(bool(name) for name in names)
        missed = {each.name for each in owner.planted} - set(names)
        details += (f"{file.stem} missed: {name}" for name in sorted(missed))
        details += (
            f"{file.stem} also: {' > '.join(step.text for step in draft.steps)}"
            for draft, name in zip(drafted, names, strict=True)
            if not name
        )
    return PartResult(
        (
            Figure("planted procedures drafted", found / max(1, planted), target=at_least(0.8), samples=planted),
            Figure("drafts that are planted", right / max(1, drafts), target=at_least(0.9), samples=drafts),
            Figure("drafts in 100 sessions", 100 * drafts / max(1, sessions), samples=sessions),
            Figure("1,000 pieces of work", 1000 * seconds / max(1, units), "s", target=at_most(5.0), samples=units),
        ),
        shows_not="whether an agent does better with a draft",
        notes=tuple(details),
    )


def edits(options: BenchOptions) -> PartResult:
    """Edits of skills that are accepted by held-out rounds, and how many of all trials end in a worse skill."""
    folder = _files(options)[0].parent.resolve()
    with empty_home() as (_, environment):
        reply = measure(environment, "try-skill-edits", str(folder))
    tried = msgspec.json.decode(reply, type=EditTrials)
    starts = tried.starts.values()
    total = sum(start.trials for start in starts)

    def of_all(name: str, count: int, bound: float | None = None) -> Figure:
        return share(name, count, total, at_most(bound) if bound is not None else None)

    return PartResult(
        (
            *(share(f"accepted, {STARTS[name]}", each.accepted, each.trials) for name, each in tried.starts.items()),
            of_all("all trials that end worse outside the train set", sum(each.worse for each in starts), 0.05),
            of_all("  by a better mean alone", sum(each.plain_worse for each in starts)),
            of_all("all trials that end worse in unseen rounds", sum(each.worse_unseen for each in starts), 0.05),
            of_all("  by a better mean alone", sum(each.plain_worse_unseen for each in starts)),
        ),
        shows_not="whether an agent does better with an accepted edit; other edits than those of the search",
        notes=(f"{tried.procedures} procedures have enough rounds that ended well",),
    )


def _files(options: BenchOptions) -> list[Path]:
    """Return the files of the owners. Raises DataMissing."""
    if files := sorted(options.find(FOLDER).glob("[0-9]*.json")):
        return files
    raise DataMissing(f"there is no owner in {options.find(FOLDER)}")


def _planted(draft: SkillDraft, planted: Sequence[PlantedProcedure]) -> str:
    """Return the name of the planted procedure that a draft is, "" for none."""
    where = {each.document.partition(":")[2] for each in draft.rounds}
    shares = {each.name: len(where & {session for session, _ in each.units}) / len(where) for each in planted}
    best = max(shares, key=lambda name: shares[name], default="")
    return best if best and shares[best] >= HALF else ""


class FoundDrafts(NamedTuple):
    """What memd drafts. `units`: pieces of work that it read, in so many seconds."""

    drafts: tuple[SkillDraft, ...]
    units: int
    seconds: float


def _drafts(owner: OwnerHistory) -> FoundDrafts:
    """Capture the sessions of an owner in a home of its own, and return what memd drafts."""
    with empty_home({"MEMD_IDLE_S": "1000000"}) as (home, environment):
        folders = {name: repository_with(home.data.parent / name, files) for name, files in owner.repositories.items()}
        with running(home, environment) as client:
            for session, events in captured(owner.sessions):
                origin = Origin(host="claude-code", session=session.id, cwd=folders[session.repository], live=False)
                client.capture(origin, events)
            began = perf_counter()
            found = client.skills(everywhere=True)
            return FoundDrafts(found.skills, found.units, perf_counter() - began)


def repository_with(folder: Path, files: Mapping[str, str]) -> str:
    """Make a git repository with files, and return its path; a path that leads out of it is left out."""
    path = new_repository(folder)
    for name, text in files.items():
        file = folder / name
        if file.resolve().is_relative_to(folder.resolve()):
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
    return path


def captured(sessions: Sequence[WorkSession]) -> Iterator[tuple[WorkSession, list[AnyEvent]]]:
    """Yield sessions in order with their events; what a copy begins with has the turns of the copied session."""
    turns: dict[str, list[str]] = {}
    by_id = {session.id: session for session in sessions}
    for session in sorted(sessions, key=lambda each: (each.day, each.time, each.id)):
        copied = by_id.get(session.copy_of)
        same = _same(copied.events, session.events) if copied else 0
        own = [f"{session.id}-{place}" for place in range(same, len(session.events))]
        turns[session.id] = [*turns.get(session.copy_of, [])[:same], *own]
        events = [
            event
            for place, (turn, doing) in enumerate(zip(turns[session.id], session.events, strict=True))
            for event in _events(turn, f"{session.day}T{session.time}:{place % 60:02}Z", doing)
        ]
        yield session, [*events, SessionEnded(turn=f"{session.id}-end", at=f"{session.day}T{session.time}:59Z")]


def _same(one: Sequence[WorkEvent], other: Sequence[WorkEvent]) -> int:
    pairs = enumerate(zip(one, other, strict=False))
    return next((place for place, (a, b) in pairs if a != b), min(len(one), len(other)))


def _events(turn: str, at: str, doing: WorkEvent) -> Iterator[AnyEvent]:
    if doing.user or doing.agent:
        yield Said(turn=turn, at=at, role="user" if doing.user else "assistant", text=doing.user or doing.agent)
    elif doing.run:
        outcome = "refused" if doing.refused else "ok" if doing.ok else "error"
        yield ToolCalled(turn=turn, at=at, name="Bash", arguments=_json("command", doing.run), outcome=outcome)
        if doing.check:
            yield Checked(turn=f"{turn}#check", at=at, what="check", state=doing.check)  # type: ignore[arg-type]
        if doing.commit:
            yield Committed(turn=f"{turn}#commit-1", at=at, id="0a1b2c3", subject=doing.commit)
    elif doing.edit or doing.read:
        name = "Edit" if doing.edit else "Read"
        yield ToolCalled(
            turn=turn, at=at, name=name, arguments=_json("file_path", doing.edit or doing.read), outcome="ok"
        )
    elif doing.interrupted:
        yield Interrupted(turn=turn, at=at)


def _json(name: str, text: str) -> str:
    return msgspec.json.encode({name: text}).decode()[:ARGUMENT_LIMIT]
