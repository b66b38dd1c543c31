"""What the stores take on disk and in memory, while files come and go beside the question (U6, P-2)."""

import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from memd.daemon.projections.stores import size_of
from memd.daemon.storage.lmdb_environment import Environment, evict_pages


def test_files_that_vanish_while_we_look_do_not_end_a_status_U6(tmp_path: Path) -> None:
    (tmp_path / "stays").write_bytes(b"12345")
    stop = threading.Event()

    def churn() -> None:
        while not stop.is_set():
            for number in range(50):
                (tmp_path / str(number)).touch()
            for number in range(50):
                (tmp_path / str(number)).unlink()

    churning = threading.Thread(target=churn)
    churning.start()
    try:
        assert {size_of(tmp_path) for _ in range(300)} == {5}
    finally:
        stop.set()
        churning.join()


@pytest.fixture
def disk_folder() -> Iterator[Path]:
    """A folder on a disk: pages of a file that lies in memory can't leave it."""
    with TemporaryDirectory(prefix="memd-size-", dir="/var/tmp") as folder:
        yield Path(folder)


@pytest.mark.skipif(sys.platform != "linux", reason="the system does not say which pages are resident")
def test_pages_that_were_read_leave_memory_and_are_found_again_P2(disk_folder: Path) -> None:
    def resident() -> int:
        fields = [line.split() for line in Path("/proc/self/status").read_text().splitlines()]
        return next(int(field[1]) * 1024 for field in fields if field[0] == "RssFile:")

    environment = Environment(disk_folder / "rows", ("rows",), durable=False)
    environment.write(
        lambda transaction: [
            transaction.put(n.to_bytes(4), bytes(1000), db=environment.db("rows")) for n in range(20_000)
        ]
    )

    def read() -> int:
        with environment.read() as transaction:
            return sum(len(value) for _, value in transaction.cursor(environment.db("rows")).iternext())

    assert read() == 20_000_000
    before = resident()
    evict_pages(disk_folder)
    assert before - resident() > 15_000_000
    assert read() == 20_000_000
    environment.close()
