"""The Python client against a real ROUTER: replies, errors, deadlines, large frames, a daemon that comes and goes."""

import inspect
import os
import socket
import struct
import subprocess
import sys
import threading
import time
from pathlib import Path

import msgspec
import pytest

from memd.clients.python import AsyncClient
from memd.clients.python.client import Client, Connection, Deadline, socket_path
from memd.clients.python.request_methods import RequestMethod, RequestMethods
from memd.protocol import reply, request, wire
from memd.protocol.errors import DaemonDown, DeadlineExceeded, InvalidRequest, NotFound, TooLarge, Unavailable
from memd.protocol.event import Origin, Said
from memd.protocol.places import Places

AT = "2026-03-04T18:30:00+01:00"
ORIGIN = Origin(host="test", session="s1", cwd="/tmp")
TAKEN = reply.Taken(accepted=1, duplicate=0, changed=0, refused=(), pool="personal", pending=1)


def test_a_reply_arrives_typed(here: Places, listener) -> None:
    listener.answer = lambda wish: reply.Recalled(hits=(), scope=("personal",), abstained=True, reason="empty")
    with Client(here) as client:
        assert client.recall("tabs", cwd="/tmp").reason == "empty"
    assert listener.seen == [request.Recall(rid=1, query="tabs", cwd="/tmp")]


def test_each_request_has_exactly_one_method_in_each_client_U8() -> None:
    requests = sorted(cls.__name__ for cls in request.AnyRequest.__args__)
    for client in (Client, AsyncClient):
        members = [getattr(client, name) for name in dir(client) if not name.startswith("_")]
        methods = [member for member in members if isinstance(member, RequestMethod) and not member.may_spool]
        assert sorted(method.request.__name__ for method in methods) == requests
        others = {name for name in dir(client) if callable(getattr(client, name)) and not name.startswith("_")}
        assert others == {"ask", "close", "drain"}


def test_a_methods_parameters_are_the_requests_fields_with_their_defaults_U8() -> None:
    left_out = {"v", "rid", "token", "surface", "at", "repository", "options"}
    for name, method in vars(RequestMethods).items():
        if not isinstance(method, RequestMethod) or name.startswith(("remember", "import_records")):
            continue
        parameters = [each for each in inspect.signature(method.build).parameters.values() if each.name != "self"]
        fields = {each.name: each for each in msgspec.structs.fields(method.request) if each.name not in left_out}
        assert {each.name for each in parameters} == set(fields), name
        for each in parameters:
            if each.default is not each.empty and not fields[each.name].required:
                assert each.default == fields[each.name].default, f"{name}: {each.name}"


def test_a_method_refuses_a_wrong_call_and_sends_the_given_fields(here: Places, listener) -> None:
    listener.answer = lambda wish: reply.Page(records=(), total=0)
    with Client(here) as client:
        with pytest.raises(TypeError, match="nonsense"):
            client.list(nonsense=1)  # pyright: ignore[reportCallIssue]
        with pytest.raises(TypeError, match="id"):
            client.get()  # pyright: ignore[reportCallIssue]
        client.list(pools=["personal"], limit=3)
    assert listener.seen == [request.List(rid=1, pools=("personal",), limit=3)]


def test_the_daemons_error_is_rebuilt(here: Places, listener) -> None:
    def answer(wish: request.Request) -> object:
        raise NotFound("no record abc", hint="see `memd list`")

    listener.answer = answer
    with Client(here) as client, pytest.raises(NotFound) as caught:
        client.get("abc")
    assert (caught.value.message, caught.value.hint) == ("no record abc", "see `memd list`")


def test_nobody_listens(here: Places) -> None:
    started = time.monotonic()
    with pytest.raises(DaemonDown) as caught:
        Client(here).status()
    assert "memd up" in caught.value.hint
    assert time.monotonic() - started < 1


def test_a_socket_that_was_left_behind_is_no_daemon(here: Places) -> None:
    here.socket.parent.mkdir(parents=True)
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(here.socket))
    with pytest.raises(DaemonDown):
        Client(here).status()


def test_a_silent_listener_costs_the_deadline_and_no_more(here: Places) -> None:
    here.socket.parent.mkdir(parents=True)
    with socket.socket(socket.AF_UNIX) as silent:
        silent.bind(str(here.socket))
        silent.listen(1)
        started = time.monotonic()
        with pytest.raises(DeadlineExceeded):
            Client(here, deadline_ms=150).status()
        assert 0.1 < time.monotonic() - started < 1


def test_what_is_no_zmtp_peer_is_told(here: Places) -> None:
    here.socket.parent.mkdir(parents=True)
    with socket.socket(socket.AF_UNIX) as stranger:
        stranger.bind(str(here.socket))
        stranger.listen(1)

        def talk() -> None:
            connection, _ = stranger.accept()
            with connection:
                connection.sendall(b"HTTP/1.1 400 Bad Request\r\n" + b" " * 80)
                connection.recv(4096)

        thread = threading.Thread(target=talk)
        thread.start()
        with pytest.raises(Unavailable, match="does not speak ZMTP"):
            Client(here).status()
        thread.join()


