"""memd and its peers on the same conversations: recall, latency, a kill while writing, eight writers at once.

Each peer has an installed environment of its own, memd's vectors if it takes any, and a fresh store a conversation. A
peer that asks for a vector pays for its encoding. memd is measured over its socket, as shipped, after every
text is distilled; it encodes a text after the reply to its write.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import time
import venv
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from statistics import fmean
from tempfile import TemporaryDirectory
from typing import Any

import msgspec

from ...protocol.errors import MemdError, Unavailable
from ...protocol.event import Origin
from ...protocol.request import Remember
from ..python import launch
from ..python.client import Client, now
from .measurement import (
    BenchOptions,
    DataMissing,
    Figure,
    Measure,
    PartResult,
    TradeOff,
    elapsed_ms,
    percentile,
    percentile_figure,
    share,
)
from .processes import memory_bytes
from .read.plain_search import PlainSearch
from .session_data import is_held, shown_texts
from .temporary_daemon import DEADLINE_MS, START_S, empty_home, measure, running, settle, temporary_daemon, token_counts

PACKAGES: dict[str, tuple[str, ...]] = {
    "memd": (),
    "fts5": (),
    "sqlite-vec": ("sqlite-vec", "apsw"),
    "chroma": ("chromadb",),
    "mem0": ("mem0ai",),
    "yantrikdb": ("yantrikdb", "numpy"),
}
"""By peer: the packages of its environment."""

TOP = 10
LIMITS = (TOP, 3, 5, 20)
"""The most texts of an answer, by which the accuracy and the tokens of each peer are compared; memory and the figures
of earlier reports are those of the first."""
TOKEN_BUDGETS = (100, 200, 400, 800)
"""Budgets of memd's answers of at most `MOST` results, beside `LIMITS` without a budget."""
MOST = 20
UNLIMITED_TOKENS = 100_000
OVER = "Evidence of LoCoMo's questions among the texts of an answer"
WRITERS = 8
TEXTS_EACH = 25
KILL_AFTER = 40
INSTALL_S, RUN_S = 900.0, 1_800.0
_TURN = re.compile(r"D\d+:\d+")


class PeerConversation(msgspec.Struct, frozen=True):
    """The turns of a conversation, and its questions with the places of the turns that answer each."""

    texts: tuple[str, ...]
    questions: tuple[str, ...]
    evidence: tuple[frozenset[int], ...]


class PeerAnswers(msgspec.Struct, frozen=True):
    """For each question of a conversation the milliseconds of the read and the texts found, best first; `shown`: the
    same texts as a client shows them, if these differ."""

    reads_ms: list[float]
    found: list[list[str]]
    shown: list[list[str]] = []


class PeerTimings(msgspec.Struct, frozen=True, kw_only=True):
    """Milliseconds of each write of one conversation, and its answers by variant: first for each of `LIMITS`, then for
    each of memd's `TOKEN_BUDGETS`."""

    writes_ms: list[float]
    answers: list[PeerAnswers]
    memory_bytes: int


class KillOutcome(msgspec.Struct, frozen=True):
    """Acknowledged writes that a SIGKILL lost; writes a second of eight writers, and how many could not write."""

    lost: int
    acknowledged: int
    rate: float
    failed_writers: int


def conversations(options: BenchOptions) -> list[PeerConversation]:
    """The conversations of the data; one, with fewer turns, under `quick`. Raises DataMissing."""
    content = json.loads(options.find("locomo/locomo_dev5.json").read_text(encoding="utf-8"))
    return [_conversation(item, 200) for item in content[:1]] if options.quick else list(map(_conversation, content))


def _conversation(content: dict[str, Any], most: int | None = None) -> PeerConversation:
    sessions = [turns for name, turns in content["conversation"].items() if re.fullmatch(r"session_\d+", name)]
    turns = [turn for session in sessions for turn in session][:most]
    places, texts = dict[str, int](), dict[str, int]()
    for turn in turns:
        photo = f" [photo: {turn['blip_caption']}]" if turn.get("blip_caption") else ""
        places[turn["dia_id"]] = texts.setdefault(f"{turn['speaker']}: {turn['text']}{photo}", len(texts))
    answered: list[tuple[str, frozenset[int]]] = []
    for item in content["qa"]:
        cited = {turn for evidence in item.get("evidence") or () for turn in _TURN.findall(str(evidence))}
        if cited and cited <= places.keys():
            answered.append((item["question"], frozenset(places[turn] for turn in cited)))
    questions, evidence = tuple(question for question, _ in answered), tuple(places for _, places in answered)
    return PeerConversation(tuple(texts), questions, evidence)


