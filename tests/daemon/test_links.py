"""Links of records to documents, over a real daemon and real git (C3): evidence that the user names, and imported
Markdown."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from memd.clients.importers import markdown
from memd.clients.python.client import Client
from memd.protocol.document_links import LinkState
from memd.protocol.errors import Denied, InvalidRequest, NotFound
from tests.conftest import RunningDaemon

TEXT = """# Why

Reasons for the orchard.

## Reasons

Pears keep longer than plums.

## Costs

Ladders are made of oak.
"""
WHY = "docs/why.md"
AUTHOR = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org", "-c", "commit.gpgsign=false")


def git(folder: Path, *arguments: str) -> None:
    subprocess.run(["git", "-C", str(folder), *AUTHOR, *arguments], check=True, capture_output=True)


class Orchard:
    """A daemon, and a repository with a document."""

    def __init__(self, daemon: RunningDaemon, root: Path) -> None:
        self.daemon, self.root = daemon, root
        root.mkdir()
        git(root, "init", "-q", "-b", "main")
        self.write(TEXT)
        self.commit()

    def write(self, text: str, path: str = WHY) -> None:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def commit(self) -> None:
        git(self.root, "add", "-A")
        git(self.root, "commit", "-q", "-m", "Work")

    def linked(self, heading: str = "#Reasons", path: str = WHY) -> str:
        """The id of a new record that the document proves."""
        with self.daemon.client() as client:
            record = client.remember("I always pick the pears before the plums.").record
            client.add_evidence(record.id, [f"{self.root / path}{heading}"])
            return record.id

    def links(self, id: str) -> list[LinkState]:
        with self.daemon.client() as client:
            return list(client.links([id]).links)

    def state(self, id: str) -> tuple[str, str]:
        """The state of a record's only link, and where the document is now."""
        (link,) = self.links(id)
        return link.state, os.path.relpath(link.now, self.root)


@pytest.fixture
def orchard(daemon: RunningDaemon, tmp_path: Path) -> Orchard:
    return Orchard(daemon, tmp_path / "orchard")


# --- evidence ---------------------------------------------------------------------------------------------------------
def test_only_an_edit_of_the_named_part_changes_a_link_C3(orchard: Orchard) -> None:
    id = orchard.linked()
    assert orchard.state(id) == ("fresh", WHY)
    (link,) = orchard.links(id)
    assert (link.path, link.anchor, link.by) == (str(orchard.root / WHY), "Why > Reasons", "evidence")
    orchard.write(TEXT.replace("oak", "pine"))
    assert orchard.state(id) == ("fresh", WHY)
    orchard.write(TEXT.replace("longer than plums", "shorter than plums"))
    assert orchard.state(id) == ("changed", WHY)
    with orchard.daemon.client() as client:  # named again, it holds as it is now
        client.add_evidence(id, [f"{orchard.root / WHY}#Reasons"])
    assert orchard.state(id) == ("fresh", WHY)


def test_a_whole_file_is_linked_without_a_heading_C3(orchard: Orchard) -> None:
    id = orchard.linked("")
    assert orchard.state(id) == ("fresh", WHY)
    orchard.write(TEXT.replace("oak", "pine"))
    assert orchard.state(id) == ("changed", WHY)


def test_a_renamed_document_is_followed_C3(orchard: Orchard) -> None:
    id = orchard.linked()
    git(orchard.root, "mv", WHY, "reasons.md")
    assert orchard.state(id) == ("moved", "reasons.md")
    orchard.commit()
    assert orchard.state(id) == ("moved", "reasons.md")


def test_a_deletion_is_told_once_it_is_committed_C3(orchard: Orchard) -> None:
    id = orchard.linked()
    (orchard.root / WHY).unlink()
    assert orchard.state(id) == ("out of reach", WHY)
    orchard.commit()
    assert orchard.state(id) == ("gone", WHY)


def test_a_document_of_another_branch_is_never_gone_C3(orchard: Orchard) -> None:
    git(orchard.root, "switch", "-q", "-c", "feature")
    orchard.write("# Plan\n\nSow in May.\n", "plan.md")
    orchard.commit()
    id = orchard.linked("#Plan", "plan.md")
    git(orchard.root, "switch", "-q", "main")
    assert orchard.state(id) == ("out of reach", "plan.md")
    git(orchard.root, "switch", "-q", "feature")
    assert orchard.state(id) == ("fresh", "plan.md")


