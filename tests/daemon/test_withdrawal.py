"""A document that is imported again after a change: what it says no longer is believed no more (W13, T1)."""

import os
from pathlib import Path
from typing import Any

from memd.clients.importers import markdown
from memd.clients.importers.cursors import Cursors
from memd.clients.importers.delivery import ImportSource, hand_over

BEFORE = """# Orchard

## Testing
- Always run `make test` before a commit, because the hooks do not.
- We decided to run integration tests in Docker, because the server differs from a laptop.

## Storage
We decided to keep the harvest table in SQLite because one process writes it.
"""
AFTER = BEFORE.replace(
    "- We decided to run integration tests in Docker, because the server differs from a laptop.\n", ""
).replace("SQLite because one process writes it", "PostgreSQL because several processes write it")
HOUR = 1_772_600_000


class Notes:
    """A document and the memory it is imported into."""

    def __init__(self, daemon: Any, folder: Path) -> None:
        self.daemon, self.path = daemon, folder / "NOTES.md"
        self.cursors = Cursors(daemon.places.state)
        self.hour = 0

    def put(self, content: str) -> dict[str, int]:
        """Write it, import it, wait until it is distilled; what became of its turns."""
        self.hour += 1
        self.path.write_text(content)
        at = HOUR + 3600 * self.hour
        os.utime(self.path, (at, at))
        return self.again()

    def again(self) -> dict[str, int]:
        """Import it as it is."""
        cursors = self.cursors

        def read(_: object) -> Any:
            cursor = cursors.get(self.path)
            return markdown.read(self.path, cursors.key(), cursor.times if cursor else {})

        with self.daemon.client() as client:
            (sent,) = hand_over(client, ImportSource("markdown", self.path, read), cursors).sessions
        self.daemon.settle()
        return {name: getattr(sent, name) for name in ("accepted", "duplicate", "changed", "vanished")}

    def believed(self) -> dict[str, str]:
        """Each record's statement with its status."""
        with self.daemon.client() as client:
            return {each.content: each.status for each in client.list(document=self.document, limit=1000).records}

    @property
    def document(self) -> str:
        return f"markdown:{self.path.resolve()}"


def about(believed: dict[str, str], word: str) -> set[str]:
    """The statuses of what is said of something."""
    return {status for content, status in believed.items() if word in content}


def test_what_a_changed_file_says_no_longer_is_retired_and_what_it_says_anew_is_learnt_W13(
    daemon: Any, tmp_path: Path
) -> None:
    notes = Notes(daemon, tmp_path)
    assert notes.put(BEFORE) == {"accepted": 3, "duplicate": 0, "changed": 0, "vanished": 0}
    first = notes.believed()
    assert about(first, "SQLite") == about(first, "Docker") == {"quarantined"}
    assert notes.put(AFTER) == {"accepted": 1, "duplicate": 1, "changed": 0, "vanished": 2}
    after = notes.believed()
    assert about(after, "SQLite") == about(after, "Docker") == {"retired"}
    assert about(after, "PostgreSQL") == {"quarantined"}
    assert about(after, "make test") == about(first, "make test")
    with daemon.client() as client:
        assert not client.recall("Docker integration tests", pools=("personal",), cwd=str(tmp_path)).turns


def test_words_that_come_back_are_believed_again_T1(daemon: Any, tmp_path: Path) -> None:
    notes = Notes(daemon, tmp_path)
    notes.put(BEFORE)
    first = notes.believed()
    notes.put(AFTER)
    assert notes.put(BEFORE)["changed"] == 2
    after = notes.believed()
    assert {content: status for content, status in after.items() if content in first} == first
    assert about(after, "PostgreSQL") == {"retired"}


def test_the_same_file_again_writes_no_operation_W13(daemon: Any, tmp_path: Path) -> None:
    notes = Notes(daemon, tmp_path)
    notes.put(BEFORE)
    notes.put(AFTER)
    with daemon.client() as client:
        before = client.status()
    os.utime(notes.path, (1, 1))  # touched, and nothing more
    assert notes.again() == {"accepted": 0, "duplicate": 2, "changed": 0, "vanished": 0}
    with daemon.client() as client:
        after = client.status()
    assert (after.journal_seq, after.archive_seq) == (before.journal_seq, before.archive_seq)


def test_without_cursors_what_vanished_is_found_by_the_records_that_rest_on_it(daemon: Any, tmp_path: Path) -> None:
    notes = Notes(daemon, tmp_path)
    notes.put(BEFORE)
    for cursor in (daemon.places.state / "imports").glob("*.json"):
        cursor.unlink()
    assert notes.put(AFTER)["vanished"] == 2
    assert about(notes.believed(), "Docker") == {"retired"}


def test_a_rebuilt_memory_believes_the_same_U3(daemon: Any, tmp_path: Path) -> None:
    notes = Notes(daemon, tmp_path)
    for content in (BEFORE, AFTER, BEFORE):
        notes.put(content)
    before = notes.believed()
    with daemon.client() as client:
        job = client.verify()
        while job.state == "running":
            job = client.job(job.id)
    assert job.report["intact"], job.report
    assert notes.believed() == before
