"""memd installs without a compiler, and its packages are built by scripts that the shell and Ruby understand (U10)."""

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from memd.daemon.projections.vector_index import has_graphs


def engines(lines: list[str]) -> dict[str, str]:
    """The marker of each distribution that brings the module `hnswlib`."""
    pairs = (line.partition(";") for line in lines if "hnswlib" in line)
    return {name.split(">=")[0]: marker.strip() for name, _, marker in pairs}


def test_no_environment_gets_two_distributions_of_hnswlib_U10(pyproject: dict[str, Any]) -> None:
    project = pyproject["project"]
    assert engines(project["dependencies"]) == {"chroma-hnswlib": "python_version < '3.13'"}
    for extra in ("hnsw", "test"):
        assert engines(project["optional-dependencies"][extra]) == {"hnswlib": "python_version >= '3.13'"}


def test_the_tests_run_with_graphs_U10() -> None:
    assert has_graphs()


def test_ci_installs_the_demo_without_a_compiler_U10(root: Path) -> None:
    (line,) = [
        line for line in (root / ".ci" / "run").read_text(encoding="utf-8").splitlines() if " step demo " in line
    ]
    assert line.startswith("CC=/nonexistent CXX=/nonexistent ")


def test_the_debian_script_is_read_by_the_shell_and_its_files_exist_U10(root: Path) -> None:
    script = root / "deploy" / "debian" / "build"
    checked = subprocess.run(["bash", "-n", script], capture_output=True, check=False, text=True)
    assert (checked.returncode, checked.stderr) == (0, "")
    names = re.findall(r"(?:deploy|systemd)/[\w./-]+", script.read_text(encoding="utf-8"))
    assert {"systemd/memd.service", "systemd/memd.socket", "deploy/debian/copyright"} <= set(names)
    assert [name for name in names if not name.startswith("systemd/user") and not (root / name).exists()] == []


@pytest.mark.skipif(not shutil.which("ruby"), reason="needs ruby")
def test_the_formula_is_read_by_ruby_U10(root: Path) -> None:
    formula = root / "deploy" / "homebrew" / "memd.rb"
    checked = subprocess.run(["ruby", "-W2", "-c", formula], capture_output=True, check=False, text=True)
    assert (checked.returncode, checked.stdout.strip(), checked.stderr) == (0, "Syntax OK", "")
