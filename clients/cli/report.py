"""`memd report`: what happened in a week and what needs you (G6)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import date, timedelta
from html import escape
from pathlib import Path
from typing import Annotated

import typer

from ...protocol.errors import InvalidRequest
from ...protocol.weekly_report import TITLES, UNDECIDED, ReportLine, ReportSection, WeeklyReport
from .connection import PATIENCE_MS, reach
from .output import CommandAnswer, JsonFlag, plain
from .wording import count

app = typer.Typer(rich_markup_mode=None, add_completion=False)

_MARKS = str.maketrans({"<": "\\<", "`": "'", "*": "\\*"})
"""Characters of captured text that Markdown would read as marks."""

_CODE = re.compile("`([^`]+)`")
_STYLE = """
:root { color-scheme: light dark; --ink: #1d1c1a; --paper: #faf8f4; --dim: #625e56; --line: #e5e0d6; --own: #1f6f5c }
@media (prefers-color-scheme: dark) {
  :root { --ink: #eeeae2; --paper: #151412; --dim: #aba498; --line: #312e29; --own: #7cc7ae }
}
body { font: 16px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper);
  max-width: 46rem; margin: 2rem auto; padding: 0 1.2rem }
h1 { font-size: 1.5rem; margin-bottom: .2rem } h2 { font-size: 1.05rem; margin: 1.6rem 0 .4rem }
p { color: var(--dim); margin: 0 } ul { margin: 0; padding-left: 1.2rem }
li { margin: .3rem 0; overflow-wrap: anywhere }
.needs { border-left: 4px solid var(--own); padding-left: 1rem }
code { font: .88em ui-monospace, monospace; border: 1px solid var(--line); border-radius: 5px; padding: 1px 5px }
"""


@app.command()
def report(
    week: Annotated[str, typer.Option(help="An ISO week such as 2026-W47; by default the present one.")] = "",
    out: Annotated[Path | None, typer.Option(help="Write the report into this file.")] = None,
    as_html: Annotated[bool, typer.Option("--html", help="As one HTML file that loads nothing.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Show what happened in a week, and what needs you.

    The report is Markdown of at most 60 lines. A section without lines is left out.

    \b
    Examples:
      memd report
      memd report --week 2026-W47
      memd report --html --out week.html
    """
    with CommandAnswer("report", as_json) as answer, reach(PATIENCE_MS) as client:
        told = client.report(week)
        text = html(told) if as_html else "\n".join(markdown(told)) + "\n"
        if out is None:
            answer.give(told, text.splitlines())
            return
        try:
            out.write_text(text, encoding="utf-8")
        except OSError as error:
            raise InvalidRequest(f"{out} can't be written: {error.strerror}", hint="name another file") from error
        answer.give(told, [f"wrote {plain(str(out))}"])


def markdown(told: WeeklyReport) -> Iterator[str]:
    """Yield the lines of a report as Markdown, at most 60."""
    if not told.sections:
        yield f"# Week {told.week}, {_period(told)}: nothing happened, and nothing needs you."
        return
    yield f"# Week {told.week}, {_period(told)}"
    for section in told.sections:
        yield ""
        yield f"## {_title(section)}"
        for line in section.lines:
            command = f" · `{plain(line.command)}`" if line.command else ""
            yield f"{'  ' * line.level}- {_escaped(line.text)}{command}"
        if section.name == "needs":
            yield from ("", UNDECIDED)


def _escaped(text: str) -> str:
    return plain(text).translate(_MARKS).replace("](", "]\\(")


def html(told: WeeklyReport) -> str:
    """Return a report as one HTML page without scripts, whose policy forbids it to load anything."""
    policy = "default-src 'none'; style-src 'unsafe-inline'"
    head = f'<meta charset="utf-8"><meta http-equiv="Content-Security-Policy" content="{policy}">'
    head += '<meta name="viewport" content="width=device-width, initial-scale=1">'
    title = f"memd, week {told.week}"
    lead = _period(told) if told.sections else f"{_period(told)}: nothing happened, and nothing needs you."
    body = "\n".join(map(_section, told.sections))
    return (
        f'<!doctype html>\n<html lang="en"><head>{head}<title>{title}</title><style>{_STYLE}</style></head>\n'
        f"<body><h1>Week {told.week}</h1><p>{lead}</p>\n{body}\n</body></html>\n"
    )


def _section(section: ReportSection) -> str:
    items = "\n".join(f"<li>{_words(line)}{_list(below)}</li>" for line, below in _groups(section.lines))
    note = _CODE.sub(r"<code>\1</code>", f"<p>{UNDECIDED}</p>") if section.name == "needs" else ""
    return f'<section class="{section.name}"><h2>{escape(_title(section))}</h2><ul>\n{items}\n</ul>{note}</section>'


def _groups(lines: Sequence[ReportLine]) -> list[tuple[ReportLine, list[ReportLine]]]:
    """Return each line with those that belong to it."""
    groups: list[tuple[ReportLine, list[ReportLine]]] = []
    for line in lines:
        if line.level and groups:
            groups[-1][1].append(line)
        else:
            groups.append((line, []))
    return groups


def _list(lines: Sequence[ReportLine]) -> str:
    items = "".join(f"<li>{_words(line)}</li>" for line in lines)
    return f"<ul>{items}</ul>" if items else ""


def _words(line: ReportLine) -> str:
    command = f" <code>{escape(plain(line.command))}</code>" if line.command else ""
    return f"{escape(plain(line.text))}{command}"


def _title(section: ReportSection) -> str:
    title = TITLES[section.name]
    more = f" ({count(section.more, 'line')} more)" if section.more else ""
    return f"{title}{more}"


def _period(told: WeeklyReport) -> str:
    """The days of a week: "16–22 November 2026"."""
    first = date.fromisoformat(told.since[:10])
    last = date.fromisoformat(told.until[:10]) - timedelta(days=1)
    end = f"{last.day} {last:%B} {last.year}"
    if first.year != last.year:
        return f"{first.day} {first:%B} {first.year} – {end}"
    return f"{first.day}–{end}" if first.month == last.month else f"{first.day} {first:%B} – {end}"
