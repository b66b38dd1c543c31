"""`memd import` reads files of other tools, sends them to the daemon and accounts for every line (P-12).

It imports nothing that the user did not name or confirm. Importing again changes nothing, so the remedy for an
interrupted import is to run it again (W13). Discovery reads no more of a file than its head, and counts the sessions in
a database.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Annotated, Literal

import msgspec
import typer

from ...protocol.errors import InvalidRequest
from ..importers.agent_files import (
    IMPORTABLE,
    MARKDOWN,
    agent_named,
    find,
    find_markdown,
    instructions,
    output_limit,
    reader,
)
from ..importers.cursors import Cursors, stamp
from ..importers.delivery import Imported, ImportSource, Sent, hand_over, look
from ..importers.overview import overview
from ..importers.transcript import Malformed, changed_at
from ..python.client import Client, places_here
from .connection import PATIENCE_MS, deliver, reach
from .options import here, path
from .output import CommandAnswer, JsonFlag, plain, plain_name, say, shortened, styled, wrapped
from .progress import Bar, FileProgress, duration, wait_until_distilled
from .wording import count, pool_argument, pool_name, size, status_counts

app = typer.Typer(
    rich_markup_mode=None,
    add_completion=False,
    help="""Import sessions, notes and commits from other tools.

    Without a name, the command lists the files on this machine and asks before it reads any.

    \b
    Examples:
      memd import                      # list importable files, then ask
      memd import --agent codex        # only those of one agent
      memd import --yes --dry-run      # count the lines, import nothing
      memd import claude-code ~/.claude/projects""",
)

NAMED_LINES = 5
"""Malformed lines and rejected turns that a report names."""

DryRun = Annotated[bool, typer.Option("--dry-run", help="Read and account for every line; send nothing.")]
NoWait = Annotated[bool, typer.Option("--no-wait", help="Return when everything is saved, before it is processed.")]
Paths = Annotated[list[Path], typer.Argument(parser=path, help="Session files, or folders that contain some.")]
ImportCwd = Annotated[str | None, typer.Option("--cwd", help="The project's folder, instead of the one in the files.")]
Whole = Annotated[bool, typer.Option("--whole", help="Read files from the start that were imported before.")]
_PATTERN = "a pattern of the file name or of the path below the folder; repeatable."
State = Literal["new", "grown", "imported"]


class ImportReport(msgspec.Struct, frozen=True, kw_only=True):
    """Of `import`. `led_to`: new records by status, if the command waited for them. `not_followed`: links that lead out
    of the named folders."""

    files: tuple[Imported, ...]
    not_followed: tuple[str, ...] = ()
    dry_run: bool
    pending: int = 0
    led_to: dict[str, int] = {}


class FoundFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file on this machine. `state`: not imported, changed since its import, or imported as it is."""

    path: str
    size_bytes: int
    changed_at: str
    state: State


class AgentFiles(msgspec.Struct, frozen=True, kw_only=True):
    """The files of one agent. Of those that are not imported as they are: `sessions`, `projects` as far as they are
    known, and `seconds`, about how long an import takes until all is processed."""

    agent: str
    title: str
    folder: str
    files: tuple[FoundFile, ...] = ()
    sessions: int = 0
    projects: int = 0
    seconds: int = 0

    def number(self, state: State) -> int:
        """The number of files in that state."""
        return sum(file.state == state for file in self.files)


class Discovery(msgspec.Struct, frozen=True, kw_only=True):
    """Of `import` without a name."""

    agents: tuple[AgentFiles, ...]


