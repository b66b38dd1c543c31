"""Plots as inline SVG: lines or named points on linear or logarithmic axes, nothing from outside.

Comes in: a `Plot`. Goes out: one `<svg>` element. Invariants: no script, no link, no font from elsewhere; every word is
escaped; what can't be drawn (nothing finite, or nothing positive on a logarithmic axis) is left out.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from html import escape
from itertools import cycle

from .part import Plot

WIDTH, HEIGHT = 640, 320
LEFT, RIGHT, TOP, BOTTOM = 64, 150, 34, 46
TICKS = 5
COLOURS = ("#2563eb", "#dc2626", "#059669", "#d97706", "#7c3aed", "#0891b2", "#be185d", "#4d7c0f")


class Axis:
    """From values to pixels, with ticks at round values."""

    def __init__(self, values: Sequence[float], start: float, end: float, log: bool) -> None:
        self._log, self._start, self._end = log, start, end
        low, high = min(values), max(values)
        if log:
            self._low, self._high = math.floor(math.log10(low)), math.ceil(math.log10(high))
            self._high += self._high == self._low
            self.ticks = [10.0**power for power in range(int(self._low), int(self._high) + 1)]
        else:
            step = _round_step((high - min(low, 0.0)) or 1.0)
            first, last = math.floor(min(low, 0.0) / step), math.ceil(high / step)
            self.ticks = [step * n for n in range(first, max(last, first + 1) + 1)]
            self._low, self._high = self.ticks[0], self.ticks[-1]

    def __call__(self, value: float) -> float:
        """The pixel of a value."""
        at = math.log10(value) if self._log else value
        return round(self._start + (at - self._low) / (self._high - self._low) * (self._end - self._start), 1)


def _round_step(span: float) -> float:
    power = 10.0 ** math.floor(math.log10(span / TICKS))
    return next(power * each for each in (1, 2, 5, 10) if power * each * TICKS >= span)


def svg(plot: Plot) -> str:
    """The plot as one element, "" where there is nothing to draw."""
    series = {name: [point for point in points if _is_drawable(plot, *point)] for name, points in plot.series.items()}
    series = {name: points for name, points in series.items() if points}
    if not series:
        return ""
    points = [point for each in series.values() for point in each]
    across = Axis([x for x, _ in points], LEFT, WIDTH - RIGHT, plot.log_x)
    up = Axis([y for _, y in points], HEIGHT - BOTTOM, TOP, plot.log_y)
    drawn = [*_frame(plot, across, up), *(_points if plot.scattered else _lines)(series, across, up)]
    head = f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(plot.title)}">'
    return "\n".join([head, *drawn, "</svg>"])


def _is_drawable(plot: Plot, x: float, y: float) -> bool:
    return math.isfinite(x) and math.isfinite(y) and (x > 0 or not plot.log_x) and (y > 0 or not plot.log_y)


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


def _lines(series: dict[str, list[tuple[float, float]]], across: Axis, up: Axis) -> Iterator[str]:
    for row, ((name, points), colour) in enumerate(zip(series.items(), cycle(COLOURS), strict=False)):
        path = " ".join(f"{across(x)},{up(y)}" for x, y in points)
        yield f'<polyline fill="none" stroke="{colour}" stroke-width="2" points="{path}"/>'
        yield from (_dot(across(x), up(y), colour, f"{name}: {_short(x)}, {_short(y)}") for x, y in points)
        yield f'<rect x="{WIDTH - RIGHT + 14}" y="{TOP + row * 18}" width="10" height="10" fill="{colour}"/>'
        yield _text(WIDTH - RIGHT + 30, TOP + row * 18 + 9, name, "tick")


def _points(series: dict[str, list[tuple[float, float]]], across: Axis, up: Axis) -> Iterator[str]:
    for (name, points), colour in zip(series.items(), cycle(COLOURS), strict=False):
        for x, y in points:
            yield _dot(across(x), up(y), colour, f"{name}: {_short(x)}, {_short(y)}", 5)
            yield _text(across(x) + 9, up(y) + 4, name, "tick")


def _dot(x: float, y: float, colour: str, words: str, radius: float = 3) -> str:
    return f'<circle cx="{x}" cy="{y}" r="{radius}" fill="{colour}"><title>{escape(words)}</title></circle>'


def _text(x: float, y: float, words: str, kind: str) -> str:
    return f'<text class="{kind}" x="{x}" y="{y}">{escape(words)}</text>'


def _short(value: float) -> str:
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return f"{value / size:g}{letter}"
    return f"{value:.3g}"
