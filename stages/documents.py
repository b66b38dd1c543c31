"""Parts of a Markdown file: each is one statement, whole, and its structure says what it is. The opening of a README is
the project's purpose, commands with the words above them are a procedure, a table row is a fact.

Commands and the purpose are always kept, prose and rows by the salience that the distiller reads in the whole part. The
files that a new colleague reads first need less of it than a reference, of which a part is looked up.
"""

from __future__ import annotations

import re

import numpy as np
from numpy.typing import NDArray

from ..protocol.event import AnyEvent, Form, Wrote
from ..protocol.record import QUOTE_LIMIT
from .clauses import Clause, split
from .cues import count_words
from .embed import SentenceEmbedder
from .rules import any_of, table
from .sections import instructs
from .subjects import LIMIT, cut, unmarked

SALIENT, SALIENT_FIRST, SALIENT_ROW = 1.5, 0.6, 0.1
"""Salience from which a part is kept: of any document, of one that is read first, and a table row of such a one."""
TYPES: dict[Form, str] = {"purpose": "purpose", "commands": "procedure", "row": "fact"}
"""The type of a statement by the form of its part; prose has the type of its words."""
FEWEST_WORDS = 3
LONGEST_CONTEXT = 80
"""Characters of a heading that says what its part is about."""
LONGEST_LABEL = 100
"""Characters of the words that announce a command."""
FIRST_STEPS = (
    "How to set up a development environment",
    "Install the dependencies",
    "Build the project",
    "Start the server locally",
    "Run the application",
    "Run the tests",
    "Check format, lint and types before a commit",
)
"""What a new colleague does first."""
FAR, NEAR = 0.2, 0.7
"""Cosines of a procedure to one of these at which it has no salience, and the most."""

_READ_FIRST = any_of(table("noise")["instructions"]["first"])
_ITEM = re.compile(r"[ \t]*(?:[-*+]|\d{1,3}[.)])[ \t]+")
_HEADINGS = re.compile(r"(?:#+ [^\n]*\n)+")
_FENCE = re.compile(r"[ \t]*(?:```|~~~)")
_COMMENT = re.compile(r"[ \t]*(?:#|//|::|REM )[ \t]*(?P<words>.*)")
_PROMPT = re.compile(r"[ \t]*[$%>] ")
_BESIDE = re.compile(r"(?P<command>.*\S)[ \t]{2,}#[ \t]*(?P<words>.*)")
_IMAGE = re.compile(r"!\[[^\[\]]*\](?:\([^()]*\))?|<[^<>]*>")
_LINK = re.compile(r"\[([^\[\]]+)\](?:\([^()]*\)|\[[^\[\]]*\])")
_ORNAMENTS = re.compile(r"^[^\w`\"'(@/.~-]+|[^\w`\"')!?.…]+$")


def is_part(event: AnyEvent) -> bool:
    """Whether an event is one statement. Prose of a file for agents is read clause by clause: each is a rule."""
    return isinstance(event, Wrote) and bool(event.form or (event.path and not instructs(event)))


def statements(event: Wrote) -> list[Clause]:
    """Return the part without the headings above it; in pieces if it is longer than a quote, none if it is no prose."""
    words = event.text
    headings = tuple(title for title in event.path.partition("#")[2].split(" > ") if title)
    above = _HEADINGS.match(words)
    start = above.end() if above else 0
    item = _ITEM.match(words, start)
    start = item.end() if item else start
    clauses = split(words).clauses
    is_told = event.form in ("commands", "row") or (bool(clauses) and count_words(words[start:]) >= FEWEST_WORDS)
    if not is_told:
        return []
    heading = headings[-1] if headings else ""
    if event.form in ("commands", "row") or len(words) - start <= QUOTE_LIMIT:
        return [Clause(start, len(words), words[start:], heading=heading, path=headings)]
    pieces: list[Clause] = []
    for clause in clauses:
        before = pieces[-1] if pieces else None
        if before and clause.end - before.start <= QUOTE_LIMIT:
            pieces[-1] = Clause(before.start, clause.end, words[before.start : clause.end], False, heading, headings)
        else:
            pieces.append(Clause(clause.start, clause.end, clause.text, False, heading, headings))
    return pieces


