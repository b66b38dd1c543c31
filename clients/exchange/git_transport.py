"""Runs git between a private bare repository and its remote, as the user would, and nothing of his but the transport.

Invariants: no shell; no variable and no setting that names another repository, a hook or a work tree has an effect;
the settings of the user's checkout that reach a host (credentials, proxies, ssh, other names of addresses) have theirs;
git asks only at a terminal; a silent git in the background is ended.
"""

from __future__ import annotations

import os
import re
import selectors
import shlex
import signal
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from ...protocol.errors import InvalidRequest, MemdError, RemoteRefusal, RemoteUnreachable, StorageFull

REMOTE = "memd"
"""The name of the remote in the private repository."""

SILENCE_S = 20.0
"""Seconds without a word after which git is ended, unless a user sits before it."""

OLDEST = (2, 31)
"""The first git that takes settings from the environment."""

_HANDED_ON = re.compile(r"(?:credential|http|url|ssh|protocol)\..+|core\.sshcommand|core\.askpass", re.S)
_ASKING = frozenset({"core.askpass"})
_KEPT_VARIABLES = re.compile(r"GIT_(?:SSH|SSH_COMMAND|SSH_VARIANT|SSL_.+|HTTP_.+|PROXY_.+|EXEC_PATH|TRACE.*)")
_OWN_SETTINGS = (
    ("core.hooksPath", os.devnull),
    ("core.fsmonitor", "false"),
    ("core.logAllRefUpdates", "false"),
    ("gc.auto", "0"),
    ("maintenance.auto", "false"),
    ("fetch.fsckObjects", "true"),
)
_UNREACHABLE = re.compile(
    r"could not resolve|couldn't connect|failed to connect|could not connect|connection (?:refused|timed out|reset)"
    r"|connection (?:was )?closed|timed out|unreachable|no route to host|unable to look up|name resolution"
    r"|could not read (?:username|password)|prompts disabled|authentication failed|permission denied \("
    r"|host key verification|hung up unexpectedly|early eof|returned error: (?:401|407|429|5\d\d)|unable to connect",
    re.I,
)
_ALWAYS_SAID = re.compile(r"fatal: Could not read from remote|Please make sure you have|and the repository exists")
_FULL = re.compile(r"^(?!remote:).*(?:no space left on device|disk quota exceeded)", re.I | re.M)


