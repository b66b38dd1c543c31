"""The files of a `.pi` folder and the committed tree that counts, over real git (G2, G5)."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from memd.clients.pi import hand_edits, pi_apply_patch, pi_files, pi_sync
from memd.clients.pi.layout_texts import CONFIG
from memd.clients.pi.pi_tree import find_repository, repository_at
from memd.protocol.errors import InvalidRequest, NotFound, Refused
from tests.clients.conftest import Told
from tests.clients.test_pi_fold import adding

DAY = "2026-03-01"


def git(folder: Path, *arguments: str, author: str = "Ada") -> str:
    names = ("-c", f"user.name={author}", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false")
    allowed = ("-c", "protocol.file.allow=always")
    done = subprocess.run(["git", *names, *allowed, *arguments], cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout


def commit(folder: Path, message: str, author: str = "Ada") -> str:
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", message, author=author)
    return git(folder, "rev-parse", "HEAD").strip()


def put(folder: Path, ops: list[dict[str, Any]], day: str = "2026-02-10") -> str:
    name, data = pi_files.patch_file(ops, "curator", day)
    (folder / ".pi" / "patches" / f"{name}.json").write_bytes(data)
    return name


def edit(file: Path, old: str, new: str) -> None:
    text = file.read_text(encoding="utf-8")
    assert old in text
    file.write_text(text.replace(old, new), encoding="utf-8")


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository with a `.pi`."""
    top = tmp_path / "orchard"
    top.mkdir()
    git(top, "init", "-q", "-b", "main")
    pi_files.init(top / ".pi")
    commit(top, "init")
    return top


def playbook(top: Path) -> Path:
    return top / ".pi" / "memory" / "L2.playbooks.jsonl"


def regenerated(top: Path) -> None:
    pi_files.regenerate(pi_files.read_state(top / ".pi"))


def by_person(top: Path) -> list[dict[str, Any]]:
    return pi_sync.by_person(find_repository(str(top)), pi_files.read_state(top / ".pi"), "L2", DAY)


# --- layout -----------------------------------------------------------------------------------------------------------
def test_init_makes_the_seeds_folder_and_git_leaves_out_what_is_rebuilt_G5(repository: Path) -> None:
    tracked = set(git(repository, "ls-files").split())
    assert tracked == {f".pi/{file}" for file, _ in pi_files.layout(personal=False)}
    assert "pi.config.yaml" in {Path(name).name for name in tracked}
    for folder in ("runtime", "inbox", "index", "cache", "reports"):
        (repository / ".pi" / folder).mkdir()
        (repository / ".pi" / folder / "x.json").write_text("{}")
    assert git(repository, "status", "--porcelain") == ""
    assert (repository / ".pi" / "pi.config.yaml").read_bytes() == CONFIG
    for name in ("memory", "patch"):
        schema = json.loads((repository / ".pi" / "schemas" / f"{name}.schema.json").read_bytes())
        assert schema["$schema"].startswith("https://json-schema.org/")


def test_init_again_changes_nothing_and_leaves_what_a_person_changed_G5(repository: Path) -> None:
    config, schema = (repository / ".pi" / name for name in ("pi.config.yaml", "schemas/patch.schema.json"))
    put(repository, [adding("mem_20260210_001")])
    regenerated(repository)
    edit(config, "max_records: 40", "max_records: 20")
    schema.write_text("{}")
    (repository / ".pi" / "policies" / "memory_policy.md").unlink()
    before = playbook(repository).read_bytes()
    fates = {row.file: row.fate for row in pi_files.init(repository / ".pi")}
    assert fates.pop("pi.config.yaml") == fates.pop("schemas/patch.schema.json") == "yours"
    assert fates.pop("policies/memory_policy.md") == "made"
    assert set(fates.values()) == {"unchanged"}
    assert "20" in config.read_text() and playbook(repository).read_bytes() == before != b""
    fates = {row.file: row.fate for row in pi_files.init(repository / ".pi", update=True)}
    assert fates["schemas/patch.schema.json"] == "updated" and fates["pi.config.yaml"] == "yours"