def is_slight(event: Wrote, words: str, salience: float) -> bool:
    """Whether a part says too little to be kept."""
    if event.form == "purpose" or (event.form == "commands" and "```" in words):
        return False
    if _READ_FIRST.search(event.path.partition("#")[0]) is None:
        return salience < SALIENT
    return salience < (SALIENT_FIRST if event.form == "" else SALIENT_ROW)


def line(event: Wrote, clause: Clause) -> str:
    """Return a part in one line that a reader of it alone understands; "" where its own words are that."""
    if event.form == "purpose":
        title = f"Purpose of the project {name}" if clause.path and (name := _bare(clause.path[0])) else "Purpose"
        return cut(f"{title}: {' '.join(unmarked(clause.text).split())}").removesuffix(" …")
    return procedure(clause.text, context(clause)) if event.form == "commands" else ""


def _bare(heading: str) -> str:
    """Return a heading without pictures, links, marks and ornaments."""
    words = _LINK.sub(r"\1", _IMAGE.sub("", heading)).replace("*", "")
    return _ORNAMENTS.sub("", words).strip()


def context(clause: Clause) -> str:
    """Return the heading that says what a part is about: the nearest one below the title."""
    heading = _bare(clause.path[-1]) if len(clause.path) > 1 else ""
    return heading if len(heading) <= LONGEST_CONTEXT else ""


def procedure(words: str, heading: str) -> str:
    """Return commands in one line, each in marks of code and behind the words that announce it, or "" without any."""
    told: list[str] = []
    label: list[str] = []
    inside = False
    for line in words.replace("\\\n", " ").split("\n"):
        if _FENCE.match(line):
            inside = not inside
        elif not inside:
            label.append(line)
        elif comment := _COMMENT.match(line):
            label.append(comment["words"])
        elif line.strip():
            beside = _BESIDE.match(line)
            command = " ".join(_PROMPT.sub("", beside["command"] if beside else line, count=1).split())
            told.append(f"{_joined(label)}`{command}`" + (f" ({beside['words']})" if beside else ""))
            label = []
    if not told or inside:
        return ""
    text = _cut("; ".join(told))
    return text if not text.startswith("`") or not heading else f"{heading}: {text}"


def _joined(label: list[str]) -> str:
    """Return the words that announce a command; of long ones the last sentence."""
    words = unmarked(" ".join(" ".join(label).split())).rstrip(":. ")
    words = words.rpartition(". ")[2] if len(words) > LONGEST_LABEL else words
    return f"{words}: " if words else ""


def _cut(text: str) -> str:
    """Cut a line of commands behind the last whole one that has room, else at a word."""
    if len(text) <= LIMIT:
        return text
    end = text.rfind("; `", 0, LIMIT)
    return text[:end] if end > 0 else f"{text[:LIMIT].rsplit(' ', 1)[0]}…"


class FirstSteps:
    """The salience of procedures: the nearer one is to what a new colleague does first, the more it has."""

    def __init__(self, trunk: SentenceEmbedder) -> None:
        self._trunk = trunk
        self._vectors: NDArray[np.float32] | None = None

    def salience(self, line: str) -> float:
        """Return the salience of a procedure by the words before its first command, in [0, 3]."""
        if self._vectors is None:
            self._vectors = self._trunk.embed(FIRST_STEPS)
        label = line.partition("`")[0].strip(": ") or line
        nearest = float((self._trunk.embed([label])[0] @ self._vectors.T).max())
        return round(3 * min(1.0, max(0.0, (nearest - FAR) / (NEAR - FAR))), 2)