# --- commands ---------------------------------------------------------------------------------------------------------
@app.callback(invoke_without_command=True)
def everything(
    context: typer.Context,
    agent: Annotated[list[str] | None, typer.Option("--agent", help="Only files of this agent; repeatable.")] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Import everything listed; do not ask.")] = False,
    dry_run: DryRun = False,
    no_wait: NoWait = False,
    as_json: JsonFlag = False,
) -> None:
    """List importable files by agent, then import them if the user agrees."""
    if context.invoked_subcommand is not None:
        return
    with CommandAnswer("import", as_json) as answer:
        for name in agent or ():
            if name != MARKDOWN:
                agent_named(name)
        cursors = Cursors(places_here().state)
        agents = discover(os.environ, Path.cwd(), cursors, agent or ())
        files = [
            (candidate.agent, Path(file.path))
            for candidate in agents
            for file in candidate.files
            if file.state != "imported"
        ]
        if not yes or not files:
            answer.give(Discovery(agents=agents), _discovery_lines(agents))
        if not files or not (yes or _agreed(agents, as_json)):
            return
        run(answer, [import_source(name, file, "", cursors, dry_run) for name, file in files], dry_run, no_wait)


def _agreed(agents: Sequence[AgentFiles], as_json: bool) -> bool:
    """Whether the user agrees; without a terminal nothing is imported."""
    if as_json or not sys.stdin.isatty():
        if not as_json:
            say(["", "nothing was imported: add --yes, and --agent NAME to select one agent"])
        return False
    sessions, seconds = (sum(getattr(agent, name) for agent in agents) for name in ("sessions", "seconds"))
    return typer.confirm(f"\nImport {count(sessions, 'session')}, about {duration(seconds)}?", default=False, err=True)


_SESSION_HELP = {
    "claude-code": """Import sessions of Claude Code. Repeating it imports only new turns.

    \b
    Examples:
      memd import claude-code ~/.claude/projects --dry-run
      memd import claude-code ~/.claude/projects/-home-ada-orchard
      memd import claude-code session.jsonl --cwd ~/src/orchard
    """,
    "codex": """Import sessions of Codex. Repeating it imports only new turns.

    \b
    Examples:
      memd import codex ~/.codex/sessions --dry-run
      memd import codex ~/.codex/sessions/2026/03
    """,
    "pi": """Import sessions of pi. Repeating it imports only new turns.

    \b
    Examples:
      memd import pi ~/.pi/agent/sessions --dry-run
      memd import pi ~/.pi/agent/sessions/--home-ada-orchard--
    """,
    "gemini": """Import sessions of Gemini CLI. Older files do not name the project's folder: give it with --cwd.

    \b
    Examples:
      memd import gemini ~/.gemini/tmp --dry-run
      memd import gemini session-2026-03-04T10-00-1a2b3c4d.json --cwd ~/src/orchard
    """,
    "opencode": """Import sessions of opencode. Repeating it imports only changed sessions.

    \b
    Examples:
      memd import opencode ~/.local/share/opencode --dry-run
      memd import opencode opencode.db
    """,
    "cline": """Import tasks of Cline and Roo Code. Repeating it imports only new turns.

    \b
    Examples:
      memd import cline ~/.cline/data/sessions --dry-run
      memd import cline ~/.config/Code/User/globalStorage/saoudrizwan.claude-dev/tasks
    """,
    "cursor": """Import conversations of Cursor. Repeating it imports only new turns.

    It reads the transcripts of agents, and the editor's database without a lock. Conversations of cursor-agent without
    a transcript are not read, since the format of their store is unknown.

    \b
    Examples:
      memd import cursor ~/.cursor/projects --dry-run
      memd import cursor ~/.config/Cursor/User/globalStorage/state.vscdb
    """,
    "aider": """Import chats of aider. It keeps them in each project: name projects, or a folder of many.

    \b
    Examples:
      memd import aider ~/work
      memd import aider ~/src/orchard/.aider.chat.history.md --dry-run
    """,
    "specstory": """Import sessions that SpecStory saved in a project. Name projects, or a folder of many.

    A session that its own agent still has on this machine is left to the importer of that agent. So is a file that git
    has from another author.

    \b
    Examples:
      memd import specstory ~/work --dry-run
      memd import specstory ~/src/orchard/.specstory/history
    """,
}


