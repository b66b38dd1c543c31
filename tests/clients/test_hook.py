"""The hook program: the profile in a host's context, and an agent that goes on whatever happens to memd (Q1, P-3)."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memd.clients.hooks import memd_hook, notes, program
from memd.protocol import profile, reply
from memd.protocol.errors import MemdError
from memd.protocol.places import Places
from tests.clients.hooked import Host, prompted, started, stopped
from tests.conftest import RunningDaemon

PI_TURN = {"session_id": "019a-7f", "transcript_path": "", "cwd": "/"}


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningDaemon]:
    """One daemon for the tests of this file that leave it as it is."""
    folder = tmp_path_factory.mktemp("home")
    folder.chmod(0o700)
    daemon = RunningDaemon({**os.environ, "MEMD_HOME": str(folder)})
    daemon.start()
    with daemon.client() as client:
        client.remember("I prefer tabs over spaces.")
    yield daemon
    daemon.terminate()


@pytest.fixture
def claude(running: RunningDaemon) -> Host:
    return Host("claude-code", running.environment)


def test_the_profile_reaches_the_context_in_the_dialect_of_the_host_Q1(running: RunningDaemon, claude: Host) -> None:
    with running.client() as client:
        text = client.profile(cwd="/").text
    assert "tabs over spaces" in text
    assert claude.inject("SessionStart", started()) == text
    assert Host("pi", running.environment).inject("before_agent_start", PI_TURN) == text


def test_the_shell_commands_of_a_session_know_which_one_it_is_W11(
    running: RunningDaemon, claude: Host, tmp_path: Path, memd: Any
) -> None:
    file = tmp_path / "variables"
    file.write_text("export OTHER=1\n")
    for session in ("0b1c-2d", "x; rm -rf /"):
        payload = json.dumps({**started(), "session_id": session}).encode()
        assert claude.run("SessionStart", payload, CLAUDE_ENV_FILE=str(file)).returncode == 0
    assert file.read_text() == "export OTHER=1\nexport MEMD_SESSION=claude-code:0b1c-2d\n"
    command = f". {file}; {sys.executable} -P -m memd.clients.cli.main remember 'The lamp is on.' --json"
    told = subprocess.run(["sh", "-c", command], env=running.environment, capture_output=True, text=True, check=True)
    assert json.loads(told.stdout)["data"]["record"]["provenance"]["source"] == "claude-code:0b1c-2d"


def test_a_session_with_a_pass_gets_what_the_pass_covers_and_is_not_captured_A1(
    running: RunningDaemon, claude: Host, tmp_path: Path
) -> None:
    with running.client() as client:
        client.remember("I prefer the personal lamp.")
        all_pools = client.grant("agent", pools=["personal"]).token
        nothing = client.grant("agent", sources=["nowhere"]).token
    transcript = tmp_path / "s.jsonl"
    transcript.write_text("{}")
    for token, is_given in ((all_pools, True), (nothing, False), ("", False), ("no pass", False)):
        claude.environment["MEMD_PASS"] = token
        assert ("tabs over spaces" in claude.inject("SessionStart", started("clear"))) is is_given
        claude.call("Stop", {**started(), "transcript_path": str(transcript)})
    assert not notes.has_notes(running.places.state)


def test_a_subagent_is_given_nothing_of_its_own(claude: Host) -> None:
    assert claude.call("UserPromptSubmit", prompted("x", agent_id="a1")) == ""


def test_what_the_hook_asks_is_what_the_protocol_says(home: dict[str, str], serve: Any) -> None:
    """Session, delivery and trigger travel; a revision is reported after it was printed, and only then (Q1)."""
    host = Host("claude-code", home)
    answer = profile.ProfileText(text="known", rev="r1", ids=(), scope=(), tokens=1)
    host.places.socket_file.write_text(str(host.places.socket))
    with serve(host.places.socket) as listener:
        listener.answer = lambda wish: answer if isinstance(wish, profile.Profile) else profile.PrintNoted(known=True)
        for source, trigger in (("startup", "start"), ("resume", "resume"), ("clear", "clear"), ("compact", "compact")):
            assert host.inject("SessionStart", started(source)) == "known"
            asked = [each for each in listener.seen if isinstance(each, profile.Profile)][-1]
            assert (asked.trigger, asked.delivery) == (trigger, "sticky")
            assert asked.document == "claude-code:ec584067-fa36-44f4-a757-79b173260bf3"
        assert {each.rev for each in listener.seen if isinstance(each, profile.Printed)} == {"r1"}
        listener.seen.clear()
        answer = profile.ProfileText(text="known", rev="r1", ids=(), scope=(), tokens=1, due=False)
        assert host.inject("UserPromptSubmit", prompted("x")) == ""
        assert [type(each).__name__ for each in listener.seen] == ["Profile"]


# --- whatever happens, the agent goes on --------------------------------------------------------------------------
def until(test: Callable[[], bool]) -> None:
    """Try until it is so: a profile that is rendered again in between is another one."""
    end = time.monotonic() + 90
    while not test():
        assert time.monotonic() < end


def quiet(host: Host, reason: str) -> None:
    """A turn prints nothing, ends well, and is counted with its reason (P-3, U6). A turn that the machine was too busy
    for is run again."""
    for _ in range(20):
        before = host.skips
        assert host.call("UserPromptSubmit", prompted("What was it?")) == ""
        assert host.skips == before + 1
        if any(reason in each for each in host.reasons):
            break
    assert any(reason in each for each in host.reasons), host.reasons


def test_a_daemon_that_was_never_there_or_is_gone(home: dict[str, str], memd: Any) -> None:
    host = Host("claude-code", home)
    quiet(host, "never started")
    daemon = RunningDaemon(home)
    daemon.start()
    with daemon.client() as client:
        client.remember("I prefer vim over emacs.")
    daemon.kill()
    quiet(host, "not running")
    daemon.start()
    assert "vim" in host.inject("UserPromptSubmit", prompted("x"))
    told = memd("status", "--json").data["skipped"]
    assert (told["total"], set(told["reasons"])) == (host.skips, set(host.reasons))
    assert "skipped" in memd("status").text
    daemon.halt()
    try:
        quiet(host, "no answer")
    finally:
        daemon.go_on()
    daemon.terminate()


@pytest.mark.parametrize("behaviour", ["silent", "closing", "babbling", "slow"])
def test_a_listener_that_is_no_daemon_costs_no_more_than_a_turn_without_memory_P3(
    home: dict[str, str], behaviour: str, tmp_path: Path
) -> None:
    host = Host("claude-code", home)
    path = tmp_path / "s"
    host.places.socket_file.write_text(str(path))
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(str(path))
    listening.listen()
    done = threading.Event()

    def serve() -> None:
        connection, _ = listening.accept()
        with connection:
            if behaviour == "babbling":
                connection.sendall(os.urandom(4096))
            if behaviour == "slow":
                connection.sendall(b"\xff" + bytes(8) + b"\x7f\x03\x00NULL")
            if behaviour != "closing":
                done.wait(20)

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        quiet(host, "")
    finally:
        done.set()
        thread.join()
        listening.close()


def test_a_refusal_is_counted_with_the_daemons_own_words(home: dict[str, str], serve: Any) -> None:
    host = Host("claude-code", home)
    host.places.socket_file.write_text(str(host.places.socket))

    def refuse(_: object) -> reply.Done:
        raise MemdError("the memory is being rebuilt")

    with serve(host.places.socket) as listener:
        listener.answer = refuse
        for _ in range(20):
            assert host.call("UserPromptSubmit", prompted("x")) == ""
            if "the memory is being rebuilt" in host.reasons:
                break
        assert "the memory is being rebuilt" in host.reasons


@settings(deadline=None, max_examples=12)
@given(content=st.one_of(st.binary(max_size=200), st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(), lambda each: st.lists(each) | st.dictionaries(
        st.sampled_from(["session_id", "cwd", "source", "agent_id", "transcript_path", "x"]), each), max_leaves=6
    ).map(lambda each: json.dumps(each).encode())))  # fmt: skip
def test_whatever_a_host_sends_the_hook_ends_well_P3(tmp_path_factory: Any, content: bytes) -> None:
    folder = tmp_path_factory.mktemp("home")
    for agent, event in (("claude-code", "UserPromptSubmit"), ("pi", "agent_end")):
        host = Host(agent, {**os.environ, "MEMD_HOME": str(folder)})
        done = host.run(event, content)
        assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


@pytest.mark.parametrize("arguments", [[], ["claude-code"], ["nobody", "Stop"], ["claude-code", "Whatever"]])
def test_arguments_that_no_host_gives(home: dict[str, str], arguments: list[str]) -> None:
    host = Host("claude-code", home)
    command = program.command(host.places, "x")[:-1]
    host.environment["ARGUMENTS"] = " ".join(arguments)
    done = os.spawnve(os.P_WAIT, command[0], [*command, *arguments], host.environment)
    assert done == 0


def test_a_shell_line_never_fails_not_even_without_an_interpreter_P3(home: dict[str, str], monkeypatch: Any) -> None:
    """Claude Code takes exit code 2, which Python gives for a script that is gone, for a no to the user's prompt."""
    host = Host("claude-code", home)
    lines = [program.shell_line(host.places, "claude-code", "UserPromptSubmit")]
    monkeypatch.setattr("sys.executable", "/nowhere/python3")
    lines.append(program.shell_line(host.places, "claude-code", "UserPromptSubmit"))
    program.remove(host.places)
    for line in lines:
        assert os.system(f"{line} < /dev/null > /dev/null") == 0


