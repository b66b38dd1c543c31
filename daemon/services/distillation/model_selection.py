"""The embedding models: the one that the user chose, the one that every record has a vector of, the one that searches.

Invariants: a chosen folder that can't be used is reported and skipped, the daemon starts all the same; a model is
tried in a child process before it is chosen, because the daemon does not load its libraries.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from ....models import registry
from ....models.query import QueryTable
from ....protocol.errors import BadConfig, InvalidRequest, ModelMissing, StorageFull
from ....protocol.places import Places
from ....protocol.reply import ModelList, ModelState
from ...storage.durable_files import replace
from ...storage.folder_lock import FolderLock
from ...world import World
from ..token_estimate import tokens

if TYPE_CHECKING:
    from ..search_model import Encode

FILE = "model.json"
DEFAULT = "default"
CHECK_S = 120.0


class ModelChoice(msgspec.Struct, frozen=True, kw_only=True):
    """`model.json`. Folder "" is the package's own; `complete` is the last model that every record had a vector of."""

    wanted: str = ""
    complete_folder: str = ""
    complete: str = ""


class SearchableModel(NamedTuple):
    """A model that can search. `encode` is None without a query table; `pieces` counts word pieces."""

    folder: str
    info: registry.ModelInfo
    encode: Encode | None
    pieces: Callable[[str], int] = tokens

    @property
    def id(self) -> str:
        """The id kept beside its vectors."""
        return self.info.id


class ModelSelection(NamedTuple):
    """The models at start: the one that searches, the one to change to (often the same), and the problem."""

    choice: ModelChoice
    searching: SearchableModel
    wanted: SearchableModel
    trouble: str = ""


def folder_of(name: str) -> str:
    """Return the folder that a user names, "" for the package's own. Raises InvalidRequest for a relative one."""
    if name in ("", DEFAULT):
        return ""
    if not Path(name).is_absolute():
        raise InvalidRequest(f"{name!r} is not an absolute path", hint="the daemon does not know your folder")
    return name


def path_of(folder: str) -> Path:
    """Return the path of a chosen folder."""
    return Path(folder) if folder else registry.WEIGHTS


def load_choice(data: Path) -> ModelChoice:
    """Return the choice; the package's own model without a file. Raises BadConfig."""
    try:
        return msgspec.json.decode((data / FILE).read_bytes(), type=ModelChoice)
    except FileNotFoundError:
        return ModelChoice()
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise BadConfig(
            f"{data / FILE} can't be read: {error}", hint="remove the file, then run `memd model use` again"
        ) from error


def save_choice(data: Path, choice: ModelChoice) -> None:
    """Write the choice to the disk. Raises StorageFull."""
    try:
        replace(data / FILE, msgspec.json.encode(choice))
    except OSError as error:
        raise StorageFull(f"{data / FILE} can't be written: {error.strerror}", hint="free some space") from error


def load_model(folder: str) -> SearchableModel:
    """Load the model of a folder, with its query table mapped. Raises ModelMissing."""
    path = path_of(folder)
    info = registry.info(path)
    if not info.queries:
        return SearchableModel(folder, info, None)
    table = QueryTable(path)
    return SearchableModel(folder, info, table.encode, table.tokens.count)


def find(data: Path) -> ModelSelection:
    """Return the models to start with. Raises BadConfig, ModelMissing if the package's own can't be used."""
    choice, trouble = load_choice(data), ""
    try:
        wanted = load_model(choice.wanted)
    except Exception as error:  # any library may fail on a damaged file
        if not choice.wanted:
            raise
        wanted = load_model("")
        why = error.message if isinstance(error, ModelMissing) else repr(error)
        trouble = f"cannot use the chosen model: {why}; run `memd model use FOLDER` or `memd model use default`"
    if choice.complete not in ("", wanted.id):
        with suppress(ModelMissing):
            before = load_model(choice.complete_folder)
            if before.id == choice.complete:
                return ModelSelection(choice, before, wanted, trouble)
    return ModelSelection(choice, wanted, wanted, trouble)


