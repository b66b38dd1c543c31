"""`memd man` prints the manual page, generated from the command tree."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import typer

from ... import __version__
from ...protocol.errors import MemdError

app = typer.Typer(rich_markup_mode=None, add_completion=False)


FILES = (
    ("$MEMD_HOME", "one folder for all data; else memd uses the XDG folders, by default below ~/.local"),
    ("memd.toml", "settings, in the configuration folder; see \\fBmemd config list\\fR"),
    ("memd.log", "the daemon's log, in the state folder; see \\fBmemd logs\\fR"),
)


@app.command()
def man() -> None:
    """Print the manual page.

    \b
    Examples:
      memd man | man -l -
      mkdir -p ~/.local/share/man/man1; memd man > ~/.local/share/man/man1/memd.1
    """
    sys.stdout.write("\n".join(_page()) + "\n")


def _page() -> Iterator[str]:
    from typer.main import get_command

    from .application import app as application

    root: Any = get_command(application)
    yield f'.TH MEMD 1 "" "memd {__version__}" "User Commands"'
    yield ".SH NAME\nmemd \\- one memory for every AI tool on this machine"
    yield ".SH SYNOPSIS\n.B memd\n.I COMMAND\n[\\fIOPTIONS\\fR] [\\fIARGUMENTS\\fR]"
    yield f".SH DESCRIPTION\n{_text(root.help)}\n.PP\n{_text(root.epilog)}"
    yield ".SH COMMANDS"
    context = root.make_context("memd", [], resilient_parsing=True)
    for name in root.list_commands(context):
        yield from _command(root.get_command(context, name), name)
    yield ".SH FILES"
    for path, about in FILES:
        yield f".TP\n.I {path}\n{about}"
    yield '.SH "EXIT STATUS"'
    for code, names in _exit_codes():
        yield f".TP\n.B {code}\n{names}"


def _command(command: Any, name: str) -> Iterator[str]:
    if inner := getattr(command, "commands", None):
        yield f'.SS "{name}"\n{_help(command.help or "")}'
        for subcommand in inner:
            yield from _command(inner[subcommand], f"{name} {subcommand}")
        return
    words, options = [f"\\fBmemd {name}\\fR"], list[str]()
    for parameter in command.params:
        if parameter.name == "help" or getattr(parameter, "hidden", False):
            continue
        if parameter.param_type_name == "argument":
            shown = f"\\fI{parameter.human_readable_name.upper()}\\fR"
            words.append(shown if parameter.required else f"[{shown}]")
        else:
            options.append(f".TP\n\\fB{_text(', '.join(parameter.opts))}\\fR\n{_text(parameter.help or '')}")
    yield f'.SS "{name}"\n{" ".join(words)}{" [OPTIONS]" if options else ""}\n.PP\n{_help(command.help or "")}'
    yield from options


def _help(text: str) -> str:
    """A command's help: paragraphs, then the examples that follow `\\b`, unchanged."""
    about, _, examples = text.partition("\b")
    shown = "\n.PP\n".join(_text(" ".join(part.split())) for part in about.strip().split("\n\n"))
    if examples.strip():
        shown += (
            "\n.PP\n.nf\n" + "\n".join(_text(line.rstrip()) for line in examples.strip("\n").splitlines()) + "\n.fi"
        )
    return shown


def _text(text: str | None) -> str:
    """Text escaped for roff."""
    escaped = (text or "").replace("\\", "\\e").replace("-", "\\-")
    return "\n".join("\\&" + line if line.startswith((".", "'")) else line for line in escaped.splitlines())


def _exit_codes() -> Iterator[tuple[int, str]]:
    names: dict[int, list[str]] = {0: ["done"]}
    pending: list[type[MemdError]] = [MemdError]
    while pending:
        kind = pending.pop(0)
        names.setdefault(kind.exit_code, []).append(kind.code.replace("_", " "))
        pending.extend(kind.__subclasses__())
    yield from ((code, ", ".join(names[code])) for code in sorted(names))
