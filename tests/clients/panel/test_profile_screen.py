"""What agents see, in a real browser (U4, Q1, U8)."""

from collections.abc import Callable
from typing import Any
from urllib.parse import quote

from memd.protocol.event import Origin, Said, SessionEnded
from memd.protocol.record import Record
from tests.clients.panel.conftest import OpenPage, RunningPanel, needs_browser
from tests.conftest import RunningDaemon

pytestmark = needs_browser

SAYINGS = ("I always deploy the orchard service on Thursdays.", "I prefer tabs in Go.", "My timezone is Europe/Berlin.")


def say(daemon: RunningDaemon, panel: RunningPanel, *sayings: str) -> list[str]:
    """Remember sentences in the panel's folder; their ids."""
    with daemon.client() as client:
        ids = [client.remember(text, cwd=str(panel.folder)).record.id for text in sayings]
    daemon.settle()
    return ids


def test_the_first_page_is_byte_for_byte_what_the_hook_prints_U4_U8(
    daemon: RunningDaemon, panel: RunningPanel, opened: Callable[..., OpenPage], memd: Any
) -> None:
    say(daemon, panel, *SAYINGS)
    tab = opened()
    lines = tab.find(".ln .line").all_inner_texts()
    assert any("tabs in Go" in line for line in lines)
    tab.go("/?view=text")
    with daemon.client() as client:
        text = client.profile(cwd=str(panel.folder)).text
    assert tab.find("#exact").text_content() == text
    assert [line for line in text.splitlines() if line.startswith("- ")] == [f"- {line}" for line in lines]
    assert tab.complaints == [] and tab.foreign == []
    assert tab.page.context.cookies() == []


def test_an_edited_line_is_in_the_next_profile_and_undo_takes_it_back_U4(
    daemon: RunningDaemon, panel: RunningPanel, opened: Callable[..., OpenPage]
) -> None:
    [id] = say(daemon, panel, SAYINGS[0])
    tab = opened()
    tab.find("text=Reword…").click()
    tab.find("#text").fill("I deploy the orchard service on Thursdays, never after 15:00.")
    tab.find("#preview ins").first.wait_for()
    assert "never after 15:00" in tab.text("#preview")
    tab.find("button.go").click()
    tab.find("#notice .toast").wait_for()
    with daemon.client() as client:
        assert "never after 15:00" in client.profile(cwd=str(panel.folder)).text
        tab.page.keyboard.press("u")
        tab.find("#notice >> text=Taken back").wait_for()
        assert "never after" not in client.profile(cwd=str(panel.folder)).text
        assert client.get(id).id == id


def test_a_correction_shows_what_changes_and_changes_just_that_T1(
    daemon: RunningDaemon, panel: RunningPanel, opened: Callable[..., OpenPage]
) -> None:
    [id, other, *_] = say(daemon, panel, *SAYINGS)
    tab = opened().go(f"/memories/{id}/right")
    with daemon.client() as client:
        before, stays = client.journal(limit=1).last, client.get(other)
        field = tab.find("#text")
        field.fill(field.input_value().replace("Thursdays", "Wednesdays"))
        tab.find("#preview del").wait_for()
        assert tab.text("#preview del") == "Thursdays" and tab.text("#preview ins") == "Wednesdays"
        was, would = (tab.text(f"#preview .diff .{kind}")[2:] for kind in "da")
        assert was in (profile := client.profile(cwd=str(panel.folder)).text) and would not in profile
        assert client.journal(limit=1).last == before, "a preview changes nothing"
        tab.find("button.go").click()
        tab.find("#notice .toast").wait_for()
        daemon.settle()
        old, kept = client.get(id), client.get(other)
        assert would in (profile := client.profile(cwd=str(panel.folder)).text) and was not in profile
        assert old.status == "retired" and "Wednesdays" in client.get(old.superseded_by).description
        assert (kept.status, kept.description) == (stays.status, stays.description)
        tab.find("#notice button[data-key=u]").click()
        tab.find("#notice >> text=Taken back").wait_for()
        daemon.settle()
        assert client.get(id).status == "active"


