"""`memd recall` and `memd profile`: what memd knows, with the source of every word.

Comes in: a question, or none. Goes out: records with score, author, session, turn and quote; what was left out (Q10).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

import typer

from ...protocol.errors import NotFound
from ...protocol.recall import Hit, Recalled
from ...protocol.record import LIVE
from .contact import AsOf, BelievedAt, here, instant, reach
from .depth import around_lines, linked_lines, period_text
from .output import Answer, JsonFlag, plain, say, styled, wrapped
from .wording import count, heard_lines, hit_lines, short

app = typer.Typer(rich_markup_mode=None, add_completion=False)

Cwd = Annotated[str | None, typer.Option(help="The folder whose project is meant, if not the current one.")]
Pools = Annotated[list[str] | None, typer.Option("--pool", help="A pool by name instead of by folder; repeatable.")]


@app.command()
def recall(
    query: Annotated[str, typer.Argument(help="A question, or words of what you look for.")],
    cwd: Cwd = None,
    pool: Pools = None,
    limit: Annotated[int, typer.Option(min=1, max=200, help="At most this many records.")] = 5,
    budget: Annotated[int, typer.Option(min=1, help="At most about this many tokens.")] = 1500,
    all: Annotated[bool, typer.Option("--all", help="Also what is retired.")] = False,
    as_of: AsOf = "",
    believed_at: BelievedAt = "",
    agent: Annotated[str, typer.Option(help="An agent with a memory of its own: also from that.")] = "",
    perspective: Annotated[str, typer.Option(help="What the asker cares about: ranks by what was used for it.")] = "",
    deep: Annotated[
        bool, typer.Option("--deep", help="Also what was said around it, how it changed, what is linked or archived.")
    ] = False,
    explain: Annotated[bool, typer.Option("--explain", help="Show the parts of each score.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Ask what memd knows. Each answer names who said it, when, and where.

    \b
    Examples:
      memd recall "why not postgres"
      memd recall indentation --all         # also what is no longer true
      memd recall database --as-of 2026-03-01
      memd recall "what did we decide last March"   # a time in the question narrows what is found
      memd recall database --deep           # the transcript around it, what was believed before, edges
      memd recall "backup" --pool personal --limit 3
      memd recall "what went wrong" --agent reviewer --perspective security
    """
    with Answer("recall", as_json) as answer, reach() as client:
        told = client.recall(
            query,
            cwd=here(cwd),
            pools=pool or (),
            limit=limit,
            budget_tokens=budget,
            include_retired=all,
            explain=explain,
            as_of=instant(as_of),
            believed_at=instant(believed_at),
            agent=agent,
            perspective=perspective,
            deep=deep,
        )
        _check_agent(agent, pool, told.scope)
        answer.give(told, recalled_lines(told, explain))


def _check_agent(agent: str, pools: list[str] | None, scope: tuple[str, ...]) -> None:
    """Raises NotFound where an agent's own memory was asked for and not read: the answer would look like its own."""
    if agent and not pools and f"agent/{agent}" not in scope:
        raise NotFound(
            f"there is no memory of an agent {agent!r} to read", hint="`memd agent` lists those that have one"
        )


def recalled_lines(told: Recalled, explain: bool = False) -> Iterator[str]:
    """A recall's answer as text."""
    found = sorted((*told.hits, *told.turns), key=lambda each: -each.score)
    for number, each in enumerate(found, 1):
        if number > 1:
            yield ""
        yield from hit_lines(number, each, explain) if isinstance(each, Hit) else heard_lines(number, each)
        yield from around_lines(each)
    if not found:
        yield from wrapped(f"Nothing that memd would vouch for: {plain(told.reason) or 'no record matches'}.")
        if told.nearest:
            near = f"Nearest: {plain(told.nearest.description)} ({short(told.nearest.id)}, {told.nearest.score:.2f})"
            yield from wrapped(near, "  ")
        if told.scope == ("personal",):
            yield "No project was asked: `--cwd` or `--pool` asks one, `memd pools` lists them."
    yield from linked_lines(told.linked)
    notes = [f"answer {plain(told.recall)}"] if told.recall and found else []
    notes += [f"searched {', '.join(plain(pool) for pool in told.scope)}"]
    notes += [period_text(*told.period)] if told.period else []
    notes += [f"{count(told.filtered, 'record')} left out"] if told.filtered else []
    notes += [f"kept back or marked: {', '.join(told.screened)} (see `memd scan`)"] if told.screened else []
    notes += [f"{count(told.pending, 'capture')} not distilled yet"] if told.pending else []
    notes += [plain(told.note)] if told.note else []
    yield ""
    yield from (styled(line, "dim") for line in wrapped("; ".join(notes)))


def _nothing(here_are: int, in_all: int) -> str:
    if here_are:
        return f"Nothing that every turn should know: `memd recall` finds the {count(here_are, 'record')} here."
    if in_all:
        return f"Nothing here yet: {count(in_all, 'record')} in other pools, which `memd pools` lists."
    return "Nothing yet. `memd import claude-code ~/.claude/projects` reads what you did before."


@app.command()
def profile(
    cwd: Cwd = None,
    pool: Pools = None,
    agent: Annotated[str, typer.Option(help="An agent with a memory of its own: also from that.")] = "",
    budget: Annotated[int, typer.Option(min=1, help="At most about this many tokens.")] = 500,
    as_json: JsonFlag = False,
) -> None:
    """Show what an agent would be told about you and this project.

    \b
    Examples:
      memd profile
      memd profile --cwd ~/src/orchard --budget 200
      memd injected                       # what agents really got, and when
    """
    with Answer("profile", as_json) as answer, reach() as client:
        told = client.profile(cwd=here(cwd), pools=pool or (), budget_tokens=budget, agent=agent)
        _check_agent(agent, pool, told.scope)
        answer.give(told)
        if as_json:
            return
        say(plain(line) for line in told.text.splitlines())
        live = {each.pool: sum(each.counts.get(status, 0) for status in LIVE) for each in client.pools().pools}
        here_are = sum(live.get(each, 0) for each in told.scope)
        if not told.ids:
            say([_nothing(here_are, sum(live.values()))])
        pending = f"; {count(told.pending, 'capture')} not distilled yet" if told.pending else ""
        held = f"{len(told.ids)} of {count(here_are, 'record')}, {count(told.tokens, 'token')}"
        notes = f"{held}, from {', '.join(told.scope)}{pending}"
        say(["", *(styled(line, "dim") for line in wrapped(notes))])
