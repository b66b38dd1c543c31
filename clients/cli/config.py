"""`memd config` reads and changes settings, with and without a running daemon."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Any

import msgspec
import typer

from ...protocol.errors import DaemonDown, InvalidRequest
from ...protocol.settings import Setting, SettingList
from .connection import offline, reach, reported
from .output import CommandAnswer, JsonFlag, plain, styled, wrapped

app = typer.Typer(
    rich_markup_mode=None,
    add_completion=False,
    help="The settings: list, get, set, unset. A running daemon follows at once.",
    epilog="Example: `memd config set idle_s 60`. MEMD_IDLE_S=60 in memd's environment counts first.",
)


Name = Annotated[str, typer.Argument(help="The setting's name.")]


@app.command("list")
def list_settings(as_json: JsonFlag = False) -> None:
    """Show every setting: its value, its default, where the value comes from, what it is for.

    \b
    Examples:
      memd config list
      memd config list --json | jq '.data.settings[] | select(.source != "default")'
    """
    with CommandAnswer("config list", as_json) as answer:
        found, running = _settings()
        _warn(answer, found, running)
        answer.give(found, [line for each in found.settings for line in _lines(each)] + [styled(found.file, "dim")])


@app.command()
def get(name: Name, as_json: JsonFlag = False) -> None:
    """Show one setting's value, as it would stand in the file.

    \b
    Example:
      memd config get idle_s
    """
    with CommandAnswer("config get", as_json) as answer:
        found, running = _settings()
        _warn(answer, found, running)
        one = _one(found, name)
        answer.give(one, [one.value])


@app.command("set")
def put(
    name: Name,
    value: Annotated[str, typer.Argument(help="TOML, or plain text; folders are separated by colons.")],
    as_json: JsonFlag = False,
) -> None:
    """Change a setting, in memd.toml and in the daemon that runs. Comments in the file stay.

    \b
    Examples:
      memd config set idle_s 60
      memd config set ignored_folders '~/private:*/secret-*'
      memd config set forgetting.capacity 50000
    """
    with CommandAnswer("config set", as_json) as answer:
        _put(answer, name, value)


@app.command()
def unset(name: Name, as_json: JsonFlag = False) -> None:
    """Take a setting out of memd.toml: its default counts again.

    \b
    Example:
      memd config unset idle_s
    """
    with CommandAnswer("config unset", as_json) as answer:
        _put(answer, name, None)


def _put(answer: CommandAnswer, name: str, value: str | None) -> None:
    running = True
    try:
        with reach() as client:
            found = client.put_setting(name, value)
    except DaemonDown:
        running = False
        found = reported(offline("put-setting", name, *([] if value is None else [value])), SettingList)
    one = _one(found, name)
    when = "; counts from memd's next start: `memd down; memd up`" if one.waits and running else ""
    answer.give(one, [f"{name} = {one.value}{when}"])


def _settings() -> tuple[SettingList, bool]:
    try:
        with reach() as client:
            return client.settings(), True
    except DaemonDown:
        return reported(offline("settings"), SettingList), False


def _warn(answer: CommandAnswer, found: SettingList, running: bool) -> None:
    if found.problem:
        answer.warn(plain(found.problem))
    if not running:
        answer.warn("the daemon is not running: these are the settings it would start with")


def _one(found: SettingList, name: str) -> Setting:
    """The setting of that name; one of a table is named `table.name`."""
    import tomllib

    head, *below = name.split(".")
    one = next((each for each in found.settings if each.name == head), None)
    if one is None:
        import difflib

        near = difflib.get_close_matches(name, [each.name for each in found.settings], 1)
        hint = f"did you mean {near[0]!r}?" if near else "`memd config list` shows them all"
        raise InvalidRequest(f"no setting {name!r}", hint=hint)
    if not below:
        return one
    try:
        value, default = (_walk(tomllib.loads(f"at = {each}")["at"], below) for each in (one.value, one.default))
    except (KeyError, TypeError) as error:
        raise InvalidRequest(f"no setting {name!r}", hint=f"`memd config get {head}` shows the table") from error
    return msgspec.structs.replace(one, name=name, value=value, default=default)


def _walk(value: Any, path: Sequence[str]) -> str:
    for part in path:
        value = value[part]
    return msgspec.json.encode(value).decode()


def _lines(each: Setting) -> Iterator[str]:
    origin = "" if each.source == "default" else f"  ({each.source}; default {plain(each.default)})"
    waits = "  counts from the next start" if each.waits else ""
    yield f"{styled(each.name, 'cyan')} = {plain(each.value)}{styled(origin + waits, 'yellow')}"
    yield from (styled(line, "dim") for line in wrapped(each.about, "  ", "  "))
