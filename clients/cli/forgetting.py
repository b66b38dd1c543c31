"""`memd forget`, `memd undo`, `memd redo`, `memd compact`: what should not be there any more.

Comes in: what to forget, or what to take back. Goes out: a preview and a question, then what went, and what memd can't
reach. Invariants: forgetting is for good, so it is never done without a scope, nor without a yes or `--yes`; taking
back is not, so it asks nothing and says how to bring it back.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated

import typer

from ...protocol.errors import InvalidRequest, NotFound, Refused
from ...protocol.reply import ForgetPlan, JobState
from ..importers.cursors import Cursors
from ..python.client import Client, places_here
from .contact import PATIENCE_MS, reach
from .output import Answer, JsonFlag, plain, say, shortened, styled, width, wrapped
from .overview import size
from .progress import wait_for_job
from .wording import count, short

app = typer.Typer(rich_markup_mode=None, add_completion=False)

SHOWN = 20
Names = Annotated[
    list[str], typer.Argument(help="A session, a source such as claude-code or git, or a path that was imported.")
]


@app.command()
def forget(
    ids: Annotated[
        list[str] | None, typer.Argument(help="Records, by id or its beginning.", show_default=False)
    ] = None,
    query: Annotated[str, typer.Option(help="All that holds these words, as one phrase, in any case.")] = "",
    session: Annotated[str, typer.Option(help="A whole session, as `memd show` names it.")] = "",
    source: Annotated[str, typer.Option(help="All that came from one source: claude-code, git, cli, …")] = "",
    letter: Annotated[int, typer.Option(min=0, help="A capture that failed, by its number: see `memd retry`.")] = 0,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would go.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Forget for good: records, the turns they rest on, and every byte of both. It can't be undone.

    A forgotten turn is never taken again, whoever sends it; what is said again in a new turn is learnt again.

    \b
    Examples:
      memd forget 7q3hjwch --dry-run
      memd forget --query "Project Falcon"
      memd forget --session claude-code:0b5c7b3e --yes
    """
    with Answer("forget", as_json) as answer, reach(4 * PATIENCE_MS) as client:
        _check_scope(ids or [], query, session, source, letter)
        chosen = tuple(client.get(id).id for id in ids or ())
        plan = client.preview_forget(chosen, query=query, session=session, source=source, letter=letter)
        empty = not plan.record_count and not plan.captures and not plan.spooled
        if dry_run or empty:
            answer.give(
                plan, _plan_lines(plan) if not empty else ["nothing of that is known: there is nothing to forget"]
            )
            return
        if not yes:
            _confirm(plan, as_json)
        job = client.forget(chosen, query=query, session=session, source=source, letter=letter)
        done = wait_for_job(client, job, answer)
        transcripts = [str(path) for path in _transcripts(plan.documents)]
        answer.give({**done.report, "transcripts": transcripts}, _forgotten_lines(done, transcripts))


def _check_scope(ids: list[str], query: str, session: str, source: str, letter: int) -> None:
    given = sum(bool(each) for each in (ids, query, session, source, letter))
    if given != 1:
        raise InvalidRequest(
            "forget what?" if not given else "more than one scope",
            hint="name exactly one: ids, --query, --session, --source or --letter; nothing forgets all",
        )


def _confirm(plan: ForgetPlan, as_json: bool) -> None:
    if as_json or not sys.stdin.isatty():
        raise Refused("forgetting is for good, and there is nobody to ask", hint="look with --dry-run, then add --yes")
    say(_plan_lines(plan))
    if not typer.confirm("Forget this for good?", default=False, err=True):
        raise typer.Abort


def _plan_lines(plan: ForgetPlan) -> Iterator[str]:
    captures = count(plan.captures, "captured turn")
    waiting = f", {plan.spooled:,} that wait in a spool" if plan.spooled else ""
    yield styled(f"would forget {count(plan.record_count, 'record')} and {captures}{waiting}", "bold")
    titles = {
        "chosen": "named or matched:",
        "source": "they rest on the same turns alone:",
        "loses a source": "these stay, on what else says so:",
    }
    for why, title in titles.items():
        records = [each for each in plan.records if each.why == why]
        if records:
            yield styled(title, "dim")
        for each in records[:SHOWN]:
            yield f"  {styled(short(each.id), 'cyan')}  {shortened(plain(each.line), max(20, width() - 14))}"
        if len(records) > SHOWN:
            yield styled(f"  and {len(records) - SHOWN} more", "dim")
    listed = ", ".join(plain(each) for each in plan.documents[:5])
    more = f" and {len(plan.documents) - 5} more" if len(plan.documents) > 5 else ""
    yield from wrapped(f"{count(len(plan.documents), 'session')}: {listed}{more}", "  ")


def _forgotten_lines(done: JobState, transcripts: list[str]) -> Iterator[str]:
    report = done.report
    words = f"forgot {count(_number(report, 'records'), 'record')} and {count(_number(report, 'captures'), 'capture')}"
    staying = _number(report, "rebased")
    yield styled(words, "bold") + (
        f"; {count(staying, 'record stays', 'records stay')} on other turns" if staying else ""
    )
    searched = f"{_number(report, 'searched_files'):,} files, {size(_number(report, 'searched_bytes'))}"
    left = _names(report, "left")
    if left:
        yield styled(f"searched {searched}: the words are still in", "red")
        yield from (f"  {plain(path)}" for path in left)
    else:
        yield f"searched {searched}, byte by byte: nothing of it is left"
    if said := _number(report, "said_elsewhere"):
        yield f"{count(said, 'phrase')} of it were also said in turns that stay"
    if dropped := _names(report, "backups_dropped"):
        fresh = str(report.get("backup_written") or "none: see `memd backup`")
        yield f"{count(len(dropped), 'older copy', 'older copies')} held it and went; the backup now: {fresh}"
    if transcripts:
        yield "not memd's to delete, but it is still there:"
        yield from (f"  {plain(path)}" for path in transcripts)
    yield styled("out of memd's reach:", "dim")
    for each in _names(report, "out_of_reach"):
        yield from (styled(line, "dim") for line in wrapped(each, "    ", "  - "))


