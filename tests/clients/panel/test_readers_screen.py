"""Readers in a real browser: which model reads what, with consent alone, and the exact bytes that it got (U4, W4)."""

import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from memd.protocol.event import Origin, Said, SessionEnded, SessionStarted, Visibility
from tests.clients.panel.conftest import OpenPage, RunningPanel, needs_browser
from tests.conftest import RunningDaemon
from tests.daemon.remote_server import ModelServer, good, statement

pytestmark = needs_browser

DAY = datetime(2026, 3, 4, 9, 0, tzinfo=UTC)
LEDGER = "We keep the apple ledger in SQLite, because the spreadsheet loses rows."
SQUEAK = "The squeak comes from the worn idler pulley, as the wear marks show."
KEY = "sk-Zq81vNnW3uYt0Gh5RkTe"


@pytest.fixture
def daemon(home: dict[str, str]) -> Iterator[RunningDaemon]:
    """A daemon that looks for a session to send ten times a second."""
    running = RunningDaemon({**home, "MEMD_IDLE_S": "0.05", "MEMD_REMOTE": "{every_s = 0.1, deadline_s = 10}"})
    running.start()
    yield running
    if running.process is not None and running.process.poll() is None:
        running.terminate()


@pytest.fixture
def server() -> Iterator[ModelServer]:
    """A server of a model that points at one sentence."""
    running = ModelServer(good(statement(LEDGER, type="decision", about="project")))
    yield running
    running.close()


def capture(daemon: RunningDaemon, folder: Path, name: str, visibility: Visibility) -> str:
    """Capture an ended session; its document."""
    origin = Origin(host="claude-code", session=name, cwd=str(folder), visibility=visibility)
    at = [(DAY + timedelta(minutes=number)).isoformat() for number in range(4)]
    said = (
        Said(turn="a", at=at[1], role="user", text=LEDGER),
        Said(turn="b", at=at[2], role="assistant", text=f"It lies in {folder}/ledger.db, as before."),
    )
    with daemon.client() as client:
        client.capture(origin, [SessionStarted(turn="s", at=at[0]), *said, SessionEnded(turn="e", at=at[3])])
    daemon.settle()
    return origin.document


def settled_call(daemon: RunningDaemon) -> str:
    """Wait for a call with an outcome; its id."""
    end = time.monotonic() + 90
    with daemon.client() as client:
        while True:
            calls = client.remote().calls
            if calls and calls[0].outcome != "sending":
                return calls[0].id
            assert time.monotonic() < end
            time.sleep(0.05)


def test_while_it_is_off_the_page_says_how_to_switch_it_on_and_what_it_would_read_W4(
    daemon: RunningDaemon, panel: RunningPanel, opened: Callable[..., OpenPage]
) -> None:
    tab = opened().go("/readers")
    text = tab.text()
    assert "off: nothing leaves this machine" in text and "memd remote use ollama --model" in text
    assert "memd remote key" in text and "ended sessions" in text and "always on" in text
    with daemon.client() as client:
        [model] = [model for model in client.models().models if model.searches]
    assert model.id in text
    assert tab.find("#view form[method=post]").count() == 0


