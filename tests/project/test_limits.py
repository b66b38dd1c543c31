"""Names and docstrings of every module and class."""

import ast
import re
from pathlib import Path

GENERIC = "utils?|helpers?|managers?|handlers?|base|misc|common|stuff"
MODULE_NAME = re.compile(rf"(^|_)({GENERIC})(_|$)")
CLASS_NAME = re.compile(r"(Util|Utils|Helper|Helpers|Manager|Handler|Base)$")


def test_no_module_and_no_folder_has_a_generic_name(everything: dict[Path, ast.Module]) -> None:
    names = {part for path in everything for part in (*path.parts[:-1], path.stem)}
    assert sorted(name for name in names if MODULE_NAME.search(name)) == []


def test_no_class_has_a_generic_name(everything: dict[Path, ast.Module]) -> None:
    generic = [
        f"{path}:{node.lineno} {node.name}"
        for path, tree in everything.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef) and CLASS_NAME.search(node.name)
    ]
    assert generic == []


def test_every_module_says_what_it_is(everything: dict[Path, ast.Module]) -> None:
    assert [str(path) for path, tree in everything.items() if not ast.get_docstring(tree)] == []
