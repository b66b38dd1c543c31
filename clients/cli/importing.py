"""`memd import`: what other programs wrote down, handed to the daemon, with an account of every line.

Comes in: paths, or nothing: then it lists what lies on this machine, and asks. Goes out: a report for each file and for
all: taken, noise by kind, malformed with line numbers, what the daemon accepted, knew already, or refused; and what it
led to once it is distilled. Invariants: nothing is imported that nobody named or agreed to; importing the same again
changes nothing, so an import that was interrupted is simply run again (W13).
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

import typer

from ..importers.agent_files import AGENTS, MARKDOWN, agent_named, find, find_markdown, reader
from ..importers.cursors import Cursors
from ..importers.delivery import Imported, ImportSource, hand_over, look
from ..python.client import places_here
from .contact import PATIENCE_MS, deliver, here, path, reach
from .handover import Import, difference, report, require
from .output import Answer, JsonFlag, plain, say
from .progress import Bar, wait_until_distilled
from .wording import count

app = typer.Typer(
    rich_markup_mode=None,
    add_completion=False,
    help="""Read what other tools wrote down: sessions, notes, commits. Without a name: list what is here, and ask.

    \b
    Examples:
      memd import                      # what lies on this machine; nothing is read before you say so
      memd import --agent codex        # the same of one agent
      memd import --yes --dry-run      # what importing all of it would take
      memd import claude-code ~/.claude/projects""",
)

DryRun = Annotated[bool, typer.Option("--dry-run", help="Read and account for every line; send nothing.")]
NoWait = Annotated[bool, typer.Option("--no-wait", help="Return as soon as all is durable, before it is distilled.")]
Paths = Annotated[list[Path], typer.Argument(parser=path, help="Session files, or folders that hold some.")]
Cwd = Annotated[str | None, typer.Option(help="The project's folder, instead of the one in the files.")]
Whole = Annotated[bool, typer.Option("--whole", help="Read from the beginning what was imported before.")]


@app.callback(invoke_without_command=True)
def everything(
    context: typer.Context,
    agent: Annotated[list[str] | None, typer.Option("--agent", help="Only this agent's; may be repeated.")] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Import all that is listed; do not ask.")] = False,
    dry_run: DryRun = False,
    no_wait: NoWait = False,
    as_json: JsonFlag = False,
) -> None:
    """Without a command: what lies on this machine, by agent, and whether it was imported."""
    if context.invoked_subcommand is not None:
        return
    from .discovery import Discovery, discover, listed

    with Answer("import", as_json) as answer:
        for name in agent or ():
            if name != MARKDOWN:
                agent_named(name)
        cursors = Cursors(places_here().state)
        found = discover(os.environ, Path.cwd(), cursors, agent or ())
        files = [(each.agent, Path(file.path)) for each in found for file in each.files if file.state != "imported"]
        if not yes or not files:
            answer.give(Discovery(agents=found), listed(found))
        if not files or not (yes or _agreed(len(files), as_json)):
            return
        run(answer, [_source(name, path, "", cursors, dry_run) for name, path in files], dry_run, no_wait)


def _agreed(number: int, as_json: bool) -> bool:
    """Whether the user says yes; where nobody can, nothing is imported."""
    if as_json or not sys.stdin.isatty():
        if not as_json:
            say(["", "nothing was imported: add --yes, and --agent NAME for one agent's alone"])
        return False
    return typer.confirm(f"\nImport {count(number, 'file')}?", default=False, err=True)


@app.command("claude-code")
def claude_code(
    paths: Paths,
    dry_run: DryRun = False,
    no_wait: NoWait = False,
    whole: Whole = False,
    cwd: Cwd = None,
    as_json: JsonFlag = False,
) -> None:
    """Import sessions of Claude Code. Doing it again takes only what is new.

    \b
    Examples:
      memd import claude-code ~/.claude/projects --dry-run
      memd import claude-code ~/.claude/projects/-home-ada-orchard
      memd import claude-code session.jsonl --cwd ~/src/orchard
    """
    _import_sessions("claude-code", paths, dry_run, no_wait, whole, cwd, as_json)


@app.command("codex")
def codex(
    paths: Paths,
    dry_run: DryRun = False,
    no_wait: NoWait = False,
    whole: Whole = False,
    cwd: Cwd = None,
    as_json: JsonFlag = False,
) -> None:
    """Import sessions of Codex. Doing it again takes only what is new.

    \b
    Examples:
      memd import codex ~/.codex/sessions --dry-run
      memd import codex ~/.codex/sessions/2026/03
    """
    _import_sessions("codex", paths, dry_run, no_wait, whole, cwd, as_json)


@app.command("pi")
def pi(
    paths: Paths,
    dry_run: DryRun = False,
    no_wait: NoWait = False,
    whole: Whole = False,
    cwd: Cwd = None,
    as_json: JsonFlag = False,
) -> None:
    """Import sessions of pi. Doing it again takes only what is new.

    \b
    Examples:
      memd import pi ~/.pi/agent/sessions --dry-run
      memd import pi ~/.pi/agent/sessions/--home-ada-orchard--
    """
    _import_sessions("pi", paths, dry_run, no_wait, whole, cwd, as_json)


@app.command("gemini")
def gemini(
    paths: Paths,
    dry_run: DryRun = False,
    no_wait: NoWait = False,
    whole: Whole = False,
    cwd: Cwd = None,
    as_json: JsonFlag = False,
) -> None:
    """Import sessions of Gemini CLI; older ones do not name their project's folder: say it with --cwd.

    \b
    Examples:
      memd import gemini ~/.gemini/tmp --dry-run
      memd import gemini session-2026-03-04T10-00-1a2b3c4d.json --cwd ~/src/orchard
    """
    _import_sessions("gemini", paths, dry_run, no_wait, whole, cwd, as_json)


@app.command("markdown")
def markdown(
    paths: Annotated[list[Path], typer.Argument(parser=path, help="Markdown files, or folders that hold some.")],
    dry_run: DryRun = False,
    no_wait: NoWait = False,
    as_json: JsonFlag = False,
) -> None:
    """Import Markdown: CLAUDE.md, AGENTS.md, notes. Again after a change, what vanished from it is believed no more.

    \b
    Examples:
      memd import markdown CLAUDE.md docs/ --dry-run
      memd import markdown ~/notes
    """
    with Answer("import markdown", as_json) as answer:
        files = require(find_markdown(paths), "Markdown file", "Markdown files end in .md")
        cursors = Cursors(places_here().state)
        run(answer, [_source(MARKDOWN, path, "", cursors, dry_run) for path in files], dry_run, no_wait)


@app.command("git")
def git(
    path: Annotated[Path, typer.Argument(parser=path, help="A folder of the repository.")] = Path("."),
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
        run(answer, [ImportSource("git", path, lambda _: git_log.read(path, newest), False)], dry_run, no_wait)


@app.command("memd")
def memd(
    path: Annotated[Path, typer.Argument(parser=path, help="A file of `memd export --format jsonl`.")],
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


def _import_sessions(
    name: str, paths: Sequence[Path], dry_run: bool, no_wait: bool, whole: bool, cwd: str | None, as_json: bool
) -> None:
    with Answer(f"import {name}", as_json) as answer:
        agent = AGENTS[name]
        files = require(find(paths, agent.patterns, agent.example), "session", f"they lie in {agent.example}")
        folder = here(cwd) if cwd is not None else ""
        cursors = Cursors(places_here().state)
        run(answer, [_source(name, path, folder, cursors, dry_run) for path in files], dry_run, no_wait, whole)


def _source(name: str, path: Path, cwd: str, cursors: Cursors, dry_run: bool) -> ImportSource:
    return ImportSource(name, path, reader(name, path, cwd, cursors, dry_run=dry_run))


def run(answer: Answer, sources: Sequence[ImportSource], dry_run: bool, no_wait: bool, whole: bool = False) -> None:
    """Reads each source, sends it, reports; then waits until it is distilled."""
    cursors = Cursors(places_here().state)
    if whole:
        cursors.ignore(source.path for source in sources)
    if dry_run:
        with Bar(len(sources), "reading", answer.as_json or len(sources) == 1) as bar:
            files = tuple(_stepped(look(source, cursors), bar) for source in sources)
        answer.give(Import(files=files, dry_run=True), report(files, dry_run=True))
        return
    with reach(PATIENCE_MS) as client:
        before = client.status().records
        with Bar(len(sources), "reading and sending", answer.as_json or len(sources) == 1) as bar:
            files = tuple(_stepped(hand_over(client, source, cursors), bar) for source in sources)
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


def _stepped(done: Imported, bar: Bar) -> Imported:
    bar.step(1)
    return done


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
        yield f'ask for them: memd recall "what did we decide" --pool {plain(pool)}'
