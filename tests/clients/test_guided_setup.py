"""`memd setup` at a terminal: a guided start in steps with defaults, which can be stopped anywhere (U11)."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import shlex
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from memd.clients.cli.guided_setup import MOST_CHOICES, import_choices, numbers
from memd.clients.cli.imports import AgentFiles, FoundFile
from memd.clients.cli.output import CommandAnswer
from memd.clients.cli.progress import duration_range, wait_until_distilled
from memd.clients.importers.agent_files import reader
from memd.clients.importers.cursors import Cursors
from memd.clients.importers.delivery import ImportSource, hand_over
from memd.clients.importers.import_speed import ImportSpeed, ImportTiming, import_speed
from memd.clients.importers.overview import overview
from memd.clients.python.client import Client
from memd.clients.python.launch import stop
from memd.protocol.places import places
from tests.conftest import RunningDaemon

Memd = Callable[..., Any]
FILES = 100
ASKED = re.compile(r"\]: ?$")
SAID = {
    "orchard": ("I prefer tabs for indentation in Go.", "We decided to deploy the orchard server on Tuesdays."),
    "heron": ("We decided to keep the heron database in Postgres.", "Always run the heron linter before a commit."),
}
STEPS = (
    "1. Start memd",
    "2. Connect your agents",
    "3. Import earlier sessions",
    "4. Look at what memd knows",
    "5. Start memd at login",
    "6. What happens next",
)


QUESTIONS = {"orchard": ("Tabs indentation in Go?", "Deploy server orchard?"), "heron": ("Heron database Postgres?",)}
"""Turns that a search for the words of a statement finds before the statement."""


def history(folder: Path) -> None:
    """Sessions of Claude Code in two projects."""
    for project, statements in SAID.items():
        own = folder / f".claude/projects/-home-ada-{project}"
        own.mkdir(parents=True)
        lines = [
            {
                "type": "user", "uuid": f"{project}-{number}", "sessionId": f"s-{project}",
                "cwd": f"/home/ada/{project}",
                "timestamp": f"2026-03-04T10:0{number}:00Z", "message": {"role": "user", "content": statement},
            }
            for number, statement in enumerate((*statements, *QUESTIONS[project]))
        ]  # fmt: skip
        (own / f"s-{project}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))


@pytest.fixture
def machine(home: dict[str, str], tmp_path: Path) -> Iterator[dict[str, str]]:
    """A new user's environment, with no service manager that answers; the daemon is ended afterwards."""
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "PI_CODING_AGENT_DIR", "XDG_CONFIG_HOME", "XDG_DATA_HOME"):
        home.pop(name, None)
    user = tmp_path / "user"
    user.mkdir()
    fixed = {"HOME": str(user), "XDG_RUNTIME_DIR": str(tmp_path), "DBUS_SESSION_BUS_ADDRESS": "", "COLUMNS": "80"}
    yield {**home, **fixed, "TERM": "dumb", "PATH": f"{commands(tmp_path)}:/usr/bin:/bin"}
    stop(places(home, os.getuid()))


def commands(folder: Path) -> Path:
    """A folder with service managers that do not answer."""
    own = folder / "bin"
    own.mkdir()
    for name in ("systemctl", "launchctl"):
        (own / name).write_text("#!/bin/sh\nexit 1\n")
        (own / name).chmod(0o755)
    return own


def run(
    environment: dict[str, str], *answers: str, options: tuple[str, ...] = (), stop_at: str = ""
) -> tuple[int, str]:
    """Run `memd setup` in a terminal and give these answers, then Enter; the exit code and the screen. `stop_at`: type
    Ctrl-C when the screen has this text."""
    process, terminal = pty.fork()
    if not process:
        os.chdir(environment["HOME"])
        os.execve(sys.executable, [sys.executable, "-P", "-m", "memd.clients.cli.main", "setup", *options], environment)
    screen, answered, left, end = "", 0, list(answers), time.monotonic() + 120
    while time.monotonic() < end:
        if not select.select([terminal], [], [], 0.2)[0]:
            continue
        try:
            part = os.read(terminal, 65536)
        except OSError:  # Linux's end of a terminal
            break
        if not part:
            break
        screen += part.decode(errors="replace")
        if stop_at and stop_at in screen:
            stop_at = ""
            os.write(terminal, b"\x03")
        if ASKED.search(screen[answered:]):
            answered = len(screen)
            answer = left.pop(0) if left else ""
            if answer == "\x03":
                time.sleep(0.5)  # Python loses an interrupt that comes just before it waits for a line
            os.write(terminal, answer.encode() if answer == "\x03" else f"{answer}\n".encode())
    os.close(terminal)
    code = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
    return code, screen.replace("\r\n", "\n")


