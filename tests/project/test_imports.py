"""Imports go one way: between packages, between the layers of the daemon, and between folders; there is no cycle."""

import ast
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

Node = TypeVar("Node", Path, str)

TYPES_ONLY = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    "

STAGES = {"stages", "stages/rules", "stages/secrets", "models", "protocol"}
STORAGE = {"daemon", "daemon/storage", "protocol"}
PROJECTIONS = {"daemon/projections", *STORAGE, *STAGES}
SERVICES = {"daemon/services", *PROJECTIONS}
BENCH = {"clients/bench", "clients/python", "clients/importers", "protocol"}

ALLOWED: dict[str, set[str]] = {
    "": set(),
    "protocol": {"protocol"},
    "models": {"models", "protocol"},
    "stages": STAGES,
    "stages/rules": {"stages/rules", "protocol"},
    "stages/secrets": {"stages/secrets", "protocol"},
    "daemon": {"daemon", *STAGES},
    "daemon/storage": STORAGE,
    "daemon/projections": PROJECTIONS,
    "daemon/services": SERVICES,
    "clients": {"protocol"},
    "clients/python": {"clients/python", "protocol"},
    "clients/shell": {"clients/shell", "protocol"},
    "clients/service": {"clients/service", "protocol"},
    "clients/nvim": set(),
    "clients/emacs": set(),
    "clients/vscode": {"clients/vscode", "clients/node"},
    "clients/node": {"clients/node", "clients/shell", "clients/python", "protocol"},
    "clients/pi": {"clients/pi", "clients/python", "protocol"},
    "clients/importers": {"clients/importers", "clients/pi", "clients/python", "protocol"},
    "clients/ingest": {"clients/ingest", "clients/importers", "clients/python", "protocol"},
    "clients/mcp": {"clients/mcp", "clients/ingest", "clients/python", "protocol"},
    "clients/panel": {"clients/panel", "clients/panel/screens", "clients/python", "protocol"},
    "clients/panel/screens": {"clients/panel", "clients/python", "protocol"},
    "clients/exchange": {"clients/exchange", "clients/python", "protocol"},
    "clients/hub": {"clients/hub", "protocol"},
    "clients/hooks": {
        "clients/hooks",
        "clients/importers",
        "clients/python",
        "clients/service",
        "clients/shell",
        "protocol",
    },
    "clients/bench": {
        *BENCH,
        "clients/exchange",
        "clients/hooks",
        "clients/hub",
        "clients/shell",
        *(f"clients/bench/{n}" for n in ("peers", "read", "write")),
    },
    "clients/bench/peers": {"clients/bench/peers", *BENCH},
    "clients/bench/read": {"clients/bench/read", *BENCH},
    "clients/bench/write": {"clients/bench/write", *BENCH},
    "clients/cli/sample": set(),
}
"""The folders that each folder may import; `allowed` adds the folders that may import whatever is below them."""


def allowed(path: Path, folders: set[str]) -> set[str]:
    """Return the folders that a module may import. Raises KeyError for a folder without a rule."""
    folder = "/".join(path.parts[:-1])
    if folder.startswith("daemon/services/"):
        return {folder, *SERVICES}
    if folder == "daemon/server" or path == Path("daemon/__main__.py"):
        return {name for name in folders if name.startswith("daemon")} | STAGES
    if folder == "clients/cli":
        return {name for name in folders if name.startswith("clients")} | {"protocol"}
    if folder == "benchmarks":
        return folders
    return ALLOWED[folder]


def targets(path: Path, tree: ast.Module) -> Iterator[tuple[int, tuple[str, ...]]]:
    """Yield line and dotted path below `memd` of each import of ours, also in functions and under TYPE_CHECKING."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                package, *below = alias.name.split(".")
                if package == "memd":
                    yield node.lineno, tuple(below)
        elif isinstance(node, ast.ImportFrom):
            named = node.module.split(".") if node.module else []
            if node.level:
                depth = len(path.parts) - node.level
                assert depth >= 0, f"{path}:{node.lineno} climbs out of the package"
                named = [*path.parts[:depth], *named]
            elif named[0] == "memd":
                named = named[1:]
            else:
                continue
            for alias in node.names:
                yield node.lineno, (*named, alias.name)


def module_of(target: tuple[str, ...], modules: Mapping[Path, object]) -> Path | None:
    """Return the file that holds an import's target, or None if it is not among the modules."""
    for length in range(len(target), -1, -1):
        stem = Path(*target[:length])
        for path in (stem.with_suffix(".py") if length else stem, stem / "__init__.py"):
            if path in modules:
                return path
    return None


