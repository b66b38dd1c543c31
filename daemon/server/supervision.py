"""The service manager of this process: sd_notify, the watchdog, an inherited socket.

Without a manager nothing happens. The variables are removed from the environment, so that no child uses them.
"""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Callable, MutableMapping
from pathlib import Path

FIRST_FD = 3
log = logging.getLogger("memd")


class Supervision:
    """The service manager of this process, if it has one."""

    def __init__(self, environment: MutableMapping[str, str], monotonic: Callable[[], float]) -> None:
        self._address = environment.pop("NOTIFY_SOCKET", "")
        usec, pid = environment.pop("WATCHDOG_USEC", ""), environment.pop("WATCHDOG_PID", "")
        mine = not pid or pid == str(os.getpid())
        self._every_s = int(usec) / 2e6 if usec.isdecimal() and mine else 0.0
        self._monotonic, self._pinged_at = monotonic, 0.0
        self.socket: tuple[int, Path] | None = _inherited(environment)
        """A Unix socket that the manager listens on for us, and its path: it is the manager's to remove."""

    def tell(self, message: str) -> None:
        """Send one notification."""
        if not self._address:
            return
        address = "\0" + self._address[1:] if self._address[0] == "@" else self._address
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as channel:
            try:
                channel.connect(address)
                channel.sendall(message.encode())
            except OSError as error:
                log.warning("could not notify the service manager (%s): %s", message, error)

    def ping(self, is_well: Callable[[], bool]) -> None:
        """Tell the watchdog, twice in each of its intervals, that memd is well; it restarts memd otherwise."""
        now = self._monotonic()
        if self._every_s and now - self._pinged_at >= self._every_s and is_well():
            self._pinged_at = now
            self.tell("WATCHDOG=1")


def _inherited(environment: MutableMapping[str, str]) -> tuple[int, Path] | None:
    pid, count = environment.pop("LISTEN_PID", ""), environment.pop("LISTEN_FDS", "")
    environment.pop("LISTEN_FDNAMES", None)
    if pid != str(os.getpid()) or count != "1":
        return None
    with socket.socket(fileno=os.dup(FIRST_FD)) as handed:
        name = handed.getsockname()
    os.set_inheritable(FIRST_FD, False)
    return (FIRST_FD, Path(name)) if isinstance(name, str) and name.startswith("/") else None
