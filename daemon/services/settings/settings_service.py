"""The settings of a running daemon: reading, listing and changing `memd.toml`, and following its changes (U6).

Invariants: an invalid file changes nothing: the previous settings stay and `status` shows the problem; a new value is
checked together with all others before the file is written; comments in the file stay.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Callable, Iterable, Mapping, MutableMapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, cast

import msgspec

from ....protocol.errors import BadConfig, MemdError, StorageFull
from ....protocol.places import Places
from ....protocol.settings import ListSettings, PutSetting, Setting, SettingList
from ...config import FILE, Config, known, load_config, parsed
from ...forgetting_rules import Rules
from ...storage.durable_files import replace
from ...world import World
from ..service import Handlers, Service, owner

AT_NEXT_START = frozenset({"ballast_mb", "spool_s"})
"""Settings that a running daemon does not change."""

_ROW_ID = re.compile(r" \([A-Z]\d+\)")
"""Row of the list of features, which `memd config list` does not name."""


class Settings:
    """The settings of one home. Any thread may read them; only one thread (the slow lane) changes them."""

    def __init__(self, folder: Path, environment: Mapping[str, str], config: Config | None = None) -> None:
        """`config`: the settings if they are loaded already. Raises BadConfig."""
        self._folder, self._environment = folder, environment
        self._file = folder / FILE
        self._seen = self._stamp()
        self.problem = ""
        self.config = config or load_config(folder, environment)
        self._started_with = self.config

    def _stamp(self) -> tuple[int, int, int]:
        try:
            status = self._file.stat()
        except OSError:
            return 0, 0, 0
        return status.st_mtime_ns, status.st_size, status.st_ino

    def forgetting(self) -> Rules:
        return self.config.forgetting

    def refresh(self) -> Config | None:
        """Return the settings if the file changed them, else None."""
        stamp = self._stamp()
        if stamp == self._seen:
            return None
        self._seen = stamp
        try:
            config = load_config(self._folder, self._environment)
        except MemdError as error:
            self.problem = f"{error.message} ({error.hint}); memd keeps the previous settings"
            return None
        except OSError as error:
            self.problem = f"{self._file} can't be read: {error.strerror}; memd keeps the previous settings"
            return None
        self.problem = ""
        before, self.config = self.config, config
        return config if config != before else None

    def list(self) -> SettingList:
        """List every setting with the value in force."""
        written = _written(self._file)
        texts, default = _texts(Config), Config()
        settings: list[Setting] = []
        for name in Config.__struct_fields__:
            value = getattr(self._started_with if name in AT_NEXT_START else self.config, name)
            from_environment = f"MEMD_{name.upper()}" in self._environment
            settings.append(
                Setting(
                    name=name,
                    value=toml(value),
                    default=toml(getattr(default, name)),
                    source="environment" if from_environment else "file" if name in written else "default",
                    label=texts[name].label if name in texts else "",
                    about=texts[name].about if name in texts else "",
                    waits=value != getattr(self.config, name),
                    entries={entry: text.about for entry, text in _entries(value)},
                    labels={entry: text.label for entry, text in _entries(value)},
                )
            )
        return SettingList(file=str(self._file), settings=tuple(settings), problem=self.problem)

    def put(self, name: str, value: str | None) -> SettingList:
        """Write or remove (None) a setting; `table.name` names one in a table. Raises BadConfig, StorageFull."""
        import tomlkit

        head, *below = name.split(".")
        known(head)
        if value is not None and f"MEMD_{head.upper()}" in self._environment:
            raise BadConfig(
                f"the variable MEMD_{head.upper()} sets {head}", hint="unset the variable, then restart memd"
            )
        try:
            document: Any = tomlkit.parse(self._file.read_text(encoding="utf-8") if self._file.exists() else "")
        except (ValueError, OSError) as error:
            raise BadConfig(f"{self._file} does not parse: {error}", hint="correct the file by hand first") from error
        values: dict[str, Any] = document.unwrap()
        _change(values, (head, *below), None if value is None else _plain(value))
        try:
            checked = parsed(values, self._file)
        except BadConfig as error:
            raise BadConfig(error.message, hint=f"memd changed nothing; `memd config list` describes {head}") from error
        typed: Any = None
        if value is not None:
            typed = msgspec.to_builtins(getattr(checked, head))
            for part in below:
                typed = typed[part]
        _change(document, (head, *below), typed)
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            replace(self._file, tomlkit.dumps(document).encode())
            self._file.chmod(0o600)
        except OSError as error:
            raise StorageFull(f"{self._file} can't be written: {error.strerror}", hint="free some space") from error
        return self.list()


def _change(values: MutableMapping[str, Any], path: Sequence[str], value: object) -> None:
    """Put a value into nested tables, or remove it (None). Raises BadConfig if a part of the path is not a table."""
    *tables, last = path
    for part in tables:
        below: object = values.setdefault(part, {})
        if not isinstance(below, MutableMapping):
            raise BadConfig(f"{part} is not a table", hint="`memd config list` shows what there is")
        values = cast("MutableMapping[str, Any]", below)
    if value is None:
        values.pop(last, None)
    else:
        values[last] = value


def _plain(value: str) -> object:
    """Parse a typed value as TOML; return the text itself if it is not TOML."""
    with suppress(tomllib.TOMLDecodeError):
        return tomllib.loads(f"value = {value}")["value"]
    return value


def toml(value: object) -> str:
    """Format a value as TOML."""
    value = msgspec.to_builtins(value)
    if isinstance(value, dict):
        rows = cast("dict[str, object]", value).items()
        return f"{{{', '.join(f'{toml(name)} = {toml(item)}' for name, item in rows)}}}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(toml(item) for item in cast('list[object]', value))}]"
    return msgspec.json.encode(value).decode()


def _written(file: Path) -> frozenset[str]:
    try:
        return frozenset(tomllib.loads(file.read_text(encoding="utf-8")))
    except (OSError, ValueError):
        return frozenset()


class SettingText(NamedTuple):
    """A setting's name for people, and what it does."""

    label: str
    about: str


