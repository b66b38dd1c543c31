"""Conversations with labelled questions: LoCoMo's, and two invented samples for fitting (dialogues, projects); and the
pools that they fill through `import_records`, each note one record as it is, with the vector that memd computes.

LoCoMo's evidence is as the audit corrected it; a question whose evidence names no known turn is left out. The train and
test sets of the samples share no person, project or topic.
"""

from __future__ import annotations

import json
import random
import re
import time
import tomllib
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Literal

import msgspec

from ....protocol import request
from ....protocol.errors import Unavailable
from ....protocol.event import Origin
from ....protocol.operation import PoolOpened, SessionOpened
from ....protocol.recall import Recall, Recalled, RecallOptions
from ....protocol.record import Provenance, Record, Span, record_id
from ....protocol.reply import ExportedRecord
from ...python.client import Client
from ..measurement import BenchOptions

ANSWERABLE = frozenset({1, 2, 3, 4})  # LoCoMo's categories; the conversation does not answer questions of category 5
SAMPLES = Path(__file__).parents[1] / "samples"
Half = Literal["train", "test"]


class SeedNote(msgspec.Struct, frozen=True, kw_only=True):
    """A text that becomes one record, an edge if it has a `key`. `session`: the document it belongs to."""

    name: str
    text: str
    at: str
    session: str
    author: str = "user"
    language: str = "en"
    key: str = ""


class LabelledQuestion(msgspec.Struct, frozen=True, kw_only=True):
    """A question, the names of the notes that answer it, and LoCoMo's category of it."""

    text: str
    evidence: frozenset[str]
    category: int


class Conversation(msgspec.Struct, frozen=True, kw_only=True):
    """A conversation of many sessions."""

    name: str
    notes: tuple[SeedNote, ...]
    questions: tuple[LabelledQuestion, ...]


# --- LoCoMo ----------------------------------------------------------------------------------------------------------
_TURN = re.compile(r"D\d+:\d+")
_BETWEEN_TURNS = timedelta(seconds=20)


def locomo(options: BenchOptions) -> list[Conversation]:
    """The conversations of `locomo_dev5.json` in the data folder. Raises DataMissing."""
    folder = options.find("locomo")
    corrected = {audit["question_id"]: audit["correct_evidence"] for audit in _json(folder / "audit_dev5.json")}
    return [_locomo(number, content, corrected) for number, content in enumerate(_json(folder / "locomo_dev5.json"))]


