"""`memd panel`: the local web page (U4)."""

from __future__ import annotations

import asyncio
import os
import sys
import webbrowser
from typing import Annotated

import typer

from .connection import reach
from .output import CommandAnswer, JsonFlag

app = typer.Typer(rich_markup_mode=None, add_completion=False)


@app.command()
def panel(
    no_browser: Annotated[bool, typer.Option("--no-browser", help="Only print the link.")] = False,
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port on this machine; 0 takes a free one.")] = 0,
    as_json: JsonFlag = False,
) -> None:
    """See, correct and delete what memd knows, in a local web page.

    The page is served on this machine alone and ends after 30 minutes without use. The printed link opens it once,
    within a minute; run the command again for another link.

    \b
    Examples:
      memd panel
      memd panel --no-browser    # over ssh: forward its port, then open it
    """
    from ..panel import server

    with CommandAnswer("panel", as_json) as answer:
        with reach() as client:
            client.list(limit=1)
            places = client.places

        def announce(link: str) -> None:
            lines = ["The panel is open on this machine. Its link works once, within a minute:", link]
            answer.give({"link": link}, lines)
            sys.stdout.flush()
            if not no_browser:
                server.open_browser(places, link, webbrowser.open)

        if link := server.link_of_running(places):
            announce(link)
            return

        def announce_first(link: str) -> None:
            announce(link)
            if as_json:
                answer.flush()
                sys.stdout.flush()
            else:
                print("It ends after 30 minutes without use. Ctrl+C ends it now.", flush=True)

        asyncio.run(server.PanelServer(places, os.getcwd(), port, announce=announce_first).serve())
        raise typer.Exit
