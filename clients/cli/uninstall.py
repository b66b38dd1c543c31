"""`memd uninstall` removes memd from this user's system; the memory is deleted only with --purge."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from ...protocol.errors import Refused
from ...protocol.places import Places
from ..hooks.hosts import TITLES, Hosts
from ..python import launch
from ..python.client import places_here
from .output import CommandAnswer, JsonFlag, wrapped
from .service import remove
from .up import stop

app = typer.Typer(rich_markup_mode=None, add_completion=False)
OURS = {"journal", "archive", "format.json", "memd.log", "memd.toml", "spool", "memd.sock", "lock", "disabled"}
"""What shows that a folder is memd's."""


class Removed(msgspec.Struct, frozen=True, kw_only=True):
    """Of `uninstall`: files and folders that went, folders with your memory that stayed."""

    removed: tuple[str, ...]
    kept: tuple[str, ...]


@app.command()
def uninstall(
    purge: Annotated[bool, typer.Option("--purge", help="Remove the memory too, for good.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Stop memd and take its service away. Your memory stays where it is, unless you say --purge.

    \b
    Examples:
      memd uninstall
      memd export > memory.jsonl && memd uninstall --purge
    """
    with CommandAnswer("uninstall", as_json) as answer:
        places = places_here()
        folders = [each for each in (places.data, places.state, places.config, places.run) if each.is_dir()]
        if purge and folders and not yes:
            if as_json:
                raise Refused("this removes your memory for good", hint="say --yes")
            asked = f"Remove {', '.join(map(str, folders))} with everything memd knows?"
            typer.confirm(asked, abort=True)
        stop(places)
        removed = [*_taken_out(places), *remove()]
        if purge:
            removed += _purged(places, folders)
        kept = tuple(str(each) for each in folders if each.exists())
        answer.give(Removed(removed=tuple(removed), kept=kept), _lines(removed, kept))


def _taken_out(places: Places) -> Iterator[str]:
    """Agents go on without memd: their configuration is as it was before (P-25)."""
    hosts = Hosts(places, os.environ)
    for name in TITLES:
        edits = hosts.restoring(name)
        hosts.take_out(name, edits)
        yield from (f"memd's part of {edit.path}" for edit in edits if edit.is_change)


def _purged(places: Places, folders: list[Path]) -> list[str]:
    if launch.answering(places, 300):
        raise Refused("a daemon still runs", hint="`memd down`, then try again")
    for folder in folders:  # all of them first: nothing goes where something is in doubt
        inside = set(os.listdir(folder))
        if (inside and not inside & OURS) or folder.stat().st_uid != os.getuid():
            raise Refused(f"{folder} does not look like memd's", hint="remove it yourself, if it is to go")
    gone: list[str] = []
    for folder in folders:
        shutil.rmtree(folder)
        gone.append(str(folder))
    home = os.environ.get("MEMD_HOME")
    if home and Path(home).is_dir() and not os.listdir(home):
        Path(home).rmdir()
        gone.append(home)
    return gone


def _lines(removed: list[str], kept: tuple[str, ...]) -> Iterator[str]:
    yield from (f"removed {each}" for each in removed)
    if kept:
        yield from wrapped(f"your memory stays in {', '.join(kept)}; `memd uninstall --purge` removes it")
    yield "the program itself goes as it came: `pip uninstall memd`, or `pipx uninstall memd`"
