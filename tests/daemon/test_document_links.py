"""Links to documents of a repository (C3): real git, real files."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memd.daemon.services.links import document_links
from memd.daemon.services.links.document_links import LIMIT, Link, State, link_to, state_of, tracked_blobs
from tests.conftest import EXAMPLES

GUIDE = "docs/guide.md"
INSTALL = "Guide > Install"
TEXT = """# Guide

About the orchard.

## Install

Run the installer.

### Linux

Use the package.

## Use

Open the panel.
"""
AUTHOR = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org", "-c", "commit.gpgsign=false")
NOBODY = 65534


def git(folder: Path, *arguments: str, **variables: str) -> str:
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder), "GIT_CONFIG_NOSYSTEM": "1", **variables}
    command = ["git", "-C", str(folder), *AUTHOR, *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True, env=environment).stdout.strip()


def write(root: Path, path: str, text: str | bytes) -> None:
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(text if isinstance(text, bytes) else text.encode())


def commit(root: Path, subject: str = "Work") -> None:
    git(root, "add", "-A")
    git(root, "commit", "-q", "--allow-empty", "-m", subject)


def sign(root: Path) -> None:
    """Give the newest commit a signature, which git verifies by a program if a setting says so."""
    head, _, message = git(root, "cat-file", "commit", "HEAD").partition("\n\n")
    write(
        root,
        ".git/signed",
        f"{head}\ngpgsig -----BEGIN PGP SIGNATURE-----\n \n -----END PGP SIGNATURE-----\n\n{message}\n",
    )
    git(root, "update-ref", "HEAD", git(root, "hash-object", "-t", "commit", "-w", ".git/signed"))


def linked(root: Path, path: str = GUIDE, anchor: str = INSTALL) -> Link:
    link = link_to(root, path, anchor)
    assert link is not None
    return link


def state(link: Link, root: Path) -> tuple[State, str]:
    return state_of(link, root, tracked=lambda: tracked_blobs(root))


def untracked() -> Mapping[str, str]:
    return {}


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository with the guide, on the branch `main`."""
    root = tmp_path / "orchard"
    root.mkdir()
    git(root, "init", "-q", "-b", "main")
    write(root, GUIDE, TEXT)
    commit(root)
    return root


@contextmanager
def without_privileges() -> Iterator[None]:
    """Run as a user to whom modes apply: root reads any file."""
    user = os.geteuid()
    if user == 0:
        os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(user)


# what a link holds


def test_the_blob_is_the_one_that_git_computes_C3(repository: Path) -> None:
    write(repository, "notes.txt", "Zwölf Bäume\r\n")
    write(repository, "empty.md", b"")
    commit(repository)
    for path in (GUIDE, "notes.txt", "empty.md"):
        blob = linked(repository, path, "").blob
        assert blob == git(repository, "rev-parse", f"HEAD:{path}") == tracked_blobs(repository)[path]


def test_a_link_names_the_part_and_not_the_heading_line_C3(repository: Path) -> None:
    link = linked(repository)
    assert (link.path, link.anchor) == (GUIDE, INSTALL)
    assert len(link.section) == 16 and int(link.section, 16)
    write(repository, "other.txt", "Run the installer.\n\n### Linux\n\nUse the package.\n")
    assert linked(repository, "other.txt", "").section == link.section


def test_the_path_of_a_link_is_without_dots_and_symbolic_links_C3(repository: Path) -> None:
    (repository / "CLAUDE.md").symlink_to("docs/guide.md")
    (repository.parent / "alias").symlink_to(repository)
    for root in (repository, repository.parent / "alias"):
        for path in ("CLAUDE.md", "./docs/../docs/guide.md", str(root / GUIDE)):
            assert link_to(root, path, INSTALL) == linked(repository)


@pytest.mark.parametrize("anchor", ["Install", "Guide > Linux", "Guide > Install > ", "guide > install", "Missing"])
def test_there_is_no_link_to_a_heading_that_the_document_lacks_C3(repository: Path, anchor: str) -> None:
    assert link_to(repository, GUIDE, anchor) is None


