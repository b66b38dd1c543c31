"""What the clients' tests share: a small real ROUTER that answers what the test tells it to, and the `memd` command."""

import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import zmq

from memd.clients.python.launch import stop
from memd.protocol import reply, request, wire
from memd.protocol.errors import MemdError
from memd.protocol.places import Places, places
from tests import preloaded
from tests.conftest import RunningDaemon, read_at_start

COMMANDS = preloaded.Starter("memd")
COMMAND_S = 120.0

Answer = Callable[[request.AnyRequest], Any]


class Listener:
    """A ROUTER in a thread. `answer` gives data, an error, or a list of raw bodies; `seen` holds what came."""

    def __init__(self, path: Path) -> None:
        self.seen: list[request.AnyRequest] = []
        self.answer: Answer = lambda wish: reply.Done(pending=0)
        self._context = zmq.Context()
        self._path = path
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._serve)
        self._ready = threading.Event()

    def __enter__(self) -> "Listener":
        self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._thread.start()
        assert self._ready.wait(5)
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        self._context.term()

    def _serve(self) -> None:
        router = self._context.socket(zmq.ROUTER)
        router.linger = 0
        router.bind(f"ipc://{self._path}")
        self._ready.set()
        try:
            while not self._stop.is_set():
                if router.poll(10):
                    identity, body = router.recv_multipart()
                    wish = wire.decode_request(body)
                    self.seen.append(wish)
                    for part in self._bodies(wish, wire.form(body)):
                        router.send_multipart([identity, part])
        finally:
            router.close()

    def _bodies(self, wish: request.AnyRequest, form: wire.Form) -> list[bytes]:
        try:
            data = self.answer(wish)
        except MemdError as error:
            return [wire.encode_error(error, wish.rid, form)]
        if isinstance(data, list):
            return data
        return [wire.encode_data(data, wish.rid, form)]


@pytest.fixture
def ended(home: dict[str, str]) -> Iterator[None]:
    """Ends whatever daemon the test left behind."""
    yield
    stop(places(home, os.getuid()))


@pytest.fixture
def here(tmp_path: Path) -> Places:
    """Places of a home that no daemon serves."""
    return places({"MEMD_HOME": str(tmp_path / "home"), "TMPDIR": str(tmp_path)}, 0)


@pytest.fixture
def listener(here: Places) -> Iterator[Listener]:
    """A ROUTER where the daemon would listen."""
    with Listener(here.socket) as running:
        yield running


@pytest.fixture
def serve() -> type[Listener]:
    """The ROUTER itself, for tests that start and stop it."""
    return Listener


class Told:
    """What a `memd` command said: its exit code, its text, and its JSON where it printed one."""

    def __init__(self, done: subprocess.CompletedProcess[str]) -> None:
        self.code, self.text, self.errors = done.returncode, done.stdout, done.stderr

    @property
    def json(self) -> Any:
        """The envelope; the only thing on standard output."""
        return msgspec.json.decode(self.text)

    @property
    def data(self) -> Any:
        """The data of an envelope that says that it went well."""
        assert self.json["ok"], self.text
        return self.json["data"]


def memd_in(home: dict[str, str]) -> Callable[..., Told]:
    """Runs `memd` as a user would, in this home."""

    def run(*arguments: str, input: str | None = None, **changes: str) -> Told:
        command = [sys.executable, "-P", "-m", "memd.clients.cli.main", *arguments]
        environment = {**home, "COLUMNS": "80", **changes}
        if read_at_start(environment) == read_at_start(os.environ):
            return Told(preloaded.run(COMMANDS, arguments, environment, input, COMMAND_S))
        done = subprocess.run(
            command, capture_output=True, text=True, input=input, env=environment, timeout=COMMAND_S, check=False
        )
        return Told(done)

    return run


@pytest.fixture
def memd(home: dict[str, str]) -> Callable[..., Told]:
    """Runs `memd` in the test's home."""
    return memd_in(home)


@pytest.fixture
def shared_memd(shared_daemon: RunningDaemon) -> Callable[..., Told]:
    """Runs `memd` in the home of the module's daemon."""
    return memd_in(shared_daemon.environment)
