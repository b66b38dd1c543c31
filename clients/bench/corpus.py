"""The corpus of real sessions with hand-written gold: its folder, its scorer (`score.py`), its sessions, and the models
that were fitted without one of its repositories."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

from ..importers.agent_files import reader
from ..importers.cursors import Cursors
from ..importers.transcript import CapturedSession
from .measurement import BenchOptions, DataMissing

SCORER = "score.py"
_SESSIONS, _GOLD = Path("dev/sessions"), Path("dev/gold")
_WITHOUT = Path(__file__).parent / "samples" / "without"
"""For each repository a folder of models that were fitted without its sessions, which are measured with them."""
_SHARED = {"soph": "entire", "alex": "entire", "victor": "entire"}


def is_corpus(folder: Path) -> bool:
    """Whether the corpus is in this folder."""
    return (folder / SCORER).exists()


def corpus_folder(options: BenchOptions) -> Path:
    """The folder of the corpus: the data folder itself, or `corpus` in it. Raises DataMissing."""
    if options.data and is_corpus(options.data):
        return options.data
    return options.find(f"corpus/{SCORER}").parent


def session_names(options: BenchOptions) -> list[str]:
    """The sessions that have a gold list; under `quick` the first two. Raises DataMissing."""
    folder = corpus_folder(options)
    names = sorted(path.stem for path in (folder / _GOLD).glob("*.jsonl"))
    if not names:
        raise DataMissing(f"there is no gold list in {folder}")
    return names[:2] if options.quick else names


def load_scorer(folder: Path) -> ModuleType:
    """The scorer of the corpus as a module. Raises DataMissing."""
    path = folder / SCORER
    spec = importlib.util.spec_from_file_location("memd_corpus_scorer", path)
    if spec is None or spec.loader is None:
        raise DataMissing(f"{path} is no Python module")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def person(session: str) -> str:
    """The person whose session it is."""
    return session.partition("-")[0]


def repository(session: str) -> str:
    """The repository that a session belongs to, by its person where it has a name of its own."""
    return _SHARED.get(person(session), person(session))


def models_without(repository: str) -> dict[str, str]:
    """The setting with which memd uses the models that were fitted without a repository."""
    path = _WITHOUT / repository
    return {"MEMD_BENCH_MODELS": str(path)} if path.exists() else {}


def read_session(folder: Path, scorer: ModuleType, name: str, cwd: str = "") -> tuple[CapturedSession, ...]:
    """A session of the corpus, and those of its subagents, as an import from the folder `cwd` reads them."""
    path = folder / _SESSIONS / f"{name}.jsonl"
    return reader(scorer.host_of(str(path)), path, cwd, Cursors(path.parent), dry_run=True)(None).sessions
