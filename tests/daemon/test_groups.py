"""Captures that wait together are one group: one disk write, one answer each, and one that fails fails alone (P-12)."""

from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any, cast

import pytest

from memd.daemon.projections.pool_directory import PoolDirectory
from memd.daemon.services.capture.capture_writer import CaptureJob, CaptureWriter
from memd.daemon.services.capture.pauses import PauseRegister
from memd.daemon.services.events import CapturesCommitted, Topic
from memd.daemon.services.pools.identity import Identity
from memd.daemon.services.pools.pools_service import PoolOpening
from memd.daemon.services.write_thread import WriteThread
from memd.protocol.errors import MemdError
from memd.protocol.event import Origin, Said
from memd.protocol.reply import Taken
from memd.protocol.request import Capture
from memd.protocol.secret_gate import SecretGate
from memd.stages.secrets.scan import find, redact
from tests.daemon.living import AT, Running


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Running]:
    life = Running(tmp_path)
    yield life
    life.close()


def capture(number: int, at: str = AT) -> Capture:
    said = Said(turn=f"t{number}", at=at, role="user", text=f"The lamp{number} stands in room{number}.")
    return Capture(origin=Origin(host="h", session=f"s{number % 4}"), events=(said,))


def answers(life: Running, wishes: list[Capture]) -> list[Any]:
    """What each is answered once the write thread is through with all of them."""
    heard: list[Any] = [None] * len(wishes)
    pauses = PauseRegister(life.stores.folder, (), "/", life.world.now, lambda: "")
    identity = Identity(life.stores.aliases, life.world.monotonic)
    openings = PoolOpening(life.stores, identity, PoolDirectory(life.stores))
    monotonic = life.world.monotonic
    writer = WriteThread(
        CaptureWriter(
            life.stores,
            openings,
            pauses,
            Topic[CapturesCommitted](),
            nullcontext,
            monotonic,
            SecretGate(redact, bytes(32)),
            lambda _session, words: find(words),
        ),
        monotonic,
    )
    writer.start()
    writer.submit([CaptureJob(wish, lambda told, n=n: heard.__setitem__(n, told)) for n, wish in enumerate(wishes)])
    writer.stop()
    return heard


def test_a_capture_that_breaks_the_scan_fails_alone_P12(running: Running) -> None:
    wishes = [capture(n) for n in range(20)]
    wishes[7] = capture(7, at=cast(str, None))  # no client can send it: it stands for a fault of ours
    told = answers(running, wishes)
    assert isinstance(told[7], MemdError) and "failed on this request" in told[7].message
    assert [each.accepted for n, each in enumerate(told) if n != 7] == [1] * 19
    assert running.stores.archive.last == 19


def test_a_group_and_the_same_again_change_nothing_P7(running: Running) -> None:
    wishes = [capture(n) for n in range(100)]
    first, again = answers(running, wishes), answers(running, wishes)
    assert all(isinstance(each, Taken) and each.accepted == 1 for each in first)
    assert all(isinstance(each, Taken) and each.duplicate == 1 for each in again)
    assert running.stores.archive.last == 100
    assert running.stores.archive.log.verify() == 100
