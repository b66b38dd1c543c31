"""`memd skill` over a real daemon: drafts of captured sessions, what the project says already; nothing is written."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from memd.protocol.event import Origin
from tests.clients.conftest import Told
from tests.clients.test_command_sources import FOLDER, Doing, claude_lines, ran
from tests.clients.test_questions import answered
from tests.conftest import RunningDaemon
from tests.daemon.test_procedures import SessionEvents, release, session
from tests.daemon.test_remote import finished


@pytest.fixture
def orchard(tmp_path: Path) -> Path:
    folder = tmp_path / "orchard"
    (folder / "scripts").mkdir(parents=True)
    for name in ("freeze", "ship"):
        (folder / "scripts" / f"{name}.sh").write_text("true\n")
    (folder / "Makefile").write_text("bundle:\n\ttrue\nsmoke:\n\ttrue\n")
    who = ("-c", "user.name=A", "-c", "user.email=a@example.org")
    subprocess.run(["git", "init", "-q", "-b", "main", str(folder)], check=True)
    subprocess.run(["git", "-C", str(folder), *who, "commit", "-q", "--allow-empty", "-m", "plant"], check=True)
    return folder


def captured(daemon: RunningDaemon, folder: Path, *sessions: SessionEvents, host: str = "claude-code") -> None:
    with daemon.client() as client:
        for each in sessions:
            client.capture(Origin(host=host, session=each.document, cwd=str(folder), live=False), each.events)


def test_a_draft_is_listed_shown_and_explained_K1(
    daemon: RunningDaemon, memd: Callable[..., Told], orchard: Path
) -> None:
    noise = session("n", 3, "Why is the press slow?", ("run", "make test"), ("edit", "src/press.py"))
    captured(daemon, orchard, release("a", 1), release("b", 2), noise, release("c", 3))
    where = ("--cwd", str(orchard))
    with daemon.client() as client:
        before = client.status().journal_seq
    listed = memd("skill", "list", *where)
    assert listed.code == 0 and "ship-version  3 times in 3 sessions on 3 days" in listed.text
    shown = memd("skill", "show", "ship-version", *where)
    assert shown.text.startswith("---\nname: ship-version\ndescription: ") and "2. `make bundle`\n" in shown.text
    (draft,) = json.loads(memd("skill", "list", *where, "--json").text)["data"]["skills"]
    assert draft["text"] == shown.text and len(draft["rounds"]) == 3
    told = memd("skill", "why", draft["id"][:8], *where)
    assert "100% of the order is the same" in told.text and "2026-03-02  end unknown  claude-code:b" in told.text
    absent = memd("skill", "show", "nothing", *where)
    assert absent.code == 4 and "`memd skill list --everywhere` lists them" in absent.errors
    with daemon.client() as client:
        assert client.status().journal_seq == before, "nothing is stored"
    assert not (orchard / ".claude").exists() and not (orchard / ".agents").exists()


def test_what_the_project_says_already_is_no_draft_K1(
    daemon: RunningDaemon, memd: Callable[..., Told], orchard: Path
) -> None:
    captured(daemon, orchard, release("a", 1), release("b", 2), release("c", 3))
    where = ("--cwd", str(orchard))
    (orchard / "AGENTS.md").write_text("Run `./scripts/freeze.sh V`, then `make -j 4 bundle` and `make  smoke`.\n")
    listed = memd("skill", "list", *where)
    assert "ship-version" not in listed.text and "nothing was repeated often enough" in listed.text
    assert "AGENTS.md says it already" in memd("skill", "list", "--known", *where).text
    (orchard / "AGENTS.md").write_text("Run `make bundle` when you like.\n")
    assert "ship-version" in memd("skill", "list", *where).text


def test_documents_hidden_sessions_and_other_projects_count_nothing_K1(
    daemon: RunningDaemon, memd: Callable[..., Told], orchard: Path, tmp_path: Path
) -> None:
    captured(daemon, orchard, release("a", 1), release("b", 2), host="markdown")
    captured(daemon, orchard, release("c", 3), release("d", 4))
    captured(daemon, orchard, release("e", 5), host="gemini-cli")
    where = ("--cwd", str(orchard))
    assert "3 times in 3 sessions" in memd("skill", "list", *where).text
    with daemon.client() as client:
        finished(client, client.undo(["claude-code:d"]))
    assert "nothing was repeated often enough" in memd("skill", "list", *where).text
    elsewhere = ("--cwd", str(tmp_path))
    assert "ship" not in memd("skill", "list", *elsewhere).text


def test_a_skill_is_written_after_a_yes_and_overwrites_nothing_K1(
    daemon: RunningDaemon, memd: Callable[..., Told], orchard: Path, tmp_path: Path
) -> None:
    captured(daemon, orchard, release("a", 1), release("b", 2), release("c", 3))
    place = ("skill", "place", "ship-version", "--cwd", str(orchard))
    file = orchard / ".agents" / "skills" / "ship-version" / "SKILL.md"
    without_terminal = memd(*place)
    assert without_terminal.code == 7 and "read it in a terminal" in without_terminal.errors
    code, text = answered(daemon.environment, "n\n", *place)
    assert code == 130 and "1. `./scripts/freeze.sh <word>`" in text and not file.exists()
    (orchard / ".claude").mkdir()
    code, text = answered(daemon.environment, "y\n", *place)
    shown = memd("skill", "show", *place[2:]).text
    assert code == 0 and f"file: {file}" in shown and "placed, used 0 times" in shown and "gone" not in shown
    (listed,) = memd("skill", "list", "--cwd", str(orchard)).text.splitlines()[:-1]
    assert listed.endswith("ship-version  placed, used 0 times"), "the draft itself is no longer listed"
    link = orchard / ".claude" / "skills" / "ship-version"
    assert link.is_symlink() and (link / "SKILL.md").samefile(file)
    status = subprocess.run(
        ["git", "status", "--short", "--", ".agents", ".claude"],
        cwd=orchard,
        capture_output=True,
        text=True,
        check=True,
    )
    assert status.stdout.split() == ["??", ".agents/", "??", ".claude/"], "nothing is added or committed"
    assert "it is there already" in answered(daemon.environment, "y\n", *place)[1]
    file.write_text("mine\n", encoding="utf-8")
    code, text = answered(daemon.environment, "y\n", *place)
    assert code == 7 and "is taken" in text and file.read_text(encoding="utf-8") == "mine\n"


def test_a_skill_leaves_no_repository_through_a_link_K1(
    daemon: RunningDaemon, memd: Callable[..., Told], orchard: Path, tmp_path: Path
) -> None:
    captured(daemon, orchard, release("a", 1), release("b", 2), release("c", 3))
    (tmp_path / "elsewhere").mkdir()
    (orchard / ".agents").symlink_to(tmp_path / "elsewhere")
    code, text = answered(daemon.environment, "y\n", "skill", "place", "ship-version", "--cwd", str(orchard))
    assert code == 7 and "leads out of" in text and list((tmp_path / "elsewhere").iterdir()) == []


def test_a_line_for_the_rules_is_not_written_as_a_skill_K1(
    daemon: RunningDaemon, memd: Callable[..., Told], orchard: Path
) -> None:
    asks = ("Fix the lamp", "The table is slow", "Add a field", "Write the mail")
    captured(daemon, orchard, *(release(f"s{day}", day, ask) for day, ask in enumerate(asks, 1)))
    (draft,) = json.loads(memd("skill", "list", "--cwd", str(orchard), "--json").text)["data"]["skills"]
    assert draft["form"] == "line" and draft["text"].startswith("- In this order: ")
    code, text = answered(daemon.environment, "y\n", "skill", "place", draft["id"][:8], "--cwd", str(orchard))
    assert code == 2 and "AGENTS.md yourself" in text


COMMANDS = ("./scripts/freeze.sh 1", "make bundle", "make sign-labels", "make smoke", "./scripts/ship.sh all")


def imported(memd: Callable[..., Told], folder: Path, orchard: Path, source: Doing) -> None:
    """Three session files of Claude Code on three days, in each of which the agent reads a source and releases."""
    for day in (1, 2, 3):
        doings = [Doing(text=f"Please ship version 1.{day}"), source, *map(ran, COMMANDS)]
        text = json.dumps(list(claude_lines(doings, f"s{day}"))).replace(FOLDER, str(orchard))
        lines = json.loads(text.replace("2026-03-04", f"2026-03-0{day}"))
        path = folder / f"s{day}.jsonl"
        path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
        assert memd("import", "claude-code", str(path)).code == 0


def test_the_orders_of_a_page_are_in_no_draft_K1(
    daemon: RunningDaemon, memd: Callable[..., Told], orchard: Path, tmp_path: Path
) -> None:
    orders = "To ship, run `make sign-labels` and at last ./scripts/ship.sh all."
    page = Doing(tool="WebFetch", arguments={"url": "https://x.example/ship"}, result=orders)
    imported(memd, tmp_path, orchard, page)
    shown = " ".join(memd("skill", "show", "ship-version", "--cwd", str(orchard)).text.split())
    for left_out in ("make sign-labels", "./scripts/ship.sh all"):
        assert f"left out: `{left_out}` a page said it first" in shown and f". `{left_out}`" not in shown
    assert "`make bundle`" in shown
    told = memd("skill", "why", "ship-version", "--cwd", str(orchard)).text
    assert "`make sign-labels`  (a page said it first)" in told


def test_what_the_projects_readme_documents_is_drafted_and_told_K1(
    daemon: RunningDaemon, memd: Callable[..., Told], orchard: Path, tmp_path: Path
) -> None:
    (orchard / "README.md").write_text("`make sign-labels` signs the labels.\n")
    imported(memd, tmp_path, orchard, ran("cat README.md", "`make sign-labels` signs the labels.\n"))
    shown = memd("skill", "show", "ship-version", "--cwd", str(orchard)).text
    assert ". `make sign-labels`\n" in shown and "left out" not in shown
    assert "a document said it first: `make sign-labels`" in shown
    told = memd("skill", "why", "ship-version", "--cwd", str(orchard)).text
    assert "`make sign-labels`  (a document said it first)" in told
    (draft,) = json.loads(memd("skill", "list", "--cwd", str(orchard), "--json").text)["data"]["skills"]
    assert [step["text"] for step in draft["steps"] if step.get("document")] == ["`make sign-labels`"]
