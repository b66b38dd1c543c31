"""The projects whose shared memory the hook pulls, and whose patches it takes, when a session starts in them: a file
for each, which the hook reads without memd's environment. Its time is that of the last start (H2, G2)."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import msgspec

from ...protocol.places import Places
from ..python.folder import make_private, write_whole


class SessionPull(msgspec.Struct, frozen=True, kw_only=True):
    """A project. `folder`: the checkout whose sessions start a pull."""

    pool: str
    folder: str


_decoder = msgspec.json.Decoder(SessionPull)


def pulls_folder(places: Places) -> Path:
    """Return the folder of the files."""
    return places.hooks / "pulls"


def _file(places: Places, pool: str, ending: str = "json") -> Path:
    from hashlib import blake2b  # it loads OpenSSL, which costs a client 3 ms

    return pulls_folder(places) / f"{blake2b(pool.encode(), digest_size=12).hexdigest()}.{ending}"


def pull_at_start(places: Places, pool: str, checkout: str) -> None:
    """Pull when a session starts in a checkout of the project. Raises OSError, Refused."""
    _note(_file(places, pool), pool, checkout)


def _note(file: Path, pool: str, checkout: str) -> None:
    make_private(file.parent)
    write_whole(file, msgspec.json.encode(SessionPull(pool=pool, folder=os.path.realpath(checkout))) + b"\n")
    os.utime(file, (0, 0))  # the next session starts it


def stop_pulling(places: Places, pool: str) -> None:
    """Pull no more when a session starts in the project."""
    _file(places, pool).unlink(missing_ok=True)


def chosen_pull(places: Places, pool: str) -> SessionPull | None:
    """Return the project's choice; None if no session starts a pull, or if the file is damaged."""
    try:
        if not pulls_folder(places).exists():
            return None
        return _decoder.decode(_file(places, pool).read_bytes())
    except (OSError, msgspec.MsgspecError):
        return None


def pulling() -> list[str]:
    """Return the command line that the hook starts, but for the folder after it."""
    return [sys.executable, "-P", "-m", "memd.clients.cli.main", "share", "pull", "--quiet", "--cwd"]


def sync_at_start(places: Places, pool: str, checkout: str) -> None:
    """Take the patches of a trusted `.pi` folder when a session starts in a checkout. Raises OSError, Refused."""
    _note(_file(places, pool, "sync"), pool, checkout)


def stop_syncing(places: Places, pool: str) -> None:
    """Take no more patches when a session starts in the project."""
    _file(places, pool, "sync").unlink(missing_ok=True)


def syncing() -> list[str]:
    """Return the command line that the hook starts, but for the folder after it."""
    return [sys.executable, "-P", "-m", "memd.clients.cli.main", "pi", "sync", "--take-only", "--quiet", "--cwd"]
