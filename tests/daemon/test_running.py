"""Pauses, ignored folders, private spans, idle ends over restarts: what the user keeps out stays out (W2, W5, P-2)."""

import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memd.clients.python import Client
from memd.daemon.services.capture.pauses import PauseRegister
from memd.protocol.block import plain
from memd.protocol.errors import NotFound, Withheld
from memd.protocol.event import Origin, Said, SessionEnded, ToolCalled
from memd.protocol.instant import from_micros
from memd.protocol.request import Remember
from tests.conftest import RunningDaemon

AT = "2026-03-04T18:30:00+01:00"
SECOND = 1_000_000


def said(text: str, turn: str) -> Said:
    return Said(turn=turn, at=AT, role="user", text=text)


def said_now(text: str, turn: str) -> Said:
    return Said(turn=turn, at=from_micros(time.time_ns() // 1000), role="user", text=text)


def origin(cwd: str = "", session: str = "s") -> Origin:
    return Origin(host="h", session=session, cwd=cwd)


def words_on_disk(daemon: Any, words: str) -> list[str]:
    home = Path(daemon.environment["MEMD_HOME"])
    return [str(each) for each in home.rglob("*") if each.is_file() and words.encode() in plain(each.read_bytes())]


def test_nothing_is_captured_while_paused_and_it_holds_over_a_restart_P2(daemon: Any) -> None:
    with daemon.client() as client:
        held = client.pause(for_s=3600)
        assert held.pauses[0].folder == "" and held.pauses[0].until
    daemon.terminate()
    daemon.start()
    with daemon.client() as client:
        assert client.status().pauses == held.pauses and client.status().worker == "paused"
        taken = client.capture(origin(), [said("I keep axolotls.", "1")])
        assert (taken.accepted, taken.skipped, taken.why) == (0, 1, "paused")
        with pytest.raises(Withheld) as caught:
            client.remember("I keep axolotls.")
        assert "memd resume" in caught.value.hint
        assert client.resume().ended and not client.resume().ended
        assert client.status().pauses == ()
        assert client.capture(origin(), [said("I keep newts.", "2")]).accepted == 1
    assert words_on_disk(daemon, "axolotls") == []


def test_a_pause_of_a_folder_covers_it_and_below_and_nothing_else_P2(daemon: Any, tmp_path: Path) -> None:
    inside, outside = tmp_path / "a" / "b", tmp_path / "ab"
    inside.mkdir(parents=True)
    outside.mkdir()
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "a")
    with daemon.client() as client:
        client.pause(str(link))
        for number, (folder, why) in enumerate(((inside, "paused"), (link / "b", "paused"), (outside, ""), ("", ""))):
            event = said(f"The lamp{number} is on.", str(number))
            assert client.capture(origin(str(folder), str(number)), [event]).why == why
        with pytest.raises(NotFound):
            client.resume(str(inside))
        assert client.resume(str(tmp_path / "a")).ended
        assert client.capture(origin(str(inside), "9"), [said("The lamp is off.", "9")]).accepted == 1


def test_what_was_said_in_a_pause_is_not_taken_afterwards_either_P2(daemon: Any) -> None:
    with daemon.client() as client:
        client.pause()
        meanwhile = said_now("The quokka sleeps.", "1")
        client.resume()
        taken = client.capture(origin(), [meanwhile, said_now("The quokka wakes.", "2")])
        assert (taken.accepted, taken.skipped) == (1, 1)


def test_a_spool_does_not_grow_while_paused_P2(daemon: Any, home: dict[str, str]) -> None:
    with daemon.client() as client:
        client.spool.append(Remember(text="I use vim.", turn="1", at=AT, origin=origin()))
        client.pause()
        assert client.drain().delivered == 1 and client.spool.waiting() == 0
        client.capture_or_spool(origin(), [said("I use emacs.", "2")])
        assert client.spool.waiting() == 0
        assert client.status().archive_seq == 0


def test_a_session_that_was_open_before_a_pause_may_end_in_it_W2(daemon: Any) -> None:
    with daemon.client() as client:
        client.capture(origin(), [said("The lamp is on.", "1")])
        client.pause()
        assert client.capture(origin(), [SessionEnded(turn="e", at=AT)]).accepted == 1
        assert client.capture(origin(session="other"), [SessionEnded(turn="e", at=AT)]).skipped == 1


def test_nothing_is_distilled_while_paused_everywhere_P2(daemon: Any) -> None:
    with daemon.client() as client:
        client.capture(origin(), [said("I prefer tabs for indentation.", "1")])
        client.pause()
        pending = client.distil().pending
        time.sleep(0.5)
        assert client.status().pending == pending
        client.resume()
    daemon.settle()


@pytest.mark.parametrize(
    ("globs", "cwd", "taken"),
    [
        ("~/secret", "/u/ada/secret/deep", 0),
        ("~/secret", "/u/ada/secrets", 1),
        ("client-*", "/srv/client-a/src", 0),
        ("/srv/*/private:*.tmp", "/srv/x/private/y", 0),
        ("/srv/*/private:*.tmp", "/a/b.tmp", 0),
        ("/srv/*/private", "/srv/x", 1),
    ],
)
def test_ignored_folders_are_not_captured_W2(home: dict[str, str], globs: str, cwd: str, taken: int) -> None:
    daemon = RunningDaemon({**home, "MEMD_IGNORED_FOLDERS": globs, "HOME": "/u/ada"})
    daemon.start()
    try:
        with daemon.client() as client:
            told = client.capture(origin(cwd), [said("The lamp is on.", "1")])
            assert (told.accepted, told.why) == (taken, "" if taken else "ignored")
            assert client.status().ignored == tuple(globs.split(":"))
    finally:
        daemon.terminate()


TIMES = st.integers(0, 50)
STEPS = st.lists(
    st.tuples(st.sampled_from(["pause", "resume", "restart"]), st.sampled_from(["", "/a", "/a/b"]), st.integers(0, 9)),
    max_size=8,
)


@settings(deadline=None, max_examples=60)
@given(steps=STEPS, cwd=st.sampled_from(["", "/a", "/a/b", "/c"]))
def test_pauses_hold_as_a_list_of_intervals_says_P2(
    steps: list[tuple[str, str, int]], cwd: str, tmp_path_factory: Any
) -> None:
    """A model of intervals, told beside: an event is skipped if one covers it, by when it is sent or was said."""
    folder, clock = tmp_path_factory.mktemp("pauses"), [0]
    pauses = PauseRegister(folder, (), "/u", lambda: clock[0] * SECOND, lambda: "")
    model: list[list[Any]] = []
    for what, where, length in steps:
        clock[0] += 3
        now = clock[0]
        active = [each for each in model if each[0] == where and each[1] <= now < each[2]]
        if what == "pause":
            pauses.pause(where, length)
            since = active[0][1] if active else now
            model = [each for each in model if each not in active]
            model.append([where, since, now + length if length else 10**9])
        elif what == "resume":
            try:
                pauses.resume(where)
            except NotFound:
                assert not active
            for each in active:
                each[2] = now
        else:
            pauses = PauseRegister(folder, (), "/u", lambda: clock[0] * SECOND, lambda: "")
    clock[0] += 1
    here = [each for each in model if not each[0] or cwd == each[0] or cwd.startswith(each[0] + "/")]
    for at in range(clock[0] + 1):
        expected = any(each[1] <= at < each[2] or each[1] <= clock[0] < each[2] for each in here)
        assert bool(pauses.skip(origin(cwd), from_micros(at * SECOND))) == expected


def test_private_spans_never_reach_the_disk_W5(daemon: Any) -> None:
    words = "The lamp is on. <private>the axolotl password</private> The door is shut."
    with daemon.client() as client:
        events = [said(words, "1"), ToolCalled(turn="2", at=AT, name="bash", arguments=words)]
        titled = Origin(host="h", session="s", title="<private>axolotl</private> day")
        assert client.capture(titled, events).accepted == 2
        client.remember(Remember(text=f"Mind that: {words}", turn="3", at=AT, origin=origin()))
        daemon.settle()
        assert "[private]" in client.list().records[0].provenance.quote
        with pytest.raises(Exception, match="nothing to remember"):
            client.remember("<private>axolotl")
    daemon.terminate()
    assert words_on_disk(daemon, "axolotl") == []


def test_an_idle_session_ends_although_memd_was_restarted_W2(home: dict[str, str]) -> None:
    daemon = RunningDaemon({**home, "MEMD_SESSION_IDLE_MIN": "0.01"})
    daemon.start()
    with daemon.client() as client:
        client.capture(origin(), [said("The lamp is on.", "1")])
    daemon.kill()
    daemon.start()
    assert ends(daemon) == 1
    with daemon.client() as client:
        client.capture(origin(), [said("The lamp is off again.", "2")])
    daemon.kill()
    daemon.start()
    assert ends(daemon, 2) == 2, "a session that goes on after its end ends once more"
    daemon.terminate()


def ends(daemon: Any, wanted: int = 1) -> int:
    end, kinds = time.monotonic() + 90, list[str]()
    while time.monotonic() < end:
        with Client(daemon.places) as client:
            kinds = [type(each.operation).__name__ for each in client.journal(limit=500).entries]
        if kinds.count("SessionClosed") >= wanted:
            break
        time.sleep(0.1)
    return kinds.count("SessionClosed")
