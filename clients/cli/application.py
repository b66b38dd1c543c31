"""The Typer group that imports a command's module when the command is named."""

from __future__ import annotations

import importlib
from typing import Any

import typer
from typer.core import TyperGroup
from typer.main import get_command

from .commands import ABOUT, ALIASES, COMMANDS, FIRST_STEPS, help_text


def _built(module_app: typer.Typer, name: str):
    """The command or group of that name, without building the module's other commands.

    A module whose Typer has no entry of that name is a group itself, such as `memd config`.
    """
    for group in module_app.registered_groups:
        if group.name == name and group.typer_instance:
            return get_command(group.typer_instance)
    for command in module_app.registered_commands:
        if name == (command.name or getattr(command.callback, "__name__", "")):
            single = typer.Typer(rich_markup_mode=None, add_completion=False)
            single.registered_commands = [command]
            return get_command(single)
    return get_command(module_app)


class LazyGroup(TyperGroup):
    """A group that imports a command when it is named."""

    def list_commands(self, ctx: Any) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str):
        module = COMMANDS.get(cmd_name) or ALIASES.get(cmd_name)
        return None if module is None else _built(importlib.import_module(f".{module}", __package__).app, cmd_name)

    def get_help(self, ctx: Any) -> str:
        return help_text()


app = typer.Typer(
    cls=LazyGroup,
    name="memd",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help=" ".join(ABOUT.split()),
    epilog=FIRST_STEPS,
)


def _show_version(wanted: bool) -> None:
    if wanted:
        from ... import __version__

        print(f"memd {__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: bool = typer.Option(
        False, "--version", callback=_show_version, is_eager=True, help="Print the version and exit."
    ),
) -> None:
    """Accept the options that precede a command."""
