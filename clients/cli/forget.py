"""`memd forget` deletes for good, `memd scan` redacts secrets; `memd undo` and `memd redo` are reversible."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Any, cast

import typer

from ...protocol.errors import InvalidRequest, NotFound
from ...protocol.reply import ForgetPlan, JobState
from ..importers.cursors import Cursors
from ..python.client import Client, places_here
from .connection import PATIENCE_MS, reach
from .output import CommandAnswer, JsonFlag, agree, plain, plain_name, say, shortened, styled, width, wrapped
from .progress import wait_for_job
from .wording import count, report_names, report_number, short, size

app = typer.Typer(rich_markup_mode=None, add_completion=False)
SHOWN = 20


Names = Annotated[
    list[str], typer.Argument(help="A session, a source such as claude-code or git, or an imported path.")
]


@app.command()
def forget(
    ids: Annotated[
        list[str] | None, typer.Argument(help="Records by id, or a unique prefix.", show_default=False)
    ] = None,
    query: Annotated[str, typer.Option(help="Everything that contains this phrase, in upper or lower case.")] = "",
    session: Annotated[str, typer.Option(help="A whole session, as `memd session list` names it.")] = "",
    source: Annotated[str, typer.Option(help="Everything from one source: claude-code, git, cli, …")] = "",
    failed: Annotated[int, typer.Option(min=0, help="A failed capture, by its number in `memd retry`.")] = 0,
    letter: Annotated[int, typer.Option(min=0, hidden=True)] = 0,  # the former name of --failed
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be deleted, and delete nothing.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Delete records and their sources permanently. This can't be undone.

    memd also deletes the turns that the records cite and every copy of both in its own files, backups included. It
    never captures a deleted turn again. A later turn that repeats the statement is captured as usual.

    \b
    Examples:
      memd forget 7q3hjwch --dry-run
      memd forget --query "Project Falcon"
      memd forget --session claude-code:0b5c7b3e --yes
    """
    with CommandAnswer("forget", as_json) as answer, reach(4 * PATIENCE_MS) as client:
        failed = failed or letter
        _check_scope(ids or [], query, session, source, failed)
        chosen = tuple(client.get(id).id for id in ids or ())
        plan = client.preview_forget(chosen, query=query, session=session, source=source, letter=failed)
        empty = not (plan.record_count or plan.captures or plan.spooled or plan.names)
        if dry_run or empty:
            answer.give(plan, ["nothing matches: there is nothing to forget"] if empty else _plan_lines(plan))
            return
        if not yes:
            why, hint = "forgetting can't be undone", "--dry-run shows what would be deleted"
            agree("Delete this permanently?", _plan_lines(plan), as_json=as_json, why=why, hint=hint)
        job = client.forget(chosen, query=query, session=session, source=source, letter=failed)
        done = wait_for_job(client, job, answer)
        transcripts = [str(path) for path in _transcripts(plan.documents)]
        shared = sum(share.forgotten for share in client.shares().shares)
        report = {**done.report, "transcripts": transcripts, "shared": shared}
        answer.give(report, [*_forgotten_lines(done, transcripts), *_shared_lines(shared)])


def _check_scope(ids: list[str], query: str, session: str, source: str, failed: int) -> None:
    """Raises InvalidRequest without exactly one scope."""
    given = sum(map(bool, (ids, query, session, source, failed)))
    if given != 1:
        raise InvalidRequest(
            "more than one selection was given" if given else "nothing to forget was named",
            hint="give exactly one: ids, --query, --session, --source or --failed",
        )


def _plan_lines(plan: ForgetPlan) -> Iterator[str]:
    captures = count(plan.captures, "captured turn")
    waiting = f", {plan.spooled:,} of them in a spool" if plan.spooled else ""
    yield styled(f"would delete {count(plan.record_count, 'record')} and {captures}{waiting}", "bold")
    if plan.names:
        entries = count(plan.names, "journal entry", "journal entries")
        yield f"would remove names, titles, folders or reasons from {entries}"
    titles = {
        "chosen": "selected:",
        "source": "with no source besides the same turns:",
        "loses a source": "these stay, because other turns support them:",
    }
    for why, title in titles.items():
        records = [record for record in plan.records if record.why == why]
        if records:
            yield styled(title, "dim")
        for record in records[:SHOWN]:
            yield f"  {styled(short(record.id), 'cyan')}  {shortened(plain(record.line), max(20, width() - 14))}"
        if len(records) > SHOWN:
            yield styled(f"  and {len(records) - SHOWN} more", "dim")
    listed = ", ".join(map(plain, plan.documents[:5]))
    more = f" and {len(plan.documents) - 5} more" if len(plan.documents) > 5 else ""
    yield from wrapped(f"{count(len(plan.documents), 'session')}: {listed}{more}", "  ")


