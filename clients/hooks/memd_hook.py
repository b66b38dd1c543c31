"""`memd-hook AGENT EVENT [reflect]`: the program that a coding agent runs on every turn, on the standard library alone.

It reads the host's JSON on standard input, prints the profile where it is due (Q1) and what the prompt recalls (Q13),
notes that a session grew, for `follow.py` (W10), starts `memd share pull` in a project whose user chose that (H2) and
`memd pi sync` in one whose `.pi` folder the user trusts (G2), and
with `reflect` asks the agent once for a reflection (W4).
Invariants: exit code 0, and valid output or none (P-3); it ends within 100 ms, or 600 ms where it asks; it never starts
a daemon, and writes only into its own folder. `memd setup` copies it beside its `hook.json`; the host runs it by
`python -I -S`. The start of Python takes most of its time; `json`, `signal` and `socket` would be half of that, because
they import `re` and `enum`, so the program uses their parts in C where the interpreter has them.
"""

from __future__ import annotations

import os
import sys
import time

TYPE_CHECKING = False  # importing it from `typing` is slow too
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

        class ScannerOptions:
            """The options of the scanner in C."""

            strict = False
            object_hook = object_pairs_hook = None
            parse_float = parse_constant = float
            parse_int = int
            memo = None

        scan, quoted = _json.make_scanner(ScannerOptions), _json.encode_basestring_ascii
    except (ImportError, AttributeError, TypeError):
        import json
        import signal
        import socket

        scan, quoted = json.JSONDecoder(strict=False).scan_once, json.dumps

LIMIT_MS, WHOLE_MS, LEAST_MS = 60, 100, 25
"""For the profile, for the process from its start, and for the profile at least, even if the process started late. A
note that a session grew may take the whole time: the turn is over, so no agent waits."""
REPORT_MS = 20
STARTED = {"json": ("pull", 3600), "sync": ("sync", 600)}
"""By the ending of a project's file: the command that the start of a session starts, and the seconds between two."""

ASK_MS = 500  # for the note of a question for the agent, once a session: it has to be on the disk first
SKIPS_LIMIT = 64 * 1024
INPUT_LIMIT = 64 * 1024 * 1024
TEXT_LIMIT = 9_500  # Claude Code cuts what is longer than 10,000 characters
PROMPT_LIMIT = 2_000  # that the daemon reads, half of them from the prompt's end

_CLAUDE: dict[str, Any] = {
    # sticky: the host keeps the printed text until it clears or compacts its context; a new revision is printed once.
    "delivery": "sticky",
    "inject": {"SessionStart", "UserPromptSubmit"},
    "start": "SessionStart",
    "triggers": {"startup": "start", "fork": "start", "resume": "resume", "clear": "clear", "compact": "compact"},
    "follow": {"Stop", "SubagentStop", "PreCompact", "SessionEnd"},
    "end": "SessionEnd",
    "urgent": "PreCompact",
    "stop": "Stop",
}
# per_turn: the host builds the context of each turn anew, without the text of the turn before.
_PER_TURN: dict[str, Any] = {"delivery": "per_turn", "triggers": {}, "urgent": "", "stop": "", "end": ""}
DIALECTS: dict[str, dict[str, Any]] = {
    "claude-code": _CLAUDE,
    "codex": _CLAUDE,
    "cursor": _CLAUDE
    | {"inject": {"sessionStart"}, "start": "sessionStart", "follow": {"stop", "sessionEnd"}, "end": "sessionEnd"}
    | {"urgent": "", "stop": ""},
    "gemini": _CLAUDE  # what its hook prints stays in the session
    | {"inject": {"SessionStart", "BeforeAgent"}, "follow": {"AfterAgent", "SessionEnd"}, "urgent": "", "stop": ""},
    "opencode": _PER_TURN | {"inject": {"chat.message"}, "start": "chat.message", "follow": {"session.idle"}},
    "pi": _PER_TURN
    | {"inject": {"before_agent_start"}, "start": "before_agent_start", "stop": "agent_end"}
    | {"follow": {"agent_end", "session_before_compact", "session_shutdown"}}
    | {"end": "session_shutdown", "urgent": "session_before_compact"},
    # aider reads a file at each turn, which is written after the one before.
    "aider": _PER_TURN | {"inject": {"turn_end"}, "start": "turn_end", "follow": {"turn_end"}},
}


class Skip(Exception):
    """The reason why the turn continues without memory."""


class DaemonRefusal(Skip):
    """The daemon's own reason."""


