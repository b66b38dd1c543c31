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
from tempfile import TemporaryDirectory
from typing import Any

import msgspec

from ...protocol.errors import MemdError, Unavailable
from ...protocol.event import Origin
from ...protocol.request import Remember
from ..python import launch
from ..python.client import Client, now
from .measurement import BenchOptions, DataMissing, Figure, PartResult, Plot, elapsed_ms, percentile_figure, share
from .processes import memory_bytes
from .session_data import is_held
from .temporary_daemon import DEADLINE_MS, START_S, empty_home, measure, running, settle, temporary_daemon

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


class PeerTimings(msgspec.Struct, frozen=True, kw_only=True):
    """Milliseconds of each write and read of one conversation, and the texts found for each question."""

    writes_ms: list[float]
    reads_ms: list[float]
    found: list[list[str]]
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
    writes, reads, answers = list[float](), list[float](), list[list[str]]()
    with temporary_daemon() as client:
        for number, text in enumerate(conversation.texts):
            writes.append(elapsed_ms(client.remember, _remember(number, text)))
        settle(client, 1_800)
        memory = memory_bytes(client.status().pid)
        for question in conversation.questions:
            begin = time.perf_counter()
            answer = client.recall(question, limit=TOP, budget_tokens=100_000)
            reads.append((time.perf_counter() - begin) * 1000)
            scored = [(hit.score, hit.record.content) for hit in answer.hits]
            scored += [(turn.score, turn.quote) for turn in answer.turns]
            ranked = sorted(scored, key=lambda pair: -pair[0])
            answers.append(list(dict.fromkeys(text for _, text in ranked))[:TOP])
    return PeerTimings(writes_ms=writes, reads_ms=reads, found=answers, memory_bytes=memory)


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
        work = {"texts": conversation.texts, "questions": conversation.questions, "vectors": str(vectors)}
        path.write_bytes(msgspec.json.encode({**work, **embedded}))
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
    recall = _recall(texts, timings)
    writes = [milliseconds for timing in timings for milliseconds in timing.writes_ms]
    reads = [milliseconds for timing in timings for milliseconds in timing.reads_ms]
    latency = percentile_figure("recall, p50", reads, 50)
    figures = (
        recall,
        percentile_figure("write, p50", writes, 50),
        percentile_figure("write, p99", writes, 99),
        latency,
        percentile_figure("recall, p99", reads, 99),
        Figure("memory, at most", max(timing.memory_bytes for timing in timings) / 1e6, "MB"),
        Figure("acknowledged writes lost by SIGKILL", kill.lost, samples=kill.acknowledged),
        Figure(f"{WRITERS} writers at once", kill.rate, "/s", samples=WRITERS),
        Figure("  of which could not write", kill.failed_writers, samples=WRITERS),
    )
    title, series = f"{name}: accuracy and latency", {name: ((latency.value, recall.value),)}
    plot = Plot(title=title, x="recall, p50 in ms", y="recall@10", log_x=True, series=series)
    return PartResult(
        figures,
        notes=(driver.versions(),) if driver and PACKAGES[name] else (),
        plots=(plot,),
        shows_not="a power cut; what eight writers encode; peers run inside the calling process, memd over its socket",
    )


def _recall(conversations: Sequence[PeerConversation], timings: Sequence[PeerTimings]) -> Figure:
    """Share of the evidence among the first ten texts, over all questions; the interval is over evidence turns."""
    right = total = 0
    for conversation, timing in zip(conversations, timings, strict=True):
        place = {text: at for at, text in enumerate(conversation.texts)}
        for evidence, texts in zip(conversation.evidence, timing.found, strict=True):
            right += len(evidence & {place[text] for text in texts[:TOP] if text in place})
            total += len(evidence)
    return share("evidence recall@10", right, total)


def measures() -> dict[str, partial[PartResult]]:
    parts = {name: partial(_peer, name) for name in PACKAGES}
    for name, part in parts.items():
        part.__doc__ = f"{name} on LoCoMo turns: the same texts, questions and vectors, a fresh store a conversation."
    return parts
