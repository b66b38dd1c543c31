"""Whether memd tells where a project stands (C1, C2): twelve authored sessions of three projects, with what is open at
the end of each, and the summaries of real sessions, each line of which was graded by reading.

Real lines are known by a hash alone; a line that nobody has graded counts as none and is counted.
"""

from __future__ import annotations

import hashlib
import re
import subprocess
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from math import log, sqrt
from pathlib import Path
from statistics import median

import msgspec

from ...protocol.event import Origin
from ...protocol.instant import from_micros, micros
from ...protocol.session import SummaryLine
from ..importers import claude_code
from ..importers.transcript import CapturedSession
from ..python.client import Client
from . import corpus
from .measurement import BenchOptions, DataMissing, Figure, PartResult, at_least, at_most
from .session_data import deliver
from .temporary_daemon import settle, temporary_daemon

SAMPLES = Path(__file__).with_name("samples") / "continuity"
PROJECTS = ("podsync", "checkout", "logindex")
DAYS_AGO = 1
_WORD = re.compile(r"\w{3,}")


class Label(msgspec.Struct, frozen=True):
    """What a session's author says of its end. `title`: a good one; `open`: the words of each open item."""

    title: str
    open: list[str]


class ReadAgain(msgspec.Struct, frozen=True):
    """A session as memd tells it. `at_start`: the number of open items before it; `items`: the open and watched ones
    after it; `before`, `older`: what the profile tells of the session before it, and of the one before that."""

    title: str
    at_start: int
    items: tuple[str, ...]
    before: str
    older: str
    summary: str
    lines: tuple[tuple[str, SummaryLine], ...]


def continuity(options: BenchOptions) -> PartResult:
    """Open items, titles, the last time, and the lines of summaries."""
    labels = msgspec.json.decode((SAMPLES / "labels.json").read_bytes(), type=dict[str, Label])
    grades = msgspec.json.decode((SAMPLES / "grades.json").read_bytes(), type=dict[str, str])
    authored: dict[str, ReadAgain] = {}
    for project in PROJECTS:
        options.progress(project)
        sessions = [claude_code.read(SAMPLES / project / f"{n}.jsonl").sessions[0] for n in range(1, 5)]
        authored |= {f"{project}/{n}": row for n, row in enumerate(_lived(sessions), 1)}
    real = list(_real(options))
    return PartResult(
        tuple(_figures(authored, labels, real, grades)),
        shows_not="what a reader would have wanted to know beside it; grades are of one reader, real lines by a hash",
    )


def _real(options: BenchOptions) -> Iterator[ReadAgain]:
    """Yield the real sessions of the corpus by repository, the oldest first; none without the corpus."""
    try:
        folder = corpus.corpus_folder(options)
        names = corpus.session_names(options)
    except DataMissing:
        return
    scorer = corpus.load_scorer(folder)
    by_repository: dict[str, list[CapturedSession]] = {}
    for name in names:
        by_repository.setdefault(corpus.repository(name), []).append(corpus.read_session(folder, scorer, name)[0])
    for repository, sessions in by_repository.items():
        options.progress(repository)
        yield from _lived(sorted(sessions, key=lambda session: micros(session.events[-1].at)))


def _lived(sessions: Sequence[CapturedSession]) -> Iterator[ReadAgain]:
    """Deliver the sessions of one project in order, the last one as if it had ended a day ago."""
    with tempfile.TemporaryDirectory(prefix="memd-bench-") as folder, temporary_daemon() as client:
        author = ["-c", "user.name=memd", "-c", "user.email=memd@localhost"]
        subprocess.run(["git", "init", "-q", folder], check=True)
        subprocess.run(["git", "-C", folder, *author, "commit", "-q", "--allow-empty", "-m", "start"], check=True)
        told: list[str] = ["", ""]
        for session in sessions:
            yield _again(client, _moved(session, folder), folder, told)


def _again(client: Client, session: CapturedSession, folder: str, told: list[str]) -> ReadAgain:
    """Deliver a session and ask what memd tells then. `told`: what the profile told at the starts before."""
    document = session.origin.document
    at_start = sum(item.section == "open" for item in client.state(cwd=folder).items)
    told.append(_last_time(client.profile(cwd=folder, document=document, trigger="start").text))
    deliver(client, [session])
    settle(client)
    summary = client.summary(document)
    state = client.state(cwd=folder)
    return ReadAgain(
        title=summary.title,
        at_start=at_start,
        items=tuple(item.text for item in state.items if item.section in {"open", "watch"}),
        before=told[-1],
        older=told[-2],
        summary=" ".join([summary.title, *(line.text for line in summary.lines)]),
        lines=tuple((document, line) for line in summary.lines),
    )


