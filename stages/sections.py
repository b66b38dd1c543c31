"""What the headings above a clause say about it: a plan or an account of faults is no result, a summary is (P-5).

A heading that names findings outweighs one that names plans.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from ..protocol.event import AnyEvent, Wrote
from ..protocol.record import QUOTE_LIMIT
from .clauses import Clause
from .rules import any_of, table
from .subjects import untitled

_LEADS = table("noise")["leads"]
_PLAN = any_of(_LEADS["plan"])
_INTENT = any_of(_LEADS["intent"])
_TROUBLE = any_of(_LEADS["trouble"])
_FINDING = any_of(_LEADS["finding"])
_SUMMARY = any_of(_LEADS["summary"])
_RESULT = any_of(_LEADS["result"])
_ASKED = any_of(_LEADS["asked"])
_STEPS = any_of(_LEADS["steps"])
_OWN_TERM = any_of(_LEADS["own_term"])
_TERMS = any_of(_LEADS["terms"])
_REPAIRS = any_of(_LEADS["repairs"])
_FAULTS = any_of(_LEADS["faults"])
_WISHES, _HEARSAY = any_of(_LEADS["wishes"]), any_of(_LEADS["hearsay"])
_RULING = any_of(_LEADS["ruling"])
_PARTS = any_of(_LEADS["parts"])
_WALK = any_of(_LEADS["walk"])
_REASON = any_of(_LEADS["reason"])

_TYPES = tuple((name, any_of(patterns)) for name, patterns in table("noise")["headed"].items())
_ORDERS = any_of(table("noise")["instructions"]["files"])
_GENERAL = any_of(_LEADS["general"])
_NUMBERED = re.compile(
    r"^(?:\w+[-.])*\d+[.):]?\s*(?:[-–—:]\s*)?|^(?:epic|task|phase|step|story|feature)\b[\s\d]*[:–—-]\s*", re.IGNORECASE
)

_NAMED = re.compile(r"`[^`]+`|\w[._/]\w|[a-z][A-Z]")
_PLAIN_TERM = re.compile(r"\W*[A-Z]?[a-z]+\W*?:(?!\W{0,3}`)")
_FILE = re.compile(r"[`*]*(?:[\w@.-]+/)*[\w@.-]+\.[a-z]{1,5}[`*]*(?:\s*\([^()]*\))?$")

_FAULT = any_of(_LEADS["fault"])
_DONE = any_of(_LEADS["done"])

LONGEST_CONTEXT = 80
"""Characters of a heading that says what its clauses are about."""

OPENING = 300
"""Characters of a turn in which it says that it sums up."""


def instructs(event: AnyEvent) -> bool:
    """Whether the event is a part of a file that a project's people wrote for agents: each line of it was chosen."""
    return isinstance(event, Wrote) and _ORDERS.search(event.path.partition("#")[0]) is not None


def under(event: AnyEvent, clause: Clause) -> Clause:
    """The clause below the headings of its document as well, where its part of the document lacks them."""
    _, _, titles = event.path.partition("#") if isinstance(event, Wrote) else ("", "", "")
    above = tuple(title.strip() for title in titles.split(" > ") if title.strip())
    return replace(clause, path=(*above, *clause.path), heading=clause.heading or above[-1]) if above else clause


def section(clause: Clause) -> str:
    """Why what stands under these headings is no result, or ""."""
    nearest = clause.heading
    if _FAULT.match(clause.text):
        return "trouble"
    if _PARTS.search(clause.text) and not context(clause):
        return "parts"
    if _FINDING.search(nearest):
        return ""
    if clause.listed and _PLAN.search(nearest):
        return "plan"
    if any(_INTENT.search(one) for one in clause.path):
        return "plan"
    if any(_WALK.search(one) for one in clause.path) and not _REASON.search(clause.text):
        return "walk"
    return "trouble" if troubled(clause) and not any(map(_FINDING.search, clause.path)) else ""


