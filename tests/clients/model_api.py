"""A model of one sentence on a loopback port: what a coding agent sends to it is what its model would have seen."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class ModelApi:
    """Answers the Messages API; `seen` holds the bodies of the requests, in order."""

    def __init__(self) -> None:
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
                if body.get("stream"):
                    return self.tell(_streamed(body.get("model", "")), "text/event-stream")
                return self.tell(json.dumps(_message(body.get("model", ""), _TEXT)).encode(), "application/json")

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


_TEXT = "All done."
_USAGE = {"input_tokens": 1, "output_tokens": 1}


def _message(model: str, *texts: str) -> dict[str, Any]:
    content = [{"type": "text", "text": text} for text in texts]
    head = {"id": "msg_1", "type": "message", "role": "assistant", "model": model, "content": content}
    return {**head, "stop_reason": "end_turn" if texts else None, "stop_sequence": None, "usage": _USAGE}


def _streamed(model: str) -> bytes:
    events: list[dict[str, Any]] = [
        {"type": "message_start", "message": _message(model)},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": _TEXT}},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn", "stop_sequence": None}, "usage": _USAGE},
        {"type": "message_stop"},
    ]
    return "".join(f"event: {each['type']}\ndata: {json.dumps(each)}\n\n" for each in events).encode()


def _texts(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        return _texts([value.get("text"), value.get("content")])
    return [text for each in value or [] for text in _texts(each)] if isinstance(value, list) else []