def _number(report: dict[str, str | int | float | list[str]], name: str) -> int:
    found = report.get(name, 0)
    return found if isinstance(found, int) else 0


def _names(report: dict[str, str | int | float | list[str]], name: str) -> list[str]:
    found = report.get(name)
    return found if isinstance(found, list) else []


def _transcripts(documents: tuple[str, ...]) -> Iterator[Path]:
    """The hosts' own files of these sessions, where their place is known."""
    from ..importers.claude_code import HOST

    root = Path.home() / ".claude" / "projects"
    sessions = {rest.partition("/")[0] for host, _, rest in (each.partition(":") for each in documents) if host == HOST}
    for session in sorted(sessions):
        if session and not set(session) & set("*?[]/"):
            yield from sorted(root.glob(f"*/{session}.jsonl"))


@app.command()
def undo(names: Names, as_json: JsonFlag = False) -> None:
    """Take a session or an import back: its records leave every read until `memd redo`.

    What others say too stays, what it had replaced is believed again, what it had edited has its words of before.

    \b
    Examples:
      memd undo claude-code:0b5c7b3e-77b1-4e0a-9c1e-4e5d7a52c3f1
      memd undo ~/.claude/projects/-home-ada-orchard
      memd undo git
      memd undo memd:corrections/7q3hjwch     # a correction: `memd why` names where it was said
    """
    with Answer("undo", as_json) as answer, reach(PATIENCE_MS) as client:
        report = _run(client, client.undo, names, answer)
        lines = [f"{count(_number(report, 'hidden'), 'record')} taken back"]
        if reworded := _number(report, "reworded"):
            lines.append(f"{count(reworded, 'record')} in the words of before it was edited")
        if again := _number(report, "believed_again"):
            lines.append(f"{count(again, 'record')} they had replaced: believed again")
        if kept := _number(report, "kept"):
            lines.append(f"{count(kept, 'record stays', 'records stay')}: other sessions say so too")
        if report["hidden"] or reworded:
            lines.append(f"bring it back: memd redo {' '.join(plain(name) for name in names)}")
        answer.give(report, lines)


@app.command()
def redo(names: Names, as_json: JsonFlag = False) -> None:
    """Bring back what `memd undo` took back.

    \b
    Example:
      memd redo claude-code:0b5c7b3e-77b1-4e0a-9c1e-4e5d7a52c3f1
    """
    with Answer("redo", as_json) as answer, reach(PATIENCE_MS) as client:
        report = _run(client, client.redo, names, answer)
        lines = [f"{count(_number(report, 'brought_back'), 'record')} as before"]
        if left := _number(report, "left"):
            stay = "stays as it is" if left == 1 else "stay as they are"
            lines.append(f"{count(left, 'record')} changed meanwhile and {stay}")
        answer.give(report, lines)


def _run(
    client: Client, start: Callable[[list[str]], JobState], names: list[str], answer: Answer
) -> dict[str, str | int | float | list[str]]:
    return wait_for_job(client, start([each for name in names for each in _documents(client, name)]), answer).report


def _documents(client: Client, name: str) -> list[str]:
    """The name itself, or, of a path, what an import of it would send."""
    if not name:
        raise InvalidRequest("no session was named", hint="`memd show ID` does; the current folder is .")
    path = Path(name).expanduser()
    if not path.exists():
        return [name]
    from ..importers.agent_files import documents

    found = documents(path, os.environ, Cursors(places_here().state))
    if path.is_dir() and (not found or (path / ".git").exists()):
        found |= _commits(client, path)
    if not found:
        raise InvalidRequest(f"nothing was imported of {path}", hint="name a session: `memd show ID` does")
    return sorted(found)


def _commits(client: Client, folder: Path) -> set[str]:
    """The document of a repository's commits, if they were imported."""
    from ..importers import git_log

    try:
        return {client.session(each.origin.document).session.document for each in git_log.read(folder, 1).sessions}
    except (InvalidRequest, NotFound):
        return set()


@app.command()
def compact(as_json: JsonFlag = False) -> None:
    """Give the disk back what removed entries still take of it. Captures wait a moment meanwhile.

    \b
    Example:
      memd compact
    """
    with Answer("compact", as_json) as answer, reach(PATIENCE_MS) as client:
        report = wait_for_job(client, client.compact(), answer).report
        before, after = _number(report, "before_bytes"), _number(report, "after_bytes")
        lines = [f"{size(before)} before, {size(after)} after"]
        for key in report:
            if key.endswith("_before_bytes"):
                name = key.removesuffix("_before_bytes")
                each = f"{size(_number(report, key)):>9} → {size(_number(report, f'{name}_after_bytes'))}"
                lines.append(f"  {name:<9} {each}")
        answer.give(report, lines)
