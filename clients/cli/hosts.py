"""`memd setup` and `memd unsetup`: memd in the agents of this machine, and out of them again.

Comes in: hosts' names. Goes out: the diff of what changes in their configuration, made unless it is a dry run.
Invariants: nothing is changed that was not shown; twice is as once; taking out restores each file byte by byte.
"""

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
from .output import Answer, JsonFlag, plain, styled, wrapped

app = typer.Typer(rich_markup_mode=None, add_completion=False)

Names = Annotated[list[str] | None, typer.Argument(metavar="[AGENT|all]", help=f"{', '.join(TITLES)}, or all here.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show what would change, and change nothing.")]


class Changed(msgspec.Struct, frozen=True, kw_only=True):
    """What was, or would be, changed in a host: the diff of each file; and how things stand with it then."""

    host: str
    files: dict[str, list[str]]
    state: HostState


class Changes(msgspec.Struct, frozen=True, kw_only=True):
    """Of `setup` and `unsetup`."""

    hosts: tuple[Changed, ...]
    dry_run: bool


@app.command()
def setup(names: Names = None, dry_run: DryRun = False, as_json: JsonFlag = False) -> None:
    """Give an agent your memory: the profile on every turn, its sessions read on, tools to recall and remember.

    Without a name: the agents on this machine, and whether memd is set up in them.

    \b
    Examples:
      memd setup                    # what is here
      memd setup claude-code --dry-run
      memd setup all
    Any other MCP host takes the command `memd mcp`.
    """
    with Answer("setup", as_json) as answer:
        hosts = Hosts(places_here(), os.environ)
        if not names:
            states = [hosts.state(name) for name in TITLES]
            answer.give(states, _listed(states))
            return
        done: list[Changed] = []
        for name in _chosen(hosts, names, lambda state: state.is_here):
            edits = hosts.edits(name)
            if not dry_run:
                hosts.set_up(name, edits)
            done.append(_changed(hosts, name, edits))
        answer.give(Changes(hosts=tuple(done), dry_run=dry_run), _told(done, dry_run, "set up in"))
        if not dry_run and done and not launch.answering(places_here(), 500):
            answer.warn("memd is not running: `memd up` starts it, and agents go on without it until then")


@app.command()
def unsetup(names: Names = None, dry_run: DryRun = False, as_json: JsonFlag = False) -> None:
    """Take memd out of an agent again: its files are as they were before, byte by byte.

    \b
    Examples:
      memd unsetup pi --dry-run
      memd unsetup all
    """
    with Answer("unsetup", as_json) as answer:
        hosts = Hosts(places_here(), os.environ)
        done: list[Changed] = []
        for name in _chosen(hosts, names or ["all"], lambda state: state.is_set_up):
            edits = hosts.restoring(name)
            if not dry_run:
                hosts.take_out(name, edits)
            done.append(_changed(hosts, name, edits))
        answer.give(Changes(hosts=tuple(done), dry_run=dry_run), _told(done, dry_run, "taken out of"))


def _chosen(hosts: Hosts, names: Sequence[str], wanted: Callable[[HostState], bool]) -> list[str]:
    if "all" not in names:
        return list(dict.fromkeys(names))
    return [name for name in TITLES if wanted(hosts.state(name))]


def _changed(hosts: Hosts, name: str, edits: Sequence[FileEdit]) -> Changed:
    files = {str(edit.path): list(diff(edit)) for edit in edits if edit.is_change}
    return Changed(host=name, files=files, state=hosts.state(name))


def _listed(states: Sequence[HostState]) -> Iterator[str]:
    for state in states:
        how = "set up" if state.is_set_up else "not set up" if state.is_here else "not on this machine"
        told = styled(plain(state.problem) or how, "yellow" if state.problem else "dim")
        yield f"{styled(f'{state.name:<12}', 'bold')} {state.title:<12} {told}"
        if state.hint and (state.is_here or state.problem):
            yield f"{'':<12} {plain(state.hint)}"
    yield ""
    yield "any other MCP host: run `memd mcp` over stdio"


def _told(done: Sequence[Changed], dry_run: bool, what: str) -> Iterator[str]:
    if not done:
        yield "nothing to do: name an agent, or see `memd setup`"
    for each in done:
        for lines in each.files.values():
            for line in lines:
                colour = {"+": "green", "-": "red"}.get(line[:1], "dim")
                yield styled(plain_line(line), colour)
        title = TITLES[each.host]
        if dry_run:
            yield f"{title}: {'this would change' if each.files else 'nothing would change'}"
            continue
        yield f"memd is {what} {title}" + ("" if each.files else "; nothing had to change")
        if each.state.problem:
            yield from wrapped(f"but: {plain(each.state.problem)}", "  ")


def plain_line(line: str) -> str:
    """A line of a file, harmless to a terminal, with its indentation."""
    mark, rest = line[:1], line[1:]
    body = rest.lstrip()
    return mark + rest[: len(rest) - len(body)].replace("\t", "    ") + plain(body)
