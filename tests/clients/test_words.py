"""What a command says when its user, or the folder it is run in, is at fault; its examples can be typed (U2)."""

import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.core import TyperGroup
from typer.main import get_command

from memd.clients.cli.application import app
from memd.clients.cli.options import instant
from memd.clients.cli.wording import moment
from memd.protocol.errors import InvalidRequest
from tests.conftest import RunningDaemon


def examples() -> Iterator[str]:
    """Each line below `Examples:` of every command's help."""

    def walk(command: Any, context: Any) -> Iterator[str]:
        told = f"{command.help or ''}\n{command.epilog or ''}".replace("\b", "")
        for block in re.findall(r"^Examples?:\n((?:  .*\n?)+)", told, re.MULTILINE):
            yield from (line.strip() for line in block.splitlines())
        if isinstance(command, TyperGroup):
            for name in command.list_commands(context):
                yield from walk(command.get_command(context, name), context)

    root = get_command(app)
    yield from walk(root, typer.Context(root))


def test_the_examples_of_the_help_can_be_typed_as_they_stand_U2() -> None:
    found = list(examples())
    assert len(found) > 150
    for line in found:
        assert not re.search(r"\S {2,}[^#\s]", line), f"prose without a #: {line}"
        assert subprocess.run(["bash", "-n", "-c", line], check=False).returncode == 0, line


@pytest.mark.parametrize(
    "typed", [("remember", "I use tabs."), ("recall", "x"), ("profile",), ("pause", "--here"), ("import",)]
)
def test_a_folder_that_was_removed_is_told_U2(home: dict[str, str], tmp_path: Path, typed: tuple[str, ...]) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    command = [sys.executable, "-P", "-m", "memd.clients.cli.main", *typed]
    away = ["bash", "-c", 'rmdir "$0"; exec "$@"', str(gone), *command]
    done = subprocess.run(away, cwd=gone, env=home, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr.splitlines()) == (
        4,
        ["memd: the current folder no longer exists", "hint: change to one that does: `cd`"],
    )


