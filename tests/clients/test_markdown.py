"""Markdown: headings give context, each item or paragraph is a turn, nothing is the user's word, no line is lost."""

import os
from pathlib import Path

import pytest

from memd.clients.importers import markdown
from memd.clients.importers.agent_files import find_markdown, instructions
from memd.clients.importers.transcript import Transcript
from memd.protocol.errors import NotFound, StoreError
from memd.protocol.event import Wrote, text, trust

SAMPLE = Path(__file__).parents[1] / "data" / "CLAUDE.md"
KEY = b"k" * 32
SHARED = Path(__file__).resolve().parents[2].parent / "shared"
DOCUMENTS = [*sorted(Path(__file__).parents[2].glob("docs/**/*.md")), *sorted((SHARED / "design").glob("*.md"))]


def read(path: Path, times: dict[str, str] | None = None) -> Transcript:
    """What the importer makes of a file."""
    transcript = markdown.read(path, KEY, times or {})
    assert transcript.account.is_complete
    return transcript


def words(folder: Path, content: str) -> list[str]:
    """The turns of a document with this content."""
    path = folder / "notes.md"
    path.write_text(content)
    return [text(event) for session in read(path).sessions for event in session.events]


def test_headings_and_lead_stand_above_each_item_and_paragraph() -> None:
    (session,) = read(SAMPLE).sessions
    assert [text(event) for event in session.events] == [
        "# Orchard\nThe harvest table lives in SQLite, because one process writes it.",
        "# Testing\nBefore every commit:\n"
        "- Run `make test`, never `pytest` alone:\n  the fixtures come from the Makefile.",
        "# Testing\nBefore every commit:\n- Integration tests need Docker.\n  - On a laptop, start it by hand.",
        "# Testing\n## Slow tests\n1. Mark slow tests with `@slow`.",
        "# Testing\n## Slow tests\n2. Keep each below a minute.",
        "# Style\nWe indent with tabs.",
        "# Style\nWe write British English,\nalso in comments.",
    ]
    assert session.is_all
    assert session.origin.title == "Orchard"
    assert session.origin.document == f"markdown:{SAMPLE.resolve()}"


def test_every_line_is_accounted_for() -> None:
    account = read(SAMPLE).account
    assert account.lines == len(SAMPLE.read_text().splitlines())
    assert account.malformed == ()
    assert {"front matter", "heading", "comment", "code", "table", "include", "blank line"} <= set(account.noise)


@pytest.mark.skipif(not DOCUMENTS, reason="no documents beside the tests")
@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_a_real_document(path: Path) -> None:
    transcript = read(path)
    assert transcript.account.lines == len(path.read_text().split("\n")) - path.read_text().endswith("\n")
    (session,) = transcript.sessions
    turns = [event.turn for event in session.events]
    assert len(set(turns)) == len(turns) > 0
    assert read(path) == transcript


def test_a_document_says_where_and_is_never_the_users_word_W5(tmp_path: Path) -> None:
    path = tmp_path / "AGENTS.md"
    path.write_text("# A\n## B\n- c d e\n")
    (event,) = read(path).sessions[0].events
    assert isinstance(event, Wrote)
    assert trust(event) == "document"
    assert event.path == f"{path.resolve()}#A > B"


def test_a_turn_keeps_its_name_and_time_where_others_change_W13(tmp_path: Path) -> None:
    path = tmp_path / "notes.md"
    path.write_text("# A\n\n- one two\n- three four\n- one two\n")
    first = read(path).sessions[0].events
    assert len({event.turn for event in first}) == 3
    path.write_text("# A\n\n- new words\n- three four\n- one two\n")
    os.utime(path, (1, 1))
    after = read(path, {event.turn: event.at for event in first}).sessions[0].events
    assert [event in first for event in after] == [False, True, True]


def test_a_name_tells_nobody_the_words_T10(tmp_path: Path) -> None:
    path = tmp_path / "notes.md"
    path.write_text("a short secret\n")
    here, there = (markdown.read(path, key * 32, {}).sessions[0].events[0].turn for key in (b"a", b"b"))
    assert here != there


