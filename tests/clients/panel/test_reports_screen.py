"""The report of a week and the card of a patch, in a real browser (G6, G7, U4)."""

import subprocess
from pathlib import Path

from msgspec.structs import replace

from memd.daemon.projections.stores import Stores
from memd.daemon.world import real_world
from memd.models import registry
from memd.protocol.event import Origin
from memd.protocol.operation import Added, ChangeProposed, PatchStep
from memd.protocol.record import Record
from memd.protocol.request import Remember
from tests.clients.panel.conftest import SAID_AT, SUITCASE, Opened, RunningPanel, needs_browser, remember
from tests.conftest import RunningDaemon
from tests.daemon.living import WHY

pytestmark = needs_browser

TABS, SPACES = "The orchard service is indented with tabs.", "The orchard service is indented with four spaces."
HOSTILE = "We decided to keep <img src=x onerror=alert(1)> out of each release."


def of_project(daemon: RunningDaemon, folder: Path, text: str, turn: str) -> Record:
    origin = Origin(host="cli", session="one", cwd=str(folder))
    with daemon.client() as client:
        record = client.remember(Remember(text=text, turn=turn, at=SAID_AT, origin=origin, pool="project")).record
    daemon.settle()
    with daemon.client() as client:
        return client.get(record.id)


def proposed(daemon: RunningDaemon, folder: Path) -> tuple[Record, Record]:
    """Propose two patches, as the curator does; the record that joins the playbook, and the one that leaves."""
    who = ["-c", "user.name=A", "-c", "user.email=a@example.org"]
    subprocess.run(["git", "-C", str(folder), *who, "commit", "-q", "--allow-empty", "-m", "first"], check=True)
    joins = of_project(daemon, folder, HOSTILE, "1")
    old, new = (replace(joins, id=id * 26, content=text, description=text) for id, text in (("a", TABS), ("b", SPACES)))
    daemon.terminate()
    offline = Stores(daemon.places.data, real_world(), registry.info())
    proof = (("session", "2026-02-09", ""), ("session", "2026-02-16", ""))
    add = PatchStep("promote", joins.id, rev=joins.rev, layer="L2", confidence=0.8, evidence=proof)
    why = "said in two conversations on different days"
    supersede = PatchStep("supersede", old.id, to=new.id)
    offline.commit(
        [
            Added(record=old, decision=WHY),
            Added(record=new, decision=WHY),
            ChangeProposed(id="p" * 26, what="patch", record=joins.id, by="curator", reason=why, steps=(add,)),
            ChangeProposed(id="q" * 26, what="patch", record=old.id, by="maintainer", steps=(supersede,)),
        ]
    )
    offline.close()
    daemon.start()
    return joins, old


def test_a_patch_is_read_and_decided_on_its_card_G7_U4(daemon: RunningDaemon, folder: Path, opened: Opened) -> None:
    joins, old = proposed(daemon, folder)
    tab = opened().go("/inbox")
    first, second = tab.find(".ask").nth(0), tab.find(".ask").nth(1)
    words = " ".join(first.inner_text().split())
    assert "The curator proposes a change of the playbook" in words and HOSTILE in words
    assert "said in two conversations on different days" in words
    assert "session 2026-02-09, session 2026-02-16" in words and "The playbook stays as it is." in words
    assert second.locator("mark").all_inner_texts() == ["tabs", "four spaces"]
    assert "The maintainer proposes" in second.inner_text()
    tab.page.keyboard.press("l")
    tab.page.keyboard.press("l")
    tab.find("text=The oldest again").wait_for()
    assert tab.find(".ask").count() == 1
    with daemon.client() as client:
        assert client.inbox().open == 2, "later decides nothing"
        tab.find("text=The oldest again").click()
        tab.find(".ask").nth(1).wait_for()
        tab.find("button >> text=Accept").first.click()
        tab.find("#notice >> text=Accepted: the playbook has changed. 1 left.").wait_for()
        assert client.get(joins.id).layer == "L2"
        tab.find("h1 >> text=1 thing only you decide").wait_for()
        tab.find("button >> text=Reject").click()
        tab.find("h1 >> text=Nothing waits for your decision").wait_for()
        assert client.get(old.id).status == "active"
        tab.find("#notice >> text=Undo").click()
        tab.find("h1 >> text=1 thing only you decide").wait_for()
    assert tab.complaints == [] and tab.foreign == []


def test_the_report_leads_to_what_needs_the_user_and_to_other_weeks_G6_U4(
    daemon: RunningDaemon, panel: RunningPanel, opened: Opened
) -> None:
    suitcase = remember(daemon, SUITCASE, "1")
    with daemon.client() as client:
        [asked] = client.propose_forget([suitcase.id], "Claude Code").ids
        week = client.report()
    tab = opened()
    tab.page.keyboard.press("g")
    tab.page.keyboard.press("w")
    tab.find(f"h1 >> text=Week {week.week}").wait_for()
    assert tab.text("nav.side a[aria-current]") == "Reports"
    needs = tab.find(".week").nth(0).inner_text()
    assert "Needs you" in needs and f"Claude Code asks to delete “{SUITCASE}” for good" in needs
    assert "Learnt and changed" in tab.find(".week").nth(1).inner_text()
    assert tab.find(f"text={week.after}").count() == 0, "there is no report of a week to come"
    tab.find(f"text=← {week.before}").click()
    tab.find(f"h1 >> text=Week {week.before}").wait_for()
    assert "Nothing happened in this week" in tab.text()
    tab.find(f"text={week.week} →").click()
    tab.find(f"h1 >> text=Week {week.week}").wait_for()
    tab.find(".week >> text=asks to delete").click()
    tab.find(f"#proposal-{asked}:focus").wait_for()
    assert "is not a week" in tab.go("/reports?week=2025-W53").text()
    assert [line for line in tab.complaints if "400" not in line] == [] and tab.foreign == []
