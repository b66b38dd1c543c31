"""`memd logs`: the daemon's own words, which it writes whether or not a service manager runs it.

Comes in: how many lines, and whether to go on. Goes out: lines, harmless to a terminal. Invariant: a rotation while
following loses no line.
"""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, TextIO

import msgspec
import typer

from ...protocol.errors import NotFound
from ..python.client import places_here
from .output import Answer, JsonFlag, plain, styled

app = typer.Typer(rich_markup_mode=None, add_completion=False)
POLL_S = 0.25
_STYLES = {" ERROR ": "red", " WARNING ": "yellow"}


class Lines(msgspec.Struct, frozen=True, kw_only=True):
    """Of `logs`."""

    file: str
    lines: tuple[str, ...]


@app.command()
def logs(
    follow: Annotated[bool, typer.Option("-f", "--follow", help="Go on as more is written, until Ctrl-C.")] = False,
    limit: Annotated[int, typer.Option("-n", "--limit", min=0, help="The last so many lines.")] = 50,
    as_json: JsonFlag = False,
) -> None:
    """Show what the daemon wrote into its log.

    \b
    Examples:
      memd logs
      memd logs -f
      MEMD_LOG=debug memd up && memd logs -f    # more of it
    """
    with Answer("logs", as_json) as answer:
        path = places_here().log
        try:
            file = path.open(encoding="utf-8", errors="replace")
        except OSError as error:
            raise NotFound(f"no log at {path}", hint="memd has not run in this home yet: `memd up`") from error
        with file:
            last = tuple(line.rstrip("\n") for line in deque(file, limit))
            answer.give(Lines(file=str(path), lines=last), _shown(last))
            if follow:
                if as_json:
                    answer.flush()
                _follow(answer, path, file)


def _follow(answer: Answer, path: Path, file: TextIO) -> None:
    while True:
        rotated = _is_another(path, file)  # asked before the last lines are read
        if fresh := tuple(line.rstrip("\n") for line in file):
            answer.give(Lines(file=str(path), lines=fresh), _shown(fresh))
            if answer.as_json:
                answer.flush()
        elif rotated:
            file.close()
            file = path.open(encoding="utf-8", errors="replace")
            continue
        time.sleep(POLL_S)


def _is_another(path: Path, file: TextIO) -> bool:
    try:
        return path.stat().st_ino != os.fstat(file.fileno()).st_ino
    except FileNotFoundError:
        return False


def _shown(lines: Iterable[str]) -> list[str]:
    shown: list[str] = []
    for line in lines:
        style = next((style for word, style in _STYLES.items() if word in line[:60]), "")
        shown.append(styled(plain(line), style) if style else plain(line))
    return shown