def test_memd_writes_through_no_link(repository: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    shutil.rmtree(repository / ".pi" / "memory")
    (repository / ".pi" / "memory").symlink_to(outside)
    put(repository, [adding("mem_20260210_001")])
    with pytest.raises(Refused, match="is a link"):
        regenerated(repository)
    with pytest.raises(Refused, match="is a link"):
        pi_files.init(repository / ".pi")
    assert list(outside.iterdir()) == []
    whole = tmp_path / "linked"
    whole.mkdir()
    (whole / ".pi").symlink_to(outside)
    with pytest.raises(Refused):
        pi_files.init(whole / ".pi")
    with pytest.raises(Refused):
        pi_files.write_patch_file(whole / ".pi", "patch_20260210_001", b"{}")


def test_a_patch_file_with_other_content_stays(repository: Path) -> None:
    name, data = pi_files.patch_file([adding("mem_20260210_001")], "curator", DAY)
    folder = repository / ".pi"
    assert pi_files.write_patch_file(folder, name, data) == "made"
    assert pi_files.write_patch_file(folder, name, data) == "unchanged"
    assert pi_files.write_patch_file(folder, name, data + b"\n") == "yours"
    assert (folder / "patches" / f"{name}.json").read_bytes() == data
    assert pi_files.write_patch_file(folder, name, b'{"gone": "4f"}') == "updated"


# --- the committed tree -----------------------------------------------------------------------------------------------
def test_only_the_committed_tree_of_the_default_branch_counts_G2(repository: Path) -> None:
    first = put(repository, [adding("mem_20260210_001")])
    tree = find_repository(str(repository))
    assert tree.committed().present == ()
    commit(repository, "patch")
    assert tree.committed().present == (first,)
    git(repository, "checkout", "-q", "-b", "topic")
    put(repository, [adding("mem_20260210_002")])
    commit(repository, "another")
    assert "you are on topic" in tree.committed().why_not and tree.committed().present == ()
    git(repository, "checkout", "-q", "main")
    assert tree.committed().present == (first,)
    git(repository, "checkout", "-q", "--detach")
    assert "detached" in tree.committed().why_not


def test_each_new_file_names_who_brought_it_and_with_which_commit_G2(repository: Path) -> None:
    first = put(repository, [adding("mem_20260210_001")])
    brought = commit(repository, "first", "Ada")
    git(repository, "checkout", "-q", "-b", "topic")
    second = put(repository, [adding("mem_20260210_002")])
    by_ben = commit(repository, "second", "Ben")
    git(repository, "checkout", "-q", "main")
    (repository / "README").write_text("x")
    commit(repository, "readme", "Cy")
    git(repository, "merge", "-q", "--no-ff", "-m", "merge", "topic", author="Cy")
    tree = find_repository(str(repository))
    committed = tree.committed()
    files = tree.files(committed, [first, second])
    assert [(file.commit, file.author) for file in files] == [(brought, "Ada"), (by_ben, "Ben")]
    for name, file in zip((first, second), files, strict=True):
        path = repository / ".pi" / "patches" / f"{name}.json"
        assert file.data == path.read_bytes() and file.blob == pi_sync.blob_of(file.data)


def test_a_shallow_clone_has_the_patches_but_not_who_brought_them(repository: Path, tmp_path: Path) -> None:
    old = put(repository, [adding("mem_20260210_001")])
    commit(repository, "first")
    (repository / "README").write_text("x")
    commit(repository, "readme", "Cy")
    git(tmp_path, "clone", "-q", "--depth", "1", f"file://{repository}", "shallow")
    tree = find_repository(str(tmp_path / "shallow"))
    assert [(file.commit, file.author) for file in tree.files(tree.committed(), [old])] == [("", "")]


def test_worktrees_submodules_and_bare_clones_are_read_as_what_they_are(repository: Path, tmp_path: Path) -> None:
    name = put(repository, [adding("mem_20260210_001")])
    commit(repository, "patch")
    git(repository, "worktree", "add", "-q", "-b", "topic", str(tmp_path / "tree"))
    assert "you are on topic" in find_repository(str(tmp_path / "tree")).committed().why_not
    git(tmp_path, "clone", "-q", "--bare", str(repository), "bare.git")
    bare = find_repository(str(tmp_path / "bare.git"))
    assert bare.is_bare and bare.committed().present == (name,)
    outer = tmp_path / "outer"
    outer.mkdir()
    git(outer, "init", "-q", "-b", "main")
    git(outer, "submodule", "add", "-q", str(repository), "inner")
    inner = find_repository(str(outer / "inner"))
    assert inner.folder == outer / "inner" and inner.committed().present == (name,)
    assert find_repository(str(outer)).committed().why_not == "it has no commit yet"


def test_the_default_branch_is_the_remotes_or_asked_for(repository: Path, tmp_path: Path) -> None:
    git(repository, "branch", "-m", "main", "develop")
    tree = find_repository(str(repository))
    assert tree.committed().branch == "develop"
    git(repository, "branch", "other")
    assert "--branch" in tree.committed().why_not
    assert tree.committed("develop").why_not == ""
    git(tmp_path, "clone", "-q", str(repository), "clone")
    git(tmp_path / "clone", "branch", "main")
    assert find_repository(str(tmp_path / "clone")).committed().branch == "develop"


def test_links_folders_and_huge_files_are_no_patches(repository: Path) -> None:
    patches = repository / ".pi" / "patches"
    (patches / "patch_20260210_link.json").symlink_to("../pi.config.yaml")
    (patches / "notes.json").write_text("{}")
    (patches / "README.md").write_text("x")
    (patches / "patch_20260210_huge.json").write_bytes(b" " * (pi_apply_patch.PATCH_BYTES + 1))
    gone = "patch_20260210_gone"
    (patches / f"{gone}.json").write_text('{"gone": "4f"}')
    commit(repository, "odd")
    committed = find_repository(str(repository)).committed()
    assert committed.present == () and committed.gone == (gone,)
    assert [name for name, _ in committed.unread] == [
        "notes.json",
        "patch_20260210_huge.json",
        "patch_20260210_link.json",
    ]


def test_the_nearest_pi_counts_but_not_that_of_the_pi_agent(repository: Path, tmp_path: Path) -> None:
    below = repository / "services" / "press"
    (below / ".pi" / "agent").mkdir(parents=True)
    assert find_repository(str(below)).folder == repository
    pi_files.init(below / ".pi")
    name = put(below, [adding("mem_20260210_001")])
    commit(repository, "below")
    tree = find_repository(str(below))
    assert tree.folder == below and tree.committed().present == (name,)
    with pytest.raises(NotFound, match="in no git repository"):
        find_repository(str(tmp_path))
    with pytest.raises(NotFound):
        repository_at(str(tmp_path))


# --- what a person changed --------------------------------------------------------------------------------------------
def test_a_hand_edit_is_a_patch_that_says_the_same_G2(repository: Path) -> None:
    put(repository, [adding(f"mem_20260210_00{n}", statement=f"Rule {n}.") for n in range(6)])
    regenerated(repository)
    commit(repository, "patch")
    lines = playbook(repository).read_text().splitlines()
    lines[1] = lines[1].replace("Rule 1.", "Rule one.")
    lines[2] = lines[2].replace('"status": "active"', '"status": "deprecated"')
    lines[3] = lines[3].replace('"confidence": 0.86', '"confidence": 0.5')
    lines[4] = ""
    lines.append(lines[0].replace("mem_20260210_000", "mem_20260301_new").replace("Rule 0.", "A new rule."))
    playbook(repository).write_text("\n".join(lines) + "\n")
    ops = by_person(repository)
    assert [operation["op"] for operation in ops] == ["add", "supersede", "deprecate", "review", "add", "deprecate"]
    assert ops[0]["record"]["statement"] == "Rule one." and ops[0]["record"]["supersedes"] == ["mem_20260210_001"]
    assert ops[5] == {"op": "deprecate", "id": "mem_20260210_004", "reason": hand_edits.REMOVED}
    put(repository, ops, DAY)
    state = pi_files.read_state(repository / ".pi")
    made = state.folded.records["L2"]
    active = sorted(record["statement"] for record in made.values() if record["status"] == "active")
    assert active == ["A new rule.", "Rule 0.", "Rule 3.", "Rule 5.", "Rule one."]
    assert made["mem_20260210_003"]["confidence"] == 0.5
    regenerated(repository)
    assert by_person(repository) == []


def test_order_and_spaces_are_no_change(repository: Path) -> None:
    put(repository, [adding(f"mem_20260210_00{n}") for n in range(3)])
    regenerated(repository)
    records = [json.loads(line) for line in playbook(repository).read_text().splitlines()]
    playbook(repository).write_text("\n\n".join(json.dumps(record, sort_keys=True) for record in records[::-1]))
    assert by_person(repository) == []


def test_a_file_that_is_older_than_the_patches_is_no_hand_edit(repository: Path) -> None:
    put(repository, [adding("mem_20260210_001"), adding("mem_20260210_002")])
    regenerated(repository)
    commit(repository, "first")
    put(repository, [adding("mem_20260210_003"), {"op": "deprecate", "id": "mem_20260210_001"}], "2026-02-11")
    put(repository, [{"op": "review", "id": "mem_20260210_002", "at": DAY, "confidence": 0.4}], DAY)
    shutil.rmtree(repository / ".pi" / "cache")
    assert by_person(repository) == []


def test_a_reverted_patch_is_no_hand_edit_and_its_lines_go_G2(repository: Path) -> None:
    put(repository, [adding("mem_20260210_001")])
    commit(repository, "first")
    put(repository, [adding("mem_20260210_002"), {"op": "deprecate", "id": "mem_20260210_001"}], "2026-02-11")
    second = commit(repository, "second")
    regenerated(repository)
    commit(repository, "fold")
    git(repository, "revert", "--no-edit", second)
    shutil.rmtree(repository / ".pi" / "cache")
    assert by_person(repository) == []
    regenerated(repository)
    (line,) = playbook(repository).read_text().splitlines()
    assert json.loads(line)["id"] == "mem_20260210_001" and json.loads(line)["status"] == "active"


def test_a_record_that_no_patch_ever_stated_is_a_persons(repository: Path) -> None:
    record = adding("mem_20260210_001")["record"]
    playbook(repository).write_bytes(pi_apply_patch.line_of(record))
    commit(repository, "made by hand")
    assert by_person(repository) == [adding("mem_20260210_001")]


@pytest.mark.parametrize("line", ["{", "{}", '{"id": "mem_20260210_001"}', "\x00"])
def test_lines_that_are_no_records_cannot_be_adopted_and_stay(repository: Path, line: str) -> None:
    put(repository, [adding("mem_20260210_001")])
    regenerated(repository)
    playbook(repository).write_bytes(playbook(repository).read_bytes() + line.encode() + b"\n")
    with pytest.raises(InvalidRequest, match="line 2"):
        hand_edits.must_be_clear(playbook(repository).read_bytes(), "L2")
    state = pi_files.read_state(repository / ".pi")
    (told,) = pi_sync.unclear_lines(state, "L2")
    assert told.startswith(".pi/memory/L2.playbooks.jsonl, line 2: ")
    assert pi_sync.check(find_repository(str(repository))).unclear == (told,)


def test_a_merge_of_the_file_in_any_way_is_thrown_away_G2(repository: Path) -> None:
    put(repository, [adding("mem_20260210_001"), adding("mem_20260210_005")])
    regenerated(repository)
    commit(repository, "first")
    git(repository, "checkout", "-q", "-b", "topic")
    put(repository, [adding("mem_20260210_002"), {"op": "deprecate", "id": "mem_20260210_001"}], "2026-02-11")
    regenerated(repository)
    commit(repository, "theirs")
    git(repository, "checkout", "-q", "main")
    put(repository, [adding("mem_20260210_003"), {"op": "deprecate", "id": "mem_20260210_005"}], "2026-02-12")
    regenerated(repository)
    commit(repository, "ours")
    with pytest.raises(subprocess.CalledProcessError):
        git(repository, "merge", "-q", "topic")
    assert "<<<<<<<" in playbook(repository).read_text()
    assert by_person(repository) == []
    assert pi_sync.unclear_lines(pi_files.read_state(repository / ".pi"), "L2") == []
    regenerated(repository)
    records = [json.loads(line) for line in playbook(repository).read_text().splitlines()]
    assert [record["status"] for record in records] == ["deprecated", "active", "active", "deprecated"]


# --- check ------------------------------------------------------------------------------------------------------------
def test_check_needs_no_daemon_and_tells_what_is_wrong_G2(repository: Path, memd: Callable[..., Told]) -> None:
    where = ("--cwd", str(repository))
    name = put(repository, [adding("mem_20260210_001")])
    stale = memd("pi", "check", *where)
    assert stale.code == 1 and "is not what the patches make" in stale.text and "`memd pi sync`" in stale.text
    regenerated(repository)
    commit(repository, "patch")
    assert memd("pi", "check", *where).code == 0
    path = repository / ".pi" / "patches" / f"{name}.json"
    edit(path, "specification-first", "code-first")
    edited = memd("pi", "check", *where, "--json")
    assert edited.code == 1 and edited.json["data"]["edited"] == [name]
    commit(repository, "edited")
    assert memd("pi", "check", *where).code == 1
    git(repository, "revert", "--no-edit", "HEAD")
    assert memd("pi", "check", *where).code == 0
    path.write_text("{")
    broken = memd("pi", "check", *where)
    assert broken.code == 1 and f"patches/{name}.json: not JSON" in broken.text


def test_an_edit_of_a_patch_with_a_name_that_is_no_hash_is_seen_in_git(repository: Path) -> None:
    fields = {"patch_id": "patch_20260210_001", "ops": [adding("mem_20260210_001")], "created_at": "2026-02-10"}
    path = repository / ".pi" / "patches" / "patch_20260210_001.json"
    path.write_text(json.dumps(fields))
    commit(repository, "patch")
    regenerated(repository)
    assert pi_sync.check(find_repository(str(repository))).is_fine
    edit(path, "specification-first", "code-first")
    commit(repository, "edited")
    assert pi_sync.check(find_repository(str(repository))).edited == ("patch_20260210_001",)


def test_commands_say_what_to_do_next(repository: Path, memd: Callable[..., Told], tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    done = memd("pi", "check", "--cwd", str(empty))
    assert done.code == 4 and "git init" in done.errors
    git(empty, "init", "-q")
    done = memd("pi", "check", "--cwd", str(empty))
    assert done.code == 4 and "`memd pi init`" in done.errors
    assert memd("pi", "sync", "--cwd", str(repository)).code == 3
    quiet = memd("pi", "sync", "--quiet", "--cwd", str(repository))
    assert (quiet.code, quiet.text, quiet.errors) == (0, "", "")
    made = memd("pi", "init", "--cwd", str(empty))
    assert made.code == 0 and (empty / ".pi" / "pi.config.yaml").exists() and "`memd pi trust`" in made.text
    assert memd("pi", "check", "--cwd", str(empty)).code == 0


def test_the_state_files_are_private_and_a_damaged_one_is_as_none(here: Any) -> None:
    sent = pi_sync.SentBlobs(here, "orchard/app")
    assert sent.read() == {}
    sent.write({"patch_20260210_001": "ab"})
    assert pi_sync.SentBlobs(here, "orchard/app").read() == {"patch_20260210_001": "ab"}
    (path,) = (here.state / "pi").iterdir()
    assert os.stat(path).st_mode & 0o777 == 0o600
    path.write_bytes(b"{")
    assert sent.read() == {}
