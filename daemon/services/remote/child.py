"""The process that calls a remote model: the only one of memd that connects to a network, and only for one call (W4).

It reads one task from its standard input, sends it, writes one answer and ends; it ends at once when the daemon does.
It opens no store and no log. It follows no redirect and uses no proxy; the key goes into the request alone.
"""

from __future__ import annotations

import errno
import os
import stat
import sys
import threading
import time
from collections.abc import Callable
from http import HTTPStatus
from pathlib import Path
from typing import IO
from urllib.parse import urlsplit

import httpx

from ....protocol.errors import InvalidRequest
from .call_messages import CallAnswer, RemoteTask, read_message, write_message
from .dialects import content_of, headers, path
from .provider import check_url

MOST_RESPONSE = 1 << 20
"""Bytes of a response that are read; a longer one is no list of statements."""

FORBIDDEN = (errno.EAFNOSUPPORT, errno.EPERM, errno.EACCES)
"""What opening a socket gives where the unit of systemd allows none."""

BAD_FORM = 400
CLIENT_ERROR, SERVER_ERROR, REDIRECT = range(400, 500), range(500, 600), range(300, 400)


class Unreadable(Exception):
    """The key's file can't be used."""


def key_in(file: str) -> str:
    """Return the key in a file. Raises Unreadable for a file that others may read."""
    if not file:
        return ""
    try:
        status = os.stat(file)
        if stat.S_IMODE(status.st_mode) & 0o077 or status.st_uid != os.getuid():
            raise Unreadable("the file with the key is open to others: `memd remote key` writes it anew")
        return Path(file).read_text(encoding="ascii").strip()
    except FileNotFoundError:
        return ""
    except (OSError, ValueError) as error:
        raise Unreadable(f"the file with the key can't be read: {type(error).__name__}") from error


class HttpCall:
    """Sends one task. `monotonic`: seconds."""

    def __init__(self, task: RemoteTask, monotonic: Callable[[], float]) -> None:
        self._task, self._monotonic = task, monotonic
        self._end = monotonic() + task.deadline_s
        self._sent = 0

    def answer(self) -> CallAnswer:
        """Send the task's bodies until the server takes one."""
        task = self._task
        try:
            check_url(task.url)
            key = key_in(task.key_file)
        except (InvalidRequest, Unreadable) as error:
            return CallAnswer(outcome="unsent", problem=str(error))
        timeout = httpx.Timeout(task.deadline_s, connect=task.connect_s)
        with httpx.Client(trust_env=False, follow_redirects=False, timeout=timeout) as client:
            for number, body in enumerate(task.bodies, 1):
                answer = self._send(client, body, key)
                if answer.status != BAD_FORM or number == len(task.bodies):
                    return answer
        return CallAnswer(outcome="unsent", problem="there is nothing to send")

    def _send(self, client: httpx.Client, body: str, key: str) -> CallAnswer:
        task, encoded = self._task, body.encode()
        fields = {"content-type": "application/json", "accept": "application/json", **headers(task.dialect, key)}
        url = task.url + path(task.dialect)
        try:
            with client.stream("POST", url, content=encoded, headers=fields) as response:
                self._sent += len(encoded)
                return self._outcome(response)
        except (httpx.ConnectError, httpx.ConnectTimeout) as error:
            problem = f"{urlsplit(task.url).netloc}: {type(error).__name__}"
            if any(f"[Errno {number}]" in str(error) for number in FORBIDDEN):
                problem = "this system forbids memd to connect: docs/REMOTE.md tells how to allow it"
            return CallAnswer(outcome="unsent", sent=self._sent, problem=problem)
        except httpx.TimeoutException:
            return CallAnswer(outcome="timed out", sent=max(self._sent, len(encoded)), problem="no answer in time")
        except (httpx.HTTPError, httpx.InvalidURL, ValueError) as error:
            sent = max(self._sent, len(encoded))
            return CallAnswer(outcome="failed", sent=sent, problem=f"the answer broke off: {type(error).__name__}")

    def _outcome(self, response: httpx.Response) -> CallAnswer:
        status, sent = response.status_code, self._sent
        if status in CLIENT_ERROR:
            retry_s = _seconds(response.headers.get("retry-after", ""))
            problem = f"the server refused the call with status {status}"
            return CallAnswer(outcome="refused", sent=sent, status=status, retry_s=retry_s, problem=problem)
        if status != HTTPStatus.OK:
            what = "redirected" if status in REDIRECT else "failed" if status in SERVER_ERROR else "answered"
            problem = f"the server {what} with status {status}"
            retry_s = _seconds(response.headers.get("retry-after", ""))
            return CallAnswer(outcome="failed", sent=sent, status=status, retry_s=retry_s, problem=problem)
        received = bytearray()
        for chunk in response.iter_bytes():
            received += chunk
            if self._monotonic() > self._end:
                return CallAnswer(outcome="timed out", sent=sent, status=status, problem="no whole answer in time")
            if len(received) > MOST_RESPONSE:
                return CallAnswer(outcome="dropped", sent=sent, status=status, problem="the answer is too long")
        is_stream = response.headers.get("content-type", "").startswith("text/event-stream")
        content, tokens = content_of(self._task.dialect, bytes(received), is_stream)
        return CallAnswer(outcome="taken", content=content, tokens=tokens, sent=sent, status=status)


def _seconds(words: str) -> float:
    return float(words) if words.isdigit() and len(words) < 6 else 0.0


def end_with(stream: IO[bytes]) -> None:
    """End this process when the daemon is gone."""
    stream.read()
    os._exit(1)


def main() -> None:
    """Answer the one task of the daemon."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a library prints never lies between the answers
    task = read_message(sys.stdin.buffer, RemoteTask)
    if task is None:
        return
    threading.Thread(target=end_with, args=(sys.stdin.buffer,), daemon=True).start()
    answer = HttpCall(task, time.monotonic).answer()
    try:
        write_message(answers, answer)
    finally:
        os._exit(0)  # the other thread waits for the daemon


if __name__ == "__main__":
    main()
