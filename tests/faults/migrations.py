"""A real migration for the tests, and a child that runs it: every capture's time moves into a new log, word for word.

Comes in: `python -m tests.faults.migrations FOLDER`, MEMD_FAIL for where to die. Goes out: the folder in layout 2.
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

from memd.daemon import failpoint
from memd.daemon.store.formats import bring_up
from memd.daemon.store.log import Draft, Log
from memd.daemon.world import World, real_world

LAYOUT = 2


def move_kinds(folder: Path, world: World) -> None:
    """Layout 1 to 2: entries of the archive are called `heard`; headers change, so the log is written anew."""
    old, new = Log(folder / "archive", world, extra=("turns", "documents")), Log(folder / "archive.new", world)
    new.append([Draft("heard", 2, entry.payload) for entry in old.read() if entry.payload is not None])
    old.close()
    new.close()
    shutil.rmtree(folder / "archive")
    (folder / "archive.new").rename(folder / "archive")


MIGRATIONS = {1: move_kinds}


def heard(folder: Path) -> list[bytes]:
    """The payloads of a migrated archive; every entry must be of the new kind."""
    log = Log(folder / "archive", real_world())
    entries = list(log.read())
    log.close()
    assert all(entry.header.kind == "heard" for entry in entries)
    return [entry.payload or b"" for entry in entries]


if __name__ == "__main__":
    failpoint.arm(os.environ.get("MEMD_FAIL", ""))
    bring_up(Path(sys.argv[1]), real_world(), layout=LAYOUT, migrations=MIGRATIONS)
