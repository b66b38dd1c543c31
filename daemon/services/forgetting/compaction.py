"""Compaction: rewrites LMDB files without the bytes of removed rows, and folds old counts.

Invariants: a copy is whole and on the disk before it takes the file's name; the environment is closed before the swap,
because one that stays open serves the old file and swallows writes; a kill leaves the old file or the new one, and at
most a stray copy, which `clear` removes; folded counts are in the journal before the payloads that they replace go.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from itertools import islice
from pathlib import Path

from ....protocol.errors import JournalCorrupt, Stopping
from ....protocol.fading import Folded
from ....protocol.operation import AnyOperation
from ....protocol.reply import JobState
from ...failpoint import reach
from ...projections.folded import TableSet
from ...projections.keywords import Keywords
from ...projections.stores import Stores
from ...projections.turns import TurnIndex
from ...storage.durable_files import sync
from ...storage.folder_swap import fresh_folder, promote
from ...storage.lmdb_environment import Environment
from ...storage.log import Log
from ..jobs import Jobs, Progress, Report
from ..write_thread import Writer

SUFFIX = ".compact"
Rebuild = Callable[[Sequence[str], Callable[[int, int, str], None]], object]
"""Rebuilds projections in a child process and swaps them in."""

KINDS = frozenset({"counted", "slept", "folded"})
GROUP = 1000
TALLY_BYTES = 100
"""Approximate size of the counts of one record."""

REPLAYED = 500
"""Operations replayed at a time."""

NAMES = ("tables", "keywords", "turns")


def renew(stores: Stores) -> None:
    """Build the tables and the keyword indexes again, and swap each in when it is complete."""
    place, last = stores.projections_folder, stores.journal.last
    folder = fresh_folder(place)
    folded = TableSet(folder / "tables")
    while group := stores.journal.slice(folded.tables.applied_seq, REPLAYED):
        folded.tables.apply(group)
    folded.close()
    stores.tables.replace(lambda: promote(place, "tables"))
    reach("renew:tables")
    keywords = Keywords(folder / "keywords", stores.records, stores.keywords.around)
    keywords.fill(stores.records.everything(), last)
    keywords.close()
    stores.keywords.replace(lambda: promote(place, "keywords"))
    reach("renew:keywords")
    turns = TurnIndex(folder / "turns", stores.archive)
    turns.catch_up()
    turns.close()
    stores.turns.replace(lambda: promote(place, "turns"))
    reach("renew:turns")
    shutil.rmtree(folder, ignore_errors=True)


def fold_counters(stores: Stores, writer: Writer) -> int:
    """Replace old counts by their sums, if that frees enough; return the freed bytes."""
    seqs, size = _foldable(stores.journal.log)
    if size < 2 * TALLY_BYTES * (GROUP + sum(sum(counts.values()) for counts in stores.records.tally().values())):
        return 0

    def work() -> int:
        counters = stores.counters
        tallies, operations = counters.everything(), list[AnyOperation]()
        while part := dict(islice(tallies, GROUP)):
            operations.append(Folded(tallies=part))
        stores.commit([*operations, Folded(pools=counters.rests())])
        reach("fold:committed")
        stores.journal.log.erase(seqs)
        return size

    return writer.run(work).result()


def _foldable(log: Log) -> tuple[list[int], int]:
    """Return the entries with payloads that a fold replaces, and their bytes."""
    seqs: list[int] = []
    size = 0
    for entry in log.read():
        if entry.header.kind in KINDS and entry.payload is not None:
            seqs.append(entry.seq)
            size += len(entry.payload)
    return seqs, size


def compact(environment: Environment) -> int:
    """Replace an environment's file by a compact copy; return the freed bytes. Raises StorageFull: nothing changed."""
    before = environment.size_bytes()
    folder = environment.folder
    fresh = folder.with_name(folder.name + SUFFIX)
    shutil.rmtree(fresh, ignore_errors=True)
    try:
        environment.rewrite(fresh)
        reach("compact:copied")

        def move() -> None:
            reach("compact:closed")
            (fresh / "data.mdb").replace(folder / "data.mdb")
            reach("compact:renamed")
            sync(folder)

        environment.replace(move)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
    return before - environment.size_bytes()


def compact_log(log: Log) -> int:
    """Compact a log and check that its end is unchanged. Raises StorageFull, JournalCorrupt."""
    freed = compact(log.environment)
    if log.last and log.fingerprint(log.last) != log.tip.hex():
        raise JournalCorrupt(
            f"the {log.environment.folder.name} lost its last entries", hint="see `memd restore-backup`"
        )
    return freed


def start_compaction(stores: Stores, writer: Writer, jobs: Jobs, rebuild: Rebuild) -> JobState:
    """Start to compact every store, one after the other; captures wait while a log is copied. Raises Unavailable."""
    swaps: tuple[tuple[str, Callable[[], object]], ...] = (
        ("journal", lambda: compact_log(stores.journal.log)),
        ("archive", lambda: compact_log(stores.archive.log)),
        ("vectors", lambda: compact(stores.vector_store.environment)),
    )

    def work(progress: Progress) -> Report:
        before = stores.size_bytes()
        total = len(swaps) + 1
        progress(0, total, "folding old counts")
        folded = fold_counters(stores, writer)
        for number, (name, swap) in enumerate(swaps):
            progress(number, total, name)
            writer.run(swap).result()
            if jobs.stopping.is_set():
                raise Stopping(
                    "memd is stopping", hint="finished stores stay compacted; run `memd maintain compact` again"
                )
        rebuild(NAMES, lambda done, of, detail: progress(len(swaps), total, detail))
        after = stores.size_bytes()
        progress(total, total, "done")
        return {
            "before_bytes": sum(before.values()),
            "after_bytes": sum(after.values()),
            "folded_bytes": folded,
            **{f"{name}_before_bytes": size for name, size in before.items()},
            **{f"{name}_after_bytes": size for name, size in after.items()},
        }

    return jobs.start("compact", work)


def clear(data: Path) -> None:
    """Remove the remains of an interrupted compaction, before anything else runs."""
    for stray in (*data.glob(f"*{SUFFIX}"), *data.glob(f"projections/*{SUFFIX}")):
        shutil.rmtree(stray, ignore_errors=True)
