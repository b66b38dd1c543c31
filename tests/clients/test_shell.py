"""bash, zsh and fish in a terminal, with a real daemon: what is told, what stays with the user (U2, W10, W14, P-18)."""

import json
import os
import pty
import re
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memd.clients.bench.write.secret_matrix import cases
from memd.clients.shell import script
from memd.protocol.places import places
from memd.protocol.redact import CLUES, redact
from tests.conftest import RunningDaemon
from tests.protocol.test_redact import PIECES, SECRETS

SHELLS = {"bash": ["bash", "--norc", "-i"], "zsh": ["zsh", "-f", "-i"], "fish": ["fish", "-i"]}
LOADED = {
    "bash": "{early}; PS1=MEMD-'READY> '; source {file}",
    "zsh": "{early}; PS1=MEMD-'READY> '; unset zle_bracketed_paste; source {file}",
    # fish prints a prompt again at each key
    "fish": "{early}; function fish_prompt; end; source {file}; "
    "function memd_ready --on-event fish_prompt; echo MEMD-'READY> '; end",
}
TABBED = {"bash": "echo 'a\"b\\c'\t\u00e9", "zsh": "echo 'a\"b\\c'\t\u00e9", "fish": "echo 'a\"b\\c'\u00e9"}
PROMPT = "MEMD-READY> "
BASH_5 = subprocess.run(["bash", "-c", "((BASH_VERSINFO[0] >= 5))"], check=False).returncode == 0


@pytest.fixture(params=[*SHELLS])
def shell(request: pytest.FixtureRequest) -> str:
    """Each of the shells that this machine has."""
    if not shutil.which(request.param) or (request.param == "bash" and not BASH_5):
        pytest.skip(f"there is no {request.param} on this machine")
    return request.param


class Terminal:
    """A shell in a pty; each line is sent when the prompt is there."""

    def __init__(self, shell: str, environment: dict[str, str], cwd: Path, *options: str) -> None:
        command = [shell, *options] if options else SHELLS[shell]
        self.pid, self._fd = pty.fork()
        if not self.pid:
            os.chdir(cwd)
            os.execvpe(shell, command, environment)
        self.said = ""
        self.until("$", "%", "#", "> ")

    def until(self, *marks: str) -> str:
        """What was printed until one of these."""
        end, begin = time.monotonic() + 90, len(self.said)
        while time.monotonic() < end and not any(mark in self.said[begin:] for mark in marks):
            if select.select([self._fd], [], [], 0.05)[0]:
                try:
                    self.said += os.read(self._fd, 65536).decode(errors="replace")
                except OSError:  # it has ended
                    break
        return self.said[begin:]

    def run(self, *lines: str) -> None:
        """Types lines."""
        for line in lines:
            os.write(self._fd, line.encode() + b"\n")
            self.until(PROMPT)

    def type(self, keys: str) -> None:
        """Types without Enter."""
        os.write(self._fd, keys.encode())

    def close(self) -> None:
        """Ends the shell."""
        os.write(self._fd, b"exit\n")
        os.waitpid(self.pid, 0)
        os.close(self._fd)


@pytest.fixture
def terminal(shell: str, home: dict[str, str], memd: Callable[..., Any], tmp_path: Path) -> Callable[..., Terminal]:
    """Opens a shell that has loaded what `memd shell init` prints."""

    def open_(program: Sequence[str] = (), early: str = ":", **changes: str) -> Terminal:
        file = tmp_path / f"memd.{shell}"
        here = places(home, os.getuid())
        text = memd("shell", "init", shell).text
        file.write_text(script(shell, here, program) if program else text)
        fixed = {"HOME": str(tmp_path), "TERM": "dumb", "HISTFILE": "", "XDG_RUNTIME_DIR": "", "PS1": "$ "}
        environment = {**home, **fixed, **changes}
        found = Terminal(shell, environment, tmp_path)
        found.run(LOADED[shell].format(early=early, file=file))
        return found

    return open_


def lines(home: dict[str, str], shell: str) -> list[dict[str, Any]]:
    """What waits in that shell's files: a capture each."""
    folder = places(home, os.getuid()).spool
    return [
        json.loads(line) for file in sorted(folder.glob(f"{shell}-*.lines")) for line in file.read_text().splitlines()
    ]


def commands(home: dict[str, str], shell: str, count: int = 0) -> list[str]:
    """The commands that wait, by turn, without the line that loaded the script; at least `count` of them."""
    end = time.monotonic() + 90
    while True:
        events = [each["events"][0] for each in lines(home, shell)]
        ran = sorted((int(each["turn"]), each["command"]) for each in events if each["event"] == "ran")
        told = [command for _, command in ran if "source" not in command]
        if len(told) >= count or time.monotonic() > end:
            return told
        time.sleep(0.05)


