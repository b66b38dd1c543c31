"""The spool: what can't be delivered now is durable, in order, without secrets, and leaves when acknowledged (W10)."""

import multiprocessing
import os
import stat
from pathlib import Path
from typing import Any

import msgspec
import pytest

from memd.clients.python.client import Client, remembering
from memd.clients.python.spool_writer import SPOOL_LIMIT, Drained, Spool, SpoolReceipt, append_lines
from memd.protocol import reply, request, wire
from memd.protocol.errors import DaemonDown, InvalidRequest, StorageFull, StoreError, TooLarge, UnknownRequest
from memd.protocol.event import Origin, Ran, Said, ToolCalled
from memd.protocol.frames import framed
from memd.protocol.places import Places

AT = "2026-03-04T18:30:00+01:00"
KEY = "AKIA" + "IOSFODNN7EXAMPLE"


def wish(text: str) -> request.Remember:
    return request.Remember(text=text, turn=text[:20], at=AT, origin=Origin(host="test", session="s1"))


def refuse(message: str) -> object:
    raise InvalidRequest(message)


def texts(spool: Spool) -> list[str]:
    got: list[str] = []
    spool.drain(lambda each: got.append(each.text))  # type: ignore[union-attr]
    return got


def test_what_waits_comes_out_in_order_and_once(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "spool")
    assert [spool.append(wish(f"fact {n}")).waiting for n in range(3)] == [1, 2, 3]
    assert texts(Spool(tmp_path / "spool")) == ["fact 0", "fact 1", "fact 2"]
    assert (texts(spool), spool.path.stat().st_size) == ([], 0)


def test_modes_are_private_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        spool = Spool(tmp_path / "state" / "spool")
        spool.append(wish("x"))
    finally:
        os.umask(before)
    for folder in (spool.path.parent, tmp_path / "state"):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in spool.path.parent.iterdir()} == {0o600}


def line_of(message: request.Request) -> bytes:
    return wire.encode_request(message, "json") + b"\n"


def test_a_file_of_lines_holds_requests_of_other_languages_without_their_secrets_P18(tmp_path: Path) -> None:
    file = tmp_path / "spool" / "test-1-1.lines"
    file.parent.mkdir()
    long = Ran(turn="2", at=AT, command=f"{'word ' * 20}{KEY} {'more ' * 20}")  # the limit is inside the secret
    captured = request.Capture(origin=Origin(host="h", session=KEY), events=(long,))
    content = line_of(wish(f"the key is {KEY} <private>mine</private>")) + line_of(captured)
    assert append_lines(file, content, command_limit=110) == 2
    assert append_lines(file, line_of(wish("caf\xe9")).replace("caf\xe9".encode(), b"caf\xe9")) == 1
    remembered, ran, other = map(wire.decode_request, file.read_bytes().splitlines())
    assert isinstance(remembered, request.Remember) and isinstance(ran, request.Capture)
    assert remembered.text == "the key is [redacted:aws-access-key] [private]"
    assert isinstance(other, request.Remember) and other.text == "caf\ufffd"
    (event,) = ran.events
    assert isinstance(event, Ran) and event.command == f"{'word ' * 20}[redacted:"
    assert KEY.encode() not in file.read_bytes() and stat.S_IMODE(file.stat().st_mode) == 0o600


@pytest.mark.parametrize(
    ("name", "content", "error"),
    [
        ("notes.txt", line_of(wish("x")), InvalidRequest),
        ("test-1-1.lines", line_of(wish("x")) + b"{", InvalidRequest),
        ("test-1-1.lines", line_of(request.GetStatus()), InvalidRequest),
        ("test-1-1.lines", line_of(msgspec.structs.replace(wish("x"), token="pass")), InvalidRequest),
        ("missing/test-1-1.lines", line_of(wish("x")), StoreError),
    ],
)
def test_a_file_of_lines_takes_nothing_else_W10(
    tmp_path: Path, name: str, content: bytes, error: type[Exception]
) -> None:
    with pytest.raises(error):
        append_lines(tmp_path / name, content)
    assert not list(tmp_path.iterdir())


