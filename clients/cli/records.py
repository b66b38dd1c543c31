"""`memd list`, `memd show`, `memd timeline`: records, their versions, and a subject over time."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import Annotated, cast

import typer

from ...protocol.corrections import RecordList
from ...protocol.errors import InvalidRequest
from ...protocol.history import History, Version
from ...protocol.ingestion import SUMMARY
from ...protocol.instant import day
from ...protocol.record import STATES, TYPES, Kind, Record, Status
from ...protocol.scope import check_agent
from .connection import reach
from .options import AsOf, BelievedAt, Cwd, Id, Pools, here, instant
from .output import CommandAnswer, JsonFlag, plain, plain_name, styled, wrapped
from .wording import (
    age,
    artifacts,
    count,
    learnings,
    moment,
    place,
    pool_name,
    reviewed,
    row,
    short,
    state,
    who,
    with_local_times,
    world_time,
)

app = typer.Typer(rich_markup_mode=None, add_completion=False)

KINDS = ("fact", "note", "edge", "procedure", "persona")
STATUSES = ("provisional", "active", "unconfirmed", "hidden", "archived", "retired")


@app.command("list")
def list_records(
    pool: Pools = None,
    agent: Annotated[str, typer.Option(help="Only the own memory of this agent.")] = "",
    type: Annotated[str, typer.Option(help=f"Only this type: {', '.join(TYPES)}.")] = "",
    status: Annotated[list[str] | None, typer.Option(help=f"Only: {', '.join(STATUSES)}; repeatable.")] = None,
    kind: Annotated[list[str] | None, typer.Option(help=f"Only: {', '.join(KINDS)}; repeatable.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=500, help="Records on a page.")] = 50,
    key: Annotated[str, typer.Option(help="Only records with this exact key.")] = "",
    since: Annotated[str, typer.Option(help="Only records learned since this time: a day, or RFC 3339.")] = "",
    until: Annotated[str, typer.Option(help="Only records learned before this time.")] = "",
    as_of: AsOf = "",
    believed_at: BelievedAt = "",
    after: Annotated[str, typer.Option(help="Continue after the page that ended with this cursor.")] = "",
    as_json: JsonFlag = False,
) -> None:
    """List records, newest first.

    A record is unconfirmed if you did not say it, or if it has not proved useful yet; `memd confirm` confirms it.

    \b
    Examples:
      memd list
      memd list --type decision --limit 10
      memd list --type "open question"
      memd list --status unconfirmed
      memd list --status retired
      memd list --believed-at 2026-03-01
    """
    with CommandAnswer("list", as_json) as answer, reach() as client:
        if agent:
            check_agent(agent, (), (opened.pool for opened in client.pools().pools))
        page = client.list(
            pools=(*(pool or ()), *((f"agent/{agent}",) if agent else ())),
            kinds=cast("list[Kind]", _checked("kind", kind, KINDS)),
            statuses=cast("list[Status]", _statuses(status)),
            type=type,
            key=key,
            since=instant(since),
            until=instant(until),
            as_of=instant(as_of),
            believed_at=instant(believed_at),
            after=after,
            limit=limit,
        )
        lines = [row(record) for record in page.records] or ["no record matches"]
        if page.next:
            lines += ["", styled(f"more: memd list --after {shlex.quote(page.next)} and the same filters", "dim")]
        answer.give(page, lines)


def _statuses(given: list[str] | None) -> list[str]:
    """Statuses by the words that users read, or by their names in JSON."""
    names = {word: name for name, word in STATES.items()}
    words = [state(name) for name in given or ()]
    return [names.get(word, word) for word in _checked("status", words, STATUSES)]


def _checked(name: str, given: list[str] | None, known: tuple[str, ...]) -> list[str]:
    """Raises InvalidRequest for an unknown value."""
    for value in given or ():
        if value not in known:
            raise InvalidRequest(f"{value!r} is not a {name}", hint=f"choose from: {', '.join(known)}")
    return given or []


@app.command()
def topics(
    cwd: Cwd = None,
    pool: Pools = None,
    most: Annotated[int, typer.Option(min=1, max=40, help="At most this many groups.")] = 12,
    as_json: JsonFlag = False,
) -> None:
    """Show what the memory of this folder is about, in groups.

    \b
    Example:
      memd topics --pool personal
    """
    with CommandAnswer("topics", as_json) as answer, reach() as client:
        listed = client.topics(cwd=here(cwd), pools=pool or (), most=most)
        lines = [f"{topic.records:>6,}  {plain(topic.label)}" for topic in listed.topics]
        if listed.left:
            lines.append(styled(f"{listed.left:>6,}  in no group", "dim"))
        answer.give(listed, lines or ["there is no record here yet"])


@app.command()
def show(
    id: Annotated[str, typer.Argument(help="The record's id or a unique prefix; §12 for a passage of a summary.")],
    versions: Annotated[bool, typer.Option("--history", help="Show every version with its reason.")] = False,
    as_of: AsOf = "",
    believed_at: BelievedAt = "",
    as_json: JsonFlag = False,
) -> None:
    """Show one record, or all its versions.

    \b
    Examples:
      memd show 7q3hjwch
      memd show 7q3hjwch --history
      memd show 7q3hjwch --believed-at 2026-03-01
      memd show 7q3hjwch§12     # the passage behind the 12th line of a summary
      memd show §12             # of the newest summary of this folder
    """
    if "§" in id:
        from .ingest import show_detail

        show_detail(id, as_json)
        return
    if versions:
        history(id, as_json)
        return
    with CommandAnswer("show", as_json) as answer, reach() as client:
        record = client.get(id, as_of=instant(as_of), believed_at=instant(believed_at))
        answer.give(record, record_lines(record))


def record_lines(record: Record) -> Iterator[str]:
    """A record field by field, without the empty ones."""
    yield from (styled(line, "bold") for line in wrapped(plain(record.description)))
    if SUMMARY in record.tags:
        for line in record.content.split("\n"):
            yield from wrapped(plain(line), "    ", "  ")
    elif plain(record.content) != plain(record.description):
        yield from wrapped(plain(record.content), "  ")
    source = record.provenance
    evidence = len(source.evidence)
    fields = {
        "id": f"{record.id}, revision {record.rev}",
        "kind": f"{record.kind}, {plain_name(record.type)}, layer {record.layer}, {record.volatility}",
        "status": state(record.status) + (", needs review" if record.needs_review else ""),
        "pool": pool_name(record.pool),
        "key": plain(f"{record.key} = {record.value}" if record.value else record.key),
        "names": plain(", ".join(record.aliases)),
        "tags": plain(", ".join(record.tags[1:])),
        "flags": plain(", ".join(record.flags)),
        "said by": f"{who(record)}, {age(source.said_at)} ({moment(source.said_at)})",
        "source": place(record),
        "quote": f"“{plain(source.quote)}”" if source.quote else "",
        "evidence": count(evidence, "more turn supports it", "more turns support it") if evidence else "",
        "true": _period(record),
        "learned": age(record.learned_at),
        "retired": age(record.retired_at),
        "confidence": f"{record.confidence:.2f}, importance {record.signal.importance:.2f}",
        "used": count(record.signal.access_count, "time") if record.signal.access_count else "",
        "review": reviewed(record),
        "teaches": learnings(record),
        "relates to": ", ".join(short(id) for id in record.relates_to),
        "proven by": "; ".join(artifacts(record)),
        "visible to": "" if source.visibility == "private" else source.visibility,
        "copy of": short(record.copy_of) if record.copy_of else "",
        "replaces": ", ".join(short(id) for id in record.supersedes),
        "replaced by": short(record.superseded_by),
    }
    for name, value in fields.items():
        if value:
            yield from wrapped(value, " " * 13, styled(f"{name:<12}", "dim") + " ")


def _period(record: Record) -> str:
    begin = f"from {world_time(record.valid_from)}" if record.valid_from else ""
    return f"{begin} until {world_time(record.valid_to)}".strip() if record.valid_to else begin


@app.command()
def history(id: Id, as_json: JsonFlag = False) -> None:
    """Show every version of a record: its text, when memd believed it, and why it changed.

    \b
    Example:
      memd show 7q3hjwch --history
    """
    with CommandAnswer("history", as_json) as answer, reach() as client:
        shown = client.history(id)
        answer.give(shown, _history_lines(shown))


def _history_lines(shown: History) -> Iterator[str]:
    signal = shown.record.signal
    yield from (styled(line, "bold") for line in wrapped(plain(shown.record.description)))
    used = f"used {count(signal.access_count, 'time')}, returned {count(signal.candidate_count, 'time')}"
    yield f"{state(shown.record.status)} · {used} · strength {signal.strength:.2f}"
    previous = ""
    for version in shown.versions:
        yield from _version_lines(version, previous)
        previous = version.record.content if version.record else ""
    if shown.record.superseded_by:
        yield f"replaced by {short(shown.record.superseded_by)}"


def _version_lines(version: Version, previous: str) -> Iterator[str]:
    why = f": {with_local_times(plain(version.why))}" if version.why else ""
    yield from wrapped(f"{age(version.at)} · {version.kind}{why}", "    ", "  ")
    record = version.record
    if record is None:
        yield "      (not shown)"
        return
    if record.content != previous:
        yield from wrapped(f"“{plain(record.content)}” — {who(record)}", " " * 6, " " * 6)
    if period := _period(record):
        yield f"      true {period}"


@app.command()
def timeline(
    subject: Annotated[str, typer.Argument(help="A key such as user.editor, or words.")],
    cwd: Cwd = None,
    pool: Pools = None,
    limit: Annotated[int, typer.Option(min=1, max=500, help="At most this many records.")] = 50,
    as_json: JsonFlag = False,
) -> None:
    """Show how a subject changed over time. Records that are no longer true are included.

    \b
    Examples:
      memd timeline "database"
      memd timeline user.editor --pool personal
    """
    with CommandAnswer("timeline", as_json) as answer, reach() as client:
        listed = client.timeline(subject, here(cwd), pools=pool or (), limit=limit)
        answer.give(listed, _timeline_lines(listed))


def _timeline_lines(listed: RecordList) -> Iterator[str]:
    for record in listed.records:
        mark = "" if record.status in ("active", "provisional") else f" [{state(record.status)}]"
        begin = day(record.valid_from or record.provenance.said_at)
        period = begin + (f" to {day(record.valid_to)}" if record.valid_to else "")
        lines = wrapped(f"{plain(record.description)}{mark}", " " * 35, f"{period:<25} {short(record.id)} ")
        yield from (styled(line, "dim") if mark else line for line in lines)
        if record.superseded_by:
            yield styled(f"{' ' * 35}replaced by {short(record.superseded_by)}", "dim")
    if not listed.records:
        yield "no record about this subject"
    if listed.left:
        yield f"and {listed.left:,} more: --limit"
