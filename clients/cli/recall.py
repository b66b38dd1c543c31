"""`memd recall`, `memd profile`, `memd feedback`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Annotated, Literal

import typer

from ...protocol.errors import InvalidRequest
from ...protocol.instant import day, from_micros
from ...protocol.profile import ProfileText
from ...protocol.recall import BUDGET_TOKENS, LIMIT, Belief, Heard, Hit, Linked, Recalled, TaskOutcome
from ...protocol.record import LIVE, TYPES, Record
from ...protocol.scope import check_agent
from .connection import reach
from .options import AsOf, BelievedAt, Cwd, here, instant
from .output import CommandAnswer, JsonFlag, complete, plain, plain_name, say, shortened, styled, wrapped
from .wording import count, heard_lines, hit_lines, pool_name, short

app = typer.Typer(rich_markup_mode=None, add_completion=False)

Pools = Annotated[list[str] | None, typer.Option("--pool", help="A pool by name, instead of by folder; repeatable.")]
Agent = Annotated[str, typer.Option(help="Also search the memory of this agent.")]
Ids = list[str] | None
INDENT = " " * 5
LONGEST = 300


@app.command()
def recall(
    query: Annotated[str, typer.Argument(help="A question, or words to look for.")],
    cwd: Cwd = None,
    pool: Pools = None,
    limit: Annotated[int, typer.Option(min=1, max=200, help="At most this many records and turns.")] = LIMIT,
    budget: Annotated[int, typer.Option(min=1, help="At most about this many tokens.")] = BUDGET_TOKENS,
    threshold: Annotated[float, typer.Option(min=0, max=1, help="Only results with at least this score.")] = 0,
    type: Annotated[
        list[str] | None,
        typer.Option(help=f"Only records of this type, and no turns: {', '.join(TYPES)}; repeatable."),
    ] = None,
    all: Annotated[bool, typer.Option("--all", help="Include retired and archived records.")] = False,
    as_of: AsOf = "",
    believed_at: BelievedAt = "",
    agent: Agent = "",
    perspective: Annotated[str, typer.Option(help="Prefer records that this perspective used before.")] = "",
    by_chance: Annotated[
        bool, typer.Option("--by-chance", help="Draw records at random, better ones more often, instead of the best.")
    ] = False,
    deep: Annotated[
        bool, typer.Option("--deep", help="Add the surrounding transcript, earlier versions and linked records.")
    ] = False,
    explain: Annotated[bool, typer.Option("--explain", help="Show the parts of each score.")] = False,
    org: Annotated[bool, typer.Option("--org", help="Also ask the hubs that you joined, in all their pools.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Search memory. Each result names its source.

    \b
    Examples:
      memd recall "why not postgres"
      memd recall indentation --all         # adds retired and archived records
      memd recall database --as-of 2026-03-01
      memd recall "what did we decide last March"   # searches March only
      memd recall database --deep           # adds transcript and versions
      memd recall "backup" --pool personal --limit 3
      memd recall "tests" --type decision --type convention
      memd recall "tests" --threshold 0.4 --explain
      memd recall "what went wrong" --agent reviewer --perspective security
      memd recall "who runs the build farm" --org    # docs/HUB.md
    """
    with CommandAnswer("recall", as_json) as answer, reach() as client:
        recalled = client.recall(
            query,
            cwd=here(cwd),
            pools=pool or (),
            limit=limit,
            budget_tokens=budget,
            include_retired=all,
            explain=explain,
            as_of=instant(as_of),
            believed_at=instant(believed_at),
            agent=agent,
            perspective=perspective,
            threshold=threshold,
            types=type or (),
            by_chance=by_chance,
            deep=deep,
        )
        check_agent(agent, pool or (), recalled.scope)
        lines = recalled_lines(recalled, explain, perspective)
        if org:
            from .hub import org_lines, org_recall

            answers = org_recall(client, query, limit, answer)
            answer.give({**complete(recalled), "org": answers}, [*lines, *org_lines(answers)])
            return
        answer.give(recalled, lines)


def ranked(recalled: Recalled) -> list[Hit | Heard]:
    """The records and turns of an answer in the order that the user sees."""
    return sorted((*recalled.hits, *recalled.turns), key=lambda result: -result.score)


def recalled_lines(recalled: Recalled, explain: bool = False, perspective: str = "") -> Iterator[str]:
    """A search's answer as text; under a perspective with what each record teaches for it."""
    results = ranked(recalled)
    for number, result in enumerate(results, 1):
        if number > 1:
            yield ""
        is_hit = isinstance(result, Hit)
        yield from hit_lines(number, result, explain) if is_hit else heard_lines(number, result, explain)
        if isinstance(result, Hit) and (taught := _taught(result.record, perspective)):
            yield from wrapped(f"for {plain(perspective)}: {plain(taught)}", "   ")
        if isinstance(result, Hit) and result.details:
            id = short(result.record.id)
            yield f"   summary of {count(result.details, 'passage')}: memd show {id}, memd show {id}§1"
        yield from _around_lines(result)
    if not results:
        yield "No relevant memory found."
        if recalled.nearest:
            near = recalled.nearest
            yield from wrapped(f"Nearest: {plain(near.description)} ({short(near.id)}, score {near.score:.2f})", "  ")
    yield from _principle_lines(recalled.principles)
    yield from _linked_lines(recalled.linked)
    yield ""
    notes = "; ".join(_notes(recalled))
    yield from (styled(line, "dim") for line in wrapped(notes))
    if recalled.recall and results:
        yield styled(f"(for `memd feedback`: {plain(recalled.recall)})", "dim")