# --- memd ------------------------------------------------------------------------------------------------------------
def _remember(number: int, text: str, session: str = "peers") -> Remember:
    return Remember(text=text, turn=f"t{number}", at=now(), origin=Origin(host="bench", session=session))


def _memd_timings(conversation: PeerConversation) -> PeerTimings:
    writes, answers = list[float](), list[PeerAnswers]()
    with temporary_daemon() as client:
        for number, text in enumerate(conversation.texts):
            writes.append(elapsed_ms(client.remember, _remember(number, text)))
        settle(client, 1_800)
        memory = memory_bytes(client.status().pid)
        for limit, budget in (*((limit, UNLIMITED_TOKENS) for limit in LIMITS), *((MOST, n) for n in TOKEN_BUDGETS)):
            answers.append(_memd_answers(client, conversation.questions, limit, budget))
    return PeerTimings(writes_ms=writes, answers=answers, memory_bytes=memory)


def _memd_answers(client: Client, questions: Sequence[str], limit: int, budget: int) -> PeerAnswers:
    reads, found, shown = list[float](), list[list[str]](), list[list[str]]()
    for question in questions:
        begin = time.perf_counter()
        answer = client.recall(question, limit=limit, budget_tokens=budget)
        reads.append((time.perf_counter() - begin) * 1000)
        scored = [(hit.score, hit.record.content) for hit in answer.hits]
        scored += [(turn.score, turn.quote) for turn in answer.turns]
        ranked = sorted(scored, key=lambda pair: -pair[0])
        found.append(list(dict.fromkeys(text for _, text in ranked)))
        shown.append(shown_texts(answer))
    return PeerAnswers(reads, found, shown)


def _memd_killed(texts: Sequence[str]) -> KillOutcome:
    with empty_home() as (home, environment):
        process = launch.start(home, environment, START_S)
        with Client(home, DEADLINE_MS) as client:
            ids = [client.remember(_remember(n, text)).record.id for n, text in enumerate(texts[:KILL_AFTER])]
        process.send_signal(signal.SIGKILL)
        process.wait()
        with running(home, environment) as client:
            lost = sum(not is_held(client, id) for id in ids)
    with empty_home() as (home, environment), running(home, environment):

        def write(writer: int) -> bool:
            """Whether the writer could write all of its texts."""
            try:
                with Client(home, DEADLINE_MS) as client:
                    for number, text in enumerate(texts[:TEXTS_EACH]):
                        client.remember(_remember(number, text, f"writer{writer}"))
            except MemdError:
                return False
            return True

        with ThreadPoolExecutor(WRITERS) as pool:
            begin = time.perf_counter()
            succeeded = sum(pool.map(write, range(WRITERS)))
            rate = succeeded * TEXTS_EACH / (time.perf_counter() - begin)
    return KillOutcome(lost, len(ids), rate, WRITERS - succeeded)


