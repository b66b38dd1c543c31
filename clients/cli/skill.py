"""`memd skill`: procedures that sessions repeated with success, as drafts of files for agents (K1)."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from ...protocol.errors import InvalidRequest, NotFound, Refused
from ...protocol.skills import SkillDraft, SkillList
from ..python.client import Client
from .connection import PATIENCE_MS, reach
from .options import Cwd, here
from .output import CommandAnswer, JsonFlag, plain, plain_name, say, styled, wrapped
from .skill_places import place_skill, repository_of
from .wording import count, short

app = typer.Typer(rich_markup_mode=None, add_completion=False, no_args_is_help=True)

Everywhere = Annotated[bool, typer.Option("--everywhere", help="Of all projects, not only of this folder's.")]
Name = Annotated[str, typer.Argument(help="The draft's name, or the beginning of its id.")]
ROUNDS = 12
"""Most rounds that are listed."""


@app.callback()
def skill() -> None:
    """Show procedures that sessions repeated, as drafts of skills.

    memd looks for commands that several sessions ran in the same order, on several days, and that ended well. A draft
    has only words of these commands and of your own requests. memd stores nothing of it, and writes the file only when
    you say so.
    """


@app.command("list")
def list_skills(
    everywhere: Everywhere = False,
    known: Annotated[bool, typer.Option("--known", help="Also those that the project's files spell out.")] = False,
    cwd: Cwd = None,
    as_json: JsonFlag = False,
) -> None:
    """List drafts, those that were done most often first.

    A procedure was done at least three times, in two sessions, on two days, with three steps of the project's own.

    \b
    Examples:
      memd skill list
      memd skill list --everywhere
    """
    with CommandAnswer("skill list", as_json) as answer, reach(PATIENCE_MS) as client:
        listed = client.skills(cwd=here(cwd), everywhere=everywhere, known=known)
        answer.give(listed, _lines(listed))


@app.command()
def show(name: Name, everywhere: Everywhere = False, cwd: Cwd = None, as_json: JsonFlag = False) -> None:
    """Show a draft: the file for an agent, or the line for AGENTS.md.

    Words that differ from time to time stand as <word>, <path> or <text>. Risky commands are left out.

    \b
    Example:
      memd skill show ship-version
    """
    with CommandAnswer("skill show", as_json) as answer, reach(PATIENCE_MS) as client:
        draft = _named(client, name, here(cwd), everywhere)
        answer.give(draft, _shown(draft))


@app.command()
def why(name: Name, everywhere: Everywhere = False, cwd: Cwd = None, as_json: JsonFlag = False) -> None:
    """Show what a draft rests on: each time, and how it ended.

    \b
    Example:
      memd skill why ship-version
    """
    with CommandAnswer("skill why", as_json) as answer, reach(PATIENCE_MS) as client:
        draft = _named(client, name, here(cwd), everywhere)
        answer.give(draft, _evidence(draft))


@app.command()
def place(
    name: Name,
    personal: Annotated[bool, typer.Option("--personal", help="In your home, for all projects.")] = False,
    cwd: Cwd = None,
    as_json: JsonFlag = False,
) -> None:
    """Write a draft where agents read it, after you have read it.

    memd shows the whole file and asks. It writes .agents/skills/NAME/SKILL.md, and a link in .claude/skills if there is
    a .claude folder. It overwrites no skill, and commits nothing. Agents read it when their next session starts.

    \b
    Examples:
      memd skill place ship-version
      memd skill place ship-version --personal
    """
    with CommandAnswer("skill place", as_json) as answer, reach(PATIENCE_MS) as client:
        draft = _named(client, name, here(cwd), everywhere=False)
        if draft.refused:
            raise Refused(
                f"memd makes no file of it: {draft.refused}", hint="`memd skill why NAME` shows what it rests on"
            )
        if draft.form == "line":
            hint = "`memd skill show NAME` prints it: put it into AGENTS.md yourself"
            raise InvalidRequest("this draft is a line, because no words of yours tell when it is wanted", hint=hint)
        root = Path.home() if personal else repository_of(here(cwd))
        if as_json or not sys.stdin.isatty():
            raise Refused("a skill is an instruction to agents: read it in a terminal, and answer there")
        say(_shown(draft))
        typer.confirm(f"Write it below {root}?", abort=True, err=True)
        made = list(place_skill(root, draft.name, draft.text))
        answer.give(made, [f"wrote {plain_name(str(path))}" for path in made] or ["it is there already"])


def _named(client: Client, name: str, cwd: str, everywhere: bool) -> SkillDraft:
    found = client.skills(name, cwd=cwd, everywhere=everywhere, known=True).skills
    if not found:
        raise NotFound(f"no draft is named {name!r}", hint="`memd skill list --everywhere` lists them")
    if len(found) > 1:
        ids = ", ".join(short(draft.id) for draft in found)
        raise InvalidRequest(f"several drafts are named {name!r}", hint=f"name one by its id: {ids}")
    return next(iter(found))


def _lines(listed: SkillList) -> Iterator[str]:
    for draft in listed.skills:
        form = "" if draft.form == "skill" else "a line for AGENTS.md, "
        told = f"{form}{_often(draft)}{f', {draft.refused}' if draft.refused else ''}"
        yield f"{styled(short(draft.id), 'cyan')}  {styled(plain_name(draft.name), 'bold')}  {told}"
        steps = " → ".join(plain(step.text) for step in draft.steps if not step.risk)
        yield from wrapped(steps, " " * 10, " " * 10)
        if draft.stated_in:
            yield styled(f"          {', '.join(map(plain_name, draft.stated_in))} says it already", "dim")
    if listed.skills:
        yield styled("`memd skill show NAME` shows a draft, `memd skill why NAME` what it rests on", "dim")
    else:
        read = f"{count(listed.sessions, 'session')} with {count(listed.units, 'piece of work', 'pieces of work')}"
        yield f"nothing was repeated often enough, in {read}"


def _often(draft: SkillDraft) -> str:
    return f"{count(len(draft.rounds), 'time')} in {count(draft.sessions, 'session')} on {count(draft.days, 'day')}"


def _shown(draft: SkillDraft) -> Iterator[str]:
    if draft.refused:
        yield from wrapped(f"memd makes no file of it: {plain(draft.refused)}")
    yield from map(plain, draft.text.splitlines())
    for step in draft.steps:
        if step.risk:
            yield from wrapped(f"left out: {plain(step.text)} {plain(step.risk)}", "  ")
    for path in draft.stated_in:
        yield f"{plain_name(path)} says it already"


def _evidence(draft: SkillDraft) -> Iterator[str]:
    yield f"{plain_name(draft.name)}: {_often(draft)}; {draft.agree:.0%} of the order is the same each time"
    for step in draft.steps:
        risk = f"  ({plain(step.risk)})" if step.risk else ""
        yield f"  {step.rounds:>3} of {len(draft.rounds)}  {plain(step.text)}{risk}"
    for each in draft.rounds[-ROUNDS:]:
        yield f"  {each.day}  {'ended well' if each.end == 'good' else 'end unknown'}  {plain_name(each.document)}"
    if len(draft.rounds) > ROUNDS:
        yield f"  and {len(draft.rounds) - ROUNDS:,} earlier"
