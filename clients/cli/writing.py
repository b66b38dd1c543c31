"""`memd remember` and `memd edit`: what the user says outright.

Comes in: a text. Goes out: the record, as it can be recalled from now on; or, while the daemon is down, the word that
the text lies in the spool (W10).
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from typing import Annotated

import typer

from ...protocol.errors import InvalidRequest
from ...protocol.reply import Remembered
from ..python.spool_writer import SpoolReceipt
from .contact import deliver, here, reach
from .output import Answer, JsonFlag, plain, styled, wrapped
from .wording import facts, short

app = typer.Typer(rich_markup_mode=None, add_completion=False)


@app.command()
def remember(
    text: Annotated[str, typer.Argument(help="What to remember; - reads standard input.")],
    cwd: Annotated[str | None, typer.Option(help="The project's folder, if not the current one.")] = None,
    as_json: JsonFlag = False,
) -> None:
    """Remember a statement. It can be recalled when this returns.

    \b
    Examples:
      memd remember "I prefer spaces for indentation."
      memd remember "We deploy on Tuesdays." --cwd ~/src/orchard
      git log -1 --format=%B | memd remember -
    """
    with Answer("remember", as_json) as answer, reach() as client:
        words = _text(text)
        told = client.remember_or_spool(words, cwd=_folder(cwd), host="cli")
        if isinstance(told, SpoolReceipt):
            answer.give(told, [f"spooled ({told.reason}); memd takes it when it is next reached"])
            return
        answer.give(told, _remembered_lines(told))
        deliver(client, answer)


def _folder(cwd: str | None) -> str:
    """The folder whose project is meant. Raises InvalidRequest for none: its name alone would open a pool."""
    folder = here(cwd)
    if not os.path.isdir(folder):
        raise InvalidRequest(f"{folder} is no folder", hint="name the project's folder, or leave out --cwd")
    return folder


@app.command()
def edit(
    id: Annotated[str, typer.Argument(help="The record's id, or its beginning.")],
    text: Annotated[str, typer.Argument(help="The new words; - reads standard input.")],
    as_json: JsonFlag = False,
) -> None:
    """Put a record into other words. Its id stays, and `memd why` shows what it said before.

    \b
    Example:
      memd edit 7q3hjwch "I prefer two spaces for indentation."
    """
    with Answer("edit", as_json) as answer, reach() as client:
        words = _text(text)
        told = client.edit(client.get(id).id, words)
        lines = list(_remembered_lines(told))
        if not told.duplicate:
            lines.append(f"take it back: memd undo {plain(told.record.provenance.spans[0].document)}")
        answer.give(told, lines)
        deliver(client, answer)


def _text(text: str) -> str:
    words = sys.stdin.read() if text == "-" else text
    if not words.strip():
        raise InvalidRequest("there is nothing to remember", hint='say it: memd remember "I prefer tabs."')
    return words.strip()


def _remembered_lines(told: Remembered) -> Iterator[str]:
    record = told.record
    yield from wrapped(plain(record.description))
    known = "known already · " if told.duplicate else ""
    yield f"{styled(short(record.id), 'cyan')} · {known}{facts(record)} · revision {record.rev} · {plain(record.pool)}"
