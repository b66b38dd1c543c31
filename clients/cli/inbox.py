"""`memd inbox`: proposals that only the user decides (T13, G7)."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import Annotated, Literal

import typer

from ...protocol.corrections import Inbox, Waiting
from ...protocol.record import Record
from ..python.client import Client
from .connection import PATIENCE_MS, reach
from .options import DryRun
from .output import CommandAnswer, JsonFlag, plain, plain_name, say, styled, wrapped
from .progress import wait_for_job
from .wording import age, count, facts, judged_lines, place, short

app = typer.Typer(rich_markup_mode=None, add_completion=False, invoke_without_command=True)
CANDIDATES = 20
MOST = 200
AllFlag = Annotated[bool, typer.Option("--all", help="Include decided and obsolete proposals.")]
Id = Annotated[str, typer.Argument(help="The proposal's id, or a unique prefix.")]
Ids = Annotated[list[str], typer.Argument(help="The ids of proposals, or unique prefixes.")]


@app.callback()
def inbox(
    context: typer.Context,
    all: AllFlag = False,
    candidates: Annotated[
        bool, typer.Option("--candidates", help="List the unconfirmed records instead, newest first.")
    ] = False,
    after: Annotated[str, typer.Option(help="With --candidates: continue after this cursor.")] = "",
    as_json: JsonFlag = False,
) -> None:
    """List, accept or reject proposed changes.

    memd proposes a change instead of making it when an agent asks to delete a record, when a statement contradicts a
    pinned record or your identity, or when another reader of a session (`memd setup --reflect`, `memd remote`) points
    at words of yours that contradict earlier ones. Unconfirmed records need no decision: searches return them with a
    mark. With --candidates you can look through them, each with its source; `memd confirm` and `memd reject` decide
    one.

    \b
    Examples:
      memd inbox
      memd inbox accept 7q3hjwch    # replaces or permanently deletes the record
      memd inbox reject 7q3hjwch    # changes nothing
      memd inbox reopen 7q3hjwch    # takes either decision back, but not a deletion
      memd inbox --candidates
    """
    if context.invoked_subcommand:
        return
    if candidates:
        _list_candidates(after, as_json)
        return
    with CommandAnswer("inbox", as_json) as answer, reach() as client:
        proposals = client.inbox(all=all)
        answer.give(proposals, [*_lines(proposals), *_share_lines(client)])


def _share_lines(client: Client) -> Iterator[str]:
    """How many records wait for the user's word to be shared."""
    if waiting := sum(share.undecided for share in client.shares().shares if share.is_open):
        yield styled(f"{count(waiting, 'record waits', 'records wait')} for your review: memd share review", "dim")


def _list_candidates(after: str, as_json: bool) -> None:
    with CommandAnswer("inbox", as_json) as answer, reach() as client:
        page = client.list(statuses=("quarantined", "provisional"), after=after, limit=CANDIDATES)
        lines = [line for record in page.records for line in _candidate_lines(record)] or ["no candidates"]
        if page.records:
            lines.append(styled("`memd confirm ID` believes one, `memd reject ID` retires one", "dim"))
        if page.next:
            lines.append(styled(f"more: memd inbox --candidates --after {shlex.quote(page.next)}", "dim"))
        answer.give(page, lines)


def _candidate_lines(record: Record) -> Iterator[str]:
    yield f"{styled(short(record.id), 'cyan')}  {facts(record)}"
    yield from wrapped(plain(record.description), "    ", "    ")
    quote = record.provenance.quote
    if quote and quote not in record.description:
        yield from wrapped(f"“{plain(quote)}”", "    ", "    ")
    yield styled(f"    {place(record)}", "dim")


@app.command()
def accept(ids: Ids, dry_run: DryRun = False, as_json: JsonFlag = False) -> None:
    """Accept proposals: replace or permanently delete their records.

    memd accepts all of them, or none if one of them cannot be accepted.

    \b
    Example:
      memd inbox accept 7q3hjwch --dry-run    # shows what would change
      memd inbox accept 7q3hjwch
      memd inbox accept 7q3hjwch k2m4xw9t
    """
    _decide(ids, "accept", dry_run, as_json)


@app.command()
def reject(ids: Ids, dry_run: DryRun = False, as_json: JsonFlag = False) -> None:
    """Reject proposals: change nothing and remove them from the list.

    \b
    Example:
      memd inbox reject 7q3hjwch
    """
    _decide(ids, "reject", dry_run, as_json)


