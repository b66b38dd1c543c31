"""Names and docstrings of every module and class, and the limit of a function's complexity."""

import ast
import re
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

GENERIC = "utils?|helpers?|managers?|handlers?|base|misc|common|stuff"
MODULE_NAME = re.compile(rf"(^|_)({GENERIC})(_|$)")
CLASS_NAME = re.compile(r"(Util|Utils|Helper|Helpers|Manager|Handler|Base)$")
REQUEST_HANDLERS = {"Handler", "CaptureHandler"}
"""A handler of a request is a term of the dispatch table (docs/ARCHITECTURE.md), not a generic name."""

ENTRY_NAMES = {"__init__", "__main__"}
LIMIT_OFF = re.compile(r"#\s*noqa(?::[^#]*\bC901\b|(?!:))", re.I)


def classes(trees: Mapping[Path, ast.Module]) -> dict[str, list[str]]:
    """Return `file:line` of each definition of a class by the class's name."""
    places: dict[str, list[str]] = defaultdict(list)
    for path, tree in trees.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                places[node.name].append(f"{path}:{node.lineno}")
    return places


def repeated_classes(trees: Mapping[Path, ast.Module]) -> dict[str, list[str]]:
    """Return the class names that are defined more than once."""
    return {name: places for name, places in sorted(classes(trees).items()) if len(places) > 1}


def crowded_modules(trees: Mapping[Path, ast.Module]) -> dict[str, list[str]]:
    """Return the names that more than two modules have."""
    paths: dict[str, list[str]] = defaultdict(list)
    for path in trees:
        if path.stem not in ENTRY_NAMES:
            paths[path.stem].append(str(path))
    return {name: found for name, found in sorted(paths.items()) if len(found) > 2}


def test_no_module_and_no_folder_has_a_generic_name(everything: dict[Path, ast.Module]) -> None:
    names = {part for path in everything for part in (*path.parts[:-1], path.stem)}
    assert sorted(name for name in names if MODULE_NAME.search(name)) == []


def test_no_class_has_a_generic_name(everything: dict[Path, ast.Module]) -> None:
    generic = {name: places for name, places in classes(everything).items() if CLASS_NAME.search(name)}
    assert {name: places for name, places in generic.items() if name not in REQUEST_HANDLERS} == {}


def test_no_class_name_occurs_twice(shipped: dict[Path, ast.Module]) -> None:
    assert repeated_classes(shipped) == {}


def test_no_module_name_occurs_more_than_twice(shipped: dict[Path, ast.Module]) -> None:
    assert crowded_modules(shipped) == {}


def test_the_search_finds_repeated_names() -> None:
    sources = {
        "protocol/agent.py": "class Agent: ...\nclass Note: ...",
        "clients/agent.py": "def f():\n    class Agent: ...",
        "daemon/agent.py": "class Reader: ...",
    }
    planted = {Path(path): ast.parse(text) for path, text in sources.items()}
    assert repeated_classes(planted) == {"Agent": ["protocol/agent.py:1", "clients/agent.py:2"]}
    assert crowded_modules(planted) == {"agent": list(sources)}
    del planted[Path("clients/agent.py")]
    assert repeated_classes(planted) == {} and crowded_modules(planted) == {}


def test_every_module_says_what_it_is(everything: dict[Path, ast.Module]) -> None:
    assert [str(path) for path, tree in everything.items() if not ast.get_docstring(tree)] == []


def test_the_limit_of_complexity_is_on_everywhere(
    root: Path, packages: dict[Path, ast.Module], pyproject: dict[str, Any]
) -> None:
    lint = pyproject["tool"]["ruff"]["lint"]
    assert lint["mccabe"]["max-complexity"] <= 12 and "C901" in lint["select"]
    ignored = [*lint.get("ignore", ()), *(code for codes in lint["per-file-ignores"].values() for code in codes)]
    assert not {"C", "C9", "C90", "C901", "ALL"} & set(ignored)
    assert [str(path) for path in packages if LIMIT_OFF.search((root / path).read_text(encoding="utf-8"))] == []


def test_the_search_finds_a_limit_that_is_off() -> None:
    line = "def f():  #" + " noqa"  # joined here, so that ruff does not read it
    assert all(LIMIT_OFF.search(line + end) for end in ("", ": C901", ": E501, C901", ":C901  # why"))
    assert not any(LIMIT_OFF.search(line + end) for end in (": E501", ": SIM102"))