def check(folder: str) -> None:
    """Use a model once in a child process. Raises ModelMissing with the problem."""
    command = [sys.executable, "-P", "-m", "memd.daemon", "check-model", folder or DEFAULT]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, cwd="/", timeout=CHECK_S)
    except subprocess.TimeoutExpired as error:
        raise ModelMissing(f"the model in {folder} did not load within {CHECK_S:.0f} s") from error
    if done.returncode:
        said = [line.partition(": ")[2] for line in done.stderr.splitlines() if line.startswith(("memd: ", "hint: "))]
        ended = f"loading the model in {folder} ended the process (exit code {done.returncode})"
        raise ModelMissing(
            said[0] if said else ended, hint=said[1] if len(said) > 1 else "memd keeps the current model"
        )


def state_of(folder: str, *, searches: bool, wanted: bool) -> ModelState:
    """Return the entry of a folder in `memd model list`; never raises."""
    path = path_of(folder)
    try:
        info = registry.info(path)
    except ModelMissing as error:
        return ModelState(folder=str(path), searches=searches, wanted=wanted, problem=error.message)
    sizes = [(path / name).stat().st_size for name in info.files if (path / name).exists()]
    return ModelState(
        id=info.id,
        version=info.version,
        dimension=info.dimension,
        size_bytes=sum(sizes),
        folder=str(path),
        package=not folder,
        searches=searches,
        wanted=wanted,
        problem="" if len(sizes) == len(info.files) else "files are missing; `memd model verify` lists them",
    )


def states(wanted: str, searching: SearchableModel) -> tuple[ModelState, ...]:
    """Return the package's own model, the chosen one and the searching one, each once."""
    folders = dict.fromkeys(("", wanted, searching.folder))
    return tuple(state_of(folder, searches=folder == searching.folder, wanted=folder == wanted) for folder in folders)


# --- commands for when no daemon runs ------------------------------------------------------------------------
def check_command(places: Places, world: World, arguments: Sequence[str]) -> Mapping[str, object]:
    """`check-model [FOLDER]`: check a model's files and vectors, by default of the chosen one. Raises ModelMissing
    when anything is wrong, after printing the report."""
    from ....models.probes import problems_of

    folder = folder_of(arguments[0]) if arguments else load_choice(places.data).wanted
    path = path_of(folder)
    info, problems = registry.info(path), problems_of(path)
    report: dict[str, object] = {
        "id": info.id,
        "version": info.version,
        "dimension": info.dimension,
        "folder": str(path),
        "files": sorted(info.files),
        "intact": not problems,
        "problems": problems,
    }
    if problems:
        sys.stdout.write(msgspec.json.encode(report).decode() + "\n")
        raise ModelMissing(f"{path} is not a usable embedding model: {'; '.join(problems)}", hint=registry.remedy(path))
    return report


def use_command(places: Places, world: World, arguments: Sequence[str]) -> Mapping[str, object]:
    """`use-model FOLDER`: check and choose a model; the next start embeds again. Raises JournalLocked, ModelMissing."""
    folder = folder_of(arguments[0] if arguments else DEFAULT)
    places.data.mkdir(mode=0o700, parents=True, exist_ok=True)
    lock = FolderLock(places.data)
    try:
        choice = load_choice(places.data)
        check(folder)
        save_choice(places.data, msgspec.structs.replace(choice, wanted=folder))
    finally:
        lock.release()
    return {"id": registry.info(path_of(folder)).id, "folder": str(path_of(folder)), "records": 0, "to_embed": 0}


def list_command(places: Places, world: World, arguments: Sequence[str]) -> Mapping[str, object]:
    """`list-models`: `memd model list` without a daemon."""
    selection = find(places.data)
    return msgspec.to_builtins(ModelList(models=states(selection.choice.wanted, selection.searching)))
