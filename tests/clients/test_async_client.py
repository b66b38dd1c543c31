"""The asyncio client against a real daemon and a real ROUTER: many calls at once, deadlines, the spool (U7, W10)."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from memd.clients.python import AsyncClient, Client
from memd.clients.python.spool_writer import SpoolReceipt
from memd.protocol import reply, request
from memd.protocol.errors import DaemonDown, DeadlineExceeded, Disabled, NotFound, Refused
from memd.protocol.event import Origin, Said
from memd.protocol.places import Places

AT = "2026-03-04T18:30:00+01:00"


def test_calls_at_once_each_get_their_own_answer_U7(daemon: Any) -> None:
    async def work() -> None:
        async with AsyncClient(daemon.places, deadline_ms=20_000) as client:
            kept = await asyncio.gather(*(client.remember(f"The lamp{n} stands in room{n}.") for n in range(20)))
            found = await asyncio.gather(*(client.get(each.record.id) for each in kept))
            assert [each.content for each in found] == [f"The lamp{n} stands in room{n}." for n in range(20)]
            told = await client.recall("where is lamp7")
            assert told.hits[0].record.id == kept[7].record.id
            assert "lamp" in (await client.profile()).text
            assert (await client.why(kept[0].record.id)).quote_holds
            with pytest.raises(NotFound):
                await client.get("nothing")

    asyncio.run(work())


def test_each_request_is_that_of_the_other_client_U7(daemon: Any) -> None:
    others = {"ask", "close", "drain", "disabled", "spool"}
    requests = {name for name in dir(Client) if not name.startswith("_")} - others
    assert {name for name in requests if getattr(AsyncClient, name, None) is getattr(Client, name)} == requests

    async def work() -> None:
        async with AsyncClient(daemon.places, deadline_ms=20_000) as client:
            kept = await client.remember("The lighthouse rotates clockwise.")
            asked: dict[str, Any] = {"keywords": ["lighthouse"], "explain": True, "include_retired": True, "deep": True}
            told = await client.recall("what rotates", threshold=0.01, perspective="sailor", **asked)
            assert told.hits[0].record.id == kept.record.id and told.hits[0].parts and told.hits[0].lines
            assert (await client.feedback(told.recall, used=[kept.record.id])).records == 1
            assert [each.id for each in (await client.list()).records] == [kept.record.id]
            given = await client.grant("ci", pools=["personal"])
            async with AsyncClient(daemon.places, deadline_ms=20_000, token=given.token) as bearer:
                assert (await bearer.recall("what rotates")).hits
                with pytest.raises(Refused):
                    await bearer.remember("The lighthouse is blue.")

    asyncio.run(work())


def test_it_connects_again_after_a_restart_and_spools_meanwhile_W10(daemon: Any) -> None:
    async def work() -> None:
        async with AsyncClient(daemon.places, deadline_ms=20_000) as client:
            await client.status()
            daemon.kill()
            event = Said(turn="1", at=AT, role="user", text="I use vim.")
            assert isinstance(await client.capture_or_spool(Origin(host="h", session="s"), [event]), SpoolReceipt)
            with pytest.raises(DaemonDown):
                await client.status()
            await asyncio.to_thread(daemon.start)
            assert (await client.drain()).delivered == 1
            assert (await client.status()).archive_seq == 1

    asyncio.run(work())


def test_a_stopped_daemon_costs_the_deadline_and_the_connection_lives(daemon: Any) -> None:
    async def work() -> None:
        async with AsyncClient(daemon.places, deadline_ms=300) as client:
            await client.status()
            daemon.halt()
            try:
                with pytest.raises(DeadlineExceeded):
                    await client.status()
            finally:
                daemon.go_on()
            for _ in range(50):
                try:
                    assert (await client.status()).pid == daemon.process.pid
                    return
                except DeadlineExceeded:
                    continue
            raise AssertionError("it never answered again")

    asyncio.run(work())


def test_a_late_reply_finds_nobody(here: Places, listener: Any) -> None:
    listener.answer = lambda wish: [] if isinstance(wish, request.Distil) else reply.Done(pending=3)

    async def work() -> None:
        async with AsyncClient(here, deadline_ms=300) as client:
            with pytest.raises(DeadlineExceeded):
                await client.ask(request.Distil(), reply.Done)
            assert (await client.ask(request.Stop(), reply.Done)).pending == 3

    asyncio.run(work())


def test_disabled_it_sends_nothing_W14(here: Places, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMD_DISABLED", "1")

    async def work() -> None:
        async with AsyncClient(here) as client:
            assert (await client.recall("vim")).abstained
            with pytest.raises(Disabled):
                await client.status()

    asyncio.run(work())
    assert not Path(here.spool).exists()
