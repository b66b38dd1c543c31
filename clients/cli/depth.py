"""What lies around a recalled record, for `memd recall --deep`: transcript, history, edges (Q3); the time of an answer.

Comes in: hits, turns, edges. Goes out: lines for a terminal. Invariant: everything captured goes through `plain`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta

from ...protocol.instant import day, from_micros
from ...protocol.recall import Belief, Heard, Hit, Linked
from .output import plain, shortened, styled, wrapped
from .wording import count, short

INDENT = " " * 5
LONGEST = 300


def around_lines(found: Hit | Heard) -> Iterator[str]:
    """The turns around it as they were said, `▶` before the cited one; then each state of the belief."""
    for line in found.lines:
        mark = styled("▶", "green") if line.cited else " "
        words = f"{plain(line.who)} {plain(line.at)[:16].replace('T', ' ')}: {shortened(plain(line.text), LONGEST)}"
        first, *rest = wrapped(words, INDENT)
        yield f"   {mark} {first.lstrip()}"
        yield from rest
    if isinstance(found, Hit) and found.history:
        yield styled(f"{INDENT}how it changed:", "dim")
        for state in found.history:
            yield from wrapped(_state(state), INDENT + "    ", INDENT + "  ")


def linked_lines(linked: Sequence[Linked]) -> Iterator[str]:
    """The edges near what was found."""
    if linked:
        yield ""
        yield styled("Linked:", "bold")
    for each in linked:
        far = "" if each.hops == 1 else f", {count(each.hops, 'step')} away"
        words = f"{plain(each.record.description)} · by {plain(each.via)}{far} · {short(each.record.id)}"
        yield from wrapped(words, " " * 4, "  ")


def period_text(start: str, end: str) -> str:
    """What an answer is held to, in days of this machine; the last one is the day before `end`."""
    first = datetime.fromisoformat(start).astimezone().date().isoformat() if start else ""
    last = (datetime.fromisoformat(end) - timedelta(seconds=1)).astimezone().date().isoformat() if end else ""
    if not first or not last:
        return f"held to the time since {first}" if first else f"held to the time until {last}"
    return f"held to {first}" + (f" to {last}" if last != first else "")


def _state(state: Belief) -> str:
    true = f"true from {day(state.valid_from)}" if state.valid_from else "true"
    true += f" to {day(state.valid_to)}" if state.valid_to else ""
    until = f" to {day(from_micros(state.believed_until))}" if state.believed_until else " until now"
    why = f": {plain(state.ended)}" if state.ended else ""
    return f"“{plain(state.text)}” {true}, believed from {day(from_micros(state.believed_from))}{until}{why}"
