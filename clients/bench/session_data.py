"""Events to capture: generated turns, the sessions of the data folder; and the records a daemon makes of them."""

from __future__ import annotations

import random
import re
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import count
from pathlib import Path

import msgspec

from ...protocol import event
from ...protocol.errors import MemdError, StoreError
from ...protocol.event import AnyEvent, Said, ToolCalled
from ...protocol.instant import from_micros
from ...protocol.recall import Recalled
from ...protocol.record import Record, Status
from ..importers import claude_code
from ..importers.agent_files import AGENTS, reader
from ..importers.cursors import Cursors
from ..importers.transcript import CapturedSession, batches
from ..python.client import Client
from .measurement import BenchOptions

SAMPLE = Path(__file__).parents[1] / "cli" / "sample" / "session.jsonl"
LARGE_BYTES = 1_000_000
PAGE = 500
_BEGIN = 1_767_225_600_000_000


def turns(seed: int = 7) -> Iterator[AnyEvent]:
    """Endless numbered events, the same for the same seed: the sample's sentences in new order and its lengths."""
    chance = random.Random(seed)
    samples = [sample for session in claude_code.read(SAMPLE).sessions for sample in session.events]
    samples = [sample for sample in samples if event.text(sample)]
    sentences = [
        part for sample in samples for part in re.split(r"(?<=[.!?])\s+", event.text(sample)) if len(part) > 20
    ]
    for number in count(1):
        sample = chance.choice(samples)
        at = from_micros(_BEGIN + number * 7_000_000)
        turn = f"{chance.getrandbits(128):032x}"
        if isinstance(sample, ToolCalled):
            arguments = f"{sample.arguments[:180]} {number}"
            yield ToolCalled(turn=turn, at=at, name=sample.name, arguments=arguments, outcome=sample.outcome)
            continue
        length, parts = len(event.text(sample)), [f"Step {number}:"]
        while sum(map(len, parts)) < length:
            parts.append(chance.choice(sentences))
        role = sample.role if isinstance(sample, Said) else "assistant"
        yield Said(turn=turn, at=at, role=role, text=" ".join(parts))


class RealSessions(msgspec.Struct, frozen=True):
    """The sessions of the data. `left_out`: unreadable files, and turns that differ from those of an earlier file,
    because importing both could not give the same result in every order. `large`: the documents of Claude Code's
    large sessions."""

    sessions: tuple[CapturedSession, ...]
    left_out: tuple[str, ...] = ()
    large: frozenset[str] = frozenset()


def files(options: BenchOptions, sample: bool = True) -> list[tuple[str, Path]]:
    """Agent and path of every session of the data after the `sample`; under `quick` small ones. Raises DataMissing."""
    paths = [("claude-code", SAMPLE)] if sample else []
    for folder in sorted(options.find("sessions").iterdir()):
        agent = folder.name.removesuffix("-edge")
        if agent in AGENTS:
            paths += [(agent, path) for path in sorted(folder.rglob("*.json*")) if path.is_file()]
    return [(agent, path) for agent, path in paths if not options.quick or path.stat().st_size < LARGE_BYTES]


def read(options: BenchOptions, sample: bool = True) -> RealSessions:
    """Every session of the data, after the `sample`. Raises DataMissing."""
    sessions, left_out, known = list[CapturedSession](), list[str](), dict[tuple[str, str], AnyEvent]()
    large: set[str] = set()
    for agent, path in files(options, sample):
        if agent == "claude-code" and path.stat().st_size > LARGE_BYTES:
            large.add(f"claude-code:{path.stem}")
        try:
            transcript = reader(agent, path, "", Cursors(path.parent), dry_run=True)(None)
        except StoreError as error:
            left_out.append(f"{path.name}: {error.message}")
            continue
        for session in transcript.sessions:
            document = session.origin.document
            events = tuple(turn for turn in session.events if known.setdefault((document, turn.turn), turn) == turn)
            if events:
                sessions.append(msgspec.structs.replace(session, events=events))
            if more := len(session.events) - len(events):
                left_out.append(f"{path.name}: {more} turns that differ from those of an earlier file")
    return RealSessions(tuple(sessions), tuple(left_out), frozenset(large))


def large_session(options: BenchOptions) -> Path:
    """The first session of Claude Code above a megabyte, on which speed is measured."""
    folder = options.find("sessions/claude-code")
    return next(path for path in sorted(folder.glob("*.jsonl")) if path.stat().st_size > LARGE_BYTES)


def deliver(client: Client, sessions: Iterable[CapturedSession]) -> int:
    """Capture sessions in order, in batches as an import does, and return how many events were new."""
    return sum(
        client.capture(session.origin, batch).accepted for session in sessions for batch in batches(session.events)
    )


def is_held(client: Client, id: str) -> bool:
    """Whether the daemon returns a record with this id."""
    with suppress(MemdError):
        return bool(id) and client.get(id).id == id
    return False


def records(client: Client, pools: Sequence[str] = (), statuses: Sequence[Status] = ()) -> Iterator[Record]:
    """Every record that is listed, retired ones included, newest first; with `pools` or `statuses` those of them."""
    after = ""
    while True:
        page = client.list(pools=pools, statuses=statuses, after=after, limit=PAGE)
        yield from page.records
        if not (after := page.next):
            return


def new_repository(folder: Path) -> str:
    """Make a folder with an empty git repository, which is a project."""
    folder.mkdir()
    subprocess.run(["git", "-C", str(folder), "init", "-q"], check=True)
    return str(folder)


def record_text(record: Record) -> str:
    """All words of a record that a reader may see."""
    return "\n".join((record.content, record.description, record.provenance.quote, record.value))


def shown_texts(answer: Recalled) -> list[str]:
    """The texts of an answer as a client shows them, best first: a turn's quote; a record's description, and its quote
    if that differs."""
    scored = [(hit.score, _shown(hit.record)) for hit in answer.hits]
    scored += [(turn.score, turn.quote) for turn in answer.turns]
    return [text for _, text in sorted(scored, key=lambda pair: -pair[0])]


def _shown(record: Record) -> str:
    quote = record.provenance.quote
    return record.description if quote in record.description else f"{record.description}\n{quote}"


def has_words(text: str, words: Iterable[str]) -> bool:
    """Whether a text contains all these words, in either case."""
    return all(word.lower() in text.lower() for word in words)
