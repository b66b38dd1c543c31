"""What the stores take on disk, while files come and go beside the question (U6)."""

import threading
from pathlib import Path

from memd.daemon.stores import size_of


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
