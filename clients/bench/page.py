"""A report as one HTML page that needs nothing but itself: no network, no script, no font from elsewhere.

Comes in: a report. Goes out: text of a page. Invariant: whatever comes from data is escaped.
"""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from .figure import Figure
from .part import Part
from .plot import svg
from .report import Report, interval, mark, number, told

STYLE = """
:root { color-scheme: light dark; --ink: #1f2430; --dim: #6b7280; --line: #e3e6ec; --paper: #fff; --card: #fafbfc;
  --good: #047857; --bad: #b91c1c; }
@media (prefers-color-scheme: dark) { :root { --ink: #e5e7eb; --dim: #9ca3af; --line: #2d3340; --paper: #14171d;
  --card: #1a1e26; --good: #34d399; --bad: #f87171; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 2.5rem 1.25rem 4rem; max-width: 62rem; background: var(--paper); color: var(--ink);
  font: 15px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.7rem; margin: 0 0 .25rem; }
h2 { font-size: 1.2rem; margin: 2.6rem 0 .5rem; text-transform: capitalize; }
h3 { font-size: 1rem; margin: 0; }
p { margin: .3rem 0; }
section { border: 1px solid var(--line); border-radius: 10px; background: var(--card); padding: 1rem 1.1rem;
  margin: .9rem 0; }
.dim, footer { color: var(--dim); font-size: .87rem; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; margin: .7rem 0 .4rem; font-variant-numeric: tabular-nums; }
th, td { padding: .28rem .6rem .28rem 0; border-bottom: 1px solid var(--line); text-align: left; vertical-align: top; }
th { color: var(--dim); font-weight: 500; font-size: .82rem; }
.number { text-align: right; white-space: nowrap; }
.sub td:first-child { padding-left: 1rem; color: var(--dim); }
.met { color: var(--good); font-weight: 600; }
.missed { color: var(--bad); font-weight: 600; }
.sum { font-size: 1.1rem; margin: 1rem 0; }
ul { margin: .4rem 0; padding-left: 1.2rem; font-size: .9rem; overflow-wrap: anywhere; }
details summary { cursor: pointer; color: var(--dim); font-size: .9rem; }
svg { width: 100%; max-width: 44rem; height: auto; margin: .6rem 0; }
svg text { fill: var(--dim); font: 12px system-ui, sans-serif; }
svg .title { fill: var(--ink); font-weight: 600; font-size: 13px; }
svg .middle { text-anchor: middle; }
svg .end { text-anchor: end; }
svg .grid { stroke: var(--line); }
"""
FOLDED = 5
"""More notes than that are shown when they are asked for."""


def page(found: Report) -> str:
    """The report as a page."""
    return "\n".join(_page(found)) + "\n"


def _page(found: Report) -> Iterator[str]:
    size = found.machine
    yield '<!doctype html>\n<html lang="en">\n<meta charset="utf-8">'
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">'
    yield f"<title>memd: benchmarks</title>\n<style>{STYLE}</style>\n<h1>memd: benchmarks</h1>"
    dates = sorted({part.at for part in found.parts if part.at})
    versions = sorted({part.version for part in found.parts if part.version})
    when = " – ".join(dict.fromkeys([dates[0], dates[-1]])) if dates else ""
    machine = f"{size.processor}, {size.cores} cores, {size.memory_gb:g} GB, {size.system}, Python {size.python}"
    for line in (when, ", ".join(versions), machine):
        yield f'<p class="dim">{escape(line)}</p>'
    yield from _summary(found)
    group = ""
    for part in found.parts:
        if part.group != group:
            group = part.group
            yield f"<h2>{escape(group)}</h2>"
        yield from _section(part)
    yield "<footer>Made by <code>memd bench --html</code>. Every figure can be measured again: memd bench GROUP/PART."
    yield "</footer>\n</html>"


def _summary(found: Report) -> Iterator[str]:
    held, missed = found.held, found.missed
    yield f'<p class="sum"><b>{len(held) - len(missed)} of {len(held)}</b> targets met.</p>'
    if missed:
        yield "<ul>"
        for part, figure in missed:
            where = f"{part.group}-{part.name}"
            where = f"{part.group}/{part.name}"
            link = f'<a href="#{escape(where)}">{escape(where)}</a>: {escape(figure.name.strip())}'
            against = f"target {escape(str(figure.target))}"
            yield f'<li>{link}: <span class="missed">{escape(told(figure))}</span>, {against}</li>'
        yield "</ul>"


def _section(part: Part) -> Iterator[str]:
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
    took = f"{part.at}, {part.version}, load {part.load[0]:g} → {part.load[1]:g}, {part.seconds:,.0f} s"
    yield f'<p class="dim">{escape(took)}{", at the small size" if part.quick else ""}</p></section>'


def _table(figures: tuple[Figure, ...]) -> Iterator[str]:
    floors = any(figure.floor for figure in figures)
    head = ["value", *(("floor", "ratio") if floors else ()), "95 % interval", "samples"]
    cells = "".join(f'<th class="number">{each}</th>' for each in head)
    yield f'<div class="wide"><table><tr><th>figure</th>{cells}<th>target</th><th></th></tr>'
    for figure in figures:
        values = [f"{number(figure.value)} {figure.unit}"]
        if floors:
            values += [f"{number(figure.floor)} {figure.unit}", f"{figure.ratio:.1f} ×"] if figure.floor else ["", ""]
        values += [interval(figure), f"{figure.samples:,}"]
        row = "".join(f'<td class="number">{escape(each)}</td>' for each in values)
        kind = ' class="sub"' if figure.name.startswith(" ") else ""
        met = mark(figure)
        yield (
            f"<tr{kind}><td>{escape(figure.name.strip())}</td>{row}<td>{escape(str(figure.target or ''))}</td>"
            f'<td class="{met}">{met}</td></tr>'
        )
    yield "</table></div>"
