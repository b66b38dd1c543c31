"""The Typer group that imports a command's module when the command is named."""

from __future__ import annotations

import importlib
from typing import Any

import typer
from typer.core import TyperGroup
from typer.main import get_command

from .commands import ABOUT, ALIASES, COMMANDS, FIRST_STEPS, help_text


class LazyGroup(TyperGroup):
    """A group that imports a command when it is named."""

    def list_commands(self, ctx: Any) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str):
        module = COMMANDS.get(cmd_name) or ALIASES.get(cmd_name)
        if module is None:
            return None
        command = get_command(importlib.import_module(f".{module}", __package__).app)
        return command.commands.get(cmd_name, command) if isinstance(command, TyperGroup) else command

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
