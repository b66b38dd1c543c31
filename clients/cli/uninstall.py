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
        kept = tuple(str(path) for path in folders if path.exists())
        answer.give(Uninstallation(removed=tuple(removed), kept=kept), _lines(removed, kept))


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


def _lines(removed: list[str], kept: tuple[str, ...]) -> Iterator[str]:
    yield from (f"removed {path}" for path in removed)
    if kept:
        yield from wrapped(f"your memory stays in {', '.join(kept)}; `memd uninstall --purge` deletes it")
    yield "to remove the program: `pip uninstall memd` or `pipx uninstall memd`"
