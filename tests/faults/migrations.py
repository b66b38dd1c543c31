"""An older layout for the tests, and the way from it: each moves the archive's rows into a new environment.

Comes in: `python -m tests.faults.migrations FOLDER`, MEMD_FAIL for where to die. Goes out: a folder of the layout
before today's, as if the archive had lain in `heard/` under other names, in that of today. Invariant: the chain is the
same in both.
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import msgspec

from memd.daemon import failpoint
from memd.daemon.storage.durable_files import sync_tree
from memd.daemon.storage.layout_version import LAYOUT, Format, Written, bring_up
from memd.daemon.storage.lmdb_environment import Environment
from memd.daemon.world import World, real_world

OLD, NEW = ("info", "bodies"), ("meta", "blocks")
BEFORE = LAYOUT - 1


def _move(source: Path, target: Path, names: dict[str, str]) -> None:
    """Every row of some databases, under their new names, in an environment of its own that then takes its place."""
    fresh = target.with_name(target.name + ".new")
    shutil.rmtree(fresh, ignore_errors=True)
    old, new = Environment(source, tuple(names), durable=True), Environment(fresh, tuple(names.values()), durable=True)
    with old.read() as snapshot:
        for name, other in names.items():
            rows = list(snapshot.cursor(old.db(name)).iternext())
            new.write(lambda into, rows=rows, other=other: into.cursor(new.db(other)).putmulti(rows))
    old.close()
    new.close()
    fresh.rename(target)
    shutil.rmtree(source)


def upgrade(folder: Path, world: World) -> None:
    """Layout BEFORE to today's."""
    _move(folder / "heard", folder / "archive", dict(zip(OLD, NEW, strict=True)))


def downgrade(folder: Path, layout: int = BEFORE) -> None:
    """From today's layout to `layout`, of a folder that was cleanly closed."""
    archive = Environment(folder / "archive", NEW, durable=True)
    archive.write(lambda transaction: transaction.delete(b"indexed_seq", db=archive.db("meta")))
    archive.close()
    _move(folder / "archive", folder / "heard", dict(zip(NEW, OLD, strict=True)))
    (folder / "sums.json").unlink(missing_ok=True)
    told = Format(layout, (Written(layout, "0.0.1", "2025-01-01T00:00:00Z"),))
    (folder / "format.json").write_bytes(msgspec.json.encode(told))
    sync_tree(folder)


MIGRATIONS = {BEFORE: upgrade}


if __name__ == "__main__":
    failpoint.arm(os.environ.get("MEMD_FAIL", ""))
    bring_up(Path(sys.argv[1]), real_world(), layout=LAYOUT, migrations=MIGRATIONS)