def test_a_file_without_a_repository_is_compared_C3(orchard: Orchard, tmp_path: Path) -> None:
    note = tmp_path / "notes" / "c#.md"
    note.parent.mkdir()
    note.write_text(TEXT)
    with orchard.daemon.client() as client:
        id = client.remember("I always pick the plums after the pears.").record.id
        client.add_evidence(id, [f"{note}#Why > Costs"])
    assert orchard.links(id)[0].state == "fresh"
    note.write_text(TEXT.replace("oak", "pine"))
    assert orchard.links(id)[0].state == "changed"


def test_an_unknown_heading_is_refused_with_the_headings_C3(orchard: Orchard) -> None:
    with pytest.raises(InvalidRequest, match="no heading 'Reason'") as near:
        orchard.linked("#Reason")
    assert near.value.hint == "choose from: Why > Reasons"
    with pytest.raises(InvalidRequest) as far:
        orchard.linked("#Quinces")
    assert far.value.hint == "choose from: Why; Why > Reasons; Why > Costs"
    orchard.write(TEXT + "\n# Apples\n\n## Costs\n\nNone.\n")
    with pytest.raises(InvalidRequest, match="2 headings") as several:
        orchard.linked("#Costs")
    assert several.value.hint == "choose from: Why > Costs; Apples > Costs"
    orchard.write("x = 1\n", "x.py")
    with pytest.raises(InvalidRequest, match="no headings"):
        orchard.linked("#L1", "x.py")


@pytest.mark.parametrize("heading", ["Why > Reasons", "why > reasons", "Reasons", "reasons"])
def test_a_heading_is_named_in_full_by_its_last_words_or_as_on_a_page_C3(orchard: Orchard, heading: str) -> None:
    assert orchard.links(orchard.linked(f"#{heading}"))[0].anchor == "Why > Reasons"


def test_a_record_without_a_document_has_no_link_and_an_unknown_id_is_told_C3(orchard: Orchard) -> None:
    with orchard.daemon.client() as client:
        id = client.remember("I always count the crates at dusk.").record.id
        client.add_evidence(id, ["https://example.org/why", "1a2b3c4d"])
        assert client.links([id]).checked == 0
        with pytest.raises(NotFound):
            client.links(["zzzzzzzz"])


# --- imported Markdown ------------------------------------------------------------------------------------------------
NOTES = """# Field notes

## Tools

- We always sharpen the pruning saws on the first Monday of March.

## Prices

| fruit | price per crate |
| --- | --- |
| pears | 12 euros |
| plums | 15 euros |

We never sell windfall apples to the cooperage, because the barrels turn sour.
"""


def imported(orchard: Orchard) -> dict[str, str]:
    """The states of the links of imported records, by their part's heading and first words."""
    with orchard.daemon.client() as client:
        listed = client.links(cwd=str(orchard.root))
    assert all(link.by == "import" for link in listed.links)
    return {f"{link.anchor}: {link.description}": link.state for link in listed.links}


@pytest.fixture
def field(orchard: Orchard) -> Orchard:
    """The repository with imported notes."""
    orchard.write(NOTES, "notes.md")
    orchard.commit()
    with orchard.daemon.client() as client:
        for session in markdown.read(orchard.root / "notes.md", bytes(32), {}).sessions:
            client.capture(session.origin, session.events)
    orchard.daemon.settle()
    assert set(imported(orchard).values()) == {"fresh"}
    return orchard


def changed(orchard: Orchard) -> list[str]:
    states = imported(orchard)
    assert set(states.values()) <= {"fresh", "changed"}
    return [name for name, state in states.items() if state == "changed"]


def test_an_imported_part_changes_with_its_words_alone_C3(field: Orchard) -> None:
    before = len(imported(field))
    saws = NOTES.replace("first Monday of March", "last Monday of March")
    field.write(saws, "notes.md")
    (one,) = changed(field)
    assert "saws" in one and "Field notes > Tools" in one
    field.write(NOTES.replace("## Tools", "## Gear").replace("pruning saws on", "pruning\n  saws **on**"), "notes.md")
    assert changed(field) == [], "another heading, line breaks and marks are not other words"
    field.write(NOTES.replace("## Prices", "- We also own two ladders.\n\n## Prices"), "notes.md")
    assert changed(field) == [] and len(imported(field)) == before


def test_an_imported_part_that_went_to_another_section_has_changed_C3(field: Orchard) -> None:
    line = "- We always sharpen the pruning saws on the first Monday of March.\n"
    field.write(NOTES.replace(line, "Nothing.\n") + f"\n## Old habits\n\n{line}", "notes.md")
    assert len(changed(field)) == 1


