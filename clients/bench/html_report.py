"""A report as one HTML page that loads nothing; plots are inline SVG, and all text that comes from data is escaped."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from html import escape
from itertools import pairwise
from pathlib import Path

from .measurement import Curve, Figure, PartResult, TradeOff, pareto_front
from .report import Report, number, run_details, table, value_as_targeted

STYLE = Path(__file__).with_name("report.css")
FOLDED = 5  # a part with more notes than this shows them folded
LEFT, TOP = 64, 34
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
    yield from _trade_offs(content)
    yield from _curves(content)
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


def _text(x: float, y: float, text: str, kind: str) -> str:
    return f'<text class="{kind}" x="{x}" y="{y}">{escape(text)}</text>'


def _short(value: float) -> str:
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return f"{value / size:g}{letter}"
    return f"{value:.3g}"


# --- accuracy, tokens and latency ------------------------------------------------------------------------------------
PANEL, GAP, TALL, ROW = 380, 40, 330, 20
COLUMNS = 2
"""Pixels: the width of a panel, the space between two, their height, a row of the legend; and columns of that."""


def _trade_offs(content: Report) -> Iterator[str]:
    """A picture for each set of questions, of the points of all parts."""
    pictures: dict[str, list[TradeOff]] = {}
    for part in content.parts:
        for point in part.trade_offs:
            if point.tokens > 0:
                pictures.setdefault(point.over, []).append(point)
    if pictures:
        yield '<h2>Accuracy, tokens and latency</h2><section><p class="dim">Dashed: the Pareto front, the ways than'
        yield "which no other is both cheaper and more accurate. Each point stands in a table below.</p>"
        yield from (trade_off_svg(over, points) for over, points in pictures.items())
        yield "</section>"


def trade_off_svg(over: str, points: Sequence[TradeOff]) -> str:
    """One `<svg>` with accuracy by tokens and, beside it, by latency, with the Pareto front of each."""
    series = {name: place for place, name in enumerate(dict.fromkeys(point.series for point in points))}
    up = Axis([point.accuracy for point in points], TOP + TALL, TOP, False)
    width, bottom = LEFT + 2 * PANEL + GAP + 16, TOP + TALL
    height = bottom + HEIGHT_BELOW + math.ceil(len(series) / COLUMNS) * ROW
    drawn = [_text(LEFT, 18, over, "title")]
    for place, (label, cost) in enumerate(_COSTS):
        priced = [point for point in points if cost(point) > 0]
        if not priced:
            continue
        left = LEFT + place * (PANEL + GAP)
        across = Axis([cost(point) for point in priced], left, left + PANEL, True)
        drawn += _panel_frame(across, up, (left, bottom), label, is_first=place == 0)
        front = pareto_front(priced, cost)
        drawn.append(_step_line([(across(cost(point)), up(point.accuracy)) for point in front]))
        for name, of_series in series.items():
            line = [point for point in priced if point.series == name]
            colour = COLOURS[of_series % len(COLOURS)]
            path = " ".join(f"{across(cost(point))},{up(point.accuracy)}" for point in line)
            drawn.append(f'<polyline fill="none" stroke="{colour}" stroke-opacity=".45" points="{path}"/>')
            drawn += [_mark(of_series, across(cost(point)), up(point.accuracy), _described(point)) for point in line]
        drawn += _front_labels([(across(cost(point)), up(point.accuracy), point) for point in front], left + PANEL)
    for name, of_series in series.items():
        row, column = divmod(of_series, COLUMNS)
        x, y = LEFT + column * (width - LEFT) / COLUMNS, bottom + HEIGHT_BELOW + row * ROW
        variants = [point.variant for point in points if point.series == name and point.variant]
        drawn += [_mark(of_series, x + 5, y - 4, ""), _text(x + 16, y, _legend(name, variants), "label")]
    head = f'<svg class="broad" viewBox="0 0 {width} {height}" role="img" aria-label="{escape(over)}">'
    return "\n".join([head, *drawn, "</svg>"])


HEIGHT_BELOW = 64
"""Pixels from the panels to the first row of the legend."""

_COSTS: tuple[tuple[str, Callable[[TradeOff], float]], ...] = (
    ("tokens for a question, mean", lambda point: point.tokens),
    ("latency in ms, p50", lambda point: point.latency_ms),
)


def _panel_frame(across: Axis, up: Axis, corner: tuple[int, int], label: str, is_first: bool) -> Iterator[str]:
    """The grid of a panel whose lower left corner is `corner`, with its texts."""
    left, bottom = corner
    for tick in up.ticks:
        yield f'<line class="grid" x1="{left}" x2="{left + PANEL}" y1="{up(tick)}" y2="{up(tick)}"/>'
        if is_first:
            yield _text(left - 6, up(tick) + 4, _short(tick), "tick end")
    for tick in across.ticks:
        yield f'<line class="grid" y1="{TOP}" y2="{bottom}" x1="{across(tick)}" x2="{across(tick)}"/>'
        yield _text(across(tick), bottom + 16, _short(tick), "tick middle")
    yield _text(left + PANEL / 2, bottom + 36, label, "label middle")
    if is_first:
        middle = (TOP + bottom) / 2
        yield f'<g transform="rotate(-90 14 {middle})">{_text(14, middle, "accuracy", "label middle")}</g>'


def _step_line(corners: Sequence[tuple[float, float]]) -> str:
    """The border of what the front's points dominate, as steps."""
    steps = [f"{corners[0][0]},{corners[0][1]}"]
    for (_, before), (x, y) in pairwise(corners):
        steps += [f"{x},{before}", f"{x},{y}"]
    return f'<polyline class="front" points="{" ".join(steps)}"/>'