@pytest.mark.parametrize(
    "path", ["", ".", "docs", "docs/missing.md", "docs/guide.md/below", "a\0b", "a\udcffb", "a\ud800b"]
)
def test_there_is_no_link_to_what_is_no_file_C3(repository: Path, path: str) -> None:
    assert link_to(repository, path) is None
    state_now, path_now = state(Link(path=path, blob="0" * 40, section="0" * 16), repository)
    assert (state_now, path_now) == ("out of reach", path)


def test_a_document_of_more_than_two_megabytes_has_no_link_and_no_state_C3(repository: Path) -> None:
    write(repository, "long.txt", b"a" * LIMIT)
    link = linked(repository, "long.txt", "")
    assert state(link, repository) == ("fresh", "long.txt")
    write(repository, "long.txt", b"a" * (LIMIT + 1))
    assert link_to(repository, "long.txt") is None
    assert state(link, repository) == ("out of reach", "long.txt")


# edits


def test_an_unchanged_document_is_fresh_and_asks_git_nothing_C3(repository: Path) -> None:
    def tracked() -> Mapping[str, str]:
        raise AssertionError("not needed")

    assert state_of(linked(repository), repository, tracked=tracked) == ("fresh", GUIDE)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Run the installer.", "Run the script."),
        ("Use the package.", "Use the archive."),  # a section below
        ("### Linux", "### Unix"),
        ("## Install", "## Set up"),
        ("## Install\n", "Install\n"),
        ("## Install", "# Install"),  # no longer below the guide
        ("# Guide", "# Manual"),
        ("\n## Use", ""),  # the text of the next section becomes this one's
    ],
)
def test_an_edit_of_the_section_changes_it_C3(repository: Path, old: str, new: str) -> None:
    link = linked(repository)
    write(repository, GUIDE, TEXT.replace(old, new, 1))
    assert state(link, repository) == ("changed", GUIDE)
    commit(repository)
    assert state(link, repository) == ("changed", GUIDE)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("About the orchard.", "About the garden."),
        ("Open the panel.", "Open the shell.\n\n## Install again\n\nRun it."),
        ("## Use\n\nOpen the panel.\n", ""),
        ("## Use", "# Use"),
        ("# Guide\n", "---\ntitle: Guide\n---\n# Guide\n"),
        ("Run the installer.", "Run  the\ninstaller. \n\n"),  # blanks alone
    ],
)
def test_an_edit_elsewhere_leaves_the_section_fresh_C3(repository: Path, old: str, new: str) -> None:
    link, whole = linked(repository), linked(repository, anchor="")
    write(repository, GUIDE, TEXT.replace(old, new, 1))
    assert state(link, repository) == ("fresh", GUIDE)
    assert state(whole, repository)[0] == ("fresh" if TEXT.split() == TEXT.replace(old, new, 1).split() else "changed")


def test_a_removed_heading_changes_only_links_below_it_C3(repository: Path) -> None:
    install, linux, use = (linked(repository, anchor=f"Guide > {end}") for end in ("Install", "Install > Linux", "Use"))
    write(repository, GUIDE, TEXT.replace("### Linux\n", ""))
    assert [state(link, repository)[0] for link in (install, linux, use)] == ["changed", "changed", "fresh"]


def test_sections_with_the_same_headings_are_one_part_C3(repository: Path) -> None:
    text = "# Log\n\n## Fixed\n\none\n\n## Added\n\ntwo\n\n## Fixed\n\nthree\n"
    write(repository, "log.md", text)
    link = linked(repository, "log.md", "Log > Fixed")
    write(repository, "log.md", text.replace("two", "2"))
    assert state(link, repository)[0] == "fresh"
    for word in ("one", "three"):
        write(repository, "log.md", text.replace(word, "else"))
        assert state(link, repository)[0] == "changed"


# what is a heading


