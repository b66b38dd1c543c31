"""Retention of the archive: by age and size, sparing what records rest on; headers stay, the chain holds (U3, T10)."""

import time
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from memd.daemon.config import Keep
from memd.daemon.storage.archive import Archive
from memd.daemon.storage.retention import DAY, Retention
from memd.daemon.world import World, real_world
from memd.protocol.event import Captured, Origin, Said
from memd.protocol.record import Span
from memd.protocol.request import Remember
from tests.conftest import EXAMPLES

NOW = 1_000 * DAY


def said(document: str, turn: str, words: str) -> Captured:
    return Captured(document=document, event=Said(turn=turn, at="2026-01-01T00:00:00Z", role="user", text=words))


def archive_of(folder: Path, days: list[int]) -> Archive:
    """An archive with a capture of each age in days, oldest first; every third document is of another pool."""
    clock = iter(NOW - day * DAY for day in sorted(days, reverse=True))
    archive = Archive(folder / "archive", World(lambda: next(clock), lambda: 0.0, real_world().token))
    for number in range(len(days)):
        archive.take([said("ab"[number % 3 == 0], f"t{number}", f"words {number} " * 20)])
    return archive


@settings(max_examples=25 * EXAMPLES, deadline=None)
@given(
    st.lists(st.integers(1, 800), min_size=1, max_size=15),
    st.sets(st.integers(0, 14)),
    st.integers(0, 15),
    st.sampled_from([0.0, 30.0, 365.0]),
    st.sampled_from([0.0, 0.0005, 0.002]),
)
def test_what_is_cited_young_or_undistilled_stays_and_the_chain_holds_T10(
    tmp_path_factory: Any, days: list[int], cited: set[int], upto: int, keep_days: float, keep_mb: float
) -> None:
    archive = archive_of(tmp_path_factory.mktemp("retention"), days)
    turns = {f"t{number}" for number in cited}
    keep = Keep(days=keep_days, mb=keep_mb)
    retention = Retention(
        archive, keep, {"b": Keep(days=0, mb=0)}, lambda document: document, lambda _, turn: turn in turns
    )
    held = {entry.seq: entry for entry in archive.log.read()}
    doomed = list(retention.over_limit(upto, NOW))
    removed = retention.remove(doomed)
    assert removed == sum(len(held[each.seq].payload or b"") for each in doomed)
    size = 0
    for entry in archive.log.read():
        number = entry.seq - 1
        document, age = "ab"[number % 3 == 0], sorted(days, reverse=True)[number]
        if entry.payload is None:
            assert number not in cited and entry.seq <= upto and document == "a"
        elif entry.seq <= upto and number not in cited and document == "a":
            assert not keep_days or age <= keep_days
            size += len(entry.payload)
    if keep_mb:
        spared = sum(len(held[n + 1].payload or b"") for n in cited if n < len(days) and n % 3 and n < upto)
        assert size + spared <= keep_mb * 1e6 or not size
    assert archive.log.verify() == len(days)
    again = [said("ab"[n % 3 == 0], f"t{n}", f"words {n} " * 20) for n in range(len(days))]
    assert set(archive.take(again)) == {"duplicate"}, "what expired is known, and not taken again"
    archive.close()


def test_a_span_gives_its_words_or_says_that_they_are_gone(tmp_path: Path) -> None:
    archive = archive_of(tmp_path, [5, 4])
    assert archive.span(Span("a", "t1", 0, 7)) == "words 1"
    archive.expire([2])
    assert archive.span(Span("a", "t1", 0, 7)) is None
    assert archive.span(Span("a", "unknown", 0, 7)) is None
    assert archive.turn("b", "t0") is not None


def test_retention_of_a_live_daemon_spares_cited_turns_and_shows_in_status_T10(daemon: Any) -> None:
    origin = Origin(host="cli", session="s")
    filler = [Said(turn=f"f{n}", at="2026-01-01T00:00:00Z", role="assistant", text=f"ok {n}") for n in range(20)]
    with daemon.client() as client:
        wish = Remember(text="We deploy on Tuesdays.", turn="kept", at="2026-01-01T00:00:00Z", origin=origin)
        kept = client.remember(wish).record
        client.capture(origin, filler)
    daemon.settle()
    daemon.terminate()
    daemon.environment.update(MEMD_ARCHIVE_KEEP_DAYS="0.0000001", MEMD_UPKEEP_S="0.3")
    daemon.start()
    end = time.monotonic() + 60
    with daemon.client() as client:
        while "expired" not in client.status().last:
            assert time.monotonic() < end
            time.sleep(0.1)
        assert "20 captures" in client.status().last["expired"].what
        assert client.why(kept.id).quote_holds
        assert client.list().records[0].id == kept.id
        assert client.capture(origin, filler).duplicate == 20
    daemon.settle()
