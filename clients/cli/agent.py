"""`memd agent`: agents with a memory of their own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

import typer

from ...protocol.record import LIVE
from ...protocol.reply import PoolList
from .connection import reach
from .output import CommandAnswer, JsonFlag, plain, plain_name, styled
from .wording import count

app = typer.Typer(rich_markup_mode=None, add_completion=False)
agent_app = typer.Typer(rich_markup_mode=None, add_completion=False, invoke_without_command=True)
app.add_typer(agent_app, name="agent")


@agent_app.callback()
def agents(context: typer.Context, as_json: JsonFlag = False) -> None:
    """List agents with their own memory, or create one.

    \b
    Examples:
      memd agent
      memd agent add reviewer --role "reviews pull requests" -p security -p cost
      memd recall "what went wrong in reviews" --agent reviewer
    """
    if context.invoked_subcommand:
        return
    with CommandAnswer("agent", as_json) as answer, reach() as client:
        agents = PoolList(pools=tuple(pool for pool in client.pools().pools if pool.pool.startswith("agent/")))
        answer.give(agents, _agent_lines(agents))


@agent_app.command()
def add(
    name: Annotated[str, typer.Argument(help="The agent's name in its sessions.")],
    role: Annotated[str, typer.Option(help="Its role, in a few words.")] = "",
    perspective: Annotated[
        list[str] | None,
        typer.Option("--perspective", "-p", help="A concern of the agent, with keywords if you like; repeatable."),
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """Create an agent's memory, or change its role and perspectives.

    From then on memd stores what the agent says in its own memory, and what you say in yours. A recall under a
    perspective also searches its keywords.

    \b
    Example:
      memd agent add reviewer --role "reviews pull requests" -p security -p cost
      memd agent add reviewer -p "security: cve, auth, token" -p "cost: price, quota"
    """
    with CommandAnswer("agent add", as_json) as answer, reach() as client:
        agent = client.open_agent(name, role=role, perspectives=perspective or ())
        outcome = "now has its own memory" if agent.new else "changed"
        concerns = f"; perspectives: {', '.join(map(plain, agent.perspectives))}" if agent.perspectives else ""
        answer.give(agent, [f"{styled(plain_name(agent.pool), 'bold')} {outcome}{concerns}"])


def _agent_lines(agents: PoolList) -> Iterator[str]:
    if not agents.pools:
        yield "no agent has its own memory; to create one: `memd agent add NAME`"
    for agent in agents.pools:
        held = count(sum(agent.counts.get(status, 0) for status in LIVE), "record")
        role = f" · {plain_name(agent.role)}" if agent.role else ""
        concerns = f" · {', '.join(map(plain, agent.perspectives))}" if agent.perspectives else ""
        yield f"{styled(plain_name(agent.pool), 'bold')}{role}{concerns} · {held}"
