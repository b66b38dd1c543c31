"""`memd import` reads files of other tools, sends them to the daemon and accounts for every line."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Literal

import msgspec
import typer

from ...protocol.errors import InvalidRequest
from ..importers.agents import AGENTS, MARKDOWN, agent_named, find, find_markdown, instructions, reader
from ..importers.cursors import Cursors
from ..importers.delivery import Imported, Sent, Source, hand_over, look
from ..importers.transcript import Malformed
from ..python.client import places_here
from .connection import PATIENCE_MS, deliver, reach
from .options import here, path
from .output import CommandAnswer, JsonFlag, plain, say, shortened, styled, wrapped
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
    from .imports import Discovery, discover, listed

    with CommandAnswer("import", as_json) as answer:
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
    with CommandAnswer("import markdown", as_json) as answer:
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

    with CommandAnswer("import git", as_json) as answer:
        run(answer, [Source("git", path, lambda _: git_log.read(path, newest), False)], dry_run, no_wait)


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
    from .export import take_in

    with CommandAnswer("import memd", as_json) as answer:
        take_in(answer, path, dry_run)


def _import_sessions(
    name: str, paths: Sequence[Path], dry_run: bool, no_wait: bool, whole: bool, cwd: str | None, as_json: bool
) -> None:
    with CommandAnswer(f"import {name}", as_json) as answer:
        agent = AGENTS[name]
        files = require(find(paths, agent.patterns, agent.example), "session", f"they lie in {agent.example}")
        folder = here(cwd) if cwd is not None else ""
        cursors = Cursors(places_here().state)
        run(answer, [_source(name, path, folder, cursors, dry_run) for path in files], dry_run, no_wait, whole)


def _source(name: str, path: Path, cwd: str, cursors: Cursors, dry_run: bool) -> Source:
    return Source(name, path, reader(name, path, cwd, cursors, dry_run=dry_run))


def run(answer: CommandAnswer, sources: Sequence[Source], dry_run: bool, no_wait: bool, whole: bool = False) -> None:
    """Reads each source, sends it, reports; then waits until it is distilled."""
    cursors = Cursors(places_here().state)
    if whole:
        cursors.pass_over(source.path for source in sources)
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
        reply = Import(files=files, dry_run=False, pending=pending, led_to=led_to)
        answer.give(reply, _outcome(files, led_to, pending))


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


State = Literal["new", "grown", "imported"]


class Lying(msgspec.Struct, frozen=True, kw_only=True):
    """A file: its size, when it was last written, and whether it was imported: not, in part, or as it is."""

    path: str
    size_bytes: int
    changed_at: str
    state: State


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """What one agent left on this machine."""

    agent: str
    title: str
    folder: str
    files: tuple[Lying, ...] = ()

    def number(self, state: State) -> int:
        """Files in that state."""
        return sum(each.state == state for each in self.files)


class Discovery(msgspec.Struct, frozen=True, kw_only=True):
    """Of `import` without a name."""

    agents: tuple[Found, ...]


def discover(
    environment: Mapping[str, str], cwd: Path, cursors: Cursors, only: Sequence[str] = ()
) -> tuple[Found, ...]:
    """What there is of each agent, or of those named `only`."""
    found: list[Found] = []
    for agent in AGENTS.values():
        if not only or agent.name in only:
            folder = agent.folder(environment)
            paths = find([folder], agent.patterns, agent.example) if folder.is_dir() else []
            found.append(Found(agent=agent.name, title=agent.title, folder=str(folder), files=_lying(paths, cursors)))
    if not only or MARKDOWN in only:
        paths = instructions(environment, cwd)
        title = "instructions for agents"
        found.append(Found(agent=MARKDOWN, title=title, folder=str(cwd), files=_lying(paths, cursors)))
    return tuple(found)


def _lying(paths: Sequence[Path], cursors: Cursors) -> tuple[Lying, ...]:
    files: list[Lying] = []
    for path in paths:
        try:
            status = path.stat()
        except OSError:
            continue  # it went while it was being listed
        cursor = cursors.get(path)
        state: State = "new" if cursor is None else "grown"
        if cursor and (cursor.size, cursor.mtime_ns) == (status.st_size, status.st_mtime_ns):
            state = "imported"
        changed = datetime.fromtimestamp(status.st_mtime, UTC).isoformat()
        files.append(Lying(path=str(path), size_bytes=status.st_size, changed_at=changed, state=state))
    return tuple(files)


def listed(found: Sequence[Found]) -> Iterator[str]:
    """A line or two for each agent."""
    for each in found:
        if not each.files:
            yield styled(f"{each.title}: nothing in {plain(each.folder)}", "dim")
            continue
        size = sum(file.size_bytes for file in each.files)
        days = sorted(file.changed_at[:10] for file in each.files)
        span = days[0] if days[0] == days[-1] else f"{days[0]} to {days[-1]}"
        noun = "file" if each.agent == MARKDOWN else "session file"
        yield styled(each.title, "bold") + f": {count(len(each.files), noun)}, {_size(size)}, {span}"
        numbers = {
            "new": each.number("new"),
            "changed since": each.number("grown"),
            "imported": each.number("imported"),
        }
        yield "  " + ", ".join(f"{number:,} {what}" for what, number in numbers.items() if number)
        if each.agent == MARKDOWN:
            for file in each.files:
                yield from wrapped(f"{plain(file.path)} ({file.state})", "    ", "  ")
        else:
            yield from wrapped(f"memd import {each.agent} {plain(each.folder)}", "    ", "  ")


def _size(size_bytes: int) -> str:
    return f"{size_bytes / 1e6:,.1f} MB" if size_bytes >= 100_000 else f"{size_bytes / 1e3:,.1f} kB"


NAMED_LINES = 5


class Import(msgspec.Struct, frozen=True, kw_only=True):
    """Of `import`: each file, and, if it waited, how many records of each status there are more than before."""

    files: tuple[Imported, ...]
    dry_run: bool
    pending: int = 0
    led_to: dict[str, int] = {}


def difference(before: dict[str, int], after: dict[str, int]) -> dict[str, int]:
    """How many records there are more of each status."""
    return {name: more for name in sorted(after) if (more := after[name] - before.get(name, 0)) > 0}


def report(files: Sequence[Imported], dry_run: bool) -> Iterator[str]:
    """Each file, where every line of it went; files with nothing new in one line together."""
    reply = [each for each in files if _has_news(each, dry_run)]
    for each in reply:
        yield from _file_lines(each, dry_run)
    if quiet := len(files) - len(reply):
        yield f"{count(quiet, 'file')} with nothing new since the last import"
    if len(files) > 1:
        accounts = [each.account for each in files]
        lines, taken = sum(each.lines for each in accounts), sum(each.taken for each in accounts)
        malformed = sum(len(each.malformed) for each in accounts)
        noise = lines - taken - malformed
        yield f"{len(files)} files, {lines:,} lines: {taken:,} taken, {noise:,} noise, {malformed:,} malformed"


def _has_news(each: Imported, dry_run: bool) -> bool:
    """Whether there is more to tell than that it was imported before."""
    if not each.account.before or each.odd or each.account.malformed:
        return True
    return dry_run or any(sent.accepted or sent.changed or sent.refused or sent.vanished for sent in each.sessions)


def _file_lines(each: Imported, dry_run: bool) -> Iterator[str]:
    account = each.account
    noise = sum(account.noise.values())
    yield styled(shortened(plain(each.path), 100), "bold")
    if each.odd:
        yield from wrapped(plain(each.odd), "    ", "  odd: ")
    parts = f"{account.taken:,} taken, {noise:,} noise, {len(account.malformed):,} malformed"
    before = f" after {account.before:,} imported before" if account.before else ""
    yield f"  {count(account.lines, 'line')}{before}: {parts}"
    if account.noise:
        kinds = ", ".join(f"{number:,} {plain(kind)}" for kind, number in account.noise.items())
        yield from (styled(line, "dim") for line in wrapped(f"noise: {kinds}", "    ", "  "))
    yield from _malformed_lines(account.malformed)
    for sent in each.sessions:
        yield from _sent_lines(sent, dry_run)


def _malformed_lines(malformed: Sequence[Malformed]) -> Iterator[str]:
    for bad in malformed[:NAMED_LINES]:
        yield from wrapped(f"line {bad.line}: {plain(bad.reason)[:300]}", "    ", "  malformed: ")
    if len(malformed) > NAMED_LINES:
        others = ", ".join(str(bad.line) for bad in malformed[NAMED_LINES:40])
        yield from wrapped(f"also lines {others}{' …' if len(malformed) > 40 else ''}", "    ", "  malformed: ")


def _sent_lines(sent: Sent, dry_run: bool) -> Iterator[str]:
    gone = f", {sent.vanished:,} vanished" if sent.vanished else ""
    if dry_run:
        yield f"  would send {count(sent.events, 'event')} of {plain(sent.document)}{gone}"
        return
    words = f"{plain(sent.document)}: {sent.accepted:,} accepted, {sent.duplicate:,} known, {sent.changed:,} changed"
    words += gone + (f", {sent.forgotten:,} forgotten" if sent.forgotten else "")
    words += f", {sent.skipped:,} not taken ({plain(sent.why)})" if sent.skipped else ""
    yield from wrapped(f"{words} → {plain(sent.pool)}", "    ", "  ")
    for refusal in sent.refused[:NAMED_LINES]:
        yield from wrapped(f"refused: turn {plain(refusal.turn)}: {plain(refusal.problem.message)}", "    ", "  ")
    if len(sent.refused) > NAMED_LINES:
        yield f"  refused: {len(sent.refused) - NAMED_LINES} more"


def require(files: Iterable[Path], what: str, where: str) -> list[Path]:
    """The files, if there are any. Raises InvalidRequest."""
    found = list(files)
    if not found:
        raise InvalidRequest(f"there is no {what} in these folders", hint=where)
    return found
