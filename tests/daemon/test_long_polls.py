"""A client that waits for new operations is told of them, and asks no second time meanwhile (U9)."""

import asyncio
import json
import os
import subprocess
import sys
import threading
import time
from typing import Any

from memd.clients.python.async_client import AsyncClient
from memd.daemon.server.long_polls import LongPolls
from memd.protocol.errors import Unavailable
from memd.protocol.event import Origin, Said
from tests.conftest import RunningDaemon

LONG_MS = 60_000


def last(daemon: Any) -> int:
    daemon.settle()
    with daemon.client() as client:
        return client.journal(limit=1).last


def test_a_waiting_client_is_told_at_once_and_others_are_served_meanwhile_U9(daemon: Any) -> None:
    before = last(daemon)

    async def work() -> None:
        async with AsyncClient(daemon.places) as client:
            waiting = [asyncio.ensure_future(client.journal(before, wait_ms=LONG_MS)) for _ in range(3)]
            await asyncio.sleep(0.3)
            assert (await client.status()).journal_seq == before
            assert not any(each.done() for each in waiting)
            kept = await client.remember("The cellar lamp is green.")
            for page in await asyncio.wait_for(asyncio.gather(*waiting), 20):
                assert page.entries[0].seq == before + 1
            seen = "".join(repr(entry.operation) for entry in (await client.journal(before)).entries)
            assert kept.record.id in seen

    asyncio.run(work())


def test_without_news_the_answer_is_empty_after_the_wait_and_at_once_where_there_is_some_U9(daemon: Any) -> None:
    before = last(daemon)
    with daemon.client() as client:
        begin = time.monotonic()
        assert client.journal(before, wait_ms=300).entries == ()
        assert time.monotonic() - begin >= 0.3
        client.remember("The cellar lamp is green.")
        assert client.journal(0, 1, wait_ms=LONG_MS).entries


def test_one_who_goes_away_while_waiting_leaves_nothing_U9(daemon: Any) -> None:
    before = last(daemon)

    async def go_away() -> None:
        client = AsyncClient(daemon.places)
        waiting = asyncio.ensure_future(client.journal(before, wait_ms=LONG_MS))
        await asyncio.sleep(0.3)
        await client.close()
        waiting.cancel()

    asyncio.run(go_away())
    with daemon.client() as client:
        client.remember("The cellar lamp is green.")
        assert client.journal(before, wait_ms=LONG_MS).entries


def test_a_daemon_that_stops_does_not_wait_for_who_waits_U9(home: dict[str, str]) -> None:
    daemon = RunningDaemon(home)
    daemon.start()
    before = last(daemon)
    told: list[Exception] = []

    def wait() -> None:
        try:
            with daemon.client() as client:
                client.journal(before, wait_ms=LONG_MS)
        except Exception as error:
            told.append(error)

    thread = threading.Thread(target=wait)
    thread.start()
    time.sleep(0.3)
    daemon.terminate()
    thread.join(30)
    assert isinstance(told[0], Unavailable)


def test_tail_follows_by_one_waiting_request_U9(daemon: RunningDaemon) -> None:
    command = [sys.executable, "-P", "-m", "memd.clients.cli.main", "tail", "-f", "--json", "-n", "1"]
    with daemon.client() as client:
        client.remember("The attic lamp is red.")
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**os.environ, **daemon.environment}) as tail:
        assert tail.stdout
        assert json.loads(tail.stdout.readline())["ok"]
        with daemon.client() as client:
            kept = client.remember("The cellar lamp is green.").record
        assert kept.id in tail.stdout.readline()
        tail.terminate()


def test_what_the_daemon_does_can_be_followed_with_its_reasons_U9(daemon: RunningDaemon) -> None:
    """The daemon tells each transition once and in order."""
    origin = Origin(host="claude-code", session="one", cwd="/", live=True)
    event = Said(turn="t", at="2026-11-02T09:00:00Z", role="user", text="I prefer tabs over spaces in Go code.")
    seen: list[tuple[str, str]] = []
    with daemon.client() as client:
        last = client.activity().last
        client.capture(origin, (event,))
        client.capture(Origin(host="shell", session="two", cwd="/private/x"), ())
        client.distil()
        while "distilled" not in [name for name, _ in seen]:
            page = client.activity(last, wait_ms=LONG_MS)
            assert page.events, "nothing more was told"
            last = page.events[-1].seq
            seen += [(each.event, each.what) for each in page.events]
        assert client.activity(last + 1000, 3).events[0].seq == 1, "a client of an earlier run begins anew"
    of_session = [name for name, what in seen if what.startswith("claude-code:one")]
    assert of_session[:3] == ["captured", "distilling", "distilled"], seen


def test_a_poll_is_due_by_time_or_by_news_and_once() -> None:
    now, woken, news = [0.0], list[int](), [False]
    polls = LongPolls[str](lambda: now[0], lambda: woken.append(1))
    polls.notify()
    assert not woken and polls.wait_s(10.0) == 10.0
    polls.add("by news", lambda: news[0], 5.0)
    polls.add("by time", lambda: False, 1.0)
    assert (polls.due(), polls.wait_s(10.0)) == ([], 1.0)
    now[0] = 1.0
    assert (polls.due(), polls.wait_s(10.0)) == (["by time"], 4.0)
    news[0] = True
    polls.notify()
    assert woken == [1]
    assert (polls.due(), polls.due(), polls.wait_s(10.0)) == (["by news"], [], 10.0)
