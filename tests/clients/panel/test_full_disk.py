"""An edit in the panel while the disk is full, a real one (P12, U4)."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.clients.panel.conftest import Opened, RunningPanel, needs_browser, remember
from tests.conftest import RunningDaemon
from tests.faults.test_full import BALLAST_MB, fill, small

pytestmark = needs_browser

__all__ = ["small"]


@pytest.fixture
def daemon(small: Path) -> Iterator[RunningDaemon]:
    """A daemon whose home is on a small file system."""
    settings = {"MEMD_HOME": str(small), "MEMD_BALLAST_MB": str(BALLAST_MB)}
    running = RunningDaemon({**os.environ, **settings})
    running.start()
    yield running
    running.terminate()


def test_a_full_disk_is_told_and_the_typed_words_stay_P12_U4(
    daemon: RunningDaemon, small: Path, panel: RunningPanel, opened: Opened
) -> None:
    record = remember(daemon, "I prefer tabs for indentation.", "1")
    words = "I prefer tabs for indentation, in Go at least. " * 20
    tab = opened().go(f"/memories/{record.id}/right?as=words")
    tab.find("#text").fill(words)
    tab.find("#preview ins").first.wait_for()
    fill(small / "filler")
    tab.find("button.go").click()
    tab.find("#notice .toast.bad").wait_for()
    assert "free some space" in tab.text("#notice")
    assert tab.find("#text").input_value() == words
    with daemon.client() as client:
        assert client.get(record.id).content == record.content
    (small / "filler").unlink()
    for _ in range(30):  # until the daemon sees that there is room
        tab.find("button.go").click()
        tab.find("#notice .toast").wait_for()
        if tab.find("#notice >> text=Saved in your words.").count():
            break
        tab.find("#close-notice").click()
        tab.page.wait_for_timeout(500)
    with daemon.client() as client:
        assert client.get(record.id).content == words.strip()
