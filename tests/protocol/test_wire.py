"""The wire: what is sent is what is read, by an independent reader too; any bytes end in a value or an error."""

from typing import get_args

import msgpack
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd.protocol import operation, wire
from memd.protocol.errors import DaemonDown, InvalidRequest, MemdError, NaiveTime, TooLarge, UnknownRequest, by_code
from memd.protocol.event import Origin, Said, text, trust
from memd.protocol.instant import from_micros, micros, parse
from memd.protocol.places import places
from memd.protocol.recall import Hit, Recall, Recalled
from memd.protocol.record import Provenance, Record, record_id
from memd.protocol.reply import Done, ExportedRecord
from memd.protocol.request import AnyRequest, Capture, GetStatus, ImportRecords

WORDS = st.text(max_size=40)


@given(query=WORDS, rid=st.integers(0, 2**31), limit=st.integers(1, 100))
def test_a_request_reads_back_as_it_was_in_both_forms(query: str, rid: int, limit: int) -> None:
    wish = Recall(query=query, rid=rid, limit=limit)
    assert wire.decode_request(wire.encode_request(wish)) == wish
    assert wire.decode_request(wire.encode_request(wish, "json")) == wish


@given(said=WORDS)
def test_an_independent_reader_sees_plain_message_pack(said: str) -> None:
    event = Said(turn="t", at="2026-03-04T18:30:00Z", role="user", text=said)
    body = wire.encode_request(Capture(origin=Origin(host="h", session="s"), events=(event,)))
    seen = msgpack.unpackb(body)
    assert seen["request"] == "capture"
    assert seen["events"] == [{"event": "said", "turn": "t", "at": event.at, "role": "user", "text": said}]
    again = msgpack.packb(seen)
    assert again is not None and wire.decode_request(again) == wire.decode_request(body)


def test_a_record_has_its_type_in_json_and_reads_back_U8() -> None:
    provenance = Provenance(author="user", source="t:s", trust="user", spans=(), quote="", said_at="")
    record = Record(
        id="x", pool="p", kind="fact", content="c", description="d", provenance=provenance, tags=("lesson", "x")
    )
    hit = Hit(record=record, score=0.5, parts={"words": 1.0})
    found = Recalled(hits=(hit,), principles=(hit,), scope=("p",))
    shown = msgspec.json.decode(wire.encode_data(found, 7, "json"))["data"]
    wanted = msgspec.json.decode(msgspec.json.encode(hit))
    assert shown["hits"][0] == {**wanted, "record": {**wanted["record"], "type": "lesson"}}
    assert shown["principles"][0]["record"]["type"] == "lesson"
    assert msgspec.convert(shown, Recalled) == found
    assert wire.decode_reply(wire.encode_data(found, 7, "msgpack"), Recalled) == (7, found)
    imported = {"request": "import_records", "records": [{"record": shown["hits"][0]["record"]}]}
    assert wire.decode_request(msgspec.json.encode(imported)) == ImportRecords(records=(ExportedRecord(record=record),))


VALID = wire.encode_request(Recall(query="where do the tests live", rid=7, pools=("personal",)))


@given(st.binary(max_size=200) | st.tuples(st.integers(0, len(VALID) - 1), st.integers(0, 255)))
def test_no_bytes_get_past_the_decoder_as_anything_but_a_value_or_an_error(noise: bytes | tuple[int, int]) -> None:
    if isinstance(noise, tuple):
        noise = VALID[: noise[0]] + bytes([noise[1]]) + VALID[noise[0] + 1 :]
    try:
        assert isinstance(wire.decode_request(noise), get_args(AnyRequest))
    except InvalidRequest as error:
        assert error.message and error.hint
    wire.head(noise)


@pytest.mark.parametrize(
    ("body", "kind", "says"),
    [
        (b"", InvalidRequest, "neither"),
        (b"\xff\xfe", InvalidRequest, "neither"),
        (b'{"request":"frobnicate"}', UnknownRequest, "frobnicate"),
        (b'{"request":"recall"}', InvalidRequest, "query"),
        (b'{"request":"recall","query":3}', InvalidRequest, "query"),
        (b'{"request":"recall","query":"x","limt":1}', InvalidRequest, "limt"),
        (b'{"request":"recall","query":"x","v":99}', UnknownRequest, "99"),
        (b"[" * 100_000, InvalidRequest, "neither"),
        (b"{" + b'"a":[' * 100_000, InvalidRequest, "neither"),
        (b"x" * (wire.BODY_LIMIT + 1), TooLarge, "bytes"),
    ],
)
def test_each_bad_body_gets_an_error_that_names_it(body: bytes, kind: type[MemdError], says: str) -> None:
    with pytest.raises(kind) as caught:
        wire.decode_request(body)
    assert says in caught.value.message


def test_an_error_crosses_the_wire_with_code_message_and_hint() -> None:
    body = wire.encode_error(DaemonDown("nobody there", hint="run `memd up`"), 5, "msgpack")
    with pytest.raises(DaemonDown, match="nobody there") as caught:
        wire.decode_reply(body, Done)
    assert caught.value.hint == "run `memd up`"
    assert type(by_code("from_the_future", "m", "h")) is MemdError


def test_a_time_without_an_offset_never_passes_P21() -> None:
    assert micros("2026-03-04T18:30:00+01:00") == micros("2026-03-04T17:30:00Z")
    assert from_micros(micros("2026-03-04T18:30:00.250000+01:00"), 60) == "2026-03-04T18:30:00.250000+01:00"
    with pytest.raises(NaiveTime):
        parse("2026-03-04T18:30:00")
    with pytest.raises(InvalidRequest):
        parse("yesterday")


def test_an_operation_of_a_later_version_is_kept_and_skipped() -> None:
    known = operation.Invalidated(id="x", valid_to="2026-01-01T00:00:00Z", reason="wrong")
    assert operation.decode("invalidated", operation.encode(known)) == known
    later = msgspec.msgpack.encode({"kind": "promoted", "id": "x"})
    assert operation.decode("promoted", later) == operation.Unknown(name="promoted")


def test_trust_follows_from_the_source_not_from_the_words_P19() -> None:
    at = "2026-03-04T18:30:00Z"
    assert trust(Said(turn="1", at=at, role="assistant", text="I am the user")) == "assistant"
    assert text(Said(turn="1", at=at, role="user", text="hello")) == "hello"


def test_the_same_input_gives_the_same_id_P7() -> None:
    first = record_id("personal", "h:s", "t", 3, 0)
    assert first == record_id("personal", "h:s", "t", 3, 0) and len(first) == 26
    assert first != record_id("personal", "h:s", "t", 3, 1)


def test_a_status_request_is_as_small_as_it_can_be() -> None:
    assert wire.encode_request(GetStatus()) == b"\x81\xa7request\xa6status"


def test_client_and_daemon_find_the_same_socket_however_long_the_home_is_P26() -> None:
    short = places({"MEMD_HOME": "/home/ada/m"}, 1000)
    assert str(short.socket) == "/home/ada/m/run/memd.sock"
    far = {"MEMD_HOME": "/home/ada/" + "m" * 120, "TMPDIR": "/var/tmp"}
    assert places(far, 1000) == places(dict(far), 1000)
    assert str(places(far, 1000).socket).startswith("/var/tmp/memd-1000-")
    assert len(str(places(far, 1000).socket)) <= 103
