"""Reads the file of a placed skill: its steps, and those that name something that is gone (K2)."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from hashlib import sha256
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from ....protocol.errors import InvalidRequest
from ....protocol.shell_text import commands
from .shown_words import Known
from .steps import StepSeen, SubCommands, command_steps

BYTES = 1024 * 1024
"""Most bytes of a file that are read."""

_STEP = re.compile(
    r"^[ \t]*(?:\d+[.)][ \t]+`(?P<numbered>[^`\n]+)`(?P<rest>[^\n]*)|[-*][ \t]+`(?P<plain>[^`\n]+)`[ \t]*|"
    r"\d+[.)][ \t]+\((?P<edit>edit [^()\n]+)\)[ \t]*)$",
    re.MULTILINE,
)
_NUMBERED = re.compile(r"([ \t]*)(\d+)([.)]\s.*)")
_WHERE = re.compile(r" in `([^`\n]+)`")
_TARGETS = {"make": 1, "just": 1, "npm": 2, "pnpm": 2, "yarn": 2, "bun": 2, "mise": 2, "task": 1}
"""Programs whose word at this place is defined by a file of the project."""


class FileStep(NamedTuple):
    """A step of a skill's file: its whole line, the command in it, and what that does, with its folder."""

    line: str
    command: str
    step: StepSeen


class SkillFile(NamedTuple):
    """A skill's file. `sha`: SHA-256 of its bytes, "" if it is gone; `text`: its beginning."""

    sha: str
    text: str

    @property
    def steps(self) -> tuple[FileStep, ...]:
        """The steps in order. Lines without a command, and commands that only read, are left out."""
        return tuple(_steps(self.text))

    def named(self, subs: SubCommands) -> tuple[FileStep, ...]:
        """Return the steps by the names that they have in a pool's work."""
        return tuple(each._replace(step=subs.named(each.step)) for each in self.steps)

    def own(self, subs: SubCommands) -> tuple[str, ...]:
        """Return the names of the own steps in a pool's work, in order."""
        return tuple(dict.fromkeys(each.step.name for each in self.named(subs) if each.step.own))


def whole_text(path: Path, file: SkillFile) -> str:
    """Return the text of a file that is to be changed. Raises InvalidRequest for one that memd can't write back."""
    if not file.text:
        hint = "a skill on a branch is there once you merged it; `memd skill show NAME` tells"
        raise InvalidRequest(f"{path} is not there, is empty, or can't be read", hint=hint)
    if "\ufffd" in file.text or len(file.text.encode()) >= BYTES:
        raise InvalidRequest(f"{path} is no UTF-8 text, or longer than 1 MiB", hint="change it yourself")
    return file.text


GONE, UNREADABLE = SkillFile("", ""), SkillFile("?", "")
"""A file that is not there, and one that memd may not read, or whose folder is not there now."""


def read_skill(path: Path) -> SkillFile:
    """Return the file at a path; `GONE` or `UNREADABLE` without one."""
    try:
        if path.exists() and not path.is_file():
            return UNREADABLE
        with path.open("rb") as file:
            content = file.read(BYTES)
    except FileNotFoundError:
        return GONE
    except OSError:
        return UNREADABLE
    return SkillFile(sha256(content).hexdigest(), content.decode("utf-8", "replace"))


def _steps(text: str) -> Iterator[FileStep]:
    for found in _STEP.finditer(text):
        if edit := found["edit"]:
            yield FileStep(found[0], f"({edit})", StepSeen(edit, tuple(edit.split(" ", 1)), False))
            continue
        command = found["numbered"] or found["plain"]
        where = _WHERE.match(found["rest"] or "")
        plain = re.sub(r"<(?:word|path|text|option)>", "0", command)  # no word that may be a sub-command
        for step in command_steps(plain, "ok", 0)[:1]:
            yield FileStep(found[0], command, step._replace(folder=where[1] if where else step.folder))


def gone_steps(file: SkillFile, known: Known, root: Path) -> list[FileStep]:
    """Return the steps whose script, or whose target in a file of the project, is gone."""
    named = [(each, _named(each)) for each in file.steps]
    return [each for each, name in named if name and not known(name) and not os.path.lexists(root / name)]


def _named(each: FileStep) -> str:
    """Return what a step needs of the project, "" for nothing that can be looked up."""
    program, folder = each.step.words[0], each.step.folder
    if folder:
        return f"{folder}/{program}" if "/" in program and "<" not in folder else ""
    if "/" in program:
        return "" if program.startswith(("@", "/", "~")) else program
    if not each.step.raw:
        return ""
    words = [word.text for word in commands(each.step.raw)[0].words]
    place = _TARGETS.get(program, 0)
    is_target = 0 < place < len(words) and (place == 1 or words[1] == "run") and words[0] == program
    return words[place] if is_target and re.fullmatch(r"[A-Za-z][\w:-]*", words[place]) else ""


def without_steps(text: str, gone: Sequence[FileStep]) -> str:
    """Return a skill's text without some steps; the other items of their lists are numbered anew."""
    lines = {each.line for each in gone}
    kept: list[str] = []
    for is_list, block in groupby(text.split("\n"), lambda line: _NUMBERED.match(line) is not None):
        items = list(block)
        kept += _numbered(items, lines) if is_list and not lines.isdisjoint(items) else items
    return "\n".join(kept)


def _numbered(items: list[str], gone: set[str]) -> Iterator[str]:
    """Yield the lines of a numbered list without some, numbered anew from its first number."""
    first = _NUMBERED.match(items[0])
    kept = [found for line in items if line not in gone and (found := _NUMBERED.match(line))]
    for number, found in enumerate(kept, int(first[2]) if first else 1):
        yield f"{found[1]}{number}{found[3]}"
