"""Commands and edits of a session as steps of a procedure (K1).

A step is named by its program and sub-commands, such as `make bundle` or `git commit`, without paths, ids and texts.
Reading is no step: readers, look-ups, help, and whatever stands behind a pipe.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

from ....protocol.event import SaidBy
from ....protocol.shell_text import ShellWord, SimpleCommand, commands
from .tables import table

Outcome = Literal["ok", "error", "refused", "unknown"]

_TABLE = table("shell")
_READERS, _LOOK_UPS, _WRAPPERS, _RUNNERS, _KNOWN_TOOLS, _PACKAGES, _INSTALLS, _FILE_WORK, _VALUED = (
    frozenset(_TABLE[name].split())
    for name in "readers look_ups wrappers runners known_tools packages installs file_work valued".split()
)
_RUNNERS_OF_TWO = frozenset(name.replace(":", " ") for name in _TABLE["runners_of_two"].split())
_INTERPRETERS = re.compile(
    r"(?:python|py|node|ruby|perl|php|lua|deno|bash|sh|zsh|fish|Rscript|julia|pwsh|tsx|ts-node)[\d.]*"
)
_SUB = re.compile(r"[A-Za-z][\w:-]*(?:\.[a-z_]+)*", re.ASCII)
_FILE = re.compile(
    r".*\.(?:py|js|ts|tsx|jsx|sh|rb|go|rs|c|h|cpp|java|kt|md|txt|json|ya?ml|toml|csv|tsv|sql|html|css|xml|lock)"
)
_ASSIGNMENT = re.compile(r"\w+=")
_HELP = frozenset(("--help", "-h", "--version", "-V", "-version"))
_KNOWN_FILES = re.compile(
    r"(?i)(?:changelog|readme|version|news|history)(?:\.\w+)?|package\.json|cargo\.toml|pyproject\.toml|mix\.exs|pom\.xml"
    r"|build\.gradle(?:\.kts)?|dockerfile|go\.mod|makefile|justfile|composer\.json|pubspec\.yaml"
)
_TESTS = re.compile(r"(?i)(?:^|[/_.-])(?:tests?|specs?)(?:[/_.-]|$)|test\.\w+$")
_DOCS = re.compile(r"(?i)\.(?:md|rst|adoc|txt|mdx)$|(?:^|/)docs?/")


class StepSeen(NamedTuple):
    """A step that was done. `name`: its `words`, which are program and sub-commands; `own`: it names something of the
    project or person; `shown`: its words, "" for each one that is no plain word; `raw`: the command as it was typed;
    `folder`: where it ran, if a relative `cd` stood before it; `said_by`: what had the text of its call first."""

    name: str
    words: tuple[str, ...]
    own: bool
    shown: tuple[str, ...] = ()
    raw: str = ""
    outcome: Outcome = "unknown"
    place: int = 0
    folder: str = ""
    said_by: SaidBy = ""


def command_steps(text: str, outcome: Outcome, place: int) -> list[StepSeen]:
    """Return the steps of a shell text. The outcome is that of the last one: those before it went well, unless it was
    refused."""
    found: list[StepSeen] = []
    folder = ""
    for command in commands(text):
        if command.words[0].text == "cd":
            folder = _folder(command.words)
        elif step := _step(command, place):
            found.append(step._replace(folder=folder))
    before: Outcome = "refused" if outcome == "refused" else "ok"
    return [step._replace(outcome=outcome if step is found[-1] else before) for step in found]


def _folder(words: Sequence[ShellWord]) -> str:
    """Return where a `cd` leads, from where the session is; "" for an absolute place."""
    place = words[1].text if len(words) > 1 else ""
    return "" if place.startswith(("/", "~", "-")) else place.strip("/")


def edit_step(path: str, outcome: Outcome, place: int) -> StepSeen:
    """Return the step of an edited file: code, tests, docs, or a file that most projects have."""
    name = path.replace("\\", "/").rpartition("/")[2]
    if _KNOWN_FILES.fullmatch(name):
        kind = name
    elif _TESTS.search(path):
        kind = "tests"
    else:
        kind = "docs" if _DOCS.search(path) else "code"
    return StepSeen(f"edit {kind}", ("edit", kind), False, outcome=outcome, place=place)


def _step(command: SimpleCommand, place: int) -> StepSeen | None:
    words = _unwrapped(command.words)
    if not words or command.piped:
        return None
    shown = tuple(word.text for word in words)
    if not shown[0] or shown[-1] in _HELP:
        return None
    runner, shown = _without_runner(shown)
    program, rest = _program(shown[0]), shown[1:]
    if not program or program in _READERS or (program == "sed" and "-i" not in "".join(rest)):
        return None
    if _INTERPRETERS.fullmatch(program) and not runner:
        script = next((word for word in rest if not word.startswith("-")), "")
        is_script = (
            bool(script) and not {"-c", "-e", "-", "--eval"}.intersection(rest) and not script.startswith("/tmp")
        )
        if not is_script:
            return None
        program, rest = _program(script), rest[rest.index(script) + 1 :]
    subs = _subs(rest)
    if _LOOK_UPS.intersection(subs) and not _is_of_project(shown[0], program):
        return None
    raw = " ".join(word.raw for word in words)
    plain = tuple(word.text for word in words)
    return StepSeen(" ".join((program, *subs)), (program, *subs), _is_own(program, subs), plain, raw, place=place)


def _is_of_project(word: str, program: str) -> bool:
    """Whether a program is the project's own, so that each of its sub-commands may be a step."""
    return word.startswith("./") or "/" in program or program in ("make", "just", "mise", "task")