@pytest.mark.parametrize("fence", ["```", "~~~~", "```sh"])
def test_a_comment_in_fenced_code_is_no_heading_C3(repository: Path, fence: str) -> None:
    end = fence.rstrip("sh")
    write(repository, "run.md", f"# Run\n\n{fence}\n# not a heading\nmake\n{end}\n\nThen wait.\n\n# Stop\n\nNow.\n")
    assert link_to(repository, "run.md", "not a heading") is None
    assert link_to(repository, "run.md", "Run > not a heading") is None
    link = linked(repository, "run.md", "Run")
    for word, expected in (("make", "changed"), ("Then", "changed"), ("# not", "changed"), ("Now", "fresh")):
        before = (repository / "run.md").read_text()
        write(repository, "run.md", before.replace(word, "edited"))
        assert state(link, repository) == (expected, "run.md"), word
        write(repository, "run.md", before)


def test_underlined_headings_count_and_metadata_above_the_text_does_not_C3(repository: Path) -> None:
    write(
        repository,
        "old.md",
        "---\ntitle: x\n---\n\nTrees\n===\n\nfirst\n\nOak *old*\n---\n\nsecond\n\nPears\n=====\n\nthird\n",
    )
    link = linked(repository, "old.md", "Trees > Oak *old*")
    assert link.section != linked(repository, "old.md", "Trees").section
    assert link_to(repository, "old.md", "title: x") is None
    write(repository, "old.md", (repository / "old.md").read_text().replace("third", "3").replace("first", "1"))
    assert state(link, repository)[0] == "fresh"
    write(repository, "old.md", (repository / "old.md").read_text().replace("second", "2"))
    assert state(link, repository)[0] == "changed"


def test_only_six_marks_with_a_blank_at_the_margin_are_a_heading_C3(repository: Path) -> None:
    blocks = ("# A", "#tag", "####### seven", "    # code", "- # item", "> # quote", "| row |\n| - |\n| last |\n---")
    write(repository, "marks.md", "\n\n".join((*blocks, "###### Six ##", "x")))
    sections = {
        name: link_to(repository, "marks.md", f"A > {name}") for name in ("tag", "seven", "code", "item", "quote")
    }
    assert not any(sections.values())
    assert linked(repository, "marks.md", "A > Six").anchor == "A > Six"


def test_a_document_without_headings_is_linked_as_a_whole_C3(repository: Path) -> None:
    write(repository, "plain.md", "Only words.\n\nMore words.\n")
    assert link_to(repository, "plain.md", "Only words.") is None
    link = linked(repository, "plain.md", "")
    assert state(link, repository) == ("fresh", "plain.md")
    write(repository, "plain.md", "Only words.\n\nOther words.\n")
    assert state(link, repository) == ("changed", "plain.md")


def test_the_anchor_of_another_kind_of_file_is_ignored_C3(repository: Path) -> None:
    write(repository, "build.sh", "# Guide\nmake\n# Use\nrun\n")
    link = linked(repository, "build.sh", "Guide")
    assert link == linked(repository, "build.sh", "") and link.anchor == ""
    write(repository, "build.sh", "# Guide\nmake\n# Use\nstop\n")
    assert state(link, repository) == ("changed", "build.sh")


