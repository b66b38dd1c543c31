"""Which lines are worth a place in every context: those that a reader who was not there understands and can use (P-5).

Comes in: a record. Goes out: whether it may stand in a profile without being asked for. Invariants: pure; what the user
pinned or asked to remember always may; nothing here decides what is believed or recalled. Rules of English words hold
for English lines alone.
"""

from __future__ import annotations

import re

from ....protocol.record import Record
from ....stages.batch import PERSONAL
from ...projections.profile import is_explicit

WORDS = 4
"""A line of fewer words says nothing to somebody who was not there."""

_LEANING = re.compile(
    r"(?:this|that|these|those|it|its|they|them|he|she|both|same|such|here|there|also|then|and|but|or|so|now|currently|"
    r"(?:the )?(?:above|following|latter|former|first|second|next|other)|"
    r"(?:the|each|every) (?:pattern|issue|problem|fix|bug|error|change|idea|reason|cause|point|plan|step|option|result|"
    r"approach|solution|refactor|strategy|innermost|old|new))\b",
    re.IGNORECASE,
)
"""Beginnings that lean on a sentence before them."""

_POINTING = re.compile(
    r"\b(?:that|this|these|those) (?:branch|file|function|module|case|tests?|lines?|call|method|class|component|hook|"
    r"code|error|issue|one|commit|session)\b",
    re.IGNORECASE,
)

_SPOKEN = re.compile(
    r"you (?:will|can|need|should|may|might|could|have|want)\b"
    r"|.*\b(?:i (?:can.?t|cannot|will|need|should|must)|let me|i.ll|i.m going to|needs? to be \w+ed)\b",
    re.IGNORECASE,
)
"""What an agent says to the user of one moment."""

_LOGGED = re.compile(
    r"(?:added|removed|renamed|moved|replaced|consolidated|merged|updated|fixed|created|implemented|refactored|extracted|"
    r"deleted|changed|converted|split|introduced|cleaned|improved|simplified|switched|rewrote|dropped)\b",
    re.IGNORECASE,
)
_REASON = re.compile(
    r"\b(?:because|since|so that|instead of|rather than|over|to avoid|due to|in order to|otherwise|unless|must|never|"
    r"always|prefer)\b",
    re.IGNORECASE,
)
_GENERAL = re.compile(
    r"\b(?:because|since|so that|must|never|always|requires?|needs?|cannot|can.?t|does(?:n.t| not)|do(?:n.t| not)|"
    r"unless|only|instead|rather|before|after|when|whenever|otherwise|avoid|lesson|"
    r"no \w+ (?:\w+ ){0,2}(?:exists?|is available|are available|supports?))\b",
    re.IGNORECASE,
)
"""What tells a lesson from a finding of one moment."""

_FILE = re.compile(
    r"(?<![\w.])[a-z0-9_][\w./-]*\.(?:tsx?|jsx?|mjs|py|go|rs|exs?|rb|java|kt|swift|c|h|cc|cpp|hpp|cs|php|lua|sh|sql|css|html)\b"
    r"|\w\(\)"
)
_CODE = re.compile(r"`[^`]*`")
_DEBRIS = re.compile(r'"\s*[}\]]|":\s*["{\[]|\\n|```|\|\s*-{2,}')


def is_worth_a_line(record: Record) -> bool:
    """Whether a record may stand in a profile unasked."""
    if record.held or is_explicit(record):
        return True
    line = record.description.strip()
    if line.endswith(("…", ":")) or _DEBRIS.search(line):
        return False
    if record.pool == PERSONAL and record.kind == "note" and _is_of_a_project(record, line):
        return False
    if record.language != "en":
        return True
    told = record.provenance.trust == "assistant" and record.type != "commitment" and _SPOKEN.match(line)
    logged = record.provenance.trust != "user" and _LOGGED.match(line) and not _REASON.search(_CODE.sub(" ", line))
    leans = _LEANING.match(line) or _POINTING.search(line)
    bare = _CODE.sub(" ", line)
    found = record.provenance.trust != "user" and record.type == "lesson" and not _GENERAL.search(bare)
    return len(line.split()) >= WORDS and not (leans or told or logged or found)


def _is_of_a_project(record: Record, line: str) -> bool:
    """Whether a line that was put with the user speaks of one project's code, or is a lesson of one moment."""
    return record.type == "lesson" or _FILE.search(line) is not None