def _notes(recalled: Recalled) -> Iterator[str]:
    """Scope and limits of a search."""
    if recalled.scope == ("personal",) and not recalled.hits and not recalled.turns:
        yield "This folder is not a known project; searched personal only (`memd pools` lists the others)"
    else:
        yield f"searched {', '.join(pool_name(pool, 'this folder') for pool in recalled.scope)}"
    if recalled.method == "overview":
        yield "the question names no subject, so this is an overview"
    if recalled.corrected:
        yield f"searched for: {plain(recalled.corrected)}"
    if recalled.period:
        yield _period_text(*recalled.period)
    if recalled.filtered:
        yield f"{count(recalled.filtered, 'other')} did not match"
    if recalled.screened:
        yield f"withheld or marked: {', '.join(recalled.screened)} (see `memd scan`)"
    if recalled.pending:
        yield f"{count(recalled.pending, 'capture')} not processed yet"
    if recalled.note:
        yield plain(recalled.note)


def _around_lines(result: Hit | Heard) -> Iterator[str]:
    """The surrounding turns, `▶` before the cited one; then each earlier version (`--deep`)."""
    for line in result.lines:
        mark = styled("▶", "green") if line.cited else " "
        words = (
            f"{plain_name(line.who)} {plain(line.at)[:16].replace('T', ' ')}: {shortened(plain(line.text), LONGEST)}"
        )
        first, *rest = wrapped(words, INDENT)
        yield f"   {mark} {first.lstrip()}"
        yield from rest
    if isinstance(result, Hit) and result.history:
        yield styled(f"{INDENT}versions:", "dim")
        for belief in result.history:
            yield from wrapped(_belief_text(belief), INDENT + "    ", INDENT + "  ")


def _principle_lines(principles: Sequence[Hit]) -> Iterator[str]:
    """The principles, which every answer has (Q8)."""
    if principles:
        yield ""
        yield styled("Principles:", "bold")
    for principle in principles:
        record = principle.record
        yield from wrapped(f"{plain(record.description)} · {short(record.id)}", " " * 4, "  ")


def _taught(record: Record, perspective: str) -> str:
    """What a record teaches under a perspective in other words than its own."""
    words = record.learnings.get(perspective, "")
    return "" if words == record.description else words


def _linked_lines(linked: Sequence[Linked]) -> Iterator[str]:
    if linked:
        yield ""
        yield styled("Linked:", "bold")
    for link in linked:
        distance = "" if link.hops == 1 else f", {count(link.hops, 'step')} away"
        text = f"{plain(link.record.description)} · by {plain_name(link.via)}{distance} · {short(link.record.id)}"
        yield from wrapped(text, " " * 4, "  ")


def _period_text(start: str, end: str) -> str:
    """The time that limits an answer, in local days; the last one is the day before `end`."""
    first = datetime.fromisoformat(start).astimezone().date().isoformat() if start else ""
    last = (datetime.fromisoformat(end) - timedelta(seconds=1)).astimezone().date().isoformat() if end else ""
    if not first or not last:
        return f"limited to the time since {first}" if first else f"limited to the time until {last}"
    return f"limited to {first}" + (f" to {last}" if last != first else "")


def _belief_text(belief: Belief) -> str:
    true = f"true from {day(belief.valid_from)}" if belief.valid_from else "true"
    true += f" to {day(belief.valid_to)}" if belief.valid_to else ""
    until = f" to {day(from_micros(belief.believed_until))}" if belief.believed_until else " until now"
    reason = f": {plain_name(belief.ended)}" if belief.ended else ""
    return f"“{plain(belief.text)}” {true}, believed from {day(from_micros(belief.believed_from))}{until}{reason}"


