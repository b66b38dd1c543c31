"""A scripted model behind OpenAI's chat completions, on a loopback port, for agents that know no other API."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Answer = dict[str, Any]
"""A message of the model: `content`, and `tool_calls` as in OpenAI's API."""


class ChatApi:
    """Answers `/chat/completions`, streamed or whole; `seen` holds the bodies of the requests, in order."""

    def __init__(self, answer: Callable[[dict[str, Any]], Answer]) -> None:
        self.seen: list[dict[str, Any]] = []
        seen = self.seen

        class Completing(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, format: str, *args: Any) -> None:
                pass

            def do_GET(self) -> None:
                self.reply(b'{"object": "list", "data": [{"id": "scripted", "object": "model"}]}', "application/json")

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["content-length"])) or b"{}")
                seen.append(body)
                message = {"role": "assistant", "content": "", **answer(body)}
                if body.get("stream"):
                    return self.reply(_streamed(message), "text/event-stream")
                choice = {"index": 0, "message": message, "finish_reason": _end(message)}
                return self.reply(json.dumps(_completion([choice], "chat.completion")).encode(), "application/json")

            def reply(self, content: bytes, kind: str) -> None:
                self.send_response(200)
                self.send_header("content-type", kind)
                self.send_header("content-length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Completing)
        self._thread = threading.Thread(target=self._server.serve_forever)

    @property
    def url(self) -> str:
        """The base address of the API."""
        return f"http://127.0.0.1:{self._server.server_port}/v1"

    def __enter__(self) -> ChatApi:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


def tool_call(name: str, arguments: dict[str, Any], id_: str = "call_1") -> Answer:
    """A message that calls one tool."""
    called = {"name": name, "arguments": json.dumps(arguments)}
    return {"tool_calls": [{"index": 0, "id": id_, "type": "function", "function": called}]}


def _end(message: Answer) -> str:
    return "tool_calls" if message.get("tool_calls") else "stop"


def _completion(choices: list[dict[str, Any]], kind: str) -> dict[str, Any]:
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    return {"id": "c1", "object": kind, "created": 1, "model": "scripted", "choices": choices, "usage": usage}


def _streamed(message: Answer) -> bytes:
    deltas = [{"index": 0, "delta": message, "finish_reason": None}]
    chunks = [deltas, [{"index": 0, "delta": {}, "finish_reason": _end(message)}]]
    lines = [f"data: {json.dumps(_completion(chunk, 'chat.completion.chunk'))}\n\n" for chunk in chunks]
    return "".join([*lines, "data: [DONE]\n\n"]).encode()
