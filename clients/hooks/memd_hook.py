"""`memd-hook AGENT EVENT`: what a coding agent runs on every turn; a file of its own, on the standard library alone.

Comes in: the host's JSON on standard input. Goes out: the profile in the host's dialect, where it is due (Q1), or
nothing; a note that a session grew, for `follow.py` to read on with (W10). Invariants: exit code 0 and valid output or
none, whatever happens (P-3); over within 100 ms; it never starts a daemon, and writes nothing but in the folder it lies
in; what it could not print is counted there. `memd setup` copies it beside its `hook.json` and has it run by
`python -I -S`, so it outlives the environment that memd is installed in.

Most of what a turn costs is the start of Python, and half of that would be `json`, `signal` and `socket`, which import
`re` and `enum`: their parts in C are taken alone where an interpreter has them.
"""

from __future__ import annotations

import os
import sys
import time

TYPE_CHECKING = False  # that of `typing`, which is dear too
if TYPE_CHECKING:
    import signal
    import socket
    from collections.abc import Callable
    from typing import Any, NoReturn

    scan: Callable[[str, int], tuple[Any, int]]
    quoted: Callable[[str], str]
else:
    try:
        import _json
        import _signal as signal
        import _socket as socket

        class Reading:
            """How the scanner in C reads values."""

            strict = False
            object_hook = object_pairs_hook = None
            parse_float = parse_constant = float
            parse_int = int
            memo = None

        scan, quoted = _json.make_scanner(Reading), _json.encode_basestring_ascii
    except (ImportError, AttributeError, TypeError):
        import json
        import signal
        import socket

        scan, quoted = json.JSONDecoder(strict=False).scan_once, json.dumps

LIMIT_MS, WHOLE_MS, LEAST_MS = 60, 100, 25
"""How long the profile may take, whatever the daemon or the disk do; how long from the start of the process; and what
is tried all the same where a busy machine took so long to start it. A note that a session grew has the whole for
itself: the turn is over, and nobody waits for its words."""
REPORT_MS = 20
SKIPS_LIMIT = 64 * 1024
INPUT_LIMIT = 64 * 1024 * 1024
TEXT_LIMIT = 9_500
"""Claude Code cuts what is longer than 10,000 characters."""

DIALECTS: dict[str, dict[str, Any]] = {
    # sticky: the host keeps what was printed until it clears or compacts its context; a new revision is printed once.
    "claude-code": {
        "delivery": "sticky",
        "inject": {"SessionStart", "UserPromptSubmit"},
        "triggers": {"startup": "start", "fork": "start", "resume": "resume", "clear": "clear", "compact": "compact"},
        "follow": {"Stop", "SubagentStop", "PreCompact", "SessionEnd"},
        "end": "SessionEnd",
        "wrapped": True,
    },
    # per_turn: the host builds its system prompt anew for each turn and forgets what was put in.
    "pi": {
        "delivery": "per_turn",
        "inject": {"before_agent_start"},
        "triggers": {},
        "follow": {"agent_end", "session_before_compact", "session_shutdown"},
        "end": "session_shutdown",
        "wrapped": False,
    },
}


class Skip(Exception):
    """The turn goes on without memory, and why."""


