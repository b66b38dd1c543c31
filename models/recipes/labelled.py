"""The authored sets in `data/` and in the project's tests, read as LABELS.md describes them."""

import re
from pathlib import Path
from typing import NamedTuple

DATA = Path(__file__).parent / "data"
TESTS = Path(__file__).parents[2] / "tests" / "data"
TYPES = (
    "identity preference decision convention lesson commitment event procedure instruction question smalltalk noise"
).split()
MODALITIES = "stated negated conditional asked hypothetical quoted retracted".split()
TAGS = ("none", "subject", "attribute", "value", "time")
PAIRS = "same refines replaces contradicts unrelated".split()
PLACES = ("user", "document", "tool")
SPEAKERS = ("user", "assistant", "other")
_MARK = re.compile(r"\{([savt]):([^{}]*)\}")
_TAG_OF = {"s": 1, "a": 2, "v": 3, "t": 4}


class LabelledClause(NamedTuple):
    """One line: labels as indices into the tuples above, spans as (tag, start, end) in characters of `text`."""

    text: str
    speaker: int
    type: int
    modality: int
    salience: int
    spans: tuple[tuple[int, int, int], ...]


def unmarked(marked: str) -> tuple[str, tuple[tuple[int, int, int], ...]]:
    """`{s:We} use {v:Go}` as `We use Go` and its spans."""
    text, at = "", 0
    spans: list[tuple[int, int, int]] = []
    for match in _MARK.finditer(marked):
        text += marked[at : match.start()]
        spans.append((_TAG_OF[match[1]], len(text), len(text) + len(match[2])))
        text += match[2]
        at = match.end()
    return text + marked[at:], tuple(spans)


def clauses(*paths: Path) -> list[LabelledClause]:
    """Every line of clause files. Raises ValueError for a label that LABELS.md does not know."""
    labelled: list[LabelledClause] = []
    for type_, modality, salience, speaker, marked in _fields(paths, 4):
        text, spans = unmarked(marked)
        who = SPEAKERS.index(speaker) if speaker in SPEAKERS else 2
        labelled.append(LabelledClause(text, who, TYPES.index(type_), MODALITIES.index(modality), int(salience), spans))
    return labelled


def pairs(*paths: Path) -> list[tuple[str, str, int]]:
    """(earlier, later, label) of every line of pair files."""
    return [(a, b, PAIRS.index(label)) for label, a, b in _fields(paths, 2)]


def passages(*paths: Path) -> list[tuple[str, int, int]]:
    """(text, place, 1 for an attack) of every line of passage files."""
    fields = _fields(paths, 2)
    return [(text.replace("\\n", "\n"), PLACES.index(place), int(label == "attack")) for label, place, text in fields]


def _fields(paths: tuple[Path, ...], cuts: int) -> list[list[str]]:
    lines = [line for path in paths for line in path.read_text(encoding="utf-8").splitlines()]
    return [[p.strip() for p in line.split(" | ", cuts)] for line in lines if line.strip() and line[0] != "#"]
