"""The map and the time of the page, in a real browser (U4, Q12)."""

import re
from collections.abc import Callable
from typing import Any
from urllib.parse import quote

from memd.clients.python import Client
from memd.protocol.errors import NotFound
from memd.protocol.instant import from_micros, micros
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
        tab = opened()
        for entry in client.journal(limit=500).entries:
            _shows_then(tab, client, deploys, "believed_at", entry.at)
        valid = client.get(deploys).valid_from
        for at in (valid, "2001-01-01T00:00:00+00:00", client.get(client.get(deploys).superseded_by).valid_from):
            _shows_then(tab, client, deploys, "as_of", micros(at))


def _shows_then(tab: OpenPage, client: Client, id: str, clock: str, at_us: int) -> None:
    """Check that a memory and the list are at that time what `get` and `list` say, and can't be changed."""
    at = from_micros(at_us)
    times: dict[str, Any] = {clock: at}
    tab.go(f"/memories/{id}?{clock}={quote(at)}")
    try:
        assert tab.text("h1") == client.get(id, **times).description
    except NotFound:
        assert "not known or not valid" in tab.text().lower()
    assert tab.find("#view form[method=post], #view a[href*='/right'], #view a[href*='/forget']").count() == 0
    tab.go(f"/memories?{clock}={quote(at)}")
    shown = {row.removeprefix("row-") for row in tab.find("a.rw").evaluate_all("all => all.map(a => a.id)")}
    assert shown == {record.id for record in client.list(statuses=("active",), limit=40, **times).records}


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
