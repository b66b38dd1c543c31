"""`memd inbox`: what only you decide: deletions that an agent asked for, and what contradicts what you hold on to.

Comes in: nothing, or a word on a proposal. Goes out: proposals with what each would change (T13, G7).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal

import typer

from ...protocol.running import Inbox, Waiting
from .contact import PATIENCE_MS, reach
from .output import Answer, JsonFlag, plain, styled, wrapped
from .progress import wait_for_job
from .wording import age, count, short

app = typer.Typer(rich_markup_mode=None, add_completion=False, invoke_without_command=True)
AllFlag = Annotated[bool, typer.Option("--all", help="Also what is decided, or has no object any more.")]
Id = Annotated[str, typer.Argument(help="The proposal's id, or its beginning.")]


@app.callback()
def inbox(context: typer.Context, all: AllFlag = False, as_json: JsonFlag = False) -> None:
    """List what waits for your word, or give it.

    Two things wait: a deletion that an agent asks for, and a statement against what you pinned or who you are. What
    is unconfirmed does not: it is found, and marked. `memd list --status unconfirmed` shows it, `memd pin` confirms it.

    \b
    Examples:
      memd inbox
      memd inbox accept 7q3hjwch    # the new statement replaces the one you held, or the record is forgotten for good
      memd inbox reject 7q3hjwch    # everything stays as it is
    """
    if context.invoked_subcommand:
        return
    with Answer("inbox", as_json) as answer, reach() as client:
        told = client.inbox(all=all)
        answer.give(told, _lines(told))


@app.command()
def accept(id: Id, as_json: JsonFlag = False) -> None:
    """Do what is proposed: replace the record, or forget it for good.

    \b
    Example:
      memd inbox accept 7q3hjwch
    """
    _decide(id, "accept", as_json)


@app.command()
def reject(id: Id, as_json: JsonFlag = False) -> None:
    """Leave everything as it is, and take the proposal off the list.

    \b
    Example:
      memd inbox reject 7q3hjwch
    """
    _decide(id, "reject", as_json)


def _decide(id: str, word: Literal["accept", "reject"], as_json: bool) -> None:
    with Answer(f"inbox {word}", as_json) as answer, reach(4 * PATIENCE_MS) as client:
        told = client.decide(id, word == "accept")
        if told.job:
            done = wait_for_job(client, told.job, answer)
            left = done.report.get("left")
            said = "forgotten for good; no byte of it is left" if not left else "forgotten; see `memd status`"
            answer.give(done.report, [said])
            return
        answer.give(told, [f"{word}ed; {count(told.open, 'proposal')} left"])


def _lines(told: Inbox) -> Iterator[str]:
    if not told.proposals:
        yield "nothing waits for you"
    for each in told.proposals:
        yield from _proposal_lines(each)
    if told.open > len(told.proposals):
        yield f"and {told.open - len(told.proposals):,} more"


def _proposal_lines(each: Waiting) -> Iterator[str]:
    state = "" if each.state == "open" else f" · {styled(each.state, 'yellow')}"
    by = f" · {plain(each.by)}" if each.by else ""
    what = "forget for good?" if each.what == "forget" else f"{plain(each.label)}: {plain(each.reason)}"
    yield f"{styled(short(each.id), 'cyan')}  {what}{by} · {age(each.at)}{state}"
    yield from wrapped(f"{short(each.record)}  {plain(each.line) or '(gone)'}", " " * 14, "    ")
    if each.against:
        yield from wrapped(f"{short(each.against)}  {plain(each.against_line) or '(gone)'}", " " * 14, "  → ")
