"""`memd session` lists sessions, shows the outcome, the summary and the turns of one, and takes a reflection on one."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from ...protocol.errors import InvalidRequest
from ...protocol.event import Checked
from ...protocol.reflection import ReflectedLearning, ReflectionCost, Statement, reflection_lines
from ...protocol.session import SessionOutcome, SessionPage, SessionsFound, SessionState, SessionTurns, Summary
from ..python.client import Client, places_here
from .connection import reach
from .output import CommandAnswer, JsonFlag, complete, plain, plain_name, shortened, styled, width, wrapped
from .wording import age, count, status_counts

app = typer.Typer(
    rich_markup_mode=None,
    add_completion=False,
    help="List or find sessions; show, summarise or read one.",
    epilog="`memd undo SESSION` hides everything learned from a session; `memd forget --session SESSION` deletes it.",
)


@app.command("list")
def list_sessions(
    host: Annotated[str, typer.Option(help="Only sessions of this host: claude-code, pi, zsh, …")] = "",
    is_open: Annotated[bool, typer.Option("--open", help="Only open sessions.")] = False,
    limit: Annotated[int, typer.Option("-n", "--limit", min=1, max=1000, help="At most this many sessions.")] = 20,
    as_json: JsonFlag = False,
) -> None:
    """List sessions, the latest first.

    \b
    Examples:
      memd session list
      memd session list --open
      memd session list --host zsh -n 5
    """
    with CommandAnswer("session list", as_json) as answer, reach() as client:
        page = client.sessions(host, is_open=is_open, limit=limit)
        answer.give(page, _page_lines(page))


def _page_lines(page: SessionPage) -> Iterator[str]:
    for session in page.sessions:
        learnt = "undone" if session.is_undone else count(session.records, "record") if session.records else ""
        ended = " · ".join(part for part in (_end(session), learnt) if part)
        head = f"{shortened(plain_name(session.document), 46):<46} {age(session.began_at):<15} {ended}"
        yield styled(head, "bold") if not session.ended_at and session.live else head
        if about := plain_name(session.title) or plain_name(session.cwd):
            yield styled(f"  {shortened(about, width() - 2)}", "dim")
    if not page.sessions:
        yield "no sessions yet; `memd import` finds sessions of agents on this machine"
        return
    shown = f"{len(page.sessions):,} of " if page.total > len(page.sessions) else ""
    yield styled(f"{shown}{count(page.total, 'session')}, {page.going_on:,} open", "dim")


def _end(session: SessionState) -> str:
    if session.ended_at:
        return f"ended ({plain(session.reason)})" if session.reason else "ended"
    return f"open, last event {age(session.heard_at)}" if session.live else "imported"


@app.command()
def show(
    id: Annotated[str, typer.Argument(help="A session as `memd session list` names it, or a unique prefix.")],
    as_json: JsonFlag = False,
) -> None:
    """Show one session: times, turns and outcome.

    \b
    Example:
      memd session show claude-code:0b5c7b3e
    """
    with CommandAnswer("session show", as_json) as answer, reach() as client:
        outcome = client.session(id)
        answer.give(outcome, _outcome_lines(outcome))


@app.command()
def summary(
    id: Annotated[str, typer.Argument(help="A session as `memd session list` names it, or a unique prefix.")],
    as_json: JsonFlag = False,
) -> None:
    """Show what a session asked, did and left open, in its own words.

    \b
    Example:
      memd session summary claude-code:0b5c7b3e
    """
    with CommandAnswer("session summary", as_json) as answer, reach() as client:
        told = client.summary(id)
        answer.give(told, _summary_lines(told))


def _summary_lines(told: Summary) -> Iterator[str]:
    session = told.session
    yield styled(plain_name(told.title) or plain_name(session.document), "bold")
    began, last = session.began_at[:16].replace("T", " "), told.last_at[:16].replace("T", " ")
    span = f"{began}–{last[11:] if last[:10] == began[:10] else last}" if last else began
    parts = [span, count(told.requests, "request")]
    if told.edits:
        parts.append(f"{count(told.edits, 'edit')} in {count(told.files, 'file')}")
    if told.commits:
        parts.append(count(told.commits, "commit"))
    yield styled(" · ".join(parts), "dim")
    before = (1, "")
    for line in told.lines:
        if line.part != before[0]:
            yield styled(f"Part {line.part}", "bold")
        head = "" if (line.part, line.section) == before else line.section.capitalize()
        before = line.part, line.section
        yield from wrapped(plain(line.text), " " * 9, f"{head:<9}")
    if not told.lines:
        yield "too short for a summary: fewer than two requests, no edit and no commit"


@app.command()
def find(
    words: Annotated[list[str], typer.Argument(help="Words of its title or its turns.")],
    host: Annotated[str, typer.Option(help="Only sessions of this host: claude-code, pi, zsh, …")] = "",
    limit: Annotated[int, typer.Option("-n", "--limit", min=1, max=100, help="At most this many sessions.")] = 10,
    as_json: JsonFlag = False,
) -> None:
    """Find sessions by words of their titles and turns, best first.

    \b
    Examples:
      memd session find pear table index
      memd session find "lock file" --host claude-code
    """
    with CommandAnswer("session find", as_json) as answer, reach() as client:
        found = client.find_sessions(" ".join(words), host=host, limit=limit)
        answer.give(found, _found_lines(found))


class ReflectionFile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What `reflect` reads."""

    title: str = ""
    statements: tuple[Statement, ...] = ()
    open: tuple[str, ...] = ()
    learnings: tuple[ReflectedLearning, ...] = ()