def test_a_full_file_of_lines_refuses_more_W10(tmp_path: Path) -> None:
    file = tmp_path / "test-1-1.lines"
    with file.open("wb") as full:
        full.truncate(SPOOL_LIMIT)
    with pytest.raises(TooLarge):
        append_lines(file, line_of(wish("x")))
    assert file.stat().st_size == SPOOL_LIMIT


def test_secrets_never_reach_the_disk(tmp_path: Path) -> None:
    """P-18: the spool is the first place a captured text lies."""
    spool = Spool(tmp_path / "spool")
    spool.append(wish(f"the key is {KEY}"))
    events = (
        Said(turn="1", at=AT, role="user", text=f"use {KEY}"),
        ToolCalled(turn="2", at=AT, name="Bash", arguments=f"export K={KEY}"),
    )
    spool.append(request.Capture(origin=Origin(host="test", session="s1"), events=events))
    content = spool.path.read_bytes()
    assert KEY.encode() not in content
    assert content.count(b"[redacted:aws-access-key]") == 3


def test_what_was_not_acknowledged_stays(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "spool")
    for n in range(4):
        spool.append(wish(f"fact {n}"))
    got: list[str] = []

    def send(each: request.Capture | request.Remember) -> None:
        if len(got) == 2:
            raise DaemonDown("the daemon is not running")
        got.append(each.text)  # type: ignore[union-attr]

    assert spool.drain(send) == Drained(delivered=2, left=2, reason="the daemon is not running")
    assert (got, texts(spool)) == (["fact 0", "fact 1"], ["fact 2", "fact 3"])


def test_what_comes_while_draining_stays(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "spool")
    spool.append(wish("first"))
    assert spool.drain(lambda each: Spool(tmp_path / "spool").append(wish("second"))).delivered == 1
    assert texts(spool) == ["second"]


def test_a_crash_between_acknowledgement_and_removal_sends_again(tmp_path: Path) -> None:
    """Turns are idempotent, so twice is harmless and never is not."""
    spool = Spool(tmp_path / "spool")
    spool.append(wish("a"))
    spool.append(wish("b"))

    def send(each: request.Capture | request.Remember) -> None:
        if each.text == "b":  # type: ignore[union-attr]
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        spool.drain(send)
    assert texts(spool) == ["b"]


def test_a_poisoned_request_steps_aside(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "spool")
    for text in ("good", "bad", "fine"):
        spool.append(wish(text))
    got: list[str] = []

    def send(each: request.Capture | request.Remember) -> None:
        if each.text == "bad":  # type: ignore[union-attr]
            raise InvalidRequest("no")
        got.append(each.text)  # type: ignore[union-attr]

    assert spool.drain(send) == Drained(delivered=2, rejected=1)
    assert (got, spool.waiting()) == (["good", "fine"], 0)
    assert b"bad" in spool.rejected.read_bytes()


@pytest.mark.parametrize("error", [UnknownRequest("older daemon"), StorageFull("disk")])
def test_what_may_work_later_waits(tmp_path: Path, error: Exception) -> None:
    spool = Spool(tmp_path / "spool")
    spool.append(wish("x"))

    def send(each: object) -> None:
        raise error

    assert (spool.drain(send).left, spool.waiting()) == (1, 1)


@pytest.mark.parametrize("cut", [1, 5, 9, 30])
def test_a_torn_tail_is_cut_off(tmp_path: Path, cut: int) -> None:
    spool = Spool(tmp_path / "spool")
    spool.append(wish("whole"))
    size = spool.path.stat().st_size
    spool.append(wish("torn"))
    os.truncate(spool.path, size + cut)
    spool.append(wish("next"))
    assert texts(spool) == ["whole", "next"]
    assert not spool.rejected.exists()