# --- peers, each in an environment of its own ------------------------------------------------------------------------
class PeerDriver:
    """Runs phases of one peer in its own environment. Raises DataMissing if that can't be installed."""

    def __init__(self, name: str, progress: Callable[[str], None]) -> None:
        self._name = name
        cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "memd-bench" / name
        self._python, installed = cache / "bin" / "python", cache / "installed"
        if installed.exists():
            return
        progress(f"peers/{name}: installing {', '.join(PACKAGES[name]) or 'nothing'}")
        venv.create(cache, with_pip=bool(PACKAGES[name]), clear=True)
        if PACKAGES[name]:
            command = [str(self._python), "-m", "pip", "install", "--quiet", "--prefer-binary", *PACKAGES[name]]
            try:
                done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=INSTALL_S)
            except subprocess.TimeoutExpired as error:
                raise DataMissing(f"{name} was not installed within {INSTALL_S:.0f} s") from error
            if done.returncode:
                raise DataMissing(f"{name} can't be installed: {_last_line(done.stderr)}")
        installed.touch()

    def versions(self) -> str:
        code = "import sys, importlib.metadata as m; print(', '.join(f'{p} {m.version(p)}' for p in sys.argv[1:]))"
        command = [str(self._python), "-c", code, *PACKAGES[self._name]]
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()

    def timings(self, conversation: PeerConversation) -> PeerTimings:
        """Write the texts of a conversation and ask its questions. Raises Unavailable."""
        with _work(conversation) as work, TemporaryDirectory(prefix="memd-bench-") as folder:
            return msgspec.convert(self._output("measure", folder, work), PeerTimings)

    def killed(self, conversation: PeerConversation) -> KillOutcome:
        """Kill a writer and count what is lost; then let several write at once. Raises Unavailable."""
        with _work(conversation) as work, TemporaryDirectory(prefix="memd-bench-") as folder:
            acknowledged, _, _ = self._write(folder, work, 1, KILL_AFTER)
            held = set(self._output("held", folder, work)["held"])
        few = msgspec.structs.replace(conversation, texts=conversation.texts[:TEXTS_EACH])
        with _work(few) as work, TemporaryDirectory(prefix="memd-bench-") as folder:
            _, failed, seconds = self._write(folder, work, WRITERS, 1_000_000)
        rate = (WRITERS - failed) * TEXTS_EACH / seconds
        return KillOutcome(len(acknowledged - held), len(acknowledged), rate, failed)

    def _start(self, phase: str, folder: str, work: Path) -> subprocess.Popen[str]:
        driver = Path(__file__).with_name("peer_driver.py")
        command = [str(self._python), "-P", str(driver), self._name, phase, folder, str(work)]
        environment = {**os.environ, "ANONYMIZED_TELEMETRY": "False", "DO_NOT_TRACK": "1", "HOME": folder}
        pipe = subprocess.PIPE
        return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True, env=environment)

    def _output(self, phase: str, folder: str, work: Path) -> dict[str, Any]:
        """The last object that a phase prints. Raises Unavailable with its error."""
        process = self._start(phase, folder, work)
        try:
            output, errors = process.communicate(timeout=RUN_S)
        except subprocess.TimeoutExpired as error:
            process.kill()
            raise Unavailable(f"{self._name} took longer than {RUN_S:.0f} s") from error
        lines = output.splitlines()
        if process.returncode or not lines:
            raise Unavailable(f"{self._name} failed: {_last_line(errors)}")
        return json.loads(lines[-1])

    def _write(self, folder: str, work: Path, count: int, most: int) -> tuple[set[int], int, float]:
        """Let processes write at once, each until `most` acknowledgements, then kill them. Returns the acknowledged
        texts, the number of writers that never got an acknowledgement, and seconds."""
        processes = [self._start("write", folder, work) for _ in range(count)]
        acknowledged: set[int] = set()
        alive = [process for process in processes if process.stdout and process.stdout.readline()]
        for process in alive:
            assert process.stdin
            process.stdin.write("go\n")
            process.stdin.flush()
        begin, failed = time.perf_counter(), count - len(alive)
        for process in alive:
            own = 0
            assert process.stdout
            for line in process.stdout:
                message = json.loads(line)
                if "acknowledged" in message:
                    acknowledged.add(message["acknowledged"])
                    own += 1
                if own >= most:
                    break
            failed += own == 0
        seconds = time.perf_counter() - begin
        for process in processes:
            process.kill()
            process.wait()
        return acknowledged, failed, seconds


def _last_line(errors: str) -> str:
    return (errors.strip() or "?").splitlines()[-1][:300]


@contextmanager
def _work(conversation: PeerConversation) -> Generator[Path]:
    """A file for the driver: texts, questions, a file with the vectors of both in that order, and the milliseconds that
    each vector took."""
    with TemporaryDirectory(prefix="memd-bench-") as folder, empty_home() as (_, environment):
        texts, vectors, path = Path(folder) / "texts.json", Path(folder) / "vectors", Path(folder) / "work.json"
        texts.write_bytes(msgspec.json.encode([*conversation.texts, *conversation.questions]))
        embedded: dict[str, Any] = json.loads(measure(environment, "embed-texts", str(texts), str(vectors)))
        work = {"texts": conversation.texts, "questions": conversation.questions, "limits": LIMITS}
        path.write_bytes(msgspec.json.encode({**work, "vectors": str(vectors), **embedded}))
        yield path


# --- the parts -------------------------------------------------------------------------------------------------------
def _peer(name: str, options: BenchOptions) -> PartResult:
    texts = conversations(options)
    driver = None if name == "memd" else PeerDriver(name, options.progress)
    timings: list[PeerTimings] = []
    for number, conversation in enumerate(texts, 1):
        options.progress(f"peers/{name}: conversation {number} of {len(texts)}")
        timings.append(driver.timings(conversation) if driver else _memd_timings(conversation))
    options.progress(f"peers/{name}: a kill, and eight writers")
    kill = driver.killed(texts[0]) if driver else _memd_killed(texts[0].texts)
    writes = [milliseconds for timing in timings for milliseconds in timing.writes_ms]
    reads = [milliseconds for timing in timings for milliseconds in timing.answers[0].reads_ms]
    figures = (
        share("evidence recall@10", *_evidence(texts, [timing.answers[0] for timing in timings])),
        percentile_figure("write, p50", writes, 50),
        percentile_figure("write, p99", writes, 99),
        percentile_figure("recall, p50", reads, 50),
        percentile_figure("recall, p99", reads, 99),
        Figure("memory, at most", max(timing.memory_bytes for timing in timings) / 1e6, "MB"),
        Figure("acknowledged writes lost by SIGKILL", kill.lost, samples=kill.acknowledged),
        Figure(f"{WRITERS} writers at once", kill.rate, "/s", samples=WRITERS),
        Figure("  of which could not write", kill.failed_writers, samples=WRITERS),
    )
    points = _points(name, texts, [timing.answers for timing in timings])
    return PartResult(
        (*figures, *(figure for point in points for figure in point.figures)),
        notes=(driver.versions(),) if driver and PACKAGES[name] else (),
        trade_offs=points,
        shows_not="a power cut; what eight writers encode; peers run inside the calling process, memd over its socket",
    )