@app.command()
def reflect(
    id: Annotated[
        str, typer.Argument(help="A session, or a unique prefix; codex or gemini for the one that runs here.")
    ],
    file: Annotated[str, typer.Argument(help="A JSON file with the reflection, - for standard input.")],
    as_json: JsonFlag = False,
) -> None:
    """Take what an agent found worth remembering in its session.

    The file has `title`; `statements`, each with a `type` and 1 to 3 `quotes`, as in {"type": "decision", "quotes":
    ["we keep the ledger in SQLite"]}; and `open`, lines about unfinished work. Of an agent with perspectives it may
    have `learnings`, each with a `perspective`, a `text` and the `quotes` behind it. memd takes a statement or a
    learning only if the session has its quotes.

    \b
    Examples:
      memd session reflect claude-code:0b5c7b3e reflection.json
      echo '{"title": "Mend the press"}' | memd session reflect claude-code:0b5c7b3e -
    """
    import sys

    with CommandAnswer("session reflect", as_json) as answer, reach() as client:
        try:
            content = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
            given = msgspec.json.decode(content, type=ReflectionFile)
        except OSError as error:
            raise InvalidRequest(f"{file} can't be read: {error.strerror}") from error
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            hint = 'it needs the form {"title": "…", "statements": [{"type": "fact", "quotes": ["…"]}], "open": ["…"]}'
            raise InvalidRequest(f"this is no reflection: {error}", hint=hint) from error
        document = _running(client, id) or client.session(id).session.document
        parts = {name: getattr(given, name) for name in given.__struct_fields__}
        reflection = client.reflect(document, **parts)
        lines = [plain(line) for line in reflection_lines(reflection, len(given.statements))]
        answer.give({**complete(reflection), "lines": lines}, lines)


def _running(client: Client, host: str) -> str:
    """The session of a host without memd's hook that runs in this folder, "" for any other name."""
    from ..hooks.command_files import COMMAND_HOSTS, running_session

    return running_session(client, host, places_here(), os.environ, Path.cwd()) if host in COMMAND_HOSTS else ""


def _found_lines(found: SessionsFound) -> Iterator[str]:
    for row in found.found:
        session = row.session
        yield styled(shortened(plain_name(row.title) or plain_name(session.document), width()), "bold")
        yield styled(f"  {plain_name(session.document)} · {age(session.began_at)}", "dim")
        if row.line:
            yield from wrapped(f"“{plain(row.line)}”", "    ", "  ")
    if not found.found:
        yield "no session has these words; `memd recall` also finds what was learned from them"


