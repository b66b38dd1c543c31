"""What the headings above a clause say about it: a plan or an account of faults is no result, a summary is (P-5). A
heading that names findings outweighs one that names plans."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from ..protocol.event import AnyEvent, Wrote
from ..protocol.record import QUOTE_LIMIT
from .clauses import Clause
from .cues import LEADS
from .rules import any_of, table
from .subjects import untitled

_TYPES = tuple((name, any_of(patterns)) for name, patterns in table("noise")["headed"].items())
_ORDERS = any_of(table("noise")["instructions"]["files"])
_NUMBERED = re.compile(
    r"^(?:\w+[-.])*\d+[.):]?\s*(?:[-–—:]\s*)?|^(?:epic|task|phase|step|story|feature)\b[\s\d]*[:–—-]\s*", re.IGNORECASE
)

_NAMED = re.compile(r"`[^`]+`|\w[._/]\w|[a-z][A-Z]")
_PLAIN_TERM = re.compile(r"\W*[A-Z]?[a-z]+\W*?:(?!\W{0,3}`)")
_FILE = re.compile(r"[`*]*(?:[\w@.-]+/)*[\w@.-]+\.[a-z]{1,5}[`*]*(?:\s*\([^()]*\))?$")

LONGEST_CONTEXT = 80  # Characters of a heading that says what its clauses are about
OPENING = 300  # Characters of a turn in which it says that it sums up


def instructs(event: AnyEvent) -> bool:
    """Whether the event is a part of a file that a project's people wrote for agents: each line of it was chosen."""
    return isinstance(event, Wrote) and _ORDERS.search(event.path.partition("#")[0]) is not None


def is_of_others(event: AnyEvent) -> bool:
    """Whether the event is a document with an author who is not the user, such as somebody else's commit."""
    return isinstance(event, Wrote) and bool(event.author) and not event.own


def under(event: AnyEvent, clause: Clause) -> Clause:
    """The clause below the headings of its document as well, where its part of the document lacks them."""
    _, _, titles = event.path.partition("#") if isinstance(event, Wrote) else ("", "", "")
    above = tuple(title.strip() for title in titles.split(" > ") if title.strip())
    return replace(clause, path=(*above, *clause.path), heading=clause.heading or above[-1]) if above else clause


def section(clause: Clause) -> str:
    """Why what stands under these headings is no result, or ""."""
    if LEADS["fault"].match(clause.text):
        return "trouble"
    if LEADS["parts"].search(clause.text) and not context(clause):
        return "parts"
    if LEADS["finding"].search(clause.heading):
        return ""
    if clause.listed and LEADS["plan"].search(clause.heading):
        return "plan"
    if any(LEADS["intent"].search(heading) for heading in clause.path):
        return "plan"
    if any(LEADS["walk"].search(heading) for heading in clause.path) and not LEADS["reason"].search(clause.text):
        return "walk"
    return "trouble" if troubled(clause) and not any(map(LEADS["finding"].search, clause.path)) else ""


def troubled(clause: Clause) -> bool:
    """Whether a heading above it announces what is wrong: what is told there may be a lesson, and nothing else."""
    return any(LEADS["trouble"].search(heading) and not LEADS["finding"].search(heading) for heading in clause.path)


def asked(clause: Clause) -> bool:
    """Whether the clause is an item of what a user asks for."""
    return listed_under(clause, "asked")


def sums_up(words: str) -> bool:
    """Whether a turn says at its front that it sums up."""
    return LEADS["summary"].search(words[:OPENING]) is not None


def results(clause: Clause) -> bool:
    """Whether a heading above the clause announces results."""
    return any(LEADS["result"].search(heading) for heading in clause.path)


def defines(clause: Clause) -> bool:
    """Whether the clause is an item of a list of terms: what the parts of a project are called, and what they are."""
    return listed_under(clause, "terms")


def announced(clause: Clause) -> bool:
    """Whether the heading says what the clause is, so that its own words need not: a term, or what the user wants."""
    return defines(clause) or listed_under(clause, "wishes")


def listed_under(clause: Clause, name: str) -> bool:
    """Whether the clause is an item of a list whose heading matches `LEADS[name]`."""
    return clause.listed and LEADS[name].search(clause.heading) is not None


def obscure(clause: Clause) -> bool:
    """Whether an item of a list of terms explains none of the project: a plain word that means something only in its
    list, what was done, or what any dictionary has."""
    words = clause.text
    plain = _PLAIN_TERM.match(words) or LEADS["steps"].search(words) or not LEADS["own_term"].search(words)
    return defines(clause) and bool(plain)


def edited(clause: Clause) -> bool:
    """Whether the clause is an item of what was done to a file: the file shows it, but not why."""
    return clause.listed and _FILE.match(clause.heading.strip()) is not None and not LEADS["reason"].search(clause.text)


def whole(clauses: Sequence[Clause], words: str) -> tuple[Clause, ...]:
    """The clauses of a turn, with what belongs together in one item as one: a term with all that is said of it, a
    finding with what was done about it."""
    joined: list[Clause] = []
    for clause in clauses:
        before = joined[-1] if joined else None
        belongs = defines(clause) or LEADS["done"].match(clause.text)
        if before is not None and belongs and _same_item(before, clause, words):
            joined[-1] = replace(before, end=clause.end, text=words[before.start : clause.end])
        else:
            joined.append(clause)
    return tuple(joined)


def _same_item(before: Clause, clause: Clause, words: str) -> bool:
    inside = clause.listed and "\n" not in words[before.end : clause.start]
    return inside and clause.end - before.start <= QUOTE_LIMIT


def headed(clause: Clause) -> str:
    """The type that the nearest heading announces, or ""."""
    return next((name for name, pattern in _TYPES if pattern.search(clause.heading)), "")


def context(clause: Clause, written: bool = False) -> str:
    """What names what the clause is about, or "": it tells what "any text" or "the endpoint" is of. It is the item that
    holds it, else the outermost heading, one that holds a name before any other; in a document the innermost: its title
    names all of it."""
    if announced(clause) and not defines(clause) and not LEADS["ruling"].search(clause.text):
        return clause.heading.strip("*: ")
    titles = [
        untitled(title).split(" (")[0] for title in (clause.path[::-1] if written else (clause.holder, *clause.path))
    ]
    telling: list[str] = []
    for title in titles:
        bare = _NUMBERED.sub("", title.replace("**", "").replace("`", "").strip()).strip()
        if not bare or bare.endswith(":") or len(bare) > LONGEST_CONTEXT:
            continue
        if _NAMED.search(title) and not written:
            return bare
        if _NAMED.search(title) or not LEADS["general"].search(bare):
            telling.append(bare)
    return telling[0] if telling else ""
