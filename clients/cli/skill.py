"""`memd skill`: procedures that sessions repeated, as drafts of files for agents, and the files placed (K1, K2, K3)."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from difflib import unified_diff
from hashlib import sha256
from pathlib import Path
from typing import Annotated, TypeVar

import typer

from ...protocol.errors import InvalidRequest, NotFound, Refused
from ...protocol.operation import RevisedBy
from ...protocol.places import places
from ...protocol.repository_folder import repository_folder
from ...protocol.skills import PlacedBy, PlacedSkill, SharedSkill, SkillDraft, SkillList, SkillTuning
from ..python.client import Client
from .connection import PATIENCE_MS, reach
from .options import Cwd, here
from .output import CommandAnswer, JsonFlag, plain, plain_name, say, styled, wrapped
from .skill_branch import commit_on_branch, committed
from .skill_places import SHARED, place_skill, repository_of, retire_skill, write_skill
from .wording import count, moment, short

app = typer.Typer(rich_markup_mode=None, add_completion=False, no_args_is_help=True)

Everywhere = Annotated[bool, typer.Option("--everywhere", help="Of all projects, not only of this folder's.")]
Name = Annotated[str, typer.Argument(help="The name of a skill or a draft, or the beginning of its id.")]
Found = TypeVar("Found", SkillDraft, PlacedSkill)
_REVISED: dict[RevisedBy, str] = {
    "placed": "placed",
    "tuned": "tuned",
    "retired": "retired",
    "user": "edited by hand",
    "offered": "put on a branch",
}
ROUNDS, DESCRIPTION = 12, 400
"""Most rounds that are listed, and most characters of a description."""

SAID = "a document said it first"
"""Stands with a step that was in a tool's result before an agent ran it."""


@app.callback()
def skill() -> None:
    """Show procedures that sessions repeated, as drafts of skills.

    memd looks for commands that several sessions ran in the same order, on several days, and that ended well. A draft
    has only words of these commands and of your own requests, and is written to a file only when you say so. Of a skill
    that you placed memd counts the uses and how they ended.
    """


@app.command("list")
def list_skills(
    everywhere: Everywhere = False,
    known: Annotated[bool, typer.Option("--known", help="Also those that the project's files spell out.")] = False,
    cwd: Cwd = None,
    as_json: JsonFlag = False,
) -> None:
    """List drafts and placed skills.

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
    """Show a draft, or where a placed skill stands.

    Words that differ from time to time stand as <word>, <path> or <text>. Risky commands are left out.

    \b
    Example:
      memd skill show ship-version
    """
    with CommandAnswer("skill show", as_json) as answer, reach(PATIENCE_MS) as client:
        found = _found(client, name, here(cwd), everywhere)
        answer.give(found, _shown(found) if isinstance(found, SkillDraft) else _standing(found))


@app.command()
def why(name: Name, everywhere: Everywhere = False, cwd: Cwd = None, as_json: JsonFlag = False) -> None:
    """Show what a draft rests on, or how a placed skill was used.

    \b
    Example:
      memd skill why ship-version
    """
    with CommandAnswer("skill why", as_json) as answer, reach(PATIENCE_MS) as client:
        found = _found(client, name, here(cwd), everywhere)
        answer.give(found, _evidence(found) if isinstance(found, SkillDraft) else _history(found))


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
        _agree(as_json, _shown(draft), f"Write it below {root}?")
        made = list(place_skill(root, draft.name, draft.text))
        file = root / SHARED / draft.name / "SKILL.md"
        client.place_skill(draft.id, str(file), _sha(file), cwd=here(cwd))
        answer.give(made, [f"wrote {plain_name(str(path))}" for path in made] or ["it is there already"])


@app.command()
def propose(
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would be proposed.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Put drafts, and skills to retire, in the inbox.

    memd does this each week while the machine is idle: one new draft a project, three that wait at most. What you
    rejected, or took away, comes back only with much that is new. `memd inbox` lists what waits.

    \b
    Examples:
      memd skill propose --dry-run
      memd skill propose
    """
    with CommandAnswer("skill propose", as_json) as answer, reach(PATIENCE_MS) as client:
        made = client.propose_skills(dry_run)
        would = "would propose" if dry_run else "proposed"
        lines = [f"{would} {plain_name(name)}: {plain(reason)}" for name, reason in made.proposed]
        left = [f"left out: {often}, {plain(why)}" for why, often in made.left_out]
        answer.give(made, [*(lines or ["nothing new to propose"]), *left])


