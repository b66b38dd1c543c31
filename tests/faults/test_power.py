"""Power cuts: no acknowledged entry is lost, no corrupt state is served, whatever was not synced (U3, P-12)."""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import FAULT_ROUNDS
from tests.faults.disk import Call, Disk, read_trace
from tests.faults.power import Cut, cut, memory_folder
from tests.faults.recording import Recording, why_not

CUTS = 30 if FAULT_ROUNDS == 1 else 50 * FAULT_ROUNDS

pytestmark = [pytest.mark.slow, pytest.mark.skipif(bool(why_not()), reason=why_not() or "-")]


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Recording:
    """One recorded run for all tests here."""
    made = Recording(tmp_path_factory.mktemp("recording"))
    made.run()
    return made


@pytest.fixture
def scratch() -> Iterator[Path]:
    """A folder in memory, where there is one."""
    folder = Path(tempfile.mkdtemp(prefix="memd-power-", dir=memory_folder()))
    yield folder
    shutil.rmtree(folder)


def findings(recording: Recording, calls: list[Call], cuts: int, scratch: Path) -> list[Cut]:
    """The cuts after which something was wrong."""
    return [each for each in cut(calls, recording, cuts, seed=7, scratch=scratch) if each.found != "ok"]


def test_a_power_cut_anywhere_loses_nothing_acknowledged_P12(recording: Recording, scratch: Path) -> None:
    calls = list(read_trace(recording.trace.read_bytes()))
    assert len(recording.promises) > 50
    assert findings(recording, calls, CUTS, scratch) == []


def test_the_recording_holds_every_byte_of_the_stores(recording: Recording, scratch: Path) -> None:
    disk = Disk(str(recording.data))
    for call in read_trace(recording.trace.read_bytes()):
        disk.apply(call)
    disk.write(scratch / "now")
    for store in ("journal", "archive", "vectors"):
        replayed = (scratch / "now" / store / "data.mdb").read_bytes()
        assert replayed == (recording.data / store / "data.mdb").read_bytes()[: len(replayed)], store


def test_a_disk_that_lies_about_its_syncs_is_found_out(recording: Recording, scratch: Path) -> None:
    calls = [
        call._replace(kind="w") if call.kind == "W" else call
        for call in read_trace(recording.trace.read_bytes())
        if not (call.kind == "s" and call.one.endswith(b"data.mdb"))
    ]
    assert findings(recording, calls, 5, scratch)