def test_two_tabs_the_second_shows_what_the_first_changed_U4(
    daemon: RunningDaemon, panel: RunningPanel, opened: Callable[..., OpenPage]
) -> None:
    say(daemon, panel, SAYINGS[1])
    first, second = opened(), opened()
    second.find("text=tabs in Go").first.wait_for()
    first.find("summary[data-key=n]").click()
    first.find("#say").fill("I write commit messages in British English.")
    first.find(".say button.go").click()
    first.find("#notice .toast").wait_for()
    second.find(".ln >> text=British English").first.wait_for(timeout=60_000)


def test_a_hostile_record_is_text_U4_P19(
    daemon: RunningDaemon, panel: RunningPanel, opened: Callable[..., OpenPage]
) -> None:
    hostile = "I prefer <img src=x onerror=alert(1)> & <script>document.title='owned'</script> in Go templates."
    [id] = say(daemon, panel, hostile)
    tab = opened()
    for path in ("/", "/memories", f"/memories/{id}", "/memories?q=templates", f"/memories/{id}/right"):
        tab.go(path)
        assert "onerror=alert(1)" in tab.find("#view").inner_html().replace("&lt;", "<").replace("&gt;", ">")
        assert tab.find("#view img, #view script").count() == 0 and tab.page.title() != "owned"
    assert [line for line in tab.complaints if "Failed to load" not in line] == []


def test_a_stopped_daemon_is_said_and_a_started_one_is_used_again_U4(
    daemon: RunningDaemon, panel: RunningPanel, opened: Callable[..., OpenPage]
) -> None:
    say(daemon, panel, SAYINGS[1])
    tab = opened()
    daemon.kill()
    tab.find("nav >> text=Memories").click()
    tab.find("[role=alert]").wait_for()
    assert "memd up" in tab.text("[role=alert]") or "not running" in tab.text("[role=alert]")
    daemon.start()
    tab.find("nav >> text=Memories").click()
    tab.find(".rw >> text=tabs in Go").wait_for()


def test_an_empty_home_says_what_to_do_U4(panel: RunningPanel, opened: Callable[..., OpenPage]) -> None:
    tab = opened()
    assert "nothing to tell an agent here yet" in tab.text()
    for path in ("/memories", "/memories?q=deploy"):
        assert tab.go(path).find("h1").count() == 1


HOSTILE = "<img src=x onerror=alert(1)><script>document.title='owned'</script>'\"`{{ 7 * 7 }}${alert(2)}"


def test_hostile_names_of_sessions_folders_agents_and_sources_are_text_U4_P19(
    daemon: RunningDaemon, panel: RunningPanel, opened: Callable[..., OpenPage]
) -> None:
    at = "2026-03-04T09:00:00+00:00"
    origin = Origin(host="pi", session=HOSTILE[:80], cwd=f"/{HOSTILE}", title=HOSTILE, agent=HOSTILE)
    with daemon.client() as client:
        events = [
            Said(turn="1", at=at, role="user", text=f"We decided to keep the ledger in SQLite {HOSTILE}."),
            Said(turn="2", at=at, role="assistant", text=f"The squeak comes from the pulley {HOSTILE}."),
            SessionEnded(turn="3", at=at),
        ]
        client.capture(origin, events)
        daemon.settle()
        ids = [record.id for record in client.list().records]
    tab = opened()
    told = ("/activity", "/activity/sessions", f"/activity/session?id={quote(origin.document)}", "/map", "/triage")
    for path in (*told, "/", "/memories?show=unconfirmed", "/readers", *(f"/memories/{id}" for id in ids[:3])):
        tab.go(path)
        assert tab.find("#view img, #view script, #view iframe").count() == 0, path
        assert "49" not in tab.page.title() and tab.page.title() != "owned"
    assert [line for line in tab.complaints if "Failed to load" not in line] == [] and tab.foreign == []


