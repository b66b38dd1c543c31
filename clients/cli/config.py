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
    help="Show or change settings. A running daemon applies most changes at once.",
    epilog="Example: `memd config set idle_s 60`. MEMD_IDLE_S=60 in memd's environment takes precedence.",
)


Name = Annotated[str, typer.Argument(help="The setting's name.")]


@app.command("list")
def list_settings(as_json: JsonFlag = False) -> None:
    """List all settings with value, default, origin and purpose.

    \b
    Examples:
      memd config list
      memd config list --json | jq '.data.settings[] | select(.source != "default")'
    """
    with CommandAnswer("config list", as_json) as answer:
        settings = _settings(answer)
        lines = [line for setting in settings.settings for line in _lines(setting)]
        answer.give(settings, [*lines, styled(settings.file, "dim")])


@app.command()
def get(name: Name, as_json: JsonFlag = False) -> None:
    """Show the value of one setting, in TOML.

    \b
    Example:
      memd config get idle_s
    """
    with CommandAnswer("config get", as_json) as answer:
        setting = _named(_settings(answer), name)
        answer.give(setting, [setting.value])


@app.command("set", context_settings={"ignore_unknown_options": True})  # so that a value can be -3
def put(
    name: Name,
    value: Annotated[str, typer.Argument(help="TOML or plain text; separate folders by colons.")],
    as_json: JsonFlag = False,
) -> None:
    """Change a setting in memd.toml and in the running daemon. Comments in the file stay.

    \b
    Examples:
      memd config set idle_s 60
      memd config set ignored_folders '~/private:*/secret-*'
      memd config set forgetting.capacity 50000
      memd config set hook.recall off
    """
    with CommandAnswer("config set", as_json) as answer:
        if value.startswith("--"):
            raise InvalidRequest(f"no such option: {value}", hint="see `memd config set --help`")
        _put(answer, name, value)


@app.command()
def unset(name: Name, as_json: JsonFlag = False) -> None:
    """Remove a setting from memd.toml, so that its default applies again.

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
            settings = client.put_setting(name, value)
    except DaemonDown:
        running = False
        settings = reported(offline("put-setting", name, *([] if value is None else [value])), SettingList)
    setting = _named(settings, name)
    when = "; takes effect at the next start: `memd down; memd up`" if setting.waits and running else ""
    answer.give(setting, [f"{name} = {setting.value}{when}"])


def _settings(answer: CommandAnswer) -> SettingList:
    """The settings of the daemon, or those that it would start with; warns of a problem in the file."""
    running = True
    try:
        with reach() as client:
            settings = client.settings()
    except DaemonDown:
        running = False
        settings = reported(offline("settings"), SettingList)
    if settings.problem:
        answer.warn(plain(settings.problem))
    if not running:
        answer.warn("the daemon is not running; it would start with these settings")
    return settings


def _named(settings: SettingList, name: str) -> Setting:
    """The setting of that name, or the entry `table.name` of a table. Raises InvalidRequest."""
    import tomllib

    head, *below = name.split(".")
    setting = next((setting for setting in settings.settings if setting.name == head), None)
    if setting is None:
        import difflib

        near = difflib.get_close_matches(name, [setting.name for setting in settings.settings], 1)
        hint = f"did you mean {near[0]!r}?" if near else "`memd config list` lists them"
        raise InvalidRequest(f"no setting {name!r}", hint=hint)
    if not below:
        return setting
    try:
        tables = (tomllib.loads(f"at = {text}")["at"] for text in (setting.value, setting.default))
        value, default = (_entry(table, below) for table in tables)
    except (KeyError, TypeError) as error:
        raise InvalidRequest(f"no setting {name!r}", hint=f"`memd config get {head}` shows the table") from error
    return msgspec.structs.replace(setting, name=name, value=value, default=default)


def _entry(value: Any, path: Sequence[str]) -> str:
    for part in path:
        value = value[part]
    return msgspec.json.encode(value).decode()


def _lines(setting: Setting) -> Iterator[str]:
    origin = "" if setting.source == "default" else f"  ({setting.source}; default {plain(setting.default)})"
    waits = "  takes effect at the next start" if setting.waits else ""
    yield f"{styled(setting.name, 'cyan')} = {plain(setting.value)}{styled(origin + waits, 'yellow')}"
    yield from (styled(line, "dim") for line in wrapped(setting.about, "  ", "  "))
