"""`memd mcp`, `plugin`, `completion`, `shell`, `spool`: how other programs load or start memd; and `memd man`."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from typing import Annotated, Any, Literal

import msgspec
import typer

from ... import __version__
from ...protocol.errors import MemdError, StoreError
from .output import CommandAnswer, JsonFlag

app = typer.Typer(rich_markup_mode=None, add_completion=False)
shell_app = typer.Typer(
    rich_markup_mode=None,
    add_completion=False,
    help="Let bash, zsh or fish report the commands you run. memd stores command, exit status, duration and folder.",
    epilog="A command that starts with a space is never reported, nor one that matches MEMD_SHELL_IGNORE='ls*:cd*'.",
)
app.add_typer(shell_app, name="shell")


TOOLS_ON_REQUEST = ("ingest", "rank", "reflect", "skills")
"""Tools of the MCP server beyond those that every host gets; a test compares them with the server's."""


class Plugin(msgspec.Struct, frozen=True, kw_only=True):
    """Of `plugin`. `file`: what the editor installs, "" where it takes the folder."""

    folder: str
    file: str = ""


@app.command()
def mcp(
    read_only: Annotated[bool, typer.Option("--read-only", help="Offer only tools that change nothing.")] = False,
    tools: Annotated[
        list[str] | None, typer.Option("--tools", help="Offer this too: ingest, rank, reflect, skills; repeatable.")
    ] = None,
) -> None:
    """Serve memory to an MCP host over standard input and output. The host starts this command.

    \b
    Example, in a host's configuration:
      {"mcpServers": {"memd": {"command": "memd", "args": ["mcp"]}}}
      {"mcpServers": {"memd": {"command": "memd", "args": ["mcp", "--tools", "ingest"]}}}
    """
    unknown = [name for name in tools or () if name not in TOOLS_ON_REQUEST]
    if unknown:
        raise typer.BadParameter(f"there is no tool {unknown[0]!r}; there is {', '.join(TOOLS_ON_REQUEST)}")
    # It replaces this process, so that the host holds a small one.
    options = [*(["--read-only"] if read_only else []), *(part for name in tools or () for part in ("--tools", name))]
    command = [sys.executable, "-P", "-m", "memd.clients.mcp", *options]
    os.execv(command[0], command)


@app.command()
def plugin(
    program: Annotated[Literal["nvim", "emacs", "node", "vscode"], typer.Argument(help="nvim, emacs, node or vscode.")],
    as_json: JsonFlag = False,
) -> None:
    """Print the place of a plugin: Neovim, Emacs, VS Code, Node.

    For VS Code, memd writes the extension's file into its state folder and prints its path.

    \b
    Examples:
      code --install-extension "$(memd plugin vscode)"
      mkdir -p ~/.local/share/nvim/site/pack/memd/start
      ln -s "$(memd plugin nvim)" ~/.local/share/nvim/site/pack/memd/start/memd
      echo "(add-to-list 'load-path \"$(memd plugin emacs)\") (require 'memd)" >> ~/.emacs
      npm install "$(memd plugin node)"
    """
    from .. import emacs, node, nvim, vscode

    folders = {"nvim": nvim.FOLDER, "emacs": emacs.FOLDER, "node": node.FOLDER, "vscode": vscode.FOLDER}
    with CommandAnswer("plugin", as_json) as answer:
        folder, file = str(folders[program]), _vsix() if program == "vscode" else ""
        answer.give(Plugin(folder=folder, file=file), [file or folder])


def _vsix() -> str:
    """Write the extension for VS Code and the path of this program, which it starts; return the extension's path.
    Raises MemdError."""
    from ..python.client import places_here
    from ..python.folder import make_private
    from ..service import program
    from ..vscode.vsix_file import write_vsix

    folder = places_here().state / "vscode"
    try:
        make_private(folder)
        command = program()
        if len(command) == 1:  # else there is no script `memd`
            (folder / "program").write_text(command[0] + "\n", encoding="utf-8")
        return str(write_vsix(folder))
    except OSError as error:
        raise StoreError(f"{folder}: {error.strerror}", hint="free some space, or see the folder's mode") from error


class Spooled(msgspec.Struct, frozen=True, kw_only=True):
    """Of `spool`: the requests that were stored."""

    requests: int


@app.command()
def spool(
    file: Annotated[str, typer.Argument(help="A file NAME-PID-START.lines in the spool folder.", metavar="<file>")],
    command_limit: Annotated[int, typer.Option(help="Cut longer shell commands to this many characters.", min=0)] = 0,
    as_json: JsonFlag = False,
) -> None:
    """Store captures without secrets until the daemon reads them.

    For clients that can't reach the daemon. Each line on standard input is a request `capture` or `remember` in JSON.

    \b
    Example:
      my-tool --as-captures | memd spool ~/.local/state/memd/spool/tool-$$-0.lines
    """
    from pathlib import Path

    from ..python.spool_writer import append_lines

    with CommandAnswer("spool", as_json) as answer:
        answer.give(Spooled(requests=append_lines(Path(file), sys.stdin.buffer.read(), command_limit)))


@app.command()
def completion(shell: Annotated[Literal["bash", "zsh", "fish"], typer.Argument(help="bash, zsh or fish.")]) -> None:
    """Print shell completion code.

    \b
    Examples:
      source <(memd completion bash)       # in ~/.bashrc
      memd completion zsh > ~/.zfunc/_memd    # ~/.zfunc must be in your fpath
      memd completion fish | source        # in ~/.config/fish/config.fish
    """
    from typer._completion_shared import get_completion_script

    sys.stdout.write(get_completion_script(prog_name="memd", complete_var="_MEMD_COMPLETE", shell=shell) + "\n")


@shell_app.callback()
def shell() -> None:
    """Make `init` a subcommand, although it is the only one."""


@shell_app.command()
def init(
    shell: Annotated[
        Literal["bash", "zsh", "fish"], typer.Argument(help="bash (5 or later), zsh or fish (3.6 or later).")
    ],
) -> None:
    """Print the code that the shell must load. Ctrl-X k searches memory for the text you typed.

    MEMD_SHELL_KEY changes that key. `memd setup shell` does the whole job, and a new shell starts faster with it.

    \b
    Examples:
      echo 'source <(memd shell init bash)' >> ~/.bashrc
      echo 'source <(memd shell init zsh)' >> ~/.zshrc
      echo 'memd shell init fish | source' >> ~/.config/fish/config.fish
      memd shell init zsh > ~/.memd.zsh    # loading this file is faster
    """
    from ..python.client import places_here
    from ..python.folder import make_private
    from ..service import program
    from ..shell import script

    places = places_here()
    make_private(places.spool)
    sys.stdout.write(script(shell, places, program()))


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
