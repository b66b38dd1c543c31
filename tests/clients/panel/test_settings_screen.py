"""Settings in a real browser: each with its value and source; changed, refused in place, given back (U4, U6)."""

from collections.abc import Callable
from pathlib import Path

import pytest

from memd.clients.panel.screens.settings_screen import OTHERS, entries_of, grouped
from memd.protocol.settings import Setting
from tests.clients.panel.conftest import OpenPage, RunningPanel, needs_browser
from tests.conftest import RunningDaemon


@pytest.fixture
def home(home: dict[str, str]) -> dict[str, str]:
    """An environment that sets one setting."""
    return {**home, "MEMD_BACKUP_KEEP": "3"}


@needs_browser
def test_a_setting_is_changed_refused_in_place_and_given_back_U6(
    daemon: RunningDaemon, panel: RunningPanel, opened: Callable[..., OpenPage]
) -> None:
    tab = opened()
    for key in ("g", "t"):
        tab.page.keyboard.press(key)
    tab.find("h1 >> text=Settings").wait_for()
    for key in ("j", "Enter"):
        tab.page.keyboard.press(key)
    assert tab.find("#setting-ignored-folders[open]").count() == 1
    with daemon.client() as client:
        before = {setting.name: setting for setting in client.settings().settings}
        file = client.settings().file
        row = tab.find(".setting").filter(has_text="relevance_floor")
        assert row.is_hidden() and tab.find("#setting-worker-threads").is_visible()
        tab.find("#more-settings > summary").click()
        row.locator("summary").click()
        assert before["relevance_floor"].about in row.inner_text()
        row.locator("input[type=text]").fill("7")
        row.get_by_role("button", name="Save").scroll_into_view_if_needed()
        place = tab.page.evaluate("scrollY")
        row.get_by_role("button", name="Save").click()
        tab.find("#says-relevance-floor .bad").wait_for()
        assert "memd changed nothing" in tab.text("#says-relevance-floor")
        assert tab.page.evaluate("scrollY") == place, "the refusal stands where the user looks"
        row.locator("input[type=text]").fill("0.4")
        tab.page.keyboard.press("Enter")
        tab.find("#notice >> text=fit a question is 0.4 now").wait_for()
        changed = {setting.name: setting for setting in client.settings().settings}
        assert (changed["relevance_floor"].value, changed["relevance_floor"].source) == ("0.4", "file")
        assert "relevance_floor = 0.4" in Path(file).read_text(encoding="utf-8")
        tab.find(".setting[open] >> text=Back to the default").click()
        tab.find("#notice >> text=fit a question is 0.28 now").wait_for()
        assert client.settings().settings == tuple(before.values())
        tab.find("#notice button[data-key=u]").click()
        tab.find("#notice >> text=fit a question is 0.4 now").wait_for()


@needs_browser
def test_an_entry_of_a_table_is_a_setting_and_the_environment_comes_first_U6(
    daemon: RunningDaemon, panel: RunningPanel, opened: Callable[..., OpenPage]
) -> None:
    tab = opened().go("/settings?at=forgetting.floor")
    with daemon.client() as client:
        entries = next(setting for setting in client.settings().settings if setting.name == "forgetting").entries
        row = tab.find(".setting[open]")
        assert entries["floor"] in row.inner_text() and "(T6)" not in row.inner_text()
        row.locator("input[type=text]").fill("0.2")
        row.get_by_role("button", name="Save").click()
        tab.find("#notice >> text=archived is 0.2 now").wait_for()
        table = next(setting for setting in client.settings().settings if setting.name == "forgetting")
        assert '"floor" = 0.2' in table.value and table.source == "file"
    tab.go("/settings?at=backup_keep")
    fixed = tab.find(".setting[open]")
    assert "MEMD_BACKUP_KEEP" in fixed.inner_text() and fixed.locator("form").count() == 0


def test_a_setting_that_no_group_names_is_shown_too() -> None:
    new = Setting(name="brand_new", value="1", default="1", source="default", about="New.")
    table = Setting(name="hook", value='{"recall" = "off"}', default='{"recall" = "on"}', source="file", about="Hooks.")
    groups = {group.title: group.settings for group in grouped([new, table])}
    assert groups[OTHERS] == [new]
    assert [setting.name for setting in groups["What agents get"]] == ["hook.recall"]
    assert sum(len(settings) for settings in groups.values()) == 2, "each once"
    [entry] = entries_of(table)
    assert (entry.name, entry.value, entry.default, entry.source) == ("hook.recall", '"off"', '"on"', "file")