def _moved(session: CapturedSession, folder: str) -> CapturedSession:
    """Return a session in another folder, with its times moved so that it ended a day ago."""
    by = datetime.now(UTC) - timedelta(days=DAYS_AGO) - datetime.fromisoformat(session.events[-1].at)
    more = int(by.total_seconds() * 1_000_000)
    events = tuple(msgspec.structs.replace(each, at=from_micros(micros(each.at) + more)) for each in session.events)
    origin = session.origin
    moved = Origin(host=origin.host, session=origin.session, cwd=folder, title=origin.title, live=False)
    return CapturedSession(origin=moved, events=events)


def _last_time(profile: str) -> str:
    section = re.search(r"^## Last time here.*?\n(.*?)(?=^##|^</)", profile, re.DOTALL | re.MULTILINE)
    return section[1] if section else ""


def _figures(
    authored: Mapping[str, ReadAgain], labels: Mapping[str, Label], real: Sequence[ReadAgain], grades: Mapping[str, str]
) -> Iterator[Figure]:
    rights = [_is_labelled(item, labels[name].open) for name, row in authored.items() for item in row.items]
    found = [_is_told(words, row.items) for name, row in authored.items() for words in labels[name].open]
    yield Figure(
        "open items that are open at a session's end", _share(rights), target=at_least(0.9), samples=len(rights)
    )
    yield Figure("  of all that are open", _share(found), samples=len(found))
    starts = [float(row.at_start) for row in (*authored.values(), *real)]
    yield Figure("open items at a session's start, p50", median(starts), target=at_most(10), samples=len(starts))
    titles = [_shared(row.title, labels[name].title) > 0 for name, row in authored.items()]
    yield Figure("titles with words of a good one", _share(titles), target=at_least(0.75), samples=len(titles))
    told = [row for row in (*authored.values(), *real) if row.before]
    weigh = _weights([text for row in told for text in (row.before, row.summary)])
    nearer = [
        _cosine(row.before, row.summary, weigh) > _cosine(row.older, row.summary, weigh) for row in told if row.older
    ]
    yield Figure("last time nearer than the time before", _share(nearer), target=at_least(0.6), samples=len(nearer))
    counted = Counter(
        grades.get(hash_of(document, line.text), "?")
        for row in (*authored.values(), *real)
        for document, line in row.lines
    )
    graded = max(1, counted["u"] + counted["n"] + counted["m"])
    yield Figure("useful lines of summaries", counted["u"] / graded, target=at_least(0.85), samples=graded)
    yield Figure("misleading lines", counted["m"] / graded, target=at_most(0.02), samples=graded)
    yield Figure("  lines that nobody graded", float(counted["?"]), "lines")


def hash_of(document: str, text: str) -> str:
    """Return the name of a line among the grades."""
    return hashlib.sha256(f"{document}\n{text}".encode()).hexdigest()[:16]


def _is_labelled(item: str, open_items: Sequence[str]) -> bool:
    return any(_is_same(item, words) for words in open_items)


def _is_told(words: str, items: Sequence[str]) -> bool:
    return any(_is_same(item, words) for item in items)


def _is_same(one: str, other: str) -> bool:
    short, long = sorted((one.casefold(), other.casefold()), key=len)
    return short in long or _shared(one, other) >= 0.6


def _shared(one: str, other: str) -> float:
    """Return the share of the words of the shorter text that the other one has."""
    words, others = set(_WORD.findall(one.casefold())), set(_WORD.findall(other.casefold()))
    least = min(len(words), len(others))
    return len(words & others) / least if least else 0.0


def _weights(texts: Sequence[str]) -> Mapping[str, float]:
    """Return the weight of each word: the logarithm of its rarity among the texts."""
    counts = Counter(word for text in texts for word in set(_WORD.findall(text.casefold())))
    return {word: log(1 + len(texts) / count) for word, count in counts.items()}


def _cosine(one: str, other: str, weights: Mapping[str, float]) -> float:
    """Return the cosine of two texts' words by their weights (TF-IDF), 0 for an empty text."""
    vectors = [
        {
            word: (1 + log(count)) * weights.get(word, 0.0)
            for word, count in Counter(_WORD.findall(text.casefold())).items()
        }
        for text in (one, other)
    ]
    lengths = [sqrt(sum(value * value for value in vector.values())) for vector in vectors]
    if not all(lengths):
        return 0.0
    return sum(value * vectors[1].get(word, 0.0) for word, value in vectors[0].items()) / (lengths[0] * lengths[1])


def _share(flags: Sequence[bool]) -> float:
    return sum(flags) / len(flags) if flags else 0.0
