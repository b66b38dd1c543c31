"""The weekly report (G6). Nothing is stored: it is read from the tables, the week's operations and its sessions.

Invariants: the same journal seq and week give the same report, except that links to documents follow the files on disk;
a record that is hidden, forgotten or not permitted is in no line; only the user asks for it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from heapq import merge
from itertools import islice
from typing import NamedTuple

from ....protocol.corrections import Inbox, Waiting
from ....protocol.curation import CURATOR, MAINTAINER
from ....protocol.document_links import LinkList
from ....protocol.operation import PatchApplied, PatchGone, PatchTaken
from ....protocol.record import LIVE, Record
from ....protocol.skills import SKILL_COMMANDS
from ....protocol.weekly_report import MOST, GetReport, ReportLine, ReportSection, SectionName, WeeklyReport
from ....stages.batch import PERSONAL
from ...projections.placement import AGENT
from ...projections.stores import Stores
from ..core import Core
from ..outgoing_screen import shown, without_secrets
from ..service import Caller, Handler, Handlers, Service
from ..week_work import ProjectWork
from .iso_week import Week, week_at, week_named
from .week_changes import Replacement, WeekChanges, operations_between

NEWEST = 500
"""Newest records of the week that are read for what they replaced; all are counted."""

FADING_DAYS, FADING = 7, 200
"""Days of work that the report looks ahead, and the most records of a pool's kind and level that it counts."""

LINKED, LOOKED = 64, 2000
"""Most records whose documents are compared, and newest records among which the report looks for such."""

GIVEN = 3
"""Times from which a record that agents were given and never used is told."""

UNBOUND = "unbound/"
"""Prefix of the pools of folders without a project."""

MARKDOWN = "markdown"
"""The host of imported documents."""

WHOLE, WORDS, SHORT = 600, 160, 90
"""Most characters of a statement that the user decides about, of a quoted one, and of each of two in one line."""

NEWS = 5
"""Most new statements that are told by their words."""

_USER = re.compile(r"\bthe user\b", re.IGNORECASE)

_KINDS = {"patch": 0, "conflict": 1, "forget": 2, "skill_retire": 3, "skill_edit": 4, "skill": 5, "duplicate": 6}
_TELLING = frozenset({"decision", "preference", "convention", "lesson", "principle", "procedure"})


def _command(proposal: Waiting) -> str:
    """Return the command that decides a proposal, or shows what is about a file."""
    if proposal.what in SKILL_COMMANDS:
        return f"memd skill {SKILL_COMMANDS[proposal.what]} {proposal.record[:8]}"
    return f"memd inbox accept {proposal.id[:8]}"


class ReportSources(NamedTuple):
    """What the report asks other services. `inbox`: all open proposals; `work`: the projects of a period; `links`: the
    changed documents of records; `fading`: days left and id of the records of pools that fade within so many days."""

    inbox: Callable[[], Inbox]
    work: Callable[[int, int, Caller], tuple[ProjectWork, ...]]
    links: Callable[[Sequence[str], Caller], LinkList]
    fading: Callable[[Sequence[str], int, int], list[tuple[float, str]]]


class ReportService(Service):
    """Reads the report on the slow lane."""

    name = "report"

    def __init__(self, core: Core, sources: ReportSources) -> None:
        self._stores, self._title, self._now, self._sources = core.stores, core.directory.title, core.world.now, sources

    @property
    def handlers(self) -> Handlers:
        return {GetReport: Handler("slow", self.report)}

    def report(self, request: GetReport, caller: Caller) -> WeeklyReport:
        """Return the report of a week. Raises InvalidRequest."""
        week = week_named(request.week or week_at(self._now()))
        return ReportReader(self._stores, self._title, self._sources, week, caller).report()


