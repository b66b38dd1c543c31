"""`memd injected` and `memd context`: texts that agents received, and the context package of a project."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from ...protocol.errors import Refused
from ...protocol.profile import ContextPackage, Injections
from .connection import PATIENCE_MS, reach
from .options import AsOf, BelievedAt, Cwd, here, instant, path
from .output import CommandAnswer, JsonFlag, plain, plain_name, styled, wrapped
from .selected_memory import selected_memory
from .wording import age, count

app = typer.Typer(rich_markup_mode=None, add_completion=False)
PERSONAL = "personal"
TEXT, SELECTED = "context.md", "selected_memory.json"
IGNORE = ".gitignore"


@app.command()
def injected(
    session: Annotated[str, typer.Argument(help="A session's name or document, or a unique prefix.")] = "",
    limit: Annotated[int, typer.Option(min=1, max=500, help="At most this many texts.")] = 5,
    as_json: JsonFlag = False,
) -> None:
    """Show the exact texts that agents received. Each has a time and a reason.

    A text is a profile, or what a prompt recalled; then the prompt stands beside it.

    \b
    Examples:
      memd injected
      memd injected claude-code:4d5611e5
    """
    with CommandAnswer("injected", as_json) as answer, reach() as client:
        listed = client.injected(session, limit)
        answer.give(listed, _injected_lines(listed))


def _injected_lines(listed: Injections) -> Iterator[str]:
    for number, text in enumerate(listed.injections):
        if number:
            yield ""
        times = f", {text.times} times" if text.times > 1 else ""
        yield styled(f"{plain_name(text.document)} · {age(text.at)}{times} · because {plain(text.why)}", "bold")
        if text.turn:
            yield styled(f"prompt of turn {plain_name(text.turn)}: {plain(text.prompt)}", "dim")
        elif text.asked_at:
            yield styled("memd has not captured its prompt, or the prompt is forgotten", "dim")
        yield styled(f"revision {text.rev} · {count(text.tokens, 'token')} · {count(len(text.ids), 'record')}", "dim")
        yield from (plain(line) for line in text.text.splitlines())
    if not listed.injections:
        yield "no agent has received a text yet"
    if listed.total > len(listed.injections):
        yield styled(f"{listed.total - len(listed.injections):,} older texts: use --limit", "dim")


@app.command()
def context(
    project: Annotated[
        str | None, typer.Option("--project", help="A project by pool or title, instead of by folder.")
    ] = None,
    cwd: Cwd = None,
    tag: Annotated[list[str] | None, typer.Option("--tag", help="Only the playbook with this tag; repeatable.")] = None,
    days: Annotated[
        int | None,
        typer.Option(
            min=1, max=3650, help="Include records of this many days.", show_default="as the project's policy"
        ),
    ] = None,
    as_of: AsOf = "",
    believed_at: BelievedAt = "",
    out: Annotated[Path | None, typer.Option("--out", parser=path, help="Write both files into this folder.")] = None,
    as_json: JsonFlag = False,
) -> None:
    """Build the context package of a project.

    It contains all pinned records, the playbook for the given tags, and recent records. Without --out the command
    prints the text; with --out it writes context.md, and selected_memory.json with the records as a .pi folder has
    them. With personal records it first names both files in a .gitignore in that folder, so that git does not add them
    to a repository. A file .pi.project.yaml at or above the folder chooses what this part of the project needs.

    \b
    Examples:
      memd context
      memd context --project orchard --days 7 --out .memd
    """
    with CommandAnswer("context", as_json) as answer, reach(PATIENCE_MS) as client:
        pools = (PERSONAL, project) if project is not None else ()
        package = client.context(
            cwd=here(cwd),
            pools=pools,
            tags=tag or (),
            days=days or 0,
            as_of=instant(as_of),
            believed_at=instant(believed_at),
        )
        if out is None:
            answer.give(package, _context_lines(package))
            return
        is_personal = any(row.record.pool == PERSONAL for row in package.selected)
        notes = _ignored(out) if is_personal else []
        _write(out, TEXT, package.context.encode())
        _write(
            out, SELECTED, msgspec.json.format(msgspec.json.encode(selected_memory(package.selected)), indent=2) + b"\n"
        )
        size = f"{count(len(package.selected), 'record')}, about {package.tokens:,} tokens"
        answer.give(package, [f"wrote {out / TEXT} and {SELECTED}: {size}", *notes, *_left_out(package)])


def _context_lines(package: ContextPackage) -> Iterator[str]:
    yield from (plain(line) for line in package.context.splitlines())
    if not package.selected:
        yield f"Nothing yet from {', '.join(map(plain, package.scope))}."
    yield from _left_out(package)


def _left_out(package: ContextPackage) -> Iterator[str]:
    if package.left_out:
        yield from wrapped(
            f"{count(package.left_out, 'older record')} left out: a package has at most 2,000 recent records"
        )


def _ignored(folder: Path) -> list[str]:
    """Name both files in the folder's `.gitignore`; return a note for the user. Raises Refused."""
    file = folder / IGNORE
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with file.open("a+b") as stream:
            stream.seek(0)
            content = stream.read()
            lines = content.splitlines()
            missing = [name for name in (IGNORE, TEXT, SELECTED) if f"/{name}".encode() not in lines]
            if content:
                missing = [name for name in missing if name != IGNORE]  # the user's own file may be tracked
            if missing:
                start = [""] if content and not content.endswith(b"\n") else []
                stream.write("\n".join([*start, *(f"/{name}" for name in missing), ""]).encode())
    except OSError as error:
        raise Refused(f"{file}: {error.strerror}", hint="choose a folder that you can write to") from error
    return list(wrapped(f"{file} keeps both files out of git, because they contain personal records"))


def _write(folder: Path, name: str, content: bytes) -> None:
    """Write a file completely or not at all, readable by its owner only."""
    fresh = folder / f".{name}.{os.getpid()}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        fresh.replace(folder / name)
    except OSError as error:
        raise Refused(f"{folder / name}: {error.strerror}", hint="choose a folder that you can write to") from error