@app.command()
def profile(
    cwd: Cwd = None,
    pool: Pools = None,
    agent: Agent = "",
    budget: Annotated[int, typer.Option(min=1, help="At most about this many tokens.")] = 500,
    ids: Annotated[bool, typer.Option("--ids", help="Show the record of each line.")] = False,
    as_of: AsOf = "",
    believed_at: BelievedAt = "",
    as_json: JsonFlag = False,
) -> None:
    """Show the profile that an agent receives in this folder.

    \b
    Examples:
      memd profile
      memd profile --ids                  # for memd why, memd correct
      memd profile --cwd ~/src/orchard --budget 200
      memd profile --believed-at 2026-03-01   # what an agent would have received then
      memd injected                       # the texts that agents received, and when
    """
    with CommandAnswer("profile", as_json) as answer, reach() as client:
        shown = client.profile(
            cwd=here(cwd),
            pools=pool or (),
            budget_tokens=budget,
            agent=agent,
            as_of=instant(as_of),
            believed_at=instant(believed_at),
        )
        check_agent(agent, pool or (), shown.scope)
        answer.give(shown)
        if as_json:
            return
        records = {shown.text[line.start : line.end]: line.id for line in shown.lines} if ids else {}
        say(
            f"{plain(line)}  {styled(records[line], 'dim')}" if line in records else plain(line)
            for line in shown.text.splitlines()
        )
        if as_of or believed_at:
            say(_past_notes(shown))
            return
        live = {state.pool: sum(state.counts.get(status, 0) for status in LIVE) for state in client.pools().pools}
        searched = sum(live.get(name, 0) for name in shown.scope)
        if not shown.ids:
            say([_empty_profile(searched, sum(live.values()))])
        pending = f"; {count(shown.pending, 'capture')} not processed yet" if shown.pending else ""
        size = f"{len(shown.ids)} of {count(searched, 'record')}, {count(shown.tokens, 'token')}"
        say(_scope_notes(f"{size}, from", shown, pending))


def _past_notes(shown: ProfileText) -> Iterator[str]:
    """Notes under the profile of another time; the pools of today say nothing about it."""
    if not shown.ids:
        yield "No record belonged into every turn then."
    size = f"{count(len(shown.ids), 'record')}, {count(shown.tokens, 'token')}"
    yield from _scope_notes(f"at that time: {size}, from", shown)


def _scope_notes(size: str, shown: ProfileText, end: str = "") -> Iterator[str]:
    pools = ", ".join(pool_name(pool, "this folder") for pool in shown.scope)
    yield ""
    yield from (styled(line, "dim") for line in wrapped(f"{size} {pools}{end}"))


def _empty_profile(searched: int, total: int) -> str:
    if searched:
        return f"No record belongs into every turn; `memd recall` searches the {count(searched, 'record')} here."
    if total:
        return f"Nothing yet in these pools; other pools have {count(total, 'record')}: see `memd pools`."
    return "Nothing yet. `memd import claude-code ~/.claude/projects` imports your earlier sessions."


@app.command()
def feedback(
    recall: Annotated[
        str, typer.Argument(help="The answer's id, which `memd recall` prints last; may be omitted.")
    ] = "",
    used: Annotated[Ids, typer.Option("--used", help="A record that was used; repeatable.")] = None,
    helpful: Annotated[Ids, typer.Option("--helpful", help="A record that helped; repeatable.")] = None,
    wrong: Annotated[Ids, typer.Option("--wrong", help="A record that was irrelevant; repeatable.")] = None,
    outcome: Annotated[
        Literal["success", "failure", "prevented"] | None,
        typer.Option(help="How the task ended: what was used counts more if it succeeded or prevented an error."),
    ] = None,
    learned: Annotated[
        Ids, typer.Option("--learned", metavar="ID=TEXT", help="What a record taught; repeatable.")
    ] = None,
    perspective: Annotated[
        str, typer.Option("--perspective", "-p", help="The concern for which it counts, if not the answer's.")
    ] = "",
    failed: Annotated[bool, typer.Option("--failed", help="Short for --outcome failure: ranking learns half.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Rate an answer. Ranking learns from it. Records that were used also lose strength more slowly.

    \b
    Examples:
      memd feedback 5be0c1a92 --used 7q3hjwch --wrong 0m2k9x1c
      memd feedback 5be0c1a92 --used 7q3hjwch --outcome success
      memd feedback --helpful 7q3hjwch    # ranking does not learn from this
      memd feedback 5be0c1a92 --used 7q3hjwch --learned 7q3hjwch="Check the token's scope first." -p security
    """
    with CommandAnswer("feedback", as_json) as answer, reach() as client:
        told: TaskOutcome = "failure" if failed else outcome or ""
        taken = client.feedback(
            recall,
            used=used or (),
            helpful=helpful or (),
            wrong=wrong or (),
            outcome=told,
            perspective=perspective,
            learned=dict(map(_lesson, learned or ())),
        )
        lines = [f"Recorded feedback on {count(taken.records, 'record')}."]
        if taken.samples:
            lines.append(f"Ranking learns from {count(taken.samples, 'new sample')}, {taken.learnt_from:,} in total.")
        answer.give(taken, [*lines, *wrapped(plain(taken.note), "  ")] if taken.note else lines)


def _lesson(text: str) -> tuple[str, str]:
    """Id and text of `ID=TEXT`. Raises InvalidRequest."""
    id, equals, words = text.partition("=")
    if not (id and equals and words.strip()):
        raise InvalidRequest(f"{text!r} is not ID=TEXT", hint='write --learned 7q3hjwch="what it taught"')
    return id, words
