"""What became of the task in which a record was used, by the checks and commits of its session (T3, T4)."""

from __future__ import annotations

from collections.abc import Iterable

from ....protocol.event import Captured, Checked, Committed
from ....protocol.instant import micros
from ...forgetting_rules import UseOutcome


def task_outcome(captures: Iterable[Captured], used_at: int) -> UseOutcome:
    """Return the outcome for a record that was used at a time in microseconds.

    `prevented`: a check that had failed before the use passed after it. `success`: a check passed, or a commit was
    made, after the use. Neither where the last run of any check failed; an unclear check says nothing.
    """
    before, after = dict[str, str](), dict[str, str]()
    has_commit = False
    for captured in captures:
        event = captured.event
        if isinstance(event, Committed):
            has_commit = has_commit or micros(event.at) >= used_at
        elif isinstance(event, Checked) and event.state != "unclear":
            (after if micros(event.at) >= used_at else before)[event.what] = event.state
    if "failed" in {**before, **after}.values():
        return ""
    if any(before.get(what) == "failed" for what in after):
        return "prevented"
    return "success" if after or has_commit else ""
