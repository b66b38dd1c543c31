"""What agents are given, as a user meets it: profile, pins, passes, exact texts, context package (Q1, Q11, R9, U8)."""

import json
import subprocess
from pathlib import Path
from typing import Any

import msgspec
import pytest

from memd.clients.cli.output import complete
from memd.protocol.event import Origin
from memd.protocol.patch_file import SeedRecord
from memd.protocol.request import Remember

AT = "2026-03-04T18:30:00+01:00"
OLD = Origin(host="cli", session="old")
DOCUMENT = "claude-code:4d5611e5"


def remember(client: Any, *texts: str) -> list[str]:
    return [client.remember(text, cwd="", host="cli").record.id for text in texts]


@pytest.fixture
def known(daemon: Any) -> list[str]:
    """Two things that a daemon knows of its user."""
    with daemon.client() as client:
        ids = remember(client, "I prefer tabs over spaces in Go.", "I live in Leuven near the harbour.")
        daemon.settle()
    return ids


def test_one_request_gives_one_answer_over_command_and_library_U8(daemon: Any, known: list[str], memd: Any) -> None:
    memd("pin", known[1][:8])
    told, again = memd("profile", "--pool", "personal", "--json"), memd("context", "--days", "3650", "--json")
    listed = memd("grants", "--json")
    with daemon.client() as client:
        assert told.data == as_json(client.profile(pools=["personal"]))
        assert again.data == as_json(client.context(cwd=str(Path.cwd()), days=3650))
        assert listed.data == as_json(client.grants())
    assert set(told.data["ids"]) == set(known) and told.data["tokens"] < 500
    text = memd("profile", "--pool", "personal").text
    assert text.startswith(told.data["text"]) and "2 records" in text
    assert told.data["text"].index("Leuven") < told.data["text"].index("tabs"), "what is pinned stands first"


def as_json(value: Any) -> Any:
    return json.loads(msgspec.json.encode(complete(value)))


def test_pins_on_the_command_line_R9(known: list[str], memd: Any) -> None:
    assert " · pinned · personal" in memd("pin", known[0]).text
    assert "already pinned" in memd("pin", known[0]).text
    told = memd("pin", *known, "--json")
    assert [each["record"]["layer"] for each in told.data] == ["L1", "L1"]
    assert " · unpinned · " in memd("unpin", known[0]).text
    assert memd("show", known[0], "--json").data["layer"] == "L3"
    assert memd("pin", "zzzzzzzz").code == 4


def test_the_exact_text_a_session_got_and_why_Q1(daemon: Any, known: list[str], memd: Any) -> None:
    assert "no agent has received a text yet" in memd("injected").text
    with daemon.client() as client:
        told = client.profile(document=DOCUMENT, delivery="sticky", trigger="start")
        assert told.due and client.printed(DOCUMENT, told.rev).known
        assert not client.profile(document=DOCUMENT, delivery="sticky").due
        remember(client, "I prefer green tea to coffee.")
        changed = client.profile(document=DOCUMENT, delivery="sticky")
        assert (changed.due, changed.why) == (True, "the profile changed") and "green tea" in changed.text
        client.printed(DOCUMENT, changed.rev)
    shown = memd("injected", "4d56")
    assert "because the session starts" in shown.text and "because the profile changed" in shown.text
    assert all(line in shown.text for line in told.text.splitlines())
    data = memd("injected", DOCUMENT, "--json").data
    assert [each["text"] for each in data["injections"]] == [changed.text, told.text]
    assert memd("injected", "nobody").code == 4
    assert "injected" in memd("status").text


def test_what_is_forgotten_leaves_what_was_given_too_T10(daemon: Any, known: list[str], memd: Any) -> None:
    with daemon.client() as client:
        told = client.profile(document=DOCUMENT, delivery="sticky", trigger="start")
        client.printed(DOCUMENT, told.rev)
    assert memd("forget", known[1], "--yes").code == 0
    held = [path for path in daemon.places.state.rglob("*") if path.is_file() and b"Leuven" in path.read_bytes()]
    assert held == []
    with daemon.client() as client:
        again = client.profile(document=DOCUMENT, delivery="sticky")
        assert again.due and "Leuven" not in again.text, "due again, without it"
        assert client.injected().total == 0


