"""The Neovim plugin, headless, against a real daemon (U2, W10, W14)."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from memd.clients.nvim import FOLDER

NVIM = shutil.which("nvim") or ""
pytestmark = pytest.mark.skipif(not NVIM, reason="there is no nvim on this machine")
PATH = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
HEAD = """
local out, said = {}, {}
vim.notify = function(text) table.insert(said, text) end
local function settle(test) vim.wait(10000, test, 10) end
local function lines() return vim.api.nvim_buf_get_lines(0, 0, -1, false) end
"""
TAIL = """
out.said = said
local file = io.open(vim.env.OUT, "w")
file:write(vim.fn.json_encode(out))
file:close()
"""


@pytest.fixture
def nvim(home: dict[str, str], tmp_path: Path) -> Callable[..., Any]:
    """Runs Lua in a fresh editor; what it put into `out`, and what it notified."""

    def run(code: str, **changes: str) -> Any:
        script, told = tmp_path / "t.lua", tmp_path / "out.json"
        script.write_text(HEAD + code + TAIL)
        told.unlink(missing_ok=True)
        command = [NVIM, "--headless", "-u", "NONE", "--cmd", f"set rtp+={FOLDER}", "-c", "runtime plugin/memd.lua"]
        done = subprocess.run(
            [*command, "-c", f"luafile {script}", "-c", "qa!"],
            env={**home, "PATH": PATH, "OUT": str(told), "HOME": str(tmp_path), **changes},
            capture_output=True,
            text=True,
            timeout=60,
            cwd=tmp_path,
            check=False,
        )
        assert told.exists(), done.stderr
        return json.loads(told.read_text())

    return run


def test_recall_opens_a_window_that_q_closes_U2(daemon: Any, nvim: Callable[..., Any]) -> None:
    with daemon.client() as client:
        client.remember("The lamp stands in the attic, " + "x" * 400)
    told = nvim("""
        vim.cmd("Memd recall where is the lamp")
        settle(function() return #vim.api.nvim_list_wins() > 1 end)
        out.lines, out.windows = lines(), #vim.api.nvim_list_wins()
        vim.api.nvim_feedkeys("q", "x", false)
        out.after = #vim.api.nvim_list_wins()
        vim.cmd("Memd profile")
        settle(function() return #vim.api.nvim_list_wins() > 1 end)
        out.profile = lines()
        out.complete = vim.fn.getcompletion("Memd re", "cmdline")
    """)
    assert told["lines"][0].startswith("1. The lamp stands in the attic") and "score" in told["lines"][1]
    assert (told["windows"], told["after"]) == (2, 1)
    assert any("lamp" in line for line in told["profile"])
    assert told["complete"] == ["recall", "remember"]


def test_recall_takes_the_fields_of_the_request_and_shows_types_and_principles_U8(
    daemon: Any, nvim: Callable[..., Any]
) -> None:
    with daemon.client() as client:
        client.remember("We decided that the lamp stands in the attic.")
        client.remember("The attic with the lamp is locked.")
        client.pin(client.remember("Never paint the lamp.").record.id, principle=True)
        daemon.settle()
    told = nvim("""
        require("memd").setup({ recall = { types = { "decision" } } })
        vim.cmd("Memd recall where is the lamp of the attic")
        settle(function() return #vim.api.nvim_list_wins() > 1 end)
        out.lines = lines()
        require("memd").setup({ recall = { types = { "decison" } } })
        vim.cmd("Memd recall lamp")
        settle(function() return #said > 0 end)
    """)
    first, second, last = told["lines"]
    assert first == "1. We decided that the lamp stands in the attic." and "· decision · score" in second
    assert last.startswith("Principle: Never paint the lamp.")
    assert "'decison' is not a type; choose from: identity" in told["said"][0]


def test_a_selection_is_remembered_and_a_range_too_U2(daemon: Any, nvim: Callable[..., Any]) -> None:
    told = nvim("""
        vim.api.nvim_buf_set_lines(0, 0, -1, false, { "say: The lamp is grün. end", "The door is blue." })
        vim.api.nvim_feedkeys("05lv16l" .. vim.api.nvim_replace_termcodes("<Esc>", true, false, true), "x", false)
        vim.cmd("'<,'>Memd remember")
        settle(function() return #said == 1 end)
        vim.cmd("2Memd remember")
        settle(function() return #said == 2 end)
        vim.cmd("Memd status")
        settle(function() return #said == 3 end)
    """)
    with daemon.client() as client:
        found = [(each.content, each.provenance.source.partition(":")[0]) for each in client.list().records]
    assert sorted(found) == [("The door is blue.", "nvim"), ("The lamp is grün.", "nvim")]
    assert "2 records" in told["said"][2]


def test_checkhealth_says_what_works_U1(daemon: Any, nvim: Callable[..., Any]) -> None:
    told = nvim("""vim.cmd("checkhealth memd"); out.lines = lines()""")
    assert any("answers (pid" in line for line in told["lines"]), told["lines"]
    daemon.terminate()
    told = nvim("""vim.cmd("checkhealth memd"); out.lines = lines()""")
    assert any("the daemon is not running" in line for line in told["lines"]), told["lines"]


def test_while_the_daemon_is_down_it_says_so_and_spools_what_is_to_be_remembered_W10(
    home: dict[str, str], nvim: Callable[..., Any]
) -> None:
    told = nvim("""
        vim.cmd("Memd recall lamp")
        vim.cmd("Memd remember The lamp is green, its password hunter2horse.")
        settle(function() return #said == 2 end)
    """)
    assert "memd up" in told["said"][0] and "the text is spooled" in told["said"][1]
    content = (Path(home["MEMD_HOME"]) / "state" / "spool" / "python.spool").read_bytes()
    assert b"The lamp is green" in content and b"hunter2horse" not in content  # P-18


def test_an_answer_that_is_late_is_told_and_the_editor_goes_on(daemon: Any, nvim: Callable[..., Any]) -> None:

    daemon.halt()
    try:
        told = nvim("""
            require("memd").setup({ deadline_ms = 200 })
            local began = vim.loop.hrtime()
            vim.cmd("Memd recall lamp")
            out.blocked_ms = (vim.loop.hrtime() - began) / 1e6
            settle(function() return #said == 1 end)
        """)
    finally:
        daemon.go_on()
    assert "no answer within 200 ms" in told["said"][0]


def test_disabled_it_sends_nothing_W14(home: dict[str, str], nvim: Callable[..., Any]) -> None:
    told = nvim('vim.cmd("Memd remember x"); settle(function() return #said == 1 end)', MEMD_DISABLED="1")
    assert "disabled" in told["said"][0] and list(Path(home["MEMD_HOME"]).iterdir()) == []
