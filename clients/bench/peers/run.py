"""Runs memd and its peers on the same conversations: recall, latency, a kill while writing, eight writers at once.

Comes in: a setting with LoCoMo. Goes out: a part for each peer. Invariants: each peer has an environment of its own,
made here by package name and kept for the next time; each conversation has a fresh store; a peer that can't run is
listed with the reason; the vectors are those of memd's own model, for every peer that takes any.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
import venv
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec

from ....protocol.errors import Unavailable
from ..figure import Figure, percentile, share
from ..home import empty_home
from ..offline import offline
from ..part import DataMissing, Measure, Part, Plot, Setting
from .own import acknowledged_by_memd, measured_by_memd

PACKAGES: dict[str, tuple[str, ...]] = {
    "memd": (),
    "fts5": (),
    "sqlite-vec": ("sqlite-vec", "apsw"),
    "chroma": ("chromadb",),
    "mem0": ("mem0ai",),
    "yantrikdb": ("yantrikdb", "numpy"),
}
"""By peer: what its environment is made of."""

WRITERS = 8
EACH = 25
KILL_AFTER = 40
INSTALL_S, RUN_S = 900.0, 1_800.0
_TURN = re.compile(r"D\d+:\d+")


class Talk(msgspec.Struct, frozen=True):
    """A conversation: its turns, and questions with the places of the turns that answer them."""

    texts: tuple[str, ...]
    questions: tuple[str, ...]
    evidence: tuple[frozenset[int], ...]


class Measured(msgspec.Struct, frozen=True, kw_only=True):
    """What measuring one conversation gave: milliseconds, and the texts found for each question."""

    writes_ms: list[float]
    reads_ms: list[float]
    found: list[list[str]]
    memory_bytes: int


def talks(setting: Setting) -> list[Talk]:
    """The conversations of the data; one, with fewer turns, under `quick`. Raises DataMissing."""
    whole = json.loads(setting.find("locomo/locomo_dev5.json").read_text(encoding="utf-8"))
    found = [_talk(each, 200 if setting.quick else 1_000_000) for each in whole]
    return found[:1] if setting.quick else found


def _talk(whole: dict[str, Any], most: int) -> Talk:
    sessions = [turns for name, turns in whole["conversation"].items() if re.fullmatch(r"session_\d+", name)]
    turns = [turn for session in sessions for turn in session][:most]
    places: dict[str, int] = {}
    texts: dict[str, int] = {}
    for turn in turns:
        seen = f" [photo: {turn['blip_caption']}]" if turn.get("blip_caption") else ""
        places[turn["dia_id"]] = texts.setdefault(f"{turn['speaker']}: {turn['text']}{seen}", len(texts))
    asked: list[tuple[str, frozenset[int]]] = []
    for each in whole["qa"]:
        cited = {turn for one in each.get("evidence") or () for turn in _TURN.findall(str(one))}
        if cited and cited <= places.keys():
            asked.append((each["question"], frozenset(places[turn] for turn in cited)))
    return Talk(tuple(texts), tuple(question for question, _ in asked), tuple(evidence for _, evidence in asked))


# --- environments ------------------------------------------------------------------------------------------------
def environment(name: str, tell: Callable[[str], None]) -> Path:
    """The Python of a peer's environment, made if need be. Raises DataMissing with the reason it can't be."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "memd-bench" / name
    python, stamp = cache / "bin" / "python", cache / "installed"
    if stamp.exists():
        return python
    tell(f"peers/{name}: installing {', '.join(PACKAGES[name]) or 'nothing'}")
    venv.create(cache, with_pip=bool(PACKAGES[name]), clear=True)
    if PACKAGES[name]:
        command = [str(python), "-m", "pip", "install", "--quiet", "--prefer-binary", *PACKAGES[name]]
        try:
            done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=INSTALL_S)
        except subprocess.TimeoutExpired as error:
            raise DataMissing(f"{name} was not installed within {INSTALL_S:.0f} s") from error
        if done.returncode:
            raise DataMissing(f"{name} can't be installed: {(done.stderr.strip() or '?').splitlines()[-1][:300]}")
    stamp.touch()
    return python


def _versions(python: Path, name: str) -> str:
    """The versions of what was installed by name."""
    code = "import sys, importlib.metadata as m; print(', '.join(f'{p} {m.version(p)}' for p in sys.argv[1:]))"
    done = subprocess.run([str(python), "-c", code, *PACKAGES[name]], capture_output=True, text=True, check=False)
    return done.stdout.strip()


# --- phases ------------------------------------------------------------------------------------------------------
class Work(msgspec.Struct, frozen=True):
    """What a driver reads: texts, questions, and a file with the vectors of both, in that order."""

    texts: Sequence[str]
    questions: Sequence[str]
    vectors: str
    dimension: int


@contextmanager
def _work(talk: Talk) -> Generator[Path]:
    with TemporaryDirectory(prefix="memd-bench-") as folder, empty_home() as (_, surroundings):
        texts, vectors, path = Path(folder) / "texts.json", Path(folder) / "vectors", Path(folder) / "work.json"
        texts.write_bytes(msgspec.json.encode([*talk.texts, *talk.questions]))
        told = json.loads(offline(surroundings, "embed-texts", str(texts), str(vectors)))
        path.write_bytes(msgspec.json.encode(Work(talk.texts, talk.questions, str(vectors), told["dimension"])))
        yield path


def _driven(python: Path, name: str, phase: str, folder: Path, work: Path) -> subprocess.Popen[str]:
    driver = Path(__file__).with_name("driver.py")
    command = [str(python), "-P", str(driver), name, phase, str(folder), str(work)]
    surroundings = {**os.environ, "ANONYMIZED_TELEMETRY": "False", "DO_NOT_TRACK": "1", "HOME": str(folder)}
    return subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=surroundings
    )