def test_a_late_reply_is_not_taken_for_the_next_one(here: Places, listener) -> None:
    """A reply of a request that was given up must not answer another."""

    def answer(wish: request.Request) -> object:
        if isinstance(wish, request.Distil):
            return []
        late = wire.encode_data(reply.Done(pending=99), wish.rid - 1, "msgpack")
        late_error = wire.encode_error(NotFound("late"), wish.rid - 1, "msgpack")
        return [late, late_error, wire.encode_data(reply.Done(pending=1), wish.rid, "msgpack")]

    listener.answer = answer
    with Client(here, deadline_ms=300) as client:
        with pytest.raises(DeadlineExceeded):
            client.distil()
        assert client.stop().pending == 1


def test_long_frames_both_ways(here: Places, listener) -> None:
    listener.answer = lambda wish: reply.ProfileText(
        text="x" * 3_000_000, rev="1", ids=(), scope=(), tokens=1, pending=0
    )
    with Client(here) as client:
        for text in ("y" * 500_000, "y" * 255):
            wish = request.Remember(
                text=text, turn="1", at="2026-03-10T09:00:00Z", origin=Origin(host="h", session="s")
            )
            assert len(client.ask(wish, reply.ProfileText).text) == 3_000_000
    assert len(listener.seen[0].text) == 500_000


def test_too_large_a_request_is_refused_before_the_socket(here: Places, listener) -> None:
    with Client(here) as client, pytest.raises(TooLarge):
        client.recall("x" * (wire.BODY_LIMIT + 1))
    assert listener.seen == []


def test_a_text_that_is_no_unicode_is_refused(here: Places, listener) -> None:
    with Client(here) as client, pytest.raises(InvalidRequest, match="Unicode"):
        client.remember("torn \ud83d")


def test_a_restarted_daemon_is_met_again(here: Places, serve) -> None:

    with Client(here) as client:
        for _ in range(2):
            with serve(here.socket):
                assert client.distil().pending == 0
            here.socket.unlink(missing_ok=True)
        with pytest.raises(DaemonDown):
            client.distil()


def test_a_ping_is_answered(here: Places) -> None:
    """ZMTP 3.1 peers send heartbeats; an unanswered one would end the connection."""
    here.socket.parent.mkdir(parents=True)
    ready = b"\x05READY\x0bSocket-Type" + struct.pack("!I", 6) + b"ROUTER"
    greeting = b"\xff" + bytes(8) + b"\x7f\x03\x00" + b"NULL".ljust(20, b"\0") + bytes(32)
    got: list[bytes] = []
    with socket.socket(socket.AF_UNIX) as peer:
        peer.bind(str(here.socket))
        peer.listen(1)

        def talk() -> None:
            connection, _ = peer.accept()
            with connection:
                connection.sendall(greeting + bytes([4, len(ready)]) + ready)
                connection.sendall(bytes([4, 9]) + b"\x04PING\0\x0aab")
                connection.sendall(bytes([1, 0]) + bytes([0, 2]) + b"hi")
                time.sleep(0.05)
                got.append(connection.recv(4096))

        thread = threading.Thread(target=talk)
        thread.start()
        connection = Connection(here.socket, Deadline(2000))
        assert connection.receive(Deadline(2000)) == b"hi"
        thread.join()
        connection.close()
    assert got[0].endswith(bytes([4, 7]) + b"\x04PONGab")


def test_the_socket_file_leads_a_client_of_another_environment(here: Places, tmp_path: Path) -> None:
    assert socket_path(here) == here.socket
    elsewhere = tmp_path / "elsewhere.sock"
    here.socket_file.parent.mkdir(parents=True)
    here.socket_file.write_text(f"{elsewhere}\n")
    assert socket_path(here) == here.socket
    elsewhere.touch()
    assert socket_path(here) == elsewhere


def test_importing_the_client_loads_nothing_of_the_daemon_and_no_zmq() -> None:
    code = (
        "import sys; from memd.clients.python import Client; "
        "print([m for m in sys.modules if m.split('.')[0] in ('zmq', 'numpy', 'lmdb', 'rich', 'typer') "
        "or m.startswith(('memd.daemon', 'memd.stages', 'memd.models'))])"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env={**os.environ})
    assert told.stdout.strip() == "[]"


def test_capture_carries_the_events(here: Places, listener) -> None:
    listener.answer = lambda wish: TAKEN
    with Client(here) as client:
        assert client.capture(ORIGIN, [Said(turn="t1", at=AT, role="user", text="I prefer tabs")]) == TAKEN
    assert listener.seen[0].events[0].text == "I prefer tabs"
