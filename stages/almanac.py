"""Days, weeks, months and years, counted from a midnight: the arithmetic under every language's dates (P-21).

Comes in: a midnight with its offset, and whole units. Goes out: another midnight with the same offset. Invariants: no
clock is read. Raises ValueError and OverflowError for days that no calendar has.
"""

from __future__ import annotations

from datetime import datetime, timedelta


def shift(midnight: datetime, unit: str, by: int, start: bool = False) -> datetime:
    """`midnight` moved by whole units; with `start`, to the first day of that unit."""
    if unit in {"day", "weekend"}:
        return midnight + timedelta(days=by if unit == "day" else 7 * by)
    if unit == "week":
        moved = midnight + timedelta(weeks=by)
        return moved - timedelta(days=moved.weekday()) if start else moved
    months = midnight.year * 12 + midnight.month - 1 + by * (12 if unit == "year" else 1)
    year, month = divmod(months, 12)
    if start:
        return midnight.replace(year=year, month=1 if unit == "year" else month + 1, day=1)
    day = min(midnight.day, 28) if midnight.day > 28 else midnight.day
    return midnight.replace(year=year, month=month + 1, day=day)


def placed(midnight: datetime, month: int, day: int, year: int | None, ahead: bool) -> datetime:
    """A date without its year is the nearest past one, or the nearest future one where the clause looks ahead."""
    if year is not None:
        return midnight.replace(year=year, month=month, day=day)
    found = midnight.replace(month=month, day=day)
    if ahead and found < midnight:
        return found.replace(year=found.year + 1)
    if not ahead and found > midnight:
        return found.replace(year=found.year - 1)
    return found


def weekday(midnight: datetime, day: int, which: int) -> datetime:
    """The nearest `day` of a week (0: Monday): with `which` -1 before, 1 after, 0 at or before this midnight."""
    if which > 0:
        return midnight + timedelta(days=(day - midnight.weekday()) % 7 or 7)
    back = (midnight.weekday() - day) % 7
    return midnight - timedelta(days=(back or 7) if which < 0 else back)
