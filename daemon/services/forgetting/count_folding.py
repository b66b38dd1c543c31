"""Old counts folded into one state, so that looking at records does not grow the journal for ever (`memd compact`).

Comes in: the stores. Goes out: `folded` operations, and the bytes of the payloads they stand for. Invariants: the state
is in the journal, durably, before any payload goes; headers stay and the chain verifies; nothing is folded that would
not at least halve.
"""

from __future__ import annotations

from itertools import islice

from ....protocol.fading import Folded
from ....protocol.operation import AnyOperation
from ...failpoint import reach
from ...projections.stores import Stores
from ...storage.log import Log
from ..write_thread import Writer

KINDS = frozenset({"counted", "slept", "folded"})
GROUP = 1000
TALLY_BYTES = 100
"""About what the state of one record takes."""


def fold_counters(stores: Stores, writer: Writer) -> int:
    """Fold what was counted and slept so far, if that frees enough; bytes of the payloads that went."""
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
    """The entries whose payloads a fold makes needless, and their bytes."""
    seqs: list[int] = []
    size = 0
    for entry in log.read():
        if entry.header.kind in KINDS and entry.payload is not None:
            seqs.append(entry.seq)
            size += len(entry.payload)
    return seqs, size
