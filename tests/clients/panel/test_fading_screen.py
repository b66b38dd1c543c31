"""What fades, in a real browser, beside the command (T9)."""

from collections.abc import Callable
from typing import Any

from tests.clients.panel.conftest import OpenPage, RunningPanel, needs_browser
from tests.conftest import RunningDaemon

pytestmark = needs_browser


def test_the_forecast_equals_that_of_the_command_T9_U8(
    daemon: RunningDaemon, panel: RunningPanel, opened: Callable[..., OpenPage], memd: Any
) -> None:
    with daemon.client() as client:
        for crop in ("apples", "pears", "plums"):
            client.remember(f"We press the {crop} on the second Monday of the month.", cwd=str(panel.folder))
    daemon.settle()
    tab = opened()
    for days in (0, 20, 60, 120):
        tab.go(f"/fading?days={days}")
        told = memd("maintain", "fading", "--after", str(days), "--json", "--cwd", str(panel.folder)).data
        assert f"{told['gone']} of {told['total']} would be in the archive" in tab.text()
        shown = {
            row.removeprefix("row-") for row in tab.find("[data-row] a[id]").evaluate_all("all => all.map(a => a.id)")
        }
        assert shown == {row["record"]["id"] for row in told["records"]}
    assert tab.complaints == []


def test_the_slider_asks_for_another_day_and_a_pinned_memory_stays_T9(
    daemon: RunningDaemon, panel: RunningPanel, opened: Callable[..., OpenPage]
) -> None:
    with daemon.client() as client:
        id = client.remember("We press the apples on the second Monday of the month.", cwd=str(panel.folder)).record.id
    daemon.settle()
    tab = opened().go("/fading?days=119")
    tab.find("#days").focus()
    tab.page.keyboard.press("ArrowRight")
    tab.find("label >> text=In 120 days of work").wait_for()
    tab.find(f"[data-row]:has(#row-{id}) >> text=Keep: pin it").click()
    tab.find("#notice .toast").wait_for()
    tab.find(f"#row-{id}").wait_for(state="detached")
    with daemon.client() as client:
        assert client.get(id).pinned


def test_the_axis_has_days_dates_and_shares_as_text_T9(
    daemon: RunningDaemon, panel: RunningPanel, opened: Callable[..., OpenPage]
) -> None:
    with daemon.client() as client:
        client.remember("We press the apples on the second Monday of the month.", cwd=str(panel.folder))
    daemon.settle()
    tab = opened(viewport={"width": 375, "height": 800}).go("/fading?days=120")
    ticks = [" ".join(text.split()) for text in tab.find(".ticks li").all_inner_texts()]
    assert [tick.split(",")[0].split(" ")[0] for tick in ticks] == ["now", "30", "60", "90"]
    assert ticks[0].endswith("0 %") and ticks[-1].endswith("100 %")
    assert "highest bar: 1 memory, 100 %" in tab.text() and "at the earliest" in tab.text()
    assert tab.page.evaluate("document.documentElement.scrollWidth") == 375


def test_an_empty_home_says_so_T9(panel: RunningPanel, opened: Callable[..., OpenPage]) -> None:
    assert "Nothing fades here" in opened().go("/fading").text()