class GitTransport:
    """git in one private repository. `checkout`: a folder of the user's repository, None for no settings of it."""

    def __init__(self, repository: Path, address: str, checkout: Path | None, *, interactive: bool) -> None:
        self._repository, self._checkout, self._interactive = repository, checkout, interactive
        self.address = _absolute(address, checkout)
        self.kept_open: tuple[int, ...] = ()
        self._variables: dict[str, str] | None = None

    def run(self, *arguments: str) -> str:
        """Run git in the private repository and return what it prints. Raises RemoteUnreachable, RemoteRefusal,
        StorageFull, InvalidRequest."""
        code, output, errors = self.attempt(*arguments)
        if code:
            raise self.failure(errors)
        return output

    def attempt(self, *arguments: str) -> tuple[int, str, str]:
        """Run git and return its exit code, output and error output. Raises RemoteUnreachable, InvalidRequest."""
        if self._variables is None:
            self._variables = self._environment()
        try:
            process = subprocess.Popen(
                ["git", "--no-pager", *arguments],
                cwd=self._repository,
                env=self._variables,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                pass_fds=self.kept_open,
                start_new_session=not self._interactive,
            )
        except FileNotFoundError as error:
            raise _missing() from error
        output, errors = self._outputs(process)
        return process.wait(), output.decode(errors="replace"), errors.decode(errors="replace")

    def failure(self, errors: str) -> MemdError:
        """Return the error that git's error output tells of."""
        if old := _too_old():
            return old
        reason = _reason(errors)
        if _FULL.search(errors):
            return StorageFull(f"git could not write to {self._repository}: the disk is full", hint="free some space")
        if _UNREACHABLE.search(errors):
            return RemoteUnreachable(
                f"{self.shown} cannot be reached: {reason}",
                hint=f"try `git ls-remote {shlex.quote(self.shown)}`; what you share waits and goes with the next push",
            )
        return RemoteRefusal(
            f"{self.shown} refused: {reason}",
            hint="check that you may push there, or name another repository: memd share on --remote URL",
        )

    @property
    def shown(self) -> str:
        """The address without a password."""
        return re.sub(r"(?<=://)[^/@]*:[^/@]*@", "", self.address)

    # --- settings ----------------------------------------------------------------------------------------------------
    def _environment(self) -> dict[str, str]:
        settings = [*_OWN_SETTINGS, ("remote.memd.url", self.address)]
        theirs = list(self._settings()) if self._checkout else []
        settings += [(name, value) for name, value in theirs if self._is_handed_on(name)]
        if proxy := _proxy(theirs, self.address):
            settings.append(("remote.memd.proxy", proxy))
        variables = _clean(os.environ)
        if not self._interactive:
            settings += [("credential.interactive", "false"), ("http.lowSpeedLimit", "1")]
            settings.append(("http.lowSpeedTime", str(int(SILENCE_S))))
            variables |= _without_questions(variables, theirs)
        variables |= {
            "LC_ALL": "C",
            "GIT_DIR": str(self._repository),
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_CONFIG_SYSTEM": os.devnull,
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_NO_LAZY_FETCH": "1",
            "GIT_TERMINAL_PROMPT": "1" if self._interactive else "0",
            "GIT_CONFIG_COUNT": str(len(settings)),
        }
        for number, (name, value) in enumerate(settings):
            variables |= {f"GIT_CONFIG_KEY_{number}": name, f"GIT_CONFIG_VALUE_{number}": value}
        return variables

    def _is_handed_on(self, name: str) -> bool:
        return bool(_HANDED_ON.fullmatch(name)) and (self._interactive or name not in _ASKING)

    def _settings(self) -> Iterator[tuple[str, str]]:
        """Yield names and values that hold in the checkout, those of the user and of the machine included."""
        variables = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith("GIT_") or name.startswith("GIT_CONFIG")
        }
        command = ["git", "config", "--list", "-z"]
        try:
            done = subprocess.run(
                command, cwd=self._checkout, env=variables, capture_output=True, check=False, stdin=subprocess.DEVNULL
            )
        except FileNotFoundError as error:
            raise _missing() from error
        except NotADirectoryError:
            return
        for entry in done.stdout.decode(errors="surrogateescape").split("\0"):
            name, line, value = entry.partition("\n")
            if name:
                yield name, value if line else "true"

    # --- output ------------------------------------------------------------------------------------------------------
    def _outputs(self, process: subprocess.Popen[bytes]) -> tuple[bytes, bytes]:
        """Return what a process prints. Raises RemoteUnreachable if it is silent for too long in the background."""
        assert process.stdout and process.stderr
        outputs = {process.stdout: bytearray(), process.stderr: bytearray()}
        limit = None if self._interactive else SILENCE_S
        try:
            with selectors.DefaultSelector() as selector:
                for stream, data in outputs.items():
                    selector.register(stream, selectors.EVENT_READ, data)
                while selector.get_map():
                    ready = selector.select(limit)
                    if not ready:
                        raise RemoteUnreachable(
                            f"{self.shown} did not answer for {SILENCE_S:.0f} s", hint="try again later"
                        )
                    for key, _ in ready:
                        piece = os.read(key.fd, 65_536)
                        key.data.extend(piece)
                        if not piece:
                            selector.unregister(key.fileobj)
        except BaseException:
            self._end(process)
            raise
        finally:
            process.stdout.close()
            process.stderr.close()
        process.wait()
        first, second = outputs.values()
        return bytes(first), bytes(second)

    def _end(self, process: subprocess.Popen[bytes]) -> None:
        """End a process; in the background also what it started."""
        with suppress(ProcessLookupError):
            if self._interactive:
                process.terminate()
            else:
                os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _clean(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables without those by which git would find another repository, index, work tree or setting."""
    return {
        name: value
        for name, value in environment.items()
        if not name.startswith("GIT_") or _KEPT_VARIABLES.fullmatch(name) or name == "GIT_ASKPASS"
    }


def _without_questions(variables: dict[str, str], settings: list[tuple[str, str]]) -> dict[str, str]:
    """Remove the programs that ask the user from the variables, and return those that keep ssh from asking."""
    for name in ("GIT_ASKPASS", "SSH_ASKPASS"):
        variables.pop(name, None)
    command = variables.get("GIT_SSH_COMMAND") or dict(settings).get("core.sshcommand") or ""
    if not command and "GIT_SSH" in variables:
        return {"SSH_ASKPASS_REQUIRE": "never"}
    command = command or "ssh"
    program = command.split(maxsplit=1)[0]
    if os.path.basename(program) == "ssh":
        command += f" -o BatchMode=yes -o ConnectTimeout={SILENCE_S:.0f}"
    return {"SSH_ASKPASS_REQUIRE": "never", "GIT_SSH_COMMAND": command}


def _proxy(settings: list[tuple[str, str]], address: str) -> str:
    """Return the proxy that the checkout has for a remote with this address."""
    values = dict(settings)
    for name, value in settings:
        if name.startswith("remote.") and name.endswith(".url") and value == address:
            return values.get(name.removesuffix("url") + "proxy", "")
    return ""


def _absolute(address: str, checkout: Path | None) -> str:
    """Return an address; a path is relative to the checkout. Raises InvalidRequest."""
    if not address or address.startswith("-") or not address.isprintable():
        raise InvalidRequest("this is no address of a remote", hint="memd share on --remote URL")
    if "://" in address or address.startswith("/"):
        return address
    path = (checkout or Path()) / address
    return str(path.resolve()) if path.exists() else address


def _reason(errors: str) -> str:
    """Return the line of git's error output that says most."""
    lines = [line.strip() for line in re.split(r"[\r\n]+", errors) if line.strip()]
    lines = [line for line in lines if not _ALWAYS_SAID.match(line)] or lines
    for mark in ("remote: error:", "! [", "fatal:", "error:", "ssh:"):
        for line in lines:
            if line.startswith(mark):
                return "".join(c for c in line.removeprefix("fatal:").strip() if c.isprintable())[:300]
    return "".join(c for c in lines[-1] if c.isprintable())[:300] if lines else "git failed"


def _missing() -> InvalidRequest:
    return InvalidRequest("git is not installed", hint=f"install git {OLDEST[0]}.{OLDEST[1]} or newer")


def _too_old() -> InvalidRequest | None:
    """Return an error for a git that takes no settings from the environment."""
    try:
        text = subprocess.run(["git", "version"], capture_output=True, check=False, text=True).stdout
    except OSError:
        return _missing()
    match = re.search(r"(\d+)\.(\d+)", text)
    if match and (int(match[1]), int(match[2])) < OLDEST:
        return InvalidRequest(
            f"git {match[0]} is too old to share a project", hint=f"install git {OLDEST[0]}.{OLDEST[1]} or newer"
        )
    return None
