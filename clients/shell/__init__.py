"""The integration of bash and zsh: what `memd shell init` prints, with the short list of secrets in their own regexes.

Comes in: a shell's name, places, how memd is called. Goes out: shell code. Invariants: nothing is forked by a prompt;
the rules are written from `protocol/redact.py` when they are printed, so they never differ from it.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from pathlib import Path

from ...protocol.places import DISABLED_FILE, Places
from ...protocol.redact import CLUES, RULES

FOLDER = Path(__file__).parent
_WORD = "(^|[^[:alnum:]_])"
_SHAPES = {"url-password": "*://*:*@*", "assigned-secret": "*[:=]*[\\\"\\']*"}
"""What a match of these has besides its clue: their clues are common, and to compile a regex costs most of a prompt."""


def script(shell: str, places: Places, command: Sequence[str]) -> str:
    """The code for `bash` or `zsh`."""
    values = {
        "@SPOOL@": shlex.quote(str(places.spool)),
        "@OFF@": shlex.quote(str(places.config / DISABLED_FILE)),
        "@MEMD@": shlex.join(command),
        "@RULES@": "\n".join(_rule(*each) for each in RULES),
        "@CLUES@": "|".join(_globs([clue for clues in CLUES.values() for clue in clues])),
    }
    text = (FOLDER / f"memd.{shell}").read_text(encoding="utf-8")
    return re.sub("|".join(values), lambda match: values[match[0]], text)


def _globs(clues: Sequence[str]) -> list[str]:
    """Patterns of either shell, one of which matches what holds a clue. Clues that differ in one character share one:
    to try each is a tenth of a prompt."""
    left: list[str] = sorted(set(clues))
    found: list[str] = []
    while left:
        groups = [(_alike(left, at), at) for at in range(len(left[0]))]
        group, at = max(groups, key=lambda each: len(each[0]))
        one = "".join(clue[at] for clue in group)
        middle = f"[{one}]" if len(one) > 1 else _escaped(one)
        found.append(f"*{_escaped(group[0][:at])}{middle}{_escaped(group[0][at + 1 :])}*")
        left = [each for each in left if each not in group]
    return found


def _alike(clues: Sequence[str], at: int) -> list[str]:
    """Those that differ from the first at that place alone."""
    before, after, size = clues[0][:at], clues[0][at + 1 :], len(clues[0])
    return [each for each in clues if len(each) == size and each[:at] == before and each[at + 1 :] == after]


def _escaped(part: str) -> str:
    """A part of a clue as it stands in a pattern."""
    return re.sub(r"([^a-z0-9])", r"\\\1", part)


def _rule(name: str, pattern: str) -> str:
    """A call of the shell's function for one rule: name, regex, the number of the group that holds the secret."""
    regex, secret = extended(pattern)
    clues = _SHAPES.get(name) or "|".join(_globs(CLUES[name]))
    return f"        case $folded in {clues}) __memd_rule {name} {secret} {shlex.quote(regex)} ;; esac"


def extended(pattern: str) -> tuple[str, int]:
    """A rule as a POSIX extended regex, and which group holds the secret (0: the whole but for the first group).

    Group 1 is always what must stand before a match. A lazy tail becomes a greedy one, an upper bound none, which would
    make the regex slow to compile: it takes out more, never less.
    """
    pattern = re.sub(r"\.\*\?\(\?:.*\\Z\)$", ".*", pattern)
    pattern = re.sub(r"\(\?i:(.*?)\)(?=\(\?P|\[)", lambda match: f"({any_case(match[1])})", pattern, flags=re.DOTALL)
    starts_a_word = "\\b" in pattern
    pattern = pattern.replace("\\b", "").replace("[^\\s", "[^[:space:]").replace("\"'\\s]", "\"'[:space:]]")
    pattern = pattern.replace("\\s", "[[:space:]]").replace('\\"', '"').replace("(?:", "(")
    pattern = re.sub(r"\{(\d+),\d+\}", lambda match: {"0": "*", "1": "+"}.get(match[1], f"{{{match[1]},}}"), pattern)
    before, found, _ = pattern.partition("(?P<")
    secret = len(re.findall(r"(?<!\\)\(", before)) + 2 if found else 0
    return (_WORD if starts_a_word else "()") + re.sub(r"\(\?P<\w+>", "(", pattern), secret


def any_case(pattern: str) -> str:
    """The letters of a regex in either case, for dialects without an inline flag."""
    pieces = re.split(r"(\[[^\]]*\]|\{[^}]*\}|\\.|\(\?:)", pattern)
    for number, piece in enumerate(pieces):
        if number % 2 == 0:
            pieces[number] = re.sub(r"[a-z]", lambda match: f"[{match[0].upper()}{match[0]}]", piece)
        elif piece.startswith("["):
            pieces[number] = piece.replace("a-z", "A-Za-z")
    return "".join(pieces)
