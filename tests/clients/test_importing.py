"""`memd import` as a user meets it: cursors, discovery, dry runs, what is cut off in the middle (W13, P-7, P-25)."""

import contextlib
import json
import os
import shutil
import subprocess
import threading
from pathlib import Path
from typing import Any

import pytest

from memd.clients.importers.agent_files import AGENTS, find, reader
from memd.clients.importers.cursors import Cursors
from memd.clients.importers.delivery import ImportSource, hand_over
from memd.protocol.errors import MemdError
from tests.conftest import RunningDaemon

DATA = Path(__file__).parents[1] / "data"
SAMPLE = Path(__file__).parents[2] / "clients" / "cli" / "sample" / "session.jsonl"
(CODEX,) = (DATA / "sessions").glob("rollout-*.jsonl")


@pytest.fixture
def machine(home: dict[str, str], tmp_path: Path) -> Path:
    """A user's home folder in which agents left something."""
    folder = tmp_path / "ada"
    places = {
        ".claude/projects/-home-ada-orchard/s1.jsonl": SAMPLE,
        ".codex/sessions/2026/03/04/" + CODEX.name: CODEX,
        ".pi/agent/sessions/--home-ada-orchard--/2026_x.jsonl": DATA / "sessions" / "pi.jsonl",
        ".gemini/tmp/orchard/chats/session-1.json": DATA / "sessions" / "gemini.json",
        ".claude/CLAUDE.md": DATA / "CLAUDE.md",
    }
    for name, source in places.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, folder / name)
    (folder / ".claude/history.jsonl").write_text('{"display": "typed"}\n')
    home["HOME"] = str(folder)
    for variable in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "PI_CODING_AGENT_DIR"):
        home.pop(variable, None)
    return folder


def states(data: Any) -> dict[str, list[str]]:
    """Of each agent, the states of its files."""
    return {each["agent"]: [file["state"] for file in each["files"]] for each in data["agents"]}


# --- discovery ------------------------------------------------------------------------------------------------------
def test_without_a_name_it_lists_and_imports_nothing_P25(memd: Any, machine: Path) -> None:
    """No daemon runs here, and none is needed."""
    told = memd("import", "--json")
    assert states(told.data) == {
        "claude-code": ["new"],
        "codex": ["new"],
        "pi": ["new"],
        "gemini": ["new"],
        **{name: [] for name in ("opencode", "cline", "cursor", "aider", "specstory")},
        "markdown": [each["state"] for each in told.data["agents"][-1]["files"]],
    }
    assert str(machine / ".claude" / "CLAUDE.md") in [each["path"] for each in told.data["agents"][-1]["files"]]
    text = memd("import")
    assert text.code == 0
    assert "nothing was imported: add --yes" in text.text
    assert "Codex: 1 session file" in text.text
    only = memd("import", "--agent", "codex", "--json")
    assert states(only.data) == {"codex": ["new"]}
    assert memd("import", "--agent", "emacs").code == 2


def test_what_is_listed_is_imported_when_asked_for_and_only_once(memd: Any, daemon: Any, machine: Path) -> None:
    chosen = ("--agent", "codex", "--agent", "pi", "--agent", "gemini")
    first = memd("import", *chosen, "--yes", "--no-wait", "--json").data
    assert [sum(sent["accepted"] for sent in file["sessions"]) > 0 for file in first["files"]] == [True, True, True]
    listed = states(memd("import", *chosen, "--json").data)
    assert listed == {"codex": ["imported"], "pi": ["imported"], "gemini": ["imported"]}
    assert states(memd("import", *chosen, "--yes", "--json").data) == listed
    with (machine / ".codex/sessions/2026/03/04" / CODEX.name).open("a") as file:
        file.write("{}\n")
    assert states(memd("import", "--agent", "codex", "--json").data) == {"codex": ["grown"]}


