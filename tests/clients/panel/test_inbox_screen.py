"""The inbox in a real browser (G7, U4)."""

from pathlib import Path

import pytest

from memd.clients.panel.disputes import loses_words
from memd.clients.panel.screens.inbox_screen import PAGE
from memd.protocol.errors import NotFound
from memd.protocol.event import Origin, SessionEnded
from memd.protocol.record import Record
from tests.clients.panel.conftest import SUITCASE, Opened, RunningPanel, needs_browser, remember
from tests.conftest import RunningDaemon
from tests.daemon.test_procedures import release

pytestmark = needs_browser

NEW = "2026-04-12T09:00:00+02:00"
HOSTILE = "I prefer <img src=x onerror=alert(1)> & <script>document.title='owned'</script> in Go templates."


def contradict(daemon: RunningDaemon) -> tuple[Record, Record]:
    """Contradict a pinned statement, which makes a proposal; both records."""
    held = remember(daemon, "I prefer tabs for indentation.", "1")
    with daemon.client() as client:
        client.pin(held.id)
    fresh = remember(daemon, "I now prefer spaces for indentation.", "2", NEW, "two")
    with daemon.client() as client:
        client.capture(Origin(host="cli", session="two"), [SessionEnded(turn="end", at=NEW)])
    daemon.settle()
    return held, fresh


def test_accept_and_reject_G7(daemon: RunningDaemon, panel: RunningPanel, opened: Opened) -> None:
    held, fresh = contradict(daemon)
    suitcase = remember(daemon, SUITCASE, "3")
    with daemon.client() as client:
        client.propose_forget([suitcase.id], "Claude Code", hide=True)
        before = client.journal(limit=1).last
    tab = opened().go("/inbox")
    assert "2 things only you decide" in tab.text("h1")
    cards = tab.find(".ask")
    assert "speaks against an old one" in cards.nth(0).inner_text(), "the oldest comes first"
    assert cards.nth(0).locator("mark").all_inner_texts()[-1].strip() == "spaces"
    accepting = " ".join(cards.nth(0).locator("dd").all_inner_texts())
    assert "“The user prefers tabs for indentation.” is no longer true" in accepting and "Both stay" in accepting
    assert "Claude Code asks to forget this" in cards.nth(1).inner_text()
    assert "It stays hidden" in cards.nth(1).inner_text()
    with daemon.client() as client:
        assert client.journal(limit=1).last == before, "to look changes nothing"
        tab.find("text=The new one is right").click()
        tab.find("#notice >> text=1 left").wait_for()
        daemon.settle()
        old, new = client.get(held.id), client.get(fresh.id)
        assert (old.status, old.superseded_by, new.status) == ("retired", fresh.id, "active")
        with pytest.raises(NotFound):
            client.get(suitcase.id)
        tab.find("text=Show it again").click()
        tab.find("#notice >> text=It is shown again.").wait_for()
        assert client.get(suitcase.id).status == "active" and client.inbox().open == 0
        tab.find("h1 >> text=Nothing waits for your decision").wait_for()
        tab.find("#notice >> text=Undo").click()
        tab.find("#notice >> text=hidden as before").wait_for()
        tab.find("h1 >> text=1 thing only you decide").wait_for()
        with pytest.raises(NotFound):
            client.get(suitcase.id)
    assert tab.complaints == [] and tab.foreign == []


def test_what_only_the_old_one_says_is_named_and_the_new_one_can_say_both_T13(
    daemon: RunningDaemon, panel: RunningPanel, opened: Opened
) -> None:
    held, fresh = contradict(daemon)
    both = "I prefer spaces for indentation, and tabs in Makefiles."
    with daemon.client() as client:
        tab = opened().go("/inbox")
        assert "what only the old one says is lost" in tab.text(".ask")
        assert tab.find(".ask button >> text=Keep both").count() == 1
        assert "tabs" in tab.find(".ask mark").all_inner_texts()[0]
        tab.find("text=Reword the new one…").click()
        tab.find("#text").wait_for()
        assert (
            held.content in tab.text("form.sheet")
            and tab.find("#text").input_value() == client.get(fresh.id).description
        )
        tab.find("#text").fill(both)
        tab.find("button.go").click()
        tab.find("#notice >> text=Saved in your words.").wait_for()
        tab.find(".ask:focus mark >> text=Makefiles").wait_for()
        assert "is lost" not in tab.text(".ask")
        tab.find("text=The new one is right").click()
        tab.find("h1 >> text=Nothing waits for your decision").wait_for()
        assert client.get(fresh.id).content == both and client.get(held.id).superseded_by == fresh.id
    assert tab.complaints == []


