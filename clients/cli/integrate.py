"""`memd mcp`, `memd plugin`, `memd completion`, `memd shell`: how other programs load or start memd."""

from __future__ import annotations

import os
import sys
from enum import StrEnum
from typing import Annotated

import msgspec
import typer

from .output import CommandAnswer, JsonFlag

app = typer.Typer(rich_markup_mode=None, add_completion=False)
shell_app = typer.Typer(
    rich_markup_mode=None,
    help="Let bash or zsh report the commands you run. memd stores command, exit status, duration and folder.",
    epilog="A command that starts with a space is never reported, nor one that matches MEMD_SHELL_IGNORE='ls*:cd*'.",
)
app.add_typer(shell_app, name="shell")


class Program(StrEnum):
    """Programs with a memd plugin or library."""

    NVIM = "nvim"
    NODE = "node"


class CompletionShell(StrEnum):
    """Shells that can complete `memd`."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


class ReportingShell(StrEnum):
    """Shells that can report commands."""

    BASH = "bash"
    ZSH = "zsh"


class Plugin(msgspec.Struct, frozen=True, kw_only=True):
    """Of `plugin`."""

    folder: str


@app.command()
def mcp(
    read_only: Annotated[bool, typer.Option("--read-only", help="Offer only tools that change nothing.")] = False,
) -> None:
    """Serve memory to an MCP host over standard input and output. The host starts this command.

    \b
    Example, in a host's configuration:
      {"mcpServers": {"memd": {"command": "memd", "args": ["mcp"]}}}
    """
    # It replaces this process, so that the host holds a small one.
    command = [sys.executable, "-P", "-m", "memd.clients.mcp", *(["--read-only"] if read_only else [])]
    os.execv(command[0], command)


@app.command()
def plugin(
    program: Annotated[Program, typer.Argument(help="nvim or node.")],
    as_json: JsonFlag = False,
) -> None:
    """Print the folder of the Neovim plugin or the Node library.

    \b
    Examples:
      mkdir -p ~/.local/share/nvim/site/pack/memd/start
      ln -s "$(memd plugin nvim)" ~/.local/share/nvim/site/pack/memd/start/memd    # then :help memd
      npm install "$(memd plugin node)"                                            # import { Client } from "memd"
    """
    from .. import node, nvim

    with CommandAnswer("plugin", as_json) as answer:
        folder = str(nvim.FOLDER if program is Program.NVIM else node.FOLDER)
        answer.give(Plugin(folder=folder), [folder])


@app.command()
def completion(shell: Annotated[CompletionShell, typer.Argument(help="bash, zsh or fish.")]) -> None:
    """Print shell completion code.

    \b
    Examples:
      source <(memd completion bash)       # in ~/.bashrc
      mkdir -p ~/.zfunc; memd completion zsh > ~/.zfunc/_memd      # a folder of your fpath
      memd completion fish | source        # in ~/.config/fish/config.fish
    """
    from typer._completion_shared import get_completion_script

    sys.stdout.write(get_completion_script(prog_name="memd", complete_var="_MEMD_COMPLETE", shell=shell.value) + "\n")


@shell_app.callback()
def shell() -> None:
    """Make `init` a subcommand, although it is the only one."""


@shell_app.command()
def init(shell: Annotated[ReportingShell, typer.Argument(help="bash (5 or later) or zsh.")]) -> None:
    """Print the code that the shell must load. Ctrl-X k searches memory for the text you typed.

    MEMD_SHELL_KEY changes that key.

    \b
    Examples:
      echo 'source <(memd shell init bash)' >> ~/.bashrc
      echo 'source <(memd shell init zsh)' >> ~/.zshrc
      memd shell init zsh > ~/.memd.zsh    # load this file instead: each shell starts 0.1 s sooner
    """
    from ..python.client import places_here
    from ..python.folder import make_private
    from ..service import program
    from ..shell import script

    places = places_here()
    make_private(places.spool)
    sys.stdout.write(script(shell.value, places, program()))
