"""The process that calls a remote model: the only one of memd that connects to a network, and only for one call (W4).

It reads one task from its standard input, sends it, writes one answer and ends; it ends at once when the daemon does.
It opens no store and no log. It follows no redirect and uses no proxy; the key goes into the request alone.
"""

from __future__ import annotations

import errno
import os
import ssl
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
from .call_messages import READY, CallAnswer, RemoteTask, read_message, write_message
from .dialects import content_of, headers, path
from .provider import check_url

MOST_RESPONSE = 1 << 20
"""Bytes of a response that are read; a longer one is no list of statements."""

FORBIDDEN = (errno.EAFNOSUPPORT, errno.EPERM, errno.EACCES)
"""What opening a socket gives where the unit of systemd allows none."""

CLIENT_ERROR, REDIRECT = range(400, 500), range(300, 400)
FIELDS = {"content-type": "application/json", "accept": "application/json", "accept-encoding": "identity"}
"""Headers of every call. A compressed answer is not unpacked: a small one may become gigabytes."""


class Unusable(Exception):
    """A file that the call needs can't be used."""


def key_in(file: str) -> str:
    """Return the key in a file. Raises Unusable for a file that others may read, and for text that is no key."""
    if not file:
        return ""
    try:
        status = os.stat(file)
        if stat.S_IMODE(status.st_mode) & 0o077 or status.st_uid != os.getuid():
            raise Unusable("the file with the key is open to others: `memd remote key` writes it anew")
        key = Path(file).read_text(encoding="ascii").strip()
    except FileNotFoundError:
        return ""
    except (OSError, ValueError) as error:
        raise Unusable(f"the file with the key can't be read: {type(error).__name__}") from error
    if not key.isprintable() or " " in key:
        raise Unusable("the file with the key holds more than a key: `memd remote key` writes it anew")
    return key


def trusted(ca_file: str) -> ssl.SSLContext | bool:
    """Return the certificates to trust. Raises Unusable for a file without any."""
    try:
        return ssl.create_default_context(cafile=os.path.expanduser(ca_file)) if ca_file else True
    except OSError as error:
        raise Unusable(f"`ca_file` in [remote] can't be read: {type(error).__name__}") from error


class HttpCall:
    """Sends one task. `monotonic`: seconds."""

    def __init__(self, task: RemoteTask, monotonic: Callable[[], float]) -> None:
        self._task, self._monotonic = task, monotonic
        self._end = monotonic() + task.deadline_s
        self._body = task.body.encode()

    def answer(self) -> CallAnswer:
        """Send the task's body and read the response."""
        task, sent = self._task, len(self._body)
        try:
            check_url(task.url)
            fields, certificates = {**FIELDS, **headers(task.dialect, key_in(task.key_file))}, trusted(task.ca_file)
        except (InvalidRequest, Unusable) as error:
            return CallAnswer(outcome="unsent", problem=str(error))
        timeout = httpx.Timeout(task.deadline_s, connect=task.connect_s)
        try:
            with (
                httpx.Client(trust_env=False, follow_redirects=False, timeout=timeout, verify=certificates) as client,
                client.stream("POST", task.url + path(task.dialect), content=self._body, headers=fields) as response,
            ):
                return self._outcome(response)
        except (httpx.ConnectError, httpx.ConnectTimeout) as error:
            return CallAnswer(outcome="unsent", problem=_unconnected(urlsplit(task.url).netloc, error))
        except httpx.TimeoutException:
            return CallAnswer(outcome="timed out", sent=sent, problem="no answer in time")
        except (httpx.HTTPError, httpx.InvalidURL, ValueError) as error:
            return CallAnswer(outcome="failed", sent=sent, problem=f"the answer broke off: {type(error).__name__}")

    def _outcome(self, response: httpx.Response) -> CallAnswer:
        status, sent = response.status_code, len(self._body)
        if status != HTTPStatus.OK:
            what = "redirected" if status in REDIRECT else "refused" if status in CLIENT_ERROR else "failed"
            return CallAnswer(
                outcome="refused" if status in CLIENT_ERROR else "failed",
                sent=sent,
                status=status,
                retry_s=_seconds(response.headers.get("retry-after", "")),
                problem=f"the server {what} the call with status {status}",
            )
        received = bytearray()
        for chunk in response.iter_raw():
            received += chunk
            if self._monotonic() > self._end:
                return CallAnswer(outcome="timed out", sent=sent, status=status, problem="no whole answer in time")
            if len(received) > MOST_RESPONSE:
                return CallAnswer(outcome="dropped", sent=sent, status=status, problem="the answer is too long")
        is_stream = response.headers.get("content-type", "").startswith("text/event-stream")
        content, tokens = content_of(self._task.dialect, bytes(received), is_stream)
        return CallAnswer(outcome="taken", content=content, tokens=tokens, sent=sent, status=status)


def _unconnected(host: str, error: httpx.TransportError) -> str:
    """Return why there is no connection, for `memd status`."""
    words = str(error)
    if "CERTIFICATE_VERIFY_FAILED" in words:
        return f"{host} has a certificate that memd does not trust: docs/REMOTE.md tells how to name its authority"
    if any(f"[Errno {number}]" in words for number in FORBIDDEN):
        return "this system forbids memd to connect: docs/REMOTE.md tells how to allow it"
    return f"{host}: {type(error).__name__}"


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
    answers.write(READY)
    answers.flush()
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