@pytest.mark.parametrize(
    ("old", "new", "is_lost"),
    [
        ("I use tabs in Go and four spaces in Python.", "I use spaces in Go.", True),
        ("I use tabs.", "I use tabs in Go, always.", False),
        ("Tabs, always!", "always tabs", False),
        ("", "I use tabs.", False),
    ],
)
def test_words_are_lost_if_only_the_old_text_has_them_T13(old: str, new: str, is_lost: bool) -> None:
    assert loses_words(old, new) == is_lost


def test_a_memory_that_is_disputed_leads_to_its_card_U4_T13(
    daemon: RunningDaemon, panel: RunningPanel, opened: Opened
) -> None:
    held, fresh = contradict(daemon)
    others = [
        remember(daemon, f"The cello number {number} is in the shed.", f"c{number}") for number in range(PAGE + 1)
    ]
    with daemon.client() as client:
        client.propose_forget([record.id for record in others], "an agent")
        [dispute] = [proposal for proposal in client.inbox().proposals if proposal.what == "conflict"]
        tab = opened()
        for path in ("/", f"/memories/{held.id}", f"/memories/{fresh.id}"):
            tab.go(path)
            tab.find("a.tag >> text=disputed").first.click()
            tab.find(f"#proposal-{dispute.id}:focus").wait_for()
        last = client.inbox().proposals[0]
        tab.go(f"/inbox?at={last.id}")
        assert tab.find(".ask").count() == 1 and tab.find(f"#proposal-{last.id}").count() == 1
        tab.find("text=The oldest again").click()
        tab.find("text=Newer ones").wait_for()
        client.decide(dispute.id, False)
        assert tab.go("/").find("text=disputed").count() == 0
    assert tab.complaints == []


def test_the_old_one_is_right_retires_the_new_one_and_is_taken_back_G7_T1(
    daemon: RunningDaemon, panel: RunningPanel, opened: Opened
) -> None:
    held, fresh = contradict(daemon)
    with daemon.client() as client:
        tab = opened().go("/inbox")
        tab.find("text=The old one is right").click()
        tab.find("h1 >> text=Nothing waits for your decision").wait_for()
        assert (client.get(held.id).status, client.get(fresh.id).status) == ("active", "retired")
        tab.page.keyboard.press("u")
        tab.find("h1 >> text=1 thing only you decide").wait_for()
        assert (client.get(held.id).status, client.get(fresh.id).status) == ("active", "active")
    assert tab.complaints == []


def test_an_accepted_contradiction_is_taken_back_unless_something_changed_since_G7(
    daemon: RunningDaemon, panel: RunningPanel, opened: Opened
) -> None:
    held, fresh = contradict(daemon)
    with daemon.client() as client:
        tab = opened().go("/inbox")
        tab.find("text=The new one is right").click()
        tab.find("h1 >> text=Nothing waits for your decision").wait_for()
        tab.page.keyboard.press("u")
        tab.find("#notice >> text=It waits for your decision again.").wait_for()
        assert (client.get(held.id).status, client.get(fresh.id).needs_review) == ("active", True)
        tab.find("text=The new one is right").click()
        tab.find("h1 >> text=Nothing waits for your decision").wait_for()
        assert tab.complaints == []
        client.pin(fresh.id)
        tab.find("#notice >> text=Undo").click()
        tab.find("#notice >> text=changed since").wait_for()
        assert client.get(held.id).status == "retired" and client.inbox().open == 0


