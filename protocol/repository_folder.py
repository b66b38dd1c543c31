"""The top folder of a repository, found without git; the same for clients and daemon."""

from __future__ import annotations

import os
from pathlib import Path


def repository_folder(folder: Path) -> Path | None:
    """Return the nearest folder at or above one that has a `.git`: a folder, a file of a worktree, or a broken link."""
    return next((place for place in (folder, *folder.parents) if os.path.lexists(place / ".git")), None)
