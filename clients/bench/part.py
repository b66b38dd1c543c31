"""A part of the benchmark: a function from a setting to figures.

Comes in: where the data lies, at which size. Goes out: figures, what they do not show, what was seen besides.
Invariant: a part that lacks its data is told as skipped with the reason, never as met.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec

from ...protocol.errors import NotFound
from .figure import Figure


def _quietly(words: str) -> None:
    """Progress that nobody watches."""


class DataMissing(NotFound):
    """What a part measures on is not on this machine."""


class Setting(msgspec.Struct, frozen=True, kw_only=True):
    """What every part is given. `data`: a folder of real data; `tell`: says what is going on, for whoever waits.

    For the gate: `seed` draws its records, `sheet` is the folder they are written to, `grades` a sheet that was graded.
    """

    data: Path | None = None
    quick: bool = False
    seed: int = 7
    sheet: Path | None = None
    grades: Path | None = None
    tell: Callable[[str], None] = _quietly

    def find(self, name: str) -> Path:
        """A file or folder of the data. Raises DataMissing."""
        if self.data is None:
            raise DataMissing(f"needs {name} of a data folder", hint="say where it lies: --data DIR")
        if not (place := self.data / name).exists():
            raise DataMissing(f"there is no {name} in {self.data}", hint="--data DIR names the folder that holds it")
        return place


class Plot(msgspec.Struct, frozen=True, kw_only=True):
    """A picture for the report: lines through (x, y) in order, or with `scattered` points that bear their names."""

    title: str
    x: str
    y: str
    series: dict[str, tuple[tuple[float, float], ...]]
    log_x: bool = False
    log_y: bool = False
    scattered: bool = False


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """What a part found. `shows_not`: what its figures must not be taken for; `notes`: differences, errors, cases.

    The runner fills in the rest: `what` is the first line of the function's docstring, `load` how many processes wanted
    to run before and after, `skipped` why it could not be measured here (its data is missing), `failed` what broke.
    """

    figures: tuple[Figure, ...] = ()
    shows_not: str = ""
    notes: tuple[str, ...] = ()
    plots: tuple[Plot, ...] = ()
    group: str = ""
    name: str = ""
    what: str = ""
    seconds: float = 0.0
    skipped: str = ""
    failed: str = ""
    quick: bool = False
    at: str = ""
    version: str = ""
    load: tuple[float, float] = (0.0, 0.0)

    @property
    def missed(self) -> tuple[Figure, ...]:
        """The figures that miss their target."""
        return tuple(figure for figure in self.figures if figure.met is False)


Measure = Callable[[Setting], Part]
