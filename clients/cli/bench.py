"""`memd bench`: measures daemons of its own, in temporary homes.

Comes in: names of measurements. Goes out: a table as each is done, or JSON. Invariant: the user's own memory is never
touched.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from ..bench import report as reports
from ..bench.measurement import BenchOptions, Figure, PartResult
from ..bench.report import Report, interval, number
from .contact import path
from .output import Answer, JsonFlag, plain, say, styled, wrapped
from .progress import Ticker

app = typer.Typer(rich_markup_mode=None, add_completion=False)


@app.command()
def bench(
    names: Annotated[list[str] | None, typer.Argument(help="Groups, or parts as GROUP/PART; all by default.")] = None,
    data: Annotated[
        Path | None, typer.Option(parser=path, help="A folder of real data, for the parts that need some.")
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="At a smaller size, where the whole takes minutes.")] = False,
    seed: Annotated[int, typer.Option(help="Of the gate: what draws the records.")] = 7,
    sheet: Annotated[
        Path | None, typer.Option(parser=path, help="Of the gate: the folder for its sheet; by default ./memd-gate.")
    ] = None,
    grades: Annotated[
        Path | None, typer.Option(parser=path, help="Of the gate: a graded sheet, judged. Exit code 1 if missed.")
    ] = None,
    save: Annotated[Path | None, typer.Option(parser=path, help="Keep the report here, as JSON.")] = None,
    kept: Annotated[
        list[Path] | None, typer.Option("--from", parser=path, help="Take this kept report; measure nothing.")
    ] = None,
    html: Annotated[
        Path | None, typer.Option(parser=path, help="Write the report as one HTML page, with plots.")
    ] = None,
    markdown: Annotated[Path | None, typer.Option(parser=path, help="Write the report as Markdown.")] = None,
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
      memd bench all --data ~/memd-data --save results.json --html report.html
      memd bench --from monday.json --from today.json --markdown BENCHMARKS.md
    """
    with Answer("bench", as_json) as answer:
        options = BenchOptions(
            data=data.absolute() if data else None,
            quick=quick,
            seed=seed,
            sheet=sheet.absolute() if sheet else None,
            grades=grades,
        )
        found = reports.load(kept) if kept else _measured(names or (), options, save, as_json)
        if save and kept:
            reports.save(found, save)
        if html:
            from ..bench.html_report import page

            reports.write(html, page(found))
        if markdown:
            reports.write(markdown, reports.markdown(found))
        answer.give(found)
        if not as_json:
            if kept and not (save or html or markdown):
                for part in found.parts:
                    say([*told(part), ""])
            say([verdict(found)])
    if grades and _is_missed(found):
        raise typer.Exit(1)


def _is_missed(found: Report) -> bool:
    """Whether the gate is missed, or its sheet gives no verdict."""
    return any(part.missed or part.failed for part in found.parts if part.group == "gate")


def _measured(names: Sequence[str], options: BenchOptions, save: Path | None, as_json: bool) -> Report:
    """Measures; prints each part as it is done, and keeps it at once: a run may take hours, and be broken off."""
    from ..bench import runner

    done: list[PartResult] = []
    with Ticker(as_json) as ticker:
        options = msgspec.structs.replace(options, progress=ticker.tell)
        for part in runner.run(runner.chosen(names), options):
            done.append(part)
            ticker.clear()
            if save:
                reports.save(reports.report(done), save)
            if not as_json:
                say([*told(part), ""])
    return reports.report(done)


def told(part: PartResult) -> Iterator[str]:
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
        line = f"  {figure.name:<{longest}} {number(figure.value):>9} {figure.unit:<3}{figure.samples:>11,}"
        if floors:
            floor = f"{figure.floor:>10,.2f} {figure.unit:<2} {figure.ratio:>6.1f}x"
            line += f" {floor if figure.floor else '':>21}"
        yield f"{line}  {_against(figure)}".rstrip()


def _against(figure: Figure) -> str:
    words = " ".join(filter(None, (str(figure.target or ""), interval(figure))))
    if figure.met is None:
        return words
    return f"{words}  " + (styled("met", "green") if figure.met else styled("MISSED", "red"))


def verdict(found: Report) -> str:
    """One line on all parts."""
    held, missed = found.held, [f"{part.group}/{part.name}: {figure.name.strip()}" for part, figure in found.missed]
    words = f"{len(held) - len(missed)} of {len(held)} targets met" if held else "nothing here has a target"
    words += f"; missed: {', '.join(missed)}" if missed else ""
    for kind, names in (
        ("failed", [part.name for part in found.parts if part.failed]),
        ("skipped", [part.name for part in found.parts if part.skipped]),
    ):
        words += f"; {kind}: {', '.join(names)}" if names else ""
    return words
