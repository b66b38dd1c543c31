"""`memd setup` and `memd unsetup` add memd to an agent's configuration and restore that configuration."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from typing import Annotated

import msgspec
import typer

from ..hooks.edits import FileEdit, diff
from ..hooks.hosts import TITLES, Hosts, HostState
from ..python import launch
from ..python.client import places_here
from .output import CommandAnswer, JsonFlag, plain, styled, wrapped

app = typer.Typer(rich_markup_mode=None, add_completion=False)
Names = Annotated[list[str] | None, typer.Argument(metavar="[AGENT|all]", help=f"{', '.join(TITLES)}, or all here.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show the changes and make none.")]


class HostChange(msgspec.Struct, frozen=True, kw_only=True):
    """The diff of each file that was, or would be, changed for a host, and the host's state afterwards."""

    host: str
    files: dict[str, list[str]]
    state: HostState


class HostChanges(msgspec.Struct, frozen=True, kw_only=True):
    """Of `setup` and `unsetup`."""

    hosts: tuple[HostChange, ...]
    dry_run: bool


@app.command()
def setup(names: Names = None, dry_run: DryRun = False, as_json: JsonFlag = False) -> None:
    """Connect memd to an agent on this machine.

    The agent then receives the profile with every turn and gets tools to recall and remember; memd captures its
    sessions. Without a name, the command lists the agents and their state. Other MCP hosts can run `memd mcp`.

    \b
    Examples:
      memd setup                    # list the agents on this machine
      memd setup claude-code --dry-run
      memd setup all
    """
    with CommandAnswer("setup", as_json) as answer:
        hosts = Hosts(places_here(), os.environ)
        if not names:
            states = [hosts.state(name) for name in TITLES]
            answer.give(states, _listed(states))
            return
        done: list[HostChange] = []
        for name in _chosen(hosts, names, lambda state: state.is_here):
            edits = hosts.edits(name)
            if not dry_run:
                hosts.set_up(name, edits)
            done.append(_changed(hosts, name, edits))
        answer.give(HostChanges(hosts=tuple(done), dry_run=dry_run), _change_lines(done, dry_run, "set up in"))
        if not dry_run and done and not launch.answering(places_here(), 500):
            answer.warn("memd is not running: start it with `memd up`; until then agents work without memory")


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
        done: list[HostChange] = []
        for name in _chosen(hosts, names or ["all"], lambda state: state.is_set_up):
            edits = hosts.restoring(name)
            if not dry_run:
                hosts.take_out(name, edits)
            done.append(_changed(hosts, name, edits))
        answer.give(HostChanges(hosts=tuple(done), dry_run=dry_run), _change_lines(done, dry_run, "removed from"))


def _chosen(hosts: Hosts, names: Sequence[str], wanted: Callable[[HostState], bool]) -> list[str]:
    if "all" not in names:
        return list(dict.fromkeys(names))
    return [name for name in TITLES if wanted(hosts.state(name))]


def _changed(hosts: Hosts, name: str, edits: Sequence[FileEdit]) -> HostChange:
    files = {str(edit.path): list(diff(edit)) for edit in edits if edit.is_change}
    return HostChange(host=name, files=files, state=hosts.state(name))


def _listed(states: Sequence[HostState]) -> Iterator[str]:
    for state in states:
        how = "set up" if state.is_set_up else "not set up" if state.is_here else "not on this machine"
        condition = styled(plain(state.problem) or how, "yellow" if state.problem else "dim")
        yield f"{styled(f'{state.name:<12}', 'bold')} {state.title:<12} {condition}"
        if state.hint and (state.is_here or state.problem):
            yield f"{'':<12} run `{plain(state.hint)}`"
    yield ""
    yield "other MCP hosts: configure them to run `memd mcp`"


def _change_lines(done: Sequence[HostChange], dry_run: bool, outcome: str) -> Iterator[str]:
    if not done:
        yield "nothing to do: name an agent, or see `memd setup`"
    for change in done:
        for lines in change.files.values():
            for line in lines:
                colour = {"+": "green", "-": "red"}.get(line[:1], "dim")
                yield styled(_plain_line(line), colour)
        title = TITLES[change.host]
        if dry_run:
            yield f"{title}: {'these files would change' if change.files else 'nothing would change'}"
            continue
        yield f"memd is {outcome} {title}" + ("" if change.files else "; nothing had to change")
        if change.state.problem:
            yield from wrapped(f"problem: {plain(change.state.problem)}", "  ")


def _plain_line(line: str) -> str:
    """A line of a file without control characters, with its indentation."""
    mark, rest = line[:1], line[1:]
    body = rest.lstrip()
    return mark + rest[: len(rest) - len(body)].replace("\t", "    ") + plain(body)
