"""`memd bench`: measures daemons of its own, in temporary homes.

Comes in: names of measurements. Goes out: a table as each is done, or JSON. Invariant: the user's own memory is never
touched.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from ..bench.figure import Figure
from ..bench.part import Part, Setting
from .output import Answer, JsonFlag, plain, say, styled, wrapped
from .progress import Ticker

app = typer.Typer(rich_markup_mode=None, add_completion=False)


@app.command()
def bench(
    names: Annotated[list[str] | None, typer.Argument(help="Groups, or parts as GROUP/PART; all by default.")] = None,
    data: Annotated[Path | None, typer.Option(help="A folder of real data, for the parts that need some.")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="At a smaller size, where the whole takes minutes.")] = False,
    seed: Annotated[int, typer.Option(help="Of the gate: what draws the records.")] = 7,
    sheet: Annotated[
        Path | None, typer.Option(help="Of the gate: the folder for its sheet; by default ./memd-gate.")
    ] = None,
    grades: Annotated[Path | None, typer.Option(help="Of the gate: a graded sheet, for its verdict.")] = None,
    as_json: JsonFlag = False,
) -> None:
    """Measure memd on this machine: each figure beside its target, or beside a floor measured in the same run.

    \b
    Examples:
      memd bench latency
      memd bench store/replay --quick
      memd bench write --data ~/memd-data --json
      memd bench gate --data ~/memd-data
      memd bench gate --grades memd-gate/gate.md
    """
    from ..bench import runner

    with Answer("bench", as_json) as answer:
        wanted = runner.chosen(names or ())
        done: list[Part] = []
        with Ticker(as_json) as ticker:
            setting = Setting(
                data=data.absolute() if data else None,
                quick=quick,
                seed=seed,
                sheet=sheet.absolute() if sheet else None,
                grades=grades,
                tell=ticker.tell,
            )
            for part in runner.run(wanted, setting):
                done.append(part)
                ticker.clear()
                if not as_json:
                    say([*told(part), ""])
        answer.give(done)
        if not as_json:
            say([verdict(done)])


def told(part: Part) -> Iterator[str]:
    """A part in lines: its figures in columns, what they do not show, what was seen besides."""
    yield styled(f"{part.group}/{part.name}", "bold") + f": {part.what}"
    if reason := part.skipped or part.failed:
        yield from wrapped(plain(f"{'skipped' if part.skipped else 'FAILED'}: {reason}"), "    ", "  ")
    if part.figures:
        yield from _table(part.figures)
    for note in part.notes:
        yield from wrapped(plain(note), "    ", "  - ")
    if part.shows_not:
        yield from (styled(line, "dim") for line in wrapped(f"does not show: {part.shows_not}", "    ", "  "))


def _table(figures: tuple[Figure, ...]) -> Iterator[str]:
    longest = max([14, *(len(figure.name) for figure in figures)])
    floors = any(figure.floor for figure in figures)
    targets = any(figure.target for figure in figures)
    head = f"  {'':<{longest}} {'value':>12} {'samples':>11}"
    head += f" {'floor':>13} {'ratio':>7}" if floors else ""
    yield styled(head + ("  target" if targets else ""), "dim")
    for figure in figures:
        line = f"  {figure.name:<{longest}} {_number(figure.value):>9} {figure.unit:<3}{figure.samples:>11,}"
        if floors:
            floor = f"{figure.floor:>10,.2f} {figure.unit:<2} {figure.ratio:>6.1f}x"
            line += f" {floor if figure.floor else '':>21}"
        yield f"{line}  {_against(figure)}".rstrip()


def _number(value: float) -> str:
    digits = 0 if float(value).is_integer() or abs(value) >= 10_000 else 2 if abs(value) >= 1 else 3
    return f"{value:,.{digits}f}"


def _against(figure: Figure) -> str:
    words = str(figure.target or "")
    if figure.low is not None and figure.high is not None:
        words += f"{' ' * bool(words)}[{_number(figure.low)}, {_number(figure.high)}]"
    if figure.met is None:
        return words
    return f"{words}  " + (styled("met", "green") if figure.met else styled("MISSED", "red"))


def verdict(parts: list[Part]) -> str:
    """One line on all parts."""
    held = [figure for part in parts for figure in part.figures if figure.met is not None]
    missed = [f"{part.name}: {figure.name.strip()}" for part in parts for figure in part.missed]
    words = f"{len(held) - len(missed)} of {len(held)} targets met" if held else "nothing here has a target"
    words += f"; missed: {', '.join(missed)}" if missed else ""
    for kind, names in (
        ("failed", [part.name for part in parts if part.failed]),
        ("skipped", [part.name for part in parts if part.skipped]),
    ):
        words += f"; {kind}: {', '.join(names)}" if names else ""
    return words
