"""A model of one sentence or with a script, on a loopback port: what an agent sends to it is what a model would see."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Blocks = list[dict[str, Any]]
"""The blocks of an answer: texts and calls of tools."""


def one_sentence(body: dict[str, Any]) -> Blocks:
    """What a model without a script answers."""
    return [{"type": "text", "text": "All done."}]


class ModelApi:
    """Answers the Messages API; `seen` holds the bodies of the requests, in order."""

    def __init__(self, answer: Callable[[dict[str, Any]], Blocks] = one_sentence) -> None:
        self.seen: list[dict[str, Any]] = []
        seen = self.seen

        class Answering(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, format: str, *args: Any) -> None:
                pass

            def do_GET(self) -> None:
                self.tell(b"{}", "application/json")

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["content-length"])) or b"{}")
                if not self.path.split("?")[0].endswith("/messages"):
                    return self.tell(b'{"input_tokens": 1}', "application/json")
                seen.append(body)
                blocks, name = answer(body), (f"msg_{len(seen)}", body.get("model", ""))
                if body.get("stream"):
                    return self.tell(_streamed(name, blocks), "text/event-stream")
                return self.tell(json.dumps(_message(name, blocks)).encode(), "application/json")

            def tell(self, content: bytes, kind: str) -> None:
                self.send_response(200)
                self.send_header("content-type", kind)
                self.send_header("content-length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Answering)
        self._thread = threading.Thread(target=self._server.serve_forever)

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self._server.server_port}"

    @property
    def context(self) -> str:
        """All texts that the last request put before the model."""
        last = self.seen[-1]
        return "\n".join(_texts([last.get("system"), last["messages"]]))

    def __enter__(self) -> ModelApi:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


_USAGE = {"input_tokens": 1, "output_tokens": 1}


def _reason(blocks: Blocks) -> str:
    return "tool_use" if any(block["type"] == "tool_use" for block in blocks) else "end_turn"


def _message(name: tuple[str, str], blocks: Blocks) -> dict[str, Any]:
    """A message of this id and model; hosts join messages of one id."""
    head = {"id": name[0], "type": "message", "role": "assistant", "model": name[1], "content": blocks}
    return {**head, "stop_reason": _reason(blocks) if blocks else None, "stop_sequence": None, "usage": _USAGE}


def _block_events(number: int, block: dict[str, Any]) -> Iterator[dict[str, Any]]:
    if block["type"] == "text":
        empty, delta = {"type": "text", "text": ""}, {"type": "text_delta", "text": block["text"]}
    else:
        empty = {**block, "input": {}}
        delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
    yield {"type": "content_block_start", "index": number, "content_block": empty}
    yield {"type": "content_block_delta", "index": number, "delta": delta}
    yield {"type": "content_block_stop", "index": number}


def _streamed(name: tuple[str, str], blocks: Sequence[dict[str, Any]]) -> bytes:
    ended = {"stop_reason": _reason(list(blocks)), "stop_sequence": None}
    events: list[dict[str, Any]] = [
        {"type": "message_start", "message": _message(name, [])},
        *(event for number, block in enumerate(blocks) for event in _block_events(number, block)),
        {"type": "message_delta", "delta": ended, "usage": _USAGE},
        {"type": "message_stop"},
    ]
    return "".join(f"event: {each['type']}\ndata: {json.dumps(each)}\n\n" for each in events).encode()


def _texts(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        return _texts([value.get("text"), value.get("content")])
    return [text for each in value or [] for text in _texts(each)] if isinstance(value, list) else []
