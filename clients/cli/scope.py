"""`memd scope`, `memd leave`, `memd pools`: pools, and the pool of a folder or a record."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from ...protocol.errors import InvalidRequest, Refused
from ...protocol.event import Visibility
from ...protocol.reply import PoolList
from ...protocol.scope import Bound, Left, RecordsMoved, Scope
from ..hooks.session_pulls import stop_pulling
from .connection import reach
from .options import DryRun, here
from .output import CommandAnswer, JsonFlag, plain, plain_name, styled, wrapped
from .wording import UNBOUND, count, pool_argument, pool_name, short, status_counts

app = typer.Typer(rich_markup_mode=None, add_completion=False)
scope_app = typer.Typer(
    rich_markup_mode=None,
    add_completion=False,
    help="Show or change the pool of a folder or a record.",
    epilog="Example: `memd scope why` in a project's folder.",
)
app.add_typer(scope_app, name="scope")

PERSONAL = "personal"
ID_FILE = ".memd-id"
_KINDS = {
    "repository": "the repository",
    "id": "the id file",
    "checkout": "the checkout",
    "folder": "the folder",
    "pool": "the former pool",
}

Folder = Annotated[str | None, typer.Argument(help="The folder, if not the current one.")]


@scope_app.command()
def why(folder: Folder = None, as_json: JsonFlag = False) -> None:
    """Show which pool a folder belongs to, and the evidence.

    \b
    Examples:
      memd scope why
      memd scope why ~/src/orchard --json | jq -r .data.pool
    """
    with CommandAnswer("scope why", as_json) as answer, reach() as client:
        scope = client.why_scope(here(folder))
        answer.give(scope, _why_lines(scope))


def _titled(pool: str, title: str) -> str:
    """A pool with its title, if that says more."""
    return f"{pool_name(pool)} ({plain_name(title)})" if title and pool != PERSONAL else pool_name(pool)


def _why_lines(scope: Scope) -> Iterator[str]:
    is_unbound = scope.pool.startswith(UNBOUND)
    belongs = "has no project" if is_unbound else f"belongs to {_titled(scope.pool, scope.title)}"
    yield styled(f"{plain_name(scope.folder)} {belongs}", "bold")
    yield from wrapped(f"because of {plain(scope.evidence)}" if scope.seen == "repository" else plain(scope.evidence))
    if not scope.is_open:
        yield "nothing was captured for it yet: the first session opens the pool"
    elif scope.pool != PERSONAL:
        yield f"it holds {count(scope.records, 'record')}"
    if scope.left:
        yield from wrapped("you left this project, so its memory is not read here; to return: `memd leave --back`")
    yield from wrapped(
        f"a search from here reads {' and '.join(pool_name(pool, 'this folder') for pool in scope.reads)}"
    )
    for name in scope.names:
        kind, _, rest = name.partition(":")
        text = f"also identified by {_KINDS.get(kind, kind)} {plain(rest)}"
        yield from (styled(line, "dim") for line in wrapped(text, "    ", "  "))
    for pool, difference in scope.alike:
        yield from wrapped(f"similar to {plain(pool)}: {difference}; if they are the same, use `memd scope bind`")
    if is_unbound:
        yield from wrapped("to link it to a project: `memd scope bind POOL`, or `memd scope bind --new`")


@scope_app.command()
def bind(
    pool: Annotated[
        str | None, typer.Argument(help="A pool from `memd pools`, or a unique prefix; omit with --personal or --new.")
    ] = None,
    folder: Folder = None,
    personal: Annotated[bool, typer.Option("--personal", help="Assign it to your personal pool.")] = False,
    new: Annotated[bool, typer.Option("--new", help="Create a project; a plain folder gets an id file.")] = False,
    title: Annotated[str, typer.Option(help="With --new: the project's name.")] = "",
    join: Annotated[bool, typer.Option("--join", help="Also move the records of its current project.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Assign a folder to a pool.

    This covers a repository with all its clones, or a folder with everything below it. Records that memd learned
    there while the folder was unbound move along.

    \b
    Examples:
      memd scope bind orchard ~/src/orchard-fork
      memd scope bind --personal ~/notes
      memd scope bind --new --title garden ~/plants
    """
    with CommandAnswer("scope bind", as_json) as answer, reach() as client:
        if personal or new:
            if folder is not None or (personal and new):
                raise InvalidRequest(
                    "more than one pool was named", hint="use POOL, --personal or --new, then the folder"
                )
            pool, folder = PERSONAL if personal else "", pool
        elif not pool:
            raise InvalidRequest("no pool was named", hint="`memd pools` lists them; or use --personal or --new")
        where = here(folder)
        if new:
            _write_id_file(where, client.why_scope(where), answer)
        bound = client.bind_scope(where, pool or "", title=title, join=join)
        answer.give(bound, _bind_lines(bound))


def _write_id_file(folder: str, scope: Scope, answer: CommandAnswer) -> None:
    """Give a folder that is no repository an id file, so that it stays the same project when it moves."""
    file = Path(folder) / ID_FILE
    if scope.seen != "folder" or file.exists():
        return
    try:
        file.write_text(f"{uuid.uuid4()}\n", encoding="ascii")
    except OSError as error:
        raise Refused(f"{file}: {error.strerror}", hint="choose a folder that you can write to") from error
    answer.warn(f"{file} now identifies the project; you can copy and commit it")