def _forgotten_lines(done: JobState, transcripts: list[str]) -> Iterator[str]:
    report = done.report
    records, captures = report_number(report, "records"), report_number(report, "captures")
    staying = report_number(report, "rebased")
    stay = f"; {count(staying, 'record stays', 'records stay')}, supported by other turns" if staying else ""
    yield styled(f"deleted {count(records, 'record')} and {count(captures, 'capture')}", "bold") + stay
    searched = f"{report_number(report, 'searched_files'):,} files, {size(report_number(report, 'searched_bytes'))}"
    if names := report_number(report, "names"):
        yield f"removed names, titles, folders or reasons from {count(names, 'journal entry', 'journal entries')}"
    if discarded := report_number(report, "discarded"):
        yield f"removed {count(discarded, 'damaged request')} with the text from spools"
    if left := report_names(report, "left"):
        yield styled(f"searched {searched}: the text remains in", "red")
        yield from (f"  {plain_name(path)}" for path in left)
    else:
        yield f"searched {searched}: no copy remains"
    if elsewhere := report_number(report, "said_elsewhere"):
        yield f"{count(elsewhere, 'phrase')} of it also occur in turns that stay"
    if dropped := report_names(report, "backups_dropped"):
        fresh = str(report.get("backup_written") or "none, see `memd backup`")
        yield f"removed {count(len(dropped), 'older backup')} that contained it; current backup: {fresh}"
    if transcripts:
        yield "memd does not delete files of other programs; these still contain it:"
        yield from (f"  {plain_name(path)}" for path in transcripts)
    yield styled("memd can't delete:", "dim")
    for place in report_names(report, "out_of_reach"):
        yield from (styled(line, "dim") for line in wrapped(place, "    ", "  - "))


def _shared_lines(shared: int) -> Iterator[str]:
    if shared:
        remains = f"{count(shared, 'line')} that you shared {'is' if shared == 1 else 'are'} still at a remote"
        words = f"{remains}: `memd share push` has it forgotten there and, at their next pull, by the others"
        yield from (styled(line, "yellow") for line in wrapped(words))


def _transcripts(documents: tuple[str, ...]) -> Iterator[Path]:
    """The hosts' own files of these sessions, if their location is known."""
    from ..importers.claude_code import HOST

    root = Path.home() / ".claude" / "projects"
    sessions = {rest.partition("/")[0] for host, _, rest in (name.partition(":") for name in documents) if host == HOST}
    for session in sorted(sessions):
        if session and not set(session) & set("*?[]/"):
            yield from sorted(root.glob(f"*/{session}.jsonl"))


@app.command()
def undo(names: Names, as_json: JsonFlag = False) -> None:
    """Hide everything learned from a session or an import. No search returns it until `memd redo`.

    Records that other sessions support stay. Records that it had replaced are active again, and records that it had
    reworded get their earlier wording back.

    \b
    Examples:
      memd undo claude-code:0b5c7b3e-77b1-4e0a-9c1e-4e5d7a52c3f1
      memd undo ~/.claude/projects/-home-ada-orchard
      memd undo git
      memd undo remote:ollama               # what a remote model brought
      memd undo memd:corrections/7q3hjwch   # `memd why` shows this name
    """
    with CommandAnswer("undo", as_json) as answer, reach(PATIENCE_MS) as client:
        report = _run(client, client.undo, names, answer)
        lines = [f"{count(report_number(report, 'hidden'), 'record')} hidden"]
        if reworded := report_number(report, "reworded"):
            lines.append(f"earlier wording restored: {count(reworded, 'record')}")
        if again := report_number(report, "believed_again"):
            lines.append(f"active again, because their replacement was undone: {count(again, 'record')}")
        if staying := report_number(report, "kept"):
            lines.append(f"unchanged, because other sessions support them: {count(staying, 'record')}")
        if report["hidden"] or reworded:
            lines.append(f"to reverse this: memd redo {' '.join(plain_name(name) for name in names)}")
        answer.give(report, lines)


@app.command()
def redo(names: Names, as_json: JsonFlag = False) -> None:
    """Reverse `memd undo`.

    \b
    Example:
      memd redo claude-code:0b5c7b3e-77b1-4e0a-9c1e-4e5d7a52c3f1
    """
    with CommandAnswer("redo", as_json) as answer, reach(PATIENCE_MS) as client:
        report = _run(client, client.redo, names, answer)
        lines = [f"restored: {count(report_number(report, 'brought_back'), 'record')}"]
        if left := report_number(report, "left"):
            lines.append(f"unchanged, because they changed in the meantime: {count(left, 'record')}")
        answer.give(report, lines)


