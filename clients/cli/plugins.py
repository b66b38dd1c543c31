"""`memd plugin nvim|node`: where the parts of memd that other programs load lie.

Comes in: a name. Goes out: a folder. Invariant: it needs no daemon.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import msgspec
import typer

from .. import node, nvim
from .output import Answer, JsonFlag

app = typer.Typer(rich_markup_mode=None, add_completion=False)


class Program(StrEnum):
    """The programs for which memd brings a plugin or a library."""

    NVIM = "nvim"
    NODE = "node"


class Plugin(msgspec.Struct, frozen=True, kw_only=True):
    """Of `plugin`."""

    folder: str


@app.command()
def plugin(
    program: Annotated[Program, typer.Argument(help="nvim or node.")],
    as_json: JsonFlag = False,
) -> None:
    """Print the folder of the Neovim plugin, or of the library for Node.

    \b
    Examples:
      mkdir -p ~/.local/share/nvim/site/pack/memd/start
      ln -s "$(memd plugin nvim)" ~/.local/share/nvim/site/pack/memd/start/memd    # then :help memd
      npm install "$(memd plugin node)"                                            # import { Client } from "memd"
    """
    with Answer("plugin", as_json) as answer:
        folder = str(nvim.FOLDER if program is Program.NVIM else node.FOLDER)
        answer.give(Plugin(folder=folder), [folder])