def _asked(python: Path, name: str, phase: str, folder: Path, work: Path) -> dict[str, Any]:
    """The last thing a driver says. Raises Unavailable with the reason it gave."""
    process = _driven(python, name, phase, folder, work)
    try:
        out, errors = process.communicate(timeout=RUN_S)
    except subprocess.TimeoutExpired as error:
        process.kill()
        raise Unavailable(f"{name} took longer than {RUN_S:.0f} s") from error
    lines = out.splitlines()
    if process.returncode or not lines:
        raise Unavailable(f"{name} failed: {(errors.strip() or '?').splitlines()[-1][:300]}")
    return json.loads(lines[-1])


def _writers(python: Path, name: str, folder: Path, work: Path, count: int, most: int) -> tuple[set[int], int, float]:
    """So many processes that write at once; each killed after `most` acknowledgements: texts acknowledged, writers
    that never got one, and seconds."""
    processes = [_driven(python, name, "write", folder, work) for _ in range(count)]
    acknowledged: set[int] = set()
    alive = [process for process in processes if process.stdout and process.stdout.readline()]
    for process in alive:
        assert process.stdin
        process.stdin.write("go\n")
        process.stdin.flush()
    begin, lost = time.perf_counter(), count - len(alive)
    for process in alive:
        own = 0
        assert process.stdout
        for line in process.stdout:
            told = json.loads(line)
            if "acknowledged" in told:
                acknowledged.add(told["acknowledged"])
                own += 1
            if own >= most:
                break
        lost += own == 0
    seconds = time.perf_counter() - begin
    for process in processes:
        process.kill()
        process.wait()
    return acknowledged, lost, seconds


def _peer(name: str, setting: Setting) -> Part:
    found = talks(setting)
    python = Path(sys.executable) if name == "memd" else environment(name, setting.tell)
    measured: list[Measured] = []
    for number, talk in enumerate(found):
        setting.tell(f"peers/{name}: conversation {number + 1} of {len(found)}")
        if name == "memd":
            measured.append(msgspec.convert(measured_by_memd(talk.texts, talk.questions), Measured))
            continue
        with _work(talk) as work, TemporaryDirectory(prefix="memd-bench-") as folder:
            measured.append(msgspec.convert(_asked(python, name, "measure", Path(folder), work), Measured))
    setting.tell(f"peers/{name}: a kill, and eight writers")
    lost, of, rate, shut_out = (
        acknowledged_by_memd(found[0].texts) if name == "memd" else _killed(python, name, found[0])
    )
    recall = _recall(found, measured)
    writes = [each for one in measured for each in one.writes_ms]
    reads = [each for one in measured for each in one.reads_ms]
    figures = (
        recall,
        Figure(name="write, p50", value=percentile(writes, 50), unit="ms", samples=len(writes)),
        Figure(name="write, p99", value=percentile(writes, 99), unit="ms", samples=len(writes)),
        Figure(name="recall, p50", value=percentile(reads, 50), unit="ms", samples=len(reads)),
        Figure(name="recall, p99", value=percentile(reads, 99), unit="ms", samples=len(reads)),
        Figure(name="memory, at most", value=max(each.memory_bytes for each in measured) / 1e6, unit="MB"),
        Figure(name="acknowledged writes lost by SIGKILL", value=lost, samples=of),
        Figure(name=f"{WRITERS} writers at once", value=rate, unit="/s", samples=WRITERS),
        Figure(name="  of which could not write", value=shut_out, samples=WRITERS),
    )
    notes = (_versions(python, name),) if PACKAGES[name] else ()
    plot = Plot(title=f"{name}: accuracy and latency", x="recall, p50 in ms", y="recall@10", scattered=True, log_x=True,
                series={name: ((percentile(reads, 50), recall.value),)})  # fmt: skip
    shows_not = "a power cut; peers run inside of the asking process, memd is asked over its socket"
    return Part(figures=figures, notes=notes, plots=(plot,), shows_not=shows_not)


def _recall(found: Sequence[Talk], measured: Sequence[Measured]) -> Figure:
    """Share of the evidence among the first ten, over all questions; the interval is that of its turns."""
    right = total = 0
    for talk, one in zip(found, measured, strict=True):
        place = {text: at for at, text in enumerate(talk.texts)}
        for evidence, texts in zip(talk.evidence, one.found, strict=True):
            right += len(evidence & {place[text] for text in texts[:10] if text in place})
            total += len(evidence)
    return share("evidence recall@10", right, total)


def _killed(python: Path, name: str, talk: Talk) -> tuple[int, int, float, int]:
    """Acknowledged writes that a kill lost, of how many; writes a second of eight at once, and how many can't write."""
    with _work(talk) as work, TemporaryDirectory(prefix="memd-bench-") as folder:
        acknowledged, _, _ = _writers(python, name, Path(folder), work, 1, KILL_AFTER)
        held = set(_asked(python, name, "held", Path(folder), work)["held"])
    few = msgspec.structs.replace(talk, texts=talk.texts[:EACH])
    with _work(few) as work, TemporaryDirectory(prefix="memd-bench-") as folder:
        _, shut_out, seconds = _writers(python, name, Path(folder), work, WRITERS, 1_000_000)
    return len(acknowledged - held), len(acknowledged), (WRITERS - shut_out) * EACH / seconds, shut_out


def measures() -> dict[str, Measure]:
    """A part for each peer, memd first."""
    return {name: _named(name) for name in PACKAGES}


def _named(name: str) -> Measure:
    measure = partial(_peer, name)
    measure.__doc__ = f"{name} on LoCoMo turns: the same texts, questions and vectors, a fresh store a conversation."
    return measure
