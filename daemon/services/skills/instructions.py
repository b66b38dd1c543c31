"""Reads what a project already tells its agents, so that no draft repeats it (K1)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

FILES = ("AGENTS.md", "CLAUDE.md", "GEMINI.md", "README.md", "CONTRIBUTING.md", ".github/copilot-instructions.md")
FOLDERS = (".agents/skills", ".claude/skills", ".codex/skills", ".gemini/skills", ".github/skills", ".pi/skills")
SKILL_FILE = "SKILL.md"

BYTES, SKILLS = 256_000, 100
"""Most bytes of a file, and most skills of a folder, that are read."""

STATED = 0.75
"""Share of own steps that a file names, from which it spells a procedure out."""


def instructions(root: Path) -> dict[str, str]:
    """Return the texts of a project's instructions by their paths from its root, without those that can't be read."""
    names = [*FILES, *(str(Path(folder) / name / SKILL_FILE) for folder in FOLDERS for name in _skills(root / folder))]
    once = {(root / name).resolve(): name for name in reversed(names)}  # a skill may be linked from another folder
    texts = ((name, read_text(root / name)) for name in reversed(once.values()))
    return {name: text for name, text in texts if text}


def _skills(folder: Path) -> Iterable[str]:
    try:
        return sorted(entry.name for entry in folder.iterdir())[:SKILLS]
    except OSError:
        return ()


def read_text(path: Path) -> str:
    """Return the beginning of a file, "" if it can't be read."""
    try:
        if not path.is_file():
            return ""
        with path.open("rb") as file:
            return file.read(BYTES).decode("utf-8", "replace")
    except OSError:
        return ""


def stated_in(own: Iterable[str], texts: dict[str, str]) -> Iterator[str]:
    """Yield the files that name most of the own steps of a procedure."""
    names = list(own)
    for path, text in texts.items():
        words = " ".join(re.sub(r"[`*|]", " ", text).split())
        named = sum(names_step(name, words) for name in names)
        if names and named >= STATED * len(names):
            yield path


def names_step(step: str, words: str) -> bool:
    """Return whether a text names a step: its program and sub-commands, perhaps with options between."""
    program, *subs = step.split()
    between = r"(?:\s+-\S+(?:\s+[^\s-]\S*)?){0,4}\s+"  # options, perhaps with a value
    parts = [re.escape(program.rpartition("/")[2]), *map(re.escape, subs)]
    return re.search(rf"(?<![\w-]){between.join(parts)}(?![\w-])", words) is not None
