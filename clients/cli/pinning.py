"""`memd pin` and `memd unpin`: what every agent shall know, on the user's own word (R9, T13).

Comes in: ids. Goes out: where each record stands now: L1 for what is about the user, L2 for what is a project's.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

import typer

from ...protocol.record import PRINCIPLE
from ...protocol.reply import Remembered
from .contact import reach
from .output import Answer, JsonFlag, plain, styled, wrapped
from .wording import short

app = typer.Typer(rich_markup_mode=None, add_completion=False)
Ids = Annotated[list[str], typer.Argument(help="Records' ids, or their beginnings.")]
_LAYERS = {
    "L1": "pinned: it stands first in every profile (L1)",
    "L2": "pinned: it stands first in this project's profile (L2)",
    "L3": "an ordinary memory again (L3)",
}


@app.command()
def pin(
    ids: Ids,
    principle: Annotated[bool, typer.Option("--principle", help="It stands in every recall as well.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Hold on to records: they stand first in the profile, and no statement retires them by itself.

    What was unconfirmed is confirmed by it; so it is when you say it yourself, or put it into your words.

    \b
    What is about you becomes L1 (at most 40), what is a project's its L2 (at most 300), 20 of either principles.
    Examples:
      memd pin 7q3hjwch
      memd pin 7q3hjwch --principle
      memd list --type preference    # shows ids
    """
    _pin("pin", ids, True, as_json, principle)


@app.command()
def unpin(ids: Ids, as_json: JsonFlag = False) -> None:
    """Let go of records: they are ordinary memories again.

    \b
    Example:
      memd unpin 7q3hjwch
    """
    _pin("unpin", ids, False, as_json)


def _pin(command: str, ids: list[str], wanted: bool, as_json: bool, principle: bool = False) -> None:
    with Answer(command, as_json) as answer, reach() as client:
        told = [client.pin(client.get(id).id, wanted, principle=principle) for id in ids]
        answer.give(told, (line for each in told for line in _lines(each)))


def _lines(told: Remembered) -> Iterator[str]:
    record = told.record
    yield from wrapped(plain(record.description))
    already = "already " if told.duplicate else ""
    principle = " · a principle" if PRINCIPLE in record.tags else ""
    yield f"{styled(short(record.id), 'cyan')} · {already}{_LAYERS[record.layer]}{principle} · {plain(record.pool)}"
