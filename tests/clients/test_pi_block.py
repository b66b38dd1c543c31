"""The block of the playbook in AGENTS.md: two legal states of its markers, anything else is left alone (G5)."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memd.clients.importers import markdown
from memd.clients.pi import agents_block
from memd.clients.pi.agents_block import BEGIN, END, NOTE, block_of, body_of, edited_lines, with_block, without_block
from memd.protocol.errors import Refused
from tests.clients.conftest import Told, memd_in
from tests.clients.test_pi_files import commit, git, put, repository
from tests.clients.test_pi_fold import adding, record

__all__ = ["repository"]

RECORDS = [
    record("mem_20260210_002", statement="Prune in March."),
    record("mem_20260210_001", statement="Plant in\nrows."),
]
BLOCK = [BEGIN, NOTE, "- Plant in rows.", "- Prune in March.", END]
AROUND = "# Orchard\n\nWater at night.\n"
PLAIN = AROUND.encode()


def test_the_block_has_the_active_playbook_by_id_G5() -> None:
    retired = record("mem_20260210_000", statement="Dig.", status="deprecated")
    assert list(block_of([*RECORDS, retired]).lines) == BLOCK
    assert NOTE == "<!-- made by memd from .pi/memory; edit there -->"


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(st.text(min_size=1, max_size=300), st.floats(0, 1)), max_size=60))
def test_the_block_stays_small_G5(rows: list[tuple[str, float]]) -> None:
    records = [record(f"mem_20260210_{n:03}", statement=text, confidence=share) for n, (text, share) in enumerate(rows)]
    made = block_of(records)
    assert len(made.lines) <= 30 and len("\n".join(made.lines)) / 4 <= 600
    assert len(made.lines) - 3 + made.left_out == len(records)
    written = with_block(AROUND.encode(), made.lines)
    assert with_block(written, made.lines) == written
    assert with_block(written, block_of([]).lines) == with_block(AROUND.encode(), block_of([]).lines)
    assert written.startswith(AROUND.encode())


@pytest.mark.parametrize(
    "before",
    [
        b"",
        AROUND.encode(),
        AROUND.encode().rstrip(),
        b"\xef\xbb\xbf" + AROUND.encode(),
        AROUND.replace("\n", "\r\n").encode(),
    ],
)
def test_a_file_without_markers_gets_the_block_after_its_end_G5(before: bytes) -> None:
    written = with_block(before, BLOCK)
    newline = b"\r\n" if b"\r\n" in before else b"\n"
    gap = newline * (2 if before and not before.endswith(b"\n") else 1) if before else b""
    assert written == before + gap + newline.join(line.encode() for line in BLOCK) + newline
    assert with_block(written, BLOCK) == written
    assert body_of(written) == BLOCK[2:-1]


def test_the_text_around_the_block_stays_byte_for_byte_G5() -> None:
    after = "\n\n## After\n\t- x  \n```\ncode\n```\n"
    file = f"{AROUND}{BEGIN}\nold\n{END}{after}".encode()
    assert with_block(file, BLOCK) == (AROUND + "\n".join(BLOCK) + after).encode()


MALFORMED = {
    "a lone begin": f"{BEGIN}\nx\n",
    "a lone end": f"x\n{END}\n",
    "the wrong order": f"{END}\nx\n{BEGIN}\n",
    "two pairs": f"{BEGIN}\n{END}\n{BEGIN}\n{END}\n",
    "a second begin": f"{BEGIN}\n{BEGIN}\n{END}\n",
    "a marker in the body": f"{BEGIN}\n- x {END} y\n{END}\n",
    "a fence": f"```\n{BEGIN}\n{END}\n```\n",
    "a long fence": f"~~~~ md\n```\n{BEGIN}\n{END}\n```\n~~~~\n",
    "a fence in a list": f"- x\n\n  ```\n{BEGIN}\n  ```\n{END}\n",
    "a fence around one marker": f"{BEGIN}\n```\n{END}\n```\n",
    "an indented marker": f"  {BEGIN}\nx\n{END}\n",
    "a marker with words behind it": f"{BEGIN} x\nx\n{END}\n",
    "a version": "<!-- memd:begin 0.2 -->\nx\n<!-- memd:end -->\n",
    "a comment around the markers": f"<!--\n{BEGIN}\nx\n{END}\n",
    "markup around the markers": f"<div>\n{BEGIN}\nx\n{END}\n</div>\n",
    "other capitals": "<!-- MEMD:BEGIN -->\nx\n<!-- memd:end -->\n",
    "mixed line ends": f"a\r\n{BEGIN}\n{END}\n",
    "a lone carriage return": f"a\rb\n{BEGIN}\n{END}\n",
}


@pytest.mark.parametrize("name", MALFORMED)
def test_each_other_state_of_the_markers_is_refused_G5(name: str) -> None:
    for data in {MALFORMED[name].encode(), (AROUND + MALFORMED[name]).encode()}:
        with pytest.raises(Refused, match="leaves the file as it is"):
            with_block(data, BLOCK)
        with pytest.raises(Refused, match="leaves the file as it is"):
            body_of(data)


def test_bytes_that_are_no_text_are_refused_G5() -> None:
    with pytest.raises(Refused, match="UTF-8"):
        with_block(b"\xff\xfe" + BEGIN.encode(), BLOCK)


@pytest.mark.parametrize("marker", [BEGIN, END, "<!--memd:end-->"])
def test_a_statement_with_a_marker_is_refused_G5(marker: str) -> None:
    with pytest.raises(Refused, match="mem_20260210_001"):
        block_of([record("mem_20260210_001", statement=f"Never write {marker} here.")])


def test_lines_that_no_record_has_are_a_persons_G5() -> None:
    file = "\n".join([*BLOCK[:-1], "- Pick in June.", END]).encode()
    assert edited_lines(file, RECORDS) == ["- Pick in June."]
    assert edited_lines(with_block(b"", BLOCK), RECORDS) == []


def test_a_link_out_of_the_repository_is_refused_G5(tmp_path: Path) -> None:
    top = tmp_path / "orchard"
    top.mkdir()
    outside = tmp_path / "CLAUDE.md"
    (top / "AGENTS.md").symlink_to(outside)
    with pytest.raises(Refused, match="leads out"):
        agents_block.target_of(top / "AGENTS.md", top)
    assert agents_block.target_of(top / "AGENTS.md", top, [outside]) == outside
    (top / "CLAUDE.md").symlink_to("real.md")
    assert agents_block.target_of(top / "CLAUDE.md", top) == top / "real.md"


# --- the importer -----------------------------------------------------------------------------------------------------
def test_an_import_skips_the_block_W9(tmp_path: Path) -> None:
    file = tmp_path / "AGENTS.md"
    block = "\n".join(BLOCK)
    file.write_text(f"# Orchard\n\n- Water at night.\n\n{block}\n\n- Weed by day.\n", encoding="utf-8")
    session = markdown.read(file, b"k" * 32, {}).sessions[0]
    texts = [getattr(event, "text", "") for event in session.events]
    assert len(texts) == 2 and "Water at night" in texts[0] and "Weed by day" in texts[1]


@pytest.mark.parametrize("name", MALFORMED)
def test_an_import_reads_a_file_with_damaged_markers_as_a_whole_W9(name: str) -> None:
    assert without_block(MALFORMED[name]) == MALFORMED[name]


# --- the command ------------------------------------------------------------------------------------------------------
@pytest.fixture
def told(home: dict[str, str]) -> Callable[..., Told]:
    return memd_in(home)


def test_the_command_shows_then_writes_and_refuses_what_is_damaged_G5(
    repository: Path, told: Callable[..., Told]
) -> None:
    file = repository / "AGENTS.md"
    file.write_text(AROUND, encoding="utf-8")
    put(repository, [adding("mem_20260210_001", statement="Plant in rows.")])
    commit(repository, "patch")
    where = ("--cwd", str(repository))
    shown = told("pi", "agents", *where)
    assert shown.code == 0 and "+- Plant in rows." in shown.text and file.read_text() == AROUND
    refused = told("pi", "agents", "--write", *where)
    assert refused.code == 7 and "--yes" in refused.errors and file.read_text() == AROUND
    assert told("pi", "agents", "--write", "--yes", *where).code == 0
    written = file.read_bytes()
    assert written == (AROUND + "\n" + "\n".join([BEGIN, NOTE, "- Plant in rows.", END]) + "\n").encode()
    assert told("pi", "agents", "--write", "--yes", *where).text == "the block is as it should be\n"
    assert file.read_bytes() == written
    hand = written.replace(b"- Plant in rows.", b"- Plant in rows.\n- Pick in June.")
    file.write_bytes(hand)
    seen = told("pi", "agents", "--json", *where)
    assert json.loads(seen.text)["data"]["by_hand"] == ["- Pick in June."]
    for name, text in MALFORMED.items():
        file.write_bytes(text.encode())
        done = told("pi", "agents", "--write", "--yes", *where)
        assert (done.code, file.read_bytes()) == (7, text.encode()), name
        if name == "a fence":
            break
    assert git(repository, "status", "--porcelain").strip() == "M AGENTS.md"


def test_the_identity_is_never_in_a_projects_block_R9(
    repository: Path, told: Callable[..., Told], home: dict[str, str], tmp_path: Path
) -> None:
    own = tmp_path / "dotfiles"
    own.mkdir()
    git(own, "init", "-q", "-b", "main")
    assert told("pi", "init", "--personal", str(own)).code == 0
    identity: dict[str, Any] = adding("mem_20260210_009", layer="L1", statement="I am Ada.")
    identity["target"] = ".pi/memory/L1.identity.jsonl"
    for folder in (repository, own):
        put(folder, [identity, adding("mem_20260210_001", statement="Plant in rows.")])
    assert "I am Ada" not in told("pi", "agents", "--cwd", str(repository)).text
    assert told("pi", "agents", "--cwd", str(own)).code == 2
    settings = tmp_path / "claude"
    settings.mkdir()
    done = memd_in({**home, "CLAUDE_CONFIG_DIR": str(settings)})(
        "pi", "agents", "--personal", "--write", "--yes", "--cwd", str(own)
    )
    assert done.code == 0, done.errors
    assert body_of((settings / "CLAUDE.md").read_bytes()) == ["- Plant in rows.", "- I am Ada."]
