"""`memd setup` and `memd unsetup`: shown before, twice as once, taken back byte by byte; what broke is told."""

from __future__ import annotations

import json
import os
import re
import shutil
import stat
import subprocess
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memd.clients.hooks import claude_code, program
from memd.clients.hooks.agent_host import SetUp, server_command
from memd.clients.hooks.command_files import slash_command
from memd.clients.hooks.config_text import YamlText
from memd.clients.hooks.hosts import HOSTS, REFLECTING, Hosts, check_hosts
from memd.protocol.errors import StoreError
from memd.protocol.places import places

Memd = Callable[..., Any]


@pytest.fixture
def machine(home: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """An environment with both hosts in it, and no configuration yet."""
    for name in (".claude", ".pi/agent"):
        (tmp_path / name).mkdir(parents=True)
    for name in ("CLAUDE_CONFIG_DIR", "PI_CODING_AGENT_DIR"):
        home.pop(name, None)
        monkeypatch.delenv(name, raising=False)
    home["HOME"] = str(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("MEMD_HOME", home["MEMD_HOME"])
    return home


def tree(folder: Path) -> dict[str, bytes]:
    """Every file below a folder but memd's own."""
    files = (each for each in folder.rglob("*") if each.is_file() and not each.is_relative_to(folder / "home"))
    return {str(each.relative_to(folder)): each.read_bytes() for each in files}


def machine_of(environment: dict[str, str]) -> Hosts:
    return Hosts(places(environment, os.getuid()), environment)


def test_setting_up_and_taking_out_leaves_every_byte_as_it_was(machine: dict[str, str], memd: Memd) -> None:
    folder = Path(machine["HOME"])
    own = b'{\n    "model": "opus",\n    "env": {"NAME": "\xc3\xbc"}\n}'
    (folder / ".claude/settings.json").write_bytes(own)
    before = tree(folder)
    assert memd("setup", "all", "--dry-run").code == 0
    assert tree(folder) == before
    told = memd("setup", "all")
    assert '+    "enabledPlugins"' in told.text.replace("\t", "    ") and "memd up" in told.errors
    after = tree(folder)
    assert after[".claude/settings.json"].startswith(own[:-2]), "what the user wrote stays letter by letter"
    assert ".pi/agent/extensions/memd.ts" in after
    again = memd("setup", "all", "--json").data["hosts"]
    assert [each["files"] for each in again] == [{}, {}]
    assert tree(folder) == after
    assert memd("unsetup", "all", "--dry-run").code == 0
    assert tree(folder) == after
    assert memd("unsetup", "all").code == 0
    assert tree(folder) == before
    assert not (folder / ".pi/agent/extensions").exists()
    assert "nothing to do" in memd("unsetup").text


def test_what_the_user_changed_meanwhile_stays(machine: dict[str, str], memd: Memd) -> None:
    path = Path(machine["HOME"]) / ".claude/settings.json"
    path.write_text('{\n  "model": "opus"\n}\n')
    memd("setup", "claude-code")
    settings = json.loads(path.read_text())
    settings["model"] = "sonnet"
    settings["enabledPlugins"]["other@market"] = True
    path.write_text(json.dumps(settings, indent=2))
    memd("setup", "claude-code")
    memd("unsetup", "claude-code")
    assert json.loads(path.read_text()) == {"model": "sonnet", "enabledPlugins": {"other@market": True}}


def test_a_link_stays_a_link_and_a_mode_a_mode(machine: dict[str, str], memd: Memd, tmp_path: Path) -> None:
    """Dotfiles are kept elsewhere and linked."""
    kept = tmp_path / "dotfiles.json"
    kept.write_text("{}")
    kept.chmod(0o640)
    path = Path(machine["HOME"]) / ".claude/settings.json"
    path.symlink_to(kept)
    memd("setup", "claude-code")
    assert path.is_symlink() and b"memd@memd" in kept.read_bytes()
    assert stat.S_IMODE(kept.stat().st_mode) == 0o640
    memd("unsetup", "claude-code")
    assert path.is_symlink() and kept.read_text() == "{}"


def test_the_hosts_own_notes_of_the_plugin_go_with_it(machine: dict[str, str], memd: Memd) -> None:
    memd("setup", "claude-code")
    folder = Path(machine["HOME"]) / ".claude/plugins"
    known = json.loads((folder / "known_marketplaces.json").read_text())["memd"]
    assert known["source"]["path"] == known["installLocation"], "or the first session begins before the plugin is there"
    installed = {"version": 2, "plugins": {"memd@memd": [{"scope": "user"}], "a@b": []}}
    (folder / "installed_plugins.json").write_text(json.dumps(installed))
    (folder / "known_marketplaces.json").write_text(json.dumps({"memd": {**known, "lastUpdated": "now"}, "b": {}}))
    (again,) = memd("setup", "claude-code", "--json").data["hosts"]
    assert again["files"] == {}, "when Claude Code looked is its own affair"
    memd("unsetup", "all")
    assert json.loads((folder / "installed_plugins.json").read_text()) == {"version": 2, "plugins": {"a@b": []}}
    assert json.loads((folder / "known_marketplaces.json").read_text()) == {"b": {}}


def test_settings_that_are_no_json_are_left_alone(machine: dict[str, str], memd: Memd) -> None:
    path = Path(machine["HOME"]) / ".claude/settings.json"
    path.write_text("{ # mine\n}")
    told = memd("setup", "claude-code")
    assert told.code == 5 and "is not JSON" in told.errors
    assert path.read_text() == "{ # mine\n}"
    assert memd("setup", "emacs").code == 2


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda each: st.lists(each, max_size=3) | st.dictionaries(st.text(max_size=5), each, max_size=3),
    max_leaves=8,
)
ENTRIES = st.fixed_dictionaries(
    {},
    optional={
        "model": VALUES,
        "hooks": VALUES,
        "enabledPlugins": st.dictionaries(st.text(max_size=5), st.booleans(), max_size=2),
        "extraKnownMarketplaces": st.dictionaries(st.text(max_size=5), VALUES, max_size=2),
        'odd "}': VALUES,
    },
)


@settings(deadline=None, max_examples=60)
@given(entries=ENTRIES, indent=st.sampled_from([None, 1, 2, 4, "\t"]), ending=st.sampled_from(["", "\n", " \n\n"]))
def test_whatever_the_settings_are_two_entries_go_in_and_out(
    entries: dict[str, Any], indent: Any, ending: str, tmp_path_factory: Any
) -> None:
    folder = tmp_path_factory.mktemp("home")
    (folder / ".claude").mkdir()
    environment = {"HOME": str(folder), "MEMD_HOME": str(folder / "memd")}
    path = folder / ".claude/settings.json"
    own = (json.dumps(entries, indent=indent) + ending).encode()
    path.write_bytes(own)
    machine = machine_of(environment)
    machine.set_up(claude_code.NAME, machine.edits(claude_code.NAME))
    now = json.loads(path.read_text())
    assert now["enabledPlugins"] == {**entries.get("enabledPlugins", {}), "memd@memd": True}
    assert {**now, "enabledPlugins": 0, "extraKnownMarketplaces": 0} == {
        **entries, "enabledPlugins": 0, "extraKnownMarketplaces": 0
    }  # fmt: skip
    assert not any(edit.is_change for edit in machine.edits(claude_code.NAME))
    assert machine.state(claude_code.NAME, tried=False).problem == ""
    without = json.loads(claude_code.without(path, path.read_bytes(), None) or b"{}")
    empty = {name for name in ("enabledPlugins", "extraKnownMarketplaces") if not entries.get(name)}
    assert without == {name: value for name, value in entries.items() if name not in empty}
    machine.take_out(claude_code.NAME, machine.restoring(claude_code.NAME))
    assert path.read_bytes() == own


def words(text: str) -> set[str]:
    return set(re.findall(r"\w+", text))


OWN: dict[str, dict[str, str]] = {
    "codex": {
        ".codex/config.toml": '# mine\nmodel = "one"\n\n[mcp_servers.other]\ncommand = "x"',
        ".codex/hooks.json": '{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "bell"}]}]}}',
    },
    "gemini": {".gemini/settings.json": "{}"},
    "opencode": {".config/opencode/opencode.jsonc": "{ // mine\n}\n"},
    "cursor": {
        ".cursor/mcp.json": '{\n  "mcpServers": {\n    "other": {"command": "x"}\n  }\n}\n',
        ".cursor/hooks.json": '{\n  "version": 1,\n  "hooks": {"stop": [{"command": "bell"}]}\n}',
    },
    "aider": {".aider.conf.yml": "# mine\nread:\n- CONVENTIONS.md\nmodel: one"},
    "vscode": {".config/Code/User/mcp.json": '{\n\t// mine\n\t"servers": {\n\t},\n\t"inputs": []\n}'},
    "cline": {".cline/data/settings/cline_mcp_settings.json": '{"mcpServers": {}}'},
    "zed": {
        ".config/zed/settings.json": '// Zed\n{\n  "theme": "One", // dark\n}\n',
        ".config/zed/AGENTS.md": "Write short functions.",
    },
    "continue": {
        ".continue/config.yaml": "name: Mine\nmcpServers:\n    # the tools\n    - name: other\n      command: x\n"
    },
}
FOLDERS = {"aider": ".aider", "vscode": ".config/Code", "zed": ".config/zed", "opencode": ".config/opencode"}
ADDED = {
    "codex": {".codex/prompts/memd-reflect.md"},
    "gemini": {
        ".gemini/commands/memd/reflect.toml",
        ".gemini/extensions/memd/gemini-extension.json",
        ".gemini/extensions/memd/hooks/hooks.json",
    },
    "opencode": {".config/opencode/plugin/memd.js"},
    "vscode": {".config/Code/User/prompts/memd.instructions.md"},
    "cline": {"Documents/Cline/Rules/memd.md"},
    "continue": {".continue/rules/memd.md"},
}


@pytest.mark.parametrize("name", OWN)
@pytest.mark.parametrize("has_files", [True, False])
def test_every_host_is_byte_for_byte_as_before_U2(
    machine: dict[str, str], memd: Memd, name: str, has_files: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable in ("XDG_CONFIG_HOME", "CODEX_HOME", "OPENCODE_CONFIG_DIR", "CONTINUE_GLOBAL_DIR"):
        monkeypatch.delenv(variable, raising=False)
    folder = Path(machine["HOME"])
    (folder / FOLDERS.get(name, f".{name}")).mkdir(parents=True)
    for path, text in OWN[name].items() if has_files else ():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    before = tree(folder)
    paths = {path for path in folder.rglob("*") if not path.is_relative_to(folder / "home")}
    assert memd("setup", name, "--dry-run").code == 0 and tree(folder) == before
    assert memd("setup", name).code == 0
    after = tree(folder)
    assert set(after) - set(before) >= ADDED.get(name, set())
    assert all(words(before[path].decode()) <= words(after[path].decode()) for path in before)
    assert memd("setup", name, "--json").data["hosts"][0]["files"] == {} and tree(folder) == after
    assert problems()[name] == ""
    assert memd("unsetup", name).code == 0
    assert tree(folder) == before
    assert {path for path in folder.rglob("*") if not path.is_relative_to(folder / "home")} == paths


@pytest.mark.parametrize("name", OWN)
def test_what_the_user_added_in_a_host_stays_U2(
    machine: dict[str, str], memd: Memd, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The user adds a line to each of the files that were there before; then memd goes, and the line stays."""
    for variable in ("XDG_CONFIG_HOME", "CODEX_HOME", "OPENCODE_CONFIG_DIR", "CONTINUE_GLOBAL_DIR"):
        monkeypatch.delenv(variable, raising=False)
    folder = Path(machine["HOME"])
    for path, text in OWN[name].items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    assert memd("setup", name).code == 0
    line = {".json": "\n", ".md": "Also this.\n"}
    for path in OWN[name]:
        with (folder / path).open("a") as file:
            file.write(line.get(Path(path).suffix, "\n# also this\n"))
    assert memd("setup", name).code == 0, "again, over the user's change"
    assert memd("unsetup", name).code == 0
    for path, text in OWN[name].items():
        now = (folder / path).read_text()
        assert "memd" not in now, now
        assert words(text) - {"servers", "mcpServers"} <= words(now)
        assert line.get(Path(path).suffix, "\n# also this\n").strip() in now


def test_a_file_of_the_users_own_is_not_replaced_U2(machine: dict[str, str], memd: Memd) -> None:
    path = Path(machine["HOME"]) / ".continue/rules/memd.md"
    path.parent.mkdir(parents=True)
    path.write_text("mine")
    told = memd("setup", "continue")
    assert told.code and "is not memd's" in told.errors and path.read_text() == "mine"


@pytest.mark.parametrize("name", OWN)
def test_an_environment_that_moved_is_set_up_in_place_of_the_old_one_U2(
    machine: dict[str, str], memd: Memd, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After it, no file names the old interpreter, and `memd unsetup` takes all out."""
    for variable in ("XDG_CONFIG_HOME", "CODEX_HOME", "OPENCODE_CONFIG_DIR", "CONTINUE_GLOBAL_DIR"):
        monkeypatch.delenv(variable, raising=False)
    folder = Path(machine["HOME"])
    for path, text in OWN[name].items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    before = tree(folder)
    monkeypatch.setattr("sys.executable", "/elsewhere/bin/python")
    old = machine_of(machine)
    old.set_up(name, old.edits(name))
    assert any(b"/elsewhere" in content for content in tree(folder).values())
    monkeypatch.undo()
    monkeypatch.setenv("HOME", machine["HOME"])
    monkeypatch.setenv("MEMD_HOME", machine["MEMD_HOME"])
    assert memd("setup", name).code == 0
    assert not any(b"/elsewhere" in content for content in tree(folder).values()) and problems()[name] == ""
    assert memd("unsetup", name).code == 0
    assert tree(folder) == before


def test_aiders_command_reads_nothing_of_what_the_user_types_U2(machine: dict[str, str]) -> None:
    set_up = SetUp(places=places(machine, os.getuid()), environment=machine)
    found = machine_of(machine)
    found.set_up("aider", found.edits("aider"))
    command = YamlText((set_up.home / ".aider.conf.yml").read_bytes(), Path()).value["notifications-command"]
    typed = b"what the user typed"
    done = subprocess.run(["sh", "-c", f"{command}; cat"], input=typed, capture_output=True, env=machine, check=True)
    assert done.stdout == typed


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_codex_starts_after_memd_is_gone_U2(
    machine: dict[str, str], memd: Memd, monkeypatch: pytest.MonkeyPatch, ending: str
) -> None:
    """Codex keeps the user's consents in tables below memd's."""
    monkeypatch.delenv("CODEX_HOME", raising=False)
    path = Path(machine["HOME"]) / ".codex/config.toml"
    path.parent.mkdir()
    path.write_text("# mine\n[features]\nx = true\n\n[mcp_servers.other]\ncommand = 'y'\n")
    memd("setup", "codex")
    added = "\nstartup_timeout_sec = 20\n\n[mcp_servers.memd.tools.memory_recall]\napproval_mode = 'approve'\n"
    path.write_bytes((path.read_text() + added).replace("\n", ending).encode())
    assert memd("unsetup", "codex").code == 0
    left = tomllib.loads(path.read_bytes().decode())
    assert left == {"features": {"x": True}, "mcp_servers": {"other": {"command": "y"}}}
    assert path.read_text().startswith("# mine")


def changed(machine: dict[str, str], memd: Memd, name: str, path: str, own: str, change: Callable[[str], str]) -> str:
    """A file of the user that memd is set up in, then the user changes, and then memd is taken out of."""
    file = Path(machine["HOME"]) / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(own.encode())
    assert memd("setup", name).code == 0
    file.write_bytes(change(file.read_bytes().decode()).encode())
    assert memd("unsetup", name).code == 0
    return file.read_bytes().decode()


def dos(text: str) -> str:
    return text.replace("\n", "\r\n")


@pytest.mark.parametrize(
    ("name", "path"), [(name, path) for name in OWN for path in OWN[name] if name not in ("gemini", "opencode")]
)
def test_memd_leaves_a_file_with_windows_line_ends_and_a_mark_U2(
    machine: dict[str, str], memd: Memd, monkeypatch: pytest.MonkeyPatch, name: str, path: str
) -> None:
    for variable in ("XDG_CONFIG_HOME", "CODEX_HOME", "CONTINUE_GLOBAL_DIR"):
        monkeypatch.delenv(variable, raising=False)
    own = OWN[name][path].rstrip("\n") + "\n"
    now = changed(machine, memd, name, path, own, dos)
    assert "memd" not in now and words(own) - {"servers", "mcpServers"} <= words(now) and now.count("\r\n")
    if not path.endswith(".toml"):
        now = changed(machine, memd, name, path, "\ufeff" + dos(own), lambda text: text + "\r\n")
        assert "memd" not in now and words(own) - {"servers", "mcpServers"} <= words(now) and now[0] == "\ufeff"


def test_a_rule_whose_end_mark_is_gone_takes_no_text_of_the_user_with_it_U2(
    machine: dict[str, str], memd: Memd
) -> None:
    own = "Write short functions.\n\n"
    now = changed(
        machine,
        memd,
        "zed",
        ".config/zed/AGENTS.md",
        own,
        lambda text: text.replace("<!-- /memd -->", "") + "And this.\n",
    )
    assert now.split() == (own + "And this.").split()
    twice = changed(
        machine, memd, "zed", ".config/zed/AGENTS.md", own, lambda text: text if memd("setup", "zed").code == 0 else ""
    )
    assert twice == own


def test_a_start_file_whose_end_mark_is_gone_keeps_the_users_lines_U2(
    machine: dict[str, str], memd: Memd, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHELL", "/bin/bash")
    machine["SHELL"] = "/bin/bash"
    path = Path(machine["HOME"]) / ".bashrc"
    path.write_text("alias a=b\n")
    memd("setup", "shell")
    path.write_text(path.read_text().replace("# <<< memd <<<", "") + "alias c=d\n")
    memd("setup", "shell")
    memd("unsetup", "shell")
    assert "alias a=b" in path.read_text() and "alias c=d" in path.read_text()


def test_a_command_of_the_user_in_memds_group_stays_U2(machine: dict[str, str], memd: Memd) -> None:
    def add(text: str) -> str:
        value = json.loads(text)
        value["hooks"]["Stop"][0]["hooks"].append({"type": "command", "command": "bell"})
        return json.dumps(value)

    now = json.loads(changed(machine, memd, "codex", ".codex/hooks.json", "{}", add))
    assert now == {"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "bell"}]}]}}


def test_what_the_user_took_out_does_not_come_back_U2(machine: dict[str, str], memd: Memd) -> None:
    path, own = ".cursor/mcp.json", '{"mcpServers": {"other": {"command": "x"}}}'

    def take_out(text: str) -> str:
        value = json.loads(text)
        del value["mcpServers"]["other"]
        return json.dumps(value)

    assert json.loads(changed(machine, memd, "cursor", path, own, take_out)) == {}


def test_aiders_own_settings_and_comments_stay_U2(machine: dict[str, str], memd: Memd) -> None:
    own = "notifications: true\nread:\n- A.md\n"

    def comment(text: str) -> str:
        command = next(line for line in text.splitlines() if line.startswith("notifications-command"))
        return f"# {command}\n{text}"

    now = changed(machine, memd, "aider", ".aider.conf.yml", own, comment)
    assert now.startswith("# notifications-command") and now.splitlines()[1:] == own.splitlines()


@pytest.mark.parametrize("value", ["5", '"text"', "[1]", "null"])
@pytest.mark.parametrize(
    ("name", "path", "text"),
    [
        ("codex", ".codex/hooks.json", '{"hooks": VALUE}'),
        ("codex", ".codex/hooks.json", '{"hooks": {"Stop": VALUE}}'),
        ("cursor", ".cursor/mcp.json", '{"mcpServers": VALUE}'),
        ("aider", ".aider.conf.yml", "read: VALUE\n"),
        ("continue", ".continue/config.yaml", "name: Mine\nmcpServers: VALUE\n"),
    ],
)
def test_a_value_of_another_kind_is_an_error_that_says_what_to_do_U2(
    machine: dict[str, str], memd: Memd, monkeypatch: pytest.MonkeyPatch, name: str, path: str, text: str, value: str
) -> None:
    for variable in ("CODEX_HOME", "CONTINUE_GLOBAL_DIR"):
        monkeypatch.delenv(variable, raising=False)
    file = Path(machine["HOME"]) / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text.replace("VALUE", value))
    told = memd("setup", name)
    if told.code:
        assert (
            "Traceback" not in told.errors
            and str(file) in told.errors
            and file.read_text() == text.replace("VALUE", value)
        )
    assert memd("unsetup", name).code == 0 and file.read_text() == text.replace("VALUE", value)


def test_a_profile_below_a_folder_with_a_number_sign_is_read_U2(machine: dict[str, str], memd: Memd) -> None:
    machine["MEMD_HOME"] = str(Path(machine["HOME"]) / "my #1: home")
    found = machine_of(machine)
    found.set_up("aider", found.edits("aider"))
    path = Path(machine["HOME"]) / ".aider.conf.yml"
    (read,) = YamlText(path.read_bytes(), path).value["read"]
    assert Path(read).exists() and not any(edit.is_change for edit in found.edits("aider"))


def test_a_host_that_fails_does_not_stop_the_others_U2(
    machine: dict[str, str], memd: Memd, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CODEX_HOME", raising=False)
    hooks = Path(machine["HOME"]) / ".codex/hooks.json"
    hooks.parent.mkdir()
    for command in ("setup", "unsetup"):
        hooks.write_text("no JSON")
        told = memd(command, "all")
        assert told.code == 5 and str(hooks) in told.errors and "Claude Code" in told.text and "pi" in told.text
        hooks.unlink()
        assert memd("setup", "codex").code == 0
    assert memd("unsetup", "all").code == 0 and "nothing to do" in memd("unsetup").text


def test_a_folder_that_the_host_removed_is_no_error_U2(machine: dict[str, str], memd: Memd) -> None:
    memd("setup", "gemini")
    shutil.rmtree(Path(machine["HOME"]) / ".gemini/extensions/memd")
    assert memd("unsetup", "gemini").code == 0
    assert "nothing to do" in memd("unsetup").text


def test_the_table_of_hosts_is_complete() -> None:
    assert set(HOSTS) == {*REFLECTING, *OWN, "shell"}


# --- what no longer runs --------------------------------------------------------------------------------------------
def problems() -> dict[str, str]:
    return {state.name: state.problem for state in check_hosts() if state.is_set_up}


def test_a_hook_that_no_longer_runs_is_noticed(machine: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    assert [(state.name, state.is_set_up) for state in check_hosts()] == [(name, False) for name in REFLECTING]
    found = machine_of(machine)
    for name in REFLECTING:
        found.set_up(name, found.edits(name))
    assert problems() == dict.fromkeys(REFLECTING, "")
    installed = program.path(places(machine, os.getuid()))
    whole = installed.read_bytes()
    installed.unlink()
    assert all("is missing" in each for each in problems().values())
    installed.write_bytes(b"raise SystemExit(2)\n")
    assert all("another version" in each for each in problems().values())
    monkeypatch.setattr(program, "SOURCE", installed)  # an upgrade that brought a broken one
    program.install(places(machine, os.getuid()), machine)
    assert all("exit code 2" in each for each in problems().values())
    monkeypatch.undo()
    monkeypatch.setenv("HOME", machine["HOME"])
    monkeypatch.setenv("MEMD_HOME", machine["MEMD_HOME"])
    installed.write_bytes(whole)
    program.install(places(machine, os.getuid()), machine)
    compiled = installed.with_name(program.COMPILED)
    compiled.write_bytes(b"of another Python" + compiled.read_bytes()[17:])
    assert all("of Python" in each for each in problems().values())
    program.install(places(machine, os.getuid()), machine)
    path = Path(machine["HOME"]) / ".claude/settings.json"
    settings = json.loads(path.read_text())
    for change, reason in (
        ({"disableAllHooks": True}, "disableAllHooks"),
        ({"enabledPlugins": {"memd@memd": False}}, "not enabled"),
        ({"extraKnownMarketplaces": {}}, "marketplace"),
    ):
        path.write_text(json.dumps({**settings, **change}))
        assert reason in problems()[claude_code.NAME]
    (Path(machine["HOME"]) / ".pi/agent/extensions/memd.ts").unlink()
    assert "memd.ts" in problems()["pi"]
    for name in REFLECTING:
        found.set_up(name, found.edits(name))
    assert problems() == dict.fromkeys(REFLECTING, "")


def test_an_environment_that_was_removed_is_noticed(machine: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    found = machine_of(machine)
    found.set_up("pi", found.edits("pi"))
    monkeypatch.setattr("sys.executable", "/nowhere/bin/python")
    assert problems()["pi"]


@pytest.mark.usefixtures("ended")  # it starts memd, too
def test_the_doctor_notices_it_and_mends_it(machine: dict[str, str], memd: Memd) -> None:
    memd("setup", "all")
    extension = Path(machine["HOME"]) / ".pi/agent/extensions/memd.ts"
    extension.unlink()
    found = {each["message"]: each["state"] for each in memd("doctor", "--json").data["findings"]}
    assert [state for message, state in found.items() if message.startswith("pi:")] == ["broken"]
    assert "pi is set up again" in memd("doctor", "--fix").text
    assert extension.exists()


def test_uninstalling_takes_memd_out_of_every_agent_P25(machine: dict[str, str], memd: Memd) -> None:
    before = tree(Path(machine["HOME"]))
    memd("setup", "all")
    assert "memd.ts" in memd("uninstall").text
    assert tree(Path(machine["HOME"])) == before


def test_a_record_that_does_not_read_is_told_and_nothing_is_guessed(machine: dict[str, str]) -> None:
    found = machine_of(machine)
    found.set_up("pi", found.edits("pi"))
    (places(machine, os.getuid()).hooks / "hosts/pi.json").write_bytes(b"[")
    assert "can't be read" in problems()["pi"]
    with pytest.raises(StoreError):
        found.restoring("pi")


def test_every_file_of_the_plugin_is_what_the_host_reads(machine: dict[str, str]) -> None:
    """The marketplace layout; one shell line for each event, that can't fail; the six tools beside it."""
    own = claude_code.own_files
    files = own(places(machine, os.getuid()), server_command(), slash_command(), reflects=False)
    read = {path.name: json.loads(content) for path, content in files.items() if path.suffix == ".json"}
    assert read["marketplace.json"]["plugins"][0]["source"] == "./plugin"
    assert read["plugin.json"]["name"] == read["marketplace.json"]["plugins"][0]["name"] == "memd"
    lines = [each["hooks"][0]["command"] for event in read["hooks.json"]["hooks"].values() for each in event]
    assert len(lines) == 6 and all(line.endswith("2>/dev/null || true") for line in lines)
    assert read[".mcp.json"]["mcpServers"]["memd"]["args"][-1] == "memd.clients.mcp"
    (command,) = (content.decode() for path, content in files.items() if path.match("plugin/commands/reflect.md"))
    assert command.startswith("---\ndescription: ") and "session reflect" in command and "__" not in command
