"""`memd export` writes records as JSON lines or Markdown; `take_in` imports such JSON lines."""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import IO, Annotated

import msgspec
import typer

from ...protocol import export as lines
from ...protocol.errors import InvalidRequest, Refused
from ...protocol.export import Form
from ...protocol.instant import day, from_micros
from ...protocol.record import LIVE, Record
from ...protocol.reply import ExportedRecord, ExportPage
from ..importers.memd_export import ExportFile, RecordImport, import_in_parts
from ..importers.transcript import Malformed
from ..python.client import Client, now
from .connection import PATIENCE_MS, deliver, reach
from .options import path
from .output import CommandAnswer, JsonFlag, plain, plain_name, wrapped
from .progress import Bar
from .wording import count, place, size, state, who

app = typer.Typer(rich_markup_mode=None, add_completion=False)


class Exported(msgspec.Struct, frozen=True, kw_only=True):
    """Of `export`."""

    path: str
    form: Form
    records: int
    size_bytes: int
    shareable: bool
    stayed: dict[str, int] = {}


@app.command()
def export(
    form: Annotated[Form, typer.Option("--format", help="jsonl to move or keep records, md to read them.")] = "jsonl",
    pool: Annotated[list[str] | None, typer.Option(help="Only this pool, or a unique prefix; repeatable.")] = None,
    out: Annotated[
        Path | None, typer.Option("-o", "--out", parser=path, help="Write to this file instead of standard output.")
    ] = None,
    shareable: Annotated[
        bool, typer.Option(help="Only records that may leave by `memd share`, without quotes and reasons.")
    ] = False,
    as_json: JsonFlag = False,
) -> None:
    """Export records with their sources and history.

    With --shareable only records of projects are exported that `memd share` lets go, and memd tells how many stayed and
    why: what is personal, an agent's, unconfirmed, from elsewhere, another author's, or holds a secret.

    \b
    Examples:
      memd export -o memory.jsonl    # `memd import memd memory.jsonl` imports it
      memd export --format md | less
      memd export --pool project/3f2a --shareable -o orchard.jsonl
    """
    with CommandAnswer("export", as_json) as answer, reach(PATIENCE_MS) as client:
        if as_json and out is None:
            raise InvalidRequest("--json needs an output file", hint="name one: -o FILE")
        stayed: Counter[str] = Counter()
        pages = _pages(client, pool or (), shareable, stayed, as_json or out is None)
        written = _render(form, pages, shareable)
        if out is None:
            for piece in written:
                sys.stdout.buffer.write(piece)
            sys.stdout.flush()
            for line in _stayed_lines(stayed):
                answer.warn(line)
            return
        records, length = _write(out, written)
        exported = Exported(
            path=str(out), form=form, records=records, size_bytes=length, shareable=shareable, stayed=dict(stayed)
        )
        told = f"wrote {count(records, 'record')} to {plain_name(str(out))}, {size(length)}"
        answer.give(exported, [told, *(line for row in _stayed_lines(stayed) for line in wrapped(row, "  "))])


def _pages(
    client: Client, pools: Sequence[str], shareable: bool, stayed: Counter[str], hidden: bool
) -> Iterator[ExportPage]:
    """Yield all pages; `stayed` counts the records that may not leave, by the reason."""
    page = client.export(pools, shareable=shareable)
    with Bar(page.total, "exporting", hidden) as bar:
        while True:
            stayed.update(page.stayed)
            bar.step(len(page.records) + sum(page.stayed.values()))
            yield page
            if not page.next:
                return
            page = client.export(pools, page.next, shareable=shareable)


def _stayed_lines(stayed: Counter[str]) -> Iterator[str]:
    if stayed:
        yield f"{count(stayed.total(), 'record')} stayed:"
        yield from (f"{number:,}: {plain(reason)}" for reason, number in stayed.most_common())


def _render(form: Form, pages: Iterable[ExportPage], shareable: bool) -> Iterator[bytes]:
    if form == "jsonl":
        yield from _json_lines(pages, shareable)
    else:
        records = [lines.leaving(record, shareable) for page in pages for record in page.records]
        yield from (f"{line}\n".encode() for line in markdown(records))


def _json_lines(pages: Iterable[ExportPage], shareable: bool) -> Iterator[bytes]:
    from ... import __version__

    following = iter(pages)
    first = next(following)  # before the first line is written: an unknown pool raises an error
    head = lines.ExportHead(format=lines.FORMAT, memd=__version__, at=now(), shareable=shareable)
    yield lines.encode_line(head)
    written: set[str] = set()
    number = 0
    for page in chain((first,), following):
        for pool in page.pools:
            if pool.pool not in written:
                written.add(pool.pool)
                yield lines.encode_line(lines.PoolLine(pool=pool))
        for session in page.sessions:
            if session.document not in written:
                written.add(session.document)
                yield lines.encode_line(lines.SessionLine(session=session))
        for record in page.records:
            leaving = lines.leaving(record, shareable)
            number += 1
            yield lines.encode_line(lines.RecordLine(record=leaving.record, changes=leaving.changes))
    yield lines.encode_line(lines.EndLine(records=number))


