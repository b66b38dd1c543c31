"""`memd bench` measures daemons in temporary homes; the user's own memory is never touched."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Literal

import msgspec
import typer

from ..bench import report as reports
from ..bench.measurement import BenchOptions, Figure, PartResult
from ..bench.report import Report, interval, number
from .options import path
from .output import CommandAnswer, JsonFlag, plain, say, styled, wrapped
from .progress import Ticker

app = typer.Typer(rich_markup_mode=None, add_completion=False)


@app.command()
def bench(
    names: Annotated[list[str] | None, typer.Argument(help="Groups, or parts as GROUP/PART; default: all.")] = None,
    data: Annotated[
        Path | None, typer.Option(parser=path, help="A folder of real data, for parts that need it.")
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Use smaller sizes where the full ones take minutes.")] = False,
    seed: Annotated[int, typer.Option(help="For the gate: the seed that selects records.")] = 7,
    tier: Annotated[
        Literal["believed", "noted", "both"], typer.Option(help="For the gate: the records that it selects.")
    ] = "both",
    sheet: Annotated[
        Path | None, typer.Option(parser=path, help="For the gate: the folder for its sheet; default: ./memd-gate.")
    ] = None,
    grades: Annotated[
        Path | None, typer.Option(parser=path, help="For the gate: evaluate a graded sheet. Exit code 1 if missed.")
    ] = None,
    remote: Annotated[
        bool, typer.Option("--remote", help="For write/remote: send the sessions of --data to your remote model.")
    ] = False,
    save: Annotated[Path | None, typer.Option(parser=path, help="Save the report here, as JSON.")] = None,
    saved: Annotated[
        list[Path] | None,
        typer.Option("--from", parser=path, help="Use this saved report and measure nothing; repeatable."),
    ] = None,
    html: Annotated[Path | None, typer.Option(parser=path, help="Write the report as an HTML page with plots.")] = None,
    pictures: Annotated[
        Path | None, typer.Option(parser=path, help="Write the report's curves as SVG files into this folder.")
    ] = None,
    markdown: Annotated[Path | None, typer.Option(parser=path, help="Write the report as Markdown.")] = None,
    as_json: JsonFlag = False,
) -> None:
    """Measure memd on this machine. The report compares each figure with its target or a measured floor.

    \b
    Examples:
      memd bench latency
      memd bench store/replay --quick
      memd bench write --data ~/memd-data --json
      memd bench write/remote --remote --data ~/memd-data
      memd bench gate --data ~/memd-data
      memd bench gate --grades memd-gate/gate.md
      memd bench all --data ~/memd-data --save results.json --html report.html
      memd bench --from monday.json --from today.json --markdown BENCHMARKS.md
    """
    with CommandAnswer("bench", as_json) as answer:
        options = BenchOptions(
            data=data.absolute() if data else None,
            quick=quick,
            seed=seed,
            tier=tier,
            sheet=sheet.absolute() if sheet else None,
            grades=grades,
            remote=remote,
        )
        report = reports.load(saved) if saved else _measured(names or (), options, save, as_json)
        if save and saved:
            reports.save(report, save)
        if html:
            from ..bench.html_report import page

            reports.write(html, page(report))
        if pictures:
            _draw(report, pictures)
        if markdown:
            reports.write(markdown, reports.markdown(report))
        answer.give(report)
        if not as_json:
            if saved and not (save or html or markdown or pictures):
                for part in report.parts:
                    say([*part_lines(part), ""])
            say([verdict(report)])
    if grades and any(part.missed or part.failed for part in report.parts if part.group == "gate"):
        raise typer.Exit(1)  # the gate was missed, or its sheet has no verdict


def _measured(names: Sequence[str], options: BenchOptions, save: Path | None, as_json: bool) -> Report:
    """Measure; print and save each part as soon as it is done, because a run may take hours and be interrupted."""
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
                say([*part_lines(part), ""])
    return reports.report(done)


def _draw(report: Report, folder: Path) -> None:
    """Write each picture of curves as an SVG file that has the name of the part that measured it."""
    from ..bench.html_report import picture

    folder.mkdir(parents=True, exist_ok=True)
    for part in report.parts:
        for number_of, over in enumerate(dict.fromkeys(curve.over for curve in part.curves)):
            name = f"{part.group}-{part.name}{f'-{number_of + 1}' if number_of else ''}.svg"
            reports.write(folder / name, picture(over, [curve for curve in part.curves if curve.over == over]))


def part_lines(part: PartResult) -> Iterator[str]:
    """A part in lines: figures in columns, notes, and the limits of the measurement."""
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


def verdict(report: Report) -> str:
    """One line about all parts."""
    held = report.held
    missed = [f"{part.group}/{part.name}: {figure.name.strip()}" for part, figure in report.missed]
    words = f"{len(held) - len(missed)} of {len(held)} targets met" if held else "no part here has a target"
    words += f"; missed: {', '.join(missed)}" if missed else ""
    for kind in ("failed", "skipped"):
        names = [part.name for part in report.parts if getattr(part, kind)]
        words += f"; {kind}: {', '.join(names)}" if names else ""
    return words
