"""Each dependency has a reason, and nothing is imported that is not declared (STYLE, principle 10)."""

import ast
import re
import sys
from importlib.metadata import packages_distributions
from pathlib import Path
from typing import Any

# Scripts for an environment of their own, not shipped.
RECIPES = ("models", "recipes")


def normal(name: str) -> str:
    """A distribution's name as indexes compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def declared(pyproject: dict[str, Any]) -> set[str]:
    """Names of all runtime and optional dependencies, the test extra aside."""
    project = pyproject["project"]
    extras: dict[str, list[str]] = project["optional-dependencies"]
    lines = [*project["dependencies"], *(line for extra, names in extras.items() if extra != "test" for line in names)]
    return {normal(re.split(r"[\s\[<>=!~;]", line, maxsplit=1)[0]) for line in lines}


def imported(tree: ast.Module) -> set[str]:
    """Top-level names of absolute imports, wherever they stand."""
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
            names.add(node.module.split(".")[0])
    return names - sys.stdlib_module_names - {"memd"}


def test_every_dependency_has_a_reason_beside_it(root: Path) -> None:
    text = (root / "pyproject.toml").read_text(encoding="utf-8")
    tables = re.findall(r"^(?:dependencies|\w+) = \[\n(.*?)^\]", text.split("[project.scripts]")[0], re.M | re.S)
    lines = [line.strip() for table in tables for line in table.splitlines() if re.search(r'"[^"]*[<>=]=', line)]
    assert len(lines) >= 12
    assert [line for line in lines if not re.search(r'",\s+# \S.{10,}$', line)] == []


def test_every_dependency_has_a_lower_bound(pyproject: dict[str, Any]) -> None:
    project = pyproject["project"]
    extras: dict[str, list[str]] = project["optional-dependencies"]
    lines = [*project["dependencies"], *(line for names in extras.values() for line in names)]
    assert [line for line in lines if ">=" not in line] == []


def test_everything_imported_is_declared(packages: dict[Path, ast.Module], pyproject: dict[str, Any]) -> None:
    distributions = packages_distributions()
    known = declared(pyproject)
    undeclared = [
        f"{path}: {name}"
        for path, tree in packages.items()
        if path.parts[:2] != RECIPES
        for name in sorted(imported(tree))
        if not known & {normal(dist) for dist in distributions.get(name, [name])}
    ]
    assert undeclared == []


def test_a_recipe_names_what_it_needs(packages: dict[Path, ast.Module], pyproject: dict[str, Any]) -> None:
    known = declared(pyproject)
    recipes = {path.stem: tree for path, tree in packages.items() if path.parts[:2] == RECIPES}
    heads = {name: ast.get_docstring(tree) or "" for name, tree in recipes.items()}
    # A recipe may say that it runs in the environment of another one: then that one's head counts too.
    told = {
        name: head + "".join(heads[other] for other in heads if f"of `{other}.py`" in head)
        for name, head in heads.items()
    }
    unnamed = [
        f"{recipe}: {name}"
        for recipe, tree in recipes.items()
        for name in sorted(imported(tree) - set(recipes))
        if normal(name) not in known and name not in told[recipe] and normal(name) not in told[recipe]
    ]
    assert unnamed == []
