"""A real panel beside a real daemon, and a real Chromium that opens it."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator, Page, sync_playwright

from memd.protocol.event import Origin
from memd.protocol.record import Record
from memd.protocol.request import Remember
from tests.conftest import RunningDaemon

CHROMIUM = next((path for name in ("chromium", "chromium-browser") if (path := shutil.which(name))), "")
needs_browser = pytest.mark.skipif(
    not CHROMIUM and not os.environ.get("CI"), reason="no chromium: apt install chromium"
)


SAID_AT = "2026-03-01T09:00:00+01:00"
SUITCASE = "The xylofon is in the attic behind the amber suitcase."


def remember(daemon: RunningDaemon, text: str, turn: str, at: str = SAID_AT, session: str = "one") -> Record:
    """Remember one statement of a session."""
    with daemon.client() as client:
        said = Remember(text=text, turn=turn, at=at, origin=Origin(host="cli", session=session))
        record = client.remember(said).record
    daemon.settle()
    return record


class RunningPanel:
    """A `memd panel` process. `origin`: `http://127.0.0.1:PORT`; `link`: opens the panel once."""

    def __init__(self, environment: dict[str, str], folder: Path, *arguments: str) -> None:
        self.environment, self.folder = environment, folder
        self.process = subprocess.Popen(
            [sys.executable, "-P", "-m", "memd.clients.cli.main", "panel", "--no-browser", "--json", *arguments],
            env=environment,
            cwd=folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout
        first = self.process.stdout.readline()
        assert first, self.process.communicate()[1]
        self.link: str = json.loads(first)["data"]["link"]
        self.origin, _, self.token = self.link.partition("/#token=")
        self.port = int(self.origin.rpartition(":")[2])

    def new_link(self) -> str:
        """The link that a second `memd panel` prints."""
        command = [sys.executable, "-P", "-m", "memd.clients.cli.main", "panel", "--no-browser", "--json"]
        done = subprocess.run(
            command, env=self.environment, cwd=self.folder, capture_output=True, text=True, timeout=60, check=True
        )
        return json.loads(done.stdout)["data"]["link"]

    def end(self) -> int:
        """End it as a service manager would; its exit code."""
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(60)
        self.process.communicate()
        return code


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The project in which the panel is started."""
    folder = tmp_path / "orchard"
    folder.mkdir()
    subprocess.run(["git", "init", "-q", str(folder)], check=True)
    return folder


@pytest.fixture
def panel(daemon: RunningDaemon, folder: Path) -> Iterator[RunningPanel]:
    """A panel of the test's daemon."""
    running = RunningPanel(daemon.environment, folder)
    yield running
    if running.process.poll() is None:
        running.end()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """One Chromium for the tests of a module: while it runs, no test can start an event loop of its own."""
    assert CHROMIUM, "no chromium: apt install chromium"
    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield running
        running.close()


class OpenPage:
    """A tab. `complaints` has what the page wrote to the console, `foreign` each request to another origin."""

    def __init__(self, page: Page, panel: RunningPanel) -> None:
        self.page, self.panel = page, panel
        self.complaints: list[str] = []
        self.foreign: list[str] = []
        self.sizes: dict[str, int] = {}
        page.on("console", lambda message: self.complaints.append(message.text))
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("request", lambda request: self._note(request.url))
        page.on("response", self._weigh)

    def _note(self, url: str) -> None:
        if not url.startswith((f"{self.panel.origin}/", "data:")):
            self.foreign.append(url)

    def _weigh(self, response: Any) -> None:
        self.sizes[response.url.removeprefix(self.panel.origin)] = int(response.headers.get("content-length", 0))

    def go(self, path: str) -> "OpenPage":
        """Open a screen by its address, as a reload would."""
        self.page.goto(self.panel.origin + path)
        self.page.wait_for_selector("#view .top, #view [role=alert]")
        return self

    def until(self, expression: str) -> None:
        """Wait until an expression of the page is true; the page's own policy forbids it to evaluate one itself."""
        end = time.monotonic() + 90
        while not self.page.evaluate(expression):
            assert time.monotonic() < end, f"{expression} did not become true"
            self.page.wait_for_timeout(20)

    def find(self, selector: str) -> Locator:
        """What the selector finds now."""
        return self.page.locator(selector)

    def text(self, selector: str = "#view") -> str:
        """The text of the first thing that the selector finds, with single blanks."""
        return " ".join(self.page.locator(selector).first.inner_text().split())


Opened = Callable[..., OpenPage]


@pytest.fixture
def opened(browser: Browser, panel: RunningPanel) -> Iterator[Callable[..., OpenPage]]:
    """Opens a tab in a browser of its own by the panel's link; options are those of a browser context."""
    contexts: list[Any] = []

    def open_tab(link: str = "", **options: Any) -> OpenPage:
        context = browser.new_context(viewport=options.pop("viewport", {"width": 1280, "height": 900}), **options)
        contexts.append(context)
        tab = OpenPage(context.new_page(), panel)
        tab.page.set_default_timeout(60_000)
        tab.page.goto(link or (panel.link if len(contexts) == 1 else panel.new_link()))
        tab.page.wait_for_selector("#view .top")
        return tab

    yield open_tab
    for context in contexts:
        context.close()
