"""The screen of agents in a real browser: what they are, what they were taught; nothing is changed from there (O3, O5,
U4)."""

import time
from pathlib import Path

from memd.clients.importers.course_file import read_course
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
