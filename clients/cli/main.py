"""The entry point of `memd`: runs one command and turns errors into a message and an exit code.

Exit codes: 0 done, 2 wrong arguments or request, 3 the daemon can't be reached, 4 not found, 5 the store needs the
user, 6 a model is missing, 7 refused, 130 interrupted. Only the module of the command that runs is imported.
"""

from __future__ import annotations

import gc
import os
import sys
from typing import NoReturn

from .commands import ALIASES, COMMANDS, help_text

WORKS_DISABLED = {"-h", "--help", "--version", "down", "setup", "unsetup", "mcp"}
"""Works while memd is disabled; an MCP server then offers no tools."""


def main() -> NoReturn:
    """Run the command line and exit."""
    gc.set_threshold(100_000)  # a command makes little garbage: collecting during its imports would cost 10 ms of CPU
    try:
        code = _shown_at_once() or _run()
        sys.stdout.flush()
    except BrokenPipeError:
        from .output import stop_writing

        code = 0
        stop_writing()
    gc.freeze()  # the exit need not search the objects of all modules for garbage
    sys.exit(0 if code is True else code)


def _shown_at_once() -> bool:
    """Print the help or the version, which need no other module; False for any other command line."""
    arguments = sys.argv[1:]
    if "_MEMD_COMPLETE" in os.environ or arguments not in ([], ["-h"], ["--help"], ["--version"]):
        return False
    if arguments == ["--version"]:
        from ... import __version__

        print(f"memd {__version__}")
    else:
        print(help_text())
    return True


def _run() -> int:
    if reason := _disabled():
        return _say_disabled(reason)
    import typer

    from .application import app

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
        code = _folder_removed(error)
    except Exception as error:
        code = _usage_error(error)
    return code if isinstance(code, int) else 0


def _disabled() -> str:
    """What disables memd (W14), "" if nothing does or the command works all the same."""
    from ...protocol.places import why_disabled
    from ..python.client import places_here

    return "" if WORKS_DISABLED & set(sys.argv[1:]) else why_disabled(os.environ, places_here())


def _say_disabled(reason: str) -> int:
    """Report it with --json, for `status` and `up`, and on a terminal; a script hears nothing."""
    from .output import Envelope, is_watched, print_json

    command = next((word for word in sys.argv[1:] if not word.startswith("-")), "")
    if "--json" in sys.argv:
        print_json(Envelope(command=command, duration_ms=0.0, data={"disabled": reason}))
    elif command in ("status", "up"):
        print(f"memd is disabled by {reason}: it captures and recalls nothing")
    elif is_watched():
        print(f"memd: disabled by {reason}", file=sys.stderr)
    return 0


def _words() -> tuple[list[str], str]:
    """The arguments that are not options, and the command among them, "" if there is none."""
    words = [word for word in sys.argv[1:] if not word.startswith("-")]
    return words, words[0] if words and (words[0] in COMMANDS or words[0] in ALIASES) else ""


def _folder_removed(error: FileNotFoundError) -> int:
    """Report that the current folder was removed; any other missing file is a bug and crashes."""
    from ...protocol.errors import NotFound
    from .output import fail

    try:
        os.getcwd()
    except FileNotFoundError:
        removed = NotFound("the current folder no longer exists", hint="change to one that does: `cd`")
        fail(_words()[1], "--json" in sys.argv, removed)
        return removed.exit_code
    raise error


def _usage_error(error: Exception) -> int:
    """Report wrong arguments like every other error; any other exception is a bug and crashes."""
    if not hasattr(error, "format_message"):
        raise error
    import difflib

    from ...protocol.errors import InvalidRequest
    from .output import fail

    message = str(error.format_message()).rstrip(".")  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType, reportUnknownArgumentType]
    words, command = _words()
    if type(error).__name__ == "NoArgsIsHelpError":  # its message is the help
        print(error)
        return 0
    path = getattr(getattr(error, "ctx", None), "command_path", "memd")
    hint = f"see `{path} --help`"
    if words and not command and (near := difflib.get_close_matches(words[0], COMMANDS, 1)):
        hint = f"did you mean `memd {near[0]}`?"
    invalid = InvalidRequest(message, hint=hint)
    fail(command, "--json" in sys.argv, invalid)
    return invalid.exit_code


if __name__ == "__main__":
    main()
