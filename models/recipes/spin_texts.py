"""Spin the texts that the query table is fitted on from hand-written templates and words.

Standard library only: `python spin_texts.py` writes data/queries.txt and data/statements.txt.

Input: data/vocabulary.txt (lists by slot), data/query_templates.txt, data/statement_templates.txt. Output: every
template filled 17 (queries) or 30 (statements) times. The same bytes on every run; no line twice; a word
is used once in a sentence; all words and templates were written for this purpose, none comes from a benchmark.
"""

import random
import re
from pathlib import Path

DATA = Path(__file__).parent / "data"
SLOT = re.compile(r"\{(\w+)(\.past)?\}")
SEED = 11


def vocabulary() -> dict[str, list[str]]:
    """Slot name → its entries."""
    entries: dict[str, list[str]] = {}
    name = ""
    for line in (DATA / "vocabulary.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("["):
            name = line.strip("[]")
        elif line and not line.startswith("#"):
            entries.setdefault(name, []).extend(entry.strip() for entry in line.split(";"))
    return entries


def fill(template: str, words: dict[str, list[str]], chance: random.Random) -> str:
    """`template` with a word in every slot; of "base|past" the form that the slot asks for."""
    used: set[str] = set()

    def word(slot: re.Match[str]) -> str:
        entry = chance.choice([entry for entry in words[slot[1]] if entry not in used])
        used.add(entry)
        return entry.split("|")[-1 if slot[2] else 0]

    sentence = SLOT.sub(word, template)
    return sentence[0].upper() + sentence[1:] if template[0].isupper() or template[-1] == "." else sentence


def loosen(sentence: str, chance: random.Random) -> str:
    """One query in six as people type it in a hurry: small letters, no question mark."""
    return sentence.lower().rstrip("?") if chance.random() < 1 / 6 else sentence


def spin(kind: str, times: int, words: dict[str, list[str]]) -> list[str]:
    """The lines of one kind, in a shuffled order."""
    chance = random.Random(f"{SEED} {kind}")
    lines: dict[str, None] = {}
    for template in (DATA / f"{kind}_templates.txt").read_text(encoding="utf-8").splitlines():
        for _ in range(times):
            sentence = fill(template, words, chance)
            lines[loosen(sentence, chance) if kind == "query" else sentence] = None
    shuffled = list(lines)
    chance.shuffle(shuffled)
    return shuffled


def main() -> None:
    words = vocabulary()
    for kind, name, times in (("query", "queries", 17), ("statement", "statements", 30)):
        lines = spin(kind, times, words)
        (DATA / f"{name}.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
        print(f"{len(lines)} {name}")


if __name__ == "__main__":
    main()