def test_a_dry_run_of_everything_writes_nothing(memd: Any, machine: Path, home: dict[str, str]) -> None:
    told = memd("import", "--yes", "--dry-run", "--json").data
    assert len(told["files"]) >= 5
    for file in told["files"]:
        account = file["account"]
        assert account["lines"] == account["taken"] + sum(account["noise"].values()) + len(account["malformed"])
    assert not (Path(home["MEMD_HOME"]) / "state" / "imports").exists()


# --- cursors --------------------------------------------------------------------------------------------------------
def lines_of(path: Path) -> list[bytes]:
    return path.read_bytes().splitlines(keepends=True)


def test_of_a_grown_file_only_what_is_new_is_read_W13(memd: Any, daemon: Any, tmp_path: Path) -> None:
    path = tmp_path / "session.jsonl"
    lines = lines_of(SAMPLE)
    path.write_bytes(b"".join(lines[:40]) + lines[40][:30])
    first = memd("import", "claude-code", str(path), "--json").data["files"][0]
    assert "ends within this line" in first["account"]["malformed"][-1]["reason"]
    path.write_bytes(b"".join(lines))
    second = memd("import", "claude-code", str(path), "--json").data["files"][0]
    assert second["account"]["before"] > 30
    assert second["account"]["before"] + second["account"]["lines"] == len(lines)
    whole = memd("import", "claude-code", str(path), "--whole", "--json").data["files"][0]
    (sent,) = whole["sessions"]
    assert (sent["accepted"], sent["changed"], whole["account"]["before"]) == (0, 0, 0)


def test_a_rewritten_file_is_read_whole(memd: Any, daemon: Any, tmp_path: Path) -> None:
    path = tmp_path / CODEX.name
    path.write_bytes(CODEX.read_bytes())
    memd("import", "codex", str(path), "--no-wait")
    path.write_bytes(CODEX.read_bytes().replace(b"gpt-5", b"gpt-9"))
    assert memd("import", "codex", str(path), "--no-wait", "--json").data["files"][0]["account"]["before"] == 0


def test_a_cursor_is_not_believed_where_the_memory_is_another(memd: Any, daemon: Any, home: dict[str, str]) -> None:
    first = memd("import", "codex", str(CODEX), "--no-wait", "--json").data["files"][0]["sessions"][0]
    assert daemon.terminate() == 0
    shutil.rmtree(Path(home["MEMD_HOME"]) / "data")
    daemon.start()
    second = memd("import", "codex", str(CODEX), "--no-wait", "--json").data["files"][0]["sessions"][0]
    assert second["accepted"] + second["duplicate"] == first["accepted"]
    assert second["duplicate"] <= 1


def test_a_cursor_holds_no_words_T10(memd: Any, daemon: Any, home: dict[str, str], machine: Path) -> None:
    memd("import", "--yes", "--no-wait")
    cursors = list((Path(home["MEMD_HOME"]) / "state" / "imports").glob("*.json"))
    assert len(cursors) >= 5
    for cursor in cursors:
        assert cursor.stat().st_mode & 0o077 == 0
        for words in ("tabs", "SQLite", "continue", "prefer"):
            assert words not in cursor.read_text()


def test_a_damaged_cursor_is_passed_over(memd: Any, daemon: Any, home: dict[str, str]) -> None:
    memd("import", "codex", str(CODEX), "--no-wait")
    (cursor,) = (Path(home["MEMD_HOME"]) / "state" / "imports").glob("*.json")
    cursor.write_bytes(b"{")
    (sent,) = memd("import", "codex", str(CODEX), "--no-wait", "--json").data["files"][0]["sessions"]
    assert (sent["accepted"], sent["changed"]) == (0, 0)