def _run(
    client: Client, start: Callable[[list[str]], JobState], names: list[str], answer: CommandAnswer
) -> dict[str, str | int | float | list[str]]:
    return wait_for_job(
        client, start([document for name in names for document in _documents(client, name)]), answer
    ).report


def _documents(client: Client, name: str) -> list[str]:
    """The name itself, or the sessions that an import of that path would send."""
    if not name:
        raise InvalidRequest("no session was named", hint="`memd show ID` names it; the current folder is .")
    path = Path(name).expanduser()
    if not os.path.exists(path):  # unlike Path.exists, this takes any name
        return [name]
    from ..importers.agent_files import documents

    names = documents(path, os.environ, Cursors(places_here().state))
    if path.is_dir() and (not names or (path / ".git").exists()):
        names |= _commits(client, path)
    if not names:
        raise InvalidRequest(f"nothing was imported from {path}", hint="give a session, as `memd show ID` names it")
    return sorted(names)


def _commits(client: Client, folder: Path) -> set[str]:
    """The session of a repository's commits, if they were imported."""
    from ..importers import git_log

    try:
        return {client.session(log.origin.document).session.document for log in git_log.read(folder, 1).sessions}
    except (InvalidRequest, NotFound):
        return set()


@app.command()
def scan(
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only search; change nothing.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Redact without asking for confirmation.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Find secrets in stored data and redact them. This can't be undone.

    memd redacts new captures before it stores them; this command applies the current rules to older ones. A
    placeholder such as [redacted:github-pat] replaces each secret in the captured turn and in the records learned
    from it; the surrounding text stays. No copy remains in memd's own files, backups included.

    \b
    Examples:
      memd scan               # search, then ask
      memd scan --dry-run
      memd scan --yes --json
    """
    if dry_run and yes:
        raise typer.BadParameter("--dry-run and --yes exclude each other")
    with CommandAnswer("scan", as_json) as answer, reach() as client:
        if not yes:
            report = dict(wait_for_job(client, client.scan(), answer).report)
            is_clean = not report["captures"] and not report["records"]
            if dry_run or as_json or is_clean or not sys.stdin.isatty():
                answer.give(report, _found_lines(report))
                return
            say(_found_lines(report))
            typer.confirm("Redact these secrets for good?", abort=True, err=True)
        report = dict(wait_for_job(client, client.scan(dry_run=False), answer).report)
        answer.give(report, _redacted_lines(report))


def _found_lines(report: dict[str, Any]) -> Iterator[str]:
    """The secrets that were found, without their text."""
    searched = f"{count(report['checked_captures'], 'capture')} and {count(report['checked_records'], 'record')}"
    records, sessions = cast("list[str]", report["records"]), cast("list[str]", report["sessions"])
    if not records and not report["captures"]:
        yield styled(f"no secrets in {searched}", "green")
        return
    summary = (
        f"{count(report['captures'], 'capture')} and {count(len(records), 'record')} of {searched} contain secrets"
    )
    yield from (styled(line, "red") for line in wrapped(summary))
    yield from wrapped(plain(", ".join(cast("list[str]", report["rules"]))), "  ", "- ")
    for kind, names in (("record", records), ("session", sessions)):
        yield from (plain(f"  {kind} {name}") for name in names[:SHOWN])
        if len(names) > SHOWN:
            yield f"  and {len(names) - SHOWN} more: see --json"
    yield from wrapped("`memd scan --yes` redacts them. Replace these secrets where you use them.")


def _redacted_lines(report: dict[str, Any]) -> Iterator[str]:
    """The outcome of a redaction."""
    if "cuts" not in report:
        yield from _found_lines(report)
        return
    changed = cast("list[str]", report["changed"])
    redacted = f"redacted {count(report['cuts'], 'secret')} in {count(report['captures'], 'capture')}"
    yield styled(f"{redacted}; {count(len(changed), 'record')} changed", "bold")
    yield from wrapped(plain(", ".join(cast("list[str]", report["rules"]))), "  ", "- ")
    if dropped := cast("list[str]", report["backups_dropped"]):
        fresh = report["backup_written"] or "none, see `memd backup`"
        yield f"removed {count(len(dropped), 'backup')} that contained them; current backup: {fresh}"
    searched = f"{report['searched_files']:,} files searched"
    if left := cast("list[str]", report["left"]):
        yield styled(f"{searched}: secrets remain in", "red")
        yield from (f"  {plain_name(path)}" for path in left[:SHOWN])
    else:
        yield styled(f"{searched}: no copy remains", "green")
    if elsewhere := report["said_elsewhere"]:
        yield f"{count(elsewhere, 'short secret')} also occur elsewhere as ordinary words, which stay"
    yield from wrapped("memd can't redact: " + "; ".join(cast("list[str]", report["out_of_reach"])), "  ")
    yield "Replace these secrets where you use them: others may have seen them."
