"""`memd session list|show`: the sessions memd has heard, and what came of each (W2).

Comes in: a name. Goes out: start, end and why, what was said and done, what was learnt.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

import typer

from ...protocol.session import SessionOutcome, SessionPage, SessionState
from .contact import reach
from .output import Answer, JsonFlag, plain, shortened, styled, width
from .wording import age, count

app = typer.Typer(
    rich_markup_mode=None,
    add_completion=False,
    help="The sessions memd has heard: list, show.",
    epilog="`memd undo SESSION` takes back what memd learnt from one, `memd forget --session SESSION` all of it.",
)


@app.command("list")
def list_sessions(
    host: Annotated[str, typer.Option(help="Of this host only: claude-code, pi, zsh, …")] = "",
    is_open: Annotated[bool, typer.Option("--open", help="Only those that go on.")] = False,
    limit: Annotated[int, typer.Option("-n", "--limit", min=1, max=1000, help="At most this many.")] = 20,
    as_json: JsonFlag = False,
) -> None:
    """List sessions, the one that began last first.

    \b
    Examples:
      memd session list
      memd session list --open
      memd session list --host zsh -n 5
    """
    with Answer("session list", as_json) as answer, reach() as client:
        told = client.sessions(host, is_open=is_open, limit=limit)
        answer.give(told, _page_lines(told))


def _page_lines(told: SessionPage) -> Iterator[str]:
    for each in told.sessions:
        head = f"{shortened(plain(each.document), 46):<46} {age(each.began_at):<15} {_end(each)}"
        yield styled(head, "bold") if not each.ended_at and each.live else head
        about = plain(each.title) or plain(each.cwd)
        if about:
            yield styled(f"  {shortened(about, width() - 2)}", "dim")
    if not told.sessions:
        yield "no session yet; `memd import` reads what agents left on this machine"
        return
    shown = f"{len(told.sessions):,} of " if told.total > len(told.sessions) else ""
    yield styled(f"{shown}{count(told.total, 'session')}, {told.going_on:,} going on", "dim")


def _end(each: SessionState) -> str:
    if each.ended_at:
        return f"ended ({plain(each.reason)})" if each.reason else "ended"
    return f"goes on, heard {age(each.heard_at)}" if each.live else "imported"


@app.command()
def show(
    id: Annotated[str, typer.Argument(help="A session as `memd session list` names it, or its beginning.")],
    as_json: JsonFlag = False,
) -> None:
    """Show one session: when it began and ended, what was said and done, what memd learnt from it.

    \b
    Example:
      memd session show claude-code:0b5c7b3e
    """
    with Answer("session show", as_json) as answer, reach() as client:
        told = client.session(id)
        answer.give(told, _outcome_lines(told))


def _outcome_lines(told: SessionOutcome) -> Iterator[str]:
    each = told.session
    yield styled(plain(each.document), "bold") + (f"  {plain(each.title)}" if each.title else "")
    rows = {
        "agent": plain(each.agent),
        "folder": plain(each.cwd),
        "pool": plain(each.pool) or "personal",
        "began": f"{plain(each.began_at)} ({age(each.began_at)})",
        "heard": f"{age(each.heard_at)}" if each.heard_at else "",
        "ended": f"{plain(each.ended_at)} ({plain(each.reason) or 'no reason given'})" if each.ended_at else _end(each),
        "turns": ", ".join(f"{number:,} {plain(name)}" for name, number in told.turns.items()) or "none is kept",
        "outcome": _outcome(told),
    }
    yield from (f"{styled(f'{name:<8}', 'dim')} {value}" for name, value in rows.items() if value)


def _outcome(told: SessionOutcome) -> str:
    learnt = ", ".join(f"{number:,} {name}" for name, number in sorted(told.records.items()))
    parts = [f"learnt: {learnt}" if learnt else "nothing learnt"]
    if told.troubles:
        parts.append(f"{count(told.troubles, 'call or command', 'calls or commands')} failed")
    if told.failed:
        parts.append(f"{count(told.failed, 'capture')} not distilled, see `memd retry`")
    return "; ".join(parts)
