"""`memd export` and `memd import memd`: the whole memory as a file, and back (P-25).

Comes in: pools, a form, a file. Goes out: JSON lines that another memory can take in, or Markdown for people.
Invariants: a file appears whole or not at all, and only its owner may read it; a shareable export holds no quote.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Sequence
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
from ..importers.memd_export import ExportFile, RecordImport
from ..importers.transcript import Malformed
from ..python.client import Client, now
from .contact import PATIENCE_MS, deliver, path, reach
from .output import Answer, JsonFlag, plain, wrapped
from .overview import size
from .progress import Bar
from .wording import count, place, state, who

app = typer.Typer(rich_markup_mode=None, add_completion=False)


class Exported(msgspec.Struct, frozen=True, kw_only=True):
    """Of `export`: the file, and what is in it."""

    path: str
    form: Form
    records: int
    size_bytes: int
    shareable: bool


@app.command()
def export(
    form: Annotated[Form, typer.Option("--format", help="jsonl to move or keep it, md to read it.")] = "jsonl",
    pool: Annotated[list[str] | None, typer.Option(help="Only this pool, or its beginning; may be repeated.")] = None,
    out: Annotated[
        Path | None, typer.Option("-o", "--out", parser=path, help="A file; standard output, if none is named.")
    ] = None,
    shareable: Annotated[bool, typer.Option(help="Leave out every quote and every decision.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Write down every record with its source and its history.

    \b
    Examples:
      memd export -o memory.jsonl          # `memd import memd memory.jsonl` takes it in
      memd export --format md | less
      memd export --pool project/3f2a --shareable -o orchard.jsonl
    """
    with Answer("export", as_json) as answer, reach(PATIENCE_MS) as client:
        if as_json and out is None:
            raise InvalidRequest("--json tells about a file", hint="name one: -o FILE")
        pages = _pages(client, pool or (), as_json or out is None)
        written = _render(form, pages, shareable)
        if out is None:
            for piece in written:
                sys.stdout.buffer.write(piece)
            return
        records, length = _write(out, written)
        told = Exported(path=str(out), form=form, records=records, size_bytes=length, shareable=shareable)
        answer.give(told, [f"{count(records, 'record')} in {plain(str(out))}, {size(length)}"])


def _pages(client: Client, pools: Sequence[str], hidden: bool) -> Iterator[ExportPage]:
    page = client.export(pools)
    with Bar(page.total, "exporting", hidden) as bar:
        while True:
            bar.step(len(page.records))
            yield page
            if not page.next:
                return
            page = client.export(pools, page.next)


def _render(form: Form, pages: Iterable[ExportPage], shareable: bool) -> Iterator[bytes]:
    if form == "jsonl":
        yield from _json_lines(pages, shareable)
    else:
        records = [lines.leaving(each, shareable) for page in pages for each in page.records]
        yield from (f"{line}\n".encode() for line in markdown(records))


def _json_lines(pages: Iterable[ExportPage], shareable: bool) -> Iterator[bytes]:
    from ... import __version__

    following = iter(pages)
    first = next(following)  # asked for before a line is written: of a pool that is not there nothing is
    head = lines.ExportHead(format=lines.FORMAT, memd=__version__, at=now(), shareable=shareable)
    yield lines.encode_line(head)
    told: set[str] = set()
    number = 0
    for page in chain((first,), following):
        for pool in page.pools:
            if pool.pool not in told:
                told.add(pool.pool)
                yield lines.encode_line(lines.PoolLine(pool=pool))
        for session in page.sessions:
            if session.document not in told:
                told.add(session.document)
                yield lines.encode_line(lines.SessionLine(session=session))
        for each in page.records:
            left = lines.leaving(each, shareable)
            number += 1
            yield lines.encode_line(lines.RecordLine(record=left.record, changes=left.changes))
    yield lines.encode_line(lines.EndLine(records=number))


def _write(out: Path, pieces: Iterable[bytes]) -> tuple[int, int]:
    """Writes a 0600 file, all or nothing; how many records and bytes."""
    fresh = out.with_name(f".{out.name}.new")
    try:
        with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as stream:
            records = _pour(pieces, stream)
            stream.flush()
            os.fsync(stream.fileno())
            length = stream.tell()
        fresh.replace(out)
    except OSError as error:
        fresh.unlink(missing_ok=True)
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


# --- Markdown for people -----------------------------------------------------------------------------------------
def markdown(exported: Sequence[ExportedRecord]) -> Iterator[str]:
    """Records by pool and type, newest first, each with its source and dates; what is no longer believed at the end."""
    yield "# What memd remembers"
    pools = sorted({each.record.pool for each in exported})
    for pool in pools:
        inside = [each for each in exported if each.record.pool == pool]
        live = [each for each in inside if each.record.status in LIVE]
        past = [each for each in inside if each.record.status not in LIVE]
        yield f"\n## {_escaped(pool)}"
        for type_ in sorted({each.record.type for each in live}):
            yield f"\n### {_escaped(type_)}\n"
            for each in live:
                if each.record.type == type_:
                    yield from _item(each)
        if past:
            yield "\n### no longer believed\n"
            for each in past:
                yield from _item(each)


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
    return day(at) if at else "some day"


def _escaped(text: str) -> str:
    """Captured text on one line that no Markdown reader takes for a heading, a link or HTML."""
    clean = plain(text)
    for sign in "\\`*_[]<>#|":
        clean = clean.replace(sign, f"\\{sign}")
    return clean


# --- and back ----------------------------------------------------------------------------------------------------
def take_in(answer: Answer, path: Path, dry_run: bool) -> None:
    """`memd import memd FILE`: every record under its own id; what is here already stays as it is."""
    file = ExportFile(path)
    added = known = differing = 0
    refused: list[Malformed] = []
    with reach(PATIENCE_MS) as client:
        with Bar(file.size_bytes, "taking in", answer.as_json) as bar:
            shown = 0
            for wish, done in file.requests():
                if not dry_run:
                    told = client.import_records(wish)
                    added, known = added + told.added, known + told.known
                    differing += told.differing
                    refused += [Malformed(0, f"{each.turn[:26]}: {each.problem.message}") for each in told.refused]
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
        answer.warn("the file is not whole: export it again if you can")
    answer.give(moved, _moved_lines(moved, dry_run))


def _moved_lines(moved: RecordImport, dry_run: bool) -> Iterator[str]:
    yield f"{count(moved.records, 'record')} in {plain(moved.path)}"
    if not dry_run:
        yield f"  {moved.added:,} added, {moved.known:,} here already, {moved.differing:,} here with other words (kept)"
    for each in moved.refused[:5]:
        yield from wrapped(f"refused: {plain(each.reason)}", "    ", "  ")
    for each in moved.malformed[:5]:
        yield from wrapped(f"line {each.line}: {plain(each.reason)[:300]}", "    ", "  malformed: ")
    more = max(0, len(moved.refused) - 5) + max(0, len(moved.malformed) - 5)
    if more:
        yield f"  and {more} more: see --json"
