"""`memd list` and `memd show`: records as they are.

Comes in: filters, or an id. Goes out: rows, newest first; or one record whole.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import Annotated, cast

import typer

from ...protocol.errors import InvalidRequest
from ...protocol.record import STATES, Kind, Record, Status
from .contact import AsOf, BelievedAt, instant, reach
from .output import Answer, JsonFlag, plain, styled, wrapped
from .wording import age, count, place, row, short, state, who

app = typer.Typer(rich_markup_mode=None, add_completion=False)

KINDS = ("fact", "note", "edge", "procedure", "persona")
STATUSES = ("provisional", "active", "unconfirmed", "hidden", "archived", "retired")


@app.command("list")
def list_records(
    pool: Annotated[list[str] | None, typer.Option("--pool", help="Only this pool; repeatable.")] = None,
    type: Annotated[str, typer.Option(help="Only this type: decision, lesson, preference, …")] = "",
    status: Annotated[list[str] | None, typer.Option(help=f"Only: {', '.join(STATUSES)}; repeatable.")] = None,
    kind: Annotated[list[str] | None, typer.Option(help=f"Only: {', '.join(KINDS)}; repeatable.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=500, help="Rows of a page.")] = 50,
    key: Annotated[str, typer.Option(help="Only what holds this exact key.")] = "",
    since: Annotated[str, typer.Option(help="Only what was learnt from then on: a day, or RFC 3339.")] = "",
    until: Annotated[str, typer.Option(help="Only what was learnt before then.")] = "",
    as_of: AsOf = "",
    believed_at: BelievedAt = "",
    after: Annotated[str, typer.Option(help="Continue after the page that ended with this cursor.")] = "",
    as_json: JsonFlag = False,
) -> None:
    """List records, newest first. Unconfirmed: you did not say it, or it has yet to prove itself; see `memd pin`.

    \b
    Examples:
      memd list
      memd list --type decision --limit 10
      memd list --status unconfirmed
      memd list --status retired
      memd list --believed-at 2026-03-01
    """
    with Answer("list", as_json) as answer, reach() as client:
        kinds, statuses = _among("kind", kind, KINDS), _statuses(status)
        page = client.list(
            pools=pool or (),
            kinds=cast("list[Kind]", kinds),
            statuses=cast("list[Status]", statuses),
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
    words = [state(each) for each in given or ()]
    return [names.get(each, each) for each in _among("status", words, STATUSES)]


def _among(name: str, given: list[str] | None, known: tuple[str, ...]) -> list[str]:
    for value in given or ():
        if value not in known:
            raise InvalidRequest(f"{value!r} is no {name}", hint=f"there are: {', '.join(known)}")
    return given or []


@app.command()
def show(
    id: Annotated[str, typer.Argument(help="The record's id, or its beginning.")],
    as_of: AsOf = "",
    believed_at: BelievedAt = "",
    as_json: JsonFlag = False,
) -> None:
    """Show one record whole, today or as it stood.

    \b
    Example:
      memd show 7q3hjwch
    """
    with Answer("show", as_json) as answer, reach() as client:
        record = client.get(id, as_of=instant(as_of), believed_at=instant(believed_at))
        answer.give(record, record_lines(record))


def record_lines(record: Record) -> Iterator[str]:
    """A record, field by field, those that say something."""
    yield from (styled(line, "bold") for line in wrapped(plain(record.description)))
    if plain(record.content) != plain(record.description):
        yield from wrapped(plain(record.content), "  ")
    source = record.provenance
    fields = {
        "id": f"{record.id}, revision {record.rev}",
        "kind": f"{record.kind}, {plain(record.type)}, layer {record.layer}, {record.volatility}",
        "status": state(record.status) + (", needs review" if record.needs_review else ""),
        "pool": plain(record.pool),
        "key": plain(f"{record.key} = {record.value}" if record.value else record.key),
        "tags": plain(", ".join(record.tags[1:])),
        "flags": plain(", ".join(record.flags)),
        "said by": f"{who(record)}, {age(source.said_at)} ({plain(source.said_at)})",
        "source": place(record),
        "quote": f"“{plain(source.quote)}”" if source.quote else "",
        "evidence": count(len(source.evidence), "more turn says so", "more turns say so") if source.evidence else "",
        "true": _period(record),
        "learned": age(record.learned_at),
        "retired": age(record.retired_at),
        "confidence": f"{record.confidence:.2f}, importance {record.signal.importance:.2f}",
        "used": count(record.signal.access_count, "time") if record.signal.access_count else "",
        "replaces": ", ".join(short(each) for each in record.supersedes),
        "replaced by": short(record.superseded_by),
    }
    for name, value in fields.items():
        if value:
            yield from wrapped(value, " " * 13, styled(f"{name:<12}", "dim") + " ")


def _period(record: Record) -> str:
    begin = f"from {plain(record.valid_from)}" if record.valid_from else ""
    return f"{begin} until {plain(record.valid_to)}".strip() if record.valid_to else begin
