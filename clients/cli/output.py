"""Output of a command: text for people, or one JSON envelope for programs; errors and exit codes.

With `--json` a command prints `{ok, command, duration_ms, data, warnings}`, or `{ok: false, command, duration_ms,
error: {code, message, hint}}`, on standard output; else text, with `memd: …` and `hint: …` on standard error.
Captured text can't move the cursor or colour the terminal.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import time
from collections.abc import Iterable
from types import TracebackType
from typing import Annotated, Any, cast

import msgspec
import typer

from ...protocol.errors import MemdError, Refused
from ...protocol.record import Record
from ...protocol.reply import Problem

JsonFlag = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of text.")]
_CONTROL = dict.fromkeys(
    (
        *(*range(0x20), *range(0x7F, 0xA0), 0x061C, 0x200E, 0x200F, *range(0x2028, 0x202F), *range(0x2060, 0x2070)),
        *(0xFEFF, *range(0xFFF9, 0xFFFC), *range(0xD800, 0xE000), *range(0xE0000, 0xE1000)),
    ),
    "\ufffd",
) | {0xDC00 + byte: f"\\x{byte:02x}" for byte in range(0x80, 0x100)}  # a byte of a file name that is not UTF-8
_SURROGATE = re.compile("[\ud800-\udfff]")
LONGEST = 20_000
"""Characters of a text that the terminal shows; `--json` has all of them."""

NAME_LENGTH, MESSAGE_LENGTH = 200, 2_000
"""Characters of a name, an id or a path, and of an error, that the terminal shows."""

_STYLES = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "cyan": "36"}


class Envelope(msgspec.Struct, frozen=True, kw_only=True):
    """JSON output of a command that succeeded."""

    ok: bool = True
    command: str
    duration_ms: float
    data: object
    warnings: tuple[str, ...] = ()


class FailureEnvelope(msgspec.Struct, frozen=True, kw_only=True):
    """JSON output of a command that failed."""

    ok: bool = False
    command: str
    duration_ms: float
    error: Problem


class CommandAnswer:
    """A command's answer while it is put together: `with Answer("recall", as_json) as answer:`.

    An error of memd's tree inside of the block is told, and ends the program with the exit code of its class.
    """

    def __init__(self, command: str, as_json: bool) -> None:
        self.command, self.as_json = command, as_json
        self._data: object = None
        self._warnings: list[str] = []
        self._started = time.perf_counter()

    def __enter__(self) -> CommandAnswer:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if isinstance(error, MemdError):
            fail(self.command, self.as_json, error, self._duration_ms())
            raise typer.Exit(error.exit_code) from error
        if error is None and self.as_json:
            self.flush()

    def give(self, data: object, lines: Iterable[str] = ()) -> None:
        """Set the data of the envelope and the equivalent text."""
        self._data = data
        if not self.as_json:
            say(lines)

    def warn(self, text: str) -> None:
        """Print a warning besides the answer."""
        self._warnings.append(text)
        if not self.as_json:
            print(f"memd: {shortened(plain(text), MESSAGE_LENGTH)}", file=sys.stderr)

    def flush(self) -> None:
        """Print the envelope now; a command that follows a log calls this for each batch."""
        print_json(
            Envelope(
                command=self.command, duration_ms=self._duration_ms(), data=self._data, warnings=tuple(self._warnings)
            )
        )

    def _duration_ms(self) -> float:
        return round((time.perf_counter() - self._started) * 1000, 1)


def fail(command: str, as_json: bool, error: MemdError, duration_ms: float = 0.0) -> None:
    """Print an error."""
    if as_json:
        problem = Problem(error.code, error.message, error.hint)
        print_json(FailureEnvelope(command=command, duration_ms=duration_ms, error=problem))
        return
    sys.stdout.flush()
    print(f"memd: {shortened(plain(error.message), MESSAGE_LENGTH)}", file=sys.stderr)
    if error.hint:
        print(f"hint: {shortened(plain(error.hint), MESSAGE_LENGTH)}", file=sys.stderr)


def print_json(value: object) -> None:
    """Print one value on one line; what could control a terminal is escaped as JSON allows."""
    text = msgspec.json.encode(complete(value)).decode()
    _write((text if text.isascii() and "\x7f" not in text else text.translate(_escapes())) + "\n")


def _escapes() -> dict[int, str]:
    """The characters of `_CONTROL` that JSON may hold as they are, each as its escape."""
    pairs = {code: chr(code).encode("utf-16-be", "surrogatepass").hex() for code in _CONTROL if code >= 0x7F}
    return {
        code: "".join(f"\\u{digits[at : at + 4]}" for at in range(0, len(digits), 4)) for code, digits in pairs.items()
    }


def complete(value: Any) -> Any:
    """`value` with every field by name, and records with their type; the wire format omits defaults and writes spans as
    arrays."""
    if isinstance(value, msgspec.Struct):
        fields = {name: complete(getattr(value, name)) for name in value.__struct_fields__}
        if isinstance(value, Record):
            fields["type"] = value.type
        config = value.__struct_config__
        return {config.tag_field: config.tag, **fields} if config.tag_field else fields
    if isinstance(value, dict):
        return {name: complete(item) for name, item in cast("dict[str, Any]", value).items()}
    if isinstance(value, list | tuple):
        return [complete(item) for item in cast("list[Any]", value)]
    if isinstance(value, str) and not value.isascii():
        return _SURROGATE.sub(lambda half: half[0].translate(_CONTROL), value)
    return value


def agree(question: str, shown: Iterable[str], *, as_json: bool, why: str, hint: str) -> None:
    """Ask the user about what is shown. Raises Abort for a no, and Refused where nobody can answer: with --json, or
    without a terminal. `why`: why it needs an answer; `hint`: how to look at it first."""
    if as_json or not sys.stdin.isatty():
        raise Refused(f"{why}: confirm with --yes", hint=hint)
    say(shown)
    typer.confirm(question, abort=True, err=True)


def say(lines: Iterable[str]) -> None:
    """Print lines unchanged; callers pass captured text through `plain` first."""
    for line in lines:
        _write(line + "\n", flush=False)
    _write("")


def _write(text: str, flush: bool = True) -> None:
    """Write; a closed pipe ends the program silently."""
    try:
        sys.stdout.write(text)
        if flush:
            sys.stdout.flush()
    except BrokenPipeError as error:
        stop_writing()
        raise typer.Exit(0) from error


def stop_writing() -> None:
    """Redirect standard output to /dev/null: Python would report an error when it flushes at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def plain(text: str) -> str:
    """`text` on one line, without control characters and overrides of the writing direction, cut at `LONGEST`."""
    shown = " ".join(text[: LONGEST + 1].split()).translate(_CONTROL)
    return shown if len(text) <= LONGEST else f"{shown[:LONGEST]}… ({len(text) - LONGEST:,} more characters: --json)"