class ReportReader:
    """Reads one report."""

    def __init__(
        self, stores: Stores, title: Callable[[str], str], sources: ReportSources, week: Week, caller: Caller
    ) -> None:
        self._stores, self._titles, self._sources, self._week, self._caller = stores, title, sources, week, caller
        self._seq = stores.journal.last
        self._changes = WeekChanges(operations_between(stores.journal, week.since, week.until))
        self._pools = sorted({PERSONAL, *stores.records.tally()})
        self._asked = self._open_proposals()
        last = stores.journal.get(self._seq) if self._seq else None
        self._is_latest = last is not None and week.since <= last.at < week.until
        """Whether nothing was committed after the week, so that the present state is the week's."""

    def report(self) -> WeeklyReport:
        week = self._week
        readers: dict[SectionName, Callable[[], Iterator[ReportLine]]] = {
            "needs": self._needs,
            "beliefs": lambda: islice(self._beliefs(), MOST["beliefs"]),  # its first line has the counts
            "work": self._work,
            "old": self._old,
            "used": self._used,
            "health": self._health,
        }
        sections: list[ReportSection] = []
        for name, read in readers.items():
            if lines := list(read()):
                most = MOST[name]
                sections.append(ReportSection(name=name, lines=tuple(lines[:most]), more=max(0, len(lines) - most)))
        return WeeklyReport(
            week=week.name,
            since=week.opens,
            until=week.closes,
            before=week.before,
            after=week.after,
            seq=self._seq,
            sections=tuple(sections),
        )

    # --- what needs the user -------------------------------------------------------------------------------------
    def _needs(self) -> Iterator[ReportLine]:
        """Yield what waits for a decision of the user since this week or an earlier one."""
        for proposal in self._asked:
            yield ReportLine(text=self._question(proposal), ids=(proposal.id,), command=_command(proposal))

    def _open_proposals(self) -> list[Waiting]:
        asked = [proposal for proposal in self._sources.inbox().proposals if proposal.at < self._week.until]
        asked = [proposal for proposal in asked if self._may_tell(proposal)]
        return sorted(asked, key=lambda proposal: (_KINDS[proposal.what], proposal.at, proposal.id))

    def _may_tell(self, proposal: Waiting) -> bool:
        records = self._stores.records.many(filter(None, (proposal.record, proposal.against)))
        return self._caller.permits is None or all(map(self._caller.permits, records.values()))

    def _question(self, proposal: Waiting) -> str:
        old, new = _quoted(proposal.line, SHORT), _quoted(proposal.against_line, SHORT)
        if proposal.what == "patch":
            return self._patch(proposal)
        if proposal.what == "skill":
            return f"memd proposes a skill, {proposal.reason}: {cut(without_secrets(proposal.line), WORDS)}"
        if proposal.what in SKILL_COMMANDS:
            what = "take a skill away" if proposal.what == "skill_retire" else "change a skill"
            return f"memd asks whether to {what}, {proposal.reason}: {proposal.line}"
        if proposal.what == "duplicate":
            return f"memd asks whether {new} says the same as {old}"
        if proposal.what == "conflict" and proposal.against:
            return f"memd asks whether {new} replaces {old}"
        if proposal.what == "conflict":
            return f"memd asks whether {old} no longer holds{f': {proposal.reason}' if proposal.reason else ''}"
        asks = "You asked" if proposal.by == "you" else f"{proposal.by or 'An agent'} asks"
        return f"{asks} to delete {old} for good"

    def _patch(self, proposal: Waiting) -> str:
        record = self._stores.records.get(proposal.record)
        place = self._place(record.pool) if record and record.pool != PERSONAL else "all your projects"
        by = "memd" if proposal.by in ("", CURATOR, MAINTAINER) else proposal.by
        first = proposal.changes[0]
        rest = f", and {_count(len(proposal.changes) - 1, 'more change')}" if len(proposal.changes) > 1 else ""
        if first.op in ("add", "promote"):
            return f"{by} proposes a rule for {place}: {_quoted(first.new, WHOLE)}{rest}{_because(proposal.reason)}"
        told = cut(without_secrets(first.line), WHOLE)
        return f"{by} proposes to change the rules of {place}: {told}{rest}{_because(proposal.reason)}"

    # --- what memd believes --------------------------------------------------------------------------------------
    def _beliefs(self) -> Iterator[ReportLine]:
        """Yield what memd learnt, replaced and gave up, and who did it."""
        week, records = self._week, self._stores.records
        learnt = [(pool, records.learnt_between(pool, week.since, week.until)) for pool in self._pools]
        counts = [(len(rows), pool) for pool, rows in learnt if rows]
        by_time = merge(*(reversed(rows) for _, rows in learnt), reverse=True)
        newest = records.many(id for _, id in islice(by_time, NEWEST))
        fresh = [record for record in newest.values() if self._is_told(record)]
        replaced = self._replaced(fresh)
        if counts or replaced or self._changes.retired:
            yield self._learnt(counts, len({row.old for row in replaced} | {row.id for row in self._changes.retired}))
        yield from self._patched()
        yield from self._gone(replaced)
        yield from self._news(fresh, replaced)

    def _news(self, fresh: Sequence[Record], replaced: Sequence[Replacement]) -> Iterator[ReportLine]:
        """Yield new statements that no other line tells, those first that guide work."""
        named = {id for row in replaced for id in (row.old, row.new)}
        named |= {id for proposal in self._asked for id in (proposal.record, proposal.against)}
        news = [record for record in fresh if self._is_news(record) and record.id not in named]
        news.sort(key=_newsworthy)
        for record in news[:NEWS]:
            mark = "" if record.status == "active" else " (unconfirmed)"
            where = "" if record.pool == PERSONAL else f" ({self._place(record.pool)})"
            yield ReportLine(text=f"{_said(record)} {_quoted(_as_said(record))}{where}{mark}", ids=(record.id,))

    def _is_news(self, record: Record) -> bool:
        """Whether a new record is told by itself; what a session left open is among the work."""
        return record.status in LIVE and record.type != "commitment"

    def _learnt(self, counts: list[tuple[int, str]], gone: int) -> ReportLine:
        """Return the line with the numbers of the week."""
        by_place = Counter[str]()
        for count, pool in counts:
            by_place["about you" if pool == PERSONAL else f"in {self._place(pool)}"] += count
        most = sorted(by_place.items(), key=lambda row: (-row[1], row[0]))
        total = by_place.total()
        places = [f"{count:,} {place}" for place, count in most]
        rest = f" and {sum(count for _, count in most[3:]):,} elsewhere" if len(most) > 3 else ""
        changes = self._changes
        confirmed = sum(row.verdict == "right" for row in changes.judged.values())
        learnt = f"memd learnt {_count(total, 'statement')}: {', '.join(places[:3])}{rest}" if counts else ""
        parts = (
            learnt,
            f"{_count(gone, 'record')} {'was' if gone == 1 else 'were'} replaced or retired" if gone else "",
            f"you confirmed {_count(confirmed, 'record')}" if confirmed else "",
            f"you deleted {_count(changes.deleted, 'record')} for good" if changes.deleted else "",
        )
        return ReportLine(text="; ".join(filter(None, parts)))

    def _patched(self) -> Iterator[ReportLine]:
        for patch in self._changes.patches:
            where = self._place(patch.pool)
            match patch:
                case PatchApplied(sent=True):
                    text = f"You wrote {patch.patch} for others to decide, in {where}"
                case PatchApplied():
                    made = f"{_count(len(patch.steps), 'change')} of the playbook of {where}"
                    text = f"You accepted {patch.patch} of the {patch.generated_by}: {made}"
                case PatchTaken():
                    made = f"{_count(len(patch.steps), 'change')} of the playbook of {where}"
                    text = f"{patch.author or 'Somebody'} brought {patch.patch} with the repository: {made}"
                case PatchGone():
                    text = f"Somebody reverted {patch.patch} in the repository of {where}"
            yield ReportLine(text=text, ids=(patch.patch,), command=f"memd patch show {patch.patch}")

    def _replaced(self, fresh: Sequence[Record]) -> list[Replacement]:
        """Return what was replaced, each once: by the user's decision, or by a new record."""
        rows = {row.old: row for row in self._changes.replaced}
        for record in fresh:
            for old in record.supersedes:
                rows.setdefault(old, Replacement(old, record.id, False))
        return list(rows.values())

    def _gone(self, replaced: Sequence[Replacement]) -> Iterator[ReportLine]:
        """Yield what was replaced or retired, the latest first."""
        for row in reversed(replaced):
            records = self._stores.records.many((row.old, row.new))
            old, new = records.get(row.old), records.get(row.new)
            if old and new and old.status == "retired" and self._is_told(old) and self._is_told(new):
                actor = "You accepted" if row.accepted else _said(new)
                text = f"{actor} {self._words(new)}, which replaces {self._words(old)}"
                yield ReportLine(text=text, ids=(new.id, old.id), command=f"memd why {new.id[:8]}")
        for retired in reversed(self._changes.retired):
            record = self._stores.records.get(retired.id)
            if record and record.status == "retired" and self._is_told(record):
                text = f"{_actor(retired.reason)} {self._words(record)}{_because(retired.reason)}"
                yield ReportLine(text=text, ids=(record.id,), command=f"memd why {record.id[:8]}")
        for id, judged in reversed(self._changes.judged.items()):
            record = self._stores.records.get(id)
            if judged.verdict == "wrong" and record and self._is_told(record):
                yield ReportLine(text=f"You said that {self._words(record)} is wrong", ids=(id,))

    # --- where work stands ---------------------------------------------------------------------------------------
    def _work(self) -> Iterator[ReportLine]:
        """Yield the projects with their sessions and open threads; the more projects, the fewer lines of each."""
        projects = self._sources.work(self._week.since, self._week.until, self._caller)
        each = {1: (5, 6), 2: (3, 2), 3: (2, 1)}.get(len(projects), (1, 1))
        for project in projects:
            sessions, threads = project.sessions, project.threads
            commits = sum(len(session.commits) for session in sessions)
            counts = [_count(len(sessions) + project.unread, "session")]
            counts += [_count(commits, "commit")] if commits else []
            counts += [f"{len(threads):,} open"] if threads else []
            has_none = project.pool == PERSONAL or project.pool.startswith(UNBOUND)
            name = f"{project.folder or 'Without a folder'} (no project)" if has_none else self._place(project.pool)
            yield ReportLine(text=f"{name}: {', '.join(counts)}", ids=(project.pool,))
            for session in sessions[: each[0]]:
                commits_told = [subject for subject in session.commits if subject != session.title]
                last = f", last commit {_quoted(commits_told[-1], SHORT)}" if commits_told else ""
                edits = f", {_count(session.edits, 'edit')}" if session.edits else ""
                title = _quoted(session.title, SHORT) if session.title else "a session without a title"
                told = f"{session.host} worked on {title} until {session.last_at[:10]}{edits}{last}"
                yield ReportLine(text=told, ids=(session.document,), level=1)
            for thread in threads[: each[1]]:
                yield ReportLine(text=f"open: {cut(without_secrets(thread.text), WORDS)}", ids=(thread.id,), level=1)

    # --- what gets old -------------------------------------------------------------------------------------------
    def _old(self) -> Iterator[ReportLine]:
        yield from self._overdue()
        if self._is_latest:
            yield from self._stale()
            yield from self._fading()
        if count := len(self._changes.archived):
            yield ReportLine(
                text=f"memd archived {_count(count, 'record')} that nobody used", command="memd list --all"
            )

    def _overdue(self) -> Iterator[ReportLine]:
        """Yield the records whose confidence memd lowered in a review."""
        reviewed = [(id, review) for id, review in self._changes.reviewed.items() if review.why]
        records = self._stores.records.many(id for id, _ in reviewed)
        rows = [(records[id], review) for id, review in reviewed if id in records and self._is_live(records[id])]
        overdue = [record for record, review in rows if review.why == "overdue"]
        if overdue:
            first = overdue[0]
            text = f"memd trusts {_count(len(overdue), 'record')} less, because nobody confirmed it in time"
            text = text.replace(" it in", " them in") if len(overdue) > 1 else text
            ids = tuple(record.id for record in overdue)
            text = f"{text}{', first' if len(overdue) > 1 else ':'} {self._words(first)}"
            yield ReportLine(text=text, ids=ids, command=f"memd confirm {first.id[:8]}")
        doubted = [(record, review) for record, review in rows if review.against]
        for record, review in doubted[:2]:
            text = f"memd doubts {self._words(record)}: {review.why}"
            yield ReportLine(text=text, ids=(record.id,), command=f"memd why {record.id[:8]}")

    def _stale(self) -> Iterator[ReportLine]:
        """Yield the documents behind records that changed; one line a document."""
        ids = self._linked()
        links = self._sources.links(ids, self._caller).links if ids else ()
        by_path: dict[str, list[str]] = {}
        states = {link.path: link.state for link in links}
        for link in links:
            by_path.setdefault(link.path, []).append(link.id)
        for path, named in list(by_path.items())[:2]:
            happened = "is gone" if states[path] == "gone" else "has changed"
            text = f"{path} {happened} since memd learnt {_count(len(named), 'record')} from it"
            yield ReportLine(text=text, ids=tuple(named), command="memd links --stale")

    def _linked(self) -> list[str]:
        """Return the ids of records that may have documents behind them: of the playbooks, among the newest, and from
        imported files."""
        held = self._stores.records.many(self._stores.inbox.held(self._pools)).values()
        newest = islice(self._stores.records.newest(self._pools), LOOKED)
        ids = [record.id for record in (*held, *newest) if record.artifacts]
        for entry in self._stores.sources.all_sessions():
            if entry.opened.document.partition(":")[0] == MARKDOWN:
                ids += self._stores.records.citing(entry.opened.document)
        records = self._stores.records.many(ids[: 4 * LINKED]).values()
        return sorted({record.id for record in records if self._is_live(record)})[:LINKED]

    def _fading(self) -> Iterator[ReportLine]:
        rows = self._sources.fading(self._pools, FADING_DAYS, FADING)
        records = self._stores.records.many(id for _, id in rows[:FADING])
        first = next((records[id] for _, id in rows if id in records and self._is_live(records[id])), None)
        if first is not None:
            count, days = len(rows), f"within {FADING_DAYS} days of work"
            goes = "go" if count > 1 else "goes"
            text = (
                f"{_count(count, 'record')} {goes} to the archive {days} if nobody uses {'them' if count > 1 else 'it'}"
            )
            text = f"{text}{', first' if count > 1 else ':'} {self._words(first)}"
            yield ReportLine(text=text, ids=(first.id,), command=f"memd pin {first.id[:8]}")

    # --- what was used -------------------------------------------------------------------------------------------
    def _used(self) -> Iterator[ReportLine]:
        """Yield the records that answers used most in the week, and those that agents often got and never used."""
        uses = self._changes.uses
        used = [(-row.used, id) for id, row in uses.items() if row.used]
        yield from self._most(used, "Agents used", "")
        given = sorted((-row.given, id) for id, row in uses.items() if row.given >= GIVEN and not row.used)
        records = self._stores.records.many(id for _, id in given)
        signals = self._stores.counters.signals(records.values())
        never = [row for row in given if row[1] in signals and not signals[row[1]].access_count]
        yield from self._most(never, "Agents were given", " and never used it")

    def _most(self, rows: list[tuple[int, str]], actor: str, end: str) -> Iterator[ReportLine]:
        best = sorted(rows)[: 4 * MOST["used"]]
        records = self._stores.records.many(id for _, id in best)
        told = [(-count, records[id]) for count, id in best if id in records and self._is_live(records[id])]
        for count, record in told[: MOST["used"] // 2]:
            times = "once" if count == 1 else f"{count:,} times"
            command = f"memd reject {record.id[:8]}" if end else ""
            yield ReportLine(text=f"{actor} {self._words(record)} {times}{end}", ids=(record.id,), command=command)

    # --- health --------------------------------------------------------------------------------------------------
    def _health(self) -> Iterator[ReportLine]:
        week = self._week
        failed = [row for row in self._stores.dead_letters.newest() if week.since <= row.at < week.until]
        if failed:
            text = (
                f"memd could not read {_count(len(failed), 'capture')}: {cut(without_secrets(failed[0].reason), SHORT)}"
            )
            yield ReportLine(text=text, ids=tuple(str(row.id) for row in failed[:5]), command="memd retry")
        if self._changes.secrets:
            yield ReportLine(text=f"memd cut {_count(self._changes.secrets, 'secret')} out of what was stored")
        days = [self._stores.remote.day(day.year * 10_000 + day.month * 100 + day.day) for day in week.days]
        if calls := sum(day.calls for day in days):
            tokens, wrong = sum(day.tokens for day in days), sum(day.failed + day.timed_out for day in days)
            failures = f"; {_count(wrong, 'call')} failed" if wrong else ""
            text = f"The remote model read sessions in {_count(calls, 'call')}, with {tokens:,} tokens{failures}"
            yield ReportLine(text=text, command="memd remote status" if wrong else "")

    # --- words ---------------------------------------------------------------------------------------------------
    def _is_told(self, record: Record) -> bool:
        """Whether the report may speak of a record: it is no pointer of memd's own, and the caller may see it."""
        own = record.provenance.source.startswith("memd:") and record.provenance.trust != "user"
        is_shown = record.status != "hidden" and not own
        return is_shown and (self._caller.permits is None or self._caller.permits(record))

    def _is_live(self, record: Record) -> bool:
        return record.status in LIVE and self._is_told(record)

    def _words(self, record: Record) -> str:
        return _quoted(_as_said(record), SHORT)

    def _place(self, pool: str) -> str:
        """Return the title of a pool as a person knows it."""
        if pool == PERSONAL:
            return "your own memory"
        if pool.startswith(AGENT):
            return f"the memory of {pool.removeprefix(AGENT)}"
        if pool.startswith(UNBOUND):
            return "folders without a project"
        return self._titles(pool) or pool


def cut(words: str, most: int) -> str:
    """Return words in one line of at most `most` characters."""
    words = " ".join(words.split())
    return words if len(words) <= most else f"{words[: most - 1].rstrip()}…"


def _quoted(words: str, most: int = WORDS) -> str:
    return f"“{cut(without_secrets(words), most)}”"


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def _said(record: Record) -> str:
    """Return who stated a record, as the beginning of a sentence."""
    said = record.provenance
    match said.trust:
        case "user":
            return "You said"
        case "assistant":
            return f"An agent in {said.source.partition(':')[0]} said"
        case "document":
            return f"{'A document' if said.author in ('', 'document') else said.author} said"
        case _:
            return "A tool said"


def _newsworthy(record: Record) -> tuple[bool, bool, float, str]:
    """Return the place of a record among new ones: first what the user confirmed or said, and what guides work."""
    return record.status != "active", record.type not in _TELLING, -record.signal.importance, record.id


def _as_said(record: Record) -> str:
    """Return a record's text; the user's own words where the text speaks of the user as of another."""
    record = shown(record).record
    quote = record.provenance.quote
    is_own = record.provenance.trust == "user" and quote and not _USER.search(quote)
    return quote if is_own and _USER.search(record.description) else record.description


def _actor(reason: str) -> str:
    return "You retired" if reason.startswith("the user ") or "accepted by the user" in reason else "memd retired"


def _because(reason: str) -> str:
    return f": {cut(without_secrets(reason), SHORT)}" if reason else ""
