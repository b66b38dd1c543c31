"""Whose memory a screen shows, where a question was searched, and the past, in a real browser (U4, P3, Q12)."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from memd.clients.panel.screens.profile_screen import ProfileSection, told_apart
from memd.clients.panel.wording import QUOTED, cut, version_reason
from memd.protocol.profile import ProfileLine
from memd.protocol.record import Status
from tests.clients.panel.conftest import Opened, RunningPanel, needs_browser
from tests.clients.panel.test_profile_screen import SAYINGS, say
from tests.conftest import RunningDaemon


@needs_browser
def test_each_screen_names_its_scope_and_a_question_can_be_asked_everywhere_P3(
    daemon: RunningDaemon, panel: RunningPanel, opened: Opened
) -> None:
    say(daemon, panel, SAYINGS[0])
    tab = opened()
    assert (
        "of orchard and you." in tab.text(".lead") and tab.find("#pool option").first.inner_text() == "orchard and you"
    )
    tab.go("/memories?q=deploy")
    assert "Searched: orchard and you." in tab.text(".lead")
    tab.find("text=Search everywhere").click()
    tab.find(".lead >> text=Searched: everywhere.").wait_for()
    assert tab.find(".hit >> text=Thursdays").count() and tab.find("text=Search everywhere").count() == 0
    then = (datetime.now(UTC) + timedelta(days=1)).isoformat(timespec="seconds").replace("+00:00", "Z")
    tab.go(f"/?as_of={then}")
    assert tab.text("h1").startswith("What your agents would have seen on ") and "Open a line" not in tab.text(".lead")
    tab.find(".when-body .legend").wait_for()
    assert "as they held on that day" in tab.text(".when-body")
    tab.find("[data-closes]").click()
    assert tab.find("details.when[open]").count() == 0 and tab.find(".when summary:focus").count() == 1
    assert tab.complaints == [] and tab.foreign == []


@pytest.fixture
def bare_folder(tmp_path: Path) -> Path:
    """A folder that is no project."""
    folder = tmp_path / "loose"
    folder.mkdir()
    return folder


@needs_browser
def test_a_folder_that_is_no_project_shows_only_the_user_P3(
    daemon: RunningDaemon, bare_folder: Path, opened: Opened, panel: RunningPanel
) -> None:
    panel.end()
    alone = RunningPanel(daemon.environment, bare_folder)
    try:
        tab = opened(alone.link)
        assert tab.find("#pool option").first.inner_text() == "only you (this folder is no project)"
    finally:
        alone.end()


def test_the_second_section_of_a_heading_is_named_unconfirmed_Q1() -> None:
    def section(heading: str, status: Status) -> ProfileSection:
        return ProfileSection(heading, lines=[("I prefer tabs.", ProfileLine("a", heading, 0, 1, status))])

    shown = [section("Preferences", "active"), section("Preferences", "provisional"), section("Facts", "provisional")]
    assert [part.is_unconfirmed for part in told_apart(shown)] == [False, True, False]
    assert not told_apart([shown[0], shown[0]])[1].is_unconfirmed


def test_a_quote_is_cut_at_a_whole_line_or_word() -> None:
    assert cut("Short.") == "Short."
    line = "word " * (QUOTED // 10)
    assert cut(f"{line}\n{line}\n{line}") == f"{line.rstrip()}\n…"
    assert cut("word " * QUOTED).endswith("word …") and len(cut("word " * QUOTED)) <= QUOTED + 2


def test_a_version_is_not_said_to_repeat_itself_U4() -> None:
    assert version_reason("says what abc says (same words)", "abc") == "it was said again"
    assert version_reason("says what abc says (same words)", "def") == "says what abc says (same words)"
