"""The parts of a course as captures, and its sections as records of the agent (O3).

A section is a passage of a few sentences, verbatim. Its description, which a search by meaning compares, is the
headings above it in the course and the passage; of a long one, such as a block of code, the first sentence.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from ....protocol.courses import COURSE, CourseQuestion, Teach
from ....protocol.event import Captured, Taught, text
from ....protocol.instant import from_micros
from ....protocol.operation import CoursePart
from ....protocol.record import Provenance, Record, Signal, Span
from ....protocol.secret_gate import SecretGate
from ...projections.courses import section_id
from ..outgoing_screen import flags_in
from ..statements import line

STRENGTH = 0.5
"""Strength of a section that was read and not used yet."""

LONGEST_NAME = 60

BELOW = " > "
"""What stands between a title and the one below it."""

WHOLE = 300
"""Characters of a passage that is described by all of its words."""

_FIRST = re.compile(r".+?[.!?。！？](?=\s|$)|.+", re.DOTALL)
_NO_WORD = re.compile(r"[^\w]+")


class TaughtPart(NamedTuple):
    """A part of a course with its event."""

    part: CoursePart
    event: Taught


def course_document(gate: SecretGate, agent: str, title: str) -> str:
    """Return the document of an agent's course; courses of one title are one course."""
    name = _NO_WORD.sub("-", title.casefold()).strip("-")[:LONGEST_NAME]
    return f"memd:course/{agent}/{name}-{gate.keyed_name(title.casefold())[:8]}"


def one_title(title: str) -> str:
    """Return a title that can stand among others in a path."""
    return title.replace(BELOW, ": ")


def parts_of(gate: SecretGate, request: Teach, now: int) -> tuple[list[TaughtPart], list[TaughtPart]]:
    """Return the sections and the questions of a course, each text once. A keyed hash of its words names a part, so
    that the same part has the same name in the next edition. Each part is a microsecond later than the one before, so
    that neighbours in the course are neighbours in a search. `now`: microseconds."""
    sections: dict[str, TaughtPart] = {}
    questions: dict[str, TaughtPart] = {}
    for number, chapter in enumerate(request.chapters):
        for section in chapter.sections:
            path = BELOW.join(filter(None, (one_title(request.title), one_title(chapter.title), section.heading)))
            turn = gate.keyed_name(f"{path}\n{section.text}")
            at = from_micros(now + len(sections))
            event = Taught(turn=turn, at=at, text=section.text, path=path)
            sections.setdefault(turn, TaughtPart(CoursePart(number, turn), event))
        for question in chapter.questions:
            words = _as_text(question)
            path = f"{one_title(request.title)}{BELOW}{one_title(chapter.title)}"
            turn = gate.keyed_name(f"{path}\n\n{words}")
            event = Taught(turn=turn, at=from_micros(now), text=words, path=path, form="question")
            questions.setdefault(turn, TaughtPart(CoursePart(number, turn), event))
    return list(sections.values()), list(questions.values())


def _as_text(question: CourseQuestion) -> str:
    lines = (" ".join(words.split()) for words in (question.question, *question.keywords))
    return "\n".join(filter(None, lines))


def question_of(captured: Captured) -> tuple[str, tuple[str, ...]]:
    """Return a question and the keywords of its answer."""
    question, *keywords = text(captured.event).split("\n")
    return question, tuple(keywords)


def titles_of(captured: Captured) -> tuple[str, str]:
    """Return the titles of the course and of the chapter of a part."""
    path = captured.event.path if isinstance(captured.event, Taught) else ""
    course, _, rest = path.partition(BELOW)
    return course, rest.partition(BELOW)[0]


def section_record(pool: str, captured: Captured, rev: int = 1) -> Record:
    """Return the record of a section."""
    event, words = captured.event, text(captured.event)
    path = event.path if isinstance(event, Taught) else ""
    flags = flags_in(words)
    return Record(
        id=section_id(pool, captured.document, event.turn),
        pool=pool,
        placed=True,
        kind="note",
        rev=rev,
        content=words,
        description=_description(path, words),
        status="quarantined" if "injection" in flags else "active",
        flags=flags,
        provenance=Provenance(
            author="document",
            source=captured.document,
            trust="document",
            spans=(Span(captured.document, event.turn, 0, len(words)),),
            quote=words,
            said_at=event.at,
        ),
        tags=("note", COURSE),
        valid_from=event.at,
        volatility="stable",
        signal=Signal(strength=STRENGTH),
    )


def _description(path: str, words: str) -> str:
    heading, whole = path.partition(BELOW)[2], " ".join(words.split())
    if len(whole) <= WHOLE:
        return f"{heading}: {whole}"
    first = _FIRST.search(words)
    return line(f"{heading}: {first[0] if first else words}")


def words_in(words: str, keywords: tuple[str, ...]) -> Iterator[str]:
    """Yield the keywords that stand in a text as whole words."""
    said = " ".join(words.casefold().split())
    for keyword in keywords:
        wanted = re.escape(" ".join(keyword.casefold().split()))
        before, after = (r"(?<!\w)" if _is_spaced(keyword[:1]) else ""), (r"(?!\w)" if _is_spaced(keyword[-1:]) else "")
        if re.search(f"{before}{wanted}{after}", said):
            yield keyword


def _is_spaced(character: str) -> bool:
    """Whether a character belongs to a word of a script that puts spaces between words."""
    return character.isalnum() and ord(character) < 0x2E80
