"""Who may read the panel: each line of the security rules, over raw sockets (U4)."""

import hashlib
import http.client
import os
import stat
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import pytest

from memd.clients.panel import guard, server
from memd.clients.panel.guard import Keys, peer_uid
from memd.protocol.places import places
from tests.clients.panel.conftest import RunningPanel
from tests.conftest import RunningDaemon


def ask(
    panel: RunningPanel, path: str = "/", method: str = "GET", body: str | None = None, **headers: str
) -> http.client.HTTPResponse:
    """Send one request, with `_` for `-` in the headers' names."""
    connection = http.client.HTTPConnection("127.0.0.1", panel.port, timeout=90)
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    connection.putrequest(method, path, skip_host="Host" in named, skip_accept_encoding=True)
    for name, value in named.items():
        connection.putheader(name, value)
    if body is not None:
        connection.putheader("Content-Length", str(len(body)))
    connection.endheaders(body.encode() if body else None)
    return connection.getresponse()


def key_of(panel: RunningPanel) -> str:
    answer = ask(panel, "/key", "POST", panel.token)
    assert answer.status == 200
    return answer.read().decode().split('"')[3]


def test_a_link_gives_the_key_once_and_no_other_token_does_U4(panel: RunningPanel) -> None:
    assert ask(panel, "/key", "POST", "x" * 43).status == 401
    assert key_of(panel)
    again = ask(panel, "/key", "POST", panel.token)
    assert (again.status, again.read()) == (401, b'{"key":""}')


def test_a_token_is_void_after_a_minute_U4(monkeypatch: pytest.MonkeyPatch) -> None:
    keys = Keys()
    token = keys.token()
    began = time.monotonic()
    monkeypatch.setattr(guard.time, "monotonic", lambda: began + guard.TOKEN_VALID_S + 1)
    assert keys.swap(token) == ""


def test_no_data_without_the_key_U4(panel: RunningPanel, daemon: RunningDaemon) -> None:
    with daemon.client() as client:
        client.remember("The user keeps bees behind the orchard.", cwd=str(panel.folder))
    daemon.settle()
    key = key_of(panel)
    for path in ("/", "/memories", "/memories?q=bees", "/inbox", "/changes?after=-1"):
        shell = ask(panel, path)
        text = shell.read().decode()
        assert shell.status == 200 and "bees" not in text and "This page needs a link" in text
        assert ask(panel, path, X_Memd_Key="wrong").status == 401
    assert b"bees" in ask(panel, "/memories?q=bees", X_Memd_Key=key).read()
    assert ask(panel, "/remember", "POST", "text=a").status == 401


def test_another_host_origin_or_page_is_refused_before_the_key_counts_U4(panel: RunningPanel) -> None:
    key, own = key_of(panel), f"127.0.0.1:{panel.port}"
    for host in ("localhost", f"localhost:{panel.port}", "127.0.0.1", f"[::1]:{panel.port}", "evil.example"):
        assert ask(panel, Host=host, X_Memd_Key=key).status == 421
    for origin in ("http://evil.example", "null", f"https://{own}", f"http://{own}.evil.example"):
        assert ask(panel, Origin=origin, X_Memd_Key=key).status == 403
    for site in ("cross-site", "same-site"):
        assert ask(panel, Sec_Fetch_Site=site, X_Memd_Key=key).status == 403
    assert ask(panel, Origin=f"http://{own}", Sec_Fetch_Site="same-origin", X_Memd_Key=key).status == 200


def test_other_methods_bodies_without_a_length_and_large_ones_are_refused_U4(panel: RunningPanel) -> None:
    key = key_of(panel)
    for method in ("PUT", "DELETE", "OPTIONS", "HEAD"):
        assert ask(panel, method=method, X_Memd_Key=key).status == 405
    assert ask(panel, "/remember", "POST", X_Memd_Key=key).status == 411
    large = http.client.HTTPConnection("127.0.0.1", panel.port, timeout=90)
    large.putrequest("POST", "/remember")
    large.putheader("X-Memd-Key", key)
    large.putheader("Content-Length", str(guard.LARGEST_BODY + 1))
    large.endheaders()
    assert large.getresponse().status == 413


def test_no_file_outside_of_the_static_folder_is_served_U4(panel: RunningPanel) -> None:
    for path in ("/static/../guard.py", "/static/%2e%2e/guard.py", "/static//etc/passwd", "/static/", "/static/vendor"):
        assert ask(panel, path).status == 404
    assert ask(panel, "/static/panel.css").status == 200


def test_each_answer_has_the_policy_and_no_cookie_U4(panel: RunningPanel) -> None:
    for path in ("/", "/static/panel.js", "/nothing"):
        answer = ask(panel, path, **({"X_Memd_Key": "wrong"} if path == "/nothing" else {}))
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy and "require-trusted-types-for 'script'" in policy
        assert "unsafe" not in policy and answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["cache-control"] == "no-store" and answer.headers["set-cookie"] is None
        assert answer.headers["access-control-allow-origin"] is None and answer.headers["server"] is None


@pytest.mark.skipif(not Path("/proc/net/tcp").exists(), reason="the system does not tell the user of a connection")
def test_the_user_at_the_other_end_is_known_U4(panel: RunningPanel, tmp_path: Path) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", panel.port)
    connection.connect()
    assert connection.sock is not None
    assert peer_uid(connection.sock.getsockname()[1], panel.port) == os.getuid()
    assert peer_uid(connection.sock.getsockname()[1], panel.port, tmp_path / "missing") is None
    assert peer_uid(1, panel.port) is None


def test_another_users_connection_is_refused_whatever_it_holds_U4(panel: RunningPanel) -> None:
    if os.getuid() != 0:
        pytest.skip("only root can become another user")
    key = key_of(panel)
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        os.setuid(65534)
        os.write(writer, str(ask(panel, X_Memd_Key=key).status).encode())
        os._exit(0)
    os.waitpid(child, 0)
    assert os.read(reader, 10) == b"403"
    os.close(reader)
    os.close(writer)


def test_it_listens_on_the_loopback_alone_and_a_second_one_reuses_the_first_U4(panel: RunningPanel) -> None:
    again = panel.new_link()
    assert again.startswith(f"{panel.origin}/#token=") and again != panel.link
    path = server.socket_path(places(panel.environment, os.getuid()))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600 and stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert panel.end() == 0 and not path.exists()


def test_only_the_command_itself_imports_the_panel_U4(memd: object) -> None:
    code = (
        "import sys; from memd.clients.cli.commands import COMMANDS\n"
        "import importlib\n"
        "for name, module in COMMANDS.items():\n"
        "    importlib.import_module(f'memd.clients.cli.{module}')\n"
        "print(sorted(set(sys.modules) & {'starlette', 'uvicorn', 'jinja2'}))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_vendored_files_are_those_that_are_named_U4() -> None:
    folder = server.STATIC / "vendor"
    named = tomllib.loads((folder / "VENDOR.toml").read_text())
    found = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.glob("*.js")}
    assert found == {name: file["sha256"] for name, file in named.items()}
