"""One user's memory is that user's alone: not under sudo, not in the home of another (P3)."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

OTHER = os.getuid() + 1


def start(environment: dict[str, str]) -> tuple[int, str]:
    done = subprocess.run(
        [sys.executable, "-m", "memd.daemon"],
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    return done.returncode, done.stderr


def test_under_sudo_it_refuses_and_leaves_nothing(home: dict[str, str]) -> None:
    code, said = start({**home, "SUDO_UID": str(OTHER)})
    assert code == 7
    assert "sudo" in said and "hint: run it as the user" in said
    assert not list(Path(home["MEMD_HOME"]).iterdir())


def _anothers(folder: Path) -> Path:
    """A folder of another user: made one by root, else one that is root's."""
    if os.getuid():
        return Path("/usr")
    folder.mkdir()
    os.chown(folder, OTHER, OTHER)
    return folder


@pytest.mark.parametrize("variable", ["HOME", "MEMD_HOME"])
def test_the_home_of_another_user_is_refused_and_left_as_it_is(tmp_path: Path, variable: str) -> None:
    folder = _anothers(tmp_path / "other")
    before = sorted(folder.iterdir())
    without = ("HOME", "MEMD_HOME", "SUDO_UID", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_RUNTIME_DIR")
    environment = {name: value for name, value in os.environ.items() if name not in without}
    code, said = start({**environment, "HOME": str(tmp_path), variable: str(folder)})
    assert code == 7
    assert f"{folder} belongs to uid" in said and "a home of your own" in said
    assert sorted(folder.iterdir()) == before


def test_the_data_of_another_user_is_refused_wherever_it_lies(home: dict[str, str]) -> None:
    if os.getuid():
        pytest.skip("only root can make a folder of another user")
    data = Path(home["MEMD_HOME"]) / "data"
    data.mkdir(mode=0o700)
    os.chown(data, OTHER, OTHER)
    code, said = start(home)
    assert code == 7 and f"the owner of {data} is uid" in said
