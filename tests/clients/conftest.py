"""A small real ROUTER for the client's tests: it speaks the protocol and answers what the test tells it to."""

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import zmq

from memd.protocol import reply, request, wire
from memd.protocol.errors import MemdError
from memd.protocol.places import Places, places

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
                    for part in self._bodies(wish):
                        router.send_multipart([identity, part])
        finally:
            router.close()

    def _bodies(self, wish: request.AnyRequest) -> list[bytes]:
        try:
            data = self.answer(wish)
        except MemdError as error:
            return [wire.encode_error(error, wish.rid, "msgpack")]
        if isinstance(data, list):
            return data
        return [wire.encode_data(data, wish.rid, "msgpack")]


@pytest.fixture
def here(tmp_path: Path) -> Places:
    """Places of a home that no daemon serves."""
    return places({"MEMD_HOME": str(tmp_path / "home")}, 0, str(tmp_path))


@pytest.fixture
def listener(here: Places) -> Iterator[Listener]:
    """A ROUTER where the daemon would listen."""
    with Listener(here.socket) as running:
        yield running


@pytest.fixture
def serve() -> type[Listener]:
    """The ROUTER itself, for tests that start and stop it."""
    return Listener
