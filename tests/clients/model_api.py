"""A model of one sentence or with a script, on a loopback port: what an agent sends to it is what a model would see."""

from __future__ import annotations

import html
import json
import threading
from collections.abc import Callable, Iterator, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Blocks = list[dict[str, Any]]
"""The blocks of an answer: texts and calls of tools."""


def one_sentence(body: dict[str, Any]) -> Blocks:
    """What a model without a script answers."""
    return [{"type": "text", "text": SENTENCE}]


class ModelApi:
    """Answers the Messages API, and by one sentence OpenAI's two and Gemini's; `seen` holds the bodies of the requests,
    in order."""

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
                content = self.rfile.read(int(self.headers["content-length"] or 0))
                body = json.loads(content) if content.startswith(b"{") else {}
                path = self.path.split("?")[0]
                if other := next((say for end, say in OTHERS.items() if path.endswith(end)), None):
                    seen.append(body)
                    streams = bool(body.get("stream")) or "stream" in path
                    return self.tell(other(streams), "text/event-stream" if streams else "application/json")
                if not path.endswith("/messages"):
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
        return html.unescape("\n".join(_texts(self.seen[-1])))  # Gemini CLI escapes what a hook says

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
    return _events(events)


SENTENCE = "All done."
_COUNTS = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}


def _responses(streams: bool) -> bytes:
    """OpenAI's Responses API."""
    content = [{"type": "output_text", "text": SENTENCE}]
    item = {"type": "message", "role": "assistant", "id": "m", "content": content}
    done = {"id": "r", "status": "completed", "output": [item], "usage": _COUNTS}
    events: list[dict[str, Any]] = [
        {"type": "response.created", "response": {"id": "r"}},
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.completed", "response": done},
    ]
    return _events(events) if streams else json.dumps(done).encode()


def _completions(streams: bool) -> bytes:
    """OpenAI's chat completions."""
    head = {"id": "c", "created": 1, "model": "one"}
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    said = {"role": "assistant", "content": SENTENCE}
    if not streams:
        choices = [{"index": 0, "message": said, "finish_reason": "stop"}]
        return json.dumps({**head, "object": "chat.completion", "choices": choices, "usage": usage}).encode()
    head["object"] = "chat.completion.chunk"
    first = {**head, "choices": [{"index": 0, "delta": said, "finish_reason": None}]}
    last = {**head, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}], "usage": usage}
    return _events([first, last]) + b"data: [DONE]\n\n"


def _gemini(streams: bool) -> bytes:
    """Gemini's API."""
    said = {"content": {"role": "model", "parts": [{"text": SENTENCE}]}, "finishReason": "STOP", "index": 0}
    usage = {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2}
    body: dict[str, Any] = {"candidates": [said], "usageMetadata": usage}
    return _events([body]) if streams else json.dumps(body).encode()


OTHERS: dict[str, Callable[[bool], bytes]] = {
    "/responses": _responses,
    "/chat/completions": _completions,
    "enerateContent": _gemini,
}
"""By the end of a path."""


def _events(bodies: Sequence[dict[str, Any]]) -> bytes:
    named = ((f"event: {body['type']}\n" if "type" in body else "") + f"data: {json.dumps(body)}" for body in bodies)
    return "".join(f"{each}\n\n" for each in named).encode()


_HOLDING = ("system", "messages", "content", "text", "input", "instructions", "contents", "parts", "systemInstruction")


def _texts(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        return _texts([value.get(name) for name in _HOLDING])
    return [text for each in value or [] for text in _texts(each)] if isinstance(value, list) else []
