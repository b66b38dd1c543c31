"""`memd tail`: the journal's operations as they are written.

Comes in: a place in the journal. Goes out: one line an operation; with `--json` one envelope a batch.
"""

from __future__ import annotations

import time
from datetime import datetime
from typing import Annotated

import typer

from ...protocol import operation as ops
from ...protocol.reply import Logged
from .contact import reach
from .output import Answer, JsonFlag, plain, shortened, styled, width
from .wording import count, short

app = typer.Typer(rich_markup_mode=None, add_completion=False)
_POLL_S = 0.5
_BATCH = 200


@app.command()
def tail(
    follow: Annotated[bool, typer.Option("-f", "--follow", help="Go on as more is written, until Ctrl-C.")] = False,
    after: Annotated[
        int | None, typer.Option(min=0, help="Begin after this number; without it, the last ones.")
    ] = None,
    limit: Annotated[int, typer.Option("-n", "--limit", min=1, max=500, help="At most this many, to begin with.")] = 20,
    as_json: JsonFlag = False,
) -> None:
    """Show the last operations of the journal: what memd learnt, changed and retired.

    \b
    Examples:
      memd tail
      memd tail -f
      memd tail --after 0 --limit 500 --json
    """
    with Answer("tail", as_json) as answer, reach() as client:
        start = after if after is not None else max(0, client.journal(limit=1).last - limit)
        told = client.journal(start, limit)
        answer.give(told, [operation_line(entry) for entry in told.entries])
        last = told.entries[-1].seq if told.entries else start
        while follow:
            if as_json and told.entries:
                answer.flush()
            if len(told.entries) < _BATCH:
                time.sleep(_POLL_S)
            told = client.journal(last, _BATCH)
            if told.entries:
                last = told.entries[-1].seq
                answer.give(told, [operation_line(entry) for entry in told.entries])


def operation_line(entry: Logged) -> str:
    """Number, time, kind and what it was about."""
    at = datetime.fromtimestamp(entry.at / 1e6).astimezone().strftime("%m-%d %H:%M:%S")
    head = f"{entry.seq:>6} {at} {ops.kind(entry.operation):<14}"
    return f"{styled(head, 'dim')} {shortened(plain(_about(entry.operation)), max(20, width() - len(head) - 1))}"


def _about(operation: ops.AnyOperation) -> str:
    match operation:
        case ops.Added(record=record, retires=retires) | ops.Updated(record=record, retires=retires):
            retired = f" (retires {', '.join(short(each.id) for each in retires)})" if retires else ""
            return f"{short(record.id)} {record.type}: {record.description}{retired}"
        case ops.Merged():
            return f"{short(operation.id)} said again: {operation.decision.reason}"
        case ops.Invalidated():
            return f"{short(operation.id)} {operation.reason}"
        case ops.PoolOpened():
            return f"{operation.pool} {operation.title}"
        case ops.AliasAdded():
            return f"{operation.pool} is also {', '.join(operation.names)}"
        case ops.Moved():
            return f"{', '.join(short(id) for id in operation.ids)} to {operation.pool}: {operation.reason}"
        case ops.SessionOpened() | ops.SessionClosed() | ops.SessionResumed():
            return operation.document
        case ops.Retried():
            return f"capture {operation.archive_seq}: {operation.failed.error if operation.failed else 'done'}"
        case ops.Pinned():
            layer = f" ({operation.layer})" if operation.layer else ""
            return f"{short(operation.id)} {'held' if operation.pinned else 'let go'}{layer}"
        case ops.Granted():
            sources = ", ".join(operation.sources)
            return f"{operation.subject} reads" if operation.grant else f"{sources} is shown again"
        case ops.Revoked():
            return ", ".join((*operation.grants, *operation.sources))
        case ops.ChangeProposed():
            against = f" against {short(operation.against)}" if operation.against else ""
            return f"{operation.what} {short(operation.record)}{against}"
        case ops.ChangeDecided():
            return f"{short(operation.id)} {'accepted' if operation.accepted else 'rejected'}"
        case ops.Distilled():
            failed = f", {len(operation.failed)} failed" if operation.failed else ""
            return f"{count(operation.captures, 'capture')} → {count(operation.candidates, 'candidate')}{failed}"
        case _:
            return ""
