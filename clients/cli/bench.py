"""`memd bench`: measures a daemon of its own, in a temporary home.

Comes in: names of measurements. Goes out: a table, or JSON. Invariant: the user's own memory is never touched.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated

import typer

from ..bench.row import Row
from .output import Answer, JsonFlag, say, styled
from .progress import Bar

app = typer.Typer(rich_markup_mode=None, add_completion=False)


@app.command()
def bench(
    names: Annotated[list[str] | None, typer.Argument(help="Measurements to run; all, if none is named.")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="At a smaller size, where the whole takes minutes.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Measure memd on this machine, beside a floor measured in the same run.

    \b
    Examples:
      memd bench
      memd bench recall --json
      memd bench store --quick
    """
    from ..bench import runner

    with Answer("bench", as_json) as answer:
        wanted = runner.chosen(names or ())
        with Bar(len(wanted), "measuring", as_json) as bar:
            done: list[runner.Measured] = []
            for measured in runner.run(wanted, quick):
                done.append(measured)
                bar.step(1)
        answer.give(done)
        if not as_json:
            for measured in done:
                say([styled(measured.name, "bold") + f": {measured.what}", *table(measured.rows), ""])


def table(rows: Sequence[Row]) -> Iterator[str]:
    """Rows in columns; the floor is what a bare echo takes in the same run."""
    longest = max([14, *(len(row.name) for row in rows)])
    target = any(row.target for row in rows)
    head = f"  {'':<{longest}} {'value':>12}   {'floor':>13} {'ratio':>7} {'samples':>8}"
    yield styled(head + ("  target" if target else ""), "dim")
    for row in rows:
        floor = f"{row.floor:>10,.2f} {row.unit:<2} {row.ratio:>6.1f}x" if row.floor else f"{'':>21}"
        line = f"  {row.name:<{longest}} {row.value:>9,.2f} {row.unit:<2}   {floor} {row.samples:>8,}"
        yield f"{line}  {row.target}" if row.target else line
