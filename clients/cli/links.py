"""`memd links`: whether the documents behind records have changed (C3)."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Annotated

import typer

from ...protocol.document_links import LinkList, LinkState
from .connection import reach
from .options import Cwd, here
from .output import CommandAnswer, JsonFlag, plain, plain_name, styled, wrapped
from .wording import count, short

app = typer.Typer(rich_markup_mode=None, add_completion=False)
_COLOURS = {"fresh": "green", "moved": "cyan", "changed": "yellow", "gone": "red", "out of reach": "dim"}


@app.command()
def links(
    ids: Annotated[list[str] | None, typer.Argument(metavar="[ID]...", help="Only the links of these records.")] = None,
    stale: Annotated[bool, typer.Option("--stale", help="Only documents that changed or are gone.")] = False,
    cwd: Cwd = None,
    as_json: JsonFlag = False,
) -> None:
    """Show whether the documents behind records have changed.

    A record is linked to the Markdown file that it was imported from, and to files named as evidence. memd compares the
    part below the heading, follows a renamed file, and changes no record.

    \b
    Examples:
      memd links
      memd links --stale
      memd links 7q3hjwch
    """
    with CommandAnswer("links", as_json) as answer, reach() as client:
        listed = client.links(ids or (), cwd=here(cwd), stale=stale)
        answer.give(listed, _lines(listed, stale))


def _lines(listed: LinkList, stale: bool) -> Iterator[str]:
    for id, group in groupby(listed.links, key=lambda link: link.id):
        rows = list(group)
        yield from wrapped(plain(rows[0].description), " " * 10, f"{styled(short(id), 'cyan')}  ")
        for link in rows:
            yield from wrapped(f"{styled(link.state, _COLOURS[link.state])}: {_document(link)}", " " * 12, " " * 10)
    for line in _hints(listed.links):
        yield from wrapped(line)
    if listed.left:
        yield f"{count(listed.left, 'link')} not compared yet, for lack of time: run it again"
    if not listed.checked:
        yield "no record is linked to a document; `memd evidence ID FILE` links one"
    elif not listed.links:
        yield f"{count(listed.checked, 'link')}, none {'changed or gone' if stale else 'shown'}"


def _hints(links: Iterable[LinkState]) -> Iterator[str]:
    """The next steps for documents that changed or are gone."""
    changed = [link for link in links if link.state in {"changed", "gone"}]
    if changed:
        id = short(changed[0].id)
        yield f"does it still hold? `memd edit {id} TEXT` rewords it, `memd review {id} --every DAYS` sets a date"
    if any(link.by == "evidence" and link.state == "changed" for link in changed):
        yield "`memd evidence ID FILE` names the file again as it is now"
    if any(link.by == "import" for link in changed):
        yield "`memd import markdown FILE` reads the file again"


def _document(link: LinkState) -> str:
    """The path, from the current folder if it lies below, the headings, and where the document is now."""
    path = f"{_path(link.path)}{f'#{plain(link.anchor)}' if link.anchor else ''}"
    return f"{path}, now {_path(link.now)}" if link.now != link.path else path


def _path(path: str) -> str:
    below = os.path.relpath(path)
    return plain_name(path if below.startswith("..") else below)


def states(links: Iterable[LinkState]) -> str:
    """The states of a record's links, in words on one line."""
    return "; ".join(f"{link.state}: {_document(link)}" for link in links)
