"""Runs measurements by name: one explicit list, each a function that returns rows.

Comes in: names, or none for all. Goes out: what each measured, or InvalidRequest with the names there are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import msgspec

from ...protocol.errors import InvalidRequest
from . import latency, store
from .row import Row

Measurement = Callable[[], list[Row]]

MEASUREMENTS: dict[str, Measurement] = {
    "recall": latency.recall,
    "remember": latency.remember,
    "connect": latency.connect,
    "store": store.measure,
}
"""Every measurement. A new one is a function in a module of this room, and a line here."""

QUICK: dict[str, Measurement] = {"store": store.measure_quickly}
"""What `--quick` runs instead, where the whole takes minutes."""


class Measured(msgspec.Struct, frozen=True, kw_only=True):
    """One measurement's rows."""

    name: str
    what: str
    rows: tuple[Row, ...]


def chosen(names: Sequence[str]) -> list[str]:
    """The names, checked; all of them if none is given. Raises InvalidRequest."""
    for name in names:
        if name not in MEASUREMENTS:
            raise InvalidRequest(f"no measurement {name!r}", hint=f"there are: {', '.join(MEASUREMENTS)}")
    return list(names) or list(MEASUREMENTS)


def run(names: Sequence[str], quick: bool = False) -> Iterator[Measured]:
    """Runs them one after the other, never at once."""
    for name in chosen(names):
        measure = QUICK.get(name, MEASUREMENTS[name]) if quick else MEASUREMENTS[name]
        what = (measure.__doc__ or "").strip().partition("\n")[0]
        yield Measured(name=name, what=what, rows=tuple(measure()))
