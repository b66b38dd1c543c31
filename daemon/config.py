"""Settings: one frozen struct; defaults, then `memd.toml`, then `MEMD_*` from the environment.

Comes in: the config folder and the environment. Goes out: `Config`. Invariant: a setting that does not exist is an
error that names the nearest one, never a silent no-op.
"""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta

from ..protocol.errors import BadConfig
from .forgetting_rules import Rules

FILE = "memd.toml"
NOT_SETTINGS = frozenset(
    "MEMD_HOME MEMD_BENCH MEMD_LOG MEMD_FAIL MEMD_DISABLED MEMD_PASS MEMD_SHELL_IGNORE MEMD_SHELL_KEY".split()
)


Seconds = Annotated[float, Meta(ge=0.01, le=10_000_000)]
Size = Annotated[float, Meta(ge=0, le=1e12)]
Count = Annotated[int, Meta(ge=0)]
Positive = Annotated[int, Meta(ge=1, le=10_000)]


class Keep(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How long a pool's captures stay: so many days, and at most so many megabytes; 0 means no limit."""

    days: float = 365.0
    mb: float = 2000.0


class Config(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Every setting with its default. Times in seconds unless the name says otherwise."""

    idle_s: Seconds = 20.0
    """Captures are distilled once none has come for this long (W2)."""
    session_idle_min: Seconds = 30.0
    """A live session without captures for this long counts as ended (W2)."""
    worker_idle_s: Seconds = 30.0
    """The worker process ends after this long without work (P-1)."""
    worker_threads: Positive = 1
    """Threads of the model in the worker (P-2)."""
    batch_captures: Positive = 64
    """Captures distilled, judged and committed together."""
    keyword_commit_s: Seconds = 1.0
    """At most this long a new record waits in the tail before the keyword index holds it."""
    relevance_floor: Annotated[float, Meta(ge=0, le=1)] = 0.22
    """Recall abstains below this relevance (P-23)."""
    simple_below_sessions: Count = 150
    """Below this many sessions in reach, recall also searches what was said, word for word (Q4)."""
    spool_s: Seconds = 2.0
    """How often the daemon looks into the spool folder for what clients left there (W10)."""
    log_bytes: Count = 5_000_000
    """The daemon's log file rotates at this size."""
    ballast_mb: Size = 8.0
    """Megabytes held back on the disk, so that a full one leaves room to forget and to stop; 0 = none."""
    upkeep_s: Seconds = 600.0
    """How often the daemon looks whether a backup or the archive's retention is due."""
    backup_every_h: Size = 24.0
    """A backup is made when the newest is older than this and something changed since; 0 = never by itself."""
    backup_keep: Count = 7
    """The newest so many backups stay in memd's own folder."""
    archive_keep_days: Size = 365.0
    """Raw captures that no record rests on are removed after so many days; 0 = never."""
    archive_keep_mb: Size = 2000.0
    """Megabytes of raw captures a pool; past it the oldest that no record rests on are removed; 0 = no limit."""
    archive_keep_by_pool: dict[str, Keep] = {}
    """Other limits for single pools, as tables `[archive_keep_by_pool."personal"]` with `days` and `mb`."""

    forgetting: Rules = Rules()
    """Strength, sleep and review, as a table `[forgetting]`: see `lifecycle/rules.py`. In the environment it is inline:
    `MEMD_FORGETTING='{floor = 0.2}'`."""
    tag_boost: dict[str, Annotated[float, Meta(ge=0, le=10)]] = msgspec.field(
        default_factory=lambda: {"workflow": 2.0, "architecture": 1.5}
    )
    """How much more a record with this tag counts when a profile or a context package is put together (Q11)."""

    ignored_folders: tuple[Annotated[str, Meta(min_length=1)], ...] = ()
    """Nothing is captured of these folders and all below: globs, `~` is the home; a bare name is a folder's anywhere.
    In the environment they are separated by colons."""


def load_config(folder: Path, environment: Mapping[str, str]) -> Config:
    """The configuration in force. Raises BadConfig, naming the nearest known setting."""
    values: dict[str, object] = {}
    file = folder / FILE
    if file.exists():
        try:
            values.update(tomllib.loads(file.read_text(encoding="utf-8")))
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise BadConfig(f"{file.name} does not parse: {error}", hint=f"mend {file}") from error
    for name, text in environment.items():
        if name.startswith("MEMD_") and name not in NOT_SETTINGS:
            values[name.removeprefix("MEMD_").lower()] = text
    return parsed(values, file)


def parsed(values: Mapping[str, object], file: Path) -> Config:
    """The settings of these values. Raises BadConfig."""
    values = dict(values)
    if isinstance(listed := values.get("ignored_folders"), str):
        values["ignored_folders"] = [each for each in listed.split(":") if each]
    if isinstance(table := values.get("forgetting"), str):
        values["forgetting"] = _table(table, file)
    for name in values:
        known(name)
    try:
        return msgspec.convert(values, Config, strict=False)
    except msgspec.ValidationError as error:
        what, _, where = str(error).replace("`", "").rpartition(" - at $.")
        said = f"{where}: {what[:1].lower()}{what[1:]}" if what else str(error)
        raise BadConfig(f"a setting has a wrong value: {said}", hint=f"mend {file} or the MEMD_ variable") from error


def _table(text: str, file: Path) -> object:
    """A table as it stands in the environment: inline, such as `{floor = 0.2}`. Raises BadConfig."""
    try:
        return tomllib.loads(f"table = {text}")["table"]
    except tomllib.TOMLDecodeError as error:
        raise BadConfig(f"{text!r} is no inline table: {error}", hint=f"mend {file} or the MEMD_ variable") from error


def known(name: str) -> None:
    """Raises BadConfig for a setting that does not exist, naming the nearest."""
    names = Config.__struct_fields__
    if name not in names:
        near = difflib.get_close_matches(name, names, n=1)
        raise BadConfig(
            f"no setting {name!r}", hint=f"did you mean {near[0]!r}?" if near else f"there are: {', '.join(names)}"
        )
