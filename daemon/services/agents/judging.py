"""What became of the tasks in a session (O2): of its own agent by what it edited, and of the agents that it called.

A turn of the user is a task of the session's agent. It is judged where the agent edited files, the user stopped it, or
refused an edit. A call of another agent is judged by its outcome and by what was asked again; calls one after another,
with nothing between, are a fan-out, in which nothing is asked again.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice, zip_longest
from typing import NamedTuple

from ....protocol.agent_outcomes import TaskOutcome
from ....protocol.event import AnyEvent, Checked, Interrupted, Said, SessionEnded, Settled, ToolCalled
from ....protocol.instant import micros
from ....protocol.operation import JudgedTask
from ....protocol.tool_calls import delegation, is_edit
from ..reactions import complains, takes_back

MINOR, REDO = 0.15, 0.5
"""Shares of the lines of a turn, from which losing them is a major change, and a redo."""

LEAST_LINES = 3
"""Lines of a turn, below which their loss says nothing."""

LEAST_LOST = 2
"""Lost lines, below which the change is a minor one."""

ALIKE = 0.5
"""Share of the words of two tasks that they have in common, from which the second one repeats the first."""

_WORD = re.compile(r"\w{3,}")


AFTER = 50
"""Later calls that may ask for a task again."""


class AgentCall(NamedTuple):
    """A call that gave a task to another agent. `group`: the number of the fan-out that it belongs to; `place`: of its
    event in the session."""

    event: ToolCalled
    agent: str
    words: frozenset[str]
    group: int
    place: int


def judged(events: Iterable[AnyEvent], agent: str) -> Iterator[JudgedTask]:
    """Yield the tasks of a session. `agent`: the one that holds the session."""
    ordered = sorted(events, key=lambda event: micros(event.at))
    settled = {event.of: event for event in ordered if isinstance(event, Settled)}
    ordered = [event for event in ordered if not isinstance(event, Settled)]
    parts = list(_parts(ordered))
    for part, after in zip_longest(parts, parts[1:]):
        asked, following = part[0], after[0] if after else None
        words = following.text if isinstance(following, Said) else ""
        if isinstance(asked, Said) and (outcome := _outcome(part, settled.get(asked.turn), words)):
            yield JudgedTask(agent, asked.turn, micros(asked.at), outcome)
    for call, outcome in _called(ordered, settled):
        yield JudgedTask(call.agent, call.event.turn, micros(call.event.at), outcome)


def _parts(events: Sequence[AnyEvent]) -> Iterator[list[AnyEvent]]:
    """Yield the events from one turn of the user to the next one."""
    part: list[AnyEvent] = []
    for event in events:
        if isinstance(event, Said) and event.role == "user" and not event.answers and "#" not in event.turn:
            if part:
                yield part
            part = []
        part.append(event)
    if part:
        yield part


def _outcome(part: Sequence[AnyEvent], settled: Settled | None, following: str) -> TaskOutcome | None:
    """Return what became of a turn of the user, None if nothing tells. `following`: the user's next turn."""
    if any(isinstance(event, ToolCalled) and event.outcome == "refused" and is_edit(event.name) for event in part):
        return "refused"
    is_stopped = any(isinstance(event, Interrupted) and event.by == "user" for event in part)
    if is_stopped and takes_back(following):
        return "interrupted"
    outcome = _by_lines(settled)
    if settled is None or outcome in (None, "major", "redo"):
        return outcome
    if is_stopped or complains(following):
        return None
    if outcome == "minor":
        return outcome
    checks = [event.state for event in part if isinstance(event, Checked) and event.state != "unclear"]
    has_passed = checks[-1:] == ["passed"]
    return ("as_is_checked" if has_passed else "as_is") if settled.followed else None


def _by_lines(settled: Settled | None) -> TaskOutcome | None:
    """Return the outcome of lines of which some are lost, "as_is" for none, None for too few lines."""
    if settled is None or settled.lines < LEAST_LINES:
        return None
    if settled.lost >= LEAST_LOST and settled.lost >= MINOR * settled.lines:
        return "major" if settled.lost < REDO * settled.lines else "redo"
    return "minor" if settled.lost else "as_is"


def _called(events: Sequence[AnyEvent], settled: Mapping[str, Settled]) -> Iterator[tuple[AgentCall, TaskOutcome]]:
    calls, has_ended = list(_calls(events)), any(isinstance(event, SessionEnded) for event in events)
    for number, call in enumerate(calls):
        outcome = _call_outcome(call, calls[number + 1 : number + 1 + AFTER], events, has_ended)
        if outcome == "silent" and call.event.outcome == "ok":
            outcome = _by_its_lines(call, events, settled.get(call.event.turn))
        yield call, outcome


def _by_its_lines(call: AgentCall, events: Sequence[AnyEvent], settled: Settled | None) -> TaskOutcome:
    """Return the outcome of a call that went well, by what became of the lines that the agent wrote."""
    outcome = _by_lines(settled)
    if outcome is None or settled is None or outcome in ("major", "redo"):
        return outcome or "silent"
    after = islice(events, call.place + 1, None)
    asked = next((event.text for event in after if isinstance(event, Said) and event.role == "user"), "")
    return outcome if settled.followed and not complains(asked) else "silent"


def _calls(events: Iterable[AnyEvent]) -> Iterator[AgentCall]:
    group = 0
    for place, event in enumerate(events):
        given = delegation(event) if isinstance(event, ToolCalled) else None
        if given is None or not isinstance(event, ToolCalled):
            group += 1
            continue
        yield AgentCall(event, given.agent, frozenset(_WORD.findall(given.task.casefold())), group, place)
        group += event.outcome in ("error", "refused")


def _call_outcome(
    call: AgentCall, later: Sequence[AgentCall], events: Sequence[AnyEvent], has_ended: bool
) -> TaskOutcome:
    match call.event.outcome:
        case "refused":
            return "refused"
        case "error":
            return "silent" if _is_stopped(call, events) else "failed"
        case "unknown":
            return "silent" if has_ended else "running"
        case _:
            again = next((other for other in later if other.group != call.group and _is_alike(call, other)), None)
            return "silent" if again is None else "redo" if again.agent == call.agent else "rerouted"


def _is_stopped(call: AgentCall, events: Sequence[AnyEvent]) -> bool:
    """Whether the user stopped a call, which tells nothing of the agent."""
    following = events[call.place + 1] if call.place + 1 < len(events) else None
    return isinstance(following, Interrupted)


def _is_alike(call: AgentCall, other: AgentCall) -> bool:
    both, either = call.words & other.words, call.words | other.words
    return bool(either) and len(both) >= ALIKE * len(either)
