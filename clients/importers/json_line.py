"""Lines of JSON in other programs' files, decoded, or refused with a reason.

Invariant: a line beyond the limit is never held in memory whole.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from typing import Any, BinaryIO, TypeVar, cast

import msgspec

from ...protocol import instant
from ...protocol.errors import MemdError
from ...protocol.event import ARGUMENT_LIMIT
from ...protocol.redact import redact

LINE_LIMIT = 64 * 1024 * 1024  # bytes of the largest line that is decoded
TAKEN = ""  # the kind of a line that gave an event; any other text is a kind of noise
_UNDECODABLE = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
TEXT_WINDOW = 8_000
"""Characters of each text in a call's arguments that are read."""
_LONE_SURROGATE = re.compile(
    rb"\\u[dD][89abAB][0-9a-fA-F]{2}(?!\\u[dD][c-fC-F])|(?<!\\u[dD][89abAB][0-9a-fA-F]{2})\\u[dD][c-fC-F][0-9a-fA-F]{2}"
)

T = TypeVar("T")


class BadLine(Exception):
    """A line that can't be read, with the reason."""


class ContentBlock(msgspec.Struct, frozen=True):
    """One block of a message's content, of any role."""

    type: str = ""
    text: str | None = None
    id: str | None = None
    name: str | None = None
    input: msgspec.Raw = msgspec.Raw()
    arguments: msgspec.Raw = msgspec.Raw()
    tool_use_id: str | None = None
    is_error: bool | None = None
    content: msgspec.Raw = msgspec.Raw()


def lines(file: BinaryIO, offset: int = 0, limit: int = LINE_LIMIT) -> Iterator[tuple[bytes | None, int, bool]]:
    """Yield each line from `offset` on, None for one over the limit; its offset; whether the file ends within it."""
    file.seek(offset)
    while content := file.readline(limit):
        begin = offset
        offset += len(content)
        if begin == 0:
            content = content.removeprefix(codecs.BOM_UTF8)
            if not content:
                continue
        if len(content) < limit or content.endswith(b"\n"):
            yield content, begin, not content.endswith(b"\n")
            continue
        while content and not content.endswith(b"\n"):
            content = file.readline(limit)
            offset += len(content)
        yield None, begin, False


def decode(decoder: msgspec.json.Decoder[T], content: bytes, what: str = "") -> T:
    """Return the value in `content`, without lone halves of a character, which JavaScript leaves where it cuts a text.
    Raises BadLine, which names `what` was read."""
    try:
        return decoder.decode(content)
    except _UNDECODABLE as error:
        repaired, count = _LONE_SURROGATE.subn(rb"\\ufffd", content)
        if count:
            return decode(decoder, repaired, what)
        raise BadLine(f"{what}: {_reason(error)}" if what else _reason(error)) from error


_WORDS = ("text", "output", "stdout", "content", "result", "response", "functionResponse")
"""Fields in which hosts write the words of a tool's output."""


def words_of(value: Any) -> str:
    """Return the words of a tool's output: a text, a list of parts, or an object; one without words as JSON."""
    match value:
        case None:
            return ""
        case str():
            return value
        case list():
            return "\n".join(filter(None, map(words_of, cast(list[Any], value))))
        case dict():
            fields = cast(dict[str, Any], value)
            named = next((fields[name] for name in _WORDS if fields.get(name)), None)
            return words_of(named) if named is not None else msgspec.json.encode(fields).decode()
        case _:
            return str(value)


def output_words(output: object) -> str:
    """Return the words of a tool's output, decoded or as JSON. Raises BadLine."""
    if isinstance(output, msgspec.Raw):
        return words_of(decode(_any, bytes(output), "output")) if bytes(output) else ""
    return words_of(output)


def _reason(error: Exception) -> str:
    if isinstance(error, UnicodeDecodeError):
        return f"not valid UTF-8: {error.reason}"
    if isinstance(error, RecursionError):
        return "nested too deeply"
    return str(error)


def checked_time(text: str) -> str:
    """Return `text` if it can be an event's time. Raises BadLine."""
    try:
        instant.checked(text)
    except MemdError as error:
        raise BadLine(error.message) from error
    if not 17 <= len(text) <= 40:
        raise BadLine(f"{text[:60]!r} is not a full date and time")
    return text


def arguments(raw: msgspec.Raw) -> str:
    """Return a tool call's arguments as compact JSON without secrets, each text up to a limit. Raises BadLine."""
    content = bytes(raw)
    if not content:
        return ""
    value = decode(_any, content, "input")
    return redact(msgspec.json.encode(_masked(value)).decode())[0]


def arguments_in(text: str) -> str:
    """Return the same of arguments in a text, JSON or not."""
    try:
        return arguments(msgspec.Raw(text[: 64 * TEXT_WINDOW].encode(errors="replace")))
    except BadLine:
        return redact(text[:TEXT_WINDOW])[0]


_any = msgspec.json.Decoder(Any)


def _masked(value: Any) -> Any:
    """Remove secrets from each text before JSON's quotes and escapes hide them."""
    if isinstance(value, str):
        return redact(value[:TEXT_WINDOW])[0]
    if isinstance(value, dict):
        return {key: _masked(item) for key, item in cast("dict[str, Any]", value).items()}
    if isinstance(value, list):
        return [_masked(item) for item in cast("list[Any]", value)[:ARGUMENT_LIMIT]]
    return value
