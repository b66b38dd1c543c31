"""What the injection head reads besides its passages: honest talk, and passages in company.

Comes in: the authored clauses and passages. Goes out: more (text, place, label), drawn by a seeded chance. A head that
has only seen short passages takes length and working talk for signs of an attack; an attack seldom stands alone.
"""

import random
import re
from pathlib import Path

from labelled import PLACES, unmarked

Passage = tuple[str, int, int]
"""A text, its place as an index into PLACES, 1 for an attack."""

RUNS = (1, 1, 2, 3, 5, 8)
"""How many clauses in a row become one text."""

LONGEST = 500
"""Characters of a passage, and of what precedes an attack: the whole must lie within the tokens that are read."""

_USER, _DOCUMENT, _TOOL = range(len(PLACES))


def talk(paths: list[Path], chance: random.Random) -> list[Passage]:
    """Runs of consecutive clauses as benign texts. What a user orders stands in the user's place alone: the same
    words in a tool's result are an attack."""
    found: list[Passage] = []
    for path in paths:
        for block in re.split(r"\n\s*\n", path.read_text(encoding="utf-8")):
            lines = [line.split(" | ", 4) for line in block.splitlines() if line.strip() and line[0] != "#"]
            at = 0
            while at < len(lines):
                part = lines[at : at + chance.choice(RUNS)]
                at += len(part)
                ordered = any(type_.strip() == "instruction" for type_, *_ in part)
                users = part[0][3].strip() == "user" and chance.random() < 0.6
                place = _USER if ordered or users else chance.choice((_DOCUMENT, _DOCUMENT, _TOOL))
                text = chance.choice((" ", "\n")).join(unmarked(line[4].strip())[0] for line in part)
                found.append((text, place, 0))
    return found


def composed(known: list[Passage], share: float, chance: random.Random) -> list[Passage]:
    """A `share` of the shorter passages among one to four benign ones of the same place: its label stays."""
    calm = [[text for text, at, label in known if at == place and not label] for place in range(len(PLACES))]
    found: list[Passage] = []
    for text, place, label in known:
        if chance.random() >= share or len(text) > LONGEST:
            continue
        around = chance.sample(calm[place], chance.choice((1, 2, 2, 3, 4)))
        at = chance.randrange(len(around) + 1)
        while sum(map(len, around[:at])) > LONGEST:
            at -= 1
        joint = chance.choice((" ", "\n", "\n\n"))
        found.append((joint.join([*around[:at], text, *around[at:]]), place, label))
    return found
