"""`memd mcp`: the MCP server, in the place of this process, so that a host holds a small one.

Comes in: a host's standard input and output. Goes out: another program on them.
"""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

app = typer.Typer(rich_markup_mode=None, add_completion=False)


@app.command()
def mcp(
    read_only: Annotated[bool, typer.Option("--read-only", help="Offer no tool that changes anything.")] = False,
) -> None:
    """Serve your memory to an MCP host over standard input and output; a host starts this, not you.

    \b
    Example, in a host's configuration:
      {"mcpServers": {"memd": {"command": "memd", "args": ["mcp"]}}}
    """
    command = [sys.executable, "-P", "-m", "memd.clients.mcp", *(["--read-only"] if read_only else [])]
    os.execv(command[0], command)
