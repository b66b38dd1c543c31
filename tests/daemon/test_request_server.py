"""The request server: the sender of an invalid message receives the reason, and the daemon goes on (P-19)."""

import time
from typing import Any

import msgspec
import pytest
import zmq

from memd.protocol import wire
from memd.protocol.errors import InvalidRequest, NotFound, TooLarge
from memd.protocol.event import Origin, Said, Wrote
from memd.protocol.reply import Taken
from memd.protocol.request import Capture


class Raw:
    """A bare DEALER: bytes in, the decoded reply out."""

    def __init__(self, path: str) -> None:
        self.context = zmq.Context()
        self.socket = self.context.socket(zmq.DEALER)
        self.socket.linger = 0
        self.socket.connect(f"ipc://{path}")

    def __enter__(self) -> "Raw":
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()
        self.context.term()

    def ask(self, *frames: bytes) -> dict[str, Any]:
        self.socket.send_multipart(frames)
        assert self.socket.poll(10_000), "no reply"
        body = self.socket.recv_multipart()[-1]
        return msgspec.json.decode(body) if body[:1] == b"{" else msgspec.msgpack.decode(body)


BAD = [
    (b"", "invalid_request"),
    (b"\xc1\xff\x00", "invalid_request"),
    (b"\xdc\xff\xff" * 1000, "invalid_request"),
    (b"[" * 200_000, "invalid_request"),
    (b'{"request":"recall","query":"\xff\xfe"}', "invalid_request"),
    (b'{"request":"drop_everything"}', "unknown_request"),
    (b'{"request":"recall","query":["a"]}', "invalid_request"),
    (b'{"request":"recall","query":" "}', "invalid_request"),
    (b'{"request":"recall","query":"x","pools":["nowhere"]}', "not_found"),
    (b'{"request":"list","after":"garbage"}', "invalid_request"),
    (b'{"request":"get","id":""}', "not_found"),
    (b"x" * (wire.BODY_LIMIT + 1), "too_large"),
]


def test_bad_input_gets_a_clear_error_and_the_daemon_lives(shared_daemon: Any) -> None:
    with Raw(str(shared_daemon.places.socket)) as raw:
        for body, code in BAD:
            answer = raw.ask(body)
            assert not answer["ok"] and answer["error"]["code"] == code, (body[:40], answer)
            assert answer["error"]["message"] and answer["error"]["hint"]
        assert raw.ask(b'{"request":"status","rid":9}')["rid"] == 9
    assert "rejected a message" in shared_daemon.places.log.read_text()


def test_a_message_over_the_socket_limit_costs_only_its_sender(shared_daemon: Any) -> None:
    with Raw(str(shared_daemon.places.socket)) as raw:
        raw.socket.send(b"x" * (5 * wire.BODY_LIMIT))
        raw.socket.poll(300)
    with shared_daemon.client() as client:
        assert client.status().pid


def test_a_naive_time_is_refused_for_its_turn_alone_P21(shared_daemon: Any) -> None:
    origin = Origin(host="h", session="s")
    with shared_daemon.client() as client:
        taken = client.ask(
            Capture(
                origin=origin,
                events=(
                    Said(turn="1", at="2026-01-01T00:00:00", role="user", text="no offset here"),
                    Said(turn="2", at="2026-01-01T00:00:00Z", role="user", text="an offset here"),
                    Said(turn="3", at="the day before yesterday", role="user", text="no time at all"),
                ),
            ),
            Taken,
        )
    assert taken.accepted == 1
    assert [(refusal.turn, refusal.problem.code) for refusal in taken.refused] == [
        ("1", "naive_time"),
        ("3", "invalid_request"),
    ]


def test_the_socket_is_for_its_owner_alone_P19(shared_daemon: Any) -> None:
    assert shared_daemon.places.socket.stat().st_mode & 0o077 == 0
    assert shared_daemon.places.run.stat().st_mode & 0o777 == 0o700
    assert all(path.stat().st_mode & 0o077 == 0 for path in shared_daemon.places.data.rglob("*"))


def test_an_unknown_record_says_where_to_look(shared_daemon: Any) -> None:
    with shared_daemon.client() as client:
        with pytest.raises(NotFound) as caught:
            client.get("zzzz")
        assert "memd list" in caught.value.hint
        with pytest.raises(InvalidRequest):
            client.recall("   ")


LONG = "where do we deploy the orchard service? password: Tr0ub4dor&3 " * 63_000
"""A text of 3.9 MB."""


@pytest.mark.parametrize(
    "name, fields",
    {
        "recall": {"query": LONG},
        "get": {"id": LONG},
        "profile": {"cwd": LONG},
        "feedback": {"used": [LONG]},
        "forget": {"query": LONG},
        "remember": {"text": "x", "turn": "1", "at": "2026-01-01T00:00:00Z", "origin": {"host": LONG, "session": "s"}},
        "capture": {"events": [], "origin": {"host": "h", "session": "s", "title": LONG}},
    }.items(),
)
@pytest.mark.parametrize("token", ["", "no.such.pass"])
def test_a_text_over_its_limit_is_refused_before_anything_reads_it_P28(
    shared_daemon: Any, name: str, fields: dict[str, Any], token: str
) -> None:
    body = msgspec.json.encode({"request": name, "pass": token, **fields})
    with Raw(str(shared_daemon.places.socket)) as raw:
        begin = time.monotonic()
        error = raw.ask(body)["error"]
        assert time.monotonic() - begin < 1
    assert error["code"] == "too_large" and "at most 4,096" in error["message"] and "Tr0ub4dor" not in str(error)


def test_a_question_with_its_keywords_has_a_limit_and_other_texts_have_their_own_P28(shared_daemon: Any) -> None:
    with shared_daemon.client() as client:
        assert client.recall("x" * 4096).scope
        with pytest.raises(TooLarge, match="16,384"):
            client.recall("x", keywords=["x" * 4000] * 5)
        origin = Origin(host="h", session="s")
        events = (
            Said(turn="1", at="2026-01-01T00:00:00Z", role="user", text="word " * 100_000),
            Wrote(turn="2", at="2026-01-01T00:00:00Z", text="word", author="x" * 5000),
        )
        taken = client.capture(origin, events)
        assert taken.accepted == 1 and [bad.problem.code for bad in taken.refused] == ["too_large"]
