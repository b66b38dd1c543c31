"""Words for people and envelopes for programs: times, cuts, control characters, colours, completeness."""

import contextlib
import json
import os
import pty
import subprocess
import sys
from datetime import UTC, datetime
from typing import Any

import pytest

from memd.clients.bench.measurement import Figure, percentile
from memd.clients.cli.output import NAME_LENGTH, complete, plain, plain_name, print_json, shortened
from memd.clients.cli.wording import age, count, size, status_counts
from memd.protocol.errors import MemdError
from memd.protocol.event import Origin, Said
from memd.protocol.operation import Merged
from memd.protocol.record import Span

NOW = datetime(2026, 3, 4, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("at", "told"),
    [
        ("2026-03-04T11:59:58Z", "just now"),
        ("2026-03-04T20:59:00+09:00", "1 minute ago"),
        ("2026-03-04T10:00:00Z", "2 hours ago"),
        ("2026-03-01T12:00:00Z", "3 days ago"),
        ("2025-12-01T12:00:00Z", "3 months ago"),
        ("2020-03-04T12:00:00Z", "6 years ago"),
        ("2026-04-01T12:00:00Z", "on 2026-04-01"),
        (int(NOW.timestamp() * 1e6) - 60_000_000, "1 minute ago"),
        ("", ""),
        (0, ""),
        ("no time \x1b", "no time \N{REPLACEMENT CHARACTER}"),
    ],
)
def test_age(at: str | int, told: str) -> None:
    assert age(at, NOW) == told


def test_plain_text_is_one_harmless_line() -> None:
    assert plain("a\tb\n  c\r\nd") == "a b c d"
    assert plain("\x1b[31mred\x9b0m\u202e") == "�[31mred�0m�"
    assert plain("naïve 中文 🎉 العربية") == "naïve 中文 🎉 العربية"


def test_no_text_fills_the_terminal_or_controls_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert len(plain("x" * 1_000_000)) < 21_000 and "979" not in plain("short")
    assert len(plain_name("t" * 100_000)) <= NAME_LENGTH
    for harmful in "\x1b\x07\x9b\u202e\u2066\u061c\ufeff\U000e0041\udcff":
        assert harmful not in plain(f"a{harmful}b") and harmful not in plain_name(f"a{harmful}b")
    print_json({"text": "\x9b2J\u202e\U000e0041 é"})
    printed = capsys.readouterr().out
    assert json.loads(printed) == {"text": "\x9b2J\u202e\U000e0041 é"}
    assert not set("\x9b\u202e\U000e0041") & set(printed) and "é" in printed


def test_a_turn_id_of_a_hundred_thousand_characters_is_cut_on_the_terminal(memd: Any, daemon: Any) -> None:
    origin = Origin(host="h", session="s" * 50_000, title="t" * 200, cwd="/" + "c" * 50_000)
    event = Said(turn="t" * 100_000, at="2026-01-01T00:00:00Z", role="user", text="I use vim.")
    with daemon.client() as client, contextlib.suppress(MemdError):
        client.capture(origin, [event])
    told = memd("show", "x" * 100_000)
    assert told.code and len(told.errors) < 5_000
    assert all(len(memd(command).text) < 5_000 for command in ("status", "sessions"))


def test_shortened() -> None:
    assert shortened("short", 10) == "short"
    assert shortened("a sentence that is too long", 15) == "a sentence…"
    assert len(shortened("x" * 50, 10)) == 10


def test_numbers_in_words() -> None:
    assert (count(1, "line"), count(2, "line"), count(1200, "entry", "entries")) == (
        "1 line",
        "2 lines",
        "1,200 entries",
    )
    assert [size(n) for n in (0, 999, 1500, 2_400_000, 12_000_000_000)] == [
        "0 bytes",
        "999 bytes",
        "2 kB",
        "2 MB",
        "12 GB",
    ]


def test_records_by_status_start_with_the_active_ones() -> None:
    assert status_counts({"quarantined": 1077, "retired": 2, "active": 9, "hidden": 0}) == (
        "9 active, 2 retired, 1,077 unconfirmed"
    )
    assert status_counts({}) == ""


def test_percentiles_are_samples_that_were_measured() -> None:
    samples = list(range(1, 101))
    assert [percentile(samples, point) for point in (50, 99, 100)] == [50, 99, 100]
    assert percentile([7.0], 99) == 7.0
    assert (Figure(name="x", value=3.0, floor=2.0).ratio, Figure(name="x", value=3.0).ratio) == (1.5, 0)


def test_an_envelope_leaves_no_field_out() -> None:
    told = complete(Span("claude-code:s", "t", 0, 5))
    assert told == {"document": "claude-code:s", "turn": "t", "start": 0, "end": 5}
    assert complete({"a": [None, 1.5, ("b",)]}) == {"a": [None, 1.5, ["b"]]}
    assert Merged.__struct_config__.tag == "merged"


@pytest.mark.parametrize(("changes", "coloured"), [({}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False)])
def test_colours_are_for_terminals_that_want_them(daemon: Any, changes: dict[str, str], coloured: bool) -> None:
    with daemon.client() as client:
        client.remember("I prefer tabs.")
    environment = {**daemon.environment, "TERM": "xterm", **changes}
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "memd.clients.cli.main", "list"]
    done = subprocess.run(command, stdout=theirs, env=environment, timeout=60, check=False)
    os.close(theirs)
    text = os.read(ours, 65536)
    os.close(ours)
    assert done.returncode == 0
    assert (b"tabs" in text, b"\x1b[" in text) == (True, coloured)
