"""What a pass shows in the panel (U4, A1)."""

from collections.abc import Callable

from memd.clients.python import Client
from tests.clients.panel.conftest import OpenPage, RunningPanel, needs_browser
from tests.conftest import RunningDaemon

pytestmark = needs_browser


def test_a_panel_under_a_pass_shows_what_the_pass_shows_A1(
    daemon: RunningDaemon, panel: RunningPanel, opened: Callable[..., OpenPage]
) -> None:
    panel.end()
    with daemon.client() as client:
        client.bind_scope(str(panel.folder))
        client.remember("I keep bees behind the packing shed.", pool="personal")
        kept = client.remember("The orchard ledger is kept in SQLite.", cwd=str(panel.folder), pool="project").record
        daemon.settle()
        pass_ = client.grant("reader", pools=(client.get(kept.id).pool,)).token
    restricted = RunningPanel({**panel.environment, "MEMD_PASS": pass_}, panel.folder)
    try:
        tab = opened(restricted.link)
        tab.panel = restricted
        for path in ("/memories", "/memories?q=ledger+bees", "/map", f"/memories/{kept.id}", "/"):
            assert "packing shed" not in tab.go(path).text()
        assert "SQLite" in tab.go("/memories").text() and "SQLite" in tab.go(f"/memories/{kept.id}").text("h1")
        for path in ("/activity", "/inbox", "/settings", "/readers", "/sharing", "/fading", "/skills"):
            assert "read-only" in tab.go(path).text("[role=alert]")
        with Client(daemon.places, token=pass_) as reader:
            assert {record.id for record in reader.list().records} == {kept.id}
    finally:
        restricted.end()
