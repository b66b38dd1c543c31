"""`memd grant`, `memd revoke`, `memd grants`: who may read what, and what nobody is shown any more (A1, A3).

Comes in: a subject, pools, sources; an id. Goes out: a pass, told once; how things stand. Invariant: the pass goes to
standard output alone, so that it can be piped and never stands in a log.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

import typer

from ...protocol.access import Grants, GrantState, PassGranted, Revocation
from ...protocol.errors import InvalidRequest
from .contact import PATIENCE_MS, reach, seconds
from .output import Answer, JsonFlag, plain, styled, wrapped
from .wording import age, count, moment

app = typer.Typer(rich_markup_mode=None, add_completion=False)
Pools = Annotated[list[str] | None, typer.Option("--pool", help="A pool it may read, by name or title; repeatable.")]
Sources = Annotated[list[str] | None, typer.Option("--source", help="A host (claude-code) or a session; repeatable.")]


@app.command()
def grant(
    subject: Annotated[str, typer.Argument(help="Whom the pass is for: an agent, a tool, a person.")] = "",
    pool: Pools = None,
    source: Sources = None,
    for_: Annotated[str, typer.Option("--for", help="How long it holds: 90m, 12h, 1d12h, 30d, 8w.")] = "30d",
    back: Annotated[bool, typer.Option("--back", help="Show again what was revoked of these sources.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Sign a pass: its bearer reads these pools and sources alone, for a while. It is told once.

    \b
    A client asks under the pass in the environment variable MEMD_PASS.
    Examples:
      memd grant reviewer --pool orchard --for 7d
      MEMD_PASS=$(memd grant ci --pool orchard) memd recall deploy --pool orchard
      memd grant --back --source claude-code    # what `memd revoke --source` hid is shown again
    """
    with Answer("grant", as_json) as answer, reach(PATIENCE_MS) as client:
        if back:
            if subject:
                raise InvalidRequest("--back takes sources alone", hint="memd grant --back --source NAME")
            told = client.grant(sources=source or (), back=True)
        else:
            told = client.grant(subject, pools=pool or (), sources=source or (), for_s=seconds(for_))
        if told.grant and not as_json:
            answer.warn(_granted(told.grant))
        answer.give(told, _pass_lines(told))


def _pass_lines(told: PassGranted) -> Iterator[str]:
    yield told.token or f"{count(told.shown, 'record')} shown again"


def _granted(grant: GrantState) -> str:
    return f"grant {grant.id}: {plain(grant.subject)} reads {_reach(grant)} until {moment(grant.expires_at)}"


def _reach(grant: GrantState) -> str:
    pools = ", ".join(map(plain, grant.pools)) or "every pool"
    return f"{pools}, of {', '.join(map(plain, grant.sources))} alone" if grant.sources else pools


@app.command()
def revoke(
    id: Annotated[str, typer.Argument(help="The grant's id, or its beginning.")] = "",
    source: Annotated[str, typer.Option("--source", help="A host or a session instead: hide all it led to.")] = "",
    as_json: JsonFlag = False,
) -> None:
    """Void a pass, or hide everything that was derived from a source. Nothing is deleted.

    \b
    Examples:
      memd revoke 3f2a90b1
      memd revoke --source claude-code
      memd grant --back --source claude-code    # the way back
    """
    with Answer("revoke", as_json) as answer, reach(PATIENCE_MS) as client:
        told = client.revoke(id, source=source)
        answer.give(told, _revoked_lines(told, source))


def _revoked_lines(told: Revocation, source: str) -> Iterator[str]:
    for each in told.grants:
        yield f"grant {each} is void"
    if not told.grants:
        again = f"; {count(told.believed_again, 'record')} believed again" if told.believed_again else ""
        yield f"{count(told.hidden, 'record')} of {count(len(told.documents), 'session')} hidden{again}"
        yield from wrapped(f"nothing of {plain(source)} is shown until `memd grant --back --source {plain(source)}`")


@app.command()
def grants(as_json: JsonFlag = False) -> None:
    """List the passes that were signed, and the sources of which nothing is shown.

    \b
    Example:
      memd grants
    """
    with Answer("grants", as_json) as answer, reach() as client:
        told = client.grants()
        answer.give(told, _grants_lines(told))


def _grants_lines(told: Grants) -> Iterator[str]:
    for each in told.grants:
        state = (
            styled(f"revoked {age(each.revoked_at)}", "yellow")
            if each.revoked_at
            else f"until {moment(each.expires_at)}"
        )
        yield f"{styled(each.id, 'cyan')}  {plain(each.subject)} reads {_reach(each)} · {state}"
    for source in told.sources:
        yield f"{styled('revoked', 'yellow')}  {plain(source.source)} · {age(source.at)}"
    if not told.grants and not told.sources:
        yield "no passes; whoever asks without one is you, and reads everything"