def test_keyboard_alone_reaches_everything_and_each_control_has_a_name_U4(
    daemon: RunningDaemon, panel: RunningPanel, opened: Callable[..., OpenPage]
) -> None:
    [id, *_] = say(daemon, panel, *SAYINGS)
    tab = opened()
    for path in ("/", "/memories", f"/memories/{id}", f"/memories/{id}/right", "/map", "/fading"):
        tab.go(path)
        wanted: int = tab.page.evaluate(REACHABLE)
        reached: set[str] = set()
        for _ in range(wanted + 5):
            tab.page.keyboard.press("Tab")
            reached.add(tab.page.evaluate("document.activeElement.dataset.number ?? ''"))
        assert len(reached - {""}) == wanted, path
    tab.go("/memories")
    tab.page.keyboard.press("j")
    row = tab.page.evaluate("document.activeElement.id")
    tab.page.keyboard.press("Enter")
    tab.find("h1 >> text=/deploy|tabs|timezone/").wait_for()
    tab.page.go_back()
    tab.find(f"#{row}").wait_for()


def test_on_a_telephone_an_opened_line_is_in_view_at_once_with_a_way_back_U4(
    daemon: RunningDaemon, panel: RunningPanel, opened: Callable[..., OpenPage]
) -> None:
    say(
        daemon,
        panel,
        *SAYINGS,
        *(f"I always keep the keys of shed {number} in drawer {number}." for number in range(20)),
    )
    tab = opened(viewport={"width": 375, "height": 800})
    line = tab.find(".ln a.line").last
    id = line.get_attribute("id")
    line.click()
    why = tab.find("aside .chain")
    why.wait_for()
    tab.until("scrollY == 0")
    assert tab.find(".doc").is_hidden()
    box = why.bounding_box()
    assert box and box["y"] < 800, "its source is in view"
    assert tab.find("aside >> text=Put right…").is_visible()
    tab.find("text=‹ All lines").click()
    tab.find(f"#{id}:focus").wait_for()
    tab.until("scrollY > 0")  # the line that was open is in view
    assert tab.find(".doc").is_visible()
    assert tab.page.evaluate("document.documentElement.scrollWidth") == 375 and tab.complaints == []
    tab.page.set_viewport_size({"width": 1280, "height": 900})
    tab.find(f"#{id}").click()
    tab.find("aside").wait_for()
    assert tab.find(".doc").is_visible() and tab.find("text=‹ All lines").is_hidden()


def test_on_a_telephone_the_bar_has_four_entries_and_more_by_keys_too_U4(
    panel: RunningPanel, opened: Callable[..., OpenPage]
) -> None:
    tab = opened(viewport={"width": 375, "height": 800})
    assert tab.find("nav.side > a:visible").all_inner_texts() == ["Seen", "Memories", "Inbox", "Activity"]
    assert tab.page.evaluate("(bar => bar.scrollWidth <= bar.clientWidth)(document.querySelector('nav.side'))")
    more = tab.find("nav.side summary")
    more.focus()
    tab.page.keyboard.press("Enter")
    rest = ["Map", "Fading", "Skills", "Agents", "Reports", "Readers", "Sharing", "Settings"]
    assert tab.find("#rest a:visible").all_inner_texts() == rest
    tab.page.keyboard.press("Escape")
    assert tab.find("#rest a:visible").count() == 0 and tab.find("nav.side summary:focus").count() == 1
    tab.page.keyboard.press("Enter")
    for key in ("Tab", "Tab", "Enter"):
        tab.page.keyboard.press(key)
    tab.find("h1 >> text=What fades").wait_for()
    assert tab.find("#rest[open]").count() == 0 and tab.find("#rest a[aria-current]").count() == 1
    assert tab.complaints == []
    tab.page.set_viewport_size({"width": 1280, "height": 900})
    assert tab.find("nav.side a:visible").count() == 12


def test_the_day_until_which_it_was_right_is_asked_only_then_T1(
    daemon: RunningDaemon, panel: RunningPanel, opened: Callable[..., OpenPage]
) -> None:
    [id] = say(daemon, panel, SAYINGS[0])
    tab = opened().go(f"/memories/{id}/right")
    assert tab.find("#until").is_disabled()
    tab.find("text=it was right until").click()
    assert tab.find("#until").is_enabled()
    tab.find("#text").fill("I always deploy the orchard service on Wednesdays.")
    tab.find("button.go").click()
    assert tab.find("#until:invalid").count() == 1, "a day is needed"
    tab.find("text=it was never right").click()
    assert tab.find("#until").is_disabled()
    tab.find("button.go").click()
    tab.find("#notice >> text=Put right.").wait_for()


