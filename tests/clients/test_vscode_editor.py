"""The extension in a real VS Code server (npm's `code-server`) that a real browser opens, with a real daemon (U2)."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect, sync_playwright

from memd.clients.vscode.vsix_file import write_vsix
from tests.clients.panel.conftest import CHROMIUM
from tests.conftest import RunningDaemon

EDITOR = shutil.which("code-server") or ""
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not EDITOR, reason="there is no code-server on this machine: npm install -g code-server"),
    pytest.mark.skipif(not CHROMIUM, reason="no chromium: apt install chromium"),
]
START_MS = 60_000
TRIES = 8
CODE = "package panel\n\nfunc openPanel() {\n\tsettle()\n}\n\n// The panel never opens twice.\n"


class Editor:
    """A window of VS Code. `page`: the page of the browser that shows it."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.status = page.locator('.statusbar-item[id="memd.memd.memd"]')
        self.rows = page.locator(".quick-input-list .monaco-list-row")
        self.hover = page.locator(".monaco-hover:visible")
        self.notice = page.locator(".notification-toast")

    def type(self, text: str, title: str = "") -> None:
        """Type into the quick input that has a title."""
        if title:
            self.page.locator(".quick-input-title:visible").get_by_text(title, exact=True).wait_for()
        self.page.locator(".quick-input-widget:visible input").last.wait_for()
        self.page.keyboard.insert_text(text)

    def run(self, title: str) -> None:
        """Run a command by its title in the palette."""
        self.page.keyboard.press("F1")
        self.type(title)
        self.choose(title)

    def open(self, name: str) -> None:
        """Open a file of the folder."""
        self.page.keyboard.press("Control+P")
        self.type(name)
        self.choose(name)
        self.page.locator(f'.tab.active:has-text("{name}")').wait_for()

    def choose(self, text: str) -> None:
        """Choose the first row of the quick input with this text."""
        self.rows.filter(has_text=text).first.click()

    def token(self, text: str) -> Locator:
        """A piece of the code that the editor shows."""
        return self.page.locator(".view-line span span").filter(has_text=re.compile(f"^\\W*{text}")).first

    def expect_hover(self, place: str, *texts: str) -> None:
        """Point at a piece of the code until the hover has the texts: a late answer is shown the next time."""
        shown = ""
        for _ in range(TRIES):
            self.page.mouse.move(5, 400)
            expect(self.hover).to_have_count(0)
            self.token(place).hover()
            self.page.wait_for_timeout(3000)
            shown = "\n".join(self.hover.all_inner_texts())
            if all(text in shown for text in texts):
                return
        raise AssertionError(f"{shown!r} lacks one of {texts}")


@pytest.fixture
def editor(daemon: RunningDaemon, home: dict[str, str], tmp_path: Path) -> Iterator[Editor]:
    """The window of a folder `orchard` with the file `panel.go`, the extension installed."""
    folder = tmp_path / "orchard"
    folder.mkdir()
    (folder / "panel.go").write_text(CODE)
    state = Path(home["MEMD_HOME"]) / "state" / "vscode"
    state.mkdir(mode=0o700)
    (state / "program").write_text(str(Path(sys.executable).with_name("memd")))
    settings = tmp_path / "data" / "User" / "settings.json"
    settings.parent.mkdir(parents=True)
    settings.write_text('{"workbench.startupEditor": "none", "editor.hover.delay": 100}')
    command = [EDITOR, "--user-data-dir", str(tmp_path / "data"), "--extensions-dir", str(tmp_path / "extensions")]
    environment = {**home, "XDG_CONFIG_HOME": str(tmp_path / "config")}
    file = str(write_vsix(tmp_path))
    subprocess.run([*command, "--install-extension", file], env=environment, check=True, capture_output=True)
    quiet = ["--auth", "none", "--disable-telemetry", "--disable-update-check", "--disable-workspace-trust"]
    server = subprocess.Popen(
        [*command, *quiet, "--bind-addr", "127.0.0.1:0"], env=environment, stdout=subprocess.PIPE, text=True
    )
    try:
        assert server.stdout
        address = next(found[1] for line in server.stdout if (found := re.search(r"listening on (http://\S+)/", line)))
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
            page = browser.new_page(viewport={"width": 1280, "height": 800})
            page.set_default_timeout(START_MS)
            expect.set_options(timeout=START_MS)
            page.goto(f"{address}/?folder={folder}")
            window = Editor(page)
            window.status.wait_for()
            try:
                yield window
            finally:
                if pictures := os.environ.get("PICTURES"):
                    page.screenshot(path=f"{pictures}/vscode.png")
            browser.close()
    finally:
        server.terminate()
        server.wait(60)


def test_it_recalls_explains_remembers_and_shows_the_memories_of_a_place_U2(
    editor: Editor, daemon: RunningDaemon, tmp_path: Path
) -> None:
    with daemon.client() as client:
        client.remember("Never call openPanel in a loop, because each call starts a server.", pool="personal")
    file = tmp_path / "orchard" / "panel.go"
    editor.open("panel.go")
    editor.expect_hover("openPanel", "Never call openPanel in a loop", "personal · you")

    editor.run("memd: Recall")
    editor.type("openPanel in a loop", title="memd: recall")
    editor.page.keyboard.press("Enter")
    expect(editor.rows).to_contain_text(["Never call openPanel in a loop"])
    editor.page.keyboard.press("Enter")
    why = editor.page.locator('[data-uri^="memd-page:"] .view-lines')
    expect(why).to_contain_text("captured in")
    expect(why).to_contain_text("▶")

    editor.token("//").click()
    editor.run("memd: Remember Selection")
    editor.choose("Personal")
    expect(editor.notice).to_contain_text("memd: remembered in personal")
    with daemon.client() as client:
        records = client.list(document=f"vscode:{file}").records
    assert [(record.provenance.quote, record.pool) for record in records] == [
        ("// The panel never opens twice.", "personal")
    ]
    editor.expect_hover("//", f"vscode:{file}")
    editor.hover.get_by_text("Why").click()
    expect(why).to_contain_text("The panel never opens twice.")


def test_the_status_bar_shows_the_daemons_state_and_starts_it_and_agents_get_the_mcp_server_U2_W10(
    editor: Editor, daemon: RunningDaemon
) -> None:
    editor.status.click()
    editor.choose("Pause capture for an hour")
    expect(editor.status.locator(".codicon-debug-pause")).to_have_count(1)
    editor.run("memd: Pause or Resume Capture")
    expect(editor.status.locator(".codicon-database")).to_have_count(1)

    editor.run("MCP: List Servers")
    editor.choose("memd")
    editor.choose("Start Server")
    expect(editor.page.locator(".view-line").filter(has_text="Discovered")).to_contain_text("tools")

    daemon.terminate()
    editor.status.click()
    expect(editor.status.locator(".codicon-circle-slash")).to_have_count(1)
    editor.choose("Start memd")
    expect(editor.status.locator(".codicon-database")).to_have_count(1)
    with daemon.client() as client:
        client.stop()