@pytest.mark.parametrize("newline", ["\r\n", "\r"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_other_line_ends_change_no_section_C3(repository: Path, newline: str, mark: str) -> None:
    link = linked(repository)
    write(repository, GUIDE, mark + TEXT.replace("\n", newline))
    assert linked(repository).blob != link.blob
    assert linked(repository).section == link.section
    assert state(link, repository) == ("fresh", GUIDE)
    assert state(linked(repository), repository) == ("fresh", GUIDE)
    write(repository, GUIDE, mark + TEXT.replace("installer", "script").replace("\n", newline))
    assert state(link, repository) == ("changed", GUIDE)


def test_text_that_is_not_utf8_is_compared_byte_by_byte_C3(repository: Path) -> None:
    write(repository, "latin.md", "# Bäume\n\n## Rest\n\nfünf\n".encode("latin-1"))
    link = linked(repository, "latin.md", "")
    write(repository, "latin.md", "# Bäume\n\n## Rest\n\nfönf\n".encode("latin-1"))
    assert state(link, repository) == ("changed", "latin.md")


def test_a_binary_file_has_no_link_and_a_document_that_becomes_one_has_changed_C3(repository: Path) -> None:
    write(repository, "image.md", b"# Guide\n\x00\x01")
    assert link_to(repository, "image.md") is None
    assert link_to(repository, "image.md", "Guide") is None
    link = linked(repository)
    write(repository, GUIDE, TEXT.encode("utf-16"))
    assert state(link, repository) == ("changed", GUIDE)


# another path


@pytest.mark.parametrize("is_committed", [False, True])
def test_a_renamed_document_is_followed_C3(repository: Path, is_committed: bool) -> None:
    link = linked(repository)
    (repository / "manual").mkdir()
    git(repository, "mv", GUIDE, "manual/Führer 1.md")
    if is_committed:
        git(repository, "commit", "-q", "-m", "Move")
    assert state(link, repository) == ("moved", "manual/Führer 1.md")


def test_a_renamed_document_with_an_edited_section_has_changed_C3(repository: Path) -> None:
    link = linked(repository)
    git(repository, "mv", GUIDE, "manual.md")
    write(repository, "manual.md", TEXT.replace("Open the panel", "Open the shell"))
    assert state(link, repository) == ("moved", "manual.md")
    write(repository, "manual.md", TEXT.replace("Run the installer", "Run the script"))
    assert state(link, repository) == ("changed", "manual.md")


def test_a_document_is_followed_from_where_a_folder_or_a_file_replaces_it_C3(repository: Path) -> None:
    link = linked(repository)
    git(repository, "mv", GUIDE, "manual.md")
    (repository / GUIDE).mkdir(parents=True)
    git(repository, "mv", "manual.md", f"{GUIDE}/index.md")
    assert state(link, repository) == ("moved", f"{GUIDE}/index.md")
    git(repository, "mv", f"{GUIDE}/index.md", "manual.md")
    shutil.rmtree(repository / "docs")
    write(repository, "docs", "The guide is manual.md.\n")
    assert state(link, repository) == ("moved", "manual.md")


def test_symbolic_links_are_not_among_the_tracked_files_C3(repository: Path) -> None:
    (repository / "CLAUDE.md").symlink_to(GUIDE)
    commit(repository)
    assert set(tracked_blobs(repository)) == {GUIDE}


def test_of_several_copies_the_one_with_the_same_name_is_followed_C3(repository: Path) -> None:
    link = linked(repository)
    write(repository, "a.md", TEXT)
    git(repository, "add", "a.md")
    (repository / "z").mkdir()
    git(repository, "mv", GUIDE, "z/guide.md")
    assert state(link, repository) == ("moved", "z/guide.md")


def test_a_renamed_document_that_a_sparse_checkout_leaves_out_has_moved_C3(repository: Path) -> None:
    link = linked(repository)
    (repository / "z").mkdir()
    git(repository, "mv", GUIDE, "z/guide.md")
    commit(repository)
    git(repository, "sparse-checkout", "set", "--no-cone", "/docs/")
    assert not (repository / "z").exists()
    assert state(link, repository) == ("moved", "z/guide.md")


# gone, or out of reach


@pytest.mark.parametrize("is_merged", [False, True])
def test_a_document_that_a_commit_deleted_is_gone_C3(repository: Path, is_merged: bool) -> None:
    link = linked(repository)
    write(repository, GUIDE, TEXT + "\nMore.\n")  # the last version is not the linked one
    commit(repository)
    if is_merged:
        git(repository, "switch", "-q", "-c", "clean")
    git(repository, "rm", "-q", GUIDE)
    commit(repository)
    if is_merged:
        git(repository, "switch", "-q", "main")
        assert state(link, repository) == ("fresh", GUIDE)
        git(repository, "merge", "-q", "--no-ff", "-m", "Merge", "clean")
    assert state(link, repository) == ("gone", GUIDE)


def test_a_deletion_that_is_not_committed_is_out_of_reach_C3(repository: Path) -> None:
    link = linked(repository)
    (repository / GUIDE).unlink()
    assert state(link, repository) == ("out of reach", GUIDE)
    git(repository, "rm", "-q", GUIDE)
    assert state(link, repository) == ("out of reach", GUIDE)
    commit(repository)
    assert state(link, repository) == ("gone", GUIDE)


def test_a_document_that_came_back_is_not_gone_C3(repository: Path) -> None:
    link = linked(repository)
    git(repository, "rm", "-q", GUIDE)
    commit(repository)
    git(repository, "revert", "--no-edit", "HEAD")
    assert state(link, repository) == ("fresh", GUIDE)
    (repository / GUIDE).unlink()
    assert state(link, repository) == ("out of reach", GUIDE)


def test_a_document_of_another_branch_is_out_of_reach_C3(repository: Path) -> None:
    git(repository, "switch", "-q", "-c", "feature")
    write(repository, "plan.md", "# Plan\n\nSow.\n")
    commit(repository)
    link = linked(repository, "plan.md", "Plan")
    git(repository, "switch", "-q", "main")
    assert state(link, repository) == ("out of reach", "plan.md")
    git(repository, "switch", "-q", "--detach", "main")
    assert state(link, repository) == ("out of reach", "plan.md")
    git(repository, "switch", "-q", "--orphan", "pages")
    assert state(link, repository) == ("out of reach", "plan.md")
    git(repository, "switch", "-q", "feature")
    assert state(link, repository) == ("fresh", "plan.md")


def test_another_document_that_the_branch_once_deleted_does_not_count_C3(repository: Path) -> None:
    git(repository, "rm", "-q", GUIDE)
    commit(repository)
    git(repository, "switch", "-q", "-c", "feature")
    write(repository, GUIDE, "# Guide\n\nQuite new.\n")
    commit(repository)
    link = linked(repository, GUIDE, "Guide")
    git(repository, "switch", "-q", "main")
    assert state(link, repository) == ("out of reach", GUIDE)


def test_a_document_that_came_and_went_on_a_merged_branch_is_gone_C3(repository: Path) -> None:
    git(repository, "switch", "-q", "-c", "feature")
    write(repository, "plan.md", "# Plan\n\nSow.\n")
    commit(repository)
    link = linked(repository, "plan.md", "Plan")
    git(repository, "rm", "-q", "plan.md")
    commit(repository)
    git(repository, "switch", "-q", "main")
    assert state(link, repository) == ("out of reach", "plan.md")
    git(repository, "merge", "-q", "--no-ff", "-m", "Merge", "feature")
    assert state(link, repository) == ("gone", "plan.md")


def test_a_document_that_a_merge_did_not_take_is_out_of_reach_C3(repository: Path) -> None:
    git(repository, "switch", "-q", "-c", "feature")
    write(repository, "plan.md", "# Plan\n\nSow.\n")
    commit(repository)
    link = linked(repository, "plan.md", "Plan")
    git(repository, "switch", "-q", "main")
    git(repository, "merge", "-q", "-s", "ours", "-m", "Close the branch", "feature")
    assert state(link, repository) == ("out of reach", "plan.md")


def test_a_document_that_git_never_knew_is_out_of_reach_C3(repository: Path) -> None:
    write(repository, "draft.md", "# Draft\n\nWords.\n")
    link = linked(repository, "draft.md", "Draft")
    (repository / "draft.md").unlink()
    assert state(link, repository) == ("out of reach", "draft.md")


def test_without_a_repository_files_are_compared_and_never_gone_C3(tmp_path: Path) -> None:
    write(tmp_path, GUIDE, TEXT)
    link = linked(tmp_path)
    assert tracked_blobs(tmp_path) == {}
    assert state(link, tmp_path) == ("fresh", GUIDE)
    write(tmp_path, GUIDE, TEXT.replace("Run", "Start"))
    assert state(link, tmp_path) == ("changed", GUIDE)
    (tmp_path / GUIDE).rename(tmp_path / "manual.md")
    assert state(link, tmp_path) == ("out of reach", GUIDE)


@pytest.mark.parametrize("failure", ["missing", "slow", "broken"])
def test_a_git_that_fails_is_never_told_as_gone_C3(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failure: str
) -> None:
    link = linked(repository)
    git(repository, "rm", "-q", GUIDE)
    commit(repository)
    programs = tmp_path / "programs"
    programs.mkdir()
    if failure != "missing":
        (programs / "git").write_text("#!/bin/sh\n" + ("exec /bin/sleep 60\n" if failure == "slow" else "exit 3\n"))
        (programs / "git").chmod(0o755)
    with monkeypatch.context() as patched:
        patched.setenv("PATH", str(programs))
        patched.setattr(document_links, "GIT_S", 0.1 if failure == "slow" else document_links.GIT_S)
        assert tracked_blobs(repository) == {}
        assert state(link, repository) == ("out of reach", GUIDE)
    assert state(link, repository) == ("gone", GUIDE)


def test_variables_of_git_name_no_other_repository_C3(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    link = linked(repository)
    git(repository, "rm", "-q", GUIDE)
    commit(repository)
    git(tmp_path, "init", "-q", "other")
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "other" / ".git"))
    assert state(link, repository) == ("gone", GUIDE)


def test_the_settings_of_a_repository_start_no_program_C3(repository: Path, tmp_path: Path) -> None:
    link = linked(repository)
    git(repository, "rm", "-q", GUIDE)
    commit(repository)
    sign(repository)
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\ntouch {tmp_path}/started\n")
    program.chmod(0o755)
    for name in ("core.fsmonitor", "core.pager", "gpg.program", "diff.external"):
        git(repository, "config", name, str(program))
    for name in ("log.showSignature", "log.follow"):
        git(repository, "config", name, "true")
    assert state(link, repository) == ("gone", GUIDE)
    assert not (tmp_path / "started").exists()


def test_a_link_below_a_folder_of_the_repository_works_alike_C3(repository: Path) -> None:
    folder = repository / "docs"
    link = linked(folder, "guide.md")
    git(repository, "mv", GUIDE, "docs/manual.md")
    assert state(link, folder) == ("moved", "manual.md")
    git(repository, "rm", "-q", "-f", "docs/manual.md")
    write(repository, "docs/other.md", "Other.\n")
    commit(repository)
    assert state(link, folder) == ("gone", "guide.md")


@pytest.mark.parametrize("path", [":(top)*.md", "*.md", "-r.md", 'q"u\\o\tte\n.md', "bäume.md"])
def test_any_name_of_a_file_is_taken_literally_C3(repository: Path, path: str) -> None:
    git(repository, "rm", "-q", GUIDE)
    commit(repository)
    missing = Link(path=path, blob=git(repository, "rev-parse", f"HEAD~:{GUIDE}"), section="0" * 16)
    assert state(missing, repository) == ("out of reach", path)
    write(repository, path, TEXT + "\nNot the guide.\n")
    commit(repository)
    link = linked(repository, path)
    git(repository, "--literal-pathspecs", "mv", "--", path, "moved.md")
    assert state(link, repository) == ("moved", "moved.md")
    git(repository, "rm", "-q", "-f", "moved.md")
    commit(repository)
    assert state(link, repository) == ("gone", path)


# outside, and what can't be read


@pytest.mark.parametrize("by", ["dots", "absolute", "file link", "folder link"])
def test_a_path_outside_the_root_is_out_of_reach_C3(repository: Path, by: str) -> None:
    outside = repository.parent / "orchard-private"  # its name begins with the root's
    write(outside, "guide.md", TEXT)
    inside = linked(repository)
    (repository / "link.md").symlink_to(outside / "guide.md")
    (repository / "linked").symlink_to(outside)
    path = {
        "dots": "docs/../../orchard-private/guide.md",
        "absolute": str(outside / "guide.md"),
        "file link": "link.md",
        "folder link": "linked/guide.md",
    }[by]
    assert link_to(repository, path, INSTALL) is None
    link = Link(path=path, anchor=INSTALL, blob=inside.blob, section=inside.section)
    assert state(link, repository) == ("out of reach", path)
    (outside / "guide.md").unlink()
    assert state_of(link, repository, tracked=untracked) == ("out of reach", path)


def test_a_document_that_becomes_a_link_to_the_outside_is_out_of_reach_C3(repository: Path) -> None:
    link = linked(repository)
    write(repository.parent, "outside.md", TEXT)
    (repository / GUIDE).unlink()
    (repository / GUIDE).symlink_to(repository.parent / "outside.md")
    assert state(link, repository) == ("out of reach", GUIDE)


def _pipe(path: Path) -> None:
    os.mkfifo(path)


def _loop(path: Path) -> None:
    path.symlink_to(path.name)


def _folder(path: Path) -> None:
    path.mkdir()


@pytest.mark.parametrize("make", [_pipe, _loop, _folder])
def test_what_is_no_regular_file_is_out_of_reach_and_never_waited_for_C3(
    repository: Path, make: Callable[[Path], None]
) -> None:
    link = linked(repository)
    (repository / GUIDE).unlink()
    make(repository / GUIDE)
    assert link_to(repository, GUIDE) is None
    assert state(link, repository) == ("out of reach", GUIDE)


def test_a_root_that_is_missing_is_out_of_reach_C3(repository: Path) -> None:
    link = linked(repository)
    for root in (repository / "missing", repository / GUIDE, repository / "a\0b"):
        assert link_to(root, GUIDE) is None
        assert state_of(link, root, tracked=lambda: {"copy.md": link.blob}) == ("out of reach", GUIDE)


@pytest.mark.parametrize("locked", ["", "docs", GUIDE])
def test_what_memd_may_not_read_is_out_of_reach_C3(locked: str) -> None:
    with tempfile.TemporaryDirectory() as name:  # pytest's own folder is closed to other users
        root = Path(name)
        root.chmod(0o755)
        write(root, GUIDE, TEXT)
        link = linked(root)
        with without_privileges():
            assert state_of(link, root, tracked=untracked) == ("fresh", GUIDE)
        mode = (root / locked).stat().st_mode
        (root / locked).chmod(0)
        try:
            with without_privileges():
                assert link_to(root, GUIDE) is None
                assert state_of(link, root, tracked=untracked) == ("out of reach", GUIDE)
        finally:
            (root / locked).chmod(mode)


# the property

_LINES = st.lists(
    st.text("abc XYZ 019#*_`~<>[]()=-+|:!.\\äß漢", max_size=30).map("w{}".format), min_size=1, max_size=3
).map("\n".join)
_BLOCKS = st.one_of(
    _LINES,
    st.sampled_from(
        ["```\n# not a heading\n```", "~~~sh\n## Install\n~~~", "    # code", "> # quote", "- # item", "---"]
    ),
    st.just("| a |\n| --- |\n| b |"),
)
_BODIES = st.lists(_BLOCKS, max_size=4).map("\n\n".join)


def _sections(levels: st.SearchStrategy[int]) -> st.SearchStrategy[str]:
    titles = st.sampled_from(["Use", "Linux", "Guide", "Install it", "Why `#`?"])
    section = st.builds(lambda level, title, body: f"{'#' * level} {title}\n\n{body}\n\n", levels, titles, _BODIES)
    return st.lists(section, max_size=3).map("".join)


_ABOVE = st.builds(lambda body, sections: f"{body}\n\n{sections}", _BODIES, _sections(st.integers(2, 6)))
_BELOW = st.builds(
    lambda body, sections, rest: f"## Use\n\n{body}\n\n{sections}{rest}",
    _BODIES, _sections(st.integers(2, 6)), st.sampled_from(["", "# Other\n\n## Install\n\nElse.\n"]),
)  # fmt: skip


@settings(max_examples=100 * EXAMPLES, deadline=None)
@given(
    part=st.builds(lambda body, below: f"{body}\n\n{below}", _BODIES, _sections(st.integers(3, 6))),
    before=st.tuples(_ABOVE, _BELOW),
    after=st.tuples(_ABOVE, _BELOW),
)
def test_a_change_outside_the_section_never_changes_its_hash_C3(
    part: str, before: tuple[str, str], after: tuple[str, str]
) -> None:
    def text(around: tuple[str, str], within: str) -> str:
        return f"# Guide\n\n{around[0]}## Install\n\n{within}{around[1]}"

    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        write(root, "guide.md", text(before, part))
        link = linked(root, "guide.md")
        write(root, "guide.md", text(after, part))
        assert linked(root, "guide.md").section == link.section
        assert state_of(link, root, tracked=untracked) == ("fresh", "guide.md")
        write(root, "guide.md", text(after, part + "One more paragraph.\n\n"))
        assert state_of(link, root, tracked=untracked) == ("changed", "guide.md")
