"""`memd setup` and `memd unsetup` change an agent's configuration and restore it; `memd uninstall` removes memd."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from ...protocol.errors import MemdError, Refused
from ...protocol.places import Places, why_disabled
from ..hooks import shell_setup
from ..hooks.agent_host import HostOptions
from ..hooks.hosts import REFLECTING, TITLES, Hosts, HostState, host_named
from ..python import launch
from ..python.client import places_here
from .host_changes import HostChange, changed, connect
from .output import CommandAnswer, JsonFlag, plain, styled, wrapped
from .service import remove, stop
from .wording import reflecting

app = typer.Typer(rich_markup_mode=None, add_completion=False)
Names = Annotated[list[str] | None, typer.Argument(metavar="[AGENT|all]", help=f"{', '.join(TITLES)}, or all here.")]
Reflects = Annotated[
    bool | None,
    typer.Option("--reflect/--no-reflect", help="Ask the agent once a session what lasts of it.", show_default=False),
]
SHOWN_LINES = 60
"""Of the diff of one file."""

DryRun = Annotated[bool, typer.Option("--dry-run", help="Show the changes and make none.")]


class HostChanges(msgspec.Struct, frozen=True, kw_only=True):
    """Of `setup` and `unsetup`."""

    hosts: tuple[HostChange, ...]
    dry_run: bool


@app.command()
def setup(
    names: Names = None,
    reflect: Reflects = None,
    dry_run: DryRun = False,
    lists: Annotated[bool, typer.Option("--list", help="List the agents and their state; ask nothing.")] = False,
    yes: Annotated[
        bool, typer.Option("--yes", "-y", help="Without a name: take every default and ask nothing.")
    ] = False,
    as_json: JsonFlag = False,
) -> None:
    """Connect memd to an agent on this machine.

    The agent then receives the profile with every turn and gets tools to recall and remember; memd captures its
    sessions. Other MCP hosts can run `memd mcp`.

    Without a name, at a terminal, the command is a guided start: it starts memd, connects agents, imports earlier
    sessions, shows the profile and installs the service. Enter takes the default of each step; running it again goes
    on. Elsewhere, and with --list, it lists the agents and their state.

    With --reflect, memd asks the agent once in a longer session what lasts of it: a title, decisions and lessons as
    quotes, unfinished work. The answer costs tokens of your model; `memd session show` counts them. Without it, you ask
    by /memd:reflect. memd remembers the choice. Codex and Gemini CLI get that command alone.

    `memd setup shell` is for bash, zsh and fish: they report the commands you run and complete `memd`, and `man memd`
    works. `all` leaves the shells out.

    \b
    Examples:
      memd setup                    # guided start at a terminal
      memd setup --yes              # the same with all defaults, for a script
      memd setup --list             # list the agents on this machine
      memd setup claude-code --dry-run
      memd setup claude-code --reflect
      memd setup all
      memd setup shell
    """
    has_failed = False
    with CommandAnswer("setup", as_json) as answer:
        hosts = Hosts(places_here(), os.environ)
        if not names:
            plain_run = lists or dry_run or reflect is not None or why_disabled(os.environ, places_here())
            at_terminal = sys.stdin.isatty() and sys.stdout.isatty() and not as_json
            if (yes or at_terminal) and not plain_run:
                from .guided_setup import GuidedStart

                has_failed = bool(GuidedStart(answer, hosts, asks=not yes).run().failed)
            else:
                states = [hosts.state(name) for name in TITLES]
                answer.give(states, _listed(states))
        else:
            _set_up(answer, hosts, names, reflect, dry_run)
    if has_failed:
        raise typer.Exit(1)


def _set_up(answer: CommandAnswer, hosts: Hosts, names: Sequence[str], reflect: bool | None, dry_run: bool) -> None:
    chosen = _chosen(hosts, names, lambda state: state.is_here and state.name != shell_setup.NAME)
    options = None if reflect is None else HostOptions(reflects=reflect)

    def change(name: str) -> HostChange:
        return connect(hosts, name, options if name in REFLECTING or "all" not in names else None, dry_run)

    done, failures = _change_each(answer, chosen, change, "set up in", dry_run)
    if not dry_run and done and not launch.answering(places_here(), 500):
        answer.warn("memd is not running: start it with `memd up`; until then agents work without memory")
    if failures:
        raise _failure(failures)


def _change_each(
    answer: CommandAnswer, names: Sequence[str], change: Callable[[str], HostChange], outcome: str, dry_run: bool
) -> tuple[list[HostChange], dict[str, MemdError]]:
    """Change each host; one that fails does not stop the others. Return the changes, and the errors by host."""
    done: list[HostChange] = []
    failures: dict[str, MemdError] = {}
    for name in names:
        try:
            done.append(change(name))
        except MemdError as error:
            failures[name] = error
    if done or not failures:
        answer.give(HostChanges(hosts=tuple(done), dry_run=dry_run), _change_lines(done, dry_run, outcome))
    return done, failures


def _failure(failures: dict[str, MemdError]) -> MemdError:
    """The error of the first host that failed; of several, with the message of each."""
    first, *others = failures.values()
    if not others:
        return first
    messages = "; ".join(f"{TITLES.get(name, name)}: {error.message}" for name, error in failures.items())
    return type(first)(messages, hint=first.hint)


@app.command()
def unsetup(names: Names = None, dry_run: DryRun = False, as_json: JsonFlag = False) -> None:
    """Disconnect memd from an agent and restore its files. They are byte for byte as before `memd setup`.

    \b
    Examples:
      memd unsetup pi --dry-run
      memd unsetup all
    """
    with CommandAnswer("unsetup", as_json) as answer:
        hosts = Hosts(places_here(), os.environ)
        chosen = _chosen(hosts, names or ["all"], lambda state: state.is_set_up)
        apply = None if dry_run else hosts.take_out
        _, failures = _change_each(
            answer, chosen, lambda name: changed(hosts, name, hosts.restoring(name), apply), "removed from", dry_run
        )
        if failures:
            raise _failure(failures)


def _chosen(hosts: Hosts, names: Sequence[str], wanted: Callable[[HostState], bool]) -> list[str]:
    if "all" not in names:
        for name in names:
            host_named(name)
        return list(dict.fromkeys(names))
    return [name for name in TITLES if wanted(hosts.state(name))]


def _listed(states: Sequence[HostState]) -> Iterator[str]:
    elsewhere = [state.name for state in states if not (state.is_here or state.is_set_up)]
    for state in states:
        if state.name in elsewhere:
            continue
        how = f"set up{reflecting(state.reflects)}" if state.is_set_up else "not set up"
        condition = styled(plain(state.problem) or how, "yellow" if state.problem else "dim")
        yield f"{styled(f'{state.name:<12}', 'bold')} {state.title:<12} {condition}"
        if state.note and state.is_set_up:
            yield from wrapped(plain(state.note), " " * 13)
        if state.hint:
            yield f"{'':<12} run `{plain(state.hint)}`"
    yield ""
    if elsewhere:
        yield from wrapped(f"not found on this machine: {', '.join(elsewhere)}", "  ", "")
    yield "other MCP hosts: configure them to run `memd mcp`"


def _change_lines(done: Sequence[HostChange], dry_run: bool, outcome: str) -> Iterator[str]:
    if not done:
        yield "nothing to do: name an agent, or see `memd setup`"
    for change in done:
        for lines in change.files.values():
            for line in lines[:SHOWN_LINES]:
                colour = {"+": "green", "-": "red"}.get(line[:1], "dim")
                yield styled(_plain_line(line), colour)
            if len(lines) > SHOWN_LINES:
                yield styled(f"… {len(lines) - SHOWN_LINES:,} more lines; --json has them", "dim")
        title = TITLES[change.host]
        if dry_run:
            yield f"{title}: {'these files would change' if change.files else 'nothing would change'}"
            continue
        rest = "" if change.files else "; nothing had to change in its files"
        yield f"memd is {outcome} {title}{reflecting(change.state.reflects)}{rest}"
        if change.state.note and change.state.is_set_up:
            yield from wrapped(plain(change.state.note), "  ")
        if change.state.problem:
            yield from wrapped(f"problem: {plain(change.state.problem)}", "  ")


def _plain_line(line: str) -> str:
    """A line of a file without control characters, with its indentation."""
    mark, rest = line[:1], line[1:]
    body = rest.lstrip()
    return mark + rest[: len(rest) - len(body)].replace("\t", "    ") + plain(body)


OWN_ENTRIES = {"journal", "archive", "format.json", "memd.log", "memd.toml", "spool", "memd.sock", "lock", "disabled"}
"""Entries by which a folder is recognised as memd's."""


