"""A child that opens data folders as the daemon would on a machine that was started anew, and checks what it finds.

Comes in, a line each on standard input: a folder, and the byte of the trace at which the power went. Goes out, a line
each: `ok`, or what is wrong. It is a child because a damaged store may kill whoever maps it; that is a finding too.
"""

from __future__ import annotations

import logging
import sys
import tempfile
from pathlib import Path

from memd.daemon.projections.folded import open_tables
from memd.daemon.projections.stores import Stores
from memd.daemon.storage import run_marker
from memd.daemon.storage.layout_version import bring_up
from memd.daemon.world import real_world
from memd.models import registry
from memd.protocol.block import plain
from memd.protocol.errors import MemdError
from memd.protocol.event import text
from tests.faults.migrations import MIGRATIONS
from tests.faults.recording import Promise, load


def check(stores: Stores, promises: list[Promise]) -> str:
    """What is wrong with opened stores, "" if they hold what was promised and nothing else."""
    stores.journal.log.verify()
    stores.archive.log.verify()
    seen: set[tuple[str, str]] = set()
    for _, captured in stores.archive.after(0, 1_000_000):
        turn = captured.document, captured.event.turn
        if turn in seen and not captured.replaces:
            return f"the turn {turn} is there twice"
        seen.add(turn)
    for promise in promises:
        if promise.what == "turn":
            document, turn = promise.name.split("\0")
            captured = stores.archive.turn(document, turn)
            if captured is None or text(captured.event) != promise.words:
                return f"the acknowledged turn {turn} reads {captured}"
        elif promise.what == "gone":
            for file in stores.folder.rglob("*"):
                if file.is_file() and promise.words.encode() in plain(file.read_bytes()):
                    return f"{promise.words!r} was forgotten and stands in {file.name}"
        else:
            record = stores.records.get(promise.name)
            if record is None or promise.words not in (record.content, record.provenance.quote):
                return f"the acknowledged record {promise.words!r} reads {record}"
            if promise.name not in stores.keywords.search(promise.words, [record.pool], 50, past=True)[0]:
                return f"the acknowledged record {promise.words!r} is not found by its words"
    return _compare_with_replay(stores)


def _compare_with_replay(stores: Stores) -> str:
    with tempfile.TemporaryDirectory(dir=stores.folder) as scratch:
        fresh = open_tables(Path(scratch) / "tables")
        while group := stores.journal.slice(fresh.tables.applied_seq, 500):
            fresh.tables.apply(group)
        live, replayed = list(stores.records.everything()), list(fresh.records.everything())
        fresh.tables.close()
    return "" if live == replayed else "the records are not what the journal says"


def opened(folder: Path, promises: list[Promise]) -> str:
    """Open, check, close."""
    try:
        bring_up(folder, real_world(), migrations=MIGRATIONS)
        stores = Stores(folder, real_world(), registry.info(), ballast_bytes=20_000)
    except MemdError as error:
        return f"{type(error).__name__}: {error.message}"
    try:
        return check(stores, promises)
    except MemdError as error:
        return f"{type(error).__name__}: {error.message}"
    finally:
        stores.close()


def main() -> None:
    """Serve lines until there are none."""
    logging.disable(logging.CRITICAL)
    promises = load(Path(sys.argv[1]))
    boot = Path(sys.argv[1]).with_name("boot_id")
    boot.write_text("another start of the machine")
    run_marker.BOOT_ID = boot
    for line in sys.stdin:
        folder, at = line.split()
        told = opened(Path(folder), [promise for promise in promises if promise.holds(int(at))])
        sys.stdout.write((told or "ok").replace("\n", " ") + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
