"""A report as one HTML page that loads nothing; plots are inline SVG, and all text that comes from data is escaped."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from html import escape
from itertools import cycle
from pathlib import Path

from .measurement import Figure, PartResult, Plot
from .report import Report, run_details, table, value_as_targeted

STYLE = Path(__file__).with_name("report.css")
FOLDED = 5  # a part with more notes than this shows them folded
WIDTH, HEIGHT = 640, 320
LEFT, RIGHT, TOP, BOTTOM = 64, 150, 34, 46
TICKS = 5
COLOURS = ("#2563eb", "#dc2626", "#059669", "#d97706", "#7c3aed", "#0891b2", "#be185d", "#4d7c0f")


def page(content: Report) -> str:
    return "\n".join(_page(content)) + "\n"


def _page(content: Report) -> Iterator[str]:
    yield '<!doctype html>\n<html lang="en">\n<meta charset="utf-8">'
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">'
    style = STYLE.read_text(encoding="utf-8")
    yield f"<title>memd: benchmarks</title>\n<style>\n{style}</style>\n<h1>memd: benchmarks</h1>"
    dates = sorted({part.at for part in content.parts if part.at})
    versions = sorted({part.version for part in content.parts if part.version})
    when = " – ".join(dict.fromkeys([dates[0], dates[-1]])) if dates else ""
    for line in (when, ", ".join(versions), str(content.machine)):
        yield f'<p class="dim">{escape(line)}</p>'
    yield from _summary(content)
    group = ""
    for part in content.parts:
        if part.group != group:
            group = part.group
            yield f"<h2>{escape(group)}</h2>"
        yield from _section(part)
    yield "<footer>Made by <code>memd bench --html</code>. Repeat a part: memd bench GROUP/PART.</footer>\n</html>"


def _summary(content: Report) -> Iterator[str]:
    held, missed = content.held, content.missed
    yield f'<p class="sum"><b>{len(held) - len(missed)} of {len(held)}</b> targets met.</p>'
    if missed:
        yield "<ul>"
        for part, figure in missed:
            name = escape(f"{part.group}/{part.name}")
            value = f'<span class="missed">{escape(value_as_targeted(figure))}</span>'
            target = escape(str(figure.target))
            yield f'<li><a href="#{name}">{name}</a>: {escape(figure.name.strip())}: {value}, target {target}</li>'
        yield "</ul>"


def _section(part: PartResult) -> Iterator[str]:
    yield f'<section id="{escape(f"{part.group}/{part.name}")}"><h3>{escape(part.name)}</h3><p>{escape(part.what)}</p>'
    if reason := part.skipped or part.failed:
        kind = "Not measured" if part.skipped else "Failed"
        yield f'<p class="{"dim" if part.skipped else "missed"}">{kind}: {escape(reason)}</p>'
    if part.figures:
        yield from _table(part.figures)
    yield from filter(None, map(svg, part.plots))
    if part.notes:
        notes = f"<ul>{''.join(f'<li>{escape(note)}</li>' for note in part.notes)}</ul>"
        if len(part.notes) > FOLDED:
            notes = f"<details><summary>{len(part.notes)} notes</summary>{notes}</details>"
        yield notes
    if part.shows_not:
        yield f'<p class="dim">Does not show: {escape(part.shows_not)}.</p>'
    size = ", at the small size" if part.quick else ""
    yield f'<p class="dim">{escape(run_details(part))}{size}</p></section>'


def _table(figures: tuple[Figure, ...]) -> Iterator[str]:
    titles, *rows = table(figures)
    cells = "".join(f'<th class="number">{title}</th>' for title in titles[1:-2])
    yield f'<div class="wide"><table><tr><th>figure</th>{cells}<th>target</th><th></th></tr>'
    for figure, (name, *numbers, target, met) in zip(figures, rows, strict=True):
        cells = "".join(f'<td class="number">{escape(value)}</td>' for value in numbers)
        kind = ' class="sub"' if figure.name.startswith(" ") else ""
        row = f"<td>{escape(name)}</td>{cells}<td>{escape(target)}</td>"
        yield f'<tr{kind}>{row}<td class="{met}">{met}</td></tr>'
    yield "</table></div>"


# --- plots -----------------------------------------------------------------------------------------------------------
class Axis:
    """Maps values to pixels, with ticks at round values."""

    def __init__(self, values: Sequence[float], start: float, end: float, log: bool) -> None:
        self._log, self._start, self._end = log, start, end
        low, high = min(values), max(values)
        if log:
            self._low, self._high = math.floor(math.log10(low)), math.ceil(math.log10(high))
            self._high += self._high == self._low
            self.ticks = [10.0**power for power in range(int(self._low), int(self._high) + 1)]
        else:
            span = (high - min(low, 0.0)) or 1.0
            power = 10.0 ** math.floor(math.log10(span / TICKS))
            step = next(power * factor for factor in (1, 2, 5, 10) if power * factor * TICKS >= span)
            first, last = math.floor(min(low, 0.0) / step), math.ceil(high / step)
            self.ticks = [step * n for n in range(first, max(last, first + 1) + 1)]
            self._low, self._high = self.ticks[0], self.ticks[-1]

    def __call__(self, value: float) -> float:
        at = math.log10(value) if self._log else value
        return round(self._start + (at - self._low) / (self._high - self._low) * (self._end - self._start), 1)


def svg(plot: Plot) -> str:
    """The plot as one `<svg>`, "" if no point can be drawn: not finite, or not positive on a logarithmic axis."""
    points = [
        (name, colour, x, y)
        for (name, of_series), colour in zip(plot.series.items(), cycle(COLOURS), strict=False)
        for x, y in of_series
        if math.isfinite(x) and math.isfinite(y) and (x > 0 or not plot.log_x)
    ]
    if not points:
        return ""
    across = Axis([x for _, _, x, _ in points], LEFT, WIDTH - RIGHT, plot.log_x)
    up = Axis([y for *_, y in points], HEIGHT - BOTTOM, TOP, False)
    drawn = list(_frame(plot, across, up))
    for name, colour, x, y in points:
        label = escape(f"{name}: {_short(x)}, {_short(y)}")
        drawn.append(f'<circle cx="{across(x)}" cy="{up(y)}" r="5" fill="{colour}"><title>{label}</title></circle>')
        drawn.append(_text(across(x) + 9, up(y) + 4, name, "tick"))
    head = f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(plot.title)}">'
    return "\n".join([head, *drawn, "</svg>"])


def _frame(plot: Plot, across: Axis, up: Axis) -> Iterator[str]:
    yield _text(LEFT, 18, plot.title, "title")
    for tick in up.ticks:
        yield f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{up(tick)}" y2="{up(tick)}"/>'
        yield _text(LEFT - 6, up(tick) + 4, _short(tick), "tick end")
    for tick in across.ticks:
        yield f'<line class="grid" y1="{TOP}" y2="{HEIGHT - BOTTOM}" x1="{across(tick)}" x2="{across(tick)}"/>'
        yield _text(across(tick), HEIGHT - BOTTOM + 16, _short(tick), "tick middle")
    yield _text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 8, plot.x, "label middle")
    middle = (TOP + HEIGHT - BOTTOM) / 2
    yield f'<g transform="rotate(-90 14 {middle})">{_text(14, middle, plot.y, "label middle")}</g>'


def _text(x: float, y: float, text: str, kind: str) -> str:
    return f'<text class="{kind}" x="{x}" y="{y}">{escape(text)}</text>'


def _short(value: float) -> str:
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return f"{value / size:g}{letter}"
    return f"{value:.3g}"
