"""`memd import`: what other programs wrote down, handed to the daemon, with an account of every line.

Comes in: paths. Goes out: a report for each file and for all: taken, noise by kind, malformed with line numbers, what
the daemon accepted, knew already, or refused; and what it led to once it is distilled. Invariant: importing the same
again changes nothing, so an import that was interrupted is simply run again (W13).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from ...protocol.errors import InvalidRequest
from ...protocol.reply import Refusal
from ..importers.transcript import Account, Transcript, batches
from ..python.client import Client
from .contact import PATIENCE_MS, deliver, reach
from .output import Answer, JsonFlag, plain, say, shortened, styled, wrapped
from .progress import Bar, wait_until_distilled
from .wording import count

app = typer.Typer(
    rich_markup_mode=None,
    add_completion=False,
    no_args_is_help=True,
    help="Read what other tools wrote down: sessions, commits.",
)
NAMED_LINES = 5

DryRun = Annotated[bool, typer.Option("--dry-run", help="Read and account for every line; send nothing.")]
NoWait = Annotated[bool, typer.Option("--no-wait", help="Return as soon as all is durable, before it is distilled.")]


class Sent(msgspec.Struct, frozen=True, kw_only=True):
    """What became of one document's events: the pool they feed, and how many the daemon took, knew, took anew."""

    document: str
    events: int
    pool: str = ""
    accepted: int = 0
    duplicate: int = 0
    changed: int = 0
    forgotten: int = 0
    refused: tuple[Refusal, ...] = ()


class Imported(msgspec.Struct, frozen=True, kw_only=True):
    """One file: its account, and its documents."""

    path: str
    account: Account
    sessions: tuple[Sent, ...]


class Import(msgspec.Struct, frozen=True, kw_only=True):
    """Of `import`: each file, and, if it waited, how many records of each status there are more than before."""

    files: tuple[Imported, ...]
    dry_run: bool
    pending: int = 0
    led_to: dict[str, int] = {}


@app.command("claude-code")
def claude_code(
    paths: Annotated[list[Path], typer.Argument(help="Session files, or folders that hold some.")],
    dry_run: DryRun = False,
    no_wait: NoWait = False,
    cwd: Annotated[str | None, typer.Option(help="The project's folder, instead of the one in the files.")] = None,
    as_json: JsonFlag = False,
) -> None:
    """Import sessions of Claude Code. Doing it again takes only what is new.

    \b
    Examples:
      memd import claude-code ~/.claude/projects --dry-run
      memd import claude-code ~/.claude/projects/-home-ada-orchard
      memd import claude-code session.jsonl --cwd ~/src/orchard
    """
    from ..importers import claude_code as importer

    with Answer("import claude-code", as_json) as answer:
        files = importer.find(paths)
        if not files:
            raise InvalidRequest(
                "there is no session in these folders",
                hint="sessions are files that end in .jsonl: see ~/.claude/projects",
            )
        folder = os.path.abspath(cwd) if cwd else ""
        readers = [lambda path=path: importer.read(path, folder) for path in files]
        run(answer, readers, dry_run, no_wait)


@app.command("git")
def git(
    path: Annotated[Path, typer.Argument(help="A folder of the repository.")] = Path("."),
    newest: Annotated[int, typer.Option(min=1, help="At most this many commits, the newest.")] = 500,
    dry_run: DryRun = False,
    no_wait: NoWait = False,
    as_json: JsonFlag = False,
) -> None:
    """Import a repository's commit messages. Doing it again takes only what is new.

    \b
    Examples:
      memd import git
      memd import git ~/src/orchard --newest 100
    """
    from ..importers import git_log

    with Answer("import git", as_json) as answer:
        run(answer, [lambda: git_log.read(path, newest)], dry_run, no_wait)


@app.command("memd")
def memd(
    path: Annotated[Path, typer.Argument(help="A file of `memd export --format jsonl`.")],
    dry_run: DryRun = False,
    as_json: JsonFlag = False,
) -> None:
    """Import what `memd export` wrote: the same ids, statuses, keys and times. Doing it again changes nothing.

    \b
    Example:
      memd import memd memory.jsonl
    """
    from .exporting import take_in

    with Answer("import memd", as_json) as answer:
        take_in(answer, path, dry_run)


def run(answer: Answer, readers: Sequence[Callable[[], Transcript]], dry_run: bool, no_wait: bool) -> None:
    """Reads each transcript, sends it, reports; then waits until it is distilled."""
    if dry_run:
        files = tuple(imported(reader()) for reader in readers)
        answer.give(Import(files=files, dry_run=True), report(files, dry_run=True))
        return
    with reach(PATIENCE_MS) as client:
        before = client.status().records
        sent: list[Imported] = []
        with Bar(len(readers), "reading and sending", answer.as_json or len(readers) == 1) as bar:
            for reader in readers:
                transcript = reader()
                sent.append(imported(transcript, send(client, transcript)))
                bar.step(1)
        files = tuple(sent)
        deliver(client, answer)
        if not answer.as_json:
            say(report(files, dry_run=False))
        if no_wait:
            pending = client.distil().pending
            answer.give(Import(files=files, dry_run=False, pending=pending), _later(pending))
            return
        pending = wait_until_distilled(client, answer)
        led_to = difference(before, client.status().records)
        told = Import(files=files, dry_run=False, pending=pending, led_to=led_to)
        answer.give(told, _outcome(files, led_to, pending))


