"""Secrets at the door, and `memd scan` over what is stored: named by kind, never by word (W5, P-18)."""

import time
from typing import Any

from memd.daemon.store.archive import Archive
from memd.daemon.world import real_world
from memd.protocol.event import Captured, Origin, Said
from memd.protocol.reply import JobState

KEY = "ATBB" + "3g7gLXseCxPjJs1CQNMyEjwf1D12516D"
"""Known to the rule sets, not to the short list; in two halves, so that no scanner takes this file for a leak."""
AT = "2026-03-10T09:00:00+01:00"
WHERE = Origin(host="test", session="one")


def finished(client: Any, state: JobState) -> dict[str, Any]:
    """The report of a job when it is over."""
    end = time.monotonic() + 60
    while state.state == "running":
        assert time.monotonic() < end
        time.sleep(0.02)
        state = client.job(state.id)
    assert state.state == "done", state.problem
    return dict(state.report)


def test_the_door_takes_out_what_the_first_net_does_not_know_P18(daemon: Any) -> None:
    with daemon.client() as client:
        client.capture(WHERE, [Said(turn="1", at=AT, role="user", text=f"Clone it with {KEY} as the password.")])
        client.remember(f"The deploy password is {KEY} on the build host.")
        report = finished(client, client.scan())
    daemon.terminate()
    held = b"".join(path.read_bytes() for path in daemon.places.data.rglob("*") if path.is_file())
    assert KEY.encode() not in held and b"[redacted:bitbucket-app-password]" in held
    assert report["checked_captures"] >= 2 and report["checked_records"] >= 1
    assert report["captures"] == 0 and report["records"] == [] and report["rules"] == []


def test_scan_names_what_an_older_memd_took_without_its_words_P18(daemon: Any) -> None:
    with daemon.client() as client:
        client.capture(WHERE, [Said(turn="1", at=AT, role="user", text="Nothing to see.")])
    daemon.terminate()
    archive = Archive(daemon.places.data / "archive", real_world())
    archive.take([Captured(document=WHERE.document, event=Said(turn="2", at=AT, role="user", text=f"It is {KEY}."))])
    archive.log.environment.close()
    daemon.start()
    with daemon.client() as client:
        report = finished(client, client.scan())
    assert report["captures"] == 1 and report["sessions"] == [WHERE.document]
    assert report["rules"] == ["bitbucket-app-password 1"]
    assert KEY not in str(report)
