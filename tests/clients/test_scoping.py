"""`memd scope` and `memd leave` as a user meets them, with a real daemon (P3, P4, P-17)."""

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from memd.protocol.errors import Unavailable
from memd.protocol.event import Noted, Origin, Ran

AT = "2026-03-04T18:30:00+01:00"


def git(folder: Path, *arguments: str) -> None:
    who = ["-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "init.defaultBranch=main"]
    subprocess.run(["git", "-C", str(folder), *who, *arguments], check=True, capture_output=True)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "orchard"
    folder.mkdir()
    git(folder, "init")
    git(folder, "commit", "--allow-empty", "-m", "first")
    git(folder, "remote", "add", "origin", "git@example.org:ada/orchard.git")
    return folder


def test_scope_why_says_the_pool_and_the_evidence_in_words_P3(daemon: Any, memd: Any, repository: Path) -> None:
    before = memd("scope", "why", str(repository))
    assert before.code == 0
    assert "remote example.org/ada/orchard" in before.text and "nothing was captured for it yet" in before.text
    memd("remember", "The orchard service deploys on Tuesdays.", "--cwd", str(repository))
    told = memd("scope", "why", str(repository), "--json").json["data"]
    assert (told["title"], told["seen"], told["is_open"]) == ("orchard", "repository", True)
    assert told["reads"] == ["personal", told["pool"]]
    assert "by the folder" in memd("scope", "why", str(repository)).text
    assert memd("scope", "why", "/nonexistent/folder").text.startswith("/nonexistent/folder has no project\n")


def test_a_plain_folder_becomes_a_project_by_an_id_file_only_when_asked_P3(
    daemon: Any, memd: Any, tmp_path: Path
) -> None:
    notes = tmp_path / "notes"
    notes.mkdir()
    memd("remember", "The garden service writes its logs to disk.", "--cwd", str(notes))
    daemon.settle()
    assert not (notes / ".memd-id").exists()
    told = memd("scope", "bind", "--new", "--title", "garden", str(notes))
    assert told.code == 0 and "(garden)" in told.text
    assert (notes / ".memd-id").read_text().strip()
    assert ".memd-id now identifies the project" in told.errors
    (tmp_path / "elsewhere").mkdir()
    (notes / ".memd-id").rename(tmp_path / "elsewhere" / ".memd-id")
    pools = [memd("scope", "why", str(each), "--json").json["data"]["pool"] for each in (tmp_path / "elsewhere", notes)]
    assert pools[0] == pools[1] and pools[0].startswith("project/")


def test_leaving_says_how_to_come_back_and_that_works_P4(daemon: Any, memd: Any, repository: Path) -> None:
    memd("remember", "The orchard service deploys on Tuesdays.", "--cwd", str(repository))
    told = memd("leave", str(repository))
    assert told.code == 0 and "you left orchard" in told.text
    back = told.text.split("`")[1].split()
    assert back[:2] == ["memd", "leave"]
    assert "you left this project" in " ".join(memd("scope", "why", str(repository)).text.split())
    assert "you returned to orchard" in memd(*back[1:]).text
    assert "left" not in memd("scope", "why", str(repository)).text


def test_moving_shows_in_why_and_in_tail_P3(daemon: Any, memd: Any, repository: Path) -> None:
    id = memd("remember", "I like small commits.", "--json").json["data"]["record"]["id"]
    memd("remember", "The orchard service deploys on Tuesdays.", "--cwd", str(repository))
    told = memd("scope", "move", id[:8], "orchard")
    assert told.code == 0 and f"{id[:8]}: now in project/" in told.text
    assert "already there" in memd("scope", "move", id[:8], "orchard").text
    assert "moved" in memd("why", id[:8]).text


@pytest.mark.parametrize(
    ("arguments", "code", "message", "hint"),
    [
        (("scope", "bind"), 2, "no pool was named", "memd pools"),
        (("scope", "bind", "--personal", "--new"), 2, "more than one pool was named", "--personal"),
        (("scope", "bind", "nowhere"), 4, "no pool 'nowhere'", "there are: personal"),
        (("scope", "move", "7q3hjwch"), 2, "name at least one record, then a pool", "memd scope move"),
        (("scope", "move", "7q3hjwch", "personal"), 4, "no record '7q3hjwch'", "memd list"),
        (("leave", "/nonexistent"), 4, "is not a known project", "memd scope why"),
    ],
)
def test_what_can_not_be_done_is_told_with_a_hint_P3(
    shared_memd: Any, arguments: tuple[str, ...], code: int, message: str, hint: str
) -> None:
    told = shared_memd(*arguments)
    assert told.code == code
    assert message in told.errors and hint in told.errors


def test_remember_takes_the_pool_from_an_option_and_shows_the_final_record_P1(
    daemon: Any, memd: Any, repository: Path, tmp_path: Path
) -> None:
    at = ("--cwd", str(repository))
    work = memd("remember", "The orchard service deploys on Tuesdays.", "--wait", "--json", *at).data
    assert work["record"]["pool"].startswith("project/") and not work["pool_open"]
    mine = memd("remember", "--personal", "The parser of the orchard service is mine.", *at)
    assert mine.code == 0 and mine.text.endswith("· personal\n")
    theirs = memd("remember", "--project", "I like short functions.", "--json", *at).data
    assert theirs["record"]["pool"] == work["record"]["pool"] and not theirs["pool_open"]
    named = memd("remember", "--pool", "orchard", "I like long trains.", "--json", "--cwd", str(tmp_path)).data
    assert named["record"]["pool"] == work["record"]["pool"]
    waited = memd("remember", "--wait", "merk dir: die leiter steht im schuppen", "--json", *at).data["record"]
    assert (waited["content"], waited["language"]) == ("die leiter steht im schuppen", "de")


def test_an_open_pool_is_not_called_the_personal_one_W11(daemon: Any, memd: Any, repository: Path) -> None:
    told = memd("remember", "The orchard service deploys on Tuesdays.", "--cwd", str(repository))
    assert "pool chosen soon, by its subject" in told.text and "personal" not in told.text
    assert "memd remember --wait" in told.text


@pytest.mark.parametrize(
    ("options", "problem", "step"),
    [
        (("--project",), "belongs to no project", "memd scope bind --new"),
        (("--personal", "--project"), "more than one pool", "use one of"),
        (("--pool", ""), "the pool's name is empty", "memd pools"),
        (("--pool", "nosuchpool"), "no pool 'nosuchpool'", "there are: personal"),
    ],
)
def test_a_pool_that_cannot_be_meant_is_refused_with_the_next_step_P1(
    shared_memd: Any, tmp_path: Path, options: tuple[str, ...], problem: str, step: str
) -> None:
    told = shared_memd("remember", "I prefer tabs.", "--cwd", str(tmp_path), *options)
    assert told.code and problem in told.errors and step in told.errors


def test_scope_why_names_the_pool_that_a_capture_then_opens_in_a_plain_folder_P3(
    daemon: Any, memd: Any, tmp_path: Path
) -> None:
    notes = tmp_path / "notes"
    notes.mkdir()
    before = memd("scope", "why", str(notes), "--json").json["data"]["pool"]
    memd("remember", "The garden service writes its logs to disk.", "--cwd", str(notes))
    with daemon.client() as client:
        client.capture(Origin(host="shell", session="s", cwd=str(notes)), [Ran(turn="1", at=AT, command="make")])
    after = memd("scope", "why", str(notes), "--json").json["data"]
    assert before.startswith("unbound/") and (after["pool"], after["is_open"]) == (before, True)
    assert before in {pool["pool"] for pool in memd("pools", "--json").json["data"]["pools"]}


def test_a_session_waits_for_a_slow_disk_instead_of_falling_to_no_project_P3(
    daemon: Any, memd: Any, tmp_path: Path
) -> None:
    folder = tmp_path / "slow"
    folder.mkdir()
    file = folder / ".memd-id"
    os.mkfifo(file)  # reading it takes until somebody writes: the disk that does not answer
    told = memd("remember", "The slow service runs in Zurich.", "--cwd", str(folder))
    assert told.code == 0 and "still reading the repository" in told.text + told.errors
    assert not [pool for pool in memd("pools", "--json").json["data"]["pools"] if pool["pool"].startswith("unbound/")]
    assert memd("scope", "why", str(folder)).code == 3
    with daemon.client() as client, pytest.raises(Unavailable):
        noted = Noted(turn="1", at=AT, text="The slow service is old.", pool="project")
        client.capture(Origin(host="test", session="s", cwd=str(folder)), [noted])
    with file.open("w") as disk:
        (tmp_path / "id").write_text("slow-service-1\n")
        (tmp_path / "id").rename(file)
        disk.write("slow-service-1\n")
    assert memd("remember", "The slow service has two replicas.", "--cwd", str(folder)).code == 0  # delivers both
    daemon.settle()
    pool = memd("scope", "why", str(folder), "--json").json["data"]["pool"]
    listed = memd("list", "--pool", pool, "--json").json["data"]["records"]
    assert {record["content"] for record in listed} == {
        "The slow service runs in Zurich.",
        "The slow service has two replicas.",
    }


@pytest.fixture
def shared_rule(daemon: Any, memd: Any, repository: Path) -> str:
    told = memd("remember", "The orchard service deploys on Tuesdays.", "--project", "--cwd", str(repository), "--json")
    daemon.settle()
    return told.data["record"]["id"]


def test_who_may_see_a_record_grows_by_one_recorded_step_P7(memd: Any, shared_rule: str) -> None:
    skipped = memd("scope", "move", shared_rule, "--visibility", "organisation")
    assert skipped.code == 2 and "make it shared first" in skipped.errors
    for level in ("shared", "organisation"):
        assert f"would be {level}" in memd("scope", "move", shared_rule, "--visibility", level, "--dry-run").text
        assert f"now {level}" in memd("scope", "move", shared_rule, "--visibility", level).text
    assert "the user made it shared, from private" in memd("why", shared_rule).text
    assert "visible to   organisation" in memd("show", shared_rule).text
    memd("scope", "move", shared_rule, "personal")
    assert memd("show", shared_rule, "--json").data["provenance"]["visibility"] == "private"
    alone = memd("scope", "move", shared_rule, "--visibility", "shared")
    assert alone.code == 2 and "into a project first" in alone.errors


def test_a_copy_in_another_pool_names_its_origin_and_goes_when_that_is_forgotten_R9(
    daemon: Any, memd: Any, shared_rule: str
) -> None:
    copied = memd("scope", "move", shared_rule, "personal", "--copy", "--json").data
    (copy,) = copied["copies"]
    assert memd("show", copy, "--json").data["copy_of"] == shared_rule
    assert memd("show", copy, "--json").data["pool"] == "personal"
    assert memd("show", shared_rule, "--json").data["pool"].startswith("project/")
    assert "copied it from another pool" in memd("why", copy).text
    assert "already there" in memd("scope", "move", shared_rule, "personal", "--copy").text
    assert memd("forget", shared_rule, "--yes").code == 0
    assert memd("show", copy).code == 4
    assert not [
        path for path in daemon.places.data.rglob("*") if path.is_file() and b"deploys on Tuesdays" in path.read_bytes()
    ]


def test_the_users_own_playbook_holds_what_is_true_in_every_project_R9(daemon: Any, memd: Any) -> None:
    rule = memd("remember", "I always write the test before the code.", "--personal", "--wait", "--json").data
    id = rule["record"]["id"]
    assert memd("pin", id, "--playbook", "--json").data[0]["record"]["layer"] == "L2"
    assert "test before the code" in memd("profile").text
    assert "Playbook (L2)" in memd("context").text
