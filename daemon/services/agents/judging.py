"""What became of the tasks in a session (O2): of its own agent by what it edited, and of the agents that it called.

A turn of the user is a task of the session's agent. It is judged where the agent edited files, the user stopped it, or
refused an edit. A call of another agent is judged by its outcome and by what was asked again; calls one after another,
with nothing between, are a fan-out, in which nothing is asked again.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import zip_longest
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


class AgentCall(NamedTuple):
    """A call that gave a task to another agent. `group`: the number of the fan-out that it belongs to."""

    event: ToolCalled
    agent: str
    words: frozenset[str]
    group: int


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
    calls = list(_calls(events))
    for place, call in enumerate(calls):
        outcome = _call_outcome(call, calls[place + 1 :], events)
        if outcome == "silent" and call.event.outcome == "ok":
            outcome = _by_its_lines(call, events, settled.get(call.event.turn))
        yield call, outcome


def _by_its_lines(call: AgentCall, events: Sequence[AnyEvent], settled: Settled | None) -> TaskOutcome:
    """Return the outcome of a call that went well, by what became of the lines that the agent wrote."""
    outcome = _by_lines(settled)
    if outcome is None or settled is None or outcome in ("major", "redo"):
        return outcome or "silent"
    after = events[events.index(call.event) + 1 :]
    asked = next((event.text for event in after if isinstance(event, Said) and event.role == "user"), "")
    return outcome if settled.followed and not complains(asked) else "silent"


def _calls(events: Iterable[AnyEvent]) -> Iterator[AgentCall]:
    group = 0
    for event in events:
        given = delegation(event) if isinstance(event, ToolCalled) else None
        if given is None or not isinstance(event, ToolCalled):
            group += 1
            continue
        yield AgentCall(event, given.agent, frozenset(_WORD.findall(given.task.casefold())), group)
        group += event.outcome in ("error", "refused")


def _call_outcome(call: AgentCall, later: Sequence[AgentCall], events: Sequence[AnyEvent]) -> TaskOutcome:
    match call.event.outcome:
        case "refused":
            return "refused"
        case "error":
            return "silent" if _is_stopped(call, events) else "failed"
        case "unknown":
            return "silent" if any(isinstance(event, SessionEnded) for event in events) else "running"
        case _:
            again = next((other for other in later if other.group != call.group and _is_alike(call, other)), None)
            return "silent" if again is None else "redo" if again.agent == call.agent else "rerouted"


def _is_stopped(call: AgentCall, events: Sequence[AnyEvent]) -> bool:
    """Whether the user stopped a call, which tells nothing of the agent."""
    after = events[events.index(call.event) + 1 :]
    return bool(after) and isinstance(after[0], Interrupted)


def _is_alike(call: AgentCall, other: AgentCall) -> bool:
    both, either = call.words & other.words, call.words | other.words
    return bool(either) and len(both) >= ALIKE * len(either)
