"""Fill the templates of the injection head: orders to an agent in many forms and languages, and benign texts like them.

Standard library only; `train_injection.py` calls `spun`. All templates and words were written for this purpose.
"""

import random
import re
from collections.abc import Mapping
from pathlib import Path

from labelled import PLACES

DATA = Path(__file__).parent / "data"
SEED = 23
_SLOT = re.compile(r"\{(\w+)\}")
_HEADER = re.compile(r"\[(\w+)\]")


def vocabulary() -> dict[str, list[str]]:
    """Slot name -> its entries, which may hold slots."""
    words: dict[str, list[str]] = {}
    name = ""
    for line in (DATA / "injection_vocabulary.txt").read_text(encoding="utf-8").splitlines():
        if header := _HEADER.fullmatch(line):
            name = header[1]
        elif line and not line.startswith("# "):
            words.setdefault(name, []).extend(entry.strip() for entry in line.split("; "))
    return words


def filled(template: str, words: Mapping[str, list[str]], chance: random.Random) -> str:
    """`template` with an entry in each slot, a slot within an entry filled too, and `\\n` as a line break."""
    text = template
    while slot := _SLOT.search(text):
        text = text[: slot.start()] + chance.choice(words[slot[1]]) + text[slot.end() :]
    text = text.replace("{{", "{").replace("}}", "}").replace("\\n", "\n")
    return re.sub(r"\s+([.,])", r"\1", re.sub(r"([.!?])\.(?=\s|$)", r"\1", text))


def spun(seed: int = SEED) -> list[tuple[str, int, int]]:
    """(text, place, 1 for an attack) of every template, each text once."""
    words = vocabulary()
    chance = random.Random(seed)
    texts: dict[tuple[str, int, int], None] = {}
    for line in (DATA / "injection_templates.txt").read_text(encoding="utf-8").splitlines():
        if not line or line.startswith("# "):
            continue
        label, places, times, template = (part.strip() for part in line.split(" | ", 3))
        kinds = places.split()
        for turn in range(int(times)):
            text = filled(template, words, chance)
            if chance.random() < 0.15:
                text = text[0].lower() + text[1:]
            elif text[0].islower() and chance.random() < 0.5:
                text = text[0].upper() + text[1:]
            texts[(text, PLACES.index(kinds[turn % len(kinds)]), int(label == "attack"))] = None
    return list(texts)
