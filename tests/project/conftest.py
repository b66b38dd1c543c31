"""The source tree that the tests of the repository's rules read: each Python file, parsed once."""

import ast
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest

PACKAGES = ("protocol", "models", "stages", "daemon", "clients", "benchmarks")
RECIPES = ("models", "recipes")
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
def packages(root: Path) -> dict[Path, ast.Module]:
    """Each Python file of the packages, the recipes included, and the root's own."""
    root_module = Path("__init__.py")
    return {root_module: ast.parse((root / root_module).read_bytes(), str(root_module)), **parsed(root, *PACKAGES)}


@pytest.fixture(scope="session")
def shipped(packages: dict[Path, ast.Module]) -> dict[Path, ast.Module]:
    """Each Python file that the wheel holds. The recipes are scripts for an environment of their own."""
    return {path: tree for path, tree in packages.items() if path.parts[:2] != RECIPES}


@pytest.fixture(scope="session")
def everything(root: Path, packages: dict[Path, ast.Module]) -> dict[Path, ast.Module]:
    """The packages and the tests."""
    return {**packages, **parsed(root, "tests")}


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
