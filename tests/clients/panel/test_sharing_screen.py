"""Sharing in a real browser: who shares, what goes next and what may go; nothing leaves from here (H1, H2, U4)."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

from memd.clients.python.client import Client
from memd.protocol.share import AuthorState, ShareState
from memd.protocol.shared_lines import ShareMark
from tests.clients.panel.conftest import OpenPage, RunningPanel, needs_browser
from tests.conftest import RunningDaemon
from tests.daemon.shared_authors import Author

pytestmark = needs_browser

LEDGER = "We keep the apple ledger in SQLite, because the spreadsheet loses rows."
PRESS = "The press of the orchard service starts at six in the morning."
PEARS = "The pears of the orchard go into the green crates."
REMOTE = "ssh://git@example.org/orchard/app.git"


def shared_project(client: Client, folder: Path) -> str:
    """Share the panel's project, and give it two records; its pool."""
    identity = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org", "-c", "commit.gpgsign=false")
    subprocess.run(["git", *identity, "-C", str(folder), "commit", "-q", "--allow-empty", "-m", "plant"], check=True)
    subprocess.run(["git", "-C", str(folder), "remote", "add", "origin", REMOTE], check=True)
    for text in (LEDGER, PRESS):
        client.remember(text, cwd=str(folder), pool="project")
    pool = client.why_scope(str(folder)).pool
    client.open_share(pool, REMOTE, name="Ada")
    return pool


def bert_shares(client: Client, pool: str, folder: Path) -> AuthorState:
    """Take a line of another author."""
    root = subprocess.run(
        ["git", "-C", str(folder), "rev-list", "--max-parents=0", "HEAD"], check=True, capture_output=True, text=True
    ).stdout.strip()
    author = Author(7, "Bert", ShareMark(root=root, remote="example.org/orchard/app"))
    author.add(PEARS)
    taken = client.take_partition(pool, author.head(), author.hashes(), author.segments())
    assert (taken.added, taken.problem) == (1, "")
    return next(row for row in share(client).authors if not row.own)


def share(client: Client) -> ShareState:
    """The only share."""
    [only] = client.shares().shares
    return only


def test_without_a_shared_project_the_page_says_how_to_begin_H1(
    panel: RunningPanel, opened: Callable[..., OpenPage]
) -> None:
    tab = opened().go("/sharing")
    assert "No project is shared" in tab.text() and "memd share on" in tab.text()
    assert tab.find("#view form[method=post]").count() == 0


def test_records_are_chosen_taken_out_and_kept_H1(
    daemon: RunningDaemon, panel: RunningPanel, opened: Callable[..., OpenPage]
) -> None:
    with daemon.client() as client:
        pool = shared_project(client, panel.folder)
        daemon.settle()
        tab = opened().go("/sharing")
        assert REMOTE in tab.text() and "Nothing waits." in tab.text()
        tab.find(f'[aria-label="Share: {LEDGER[:80]}"]').click()
        tab.find("#notice >> text=It goes with the next").wait_for()
        [item] = client.share_outbox(pool).items
        assert json.dumps(LEDGER) in item.line
        tab.find(f'[aria-label="Take out: {LEDGER[:80]}"]').wait_for()  # the page is that of after the choice
        for _ in range(10):  # a page that is drawn anew meanwhile closes it
            if json.dumps(LEDGER) in tab.text():
                break
            tab.find("#view summary >> text=The exact line").click()
        assert json.dumps(LEDGER) in tab.text() and "memd share push" in tab.text()

        tab.find(f'[aria-label="Take out: {LEDGER[:80]}"]').click()
        tab.find("#notice >> text=Kept").wait_for()
        assert client.share_outbox(pool).items == ()
        tab.find("#notice button[data-key=u]").click()
        tab.find("#notice >> text=It goes with the next").wait_for()
        assert len(client.share_outbox(pool).items) == 1

        tab.find(f'[aria-label="Keep: {PRESS[:80]}"]').click()
        tab.find("#notice >> text=Kept").wait_for()
        assert tab.find("#notice button[data-key=u]").count() == 0, "what never was to go does not go by an undo"
        assert [row for row in client.review_share(pool).candidates if not row.why_not] == []
        assert share(client).delivered == 0


def test_an_author_is_trusted_muted_and_each_has_an_undo_H2(
    daemon: RunningDaemon, panel: RunningPanel, opened: Callable[..., OpenPage]
) -> None:
    with daemon.client() as client:
        pool = shared_project(client, panel.folder)
        daemon.settle()
        assert bert_shares(client, pool, panel.folder).standing == "new"
        tab = opened().go("/sharing")
        assert "Bert" in tab.text() and "unconfirmed" in tab.text() and "1 memory of 1 line" in tab.text()
        for label, notice, standing in (("Trust", "Trusted", "trusted"), ("Mute", "Muted", "muted")):
            tab.find(f'[aria-label="{label} Bert"]').click()
            tab.find(f"#notice >> text={notice}").wait_for()
            assert [row.standing for row in share(client).authors if not row.own] == [standing]
            tab.find("#notice button[data-key=u]").click()
            tab.find("#notice >> text=unconfirmed again").wait_for()
            assert [row.standing for row in share(client).authors if not row.own] == ["new"]
            tab.go("/sharing")
    assert [word for word in tab.complaints if "Failed to load" not in word] == [] and tab.foreign == []