@app.command()
def retire(name: Name, cwd: Cwd = None, as_json: JsonFlag = False) -> None:
    """Take a placed skill away, and keep a copy.

    memd shows how the skill was used, and asks. It moves the folder to drafts/retired below memd's home.

    \b
    Example:
      memd skill retire ship-version
    """
    with CommandAnswer("skill retire", as_json) as answer, reach(PATIENCE_MS) as client:
        skill = _placed(client, name, here(cwd))
        _agree(as_json, _history(skill), f"Take {skill.path} away?")
        made = list(retire_skill(Path(skill.path), places(os.environ, os.getuid()).data / "drafts" / "retired"))
        client.retire_skill(skill.id, cwd=here(cwd))
        answer.give(skill, [f"moved it to {plain_name(str(path))}" for path in made] or ["its file was gone already"])


@app.command()
def tune(name: Name, cwd: Cwd = None, as_json: JsonFlag = False) -> None:
    """Mend a placed skill, or look for a better order of its steps.

    memd mends what is gone, and a description by which nobody calls the skill. Else it learns edits from older work and
    judges them by the newest two fifths of your sessions: at least five rounds of two sessions have to agree beyond
    chance. It writes only when you say so; if your last commit has the file, it commits on a new branch instead.

    \b
    Example:
      memd skill tune ship-version
    """
    with CommandAnswer("skill tune", as_json) as answer, reach(PATIENCE_MS) as client:
        file = Path(_placed(client, name, here(cwd)).path)
        before = _committed(file)
        tuning = client.tune_skill(name, before is not None, cwd=here(cwd))
        if not tuning.accepted or as_json or not sys.stdin.isatty():
            answer.give(tuning, _tuned(tuning))
        elif before is None:
            _agree(as_json, _tuned(tuning), f"Write this to {file}?")
            write_skill(file, tuning.text, tuning.sha)
            client.place_skill(tuning.skill.id, str(file), _sha(file), cwd=here(cwd), by=tuning.by)
            answer.give(tuning, [f"wrote {plain_name(str(file))}"])
        elif sha256(before).hexdigest() != tuning.sha:
            raise Refused(f"{file} has changes that are not committed", hint="commit them, or take them back")
        else:
            _agree(as_json, _tuned(tuning), "Commit this on a new branch?")
            answer.give(tuning, _offered(client, tuning.skill, file, tuning.text, here(cwd), tuning.by))


@app.command()
def share(
    name: Name,
    description: Annotated[
        str, typer.Option("--description", help="When agents use it, in your words, at most 400 characters.")
    ] = "",
    cwd: Cwd = None,
    as_json: JsonFlag = False,
) -> None:
    """Hand a placed skill to the others of its project.

    Requests of private sessions, home folders, addresses and values are left out. memd shows the file and asks. A skill
    in your home is committed on a new branch of the project, which you push; one in the project is changed in place.

    \b
    Examples:
      memd skill share ship-version --description "Use to release a version."
      git push origin memd/skill/ship-version-1
    """
    with CommandAnswer("skill share", as_json) as answer, reach(PATIENCE_MS) as client:
        if len(description) > DESCRIPTION:
            raise InvalidRequest(
                f"the description has {len(description)} characters", hint=f"at most {DESCRIPTION} fit"
            )
        shared = client.share_skill(name, description, cwd=here(cwd))
        file = repository_of(here(cwd)) / SHARED / shared.skill.name / "SKILL.md"
        if not file.exists():
            _agree(as_json, _shared(shared), "Commit this on a new branch?")
            answer.give(shared, _offered(client, shared.skill, file, shared.text, here(cwd), "placed"))
        elif file.resolve() != Path(shared.skill.path).resolve():
            hint = "`memd skill list` tells whether it is this one already; else rename one"
            raise Refused(f"{file.parent.parent} has a skill {shared.skill.name} already", hint=hint)
        elif _sha(file) == sha256(shared.text.encode()).hexdigest():
            answer.give(shared, [f"it may be shared as it is: commit {plain_name(str(file))}"])
        else:
            _agree(as_json, _shared(shared), f"Write this to {file}?")
            write_skill(file, shared.text, shared.sha)
            client.place_skill(shared.skill.id, str(file), _sha(file), cwd=here(cwd), by="user")
            answer.give(shared, [f"wrote {plain_name(str(file))}: commit it"])