def memd_of(environment: dict[str, str], memd: Memd) -> Memd:
    """Runs `memd` as that user."""
    return lambda *arguments: memd(*arguments, **environment)


def client_of(environment: dict[str, str]) -> Client:
    return Client(places(environment, os.getuid()))


def test_enter_alone_goes_from_nothing_to_an_answer_U11(machine: dict[str, str], memd: Memd) -> None:
    """U11: and run again it finds everything done."""
    user = Path(machine["HOME"])
    history(user)
    code, screen = run(machine)
    assert code == 0, screen
    assert [step for step in STEPS if step in screen] == list(STEPS)
    assert "Claude Code: 2 sessions, 2 projects, 1 to 6 s" in screen and "/home/ada/orchard" in screen
    assert "memd@memd" in (user / ".claude/settings.json").read_text()
    assert "I prefer tabs for indentation in Go." in screen or "prefers tabs" in screen
    assert all(len(line) <= 80 for line in screen.split("\n") if "\r" not in line), screen
    question = re.search(r"memd (recall .*)", screen)
    assert question, screen
    answer = memd_of(machine, memd)(*shlex.split(question[1]), "--json").data
    first = max((*answer["hits"], *answer["turns"]), key=lambda result: result["score"])
    assert "record" in first, "the first result of the question that it names is a memory"
    assert shown_lines(screen, first["record"]["description"]), "and one that it showed"
    code, again = run(machine)
    assert code == 0 and "memd was running already" in again
    assert "Connected already: Claude Code." in again and "All of it is imported: 2 sessions." in again


def shown_lines(screen: str, text: str) -> bool:
    """Whether the numbered lines of a profile, which are wrapped, have a text."""
    return " ".join(text.split()) in " ".join(screen.split())


def test_the_user_chooses_agents_projects_and_lines_U11(machine: dict[str, str], memd: Memd) -> None:
    """U11: by numbers; a number that is not in the list is asked again; a dropped line can be taken back."""
    user = Path(machine["HOME"])
    history(user)
    (user / ".codex").mkdir()
    code, screen = run(machine, "7", "2", "1", "1")
    assert code == 0, screen
    assert "type numbers from 1 to 2" in screen
    assert "Connected Codex." in screen and "Connected Claude Code." not in screen
    assert not (user / ".claude/settings.json").exists()
    undo = re.search(r"`memd (reject\s+--undo\s+\S+)`", screen)
    assert undo, screen
    with client_of(machine) as client:
        records = client.list(statuses=("active", "provisional", "quarantined", "retired")).records
        cwds = {record.provenance.source for record in records}
        assert len(cwds) == 1, "the other project was left out"
        assert [record.status for record in records].count("retired") == 1
    assert memd_of(machine, memd)(*undo[1].split()).code == 0
    with client_of(machine) as client:
        assert not client.list(statuses=("retired",)).records


@pytest.mark.usefixtures("interruptible")
def test_ctrl_c_says_what_was_done_and_the_next_start_goes_on_U11(machine: dict[str, str]) -> None:
    """U11."""
    history(Path(machine["HOME"]))
    code, screen = run(machine, "", "\x03")
    assert code == 130, screen
    assert "Stopped. Done so far: memd runs, Claude Code is connected." in screen
    assert "run `memd setup` again" in screen and "Traceback" not in screen
    code, screen = run(machine, "none")
    assert code == 0, screen
    assert "Connected already: Claude Code." in screen and STEPS[-1] in screen
    with client_of(machine) as client:
        assert not client.list().records, "none was imported"
    code, screen = run(machine)
    assert code == 0 and "memd has read 2 sessions." in screen


