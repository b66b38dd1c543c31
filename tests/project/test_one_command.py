"""The README's commands are those that .ci/run runs, letter by letter."""

import os
import re
import shlex
import subprocess
from pathlib import Path

import pytest


def marked(readme: str, name: str) -> list[str]:
    """The lines of the code block between `<!-- name -->` and `<!-- /name -->`."""
    block = re.search(rf"^<!-- {name} -->\n```sh\n(.*?)```\n<!-- /{name} -->$", readme, re.M | re.S)
    assert block, f"README has no block marked {name}"
    return block[1].splitlines()


@pytest.mark.parametrize("name", ["demo", "test"])
def test_the_readme_has_one_line_for_each_of_the_two_promises(root: Path, name: str) -> None:
    assert len(marked((root / "README.md").read_text(encoding="utf-8"), name)) == 1


@pytest.mark.parametrize("name", ["demo", "test"])
def test_ci_takes_that_line_from_the_readme(root: Path, name: str) -> None:
    script = (root / ".ci" / "run").read_text(encoding="utf-8")
    extractor = re.search(r"^readme_line\(\) \{\n.*?^\}$", script, re.M | re.S)
    assert extractor
    told = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", f"{extractor[0]}\nreadme_line {name}"],
        cwd=root,
        capture_output=True,
        check=True,
        text=True,
    )
    assert told.stdout.splitlines() == marked((root / "README.md").read_text(encoding="utf-8"), name)
    assert f"$(readme_line {name})" in script


def test_ci_runs_every_test_in_two_steps_of_that_line(root: Path) -> None:
    script = (root / ".ci" / "run").read_text(encoding="utf-8")
    steps = [shlex.split(line) for line in script.splitlines() if line.startswith("PYTEST_ADDOPTS=")]
    options = [shlex.split(words[0].partition("=")[2]) for words in steps]
    assert [words[words.index("-m") + 1] for words in options] == ["not slow", "slow"]
    assert all({"-m", "--dist", "worksteal", "slow", "not slow"} >= set(words) for words in options)
    assert ["$(readme_line test" in line for line in script.splitlines() if line.startswith("PYTEST_ADDOPTS=")] == [
        True
    ] * 2
    (command,) = marked((root / "README.md").read_text(encoding="utf-8"), "test")
    assert shlex.split(command)[-2:] == ["&&", "pytest"]


def test_ci_can_be_run(root: Path) -> None:
    assert os.access(root / ".ci" / "run", os.X_OK)
    checked = subprocess.run(["bash", "-n", ".ci/run"], cwd=root, capture_output=True, check=False, text=True)
    assert (checked.returncode, checked.stderr) == (0, "")
