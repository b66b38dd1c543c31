"""Every screen of the panel, checked by axe-core in light, in dark and on a narrow page (U4)."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Literal

import pytest
from axe_playwright_python.sync_playwright import Axe

from memd.clients.python.client import Client
from memd.protocol.event import Origin, Said, SessionEnded, SessionStarted
from tests.clients.panel.conftest import OpenPage, RunningPanel, needs_browser
from tests.clients.panel.test_sharing_screen import bert_shares, shared_project
from tests.clients.panel.test_skills_screen import place_one_and_draft_one
from tests.conftest import RunningDaemon

pytestmark = needs_browser

DAY = datetime(2026, 3, 4, 9, 0, tzinfo=UTC)
TURNS = ("We decided to keep the apple ledger in SQLite.", "Noted.", "Never oil the left bearing of the press.")
LOOKS: dict[str, tuple[Literal["light", "dark"], int]] = {
    "light": ("light", 1280),
    "dark": ("dark", 1280),
    "narrow": ("light", 375),
}
"""Colours and width of the page in pixels."""


def fill(daemon: RunningDaemon, panel: RunningPanel) -> list[str]:
    """Give every screen something to show; the addresses of all screens."""
    origin = Origin(host="claude-code", session="s1", cwd=str(panel.folder))
    with daemon.client() as client:
        pool = shared_project(client, panel.folder)
        client.offer_records(pool, [client.review_share(pool).candidates[0].record.id])
        bert_shares(client, pool, panel.folder)
        at = DAY.isoformat()
        client.capture(origin, [SessionStarted(turn="start", at=at), *spoken(), SessionEnded(turn="end", at=at)])
        ids = [
            client.remember(text, cwd=str(panel.folder)).record.id
            for text in ("I always deploy the orchard service on Thursdays.", "I prefer tabs in Go.")
        ]
        daemon.settle()
        client.pin(ids[1])
        client.correct(ids[0], "I always deploy the orchard service on Wednesdays.")
        client.use_remote("http://127.0.0.1:9/v1", "tiny-1")
        client.consent_remote("personal", days=7)
        client.put_setting("idle_s", "5")
        client.propose_forget(ids[1:], by="agent")
        place_one_and_draft_one(daemon, panel.folder)
        daemon.settle()
        return addresses(client, ids[1])


def spoken() -> Iterator[Said]:
    """The turns of a session, of user and agent by turns."""
    for number, text in enumerate(TURNS):
        role = "assistant" if number % 2 else "user"
        yield Said(turn=f"t{number}", at=(DAY + timedelta(minutes=number)).isoformat(), role=role, text=text)


def addresses(client: Client, id: str) -> list[str]:
    """The address of each screen that a person can open, in each of its forms."""
    session = "claude-code:s1"
    whole = (
        "/",
        "/memories",
        "/fading",
        "/activity",
        "/activity/sessions",
        "/skills",
        "/agents",
        "/reports",
        "/readers",
        "/sharing",
        "/settings",
    )
    forms = ("/?view=text", "/?view=before", "/memories?q=tabs", "/memories?q=zebra", "/memories?show=retired")
    parts = (f"/memories/{id}", f"/memories/{id}/right", f"/memories/{id}/right?as=words")
    told = ("/activity?who=you", "/activity?who=memd", "/activity?who=agents", f"/activity/session?id={session}")
    more = (
        f"/readers/bytes?session={session}",
        "/settings?at=idle_s",
        "/memories/unknown-id",
        "/activity/sessions?words=press",
    )
    mapped = ("/map", "/map?around=SQLite", "/map?as_of=2026-03-05T00:00:00Z", "/?as_of=2026-03-05T00:00:00Z")
    decided = ("/inbox", "/triage", f"/forget?id={id}")
    return [*whole, *forms, *parts, *told, *more, *mapped, *decided]


def violations(tab: OpenPage) -> list[str]:
    """What axe-core finds wrong on a page: rule, and the element."""
    found = Axe().run(tab.page).response["violations"]
    return [f"{rule['id']}: {node['html'][:200]}" for rule in found for node in rule["nodes"]]


@pytest.mark.slow
def test_axe_finds_no_violation_on_any_screen_in_light_dark_and_narrow_U4(
    daemon: RunningDaemon, panel: RunningPanel, opened: Callable[..., OpenPage]
) -> None:
    screens = fill(daemon, panel)
    tab = opened(bypass_csp=True, reduced_motion="reduce")  # axe-core is put into the page
    wrong: dict[str, list[str]] = {}
    for address in screens:
        tab.go(address)
        for look, (colours, width) in LOOKS.items():
            tab.page.emulate_media(color_scheme=colours)
            tab.page.set_viewport_size({"width": width, "height": 900})
            if found := violations(tab):
                wrong[f"{address} {look}"] = found
            assert tab.page.evaluate("document.documentElement.scrollWidth") <= width, f"{address} {look}"
    assert wrong == {}


def test_axe_finds_what_is_wrong_U4(panel: RunningPanel, opened: Callable[..., OpenPage]) -> None:
    tab = opened(bypass_csp=True)
    tab.page.evaluate("document.querySelector('#ask').removeAttribute('aria-label')")
    tab.page.evaluate("document.querySelector('h1').style.color = '#cfcfcf'")
    assert {found.split(":")[0] for found in violations(tab)} >= {"color-contrast"}
