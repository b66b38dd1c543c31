"""Units of work: what a user asked for, the steps that followed, and how it ended (K1).

A unit is a turn of the user with what follows, up to the next turn that asks for something else. Bad: interrupted,
refused, the last check failed, a step failed with no success, passed check or commit after it, or the user's next turn
takes it back. Good: nothing of that, and a check passed, a commit was made, or the user praised it. Else unknown.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Literal, NamedTuple

from ....protocol.event import (
    ARGUMENT_LIMIT,
    AnyEvent,
    Checked,
    Committed,
    Interrupted,
    Ran,
    Said,
    SaidBy,
    ToolCalled,
    text,
)
from ....protocol.instant import micros
from ....protocol.tool_calls import command_of, edited_path
from ..reactions import goes_on, praises, takes_back
from .foreign_files import foreign_files
from .skill_calls import called_skills, read_skills
from .steps import StepSeen, command_steps, edit_step

End = Literal["good", "bad", "unknown"]


class Ask(NamedTuple):
    """A turn of the user."""

    turn: str
    text: str


class WorkUnit(NamedTuple):
    """A unit of work. `document`: its session; `day`, `at`: of its first event, `at` in microseconds; `asks`: the turns
    that began it; `foreign`: the files that it wrote after it had read a page; `called`, `read`: names of skills."""

    document: str
    day: str
    asks: tuple[Ask, ...]
    steps: tuple[StepSeen, ...]
    turns: tuple[str, ...]
    end: End
    foreign: frozenset[str] = frozenset()
    called: frozenset[str] = frozenset()
    read: frozenset[str] = frozenset()
    at: int = 0


class SessionEvents(NamedTuple):
    """A session's events in order."""

    document: str
    events: Sequence[AnyEvent]


def work_units(sessions: Iterable[SessionEvents]) -> Iterator[WorkUnit]:
    """Yield the units of sessions, oldest session first. A turn with the same words as in an earlier session is a copy
    and counts once; some hosts use the same names of turns in each session."""
    seen: set[tuple[str, str]] = set()
    for session in sessions:
        fresh = [event for event in session.events if (event.turn, text(event)) not in seen]
        seen.update((event.turn, text(event)) for event in fresh)
        yield from _units(SessionEvents(session.document, fresh))


def first_said(units: Iterable[WorkUnit]) -> dict[str, SaidBy]:
    """Return what had the text of each command before its first run, by the command as it was typed."""
    said: dict[str, SaidBy] = {}
    for step in (step for unit in units for step in unit.steps):
        said.setdefault(step.raw, step.said_by)
    return said


def _units(session: SessionEvents) -> Iterator[WorkUnit]:
    parts = list(_parts(session.events))
    for number, part in enumerate(parts):
        following = parts[number + 1][0] if number + 1 < len(parts) else None
        unit = _unit(session.document, part, following.text if isinstance(following, Said) else "")
        if unit.steps or unit.foreign or unit.called or unit.read:
            yield unit


def _parts(events: Sequence[AnyEvent]) -> Iterator[list[AnyEvent]]:
    """Yield the events from one asking turn of the user to the next one."""
    part: list[AnyEvent] = []
    for event in events:
        if isinstance(event, Said) and event.role == "user" and part and not goes_on(event.text):
            yield part
            part = []
        part.append(event)
    if part:
        yield part


def _unit(document: str, events: Sequence[AnyEvent], following: str) -> WorkUnit:
    asks = [Ask(event.turn, event.text) for event in events if isinstance(event, Said) and event.role == "user"]
    seen = [step for place, event in enumerate(events) for step in _steps(event, place)]
    return WorkUnit(
        document=document,
        day=events[0].at[:10],
        asks=tuple(ask for ask in asks if not goes_on(ask.text)),
        steps=tuple(step for step in seen if step.outcome != "refused"),
        turns=tuple(event.turn for event in events),
        end=_end(events, seen, following),
        foreign=frozenset(foreign_files(events)),
        called=frozenset(called_skills(events)),
        read=frozenset(read_skills(events)),
        at=micros(events[0].at),
    )


def _steps(event: AnyEvent, place: int) -> Iterable[StepSeen]:
    match event:
        case ToolCalled(arguments=arguments, outcome=outcome, said_by=said_by):
            if path := edited_path(event):
                return [edit_step(path, outcome, place)]
            command = command_of(arguments)
            is_cut = len(arguments) >= ARGUMENT_LIMIT
            steps = command_steps(command.rpartition(" ")[0] if is_cut else command, outcome, place)
            return [step._replace(said_by=said_by) for step in steps]
        case Ran(command=command, exit_status=code):
            return command_steps(command, "ok" if code == 0 else "error", place)
        case _:
            return ()


def _end(events: Sequence[AnyEvent], steps: Sequence[StepSeen], following: str) -> End:
    checks = [event for event in events if isinstance(event, Checked)]
    proved_at = max((place for place, event in enumerate(events) if _proves(event)), default=-1)
    last = {step.name: step for step in steps}
    is_open = any(step.outcome == "error" and step.place > proved_at for step in last.values())
    is_broken = any(isinstance(event, Interrupted) for event in events) or any(s.outcome == "refused" for s in steps)
    if is_broken or is_open or (checks and checks[-1].state == "failed") or takes_back(following):
        return "bad"
    return "good" if proved_at >= 0 or praises(following) else "unknown"


def _proves(event: AnyEvent) -> bool:
    return isinstance(event, Committed) or (isinstance(event, Checked) and event.state == "passed")
