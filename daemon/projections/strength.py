"""Strength: how use raises it, how sleep lowers it, and the pace of a pool (T3-T7).

Invariants: no clock or disk; decay is stored once per pool, kind and level, as the logarithm of the remaining share,
and applied on read, so that a sleep over any number of records changes one row.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from math import exp, log

import msgspec

from ...protocol.fading import LEVEL_USES, LEVELS, Count, Counted, Rest, Restored, Slept, Tally
from ...protocol.record import Kind, Signal

DAY = 86_400_000_000
PACE_DAYS = 14
"""Active days over which memd takes a pool's pace (T6)."""

DAYS_A_DAY = 2.0
"""Days of loss that one active day costs at most, whatever its number of tasks; the first active day costs one."""

LEAST = 1e-9
_UNTOUCHED = (0.0,) * LEVELS
_replace = msgspec.structs.replace


def level_of(uses: int, level_uses: Sequence[int]) -> int:
    """Return the consolidation level, 0-5, for a number of uses (T5)."""
    return min(LEVELS, bisect_right(level_uses, uses)) - 1


def decayed(rest: Rest, kind: Kind, level: int) -> float:
    """Return the logarithm of the share that sleeps left of the strength of a pool's records of a kind and level."""
    return rest.decay.get(kind, _UNTOUCHED)[level]


def settled(tally: Tally, rest: Rest) -> Tally:
    """Return a tally with its current strengths."""
    mark = decayed(rest, tally.kind, tally.level)
    if mark == tally.mark:
        return tally
    left = exp(mark - tally.mark)
    by = {name: value * left for name, value in tally.by.items()}
    return _replace(tally, mark=mark, strength=max(LEAST, tally.strength * left), by=by)


def energy(tally: Tally) -> float:
    """Return a sort key by greatest strength for records of one pool, kind and level; sleep does not change it."""
    return log(max(LEAST, tally.strength, *tally.by.values())) - tally.mark


def held(tally: Tally, before: Rest, after: Rest) -> Tally:
    """Return a tally that a sleep, which changed its pool's decay from `before` to `after`, leaves as strong as it was
    (T3)."""
    return remarked(settled(tally, before), after)


def remarked(tally: Tally, rest: Rest) -> Tally:
    """Return a settled tally, whose pool, kind or level changed, with its new decay."""
    mark = decayed(rest, tally.kind, tally.level)
    return tally if mark == tally.mark else _replace(tally, mark=mark)


def counted(tally: Tally, count: Count, what: Counted, at: int, rest: Rest) -> Tally:
    """Return a tally after retrievals or uses (T3, T4, T5)."""
    candidates = tally.candidates + count.candidates
    if not count.uses and not count.impact:
        return _replace(tally, candidates=candidates)
    tally = settled(tally, rest)
    by = tally.by
    if what.perspective and count.uses:
        by = {**by, what.perspective: by.get(what.perspective, tally.strength) + what.perspective_step * count.uses}
    credit = tally.credit + count.uses
    changed = _replace(
        tally,
        strength=max(LEAST, tally.strength + what.step * count.uses + what.impact_share * count.impact),
        by=by,
        credit=credit,
        level=level_of(credit, what.level_uses),
        uses=tally.uses + count.uses,
        candidates=candidates,
        last=(count.last or at) if count.uses else tally.last,
        impact=tally.impact + count.impact,
    )
    return remarked(changed, rest)


def restored(tally: Tally, what: Restored, rest: Rest) -> Tally:
    """Return the tally of a restored record, some levels lower (T7)."""
    level = max(0, tally.level - what.levels_down)
    credit = min(tally.credit, what.level_uses[level])
    return remarked(_replace(settled(tally, rest), strength=what.strength, level=level, credit=credit), rest)


def slept(rest: Rest, what: Slept, kinds: Sequence[Kind], at: int) -> Rest:
    """Return the decay of a pool after the end of a task (T6)."""
    decay = dict(rest.decay)
    for kind in kinds:
        if kind not in what.spared:
            before = decay.get(kind, _UNTOUCHED)
            decay[kind] = tuple(left + log(max(LEAST, r)) for left, r in zip(before, what.retention, strict=True))
    today, tasks = at // DAY, rest.tasks
    if tasks and tasks[-1][0] >= today:  # also if the clock was set back
        tasks, spent = (*tasks[:-1], (tasks[-1][0], tasks[-1][1] + 1)), rest.spent + what.days
    else:
        tasks, spent = (*tasks[-PACE_DAYS:], (today, 1)), what.days
    return Rest(pool=what.pool, decay=decay, tasks=tasks, spent=spent)


def pace(rest: Rest, at: int) -> float:
    """Return the mean number of tasks of the last 14 active days before this one, at least 1 (T6)."""
    past = [tasks for day, tasks in rest.tasks if day < at // DAY][-PACE_DAYS:]
    return max(1.0, sum(past) / len(past)) if past else 1.0


def share_of_day(rest: Rest, at: int) -> float:
    """Return the part of a day's loss that a task costs that ends now: 1 / pace, limited to the rest of the day."""
    today = at // DAY
    spent = rest.spent if rest.tasks and rest.tasks[-1][0] >= today else 0.0
    most = DAYS_A_DAY if any(day < today for day, _ in rest.tasks) else 1.0
    return max(0.0, min(1 / pace(rest, at), most - spent))


def begun(pool: str, kind: Kind, at: int, signal: Signal, *, fades: bool) -> Tally:
    """Return the first tally of a record; an imported record keeps its counters."""
    uses, level = signal.access_count, signal.level
    return Tally(
        pool=pool,
        kind=kind,
        fades=fades,
        at=at,
        strength=signal.strength,
        by=signal.strength_by,
        level=level,
        credit=uses if level_of(uses, LEVEL_USES) == level else LEVEL_USES[level],
        uses=uses,
        candidates=signal.candidate_count,
        last=signal.last_access,
        impact=signal.impact,
    )


def signal_of(tally: Tally, rest: Rest, base: Signal) -> Signal:
    """Return the signal of a record from its counters; importance is the record's own (R6)."""
    now = settled(tally, rest)
    return _replace(
        base,
        strength=now.strength,
        strength_by=now.by,
        access_count=now.uses,
        candidate_count=now.candidates,
        last_access=now.last,
        impact=now.impact,
        level=now.level,
    )
