"""What the build ships is what the tree holds: packages, data and version."""

import ast
from pathlib import Path
from typing import Any

import memd

# Scripts for an environment of their own, not shipped.
RECIPES = ("models", "recipes")

# What npm needs to check and pack the extension for VS Code.
FOR_NPM = {".npmrc", "package-lock.json", "tsconfig.json"}


def test_the_list_of_packages_equals_the_tree(packages: dict[Path, ast.Module], pyproject: dict[str, Any]) -> None:
    folders = {path.parent for path in packages if path.name == "__init__.py"}
    tree = sorted(".".join(("memd", *folder.parts)) for folder in folders)
    listed = pyproject["tool"]["setuptools"]["packages"]
    assert listed == tree, "in pyproject.toml it should read:\n" + "".join(f'    "{name}",\n' for name in tree)


def test_every_module_lies_in_a_package(packages: dict[Path, ast.Module]) -> None:
    folders = {path.parent for path in packages if path.parts[:2] != RECIPES}
    assert sorted(str(folder) for folder in folders if folder / "__init__.py" not in packages) == []


def test_tests_and_docs_are_no_packages(root: Path) -> None:
    assert [folder for folder in ("tests", "docs", "systemd") if (root / folder / "__init__.py").exists()] == []


def test_every_data_file_of_a_package_is_shipped(
    root: Path, packages: dict[Path, ast.Module], tracked: list[Path], pyproject: dict[str, Any]
) -> None:
    shipped: set[Path] = set()
    for package, patterns in pyproject["tool"]["setuptools"]["package-data"].items():
        folder = Path(*package.split(".")[1:])
        assert folder / "__init__.py" in packages, f"{package} has data and is no package"
        for pattern in patterns:
            shipped |= {path.relative_to(root) for path in (root / folder).glob(pattern) if path.is_file()}
    inside = {path.parts[0] for path in packages if len(path.parts) > 1}
    data = {path for path in tracked if path.parts[0] in inside and path.suffix not in {".py", ".md"}}
    data = {path for path in data if path.parts[:2] != RECIPES and path.name not in FOR_NPM}
    assert sorted(map(str, data - shipped)) == []


def test_the_version_equals_that_of_pyproject(pyproject: dict[str, Any]) -> None:
    assert memd.__version__ == pyproject["project"]["version"]


def test_the_memd_under_test_is_this_checkout(root: Path) -> None:
    assert Path(memd.__file__ or "").resolve().parent == root, (
        "another copy is installed: pip install -e '.[test]' here"
    )