def _write(out: Path, pieces: Iterable[bytes]) -> tuple[int, int]:
    """Write a file of mode 0600, completely or not at all; the numbers of records and bytes."""
    fresh = out.with_name(f".{out.name}.new")
    try:
        with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as stream:
            records = _pour(pieces, stream)
            stream.flush()
            os.fsync(stream.fileno())
            length = stream.tell()
        fresh.replace(out)
    except OSError as error:
        with suppress(OSError):
            fresh.unlink()
        raise Refused(f"{out} can't be written: {error.strerror}", hint="name another file: -o FILE") from error
    except BaseException:
        fresh.unlink(missing_ok=True)
        raise
    return records, length


def _pour(pieces: Iterable[bytes], stream: IO[bytes]) -> int:
    records = 0
    for piece in pieces:
        stream.write(piece)
        records += piece.startswith((b'{"line":"record"', b"- "))
    return records


def markdown(exported: Sequence[ExportedRecord]) -> Iterator[str]:
    """Records by pool and type, newest first, with source and dates; inactive records at the end of each pool."""
    yield "# What memd remembers"
    for pool in sorted({item.record.pool for item in exported}):
        inside = [item for item in exported if item.record.pool == pool]
        live = [item for item in inside if item.record.status in LIVE]
        past = [item for item in inside if item.record.status not in LIVE]
        yield f"\n## {_escaped(pool)}"
        types = sorted({item.record.type for item in live})
        groups = [(_escaped(type_), [item for item in live if item.record.type == type_]) for type_ in types]
        for title, items in [*groups, ("not active", past)]:
            if items:
                yield f"\n### {title}\n"
            yield from (line for item in items for line in _item(item))


def _item(exported: ExportedRecord) -> Iterator[str]:
    record = exported.record
    provenance = record.provenance
    yield f"- {_escaped(record.content)}"
    mark = "" if record.status in {"active", "provisional"} else f"{state(record.status)}, "
    yield f"  <br>*{mark}{_escaped(who(record))}, {_day(provenance.said_at)}, {_escaped(place(record))}* `{record.id}`"
    if provenance.quote and plain(provenance.quote) != plain(record.content):
        yield f"  <br>“{_escaped(provenance.quote)}”"
    if times := _times(record):
        yield f"  <br>{times}"
    if len(exported.changes) > 1:
        history = ", ".join(f"{change.kind} {from_micros(change.at)[:10]}" for change in exported.changes)
        yield f"  <br>history: {_escaped(history)}"


def _times(record: Record) -> str:
    since = f"true since {_day(record.valid_from)}" if record.valid_from else ""
    until = f"until {_day(record.valid_to)}" if record.valid_to else ""
    retired = f"retired {from_micros(record.retired_at)[:10]}" if record.retired_at else ""
    by = f"replaced by `{record.superseded_by}`" if record.superseded_by else ""
    return ", ".join(part for part in (since, until, retired, by) if part)


def _day(at: str) -> str:
    return day(at) if at else "unknown day"


def _escaped(text: str) -> str:
    """Captured text on one line, with every Markdown and HTML character escaped."""
    clean = plain(text)
    for sign in "\\`*_[]<>#|":
        clean = clean.replace(sign, f"\\{sign}")
    return clean


def take_in(answer: CommandAnswer, path: Path, dry_run: bool) -> None:
    """`memd import memd FILE`: add each record under its own id; existing records stay unchanged."""
    file = ExportFile(path)
    added = known = differing = 0
    refused: list[Malformed] = []
    with reach(PATIENCE_MS) as client:
        with Bar(file.size_bytes, "importing", answer.as_json) as bar:
            shown = 0
            for request, done in file.requests():
                if not dry_run:
                    imported = import_in_parts(client, request)
                    added, known = added + imported.added, known + imported.known
                    differing += imported.differing
                    refused += [Malformed(0, f"{bad.turn[:26]}: {bad.problem.message}") for bad in imported.refused]
                bar.step(done - shown)
                shown = done
        if not dry_run:
            deliver(client, answer)
    moved = RecordImport(
        path=str(path),
        records=file.records,
        added=added,
        known=known,
        differing=differing,
        refused=tuple(refused),
        malformed=tuple(file.malformed),
        is_whole=file.is_whole,
    )
    if not file.is_whole:
        answer.warn("the file is incomplete: export it again if you can")
    answer.give(moved, _moved_lines(moved, dry_run))


def _moved_lines(moved: RecordImport, dry_run: bool) -> Iterator[str]:
    yield f"{count(moved.records, 'record')} in {plain_name(moved.path)}"
    if not dry_run:
        yield f"  {moved.added:,} added, {moved.known:,} already here, {moved.differing:,} kept with other text"
    for bad in moved.refused[:5]:
        yield from wrapped(f"rejected: {plain(bad.reason)}", "    ", "  ")
    for bad in moved.malformed[:5]:
        yield from wrapped(f"line {bad.line}: {plain(bad.reason)[:300]}", "    ", "  malformed: ")
    more = max(0, len(moved.refused) - 5) + max(0, len(moved.malformed) - 5)
    if more:
        yield f"  and {more} more: see --json"