@pytest.mark.parametrize(
    ("content", "turns"),
    [
        ("", []),
        ("one line", ["one line"]),
        ("a b c\nd e f\n\ng h i\n", ["a b c\nd e f", "g h i"]),
        ("- a\n\n  still a\n- b\n", ["- a\n\n  still a", "- b"]),
        ("- a\n\nno item\n", ["- a", "no item"]),
        ("Rules:\n\n- a\n- b\n\nAlone:\n", ["Rules:\n- a", "Rules:\n- b", "Alone:"]),
        ("Do this:\n```\nx\n```\n", ["Do this:"]),
        ("Title\n=====\n\ntext here\n", ["# Title\ntext here"]),
        ("a\r\nb\r\n", ["a\nb"]),
        ("\ufeff# H\n* x\n", ["# H\n* x"]),
        ("```\nnever closed\n- x\n", []),
        ("a:\n| x | y |\n|---|---|\n| 1 | 2 |\nright below\n", ["a:", "right below"]),
        ("a b\n\n    code by indentation\n\nc d\n", ["a b", "c d"]),
        ("---\na b\n", ["a b"]),
        ("- a\n- \n- b <!-- c -->\n  <!-- gone -->\n", ["- a", "- b <!-- c -->"]),
        ("a\n\n<div>\nb\n</div>\n", ["a", "<div>\nb\n</div>"]),
        ("[x]: http://y\n\n> q\n>\n> r\n", ["> q\n>\n> r"]),
        ("規則：\n- テストは必ず実行する\n", ["規則：", "- テストは必ず実行する"]),
    ],
)
def test_forms(tmp_path: Path, content: str, turns: list[str]) -> None:
    assert words(tmp_path, content) == turns


def test_what_can_not_be_read_is_told(tmp_path: Path) -> None:
    path = tmp_path / "notes.md"
    path.write_bytes(b"caf\xe9\n")
    transcript = markdown.read(path, KEY, {})
    assert transcript.sessions == ()
    assert "save it as UTF-8" in transcript.account.malformed[0].reason
    with pytest.raises(StoreError, match="can't be read"):
        markdown.read(tmp_path / "gone.md", KEY, {})


def test_folders_are_searched_without_other_peoples(tmp_path: Path) -> None:
    for name in ("a.md", "docs/b.MD", "node_modules/x/c.md", ".hidden/d.md", "e.txt"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / "AGENTS.md").symlink_to(tmp_path / "a.md")
    assert [path.name for path in find_markdown([tmp_path])] == ["AGENTS.md", "b.MD"]
    with pytest.raises(NotFound):
        find_markdown([tmp_path / "gone"])


def test_links_out_of_a_named_folder_are_listed_and_not_followed(tmp_path: Path) -> None:
    outside, named = tmp_path / "outside", tmp_path / "named"
    for folder in (outside, named / "docs"):
        folder.mkdir(parents=True)
    (outside / "private.md").write_text("The door code is on the fridge.\n")
    (named / "a.md").write_text("We use tabs.\n")
    (named / "docs/p.md").symlink_to(outside / "private.md")
    (named / "chain.md").symlink_to(named / "docs/p.md")
    (named / "folder").symlink_to(outside)
    (named / "inside.md").symlink_to("a.md")
    os.mkfifo(named / "pipe.md")
    found = find_markdown([named])
    assert list(found) == [named / "a.md"]
    assert sorted(found.outside) == [named / "chain.md", named / "docs/p.md", named / "folder"]
    assert list(find_markdown([named / "docs/p.md"])) == [named / "docs/p.md"]  # the user named the link itself
    both = find_markdown([named, outside])
    assert len(both) == 2 and all("private" in path.name or path.name == "a.md" for path in both)


def test_instructions_of_the_user_and_of_the_repository(tmp_path: Path) -> None:
    home, repository = tmp_path / "home", tmp_path / "orchard"
    for path in (home / ".claude/CLAUDE.md", repository / "AGENTS.md", repository / "api/CLAUDE.md"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    (repository / ".git").mkdir()
    (tmp_path / "CLAUDE.md").touch()
    found = instructions({"HOME": str(home)}, repository / "api")
    assert [str(path.relative_to(tmp_path)) for path in found] == [
        "home/.claude/CLAUDE.md",
        "orchard/api/CLAUDE.md",
        "orchard/AGENTS.md",
    ]


def test_what_an_agent_reads_everywhere_goes_with_the_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    cwds: dict[str, str] = {}
    for name in (".claude/CLAUDE.md", "orchard/CLAUDE.md", "notes.md"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("a b c")
        cwds[name] = read(path).sessions[0].origin.cwd
    assert cwds == {".claude/CLAUDE.md": "", "orchard/CLAUDE.md": str(tmp_path / "orchard"), "notes.md": ""}
