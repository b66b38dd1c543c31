"""`memd agent`: agents with a memory of their own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

import typer

from ...protocol.agent_outcomes import AgentOutcomes, AgentRanking, Rating, TaskOutcome
from ...protocol.record import LIVE
from ...protocol.reply import PoolList
from .connection import reach
from .output import CommandAnswer, JsonFlag, plain, plain_name, shortened, styled, width
from .wording import count, moment

AGENT_HOSTS = frozenset(("claude-code", "codex", "pi", "gemini-cli"))

OUTCOME_WORDS: dict[TaskOutcome, str] = {
    "as_is_checked": "kept as it was, checks passed",
    "as_is": "kept as it was",
    "minor": "minor changes",
    "major": "major changes",
    "redo": "done again",
    "refused": "refused",
    "failed": "failed",
    "rerouted": "given to another agent",
    "interrupted": "interrupted",
    "silent": "nothing tells",
    "running": "under way",
}

app = typer.Typer(rich_markup_mode=None, add_completion=False)
agent_app = typer.Typer(rich_markup_mode=None, add_completion=False, invoke_without_command=True)
app.add_typer(agent_app, name="agent")


@agent_app.callback()
def agents(context: typer.Context, as_json: JsonFlag = False) -> None:
    """List agents with a memory, create one, rank them.

    \b
    Examples:
      memd agent
      memd agent add reviewer --role "reviews pull requests" -p security -p cost
      memd agent rank "find the slow query"
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


@agent_app.command()
def why(
    name: Annotated[str, typer.Argument(help="The agent's name in its sessions, or its host.")],
    as_json: JsonFlag = False,
) -> None:
    """Show what became of an agent's tasks.

    Each has the words that gave it. memd sees how many new lines the agent took away again within three turns, what
    you stopped or refused, and what was asked again. It stores no word of a task.

    \b
    Example:
      memd agent why Explore
    """
    with CommandAnswer("agent why", as_json) as answer, reach() as client:
        outcomes = client.explain_agent(name)
        answer.give(outcomes, _outcome_lines(outcomes))


@agent_app.command()
def judge(
    name: Annotated[str, typer.Argument(help="The agent's name.")],
    session: Annotated[str, typer.Argument(help="SESSION or SESSION:TURN; without a turn its last task there.")],
    outcome: Annotated[Rating | None, typer.Option("--outcome", help="as-is, minor, major, redo or failed.")] = None,
    perspective: Annotated[str, typer.Option("--perspective", "-p", help="The concern that you judged.")] = "",
    take_back: Annotated[bool, typer.Option("--take-back", help="Forget what you said of this task.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Say what became of a task. Your word counts in place of what memd saw.

    \b
    Examples:
      memd agent judge Explore 4d5611e5 --outcome as-is
      memd agent judge Explore 4d5611e5:toolu_012nL --outcome redo -p cost
      memd agent judge Explore 4d5611e5 --take-back
    """
    if (outcome is None) != take_back:
        raise typer.BadParameter("give --outcome, or --take-back")
    with CommandAnswer("agent judge", as_json) as answer, reach() as client:
        document, turn = _task_named(session)
        outcomes = client.rate_task(name, document, turn, outcome=outcome or "", perspective=perspective)
        answer.give(outcomes, _outcome_lines(outcomes))


@agent_app.command()
def rank(
    task: Annotated[str, typer.Argument(help="The task, in your words.")],
    agents: Annotated[str, typer.Option("--agents", help="Only these, separated by commas.")] = "",
    as_json: JsonFlag = False,
) -> None:
    """Rank agents for a task.

    Their roles count, and what became of similar tasks. memd ranks; you or the agent's host choose.

    \b
    Examples:
      memd agent rank "find the slow query"
      memd agent rank "find the slow query" --agents Explore,Plan
    """
    names = [name.strip() for name in agents.split(",") if name.strip()]
    with CommandAnswer("agent rank", as_json) as answer, reach() as client:
        ranking = client.rank_agents(task, names)
        answer.give(ranking, _rank_lines(ranking))


def _task_named(session: str) -> tuple[str, str]:
    """Return the session and the turn of `SESSION[:TURN]`; a session may begin with its host."""
    host, colon, rest = session.partition(":")
    if host in AGENT_HOSTS and colon:
        name, _, turn = rest.partition(":")
        return f"{host}:{name}", turn
    return host, rest


def _outcome_lines(outcomes: AgentOutcomes) -> Iterator[str]:
    if not outcomes.outcomes:
        yield "memd saw no task of it that it can judge"
    for each in outcomes.outcomes:
        by = " (you)" if each.by == "user" else ""
        concern = f" · {plain(each.perspective)}" if each.perspective else ""
        yield f"{moment(each.at)}  {each.weight:+.1f}  {styled(OUTCOME_WORDS[each.outcome], 'bold')}{by}{concern}"
        yield f"  {plain(each.document)}:{plain(each.turn)}"
        yield f"  {shortened(plain(each.task), width() - 2) if each.task else '(its words are gone)'}"


def _rank_lines(ranking: AgentRanking) -> Iterator[str]:
    if not ranking.agents:
        yield "no agent has a memory or an outcome; to create one: `memd agent add NAME`"
    for each in ranking.agents:
        basis = "by role only" if not each.n else "mostly by role" if each.by_role else ""
        seen = f"{count(each.n, 'similar task')} (counting as {each.n_eff:.1f})" if each.n else ""
        running = f"{each.running} running" if each.running else ""
        recent = f"recently {each.recent:+.1f}" if each.recent else ""
        facts = " · ".join(filter(None, (basis, seen, recent, running)))
        name = styled(plain_name(each.agent), "bold")
        yield f"{each.score:4.0%}  {name}  80 %: {each.low:.0%} to {each.high:.0%} · {facts}"


def _agent_lines(agents: PoolList) -> Iterator[str]:
    if not agents.pools:
        yield "no agent has its own memory; to create one: `memd agent add NAME`"
    for agent in agents.pools:
        held = count(sum(agent.counts.get(status, 0) for status in LIVE), "record")
        role = f" · {plain_name(agent.role)}" if agent.role else ""
        concerns = f" · {', '.join(map(plain, agent.perspectives))}" if agent.perspectives else ""
        yield f"{styled(plain_name(agent.pool), 'bold')}{role}{concerns} · {held}"