def _session_command(name: str) -> Callable[..., None]:
    """The command that imports the sessions of one agent."""

    def import_sessions(
        paths: Paths,
        dry_run: DryRun = False,
        no_wait: NoWait = False,
        whole: Whole = False,
        cwd: ImportCwd = None,
        as_json: JsonFlag = False,
    ) -> None:
        with CommandAnswer(f"import {name}", as_json) as answer:
            agent = IMPORTABLE[name]
            found = find(paths, agent.patterns, agent.example)
            files = _required(found, "session file", f"{agent.title} keeps them in {agent.example}", found.outside)
            folder = here(cwd) if cwd is not None else ""
            cursors = Cursors(places_here().state)
            sources = [import_source(name, file, folder, cursors, dry_run) for file in files]
            run(answer, sources, dry_run, no_wait, whole, not_followed=found.outside)

    return import_sessions


for _name, _help in _SESSION_HELP.items():
    app.command(_name, help=_help)(_session_command(_name))


@app.command()
def markdown(
    paths: Annotated[list[Path], typer.Argument(parser=path, help="Markdown files, or folders that contain some.")],
    include: Annotated[list[str] | None, typer.Option(help=f"Of a folder, only such files; {_PATTERN}")] = None,
    exclude: Annotated[list[str] | None, typer.Option(help=f"Of a folder, no such files; {_PATTERN}")] = None,
    dry_run: DryRun = False,
    no_wait: NoWait = False,
    as_json: JsonFlag = False,
) -> None:
    """Import Markdown: README.md, CLAUDE.md, notes.

    Headings, lists, table rows and commands keep their context. Repeating it after a change retracts the records of
    passages that were deleted. In a folder, hidden folders and those with other people's or test material are left out
    (node_modules, vendor, fixtures, samples, folders below tests); name such a folder to import it.

    \b
    Examples:
      memd import markdown README.md CONTRIBUTING.md
      memd import markdown . --exclude CHANGELOG.md --exclude 'docs/archive/*' --dry-run
      memd import markdown ~/notes --include '2026-*.md'
    """
    with CommandAnswer("import markdown", as_json) as answer:
        found = find_markdown(paths, include or (), exclude or ())
        files = _required(found, "Markdown file", "Markdown files end in .md", found.outside)
        cursors = Cursors(places_here().state)
        sources = [import_source(MARKDOWN, file, "", cursors, dry_run) for file in files]
        run(answer, sources, dry_run, no_wait, not_followed=found.outside)


@app.command()
def git(
    path: Annotated[Path, typer.Argument(parser=path, help="A folder of the repository.")] = Path("."),
    newest: Annotated[int, typer.Option(min=1, help="Only this many of the newest commits.")] = 500,
    dry_run: DryRun = False,
    no_wait: NoWait = False,
    as_json: JsonFlag = False,
) -> None:
    """Import the commit messages of a repository. Repeating it imports only new commits.

    memd never takes a commit for your word. The commits of your own addresses (git's `user.email` and the setting
    `own_addresses`) can state conventions; those of others only facts.

    \b
    Examples:
      memd import git
      memd import git ~/src/orchard --newest 100
    """
    from ..importers import git_log

    with CommandAnswer("import git", as_json) as answer:
        own = () if dry_run else _own_addresses()
        run(answer, [ImportSource("git", path, lambda _: git_log.read(path, newest, own), False)], dry_run, no_wait)


def _own_addresses() -> list[str]:
    """The setting `own_addresses`."""
    with reach(PATIENCE_MS) as client:
        settings = {setting.name: setting.value for setting in client.settings().settings}
    return msgspec.toml.decode(f"own = {settings['own_addresses']}", type=dict[str, list[str]])["own"]


@app.command()
def memd(
    path: Annotated[Path, typer.Argument(parser=path, help="A file from `memd export --format jsonl`.")],
    dry_run: DryRun = False,
    as_json: JsonFlag = False,
) -> None:
    """Import a file from `memd export`. Ids, statuses, keys and times stay. Repeating it changes nothing.

    \b
    Example:
      memd import memd memory.jsonl
    """
    from .export import take_in

    with CommandAnswer("import memd", as_json) as answer:
        take_in(answer, path, dry_run)