# --- odd files ------------------------------------------------------------------------------------------------------
def test_odd_files_are_named_with_what_to_do_and_the_others_are_read(memd: Any, tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(CODEX.read_bytes())
    (tmp_path / "b.jsonl").touch()
    (tmp_path / "c.jsonl").write_text("not JSON\nneither\n")
    (tmp_path / "d.jsonl").write_bytes(b"\x00" * 100)
    told = memd("import", "codex", str(tmp_path), "--dry-run", "--json").data
    odd = {Path(file["path"]).name: file["odd"] for file in told["files"]}
    assert odd["a.jsonl"] == ""
    assert "nothing to do" in odd["b.jsonl"]
    assert "another agent's" in odd["c.jsonl"]
    assert odd["d.jsonl"]
    assert "odd: the file is empty" in memd("import", "codex", str(tmp_path), "--dry-run").text


def test_an_import_is_taken_back_by_its_file(memd: Any, daemon: Any) -> None:
    """The file alone says whose it is, since it was imported before."""
    memd("import", "codex", str(CODEX))
    assert memd("undo", str(CODEX), "--json").data["documents"] == ["codex:0b5c7b3e-0000-4e0a-9c1e-000000000003"]


def test_an_import_is_taken_back_by_its_folder_whatever_was_in_it_T10(memd: Any, daemon: Any, tmp_path: Path) -> None:
    folder = tmp_path / "orchard" / "docs"
    folder.mkdir(parents=True)
    for name in ("deploys", "lamps", "never-imported"):
        (folder / f"{name}.md").write_text(f"- Always restart the {name} service before a release.\n")
    assert memd("undo", str(folder)).code == 2
    assert memd("import", "markdown", str(folder / "deploys.md"), str(folder / "lamps.md")).code == 0
    taken = memd("undo", str(folder), "--json").data
    assert [Path(each).name for each in taken["documents"]] == ["deploys.md", "lamps.md"]
    assert memd("redo", str(folder.parent), "--json").data["brought_back"] == taken["hidden"] > 0


def test_commits_and_notes_of_a_repository_are_taken_back_together_T10(memd: Any, daemon: Any, tmp_path: Path) -> None:
    notes = tmp_path / "notes.md"
    notes.write_text("The orchard service deploys on Tuesdays.\n")
    memd("import", "markdown", str(notes))
    who = ["-c", "user.name=A", "-c", "user.email=a@example.org"]
    for arguments in (["init", "-q"], ["commit", "-q", "--allow-empty", "-m", "Deploy on Mondays, not on Tuesdays"]):
        subprocess.run(["git", "-C", str(tmp_path), *who, *arguments], check=True)
    hosts = []
    for folder in (tmp_path, tmp_path):
        hosts.append([each.partition(":")[0] for each in memd("undo", str(folder), "--json").data["documents"]])
        memd("import", "git", str(tmp_path))
    assert hosts == [["markdown"], ["git", "markdown"]]


# --- cut off in the middle ------------------------------------------------------------------------------------------
def sources(folder: Path, cursors: Cursors) -> list[ImportSource]:
    """Everything in the home folder of `machine`, by the agents' own readers."""
    found: list[ImportSource] = []
    for name, agent in AGENTS.items():
        for path in find([agent.folder({"HOME": str(folder)})], agent.patterns, agent.example):
            found.append(ImportSource(name, path, reader(name, path, "", cursors)))
    path = folder / ".claude" / "CLAUDE.md"
    return [*found, ImportSource("markdown", path, reader("markdown", path, "", cursors))]


def import_all(daemon: Any, folder: Path) -> None:
    cursors = Cursors(daemon.places.state)
    with daemon.client() as client:
        for source in sources(folder, cursors):
            hand_over(client, source, cursors)


def beliefs(daemon: Any) -> list[tuple[object, ...]]:
    """What each record says; a document's turns have names of their own in each home."""
    with daemon.client() as client:
        return sorted(
            (each.pool, each.status, each.content, each.key, each.provenance.quote, each.provenance.source)
            for each in client.list(limit=10_000).records
        )


@pytest.mark.parametrize("after_s", [0.01, 0.05, 0.4])
def test_killed_in_the_middle_and_run_again_gives_the_identical_set_P12(
    daemon: Any, machine: Path, tmp_path: Path, after_s: float
) -> None:
    whole = RunningDaemon({**daemon.environment, "MEMD_HOME": str(tmp_path / "whole")})
    Path(whole.environment["MEMD_HOME"]).mkdir(mode=0o700)
    whole.start()
    import_all(whole, machine)
    whole.settle()
    killer = threading.Timer(after_s, daemon.kill)
    killer.start()
    with contextlib.suppress(MemdError):
        import_all(daemon, machine)
    killer.join()
    daemon.start()
    import_all(daemon, machine)
    daemon.settle()
    assert beliefs(daemon) == beliefs(whole)
    with daemon.client() as client, whole.client() as other:
        assert client.status().archive_seq == other.status().archive_seq
    whole.terminate()


def test_a_file_imported_as_it_grows_gives_the_identical_set_W13(daemon: Any, tmp_path: Path) -> None:
    path = tmp_path / "session.jsonl"
    lines = lines_of(SAMPLE)
    cursors = Cursors(daemon.places.state)
    with daemon.client() as client:
        for upto in range(5, len(lines) + 5, 5):
            path.write_bytes(b"".join(lines[:upto]))
            hand_over(client, ImportSource("claude-code", path, reader("claude-code", path, "", cursors)), cursors)
    daemon.settle()
    grown = beliefs(daemon)
    whole = RunningDaemon({**daemon.environment, "MEMD_HOME": str(tmp_path / "whole")})
    Path(whole.environment["MEMD_HOME"]).mkdir(mode=0o700)
    whole.start()
    cursors = Cursors(whole.places.state)
    with whole.client() as client:
        hand_over(client, ImportSource("claude-code", path, reader("claude-code", path, "", cursors)), cursors)
    whole.settle()
    assert grown == beliefs(whole)
    whole.terminate()


def test_the_envelope_of_a_report_is_one_line_of_json(memd: Any, machine: Path) -> None:
    told = memd("import", "--agent", "pi", "--yes", "--dry-run", "--json")
    assert json.loads(told.text)["ok"]


def test_a_file_whose_name_is_not_UTF8_is_skipped_counted_and_named_P12(
    shared_memd: Any, shared_daemon: Any, tmp_path: Path
) -> None:
    folder = tmp_path / "notes"
    folder.mkdir()
    Path(os.fsdecode(os.fsencode(folder) + b"/a\xff.md")).write_text("I prefer tabs.\n")
    (folder / "b.md").write_text("I prefer short functions.\n")
    for options in ([], ["--dry-run"]):
        done = shared_memd("import", "markdown", str(folder), *options)
        assert done.code == 0 and "a\\xff.md" in done.text and "skipped 1 file" in done.text
    data = shared_memd("import", "markdown", str(folder), "--json").data
    assert [file["is_read"] for file in data["files"]] == [False, True]
    assert data["files"][0]["path"].endswith("a\\xff.md") and "rename" in data["files"][0]["odd"]


@pytest.mark.parametrize("name", ["/" + "x" * 5000, "/tmp/" + "x" * 256, "/tmp/" + "x" * 252, "x/" * 2500])
@pytest.mark.parametrize(
    "command",
    [
        ["import", "markdown", "{}"],
        ["import", "memd", "{}"],
        ["export", "-o", "{}"],
        ["backup", "--list", "--to", "{}"],
        ["restore-backup", "--list", "--from", "{}"],
        ["undo", "{}"],
    ],
    ids=lambda words: " ".join(words[:2]),
)
def test_a_path_that_is_too_long_is_an_error_with_a_hint(
    shared_memd: Any, shared_daemon: Any, command: list[str], name: str
) -> None:
    done = shared_memd(*(word.format(name) for word in command))
    assert done.code in (2, 4, 7) and done.errors.startswith("memd: ") and "\nhint: " in done.errors, done.errors
