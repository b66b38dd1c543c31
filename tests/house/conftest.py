"""The tree that the house tests walk: every Python file of the rooms and of the tests, parsed once."""

import ast
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest

ROOMS = ("protocol", "models", "stages", "daemon", "clients", "benchmarks")
LEFT_BY_TOOLS = {"__pycache__", "node_modules", "build", "dist"}


def parsed(root: Path, *folders: str) -> dict[Path, ast.Module]:
    """Path below `root` → syntax tree, for every Python file of those folders."""
    found: dict[Path, ast.Module] = {}
    for folder in folders:
        for path in sorted((root / folder).rglob("*.py")):
            below = path.relative_to(root)
            if not LEFT_BY_TOOLS.intersection(below.parts):
                found[below] = ast.parse(path.read_bytes(), str(below))
    return found


@pytest.fixture(scope="session")
def root() -> Path:
    """The checkout."""
    return Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def rooms(root: Path) -> dict[Path, ast.Module]:
    """Every Python file that is shipped: the root's own and those of the rooms."""
    front = Path("__init__.py")
    return {front: ast.parse((root / front).read_bytes(), str(front)), **parsed(root, *ROOMS)}


@pytest.fixture(scope="session")
def everything(root: Path, rooms: dict[Path, ast.Module]) -> dict[Path, ast.Module]:
    """The rooms and the tests."""
    return {**rooms, **parsed(root, "tests")}


@pytest.fixture(scope="session")
def pyproject(root: Path) -> dict[str, Any]:
    """pyproject.toml, decoded."""
    return tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))


@pytest.fixture(scope="session")
def tracked(root: Path) -> list[Path]:
    """Every file in git; in an exported tree without git, every file outside of hidden and generated folders."""
    git = subprocess.run(
        ["git", "-c", f"safe.directory={root}", "ls-files", "-z"],
        cwd=root,
        capture_output=True,
        check=False,
        text=True,
    )
    if git.returncode == 0 and (root / ".git").exists():
        paths = (Path(name) for name in git.stdout.split("\0") if name)
    else:
        paths = (path.relative_to(root) for path in root.rglob("*"))
        paths = (p for p in paths if not p.parts[0].startswith(".") and not LEFT_BY_TOOLS.intersection(p.parts))
    return [path for path in paths if (root / path).is_file() and not (root / path).is_symlink()]
