"""Settings: defaults, then `memd.toml`, then `MEMD_*` from the environment. An unknown setting is an error."""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, inspect

from ..protocol.errors import BadConfig
from .forgetting_rules import Rules

FILE = "memd.toml"
NOT_SETTINGS = frozenset(
    "MEMD_HOME MEMD_BENCH MEMD_BENCH_MODELS MEMD_LOG MEMD_FAIL MEMD_DISABLED MEMD_PASS MEMD_SESSION MEMD_SHELL_IGNORE"
    " MEMD_SHELL_KEY".split()
)


Seconds = Annotated[float, Meta(ge=0.01, le=10_000_000)]
Size = Annotated[float, Meta(ge=0, le=1e12)]
Count = Annotated[int, Meta(ge=0)]
Positive = Annotated[int, Meta(ge=1, le=10_000)]


class Keep(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Limits for a pool's captures in days and megabytes; 0 means no limit."""

    days: float = 365.0
    mb: float = 2000.0


class HookRules(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a hook gives to an agent beside the profile."""

    recall: Literal["on", "off"] = "on"
    """Memories with each prompt

    Whether memd adds at most three memories that concern a prompt to it (Q13).
    """


class RemoteRules(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The limits of a remote model, which is off unless `memd remote use` chose one (W4)."""

    daily_tokens: Annotated[int, Meta(ge=0, le=1_000_000_000)] = 200_000
    """Tokens a day

    Tokens a local day, sent and answered; 0 = none.
    """
    every_s: Annotated[float, Meta(ge=0.05, le=86_400)] = 60.0
    """How often memd looks for a session to send

    Seconds between two looks for a session to send.
    """
    deadline_s: Annotated[float, Meta(ge=0.1, le=600)] = 60.0
    """Longest wait for an answer

    Seconds that an answer may take.
    """
    ca_file: str = ""
    """Certificates that memd trusts

    A file with the certificates, in PEM, of the authorities that memd trusts for a server's certificate; "" = the
    usual ones.
    """


class Config(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Every setting with its default. Times in seconds unless the name says otherwise."""

    idle_s: Seconds = 20.0
    """Quiet time before memd reads a session

    memd distils captures after this many seconds without a new one.
    """
    session_idle_min: Seconds = 30.0
    """Quiet time that ends a session

    memd ends a live session after this many minutes without a capture.
    """
    worker_idle_s: Seconds = 30.0
    """How long the model stays in memory

    The worker process ends after this many seconds without work.
    """
    worker_threads: Positive = 1
    """Threads of the model

    Threads that the model uses in the worker process.
    """
    batch_captures: Positive = 64
    """Captures read at once

    Captures that memd distils and commits as one batch.
    """
    keyword_commit_s: Seconds = 1.0
    """Delay of the search by words

    Longest time, in seconds, until memd commits a new memory to the keyword index.
    """
    relevance_floor: Annotated[float, Meta(ge=0, le=1)] = 0.28
    """How well a memory must fit a question

    Recall abstains if the best memory's relevance is lower than this.
    """
    simple_below_sessions: Count = 1_000
    """When recall searches whole sessions too

    Recall also searches the raw captures if the question covers fewer sessions than this. Up to the 32 sessions that
    `memd bench read/crossover` has, memories alone never find as much; 1,000 sessions take 2 ms.
    """
    spool_s: Seconds = 2.0
    """How often memd looks for waiting captures

    Seconds between the daemon's checks of the spool folder.
    """
    log_bytes: Count = 5_000_000
    """Size of the log file

    Size in bytes at which memd rotates its log file.
    """
    ballast_mb: Size = 8.0
    """Space reserved for a full disk

    Megabytes that memd reserves so that it can still forget and stop on a full disk; 0 = none.
    """
    upkeep_s: Seconds = 600.0
    """How often memd looks after its files

    Seconds between checks whether a backup or the archive's retention is due.
    """
    backup_every_h: Size = 24.0
    """Time between backups

    Hours after which memd makes a new backup if something changed; 0 = no automatic backup.
    """
    backup_keep: Count = 7
    """Backups kept

    Number of backups that memd keeps in its own folder.
    """
    archive_keep_days: Size = 365.0
    """How long raw captures are kept

    Days after which memd removes raw captures that no memory cites; 0 = never.
    """
    archive_keep_mb: Size = 2000.0
    """Space for raw captures

    Megabytes of raw captures per pool; above it memd removes the oldest that no memory cites; 0 = no limit.
    """
    archive_keep_tool_output: Annotated[int, Meta(ge=0, le=100_000)] = 0
    """How much of a tool's output is kept

    Characters of each tool's output that memd keeps in a session's transcript; 0 = none. memd learns nothing from
    it, and `memd forget` reaches it.
    """
    archive_keep_by_pool: dict[str, Keep] = {}
    """Limits of single pools

    Archive limits for single pools, as tables `[archive_keep_by_pool."personal"]` with `days` and `mb`.
    """

    forgetting: Rules = Rules()
    """Rules of forgetting

    Strength, sleep and review, as the table `[forgetting]`. In the environment, write it inline:
    `MEMD_FORGETTING='{floor = 0.2}'`.
    """
    hook: HookRules = HookRules()
    """What hooks give to agents

    The hooks of agents, as the table `[hook]`. `recall = "on"` adds to a prompt at most three memories that concern
    it; "off" leaves the profile alone. In the environment, write it inline: `MEMD_HOOK='{recall = "off"}'`.
    """
    remote: RemoteRules = RemoteRules()
    """Limits of the remote model

    A remote model that reads ended sessions, as the table `[remote]`: `daily_tokens`, `every_s` between two looks
    for a session, `deadline_s` of an answer, `ca_file` with the authority of a server's certificate. In the
    environment, write it inline: `MEMD_REMOTE='{daily_tokens = 50000}'`.
    """
    tag_boost: dict[str, Annotated[float, Meta(ge=0, le=10)]] = msgspec.field(
        default_factory=lambda: {"workflow": 2.0, "architecture": 1.5}
    )
    """Tags that count more

    Factor by which a tag raises a memory's weight in the profile and the context package.
    """

    own_addresses: tuple[Annotated[str, Meta(min_length=3)], ...] = ()
    """Your mail addresses in commits

    Your mail addresses in commits, beside git's `user.email`: memd takes other commits for other people's words. In
    the environment, separate them with colons.
    """

    ignored_folders: tuple[Annotated[str, Meta(min_length=1)], ...] = ()
    """Folders that memd ignores

    Folders (with subfolders) from which memd captures nothing: glob patterns; `~` is your home folder; a bare name
    matches a folder anywhere. In the environment, separate them with colons.
    """


def load_config(folder: Path, environment: Mapping[str, str]) -> Config:
    """Return the current settings. Raises BadConfig, naming the nearest known setting."""
    values: dict[str, object] = {}
    file = folder / FILE
    if file.exists():
        try:
            values.update(tomllib.loads(file.read_text(encoding="utf-8")))
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise BadConfig(f"{file.name} does not parse: {error}", hint=f"correct {file}") from error
    for name, text in environment.items():
        if name.startswith("MEMD_") and name not in NOT_SETTINGS:
            values[name.removeprefix("MEMD_").lower()] = text
    return parsed(values, file)


def parsed(values: Mapping[str, object], file: Path) -> Config:
    """Convert values to settings. Raises BadConfig."""
    values = dict(values)
    for name in ("ignored_folders", "own_addresses"):
        if isinstance(listed := values.get(name), str):
            values[name] = list(filter(None, listed.split(":")))
    for name in ("forgetting", "hook", "remote"):
        if isinstance(table := values.get(name), str):
            values[name] = _table(table, file)
    for name in values:
        known(name)
    try:
        return msgspec.convert(values, Config, strict=False)
    except msgspec.ValidationError as error:
        problem, _, path = str(error).replace("`", "").rpartition(" - at $.")
        reason = f"{path} must be {wanted}" if (wanted := _wanted(path)) else f"{path}: {problem}"
        raise BadConfig(reason, hint=f"correct {file} or the MEMD_ variable") from error


def _wanted(path: str) -> str:
    """Return what the setting at a path such as `tag_boost[...]` or `forgetting.floor` takes; "" for a table."""
    field: Any = inspect.type_info(Config)
    for part in re.findall(r"\[[^]]*\]|[^.\[]+", path):
        if isinstance(field, inspect.StructType):
            field = next((named.type for named in field.fields if named.name == part), None)
        else:
            field = getattr(field, "value_type", None) or getattr(field, "item_type", None)
    match field:
        case inspect.FloatType() | inspect.IntType():
            noun = "a number" if isinstance(field, inspect.FloatType) else "a whole number"
            bounds = (("at least", field.ge), ("above", field.gt), ("at most", field.le))
            limits = " and ".join(f"{word} {bound:,.15g}" for word, bound in bounds if bound is not None)
            return f"{noun}, {limits}" if limits else noun
        case inspect.BoolType():
            return "true or false"
        case inspect.LiteralType():
            return " or ".join(map(str, field.values))
        case inspect.StrType():
            return "a text that is not empty" if field.min_length else "a text"
        case inspect.VarTupleType() | inspect.ListType():
            return f"a list of {field.min_length} values" if field.min_length else "a list"
        case _:
            return ""


def _table(text: str, file: Path) -> object:
    """Parse an inline table, such as `{floor = 0.2}`. Raises BadConfig."""
    try:
        return tomllib.loads(f"table = {text}")["table"]
    except tomllib.TOMLDecodeError as error:
        raise BadConfig(
            f"{text!r} is not an inline TOML table: {error}", hint=f"correct {file} or the MEMD_ variable"
        ) from error


def known(name: str) -> None:
    """Raise BadConfig for an unknown setting, naming the nearest."""
    names = Config.__struct_fields__
    if name not in names:
        near = difflib.get_close_matches(name, names, n=1)
        raise BadConfig(
            f"unknown setting {name!r}", hint=f"did you mean {near[0]!r}?" if near else f"there are: {', '.join(names)}"
        )
