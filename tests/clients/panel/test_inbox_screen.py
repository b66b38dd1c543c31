"""The inbox, triage and the forget page, in a real browser (G7, T8, T10, U4)."""

import os
from collections.abc import Callable

import pytest

from memd.clients.python import Client
from memd.protocol.errors import NotFound
from memd.protocol.event import Origin, Said, SessionEnded
from memd.protocol.record import Record
from memd.protocol.request import Remember
from tests.clients.panel.conftest import OpenPage, RunningPanel, needs_browser
from tests.conftest import RunningDaemon

pytestmark = needs_browser

Opened = Callable[..., OpenPage]

OLD, NEW = "2026-03-01T09:00:00+01:00", "2026-04-12T09:00:00+02:00"
XYLOPHONE = "The xylofon is in the attic behind the amber suitcase."
HOSTILE = "I prefer <img src=x onerror=alert(1)> & <script>document.title='owned'</script> in Go templates."
CLAIMS = (
    "The root cause is that the parser always drops the last line because the buffer is flushed too late.",
    "The root cause is that the scheduler always skips the first job because its clock starts one hour too late.",
    "The login test is flaky because the session cookie expires after one minute in the test environment.",
)


def remember(daemon: RunningDaemon, text: str, turn: str, at: str = OLD, session: str = "one") -> Record:
    """Remember one statement of a session."""
    with daemon.client() as client:
        said = Remember(text=text, turn=turn, at=at, origin=Origin(host="cli", session=session))
        record = client.remember(said).record
    daemon.settle()
    return record


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


def claim(daemon: RunningDaemon, *claims: str) -> list[Record]:
    """An agent claims something in a session; the unconfirmed records, newest first."""
    with daemon.client() as client:
        for number, text in enumerate(claims):
            asked = Said(turn=f"{number}q", at=OLD, role="user", text="Why does it fail?")
            told = Said(turn=f"{number}a", at=OLD, role="assistant", text=text)
            client.capture(Origin(host="claude-code", session=f"s{number}"), [asked, told])
            daemon.settle()
        return unconfirmed(client)


def unconfirmed(client: Client) -> list[Record]:
    """The records that wait for a judgement, newest first."""
    return list(client.list(statuses=("quarantined", "provisional")).records)


def files_with(daemon: RunningDaemon, words: str) -> list[str]:
    """The files of memd's home that contain the words as bytes."""
    return [
        os.path.join(folder, name)
        for folder, _, names in os.walk(daemon.environment["MEMD_HOME"])
        for name in names
        if not name.endswith(".sock") and words.encode() in open(os.path.join(folder, name), "rb").read()
    ]


def test_accept_and_reject_G7(daemon: RunningDaemon, panel: RunningPanel, opened: Opened) -> None:
    held, fresh = contradict(daemon)
    suitcase = remember(daemon, XYLOPHONE, "3")
    with daemon.client() as client:
        client.propose_forget([suitcase.id], "Claude Code", hide=True)
        before = client.journal(limit=1).last
    tab = opened().go("/inbox")
    assert "2 things only you decide" in tab.text("h1")
    cards = tab.find(".ask")
    assert "speaks against an old one" in cards.nth(0).inner_text(), "the oldest comes first"
    assert cards.nth(0).locator("mark").all_inner_texts()[-1].strip() == "spaces"
    accepting = " ".join(cards.nth(0).locator("dd").all_inner_texts())
    assert "“The user prefers tabs for indentation.” is no longer true" in accepting and "Both stay." in accepting
    assert "Claude Code asks to forget this" in cards.nth(1).inner_text()
    assert "It stays hidden from every answer." in cards.nth(1).inner_text()
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
    assert tab.complaints == [] and tab.foreign == []


def test_keyboard_alone_decides_what_has_the_focus_and_nothing_else_G7_U4(
    daemon: RunningDaemon, panel: RunningPanel, opened: Opened
) -> None:
    first, second = remember(daemon, XYLOPHONE, "1"), remember(daemon, "The cello is in the green shed.", "2")
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
        tab.find("h1 >> text=Forget for good").wait_for()
        tab.page.keyboard.type("forgot")
        tab.page.keyboard.press("Enter")
        tab.find("#notice >> text=nothing was forgotten").wait_for()
        tab.page.keyboard.press("Escape")
        tab.find(".ask").wait_for()
        assert client.get(first.id).status == "active"


def test_forget_reports_zero_bytes_T10(daemon: RunningDaemon, panel: RunningPanel, opened: Opened) -> None:
    record, stays = remember(daemon, XYLOPHONE, "1"), remember(daemon, "I prefer tabs in Go.", "2")
    assert files_with(daemon, "amber suitcase")
    with daemon.client() as client:
        client.propose_forget([record.id], "Claude Code")
    tab = opened().go("/inbox")
    tab.find("text=Forget for good…").click()
    tab.find("#word").wait_for()
    plan = tab.text(".sheet")
    assert "1 memory" in plan and "1 captured turn" in plan and XYLOPHONE in plan
    tab.find("#word").fill("forget")
    tab.find("button >> text=Forget for good").click()
    tab.find("h1 >> text=Forgotten").wait_for()
    assert tab.page.url.rpartition("/")[0] == f"{panel.origin}/forget"
    proof = tab.text("#proof")
    assert proof.startswith("byte search: found in 0 files ·") and "· 0 bytes" not in proof
    assert "1 memory and 1 captured turn are deleted" in tab.text(".sheet")
    assert files_with(daemon, "amber suitcase") == []
    polls = sum("/progress" in path for path in tab.sizes)
    tab.page.wait_for_timeout(1500)
    assert sum("/progress" in path for path in tab.sizes) == polls and tab.find("#job[hx-trigger]").count() == 0
    with daemon.client() as client:
        with pytest.raises(NotFound):
            client.get(record.id)
        assert client.get(stays.id).status == "active" and client.inbox(all=True).proposals == ()
    assert tab.complaints == [] and tab.foreign == []


