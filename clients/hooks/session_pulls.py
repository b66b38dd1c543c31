"""The projects whose shared memory the hook pulls when a session starts in them: one file each, which the hook reads
without memd's environment. The time of the file is that of the last start (H2)."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import msgspec

from ...protocol.places import Places
from ..python.folder import make_private, write_whole
from .notes import folder


class SessionPull(msgspec.Struct, frozen=True, kw_only=True):
    """A project. `folder`: the checkout whose sessions start a pull."""

    pool: str
    folder: str


_decoder = msgspec.json.Decoder(SessionPull)


def pulls_folder(places: Places) -> Path:
    """Return the folder of the files."""
    return folder(places.state) / "pulls"


def _file(places: Places, pool: str) -> Path:
    from hashlib import blake2b  # it loads OpenSSL, which costs a client 3 ms

    return pulls_folder(places) / f"{blake2b(pool.encode(), digest_size=12).hexdigest()}.json"


def pull_at_start(places: Places, pool: str, checkout: str) -> None:
    """Pull when a session starts in a checkout of the project. Raises OSError, Refused."""
    file = _file(places, pool)
    make_private(file.parent)
    write_whole(file, msgspec.json.encode(SessionPull(pool=pool, folder=os.path.realpath(checkout))) + b"\n")
    os.utime(file, (0, 0))  # the next session pulls


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
