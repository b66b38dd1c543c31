"""`memd grant`, `memd revoke`, `memd grants`: access passes and revoked sources."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated

import typer

from ...protocol.access import Grants, GrantState, Revocation
from ...protocol.errors import InvalidRequest
from .connection import PATIENCE_MS, reach
from .options import seconds
from .output import CommandAnswer, JsonFlag, plain_name, styled, wrapped
from .wording import age, count, moment

app = typer.Typer(rich_markup_mode=None, add_completion=False)
Pools = Annotated[
    list[str] | None, typer.Option("--pool", help="A pool that it may read, by name or title; repeatable.")
]
Sources = Annotated[
    list[str] | None, typer.Option("--source", help="Only records from this host (claude-code) or session; repeatable.")
]


@app.command()
def grant(
    subject: Annotated[str, typer.Argument(help="The holder of the pass: an agent, a tool or a person.")] = "",
    pool: Pools = None,
    all_pools: Annotated[
        bool, typer.Option("--all-pools", help="Instead of --pool: it may read every pool, the personal one too.")
    ] = False,
    source: Sources = None,
    for_: Annotated[str, typer.Option("--for", help="Valid for: 90m, 12h, 1d12h, 30d, 8w.")] = "30d",
    back: Annotated[bool, typer.Option("--back", help="Instead, restore revoked sources.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Issue a read-only pass for an agent or a tool. It covers only these pools and sources, and expires.

    Choose the pools with --pool, or --all-pools. memd prints the pass once. A client uses the pass in its environment
    variable MEMD_PASS.

    \b
    Examples:
      memd grant reviewer --pool orchard --for 7d
      MEMD_PASS=$(memd grant ci --pool orchard) memd recall deploy --pool orchard
      memd grant archivist --all-pools --for 1d
      memd grant --back --source claude-code    # reverses `memd revoke --source`
    """
    with CommandAnswer("grant", as_json) as answer, reach(PATIENCE_MS) as client:
        if back:
            if subject:
                raise InvalidRequest("--back needs --source and no subject", hint="memd grant --back --source NAME")
            granted = client.grant(sources=source or (), back=True)
        else:
            _check_pools(pool or (), all_pools)
            granted = client.grant(subject, pools=pool or (), sources=source or (), for_s=seconds(for_))
        if granted.grant and not as_json:  # on standard error: the pass alone goes to standard output
            subject, until = plain_name(granted.grant.subject), moment(granted.grant.expires_at)
            answer.warn(f"pass {granted.grant.id}: {subject} reads {_covered(granted.grant)} until {until}")
        answer.give(granted, [granted.token or f"{count(granted.shown, 'record')} restored"])


def _check_pools(pools: Sequence[str], all_pools: bool) -> None:
    """Raise InvalidRequest unless the user chose either some pools or all of them."""
    if bool(pools) == all_pools:
        problem = "both --pool and --all-pools were given" if pools else "no pool was named"
        raise InvalidRequest(
            problem, hint="name what the pass may read: --pool NAME (repeatable; see `memd pools`), or --all-pools"
        )


def _covered(grant: GrantState) -> str:
    pools = ", ".join(map(plain_name, grant.pools)) or "every pool"
    return f"{pools}, only from {', '.join(map(plain_name, grant.sources))}" if grant.sources else pools


@app.command()
def revoke(
    id: Annotated[str, typer.Argument(help="The pass's id, or a unique prefix.")] = "",
    source: Annotated[str, typer.Option("--source", help="Instead, hide everything from this host or session.")] = "",
    as_json: JsonFlag = False,
) -> None:
    """Revoke a pass, or hide everything from a source. Nothing is deleted.

    \b
    Examples:
      memd revoke 3f2a90b1
      memd revoke --source claude-code
      memd grant --back --source claude-code    # restores the source
    """
    with CommandAnswer("revoke", as_json) as answer, reach(PATIENCE_MS) as client:
        revoked = client.revoke(id, source=source)
        answer.give(revoked, _revoked_lines(revoked, source))


def _revoked_lines(revoked: Revocation, source: str) -> Iterator[str]:
    for id in revoked.grants:
        yield f"pass {id} is revoked"
    if not revoked.grants:
        restored = revoked.believed_again
        again = f"; {count(restored, 'record')} that they had replaced active again" if restored else ""
        yield from wrapped(
            f"hid {count(revoked.hidden, 'record')} from {count(len(revoked.documents), 'session')}{again}"
        )
        yield from wrapped(f"to restore the source: `memd grant --back --source {plain_name(source)}`")


@app.command()
def grants(as_json: JsonFlag = False) -> None:
    """List passes and revoked sources.

    \b
    Example:
      memd grants
    """
    with CommandAnswer("grants", as_json) as answer, reach() as client:
        listed = client.grants()
        answer.give(listed, _grants_lines(listed))


def _grants_lines(listed: Grants) -> Iterator[str]:
    for grant in listed.grants:
        revoked = styled(f"revoked {age(grant.revoked_at)}", "yellow") if grant.revoked_at else ""
        state = revoked or f"until {moment(grant.expires_at)}"
        yield f"{styled(grant.id, 'cyan')}  {plain_name(grant.subject)} reads {_covered(grant)} · {state}"
    for source in listed.sources:
        yield f"{styled('revoked', 'yellow')}  source {plain_name(source.source)} · {age(source.at)}"
    if not listed.grants and not listed.sources:
        yield "no passes; clients without a pass act as you and read everything"
