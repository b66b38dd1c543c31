"""JSON-RPC over standard input and output in both generations of the Model Context Protocol, one message a line.

Invariants: a message with the envelope of 2026-07-28 is answered by that revision, any other by the earlier ones; every
request is answered; a tool's failure is the tool's result, so that a model can read it; the server ends when its host
closes the input (P-1), and starts no thread and, but for the capture of a host's sessions at its end, no process.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from itertools import pairwise
from typing import Any, BinaryIO, NoReturn, cast

import msgspec

from ... import __version__
from ...protocol.errors import MemdError
from ..python.client import Client
from .calls import Calls
from .tools import INSTRUCTIONS, ON_REQUEST, RESOURCE, TOOLS, URI, ProfileArguments

HANDSHAKE = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")
MODERN = ("2026-07-28",)
_VERSION, _SERVER = "io.modelcontextprotocol/protocolVersion", "io.modelcontextprotocol/serverInfo"
_CLIENT = "io.modelcontextprotocol/clientInfo"
_PARSE, _INVALID, _UNKNOWN, _ARGUMENTS, _NOT_FOUND, _UNSUPPORTED = -32700, -32600, -32601, -32602, -32002, -32022
_CACHEABLE = {"server/discover", "tools/list", "resources/list", "resources/templates/list", "resources/read"}
DEADLINE_MS = 3_000
LINE_LIMIT = 4 * 1024 * 1024
ABOUT = {"name": "memd", "title": "memd", "version": __version__}
_UNDECODABLE = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)


class RpcError(Exception):
    """A JSON-RPC error."""

    def __init__(self, code: int, message: str, data: object = None) -> None:
        super().__init__(message)
        self.code, self.message, self.data = code, message, data


class Server:
    """Answers messages, one at a time."""

    def __init__(self, client: Client, here: str, read_only: bool = False, more: Sequence[str] = ()) -> None:
        """`more`: tools beyond the usual ones, by the names of `ON_REQUEST`; unknown names are left out."""
        self._client = client
        self._calls = Calls(client, here)
        listed = (*TOOLS, *(ON_REQUEST[name] for name in more if name in ON_REQUEST))
        self._tools = {tool.name: tool for tool in listed if not (read_only and tool.is_write)}

    def answer(self, line: bytes) -> bytes:
        """Return the line that answers a line, b"" for none."""
        try:
            message = msgspec.json.decode(line)
        except _UNDECODABLE as error:
            return _encoded(_failure(None, RpcError(_PARSE, f"not JSON: {error}")))
        if isinstance(message, list):  # a batch, which 2025-03-26 has
            answers = [answer for part in cast("list[Any]", message) if (answer := self._message(part)) is not None]
        else:
            answers = self._message(message)
        return _encoded(answers) if answers else b""

    def _message(self, message: Any) -> dict[str, Any] | None:
        if not isinstance(message, dict):
            return _failure(None, RpcError(_INVALID, "a message is an object"))
        request = cast("dict[str, Any]", message)
        id, method = request.get("id"), request.get("method")
        if not isinstance(method, str):
            is_answer = "result" in request or "error" in request
            return None if is_answer else _failure(id, RpcError(_INVALID, "a request has a method"))
        if "id" not in request:  # a notification
            return None
        params: Any = request.get("params", {})
        try:
            if not isinstance(params, dict):
                raise RpcError(_ARGUMENTS, "params is not an object")
            return self._response(id, method, cast("dict[str, Any]", params))
        except RpcError as error:
            return _failure(id, error)
        except Exception as error:  # a bug: report it to the host, and go on
            print(f"memd mcp: {type(error).__name__}: {error}", file=sys.stderr, flush=True)
            return _failure(id, RpcError(-32603, f"memd failed: {type(error).__name__}"))

    def _response(self, id: object, method: str, params: dict[str, Any]) -> dict[str, Any]:
        meta = params.get("_meta")
        about = cast("dict[str, Any]", meta) if isinstance(meta, dict) else {}
        version = about.get(_VERSION)
        self._calls.program = _name(about.get(_CLIENT) or params.get("clientInfo")) or self._calls.program
        if version is not None and version not in MODERN:
            data = {"supported": [*MODERN, *HANDSHAKE], "requested": str(version)}
            raise RpcError(_UNSUPPORTED, f"protocol version {version} is not supported", data)
        result = self._result(method, params)
        if version is not None:
            result = {"resultType": "complete", **result, "_meta": {_SERVER: ABOUT}}
            if method in _CACHEABLE:
                result |= {"ttlMs": 0, "cacheScope": "private"}
        return {"jsonrpc": "2.0", "id": id, "result": result}

    def _result(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        abilities: dict[str, dict[str, Any]] = {"tools": {}, "resources": {}}
        match method:
            case "server/discover":
                return {"supportedVersions": [*MODERN], "capabilities": abilities, "instructions": INSTRUCTIONS}
            case "initialize":
                wanted = params.get("protocolVersion")
                return {
                    "protocolVersion": wanted if wanted in HANDSHAKE else HANDSHAKE[0],
                    "capabilities": abilities,
                    "serverInfo": ABOUT,
                    "instructions": INSTRUCTIONS,
                }
            case "ping":
                return {}
            case "tools/list":
                return {"tools": [] if self._client.disabled else [tool.listed() for tool in self._tools.values()]}
            case "tools/call":
                return self._call(params)
            case "resources/list":
                return {"resources": [] if self._client.disabled else [RESOURCE]}
            case "resources/templates/list":
                return {"resourceTemplates": []}
            case "resources/read":
                return self._read(params)
            case _:
                raise RpcError(_UNKNOWN, f"no method {method!r}")

    def _call(self, params: dict[str, Any]) -> dict[str, Any]:
        tool = self._tools.get(str(params.get("name")))
        if tool is None:
            raise RpcError(_ARGUMENTS, f"no tool {params.get('name')!r}; there are {', '.join(self._tools)}")
        try:
            arguments = msgspec.convert(params.get("arguments") or {}, tool.takes)
        except msgspec.ValidationError as error:
            hint = " It takes ids, never a query: recall first." if tool.name == "memory_forget" else ""
            return _failed(f"{tool.name}: {error}.{hint}")
        try:
            value, text = self._calls.call(arguments)
        except MemdError as error:
            return _failed(f"{error.message}. {error.hint}".rstrip(". ") + ".")
        return {"content": [_text(text)], "structuredContent": msgspec.to_builtins(value), "isError": False}

    def _read(self, params: dict[str, Any]) -> dict[str, Any]:
        if params.get("uri") != URI:
            raise RpcError(_NOT_FOUND, f"no resource {params.get('uri')!r}; there is {URI}", {"uri": params.get("uri")})
        try:
            _, text = self._calls.profile(ProfileArguments())
        except MemdError as error:
            raise RpcError(-32603, f"{error.message}: {error.hint}") from error
        return {"contents": [{"uri": URI, "mimeType": "text/markdown", "text": text}]}


def _name(about: object) -> str:
    """Return the name in a client's description of itself, "" for none."""
    return str(cast("dict[str, Any]", about).get("name") or "").lower() if isinstance(about, dict) else ""


