"""`memd`: finds the command, runs it, turns what went wrong into a message and an exit code.

Comes in: arguments. Goes out: an exit code: 0 done, 2 wrong arguments or request, 3 the daemon can't be reached, 4 no
such record, 5 the store needs the user, 6 a model is missing, 7 refused, 130 interrupted. Invariant: only the module of
the command that is run is imported, so that `memd status` starts fast.
"""

from __future__ import annotations

import importlib
import os
import sys
from typing import Any, NoReturn

import typer
from typer.core import TyperGroup
from typer.main import get_command

from ...protocol.errors import InvalidRequest, NotFound
from ...protocol.places import why_disabled
from .output import fail, stop_writing

COMMANDS = {
    "up": "service",
    "down": "service",
    "service": "servicing",
    "status": "overview",
    "setup": "hosts",
    "unsetup": "hosts",
    "mcp": "mcp",
    "doctor": "doctor",
    "logs": "logs",
    "config": "configuring",
    "demo": "demo",
    "import": "importing",
    "remember": "writing",
    "edit": "writing",
    "recall": "recalling",
    "profile": "recalling",
    "feedback": "judging",
    "unused": "judging",
    "injected": "giving",
    "context": "giving",
    "pin": "pinning",
    "unpin": "pinning",
    "list": "records",
    "show": "records",
    "why": "why",
    "session": "sessions",
    "history": "history",
    "timeline": "history",
    "correct": "history",
    "fading": "sleeping",
    "sleep": "sleeping",
    "restore": "sleeping",
    "tail": "tail",
    "pools": "overview",
    "agent": "agents",
    "pause": "running",
    "resume": "running",
    "retry": "running",
    "inbox": "inbox",
    "grant": "granting",
    "revoke": "granting",
    "grants": "granting",
    "scope": "scoping",
    "leave": "leaving",
    "undo": "forgetting",
    "redo": "forgetting",
    "forget": "forgetting",
    "backup": "keeping",
    "restore-backup": "keeping",
    "export": "exporting",
    "du": "keeping",
    "expire": "keeping",
    "compact": "forgetting",
    "verify": "checking",
    "scan": "scanning",
    "rebuild": "checking",
    "model": "models",
    "bench": "bench",
    "shell": "shelling",
    "plugin": "plugins",
    "completion": "completion",
    "man": "manual",
    "uninstall": "uninstalling",
}
"""The module of each command, in the order of `memd --help`."""


class LazyGroup(TyperGroup):
    """A group that imports a command when it is named."""

    def list_commands(self, ctx: Any) -> list[str]:
        """The commands' names, in the order in which a newcomer needs them."""
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str):
        """The command of that name, None if there is none."""
        if cmd_name not in COMMANDS:
            return None
        found = get_command(importlib.import_module(f".{COMMANDS[cmd_name]}", __package__).app)
        return found.commands.get(cmd_name, found) if isinstance(found, TyperGroup) else found


app = typer.Typer(
    cls=LazyGroup,
    name="memd",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="One memory for every AI tool on this machine: private, fast, explainable, correctable.",
    epilog="First steps: `memd demo` shows all of it in half a minute; `memd up` starts the daemon.",
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
    """Takes the options that stand before a command."""


def main() -> NoReturn:
    """The entry point of `memd`."""
    try:
        code = _run()
        sys.stdout.flush()
    except BrokenPipeError:
        code = 0
        stop_writing()
    sys.exit(code)


def _run() -> int:
    if why := _disabled():
        return _say_disabled(why)
    try:
        code = app(prog_name="memd", standalone_mode=False)
    except typer.Exit as error:
        code = error.exit_code
    except (typer.Abort, KeyboardInterrupt):
        print(file=sys.stderr)
        code = 130
    except BrokenPipeError:
        raise
    except FileNotFoundError as error:
        code = _nowhere(error)
    except Exception as error:
        code = _usage(error)
    return code if isinstance(code, int) else 0


_ALWAYS = {"-h", "--help", "--version", "down", "setup", "unsetup", "mcp"}
"""What works while memd is disabled; an MCP server then offers nothing."""


def _disabled() -> str:
    """What switches memd off (W14), "" where that changes nothing: a daemon may be stopped, and help is help."""
    from ..python.client import places_here

    why = why_disabled(os.environ, places_here())
    return "" if _ALWAYS & set(sys.argv[1:]) or len(sys.argv) < 2 else why


def _say_disabled(why: str) -> int:
    """Does nothing, at once: only who asks how memd is, or sits at a terminal, hears why."""
    from .output import Envelope, is_watched, print_json

    command = next((word for word in sys.argv[1:] if not word.startswith("-")), "")
    if "--json" in sys.argv:
        print_json(Envelope(command=command, duration_ms=0.0, data={"disabled": why}))
    elif command in ("status", "up"):
        print(f"memd is disabled by {why}: nothing is captured or recalled")
    elif is_watched():
        print(f"memd: disabled by {why}", file=sys.stderr)
    return 0


def _words() -> tuple[list[str], str]:
    """What was typed besides options, and the command in it, "" for none."""
    words = [word for word in sys.argv[1:] if not word.startswith("-")]
    return words, words[0] if words and words[0] in COMMANDS else ""


def _nowhere(error: FileNotFoundError) -> int:
    """Tells that the current folder was removed; any other missing file is a bug and crashes."""
    try:
        os.getcwd()
    except FileNotFoundError:
        gone = NotFound("the current folder is not there any more", hint="go to one that is: `cd`")
        fail(_words()[1], "--json" in sys.argv, gone)
        return gone.exit_code
    raise error


def _usage(error: Exception) -> int:
    """Tells wrong arguments the way every other error is told; anything else is a bug and crashes."""
    if not hasattr(error, "format_message"):
        raise error
    import difflib

    message = str(error.format_message()).rstrip(".")  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType, reportUnknownArgumentType]
    words, command = _words()
    if type(error).__name__ == "NoArgsIsHelpError":  # its message is the help
        print(error)
        return 0
    path = getattr(getattr(error, "ctx", None), "command_path", "memd")
    hint = f"see `{path} --help`"
    if words and not command and (near := difflib.get_close_matches(words[0], COMMANDS, 1)):
        hint = f"did you mean `memd {near[0]}`?"
    wrong = InvalidRequest(message, hint=hint)
    fail(command, "--json" in sys.argv, wrong)
    return wrong.exit_code


if __name__ == "__main__":
    main()
