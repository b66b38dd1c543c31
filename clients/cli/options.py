"""Option types and parsers that several commands share."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Annotated

import typer

from ...protocol.errors import InvalidRequest

_DAY = re.compile(r"\d{4}-\d\d-\d\d")
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
_SPAN = re.compile(r"(?:\d+(?:\.\d+)?[smhdw])+")
_LONGEST_S = 1e9
_SHOWN = 200

AsOf = Annotated[str, typer.Option("--as-of", help="Records true at that time: a day, or RFC 3339 with an offset.")]
BelievedAt = Annotated[str, typer.Option("--believed-at", help="Records known at that time: a day, or RFC 3339.")]
Cwd = Annotated[str | None, typer.Option(help="The project's folder, if not the current one.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only show what would change.")]
Id = Annotated[str, typer.Argument(help="The record's id, or a unique prefix.")]
Pools = Annotated[list[str] | None, typer.Option("--pool", help="Only this pool; repeatable.")]


def path(name: str) -> Path:
    """A file or a folder; the `parser` of every option that takes one.

    Raises typer.BadParameter for "", since an unset shell variable must not mean the current folder, and for what the
    system takes for no path, such as a name that is too long.
    """
    if not name:
        raise typer.BadParameter("it is empty; write . for the current folder")
    try:
        os.lstat(name)
    except (FileNotFoundError, NotADirectoryError):
        pass  # a command may make it
    except OSError as error:
        raise typer.BadParameter(f"{name[:_SHOWN]}: {error.strerror}") from error
    return Path(name)


def here(cwd: str | None) -> str:
    """The absolute path of the project's folder, by default the current one. Raises InvalidRequest for ""."""
    if cwd == "":
        raise InvalidRequest("the folder's name is empty", hint="name a folder; the current one is .")
    return os.path.abspath(cwd) if cwd is not None else os.getcwd()


def instant(text: str) -> str:
    """A time as the protocol takes it; a bare day means its start in the local zone. Raises InvalidRequest."""
    from datetime import datetime

    try:
        time = datetime.fromisoformat(text) if text else None
        return text if time is None or not _DAY.fullmatch(text) else time.astimezone().isoformat()
    except (ValueError, OverflowError) as error:
        hint = "write a day, 2026-03-04, or a time with its offset, 2026-03-04T18:30:00+01:00"
        raise InvalidRequest(f"{text!r} is not a time", hint=hint) from error


def seconds(text: str) -> float:
    """The seconds of `90s`, `2h`, `1h30m`; 0 for "". Raises InvalidRequest."""
    if not text:
        return 0
    total = 0.0
    if _SPAN.fullmatch(text):
        total = sum(float(part[:-1]) * _UNITS[part[-1]] for part in re.findall(r"[\d.]+[smhdw]", text))
    if not 1 <= total <= _LONGEST_S:
        raise InvalidRequest(f"{text!r} is not a duration", hint="write it like 90s, 30m, 2h, 1h30m, 3d or 8w")
    return total