def _text(text: str) -> dict[str, str]:
    return {"type": "text", "text": text}


def _failed(text: str) -> dict[str, Any]:
    return {"content": [_text(text)], "isError": True}


def _failure(id: object, error: RpcError) -> dict[str, Any]:
    problem = {"code": error.code, "message": error.message, **({"data": error.data} if error.data is not None else {})}
    return {"jsonrpc": "2.0", "id": id, "error": problem}


def _encoded(value: object) -> bytes:
    return msgspec.json.encode(value) + b"\n"


def serve(server: Server, source: BinaryIO, sink: BinaryIO) -> None:
    """Answer every line until the input ends."""
    while line := source.readline(LINE_LIMIT):
        if line.strip() and (answer := server.answer(line)):
            sink.write(answer)
            sink.flush()


def _folder() -> str:
    """Return the folder in which the host started this, "" if it was removed; then only the user's memory is read."""
    try:
        return os.getcwd()
    except FileNotFoundError:
        return ""


def main(arguments: Sequence[str]) -> int:
    """Run the server; return the exit code. With `--captures HOST` it has the host's sessions captured at its end."""
    host, began = next((name for option, name in pairwise(arguments) if option == "--captures"), ""), time.time()
    is_gone = False
    try:
        if host:
            signal.signal(signal.SIGTERM, _ended)
        with Client(deadline_ms=DEADLINE_MS, surface="mcp") as client:
            more = [name for option, name in pairwise(arguments) if option == "--tools"]
            server = Server(client, _folder(), read_only="--read-only" in arguments, more=more)
            serve(server, sys.stdin.buffer, sys.stdout.buffer)
    except (BrokenPipeError, KeyboardInterrupt):
        is_gone = True
    finally:
        if host:
            _capture(host, began)
    if is_gone:
        os._exit(0)  # nobody reads further output
    return 0


def _ended(number: int, frame: object) -> NoReturn:
    sys.exit(0)


def _capture(host: str, since_s: float) -> None:
    """Have another process capture the host's sessions, because the host may end this one at any time."""
    import subprocess  # imported late, because a server starts with each session

    command = [sys.executable, "-P", "-m", "memd.clients.hooks.session_end", host, f"{since_s}"]
    nothing = subprocess.DEVNULL
    with suppress(OSError):
        subprocess.Popen(command, stdin=nothing, stdout=nothing, stderr=nothing, cwd="/", start_new_session=True)
