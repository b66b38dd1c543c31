"""`memd history`, `memd timeline`, `memd correct`: how a belief and a subject changed, and what is right instead.

Comes in: a record or a subject. Goes out: versions and periods on both timelines (T1, Q12).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

import typer

from ...protocol.instant import day
from ...protocol.lifetime import History, RecordList, Version
from ...protocol.record import Record
from .contact import here, instant, reach
from .output import Answer, JsonFlag, plain, styled, wrapped
from .wording import age, count, short, state, who

app = typer.Typer(rich_markup_mode=None, add_completion=False)

Id = Annotated[str, typer.Argument(help="The record's id, or its beginning.")]


@app.command()
def history(id: Id, as_json: JsonFlag = False) -> None:
    """Show every version of a record: what it said, from when to when memd believed it, and why it changed.

    \b
    Example:
      memd history 7q3hjwch
    """
    with Answer("history", as_json) as answer, reach() as client:
        told = client.history(id)
        answer.give(told, _history_lines(told))


@app.command()
def timeline(
    subject: Annotated[str, typer.Argument(help="A key such as user.editor, or words.")],
    cwd: Annotated[str | None, typer.Option(help="The folder whose project is meant, if not the current one.")] = None,
    pool: Annotated[list[str] | None, typer.Option("--pool", help="Only this pool; repeatable.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=500, help="At most this many records.")] = 50,
    as_json: JsonFlag = False,
) -> None:
    """Show what was true of a subject when, in order: also what no longer is.

    \b
    Examples:
      memd timeline "database"
      memd timeline user.editor --pool personal
    """
    with Answer("timeline", as_json) as answer, reach() as client:
        told = client.timeline(subject, here(cwd), pools=pool or (), limit=limit)
        answer.give(told, _timeline_lines(told))


@app.command()
def correct(
    old: Annotated[str, typer.Argument(help="The wrong record's id, or its beginning.")],
    new: Annotated[str, typer.Argument(help="What is right, as a whole sentence.")],
    since: Annotated[str, typer.Option(help="It was right until then: a day, or RFC 3339. Else it never was.")] = "",
    as_json: JsonFlag = False,
) -> None:
    """Say that a record is wrong, and what is right: it is retired and stays in the history.

    To put it into other words only, use `memd edit`.

    \b
    Examples:
      memd correct 7q3hjwch "The team deploys on Thursdays."
      memd correct 7q3hjwch "The team deploys on Fridays." --since 2026-03-01
    """
    with Answer("correct", as_json) as answer, reach() as client:
        told = client.correct(old, new, since=instant(since))
        replaced = short(told.record.supersedes[0]) if told.record.supersedes else old
        lines = [f"{styled(short(told.record.id), 'cyan')} replaces {replaced}", plain(told.record.description)]
        session = told.record.provenance.spans[0].document
        answer.give(told, [*lines, f"take it back: memd undo {plain(session)}"])


def _history_lines(told: History) -> Iterator[str]:
    signal = told.record.signal
    yield from (styled(line, "bold") for line in wrapped(plain(told.record.description)))
    used = f"used {count(signal.access_count, 'time')}, brought up {count(signal.candidate_count, 'time')}"
    yield f"{state(told.record.status)} · {used} · strength {signal.strength:.2f} · level {signal.level}"
    said = ""
    for version in told.versions:
        yield from _version_lines(version, said)
        said = version.record.content if version.record else ""
    if told.record.superseded_by:
        yield f"replaced by {short(told.record.superseded_by)}"


def _version_lines(version: Version, said: str) -> Iterator[str]:
    why = f": {plain(version.why)}" if version.why else ""
    yield from wrapped(f"{age(version.at)} · {version.kind}{why}", "    ", "  ")
    record = version.record
    if record is None:
        yield "      (not shown)"
        return
    if record.content != said:
        yield from wrapped(f"“{plain(record.content)}” — {who(record)}", " " * 6, " " * 6)
    if period := _period(record):
        yield f"      true {period}"


def _timeline_lines(told: RecordList) -> Iterator[str]:
    for record in told.records:
        mark = "" if record.status in ("active", "provisional") else f" [{state(record.status)}]"
        begin = day(record.valid_from or record.provenance.said_at)
        until = f" to {day(record.valid_to)}" if record.valid_to else ""
        head = f"{begin}{until}"
        text = f"{plain(record.description)}{mark}"
        lines = wrapped(text, " " * 35, f"{head:<25} {short(record.id)} ")
        yield from (styled(line, "dim") if mark else line for line in lines)
        if record.superseded_by:
            yield styled(f"{' ' * 35}replaced by {short(record.superseded_by)}", "dim")
    if not told.records:
        yield "nothing is known of that"
    if told.left:
        yield f"and {told.left:,} more: --limit"


def _period(record: Record) -> str:
    begin = f"from {plain(record.valid_from)}" if record.valid_from else ""
    return f"{begin} until {plain(record.valid_to)}".strip() if record.valid_to else begin
