"""A home for one measurement: a temporary folder with a daemon, both gone afterwards.

Comes in: nothing. Goes out: the places of a running daemon. Invariant: the user's own memory is never touched.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from ...protocol.places import Places, places
from ..python import launch


@contextmanager
def temporary_home(prefix: str = "memd-bench-", keep: bool = False) -> Generator[Places]:
    """A running daemon in a folder of its own; with `keep` the folder stays, without its daemon."""
    folder = Path(tempfile.mkdtemp(prefix=prefix))
    environment = {**os.environ, "MEMD_HOME": str(folder)}
    where = places(environment, os.getuid())
    try:
        process, begin = launch.spawn(where, environment)
        try:
            launch.wait(process, where, begin)
            yield where
        finally:
            launch.end(process, where)
    finally:
        if not keep:
            shutil.rmtree(folder, ignore_errors=True)
            if not where.run.is_relative_to(folder):
                shutil.rmtree(where.run, ignore_errors=True)
