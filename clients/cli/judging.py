"""`memd feedback` and `memd unused`: your word on what memd gave, and what it gives in vain.

Comes in: records, and the answer that gave them. Goes out: what was learnt from it (Q6, Q9).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

import typer

from ...protocol.recall import UnusedList
from .contact import reach
from .output import Answer, JsonFlag, plain, wrapped
from .wording import count, row

app = typer.Typer(rich_markup_mode=None, add_completion=False)
Ids = list[str] | None


@app.command()
def feedback(
    recall: Annotated[str, typer.Argument(help="The answer's name: `memd recall` ends with it; or none.")] = "",
    used: Annotated[Ids, typer.Option("--used", help="A record that was used; repeatable.")] = None,
    helpful: Annotated[Ids, typer.Option("--helpful", help="A record that helped; repeatable.")] = None,
    wrong: Annotated[Ids, typer.Option("--wrong", help="A record that did not belong there; repeatable.")] = None,
    failed: Annotated[bool, typer.Option("--failed", help="The task did not succeed: it teaches half.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Say what became of an answer: used records grow stronger, and the order of answers is learnt from it.

    \b
    Examples:
      memd feedback 5be0c1a92 --used 7q3hjwch --wrong 0m2k9x1c
      memd feedback --helpful 7q3hjwch      # without an answer's name it counts, and teaches no order
    """
    with Answer("feedback", as_json) as answer, reach() as client:
        told = client.feedback(recall, used=used or (), helpful=helpful or (), wrong=wrong or (), failed=failed)
        lines = [f"Noted for {count(told.records, 'record')}."]
        if told.samples:
            lines.append(f"The order learns from {count(told.samples, 'sample')}, {told.learnt_from:,} so far.")
        answer.give(told, [*lines, *wrapped(plain(told.note), "  ")] if told.note else lines)


@app.command()
def unused(
    pool: Annotated[list[str] | None, typer.Option("--pool", help="Only of this pool; repeatable.")] = None,
    least: Annotated[int, typer.Option(min=1, help="Given at least so often.")] = 3,
    limit: Annotated[int, typer.Option(min=1, max=500, help="At most this many records.")] = 20,
    as_json: JsonFlag = False,
) -> None:
    """List memories that are often given and never used: candidates to edit or to forget.

    \b
    Examples:
      memd unused
      memd unused --least 10 --pool personal
    """
    with Answer("unused", as_json) as answer, reach() as client:
        told = client.never_used(pool or (), least, limit)
        answer.give(told, _lines(told))


def _lines(told: UnusedList) -> Iterator[str]:
    if not told.records:
        yield "None: whatever was given often was also used, or nobody told memd (`memd feedback`)."
    for each in told.records:
        yield f"{each.given:>5,} ×  {row(each.record)}"
