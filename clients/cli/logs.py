"""`memd logs` prints the daemon's log; `memd tail` prints journal operations, or what the daemon does."""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Callable, Iterable
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Annotated, TextIO

import msgspec
import typer

from ...protocol import operation as ops
from ...protocol.errors import NotFound
from ...protocol.reply import ActivityEvent, Logged
from ..python.client import Client, places_here
from .connection import reach
from .output import CommandAnswer, JsonFlag, plain, shortened, styled, width
from .wording import count, short

app = typer.Typer(rich_markup_mode=None, add_completion=False)
POLL_S = 0.25
_STYLES = {" ERROR ": "red", " WARNING ": "yellow"}


class LogLines(msgspec.Struct, frozen=True, kw_only=True):
    """Of `logs`."""

    file: str
    lines: tuple[str, ...]


@app.command()
def logs(
    follow: Annotated[
        bool, typer.Option("-f", "--follow", help="Print new entries as they are written, until Ctrl-C.")
    ] = False,
    limit: Annotated[int, typer.Option("-n", "--limit", min=0, help="At most this many lines.")] = 50,
    as_json: JsonFlag = False,
) -> None:
    """Show the daemon's log.

    \b
    Examples:
      memd logs
      memd logs -f
      MEMD_LOG=debug memd up && memd logs -f    # more detail
    """
    with CommandAnswer("logs", as_json) as answer:
        path = places_here().log
        try:
            file = path.open(encoding="utf-8", errors="replace")
        except OSError as error:
            raise NotFound(
                f"no log at {path}", hint="memd has not run in this home yet; start it: `memd up`"
            ) from error
        with file:
            last = tuple(line.rstrip("\n") for line in deque(file, limit))
            answer.give(LogLines(file=str(path), lines=last), _shown(last))
            if follow:
                if as_json:
                    answer.flush()
                _follow(answer, path, file)


def _follow(answer: CommandAnswer, path: Path, file: TextIO) -> None:
    while True:
        rotated = _is_another(path, file)  # checked before reading, so that no last line is lost
        if fresh := tuple(line.rstrip("\n") for line in file):
            answer.give(LogLines(file=str(path), lines=fresh), _shown(fresh))
            if answer.as_json:
                answer.flush()
        elif rotated:
            file.close()
            file = path.open(encoding="utf-8", errors="replace")
            continue
        time.sleep(POLL_S)


def _is_another(path: Path, file: TextIO) -> bool:
    try:
        return path.stat().st_ino != os.fstat(file.fileno()).st_ino
    except FileNotFoundError:
        return False


def _shown(lines: Iterable[str]) -> list[str]:
    shown: list[str] = []
    for line in lines:
        style = next((style for word, style in _STYLES.items() if word in line[:60]), "")
        shown.append(styled(plain(line), style) if style else plain(line))
    return shown


_WAIT_MS = 30_000
"""Longest wait of one request for new operations; then another one waits (U9)."""

_BATCH = 200


@app.command()
def tail(
    follow: Annotated[
        bool, typer.Option("-f", "--follow", help="Print new entries as they are written, until Ctrl-C.")
    ] = False,
    after: Annotated[
        int | None, typer.Option(min=0, help="Start after this sequence number, instead of with the latest.")
    ] = None,
    limit: Annotated[
        int, typer.Option("-n", "--limit", min=1, max=500, help="At most this many entries at first.")
    ] = 20,
    activity: Annotated[
        bool,
        typer.Option("--activity", help="What the daemon does: captured, distilling, distilled, injected, skipped, …"),
    ] = False,
    as_json: JsonFlag = False,
) -> None:
    """Show the latest journal operations. Each adds, changes or retires records, pools or sessions.

    \b
    Examples:
      memd tail
      memd tail -f
      memd tail --activity -f                   # what the daemon does, as it does it
      memd tail --after 0 --limit 500 --json
    """
    with CommandAnswer("tail", as_json) as answer, reach() as client:
        give: Callable[[int, int, int], int] = partial(_give_activity if activity else _give_operations, client, answer)
        newest = client.activity(limit=1).last if activity else client.journal(limit=1).last
        last = give(after if after is not None else max(0, newest - limit), limit, 0)
        while follow:
            if as_json:
                answer.flush()
            last = give(last, _BATCH, _WAIT_MS)