def test_disabled_memory_does_nothing_at_all_W14(claude: Host) -> None:
    before = claude.skips
    for event in ("UserPromptSubmit", "Stop"):
        done = claude.run(event, json.dumps(prompted("x")).encode(), MEMD_DISABLED="1")
        assert (done.returncode, done.stdout) == (0, b"")
    claude.places.config.mkdir(parents=True, exist_ok=True)
    (claude.places.config / "disabled").touch()
    try:
        assert claude.call("UserPromptSubmit", prompted("x")) == ""
        assert claude.call("Stop", stopped(Path("/x.jsonl"))) == ""
    finally:
        (claude.places.config / "disabled").unlink()
    assert (claude.skips, claude.noted()) == (before, [])


def test_the_count_of_skips_does_not_grow_for_ever_P20(home: dict[str, str]) -> None:
    host = Host("claude-code", home)
    file = program.path(host.places).with_name("skips")
    file.write_bytes((json.dumps({"at": 1.0, "agent": "a", "event": "e", "reason": "r"}) + "\n").encode() * 2000)
    quiet(host, "never started")
    assert file.stat().st_size <= 64 * 1024
    assert host.skips_but_late == 1


# --- five turns -----------------------------------------------------------------------------------------------------
def test_five_turns_of_a_host_that_keeps_what_is_printed_Q1(running: RunningDaemon, claude: Host) -> None:
    """At each turn the current profile stands in the model's context, over a change and a compaction."""
    context: list[str] = []

    def turn(number: int) -> None:
        def stands() -> bool:
            context.append(claude.inject("UserPromptSubmit", prompted(f"turn {number}", session_id="five")))
            with running.client() as client:
                return client.profile(cwd="/").text in context

        until(stands)

    context.append(claude.inject("SessionStart", started(session_id="five")))
    turn(1)
    turn(2)
    with running.client() as client:
        client.remember("I prefer two blank lines between functions.")
    running.settle()
    turn(3)
    context.clear()  # the host compacts
    context.append(claude.inject("SessionStart", started("compact", session_id="five")))
    turn(4)
    turn(5)


