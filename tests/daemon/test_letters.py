"""Captures that fail: listed with reason and attempts, tried again, forgotten (P-12, T10)."""

import contextlib
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from memd.daemon.storage.journal import JournalLog
from memd.daemon.world import real_world
from memd.protocol.block import plain
from memd.protocol.errors import InvalidRequest, MemdError, NotFound
from memd.protocol.event import Origin, Said
from memd.protocol.operation import Distilled, Failure, Retried
from memd.protocol.reply import JobState
from memd.protocol.request import Forget

AT = "2026-03-04T18:30:00+01:00"
ORIGIN = Origin(host="h", session="s")


def ended(client: Any, state: JobState) -> dict[str, Any]:
    while state.state == "running":
        time.sleep(0.02)
        state = client.job(state.id)
    assert state.problem is None, state.problem
    return dict(state.report)


def operations(client: Any, kind: type) -> list[Any]:
    return [each.operation for each in client.journal(limit=500).entries if isinstance(each.operation, kind)]


@pytest.fixture
def failed(daemon: Any) -> Iterator[Any]:
    """A daemon with two dead letters: the journal says that captures 1 and 2 failed when their turn came."""
    with daemon.client() as client:
        events = [
            Said(turn="1", at=AT, role="user", text="I prefer tabs for indentation."),
            Said(turn="2", at=AT, role="user", text="We decided to keep the xylofon service on SQLite."),
        ]
        assert client.capture(ORIGIN, events).accepted == 2
    daemon.kill()
    journal = JournalLog(daemon.places.data / "journal", real_world())
    failures = tuple(Failure(seq, "h:s", str(seq), "route", "ValueError: bad") for seq in (1, 2))
    journal.commit([Distilled(archive_seq=2, captures=2, candidates=0, failed=failures)])
    journal.close()
    daemon.start()
    yield daemon


def test_a_failed_capture_is_listed_and_succeeds_when_tried_again_P12(failed: Any) -> None:
    with failed.client() as client:
        assert client.status().pending == 0 and len(client.status().failures) == 2
        listed = client.dead_letters()
        assert [(each.id, each.attempts, each.reason) for each in listed.letters] == [
            (2, 1, "ValueError: bad"),
            (1, 1, "ValueError: bad"),
        ]
        report = ended(client, client.retry([1]))
        assert report["done"] == ["1"] and report["failed"] == []
        assert [each.content for each in client.list().records] == ["I prefer tabs for indentation."]
        assert [each.id for each in client.dead_letters().letters] == [2]
        assert ended(client, client.retry(all=True))["done"] == ["2"]
        assert client.dead_letters().total == 0 and client.status().failures == ()
        before = client.status()
        with pytest.raises(NotFound):
            client.retry([1])
        with pytest.raises(InvalidRequest):
            client.retry([1], all=True)
        assert client.status().journal_seq == before.journal_seq
        assert len(operations(client, Retried)) == 2
    failed.kill()
    failed.start()
    with failed.client() as client:
        assert client.dead_letters().total == 0 and sum(client.status().records.values()) >= 1


def test_one_that_fails_again_stays_with_its_last_reason_and_attempts_P12(failed: Any) -> None:
    failed.terminate()
    journal = JournalLog(failed.places.data / "journal", real_world())
    again = Failure(1, "h:s", "1", "worker", "worse")
    journal.commit([Retried(archive_seq=1, document="h:s", turn="1", failed=again)])
    journal.close()
    failed.start()
    with failed.client() as client:
        letter = next(each for each in client.dead_letters().letters if each.id == 1)
        assert (letter.attempts, letter.stage, letter.reason) == (2, "worker", "worse")


def test_the_words_of_a_failed_capture_can_be_forgotten_T10(failed: Any) -> None:
    with failed.client() as client:
        report = ended(client, client.ask(Forget(letter=2), JobState))
        assert report["left"] == [] and [each.id for each in client.dead_letters().letters] == [1]
        with pytest.raises(NotFound):
            client.ask(Forget(letter=2), JobState)
    home = Path(failed.environment["MEMD_HOME"])
    assert [path for path in home.rglob("*") if path.is_file() and b"xylofon" in plain(path.read_bytes())] == []


@pytest.mark.slow
def test_a_retry_that_is_cut_off_loses_and_doubles_nothing_P12(failed: Any) -> None:
    for place in ("journal:before-commit", "journal:committed"):
        failed.terminate()
        failed.environment["MEMD_FAIL"] = place
        failed.start()
        with failed.client() as client, contextlib.suppress(MemdError):
            ended(client, client.retry(all=True))
        failed.process.wait(20)
        del failed.environment["MEMD_FAIL"]
        failed.start()
    with failed.client() as client:
        if client.dead_letters().total:
            ended(client, client.retry(all=True))
        contents = sorted(each.content for each in client.list().records)
        assert contents == sorted(set(contents)) and len(contents) == 2
        assert client.dead_letters().total == 0