def _json(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def _locomo(number: int, content: dict[str, Any], corrected: dict[str, list[str]]) -> Conversation:
    notes: list[SeedNote] = []
    session, sessions = 1, content["conversation"]
    while (date := sessions.get(f"session_{session}_date_time")) is not None:
        begin = datetime.strptime(date, "%I:%M %p on %d %B, %Y").replace(tzinfo=UTC)
        turns: list[dict[str, Any]] = sessions.get(f"session_{session}") or []
        for place, turn in enumerate(turns):
            image = f" [image: {turn['blip_caption']}]" if "blip_caption" in turn else ""
            author, at = turn["speaker"], (begin + place * _BETWEEN_TURNS).isoformat()
            text, talk = f"{author}: {turn['text']}{image}", f"talk-{number}-{session}"
            notes.append(SeedNote(name=turn["dia_id"], text=text, at=at, session=talk, author=author))
        session += 1
    known = {note.name for note in notes}
    questions: list[LabelledQuestion] = []
    for place, item in enumerate(content["qa"]):
        name = f"locomo_{number}_qa{place}"
        cited: list[str] = corrected[name] if name in corrected else item["evidence"]
        evidence = frozenset(turn for text in cited for turn in _TURN.findall(str(text))) & known
        if evidence:
            questions.append(LabelledQuestion(text=item["question"], evidence=evidence, category=item["category"]))
    return Conversation(name=content["sample_id"], notes=tuple(notes), questions=tuple(questions))


# --- invented dialogues: people and agents who talk over years, each line written for its place ---------------------
DIALOGUES = SAMPLES / "dialogues.toml"
QUESTION_TYPES = "fjwi"
"""One fact; joined from several lines; when or how long; what follows from a line: categories 1 to 4."""

_BETWEEN_LINES = timedelta(seconds=40)
_LINE = re.compile(r"(\w+)(?: (\w+))?: (.+)")


class DialogueSession(msgspec.Struct, frozen=True):
    """Lines of one time: each "who: words", or "who name: words" if a question cites it."""

    at: str
    lines: str


class Dialogue(msgspec.Struct, frozen=True):
    """Sessions of the same people, by their initials; each line of `questions` is "type name name | words"."""

    set: Half
    people: dict[str, str]
    sessions: tuple[DialogueSession, ...]
    questions: str


def dialogues(half: Half) -> list[Conversation]:
    """The dialogues of one set. Raises ValueError for a malformed line or question."""
    sample = msgspec.convert(tomllib.loads(DIALOGUES.read_text(encoding="utf-8")), dict[str, list[Dialogue]])
    return [_dialogue(dialogue) for dialogue in sample["talks"] if dialogue.set == half]


def _dialogue(dialogue: Dialogue) -> Conversation:
    name = "-".join(dialogue.people.values()).lower()
    notes, places = list[SeedNote](), dict[str, str]()
    for number, session in enumerate(dialogue.sessions):
        begin = datetime.fromisoformat(session.at)
        for place, line in enumerate(session.lines.strip().splitlines()):
            match = _LINE.fullmatch(line)
            if match is None or match[2] in places:
                raise ValueError(f"{name}: {line}")
            author, own = dialogue.people[match[1]], f"{number}:{place}"
            if match[2]:
                places[match[2]] = own
            at = (begin + place * _BETWEEN_LINES).isoformat()
            text = f"{author}: {match[3]}"
            notes.append(SeedNote(name=own, text=text, at=at, session=f"{name}-{number}", author=author))
    questions: list[LabelledQuestion] = []
    for line in dialogue.questions.strip().splitlines():
        cited, _, text = line.partition(" | ")
        kind, *names = cited.split()
        evidence, category = frozenset(places[cited] for cited in names), QUESTION_TYPES.index(kind) + 1
        questions.append(LabelledQuestion(text=text, evidence=evidence, category=category))
    return Conversation(name=name, notes=tuple(notes), questions=tuple(questions))


# --- invented projects: developers who talk about several parts of a project in similar words -----------------------
PROJECTS = SAMPLES / "projects.toml"
_FIRST_DAY = datetime(2023, 1, 9, 9, tzinfo=UTC)
DATED = 0.25  # the share of the questions that name a month
PARTS, NAMED, SHORT = 3, 0.5, 5
"""The number of parts of a project for which a topic is repeated; of its lines with at least `SHORT` words, the share
that name the part themselves, as a statement does that is understood without context."""

MONTHS = "January February March April May June July August September October November December".split()


class Project(msgspec.Struct, frozen=True):
    name: str
    parts: tuple[str, ...]
    people: tuple[str, ...]


class ConversationTopic(msgspec.Struct, frozen=True):
    """Lines with slots, the values of the slots, and questions with the places of their answers."""

    lines: tuple[str, ...]
    values: dict[str, tuple[str, ...]]
    questions: tuple[tuple[str, tuple[int, ...]], ...]


class ProjectSet(msgspec.Struct, frozen=True):
    projects: tuple[Project, ...]
    topics: tuple[ConversationTopic, ...]


def projects(half: Half) -> list[Conversation]:
    sample = msgspec.convert(tomllib.loads(PROJECTS.read_text(encoding="utf-8")), dict[str, ProjectSet])[half]
    chance = random.Random(5)
    return [_project(project, sample.topics, chance) for project in sample.projects]


def _project(project: Project, topics: tuple[ConversationTopic, ...], chance: random.Random) -> Conversation:
    notes, questions = list[SeedNote](), list[LabelledQuestion]()
    pairs = [
        (topic, part)
        for topic in topics
        for part in chance.sample(project.parts, PARTS if any("{c}" in line for line in topic.lines) else 1)
    ]
    for number, (topic, part) in enumerate(pairs):
        begin = _FIRST_DAY + timedelta(days=chance.randrange(700), minutes=chance.randrange(400))
        first, second = chance.sample(project.people, 2)
        slots = {"c": part, "w": part.split()[-1], "p": first, "q": second, "when": chance.choice(MONTHS)}
        slots |= {name: chance.choice(values) for name, values in topic.values.items()}
        for place, line in enumerate(topic.lines):
            key, _, text = line.format_map(slots).rpartition(" | ")
            at = (begin + place * _BETWEEN_LINES).isoformat()
            may_name = len(text.split()) >= SHORT and "{c}" in topic.lines[0] and part not in text
            names_part = place and may_name and chance.random() < NAMED
            text = f"In {part}: {text[:1].lower()}{text[1:]}" if names_part else text[:1].upper() + text[1:]
            session = f"{project.name}-{number}"
            notes.append(SeedNote(name=f"{number}:{place}", text=text, at=at, session=session, key=key))
        for question, places in topic.questions:
            text = question.format_map(slots)
            if chance.random() < DATED:
                text = f"{text.removesuffix('?')}, in {MONTHS[begin.month - 1]} {begin.year}?"
            evidence = frozenset(f"{number}:{place}" for place in places)
            questions.append(LabelledQuestion(text=text, evidence=evidence, category=1))
    return Conversation(name=project.name, notes=tuple(notes), questions=tuple(questions))


# --- pools that conversations fill ------------------------------------------------------------------------------------
WITH_OPTIONS = {"MEMD_BENCH": "1"}  # the setting of a daemon that accepts `RecallOptions`
GROUP = 500
UNLIMITED_TOKENS = 10_000_000
IDLE_POLLS = 4


class SeededPool(msgspec.Struct, frozen=True, kw_only=True):
    """A filled pool: the name of each note by the id of its record."""

    pool: str
    names: dict[str, str]

    def ask(self, client: Client, query: str, options: RecallOptions | None = None, limit: int = 20) -> Recalled:
        """An answer from this pool with the parts of its scores; no token budget unless the limit is the usual 20."""
        pools, budget = (self.pool,), 1500 if limit == 20 else UNLIMITED_TOKENS
        wish = Recall(query=query, pools=pools, limit=limit, budget_tokens=budget, explain=True, options=options)
        return client.ask(wish, Recalled)

    def ranked(self, answer: Recalled) -> tuple[str, ...]:
        return tuple(self.names[hit.record.id] for hit in answer.hits)


def fill(client: Client, pool: str, notes: Sequence[SeedNote]) -> SeededPool:
    """Import notes into a pool. Raises Unavailable if one is refused."""
    names: dict[str, str] = {}
    begins = {note.session: note.at for note in reversed(notes)}
    sessions = tuple(
        SessionOpened(document=session, origin=Origin(host="bench", session=session), project=pool, at=at)
        for session, at in begins.items()
    )
    for start in range(0, len(notes), GROUP):
        records = [_record(pool, note) for note in notes[start : start + GROUP]]
        names.update((record.id, note.name) for record, note in zip(records, notes[start:], strict=False))
        wish = request.ImportRecords(
            records=tuple(ExportedRecord(record=record) for record in records),
            sessions=sessions,
            pools=(PoolOpened(pool=pool, title=pool),),
        )
        if refused := client.import_records(wish).refused:
            raise Unavailable(f"{len(refused)} notes were refused: {refused[0].problem.message}")
    return SeededPool(pool=pool, names=names)


def _record(pool: str, note: SeedNote) -> Record:
    return Record(
        id=record_id(pool, note.session, note.name, 0, 0),
        pool=pool,
        kind="edge" if note.key else "note",
        key=note.key,
        content=note.text,
        description=note.text,
        language=note.language,
        valid_from=note.at,
        provenance=Provenance(
            author=note.author,
            source=note.session,
            trust="user",
            spans=(Span(note.session, note.name, 0, len(note.text)),),
            quote=note.text[:500],
            said_at=note.at,
        ),
    )


def await_vectors(client: Client, most_s: float = 900.0) -> None:
    """Wait until every record has its vector. Raises Unavailable when it takes longer than `most_s` seconds."""
    end, idle = time.monotonic() + most_s, 0
    client.distil()
    while idle < IDLE_POLLS:
        time.sleep(0.5)
        status = client.status()
        idle = idle + 1 if not status.pending and not status.unembedded else 0
        if time.monotonic() > end:
            raise Unavailable(f"{status.unembedded} records have no vector after {most_s:.0f} s")
