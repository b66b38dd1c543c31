"""Folders that are this user's alone.

Comes in: a path. Goes out: a folder of mode 0700, and so are its parents if they had to be made: `Path.mkdir` gives its
mode to the last one only, and the daemon refuses a state folder that others may enter.
"""

from __future__ import annotations

import os
from pathlib import Path

from ...protocol.errors import Refused


def make_private(folder: Path) -> None:
    """Makes the folder, or takes others' permissions from it. Raises Refused if it belongs to another user; OSError."""
    missing = [folder, *folder.parents]
    for each in reversed([each for each in missing if not each.exists()]):
        each.mkdir(mode=0o700, exist_ok=True)
        each.chmod(0o700)
    seen = folder.stat()
    if seen.st_uid != os.getuid():
        raise Refused(f"{folder} belongs to uid {seen.st_uid}", hint="set MEMD_HOME to a folder of your own")
    if seen.st_mode & 0o077:
        folder.chmod(0o700)
