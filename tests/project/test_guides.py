"""The guides: each host has a page with the files that memd changes, each check of `memd doctor` a section (U2)."""

from __future__ import annotations

import ast
import os
import re
from pathlib import Path

import pytest

from memd.clients.hooks import shell_setup
from memd.clients.hooks.agent_host import AgentHost, SetUp
from memd.clients.hooks.hosts import HOSTS
from memd.protocol.places import places

ROW = re.compile(r"^\| \[[^]]+\]\(([\w-]+\.md)\) \| `([\w-]+)` \|", re.MULTILINE)
LINK = re.compile(r"\]\(([^)#\s]+)")
IN_PAGES = {name: host for name, host in HOSTS.items() if name != shell_setup.NAME}
"""The page on shells names `$ZDOTDIR` and has a table of its own."""


def pages(root: Path) -> dict[str, Path]:
    """The page of each host in the table of hosts."""
    folder = root / "docs/hosts"
    return {name: folder / page for page, name in ROW.findall((folder / "README.md").read_text(encoding="utf-8"))}


def test_each_host_has_a_row_and_a_page_U2(root: Path) -> None:
    assert set(pages(root)) == set(HOSTS)
    assert [str(page) for page in pages(root).values() if not page.is_file()] == []


@pytest.mark.parametrize("host", IN_PAGES.values(), ids=IN_PAGES)
def test_a_page_names_the_files_that_the_set_up_changes_U2(
    root: Path, tmp_path: Path, host: AgentHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.platform", "linux")
    environment = {"HOME": str(tmp_path), "MEMD_HOME": str(tmp_path / "memd")}
    set_up = SetUp(places=places(environment, os.getuid()), environment=environment)
    state = f"{set_up.places.state}/"
    changed = {str(edit.path).replace(state, "").replace(str(tmp_path), "~") for edit in host.edits(set_up)}
    text = pages(root)[host.name].read_text(encoding="utf-8")
    section = text.partition("## What it changes\n")[2].partition("\n## ")[0]
    assert set(re.findall(r"^\| `([^`]+)` \|", section, re.MULTILINE)) == changed
    assert f"memd unsetup {host.name}" in text


def test_each_check_of_the_doctor_has_a_section(root: Path) -> None:
    tree = ast.parse((root / "clients/cli/doctor.py").read_text(encoding="utf-8"))
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)]
    made = [call.args[0] for call in calls if isinstance(call.func, ast.Name) and call.func.id in {"_result", "_ok"}]
    checks = {name.value for name in made if isinstance(name, ast.Constant)}
    text = (root / "docs/TROUBLESHOOTING.md").read_text(encoding="utf-8")
    assert set(re.findall(r"^## (.+)$", text, re.MULTILINE)) == checks and len(checks) > 10


def test_llms_txt_lists_each_page_and_its_links_lead_somewhere(root: Path) -> None:
    """It has the form of llmstxt.org: a title, a quote, sections of links."""
    text = (root / "llms.txt").read_text(encoding="utf-8")
    assert re.match(r"# memd\n\n> .+\n", text) and "\n## " in text
    linked = set(LINK.findall(text))
    assert [link for link in linked if not (root / link).is_file()] == []
    documents = [*(root / "docs").glob("*.md"), *(root / "docs/hosts").glob("*.md")]
    assert sorted({path.relative_to(root).as_posix() for path in documents} - linked) == []


@pytest.mark.parametrize("document", ["docs/MACHINE.md", "docs/TROUBLESHOOTING.md", "docs/hosts"])
def test_links_of_the_guides_lead_somewhere(root: Path, document: str) -> None:
    path = root / document
    for page in path.glob("*.md") if path.is_dir() else [path]:
        links = [link for link in LINK.findall(page.read_text(encoding="utf-8")) if "://" not in link]
        assert [link for link in links if not (page.parent / link).exists()] == [], page
