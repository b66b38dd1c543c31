"""`memd completion bash|zsh|fish`: completion of commands and options.

Comes in: a shell's name. Goes out: the code that it loads. Invariant: completing asks the command line itself, so that
it never differs from `--help`; it needs no daemon.
"""

from __future__ import annotations

import sys
from enum import StrEnum
from typing import Annotated

import typer

app = typer.Typer(rich_markup_mode=None, add_completion=False)


class Shell(StrEnum):
    """The shells that can complete."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


@app.command()
def completion(shell: Annotated[Shell, typer.Argument(help="bash, zsh or fish.")]) -> None:
    """Print completion for a shell, to be loaded by it.

    \b
    Examples:
      source <(memd completion bash)       # in ~/.bashrc
      mkdir -p ~/.zfunc; memd completion zsh > ~/.zfunc/_memd      # a folder of your fpath
      memd completion fish | source        # in ~/.config/fish/config.fish
    """
    from typer._completion_shared import get_completion_script

    sys.stdout.write(get_completion_script(prog_name="memd", complete_var="_MEMD_COMPLETE", shell=shell.value) + "\n")
