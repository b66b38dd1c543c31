"""`memd why`: the source of a record and every decision on it (R4)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import typer

from ...protocol.document_links import LinkState
from ...protocol.errors import MemdError
from ...protocol.record import Record
from ...protocol.reply import Change, Explained, Line
from ..python.client import Client
from .connection import reach
from .links import states
from .options import Id
from .output import CommandAnswer, JsonFlag, has_colour, plain, plain_name, shortened, styled, wrapped
from .wording import age, artifacts, count, facts, learnings, moment, pool_name, row, short, with_local_times

app = typer.Typer(rich_markup_mode=None, add_completion=False)
_AROUND = 160
_STAGES = {"door": "received", "route": "assign"}
"""Words for stages whose stored names say little."""


@app.command()
def why(id: Id, as_json: JsonFlag = False) -> None:
    """Show the source of a record and every decision on it.

    \b
    Example:
      memd why 7q3hjwch
    """
    with CommandAnswer("why", as_json) as answer, reach() as client:
        explained = client.why(id)
        links = () if as_json else _links(client, explained)
        answer.give(explained, explained_lines(explained, links))


def _links(client: Client, explained: Explained) -> tuple[LinkState, ...]:
    """The links of a record, () if the daemon does not tell them."""
    is_file = any(artifact.root for artifact in explained.record.artifacts)
    if not is_file and not explained.session.startswith("markdown:"):
        return ()
    try:
        return client.links([explained.record.id]).links
    except MemdError:
        return ()


def explained_lines(explained: Explained, links: Sequence[LinkState] = ()) -> Iterator[str]:
    """A record's source and decisions as text."""
    record = explained.record
    yield from (styled(line, "bold") for line in wrapped(plain(record.description)))
    yield f"{styled(short(record.id), 'cyan')} · {facts(record)} · confidence {record.confidence:.2f}"
    yield ""
    came = "came with a patch of the repository by" if record.is_from_patch else "shared by"
    source = f"{came} {plain_name(record.provenance.author)}" if record.is_team else ""
    yield from wrapped(
        (source or f"captured in {plain_name(explained.session)}")
        + (f", {pool_name(explained.project)}" if explained.project else "")
    )
    for line in explained.lines:
        yield from _turn_lines(line, record)
    if explained.quote_holds is None and not record.is_team:
        words = plain(record.provenance.quote) or plain(record.content)
        yield from wrapped(f"the archive no longer has the source; it said: “{words}”", "  ", "  ")
    if explained.quote_holds is False:
        yield styled("  the quote differs from the archive: run `memd verify`", "red")
    yield ""
    for change in explained.changes:
        yield from _change_lines(change)
    if record.learnings:
        yield from wrapped(f"teaches {learnings(record)}", "  ", "")
    for line in artifacts(record):
        yield from wrapped(f"proven by {line}")
    if links:
        yield from wrapped(f"documents: {states(links)}")
    if explained.changes_if:
        yield from wrapped(f"reconsidered if: {plain(explained.changes_if)}")
    for old in explained.replaced:
        yield from _other_lines("replaced", old)
    if explained.replaced_by:
        yield from _other_lines("replaced by", explained.replaced_by)
    if explained.held_by:
        yield from _other_lines("current record", explained.held_by)


def _turn_lines(line: Line, record: Record) -> Iterator[str]:
    mark = styled("▶", "green") if line.cited else " "
    head = f"{plain_name(line.who)} {moment(line.at)} · turn {plain_name(line.turn)[:13]}"
    yield f"{mark} {styled(head, 'dim')}"
    if line.cited:
        yield from _cited(line, record)
    else:
        yield f"    {styled(shortened(plain(line.text), 70), 'dim')}"


def _cited(line: Line, record: Record) -> list[str]:
    """The text of the cited turn around the quote, with the quote marked."""
    start, end = _span(line, record)
    if start < 0:
        return wrapped(shortened(plain(line.text), 400), "    ")
    before, said, after = plain(line.text[:start]), plain(line.text[start:end]), plain(line.text[end:])
    if len(before) > _AROUND:
        before = "…" + before[-_AROUND:].partition(" ")[2]
    opening, closing = ("\x02", "\x03") if has_colour() else ("»", "«")
    whole = " ".join(part for part in (before, f"{opening}{said}{closing}", shortened(after, _AROUND)) if part)
    lines = wrapped(whole, "    ")
    return _coloured(lines) if has_colour() else lines


def _coloured(lines: list[str]) -> list[str]:
    """Colour the text between the marks line by line: a style must end before the line does."""
    inside, coloured = False, list[str]()
    for line in lines:
        text = ""
        for character in line:
            if character in "\x02\x03":
                inside = character == "\x02"
                text += "\x1b[32m" if inside else "\x1b[0m"
            else:
                text += character
        coloured.append(text + ("\x1b[0m" if inside else ""))
        if inside and len(coloured) < len(lines):
            lines[len(coloured)] = "\x02" + lines[len(coloured)]
    return coloured


def _span(line: Line, record: Record) -> tuple[int, int]:
    """Start and end of the record's quote in the turn; (-1, …) if it is absent."""
    quote = record.provenance.quote
    for span in record.provenance.spans:
        if span.turn == line.turn and 0 <= span.start < span.end <= len(line.text):
            return span.start, span.end
    start = line.text.find(quote) if quote else -1
    return start, start + len(quote)


def _change_lines(change: Change) -> Iterator[str]:
    revision = f", revision {change.rev}" if change.rev else ""
    by = f" by {short(change.by)}" if change.by else ""
    reason = change.reason or (change.decision.reason if change.decision else "")
    why = f": {with_local_times(plain(reason))}" if reason else ""
    yield from wrapped(f"{moment(change.at)}  {change.kind}{revision}{by}{why}", " " * 18, "")
    if not change.decision:
        return
    for step in change.decision.steps:
        yield from wrapped(
            with_local_times(plain(step.what)), " " * 23, f"    {_STAGES.get(step.stage, plain_name(step.stage)):<18} "
        )
    near = change.decision.neighbours
    if near:
        compared = ", ".join(f"{short(other.id)} {plain(other.label)} ({other.similarity:.2f})" for other in near[:4])
        yield from wrapped(compared, " " * 23, f"    {'compared with':<18} ")
    if change.decision.rounds > 1:
        yield f"    {'':<18} judged in {count(change.decision.rounds, 'round')}"


def _other_lines(relation: str, record: Record) -> Iterator[str]:
    yield ""
    yield f"{relation}:"
    yield f"  {row(record)}"
    if record.retired_at:
        yield f"  {styled(f'retired {age(record.retired_at)}', 'dim')}"
