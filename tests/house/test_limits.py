"""Limits are tests, not taste: length of files and functions, names, docstrings (STYLE, principles 7 and 8)."""

import ast
import re
from pathlib import Path

FILE_LINES = 400
FUNCTION_LINES = 60
SOURCE_SUFFIXES = {".py", ".pyi", ".js", ".mjs", ".ts", ".lua", ".sh", ".bash", ".zsh", ".fish", ".c", ".css", ".html"}
GENERIC = "utils?|helpers?|managers?|handlers?|base|misc|common|stuff"
MODULE_NAME = re.compile(rf"(^|_)({GENERIC})(_|$)")
CLASS_NAME = re.compile(r"(Util|Utils|Helper|Helpers|Manager|Handler|Base)$")


def test_no_file_is_longer_than_400_lines(root: Path, tracked: list[Path], everything: dict[Path, ast.Module]) -> None:
    paths = {path for path in tracked if path.suffix in SOURCE_SUFFIXES} | set(everything)
    lengths = {path: len((root / path).read_bytes().splitlines()) for path in paths}
    assert {str(path): lines for path, lines in lengths.items() if lines > FILE_LINES} == {}


def test_no_function_is_longer_than_60_lines(everything: dict[Path, ast.Module]) -> None:
    long = {
        f"{path}:{node.lineno} {node.name}": length
        for path, tree in everything.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (length := (node.end_lineno or node.lineno) - node.lineno + 1) > FUNCTION_LINES
    }
    assert long == {}


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