REACHABLE = """() => {
  const all = [...document.querySelectorAll('a[href], button, input, select, textarea, summary, [tabindex="0"]')];
  const shown = all.filter((one) => one.checkVisibility() && !one.disabled && one.type !== 'hidden'
    && !one.closest('dialog') && !(one.type === 'radio' && !one.checked));
  shown.forEach((one, number) => { one.dataset.number = number; });
  return shown.length;
}"""
"""Numbers what a user can reach with Tab; of a group of radio buttons that is one."""


def unconfirmed(daemon: RunningDaemon, panel: RunningPanel) -> Record:
    """A memory that an agent said and nobody confirmed, in the panel's folder."""
    told = Said(turn="a", at="2026-03-04T09:00:00Z", role="assistant", text=CLAIM)
    with daemon.client() as client:
        client.capture(Origin(host="claude-code", session="s1", cwd=str(panel.folder)), [told])
        daemon.settle()
        return client.list(statuses=("quarantined", "provisional")).records[0]


CLAIM = "The login test is flaky because the session cookie expires after one minute in the test environment."


def test_unchanged_words_are_no_correction_and_stay_unconfirmed_T1(
    daemon: RunningDaemon, panel: RunningPanel, opened: Callable[..., OpenPage]
) -> None:
    record = unconfirmed(daemon, panel)
    tab = opened().go(f"/memories/{record.id}/right")
    button, field = tab.find("button.go"), tab.find("#text")
    assert button.is_disabled() and "Change the text to see it." in tab.text("#preview")
    words = field.input_value()
    field.fill(f"{words} Always.")
    tab.find("#preview ins").wait_for()
    assert button.is_enabled()
    field.fill(words)
    assert button.is_disabled(), "the text in the field is not the one whose changes are shown"
    tab.find("#preview >> text=Nothing changed: memd has these words already").wait_for()
    assert button.is_disabled()
    with daemon.client() as client:
        before = client.journal(limit=1).last
        for form in ("right", "right?as=words"):
            tab.go(f"/memories/{record.id}/{form}")
            tab.page.evaluate("document.querySelector('button.go').disabled = false")
            button.click()
            tab.find("#notice >> text=Nothing changed: memd has these words already").wait_for()
        assert client.get(record.id) == record and client.journal(limit=1).last == before
    assert tab.complaints == [] and tab.foreign == []


def test_a_correction_begins_with_the_words_of_the_line_T1(
    daemon: RunningDaemon, panel: RunningPanel, opened: Callable[..., OpenPage]
) -> None:
    [id] = say(daemon, panel, SAYINGS[0])
    with daemon.client() as client:
        record = client.get(id)
        assert record.description != record.content, "the line has other words than the quote"
        tab = opened().go(f"/memories/{record.id}/right")
        assert tab.find("#text").input_value() == record.description
        assert tab.text("#now") == f"“{record.description}”" and record.provenance.quote in tab.text(".vs")
        tab.go(f"/memories/{record.id}/right?as=words&back=/")
        tab.find("#text").fill(f"{record.description} Always.")
        tab.find("#preview ins").wait_for()
        assert tab.find("#preview del").count() == 0
        tab.find("button.go").click()
        tab.find("#notice .toast").wait_for()
        tab.page.wait_for_url(f"**line={record.id}**")
        assert client.get(record.id).description == f"{record.description} Always."
        tab.page.keyboard.press("u")
        tab.find("#notice >> text=Taken back").wait_for()
        daemon.settle()
        now = client.get(record.id)
        assert (now.description, now.content) == (record.description, record.content)
    assert tab.complaints == []


def test_after_put_right_the_corrected_line_is_chosen_T1(
    daemon: RunningDaemon, panel: RunningPanel, opened: Callable[..., OpenPage]
) -> None:
    say(daemon, panel, *SAYINGS)
    tab = opened()
    line = tab.find(".ln a.line >> text=Thursdays")
    line.click()
    tab.find(".acts >> text=Put right…").click()
    tab.find("#text").fill("I always deploy the orchard service on Wednesdays.")
    tab.find("button.go").click()
    tab.find(".ln a[aria-current] >> text=Wednesdays").wait_for()