def _required(files: Sequence[Path], noun: str, hint: str, outside: Sequence[Path]) -> Sequence[Path]:
    """The files. Raises InvalidRequest if there are none."""
    if not files and outside:
        raise InvalidRequest(
            f"no {noun} in these folders but links that lead out of them", hint=f"name the target of {outside[0]}"
        )
    if not files:
        raise InvalidRequest(f"no {noun} in these folders", hint=hint)
    return files


def import_source(name: str, path: Path, cwd: str, cursors: Cursors, dry_run: bool) -> ImportSource:
    """A file of an agent as a source of an import; `cwd`: the project's folder, "" for the one in the file."""
    limit = 0 if dry_run or name == MARKDOWN else _output_limit()
    return ImportSource(name, path, reader(name, path, cwd, cursors, dry_run=dry_run, output_limit=limit))


@cache
def _output_limit() -> int:
    with reach() as client:
        return output_limit(client)


def run(
    answer: CommandAnswer,
    sources: Sequence[ImportSource],
    dry_run: bool,
    no_wait: bool,
    whole: bool = False,
    *,
    not_followed: Sequence[Path] = (),
) -> None:
    """Read each source, send and report it, then wait until its captures are processed."""
    links = tuple(map(str, not_followed))
    if links:
        named = ", ".join(links[:NAMED_LINES]) + (" …" if len(links) > NAMED_LINES else "")
        answer.warn(f"did not follow {count(len(links), 'link')} out of the named folders: {named}")
    cursors = Cursors(places_here().state)
    if whole:
        cursors.ignore(source.path for source in sources)
    if dry_run:
        with Bar(len(sources), "reading", answer.as_json or len(sources) == 1) as bar:
            files = tuple(_stepped(look(source, cursors), bar) for source in sources)
        answer.give(ImportReport(files=files, not_followed=links, dry_run=True), report_lines(files, dry_run=True))
        return
    with reach(PATIENCE_MS) as client:
        before = client.status().records
        files = sent_files(client, answer, sources, cursors)
        deliver(client, answer)
        if not answer.as_json:
            say(report_lines(files, dry_run=False))
        if no_wait:
            pending = client.distil().pending
            saved = f"everything is saved; {count(pending, 'capture')} to process: see `memd status`"
            answer.give(ImportReport(files=files, not_followed=links, dry_run=False, pending=pending), [saved])
            return
        pending = wait_until_distilled(client, answer)
        led_to = difference(before, client.status().records)
        result = ImportReport(files=files, not_followed=links, dry_run=False, pending=pending, led_to=led_to)
        answer.give(result, _outcome_lines(files, led_to, pending))


def sent_files(
    client: Client, answer: CommandAnswer, sources: Sequence[ImportSource], cursors: Cursors
) -> tuple[Imported, ...]:
    """Send each source, note which files of an import are done, and tell how to go on with one that broke off. The
    daemon processes them later."""
    named = [source.path for source in sources if source.keeps]
    broken_off = cursors.begin(named, datetime.now(UTC).isoformat()) if named else None
    if broken_off:
        done, total = broken_off
        answer.warn(f"continues an import that broke off: {done:,} of {count(total, 'file')} are done")
    files: list[Imported] = []
    with FileProgress([_size_of(source.path) for source in sources], answer.as_json) as progress:
        try:
            for source in sources:
                progress.begin(str(source.path))
                files.append(hand_over(client, source, cursors, progress.part))
                progress.finish()
        except KeyboardInterrupt:
            answer.warn(
                f"stopped after {progress.finished:,} of {count(len(sources), 'file')}; what was sent is saved: "
                "run the same command again to continue"
            )
            raise
    if named:
        cursors.end()
    return tuple(files)


