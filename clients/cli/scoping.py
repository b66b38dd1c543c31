"""`memd scope why`, `memd scope bind`, `memd scope move`: which pool a folder or a record belongs to, and mending it.

Comes in: a folder, ids, a pool. Goes out: what is true afterwards, in words. Invariants: `why` changes nothing; a
folder that is no repository becomes a project by an id file, which is written only with --new.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from ...protocol.errors import InvalidRequest, Refused
from ...protocol.scope import Bound, RecordsMoved, Scope
from .contact import here, reach
from .output import Answer, JsonFlag, plain, styled, wrapped
from .wording import count, short

app = typer.Typer(
    rich_markup_mode=None,
    add_completion=False,
    help="Which pool a folder or a record belongs to, why, and how to change that.",
    epilog="Example: `memd scope why` in a project's folder.",
)
PERSONAL = "personal"
ID_FILE = ".memd-id"
_KINDS = {
    "repository": "the repository",
    "id": "the id file",
    "checkout": "the checkout",
    "folder": "the folder",
    "pool": "the former pool",
}


@app.command()
def why(
    folder: Annotated[str | None, typer.Argument(help="The folder, if not the current one.")] = None,
    as_json: JsonFlag = False,
) -> None:
    """Say which pool a folder belongs to, and by which evidence.

    \b
    Examples:
      memd scope why
      memd scope why ~/src/orchard --json | jq -r .data.pool
    """
    with Answer("scope why", as_json) as answer, reach() as client:
        told = client.why_scope(here(folder))
        answer.give(told, _why_lines(told))


def _why_lines(told: Scope) -> Iterator[str]:
    title = f" ({plain(told.title)})" if told.title and told.pool != PERSONAL else ""
    yield styled(f"{plain(told.folder)} belongs to {plain(told.pool)}{title}", "bold")
    yield from wrapped(f"because of {plain(told.evidence)}" if told.seen == "repository" else plain(told.evidence))
    if not told.is_open:
        yield "nothing was captured for it yet: the pool is opened by the first session"
    elif told.pool != PERSONAL:
        yield f"it holds {count(told.records, 'record')}"
    if told.left:
        yield from wrapped("you left this project, so its memory is not read here; `memd leave --back` comes back")
    yield from wrapped(f"a question from here reads {' and '.join(plain(pool) for pool in told.reads)}")
    for name in told.names:
        kind, _, rest = name.partition(":")
        yield from (
            styled(line, "dim") for line in wrapped(f"  also by {_KINDS.get(kind, kind)} {plain(rest)}", "    ")
        )
    for pool, what in told.alike:
        yield from wrapped(f"not to be confused with {plain(pool)}: {what}; `memd scope bind` says they are one")
    if told.pool.startswith("unbound/"):
        yield from wrapped("`memd scope bind POOL` gives it to a project, `memd scope bind --new` makes it one")


@app.command()
def bind(
    pool: Annotated[
        str | None, typer.Argument(help="A pool of `memd pools`, or its beginning; left out with the options.")
    ] = None,
    folder: Annotated[str | None, typer.Argument(help="The folder, if not the current one.")] = None,
    personal: Annotated[bool, typer.Option("--personal", help="It is no project: to your own pool.")] = False,
    new: Annotated[bool, typer.Option("--new", help="A project of its own; a plain folder gets an id file.")] = False,
    title: Annotated[str, typer.Option(help="With --new: the project's name.")] = "",
    join: Annotated[bool, typer.Option("--join", help="Bring the memory of its present project along.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Say which pool a folder belongs to: its repository with all clones, or the folder with all below.

    What was learnt there before it was bound to anything comes along.

    \b
    Examples:
      memd scope bind orchard ~/src/orchard-fork
      memd scope bind --personal ~/notes
      memd scope bind --new --title garden ~/plants
    """
    with Answer("scope bind", as_json) as answer, reach() as client:
        if personal or new:
            if folder is not None or (personal and new):
                raise InvalidRequest("one pool is enough", hint="POOL, or --personal, or --new; then the folder")
            pool, folder = PERSONAL if personal else "", pool
        elif not pool:
            raise InvalidRequest("no pool was named", hint="`memd pools` lists them; or --personal, or --new")
        where = here(folder)
        if new:
            _mark(where, client.why_scope(where), answer)
        told = client.bind_scope(where, pool or "", title=title, join=join)
        answer.give(told, _bind_lines(told))


def _mark(folder: str, told: Scope, answer: Answer) -> None:
    """Gives a folder that is no repository an id file, so that it is the same project wherever it lies."""
    file = Path(folder) / ID_FILE
    if told.seen != "folder" or file.exists():
        return
    try:
        file.write_text(f"{uuid.uuid4()}\n", encoding="ascii")
    except OSError as error:
        raise Refused(f"{file}: {error.strerror}", hint="choose a folder that you may write to") from error
    answer.warn(f"{file} names the project from now on: it may be copied and committed along")


def _bind_lines(told: Bound) -> Iterator[str]:
    title = f" ({plain(told.title)})" if told.title and told.pool != PERSONAL else ""
    yield from wrapped(f"{plain(told.folder)} belongs to {plain(told.pool)}{title}")
    if told.moved:
        yield from wrapped(f"{count(told.moved, 'record')} of {plain(told.was)} came along")
    if told.unkeyed:
        yield from wrapped(f"to be looked at, because their key is taken there: {_ids(told.unkeyed)}")
    if told.stays:
        yield from wrapped(
            f"{count(told.stays, 'record')} stay in {plain(told.was)}: `memd scope bind … --join` brings them along"
        )
    if told.was != told.pool:
        yield from wrapped(f"to take it back: `memd scope bind {plain(told.was)}`")


@app.command()
def move(
    words: Annotated[list[str], typer.Argument(metavar="ID... POOL", help="Records, then the pool they belong to.")],
    as_json: JsonFlag = False,
) -> None:
    """Put records into another pool. Their ids, history and keys go with them; `memd why` shows the way.

    \b
    Examples:
      memd scope move 7q3hjwch orchard
      memd scope move 7q3hjwch 2m9c0fxe personal
    """
    with Answer("scope move", as_json) as answer, reach() as client:
        *ids, pool = words
        if not ids:
            raise InvalidRequest("a record and a pool are needed", hint="memd scope move ID... POOL")
        told = client.move_records(ids, pool)
        answer.give(told, _move_lines(told))


def _move_lines(told: RecordsMoved) -> Iterator[str]:
    title = f" ({plain(told.title)})" if told.title and told.pool != PERSONAL else ""
    if told.moved:
        yield from wrapped(f"{_ids(told.moved)}: now in {plain(told.pool)}{title}")
    if told.there:
        yield from wrapped(f"{_ids(told.there)}: there already")
    if told.unkeyed:
        yield from wrapped(f"to be looked at, because their key is taken there: {_ids(told.unkeyed)}")


def _ids(ids: tuple[str, ...]) -> str:
    more = f" and {len(ids) - 8:,} more" if len(ids) > 8 else ""
    return ", ".join(short(id) for id in ids[:8]) + more