def test_an_imported_file_is_followed_and_gone_once_its_deletion_is_committed_C3(field: Orchard) -> None:
    git(field.root, "mv", "notes.md", "docs/notes.md")
    assert set(imported(field).values()) == {"moved"}
    field.commit()
    assert set(imported(field).values()) == {"moved"}
    git(field.root, "rm", "-q", "docs/notes.md")
    assert set(imported(field).values()) == {"out of reach"}, "HEAD still has it"
    field.commit()
    assert set(imported(field).values()) == {"gone"}


def test_an_imported_file_of_another_branch_is_never_gone_C3(field: Orchard) -> None:
    git(field.root, "switch", "-q", "-c", "old", "HEAD~1")
    assert set(imported(field).values()) == {"out of reach"}
    git(field.root, "switch", "-q", "main")
    assert set(imported(field).values()) == {"fresh"}


# --- who may ask, and what a request leaves ---------------------------------------------------------------------------
def test_stale_lists_only_changed_and_gone_documents_C3(orchard: Orchard) -> None:
    reasons, costs = orchard.linked("#Reasons"), ""
    with orchard.daemon.client() as client:
        costs = client.remember("I always buy ladders of oak.").record.id
        client.add_evidence(costs, [f"{orchard.root / WHY}#Costs"])
    orchard.write(TEXT.replace("oak", "pine"))
    with orchard.daemon.client() as client:
        listed = client.links(cwd=str(orchard.root))
        assert [(link.id, link.state) for link in listed.links] == [(costs, "changed"), (reasons, "fresh")]
        stale = client.links(cwd=str(orchard.root), stale=True)
        assert ([link.id for link in stale.links], stale.checked, stale.left) == ([costs], 2, 0)


def test_no_record_is_changed_by_a_check_C3(orchard: Orchard) -> None:
    id = orchard.linked()
    (orchard.root / WHY).unlink()
    orchard.commit()
    with orchard.daemon.client() as client:
        before, last = client.get(id), client.journal(0).last
        assert [link.state for link in client.links().links] == ["gone"]
        assert (client.get(id), client.journal(0).last) == (before, last)


def test_a_pass_may_not_ask_A1_C3(orchard: Orchard) -> None:
    id = orchard.linked()
    with orchard.daemon.client() as client:
        token = client.grant("guest", pools=("personal",)).token
    with Client(orchard.daemon.places, 20_000, token) as guest, pytest.raises(Denied):
        guest.links([id])


def test_records_of_a_revoked_source_are_left_out_A3_C3(field: Orchard) -> None:
    with field.daemon.client() as client:
        ids = [link.id for link in client.links(cwd=str(field.root)).links]
        client.revoke(source="markdown")
        assert client.links(cwd=str(field.root)).links == ()
        with pytest.raises(NotFound):
            client.links(ids[:1])


# --- the command line -------------------------------------------------------------------------------------------------
@pytest.fixture
def memd(orchard: Orchard) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs `memd` in the repository."""

    def run(*arguments: str) -> Any:
        command = [sys.executable, "-P", "-m", "memd.clients.cli.main", *arguments]
        environment = {**orchard.daemon.environment, "COLUMNS": "100"}
        return subprocess.run(
            command, capture_output=True, text=True, env=environment, cwd=orchard.root, timeout=60, check=False
        )

    return run


def test_the_commands_name_show_and_explain_a_link_C3(orchard: Orchard, memd: Callable[..., Any]) -> None:
    with orchard.daemon.client() as client:
        id = client.remember("I always pick the pears before the plums.").record.id
    assert "no record is linked" in memd("links").stdout
    assert memd("evidence", id, f"{WHY}#Reasons").returncode == 0
    refused = memd("evidence", id, f"{WHY}#Reason")
    assert refused.returncode == 2 and "Why > Reasons" in refused.stderr
    assert "is no file" in memd("evidence", id, "docs/nowhere.md#Reasons").stderr
    assert f"fresh: {WHY}#Why > Reasons" in memd("links").stdout
    assert "memd review" not in memd("links").stdout and "none changed or gone" in memd("links", "--stale").stdout
    assert f"documents: fresh: {WHY}#Why > Reasons" in memd("why", id).stdout
    orchard.write(TEXT.replace("longer", "shorter"))
    told = memd("links", "--stale").stdout
    assert f"changed: {WHY}" in told and f"memd review {id[:8]}" in told and f"memd edit {id[:8]}" in told
    assert "documents: changed" in memd("why", id).stdout
    (row,) = json.loads(memd("links", id, "--json").stdout)["data"]["links"]
    assert (row["state"], row["anchor"]) == ("changed", "Why > Reasons")
    assert memd("evidence", id, f"{WHY}#Reasons", "--remove").returncode == 0
    assert "documents:" not in memd("why", id).stdout
