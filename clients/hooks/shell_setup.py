"""What `memd setup shell` changes for bash, zsh and fish: lines in the file that each shell reads at its start, and
the manual page.

Invariant: a new shell starts no Python to load memd. Its code and the completion of `memd` lie in a file in memd's
state folder, because `memd shell init` would cost each new shell 0.2 s of CPU time.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from ... import __version__
from ...protocol.errors import StoreError
from ...protocol.places import Places
from .. import service
from ..shell import quoted, script
from .agent_host import AgentHost, SetUp
from .edits import FileEdit, read
from .notes import folder

NAME = "shell"
_BLOCK = re.compile(rb"# >>> memd >>>(?:(?!# >>> memd >>>).)*?# <<< memd <<<\r?\n?", re.DOTALL)
_GUARDS = {
    "bash": "if [[ $- == *i* ]]; then\n{}\nfi\n",
    "zsh": "if (( $+functions[compdef] )); then\n{}\nfi\n",
    "fish": "if status is-interactive\n{}\nend\n",
}
"""Completion of bash, zsh and fish is for interactive shells; zsh has it after the user's `compinit`."""


def start_files(environment: Mapping[str, str]) -> dict[str, Path]:
    """Return the file that each shell reads at its start."""
    home = Path(environment.get("HOME") or "/")
    config = Path(environment.get("XDG_CONFIG_HOME") or home / ".config")
    return {
        "bash": home / ".bashrc",
        "zsh": Path(environment.get("ZDOTDIR") or home) / ".zshrc",
        "fish": config / "fish/conf.d/memd.fish",
    }


def _is_here(environment: Mapping[str, str]) -> bool:
    """Whether the user has a start file of a shell, or a folder of fish."""
    files = start_files(environment)
    return files["bash"].exists() or files["zsh"].exists() or files["fish"].parents[1].exists()


def _shells(environment: Mapping[str, str]) -> list[str]:
    """The shells that the user can start or has a start file of."""
    path = environment.get("PATH")
    return [name for name, file in start_files(environment).items() if file.exists() or shutil.which(name, path=path)]


def _own_folder(places: Places) -> Path:
    """Return memd's folder with the code for the shells."""
    return folder(places.state) / NAME


def _own_files(set_up: SetUp) -> dict[Path, bytes]:
    """Return the files with the code for each shell of the user."""
    from typer._completion_shared import get_completion_script  # late: it loads typer

    files = dict[Path, bytes]()
    for shell in _shells(set_up.environment):
        completion = get_completion_script(prog_name="memd", complete_var="_MEMD_COMPLETE", shell=shell)
        code = script(shell, set_up.places, service.program()) + _GUARDS[shell].format(completion.strip())
        files[_own_folder(set_up.places) / f"memd.{shell}"] = code.encode()
    return files


def _edits(set_up: SetUp) -> list[FileEdit]:
    """Return the edits of the start files and of the manual page. Raises StoreError."""
    manual = _manual_file(set_up.environment)
    before = read(manual)
    is_of_this_version = f'"memd {__version__}"'.encode() in (before or b"").partition(b"\n")[0]
    page = FileEdit(path=manual, before=before, after=before if is_of_this_version else _manual())
    return [*(_start_edit(shell, set_up) for shell in _shells(set_up.environment)), page]


def _start_edit(shell: str, set_up: SetUp) -> FileEdit:
    path = start_files(set_up.environment)[shell]
    before = read(path)
    file = quoted(shell, str(_own_folder(set_up.places) / f"memd.{shell}"))
    load = f"test -r {file}; and source {file}" if shell == "fish" else f"if [ -r {file} ]; then . {file}; fi"
    block = f"# >>> memd >>> `memd unsetup shell` removes these lines\n{load}\n# <<< memd <<<\n".encode()
    content = before or b""
    if _BLOCK.search(content):
        return FileEdit(path=path, before=before, after=_BLOCK.sub(lambda match: block, content, count=1))
    gap = b"\n" if content and not content.endswith(b"\n") else b""
    return FileEdit(path=path, before=before, after=content + gap + block)


def _manual_file(environment: Mapping[str, str]) -> Path:
    home = Path(environment.get("HOME") or "/")
    return Path(environment.get("XDG_DATA_HOME") or home / ".local/share") / "man/man1/memd.1"


def _manual() -> bytes:
    try:
        return subprocess.run([*service.program(), "man"], capture_output=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError) as error:
        raise StoreError(f"the manual page can't be made: {error}", hint="see what `memd man` prints") from error


def _without(path: Path, content: bytes, before: bytes | None) -> bytes | None:
    """Return a start file without memd's lines, None if memd made it and it has no others. The manual page is memd's
    as a whole."""
    if path.name == "memd.1":
        return before
    after = _BLOCK.sub(b"", content)
    return after if before is not None or after else None


HOST = AgentHost(
    name=NAME,
    title="Shells",
    is_here=lambda set_up: _is_here(set_up.environment),
    edits=_edits,
    without=_without,
    own_files=_own_files,
    own_folder=_own_folder,
)
