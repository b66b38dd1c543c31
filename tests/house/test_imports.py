"""Imports go one way: protocol ← models ← stages ← daemon, and clients → protocol (STYLE, "The house")."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ALLOWED = {
    "": set[str](),
    "protocol": {"protocol"},
    "models": {"models", "protocol"},
    "stages": {"stages", "models", "protocol"},
    "daemon": {"daemon", "stages", "models", "protocol"},
    "clients": {"clients", "protocol"},
    "benchmarks": {"benchmarks", "daemon", "stages", "models", "protocol"},
}


def room_of(path: Path) -> str:
    """The first folder of a path below the root; "" for the root's own file."""
    return path.parts[0] if len(path.parts) > 1 else ""


def targets(path: Path, tree: ast.Module) -> Iterator[tuple[int, tuple[str, ...]]]:
    """Line and dotted path below `memd` of everything of ours that the file imports, wherever it stands."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                package, *below = alias.name.split(".")
                if package == "memd":
                    yield node.lineno, tuple(below)
        elif isinstance(node, ast.ImportFrom):
            named = node.module.split(".") if node.module else []
            if node.level:
                start = path.parts[:-1]
                kept = len(start) - (node.level - 1)
                assert kept >= 0, f"{path}:{node.lineno} climbs out of the package"
                named = [*start[:kept], *named]
            elif named[0] == "memd":
                named = named[1:]
            else:
                continue
            for alias in node.names:
                yield node.lineno, (*named, alias.name)


def wrong_arrows(trees: dict[Path, ast.Module]) -> list[str]:
    """Every import that runs against the arrows, as `file:line room → room`."""
    wrong: list[str] = []
    for path, tree in trees.items():
        for line, target in targets(path, tree):
            room = target[0] if target else ""
            if room in ALLOWED and room not in ALLOWED[room_of(path)] | {""}:
                wrong.append(f"{path}:{line} {room_of(path) or 'root'} → {room}")
    return wrong


def test_no_import_runs_against_the_arrows(rooms: dict[Path, ast.Module]) -> None:
    assert wrong_arrows(rooms) == []


def test_rooms_name_each_other_by_relative_imports(rooms: dict[Path, ast.Module]) -> None:
    absolute = [
        f"{path}:{node.lineno}"
        for path, tree in rooms.items()
        for node in ast.walk(tree)
        if (isinstance(node, ast.ImportFrom) and not node.level and (node.module or "").split(".")[0] == "memd")
        or (isinstance(node, ast.Import) and any(alias.name.split(".")[0] == "memd" for alias in node.names))
    ]
    assert absolute == []


def test_the_walk_sees_an_arrow_that_runs_back() -> None:
    bad = {
        Path("protocol/wire.py"): "from ..daemon.door import Door",
        Path("stages/embed.py"): "def f():\n    from ..daemon import config",
        Path("clients/cli/main.py"): "from ...daemon.config import Config",
        Path("clients/hooks/run.py"): "import memd.models.trunk",
        Path("models/trunk.py"): "from .. import stages",
    }
    assert wrong_arrows({path: ast.parse(text) for path, text in bad.items()}) == [
        "protocol/wire.py:1 protocol → daemon",
        "stages/embed.py:2 stages → daemon",
        "clients/cli/main.py:1 clients → daemon",
        "clients/hooks/run.py:1 clients → models",
        "models/trunk.py:1 models → stages",
    ]


def test_the_daemon_starts_without_the_rules_of_the_write_path_P2() -> None:
    rules = ("cues", "claims", "keys", "contradictions", "standing", "extract", "reconcile", "pipeline")
    loaded = f"[name for name in {rules} if f'memd.stages.{{name}}' in sys.modules]"
    code = f"import sys, memd.daemon.server.startup; print({loaded})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
