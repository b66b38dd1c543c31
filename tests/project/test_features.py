"""docs/FEATURES.md explains each row id that code and tests cite, and names test files that exist."""

import ast
import io
import re
import tokenize
from pathlib import Path

import pytest

from memd.clients.cli.commands import PANELS

ROW_ID = r"(?:P-[1-9]\d?|[ACGHKOPQRTUW][1-9]\d?)"
CITED = re.compile(rf"(?<![\w.+-]){ROW_ID}(?![\w+]|\.\w)")
"""An id in a docstring or comment."""

CITED_BY_TEST = re.compile(r"(?<=_)[ACGHKOPQRTUW][1-9]\d?(?=_|$)")
"""An id in the name of a test. The name of a row such as P-12 has no hyphen there."""

ROW = re.compile(rf"^\| ({ROW_ID}) \| (.+) \| (.+) \| (.+) \|$", re.M)


@pytest.fixture(scope="module")
def rows(root: Path) -> list[tuple[str, str, str, str]]:
    """The id, meaning, place and test of each row."""
    return ROW.findall((root / "docs" / "FEATURES.md").read_text(encoding="utf-8"))


def citations(source: str) -> set[str]:
    """The row ids in the docstrings, comments and test names of a Python source; P12 in a test name as it stands."""
    tree = ast.parse(source)
    statements = [node.value for node in ast.walk(tree) if isinstance(node, ast.Expr)]
    texts = [value.value for value in statements if isinstance(value, ast.Constant) and isinstance(value.value, str)]
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    texts += [token.string for token in tokens if token.type == tokenize.COMMENT]
    names = [node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name[:5] == "test_"]
    return {row for text in texts for row in CITED.findall(text)} | {
        row for name in names for row in CITED_BY_TEST.findall(name)
    }


def test_each_cited_row_is_explained(
    root: Path, everything: dict[Path, ast.Module], rows: list[tuple[str, str, str, str]]
) -> None:
    explained = {row for row, *_ in rows}
    unexplained = [
        f"{path}: {row}"
        for path in everything
        for row in sorted(citations((root / path).read_text(encoding="utf-8")))
        if row not in explained and not (row[0] == "P" and f"P-{row[1:]}" in explained)
    ]
    assert unexplained == []


def test_each_row_is_explained_once_and_in_order(rows: list[tuple[str, str, str, str]]) -> None:
    ids = [row for row, *_ in rows]
    assert len(ids) >= 80
    assert ids == sorted(set(ids), key=lambda row: (row[0], "-" in row, int(re.sub(r"\D", "", row))))


def test_each_named_test_exists(rows: list[tuple[str, str, str, str]], tracked: list[Path]) -> None:
    tests = [f"/{path.as_posix()}" for path in tracked if path.parts[0] == "tests"]
    missing = [
        f"{row}: {name}"
        for row, _, _, named in rows
        for name in re.findall(r"`([^`]+)`", named)
        if sum(path.endswith(f"/{name}") for path in tests) != 1
    ]
    assert missing == []


def test_the_search_finds_citations_and_nothing_else() -> None:
    source = '"""Deletion (T10, P-18); A1-A3."""\n# R4\nK1 = "Q99"\n\n\ndef test_a_thing_P12() -> None: ...\n'
    assert citations(source) == {"T10", "P-18", "A1", "R4", "P12"}


PACKAGES = "benchmarks|clients|daemon|docs|models|protocol|stages|systemd|tests"
LAYERS = "storage|projections|services|server"
NAMED_PATH = re.compile(rf"`((?:{PACKAGES}|{LAYERS})/[\w./-]*)`")
"""A path in backticks; one that begins with a layer lies in `daemon/`."""


@pytest.mark.parametrize("document", ["README.md", "SECURITY.md", "docs/ARCHITECTURE.md", "docs/FEATURES.md"])
def test_each_path_that_a_document_names_exists(root: Path, document: str) -> None:
    named = sorted(set(NAMED_PATH.findall((root / document).read_text(encoding="utf-8"))))
    named = [name for name in named if "/test_" not in name or name.startswith("tests/")]
    paths = [name if re.match(rf"(?:{PACKAGES})/", name) else f"daemon/{name}" for name in named]
    assert [path for path in paths if not (root / path).exists()] == []


STATUS = re.compile(
    r"^\| \*\*([A-Z]\d+)\*\* \| (done|part|open)(?:: (.+))? \| (?:`(.+)`)? ?\| (?:`memd (\S+).*`)? ?\|$", re.M
)
"""A row of the table of states: id, verdict, what is missing, test and command."""


def test_each_row_has_a_verdict_and_what_is_done_has_a_test_that_cites_it(root: Path, tracked: list[Path]) -> None:
    rows = STATUS.findall((root / "docs" / "FEATURES.md").read_text(encoding="utf-8"))
    ids = [id for id, *_ in rows]
    assert len(ids) == 96 and ids == sorted(set(ids), key=lambda row: (row[0], int(row[1:])))
    commands = {name for panel in PANELS.values() for name in panel}
    wrong: list[str] = []
    for id, verdict, missing, test, command in rows:
        files = [path for path in tracked if path.parts[0] == "tests" and f"/{path.as_posix()}".endswith(f"/{test}")]
        if verdict == "done":
            is_cited = len(files) == 1 and id in citations((root / files[0]).read_text(encoding="utf-8"))
            wrong += [] if is_cited and command in commands and not missing else [id]
        else:
            wrong += [] if missing else [id]
    assert wrong == []