def age_s() -> float:
    """Seconds since the process was started: by the kernel's own note where there is one, else the time computed."""
    try:
        with open("/proc/self/stat", "rb") as file:
            ticks = int(file.read().rpartition(b")")[2].split()[19])
        return max(0.0, time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK"))
    except (OSError, ValueError, AttributeError, IndexError):
        return time.process_time()


class Hook:
    """One call. `here` is the folder of the installed program: its settings, the queue, the skips."""

    def __init__(self, agent: str, event: str, here: str, end: float) -> None:
        self.agent, self.event, self.here, self.end = agent, event, here, end
        self.dialect = DIALECTS[agent]
        with open(os.path.join(here, "hook.json"), "rb") as file:
            self.settings: dict[str, Any] = decoded(file.read())

    @property
    def is_disabled(self) -> bool:
        """Whether memd is switched off (W14)."""
        value = os.environ.get("MEMD_DISABLED", "").strip().lower()
        return value not in ("", "0", "false", "no", "off") or os.path.exists(self.settings["disabled"])

    def run(self) -> None:
        """Does what the event asks for."""
        payload = decoded(_input() or b"{}")
        session = str(payload.get("session_id") or "")
        is_subagent = bool(payload.get("agent_id")) and self.event in self.dialect["inject"]
        if is_subagent or not session:
            return
        if self.event in self.dialect["inject"]:
            self.inject(session, str(payload.get("cwd") or ""), str(payload.get("source") or ""))
        if self.event in self.dialect["follow"]:
            self.note(payload)

    def inject(self, session: str, cwd: str, source: str) -> None:
        """Prints the profile where it is due, and reports that it was printed."""
        document = f"{self.agent}:{session}"
        wish = {"request": "profile", "rid": 1, "cwd": cwd, "document": document, "delivery": self.dialect["delivery"]}
        trigger = "turn" if self.event != "SessionStart" else self.dialect["triggers"].get(source, "start")
        connection = Connection(self.socket_path(), self.end)
        told = connection.ask({**wish, "trigger": trigger})
        text = str(told.get("text") or "")
        if not text or not told.get("due", True):
            return
        if len(text) > TEXT_LIMIT:
            raise Skip(f"a profile of {len(text):,} characters is longer than the host takes")
        bare: dict[str, Any] = {"hookEventName": self.event, "additionalContext": text}
        answer = {"hookSpecificOutput": bare} if self.dialect["wrapped"] else {"context": text}
        os.write(1, encoded(answer))
        signal.setitimer(signal.ITIMER_REAL, 0)  # it is said; where the report fails, it is said once more
        connection.end = min(self.end, time.monotonic() + REPORT_MS / 1000)
        try:
            connection.ask({"request": "printed", "rid": 2, "document": document, "rev": told.get("rev", "")})
        except Skip:
            return

    def note(self, payload: dict[str, Any]) -> None:
        """Notes that a session's file grew, and has it read on while a daemon listens; else it waits for the next."""
        path = str(payload.get("transcript_path") or "")
        if not path:
            return
        is_end = self.event == self.dialect["end"]
        note = {"agent": self.agent, "path": path, "cwd": str(payload.get("cwd") or ""), "ended": is_end}
        _append(os.path.join(self.here, "queue"), encoded(note) + b"\n")
        Connection(self.socket_path(), self.end, greet=False)
        files = [(os.POSIX_SPAWN_OPEN, fd, os.devnull, os.O_RDWR, 0) for fd in (0, 1, 2)]
        command: list[str] = self.settings["follow"]
        surroundings = {**os.environ, **self.settings["environment"]}
        os.posix_spawn(command[0], command, surroundings, file_actions=files, setsid=True)

    def socket_path(self) -> str:
        """Where the daemon listens, as it wrote it down itself."""
        try:
            with open(self.settings["socket"], encoding="utf-8") as file:
                return file.read().strip()
        except OSError as error:
            raise Skip("memd was never started here") from error

    def skip(self, reason: str) -> None:
        """Counts a turn without memory: when, where, why. The file is cut in half when it grows too long."""
        line = {"at": time.time(), "agent": self.agent, "event": self.event, "reason": reason[:200]}
        path = os.path.join(self.here, "skips")
        if _append(path, encoded(line) + b"\n") > SKIPS_LIMIT:
            with open(path, "rb") as file:
                kept = file.read()[-SKIPS_LIMIT // 2 :].partition(b"\n")[2]
            fresh = f"{path}.{os.getpid()}"
            _append(fresh, kept)
            os.replace(fresh, path)


class Connection:
    """One DEALER connection, by hand: ZMTP 3.0 with the NULL mechanism over a Unix socket. Raises Skip."""

    def __init__(self, path: str, end: float, greet: bool = True) -> None:
        self.end = end
        self._buffer = b""
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._do(lambda: self._socket.connect(path))
        if hasattr(socket, "SO_PEERCRED"):  # whoever listens in a temporary folder must be the same user
            uid = self._socket.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)[4:8]
            if int.from_bytes(uid, sys.byteorder) != os.getuid():
                raise Skip("another user listens where memd should")
        elif os.stat(path).st_uid != os.getuid():
            raise Skip("another user listens where memd should")
        if not greet:
            return
        ready = b"\x05READY\x0bSocket-Type\x00\x00\x00\x06DEALER\x08Identity\x00\x00\x00\x00"
        greeting = b"\xff" + bytes(8) + b"\x7f\x03\x00NULL" + bytes(48)
        self._do(lambda: self._socket.sendall(greeting + bytes((4, len(ready))) + ready))
        if self._take(64)[0] != 0xFF or not self._frame()[1].startswith(b"\x05READY"):
            raise Skip("what listens does not speak ZMTP 3")

    def ask(self, wish: dict[str, Any]) -> dict[str, Any]:
        """The data of the answer to a request."""
        body = encoded(wish)
        self._do(lambda: self._socket.sendall(b"\x02" + len(body).to_bytes(8, "big") + body))
        while True:
            flags, content = self._frame()
            if flags & 4:  # a command, such as PING
                continue
            told = decoded(content)
            if told.get("rid") in (wish["rid"], 0):
                break
        if not told.get("ok"):
            raise Skip(str(told.get("error", {}).get("message") or "refused"))
        return told["data"]

    def _frame(self) -> tuple[int, bytes]:
        flags = self._take(1)[0]
        return flags, self._take(int.from_bytes(self._take(8 if flags & 2 else 1), "big"))

    def _take(self, size: int) -> bytes:
        while len(self._buffer) < size:
            received = self._do(lambda: self._socket.recv(65536))
            if not received:
                raise Skip("the daemon closed the connection")
            self._buffer += received
        taken, self._buffer = self._buffer[:size], self._buffer[size:]
        return taken

    def _do(self, work: Callable[[], Any]) -> Any:
        left = self.end - time.monotonic()
        try:
            if left <= 0:
                raise TimeoutError
            self._socket.settimeout(left)
            return work()
        except TimeoutError as error:
            raise Skip(f"no answer within {LIMIT_MS} ms") from error
        except BlockingIOError as error:
            raise Skip("memd is busy: too many clients wait") from error
        except OSError as error:
            raise Skip("memd is not running") from error


def decoded(content: bytes) -> Any:
    """The JSON value in `content`. Raises ValueError."""
    try:
        return scan(content.decode().strip(), 0)[0]
    except StopIteration as error:
        raise ValueError("not JSON") from error


def encoded(value: str | bool | int | float | dict[str, Any]) -> bytes:
    """A value of objects, texts, booleans and numbers as JSON."""
    if isinstance(value, dict):
        return b"{" + b",".join(encoded(key) + b":" + encoded(each) for key, each in value.items()) + b"}"
    return (quoted(value) if isinstance(value, str) else str(value).lower()).encode()


def _append(path: str, content: bytes) -> int:
    """Appends in one write, so that calls at the same time do not mix; how long the file is then."""
    file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        os.write(file, content)
        return os.fstat(file).st_size
    finally:
        os.close(file)


def _input() -> bytes:
    pieces: list[bytes] = []
    while (piece := os.read(0, 1 << 20)) and len(pieces) < INPUT_LIMIT >> 16:
        pieces.append(piece)
    return b"".join(pieces)


def main(arguments: list[str], here: str) -> NoReturn:
    """The whole call. Never returns, and never with another exit code than 0."""
    is_note = arguments[1:2] and any(arguments[1] in dialect["follow"] for dialect in DIALECTS.values())
    left = WHOLE_MS / 1000 if is_note else max(LEAST_MS / 1000, min(LIMIT_MS / 1000, WHOLE_MS / 1000 - age_s()))
    hook: Hook | None = None

    def over(*_: object) -> NoReturn:
        if hook:
            hook.skip(f"no answer within {LIMIT_MS} ms")
        os._exit(0)

    try:
        signal.signal(signal.SIGALRM, over)
        signal.setitimer(signal.ITIMER_REAL, left)
        hook = Hook(arguments[0], arguments[1], here, time.monotonic() + left - 0.003)
        if not hook.is_disabled:
            hook.run()
    except Skip as why:
        if hook and hook.event in hook.dialect["inject"]:
            hook.skip(str(why))
    except BaseException as error:  # fail open: whatever this is, the agent goes on
        _tell(hook, error)
    os._exit(0)


def _tell(hook: Hook | None, error: BaseException) -> None:
    try:
        if hook:
            hook.skip(f"{type(error).__name__}: {error}")
    finally:
        os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1:], os.path.dirname(os.path.abspath(__file__)))
