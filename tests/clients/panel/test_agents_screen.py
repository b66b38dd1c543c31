"""The screen of agents in a real browser: what they are, what they were taught; nothing is changed from there (O3, O5,
U4)."""

import time
from pathlib import Path

from memd.clients.importers.course_file import read_course
from memd.protocol.event import Origin, Said, Settled
from tests.clients.panel.conftest import Opened, RunningPanel, needs_browser
from tests.conftest import RunningDaemon

HANDBOOK = Path(__file__).parents[2] / "data" / "courses" / "bakery.md"
HOSTILE = "<img src=x onerror=alert(1)>"


@needs_browser
def test_without_an_agent_the_screen_tells_how_to_create_one_P5(panel: RunningPanel, opened: Opened) -> None:
    told = opened().go("/agents").text("#view")
    assert "No agent has a memory of its own yet." in told and "memd agent add reviewer" in told


@needs_browser
def test_an_agent_is_shown_with_its_prompt_course_and_open_questions_O3_O5(
    daemon: RunningDaemon, panel: RunningPanel, opened: Opened
) -> None:
    course = read_course(HANDBOOK)
    with daemon.client() as client:
        client.open_agent("baker", role=f"bakes {HOSTILE}", perspectives=["safety: burn"], prompt=f"Be kind. {HOSTILE}")
        client.teach("baker", course.title, course.chapters)
        while not client.ask_courses("baker").is_read:
            time.sleep(0.1)
        state, before = client.agent("baker"), client.status().journal_seq
    tab = opened().go("/agents")
    told = tab.text("article")
    assert "baker" in told and HOSTILE in told and "safety: burn" in told
    (taught,) = state.courses
    for chapter in taught.chapters:
        line = f"untaught {chapter.tests[0].known} of {chapter.questions}, after reading {chapter.tests[-1].known}"
        assert chapter.title in told and line in told
    assert not tab.find("article pre").is_visible()
    tab.find("article summary").first.click()
    assert tab.text("article pre") == f"Be kind. {HOSTILE}"
    assert ("that its memory does not answer" in told) == bool(taught.gaps)
    assert tab.find("#view form[method=post]").count() == 0
    with daemon.client() as client:
        assert client.status().journal_seq == before, "to look changes nothing"
    assert tab.complaints == [] and tab.foreign == []


@needs_browser
def test_tasks_of_an_agent_and_the_ranking_for_another_are_shown_O1_O2(
    daemon: RunningDaemon, panel: RunningPanel, opened: Opened
) -> None:
    origin = Origin(host="claude-code", session="one", agent="baker")
    days = [f"2026-03-0{day}T10:00:00+01:00" for day in (1, 2)]
    with daemon.client() as client:
        client.open_agent("baker", role="bakes bread")
        client.open_agent("mate", role="sails ships")
        client.capture(
            origin,
            [
                Said(turn="1", at=days[0], role="user", text=f"Write the recipe of the rye bread {HOSTILE}"),
                Settled(turn="1#settled", at=days[0], of="1", lines=20, lost=0, followed=1),
                Said(turn="2", at=days[1], role="user", text="Now the one of the plum cake."),
            ],
        )
    tab = opened().go("/agents")
    assert "1 kept as it was" in tab.text("article") and "For this task" not in tab.text()
    tab.find("article summary").click()
    assert HOSTILE in tab.text("article details li")
    tab.find("#task").fill("bake a bread")
    tab.page.keyboard.press("Enter")
    tab.find("section h2 >> text=For this task").wait_for()
    assert tab.find("section .reader b").all_inner_texts() == ["baker", "mate"]
    assert "1 similar task" in tab.text("section") and "by its role only" in tab.text("section")
    tab.find("article summary").click()
    tab.find("article details a").click()
    tab.find(".turn.here").wait_for()
    assert tab.complaints == [] and tab.foreign == []