def test_five_turns_of_a_host_that_forgets_what_is_printed_Q1(running: RunningDaemon) -> None:
    host = Host("pi", running.environment)
    for number in range(5):
        if number == 3:
            with running.client() as client:
                client.remember("I prefer helix over vim.")
            running.settle()
        with running.client() as client:
            until(lambda: host.inject("before_agent_start", PI_TURN) == client.profile(cwd="/").text)


VALUES = st.recursive(
    st.text() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False),
    lambda each: st.dictionaries(st.text(), each),
    max_leaves=8,
)


@given(value=VALUES)
def test_its_own_json_is_json(value: Any) -> None:
    assert json.loads(memd_hook.encoded(value)) == value
    assert memd_hook.decoded(json.dumps(value, ensure_ascii=False).encode(errors="surrogatepass")) == value


@given(content=st.binary() | st.text().map(str.encode))
def test_bytes_that_are_no_json_are_a_value_error(content: bytes) -> None:
    with contextlib.suppress(ValueError):
        memd_hook.decoded(content)


@pytest.mark.parametrize("version", ["3.11", "3.12", "3.13", "3.14"])
def test_it_runs_on_the_bare_interpreter_of_each_version(home: dict[str, str], version: str) -> None:
    python = shutil.which(f"python{version}")
    if python is None or subprocess.run([python, "-c", ""], capture_output=True, check=False).returncode:
        pytest.skip(f"there is no Python {version} here")
    host = Host("claude-code", home)
    command = [python, "-I", "-S", str(program.path(host.places)), "claude-code", "UserPromptSubmit"]
    done = subprocess.run(command, input=json.dumps(prompted("x")).encode(), capture_output=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert host.skips_but_late == 1


def test_the_places_are_those_of_the_home_it_was_installed_for(home: dict[str, str], here: Places) -> None:
    settings = json.loads(program.contents(here, home)[program.path(here).with_name("hook.json")])
    assert settings["socket"] == str(here.socket_file)
    assert settings["environment"]["MEMD_HOME"] == home["MEMD_HOME"]


def test_skips_that_can_not_be_written_change_nothing_P3(home: dict[str, str]) -> None:
    host = Host("claude-code", home)
    program.path(host.places).with_name("skips").mkdir()
    done = host.run("UserPromptSubmit", json.dumps(prompted("x")).encode())
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
