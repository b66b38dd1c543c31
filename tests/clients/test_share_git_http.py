"""Git over HTTP with a password: the checkout's credential helper, and nothing asks in the background (H1)."""

from __future__ import annotations

import base64
import os
import subprocess
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from memd.clients.exchange import carrying
from memd.clients.exchange.git_exchange import GitExchange
from memd.protocol.errors import RemoteRefusal, RemoteUnreachable
from tests.clients.sharing_members import (
    Member,
    SharedProject,
    author_of,
    own_settings,
    raw_push,
    refs,
    running_members,
)
from tests.conftest import RunningDaemon

__all__ = ["own_settings"]

SECRET = base64.b64encode(b"ada:wisteria").decode()


class GitOverHttp(BaseHTTPRequestHandler):
    """git http-backend behind basic authentication."""

    root: Path
    forbidden = False

    def do_GET(self) -> None:
        self._answer(b"")

    def do_POST(self) -> None:
        if self.headers.get("Transfer-Encoding") == "chunked":
            body = b""
            while size := int(self.rfile.readline(), 16):
                body += self.rfile.read(size)
                self.rfile.readline()
        else:
            body = self.rfile.read(int(self.headers["Content-Length"]))
        self._answer(body)

    def _answer(self, body: bytes) -> None:
        given = self.headers.get("Authorization", "")
        if given != f"Basic {SECRET}" or self.forbidden:
            self.send_response(403 if self.forbidden and given else 401)
            self.send_header("WWW-Authenticate", 'Basic realm="git"')
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        path, _, query = self.path.partition("?")
        variables = {
            "PATH": os.environ["PATH"],
            "GIT_PROJECT_ROOT": str(self.root),
            "GIT_HTTP_EXPORT_ALL": "1",
            "REMOTE_USER": "ada",
            "REQUEST_METHOD": self.command,
            "PATH_INFO": path,
            "QUERY_STRING": query,
            "CONTENT_TYPE": self.headers.get("Content-Type", ""),
            "CONTENT_LENGTH": str(len(body)),
            "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
            "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
        }
        done = subprocess.run(["git", "http-backend"], input=body, capture_output=True, env=variables, check=True)
        head, _, content = done.stdout.partition(b"\r\n\r\n")
        headers = dict(line.split(": ", 1) for line in head.decode().split("\r\n"))
        self.send_response(int(headers.pop("Status", "200").split()[0]))
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture(scope="module")
def daemon_of_ada(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningDaemon]:
    """Ada's daemon; each test has a project of its own in it."""
    with running_members(tmp_path_factory.mktemp("homes"), "Ada") as [running]:
        yield running


@pytest.fixture
def ada(daemon_of_ada: RunningDaemon, tmp_path: Path) -> Iterator[Member]:
    """Ada, who has a line to push."""
    with Member(daemon_of_ada, SharedProject(tmp_path)) as member:
        member.say("one")
        yield member


@pytest.fixture
def server(tmp_path: Path) -> Iterator[str]:
    """The address of an empty repository."""
    subprocess.run(["git", "init", "-q", "--bare", str(tmp_path / "remotes/app.git")], check=True)
    GitOverHttp.root, GitOverHttp.forbidden = tmp_path / "remotes", False
    with ThreadingHTTPServer(("127.0.0.1", 0), GitOverHttp) as http:
        threading.Thread(target=http.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{http.server_address[1]}/app.git"
        http.shutdown()


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    folder = tmp_path / "checkout"
    subprocess.run(["git", "init", "-q", str(folder)], check=True)
    return folder


def with_helper(checkout: Path, tmp_path: Path) -> None:
    helper = tmp_path / "helper"
    helper.write_text('#!/bin/sh\n[ "$1" = get ] && printf "username=ada\\npassword=wisteria\\n"\nexit 0\n')
    helper.chmod(0o755)
    subprocess.run(["git", "-C", str(checkout), "config", "credential.helper", str(helper)], check=True)


def test_the_credential_helper_of_the_checkout_works_H1(
    server: str, checkout: Path, tmp_path: Path, ada: Member
) -> None:
    with_helper(checkout, tmp_path)
    remote = tmp_path / "remotes/app.git"
    ben = author_of(ada, 7, "two")
    raw_push(ben, remote)
    ada.push(server, checkout)
    ada.pull(server, checkout)
    assert ada.taken() == {ben.partition: ["two"]} and ada.ref in refs(remote)
    home = Path(ada.daemon.environment["MEMD_HOME"])
    assert b"wisteria" not in b"".join(file.read_bytes() for file in home.rglob("*") if file.is_file())


def test_a_password_that_nobody_is_there_to_type_is_exit_code_3(server: str, checkout: Path, ada: Member) -> None:
    with pytest.raises(RemoteUnreachable) as error:
        ada.push(server, checkout)
    assert error.value.exit_code == 3
    assert ada.delivered() == (1, 0)


def test_a_host_that_knows_the_user_and_says_no_is_exit_code_4(
    server: str, checkout: Path, tmp_path: Path, ada: Member
) -> None:
    with_helper(checkout, tmp_path)
    GitOverHttp.forbidden = True
    with pytest.raises(RemoteRefusal, match="403") as error:
        ada.push(server, checkout)
    assert error.value.exit_code == 4


def test_a_password_in_an_address_is_not_in_an_error(server: str, ada: Member) -> None:
    with pytest.raises(RemoteUnreachable) as error:
        ada.push(server.replace("//", "//ada:jasmine@"))
    assert "jasmine" not in error.value.message + error.value.hint


@pytest.mark.parametrize("interactive", [True, False])
def test_a_program_that_asks_runs_only_at_a_terminal(
    server: str, checkout: Path, tmp_path: Path, ada: Member, interactive: bool
) -> None:
    asking = tmp_path / "asking"
    asking.write_text(f'#!/bin/sh\ntouch {tmp_path}/asked\ncase "$1" in User*) echo ada;; *) echo wisteria;; esac\n')
    asking.chmod(0o755)
    subprocess.run(["git", "-C", str(checkout), "config", "core.askPass", str(asking)], check=True)
    exchange = GitExchange(ada.private, checkout, server, interactive=interactive)
    if interactive:
        assert carrying.push(ada.client, ada.pool, exchange).count == 1
    else:
        with pytest.raises(RemoteUnreachable):
            carrying.push(ada.client, ada.pool, exchange)
    assert (tmp_path / "asked").exists() == interactive


def test_the_proxy_of_the_checkouts_remote_works(server: str, checkout: Path, tmp_path: Path, ada: Member) -> None:
    with_helper(checkout, tmp_path)
    for name, value in (("url", server), ("proxy", "http://127.0.0.1:1")):
        subprocess.run(["git", "-C", str(checkout), "config", f"remote.origin.{name}", value], check=True)
    with pytest.raises(RemoteUnreachable):
        ada.push(server, checkout)
    subprocess.run(["git", "-C", str(checkout), "config", "--unset", "remote.origin.proxy"], check=True)
    ada.push(server, checkout)
