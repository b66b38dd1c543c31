"""Paths of memd's files and socket, and the check whether memd is disabled; the same for clients and daemon.

Invariants: with `MEMD_HOME` everything is below that folder; a socket path too long for the kernel (107 bytes) is in
the temporary directory instead, and the file `socket_file` has that path.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import msgspec

SOCKET_PATH_LIMIT = 103
"""Maximum length in bytes of a Unix socket's path on all systems."""

DISABLED_FILE = "disabled"
_FALSE = frozenset({"", "0", "false", "no", "off"})


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
        """The file with the socket's path, for clients whose environment differs from the daemon's."""
        return self.state / "socket"

    @property
    def spool(self) -> Path:
        """The folder of the clients' spools."""
        return self.state / "spool"

    @property
    def hooks(self) -> Path:
        """The folder of the hook program and its files; `*.md` have the profile for hosts that read it from a file."""
        return self.state / "hooks"

    @property
    def lock(self) -> Path:
        """The file that the daemon locks while it runs, with its process id."""
        return self.data / "lock"

    def remote_key(self, host: str) -> Path:
        """The file with the key for a remote model's server, `host:port`; only the process that calls it reads it."""
        name = "".join(c if c.isalnum() or c in ".-" else "_" for c in host)
        return self.config / "remote_keys" / name

    @property
    def share(self) -> Path:
        """The folder with the keys of the own partitions and, a project, the bare repository that carries them."""
        return self.data / "share"

    @property
    def log(self) -> Path:
        """The daemon's log file."""
        return self.state / "memd.log"


def places(environment: Mapping[str, str], uid: int) -> Places:
    """Compute the places from `MEMD_HOME` or the XDG folders; `TMPDIR` is for a socket whose path is too long."""
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


def why_disabled(environment: Mapping[str, str], places: Places) -> str:
    """Return the variable or file that disables memd for this user or process (W14), "" while it is enabled.
    `MEMD_DISABLED=0` does not override the file."""
    value = environment.get("MEMD_DISABLED", "")
    if value.strip().lower() not in _FALSE:
        return f"MEMD_DISABLED={value}"
    file = os.path.join(places.config, DISABLED_FILE)  # text, not Path: this runs for each event
    return file if os.path.exists(file) else ""  # another user's folder counts as absent
