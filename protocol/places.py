"""Where memd's files and its socket are, for client and daemon alike.

Comes in: an environment and a uid. Goes out: paths. Pure: nothing is created or looked at here. Invariants: with
`MEMD_HOME` everything lies under that one folder; a socket path that would be too long for the kernel (107 bytes) moves
to a folder in the temporary directory, and the path then stands in the file `socket_file` for every client.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import msgspec

SOCKET_PATH_LIMIT = 103
"""Bytes of a Unix socket's path that every system takes."""


class Places(msgspec.Struct, frozen=True, kw_only=True):
    """The folders and files of one memd home."""

    data: Path
    state: Path
    config: Path
    run: Path

    @property
    def socket(self) -> Path:
        """The ROUTER's Unix socket."""
        return self.run / "memd.sock"

    @property
    def socket_file(self) -> Path:
        """A file that names the socket, for clients whose environment differs from the daemon's."""
        return self.state / "socket"

    @property
    def spool(self) -> Path:
        """The folder of the clients' spools."""
        return self.state / "spool"

    @property
    def log(self) -> Path:
        """The daemon's log file."""
        return self.state / "memd.log"


def places(environment: Mapping[str, str], uid: int) -> Places:
    """The places of this environment: `MEMD_HOME`, or the XDG folders; `TMPDIR` for a socket whose path is too long."""
    home = Path(environment.get("HOME") or "/")
    if root := environment.get("MEMD_HOME"):
        base = Path(root).absolute()
        data, state, config, run = base / "data", base / "state", base / "config", base / "run"
    else:
        data = Path(environment.get("XDG_DATA_HOME") or home / ".local/share") / "memd"
        state = Path(environment.get("XDG_STATE_HOME") or home / ".local/state") / "memd"
        config = Path(environment.get("XDG_CONFIG_HOME") or home / ".config") / "memd"
        runtime = environment.get("XDG_RUNTIME_DIR")
        run = Path(runtime) / "memd" if runtime else Path()
    if run == Path() or len(bytes(run / "memd.sock")) > SOCKET_PATH_LIMIT:
        from hashlib import blake2b  # it loads OpenSSL, which costs a client 3 ms

        mark = blake2b(bytes(data), digest_size=6).hexdigest()
        run = Path(environment.get("TMPDIR") or "/tmp") / f"memd-{uid}-{mark}"
    return Places(data=data, state=state, config=config, run=run)