@pytest.mark.usefixtures("interruptible")
def test_ctrl_c_in_an_import_says_once_how_to_go_on_U11(machine: dict[str, str]) -> None:
    """U11: and how many files are done."""
    folder = Path(machine["HOME"]) / ".claude/projects/-home-ada-orchard"
    folder.mkdir(parents=True)
    for number in range(FILES):
        turns = (
            {"type": "user", "uuid": f"u{number}-{turn}", "sessionId": f"s{number}", "cwd": "/home/ada/orchard",
             "timestamp": f"2026-03-04T10:{turn:02}:00Z",
             "message": {"role": "user", "content": f"Note {turn} of day {number}: the lamp is green."}}
            for turn in range(60)
        )  # fmt: skip
        (folder / f"s{number}.jsonl").write_text("".join(json.dumps(turn) + "\n" for turn in turns))
    code, screen = run(machine, stop_at=f"file 3 of {FILES}")
    assert code == 130 and "Traceback" not in screen, screen
    assert re.search(rf"stopped after \d+ of {FILES} files; what was sent is saved\n", screen), screen
    assert screen.count("To go on, run `memd setup` again.") == 1 and "to continue" not in screen


def test_a_machine_without_agents_gets_through_too_U11(machine: dict[str, str]) -> None:
    """U11."""
    code, screen = run(machine)
    assert code == 0, screen
    for text in (
        "memd found no agent",
        "There is nothing to import.",
        "Nothing yet.",
        "run `memd up`",
        "memd recall WORDS",
    ):
        assert text in screen


def test_scripts_list_as_before_or_take_every_default_U11(machine: dict[str, str], memd: Memd) -> None:
    """U11: without a terminal `memd setup` changes nothing."""
    history(Path(machine["HOME"]))
    memd = memd_of(machine, memd)
    listed = memd("setup")
    assert "Claude Code  not set up" in listed.text and "1. Start" not in listed.text
    states = memd("setup", "--json").data
    assert [state["name"] for state in states if state["is_here"]] == ["claude-code"]
    code, screen = run(machine, options=("--list",))
    assert code == 0 and "Claude Code  not set up" in screen and "1. Start" not in screen
    assert memd("status").code == 3, "nothing was started"
    done = memd("setup", "--yes", "--json").data
    assert done["connected"] == ["claude-code"] and done["files"] == 2 and not done["failed"] and not done["pending"]
    assert not memd("setup", "--json").data[0]["hint"]


def test_an_agent_that_can_not_be_connected_does_not_stop_the_others_U11(machine: dict[str, str], memd: Memd) -> None:
    """U11: neither with names nor in the guided start."""
    user = Path(machine["HOME"])
    memd = memd_of(machine, memd)
    (user / ".claude").mkdir()
    (user / ".codex/prompts").mkdir(parents=True)
    own = user / ".codex/prompts/memd-reflect.md"
    own.write_text("mine\n")
    told = memd("setup", "codex", "claude-code")
    assert told.code == 7 and "is not memd's" in told.errors and "memd is set up in Claude Code" in told.text
    assert memd("setup", "codex", "claude-code", "--json").json["error"]["code"] == "refused"
    assert memd("setup", "claude-code", "emacs").code == 2
    memd("unsetup", "all")
    done = memd("setup", "--yes", "--json")
    assert done.code == 1 and done.data["connected"] == ["claude-code"], "a script hears that one host failed"
    assert done.data["failed"]["codex"] == {
        "code": "refused", "message": f"{own} is not memd's", "hint": "rename it, then run the command again"
    }  # fmt: skip
    memd("unsetup", "all")
    code, screen = run(machine)
    assert code == 1 and "Codex is not connected" in screen and "Connected Claude Code." in screen
    assert "To mend it: rename it" in screen and "Not connected: Codex." in screen
    assert STEPS[-1] in screen and own.read_text() == "mine\n"


@pytest.mark.skipif(sys.platform != "linux", reason="the service manager is systemd's")
def test_the_service_is_installed_where_a_manager_answers_U11(machine: dict[str, str], tmp_path: Path) -> None:
    """U11: a program in place of systemctl starts the daemon as systemd would."""
    socket = places(machine, os.getuid()).socket
    (tmp_path / "bin/systemctl").write_text(
        f"#!/bin/sh\ncase \" $* \" in *' start '*)\n"
        f"setsid {sys.executable} -P -m memd.daemon >/dev/null 2>&1 </dev/null &\n"
        f"until [ -S {socket} ]; do sleep 0.05; done;; esac\n"
    )
    code, screen = run(machine)
    assert code == 0, screen
    assert "memd starts at each login. `memd service uninstall` ends that." in screen
    assert (Path(machine["HOME"]) / ".config/systemd/user/memd.service").is_file()
    assert "memd starts at each login already." in run(machine)[1]