def test_keyboard_alone_decides_what_has_the_focus_and_nothing_else_G7_U4(
    daemon: RunningDaemon, panel: RunningPanel, opened: Opened
) -> None:
    first, second = remember(daemon, SUITCASE, "1"), remember(daemon, "The cello is in the green shed.", "2")
    with daemon.client() as client:
        [one] = client.propose_forget([first.id], "an agent").ids
        client.propose_forget([second.id], "an agent")
        tab = opened()
        tab.page.keyboard.press("g")
        tab.page.keyboard.press("i")
        tab.find(".ask").nth(1).wait_for()
        tab.page.keyboard.press("r")
        assert client.inbox().open == 2, "the key only goes to the first card"
        assert tab.find(".ask:focus").get_attribute("id") == f"proposal-{one}"
        tab.page.keyboard.press("j")
        tab.page.keyboard.press("r")
        tab.find("#notice .toast").wait_for()
        assert [proposal.id for proposal in client.inbox().proposals] == [one]
        tab.find(f"#proposal-{one}:focus").wait_for()
        tab.page.keyboard.press("a")
        tab.find("#word:focus").wait_for()
        tab.page.keyboard.type("forgot")
        tab.page.keyboard.press("Enter")
        assert tab.find("#forget-form button").is_disabled(), "another word forgets nothing"
        tab.page.evaluate("document.querySelector('#forget-form button').disabled = false")
        tab.page.keyboard.press("Enter")
        tab.find("#notice >> text=nothing was forgotten").wait_for()
        tab.page.keyboard.press("Escape")
        tab.find(".ask").wait_for()
        assert client.get(first.id).status == "active"


def test_hostile_words_are_text_and_nothing_is_wider_than_a_telephone_U4_P19(
    daemon: RunningDaemon, panel: RunningPanel, opened: Opened
) -> None:
    record = remember(daemon, HOSTILE, "1")
    with daemon.client() as client:
        client.propose_forget([record.id], "<b onclick=alert(2)>an agent</b>")
    tab = opened(viewport={"width": 375, "height": 800})
    for path in (
        "/inbox",
        f"/forget?id={record.id}",
        "/forget?query=templates",
        "/forget?query=%3Cimg%20src",
        "/triage",
    ):
        tab.go(path)
        assert tab.find("#view img, #view script, #view b[onclick]").count() == 0 and tab.page.title() != "owned"
        assert tab.page.evaluate("document.documentElement.scrollWidth") == 375, path
    assert "onerror=alert(1)" in tab.go("/inbox").text(".ask")
    assert tab.complaints == []


def test_what_is_said_twice_becomes_one_G7_T12(daemon: RunningDaemon, panel: RunningPanel, opened: Opened) -> None:
    said = "The staging database runs on port 6543."
    held = remember(daemon, said, "1")
    with daemon.client() as client:
        client.pin(held.id)
        other = remember(daemon, f"{said[:-1]} behind pgbouncer, because it drops idle connections.", "2", NEW, "two")
        client.edit(other.id, said)
        client.sleep(pools=("personal",))
        tab = opened().go("/inbox")
        assert "Two memories say the same" in tab.text(".ask") and tab.find(".ask mark").count() == 0
        tab.find("text=Keep just one").click()
        tab.find("#notice >> text=Nothing else waits.").wait_for()
        assert {client.get(id).status for id in (held.id, other.id)} == {"active", "retired"}


def test_an_empty_home_says_that_nothing_waits_U4(panel: RunningPanel, opened: Opened) -> None:
    tab = opened().go("/inbox")
    assert tab.text("h1") == "Nothing waits for your decision"
    assert tab.go("/triage").text("h1") == "Nothing is left to confirm"
    assert "Nothing matches." in tab.go("/forget?query=cello").text()
    assert "Forget for good" in tab.go("/forget").text("h1")
    assert tab.complaints == []


def test_a_draft_of_a_skill_is_read_whole_and_rejected_K1(
    daemon: RunningDaemon, folder: Path, panel: RunningPanel, opened: Opened
) -> None:
    with daemon.client() as client:
        for each in (release("a", 1), release("b", 2), release("c", 4)):
            origin = Origin(host="claude-code", session=each.document, cwd=str(folder), live=False)
            client.capture(origin, each.events)
        assert len(client.propose_skills().proposed) == 1
        (draft,) = client.skills(everywhere=True).skills
    tab = opened().go("/inbox")
    card = tab.find(".ask")
    assert card.locator("pre").inner_text().strip() == draft.text.strip()
    assert f"memd skill place {draft.name}" in card.inner_text() and "No file is written." in card.inner_text()
    assert card.locator("button").all_inner_texts() == ["Reject\nr"], "the user accepts it where he reads it"
    card.locator("button").click()
    tab.find("#notice >> text=Rejected: nothing changed.").wait_for()
    tab.find("#notice >> text=Undo").click()
    tab.find("h1 >> text=1 thing only you decide").wait_for()
    assert tab.complaints == [] and tab.foreign == []
