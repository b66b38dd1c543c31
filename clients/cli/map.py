"""`memd map`, `memd rhythm`: what the memory has in it, what belongs together, and when it changed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal

import typer

from ...protocol.map import BUCKETS, MARKS, MapMark, MemoryMap, Rhythm
from .connection import reach
from .options import AsOf, BelievedAt, Pools, instant
from .output import CommandAnswer, JsonFlag, plain, shortened, styled, width
from .wording import count, moment, pool_name, short, state

app = typer.Typer(rich_markup_mode=None, add_completion=False)


@app.command("map")
def show_map(
    thing: Annotated[str, typer.Argument(help="A name, such as a topic of the map, or the id of a record.")] = "",
    hops: Annotated[int, typer.Option(min=1, max=3, help="Steps from it: record to thing, or thing to record.")] = 2,
    pool: Pools = None,
    as_of: AsOf = "",
    believed_at: BelievedAt = "",
    limit: Annotated[int, typer.Option(min=1, max=MARKS, help="At most this many marks.")] = MARKS,
    as_json: JsonFlag = False,
) -> None:
    """Show all pools with their topics, or what is near one thing.

    A topic is a thing that many records of a pool name, and few of the other pools. Around a thing memd shows the
    records that name it, then the other things that these name.

    \b
    Examples:
      memd map
      memd map PostgreSQL
      memd map 7q3hjwch --hops 3
      memd map PostgreSQL --as-of 2026-03-01
    """
    with CommandAnswer("map", as_json) as answer, reach() as client:
        drawn = client.map(
            thing,
            pools=pool or (),
            hops=hops,
            as_of=instant(as_of),
            believed_at=instant(believed_at),
            limit=limit,
        )
        answer.give(drawn, _lines(drawn, is_whole=not thing))


def _lines(drawn: MemoryMap, *, is_whole: bool) -> Iterator[str]:
    if not drawn.marks:
        yield "there is no record here"
    near: dict[int, list[int]] = {}
    for link in drawn.links:
        near.setdefault(link.source, []).append(link.target)
        near.setdefault(link.target, []).append(link.source)
    roots = [at for at, mark in enumerate(drawn.marks) if mark.kind == "pool"] if is_whole else [0][: len(drawn.marks)]
    seen = set(roots)
    for root in roots:
        yield from _tree(drawn, near, root, 0, seen)
    if drawn.left:
        yield styled(f"and {count(drawn.left, 'weaker mark')}", "dim")


def _tree(drawn: MemoryMap, near: dict[int, list[int]], at: int, depth: int, seen: set[int]) -> Iterator[str]:
    """A mark with those that are nearest to it, each once."""
    yield _line(drawn.marks[at], depth)
    nearest = [other for other in sorted(near.get(at, ())) if other > at and other not in seen]
    seen.update(nearest)
    for other in nearest:
        yield from _tree(drawn, near, other, depth + 1, seen)


def _line(mark: MapMark, depth: int) -> str:
    indent = "  " * depth
    if mark.kind == "record":
        unusual = "" if mark.status in {"active", "provisional"} else f"[{state(mark.status)}] "
        text = shortened(f"{unusual}{plain(mark.label)}", max(20, width() - len(indent) - 10))
        return f"{indent}{styled(short(mark.id), 'cyan')}  {text}"
    name = pool_name(mark.label) if mark.kind == "pool" else plain(mark.label)
    return f"{indent}{styled(name, 'bold')} · {count(mark.size, 'record')}"


@app.command("rhythm")
def show_rhythm(
    pool: Pools = None,
    clock: Annotated[
        Literal["world", "system"],
        typer.Option(help="When statements became true or false, or when memd learned and retired them."),
    ] = "world",
    since: Annotated[str, typer.Option(help="The start: a day, or RFC 3339. By default the first change.")] = "",
    until: Annotated[str, typer.Option(help="The end. By default the last change.")] = "",
    buckets: Annotated[int, typer.Option(min=1, max=BUCKETS, help="Periods of equal length.")] = 20,
    beside: Annotated[str, typer.Option(help="Also name the changes before and after this time.")] = "",
    as_json: JsonFlag = False,
) -> None:
    """Show how much was learned and retired over time.

    \b
    Examples:
      memd rhythm
      memd rhythm --clock system --since 2026-03-01 --until 2026-04-01 --buckets 31
      memd rhythm --beside 2026-03-04
    """
    with CommandAnswer("rhythm", as_json) as answer, reach() as client:
        told = client.rhythm(
            pools=pool or (),
            clock=clock,
            since=instant(since),
            until=instant(until),
            buckets=buckets,
            beside=instant(beside),
        )
        answer.give(told, _rhythm_lines(told, has_time=bool(beside)))


def _rhythm_lines(told: Rhythm, *, has_time: bool) -> Iterator[str]:
    most = max((bucket.learnt + bucket.retired for bucket in told.buckets), default=0)
    room = width() - 36
    for bucket in told.buckets:
        learnt, retired = (round(room * number / max(1, most)) for number in (bucket.learnt, bucket.retired))
        bar = styled("█" * learnt, "green") + styled("░" * retired, "dim")
        yield f"{moment(bucket.start)} {f'+{bucket.learnt:,}':>8} {f'-{bucket.retired:,}':>8} {bar}".rstrip()
    if not told.buckets:
        yield "there is no record here"
    if has_time:
        yield f"change before: {moment(told.before) if told.before else 'none'}"
        yield f"change after:  {moment(told.after) if told.after else 'none'}"
