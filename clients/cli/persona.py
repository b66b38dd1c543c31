"""`memd persona`: who the user or an agent is, and the tone (R1)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal

import typer

from ...protocol.record import Record
from ...protocol.reply import Remembered
from .connection import reach
from .output import CommandAnswer, JsonFlag, plain, plain_name, styled, wrapped
from .wording import short

app = typer.Typer(
    rich_markup_mode=None,
    add_completion=False,
    help="Show or set who you are and the tone, for every agent.",
    epilog='Example: `memd persona set tone "Answer briefly."`',
)
Agent = Annotated[str, typer.Option(help="Of this agent, instead of yours.")]
Block = Annotated[Literal["identity", "tone"], typer.Argument(help="Who it is, or the tone of answers.")]


@app.command()
def show(agent: Agent = "", as_json: JsonFlag = False) -> None:
    """Show the persona blocks.

    Every profile contains them, and no search returns them.

    \b
    Examples:
      memd persona show
      memd persona show --agent reviewer
    """
    with CommandAnswer("persona show", as_json) as answer, reach() as client:
        page = client.list(pools=(f"agent/{agent}" if agent else "personal",), kinds=("persona",))
        live = [record for record in page.records if record.status == "active"]
        lines = [line for record in live for line in _lines(record)]
        answer.give(page, lines or ['no block yet: `memd persona set tone "Answer briefly."`'])


@app.command("set")
def set_block(
    block: Block,
    text: Annotated[str, typer.Argument(help='One or two sentences; "" removes the block.')],
    agent: Agent = "",
    as_json: JsonFlag = False,
) -> None:
    """Set a block, in place of its earlier text.

    \b
    Examples:
      memd persona set identity "I am Ada, a backend engineer in Zurich."
      memd persona set tone "Answer briefly, and in German." --agent reviewer
      memd persona set tone ""
    """
    with CommandAnswer("persona set", as_json) as answer, reach() as client:
        _give(answer, client.set_persona(block, text, agent=agent))


@app.command()
def add(
    block: Block,
    text: Annotated[str, typer.Argument(help="A sentence to add.")],
    agent: Agent = "",
    as_json: JsonFlag = False,
) -> None:
    """Add a sentence to a block.

    \b
    Example:
      memd persona add tone "No exclamation marks."
    """
    with CommandAnswer("persona add", as_json) as answer, reach() as client:
        _give(answer, client.set_persona(block, text, agent=agent, add=True))


def _give(answer: CommandAnswer, remembered: Remembered) -> None:
    record = remembered.record
    is_gone = record.status == "retired"
    answer.give(remembered, [f"removed: {plain(record.description)}"] if is_gone else _lines(record))


def _lines(record: Record) -> Iterator[str]:
    yield f"{styled(plain_name(record.key.removeprefix('persona.')), 'bold')} · {short(record.id)}"
    yield from wrapped(plain(record.content), "  ", "  ")
