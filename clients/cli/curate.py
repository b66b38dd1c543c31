"""`memd curate`: what a playbook should take in, merge, review or give up (G3, G4)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

import typer

from ...protocol.curation import CuratedProposal, Curation
from .connection import PATIENCE_MS, reach
from .output import CommandAnswer, JsonFlag, plain, plain_name, styled, wrapped
from .wording import count, short

app = typer.Typer(rich_markup_mode=None, add_completion=False)


@app.command()
def curate(
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show the proposals without making them.")] = False,
    project: Annotated[str, typer.Option(metavar="NAME", help="Only of this project, or of `personal`.")] = "",
    as_json: JsonFlag = False,
) -> None:
    """Propose what the playbook should take in or give up.

    memd does so once a week by itself. A statement has to come from two conversations on different days, or from one
    and a commit or a committed document; copies, what memd told a session and what a session wrote itself do not
    count. memd proposes at most five changes a week, and each waits in `memd inbox` for your decision, for 30 days.

    \b
    Examples:
      memd curate --dry-run
      memd curate --project orchard
      memd inbox                    # what waits for your decision
    """
    with CommandAnswer("curate", as_json) as answer, reach(6 * PATIENCE_MS) as client:
        curation = client.curate(project, dry_run=dry_run)
        answer.give(curation, _lines(curation))


def _lines(curation: Curation) -> Iterator[str]:
    for proposal in curation.proposals:
        yield from _proposal_lines(proposal)
    made = "would propose" if curation.dry_run else "proposed"
    yield f"{made} {count(len(curation.proposals), 'change')}, from {count(curation.read, 'statement')}"
    for why, number in curation.left_out:
        yield styled(f"  left out {number:>6,}: {why}", "dim")
    if curation.lapsed:
        word = "would lapse" if curation.dry_run else "lapsed"
        yield f"{count(curation.lapsed, 'proposal')} {word}: nobody decided in 30 days"
    yield from map(plain, curation.notes)
    if curation.open:
        yield f"{count(curation.open, 'proposal')} to decide: memd inbox"


_WORDS = {"promote": "into", "merge": "merge in", "deprecate": "give up in", "review": "review in"}


def _proposal_lines(proposal: CuratedProposal) -> Iterator[str]:
    pool = plain_name(proposal.title or proposal.pool)
    change = f"{_WORDS[proposal.kind]} {proposal.layer} of {pool}"
    sure = f" · confidence {proposal.confidence:.2f}" if proposal.kind == "promote" else ""
    yield f"{styled(short(proposal.id), 'cyan')}  {change}{sure}"
    yield from wrapped(f"{short(proposal.record)}  {plain(proposal.statement)}", " " * 14, "    ")
    if proposal.against:
        yield from wrapped(f"{short(proposal.against)}  {plain(proposal.against_statement)}", " " * 14, "    ")
    yield from wrapped(f"why: {plain(proposal.why)}", " " * 9, "    ")
    if proposal.change_condition and proposal.kind == "promote":
        yield from wrapped(f"until: {plain(proposal.change_condition)}", " " * 11, "    ")
    if proposal.let_go:
        yield from wrapped(f"lets go: {short(proposal.let_go)}  {plain(proposal.let_go_statement)}", " " * 13, "    ")
