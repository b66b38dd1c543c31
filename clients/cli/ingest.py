"""`memd ingest`: takes large files in; it asks first where they have many items, and ends with a summary (W12)."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from typing import Annotated

import msgspec
import typer

from ...protocol.errors import InvalidRequest
from ...protocol.ingestion import Detail
from ...protocol.reply import JobState
from ..ingest.delivery import Ingested, Ingestion, ReadInput, read
from ..ingest.formats import STANDARD_INPUT
from ..ingest.negotiation import Choice, Negotiation
from ..python.client import Client, places_here
from .connection import PATIENCE_MS, deliver, reach
from .options import Cwd, here
from .output import CommandAnswer, JsonFlag, plain, plain_name, say, shortened, styled, wrapped
from .progress import Ticker, wait_for_job
from .wording import count, moment, pool_argument, short

app = typer.Typer(rich_markup_mode=None, add_completion=False)

UNDECIDED = 6
"""Exit code of an input with many items about which nobody decided: nothing was taken."""

LISTED = 40
"""Items that the question lists."""

AROUND = 400
_PASSAGE = re.compile(r"(?P<summary>[0-9a-z]*)§(?P<number>\d{1,5})")
_QUESTION = "Take which? (all, 1,4-9, top 10, categories, a category's name, or none)"


class IngestReport(msgspec.Struct, frozen=True, kw_only=True):
    """Of `ingest`. `negotiate`: an input about which the user has to decide; nothing of it was taken."""

    documents: tuple[Ingested, ...]
    negotiate: Negotiation | None = None
    pending: int = 0


@app.command()
def ingest(
    files: Annotated[list[str], typer.Argument(metavar="FILE...", help="Files; - for standard input.")],
    choose: Annotated[str, typer.Option(help="Only these items, for example 1,4-9.")] = "",
    top: Annotated[int, typer.Option(min=0, help="Only so many items, those that are worth most.")] = 0,
    everything: Annotated[bool, typer.Option("--all", help="Everything, however many items there are.")] = False,
    by_category: Annotated[bool, typer.Option("--by-category", help="One document for each category.")] = False,
    category: Annotated[list[str] | None, typer.Option(help="Only items of this category; repeatable.")] = None,
    cwd: Cwd = None,
    as_json: JsonFlag = False,
) -> None:
    """Take in large files: choose among items, get a summary.

    memd reads text, Markdown, HTML, PDF, JSON lines and mbox. It saves the passages, and prints a summary of at most
    1,000 tokens in the file's own words. `memd show §12` opens the passage behind a line. An input with more than 20
    items (entries of a list, headings, messages, rows) is a question first: without a terminal the command ends with
    exit code 6, tells what there is, and has taken nothing. The same file again changes nothing.

    \b
    Examples:
      memd ingest handbook.pdf
      memd ingest issues.jsonl --top 10
      memd ingest notes.md --choose 1,4-9
      memd ingest list.mbox --by-category
      curl -s https://example.com/page.html | memd ingest -
    """
    decision = Choice(choose=choose, top=top, all=everything, by_category=by_category, categories=tuple(category or ()))
    negotiate: Negotiation | None = None
    with CommandAnswer("ingest", as_json) as answer:
        decision.check()
        if choose and len(files) > 1:
            raise InvalidRequest("the numbers are of one file's items", hint="ingest one file at a time with --choose")
        with Ticker(as_json) as ticker:
            inputs = list(_read(files, ticker))
        with reach(PATIENCE_MS) as client, ticker:

            def wait(started: JobState) -> JobState:
                ticker.clear()
                return wait_for_job(client, started, answer)

            ingestion = Ingestion(
                client, places_here().state, here(cwd), wait, lambda other: ticker.tell(f"{other}: waiting for it")
            )
            documents: list[Ingested] = []
            for found in inputs:
                ticker.tell(f"saving {count(len(found.text.passages), 'passage')}")
                taken, negotiate = _taken(ingestion, found, decision, answer, ticker)
                documents += taken
                if negotiate:
                    break
            ticker.clear()
            pending = _finished(client, answer) if documents else 0
            report = IngestReport(documents=tuple(documents), negotiate=negotiate, pending=pending)
            answer.give(report, _closing_lines(report))
    if negotiate:
        raise typer.Exit(UNDECIDED)


def _read(files: Sequence[str], ticker: Ticker) -> Iterator[ReadInput]:
    for name in files:
        ticker.tell(f"reading {name}")
        yield read(name)


def _taken(
    ingestion: Ingestion, found: ReadInput, decision: Choice, answer: CommandAnswer, ticker: Ticker
) -> tuple[list[Ingested], Negotiation | None]:
    """Take one input in; ask where the user has to decide, if there is a terminal."""
    documents: list[Ingested] = []
    for result in ingestion.take(found, decision):
        ticker.clear()
        if isinstance(result, Negotiation):
            asked = _asked(result, found, answer)
            return _taken(ingestion, found, asked, answer, ticker) if asked else ([], result)
        documents.append(result)
        if not answer.as_json:
            say(_document_lines(result))
    return documents, None


def _finished(client: Client, answer: CommandAnswer) -> int:
    deliver(client, answer)
    return client.distil().pending


def _asked(negotiation: Negotiation, found: ReadInput, answer: CommandAnswer) -> Choice | None:
    """Return what the user decides; None without a terminal, and for nothing."""
    if not answer.as_json:
        say(_negotiation_lines(negotiation))
    is_asked = not answer.as_json and found.file != STANDARD_INPUT and sys.stdin.isatty()
    return decided(typer.prompt(_QUESTION, default="none", err=True), negotiation) if is_asked else None


def decided(words: str, negotiation: Negotiation) -> Choice | None:
    """Return the decision that a user typed, None for nothing. Raises InvalidRequest."""
    said = words.strip()
    if said in ("", "none"):
        return None
    if said == "all":
        return Choice(all=True)
    if said == "categories":
        return Choice(by_category=True)
    if match := re.fullmatch(r"top (\d+)", said):
        return Choice(top=int(match[1]))
    if re.fullmatch(r"[\d,\- ]+", said):
        return Choice(choose=said)
    return Choice(categories=(said,))


def _negotiation_lines(negotiation: Negotiation) -> Iterator[str]:
    file = "standard input" if negotiation.file == STANDARD_INPUT else plain_name(negotiation.file)
    yield f"{file} has {negotiation.items:,} items ({negotiation.of}); nothing was taken yet"
    for number, label in enumerate(negotiation.labels[:LISTED], 1):
        yield f"{number:>5}  {shortened(plain(label), 100)}"
    if negotiation.items > LISTED:
        yield f"       and {negotiation.items - LISTED:,} more"
    kinds = ", ".join(f"{plain(kind)} {number:,}" for kind, number in negotiation.kinds.items())
    yield from wrapped(f"categories: {kinds}", "  ")
    cost = negotiation.cost
    yield f"everything: {count(cost.parts, 'passage')}, about {cost.tokens:,} tokens to read"
    yield "decide with --choose 1,4-9, --top 10, --all, --by-category or --category NAME"


def _document_lines(document: Ingested) -> Iterator[str]:
    sent = document.sent
    name = plain_name(document.document)
    told = [f"{sent.accepted:,} new", f"{sent.duplicate:,} known"]
    told += [
        f"{number:,} {word}" for number, word in ((sent.changed, "changed"), (sent.vanished, "retracted")) if number
    ]
    yield f"{styled(name, 'bold')}: {count(sent.events, 'passage')}, {', '.join(told)}"
    for line in _losses(document):
        yield styled(line, "yellow")
    if not document.summary:
        yield "no summary: no clause of it says enough"
        return
    yield ""
    for line in document.summary.split("\n"):
        yield from wrapped(plain(line), "    ", "  ")
    yield ""
    state = "" if document.written else ", as before"
    size = f"{document.tokens:,} tokens of {count(document.details, 'passage')}"
    yield f"summary {styled(short(document.id), 'cyan')}: {size}{state}; open a line: memd show {short(document.id)}§1"


def _losses(document: Ingested) -> Iterator[str]:
    sent = document.sent
    if sent.skipped:
        yield f"{count(sent.skipped, 'passage')} not taken: {sent.why}"
    if sent.forgotten:
        yield f"{count(sent.forgotten, 'passage')} not taken: you had them forgotten"
    if sent.refused:
        yield f"{count(len(sent.refused), 'passage')} refused: {plain(sent.refused[0].problem.message)}"


def _closing_lines(report: IngestReport) -> Iterator[str]:
    if report.pending:
        yield f"{count(report.pending, 'passage')} to process in the background: see `memd status`"
    if report.documents:
        pool = report.documents[0].pool
        yield f'to search the details: memd recall "…" --pool {pool_argument(pool)}'


# --- passages ---------------------------------------------------------------------------------------------------------
def show_detail(name: str, as_json: bool) -> None:
    """Show the passage that `7q3hjwch§12` or `§12` names."""
    with CommandAnswer("show", as_json) as answer, reach() as client:
        match = _PASSAGE.fullmatch(name.strip())
        if match is None:
            raise InvalidRequest(f"{name!r} is no passage", hint="write §12, or 7q3hjwch§12 with a summary's id")
        detail = client.detail(int(match["number"]), summary=match["summary"], cwd=here(None))
        answer.give(detail, detail_lines(detail))


def detail_lines(detail: Detail) -> Iterator[str]:
    """A passage with its words around it."""
    before, said, after = (
        plain(detail.text[max(0, detail.start - AROUND) : detail.start]),
        plain(detail.text[detail.start : detail.end]),
        plain(detail.text[detail.end : detail.end + AROUND]),
    )
    head = f"§{detail.number} of {detail.total} · {moment(detail.at)} · {plain_name(detail.path or detail.document)}"
    yield styled(head, "dim")
    yield from wrapped(f"{before} »{said}« {after}".strip(), "  ", "  ")
    yield styled(
        f"of the summary {short(detail.summary.id)}: {shortened(plain(detail.summary.description), 60)}", "dim"
    )
