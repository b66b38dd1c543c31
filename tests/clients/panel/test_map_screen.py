"""The map and the time of the page, in a real browser (U4, Q12)."""

import re
import time
from collections.abc import Callable
from urllib.parse import quote

from memd.protocol.errors import NotFound
from tests.clients.panel.conftest import OpenPage, RunningPanel, needs_browser
from tests.conftest import RunningDaemon

pytestmark = needs_browser

SAYINGS = (
    "The orchard service stores its rows in PostgreSQL, because one team runs it.",
    "We run PostgreSQL 16 in the packing shed.",
    "I deploy the orchard service on Thursdays.",
)


def say(daemon: RunningDaemon, panel: RunningPanel) -> list[str]:
    with daemon.client() as client:
        ids = [client.remember(text, cwd=str(panel.folder)).record.id for text in SAYINGS]
    daemon.settle()
    return ids


def test_the_map_leads_from_a_topic_to_its_memories_and_is_a_list_as_well_U4(
    daemon: RunningDaemon, panel: RunningPanel, opened: Callable[..., OpenPage]
) -> None:
    [stored, *_] = say(daemon, panel)
    tab = opened().go("/map")
    listed = [" ".join(text.split()) for text in tab.find(".marks td:first-child a").all_text_contents()]
    drawn = tab.find("#map a").evaluate_all("all => all.map(a => a.getAttribute('aria-label'))")
    assert sorted(drawn) == sorted(listed) and "PostgreSQL" in listed
    tab.find("#map a[aria-label=PostgreSQL]").click()
    tab.find("h1 >> text=Around “PostgreSQL”").wait_for()
    tab.find(f"#map a[href^='/memories/{stored}']").focus()
    assert "stores its rows" in tab.text("#map-said")
    tab.page.keyboard.press("Enter")
    tab.find("h1 >> text=stores its rows").wait_for()
    assert tab.complaints == []


def test_the_same_memory_is_drawn_at_the_same_places_U4(
    daemon: RunningDaemon, panel: RunningPanel, opened: Callable[..., OpenPage]
) -> None:
    say(daemon, panel)
    places = [
        opened().go("/map").find("#map a").evaluate_all("all => all.map(a => a.getAttribute('transform'))")
        for _ in range(2)
    ]
    assert places[0] == places[1] and all(re.match(r"translate\(-?[\d.]+ -?[\d.]+\)", place) for place in places[0])


def test_the_time_shows_what_get_says_of_that_time_and_the_past_can_not_be_changed_Q12(
    daemon: RunningDaemon, panel: RunningPanel, opened: Callable[..., OpenPage]
) -> None:
    *_, deploys = say(daemon, panel)
    with daemon.client() as client:
        client.correct(deploys, "I deploy the orchard service on Wednesdays.")
        daemon.settle()
        entries = client.journal(limit=500).entries
        tab = opened()
        for entry in (entries[len(entries) // 3], entries[2 * len(entries) // 3], entries[-1]):
            at = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(entry.at // 10**6)) + f".{entry.at % 10**6:06}+00:00"
            tab.go(f"/memories/{deploys}?believed_at={quote(at)}")
            try:
                wanted = client.get(deploys, believed_at=at).description
            except NotFound:
                assert "no record" in tab.text().lower()
                continue
            assert tab.text("h1") == wanted
            assert tab.find("#view form[method=post], #view a[href*='/right'], #view a[href*='/forget']").count() == 0
            tab.go(f"/memories?believed_at={quote(at)}")
            shown = {row.removeprefix("row-") for row in tab.find("a.rw").evaluate_all("all => all.map(a => a.id)")}
            page = client.list(believed_at=at, statuses=("active",), limit=40)
            assert shown == {record.id for record in page.records}


def test_the_slider_and_the_keys_go_through_time_Q12(
    daemon: RunningDaemon, panel: RunningPanel, opened: Callable[..., OpenPage]
) -> None:
    *_, deploys = say(daemon, panel)
    with daemon.client() as client:
        client.correct(deploys, "I deploy the orchard service on Wednesdays.")
    daemon.settle()
    tab = opened().go("/memories")
    tab.page.keyboard.press("t")
    tab.find(".when-body button >> text=what memd believed").click()
    tab.find(".when-body button.on >> text=what memd believed").wait_for()
    tab.page.keyboard.press("ArrowLeft")
    tab.find(".past").wait_for()
    assert "believed_at=" in tab.page.url and "Nothing can be changed in the past" in tab.text(".past")
    tab.find("input.slider").wait_for()
    tab.page.keyboard.press("Escape")
    tab.find(".past").wait_for(state="detached")
    assert "believed_at" not in tab.page.url