def _committed(file: Path) -> bytes | None:
    """Return what the last commit has of a skill's file, None if nobody else has it. Raises InvalidRequest."""
    root = repository_folder(file.parent)
    return committed(root, file) if root else None


def _offered(client: Client, skill: PlacedSkill, file: Path, text: str, cwd: str, then: PlacedBy) -> list[str]:
    """Commit a skill's text on a new branch, tell the daemon, and return what to do next. `then`: what the text is once
    the branch is merged."""
    root = repository_folder(file.parent) or repository_of(cwd)
    message = f"{'Add' if then == 'placed' else 'Change'} the skill {file.parent.name}"
    branch = commit_on_branch(root, file, text, file.parent.name, message)
    sha = sha256(text.encode()).hexdigest()
    client.place_skill(skill.id, str(file), sha, cwd=cwd, by="offered", then=then)
    return [f"committed on the branch {branch}; nothing else changed", f"next: git push origin {branch}, or merge it"]


def _shared(shared: SharedSkill) -> Iterator[str]:
    yield from map(plain, shared.text.splitlines())
    if shared.left_out:
        yield from wrapped(f"left out: {', '.join(shared.left_out)}", "  ")


def _agree(as_json: bool, lines: Iterator[str], question: str) -> None:
    """Show lines and ask. Raises Refused where nobody can answer."""
    if as_json or not sys.stdin.isatty():
        raise Refused("a skill is an instruction to agents: read it in a terminal, and answer there")
    say(lines)
    typer.confirm(question, abort=True, err=True)


def _sha(file: Path) -> str:
    return sha256(file.read_bytes()).hexdigest()


def _found(client: Client, name: str, cwd: str, everywhere: bool) -> SkillDraft | PlacedSkill:
    """Return the one placed skill or draft of a name. Raises NotFound, InvalidRequest."""
    listed = client.skills(name, cwd=cwd, everywhere=everywhere, known=True)
    return _first(name, listed.placed) if listed.placed else _one(name, listed.skills)


def _named(client: Client, name: str, cwd: str, everywhere: bool) -> SkillDraft:
    return _one(name, client.skills(name, cwd=cwd, everywhere=everywhere, known=True).skills)


def _placed(client: Client, name: str, cwd: str) -> PlacedSkill:
    return _first(name, client.skills(name, cwd=cwd).placed)


def _first(name: str, found: Sequence[PlacedSkill]) -> PlacedSkill:
    """Return the one skill of a name; the one in the user's home comes first."""
    own = [each for each in found if each.pool == "personal"]
    return _one(name, own if len(own) == 1 else found)


def _one(name: str, found: Sequence[Found]) -> Found:
    if not found:
        raise NotFound(f"no skill is named {name!r}", hint="`memd skill list --everywhere` lists them")
    if len(found) > 1:
        ids = ", ".join(short(each.id) for each in found)
        raise InvalidRequest(f"several skills are named {name!r}", hint=f"name one by its id: {ids}")
    return found[0]