def send(client: Client, transcript: Transcript) -> tuple[Sent, ...]:
    """Hands a transcript to the daemon, in batches; each is durable when the next one goes."""
    done: list[Sent] = []
    for session in transcript.sessions:
        told = Sent(document=session.origin.document, events=len(session.events))
        for batch in batches(session.events):
            taken = client.capture(session.origin, batch)
            told = msgspec.structs.replace(
                told,
                pool=taken.pool,
                accepted=told.accepted + taken.accepted,
                duplicate=told.duplicate + taken.duplicate,
                changed=told.changed + taken.changed,
                forgotten=told.forgotten + taken.forgotten,
                refused=told.refused + taken.refused,
            )
        done.append(told)
    return tuple(done)


def imported(transcript: Transcript, sent: tuple[Sent, ...] | None = None) -> Imported:
    if sent is None:
        sent = tuple(Sent(document=each.origin.document, events=len(each.events)) for each in transcript.sessions)
    return Imported(path=transcript.path, account=transcript.account, sessions=sent)


def difference(before: dict[str, int], after: dict[str, int]) -> dict[str, int]:
    """How many records there are more of each status."""
    return {name: more for name in sorted(after) if (more := after[name] - before.get(name, 0)) > 0}


def report(files: Sequence[Imported], dry_run: bool) -> Iterator[str]:
    for each in files:
        yield from _file_lines(each, dry_run)
    if len(files) > 1:
        accounts = [each.account for each in files]
        lines, taken = sum(each.lines for each in accounts), sum(each.taken for each in accounts)
        malformed = sum(len(each.malformed) for each in accounts)
        noise = lines - taken - malformed
        yield f"{len(files)} files, {lines:,} lines: {taken:,} taken, {noise:,} noise, {malformed:,} malformed"


def _file_lines(each: Imported, dry_run: bool) -> Iterator[str]:
    account = each.account
    noise = sum(account.noise.values())
    yield styled(shortened(plain(each.path), 100), "bold")
    parts = f"{account.taken:,} taken, {noise:,} noise, {len(account.malformed):,} malformed"
    yield f"  {count(account.lines, 'line')}: {parts}"
    if account.noise:
        kinds = ", ".join(f"{number:,} {plain(kind)}" for kind, number in account.noise.items())
        yield from (styled(line, "dim") for line in wrapped(f"noise: {kinds}", "    ", "  "))
    for bad in account.malformed[:NAMED_LINES]:
        yield from wrapped(f"line {bad.line}: {plain(bad.reason)[:300]}", "    ", "  malformed: ")
    if len(account.malformed) > NAMED_LINES:
        others = ", ".join(str(bad.line) for bad in account.malformed[NAMED_LINES:40])
        yield from wrapped(f"also lines {others}{' …' if len(account.malformed) > 40 else ''}", "    ", "  malformed: ")
    for sent in each.sessions:
        if dry_run:
            yield f"  would send {count(sent.events, 'event')} of {plain(sent.document)}"
            continue
        words = (
            f"{plain(sent.document)}: {sent.accepted:,} accepted, {sent.duplicate:,} known, {sent.changed:,} changed"
        )
        words += f", {sent.forgotten:,} forgotten" if sent.forgotten else ""
        yield from wrapped(f"{words} → {plain(sent.pool)}", "    ", "  ")
        for refusal in sent.refused[:NAMED_LINES]:
            yield from wrapped(f"refused: turn {plain(refusal.turn)}: {plain(refusal.problem.message)}", "    ", "  ")
        if len(sent.refused) > NAMED_LINES:
            yield f"  refused: {len(sent.refused) - NAMED_LINES} more"


def _later(pending: int) -> list[str]:
    return [f"all of it is durable; {count(pending, 'capture')} to distil: see `memd status`"]


def _outcome(files: Sequence[Imported], led_to: dict[str, int], pending: int) -> Iterator[str]:
    events: dict[str, int] = {}
    for sent in (sent for each in files for sent in each.sessions if sent.pool):
        events[sent.pool] = events.get(sent.pool, 0) + sent.events
    total = sum(led_to.values())
    by_status = ", ".join(f"{number:,} {name}" for name, number in led_to.items())
    yield f"led to {count(total, 'record')}" + (f": {by_status}" if total else "")
    if pending:
        yield f"{count(pending, 'capture')} still to distil: see `memd status`"
    if events:
        pool = max(events, key=lambda name: events[name])
        yield f'ask for them: memd recall "what did we decide" --pool {pool}'