def test_numbers_from_a_list_U11() -> None:
    """U11."""
    assert numbers("", 3, "all") == [0, 1, 2] and numbers("", 3, "none") == [] == numbers(" N ", 3, "all")
    assert numbers("3, 1 1", 3, "all") == [0, 2]
    for text in ("4", "0 1", "x", "-1", "1-2"):
        with pytest.raises(typer.BadParameter):
            numbers(text, 3, "all")


def test_many_projects_are_offered_by_their_newest_session_and_the_rest_together_U11(tmp_path: Path) -> None:
    """U11."""
    files: list[FoundFile] = []
    for number in range(30):
        path = tmp_path / f"{number}.jsonl"
        path.write_text(json.dumps({"type": "user", "cwd": f"/src/{number}"}))
        at = f"2026-03-{number + 1:02}T10:00:00+00:00"
        state = "imported" if number == 29 else "new"
        files.append(FoundFile(path=str(path), size_bytes=1000, changed_at=at, state=state))
    agent = AgentFiles(agent="claude-code", title="Claude Code", folder=str(tmp_path), files=tuple(files))
    choices = import_choices([agent])
    assert len(choices) == MOST_CHOICES
    assert (choices[0].label, choices[-1].label, choices[-1].sessions) == ("/src/28", "18 other projects", 18)


def test_list_and_guided_start_count_a_subagents_file_with_its_session_U11(tmp_path: Path) -> None:
    """U11: one way of counting; a subagent that worked in another folder belongs to its session's project."""
    texts = {"a.jsonl": "/src/heron", "a/subagents/agent-1.jsonl": "/tmp/worktree", "b.jsonl": "/src/heron"}
    for name, folder in texts.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(json.dumps({"type": "user", "cwd": folder}))
    files = tuple(
        FoundFile(path=str(tmp_path / name), size_bytes=1000, changed_at="2026-03-01T10:00:00+00:00", state="new")
        for name in texts
    )
    agent = AgentFiles(agent="claude-code", title="Claude Code", folder=str(tmp_path), files=files)
    choices = import_choices([agent])
    assert [(choice.label, choice.sessions, len(choice.files)) for choice in choices] == [("/src/heron", 2, 3)]
    counted = overview("claude-code", [(Path(file.path), file.size_bytes) for file in files])
    assert (counted.sessions, counted.projects) == (2, 1)
    subagent = [(tmp_path / "a/subagents/agent-1.jsonl", 1000)]
    assert overview("claude-code", subagent).sessions == 1, "a session of which only the subagent's file is new"


def test_ranges_of_time_for_people_U11() -> None:
    """U11."""
    texts = [duration_range(*seconds) for seconds in ((8, 40), (40, 180), (9, 9))]
    assert texts == ["8 to 40 s", "40 s to 3 min", "about 9 s"]
    assert ImportSpeed(expected_s=20, took_s=10).range_s(40) == (20, 20)


def test_the_time_of_an_import_is_a_range_until_memd_measured_one_U11(
    daemon: RunningDaemon, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """U11: an import of known files measures nothing."""
    monkeypatch.setattr("memd.clients.importers.import_speed.LEAST_S", 0)
    history(tmp_path)
    cursors = Cursors(daemon.places.state)
    paths = sorted((tmp_path / ".claude").rglob("*.jsonl"))
    assert import_speed(cursors.folder).range_s(40) == (10, 80)
    with daemon.client() as client:
        first = ImportSpeed()
        for number in range(2):
            cursors.ignore(paths)
            sources = [ImportSource("claude-code", path, reader("claude-code", path, "", cursors)) for path in paths]
            timing = ImportTiming(client, sources, cursors)
            files = [hand_over(client, source, cursors) for source in sources]
            wait_until_distilled(client, CommandAnswer("import", as_json=True))
            timing.end(files, 0)
            measured = import_speed(cursors.folder)
            least_s, most_s = measured.range_s(40)
            assert least_s == most_s and measured.took_s > 0
            assert number == 0 or measured == first, "the daemon knew these files"
            first = measured
