"""What clients leave in the spool folder the daemon takes in by itself, once, and loses nothing (W10, P-12, T10)."""

import json
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from memd.clients.python import Client
from memd.clients.python.spool_writer import Spool
from memd.protocol import request
from memd.protocol.errors import DaemonDown
from memd.protocol.event import Origin
from memd.protocol.places import places
from tests.conftest import RunningDaemon

AT = "2026-03-04T18:30:00+01:00"


def line(turn: str, text: str, **origin: Any) -> str:
    event = {"event": "said", "turn": turn, "at": AT, "role": "user", "text": text}
    body = {"request": "capture", "origin": {"host": "h", "session": "s", **origin}, "events": [event]}
    return json.dumps(body) + "\n"


@pytest.fixture
def spool(home: dict[str, str]) -> Path:
    """The spool folder of a home that no daemon serves yet."""
    folder = places(home, os.getuid()).spool
    folder.parent.mkdir(mode=0o700)
    folder.mkdir(mode=0o700)
    return folder


@pytest.fixture
def start(home: dict[str, str]) -> Iterator[Callable[..., RunningDaemon]]:
    """Starts a daemon that looks into its spool often."""
    started: list[RunningDaemon] = []

    def go(**changes: str) -> RunningDaemon:
        running = RunningDaemon({**home, "MEMD_SPOOL_S": "0.05", **changes})
        running.start()
        started.append(running)
        return running

    yield go
    for running in started:
        if running.process is not None and running.process.poll() is None:
            running.terminate()


def until(test: Callable[[], Any], seconds: float = 90.0) -> Any:
    end = time.monotonic() + seconds
    while not (found := test()):
        assert time.monotonic() < end
        time.sleep(0.02)
    return found


def test_lines_are_taken_in_order_and_the_file_goes_with_its_writer_W10(spool: Path, start: Any) -> None:
    file = spool / "h-999999999-1.lines"  # no process has that number
    file.write_text(line("1", "The lamp is on.") + line("2", "The lamp is off."))
    running = start()
    with running.client() as client:
        until(lambda: client.status().archive_seq == 2)
        assert client.session("h:s").turns == {"said": 2}
        until(lambda: list(spool.iterdir()) == [])
        assert "h-999999999-1.lines" in client.status().last["spool taken"].what


def test_a_shells_bytes_that_are_not_utf8_are_replaced_and_its_lines_are_taken_W10(spool: Path, start: Any) -> None:
    lines = line("1", "ls caf*") + line("2", "The lamp is off.", cwd="/srv/caf*")
    (spool / "h-999999999-1.lines").write_bytes(lines.encode().replace(b"*", b"\xe9"))
    running = start()
    with running.client() as client:
        until(lambda: client.status().archive_seq == 2)
        until(lambda: list(spool.iterdir()) == [])
        assert "refused" not in client.status().last


def test_a_file_whose_writer_lives_stays_and_is_taken_again(spool: Path, start: Any) -> None:
    file = spool / f"h-{os.getpid()}-1.lines"
    file.write_text(line("1", "The lamp is on."))
    running = start()
    with running.client() as client:
        until(lambda: client.status().archive_seq == 1)
        until(lambda: file.exists() and file.stat().st_size == 0)
        with file.open("a") as writing:
            writing.write(line("2", "The lamp is off."))
        until(lambda: client.status().archive_seq == 2)
        assert file.stat().st_mode & 0o777 == 0o600


def test_what_does_not_read_is_put_aside_and_told_P12(spool: Path, start: Any) -> None:
    naive = line("2", "x").replace("+01:00", "")
    good = line("1", "The lamp is on.")
    (spool / "h-999999999-1.lines").write_text(good + '{"request": "stop"}\n{"bro\n' + naive + '{"torn')
    running = start()
    with running.client() as client:
        until(lambda: client.status().archive_seq == 1)
        until(lambda: not list(spool.glob("*.taken")))
        assert "refused" in client.status().last
    (rejected,) = spool.glob("*.rejected")
    content = rejected.read_text()
    assert all(part in content for part in ('"stop"', '{"bro', naive.strip(), '{"torn')) and good not in content


def test_what_is_refused_beside_a_later_versions_request_is_put_aside_once_W10(spool: Path, start: Any) -> None:
    file = spool / "h-999999999-1.lines"
    file.write_text('{"request": "remember", "text": 1}\n{"request": "of_tomorrow"}\n')
    with start().client() as client:
        until(lambda: "spool waits" in client.status().last)
        time.sleep(0.5)
        assert not list(spool.glob("*.rejected"))
        assert list(spool.glob("*.taken"))


def test_a_client_with_a_pass_writes_nothing_into_the_spool_A1(spool: Path, home: dict[str, str]) -> None:
    client = Client(places(home, os.getuid()), token="a pass")
    with pytest.raises(DaemonDown):
        client.remember_or_spool("I always want margay passes.")
    assert not list(spool.iterdir())


def test_frames_of_a_client_that_never_came_back_are_taken_too(spool: Path, start: Any) -> None:
    python = Spool(spool)
    python.append(request.Remember(text="The lamp is on.", turn="1", at=AT, origin=Origin(host="h", session="s")))
    running = start()
    with running.client() as client:
        time.sleep(0.3)
        assert python.waiting() == 1  # its own client delivers it, for half a minute
        os.utime(python.path, (time.time() - 60, time.time() - 60))
        until(lambda: client.list().records)
        assert client.list().records[0].content == "The lamp is on." and python.waiting() == 0


def test_a_crash_in_the_middle_takes_it_again_and_doubles_nothing_P12(spool: Path, start: Any) -> None:
    (spool / "h-999999999-1.lines").write_text("".join(line(str(n), f"The lamp{n} is on.") for n in range(300)))
    running = start()
    with running.client() as client:
        until(lambda: client.status().archive_seq > 0)
        running.kill()
    running.start()
    with running.client() as client:
        until(lambda: not list(spool.glob("*.taken")) and not list(spool.glob("*.lines")))
        assert client.session("h:s").turns == {"said": 300}


def test_what_was_forgotten_does_not_come_back_from_a_spool_T10(spool: Path, start: Any) -> None:
    running = start(MEMD_SPOOL_S="10000")
    with running.client() as client:
        kept = client.remember(
            request.Remember(text="The lamp is violet.", turn="1", at=AT, origin=Origin(host="h", session="s"))
        )
        file = spool / f"h-{os.getpid()}-1.lines"
        file.write_text(line("1", "The lamp is violet.") + line("2", "The door is blue."))
        job = client.forget([kept.record.id])
        until(lambda: client.job(job.id).state != "running")
    words = [each.read_text() for each in spool.iterdir() if each.suffix != ".lock"]
    assert not any("violet" in each for each in words) and any("blue" in each for each in words)
    assert file.stat().st_mode & 0o777 == 0o600, "its writer would make it as its umask says"


def test_what_is_paused_is_done_with_and_status_says_skipped_U6(spool: Path, start: Any) -> None:
    running = start()
    with running.client() as client:
        client.pause()
        (spool / "h-999999999-1.lines").write_text(line("1", "The lamp is on."))
        until(lambda: "skipped" in client.status().last)
        assert "paused" in client.status().last["skipped"].what
        until(lambda: list(spool.iterdir()) == [])
        assert client.status().archive_seq == 0