def test_zeros_at_the_end_are_a_torn_tail(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "spool")
    spool.append(wish("whole"))
    with spool.path.open("ab") as file:
        file.write(bytes(4096))
    assert texts(spool) == ["whole"]


def test_a_flipped_bit_is_kept_aside_and_not_skipped_quietly(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "spool")
    spool.append(wish("first"))
    at = spool.path.stat().st_size + 12
    spool.append(wish("second"))
    content = bytearray(spool.path.read_bytes())
    content[at] ^= 1
    spool.path.write_bytes(content)
    assert texts(spool) == ["first"]
    assert spool.rejected.stat().st_size > 0


def test_a_full_spool_refuses(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "spool")
    spool.append(wish("x"))
    filler = b"y" * (SPOOL_LIMIT - spool.path.stat().st_size)
    with spool.path.open("ab") as file:
        file.write(framed(filler[:-8]))
    with pytest.raises(TooLarge, match="spool is full"):
        spool.append(wish("one more"))


def _append_many(folder: str, mark: int) -> None:
    for n in range(50):
        Spool(Path(folder)).append(wish(f"{mark}-{n}"))


def test_two_processes_at_once_lose_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "spool"
    processes = [multiprocessing.Process(target=_append_many, args=(str(folder), mark)) for mark in (1, 2)]
    for process in processes:
        process.start()
    got: list[str] = []
    while any(process.is_alive() for process in processes):
        Spool(folder).drain(lambda each: got.append(each.text))  # type: ignore[union-attr]
    for process in processes:
        process.join()
    got += texts(Spool(folder))
    assert sorted(got) == sorted(f"{mark}-{n}" for mark in (1, 2) for n in range(50))
    for mark in (1, 2):
        mine = [text for text in got if text.startswith(f"{mark}-")]
        assert mine == [f"{mark}-{n}" for n in range(50)]


def test_the_client_spools_while_the_daemon_is_down_and_delivers_later(here: Places, serve) -> None:
    with Client(here) as client:
        marker = client.remember_or_spool("I prefer tabs", cwd="/tmp")
        assert isinstance(marker, SpoolReceipt)
        assert (marker.waiting, marker.reason) == (1, "the daemon is not running")
        taken = client.capture_or_spool(
            Origin(host="test", session="s1"), [Said(turn="t", at=AT, role="user", text="hello")]
        )
        assert isinstance(taken, SpoolReceipt)
        assert client.drain() == Drained(left=2, reason="the daemon is not running")
        with serve(here.socket) as listener:
            listener.answer = lambda each: (
                reply.Taken(accepted=1, duplicate=0, changed=0, refused=(), pool="p", pending=0)
                if isinstance(each, request.Capture)
                else refuse("not this one")
            )
            assert client.drain() == Drained(delivered=1, rejected=1)
        assert [type(each).__name__ for each in listener.seen] == ["Remember", "Capture"]


def test_a_wish_keeps_its_turn(here: Places) -> None:
    one = remembering("x", cwd="/tmp/a")
    assert remembering(one) is one
    assert (one.origin.session, one.origin.cwd) == ("/tmp/a", "/tmp/a")


def test_events_that_the_daemon_refuses_are_kept_aside_P12(daemon: Any) -> None:
    good = Said(turn="1", at="2026-01-01T00:00:00Z", role="user", text="The lamp is on.")
    naive = Said(turn="2", at="2026-01-01T00:00:00", role="user", text="The lamp is off.")
    daemon.kill()
    with daemon.client() as client:
        assert isinstance(client.capture_or_spool(Origin(host="h", session="s"), (good, naive)), SpoolReceipt)
        daemon.start()
        drained = client.drain()
        assert (drained.delivered, drained.rejected, drained.left) == (0, 1, 0)
        assert client.spool.rejected.stat().st_size
        assert client.status().archive_seq == 1