def troubled(clause: Clause) -> bool:
    """Whether a heading above it announces what is wrong: what is told there may be a lesson, and nothing else."""
    return any(_TROUBLE.search(one) and not _FINDING.search(one) for one in clause.path)


def asked(clause: Clause) -> bool:
    """Whether the clause is an item of what a user asks for."""
    return clause.listed and _ASKED.search(clause.heading) is not None


def sums_up(words: str) -> bool:
    """Whether a turn says at its front that it sums up."""
    return _SUMMARY.search(words[:OPENING]) is not None


def results(clause: Clause) -> bool:
    """Whether a heading above the clause announces results."""
    return any(_RESULT.search(one) for one in clause.path)


def defines(clause: Clause) -> bool:
    """Whether the clause is an item of a list of terms: what the parts of a project are called, and what they are."""
    return clause.listed and _TERMS.search(clause.heading) is not None


def announced(clause: Clause) -> bool:
    """Whether the heading says what the clause is, so that its own words need not: a term, or what the user wants."""
    return defines(clause) or (clause.listed and _WISHES.search(clause.heading) is not None)


def hearsay(clause: Clause) -> bool:
    """Whether the clause is an item of what somebody else says that the user wants (P-19)."""
    return clause.listed and _HEARSAY.search(clause.heading) is not None


def repairs(clause: Clause) -> bool:
    """Whether the clause is an item of a list of errors and what was done about them."""
    return clause.listed and _REPAIRS.search(clause.heading) is not None


def faults(clause: Clause) -> bool:
    """Whether the clause is an item of a list of nothing but errors and their fixes."""
    return clause.listed and _FAULTS.search(clause.heading) is not None


def obscure(clause: Clause) -> bool:
    """Whether an item of a list of terms explains none of the project: a plain word that means something only in its
    list, what was done, or what any dictionary has."""
    words = clause.text
    plain = _PLAIN_TERM.match(words) or _STEPS.search(words) or not _OWN_TERM.search(words)
    return defines(clause) and bool(plain)


def edited(clause: Clause) -> bool:
    """Whether the clause is an item of what was done to a file: the file shows it, but not why."""
    return clause.listed and _FILE.match(clause.heading.strip()) is not None and not _REASON.search(clause.text)


def whole(clauses: Sequence[Clause], words: str) -> tuple[Clause, ...]:
    """The clauses of a turn, with what belongs together in one item as one: a term with all that is said of it, a
    finding with what was done about it."""
    joined: list[Clause] = []
    for clause in clauses:
        before = joined[-1] if joined else None
        if before is not None and _same_item(before, clause, words) and (defines(clause) or _DONE.match(clause.text)):
            joined[-1] = replace(before, end=clause.end, text=words[before.start : clause.end])
        else:
            joined.append(clause)
    return tuple(joined)


def _same_item(one: Clause, other: Clause, words: str) -> bool:
    inside = other.listed and "\n" not in words[one.end : other.start]
    return inside and other.end - one.start <= QUOTE_LIMIT


def headed(clause: Clause) -> str:
    """The type that the nearest heading announces, or ""."""
    return next((name for name, pattern in _TYPES if pattern.search(clause.heading)), "")


def context(clause: Clause, written: bool = False) -> str:
    """What names what the clause is about, or "": it tells what "any text" or "the endpoint" is of.

    It is the item that holds it, else the outermost heading, one that holds a name before any other; in a document the
    innermost: its title names all of it.
    """
    if announced(clause) and not defines(clause) and not _RULING.search(clause.text):
        return clause.heading.strip("*: ")
    titles = [untitled(one).split(" (")[0] for one in (clause.path[::-1] if written else (clause.holder, *clause.path))]
    telling: list[str] = []
    for title in titles:
        bare = _NUMBERED.sub("", title.replace("**", "").replace("`", "").strip()).strip()
        if not bare or bare.endswith(":") or len(bare) > LONGEST_CONTEXT:
            continue
        if _NAMED.search(title) and not written:
            return bare
        if _NAMED.search(title) or not _GENERAL.search(bare):
            telling.append(bare)
    return telling[0] if telling else ""
