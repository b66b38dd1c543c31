"""`memd setup shell` with real shells: they load memd, complete it, find its manual; taken back byte by byte (U2)."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from memd.protocol.places import places
from tests.clients.test_shell import BASH_5, Terminal, commands

START_FILES = {"bash": ".bashrc", "zsh": ".zshrc", "fish": ".config/fish/config.fish"}
READY = "MEMD-READY> "
STARTS = {
    "bash": "PS1='MEMD-''READY> '\n",
    "zsh": "autoload -Uz compinit; compinit -D -u; unset zle_bracketed_paste; PS1='MEMD-''READY> '\n",
    "fish": "function fish_prompt; end; function memd_ready --on-event fish_prompt; echo MEMD-'READY> '; end\n",
}


@pytest.fixture(params=["bash", "zsh", "fish"])
def shell(request: pytest.FixtureRequest) -> str:
    """Each of the shells that this machine has."""
    if not shutil.which(request.param) or (request.param == "bash" and not BASH_5):
        pytest.skip(f"there is no {request.param} on this machine")
    return request.param


@pytest.fixture
def user(home: dict[str, str], tmp_path: Path) -> dict[str, str]:
    """The environment of a user with a home and memd in the path, as pipx has it, but no start file of a shell."""
    folder = tmp_path / "user"
    (folder / ".local/bin").mkdir(parents=True)
    (folder / ".local/bin/memd").symlink_to(Path(sys.executable).with_name("memd"))
    for name in ("XDG_CONFIG_HOME", "XDG_DATA_HOME", "ZDOTDIR", "MANPATH"):
        home.pop(name, None)
    home.update(HOME=str(folder), PATH=f"{folder}/.local/bin:{os.environ['PATH']}", TERM="dumb", LC_ALL="C.UTF-8")
    return home


@pytest.fixture
def memd(user: dict[str, str]) -> Callable[..., str]:
    """Runs memd as that user; what it printed."""

    def run(*arguments: str) -> str:
        command = [sys.executable, "-P", "-m", "memd.clients.cli.main", *arguments]
        done = subprocess.run(command, env=user, capture_output=True, text=True, check=False, timeout=120)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


def tree(user: dict[str, str]) -> dict[str, bytes]:
    """Every file and link of the user's home."""
    folder = Path(user["HOME"])
    paths = [path for path in folder.rglob("*") if path.is_symlink() or path.is_file()]
    return {str(path): os.readlink(path).encode() if path.is_symlink() else path.read_bytes() for path in paths}


def test_a_new_shell_reports_commands_completes_memd_and_finds_the_manual_U2(
    shell: str, user: dict[str, str], memd: Callable[..., str]
) -> None:
    start = Path(user["HOME"]) / START_FILES[shell]
    start.parent.mkdir(parents=True, exist_ok=True)
    start.write_text(STARTS[shell])
    memd("setup", "shell")
    terminal = Terminal(shell, {**user, "HISTFILE": "", "XDG_RUNTIME_DIR": ""}, Path(user["HOME"]), "-i")
    terminal.run("echo one", "echo two")
    terminal.type("memd feedb\t")
    assert "memd feedback" in terminal.until("memd feedback ")
    terminal.type("\x15")
    terminal.close()
    assert commands(user, shell, 2)[-2:] == ["echo one", "echo two"]
    if shutil.which("man"):
        page = subprocess.run(["man", "-w", "memd"], env=user, capture_output=True, text=True, check=True)
        assert page.stdout.strip() == f"{user['HOME']}/.local/share/man/man1/memd.1"


def test_setting_up_and_taking_out_leaves_every_byte_as_it_was_U2(
    user: dict[str, str], memd: Callable[..., str]
) -> None:
    folder = Path(user["HOME"])
    (folder / "dotfiles").mkdir()
    (folder / "dotfiles/zshrc").write_bytes(b"alias g=git\nname=\xff")  # without a last newline
    (folder / ".zshrc").symlink_to("dotfiles/zshrc")
    before = tree(user)
    memd("setup", "shell", "--dry-run")
    assert tree(user) == before
    assert "memd.zsh" in memd("setup", "shell")
    assert (folder / ".zshrc").is_symlink() and (folder / "dotfiles/zshrc").read_bytes().endswith(b"memd <<<\n")
    after = tree(user)
    assert "nothing had to change" in memd("setup", "shell") and tree(user) == after
    memd("unsetup", "shell")
    assert tree(user) == before
    assert not (folder / ".config").exists() and not (folder / ".local/share").exists()
    assert not list(places(user, os.getuid()).state.rglob("memd.zsh"))


def test_later_lines_of_the_user_stay_U2(user: dict[str, str], memd: Callable[..., str]) -> None:
    start, missing = Path(user["HOME"]) / ".bashrc", Path(user["HOME"]) / ".zshrc"
    start.write_text("first=1\n")
    missing.write_text("")
    memd("setup", "shell")
    start.write_text(f"above=1\n{start.read_text()}below=1\n")
    assert "differs" not in memd("setup")
    memd("unsetup", "shell")
    assert start.read_text() == "above=1\nfirst=1\nbelow=1\n" and missing.read_bytes() == b""


def test_all_leaves_the_shells_out_and_the_list_tells_what_broke_U2(
    user: dict[str, str], memd: Callable[..., str]
) -> None:
    start = Path(user["HOME"]) / ".bashrc"
    start.write_text("first=1\n")
    memd("setup", "all")
    assert start.read_text() == "first=1\n" and "run `memd setup shell`" in memd("setup")
    memd("setup", "shell")
    next(places(user, os.getuid()).state.rglob("memd.bash")).write_text("old\n")
    assert "differs from memd's version" in memd("setup")
    memd("setup", "shell")
    assert "differs" not in memd("setup")
    memd("unsetup", "all")
    assert start.read_text() == "first=1\n"
