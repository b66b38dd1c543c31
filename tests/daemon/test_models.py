"""Another model: embedded in the background, said so, no answer empty meanwhile, and a kill costs nothing (P-14)."""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import msgspec
import pytest

from memd.daemon.services.distillation.model_selection import FILE
from memd.models import registry
from memd.protocol.errors import ModelMissing, by_code
from memd.protocol.event import Origin
from memd.protocol.recall import Recalled
from memd.protocol.reply import JobState
from memd.protocol.request import Remember
from tests.conftest import FAULT_ROUNDS, RunningDaemon
from tests.models.second_model import make_model, rename_model

PATIENCE_S = 60.0
SAID = (
    "We keep the build logs for thirty days.",
    "My daughter is afraid of thunderstorms.",
    "The orders service stores its data in Postgres.",
)
QUESTION = "Which database holds purchases?"
"""Shares no word with what was said: the vectors alone find it."""

FILLED = 300


def wait_for(done: Callable[[], Any]) -> Any:
    end = time.monotonic() + PATIENCE_S
    while not (found := done()):
        assert time.monotonic() < end, "it did not come"
        time.sleep(0.01)
    return found


def remember(daemon: RunningDaemon, *texts: str) -> None:
    origin = Origin(host="test", session="models")
    with daemon.client() as client:
        for text in texts:
            client.remember(Remember(text=text, turn=text, at="2026-01-01T00:00:00Z", origin=origin))
    daemon.settle()


def use(daemon: RunningDaemon, folder: Path | str) -> JobState:
    with daemon.client() as client:
        started = client.use_model(str(folder))
        state: JobState = wait_for(lambda: (now := client.job(started.id)).state != "running" and now)
    if state.problem:
        raise by_code(state.problem.code, state.problem.message, state.problem.hint)
    return state


def arrived(daemon: RunningDaemon, name: str) -> None:
    """Wait until this model searches, and every record has its vector."""

    def is_there() -> bool:
        told = client.status()
        kept = msgspec.json.decode((daemon.places.data / FILE).read_bytes())
        return told.reembedding is None and told.model.startswith(name) and kept["complete"] == told.model

    with daemon.client() as client:
        wait_for(is_there)


def recall(daemon: RunningDaemon, query: str) -> Recalled:
    with daemon.client() as client:
        return client.recall(query)


def workers(daemon: RunningDaemon, folder: Path) -> list[int]:
    """The worker processes of this daemon that embed with the model of that folder."""
    assert daemon.process is not None
    found: list[int] = []
    for task in Path(f"/proc/{daemon.process.pid}/task").iterdir():
        with suppress(OSError):  # a thread or a child that has just ended
            for child in (task / "children").read_text().split():
                words = Path(f"/proc/{child}/cmdline").read_bytes().split(b"\0")
                found += (
                    [int(child)]
                    if b"memd.daemon.services.distillation.worker" in words and os.fsencode(folder) in words
                    else []
                )
    return found


@contextmanager
def held(daemon: RunningDaemon, folder: Path) -> Iterator[None]:
    """While the worker with that model stands still: it is stopped as soon as it appears, before it can have loaded."""
    pid = wait_for(lambda: workers(daemon, folder))[0]
    os.kill(pid, signal.SIGSTOP)
    yield
    os.kill(pid, signal.SIGCONT)


def test_a_model_of_another_dimension_takes_over_and_the_way_back_embeds_nothing_P14(
    daemon: RunningDaemon, tmp_path: Path
) -> None:
    remember(daemon, *SAID)
    second = make_model(tmp_path / "second", "second", 128)
    assert use(daemon, second).report["to_embed"] == len(SAID)
    arrived(daemon, "second")
    found = recall(daemon, QUESTION)
    assert found.hits[0].record.content == SAID[2] and found.hits[0].parts["cosine"] > 0 and not found.note
    remember(daemon, "The printer hangs on Fridays.")
    assert recall(daemon, "printer").hits[0].parts["cosine"] > 0, "what is new has a vector of the model that searches"
    assert use(daemon, "default").report["to_embed"] == 1, "those of before are still there"
    arrived(daemon, "minilm")
    assert use(daemon, second).report["to_embed"] == 0
    arrived(daemon, "second")
    daemon.terminate()
    daemon.start()
    arrived(daemon, "second")
    with daemon.client() as client:
        told = client.models()
        assert [each.searches for each in told.models] == [False, True]
        assert told.models[1].folder == str(second) and told.models[1].dimension == 128


def test_the_present_model_answers_until_the_coming_one_is_complete_P14(daemon: RunningDaemon, tmp_path: Path) -> None:
    remember(daemon, *SAID)
    second = rename_model(tmp_path / "second", "second")
    use(daemon, second)
    with held(daemon, second):
        found = recall(daemon, QUESTION)
        assert found.hits[0].record.content == SAID[2] and not found.note
        with daemon.client() as client:
            told = client.status()
            assert told.model == registry.info().id and told.reembedding is not None
            assert (told.reembedding.done, told.reembedding.total) == (0, len(SAID))
            assert not told.reembedding.by_words
            assert [(each.searches, each.wanted) for each in client.models().models] == [(True, False), (False, True)]
            origin = Origin(host="test", session="models")
            said = "The printer hangs on Fridays."
            client.remember(Remember(text=said, turn="p", at="2026-01-01T00:00:00Z", origin=origin))
            assert client.recall("printer").hits[0].record.content == said
    arrived(daemon, "second")
    assert recall(daemon, QUESTION).hits[0].record.content == SAID[2]


