"""`memd verify`: checks that all records follow from the journal and that each quote equals its capture.

Read-only but for a replay below `building`. Live tables are compared row by row with a replay up to their own seq; an
index that differs is compared a second time before it counts as damaged, because the daemon may be writing.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from ....protocol.errors import MemdError
from ....protocol.event import text
from ....protocol.record import LIVE, Record, Span
from ...projections import turns as turns_of
from ...projections.folded import TableSet
from ...projections.keywords import text_of
from ...projections.replay import ReplayLogs, ReplayProgress, ReportProgress, TaskReport
from ...projections.terms import TermDocument, check_of, contents
from ...projections.tokens import TermTokens
from ...storage.archive import Archive, decode
from ...storage.checksummed_rows import difference, unseal
from ...storage.folder_swap import fresh_folder
from ...storage.lmdb_environment import Environment
from ...storage.log import Log
from ...world import World

AGAIN_S = 2.0
"""Seconds before a second comparison of an index that differs; it commits every second."""

RESTORE = "`memd restore-backup` restores the newest backup"


class Verification:
    """One check of a data folder. `damage`: store, problem and remedy of each finding."""

    def __init__(self, folder: Path, world: World, emit: ReportProgress) -> None:
        self._folder, self._world, self._emit = folder, world, emit
        self._course = ReplayProgress(emit, 0)
        self._unmade = False
        self.damage: list[str] = []
        self.report: TaskReport = {}

    def run(self) -> TaskReport:
        """Run all checks in order; later ones rest on earlier ones."""
        try:
            sources = ReplayLogs(self._folder, self._world)
        except MemdError as error:
            self._damaged("the logs", error.message, RESTORE)
            return self._verdict()
        operations, captures = sources.journal.last, sources.archive.last
        self._course = ReplayProgress(self._emit, operations, captures, operations, operations)
        journal_holds = self._chain("journal", "operations", sources.journal.log)
        archive_holds = self._chain("archive", "captures", sources.archive.log)
        if archive_holds and not sources.archive.is_indexed():
            self._damaged("archive", "its index does not match its checksum", "`memd down && memd up` writes it anew")
        if journal_holds:
            building = fresh_folder(sources.projections)
            try:
                fresh = sources.fold(building / "tables", self._course)
                self._course.finish(operations, "comparing tables with a replay")
                self._unmade = not any(
                    (sources.projections / name).exists() for name in ("tables", "keywords", "turns")
                )
                if self._unmade:  # after a restore; the next start replays the journal
                    self.report["records"] = _records(fresh)
                else:
                    self._projections(sources, fresh)
                if archive_holds:
                    self._quotes(fresh, sources.archive)
                fresh.close()
            finally:
                shutil.rmtree(building, ignore_errors=True)
        return self._verdict()

    def _damaged(self, store: str, problem: str, remedy: str) -> None:
        self.damage.append(f"{store}: {problem}; {remedy}")

    def _chain(self, name: str, unit: str, log: Log) -> bool:
        count = 0
        try:
            for _ in log.read():
                count += 1
                if count % 5000 == 0:
                    self._course.at(count, f"checking the chain of the {name}")
        except MemdError as error:
            self._damaged(name, error.message, RESTORE)
            return False
        self.report[unit] = count
        self._course.finish(count, f"checked the chain of the {name}")
        return True

    def _projections(self, sources: ReplayLogs, fresh: TableSet) -> None:
        rebuild = "`memd rebuild {}` rebuilds it".format
        checks: tuple[tuple[str, Callable[[], list[str]]], ...] = (
            ("tables", lambda: self._tables(sources, fresh)),
            ("keywords", lambda: self._keywords(sources, fresh)),
            ("turns", lambda: self._turns(sources)),
            ("vectors", self._vectors),
        )
        for name, check in checks:
            self._course.at(0, f"comparing {name} with a replay")
            for problem in _told(check) if name == "vectors" else _twice(check):
                self._damaged(
                    name, problem, "memd computes them again automatically" if name == "vectors" else rebuild(name)
                )

    def _tables(self, sources: ReplayLogs, fresh: TableSet) -> list[str]:
        live = TableSet(sources.projections / "tables", readonly=True)
        differences: list[str] = []
        with live.tables.environment.read() as snapshot:
            stored = live.tables.applied_in(snapshot)
            _follow(sources, fresh, stored)
            behind = fresh.tables.applied_seq - stored
            with fresh.tables.environment.read() as replayed:
                for name in live.tables.environment.handles if not behind else ():
                    tables = live.tables.environment.db(name), fresh.tables.environment.db(name)
                    count, key = difference((snapshot, tables[0]), (replayed, tables[1]))
                    if count:
                        differences.append(f"{count:,} rows of {name} differ from a replay, the first at {_shown(key)}")
        live.tables.environment.close()
        if behind:
            differences.append(f"{behind:,} operations of the journal are missing")
        self.report["records"] = _records(fresh)
        return differences

    def _keywords(self, sources: ReplayLogs, fresh: TableSet) -> list[str]:
        folder = sources.projections / "keywords"
        mark, stored = _applied(folder), dict(contents(folder))
        _follow(sources, fresh, None)
        texts = (text_of(record, fresh.records) for record in fresh.records.everything())
        wrong = _differing_texts(texts, stored)
        return _named([id for id in wrong if max(fresh.sources.history(id), default=0) <= mark], "records")

    def _turns(self, sources: ReplayLogs) -> list[str]:
        folder = sources.projections / "turns"
        mark, stored = _applied(folder), dict(contents(folder))
        texts: dict[int, TermDocument] = {}
        for entry in sources.archive.log.read():
            if (captured := decode(entry)) is None:
                continue
            texts.pop(captured.replaces, None)
            if (said := turns_of.text_of(entry.seq, captured)) is not None:
                texts[entry.seq] = said
        wrong = _differing_texts(texts.values(), stored)
        return _named([id for id in wrong if int(id) <= mark], "turns")

    def _vectors(self) -> list[str]:
        environment = Environment(self._folder / "vectors", ("meta", "vectors"), durable=False, readonly=True)
        damaged = 0
        with environment.read() as transaction:
            for _, stored in transaction.cursor(environment.db("vectors")).iternext():
                try:
                    unseal(b"", stored, "a vector")
                except MemdError:
                    damaged += 1
        environment.close()
        return [f"{damaged:,} vectors are damaged"] if damaged else []

    def _quotes(self, fresh: TableSet, archive: Archive) -> None:
        held = expired = 0
        for number, record in enumerate(fresh.records.everything(), 1):
            if record.status not in LIVE or not record.provenance.spans:
                continue
            try:
                holds = quote_holds(record, archive)
            except MemdError as error:
                self._damaged("archive", error.message, RESTORE)
                return
            if holds is False:
                self._damaged("records", f"the quote of {record.id} differs from the capture", "`memd why` shows it")
            held, expired = held + (holds is True), expired + (holds is None)
            if number % 2000 == 0:
                self._course.at(number, "checking quotes against the archive")
        self.report["quotes"], self.report["expired"] = held, expired

    def _verdict(self) -> TaskReport:
        report = self.report
        if self.damage:
            subject = "1 thing is" if len(self.damage) == 1 else f"{len(self.damage)} things are"
            words = f"Verification failed: {subject} damaged."
        else:
            operations, captures, records, quotes = (
                _so_many(report[name], name) for name in ("operations", "captures", "records", "quotes")
            )
            words = (
                f"Everything memd believes follows from its journal: {operations}, chain intact; {captures}, chain "
                f"intact; {records} as a replay gives them; {quotes} found word for word"
            ) + (f", {report['expired']:,} whose source has expired." if report["expired"] else ".")
            words += " memd rebuilds the search indexes from it at the next start." if self._unmade else ""
        return {"verdict": words, "intact": int(not self.damage), "damage": self.damage, **report}


def verify(folder: Path, world: World, emit: ReportProgress) -> TaskReport:
    """Return the report on a data folder: `verdict`, `intact` (1 or 0), `damage`, and counts."""
    return Verification(folder, world, emit).run()


def quote_holds(record: Record, archive: Archive) -> bool | None:
    """Return whether any version of the turn has the quote at its span; None where no version is retained."""
    span, is_retained = record.provenance.spans[0], False
    for said in _versions(span, archive):
        is_retained = True
        if said.startswith(record.provenance.quote):
            return True
    return False if is_retained else None


def _versions(span: Span, archive: Archive) -> Iterator[str]:
    """Yield the words of a span, from the newest version of the turn to the oldest."""
    seq = archive.seq_of(span.document, span.turn)
    while seq and (entry := archive.log.get(seq)) is not None and (captured := decode(entry)) is not None:
        yield text(captured.event)[span.start : span.end]
        seq = captured.replaces


def _records(fresh: TableSet) -> int:
    return sum(sum(counts.values()) for counts in fresh.records.tally().values())


def _follow(sources: ReplayLogs, fresh: TableSet, upto: int | None) -> None:
    """Replay up to a seq, or to the end."""
    while True:
        applied = fresh.tables.applied_seq
        limit = 500 if upto is None else min(500, upto - applied)
        group = sources.journal.slice(applied, limit) if limit > 0 else []
        if not group:
            return
        fresh.tables.apply(group)


def _told(check: Callable[[], list[str]]) -> list[str]:
    try:
        return check()
    except (MemdError, OSError, ValueError) as error:
        return [f"it can't be read: {error}"]


def _twice(check: Callable[[], list[str]]) -> list[str]:
    """Return the problems that remain after an index had time to commit."""
    if not _told(check):
        return []
    time.sleep(AGAIN_S)
    return _told(check)


def _shown(key: bytes) -> str:
    return key.decode() if key.isascii() and key.decode().isprintable() else key.hex()


def _applied(folder: Path) -> int:
    mark = folder / "applied_seq"
    return int(mark.read_text()) if mark.exists() else 0


def _differing_texts(texts: Iterable[TermDocument], stored: dict[str, bytes]) -> list[str]:
    """Return ids of texts that an index lacks, has wrong, or should not have."""
    tokens, wrong = TermTokens(), list[str]()
    for document in texts:
        own, replaced = tokens.document(document.words), tokens.document(document.replaced)
        if stored.pop(document.id, b"") != check_of(document.group, document.live, own, replaced):
            wrong.append(document.id)
    return [*wrong, *stored]


def _named(ids: list[str], nouns: str) -> list[str]:
    return [f"the index of {len(ids):,} {nouns} is out of date, first {ids[0]}"] if ids else []


def _so_many(number: object, nouns: str) -> str:
    return f"{number:,} {nouns if number != 1 else nouns[:-1]}"