def test_a_command_is_told_with_status_duration_and_folder_W10(
    shell: str, home: dict[str, str], terminal: Callable[..., Terminal], tmp_path: Path
) -> None:
    (tmp_path / "repo" / ".git").mkdir(parents=True)
    (tmp_path / "repo" / "deep").mkdir()
    found = terminal()
    found.run("true", "false", "cd repo/deep", "sleep 0.3", TABBED[shell], "", "sh -c 'exit 7'")
    found.close()
    told = lines(home, shell)
    events = {each["events"][0].get("command", ""): (each["events"][0], each["origin"]) for each in told}
    assert [events[each][0].get("exit_status") for each in ("true", "false", "sh -c 'exit 7'")] == [0, 1, 7]
    assert events["sleep 0.3"][0]["duration_ms"] >= 300
    assert TABBED[shell] in events or "echo 'a\"b\\c'\u00e9" in events  # a terminal may eat the tab
    assert events["cd repo/deep"][1]["cwd"] == str(tmp_path)
    assert events["sleep 0.3"][1]["cwd"] == str(tmp_path / "repo" / "deep")
    assert events["sleep 0.3"][1]["session"].endswith(f":{tmp_path / 'repo'}")
    assert [each["events"][0]["event"] for each in told].count("session_ended") == len(
        {each["origin"]["session"] for each in told}
    )
    for file in places(home, os.getuid()).spool.iterdir():
        assert file.stat().st_mode & 0o777 == 0o600


def test_what_begins_with_a_space_or_is_ignored_stays_with_the_user(
    shell: str, home: dict[str, str], terminal: Callable[..., Terminal]
) -> None:
    found = terminal(MEMD_SHELL_IGNORE="ls*:pass *")
    found.run("echo one", " echo hidden", "ls /", "pass show x", "echo '<private>mine</private>'", "echo two")
    if shell == "bash":
        found.run("HISTCONTROL=ignoreboth", " echo hidden2", "echo three", " echo hidden3", "echo four")
        found.run("unset HISTCONTROL", "set +o history", "echo hidden5", "echo hidden6")
        told = ["HISTCONTROL=ignoreboth", "echo three", "echo four", "unset HISTCONTROL", "set +o history"]
        assert commands(home, shell)[2:] == told
    found.close()
    assert commands(home, shell)[:2] == ["echo one", "echo two"]


def test_secrets_do_not_reach_the_spool_and_the_rules_are_the_protocols_P18(
    shell: str, home: dict[str, str], terminal: Callable[..., Terminal]
) -> None:
    texts = [f": {secret} b" for secret in SECRETS.values()]
    texts += [
        ": DB_PASSWORD='hunter2hunter2' postgres://ada:s3cr3t@db/x postgres://bob:s3cr3t@db/x",
        ": the token is 500",
    ]
    texts += [": 'Authorization: Bearer " + "a1" * 20 + "'", ": git clone https://example.org/token/key.git"]
    texts += [": sk_live_" + "a" * 20 + " AIza" + "b" * 35 + " AIza" + "c" * 35]
    found = terminal()
    found.run(*texts)
    found.close()
    assert commands(home, shell, len(texts)) == [redact(each)[0] for each in texts]


def test_what_a_name_or_command_announces_does_not_reach_the_spool_P18(
    shell: str, home: dict[str, str], terminal: Callable[..., Terminal]
) -> None:
    texts = [": DB_PASSWORD=*", ": mysql -u root -p* shop", ": docker login -u ada -p * quay.example", ": --token *"]
    texts += [": redis-cli -a * ping", ": curl -u ada:* https://api.example", ": echo * , sudo -S true", ": x=$TOKEN"]
    found = terminal()
    found.run(*(text.replace("*", "hunter2horse").replace(",", "|") for text in texts))
    found.close()
    told = commands(home, shell, len(texts))
    assert len(told) == len(texts) and not any("hunter2horse" in text for text in told) and told[-1] == texts[-1]