def _size_of(path: Path) -> int:
    try:
        return stamp(path)[0]
    except OSError:
        return 0


def _stepped(done: Imported, bar: Bar) -> Imported:
    bar.step(1)
    return done


def difference(before: dict[str, int], after: dict[str, int]) -> dict[str, int]:
    """The increase of each count, without those that did not grow."""
    return {name: more for name in sorted(after) if (more := after[name] - before.get(name, 0)) > 0}


def _outcome_lines(files: Sequence[Imported], led_to: dict[str, int], pending: int) -> Iterator[str]:
    events: dict[str, int] = {}
    for sent in (sent for file in files for sent in file.sessions if sent.pool):
        events[sent.pool] = events.get(sent.pool, 0) + sent.events
    yield f"new records: {status_counts(led_to) or 'none'}"
    if pending:
        yield f"{count(pending, 'capture')} still to process: see `memd status`"
    if events:
        pool = max(events, key=lambda name: events[name])
        yield f'to search them: memd recall "what did we decide" --pool {pool_argument(pool)}'


# --- discovery --------------------------------------------------------------------------------------------------------
def discover(
    environment: Mapping[str, str], cwd: Path, cursors: Cursors, only: Sequence[str] = ()
) -> tuple[AgentFiles, ...]:
    """The importable files of each agent, or of the agents in `only`."""
    agents: list[AgentFiles] = []
    for agent in IMPORTABLE.values():
        if not only or agent.name in only:
            places = agent.places(environment)
            folder = places[0] if places else agent.folder(environment)
            files = _found_files(find(places, agent.patterns, agent.example), cursors)
            waiting = [(Path(file.path), file.size_bytes) for file in files if file.state != "imported"]
            counts = overview(agent.name, waiting)._asdict()
            agents.append(AgentFiles(agent=agent.name, title=agent.title, folder=str(folder), files=files, **counts))
    if not only or MARKDOWN in only:
        files = _found_files(instructions(environment, cwd), cursors)
        agents.append(AgentFiles(agent=MARKDOWN, title="instructions for agents", folder=str(cwd), files=files))
    return tuple(agents)


def _found_files(paths: Sequence[Path], cursors: Cursors) -> tuple[FoundFile, ...]:
    files: list[FoundFile] = []
    for file in paths:
        try:
            status, written = file.stat(), stamp(file)
        except OSError:
            continue  # it was removed while this listed it
        cursor = cursors.get(file)
        state: State = "new" if cursor is None else "grown"
        if cursor and (cursor.size, cursor.mtime_ns) == written:
            state = "imported"
        changed = changed_at(status).astimezone(UTC).isoformat()
        files.append(FoundFile(path=str(file), size_bytes=written[0], changed_at=changed, state=state))
    return tuple(files)


def _discovery_lines(agents: Sequence[AgentFiles]) -> Iterator[str]:
    for agent in agents:
        if not agent.files:
            yield styled(f"{agent.title}: nothing in {plain_name(agent.folder)}", "dim")
            continue
        total = size(sum(file.size_bytes for file in agent.files))
        days = sorted(file.changed_at[:10] for file in agent.files)
        span = days[0] if days[0] == days[-1] else f"{days[0]} to {days[-1]}"
        noun = "file" if agent.agent == MARKDOWN else "session file"
        yield styled(agent.title, "bold") + f": {count(len(agent.files), noun)}, {total}, {span}"
        numbers = {
            "new": agent.number("new"),
            "changed since their import": agent.number("grown"),
            "imported": agent.number("imported"),
        }
        yield "  " + ", ".join(f"{number:,} {state}" for state, number in numbers.items() if number)
        if agent.sessions:
            projects = f"{count(agent.projects, 'project')}, " if agent.projects else ""
            yield f"  to import: {count(agent.sessions, 'session')}, {projects}about {duration(agent.seconds)}"
        if agent.agent == MARKDOWN:
            for file in agent.files:
                yield from wrapped(f"{plain_name(file.path)} ({file.state})", "    ", "  ")
        else:
            yield from wrapped(f"memd import {agent.agent} {plain_name(agent.folder)}", "    ", "  ")


