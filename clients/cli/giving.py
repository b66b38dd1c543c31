"""`memd injected` and `memd context`: what agents got, and the whole context package as files (Q1, Q11).

Comes in: a session, or a folder. Goes out: exact texts with the reason for each; `context.md` and
`selected_memory.json`. Invariant: the files are written whole, readable by their owner alone.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from ...protocol.errors import Refused
from ...protocol.profile import ContextPackage, Injections
from .contact import PATIENCE_MS, here, path, reach
from .output import Answer, JsonFlag, complete, plain, styled, wrapped
from .wording import age, count

app = typer.Typer(rich_markup_mode=None, add_completion=False)
TEXT, SELECTED = "context.md", "selected_memory.json"


@app.command()
def injected(
    session: Annotated[str, typer.Argument(help="A session's name or document, or its beginning.")] = "",
    limit: Annotated[int, typer.Option(min=1, max=500, help="At most this many texts.")] = 5,
    as_json: JsonFlag = False,
) -> None:
    """Show the exact text that an agent got from memd, when, and why.

    \b
    Examples:
      memd injected
      memd injected claude-code:4d5611e5
    """
    with Answer("injected", as_json) as answer, reach() as client:
        told = client.injected(session, limit)
        answer.give(told, _injected_lines(told))


def _injected_lines(told: Injections) -> Iterator[str]:
    for number, each in enumerate(told.injections):
        if number:
            yield ""
        times = f", {each.times} times" if each.times > 1 else ""
        yield styled(f"{plain(each.document)} · {age(each.at)}{times} · because {plain(each.why)}", "bold")
        yield styled(f"revision {each.rev} · {count(each.tokens, 'token')} · {count(len(each.ids), 'record')}", "dim")
        yield from (plain(line) for line in each.text.splitlines())
    if not told.injections:
        yield "no agent was given anything yet"
    if told.total > len(told.injections):
        yield styled(f"{told.total - len(told.injections):,} older ones: --limit", "dim")


@app.command()
def context(
    project: Annotated[
        str | None, typer.Option("--project", help="A project by pool or title, if not this folder's.")
    ] = None,
    cwd: Annotated[str | None, typer.Option(help="The folder whose project is meant, if not the current one.")] = None,
    tag: Annotated[list[str] | None, typer.Option("--tag", help="A tag to choose the playbook by; repeatable.")] = None,
    days: Annotated[int, typer.Option(min=1, max=3650, help="How far back recent memory goes.")] = 14,
    out: Annotated[Path | None, typer.Option("--out", parser=path, help="A folder to write both files into.")] = None,
    as_json: JsonFlag = False,
) -> None:
    """Put together the context of a project: identity in full, the playbook by tag, what is recent.

    \b
    Without --out it prints the text; with it, context.md and selected_memory.json are written.
    Examples:
      memd context
      memd context --project orchard --days 7 --out .memd
    """
    with Answer("context", as_json) as answer, reach(PATIENCE_MS) as client:
        pools = ("personal", project) if project is not None else ()
        told = client.context(cwd=here(cwd), pools=pools, tags=tag or (), days=days)
        if out is None:
            answer.give(told, _context_lines(told))
            return
        _write(out, TEXT, told.context.encode())
        _write(out, SELECTED, msgspec.json.format(msgspec.json.encode(complete(told.selected)), indent=2) + b"\n")
        kept = f"{count(len(told.selected), 'record')}, about {told.tokens:,} tokens"
        answer.give(told, [f"{out / TEXT} and {SELECTED}: {kept}", *_left_out(told)])


def _context_lines(told: ContextPackage) -> Iterator[str]:
    yield from (plain(line) for line in told.context.splitlines())
    if not told.selected:
        yield f"Nothing yet from {', '.join(map(plain, told.scope))}."
    yield from _left_out(told)


def _left_out(told: ContextPackage) -> Iterator[str]:
    if told.left_out:
        yield from wrapped(f"{count(told.left_out, 'older record')} left out: at most 2,000 of L3 go into one package")


def _write(folder: Path, name: str, content: bytes) -> None:
    """One file, whole or not at all."""
    fresh = folder / f".{name}.{os.getpid()}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        fresh.replace(folder / name)
    except OSError as error:
        raise Refused(f"{folder / name}: {error.strerror}", hint="name a folder you can write to") from error