def noticed(shell: str, texts: Sequence[str]) -> list[bool]:
    """Whether each text matches the shell's patterns, so that it goes to `memd spool`."""
    told = script(shell, places({"MEMD_HOME": "/nowhere"}, 0), ["memd"])
    if shell == "fish":
        [expression] = re.findall(r"string match -rq -- ('\(\?si\).*') \"", told)
        code = f'while read -lz text; string match -rq -- {expression} "$text"; and echo 1; or echo 0; end'
    else:
        [patterns] = set(re.findall(r"^.*?(\*\\-.*\]\*)\) ", told, re.MULTILINE))
        folded = {"bash": "${text,,}", "zsh": "${(L)text}"}[shell]
        code = f"while IFS= read -r -d '' text; do case {folded} in {patterns}) echo 1 ;; *) echo 0 ;; esac; done"
    content = "".join(f"{text}\0" for text in texts).encode()
    done = subprocess.run([SHELLS[shell][0], "-c", code], input=content, capture_output=True, check=True)
    assert done.stderr == b""
    return [line == b"1" for line in done.stdout.splitlines()]


def test_every_text_in_which_the_rules_find_a_secret_goes_to_memd_spool_P18(shell: str) -> None:
    texts = [case.text for case in cases()] + [f"a {secret} b" for secret in SECRETS.values()]
    texts += [f"a {clue.upper()} b" for clue in (*CLUES, "private")]
    texts += ["Pa\u017f\u017fword: 'hunter2horse'", "api_\u212aey='hunter2horse'", "Schl\u00dcssel: hunter2horse"]
    assert len(texts) > 2000 and all(noticed(shell, texts))
    assert not any(noticed(shell, ["git status", "gha_x adia tk_ x", "ls -la /src/\u00fcber", "make -j4 2>&1"]))


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.lists(PIECES | st.text(max_size=5), max_size=12).map("".join), min_size=100, max_size=100))
def test_no_chance_text_with_a_secret_is_left_to_the_shell_P18(shell: str, chance: list[str]) -> None:
    texts = [text.replace("\0", "").encode("utf-8", "replace").decode() for text in chance]
    for text, is_noticed in zip(texts, noticed(shell, texts), strict=True):
        assert is_noticed or not redact(text)[1], text


def recorder(tmp_path: Path) -> tuple[list[str], Path]:
    """A program in the place of `memd` that writes its arguments, its variables and its input to files."""
    folder = tmp_path / "recorded"
    folder.mkdir()
    program = tmp_path / "recorder"
    program.write_text(
        f"#!{sys.executable}\n"
        "import os, sys\n"
        f"name = {str(folder)!r} + f'/{{os.getpid()}}.'\n"
        "told = sys.stdin.read()\n"
        "open(name + 'outside', 'w').write(f'{sys.argv} {dict(os.environ)}')\n"
        "open(name + 'input', 'w').write(told)\n"
    )
    program.chmod(0o700)
    return [str(program)], folder


def test_what_goes_to_memd_spool_is_on_its_input_and_nowhere_else_P18(
    shell: str, home: dict[str, str], terminal: Callable[..., Terminal], tmp_path: Path
) -> None:
    program, folder = recorder(tmp_path)
    found = terminal(program)
    if shell == "fish":
        first = ["true", "sleep 100 &", "set before $last_pid", "sh -c 'exit 3'"]
        found.run(*first, ": --password hunter2horse", "[ $before = $last_pid ]; and echo s''ame")
        os.write(found._fd, b": 'service: db\npassword: hunter2horse'\n")
    else:
        first = ["set -a", "sleep 100 &", "before=$!", "(exit 3)"]
        found.run(*first, ": --password hunter2horse", "[ $before = $! ] && echo s''ame")
        os.write(found._fd, b"cat <<EOF >/dev/null\nservice: db\npassword: hunter2horse\nEOF\n")
    found.until(PROMPT)
    found.run("jobs", "kill %1", "wait")
    found.close()
    end, told = time.monotonic() + 90, ""
    while time.monotonic() < end and "session_ended" not in told:
        time.sleep(0.05)
        told = "".join(file.read_text() for file in folder.glob("*.input"))
    assert told.count("hunter2horse") == 2 and "service: db\\npassword: hunter2horse" in told
    assert not any("hunter2horse" in file.read_text() for file in folder.glob("*.outside"))
    assert not any(b"hunter2horse" in file.read_bytes() for file in places(home, os.getuid()).spool.iterdir())
    assert "same" in found.said and "[2]" not in found.said and "done" not in found.said.lower()
    assert commands(home, shell)[:4] == first