def edges(trees: Mapping[Path, ast.Module]) -> dict[Path, dict[Path, int]]:
    """Return for each module the modules that it imports, each with the line of one such import."""
    graph: dict[Path, dict[Path, int]] = {path: {} for path in trees}
    for path, tree in trees.items():
        for line, target in targets(path, tree):
            module = module_of(target, trees)
            if module is not None and module != path:
                graph[path].setdefault(module, line)
    return graph


def forbidden(trees: Mapping[Path, ast.Module]) -> list[str]:
    """Return each import that the rules forbid, as `file:line folder → folder`."""
    folders = {"/".join(path.parts[:-1]) for path in trees}
    wrong: list[str] = []
    for path, imports in edges(trees).items():
        permitted = allowed(path, folders) | {""}
        source = "/".join(path.parts[:-1])
        for module, line in imports.items():
            folder = "/".join(module.parts[:-1])
            if folder not in permitted:
                wrong.append(f"{path}:{line} {source or 'root'} → {folder}")
            elif module.stem == "__main__":
                wrong.append(f"{path}:{line} imports the entry point {module}")
    return wrong


def cycles(graph: Mapping[Node, set[Node]]) -> list[list[Node]]:
    """Return the strongly connected components with more than one node, each sorted (Tarjan 1972)."""
    number: dict[Node, int] = {}
    low: dict[Node, int] = {}
    stack: list[Node] = []
    components: list[list[Node]] = []

    def visit(node: Node) -> None:
        number[node] = low[node] = len(number)
        stack.append(node)
        for successor in graph[node]:
            if successor not in number:
                visit(successor)
                low[node] = min(low[node], low[successor])
            elif successor in stack:
                low[node] = min(low[node], number[successor])
        if low[node] == number[node]:
            start = stack.index(node)
            if len(stack) - start > 1:
                components.append(sorted(stack[start:], key=str))
            del stack[start:]

    for node in graph:
        if node not in number:
            visit(node)
    return components


def folder_graph(graph: Mapping[Path, Mapping[Path, int]]) -> dict[str, set[str]]:
    """Return the imports between folders. A module that lies beside folders is a node of its own: it is shared by them
    or assembles them."""
    parents = {"/".join(path.parts[:n]) for path in graph for n in range(len(path.parts) - 1)}

    def node(path: Path) -> str:
        folder = "/".join(path.parts[:-1])
        return path.as_posix() if folder in parents else folder

    folders: dict[str, set[str]] = {node(path): set() for path in graph}
    for path, imports in graph.items():
        folders[node(path)] |= {node(module) for module in imports} - {node(path)}
    return folders


def imports_of(name: str, trees: Mapping[Path, ast.Module]) -> list[str]:
    """Return the modules that import a package of others, or a part of it."""
    return [
        str(path)
        for path, tree in trees.items()
        for node in ast.walk(tree)
        if (isinstance(node, ast.ImportFrom) and not node.level and (node.module or "").split(".")[0] == name)
        or (isinstance(node, ast.Import) and any(alias.name.split(".")[0] == name for alias in node.names))
    ]


def parsed(sources: Mapping[str, str]) -> dict[Path, ast.Module]:
    """Return the trees of planted modules."""
    return {Path(path): ast.parse(text) for path, text in sources.items()}


def test_each_folder_imports_only_what_it_may(shipped: dict[Path, ast.Module]) -> None:
    assert forbidden(shipped) == []


def test_no_modules_import_each_other_in_a_cycle(shipped: dict[Path, ast.Module]) -> None:
    assert cycles({path: set(imports) for path, imports in edges(shipped).items()}) == []


def test_no_folders_import_each_other_in_a_cycle(shipped: dict[Path, ast.Module]) -> None:
    assert cycles(folder_graph(edges(shipped))) == []


def test_only_the_storage_layer_of_the_daemon_imports_lmdb(shipped: dict[Path, ast.Module]) -> None:
    daemon = {path: tree for path, tree in shipped.items() if path.parts[0] == "daemon"}
    outside = [path for path in imports_of("lmdb", daemon) if not path.startswith("daemon/storage/")]
    assert outside == []


