"""The integration of bash, zsh and fish that `memd shell init` prints.

Invariants: a prompt forks no process, except for a command or folder that has a clue to a secret; such a command
reaches a file only through `memd spool`, which redacts it.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Sequence
from itertools import groupby
from pathlib import Path

from ...protocol.places import DISABLED_FILE, Places
from ...protocol.redact import CLUES, COLONS

FOLDER = Path(__file__).parent
_FIRST = re.compile(r"^(\\.|\[!\[:ascii:\]\]\*|.)")
_FOLDED_TO_ASCII = "\u017f\u212a\u0131\u0130"
"""Characters outside ASCII that rules which ignore case take for a letter of ASCII."""


def script(shell: str, places: Places, command: Sequence[str]) -> str:
    """Return the code for `bash`, `zsh` or `fish`. `command`: the command line of memd."""
    clues = (*CLUES, "private")
    values = {
        "@SPOOL@": quoted(shell, str(places.spool)),
        "@OFF@": quoted(shell, str(places.config / DISABLED_FILE)),
        "@MEMD@": " ".join(quoted(shell, word) for word in command),
        "@CLUES@": quoted(shell, _expression(clues)) if shell == "fish" else _patterns(shell, clues),
    }
    text = (FOLDER / f"memd.{shell}").read_text(encoding="utf-8")
    return re.sub("|".join(values), lambda match: values[match[0]], text)


def quoted(shell: str, text: str) -> str:
    """Return a text as one word of a shell. In fish a backslash between quotes is not itself."""
    if shell != "fish":
        return shlex.quote(text)
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _patterns(shell: str, clues: Iterable[str]) -> str:
    """Return the patterns of a `case`, one of which matches each text in lower case that has a clue. bash takes 0.2 µs
    for each; zsh takes half the time if those with the same first character are one."""
    pieces = [_FIRST.split(_pattern(clue), maxsplit=1)[1:] for clue in _needed(clues)]
    if shell == "zsh":
        groups = groupby(pieces, key=lambda piece: piece[0])
        pieces = [(first, f"({'|'.join(rest for _, rest in group)})") for first, group in groups]
    patterns = [f"*{first}{rest}*" for first, rest in pieces]
    return "|".join((*patterns, f"*{':*' * COLONS}", f"*[{_FOLDED_TO_ASCII}]*"))


def _expression(clues: Iterable[str]) -> str:
    """Return a regular expression of PCRE2 for each text that has a clue. fish compiles it anew at each command, which
    takes 0.1 µs a character; with the same first character once it takes a quarter less."""
    pieces = [_FIRST.split(_pattern(clue), maxsplit=1)[1:] for clue in _needed(clues)]
    groups = groupby(pieces, key=lambda piece: piece[0])
    alternatives = [f"{first}(?:{'|'.join(rest for _, rest in group)})" for first, group in groups]
    expression = "|".join((*alternatives, ".*".join(":" * COLONS), f"(?-i:[{_FOLDED_TO_ASCII}])"))
    return "(?si)" + expression.replace("[![:ascii:]]*", r"[^\x00-\x7f]+")


def _needed(clues: Iterable[str]) -> list[str]:
    """Return the spellings of the clues that contain no other one, in order."""
    spelled = {spelling for clue in clues for spelling in _spellings(clue)}
    return sorted(clue for clue in spelled if not any(other != clue and other in clue for other in spelled))


def _spellings(clue: str) -> tuple[str, ...]:
    """A word without any letter of ASCII as people write it, for a locale that cannot fold it."""
    if clue.isascii() or re.search("[a-z]", clue):
        return (clue,)
    return clue, clue.upper(), clue.capitalize()


def _pattern(clue: str) -> str:
    """Return a clue as a pattern; any characters stand for a run outside ASCII, which not every locale can fold."""
    escaped = re.sub(r"([^a-z0-9\u0080-\U0010ffff])", r"\\\1", clue)
    return re.sub(r"[^\x00-\x7f]+", "[![:ascii:]]*", escaped) if re.search("[a-z]", clue) else escaped