@pytest.mark.parametrize("is_early", [True, False])
def test_no_variable_of_memd_is_exported_after_set_a_P18(
    shell: str, home: dict[str, str], terminal: Callable[..., Terminal], is_early: bool, tmp_path: Path
) -> None:
    if shell == "fish":
        pytest.skip("fish has no `set -a`")
    environment = str(tmp_path / "environment")
    found = terminal(early="set -a" if is_early else ":", ENVIRONMENT=environment)
    found.run("set -a", ": --password hunter2horse", "cd /", 'env >"$ENVIRONMENT"', "echo two", 'env >>"$ENVIRONMENT"')
    found.close()
    told = (tmp_path / "environment").read_text(errors="replace")
    assert "MEMD_HOME" in told and "__memd_" not in told and "hunter2horse" not in told
    assert commands(home, shell)[-3:] == ['env >"$ENVIRONMENT"', "echo two", 'env >>"$ENVIRONMENT"']


def test_a_closed_terminal_loses_no_command_with_a_secret_W10(
    shell: str, home: dict[str, str], terminal: Callable[..., Terminal]
) -> None:
    found = terminal()
    found.run("echo one", ": --password hunter2horse")
    os.close(found._fd)
    os.waitpid(found.pid, 0)
    assert commands(home, shell, 2) == ["echo one", ": --password [redacted:password]"]
    end = time.monotonic() + 90
    while lines(home, shell)[-1]["events"][0]["event"] == "ran" and time.monotonic() < end:
        time.sleep(0.05)
    assert lines(home, shell)[-1]["events"][0]["event"] == "session_ended"  # behind the command that memd wrote


def test_commands_that_are_pasted_share_a_process(
    shell: str, home: dict[str, str], terminal: Callable[..., Terminal], tmp_path: Path
) -> None:
    program, folder = recorder(tmp_path)
    found = terminal(program)
    for number in range(20):
        found.run(f": --password n{number}.")
    found.close()
    end, told = time.monotonic() + 90, list[str]()
    while time.monotonic() < end and not any("session_ended" in text for text in told):
        time.sleep(0.05)
        told = [file.read_text() for file in sorted(folder.glob("*.input"), key=lambda file: file.stat().st_mtime_ns)]
    assert re.findall(r"password n(\d+)\.", "".join(told)) == [str(number) for number in range(20)]
    assert len(told) < 10


def test_without_memd_a_command_that_may_hold_a_secret_is_not_captured_P18(
    shell: str, home: dict[str, str], terminal: Callable[..., Terminal], tmp_path: Path
) -> None:
    found = terminal([str(tmp_path / "missing")])
    found.run("echo one", ": --password hunter2horse", "echo two")
    found.close()
    assert commands(home, shell) == ["echo one", "echo two"]
    assert "missing" not in found.said.partition("echo one")[2] and "No such file" not in found.said


def test_a_secret_in_the_name_of_a_folder_does_not_reach_the_spool_P18(
    shell: str, home: dict[str, str], terminal: Callable[..., Terminal], tmp_path: Path
) -> None:
    secret = SECRETS["github-token"]
    (tmp_path / secret / ".git").mkdir(parents=True)
    found = terminal()
    found.run("echo one", f"cd {secret}", "echo two", "echo three")
    found.close()
    told = commands(home, shell, 4)
    assert told == ["echo one", "cd [redacted:github-token]", "echo two", "echo three"]
    assert not any(secret in file.read_text() for file in places(home, os.getuid()).spool.iterdir())
    assert any(f"{tmp_path}/redacted-" in line["origin"]["cwd"] for line in lines(home, shell))


def test_a_command_of_several_lines_or_very_many_characters_is_told_as_it_was_typed(
    shell: str, home: dict[str, str], terminal: Callable[..., Terminal], tmp_path: Path
) -> None:
    secret = "ghp_" + "a1" * 20
    long = f": {'word ' * 1997}{secret} {'more ' * 500}"  # the secret lies across the 10,000th character
    found = terminal()
    os.write(found._fd, b": 'one\n\n  7  two 100%s\\n\\u'\n")
    found.until(PROMPT)
    loop = "for n in 1 2\n" + ("true; end" if shell == "fish" else "do true; done")
    os.write(found._fd, f"{loop}\n".encode())
    found.until(PROMPT)
    pasted = f"\x1b[200~{long}\x1b[201~" if shell == "fish" else long  # fish draws the line anew for each typed key
    for at in range(0, len(pasted), 200):  # no more than a terminal takes at once
        found.type(pasted[at : at + 200])
        while select.select([found._fd], [], [], 0.02)[0]:
            os.read(found._fd, 65536)
    found.run("")
    found.close()
    told = commands(home, shell, 3)
    assert told[0] == ": 'one\n\n  7  two 100%s\\n\\u'"
    assert told[1].startswith("for n in 1 2") and loop[13:] in told[1]
    assert told[2] == redact(long[:12000])[0][:10000] and "ghp_" not in told[2]
    assert len(told) == 3 and len(told[2]) == 10000