def test_only_the_process_of_a_remote_call_and_the_commands_for_a_hub_import_an_http_client_W4_H3(
    shipped: dict[Path, ast.Module], pyproject: dict[str, Any]
) -> None:
    clients = ("httpx", "requests", "urllib3", "aiohttp", "openai", "anthropic")
    paths = [path for name in clients for path in imports_of(name, shipped)]
    assert sorted(set(paths)) == ["clients/exchange/hub_client.py", "daemon/services/remote/child.py"]
    assert not [line for line in pyproject["project"]["dependencies"] if line.startswith(clients)]


def test_packages_import_each_other_by_relative_imports(shipped: dict[Path, ast.Module]) -> None:
    assert imports_of("memd", shipped) == []


def test_the_rules_find_a_planted_import() -> None:
    planted = {
        "protocol/wire.py": "from ..daemon.server.startup import Daemon",
        "stages/embed.py": "def f():\n    from ..daemon import config",
        "models/trunk.py": "from .. import stages",
        "clients/cli/main.py": "from ...daemon.config import Config",
        "clients/hooks/run.py": "import memd.models.trunk",
        "clients/python/client.py": "from ..cli import main",
        "daemon/config.py": "from .storage.log import Log",
        "daemon/storage/log.py": "from ..projections import records",
        "daemon/projections/records.py": "from ..services.service import Handler",
        "daemon/services/service.py": "from .access.passes import Passes",
        "daemon/services/access/passes.py": TYPES_ONLY + "from ..recall.warm import Warm",
        "daemon/services/recall/warm.py": "from ...server.startup import Daemon",
        "daemon/server/startup.py": "from ...benchmarks import years\nfrom .. import __main__\nfrom .. import world",
        "daemon/__main__.py": "from .server.startup import Daemon",
        "daemon/world.py": "",
        "stages/__init__.py": "",
        "benchmarks/years.py": "from ..clients.python.client import Client\nfrom ..daemon.storage.log import Log",
    }
    assert forbidden(parsed(planted)) == [
        "protocol/wire.py:1 protocol → daemon/server",
        "stages/embed.py:2 stages → daemon",
        "models/trunk.py:1 models → stages",
        "clients/cli/main.py:1 clients/cli → daemon",
        "clients/hooks/run.py:1 clients/hooks → models",
        "clients/python/client.py:1 clients/python → clients/cli",
        "daemon/config.py:1 daemon → daemon/storage",
        "daemon/storage/log.py:1 daemon/storage → daemon/projections",
        "daemon/projections/records.py:1 daemon/projections → daemon/services",
        "daemon/services/service.py:1 daemon/services → daemon/services/access",
        "daemon/services/access/passes.py:3 daemon/services/access → daemon/services/recall",
        "daemon/services/recall/warm.py:1 daemon/services/recall → daemon/server",
        "daemon/server/startup.py:1 daemon/server → benchmarks",
        "daemon/server/startup.py:2 imports the entry point daemon/__main__.py",
    ]


def test_the_search_finds_a_planted_cycle_of_modules() -> None:
    planted = {
        "stages/a.py": "from .b import B\nfrom .d import D",
        "stages/b.py": "def f():\n    from .c import C",
        "stages/c.py": TYPES_ONLY + "from .a import A",
        "stages/d.py": "",
    }
    found = cycles({path: set(imports) for path, imports in edges(parsed(planted)).items()})
    assert found == [[Path("stages/a.py"), Path("stages/b.py"), Path("stages/c.py")]]


def test_the_search_finds_a_planted_cycle_of_folders() -> None:
    planted = {
        "clients/bench/runner.py": "from .read import speed",
        "clients/bench/part.py": "",
        "clients/bench/read/speed.py": "from ..part import Part\nfrom ...hooks.program import x",
        "clients/hooks/program.py": "",
        "clients/hooks/hosts.py": "from ..bench.read.store import Store",
        "clients/bench/read/store.py": "",
    }
    assert cycles(folder_graph(edges(parsed(planted)))) == [["clients/bench/read", "clients/hooks"]]


def test_the_search_finds_a_planted_import_of_a_package() -> None:
    planted = {
        "a.py": "import lmdb.verify",
        "b.py": "def f():\n    from lmdb import open",
        "c.py": "from .lmdb import x",
    }
    assert imports_of("lmdb", parsed(planted)) == ["a.py", "b.py"]


def test_the_daemon_starts_without_the_rules_of_the_write_path_P2() -> None:
    rules = ("cues", "claims", "keys", "contradictions", "standing", "extract", "reconcile", "pipeline")
    loaded = f"[name for name in {rules} if f'memd.stages.{{name}}' in sys.modules]"
    code = f"import sys, memd.daemon.server.startup; print({loaded})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
