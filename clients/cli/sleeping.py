"""`memd fading`, `memd sleep`, `memd restore`: what will be forgotten soon, what fades now, what comes back.

Comes in: pools, or records. Goes out: records with their strength (T6, T7, T9). Invariant: nothing here is for good:
what is archived leaves the answers, not the disk.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

import typer

from ...protocol.lifetime import Asleep, FadingList, Slumbered
from .contact import PATIENCE_MS, here, reach
from .output import Answer, JsonFlag, plain, shortened, styled, width
from .wording import count, row, short

app = typer.Typer(rich_markup_mode=None, add_completion=False)

Pools = Annotated[list[str] | None, typer.Option("--pool", help="Only this pool; repeatable.")]


@app.command()
def fading(
    cwd: Annotated[str | None, typer.Option(help="The folder whose project is meant, if not the current one.")] = None,
    pool: Pools = None,
    limit: Annotated[int, typer.Option(min=1, max=500, help="At most this many records.")] = 20,
    as_json: JsonFlag = False,
) -> None:
    """Show what will be forgotten soon if nobody uses it, by days of work that are left.

    What is forgotten is archived: `memd recall --all` still finds it, `memd restore` brings it back. `memd pin` keeps a
    record for good; the table [forgetting] of memd.toml sets the pace, or switches forgetting off.

    \b
    Examples:
      memd fading
      memd fading --pool personal --limit 50
    """
    with Answer("fading", as_json) as answer, reach() as client:
        told = client.fading(here(cwd), pools=pool or (), limit=limit)
        answer.give(told, _fading_lines(told))


@app.command()
def sleep(
    pool: Pools = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would be archived.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Let memory fade as it does at the end of every session, now; archive what is too weak.

    \b
    Examples:
      memd sleep --dry-run
      memd sleep --pool personal
    """
    with Answer("sleep", as_json) as answer, reach(4 * PATIENCE_MS) as client:
        told = client.sleep(pool or (), dry_run=dry_run)
        answer.give(told, _sleep_lines(told))


@app.command()
def restore(
    ids: Annotated[list[str], typer.Argument(help="Archived records, by id or its beginning.")],
    as_json: JsonFlag = False,
) -> None:
    """Bring archived records back.

    \b
    Example:
      memd restore 7q3hjwch
    """
    with Answer("restore", as_json) as answer, reach() as client:
        told = client.restore(ids)
        left = [f"{count(told.left, 'record')} not archived, or another holds the same key"] if told.left else []
        answer.give(told, [*(row(record) for record in told.records), *left])


def _fading_lines(told: FadingList) -> Iterator[str]:
    if not told.records:
        yield "nothing fades here"
    for each in told.records:
        days = f"{each.days_left:>6.0f} d"
        head = f"{days}  {short(each.record.id)}  {each.record.signal.strength:.2f}  "
        yield head + shortened(plain(each.record.description), max(20, width() - len(head)))
    if told.total > len(told.records):
        yield styled(f"{told.total:,} records fade in {', '.join(plain(pool) for pool in told.scope)}", "dim")
    if told.overdue:
        yield ""
        yield styled("said long ago, worth another look:", "bold")
        yield from (row(record) for record in told.overdue)


def _sleep_lines(told: Slumbered) -> Iterator[str]:
    for each in told.pools:
        yield from _pool_lines(each, told.dry_run)
    for pool in told.off:
        yield f"{plain(pool)}: forgetting is off"
    if not told.pools and not told.off:
        yield "no pool holds anything yet"


def _pool_lines(each: Asleep, dry_run: bool) -> Iterator[str]:
    verb = "would be archived" if dry_run else "archived"
    pace = f"{each.tasks_per_day:.1f} tasks a day"
    parts = [f"{count(each.faded, 'record')} {verb}"]
    parts += [f"{count(each.pruned, 'more')} over the capacity"] if each.pruned else []
    yield f"{styled(plain(each.pool), 'bold')}: {', '.join(parts)} · {pace}, {each.days:.2f} of a day's loss"
    yield from (f"  {row(record)}" for record in each.first)
