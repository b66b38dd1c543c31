"""A hook names itself (G1), also to a daemon of an older version, which knows no surface."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from memd.clients.hooks.memd_hook import DaemonRefusal, HookConnection
from memd.protocol.errors import InvalidRequest
from memd.protocol.reply import Done
from tests.clients.conftest import Listener


def ask(path: Path, answer: Any) -> tuple[list[str], dict[str, Any]]:
    with Listener(path) as listener:
        listener.answer = answer
        connection = HookConnection(str(path), end=time.monotonic() + 90)
        reply: dict[str, Any] = {}
        for rid in (1, 2):
            reply = connection.ask({"request": "status", "rid": rid})
        return [wish.surface for wish in listener.seen], reply


def test_a_hook_sends_its_surface_G1(tmp_path: Path) -> None:
    assert ask(tmp_path / "socket", lambda wish: Done(pending=7)) == (["hook", "hook"], {"pending": 7})


def test_an_older_daemon_is_asked_again_without_it_once(tmp_path: Path) -> None:
    def older(wish: Any) -> Any:
        unknown = InvalidRequest("status: Object contains unknown field `surface`", hint="")
        return unknown if wish.surface != "user" else Done(pending=7)

    assert ask(tmp_path / "socket", lambda wish: _raised(older(wish))) == (["hook", "user", "user"], {"pending": 7})


def test_another_refusal_is_not_asked_again(tmp_path: Path) -> None:
    with pytest.raises(DaemonRefusal, match="stopping"):
        ask(tmp_path / "socket", lambda wish: _raised(InvalidRequest("stopping", hint="")))


def _raised(answer: Any) -> Any:
    if isinstance(answer, Exception):
        raise answer
    return answer
