"""`memd maintain`: forgetting by disuse, archive retention, compaction."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

import typer

from ...protocol.decay import Asleep, FadingList, Slumbered
from ...protocol.recall import UnusedList
from .connection import PATIENCE_MS, reach
from .options import Cwd, Pools, here
from .output import CommandAnswer, JsonFlag, plain, shortened, styled, width, wrapped
from .progress import wait_for_job
from .wording import count, pool_name, report_number, row, short, size

app = typer.Typer(
    rich_markup_mode=None,
    add_completion=False,
    help="Archive unused records, expire captures, compact files. memd does all of this by itself; run it by hand "
    "to see or to force it.",
    epilog="Example: `memd maintain fading` shows which records memd will archive soon.",
)
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show the effect and change nothing.")]


@app.command()
def fading(
    cwd: Cwd = None,
    pool: Pools = None,
    limit: Annotated[int, typer.Option(min=1, max=500, help="At most this many records.")] = 20,
    after: Annotated[int, typer.Option(min=0, max=10_000, help="Only what is gone after this many active days.")] = 0,
    as_json: JsonFlag = False,
) -> None:
    """List records that memd will archive soon unless they are used.

    The number is the active days left. `memd recall --all` still finds an archived record and `memd restore`
    restores it. memd never archives a pinned record. The table [forgetting] of memd.toml sets the speed, or
    switches forgetting off.

    \b
    Examples:
      memd maintain fading
      memd maintain fading --pool personal --limit 50
      memd maintain fading --after 30    # what is gone after 30 more days of work
    """
    with CommandAnswer("fading", as_json) as answer, reach() as client:
        listed = client.fading(here(cwd), pools=pool or (), limit=limit, after_days=after)
        answer.give(listed, _fading_lines(listed, after))


def _fading_lines(listed: FadingList, after: int = 0) -> Iterator[str]:
    if after:
        yield f"{listed.gone:,} of {count(listed.total, 'record')} gone after {count(after, 'active day')} without use"
    elif not listed.records:
        yield "no record is fading here"
    for fading in listed.records:
        record = fading.record
        head = f"{fading.days_left:>6.0f} days  {short(record.id)}  "
        yield head + shortened(plain(record.description), max(20, width() - len(head)))
    if listed.total > len(listed.records):
        yield styled(f"{listed.total:,} records are fading in {', '.join(map(pool_name, listed.scope))}", "dim")
    if listed.overdue:
        yield ""
        yield styled("old statements to review:", "bold")
        yield from (row(record) for record in listed.overdue)


@app.command()
def sleep(pool: Pools = None, dry_run: DryRun = False, as_json: JsonFlag = False) -> None:
    """Weaken unused records now, merge duplicates, archive the weakest. memd does so at the end of each session.

    \b
    Examples:
      memd maintain sleep --dry-run
      memd maintain sleep --pool personal
    """
    with CommandAnswer("sleep", as_json) as answer, reach(4 * PATIENCE_MS) as client:
        slept = client.sleep(pool or (), dry_run=dry_run)
        answer.give(slept, _sleep_lines(slept))


def _sleep_lines(slept: Slumbered) -> Iterator[str]:
    for pool in slept.pools:
        yield from _archived_lines(pool, slept.dry_run)
    for pool in slept.off:
        yield f"{pool_name(pool)}: forgetting is off"
    if not slept.pools and not slept.off:
        yield "there are no records yet"


def _archived_lines(pool: Asleep, dry_run: bool) -> Iterator[str]:
    verb = "would be archived" if dry_run else "archived"
    parts = [f"{count(pool.faded, 'unused record')} {verb}"]
    parts += [f"{pool.pruned:,} more because the pool is over its capacity"] if pool.pruned else []
    yield f"{styled(pool_name(pool.pool), 'bold')}: {', '.join(parts)}"
    yield from (f"  {row(record)}" for record in pool.first)


@app.command()
def unused(
    pool: Pools = None,
    least: Annotated[int, typer.Option(min=1, help="Returned at least this often.")] = 3,
    limit: Annotated[int, typer.Option(min=1, max=500, help="At most this many records.")] = 50,
    as_json: JsonFlag = False,
) -> None:
    """List records that answers often contain and nobody uses. Consider editing or forgetting them.

    \b
    Examples:
      memd maintain unused
      memd maintain unused --least 10 --pool personal
    """
    with CommandAnswer("unused", as_json) as answer, reach() as client:
        listed = client.never_used(pool or (), least, limit)
        answer.give(listed, _unused_lines(listed))


def _unused_lines(listed: UnusedList) -> Iterator[str]:
    if not listed.records:
        yield from wrapped("None: every record that was returned so often was also used.")
    for unused in listed.records:
        yield f"{unused.given:>5,} ×  {row(unused.record)}"


@app.command()
def expire(dry_run: DryRun = False, as_json: JsonFlag = False) -> None:
    """Remove captures that exceed the archive's limits. Captures that records cite stay. memd does this daily.

    \b
    Examples:
      memd maintain expire --dry-run
      memd maintain expire      # then `memd maintain compact` frees the disk space
    """
    with CommandAnswer("expire", as_json) as answer, reach() as client:
        report = wait_for_job(client, client.expire(dry_run), answer).report
        verb = "would be removed" if dry_run else "removed"
        removed = count(report_number(report, "captures"), "capture")
        lines = [f"{removed} {verb}, {size(report_number(report, 'bytes'))} of text"]
        if free := report_number(report, "compaction_frees"):
            lines.append(f"`memd maintain compact` would free {size(free)} of disk space")
        answer.give(report, lines)


@app.command()
def compact(as_json: JsonFlag = False) -> None:
    """Reclaim the disk space of removed entries. Captures wait until it is done.

    \b
    Example:
      memd maintain compact
    """
    with CommandAnswer("compact", as_json) as answer, reach(PATIENCE_MS) as client:
        report = wait_for_job(client, client.compact(), answer).report
        lines = [
            f"{size(report_number(report, 'before_bytes'))} before, {size(report_number(report, 'after_bytes'))} after"
        ]
        for key in report:
            if key.endswith("_before_bytes"):
                name = key.removesuffix("_before_bytes")
                after = size(report_number(report, f"{name}_after_bytes"))
                lines.append(f"  {name:<9} {size(report_number(report, key)):>9} → {after}")
        answer.give(report, lines)
