"""The extension for VS Code: its file, and its parts without an editor against a real daemon (U2, W10)."""

import json
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path, PurePosixPath
from typing import Any
from xml.etree import ElementTree

import pytest

from memd import __version__
from memd.clients.node import FOLDER as NODE_CLIENT
from memd.clients.vscode import FOLDER
from memd.clients.vscode.vsix_file import write_vsix
from tests.clients.conftest import Told
from tests.conftest import RunningDaemon

NODE, NPM = shutil.which("node") or "", shutil.which("npm") or ""
needs_node = pytest.mark.skipif(not NODE, reason="there is no node on this machine")
needs_packer = pytest.mark.skipif(
    not NPM or not (FOLDER / "node_modules").exists(), reason="run `npm ci` in clients/vscode first"
)
PATH_BESIDE = f"{Path(sys.executable).parent}:"
STYLE = """# Style

We decided to use `tabs` in **all** Go files, because the formatter
of the team writes them.

- Never call `settle()` in a test of the panel.
"""


def contents(file: Path) -> dict[str, bytes]:
    """The files of a .vsix by their names."""
    with zipfile.ZipFile(file) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def identity(manifest: bytes) -> list[tuple[str, dict[str, str]]]:
    """What VS Code's tools read of a manifest."""
    names = ("Identity", "InstallationTarget", "Asset")
    return [
        (element.tag.partition("}")[2], element.attrib)
        for element in ElementTree.fromstring(manifest).iter()
        if element.tag.partition("}")[2] in names
    ]


def test_the_file_for_vs_code_has_everything_that_the_extension_loads_U2(
    home: dict[str, str], memd: Callable[..., Told]
) -> None:
    file = Path(memd("plugin", "vscode", "--json").data["file"])
    assert file == Path(home["MEMD_HOME"]) / "state" / "vscode" / f"memd-{__version__}.vsix"
    files = contents(file)
    package = json.loads(files["extension/package.json"])
    assert package["version"] == __version__
    assert f"extension/{package['main']}" in files
    for name, content in files.items():
        for path in re.findall(r'^(?:import|export) .* from "(\./[^"]+)";$', content.decode(), re.MULTILINE):
            assert str(PurePosixPath(name).parent / path) in files, f"{name} imports {path}"
    for part in NODE_CLIENT.glob("*.js"):
        assert files[f"extension/client/{part.name}"] == part.read_bytes()
    assert len(file.read_bytes()) < 100_000


def test_each_command_of_the_menus_exists_U2() -> None:
    package = json.loads((FOLDER / "package.json").read_text(encoding="utf-8"))
    code = "".join(file.read_text(encoding="utf-8") for file in FOLDER.glob("*.js"))
    for command in package["contributes"]["commands"]:
        assert code.count(f'"{command["command"]}"') >= 1, command


@needs_packer
@pytest.mark.slow
def test_npm_makes_the_same_file_U2(tmp_path: Path) -> None:
    for arguments in (("check",), ("package", "--", "--out", str(tmp_path / "npm.vsix"))):
        done = subprocess.run([NPM, "run", *arguments], cwd=FOLDER, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
    of_npm, own = contents(tmp_path / "npm.vsix"), contents(write_vsix(tmp_path))
    manifest = "extension.vsixmanifest"
    assert identity(of_npm.pop(manifest)) == identity(own.pop(manifest))
    assert of_npm == own


@pytest.fixture
def script(home: dict[str, str], tmp_path: Path) -> Callable[..., Any]:
    """Runs a module beside the extension's; what it said, as JSON."""
    with zipfile.ZipFile(write_vsix(tmp_path)) as archive:
        archive.extractall(tmp_path / "vsix")
    head = """
    import { Client } from "./client/client.js";
    import { FolderMemories } from "./folder_memories.js";
    import { results, statusWords, whyPage } from "./wording.js";
    const client = new Client(), memories = new FolderMemories(client);
    const say = (value) => console.log(JSON.stringify(value));
    """

    def run(code: str, given: object = None) -> Any:
        file = tmp_path / "vsix" / "extension" / "of_the_test.js"
        file.write_text(f"{head}const given = {json.dumps(given)};\n{code}")
        done = subprocess.run(
            [NODE, str(file)],
            env={**home, "PATH": PATH_BESIDE + home["PATH"]},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return run


@needs_node
def test_a_place_in_a_document_finds_the_memories_of_its_line_and_those_that_name_it_U2(
    daemon: RunningDaemon,
    memd: Callable[..., Told],
    script: Callable[..., Any],
    tmp_path: Path,
) -> None:
    document, code = tmp_path / "style.md", tmp_path / "panel.go"
    document.write_text(STYLE)
    memd("import", "markdown", str(document))
    daemon.settle()
    wrapped = STYLE.replace("the formatter\nof", "the\nformatter of")
    told = script(
        """
        const { folder, file, document, text } = given;
        const title = "panel.go", host = "vscode";
        await client.remember("Never call openPanel in a loop.", { cwd: folder, session: file, title, host });
        const lines = [];
        for (const line of [0, 2, 3, 5]) {
          const records = await memories.at({ file: document, folder, text, line, word: "" });
          lines.push(records.map((record) => record.content.slice(0, 10)));
        }
        const names = {};
        for (const word of ["openPanel", "openPane", "settle", "settle.", "Never", "loop"]) {
          const records = await memories.at({ file: "/none", folder, text: "", line: 0, word });
          names[word] = records.map((record) => record.content.slice(0, 21));
        }
        const code = "x\\n// never call  openPanel in a loop";
        const [own] = await memories.at({ file, folder, text: code, line: 1, word: "" });
        const page = whyPage(await client.why(own.id));
        const answer = results(await client.recall("openPanel in a loop", { cwd: folder }));
        const { text: bar } = statusWords(await client.status(), folder);
        say({ lines, names, source: own.provenance.source, page, answer, bar });
        """,
        {"folder": str(tmp_path), "file": str(code), "document": str(document), "text": wrapped},
    )
    assert told["lines"] == [[], ["We decided"], ["We decided"], ["Never call"]]
    assert told["names"]["openPanel"] == ["Never call openPanel "] and not told["names"]["openPane"]
    assert told["names"]["settle"] == told["names"]["settle."] == ["Never call `settle()`"]
    assert told["names"]["Never"] == told["names"]["loop"] == []
    assert told["source"] == f"vscode:{code}"
    assert "▶ user" in told["page"] or "▶ you" in told["page"], told["page"]
    assert told["answer"][0]["label"] == "Never call openPanel in a loop."
    assert told["bar"] == "$(database) memd"


@needs_node
def test_a_daemon_that_is_down_is_asked_once_and_a_pause_is_shown_W10(
    daemon: RunningDaemon, script: Callable[..., Any]
) -> None:
    with daemon.client() as client:
        client.pause()
    told = script('say(statusWords(await client.status(), ""))')
    assert told["text"].startswith("$(debug-pause)") and "paused everywhere" in told["tip"]
    daemon.terminate()
    told = script("""
    const place = { file: "/none", folder: "/", text: "a", line: 0, word: "" };
    const refused = async () => memories.at(place).then(() => "", (error) => error.code);
    const kept = await client.rememberOrSpool("I use tabs.", { cwd: "/", session: "/x.go", host: "vscode" });
    say({ first: await refused(), second: await refused(), asked: memories.read.size, kept });
    """)
    assert (told["first"], told["second"], told["asked"]) == ("daemon_down", "daemon_down", 1)
    assert told["kept"]["spooled"]
