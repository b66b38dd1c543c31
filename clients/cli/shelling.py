"""`memd shell init bash|zsh`: the code by which a shell tells memd what was run.

Comes in: a shell's name. Goes out: code on standard output. Invariant: it needs no daemon, and says nothing else.
"""

from __future__ import annotations

import sys
from enum import StrEnum
from typing import Annotated

import typer

from ..python.client import places_here
from ..python.folder import make_private
from ..service import program
from ..shell import script

app = typer.Typer(
    rich_markup_mode=None,
    add_completion=False,
    help="Let bash or zsh tell memd what you run: command, exit status, duration, folder.",
    epilog="A command that begins with a space is never told, nor one that matches MEMD_SHELL_IGNORE='ls*:cd*'.",
)


class Shell(StrEnum):
    """The shells that are served."""

    BASH = "bash"
    ZSH = "zsh"


@app.callback()
def shell() -> None:
    """Keeps `init` a command of its own."""


@app.command()
def init(shell: Annotated[Shell, typer.Argument(help="bash (5 or later) or zsh.")]) -> None:
    """Print the code to load. Ctrl-X k asks memd about what is typed; MEMD_SHELL_KEY is another key.

    \b
    Examples:
      echo 'source <(memd shell init bash)' >> ~/.bashrc
      echo 'source <(memd shell init zsh)' >> ~/.zshrc
      memd shell init zsh > ~/.memd.zsh    # to load the file instead: a tenth of a second less at each start
    """
    places = places_here()
    make_private(places.spool)
    sys.stdout.write(script(shell.value, places, program()))