def test_passes_on_the_command_line_A1_A3(known: list[str], memd: Any) -> None:
    told = memd("grant", "reviewer", "--pool", "personal", "--for", "2h")
    token = told.text.strip()
    assert token.count(".") == 2 and "reviewer reads personal until" in told.errors and token not in told.errors
    assert "tabs" in memd("recall", "tabs in Go", MEMD_PASS=token).text
    denied = memd("pin", known[0], MEMD_PASS=token)
    assert denied.code == 7 and "read-only" in denied.errors
    (grant,) = memd("grants", "--json").data["grants"]
    assert "is revoked" in memd("revoke", grant["id"][:8]).text
    assert memd("recall", "tabs", MEMD_PASS="").code == 7
    assert memd("recall", "tabs", MEMD_PASS=token).code == 7
    assert "revoked" in memd("grants").text
    hidden = memd("revoke", "--source", "cli").text
    assert "hid 2 records from 1 session" in hidden
    assert "No relevant memory" in memd("recall", "tabs").text and "Nothing yet" in memd("profile").text
    assert "2 records restored" in memd("grant", "--back", "--source", "cli").text
    assert "tabs" in memd("profile").text
    everything = memd("grant", "archivist", "--all-pools", "--json").data["grant"]
    assert "pools" not in everything or not everything["pools"]
    unclear = [
        ("grant", "ci"),
        ("grant", "ci", "--source", "cli"),
        ("grant", "ci", "--pool", "personal", "--all-pools"),
    ]
    assert ["--all-pools" in memd(*wrong).errors for wrong in unclear] == [True] * 3
    assert len(memd("grants", "--json").data["grants"]) == 2, "an unclear request issues no pass"
    for wrong in (*unclear, ("grant",), ("grant", "x", "--for", "soon"), ("revoke",), ("revoke", "--source", "nobody")):
        assert memd(*wrong).code in (2, 4)


def test_the_context_package_as_files_Q11(daemon: Any, known: list[str], memd: Any, tmp_path: Path) -> None:
    old = Remember(text="I prefer dark roofs.", turn="old", at="2020-01-01T00:00:00Z", origin=OLD)
    with daemon.client() as client:
        late = client.remember(old).record.id
        client.pin(known[1])
    daemon.settle()
    told = memd("context", "--cwd", str(tmp_path), "--days", "14", "--out", str(tmp_path / "out"))
    assert told.code == 0, told.errors
    text = (tmp_path / "out" / "context.md").read_text()
    chosen = json.loads((tmp_path / "out" / "selected_memory.json").read_text())
    assert [each["record"]["id"][13:] for each in chosen] == [id[:8] for id in known[::-1]], "L1, then what is recent"
    for each in chosen:
        again = msgspec.json.encode(msgspec.convert(each["record"], SeedRecord))
        assert json.loads(again) == each["record"], "as in files of .pi"
    assert chosen[0]["record"]["layer"] == "L1" and chosen[0]["why"] == "L1 is always included"
    assert (
        text.index("## Identity (L1)") < text.index("Leuven") < text.index("## Recent (L3), since") < text.index("tabs")
    )
    assert "roofs" not in text, "said before the window"
    assert text.startswith("<memd-context>") and text.rstrip().endswith("</memd-context>")
    assert (tmp_path / "out" / "context.md").stat().st_mode & 0o077 == 0
    assert (tmp_path / "out" / ".gitignore").read_text() == "/.gitignore\n/context.md\n/selected_memory.json\n"
    assert ".gitignorekeepsbothfilesoutofgit" in "".join(told.text.split()), "a long path is wrapped"
    with daemon.client() as client:
        client.pin(late)
        assert late in {each.record.id for each in client.context().selected}, "L1 is always included, however old"
    (tmp_path / "file").write_text("")
    assert memd("context", "--out", str(tmp_path / "file" / "out")).code == 7


def test_git_adds_no_personal_record_of_a_context_package_Q11(
    daemon: Any, known: list[str], memd: Any, tmp_path: Path
) -> None:
    repository = tmp_path / "orchard"

    def git(*arguments: str) -> str:
        done = subprocess.run(["git", "-C", str(repository), *arguments], check=True, capture_output=True, text=True)
        return done.stdout

    repository.mkdir()
    git("init")
    (repository / ".gitignore").write_text("*.log\n!context.md")
    (repository / ".gitignore").chmod(0o644)
    for _ in range(2):
        for folder in (".", ".memd", "docs/memory"):
            assert memd("context", "--cwd", str(repository), "--out", str(repository / folder)).code == 0
    git("add", "--all")
    assert git("diff", "--cached", "--name-only").split() == [".gitignore"]
    assert (repository / ".gitignore").read_text() == "*.log\n!context.md\n/context.md\n/selected_memory.json\n"
    assert (repository / ".gitignore").stat().st_mode & 0o777 == 0o644


def test_a_named_tag_chooses_the_playbook_of_a_project_Q11(daemon: Any, tmp_path: Path, memd: Any) -> None:
    author = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org")
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    subprocess.run(["git", "-C", str(tmp_path), *author, "commit", "-q", "--allow-empty", "-m", "first"], check=True)
    for text in ("Our deploys always go out on Tuesdays.", "Our database backups always run at night."):
        told = memd("remember", "--project", text, "--cwd", str(tmp_path), "--wait", "--json")
        memd("pin", told.data["record"]["id"])

    def playbook(*tags: str) -> str:
        chosen = [part for tag in tags for part in ("--tag", tag)]
        return memd("context", "--cwd", str(tmp_path), *chosen).text

    assert "deploys" in playbook() and "backups" in playbook()
    assert "deploys" in playbook("Deploys") and "backups" not in playbook("Deploys")
    assert "deploys" in playbook("deploys", "database") and "backups" in playbook("deploys", "database")
    assert "deploys" not in playbook("zebra")