def _bind_lines(bound: Bound) -> Iterator[str]:
    yield from wrapped(f"{plain_name(bound.folder)} belongs to {_titled(bound.pool, bound.title)}")
    if bound.moved:
        yield from wrapped(f"moved {count(bound.moved, 'record')} from {pool_name(bound.was, 'the folder itself')}")
    yield from _unkeyed_lines(bound.unkeyed)
    if bound.stays:
        stay = count(bound.stays, "record stays", "records stay")
        yield from wrapped(f"{stay} in {pool_name(bound.was)}; to move them too: `memd scope bind … --join`")
    if bound.was != bound.pool:
        yield from wrapped(f"to reverse this: `memd scope bind {pool_argument(bound.was)}`")


def _unkeyed_lines(ids: tuple[str, ...]) -> Iterator[str]:
    if ids:
        yield from wrapped(f"please review, because another record there has the same key: {_ids(ids)}")


@scope_app.command()
def move(
    words: Annotated[list[str], typer.Argument(metavar="ID... POOL", help="Records, then their new pool.")],
    copy: Annotated[bool, typer.Option("--copy", help="Keep them, and copy them into the pool.")] = False,
    visibility: Annotated[
        Visibility | None,
        typer.Option(
            help="Instead of a pool: who may see them without a choice in `memd share review`; private: nobody."
        ),
    ] = None,
    dry_run: DryRun = False,
    as_json: JsonFlag = False,
) -> None:
    """Move records to another pool, with their ids, history and keys.

    A copy names the record that it comes from. The visibility grows by one step at a time, from private to shared to
    organisation, only in a project, and `memd why` shows each step. `memd share on --new-sessions` makes new sessions
    and their records shared; a record that you make private again stays until you choose it in `memd share review`.

    \b
    Examples:
      memd scope move 7q3hjwch orchard
      memd scope move 7q3hjwch 2m9c0fxe personal
      memd scope move 7q3hjwch personal --copy
      memd scope move 7q3hjwch --visibility shared
    """
    with CommandAnswer("scope move", as_json) as answer, reach() as client:
        ids, pool = (words, "") if visibility else (words[:-1], words[-1])
        if not ids:
            raise InvalidRequest("name at least one record, then a pool", hint="memd scope move ID... POOL")
        moved = client.move_records(ids, pool, copy=copy, visibility=visibility or "", dry_run=dry_run)
        answer.give(moved, _move_lines(moved))


def _move_lines(moved: RecordsMoved) -> Iterator[str]:
    if moved.moved:
        now = "would be" if moved.dry_run else "now"
        if moved.copies:
            now = f"{'would be copied' if moved.dry_run else 'copied'} as {_ids(moved.copies)}"
        if moved.visibility:
            yield from wrapped(f"{_ids(moved.moved)}: {now} {moved.visibility}")
            return
        yield from wrapped(f"{_ids(moved.moved)}: {now} in {_titled(moved.pool, moved.title)}")
    if moved.there:
        yield from wrapped(f"{_ids(moved.there)}: already there")
    yield from _unkeyed_lines(moved.unkeyed)


def _ids(ids: tuple[str, ...]) -> str:
    more = f" and {len(ids) - 8:,} more" if len(ids) > 8 else ""
    return ", ".join(short(id) for id in ids[:8]) + more


@app.command()
def leave(
    folder: Annotated[str | None, typer.Argument(help="The project's folder, if not the current one.")] = None,
    pool: Annotated[
        str | None, typer.Option("--pool", help="The project's pool or title, instead of a folder.")
    ] = None,
    back: Annotated[bool, typer.Option("--back", help="Return to a project you left.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Stop reading a project's memory, or start again. Nothing is deleted.

    Leaving also ends sharing it, as `memd share off` does. A return does not share it again; `memd share on` does.

    \b
    Examples:
      memd leave
      memd leave ~/src/orchard
      memd leave --back --pool orchard
    """
    with CommandAnswer("leave", as_json) as answer, reach() as client:
        if pool == "":
            raise InvalidRequest("the pool's name is empty", hint="`memd pools` lists them")
        left = client.leave("" if pool else here(folder), pool=pool or "", back=back)
        if left.unshared:
            stop_pulling(client.places, left.pool)
        answer.give(left, _leave_lines(left))


def _leave_lines(left: Left) -> Iterator[str]:
    name, records = plain_name(left.title) or plain_name(left.pool), count(left.records, "record")
    if not left.left:
        yield from wrapped(f"you returned to {name}: memd reads its {records} there again")
        return
    yield from wrapped(f"you left {name}: memd keeps its {records}, and reads them only with --pool {name}")
    if left.unshared:
        pool = plain_name(left.pool)
        yield from wrapped(
            "its memory is no longer shared: nothing is pushed or pulled, and others keep what they have; "
            f"`memd share off --withdraw --pool {pool}` takes it back from them"
        )
    yield from wrapped(f"to return: `memd leave --back --pool {plain_name(left.pool)}`")


@app.command()
def pools(as_json: JsonFlag = False) -> None:
    """List pools: your personal one and one per project.

    \b
    Examples:
      memd pools
      memd recall "database" --pool project/3f2a   # a unique prefix is enough
    """
    with CommandAnswer("pools", as_json) as answer, reach() as client:
        listed = client.pools()
        answer.give(listed, _pool_lines(listed))


def _pool_lines(listed: PoolList) -> Iterator[str]:
    longest = max((len(pool_argument(pool.pool)) for pool in listed.pools), default=0)
    for pool in listed.pools:
        title = f"  {plain_name(pool.title)}" if pool.title else ""
        title += ", a folder without a project" if pool.pool.startswith(UNBOUND) else ""
        counts = styled(status_counts(pool.counts) or "empty", "dim")
        yield f"{styled(f'{pool_argument(pool.pool):<{longest}}', 'cyan')}{title}  {counts}"
