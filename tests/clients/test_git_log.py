"""Commit messages as documents: order, offset, author, trailers, and what is no repository."""

import subprocess
from pathlib import Path

import pytest

from memd.clients.importers import git_log
from memd.protocol.errors import InvalidRequest
from memd.protocol.event import Wrote

AUTHOR = ("-c", "user.name=Ada Müller", "-c", "user.email=ada@example.org", "-c", "commit.gpgsign=false")


def git(folder: Path, *arguments: str, at: str = "2026-03-04T18:30:00+09:00") -> str:
    environment = {"PATH": "/usr/bin:/bin:/usr/local/bin", "GIT_AUTHOR_DATE": at, "GIT_COMMITTER_DATE": at}
    command = ["git", "-C", str(folder), *AUTHOR, *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True, env=environment).stdout.strip()


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "orchard"
    folder.mkdir()
    git(folder, "init", "-q", "-b", "main")
    git(folder, "commit", "-q", "--allow-empty", "-m", "Start\n\nWe use SQLite.\n\nSigned-off-by: Ada <a@b.c>")
    return folder


def test_commits_are_what_a_document_says(repository: Path) -> None:
    git(repository, "commit", "-q", "--allow-empty", "-m", "Validate variety: in the schema")
    transcript = git_log.read(repository)
    (session,) = transcript.sessions
    first, second = session.events
    root = git(repository, "rev-list", "--max-parents=0", "HEAD")
    assert first == Wrote(
        turn=root, at="2026-03-04T18:30:00+09:00", text="Start\n\nWe use SQLite.", author="Ada Müller"
    )
    assert isinstance(second, Wrote)
    assert second.text == "Validate variety: in the schema"
    assert session.origin.document == f"git:{root}"
    assert session.origin.cwd == str(repository)
    assert transcript.account.is_complete
    assert git_log.read(repository) == transcript


@pytest.mark.parametrize(
    ("setting", "mail_map", "stated", "own"),
    [
        ("", "", (), False),
        ("Ada@Example.org", "", (), True),
        ("ada@work.example", "", (), False),
        ("ada@work.example", "Ada <ada@work.example> <ada@example.org>", (), True),
        ("ada@work.example", "Ada <ada@work.example> # <ada@example.org>", (), False),
        ("", "", ("ada@example.org",), True),
    ],
)
def test_a_commit_is_own_by_the_users_addresses_alone_P19(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    setting: str, mail_map: str, stated: tuple[str, ...], own: bool,
) -> None:  # fmt: skip
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    (repository / ".mailmap").write_text("Eve <ada@work.example> <ada@example.org>\n")  # anyone may commit this file
    if setting:
        git(repository, "config", "user.email", setting)
    if mail_map:
        (tmp_path / "mailmap").write_text(mail_map + "\n")
        git(repository, "config", "mailmap.file", str(tmp_path / "mailmap"))
    (session,) = git_log.read(repository, own_addresses=stated).sessions
    assert [event.own for event in session.events if isinstance(event, Wrote)] == [own]


def test_the_newest_are_read_oldest_first(repository: Path) -> None:
    for n in range(5):
        git(repository, "commit", "-q", "--allow-empty", "-m", f"Change {n}")
    (session,) = git_log.read(repository, newest=2).sessions
    assert [event.text for event in session.events if isinstance(event, Wrote)] == ["Change 3", "Change 4"]


def test_merges_and_empty_messages_are_noise(repository: Path) -> None:
    git(repository, "checkout", "-q", "-b", "side")
    git(repository, "commit", "-q", "--allow-empty", "--allow-empty-message", "-m", "")
    git(repository, "checkout", "-q", "main")
    git(repository, "merge", "-q", "--no-ff", "side", "-m", "Merge branch 'side'")
    transcript = git_log.read(repository)
    assert (transcript.account.taken, transcript.account.noise) == (1, {"merge": 1, "no message": 1})
    assert transcript.account.is_complete


@pytest.mark.parametrize(
    ("message", "kept"),
    [
        ("Subject\n\nBody.\n\nCo-authored-by: B <b@c>\nReviewed-by: C <c@d>", "Subject\n\nBody."),
        ("Subject\n\nWhy: because.\nCc: d@e", "Subject\n\nWhy: because."),
        ("fixes: the whole message", "fixes: the whole message"),
        ("Subject\n\nSigned-off-by: A <a@b>\n\nBody after.", "Subject\n\nSigned-off-by: A <a@b>\n\nBody after."),
        ("Subject\r\n\r\nChange-Id: I1\r\n", "Subject"),
    ],
)
def test_trailers(message: str, kept: str) -> None:
    assert git_log.without_trailers(message) == kept


def test_a_folder_inside_of_it_will_do_and_git_variables_do_not_mislead(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (repository / "src").mkdir()
    monkeypatch.setenv("GIT_DIR", "/nonexistent")
    assert git_log.read(repository / "src").path == str(repository)


def test_what_is_no_repository_is_told(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequest, match="not a git repository"):
        git_log.read(tmp_path)
    git(tmp_path, "init", "-q")
    with pytest.raises(InvalidRequest):
        git_log.read(tmp_path)
