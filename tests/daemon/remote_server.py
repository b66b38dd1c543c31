"""A real HTTP server on loopback that answers as servers of language models do, well and badly, and keeps requests."""

from __future__ import annotations

import gzip
import json
import ssl
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Reply = tuple[int, dict[str, str], bytes | Iterable[bytes]]
"""Status, headers and content; the content in pieces is sent in chunks."""

Behaviour = Callable[[dict[str, Any]], Reply]
JSON = {"content-type": "application/json"}


def statement(*quotes: str, type: str = "fact", about: str = "") -> dict[str, Any]:
    return {"type": type, "quotes": list(quotes), "about": about}


def chat(content: str, tokens: int = 500) -> Reply:
    """A response of an OpenAI-compatible server."""
    usage = {"prompt_tokens": tokens - 20, "completion_tokens": 20}
    message = {"choices": [{"message": {"role": "assistant", "content": content}}], "usage": usage}
    return 200, JSON, json.dumps(message).encode()


def good(*statements: dict[str, Any], tokens: int = 500) -> Behaviour:
    return lambda body: chat(json.dumps({"statements": list(statements)}, ensure_ascii=False), tokens)


def anthropic(*statements: dict[str, Any]) -> Behaviour:
    def reply(body: dict[str, Any]) -> Reply:
        used = {"type": "tool_use", "name": body["tool_choice"]["name"], "input": {"statements": list(statements)}}
        message = {"content": [{"type": "text", "text": "Here."}, used]}
        return 200, JSON, json.dumps({**message, "usage": {"input_tokens": 400, "output_tokens": 60}}).encode()

    return reply


def streamed(*statements: dict[str, Any]) -> Behaviour:
    def reply(body: dict[str, Any]) -> Reply:
        content = json.dumps({"statements": list(statements)})
        parts = [content[at : at + 9] for at in range(0, len(content), 9)]
        events = [f"data: {json.dumps({'choices': [{'delta': {'content': part}}]})}\n\n" for part in parts]
        return 200, {"content-type": "text/event-stream"}, "".join([*events, "data: [DONE]\n\n"]).encode()

    return reply


def without_schema(*statements: dict[str, Any]) -> Behaviour:
    """A server that refuses `json_schema`, as older ones do."""

    def reply(body: dict[str, Any]) -> Reply:
        if body["response_format"]["type"] == "json_schema":
            return 400, JSON, b'{"error": "response_format is not supported"}'
        return good(*statements)(body)

    return reply


def status(code: int, **headers: str) -> Behaviour:
    return lambda body: (code, {name.replace("_", "-"): value for name, value in headers.items()}, b"{}")


def slow(seconds: float) -> Behaviour:
    def reply(body: dict[str, Any]) -> Reply:
        time.sleep(seconds)
        return chat("{}")

    return reply


def partial(body: dict[str, Any]) -> Reply:
    return chat('{"statements": [{"type": "fact", "quotes": ["The weather is gre')


def prose(body: dict[str, Any]) -> Reply:
    return chat("Sure! The user decided to keep the ledger. Here is what I would remember.")


def answered(content: bytes, **headers: str) -> Behaviour:
    """A server that answers these bytes as JSON."""
    return lambda body: (200, {**JSON, **{name.replace("_", "-"): value for name, value in headers.items()}}, content)


def endless(pause_s: float, piece: bytes = b" ") -> Behaviour:
    """A server whose answer never ends."""

    def pieces() -> Iterator[bytes]:
        while True:
            yield piece
            time.sleep(pause_s)

    return lambda body: (200, JSON, pieces())


def bomb(body: dict[str, Any]) -> Reply:
    """64 MB of blanks in 64 kB, though the request asks for an answer that is not compressed."""
    return 200, {**JSON, "content-encoding": "gzip"}, gzip.compress(bytes(64 << 20))


class ModelServer:
    """The server. `tls`: its certificate, None for plain HTTP; `behaviours`: of the requests in order, the last one for
    all others. `requests`: every byte received of each; `bodies`: the decoded ones."""

    def __init__(self, *behaviours: Behaviour, tls: ssl.SSLContext | None = None) -> None:
        self.behaviours: Sequence[Behaviour] = behaviours
        self.requests: list[bytes] = []
        self.bodies: list[dict[str, Any]] = []
        self.paths: list[str] = []
        self.at_once = self.most_at_once = 0
        self._lock = threading.Lock()
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                server._answer(self)

            do_GET = do_POST

            def log_message(self, format: str, *args: Any) -> None:
                """Print nothing."""

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._http.daemon_threads = True
        self._http.handle_error = lambda request, client_address: None
        self._scheme = "https" if tls else "http"
        if tls:
            self._http.socket = tls.wrap_socket(self._http.socket, server_side=True)
        threading.Thread(target=self._http.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"{self._scheme}://127.0.0.1:{self._http.server_address[1]}/v1"

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self._http.server_address[1]}"

    @property
    def received(self) -> bytes:
        """All bytes of all requests."""
        return b"\n".join(self.requests)

    def close(self) -> None:
        self._http.shutdown()
        self._http.server_close()

    def _answer(self, request: BaseHTTPRequestHandler) -> None:
        body = request.rfile.read(int(request.headers.get("content-length") or 0))
        with self._lock:
            self.at_once += 1
            self.most_at_once = max(self.most_at_once, self.at_once)
            number = len(self.requests)
            self.requests.append(f"{request.requestline}\n{request.headers}".encode() + body)
            self.paths.append(request.path)
            decoded = json.loads(body) if body else {}
            self.bodies.append(decoded)
        try:
            code, headers, content = self.behaviours[min(number, len(self.behaviours) - 1)](decoded)
            request.send_response(code)
            for name, value in headers.items():
                request.send_header(name, value)
            is_whole = isinstance(content, bytes)
            request.send_header(
                *(("content-length", str(len(content))) if is_whole else ("transfer-encoding", "chunked"))
            )
            request.send_header("connection", "close")
            request.end_headers()
            if is_whole:
                request.wfile.write(content)
                return
            for piece in content:
                request.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
        except OSError:
            pass  # the caller gave up
        finally:
            with self._lock:
                self.at_once -= 1