def _lines(listed: SkillList) -> Iterator[str]:
    for skill in listed.placed:
        yield f"{styled(short(skill.id), 'cyan')}  {styled(plain_name(skill.name), 'bold')}  {_worth(skill)}"
        if told := skill.retire or skill.mend:
            yield from wrapped(plain(told), " " * 10, " " * 10)
    for draft in listed.skills:
        form = "" if draft.form == "skill" else "a line for AGENTS.md, "
        told = f"{form}{_often(draft)}{f', {draft.refused}' if draft.refused else ''}"
        told += ", which you rejected" if draft.rejected else ""
        yield f"{styled(short(draft.id), 'cyan')}  {styled(plain_name(draft.name), 'bold')}  {told}"
        steps = " → ".join(plain(step.text) for step in draft.steps if not step.risk)
        yield from wrapped(steps, " " * 10, " " * 10)
        if draft.stated_in:
            yield styled(f"          {', '.join(map(plain_name, draft.stated_in))} says it already", "dim")
    if listed.skills or listed.placed:
        yield styled("`memd skill show NAME` shows one, `memd skill why NAME` what it rests on", "dim")
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
        elif step.document:
            yield from wrapped(f"{SAID}: {plain(step.text)}", "  ")
    for path in draft.stated_in:
        yield f"{plain_name(path)} says it already"


def _evidence(draft: SkillDraft) -> Iterator[str]:
    yield f"{plain_name(draft.name)}: {_often(draft)}; {draft.agree:.0%} of the order is the same each time"
    for step in draft.steps:
        why = plain(step.risk) or (SAID if step.document else "")
        yield f"  {step.rounds:>3} of {len(draft.rounds)}  {plain(step.text)}{f'  ({why})' if why else ''}"
    for each in draft.rounds[-ROUNDS:]:
        yield f"  {each.day}  {'ended well' if each.end == 'good' else 'end unknown'}  {plain_name(each.document)}"
    if len(draft.rounds) > ROUNDS:
        yield f"  and {len(draft.rounds) - ROUNDS:,} earlier"


def _worth(skill: PlacedSkill) -> str:
    """Return where a placed skill lies, its rung and its uses, in words."""
    if skill.offered and not skill.uses:
        return "on a branch that is not merged here"
    home = "in your home, " if skill.pool == "personal" else ""
    ends = f", {skill.good} ended well, {skill.bad} badly" if skill.uses else ""
    without = f"; done {count(skill.without, 'time')} without it" if skill.without else ""
    fell = f"; {plain(skill.fell)}" if skill.fell else ""
    return f"{home}{skill.rung}, used {count(skill.uses, 'time')}{ends}{without}{fell}"


def _standing(skill: PlacedSkill) -> Iterator[str]:
    yield f"{plain_name(skill.name)}: {_worth(skill)}"
    yield f"file: {plain_name(skill.path)}"
    if skill.last_used:
        yield f"last used: {skill.last_used}"
    if skill.offered:
        yield "its newest text lies on a branch that is not merged here"
    if skill.retire:
        yield from wrapped(f"memd would retire it: {plain(skill.retire)}")
    if skill.mend:
        yield from wrapped(f"memd would change it: {plain(skill.mend)}")
    for command in skill.gone:
        yield from wrapped(f"gone: {plain(command)}", "  ")
    if skill.better:
        yield "as it would be (`memd skill tune NAME` writes it):"
        yield from map(plain, skill.better.splitlines())


def _history(skill: PlacedSkill) -> Iterator[str]:
    yield from _standing(skill)
    for revision in skill.revisions:
        what = _REVISED[revision.by]
        yield f"  {moment(revision.at)}  {what if revision.sha else f'{what}: the file is gone'}"
    for use in skill.history:
        how = {"called": "called by its name", "read": "its file was read", "without": "done without it"}[use.how]
        end = {"good": "ended well", "bad": "ended badly", "unknown": "end unknown"}[use.end]
        yield f"  {use.day}  {how}, {end}  {plain_name(use.document)}"


def _tuned(tuning: SkillTuning) -> Iterator[str]:
    for edit in tuning.edits:
        yield plain(edit)
    yield from wrapped(plain(tuning.why))
    if tuning.text:
        old = Path(tuning.skill.path).read_text(encoding="utf-8", errors="replace").splitlines()
        yield from map(plain, unified_diff(old, tuning.text.splitlines(), "now", "then", lineterm=""))