# --- the report -------------------------------------------------------------------------------------------------------
def report_lines(files: Sequence[Imported], dry_run: bool) -> Iterator[str]:
    """The account of each file; files with nothing new share one line."""
    reported = [file for file in files if _has_news(file, dry_run)]
    for file in reported:
        yield from _file_lines(file, dry_run)
    if unchanged := len(files) - len(reported):
        yield f"{count(unchanged, 'file')} with nothing new since the last import"
    if len(files) > 1:
        accounts = [file.account for file in files]
        lines, taken = sum(account.lines for account in accounts), sum(account.taken for account in accounts)
        malformed = sum(len(account.malformed) for account in accounts)
        noise = lines - taken - malformed
        yield f"{len(files)} files, {lines:,} lines: {taken:,} used, {noise:,} ignored, {malformed:,} malformed"
    if unread := sum(not file.is_read for file in files):
        yield styled(f"skipped {count(unread, 'file')} that can't be read", "yellow")


def _has_news(file: Imported, dry_run: bool) -> bool:
    """Whether the report says more than that the file was imported before."""
    if not file.account.before or file.odd or file.account.malformed:
        return True
    return dry_run or any(sent.accepted or sent.changed or sent.refused or sent.vanished for sent in file.sessions)


def _file_lines(file: Imported, dry_run: bool) -> Iterator[str]:
    account = file.account
    noise = sum(account.noise.values())
    yield styled(shortened(plain_name(file.path), 100), "bold")
    if file.odd:
        yield from wrapped(plain(file.odd), "    ", "  odd: ")
    parts = f"{account.taken:,} used, {noise:,} ignored, {len(account.malformed):,} malformed"
    before = f" after {account.before:,} imported before" if account.before else ""
    yield f"  {count(account.lines, 'line')}{before}: {parts}"
    if account.noise:
        kinds = ", ".join(f"{number:,} {plain(kind)}" for kind, number in account.noise.items())
        yield from (styled(line, "dim") for line in wrapped(f"ignored: {kinds}", "    ", "  "))
    yield from _malformed_lines(account.malformed)
    for sent in file.sessions:
        yield from _sent_lines(sent, dry_run)


def _malformed_lines(malformed: Sequence[Malformed]) -> Iterator[str]:
    for bad in malformed[:NAMED_LINES]:
        yield from wrapped(f"line {bad.line}: {plain(bad.reason)[:300]}", "    ", "  malformed: ")
    if len(malformed) > NAMED_LINES:
        others = ", ".join(str(bad.line) for bad in malformed[NAMED_LINES:40])
        yield from wrapped(f"also lines {others}{' …' if len(malformed) > 40 else ''}", "    ", "  malformed: ")


def _sent_lines(sent: Sent, dry_run: bool) -> Iterator[str]:
    deleted = f", {sent.vanished:,} deleted from the file" if sent.vanished else ""
    if dry_run:
        yield f"  would send {count(sent.events, 'event')} of {plain_name(sent.document)}{deleted}"
        return
    text = (
        f"{plain_name(sent.document)}: {sent.accepted:,} accepted, {sent.duplicate:,} known, {sent.changed:,} changed"
    )
    text += deleted + (f", {sent.forgotten:,} forgotten" if sent.forgotten else "")
    text += f", {sent.skipped:,} skipped ({plain(sent.why)})" if sent.skipped else ""
    yield from wrapped(f"{text} → {pool_name(sent.pool)}", "    ", "  ")
    for refusal in sent.refused[:NAMED_LINES]:
        yield from wrapped(
            f"rejected: turn {plain_name(refusal.turn)}: {plain(refusal.problem.message)[:300]}", "    ", "  "
        )
    if len(sent.refused) > NAMED_LINES:
        yield f"  rejected: {len(sent.refused) - NAMED_LINES} more"