@app.command()
def reopen(id: Id, as_json: JsonFlag = False) -> None:
    """Take a decision back; the proposal is open again.

    Its records are as before the decision. memd refuses where a record changed since you accepted. What was deleted
    permanently does not come back.

    \b
    Example:
      memd inbox --all                # shows decided proposals, too
      memd inbox reopen 7q3hjwch
    """
    with CommandAnswer("inbox reopen", as_json) as answer, reach() as client:
        reopened = client.reopen(id)
        changes = [line for record in reopened.records for line in judged_lines(record, False)]
        answer.give(reopened, [*changes, f"open again; {count(reopened.open, 'proposal')} to decide"])


def _decide(ids: list[str], word: Literal["accept", "reject"], dry_run: bool, as_json: bool) -> None:
    with CommandAnswer(f"inbox {word}", as_json) as answer, reach(4 * PATIENCE_MS) as client:
        patches = _patches_among(client, ids) if word == "accept" and not dry_run else ()
        decided = client.decide(ids[0], word == "accept", ids=ids[1:], dry_run=dry_run)
        if dry_run:
            changes = [line for record in decided.records for line in judged_lines(record, True)]
            answer.give(decided, changes or ["no record would change"])
            return
        if decided.job:
            done = wait_for_job(client, decided.job, answer)
            left = done.report.get("left")
            outcome = "deleted, but copies remain: see `memd status`" if left else "deleted permanently; no copy left"
            answer.give(done.report, [outcome])
            return
        undo = [f"to undo this: memd inbox reopen {plain_name(id)}" for id in reversed(ids)]
        answer.give(decided, [f"{word}ed; {count(decided.open, 'proposal')} left", *undo])
        if patches:
            _write_files(client, answer)


def _patches_among(client: Client, ids: list[str]) -> tuple[str, ...]:
    """Those of the proposals that change the playbook of a project by a patch."""
    waiting = client.inbox(limit=MOST).proposals
    return tuple(row.id for row in waiting if row.what == "patch" and row.id.startswith(tuple(ids)))


def _write_files(client: Client, answer: CommandAnswer) -> None:
    """Write the files of accepted patches, if the folder's repository has a `.pi`."""
    from .patch import synced
    from .pi import sync_lines

    report = synced(client)
    if report is None:
        answer.warn("`memd pi sync` in the project's repository writes the patch's file")
    elif not answer.as_json:
        say(sync_lines(report))


def _lines(inbox: Inbox) -> Iterator[str]:
    if not inbox.proposals:
        yield "no proposals"
    for proposal in inbox.proposals:
        yield from _proposal_lines(proposal)
    if inbox.open > len(inbox.proposals):
        yield f"and {inbox.open - len(inbox.proposals):,} more"


def _proposal_lines(proposal: Waiting) -> Iterator[str]:
    state = "" if proposal.state == "open" else f" · {styled(proposal.state, 'yellow')}"
    by = f" · requested by {plain_name(proposal.by)}" if proposal.by not in ("", "memd") else ""
    change = f"{plain(proposal.label)}: {plain(proposal.reason)}"
    if proposal.what == "patch" and proposal.patch:
        change = f"{plain_name(proposal.patch)}{f': {plain(proposal.reason)}' if proposal.reason else ''}"
    question = "delete permanently?" if proposal.what == "forget" else change
    yield f"{styled(short(proposal.id), 'cyan')}  {question}{by} · {age(proposal.at)}{state}"
    if proposal.changes:
        yield from (line for change in proposal.changes for line in wrapped(plain(change.line), "      ", "    "))
        yield from _if_nothing(proposal)
        return
    old, new = ("twice ", "keep  ") if proposal.what == "duplicate" else ("old   ", "new   ")
    old = old if proposal.against else ""
    yield from wrapped(f"{old}{short(proposal.record)}  {plain(proposal.line) or '(deleted)'}", " " * 14, "    ")
    if proposal.against:
        text = f"{new}{short(proposal.against)}  {plain(proposal.against_line) or '(deleted)'}"
        yield from wrapped(text, " " * 14, "    ")
    yield from _if_nothing(proposal)


def _if_nothing(proposal: Waiting) -> Iterator[str]:
    if proposal.if_nothing:
        yield styled(f"    if you do nothing: {proposal.if_nothing[0].lower()}{proposal.if_nothing[1:]}", "dim")
