"""`memd scan`: does what is stored hold a secret that the rules of today know?

Comes in: a wish. Goes out: what was looked at, and where secrets stand, by rule, session and record; never their words.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

import typer

from .contact import reach
from .output import Answer, JsonFlag, plain, styled, wrapped
from .progress import wait_for_job
from .wording import count

SHOWN = 20

app = typer.Typer(rich_markup_mode=None, add_completion=False)


@app.command()
def scan(as_json: JsonFlag = False) -> None:
    """Look for secrets in everything that is stored, with the rules of today.

    New captures are scanned before they are stored; this is for those that an older memd took. It tells where secrets
    stand and changes nothing: `memd forget` removes what it names, for good.

    \b
    Examples:
      memd scan
      memd scan --json
    """
    with Answer("scan", as_json) as answer, reach() as client:
        report = dict(wait_for_job(client, client.scan(), answer).report)
        answer.give(report, told_lines(report))


def told_lines(report: dict[str, Any]) -> Iterator[str]:
    """What was looked at, what was found, and what to do about it."""
    looked = f"{count(report['checked_captures'], 'capture')} and {count(report['checked_records'], 'record')}"
    records, sessions = cast("list[str]", report["records"]), cast("list[str]", report["sessions"])
    if not records and not report["captures"]:
        yield styled(f"no secret in {looked}", "green")
        return
    found = f"{count(report['captures'], 'capture')} and {count(len(records), 'record')} of {looked} hold secrets"
    yield from (styled(line, "red") for line in wrapped(found))
    yield from wrapped(plain(", ".join(cast("list[str]", report["rules"]))), "  ", "- ")
    for way, names in (("", records), ("--session ", sessions)):
        yield from (plain(f"  memd forget {way}{name}") for name in names[:SHOWN])
        if len(names) > SHOWN:
            yield f"  and {len(names) - SHOWN} more: see --json"