class Uninstallation(msgspec.Struct, frozen=True, kw_only=True):
    """Of `uninstall`: `kept` has the folders with the memory."""

    removed: tuple[str, ...]
    kept: tuple[str, ...]


@app.command()
def uninstall(
    purge: Annotated[bool, typer.Option("--purge", help="Also delete the memory, for good.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Remove memd from this system. Your memory stays. --purge deletes it too.

    The command stops the daemon, uninstalls the service and disconnects memd from every agent.

    \b
    Examples:
      memd uninstall
      memd export > memory.jsonl && memd uninstall --purge
    """
    with CommandAnswer("uninstall", as_json) as answer:
        places = places_here()
        folders = [path for path in (places.data, places.state, places.config, places.run) if path.is_dir()]
        if purge and folders and not yes:
            if as_json:
                raise Refused("--purge deletes your memory for good", hint="confirm with --yes")
            typer.confirm(f"Delete {', '.join(map(str, folders))} with all memory?", abort=True)
        stop(places)
        removed = [*_disconnected(places), *remove()]
        if purge:
            removed += _purged(places, folders)
        remaining = tuple(str(path) for path in folders if path.exists())
        answer.give(Uninstallation(removed=tuple(removed), kept=remaining), _uninstalled_lines(removed, remaining))


def _disconnected(places: Places) -> Iterator[str]:
    """Restore the configuration of every agent (P-25); the files that changed."""
    hosts = Hosts(places, os.environ)
    for name in TITLES:
        edits = hosts.restoring(name)
        hosts.take_out(name, edits)
        yield from (f"memd's entries in {edit.path}" for edit in edits if edit.is_change)


def _purged(places: Places, folders: list[Path]) -> list[str]:
    if launch.answering(places, 300):
        raise Refused("a daemon is still running", hint="stop it with `memd down`, then try again")
    for folder in folders:  # all of them first: delete nothing if one is in doubt
        inside = set(os.listdir(folder))
        if (inside and not inside & OWN_ENTRIES) or folder.stat().st_uid != os.getuid():
            raise Refused(f"{folder} does not look like memd's", hint="delete it yourself if you no longer need it")
    deleted: list[str] = []
    for folder in folders:
        shutil.rmtree(folder)
        deleted.append(str(folder))
    home = os.environ.get("MEMD_HOME")
    if home and Path(home).is_dir() and not os.listdir(home):
        Path(home).rmdir()
        deleted.append(home)
    return deleted


def _uninstalled_lines(removed: list[str], kept: tuple[str, ...]) -> Iterator[str]:
    yield from (f"removed {path}" for path in removed)
    if kept:
        yield from wrapped(f"your memory stays in {', '.join(kept)}; `memd uninstall --purge` deletes it")
    yield "to remove the program: `pip uninstall memd` or `pipx uninstall memd`"