def _give_operations(client: Client, answer: CommandAnswer, after: int, limit: int, wait_ms: int) -> int:
    """Answer with the operations after one; return the seq of the last."""
    page = client.journal(after, limit, wait_ms=wait_ms)
    if page.entries or not wait_ms:
        answer.give(page, [_operation_line(entry) for entry in page.entries])
    return page.entries[-1].seq if page.entries else after


def _give_activity(client: Client, answer: CommandAnswer, after: int, limit: int, wait_ms: int) -> int:
    """Answer with the events after one; return the seq of the last."""
    page = client.activity(after, limit, wait_ms=wait_ms)
    if page.events or not wait_ms:
        answer.give(page, [_event_line(event) for event in page.events])
    return page.events[-1].seq if page.events else after


def _event_line(event: ActivityEvent) -> str:
    """Sequence number, time, kind and subject."""
    return _line(event.seq, datetime.fromisoformat(event.at), event.event, event.what)


def _operation_line(entry: Logged) -> str:
    """Sequence number, time, kind and subject."""
    at = datetime.fromtimestamp(entry.at / 1e6)
    return _line(entry.seq, at, ops.kind(entry.operation), _about(entry.operation))


def _line(seq: int, at: datetime, kind: str, about: str) -> str:
    head = f"{seq:>6} {at.astimezone().strftime('%m-%d %H:%M:%S')} {kind:<14}"
    return f"{styled(head, 'dim')} {shortened(plain(about), max(20, width() - len(head) - 1))}"


def _about(operation: ops.AnyOperation) -> str:
    match operation:
        case ops.Added(record=record, retires=retires) | ops.Updated(record=record, retires=retires):
            retired = f" (retires {', '.join(short(old.id) for old in retires)})" if retires else ""
            return f"{short(record.id)} {record.type}: {record.description}{retired}"
        case ops.Merged():
            return f"{short(operation.id)} repeated: {operation.decision.reason}"
        case ops.Invalidated():
            return f"{short(operation.id)} {operation.reason}"
        case ops.Moved():
            return f"{', '.join(short(id) for id in operation.ids)} to {operation.pool}: {operation.reason}"
        case ops.Pinned():
            return f"{short(operation.id)} {'pinned' if operation.pinned else 'unpinned'}"
        case ops.RecordJudged():
            verdict = "judgement taken back" if operation.verdict == "undone" else f"is {operation.verdict}"
            return f"{short(operation.id)} {verdict}"
        case ops.ChangeProposed():
            against = f" against {short(operation.against)}" if operation.against else ""
            return f"{operation.what} {short(operation.record)}{against}"
        case ops.ChangeDecided():
            return f"{short(operation.id)} {'accepted' if operation.accepted else 'rejected'}"
        case ops.ChangeReopened():
            return f"{short(operation.id)} reopened"
        case _:
            return _about_others(operation)


def _about_others(operation: ops.AnyOperation) -> str:
    """The subject of an operation on pools, sessions, captures or passes."""
    match operation:
        case ops.PoolOpened():
            return f"{operation.pool} {operation.title}"
        case ops.AliasAdded():
            return f"{operation.pool} also identified by {', '.join(operation.names)}"
        case ops.SessionOpened() | ops.SessionClosed() | ops.SessionResumed():
            return operation.document
        case ops.Distilled():
            failed = f", {len(operation.failed)} failed" if operation.failed else ""
            return f"{count(operation.captures, 'capture')} → {count(operation.candidates, 'candidate')}{failed}"
        case ops.Retried():
            return f"capture {operation.archive_seq}: {operation.failed.error if operation.failed else 'done'}"
        case ops.Granted():
            return f"pass for {operation.subject}" if operation.grant else f"{', '.join(operation.sources)} restored"
        case ops.Revoked():
            return ", ".join((*operation.grants, *operation.sources))
        case _:
            return ""
