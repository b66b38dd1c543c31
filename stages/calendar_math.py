"""Move a midnight by whole days, weeks, months and years (P-21). Results keep the offset. Raises ValueError and
OverflowError for days that no calendar has."""

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
    return midnight.replace(year=year, month=month + 1, day=min(midnight.day, 28))


def place_date(midnight: datetime, month: int, day: int, year: int | None, ahead: bool) -> datetime:
    """The date of a day and month; without a year the nearest past one, or the nearest future one if `ahead`."""
    if year is not None:
        return midnight.replace(year=year, month=month, day=day)
    date = midnight.replace(month=month, day=day)
    if date < midnight if ahead else date > midnight:
        return date.replace(year=date.year + (1 if ahead else -1))
    return date


def weekday(midnight: datetime, day: int, which: int) -> datetime:
    """The nearest `day` of a week (0: Monday): with `which` -1 before, 1 after, 0 at or before this midnight."""
    if which > 0:
        return midnight + timedelta(days=(day - midnight.weekday()) % 7 or 7)
    back = (midnight.weekday() - day) % 7
    return midnight - timedelta(days=(back or 7) if which < 0 else back)