def test_a_phrase_and_a_session_have_a_plan_and_hiding_is_taken_back_T10(
    daemon: RunningDaemon, panel: RunningPanel, opened: Opened
) -> None:
    record = remember(daemon, XYLOPHONE, "1", session="s1")
    pinned = remember(daemon, "My timezone is Europe/Berlin.", "2")
    with daemon.client() as client:
        client.pin(pinned.id)
        tab = opened().go("/forget")
        tab.find("#query").fill("AMBER suitcase")
        tab.find("text=Show what would go").click()
        tab.find("#word").wait_for()
        assert "1 memory" in tab.text(".sheet") and "this browser's history" in tab.text(".sheet")
        assert "Nothing matches." in tab.go("/forget?query=trombone").text(".sheet")
        assert "a whole session" in tab.go("/forget?session=cli:s1").text(".sheet")
        assert tab.go(f"/forget?id={pinned.id}").find("text=Hide it instead").count() == 0, "the user holds it"
        tab.go(f"/forget?id={record.id}").find("text=Hide it instead").click()
        tab.find(".ask >> text=You asked to forget this").wait_for()
        with pytest.raises(NotFound):
            client.get(record.id)
        tab.page.keyboard.press("u")
        tab.find("#notice >> text=It is shown again.").wait_for()
        assert client.get(record.id).status == "active"
        assert tab.complaints == [] and tab.foreign == []


def test_a_proposal_forgets_no_other_memory_T10(daemon: RunningDaemon, panel: RunningPanel, opened: Opened) -> None:
    asked, other = remember(daemon, XYLOPHONE, "1"), remember(daemon, "I prefer tabs in Go.", "2")
    with daemon.client() as client:
        [proposal] = client.propose_forget([asked.id], "an agent").ids
        tab = opened().go(f"/forget?id={other.id}&proposal={proposal}")
        tab.find("#word").fill("forget")
        tab.find("button >> text=Forget for good").click()
        tab.find("#notice >> text=about another memory").wait_for()
        assert client.get(asked.id).status == client.get(other.id).status == "active"
        assert "no report of this any more" in tab.go("/forget/00000000").text(".sheet")


def test_triage_keeps_puts_right_rejects_and_leaves_for_later_by_keys_T8(
    daemon: RunningDaemon, panel: RunningPanel, opened: Opened
) -> None:
    waiting = claim(daemon, *CLAIMS)
    assert len(waiting) == 3
    tab = opened().go("/memories?show=unconfirmed")
    tab.find("text=Go through them one by one").click()
    title = tab.find("#one-title")
    title.wait_for()
    assert tab.text("h1") == f"{len(waiting)} memories nobody confirmed"
    assert title.inner_text() == waiting[0].description and "Why does it fail?" in tab.text("#one")
    with daemon.client() as client:
        tab.page.keyboard.press("4")
        tab.find(f"#one-title >> text={waiting[1].description}").wait_for()
        assert "after=" in tab.page.url and len(unconfirmed(client)) == len(waiting)
        tab.page.keyboard.press("1")
        tab.find(f"#one-title >> text={waiting[2].description}").wait_for()
        assert client.get(waiting[1].id).status == "active"
        tab.page.keyboard.press("3")
        tab.find("#notice >> text=wrong").wait_for()
        assert client.get(waiting[2].id).status == "retired"
        tab.page.keyboard.press("u")
        tab.find("#notice >> text=Taken back.").wait_for()
        assert client.get(waiting[2].id).status != "retired"
        tab.find(f"#one-title >> text={waiting[2].description}").wait_for()
        tab.page.keyboard.press("2")
        tab.find("#text").wait_for()
        tab.page.keyboard.press("Escape")
        tab.find(f"#one-title >> text={waiting[2].description}").wait_for()
        tab.page.keyboard.press("4")
        tab.find("text=You went through all of them.").wait_for()
        tab.page.keyboard.press("4")
        tab.find(f"#one-title >> text={waiting[0].description}").wait_for()
    assert tab.complaints == [] and tab.foreign == []


def test_triage_keeps_all_of_a_pool_once_asked_and_takes_them_back_T8(
    daemon: RunningDaemon, panel: RunningPanel, opened: Opened
) -> None:
    waiting = claim(daemon, *CLAIMS[:2])
    pool = waiting[0].pool
    tab = opened().go(f"/triage?pool={pool}")
    tab.find("text=/Keep all .* of/").click()
    tab.find("form.sheet").wait_for()
    assert tab.find(".rw .t").all_inner_texts() == [record.description for record in waiting]
    with daemon.client() as client:
        assert unconfirmed(client) == waiting, "the page only asks"
        tab.find(f"text=Keep these {len(waiting)}").click()
        tab.find(f"#notice >> text=Kept {len(waiting)}.").wait_for()
        assert unconfirmed(client) == []
        tab.find("h1 >> text=Nothing is left to confirm").wait_for()
        tab.page.keyboard.press("u")
        tab.find("#notice >> text=unconfirmed again").wait_for()
        assert len(unconfirmed(client)) == len(waiting)


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


def test_an_empty_home_says_that_nothing_waits_U4(panel: RunningPanel, opened: Opened) -> None:
    tab = opened().go("/inbox")
    assert tab.text("h1") == "Nothing waits for your decision"
    assert tab.go("/triage").text("h1") == "Nothing is left to confirm"
    assert "Nothing matches." in tab.go("/forget?query=cello").text()
    assert "Forget for good" in tab.go("/forget").text("h1")
    assert tab.complaints == []
