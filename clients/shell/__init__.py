"""The integration of bash and zsh that `memd shell init` prints, with the short list of secrets in the shell's regexes.

Invariants: a prompt forks no process; printing translates the rules from `protocol/redact.py`, so they never differ.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from pathlib import Path

from ...protocol.places import DISABLED_FILE, Places
from ...protocol.redact import TRANSLATED

FOLDER = Path(__file__).parent
_WORD = "(^|[^[:alnum:]_])"
_SHAPES = {"url-password": "*://*:*@*", "assigned-secret": "*[:=]*[\\\"\\']*"}
"""Patterns of rules with common clues, which save compiling their regexes: that takes most of a prompt's time."""


def script(shell: str, places: Places, command: Sequence[str]) -> str:
    """Return the code for `bash` or `zsh`. `command`: the command line of memd."""
    values = {
        "@SPOOL@": shlex.quote(str(places.spool)),
        "@OFF@": shlex.quote(str(places.config / DISABLED_FILE)),
        "@MEMD@": shlex.join(command),
        "@RULES@": "\n".join(_rule(*rule) for rule in TRANSLATED),
        "@CLUES@": "|".join(_globs([clue for _, clues, _ in TRANSLATED for clue in clues])),
    }
    text = (FOLDER / f"memd.{shell}").read_text(encoding="utf-8")
    return re.sub("|".join(values), lambda match: values[match[0]], text)


def _globs(clues: Sequence[str]) -> list[str]:
    """Return patterns for both shells, one of which matches a text with a clue. Clues that differ in one
    character share a pattern, because matching each takes a tenth of a prompt's time."""
    left: list[str] = sorted(set(clues))
    patterns: list[str] = []
    while left:
        groups = [(_alike(left, at), at) for at in range(len(left[0]))]
        group, at = max(groups, key=lambda group: len(group[0]))
        characters = "".join(clue[at] for clue in group)
        middle = f"[{characters}]" if len(characters) > 1 else _escaped(characters)
        patterns.append(f"*{_escaped(group[0][:at])}{middle}{_escaped(group[0][at + 1 :])}*")
        left = [clue for clue in left if clue not in group]
    return patterns


def _alike(clues: Sequence[str], at: int) -> list[str]:
    before, after, size = clues[0][:at], clues[0][at + 1 :], len(clues[0])
    return [clue for clue in clues if len(clue) == size and clue[:at] == before and clue[at + 1 :] == after]


def _escaped(part: str) -> str:
    return re.sub(r"([^a-z0-9])", r"\\\1", part)


def _rule(name: str, clues: Sequence[str], pattern: str) -> str:
    """Return the call of the shell's function for one rule: name, group of the secret, regex."""
    regex, secret = extended(pattern)
    shapes = _SHAPES.get(name) or "|".join(_globs(clues))
    return f"        case $folded in {shapes}) __memd_rule {name} {secret} {shlex.quote(regex)} ;; esac"


def extended(pattern: str) -> tuple[str, int]:
    """Return a rule as a POSIX extended regex, and the group of the secret (0: all but the first group).

    Group 1 is the required text before a match. A lazy tail becomes greedy, and an upper bound, which is slow to
    compile, is dropped: the regex removes more, never less.
    """
    pattern = re.sub(r"\.\*\?\(\?:.*\\Z\)$", ".*", pattern)
    pattern = re.sub(r"\[(?:\\.|[^\]\\])+\]", lambda match: _bracket(match[0]), pattern)
    pattern = re.sub(r"\(\?i:(.*?)\)(?=\(\?P|\[)", lambda match: f"({any_case(match[1])})", pattern, flags=re.DOTALL)
    starts_a_word = "\\b" in pattern
    pattern = pattern.replace("\\b", "").replace("[^\\s", "[^[:space:]").replace("\"'\\s]", "\"'[:space:]]")
    pattern = pattern.replace("\\s", "[[:space:]]").replace('\\"', '"').replace("(?:", "(")
    pattern = re.sub(r"\{(\d+),\d+\}", lambda match: {"0": "*", "1": "+"}.get(match[1], f"{{{match[1]},}}"), pattern)
    before, named, _ = pattern.partition("(?P<")
    secret = len(re.findall(r"(?<!\\)\(", before)) + 2 if named else 0
    return (_WORD if starts_a_word else "()") + re.sub(r"\(\?P<\w+>", "(", pattern), secret


def _bracket(expression: str) -> str:
    """Return a bracket expression as POSIX has it: without escapes, a hyphen that means itself last."""
    for escape, plain in ((r"\s", "[:space:]"), (r"\"", '"'), (r"\[", "["), (r"\x60", "`")):
        expression = expression.replace(escape, plain)
    return expression


def any_case(pattern: str) -> str:
    """Return a regex that matches letters in both cases, for dialects without an inline flag."""
    pieces = re.split(r"(\[[^\]]*\]|\{[^}]*\}|\\.|\(\?:)", pattern)
    for number, piece in enumerate(pieces):
        if number % 2 == 0:
            pieces[number] = re.sub(r"[a-z]", lambda match: f"[{match[0].upper()}{match[0]}]", piece)
        elif piece.startswith("["):
            pieces[number] = piece.replace("a-z", "A-Za-z")
    return "".join(pieces)