def test_the_server_of_a_host_whose_folder_was_removed_still_serves_U8(daemon: RunningDaemon, tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    with daemon.client() as client:
        client.remember("I prefer tabs.")
    asked = '{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params":'
    asked += ' {"name": "memory_recall", "arguments": {"query": "tabs"}}}\n'
    command = ["bash", "-c", 'rmdir "$0"; exec "$@"', str(gone), sys.executable, "-P", "-m", "memd.clients.mcp"]
    done = subprocess.run(
        command, cwd=gone, env=daemon.environment, input=asked, capture_output=True, text=True, check=False
    )
    assert "I prefer tabs." in done.stdout and not done.stderr


def test_a_wrong_option_names_the_help_that_lists_the_right_ones_U2(memd: Callable[..., Any]) -> None:
    assert "see `memd session list --help`" in memd("session", "list", "-n", "0").errors
    assert "see `memd recall --help`" in memd("recall", "x", "--nope").errors
    assert "did you mean `memd recall`?" in memd("recal").errors


EMPTY = (
    ("undo", ""),
    ("redo", ""),
    ("backup", "--to", ""),
    ("restore-backup", "--from", "", "--yes"),
    ("import", "git", ""),
    ("import", "markdown", ""),
    ("import", "claude-code", "session.jsonl", "--cwd", ""),
    ("export", "-o", ""),
    ("context", "--out", ""),
    ("context", "--project", ""),
    ("remember", "I prefer tabs.", "--cwd", ""),
    ("scope", "why", ""),
    ("scope", "move", "7q3hjwch", ""),
    ("leave", ""),
    ("leave", "--pool", ""),
    ("recall", "tabs", "--pool", ""),
    ("grant", "reviewer", "--pool", ""),
    ("model", "use", ""),
)


def test_an_empty_argument_is_not_the_current_folder_nor_any_pool_U2(
    daemon: RunningDaemon, memd: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    (tmp_path / "session.jsonl").touch()
    (tmp_path / "notes.md").write_text("The orchard service deploys on Tuesdays.\n")
    monkeypatch.chdir(tmp_path)
    assert memd("import", "markdown", ".").code == 0  # so there is one pool, with which any beginning could be meant
    before = sorted(tmp_path.iterdir())
    for arguments in EMPTY:
        told = memd(*arguments)
        assert told.code == 2 and "hint: " in told.errors and not told.text, (arguments, told.text, told.errors)
    assert memd("undo", "notes.md").code == 0
    assert sorted(tmp_path.iterdir()) == before


def test_an_agent_that_nobody_opened_is_no_silent_answer_P5(daemon: RunningDaemon, memd: Callable[..., Any]) -> None:
    with daemon.client() as client:
        client.remember("I prefer tabs.")
        client.open_agent("buyer")
    for command in (("recall", "tabs"), ("profile",)):
        told = memd(*command, "--agent", "nope")
        assert (told.code, told.text) == (4, "") and "'nope'" in told.errors and "`memd agent`" in told.errors
        assert memd(*command, "--agent", "nope", "--json").json["error"]["code"] == "not_found"
        assert "tabs" in memd(*command, "--agent", "buyer").text


def test_a_statement_for_a_folder_that_is_not_there_opens_no_pool_P17(
    daemon: RunningDaemon, memd: Callable[..., Any], tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    for name in ("file", "gone"):
        told = memd("remember", "I prefer tabs.", "--cwd", str(tmp_path / name))
        assert told.code == 2 and str(tmp_path / name) in told.errors
    with daemon.client() as client:
        assert not client.list().records and {each.pool for each in client.pools().pools} <= {"personal"}


def test_days_and_moments_are_the_users() -> None:
    assert instant("") == "" and instant("2026-03-04T18:30:00+01:00") == "2026-03-04T18:30:00+01:00"
    assert instant("2026-03-04").startswith("2026-03-04T00:00:00")
    for wrong in ("yesterday", "2026-02-30", "2026-13-01", "0000-01-01"):
        with pytest.raises(InvalidRequest):
            instant(wrong)
    here = moment("2026-03-04T17:30:59.123456Z")
    assert re.fullmatch(r"2026-03-0\d \d\d:\d\d", here) and moment("never\x1b") == "never\N{REPLACEMENT CHARACTER}"


def test_an_answer_tells_its_name_for_the_feedback_T3(daemon: RunningDaemon, memd: Callable[..., Any]) -> None:
    with daemon.client() as client:
        id = client.remember("I prefer tabs.").record.id
    told = memd("recall", "tabs").text
    name = re.search(r"\(for `memd feedback`: (\w+)\)", told)
    assert name, told
    assert memd("feedback", name[1], "--used", id).code == 0


def test_the_end_of_a_task_reaches_the_impact_of_what_was_used_T3_T4_R6(
    daemon: RunningDaemon, memd: Callable[..., Any]
) -> None:
    words = ("tabs in every Python file", "pnpm for the packages", "the green staging server")
    ids = [memd("remember", f"I always use {each}.", "--wait", "--json").data["record"]["id"] for each in words]
    answer = memd("recall", "tabs pnpm green server", "--json").data["recall"]
    for id, outcome in zip(ids, ("success", "prevented", "failure"), strict=True):
        assert memd("feedback", answer, "--used", id, "--outcome", outcome).code == 0
    impacts = [memd("show", id, "--json").data["signal"]["impact"] for id in ids]
    assert impacts[1] > impacts[0] > 0 and impacts[2] == 0
    listed = {record["id"]: record["signal"]["impact"] for record in memd("list", "--json").data["records"]}
    assert [listed[id] for id in ids] == impacts
    assert memd("feedback", "--used", ids[0], "--outcome", "fine").code == 2


def test_feedback_on_an_answer_that_never_was_is_not_found_T3(daemon: RunningDaemon, memd: Callable[..., Any]) -> None:
    id = memd("remember", "I always use tabs.", "--wait", "--json").data["record"]["id"]
    answer = memd("recall", "tabs", "--json").data["recall"]
    for unknown in ("nosuch", answer[:8] + "ff"):
        told = memd("feedback", unknown, "--used", id)
        assert told.code == 4 and "no answer" in told.errors
    old = memd("feedback", "0123abcd1", "--used", id)
    assert old.code == 0 and "too old" in old.text


@pytest.mark.parametrize(
    ("words", "kept"), [("x", False), ("-", False), ("木", False), ("ok", True), ("我喜欢茶", True)]
)
def test_a_letter_is_no_statement_W1(daemon: RunningDaemon, memd: Callable[..., Any], words: str, kept: bool) -> None:
    told = memd("remember", "--", words) if words != "-" else memd("remember", ".")
    assert (told.code == 0) == kept
    assert kept or ("no statement" in told.errors and "I prefer tabs" in told.errors)