def _entries(value: object) -> Iterable[tuple[str, SettingText]]:
    """Return the entries of a table with their texts, none for any other value."""
    return _texts(type(value)).items() if isinstance(value, msgspec.Struct) else ()


@cache
def _texts(table: type[msgspec.Struct]) -> dict[str, SettingText]:
    """Return the texts of each setting of a class, by its docstring without row ids: the label, an empty line, and what
    it does."""
    import ast
    import inspect
    import textwrap

    (tree,) = ast.parse(textwrap.dedent(inspect.getsource(table))).body
    assert isinstance(tree, ast.ClassDef)
    texts: dict[str, SettingText] = {}
    name = ""
    for part in tree.body:
        if isinstance(part, ast.AnnAssign) and isinstance(part.target, ast.Name):
            name = part.target.id
        elif isinstance(part, ast.Expr) and name:
            label, _, about = str(ast.literal_eval(part.value)).partition("\n\n")
            texts[name] = SettingText(label, _ROW_ID.sub("", " ".join(about.split())))
    return texts


def list_command(places: Places, world: World, arguments: Sequence[str]) -> Mapping[str, object]:
    """List every setting while no daemon runs. Raises BadConfig."""
    return msgspec.to_builtins(Settings(places.config, os.environ).list())


def put_command(places: Places, world: World, arguments: Sequence[str]) -> Mapping[str, object]:
    """Change the file while no daemon runs: `NAME [VALUE]`. Raises InvalidRequest, BadConfig, StorageFull."""
    name, *value = arguments
    from ..core import home_gate  # here: listing the settings needs none of what it imports, 0.15 s

    request = home_gate(places, world).request(PutSetting(name=name, value=value[0] if value else None))
    settings = Settings(places.config, {}, Config())  # an invalid file can still be corrected
    settings.put(request.name, request.value)
    return msgspec.to_builtins(Settings(places.config, os.environ).list())


class SettingsService(Service):
    """Answers `settings` and `put_setting`."""

    name = "settings"

    def __init__(self, settings: Settings, follow: Callable[[], None]) -> None:
        """`follow`: has every service follow the file if it changed."""
        self._settings, self._follow = settings, follow

    @property
    def handlers(self) -> Handlers:
        return {ListSettings: owner("slow", self.list), PutSetting: owner("slow", self.put)}

    def list(self, request: ListSettings) -> SettingList:
        """List every setting in force. Raises BadConfig."""
        self._follow()
        return self._settings.list()

    def put(self, request: PutSetting) -> SettingList:
        """Write a setting into the file and follow it. Raises BadConfig, StorageFull."""
        self._settings.put(request.name, request.value)
        self._follow()
        return self._settings.list()