def age_s() -> float:
    """Return the seconds since the process started, by the kernel where it tells, else the CPU time."""
    try:
        with open("/proc/self/stat", "rb") as file:
            ticks = int(file.read().rpartition(b")")[2].split()[19])
        return max(0.0, time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK"))
    except (OSError, ValueError, AttributeError, IndexError):
        return time.process_time()


class Hook:
    """One call. `here`: the folder of the installed program, with its settings, the queue and the skips; `reflects`:
    whether the agent may be asked for a reflection (W4)."""

    def __init__(self, agent: str, event: str, here: str, end: float, reflects: bool = False) -> None:
        self.agent, self.event, self.here, self.end, self.reflects = agent, event, here, end, reflects
        self.dialect = DIALECTS[agent]
        with open(os.path.join(here, "hook.json"), "rb") as file:
            self.settings: dict[str, Any] = decoded(file.read())

    @property
    def is_disabled(self) -> bool:
        """Whether memd is disabled (W14)."""
        value = os.environ.get("MEMD_DISABLED", "").strip().lower()
        return value not in ("", "0", "false", "no", "off") or os.path.exists(self.settings["disabled"])

    def run(self) -> None:
        """Handle the event."""
        payload = self.adapted(decoded(_input() or b"{}"))
        session = str(payload.get("session_id") or "")
        is_inject = self.event in self.dialect["inject"]
        if not session or (is_inject and payload.get("agent_id")):  # a subagent gets no profile
            return
        if self.event == "SessionStart" and self.agent == "claude-code":
            self.name_session(session)
        if is_inject:
            self.inject(session, payload)
        if self.event == self.dialect["start"]:
            self.carry(str(payload.get("cwd") or ""))
        if self.event in self.dialect["follow"]:
            self.note(payload)
        if self.reflects and self.event == self.dialect["stop"]:
            self.ask_reflection(session, payload)

    def adapted(self, payload: dict[str, Any]) -> dict[str, Any]:
        """Return a payload with Claude Code's names. Cursor runs the hooks of Claude Code too, and aider gives none."""
        if self.agent == "cursor":
            folders = payload.get("workspace_roots") or [""]
            return {**payload, "session_id": payload.get("conversation_id"), "cwd": folders[0]}
        if self.agent == "aider":
            here = os.getcwd()
            paths = [os.path.join(folder, ".aider.chat.history.md") for folder in _upward(here)]
            path = next((path for path in paths if os.path.exists(path)), "")
            return {"session_id": path or here, "transcript_path": path, "history_cwd": os.path.dirname(path)}
        return {} if "cursor_version" in payload else payload

    def ask_reflection(self, session: str, payload: dict[str, Any]) -> None:
        """Ask the agent for a reflection where the daemon says so, which it does once a session (W4). A turn that goes
        on because of a hook, and a session with a pass, are not asked."""
        if payload.get("stop_hook_active") or payload.get("agent_id") or "MEMD_PASS" in os.environ:
            return
        connection = HookConnection(self.socket_path(), self.end)
        message: dict[str, Any] = {"request": "ask_reflection", "rid": 1, "document": f"{self.agent}:{session}"}
        if not connection.ask(message).get("due"):
            return
        signal.setitimer(signal.ITIMER_REAL, ASK_MS / 1000)
        connection.end = time.monotonic() + ASK_MS / 1000 - 0.003
        if question := str(connection.ask({**message, "rid": 2, "now": True}).get("text") or ""):
            wrapped = {"decision": "block", "reason": question}
            os.write(1, encoded({"reflect": question} if self.agent == "pi" else wrapped))

    def name_session(self, session: str) -> None:
        """Tell the session's shell commands which one it is (W11), in the file that Claude Code reads for them."""
        path = os.environ.get("CLAUDE_ENV_FILE")
        if path and session.replace("-", "").replace("_", "").isalnum() and session.isascii():
            _append(path, f"export MEMD_SESSION={self.agent}:{session}\n".encode())

    def inject(self, session: str, payload: dict[str, Any]) -> None:
        """Print the profile where it is due and what the prompt recalls, and report what was printed."""
        document, source = f"{self.agent}:{session}", str(payload.get("source") or "")
        trigger = "turn" if self.event.lower() != "sessionstart" else self.dialect["triggers"].get(source, "start")
        message = {"request": "profile", "rid": 1, "cwd": str(payload.get("cwd") or ""), "document": document}
        message |= {"delivery": self.dialect["delivery"], "trigger": trigger}
        connection = HookConnection(self.socket_path(), self.end)
        profile = self.profile(connection, message, bounded(payload.get("prompt")))
        recalled: dict[str, Any] = profile.get("recalled") or {}
        due = str(profile.get("text") or "") if profile.get("due", True) else ""
        text = "\n".join(filter(None, (due, recalled.get("text"))))
        if not text:
            if self.agent == "aider":  # what it was given before is forgotten or hidden
                self.give("")
            return
        if len(text) > TEXT_LIMIT:
            raise Skip(f"a profile of {len(text):,} characters is longer than the host takes")
        self.give(text)
        signal.setitimer(signal.ITIMER_REAL, 0)  # printed; if the report fails, the next turn prints it again
        connection.end = min(self.end, time.monotonic() + REPORT_MS / 1000)
        report = {"request": "printed", "rid": 2, "document": document, "rev": profile.get("rev", "") if due else ""}
        if recalled:
            report["recall"] = recalled["rev"]
        try:
            connection.ask(report)
        except Skip:
            return

    def give(self, text: str) -> None:
        """Give the text to the agent as its host reads it."""
        if self.agent == "aider":
            path = os.path.join(self.here, "aider.md")
            _append(f"{path}.{os.getpid()}", text.encode())
            return os.replace(f"{path}.{os.getpid()}", path)
        bare: dict[str, Any] = {"hookEventName": self.event, "additionalContext": text}
        answers = {"pi": {"context": text}, "opencode": {"context": text}, "cursor": {"additional_context": text}}
        os.write(1, encoded(answers.get(self.agent, {"hookSpecificOutput": bare})))

    @staticmethod
    def profile(connection: HookConnection, message: dict[str, Any], prompt: str) -> dict[str, Any]:
        """Return the daemon's answer. One of an older version knows no prompt, and is asked without it."""
        try:
            return connection.ask({**message, "prompt": prompt} if prompt else message)
        except DaemonRefusal:
            if not prompt:
                raise
            return connection.ask({**message, "rid": 3})

    def note(self, payload: dict[str, Any]) -> None:
        """Note that a session's file grew; start `follow.py` if a daemon listens, else a later call starts it. A pass
        is read-only, so a session with one is not captured."""
        path = str(payload.get("transcript_path") or "")
        if not path or "MEMD_PASS" in os.environ:
            return
        is_end = self.event == self.dialect["end"]
        cwd = str(payload.get("history_cwd") or payload.get("cwd") or "")
        note = {"agent": self.agent, "path": path, "cwd": cwd, "ended": is_end}
        note["urgent"] = self.event == self.dialect["urgent"]
        _append(os.path.join(self.here, "queue"), encoded(note) + b"\n")
        HookConnection(self.socket_path(), self.end, greet=False)
        self.spawn(self.settings["follow"])

    def carry(self, cwd: str) -> None:
        """Start the commands that the user chose for the project of a folder, if the last ones are old enough."""
        folder = os.path.join(self.here, "pulls")
        if not cwd or "MEMD_PASS" in os.environ or not os.path.isdir(folder):
            return
        inside = os.path.join(os.path.realpath(cwd), "")
        for name in os.listdir(folder):
            path = os.path.join(folder, name)
            command, least = STARTED.get(name.rpartition(".")[2], ("", 0))
            if command not in self.settings or time.time() - os.stat(path).st_mtime < least:
                continue
            with open(path, "rb") as file:
                checkout = str(decoded(file.read())["folder"])
            if inside.startswith(os.path.join(checkout, "")):
                os.utime(path)
                self.spawn([*self.settings[command], checkout])

    def spawn(self, command: list[str]) -> None:
        """Start a program that outlives this one."""
        files = [(os.POSIX_SPAWN_OPEN, fd, os.devnull, os.O_RDWR, 0) for fd in (0, 1, 2)]
        variables = {**os.environ, **self.settings["environment"]}
        os.posix_spawn(command[0], command, variables, file_actions=files, setsid=True)

    def socket_path(self) -> str:
        """Return the socket's path from the daemon's socket file."""
        try:
            with open(self.settings["socket"], encoding="utf-8") as file:
                return file.read().strip()
        except OSError as error:
            raise Skip("memd was never started here") from error

    def skip(self, reason: str) -> None:
        """Record a turn without memory, with its time, event and reason; halve the file when it is too long."""
        line = {"at": time.time(), "agent": self.agent, "event": self.event, "reason": reason[:200]}
        path = os.path.join(self.here, "skips")
        if _append(path, encoded(line) + b"\n") > SKIPS_LIMIT:
            with open(path, "rb") as file:
                newest = file.read()[-SKIPS_LIMIT // 2 :].partition(b"\n")[2]
            fresh = f"{path}.{os.getpid()}"
            _append(fresh, newest)
            os.replace(fresh, path)


class HookConnection:
    """One DEALER connection over a Unix socket: ZMTP 3.0 with the NULL mechanism. Raises Skip."""

    def __init__(self, path: str, end: float, greet: bool = True) -> None:
        self.end, self.names_itself = end, True
        self._buffer = b""
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._do(lambda: self._socket.connect(path))
        if hasattr(socket, "SO_PEERCRED"):  # another user could listen in a temporary folder
            content = self._socket.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)[4:8]
            uid = int.from_bytes(content, sys.byteorder)
        else:
            uid = os.stat(path).st_uid
        if uid != os.getuid():
            raise Skip("another user listens on memd's socket")
        if not greet:
            return
        ready = b"\x05READY\x0bSocket-Type\x00\x00\x00\x06DEALER\x08Identity\x00\x00\x00\x00"
        greeting = b"\xff" + bytes(8) + b"\x7f\x03\x00NULL" + bytes(48)
        self._do(lambda: self._socket.sendall(greeting + bytes((4, len(ready))) + ready))
        if self._take(64)[0] != 0xFF or not self._frame()[1].startswith(b"\x05READY"):
            raise Skip("the program on memd's socket does not speak ZMTP 3")

    def ask(self, message: dict[str, Any]) -> dict[str, Any]:
        """Send a request in a hook's name (G1), and return the data of its reply."""
        if self.names_itself:
            try:
                return self._asked({**message, "surface": "hook"})
            except DaemonRefusal as refusal:
                if "surface" not in str(refusal):
                    raise
                self.names_itself = False  # a daemon of an older version, until its next start
        return self._asked(message)

    def _asked(self, message: dict[str, Any]) -> dict[str, Any]:
        if "MEMD_PASS" in os.environ:  # an empty one is no pass, and not the owner's either
            message = {**message, "pass": os.environ["MEMD_PASS"] or "empty"}
        body = encoded(message)
        self._do(lambda: self._socket.sendall(b"\x02" + len(body).to_bytes(8, "big") + body))
        while True:
            flags, content = self._frame()
            if flags & 4:  # a command, such as PING
                continue
            reply = decoded(content)
            if reply.get("rid") in (message["rid"], 0):
                break
        if not reply.get("ok"):
            raise DaemonRefusal(str(reply.get("error", {}).get("message") or "refused"))
        return reply["data"]

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
            raise Skip("memd is busy: too many clients are waiting") from error
        except OSError as error:
            raise Skip("memd is not running") from error


def bounded(prompt: object) -> str:
    """Return the start and the end of a long prompt, "" for none."""
    if not isinstance(prompt, str):
        return ""
    half = PROMPT_LIMIT // 2
    text = prompt if len(prompt) <= PROMPT_LIMIT else f"{prompt[:half]}\n{prompt[-half:]}"
    return text.encode(errors="replace").decode()  # a host may send half of a character


def _upward(folder: str) -> list[str]:
    """Return a folder and those above it."""
    folders = [folder]
    while folders[-1] != os.path.dirname(folders[-1]):
        folders.append(os.path.dirname(folders[-1]))
    return folders


def decoded(content: bytes) -> Any:
    """Return the JSON value in `content`. Raises ValueError."""
    try:
        return scan(content.decode().strip(), 0)[0]
    except StopIteration as error:
        raise ValueError("not JSON") from error


def encoded(value: str | bool | int | float | dict[str, Any]) -> bytes:
    """Return a value of objects, texts, booleans and numbers as JSON."""
    if isinstance(value, dict):
        return b"{" + b",".join(encoded(key) + b":" + encoded(item) for key, item in value.items()) + b"}"
    return (quoted(value) if isinstance(value, str) else str(value).lower()).encode()


def _append(path: str, content: bytes) -> int:
    """Append in one write, so that simultaneous calls do not mix; return the file's size."""
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
    """Run one call, which ends the process with exit code 0."""
    is_note = arguments[1:2] and any(arguments[1] in dialect["follow"] for dialect in DIALECTS.values())
    left = WHOLE_MS / 1000 if is_note else max(LEAST_MS / 1000, min(LIMIT_MS / 1000, WHOLE_MS / 1000 - age_s()))
    hook: Hook | None = None

    def over(*_: object) -> NoReturn:
        _record(hook, f"no answer within {LIMIT_MS} ms")

    try:
        signal.signal(signal.SIGALRM, over)
        signal.setitimer(signal.ITIMER_REAL, left)
        hook = Hook(arguments[0], arguments[1], here, time.monotonic() + left - 0.003, "reflect" in arguments[2:])
        if not hook.is_disabled:
            hook.run()
    except Skip as why:
        if hook and hook.event in hook.dialect["inject"]:
            _record(hook, str(why))
    except BaseException as error:  # fail open: the agent continues after any error
        _record(hook, f"{type(error).__name__}: {error}")
    os._exit(0)


def _record(hook: Hook | None, reason: str) -> NoReturn:
    """Record a turn without memory, if that is possible, and end the process."""
    try:
        if hook:
            hook.skip(reason)
    finally:
        os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1:], os.path.dirname(os.path.abspath(__file__)))
