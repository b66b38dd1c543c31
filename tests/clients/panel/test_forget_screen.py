"""Forgetting for good, and hiding instead, in a real browser (T10, U4)."""

import os

import pytest

from memd.protocol.errors import NotFound
from tests.clients.panel.conftest import SUITCASE, Opened, RunningPanel, needs_browser, remember
from tests.conftest import RunningDaemon

pytestmark = needs_browser


def files_with(daemon: RunningDaemon, words: str) -> list[str]:
    """The files of memd's home that contain the words as bytes."""
    return [
        os.path.join(folder, name)
        for folder, _, names in os.walk(daemon.environment["MEMD_HOME"])
        for name in names
        if not name.endswith(".sock") and words.encode() in open(os.path.join(folder, name), "rb").read()
    ]


def test_forget_reports_zero_bytes_T10(daemon: RunningDaemon, panel: RunningPanel, opened: Opened) -> None:
    record, stays = remember(daemon, SUITCASE, "1"), remember(daemon, "I prefer tabs in Go.", "2")
    assert files_with(daemon, "amber suitcase")
    with daemon.client() as client:
        client.propose_forget([record.id], "Claude Code")
    tab = opened().go("/inbox")
    tab.find("text=Forget for good…").click()
    tab.find("#word").wait_for()
    plan = tab.text(".sheet")
    assert "1 memory" in plan and "1 captured turn" in plan and SUITCASE in plan
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
    record = remember(daemon, SUITCASE, "1", session="s1")
    pinned = remember(daemon, "My timezone is Europe/Berlin.", "2")
    with daemon.client() as client:
        client.pin(pinned.id)
        tab = opened().go("/forget")
        tab.find("#query").fill("AMBER suitcase")
        tab.find("text=Show what would go").click()
        tab.find("h1:focus").wait_for()
        assert tab.page.evaluate("scrollY") == 0, "what would go is read from its top"
        assert "1 memory" in tab.text(".sheet") and "this browser's history" in tab.text(".sheet")
        assert tab.text("#how-much") == "1 memory, 1 turn: can't be undone" and "press “Hide”" in tab.text(".sheet")
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
        tab.go("/forget?session=cli:s1").find("text=Hide it instead").click()
        tab.find(".rw >> text=xylofon").wait_for()
        assert "show=hidden" in tab.page.url
        tab.page.keyboard.press("u")
        tab.find("text=Nothing here yet.").wait_for()
        assert client.get(record.id).status == "active"
        assert tab.complaints == [] and tab.foreign == []


def test_a_memory_is_hidden_from_its_own_screen_and_that_is_taken_back_T1(
    daemon: RunningDaemon, panel: RunningPanel, opened: Opened
) -> None:
    record, pinned = remember(daemon, SUITCASE, "1"), remember(daemon, "My timezone is Europe/Berlin.", "2")
    with daemon.client() as client:
        client.pin(pinned.id)
        tab = opened().go(f"/memories/{pinned.id}")
        assert tab.find("aside >> text=Hide").count() == 0, "the user holds it"
        tab.go(f"/memories/{record.id}").find("aside button >> text=Hide").click()
        tab.find(".ask >> text=You asked to forget this").wait_for()
        with pytest.raises(NotFound):
            client.get(record.id)
        tab.page.keyboard.press("u")
        tab.find("#notice >> text=It is shown again.").wait_for()
        assert client.get(record.id).status == "active" and tab.complaints == []


def test_a_proposal_forgets_no_other_memory_T10(daemon: RunningDaemon, panel: RunningPanel, opened: Opened) -> None:
    asked, other = remember(daemon, SUITCASE, "1"), remember(daemon, "I prefer tabs in Go.", "2")
    with daemon.client() as client:
        [proposal] = client.propose_forget([asked.id], "an agent").ids
        tab = opened().go(f"/forget?id={other.id}&proposal={proposal}")
        tab.find("#word").fill("forget")
        tab.find("button >> text=Forget for good").click()
        tab.find("#notice >> text=about another memory").wait_for()
        assert client.get(asked.id).status == client.get(other.id).status == "active"
        assert "no report of this any more" in tab.go("/forget/00000000").text(".sheet")