def test_where_the_model_before_is_gone_words_answer_and_the_answer_says_so_P14(
    home: dict[str, str], tmp_path: Path
) -> None:
    """As after an upgrade of the package whose trunk is another one: the folder holds other files than before."""
    folder = make_model(tmp_path / "model", "first", 128)
    daemon = RunningDaemon(home)
    daemon.start()
    remember(daemon, *SAID)
    use(daemon, folder)
    arrived(daemon, "first")
    daemon.terminate()
    make_model(folder, "second", 256)
    daemon.start()
    with held(daemon, folder):
        found = recall(daemon, "orders service Postgres")
        assert (
            found.hits[0].record.content == SAID[2]
            and "0 of 3 records have a vector of the current model" in found.note
        )
        with daemon.client() as client:
            told = client.status().reembedding
        assert told is not None and told.by_words and told.model.startswith("second")
    arrived(daemon, "second")
    found = recall(daemon, QUESTION)
    assert found.hits[0].record.content == SAID[2] and not found.note
    daemon.terminate()


@pytest.mark.slow
@pytest.mark.parametrize("round_", range(FAULT_ROUNDS))
@pytest.mark.parametrize("point", ["model:embedded:2", "model:swapped:1"])
def test_sigkill_on_the_way_costs_nothing_P14(home: dict[str, str], tmp_path: Path, point: str, round_: int) -> None:
    command = [sys.executable, "-m", "memd.daemon", "fill-home", str(FILLED)]
    subprocess.run(command, env=home, check=True, capture_output=True)
    second = make_model(tmp_path / "second", "second", 128)
    daemon = RunningDaemon({**home, "MEMD_FAIL": point})
    daemon.start()
    use(daemon, second)
    assert daemon.process is not None and daemon.process.wait(PATIENCE_S) == -signal.SIGKILL
    daemon = RunningDaemon(home)
    daemon.start()
    assert recall(daemon, "bucket for exports").hits
    arrived(daemon, "second")
    found = recall(daemon, "bucket for exports").hits
    assert found and all(hit.parts["cosine"] for hit in found)
    daemon.terminate()


def test_a_folder_that_is_no_model_is_refused_with_the_reason(daemon: RunningDaemon, tmp_path: Path) -> None:
    remember(daemon, *SAID)
    second = make_model(tmp_path / "second", "second", 128)
    with (second / "trunk.onnx").open("r+b") as file:
        file.seek(1000)
        file.write(b"damage")
    with pytest.raises(ModelMissing, match=r"trunk\.onnx: sha256"):
        use(daemon, second)
    with pytest.raises(ModelMissing, match=r"manifest\.json"):
        use(daemon, tmp_path)
    with daemon.client() as client:
        assert client.status().model == registry.info().id and client.status().reembedding is None
    assert recall(daemon, QUESTION).hits


@pytest.mark.slow
def test_a_chosen_folder_that_is_gone_at_a_start_is_told_and_memd_answers(
    daemon: RunningDaemon, tmp_path: Path
) -> None:
    remember(daemon, *SAID)
    second = make_model(tmp_path / "second", "second", 128)
    use(daemon, second)
    arrived(daemon, "second")
    daemon.terminate()
    second.rename(tmp_path / "away")
    daemon.start()
    arrived(daemon, "minilm")
    assert recall(daemon, QUESTION).hits
    with daemon.client() as client:
        assert any("cannot use the chosen model" in trouble for trouble in client.status().troubles)
    daemon.terminate()
    (tmp_path / "away").rename(second)
    daemon.start()
    arrived(daemon, "second")
    shutil.rmtree(second)


@pytest.mark.slow
def test_a_forgotten_record_leaves_no_vector_of_any_model_T10(daemon: RunningDaemon, tmp_path: Path) -> None:
    remember(daemon, *SAID)
    second = make_model(tmp_path / "second", "second", 128)
    use(daemon, second)
    arrived(daemon, "second")
    gone = recall(daemon, "daughter").hits[0].record.id
    with daemon.client() as client:
        started = client.forget([gone])
        assert wait_for(lambda: (now := client.job(started.id)).state != "running" and now).state == "done"
    use(daemon, "default")
    arrived(daemon, "minilm")
    daemon.terminate()
    code = (
        "import lmdb, sys; from memd.daemon.storage.lmdb_environment import Environment; from pathlib import Path\n"
        "e = Environment(Path(sys.argv[1]), ('meta', 'vectors'), durable=True)\n"
        "with e.read() as t: print(t.stat(e.db('vectors'))['entries'])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(daemon.places.data / "vectors")], capture_output=True, text=True, check=True
    )
    assert int(done.stdout) == 2 * (len(SAID) - 1)
