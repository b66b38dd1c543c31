"""Markdown: headings give context, each item or paragraph is a turn, nothing is the user's word, no line is lost."""

import os
from collections.abc import Sequence
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
        "# Testing\nBefore every commit:\n```\nmake test\n```",
        "# Testing\n## Slow tests\n1. Mark slow tests with `@slow`.",
        "# Testing\n## Slow tests\n2. Keep each below a minute.",
        "# Style\nWe indent with tabs.",
        "# Style\nWe write British English,\nalso in comments.",
    ]
    assert session.has_all == "everywhere"
    assert session.origin.title == "Orchard"
    assert session.origin.document == f"markdown:{SAMPLE.resolve()}"


def test_every_line_is_accounted_for() -> None:
    account = read(SAMPLE).account
    assert account.lines == len(SAMPLE.read_text().splitlines())
    assert account.malformed == ()
    assert {"front matter", "heading", "comment", "column names", "include", "blank line"} <= set(account.noise)


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
        ("Do this:\n```\nx = 1\n```\n", ["Do this:"]),
        ("Do this:\n```\nmake x\n```\n", ["Do this:\n```\nmake x\n```"]),
        ("Title\n=====\n\ntext here\n", ["# Title\ntext here"]),
        ("a\r\nb\r\n", ["a\nb"]),
        ("\ufeff# H\n* x\n", ["# H\n* x"]),
        ("```\nnever closed\n- x\n", []),
        ("a:\n| x | y |\n|---|---|\n| 1 | 2 |\nright below\n", ["a:", "x: 1; y: 2", "right below"]),
        ("a b\n\n    code(by, indentation);\n\nc d\n", ["a b", "c d"]),
        ("---\na b\n", ["a b"]),
        ("- a\n- \n- b <!-- c -->\n  <!-- gone -->\n", ["- a", "- b <!-- c -->"]),
        ("a\n\n<div>\nb\n</div>\n", ["a", "b"]),
        ("[x]: http://y\n\n> q\n>\n> r\n", ["q\n\nr"]),
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
    for name in ("tests/README.md", "tests/data/CLAUDE.md", "bench/samples/README.md"):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).touch()
    assert "tests/README.md" in {path.relative_to(tmp_path).as_posix() for path in find_markdown([tmp_path])}
    assert [path.name for path in find_markdown([tmp_path])] == ["AGENTS.md", "b.MD", "README.md"]
    assert [path.name for path in find_markdown([tmp_path / "tests" / "data"])] == ["CLAUDE.md"]
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


# --- structure --------------------------------------------------------------------------------------------------------
def parts(folder: Path, content: str, name: str = "README.md") -> list[tuple[str, str]]:
    """Form and text of each part of a document."""
    path = folder / name
    path.write_text(content)
    events = [event for session in read(path).sessions for event in session.events]
    return [(event.form, event.text) for event in events if isinstance(event, Wrote)]


def test_commands_keep_the_words_that_announce_them(tmp_path: Path) -> None:
    content = "# A\n## Tests\nUnit tests need no network:\n\n```sh\n$ pytest -q\n2 passed\n```\n\n    make e2e\n"
    assert parts(tmp_path, content) == [
        ("commands", "# Tests\nUnit tests need no network:\n```\npytest -q\n```"),
        ("commands", "# Tests\nUnit tests need no network:\n```\nmake e2e\n```"),
    ]
    assert parts(tmp_path, "```console\n$ make a\nmade it\n```\n") == [("commands", "```\nmake a\n```")]


@pytest.mark.parametrize(
    "code",
    [
        "```python\nprint(1)\n```",
        "```\nsrc/\n  main.py\n```",
        "```\nkey: value\n```",
        "```text\nmake a\n```",
        "```\n```",
    ],
)
def test_code_that_holds_no_commands_is_no_part(tmp_path: Path, code: str) -> None:
    assert parts(tmp_path, f"# A\n\n{code}\n") == []


def test_a_long_block_of_commands_is_divided_between_lines(tmp_path: Path) -> None:
    lines = [f"make target-number-{n} OPTION={'x' * 40}" for n in range(40)]
    found = [text for _, text in parts(tmp_path, "```sh\n" + "\n".join(lines) + "\n```\n")]
    assert len(found) > 1 and all(len(text) <= 500 for text in found)
    assert [line for text in found for line in text.split("\n")[1:-1]] == lines


def test_a_table_row_is_told_with_its_column_names(tmp_path: Path) -> None:
    content = "# A\n## Settings\nName | Default | Meaning\n--- | --- | ---\n`A_B` | | the port\n`make x y` | 2 |\n"
    assert parts(tmp_path, content) == [
        ("row", "# Settings\nName: `A_B`; Meaning: the port"),
        ("commands", "# Settings\nName: `make x y`; Default: 2"),
    ]


def test_the_first_paragraph_of_a_readme_is_the_purpose(tmp_path: Path) -> None:
    badge = "[![b](https://x.example/b.svg)](https://x.example)"
    content = f'<h1 align="center">A</h1>\n\n{badge}\n\nA sorts apples.\n\nAnd pears.\n'
    assert parts(tmp_path, content) == [("purpose", "# A\nA sorts apples."), ("", "# A\nAnd pears.")]
    assert parts(tmp_path, content, "notes.md")[0] == ("", "# A\nA sorts apples.")


def test_numbered_steps_with_commands_are_one_procedure(tmp_path: Path) -> None:
    steps = "1. Install it:\n\n   ```\n   make install\n   ```\n\n2. Start it.\n"
    ((form, text),) = parts(tmp_path, f"# A\n## Set-up\n\n{steps}")
    assert form == "commands" and "make install" in text and "2. Start it." in text
    assert [form for form, _ in parts(tmp_path, "# A\n\n1. Be kind.\n2. Be brief.\n")] == ["", ""]


def test_a_part_that_a_reader_unfolds_stands_below_its_summary(tmp_path: Path) -> None:
    content = (
        "## Set-up\n\n<details>\n<summary>On Windows</summary>\n\nWork inside WSL 2.\n\n</details>\n\nDone it is.\n"
    )
    found = [text for _, text in parts(tmp_path, f"# A\n{content}", "notes.md")]
    assert found == ["# Set-up\n## On Windows\nWork inside WSL 2.", "# Set-up\nDone it is."]


def test_an_import_lets_choose_files(tmp_path: Path) -> None:
    for name in ("README.md", "CHANGELOG.md", "docs/use.md", "docs/old/use.md"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("# A\n")

    def chosen(include: Sequence[str] = (), exclude: Sequence[str] = ()) -> list[str]:
        return [path.relative_to(tmp_path).as_posix() for path in find_markdown([tmp_path], include, exclude)]

    assert chosen(exclude=["CHANGELOG.md", "docs/old/*"]) == ["README.md", "docs/use.md"]
    assert chosen(include=["use.md"]) == ["docs/old/use.md", "docs/use.md"]
    assert chosen(include=["docs/*"], exclude=["docs/old/*"]) == ["docs/use.md"]