@pytest.mark.parametrize("away", ["renamed", "removed", "with its folder", "by a full disk"])
def test_what_is_run_after_a_spool_was_taken_away_is_told_in_a_new_one_W10(
    shell: str, home: dict[str, str], terminal: Callable[..., Terminal], away: str
) -> None:
    folder = places(home, os.getuid()).spool
    if away == "by a full disk" and not Path("/dev/full").exists():
        pytest.skip("this system has no /dev/full")
    found = terminal()
    found.run("umask 022", "echo one")
    spool = next(folder.glob(f"{shell}-*.lines"))
    if away == "renamed":  # as the daemon does it
        spool.rename(spool.with_suffix(".taken"))
        spool.touch(0o600)
    elif away == "removed":
        spool.unlink()
    elif away == "by a full disk":
        spool.unlink()
        spool.symlink_to("/dev/full")
        found.run(*(("echo lost",) if shell == "fish" else ("set -e", "echo lost", "set +e")))
        spool.unlink()
    else:
        shutil.rmtree(folder)
        found.run("echo lost")
        folder.mkdir(0o700)
    found.run("echo two", "echo three")
    found.close()
    assert commands(home, shell) == ["echo two", "echo three"]
    told = [
        "No such file",
        "error",
        *(() if shell == "fish" else ("No space",)),
    ]  # fish says by itself that a disk is full
    assert not [each for each in told if each in found.said]
    assert away != "renamed" or spool.stat().st_mode & 0o777 == 0o600


def test_off_is_off_W14(shell: str, home: dict[str, str], terminal: Callable[..., Terminal]) -> None:
    found = terminal()
    on, off = (
        ("set MEMD_DISABLED 1", "set -e MEMD_DISABLED")
        if shell == "fish"
        else ("MEMD_DISABLED=1", "unset MEMD_DISABLED")
    )
    found.run(on, "echo one", off, "echo two")
    file = places(home, os.getuid()).config / "disabled"
    file.parent.mkdir(parents=True, mode=0o700)
    file.touch()
    found.run("echo three")
    file.unlink()
    found.run("echo four")
    found.close()
    assert [each for each in commands(home, shell) if each.startswith("echo")] == ["echo two", "echo four"]


def test_the_shells_own_settings_stay_as_they_were(terminal: Callable[..., Terminal], shell: str) -> None:
    found = terminal()
    status = "status" if shell == "fish" else "?"
    found.run(f"false; echo status=${status}", "false")
    os.write(found._fd, f"echo status=${status}\n".encode())
    assert "status=1" in found.until(PROMPT)
    if shell == "bash":
        found.run("set -u", "PROMPT_COMMAND+=('seen=$?')", "(exit 3)")
        os.write(found._fd, b"echo seen=$seen\n")
        assert "seen=3" in found.until(PROMPT)
    found.close()
    assert "unbound" not in found.said and "error" not in found.said


def test_the_daemon_takes_in_what_a_shell_leaves_and_ends_its_sessions_W2_W10(
    shell: str, home: dict[str, str], terminal: Callable[..., Terminal], memd: Callable[..., Any]
) -> None:
    found = terminal()
    found.run("echo before")
    running = RunningDaemon({**home, "MEMD_SPOOL_S": "0.1"})
    running.start()
    try:
        found.run("echo during", "false")
        if shell != "bash":
            found.type("echo\x18k")
            assert "searched" in found.until("searched")
            found.type("\x15")
        found.run(": --password hunter2horse")  # memd stores it in the background
        found.close()
        end = time.monotonic() + 90
        with running.client() as client:
            listed = client.sessions(host=shell).sessions
            while time.monotonic() < end:
                listed = client.sessions(host=shell).sessions
                if listed and listed[0].reason == "exit":
                    break
                time.sleep(0.05)
            assert [each.reason for each in listed] == ["exit"]
            outcome = client.session(listed[0].document)
            assert outcome.turns["ran"] >= 3 and outcome.troubles >= 1
            assert shell in client.status().hosts
        shown = memd("session", "show", listed[0].document).text
        assert "ended" in shown and "(exit)" in shown and "failed" in shown
        assert listed[0].document[:20] in memd("session", "list").text
        spool = running.places.spool
        while list(spool.glob("*.lines")) and time.monotonic() < end:
            time.sleep(0.05)
        assert list(spool.iterdir()) == []
    finally:
        running.terminate()