def test_consent_is_given_and_withdrawn_here_and_the_bytes_are_those_that_were_sent_W4(
    daemon: RunningDaemon, panel: RunningPanel, opened: Callable[..., OpenPage], server: ModelServer
) -> None:
    capture(daemon, panel.folder, "shared", "shared")
    capture(daemon, panel.folder, "private", "private")
    with daemon.client() as client:
        client.use_remote(server.url, "tiny-1")
        file = client.places.remote_key(server.host)
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        file.write_text(KEY + "\n")
        file.chmod(0o600)
        tab = opened().go("/readers")
        assert "sends nothing now no consent" in tab.text() and server.requests == []

        row = tab.find(".reader").filter(has_text="orchard")
        row.locator("summary").click()
        row.locator("input[name=days]").fill("30")
        row.get_by_role("button", name="Allow").click()
        tab.find("#notice >> text=Allowed").wait_for()
        [consent] = client.remote().consents
        assert consent.holds and not consent.private and consent.private_left == 1
        days = (datetime.fromisoformat(consent.until) - datetime.now(UTC)).total_seconds() / 86_400
        assert 29.9 < days <= 30

        id = settled_call(daemon)
        tab.go("/readers")
        today = client.remote().summary
        assert today is not None and f"{today.today.tokens:,} of {today.cap:,} tokens" in tab.text()
        meter = tab.find("meter[aria-label='tokens used today']")
        assert meter.get_attribute("value") == str(today.today.tokens) and meter.get_attribute("max") == str(today.cap)
        tab.find(f"a[href='/readers/bytes?call={id}']").click()
        tab.find("#exact").wait_for()
        body = server.requests[0].split(b"\r\n\r\n")[-1].decode()
        assert body.endswith(tab.find("#exact").text_content() or "no text")
        assert len(tab.find("#exact").text_content() or "") == len(client.preview_remote(call=id).bodies[0])
        for path in ("/", "/readers", "/activity", "/settings", f"/readers/bytes?call={id}"):
            assert KEY not in tab.go(path).page.content()

        tab.go("/readers")
        tab.find(".reader").filter(has_text="orchard").get_by_role("button", name="Withdraw").click()
        tab.find("#notice >> text=Withdrawn").wait_for()
        assert not any(consent.holds for consent in client.remote().consents)
        sent = len(server.requests)
        tab.go("/activity")
        told = " ".join(tab.find(".happened .what").all_inner_texts())
        assert "The remote model answered" in told and "You no longer let" in told
        tab.go("/readers")
        tab.find("text=Switch off").click()
        tab.find("#notice >> text=The remote model is off").wait_for()
        assert client.remote().summary is None and len(server.requests) == sent
    assert [word for word in tab.complaints if "Failed to load" not in word] == [] and tab.foreign == []


def test_the_page_previews_a_session_and_hides_all_that_the_model_brought_W4(
    daemon: RunningDaemon, panel: RunningPanel, opened: Callable[..., OpenPage], server: ModelServer
) -> None:
    server.behaviours = (good(statement(SQUEAK, type="lesson"), statement(LEDGER, type="decision")),)
    at = DAY.isoformat()
    said = (
        Said(turn="a", at=at, role="user", text=LEDGER),
        Said(turn="b", at=at, role="assistant", text=SQUEAK),
    )
    origin = Origin(host="claude-code", session="press", cwd=str(panel.folder), visibility="shared")
    with daemon.client() as client:
        client.capture(origin, [SessionStarted(turn="s", at=at), *said, SessionEnded(turn="e", at=at)])
        daemon.settle()
        client.use_remote(server.url, "tiny-1")
        tab = opened().go("/readers")
        tab.find("#session").select_option(origin.document)
        tab.find("text=Show the exact bytes").click()
        tab.find("#exact").wait_for()
        preview = client.preview_remote(origin.document)
        assert tab.find("#exact").text_content() == preview.bodies[0] and server.requests == []
        assert "not sent now no consent" in tab.text()

        pool = next(pool.pool for pool in client.pools().pools if pool.title == "orchard")
        client.consent_remote(pool)
        settled_call(daemon)
        daemon.settle()
        state = client.remote()
        assert state.learnt
        tab.go("/readers")
        tab.find("text=Hide everything that").click()
        tab.find("#notice >> text=Hidden").wait_for()
        brought = [
            record for record in client.list(limit=100).records if record.provenance.distiller.startswith("remote")
        ]
        assert brought == []
        tab.find("#notice button[data-key=u]").click()
        tab.find("#notice >> text=Put back").wait_for()
        brought = [
            record for record in client.list(limit=100).records if record.provenance.distiller.startswith("remote")
        ]
        assert len(brought) == state.learnt
