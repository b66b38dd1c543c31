"""`memd agent`: agents with a role, perspectives and a memory of their own (P5).

Comes in: a name, as the agent's sessions carry it. Goes out: the agent as it stands. Invariant: nothing here takes a
memory away.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

import typer

from ...protocol.reply import PoolList
from .contact import reach
from .output import Answer, JsonFlag, plain, styled
from .wording import count

app = typer.Typer(rich_markup_mode=None, add_completion=False, invoke_without_command=True)
LIVE = ("active", "provisional", "quarantined")


@app.callback()
def agents(context: typer.Context, as_json: JsonFlag = False) -> None:
    """List the agents that have a memory of their own, or give one to an agent.

    \b
    Examples:
      memd agent
      memd agent add reviewer --role "reviews pull requests" --perspective security --perspective cost
      memd recall "what went wrong in reviews" --agent reviewer
    """
    if context.invoked_subcommand:
        return
    with Answer("agent", as_json) as answer, reach() as client:
        told = client.pools()
        kept = PoolList(pools=tuple(each for each in told.pools if each.pool.startswith("agent/")))
        answer.give(kept, _lines(kept))


@app.command()
def add(
    name: Annotated[str, typer.Argument(help="The agent's name, as its sessions carry it.")],
    role: Annotated[str, typer.Option(help="What it does, in a few words.")] = "",
    perspective: Annotated[
        list[str] | None, typer.Option("--perspective", "-p", help="What it cares about; repeatable, about five.")
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """Give an agent a memory of its own, or change its role and perspectives.

    What the agent itself says in its sessions is kept there from now on; what you say stays yours.

    \b
    Example:
      memd agent add reviewer --role "reviews pull requests" -p security -p cost -p style
    """
    with Answer("agent add", as_json) as answer, reach() as client:
        told = client.open_agent(name, role=role, perspectives=perspective or ())
        what = "has a memory of its own now" if told.new else "changed"
        cares = f"; it cares about {', '.join(map(plain, told.perspectives))}" if told.perspectives else ""
        answer.give(told, [f"{styled(plain(told.pool), 'bold')} {what}{cares}"])


def _lines(told: PoolList) -> Iterator[str]:
    if not told.pools:
        yield "no agent has a memory of its own; `memd agent add NAME` gives it one"
    for each in told.pools:
        held = count(sum(each.counts.get(status, 0) for status in LIVE), "record")
        role = f" · {plain(each.role)}" if each.role else ""
        cares = f" · {', '.join(map(plain, each.perspectives))}" if each.perspectives else ""
        yield f"{styled(plain(each.pool), 'bold')}{role}{cares} · {held}"
