"""The panel's process: it binds a port of the loopback, prints a link, serves, and ends when nobody uses it.

Invariants: one panel a home, reached by a socket in the folder `run`, which only this user can open; the link's token
is in its fragment, which no browser sends.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import uvicorn

from ...protocol.errors import Unavailable
from ...protocol.places import Places
from ..python.async_client import AsyncClient
from .application import application
from .guard import Guard, Keys

IDLE_S = 30 * 60
"""Seconds without a request after which the panel ends."""

DOWN_S = 60
"""Seconds without a daemon after which the panel ends."""

TICK_S = 5
STATIC = Path(__file__).parent / "static"


class _Server(uvicorn.Server):
    """Ends after a signal with exit code 0; uvicorn's own would raise the signal again."""

    capture_signals = contextlib.nullcontext  # pyright: ignore[reportAssignmentType]

    def end(self) -> None:
        self.should_exit = True


@dataclass
class PanelServer:
    """A running panel. `announce` receives each new link once the panel serves."""

    places: Places
    folder: str
    port: int = 0
    idle_s: float = IDLE_S
    down_s: float = DOWN_S
    announce: Callable[[str], None] = print

    def __post_init__(self) -> None:
        self.keys = Keys(swapped=lambda: redirect_file(self.places).unlink(missing_ok=True))

    async def serve(self) -> None:
        """Serve until nobody has used the panel for `idle_s`, the daemon is gone, or a signal ends it. Raises
        Unavailable for a port that is taken."""
        listener = _listener(self.port)
        self.port = listener.getsockname()[1]
        async with AsyncClient(self.places) as client:
            guard = Guard(application(client, self.folder), self.keys, self.port, STATIC)
            server = _Server(_config(guard))
            for name in (signal.SIGINT, signal.SIGTERM):
                asyncio.get_running_loop().add_signal_handler(name, server.end)
            links = await _serve_links(self.places, self.link)
            watcher = asyncio.create_task(self._watch(server, guard, client))
            self.announce(self.link())
            try:
                await server.serve([listener])
            finally:
                watcher.cancel()
                links.close()
                socket_path(self.places).unlink(missing_ok=True)
                redirect_file(self.places).unlink(missing_ok=True)

    def link(self) -> str:
        """Return a link that opens the panel once."""
        return f"http://127.0.0.1:{self.port}/#token={self.keys.token()}"

    async def _watch(self, server: _Server, guard: Guard, client: AsyncClient) -> None:
        answered = time.monotonic()
        while not server.should_exit:
            await asyncio.sleep(min(TICK_S, self.idle_s, self.down_s))
            try:
                await client.list(limit=1)
                answered = time.monotonic()
            except Unavailable:
                pass
            now = time.monotonic()
            if now - guard.last_request > self.idle_s or now - answered > self.down_s:
                server.end()  # never set to False: a signal may have ended it meanwhile


def socket_path(places: Places) -> Path:
    """Return the path of the socket that gives a link to a panel that runs."""
    return places.run / "panel.sock"


def redirect_file(places: Places) -> Path:
    """Return the file that a browser opens: the link itself would be in the list of processes."""
    return places.state / "panel.html"


def link_of_running(places: Places) -> str:
    """Return a new link to the panel that runs already, "" if none does."""
    with socket.socket(socket.AF_UNIX) as connection, contextlib.suppress(OSError):
        connection.settimeout(2)
        connection.connect(str(socket_path(places)))
        return connection.recv(4096).decode().strip()
    return ""


async def _serve_links(places: Places, link: Callable[[], str]) -> asyncio.Server:
    async def answer(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(link().encode() + b"\n")
        with contextlib.suppress(OSError):
            await writer.drain()
        writer.close()

    path = socket_path(places)
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    server = await asyncio.start_unix_server(answer, path)
    os.chmod(path, 0o600)
    return server


def _listener(port: int) -> socket.socket:
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind(("127.0.0.1", port))
        listener.listen()
    except OSError as error:
        listener.close()
        raise Unavailable(f"port {port} can't be used: {error.strerror}", hint="omit --port") from error
    return listener


def _config(guard: Guard) -> uvicorn.Config:
    return uvicorn.Config(
        guard,
        interface="asgi3",
        log_config=None,
        access_log=False,
        lifespan="off",
        ws="none",
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=1,
        limit_concurrency=64,
    )


def open_browser(places: Places, link: str, open_page: Callable[[str], bool]) -> None:
    """Open a link in the user's browser, through a file that only the user can read."""
    path = redirect_file(places)
    if is_confined(default_browser()):
        open_page(link)
        return
    path.unlink(missing_ok=True)
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="ascii") as file:
        file.write(f'<!doctype html><meta http-equiv="refresh" content="0;url={link}"><title>memd</title>\n')
    open_page(path.as_uri())


def default_browser() -> str:
    """Return the name of the desktop file of the user's browser, "" where none is set."""
    with contextlib.suppress(OSError, subprocess.SubprocessError):
        command = ["xdg-settings", "get", "default-web-browser"]
        return subprocess.run(command, capture_output=True, check=False, text=True, timeout=2).stdout.strip()
    return ""


def is_confined(desktop_file: str) -> bool:
    """Return whether a browser from a snap or a flatpak, which can't read the file, is behind a desktop file."""
    folders = (*os.environ.get("XDG_DATA_DIRS", "/usr/local/share:/usr/share").split(":"), "/var/lib/snapd/desktop")
    for folder in folders:
        with contextlib.suppress(OSError, UnicodeDecodeError):
            text = (Path(folder) / "applications" / desktop_file).read_text(encoding="utf-8")
            return "/snap/" in text or "flatpak run" in text
    return False