@app.command()
def turns(
    id: Annotated[str, typer.Argument(help="A session as `memd session list` names it, or a unique prefix.")],
    around: Annotated[str, typer.Option(help="The turn in the middle; default: from the first.")] = "",
    limit: Annotated[int, typer.Option("-n", "--limit", min=1, max=1000, help="At most this many turns.")] = 20,
    as_json: JsonFlag = False,
) -> None:
    """Read a session's turns, each with the records that cite it.

    \b
    Examples:
      memd session turns claude-code:0b5c7b3e
      memd session turns claude-code:0b5c7b3e --around 41 -n 5
    """
    with CommandAnswer("session turns", as_json) as answer, reach() as client:
        shown = client.transcript(id, around=around, limit=limit)
        answer.give(shown, _turn_lines(shown))


def _turn_lines(shown: SessionTurns) -> Iterator[str]:
    for turn in shown.turns:
        yield styled(f"{plain(turn.who)}, {age(turn.at)}, turn {plain_name(turn.turn)}", "bold")
        yield from (f"  {plain(line)}" for line in turn.text.splitlines())
        for cited in turn.cited:
            yield styled(f"  → {cited.record} ({cited.status}): {_quoted(turn.text[cited.start : cited.end])}", "dim")
    if not shown.turns:
        yield "no turn of this session is in the archive"
    elif shown.before or shown.after:
        yield styled(f"{shown.before:,} before, {shown.after:,} after; --around and -n show others", "dim")


def _quoted(words: str) -> str:
    return shortened(f"“{plain_name(words)}”", width() - 50)


def _outcome_lines(outcome: SessionOutcome) -> Iterator[str]:
    session = outcome.session
    ended = f"{plain(session.ended_at)} ({plain(session.reason) or 'no reason given'})"
    yield styled(plain_name(session.document), "bold") + (f"  {plain_name(session.title)}" if session.title else "")
    rows = {
        "agent": plain_name(session.agent),
        "folder": plain_name(session.cwd),
        "pool": plain_name(session.pool) or "personal",
        "started": f"{plain(session.began_at)} ({age(session.began_at)})",
        "updated": age(session.heard_at) if session.heard_at else "",
        "ended": ended if session.ended_at else _end(session),
        "turns": ", ".join(f"{number:,} {plain_name(name)}" for name, number in outcome.turns.items()) or "none stored",
        "family": ", ".join(map(plain_name, outcome.family)),
        "commits": "; ".join(f"{plain(commit.id)} {plain_name(commit.subject)}" for commit in outcome.commits[-4:]),
        "checks": ", ".join(f"{plain_name(check.what)} {_state(check)}" for check in outcome.checks),
        "reflected": _reflected(outcome.reflections),
        "outcome": _outcome(outcome),
    }
    yield from (f"{styled(f'{name:<9}', 'dim')} {value}" for name, value in rows.items() if value)


def _reflected(cost: ReflectionCost | None) -> str:
    """What the reflections on a session gave and cost."""
    if cost is None:
        return ""
    tokens = cost.question_tokens + cost.answer_tokens
    asked = "the agent was asked; " if cost.asked else ""
    return f"{asked}{count(cost.statements, 'statement')} taken; about {tokens:,} tokens"


def _state(check: Checked) -> str:
    """The outcome of a check, with the numbers that it printed."""
    if check.state == "failed":
        return styled(f"failed ({check.failed:,})" if check.failed else "failed", "red")
    return f"passed ({check.passed:,})" if check.passed else check.state


def _outcome(outcome: SessionOutcome) -> str:
    records = status_counts(outcome.records)
    parts = [f"records: {records}" if records else "no records"]
    if outcome.troubles:
        parts.append(f"{count(outcome.troubles, 'call or command', 'calls or commands')} failed")
    if outcome.failed:
        parts.append(f"{count(outcome.failed, 'capture')} not processed, see `memd retry`")
    return "; ".join(parts)