def plain_name(text: str) -> str:
    """A name, an id or a path as `plain` gives it, cut at `NAME_LENGTH`."""
    return shortened(plain(text[: NAME_LENGTH + 1]), NAME_LENGTH)


def width() -> int:
    """Columns to write in: those of the terminal, between 40 and 100."""
    return max(40, min(shutil.get_terminal_size((80, 24)).columns, 100))


def shortened(text: str, most: int) -> str:
    """`text` in at most `most` characters, cut at a word boundary if one is near."""
    if len(text) <= most:
        return text
    cut = text[: most - 1]
    space = cut.rfind(" ", most * 2 // 3)
    return (cut[:space] if space > 0 else cut).rstrip(" ,;:") + "…"


def wrapped(text: str, indent: str = "", first: str | None = None) -> list[str]:
    """`text` in lines of at most `width()` columns."""
    import textwrap

    return textwrap.wrap(
        text,
        width(),
        initial_indent=indent if first is None else first,
        subsequent_indent=indent,
        break_on_hyphens=False,
    ) or [indent]


def styled(text: str, *styles: str) -> str:
    """`text` with the styles, if standard output takes colours."""
    if not styles or not has_colour():
        return text
    return f"\x1b[{';'.join(_STYLES[style] for style in styles)}m{text}\x1b[0m"


def has_colour() -> bool:
    """Whether standard output is a terminal without NO_COLOR."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def is_watched() -> bool:
    """Whether standard error is a terminal."""
    return sys.stderr.isatty()
