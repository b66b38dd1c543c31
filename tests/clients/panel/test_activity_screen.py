"""Activity and sessions in a real browser: what happened, its undo, and each session word by word (U4, W8, C2)."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from playwright.sync_api import Locator, Route

from memd.clients.panel.happenings import happenings
from memd.clients.panel.screens.sessions_screen import PAGE_TEXT, page_of, parts_of
from memd.protocol.event import Origin, Said, SessionEnded, SessionStarted
from memd.protocol.operation import ChangeDecided, ChangeReopened
from memd.protocol.reply import Logged
from memd.protocol.session import Citation, TranscriptTurn
from tests.clients.panel.conftest import OpenPage, RunningPanel, needs_browser
from tests.conftest import RunningDaemon

DAY = datetime(2026, 3, 4, 9, 0, tzinfo=UTC)
LEDGER = "We decided to keep the apple ledger in SQLite, because the spreadsheet loses rows."
BEARING = "Never oil the left bearing of the press, it is sealed."
SESSION = "/activity/session?id=claude-code:s1"
LARGEST_REQUEST = 64 * 1024


def capture(daemon: RunningDaemon, panel: RunningPanel, *turns: str) -> str:
    """Capture an ended session, turns of user and agent by turns; its document."""
    origin = Origin(host="claude-code", session="s1", cwd=str(panel.folder))

    def events() -> Iterator[SessionStarted | Said | SessionEnded]:
        yield SessionStarted(turn="start", at=DAY.isoformat())
        for number, text in enumerate(turns):
            at = (DAY + timedelta(minutes=number)).isoformat()
            yield Said(turn=f"t{number}", at=at, role="assistant" if number % 2 else "user", text=text)
        yield SessionEnded(turn="end", at=(DAY + timedelta(hours=2)).isoformat())

    with daemon.client() as client:
        client.capture(origin, list(events()))
    daemon.settle()
    return origin.document


def happened(tab: OpenPage, words: str) -> Locator:
    """The rows of the list that have these words, newest first."""
    return tab.find(".happened").filter(has_text=words)


@needs_browser
def test_what_a_person_did_is_listed_newest_first_and_each_can_be_taken_back_U4_W8(
    daemon: RunningDaemon, panel: RunningPanel, opened: Callable[..., OpenPage]
) -> None:
    with daemon.client() as client:
        deploy = client.remember("I always deploy the orchard service on Thursdays.", cwd=str(panel.folder)).record.id
        tabs = client.remember("I prefer tabs in Go.", cwd=str(panel.folder)).record.id
        daemon.settle()
        client.pin(tabs)
        client.edit(tabs, "I prefer tabs in Go and in shell scripts.")
        client.correct(deploy, "I always deploy the orchard service on Wednesdays.")
        tab = opened().go("/activity?who=you")
        told = [text.split("\n") for text in tab.find(".happened .what").all_inner_texts()]
        assert [lines[0] for lines in told] == [
            "You put right",
            "You put into your words",
            "You pinned",
            "You told memd",
            "You told memd",
        ]
        assert "Wednesdays" in told[0][1] and "Thursdays" in told[0][2]

        happened(tab, "You put right").locator("button").click()
        tab.find("#notice >> text=Taken back").wait_for()
        daemon.settle()
        assert client.get(deploy).status == "active"
        happened(tab, "You put into your words").locator("button").click()
        happened(tab, "You took a change back").nth(1).wait_for()
        daemon.settle()
        assert client.get(tabs).content == "I prefer tabs in Go."
        happened(tab, "You pinned").locator("button").click()
        happened(tab, "You unpinned").wait_for()
        assert not client.get(tabs).pinned
        assert happened(tab, "You put right").locator("button").count() == 0, "it is undone already"
        happened(tab, "You took a change back").nth(1).get_by_role("button").click()
        tab.find("#notice >> text=Put back").wait_for()
        daemon.settle()
        assert client.get(deploy).status == "retired"
    assert [word for word in tab.complaints if "Failed to load" not in word] == [] and tab.foreign == []


@needs_browser
def test_pages_back_through_the_journal_tell_each_operation_once_W8(
    daemon: RunningDaemon, panel: RunningPanel, opened: Callable[..., OpenPage]
) -> None:
    with daemon.client() as client:
        id = client.remember("I prefer tabs in Go.", cwd=str(panel.folder)).record.id
        for number in range(130):
            client.pin(id, number % 2 == 0)
    for view in ("/activity", "/activity?who=you"):
        tab, words = opened(), list[str]()
        tab.go(view)
        while True:
            words += [text.split("\n")[0] for text in tab.find(".happened .what").all_inner_texts()]
            older = tab.find("a.btn:has-text('Older')")
            if not older.count():
                break
            tab.go(older.get_attribute("href") or "")
        pins = [word for word in words if word in ("You pinned", "You unpinned")]
        assert len(pins) == 130 and all(one != other for one, other in pairwise(pins))
        assert words.count("You told memd") == 1
        assert max(tab.sizes.values()) <= LARGEST_REQUEST


@needs_browser
def test_everything_learnt_from_a_session_is_hidden_and_put_back_U4_T10(
    daemon: RunningDaemon, panel: RunningPanel, opened: Callable[..., OpenPage]
) -> None:
    document = capture(daemon, panel, LEDGER, "Noted.", BEARING, "I will not.")
    with daemon.client() as client:
        learnt = client.list(document=document).records
        assert learnt
        tab = opened().go("/activity")
        thing = "1 memory" if len(learnt) == 1 else f"{len(learnt)} memories"
        happened(tab, f"memd learnt {thing} from a session of Claude Code in orchard").locator("a").first.click()
        tab.find("h2 >> text=Word by word").wait_for()
        assert {record.description for record in learnt} <= set(tab.find("aside .named a").all_inner_texts())
        for record in learnt:
            quote = record.provenance.quote
            marks = tab.find(f"a.cited[href='/memories/{record.id}']").all_inner_texts()
            assert "".join(marks) in quote and marks
        tab.find("text=Hide everything learnt from it").click()
        tab.find("#notice >> text=Hidden").wait_for()
        assert client.list(document=document).records == ()
        assert client.sessions().sessions[0].is_undone
        again = tab.find("text=Show what was learnt from it again")
        again.wait_for()  # the page is drawn anew
        assert LEDGER not in tab.text()
        again.click()
        tab.find("#notice >> text=Put back").wait_for()
        assert {record.id for record in client.list(document=document).records} == {record.id for record in learnt}
        tab.go("/activity/sessions")
        assert f"{client.sessions().sessions[0].records} learnt" in tab.text(".rw")


@needs_browser
def test_a_transcript_is_read_to_the_end_and_back_each_turn_once_C2(
    daemon: RunningDaemon, panel: RunningPanel, opened: Callable[..., OpenPage]
) -> None:
    turns = [f"Turn number {number} about the <b>press</b>." for number in range(44)]
    turns[10] = "The log of the press: " + "pressed an apple; " * 1500
    capture(daemon, panel, *turns)
    tab = opened().go(SESSION)
    pages: list[list[str]] = []
    while True:
        pages.append(tab.find(".turn .said").all_inner_texts())
        if not tab.find("text=later turn").count():
            break
        tab.go(tab.find("a:has-text('later turn')").get_attribute("href") or "")
    forwards = [text for page in pages for text in page]
    assert [text[:20] for text in forwards] == [text[:20] for text in turns]
    backwards = pages[-1]
    while tab.find("text=earlier turn").count():
        tab.go(tab.find("a:has-text('earlier turn')").get_attribute("href") or "")
        backwards = [*tab.find(".turn .said").all_inner_texts(), *backwards]
    assert backwards == forwards
    assert max(tab.sizes.values()) <= LARGEST_REQUEST
    tab.go(f"{SESSION}&around=t10")
    tab.find("text=the whole turn").click()
    tab.find("text=Back among the turns").wait_for()
    [whole] = tab.find(".turn .said").all_inner_texts()
    assert whole.strip() == turns[10].strip()


@needs_browser
def test_a_turn_in_which_nobody_speaks_leads_to_the_beginning_of_its_session_C2(
    daemon: RunningDaemon, panel: RunningPanel, opened: Callable[..., OpenPage]
) -> None:
    capture(daemon, panel, "Press the apples.", "Noted.")
    tab = opened().go(f"{SESSION}&around=start")
    assert tab.find(".turn .said").all_inner_texts() == ["Press the apples.", "Noted."]
    assert "no session" in tab.go("/activity/session?id=cli:unknown&around=start").text("[role=alert]").lower()


def test_marks_lie_where_records_cite_and_never_twice() -> None:
    cited = tuple(
        Citation(record=record, status="active", start=start, end=end)
        for record, start, end in (("a", 3, 9), ("b", 5, 12), ("c", 5, 8), ("d", 30, 99))
    )
    turn = TranscriptTurn(turn="t", at="", who="user", text="We keep the ledger in SQLite.", cited=cited)
    parts = list(parts_of(turn, 1000))
    assert "".join(part.text for part in parts) == turn.text
    assert [(part.record, part.text) for part in parts if part.record] == [("a", "keep t"), ("b", "he ")]
    assert "".join(part.text for part in parts_of(turn, 7)) == turn.text[:7]


@pytest.mark.parametrize("backwards", [False, True])
def test_a_page_holds_at_least_one_turn_and_counts_the_others(backwards: bool) -> None:
    turns = [TranscriptTurn(turn=str(number), at="", who="user", text="x" * 10_000) for number in range(5)]
    page = page_of(turns, 3, 4, backwards=backwards, limit=PAGE_TEXT * 2)
    assert len(page.turns) == 2 and page.before + page.after == 3 + 4 + 3
    alone = page_of([TranscriptTurn(turn="t", at="", who="user", text="x" * 99_999)], 0, 0, limit=99_999)
    assert len(alone.turns) == 1 and alone.turns[0].left == 0


@needs_browser
def test_what_agents_got_is_the_text_that_they_received_U8_U9(
    daemon: RunningDaemon, panel: RunningPanel, opened: Callable[..., OpenPage]
) -> None:
    document = capture(daemon, panel, LEDGER, "Noted.")
    with daemon.client() as client:
        client.remember("I prefer tabs in Go.", cwd=str(panel.folder))
        daemon.settle()
        profile = client.profile(cwd=str(panel.folder), document=document, trigger="start")
        assert client.printed(document, profile.rev).known
        [given] = client.injected().injections
    tab = opened().go("/activity?who=agents")
    tab.find("summary >> text=the exact text").click()
    assert tab.find(".happened pre").text_content() == given.text
    tab.go("/activity")
    assert happened(tab, "Claude Code received").count() == 1
    tab.go("/activity?who=memd")
    tab.find("summary >> text=What memd does right now").click()
    assert "injected" in tab.text("#events")
    with daemon.client() as client:
        client.remember("My timezone is Europe/Berlin.", cwd=str(panel.folder))
    daemon.settle()
    tab.page.wait_for_function("document.querySelector('#events')?.innerText.includes('orchard')")
    assert tab.find("#events[open]").count() == 1, "what is open stays open when the page is told of news"


@needs_browser
def test_activity_by_keyboard_alone_with_hostile_words_and_in_an_empty_home_U4(
    daemon: RunningDaemon, panel: RunningPanel, opened: Callable[..., OpenPage]
) -> None:
    tab = opened()
    for path, words in (
        ("/activity", "Nothing has happened yet"),
        ("/activity?who=you", "You have changed nothing yet"),
        ("/activity?who=agents", "No agent has received anything yet"),
        ("/activity/sessions", "No session yet"),
    ):
        assert words in tab.go(path).text()
    hostile = "I prefer <img src=x onerror=alert(1)> and <script>document.title='owned'</script> in templates."
    with daemon.client() as client:
        id = client.remember(hostile, cwd=str(panel.folder)).record.id
        daemon.settle()
        client.pin(id)
        tab.page.keyboard.press("g")
        tab.page.keyboard.press("a")
        happened(tab, "You pinned").wait_for()
        assert tab.find("#view img, #view script").count() == 0 and tab.page.title() != "owned"
        assert "onerror=alert(1)" in tab.text()
        tab.page.keyboard.press("j")
        tab.page.keyboard.press("u")
        happened(tab, "You unpinned").wait_for()
        assert not client.get(id).pinned
        capture(daemon, panel, hostile, "Noted.")
    for path in ("/activity/sessions", SESSION, "/activity/sessions?words=templates"):
        tab.go(path)
        assert tab.find("#view img, #view script").count() == 0 and tab.page.title() != "owned"


@needs_browser
def test_a_row_that_is_chosen_while_the_screen_is_drawn_anew_stays_chosen_U4(
    daemon: RunningDaemon, panel: RunningPanel, opened: Callable[..., OpenPage]
) -> None:
    with daemon.client() as client:
        id = client.remember("I prefer tabs in Go.", cwd=str(panel.folder)).record.id
        daemon.settle()
        client.pin(id)
        tab = opened().go("/activity?who=you")
        happened(tab, "You pinned").wait_for()
        held: list[Route] = []

        def hold(route: Route) -> None:
            held.append(route) if "x-memd-refresh" in route.request.headers else route.continue_()

        tab.page.route("**/activity?who=you", hold)
        client.pin(id, pinned=False)
        while not held:
            tab.page.wait_for_timeout(20)
        tab.page.keyboard.press("j")
        tab.page.unroute("**/activity?who=you")  # which lets the held request go on
        happened(tab, "You unpinned").wait_for()
        tab.until("document.activeElement.closest('[data-row]') !== null")


def test_a_decision_is_told_with_an_undo_until_it_was_taken_back_G7() -> None:
    decided = Logged(seq=1, at=1, operation=ChangeDecided(id="p", accepted=False))
    [told] = happenings([decided], {})
    assert told.text == "You rejected a proposal" and told.undo is not None
    assert told.undo.address == "/inbox/p/reopen"
    back, before = happenings([decided, Logged(seq=2, at=2, operation=ChangeReopened(id="p"))], {})
    assert "took a decision back" in back.text and before.undo is None
