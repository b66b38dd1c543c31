"""An older layout for the tests, and the way from it: each moves the archive's rows into a new environment.

Comes in: `python -m tests.faults.migrations FOLDER`, MEMD_FAIL for where to die. Goes out: a folder of layout 0, where
the archive lay in `heard/` under other names, in the layout of today. Invariant: the chain is the same in both.
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import msgspec

from memd.daemon import failpoint
from memd.daemon.store.durable import sync_tree
from memd.daemon.store.environment import Environment
from memd.daemon.store.formats import LAYOUT, Format, Written, bring_up
from memd.daemon.world import World, real_world

OLD, NEW = ("info", "heads", "bodies"), ("meta", "headers", "payloads")


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
    """Layout 0 to 1."""
    _move(folder / "heard", folder / "archive", dict(zip(OLD, NEW, strict=True)))


def downgrade(folder: Path) -> None:
    """Layout 1 to 0, of a folder that was cleanly closed."""
    archive = Environment(folder / "archive", NEW, durable=True)
    archive.write(lambda transaction: transaction.delete(b"indexed_seq", db=archive.db("meta")))
    archive.close()
    _move(folder / "archive", folder / "heard", dict(zip(NEW, OLD, strict=True)))
    (folder / "sums.json").unlink(missing_ok=True)
    told = Format(0, (Written(0, "0.0.1", "2025-01-01T00:00:00Z"),))
    (folder / "format.json").write_bytes(msgspec.json.encode(told))
    sync_tree(folder)


MIGRATIONS = {0: upgrade}


if __name__ == "__main__":
    failpoint.arm(os.environ.get("MEMD_FAIL", ""))
    bring_up(Path(sys.argv[1]), real_world(), layout=LAYOUT, migrations=MIGRATIONS)
