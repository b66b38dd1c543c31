"""Records, times and sizes as text; captured text always passes `plain`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import cast

from ...protocol.corrections import JudgedRecord
from ...protocol.instant import day
from ...protocol.recall import Heard, Hit
from ...protocol.record import STATES, Record
from ...protocol.remote import RemoteSummary
from ...protocol.reply import Reembedding
from .output import plain, plain_name, shortened, styled, width, wrapped

SHORT_ID = 8
_WHO = {"user": "you", "assistant": "the assistant", "tool": "a tool", "document": "a document"}
_RFC_3339 = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)"
_STEPS = ((60, "second"), (60, "minute"), (24, "hour"), (30, "day"), (12, "month"), (10_000, "year"))


UNBOUND = "unbound/"
"""Beginning of the pool of a folder without a project; a code follows, which users see only where they must type it."""


def pool_name(pool: str, folder: str = "a folder without a project") -> str:
    """A pool as a person reads it. `folder`: what to call a folder without a project."""
    return folder if pool.startswith(UNBOUND) else plain(pool)


def pool_argument(pool: str) -> str:
    """A pool as a person types it."""
    return plain(pool.removeprefix(UNBOUND))


def short(id: str) -> str:
    """The prefix of an id that a person types; the daemon accepts any unique prefix."""
    return id[:SHORT_ID]


def reembedding_text(reembedding: Reembedding) -> str:
    """The progress of the change to another model, and how searches work until it is done."""
    by_words = "searches find records without a vector by keyword"
    meanwhile = by_words if reembedding.by_words else "searches use the current model"
    done = f"{reembedding.done:,} of {reembedding.total:,}"
    if reembedding.problem:
        return f"re-embedding stopped at {done}; {meanwhile}"
    return f"re-embedding with {plain(reembedding.model)}: {done}; until then {meanwhile}"


def remote_text(summary: RemoteSummary, learnt: int | None = None) -> str:
    """The remote model and its calls of today, in one line."""
    today = summary.today
    parts = [f"{plain_name(summary.provider)} {plain_name(summary.model)}"]
    parts.append(f"{count(today.calls, 'call')}, {today.tokens:,} of {summary.cap:,} tokens today")
    pointed = f"{today.pointed:,} pointed, {today.dropped:,} dropped"
    parts.append(pointed if learnt is None else f"{pointed}, {learnt:,} learnt in all")
    if today.timed_out:
        parts.append(f"{today.timed_out:,} timed out")
    if today.failed:
        parts.append(f"{today.failed:,} failed")
    if summary.state:
        parts.append(plain(summary.state))
    return " · ".join(parts)


def age(at: str | int, now: datetime | None = None) -> str:
    """A time as "3 days ago", "" for none. Takes RFC 3339 text or microseconds since the epoch."""
    if not at:
        return ""
    try:
        then = datetime.fromtimestamp(at / 1e6, UTC) if isinstance(at, int) else datetime.fromisoformat(at)
        count = int(((now or datetime.now(UTC)) - then).total_seconds())
    except (ValueError, TypeError, OverflowError, OSError):
        return plain(str(at))
    if count < 0:
        return f"on {then.date().isoformat()}"
    if count < 5:
        return "just now"
    for size, unit in _STEPS:
        if count < size:
            return f"{count} {unit}{'' if count == 1 else 's'} ago"
        count //= size
    return str(at)


def moment(at: str | int) -> str:
    """RFC 3339 text, or microseconds since the epoch, as local time to the minute: "2026-03-04 18:30"."""
    try:
        time = datetime.fromtimestamp(at / 1e6, UTC) if isinstance(at, int) else datetime.fromisoformat(at)
        return time.astimezone().isoformat(" ", "minutes")[:16]
    except (ValueError, OverflowError, OSError):
        return plain(str(at))


def world_time(at: str) -> str:
    """A time of a statement: the day if it is midnight in its own zone, because then the statement named a day."""
    return plain(at[:10]) if at[11:19] == "00:00:00" else moment(at)


def with_local_times(text: str) -> str:
    """`text` with each RFC 3339 time in it as local time."""
    return re.sub(_RFC_3339, lambda match: world_time(match[0]), text)


def who(record: Record) -> str:
    """The author of a record, as a reader knows it."""
    if record.provenance.trust == "document" and record.provenance.author:
        return plain_name(record.provenance.author)
    return _WHO.get(record.provenance.trust, record.provenance.trust)


def place(record: Record) -> str:
    """The session and turn that a record cites."""
    spans = record.provenance.spans
    if not spans:
        return plain_name(record.provenance.source)
    return f"{plain_name(spans[0].document)} · turn {plain_name(spans[0].turn)[:13]}"


def state(status: str) -> str:
    """The word that users read for a status."""
    return STATES.get(status, status)


def status_counts(counts: Mapping[str, int]) -> str:
    """Records by status, active ones first: "9 active, 77 unconfirmed"; "" if there are none."""
    ordered = sorted(counts, key=lambda name: (name != "active", state(name)))
    return ", ".join(f"{counts[name]:,} {state(name)}" for name in ordered if counts[name])


def badges(record: Record) -> str:
    """Warnings that a reader needs before relying on a record."""
    words = [state(record.status)] if record.status not in {"active", "provisional"} else []
    words += ["needs review"] if record.needs_review else []
    return " · ".join(styled(word, "yellow") for word in words)


def reviewed(record: Record) -> str:
    """When the user wants to look at a record again, and what would change it; "" for no plan of theirs."""
    plan = record.review
    if plan is None:
        return ""
    when = f"every {count(plan.cadence_days, 'day')}, next {moment(plan.next)}" if plan.cadence_days else ""
    changed = f"changes if: {plain(plan.change_condition)}" if plan.change_condition else ""
    return "; ".join(part for part in (when, changed) if part)


def learnings(record: Record) -> str:
    """What a record teaches, by perspective."""
    return "; ".join(f"{plain_name(name)}: {plain(text)}" for name, text in sorted(record.learnings.items()))


def judged_lines(judged: JudgedRecord, dry_run: bool) -> Iterator[str]:
    """A record whose status a decision changes."""
    yield from wrapped(plain(judged.description))
    names = [state(status) if status else "deleted permanently" for status in (judged.before, judged.after)]
    change = f"stays {names[0]}" if judged.before == judged.after else f"{names[0]} → {names[1]}"
    yield f"{styled(short(judged.id), 'cyan')} · {'would be: ' if dry_run else ''}{change}"


def artifacts(record: Record) -> Iterator[str]:
    """What proves a record, each with its type and note."""
    for each in record.artifacts:
        yield f"{each.type} {plain(each.ref)}{f': {plain(each.note)}' if each.note else ''}"


def facts(record: Record) -> str:
    """Type, author, age and status on one line."""
    parts = [plain_name(record.type), f"{who(record)}, {age(record.provenance.said_at)}", badges(record)]
    return " · ".join(part for part in parts if part)


def row(record: Record) -> str:
    """A record on one line of a list."""
    head = f"{short(record.id)}  {plain_name(record.type):<13.13} "
    mark = "" if record.status in {"active", "provisional"} else f"[{state(record.status)}] "
    text = shortened(mark + plain(record.description), max(20, width() - len(head)))
    return f"{styled(short(record.id), 'cyan')}{head[SHORT_ID:]}{styled(text, 'dim') if mark else text}"


def hit_lines(number: int, hit: Hit, explain: bool = False) -> Iterator[str]:
    """A search result: description, quote, score, source."""
    record = hit.record
    head = f"{number}. "
    indent = " " * len(head)
    description, quote = plain(record.description), plain(record.provenance.quote)
    first = f"“{quote}”" if quote == description else description
    yield from (styled(line, "bold") for line in wrapped(first, indent, head))
    if quote and quote != description:
        yield from wrapped(f"“{shortened(quote, 300)}”", indent)
    yield styled(f"{indent}{short(record.id)}", "cyan") + f" · score {hit.score:.2f} · {facts(record)}"
    if record.status == "retired" and record.valid_to:
        since = f"from {day(record.valid_from)} " if record.valid_from else ""
        yield from (styled(line, "yellow") for line in wrapped(f"true {since}to {day(record.valid_to)}", indent))
    yield from (styled(line, "dim") for line in wrapped(place(record), indent))
    if explain:
        yield from _part_lines(hit.parts, indent)


def _part_lines(parts: Mapping[str, float], indent: str) -> Iterator[str]:
    """The parts of a score (`--explain`)."""
    if parts:
        named = ", ".join(f"{plain_name(name)} {value:.3f}" for name, value in sorted(parts.items()))
        yield from (styled(line, "dim") for line in wrapped(f"score parts: {named}", indent))


def heard_lines(number: int, heard: Heard, explain: bool = False) -> Iterator[str]:
    """A transcript turn that a search found: quote, author, source."""
    head = f"{number}. "
    indent = " " * len(head)
    yield from (styled(line, "bold") for line in wrapped(f"“{shortened(plain(heard.quote), 300)}”", indent, head))
    marks = () if heard.trust == "user" else ("unconfirmed", *map(plain, heard.flags))
    said = ", ".join((_WHO.get(heard.trust, heard.trust), age(heard.at), *marks))
    yield from wrapped(f"in the transcript · score {heard.score:.2f} · {said}", indent)
    where = f"{plain_name(heard.document)} · turn {plain_name(heard.turn)[:13]}"
    yield from (styled(line, "dim") for line in wrapped(where, indent))
    for part in heard.outdated:
        words = shortened(plain(heard.quote[part.start - heard.start : part.end - heard.start]), 80)
        by = f"replaced by {short(part.replaced_by)}" if part.replaced_by else "retired"
        yield from (styled(line, "yellow") for line in wrapped(f"outdated: “{words}” · {by}", indent))
    if explain:
        yield from _part_lines(heard.parts, indent)


def count(number: int, noun: str, plural: str = "") -> str:
    """A number with its noun."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def sessions_text(sessions: int, files: int) -> str:
    """Sessions with the number of their files, if it is another one: "5 sessions in 9 files"."""
    return count(sessions, "session") + (f" in {count(files, 'file')}" if files != sessions else "")


def size(number: int) -> str:
    """Bytes as text in decimal units: "2 MB"."""
    for unit in ("bytes", "kB", "MB"):
        if number < 1000:
            return f"{number:,.0f} {unit}"
        number = round(number / 1000)
    return f"{number:,.0f} GB"


def report_number(report: Mapping[str, object], name: str) -> int:
    """A whole number of a job's report, 0 if the report lacks it."""
    value = report.get(name)
    return value if isinstance(value, int) else 0


def report_names(report: Mapping[str, object], name: str) -> list[str]:
    """A list of a job's report, empty if the report lacks it."""
    value = report.get(name)
    return cast("list[str]", value) if isinstance(value, list) else []


def reflecting(reflects: bool) -> str:
    """The choice of an agent's user about reflections, for a line about the agent (W4)."""
    return ", asks for a reflection once a session" if reflects else ""
