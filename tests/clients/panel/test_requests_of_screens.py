"""What a screen asks the daemon for (U4)."""

import asyncio
from collections import Counter
from pathlib import Path
from typing import TypeVar

import httpx
import pytest

from memd.clients.panel.application import application
from memd.clients.python.async_client import AsyncClient
from memd.protocol.request import Request
from tests.conftest import RunningDaemon

T = TypeVar("T")


class CountingClient(AsyncClient):
    """A client that counts its requests by their names."""

    asked: Counter[str]

    async def ask(self, message: Request, data: type[T]) -> T:
        self.asked[type(message).__name__] += 1
        return await super().ask(message, data)


async def requests_of(daemon: RunningDaemon, folder: Path, path: str) -> Counter[str]:
    """Return how often a screen sends each request."""
    client = CountingClient(daemon.places)
    client.asked = Counter()
    async with client:
        transport = httpx.ASGITransport(application(client, str(folder)))
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as browser:
            assert (await browser.get(path)).status_code == 200
        return client.asked


@pytest.mark.parametrize(
    "path", ["/", "/memories", "/map", "/inbox", "/triage", "/activity", "/readers", "/reports", "/skills", "/agents"]
)
def test_a_screen_asks_once_for_the_counts_and_for_the_state_U4(
    daemon: RunningDaemon, tmp_path: Path, path: str
) -> None:
    asked = asyncio.run(requests_of(daemon, tmp_path, path))
    assert asked["Pools"] == 1 and asked["GetStatus"] == 1, asked
