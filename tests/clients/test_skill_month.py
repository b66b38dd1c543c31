"""A month of one user with a skill, over a real daemon: proposed, placed, used, edited, stale, retired (K1, K2, K3)."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest

from memd.clients.cli.skill_places import twice_named
from memd.clients.mcp.calls import Calls
from memd.clients.mcp.tools import SkillsArguments, SkillsResult
from memd.clients.python.client import Client
from memd.protocol.event import Origin
from tests.clients.conftest import Told
from tests.clients.test_questions import answered
from tests.clients.test_skill_command import orchard as orchard  # noqa: PLC0414 - a fixture
from tests.conftest import RunningDaemon
from tests.daemon.test_procedures import SessionEvents, release, run, session

RELEASE = ("./scripts/freeze.sh {0}", "make bundle", "make smoke", "./scripts/ship.sh {0}")


def on(days: int, each: SessionEvents) -> SessionEvents:
    """Move a session to a day from now."""
    day = (datetime.now(UTC) + timedelta(days=days)).date().isoformat()
    return each._replace(events=[msgspec.structs.replace(event, at=f"{day}{event.at[10:]}") for event in each.events])


@pytest.fixture
def month(daemon: RunningDaemon, memd: Callable[..., Told], orchard: Path) -> Iterator[Month]:
    yield Month(daemon, memd, orchard)


class Month:
    """The days of a user in one project."""

    def __init__(self, daemon: RunningDaemon, memd: Callable[..., Told], folder: Path) -> None:
        self.daemon, self.memd, self.folder = daemon, memd, folder
        self.where = ("--cwd", str(folder))
        self.file = folder / ".agents" / "skills" / "ship-version" / "SKILL.md"

    def work(self, days: int, name: str, *doings: Any) -> None:
        self.capture(days, session(name, 1, *doings))

    def capture(self, days: int, each: SessionEvents) -> None:
        origin = Origin(host="claude-code", session=each.document, cwd=str(self.folder), live=False)
        with self.daemon.client() as client:
            client.capture(origin, on(days, each).events)

    def releases(self) -> None:
        for number, name in enumerate("abc", 1):
            self.capture(-20 + 2 * number, release(name, number))

    def told(self, *words: str) -> str:
        answer = self.memd(*words)
        assert answer.code == 0, answer.errors
        return answer.text

    def asked(self, *words: str) -> str:
        code, text = answered(self.daemon.environment, "y\n", *words)
        assert code == 0, text
        return text

    def skill(self) -> dict[str, Any]:
        (found,) = json.loads(self.told("skill", "list", *self.where, "--json"))["data"]["placed"]
        return found

    def use(self, days: int, name: str, version: str, *, ends: str = "passed") -> None:
        call = ("skill", "ship-version")
        steps = run(*(text.format(version) for text in RELEASE))
        each = session(name, 1, f"Please ship version {version}", call, *steps, ("check", ends))
        self.capture(days, each)


def test_a_month_of_one_user_K1_K2(month: Month) -> None:
    month.releases()
    assert "would propose ship-version: done 3 times" in month.told("skill", "propose", "--dry-run")
    assert "no proposals" in month.told("inbox")
    month.told("skill", "propose")
    inbox = month.told("inbox")
    assert "ship-version" in inbox and "no file is written." in inbox
    (proposal,) = json.loads(month.told("inbox", "--json"))["data"]["proposals"]
    refused = month.memd("inbox", "accept", proposal["id"][:8])
    assert refused.code != 0 and "memd skill place" in refused.errors

    month.asked("skill", "place", "ship-version", *month.where)
    assert month.skill()["rung"] == "placed"
    assert "ship-version" not in month.told("inbox"), "placing it decided the proposal"
    assert "it is placed" in month.told("skill", "propose", "--dry-run")

    for day in (1, 2, 3):
        month.use(day, f"u{day}", f"2.{day}.0")
    skill = month.skill()
    assert skill["rung"] == "verified" and skill["uses"] == 3 and skill["good"] == 3
    month.capture(4, release("without", 9))
    assert month.skill()["without"] == 1

    text = month.file.read_text(encoding="utf-8")
    month.file.write_text(text.replace("`make smoke`", "`make smoke QUICK=1`"), encoding="utf-8")
    month.told("skill", "propose")
    assert "edited by hand" in month.told("skill", "why", "ship-version", *month.where)
    for day in (5, 6, 7):
        month.use(day, f"u{day}", f"2.{day}.0")
    assert month.skill()["rung"] == "honed"

    (month.folder / "scripts" / "ship.sh").unlink()
    stale = month.told("skill", "show", "ship-version", *month.where)
    assert "1 of 4 steps names a file or target that is gone" in stale and "gone: ./scripts/ship.sh" in stale
    month.told("skill", "propose")
    assert "the skill stays as it is." in month.told("inbox")

    gone = month.asked("skill", "retire", "ship-version", *month.where)
    assert "moved it to" in gone and not month.file.exists()
    assert list((month.daemon.places.data / "drafts" / "retired" / "ship-version").iterdir())
    assert "ship-version" not in month.told("inbox")
    month.capture(8, release("later", 11))
    assert "you rejected it, or took it away" in month.told("skill", "propose", "--dry-run")
    record = json.loads(month.told("why", skill["id"], "--json"))["data"]
    assert "retired the skill" in json.dumps(record)


def test_a_rejected_draft_does_not_come_back_K1(month: Month) -> None:
    month.releases()
    month.told("skill", "propose")
    (proposal,) = json.loads(month.told("inbox", "--json"))["data"]["proposals"]
    month.told("inbox", "reject", proposal["id"][:8])
    assert "you rejected it" in month.told("skill", "propose")
    assert "which you rejected" in month.told("skill", "list", *month.where)
    month.told("inbox", "reopen", proposal["id"][:8])
    assert "ship-version" in month.told("inbox")


def test_a_deleted_file_is_noticed_and_stays_away_K2(month: Month) -> None:
    month.releases()
    month.asked("skill", "place", "ship-version", *month.where)
    month.file.unlink()
    month.told("skill", "propose")
    assert "its file is gone" in month.told("skill", "list", *month.where), "a checkout may bring it back"
    month.told("skill", "propose")
    assert "took it away" in month.told("skill", "propose", "--dry-run")


def test_an_edit_needs_held_out_work_K3(month: Month) -> None:
    month.releases()
    month.asked("skill", "place", "ship-version", *month.where)
    text = month.file.read_text(encoding="utf-8")
    month.file.write_text(text.replace("2. `make bundle`\n", ""), encoding="utf-8")
    few = month.told("skill", "tune", "ship-version", *month.where)
    assert "5 of 2 are needed" in few or "no edit fits" in few
    for day in range(1, 15):
        month.use(day, f"w{day}", f"3.{day}.0")
    assert "add `make bundle` as step 2" in month.told("skill", "tune", "ship-version", *month.where)
    assert "make bundle" not in month.file.read_text(encoding="utf-8"), "nothing is written without a yes"
    month.asked("skill", "tune", "ship-version", *month.where)
    assert "2. `make bundle`" in month.file.read_text(encoding="utf-8")
    for day in range(15, 18):
        month.use(day, f"x{day}", f"4.{day}.0")
    assert [each["by"] for each in month.skill()["revisions"]] == ["placed", "tuned"]


def test_a_rule_of_the_user_forbids_a_draft_K4(month: Month) -> None:
    month.releases()
    rule = json.loads(month.told("remember", "Never run make bundle on a laptop.", "--json", *month.where))["data"]
    month.told("pin", rule["record"]["id"][:8])
    assert "a rule forbids a step" in month.told("skill", "list", *month.where)
    refused = month.memd("skill", "place", "ship-version", *month.where)
    assert refused.code != 0 and "Never run make bundle" in refused.errors
    assert "memd makes no file of it" in month.told("skill", "propose", "--dry-run")


def test_the_report_of_a_week_tells_what_is_proposed_K1(month: Month) -> None:
    month.releases()
    month.told("skill", "propose")
    report = month.told("report")
    assert "memd proposes a skill, done 3 times" in report and "memd skill place" in report


def test_an_agent_reads_what_is_known_of_placed_skills_K2(month: Month) -> None:
    month.releases()
    with Client(month.daemon.places, deadline_ms=20_000, surface="mcp") as client:
        calls = Calls(client, str(month.folder), "")
        assert calls.call(SkillsArguments())[0] == SkillsResult(), "a draft is no skill"
        month.asked("skill", "place", "ship-version", *month.where)
        month.use(1, "u1", "2.1.0")
        result, text = calls.call(SkillsArguments())
    assert isinstance(result, SkillsResult)
    assert [(skill.name, skill.rung, skill.uses) for skill in result.skills] == [("ship-version", "placed", 1)]
    assert "- ship-version (" in text and "used 1 times, 1 well, 0 badly" in text


def test_two_skills_of_one_name_are_found_K4(tmp_path: Path) -> None:
    home, root = tmp_path / "home", tmp_path / "project"
    for folder in (
        home / ".claude" / "skills" / "ship",
        root / ".agents" / "skills" / "ship",
        root / ".agents" / "skills" / "own",
    ):
        folder.mkdir(parents=True)
        (folder / "SKILL.md").write_text("---\n")
    assert twice_named(home, root) == ["ship"] and twice_named(root, root) == []