def _mark(of_series: int, x: float, y: float, title: str) -> str:
    """A circle of the series' colour; a square once the colours are used up."""
    colour, inside = COLOURS[of_series % len(COLOURS)], f"<title>{escape(title)}</title>" if title else ""
    if of_series < len(COLOURS):
        return f'<circle cx="{x}" cy="{y}" r="5" fill="{colour}">{inside}</circle>'
    return f'<rect x="{x - 5}" y="{y - 5}" width="10" height="10" fill="{colour}">{inside}</rect>'


def _front_labels(front: Sequence[tuple[float, float, TradeOff]], right: float) -> Iterator[str]:
    """The names of the front's points below their right, or below their left near the panel's end, without overlap."""
    last = -math.inf
    for x, y, point in reversed(front):
        at = max(y + 15, last + 13)
        is_near_end = x + 8 + 7 * len(point.name) > right
        yield _text(x - 8 if is_near_end else x + 8, at, point.name, "tick end" if is_near_end else "tick")
        last = at


def _described(point: TradeOff) -> str:
    latency = f", {number(point.latency_ms)} ms" if point.latency_ms else ""
    return f"{point.name}: accuracy {number(point.accuracy)}, {number(point.tokens)} tokens{latency}"


def _legend(name: str, variants: Sequence[str]) -> str:
    """A series, and its variants in their order with the word that they share once: `BM25, top 3, 5, 10`."""
    first, last = variants[:1], variants[-1:]
    if all(variant.endswith(" tokens") for variant in variants):
        return ", ".join([name, *(variant.removesuffix(" tokens") for variant in variants[:-1]), *last])
    return ", ".join([name, *first, *(variant.removeprefix("top ") for variant in variants[1:])])


# --- shares over days ------------------------------------------------------------------------------------------------
WIDE, LEGEND = 620, 22
"""Pixels: the width of a picture of curves, and the height of a row of its legend."""


def _curves(content: Report) -> Iterator[str]:
    for over, curves in pictures(content).items():
        yield f"<section><h3>{escape(over)}</h3>{curve_svg(over, curves)}</section>"


def pictures(content: Report) -> dict[str, list[Curve]]:
    """Return the curves of a report by picture."""
    found: dict[str, list[Curve]] = {}
    for part in content.parts:
        for curve in part.curves:
            found.setdefault(curve.over, []).append(curve)
    return found


def curve_svg(over: str, curves: Sequence[Curve], style: str = "") -> str:
    """One `<svg>` with shares by day, or what the curves measure. `style`: rules for a picture that stands alone."""
    bottom = TOP + TALL // 2
    across = Axis([day for curve in curves for day, _ in curve.points], LEFT, WIDE - 16, False)
    highest = max(value for curve in curves for _, value in curve.points) if curves[0].unit else 1.0
    up = Axis([0.0, highest], bottom, TOP, False)
    drawn = [_text(LEFT, 18, over, "title")]
    for tick in up.ticks:
        drawn.append(f'<line class="grid" x1="{LEFT}" x2="{WIDE - 16}" y1="{up(tick)}" y2="{up(tick)}"/>')
        drawn.append(_text(LEFT - 6, up(tick) + 4, _short(tick), "tick end"))
    drawn += [_text(across(tick), bottom + 16, _short(tick), "tick middle") for tick in across.ticks]
    drawn.append(_text((LEFT + WIDE) / 2, bottom + 36, curves[0].across, "label middle"))
    for number_of, curve in enumerate(curves):
        colour = COLOURS[number_of % len(COLOURS)]
        path = " ".join(f"{across(day)},{up(value)}" for day, value in curve.points)
        dash = ' stroke-dasharray="6 4"' if number_of % 2 else ""
        drawn.append(f'<polyline fill="none" stroke="{colour}" stroke-width="2"{dash} points="{path}"/>')
        for day, value in curve.points:
            drawn.append(
                _mark(
                    number_of,
                    across(day),
                    up(value),
                    f"{curve.series}, {curve.across} {day:g}: {number(value)} {curve.unit}".strip(),
                )
            )
        row, column = divmod(number_of, COLUMNS)
        x, y = LEFT + column * (WIDE - LEFT) / COLUMNS, bottom + HEIGHT_BELOW + row * LEGEND
        drawn += [_mark(number_of, x + 5, y - 4, ""), _text(x + 16, y, curve.series, "label")]
    height = bottom + HEIGHT_BELOW + math.ceil(len(curves) / COLUMNS) * LEGEND
    size = f'viewBox="0 0 {WIDE} {height}" role="img" aria-label="{escape(over)}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size}>'
    return "\n".join([head, *([f"<style>{style}</style>"] if style else []), *drawn, "</svg>"])


ALONE = """
text { fill: #6b7280; font: 12px system-ui, sans-serif } .title { fill: #374151; font-weight: 600; font-size: 13px }
.middle { text-anchor: middle } .end { text-anchor: end } .grid { stroke: #d1d5db }
"""
"""The style of a picture outside of a page: colours that stand on light and on dark paper."""


def picture(over: str, curves: Sequence[Curve]) -> str:
    """Return a picture of curves as a file of its own."""
    return curve_svg(over, curves, ALONE) + "\n"