def _evidence(conversations: Sequence[PeerConversation], answers: Sequence[PeerAnswers]) -> tuple[int, int]:
    """How many pieces of evidence are among the texts found, and how many there are, over all questions."""
    right = total = 0
    for conversation, of_conversation in zip(conversations, answers, strict=True):
        place = {text: at for at, text in enumerate(conversation.texts)}
        for evidence, texts in zip(conversation.evidence, of_conversation.found, strict=True):
            right += len(evidence & {place[text] for text in texts if text in place})
            total += len(evidence)
    return right, total


def _points(
    name: str, conversations: Sequence[PeerConversation], answers: Sequence[Sequence[PeerAnswers]]
) -> tuple[TradeOff, ...]:
    """A point for each variant, by the answers of each conversation to each of them."""
    texts = [text for variants in answers for variant in variants for found in _given(variant) for text in found]
    counts = token_counts(texts)
    points: list[TradeOff] = []
    for (series, variant), of_variant in zip(_variants(name, len(answers[0])), zip(*answers, strict=True), strict=True):
        given = [sum(counts[text].estimated for text in found) for each in of_variant for found in _given(each)]
        right, total = _evidence(conversations, of_variant)
        points.append(
            TradeOff(
                over=OVER,
                series=series,
                variant=variant,
                right=right,
                total=total,
                questions=len(given),
                tokens=fmean(given),
                latency_ms=percentile([read for each in of_variant for read in each.reads_ms], 50),
            )
        )
    return tuple(sorted(points, key=lambda point: (point.series, point.tokens)))


def _given(answers: PeerAnswers) -> list[list[str]]:
    return answers.shown or answers.found


def _variants(name: str, count: int) -> list[tuple[str, str]]:
    """The series and the variant of each of a peer's `count` ways to answer."""
    if count == 1:
        return [(name, "")]
    budgets = [(f"{name} by budget", f"{budget} tokens") for budget in TOKEN_BUDGETS]
    return [*((name, f"top {limit}") for limit in LIMITS), *budgets][:count]


# --- peers that keep the texts as they are, in this process -----------------------------------------------------------
def bm25(options: BenchOptions) -> PartResult:
    """Plain BM25 over the same texts, in this process and in memory."""
    answers: list[list[PeerAnswers]] = []
    texts = conversations(options)
    for conversation in texts:
        search = PlainSearch(conversation.texts)
        answers.append([_plain_answers(search, conversation, limit) for limit in LIMITS])
    points = _points("BM25", texts, answers)
    return PartResult(tuple(figure for point in points for figure in point.figures), trade_offs=points)


def _plain_answers(search: PlainSearch, conversation: PeerConversation, limit: int) -> PeerAnswers:
    reads, found = list[float](), list[list[str]]()
    for question in conversation.questions:
        begin = time.perf_counter()
        places = search.find(question, limit)
        reads.append((time.perf_counter() - begin) * 1000)
        found.append([conversation.texts[place] for place in places])
    return PeerAnswers(reads, found)


def transcript(options: BenchOptions) -> PartResult:
    """The whole transcript for each question: its tokens."""
    texts, answers = conversations(options), list[list[PeerAnswers]]()
    for conversation in texts:
        none = [0.0] * len(conversation.questions)
        answers.append([PeerAnswers(none, [list(conversation.texts)] * len(none))])
    points = _points("whole transcript", texts, answers)
    figures = tuple(figure for point in points for figure in point.figures)
    return PartResult(figures, trade_offs=points, shows_not="what an agent finds in it, and how long a model reads it")


def measures() -> dict[str, Measure]:
    parts: dict[str, Measure] = {}
    for name in PACKAGES:
        parts[name] = part = partial(_peer, name)
        part.__doc__ = f"{name} on LoCoMo turns: the same texts, questions and vectors, a fresh store a conversation."
    return {**parts, "bm25": bm25, "transcript": transcript}
