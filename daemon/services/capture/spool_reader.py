"""Reads the spool files that clients wrote while no daemon ran or while they could not wait.

Invariants: a file is renamed under its writers' locks before it is read, so nobody appends to it afterwards; it is
removed once every request in it is acknowledged (a crash reads it again: turns are idempotent); an invalid request is
moved to a `.rejected` file, without its secrets; order holds within a file.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path

from ....protocol.errors import Forgotten, InvalidRequest, MemdError, UnknownRequest, Withheld
from ....protocol.frames import framed
from ....protocol.reply import AnyData, Taken
from ....protocol.request import Capture, Remember
from ....protocol.secret_gate import SecretGate
from ....protocol.wire import decode_request, encode_request, form
from ...storage.durable_files import sync
from ...storage.spool_files import LINES, bodies_in, take_lines, try_lock
from ...world import World
from ..service import CaptureRequest, Respond

TAKEN, REJECTED = ".taken", ".rejected"
LOCKED = ".spool"
"""Frames; their writers lock the file. A file of the other kind, `LINES`, has one writer, which does not."""

LOCKED_S = 30.0
"""Age at which the daemon delivers a locked spool instead of its client."""

REJECTED_LIMIT = 16 * 1024 * 1024
ANSWER_S = 60.0
log = logging.getLogger("memd.spool")


class SpoolReader:
    """Reads one spool folder on a thread of its own; the scheduler would cost an idle machine four times as much."""

    def __init__(
        self,
        folder: Path,
        take: Callable[[Sequence[tuple[CaptureRequest, Respond]]], None],
        note: Callable[[str, str], None],
        world: World,
        every_s: float,
        gate: SecretGate,
    ) -> None:
        self._gate = gate
        self._folder, self._take, self._note, self._world = folder, take, note, world
        self._every_s, self._stopping = every_s, threading.Event()
        self._thread = threading.Thread(target=self._run, name="spool", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """End the thread without waiting for answers; unacknowledged requests stay in their files."""
        self._stopping.set()
        if self._thread.ident is not None:
            self._thread.join()

    def _run(self) -> None:
        while not self._stopping.wait(self._every_s):
            try:
                self.tick()
            except Exception:  # one file must not block all others
                log.exception("could not empty the spool")

    def tick(self) -> None:
        """Read the files that the last tick renamed, then rename the present ones; by then their writers have ended."""
        try:
            names = sorted(os.listdir(self._folder))
            for name in names:
                if name.endswith(TAKEN):
                    self._take_in(self._folder / name)
            for name in names:
                if name.endswith((LOCKED, LINES)):
                    self._rename(self._folder / name)
        except FileNotFoundError:
            pass  # nobody spooled yet, or a client was faster
        except OSError as error:
            log.warning("the spool folder can't be read: %s", error)

    def _rename(self, path: Path) -> None:
        taken = path.with_name(path.name + TAKEN)
        if taken.exists() or not path.is_file():
            return
        status = path.stat()
        if path.suffix == LOCKED and self._world.now() / 1e6 - status.st_mtime < LOCKED_S:
            return
        if not status.st_size:
            if path.suffix == LINES and not _writes(path):
                path.unlink()
            return
        with ExitStack() as locks:
            if path.suffix == LINES:
                take_lines(path, taken)
            elif try_lock(path, locks):  # else a client delivers or writes: try at the next tick
                path.rename(taken)

    def _take_in(self, path: Path) -> None:
        content = path.read_bytes()
        bodies, end, as_lines = bodies_in(content)
        waits = self._commit(path, bodies, as_lines)
        if waits:
            self._note("spool waits", f"{path.name}: {waits}")
            return
        if rest := content[end:]:
            self._set_aside(path, self._legible(rest), f"{len(rest)} bytes are not a request")
        if path.stat().st_size == len(content):
            path.unlink()
            sync(self._folder)

    def _commit(self, path: Path, bodies: Sequence[bytes], as_lines: bool) -> str:
        """Commit requests; return why some of them must wait, "" if none must."""
        wishes: list[tuple[bytes, CaptureRequest]] = []
        refused: list[tuple[bytes, str]] = []  # set aside only when none waits, or each tick would do it again
        for body in bodies:
            try:
                wish = decode_request(body)
                if not isinstance(wish, Capture | Remember):
                    raise InvalidRequest(f"a spool may not hold a {type(wish).__name__} request")
                if wish.token:
                    raise InvalidRequest("a spool may not hold a request with a pass, because a pass is read-only")
                wishes.append((body, wish))
            except UnknownRequest as error:  # of a later version of memd, which will read it
                return error.message
            except MemdError as error:
                refused.append((self._legible(body), self._gate.error(error).message))
        answers = self._asked([wish for _, wish in wishes])
        if answers is None:
            return "the write thread does not respond"
        for (body, wish), answer in zip(wishes, answers, strict=True):
            if isinstance(answer, MemdError) and not isinstance(answer, InvalidRequest):
                return answer.message
            if problem := _refusal(answer):
                refused.append((self._clean(wish, body), problem))
        for body, problem in refused:
            self._set_aside(path, _entry(body, as_lines), problem)
        if wishes:
            self._note("spool taken", f"{len(wishes)} requests of {path.name.removesuffix(TAKEN)}")
        return ""

    def _asked(self, wishes: Sequence[CaptureRequest]) -> list[AnyData | MemdError] | None:
        answers: dict[int, AnyData | MemdError] = {}
        done = threading.Event()

        def responder(number: int) -> Respond:
            def respond(answer: AnyData | MemdError) -> None:
                answers[number] = answer
                if len(answers) == len(wishes):
                    done.set()

            return respond

        if not wishes:
            return []
        self._take([(wish, responder(number)) for number, wish in enumerate(wishes)])
        end = self._world.monotonic() + ANSWER_S
        while not done.wait(0.2):
            if self._stopping.is_set() or self._world.monotonic() > end:
                return None
        return [answers[number] for number in range(len(wishes))]

    def _clean(self, wish: CaptureRequest, body: bytes) -> bytes:
        """Return a refused request without its secrets, so that a later `forget` still finds its events."""
        try:
            clean = self._gate.spooled(wish)
            return body if clean == wish else encode_request(clean, form(body))
        except MemdError:
            return self._legible(body)

    def _legible(self, content: bytes) -> bytes:
        """Return bytes that are no request without the secrets in them."""
        return self._gate.text(content.decode("latin-1")).encode("latin-1")

    def _set_aside(self, path: Path, content: bytes, why: str) -> None:
        rejected = self._folder / (path.name.removesuffix(TAKEN).rpartition(".")[0] + REJECTED)
        file = os.open(rejected, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            if os.fstat(file).st_size + len(content) > REJECTED_LIMIT:
                os.ftruncate(file, 0)
            os.write(file, content)
            os.fsync(file)
        finally:
            os.close(file)
        self._note("refused", f"{path.name.removesuffix(TAKEN)}: {why}; moved to {rejected.name}")


def _entry(body: bytes, as_lines: bool) -> bytes:
    return body + b"\n" if as_lines else framed(body)


def _refusal(answer: AnyData | MemdError) -> str:
    if isinstance(answer, Forgotten | Withheld):  # final: no client needs to send it again
        return ""
    if isinstance(answer, MemdError):
        return answer.message
    return answer.refused[0].problem.message if isinstance(answer, Taken) and answer.refused else ""


def _writes(path: Path) -> bool:
    """Return whether the process that writes a `NAME-PID-….lines` file still runs."""
    pid = path.name.split("-")[1] if path.name.count("-") > 1 else ""
    if not pid.isdecimal():
        return True
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        return True
    return True
