"""Enrich: subject, description, keywords, language, importance, confidence and world time (R2, R3, P-21). Beside the
subject's, the description holds only words of the clause and its turn."""

from __future__ import annotations

import re

import msgspec

from ..protocol.event import text
from ..protocol.record import OPEN_QUESTION
from .batch import Batch, Candidate, step
from .cues import lasting
from .dates import valid_from
from .extract import READ_CHARACTERS
from .multilingual_dates import LANGUAGES, is_habit
from .reports import is_reported
from .sections import is_of_others
from .subjects import description, subject
from .thing_names import names_of
from .words import keywords, language

STAGE = "enrich"

IMPORTANCE = {
    "identity": 0.8,
    "purpose": 0.8,
    "decision": 0.75,
    "convention": 0.75,
    "preference": 0.7,
    "lesson": 0.7,
} | {
    "procedure": 0.65,
    "commitment": 0.6,
    OPEN_QUESTION: 0.6,
    "fact": 0.5,
    "event": 0.45,
    "note": 0.4,
}
SLIGHTEST = 0.2  # Importance of what the distiller gives no salience at all; at the most it gives, 3, it is 1
OTHERS = 0.25  # Confidence that a document loses whose author is known not to be the user
CONFIDENCE = {"user": 0.85, "assistant": 0.55, "document": 0.65, "tool": 0.4}

_STRONG = re.compile(
    r"\b(?:always|never|must|important|critical|root cause|everyone|production|security|breaking|deadline|allerg\w+)\b",
    re.I,
)
_HEDGED = re.compile(
    r"\b(?:maybe|perhaps|probably|possibly|i (?:think|guess|believe)|might|seems?|apparently|likely|not sure)\b",
    re.I,
)

_SINCE = re.compile(
    r"\b(?:since|as of|effective|starting|ago|yesterday|today|switched|moved|changed|started|stopped|became|renamed|"
    r"went|joined|bought|got|quit|left|was|were|have been|has been|born|"
    r"last (?:week|month|year|spring|summer|autumn|fall|winter))\b",
    re.I,
)


def enrich(batch: Batch) -> Batch:
    """Fill every candidate's reader-facing fields."""
    return msgspec.structs.replace(batch, candidates=tuple(map(_enriched, batch.candidates)))


def _enriched(candidate: Candidate) -> Candidate:
    words, event = candidate.quote[:READ_CHARACTERS], candidate.item.captured.event
    tongue = candidate.asked_in or (candidate.language if candidate.language != "en" else language(words))
    about = subject(words, candidate.trust, bool(candidate.item.project))
    before = text(event)[max(0, candidate.span.start - 300) : candidate.span.start]
    teller, before = (candidate.trust, before) if tongue == "en" else ("", "")
    above = candidate.context if tongue == "en" or candidate.trust == "document" else ""
    teller = "" if is_reported(words) else teller  # "I" is not the user where somebody else says it
    since = valid_from(words, event.at, tongue) if _tells_when(candidate, tongue) else ""
    return step(
        candidate,
        STAGE,
        f"about {about}, true from {since or event.at}{' (said so)' if since else ''}",
        description=candidate.description or description(words, teller, before, above),
        subject=about,
        keywords=keywords(words, candidate.marked),
        aliases=names_of(words) if tongue == "en" and candidate.type != OPEN_QUESTION else (),
        language=tongue,
        importance=_importance(candidate),
        confidence=_confidence(candidate),
        valid_from=since or event.at,
    )


def _tells_when(candidate: Candidate, tongue: str) -> bool:
    """Whether a date in the clause says since when it holds: in a habit or a rule it mostly does not."""
    if candidate.type in {"event", "commitment", "decision"}:
        return True
    if tongue in LANGUAGES:
        return not is_habit(candidate.quote, tongue)
    return _SINCE.search(candidate.quote) is not None


def _importance(candidate: Candidate) -> float:
    value = IMPORTANCE.get(candidate.type, 0.4)
    if candidate.salience is not None:
        value = (value + SLIGHTEST + (1 - SLIGHTEST) * candidate.salience / 3) / 2
    if _STRONG.search(candidate.quote):
        value += 0.1
    if candidate.trust == "user" and (candidate.explicit or candidate.asked_in or lasting(candidate.quote)):
        value = max(value, 0.75) + 0.05
    if candidate.trust != "user":
        value -= 0.1
    return round(min(1.0, max(0.0, value)), 2)


def _confidence(candidate: Candidate) -> float:
    value = CONFIDENCE[candidate.trust] + (0.1 if candidate.explicit else 0.0)
    if is_of_others(candidate.item.captured.event):
        value -= OTHERS
    if _HEDGED.search(candidate.quote):
        value -= 0.2
    return round(min(1.0, max(0.05, value)), 2)
