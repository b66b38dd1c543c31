"""`memd leave`: the end of the user's work on a project, and the way back (P4).

Comes in: a folder or a pool. Goes out: whether its memory is read from now on. Invariant: nothing is deleted; personal
memory goes on everywhere, the project's stays where it is.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

import typer

from ...protocol.errors import InvalidRequest
from ...protocol.scope import Left
from .contact import here, reach
from .output import Answer, JsonFlag, plain, wrapped
from .wording import count

app = typer.Typer(rich_markup_mode=None, add_completion=False)


@app.command()
def leave(
    folder: Annotated[str | None, typer.Argument(help="The project's folder, if not the current one.")] = None,
    pool: Annotated[
        str | None, typer.Option("--pool", help="The project by its pool or title, instead of a folder.")
    ] = None,
    back: Annotated[bool, typer.Option("--back", help="Come back to a project you left.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Leave a project: its memory is no longer read here, until you come back. Nothing is deleted.

    \b
    Examples:
      memd leave
      memd leave ~/src/orchard
      memd leave --back --pool orchard
    """
    with Answer("leave", as_json) as answer, reach() as client:
        if pool == "":
            raise InvalidRequest("a pool without a name", hint="`memd pools` lists them")
        told = client.leave("" if pool else here(folder), pool=pool or "", back=back)
        answer.give(told, _lines(told))


def _lines(told: Left) -> Iterator[str]:
    name, holds = plain(told.title) or plain(told.pool), count(told.records, "record")
    if not told.left:
        yield from wrapped(f"you work on {name}: its {holds} are read there again")
        return
    yield from wrapped(f"you left {name}: its {holds} stay, and are read only where you name it (--pool {name})")
    yield from wrapped(f"to come back: `memd leave --back --pool {plain(told.pool)}`")
