"""The folders of one home: made with mode 0700 for their user alone; check_home raises where that is not possible."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from ...protocol.errors import Refused
from ...protocol.places import Places

NETWORK_FILE_SYSTEMS = frozenset({"nfs", "nfs4", "cifs", "smb3", "9p", "fuse.sshfs", "afs", "ceph"})


def check_home(places: Places) -> None:
    """Create the folders with mode 0700. Raises Refused where they would not be safe."""
    if os.environ.get("SUDO_UID", str(os.getuid())) != str(os.getuid()):
        raise Refused("memd does not run under sudo", hint="run it as the user who owns the memory")
    _check_owner(places)
    for folder in (places.data, places.state, places.config, places.run, places.spool):
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            status = folder.stat()
        except OSError as error:
            raise Refused(
                f"{folder}: {error.strerror}", hint="set MEMD_HOME to a folder that memd can write"
            ) from error
        if status.st_uid != os.getuid():
            raise Refused(f"the owner of {folder} is uid {status.st_uid}", hint="use a home of your own: MEMD_HOME")
        if stat.S_IMODE(status.st_mode) & 0o077:
            raise Refused(f"other users can enter {folder}", hint=f"chmod 700 {folder}")
    if (kind := _file_system(places.data)) in NETWORK_FILE_SYSTEMS:
        raise Refused(
            f"{places.data} is on a {kind} file system",
            hint="memd needs a local disk for memory-mapped files: set MEMD_HOME to a folder on one",
        )


def _check_owner(places: Places) -> None:
    """Refuse the home of another user, as `su` leaves it in the environment."""
    home = Path(os.environ.get("MEMD_HOME") or os.environ.get("HOME") or "/").absolute()
    inside = any(folder.is_relative_to(home) for folder in (places.data, places.state, places.config))
    if inside and home.exists() and (owner := home.stat().st_uid) != os.getuid():
        raise Refused(f"{home} belongs to uid {owner}", hint="use a home of your own: HOME, or MEMD_HOME")


def _file_system(folder: Path) -> str:
    """Return the type of a folder's file system; "" where the system does not say."""
    mounts = Path("/proc/self/mounts")
    if not mounts.exists():
        return ""
    best, kind = "", ""
    for line in mounts.read_text(encoding="utf-8", errors="replace").splitlines():
        fields = line.split(" ")
        point = fields[1].replace("\\040", " ")
        if len(point) > len(best) and folder.resolve().is_relative_to(point):
            best, kind = point, fields[2]
    return kind