def _unwrapped(words: Sequence[ShellWord]) -> Sequence[ShellWord]:
    """Return a command without assignments and wrappers before its program."""
    while words:
        head = words[0]
        if _ASSIGNMENT.match(head.raw):
            words = words[1:]
        elif head.text in _WRAPPERS:
            words = words[1:]
            while words and (words[0].raw.startswith("-") or re.fullmatch(r"\d+[smh]?", words[0].raw)):
                words = words[1:]
        else:
            return words
    return words


def _without_runner(shown: tuple[str, ...]) -> tuple[str, tuple[str, ...]]:
    """Return the runner that a command begins with, "" for none, and the command behind it."""
    size = 1 if shown[0] in _RUNNERS else 2 if " ".join(shown[:2]) in _RUNNERS_OF_TWO else 0
    behind = shown[size:]
    while size and behind and (behind[0].startswith("-") or not behind[0]):
        behind = behind[1:]
    return (" ".join(shown[:size]), behind) if size and behind else ("", shown)


def _program(word: str) -> str:
    """Return a program's name; a path of the project from its root, another one by its last part."""
    if "/" not in word:
        return word
    word = word.removeprefix("./")
    if word.startswith(("/", "~", "..")) or "node_modules/" in word or "/bin/" in word:
        return word.rpartition("/")[2]
    return word


def _subs(rest: Sequence[str]) -> tuple[str, ...]:
    """Return the words behind a program that may be sub-commands, at most two; options before them are skipped."""
    found: list[str] = []
    words = iter(rest)
    for word in words:
        if word in _VALUED:
            next(words, None)
            continue
        if word.startswith("-") and not found:
            continue
        if not _SUB.fullmatch(word) or len(word) > 30 or _FILE.fullmatch(word):
            break
        found.append(word)
        if len(found) == 2:
            break
    return tuple(found)


def _is_own(program: str, subs: Sequence[str]) -> bool:
    if program == "git":
        return subs[:1] == ("tag",)
    return program not in _FILE_WORK and not (program in _PACKAGES and (not subs or subs[0] in _INSTALLS))


class SubCommands:
    """Tells which words behind a pool's programs are sub-commands, and which are arguments: several sub-commands of a
    program stand in one piece of work, arguments take each other's place."""

    LEAST = 3
    """Times that a sub-command comes at its place."""

    TOGETHER = 0.25
    """Share of the pieces of work with a program that have several words at that place, from which these are
    sub-commands."""

    def __init__(self, pieces: Iterable[Sequence[StepSeen]]) -> None:
        self._words: dict[tuple[str, ...], Counter[str]] = defaultdict(Counter)
        self._pieces, self._several = Counter[tuple[str, ...]](), Counter[tuple[str, ...]]()
        for steps in pieces:
            here: dict[tuple[str, ...], set[str]] = defaultdict(set)
            for step in steps:
                for length in range(1, len(step.words)):
                    self._words[step.words[:length]][step.words[length]] += 1
                    here[step.words[:length]].add(step.words[length])
            self._pieces.update(here.keys())
            self._several.update(before for before, words in here.items() if len(words) > 1)

    def named(self, step: StepSeen) -> StepSeen:
        """Return a step by the words that are sub-commands."""
        length = 1
        while length < len(step.words) and self._is_sub(step.words[:length], step.words[length]):
            length += 1
        return step._replace(name=" ".join(step.words[:length]), words=step.words[:length])

    def _is_sub(self, before: tuple[str, ...], word: str) -> bool:
        if (len(before) == 1 and before[0] in _KNOWN_TOOLS) or before[1:] == ("run",) or before[0] == "edit":
            return True
        is_together = self._several[before] >= self.TOGETHER * self._pieces[before]
        return is_together and self._words[before][word] >= self.LEAST
