"""Which pool is whose, through a running daemon: sessions, questions, `scope` and `leave` (P2, P3, P4, P8, P-17)."""

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from memd.protocol.errors import InvalidRequest, NotFound
from memd.protocol.event import Noted, Origin, Repository, Said
from memd.protocol.operation import AliasAdded, Moved
from memd.protocol.recall import Recall
from memd.protocol.request import BindScope, Capture, LeaveProject, Remember

AT = "2026-03-04T18:30:00+01:00"
ADA = "git@example.org:ada/orchard.git"
DEPLOY = "The orchard service deploys on Tuesdays from the release branch."


def git(folder: Path, *arguments: str) -> str:
    who = ["-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "init.defaultBranch=main"]
    done = subprocess.run(["git", "-C", str(folder), *who, *arguments], check=True, capture_output=True, text=True)
    return done.stdout.strip()


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "orchard"
    folder.mkdir()
    git(folder, "init")
    git(folder, "commit", "--allow-empty", "-m", "first")
    git(folder, "remote", "add", "origin", ADA)
    return folder


def remember(client: Any, text: str, folder: Path | str, turn: str, host: str = "one") -> str:
    origin = Origin(host=host, session=str(folder), cwd=str(folder))
    return client.remember(Remember(text=text, turn=turn, at=AT, origin=origin)).record.id


def pool_of(client: Any, folder: Path | str) -> str:
    return client.why_scope(str(folder)).pool


def test_a_project_is_found_from_every_clone_and_from_nowhere_else_P3_P8(
    daemon: Any, repository: Path, tmp_path: Path
) -> None:
    git(tmp_path, "clone", str(repository), "clone")
    git(tmp_path / "clone", "remote", "set-url", "origin", "https://example.org/Ada/Orchard")
    with daemon.client() as client:
        id = remember(client, DEPLOY, repository, "t1")
        daemon.settle()
        pool = client.get(id).pool
        assert pool.startswith("project/") and pool == pool_of(client, tmp_path / "clone")
        told = client.recall("when does the orchard service deploy", cwd=str(tmp_path / "clone"))
        assert told.scope == ("personal", pool) and told.hits[0].record.id == id
        outside = client.recall("when does the orchard service deploy", cwd=str(tmp_path))
        assert outside.scope == ("personal",) and not outside.turns
        assert id not in {hit.record.id for hit in outside.hits}


def test_a_question_with_a_hint_reads_the_project_P3(daemon: Any, repository: Path) -> None:
    hint = Repository(
        root="/in/a/container", root_commit=git(repository, "rev-list", "--max-parents=0", "HEAD"), remote=ADA
    )
    with daemon.client() as client:
        remember(client, DEPLOY, repository, "t1")
        pool = pool_of(client, repository)
        wish = Recall(query="deploy", cwd="/in/a/container", repository=hint)
        from memd.protocol.recall import Recalled

        assert client.ask(wish, Recalled).scope == ("personal", pool)
        assert client.recall("deploy", cwd="/in/a/container").scope == ("personal",)


def test_a_session_keeps_the_pool_it_was_opened_with_P3(daemon: Any, repository: Path) -> None:
    origin = Origin(host="one", session="s", cwd=str(repository))
    with daemon.client() as client:
        first = client.capture(origin, [Said(turn="1", at=AT, role="user", text="hello")]).pool
        client.bind_scope(str(repository))
        assert pool_of(client, repository) != first
        assert client.capture(origin, [Said(turn="2", at=AT, role="user", text="more")]).pool == first
        other = Origin(host="one", session="later", cwd=str(repository))
        assert client.capture(other, [Said(turn="1", at=AT, role="user", text="x")]).pool == pool_of(client, repository)


# --- the pointer -------------------------------------------------------------------------------------------------
def test_the_first_session_opens_the_pointer_and_leaving_closes_it_P2_P4(
    daemon: Any, repository: Path, tmp_path: Path
) -> None:
    question = "when does the orchard service deploy"
    with daemon.client() as client:
        id = remember(client, DEPLOY, repository, "t1")
        remember(client, "I prefer tabs for indentation.", repository, "t2")
        daemon.settle()
        pool = client.get(id).pool
        edges = client.list(key=f"user works_on {pool}").records
        assert [(edge.kind, edge.pool, edge.status) for edge in edges] == [("edge", "personal", "active")]
        assert edges[0].content == "The user works on orchard (example.org/ada/orchard)."
        assert client.why(edges[0].id).quote_holds

        left = client.leave(str(repository))
        assert (left.pool, left.left) == (pool, True) and left.records >= 1
        told = client.recall(question, cwd=str(repository))
        assert told.scope == ("personal",) and id not in {hit.record.id for hit in told.hits} and not told.turns
        assert client.why_scope(str(repository)).left
        assert id not in {record.id for record in client.list(limit=100).records}
        assert client.recall(question, pools=[pool]).hits[0].record.id == id  # it stays with the project
        assert "tabs" in client.profile(cwd=str(repository)).text  # and what is the user's with the user
        assert any(each.record.id == id for each in client.export(limit=100).records)

        remember(client, "The orchard service logs to standard error.", repository, "t3", host="two")
        assert client.recall(question, cwd=str(repository)).scope == ("personal",)  # a new session changes nothing
        assert client.leave(str(repository), back=True).left is False
        assert client.recall(question, cwd=str(repository)).hits[0].record.id == id
        assert client.leave(pool=pool, back=True).left is False  # again
        with pytest.raises(NotFound, match="not a known project"):
            client.leave(str(tmp_path / "elsewhere"))


# --- unbound, and bound later ------------------------------------------------------------------------------------
def test_an_order_with_a_time_that_is_none_is_refused_before_anything_is_written_P3_P4(
    daemon: Any, repository: Path
) -> None:
    with daemon.client() as client:
        pool = client.get(remember(client, DEPLOY, repository, "t1")).pool
        last = client.status().journal_seq
        for order in (
            BindScope(cwd="/srv/other", at="not a time at all"),
            LeaveProject(pool=pool, at="2026-03-04T18:30"),
        ):
            with pytest.raises(InvalidRequest):
                client.ask(order, dict)
        assert client.status().journal_seq == last
        assert remember(client, "The orchard service has two workers.", repository, "t2")


def test_an_unbound_folder_is_bound_and_its_memory_comes_along_P3(
    daemon: Any, repository: Path, tmp_path: Path
) -> None:
    gone = tmp_path / "gone"
    with daemon.client() as client:
        here = remember(client, "The orchard service listens on port 8080.", repository, "t1")
        there = remember(client, "The garden service writes its logs to disk.", gone, "t1")
        origin = Origin(host="two", session="other tool", cwd=str(gone))
        client.capture(origin, [Said(turn="1", at=AT, role="user", text="The zebra job runs at midnight.")])
        daemon.settle()
        pool, unbound = client.get(here).pool, client.get(there).pool
        assert unbound.startswith("unbound/") and unbound == pool_of(client, gone)
        assert client.recall("where does the garden service log", cwd=str(gone)).hits[0].record.id == there
        bound = client.bind_scope(str(gone), "orchard")
        assert (bound.pool, bound.was) == (pool, unbound) and bound.moved >= 1
        moved = client.get(there)
        assert (moved.pool, moved.placed) == (pool, True)
        assert [change.kind for change in client.why(there).changes][-1] == "moved"
        told = client.recall("where does the garden service log", cwd=str(repository))
        assert told.scope == ("personal", pool) and told.hits[0].record.id == there
        heard = client.recall("zebra midnight", cwd=str(repository))
        assert any("zebra" in turn.quote for turn in heard.turns) or any(
            "zebra" in hit.record.content for hit in heard.hits
        )
        before = client.status().journal_seq
        later = remember(client, "The garden service needs two gigabytes of memory.", gone, "t2")
        daemon.settle()
        assert client.get(later).pool == pool  # also what that folder's open session says from now on
        assert not [e for e in client.journal(before).entries if isinstance(e.operation, AliasAdded)]


def test_a_folder_is_bound_to_nothing_and_a_repository_to_a_new_pool_P3(
    daemon: Any, repository: Path, tmp_path: Path
) -> None:
    (tmp_path / "notes" / "deep").mkdir(parents=True)
    with daemon.client() as client:
        first = client.capture(
            Origin(host="one", session="s", cwd=str(repository)), [Said(turn="1", at=AT, role="user", text="x")]
        ).pool
        client.bind_scope(str(tmp_path / "notes"), "personal")
        told = client.why_scope(str(tmp_path / "notes" / "deep"))
        assert (told.pool, told.reads, told.bound) == ("personal", ("personal",), True)
        origin = Origin(host="one", session="n", cwd=str(tmp_path / "notes"))
        assert client.capture(origin, [Said(turn="1", at=AT, role="user", text="x")]).pool == "personal"

        other = client.bind_scope(str(repository), title="grove")
        assert other.was == first != other.pool and other.title == "grove"
        git(tmp_path, "clone", str(repository), "clone")
        git(tmp_path / "clone", "remote", "set-url", "origin", ADA)
        assert pool_of(client, tmp_path / "clone") == other.pool
        client.bind_scope(str(repository), first)
        assert pool_of(client, tmp_path / "clone") == first
        with pytest.raises(NotFound, match="no pool"):
            client.bind_scope(str(repository), "nowhere")


def test_two_projects_are_joined_by_the_user_alone_and_parted_again_P3(
    daemon: Any, repository: Path, tmp_path: Path
) -> None:
    git(tmp_path, "clone", str(repository), "fork")
    fork = tmp_path / "fork"
    git(fork, "remote", "set-url", "origin", "git@example.org:eve/orchard.git")
    with daemon.client() as client:
        a = remember(client, DEPLOY, repository, "t1")
        b = remember(client, "The fork of the service deploys on Fridays instead.", fork, "t1")
        daemon.settle()
        mine, theirs = client.get(a).pool, client.get(b).pool
        assert mine != theirs
        assert client.why_scope(str(fork)).alike == ((mine, "same root commit, different remote"),)
        assert client.bind_scope(str(fork), mine).stays >= 1
        assert client.get(b).pool == theirs
        client.bind_scope(str(fork), theirs)
        joined = client.bind_scope(str(fork), mine, join=True)
        assert joined.moved >= 1 and client.get(b).pool == mine
        assert {pool_of(client, fork), pool_of(client, repository)} == {mine}
        client.bind_scope(str(fork), theirs)
        assert (pool_of(client, fork), pool_of(client, repository)) == (theirs, mine)


def test_what_was_known_outlives_the_daemon_and_the_folder_P3(daemon: Any, repository: Path) -> None:
    with daemon.client() as client:
        remember(client, DEPLOY, repository, "t1")
        pool = pool_of(client, repository)
    daemon.kill()
    daemon.start()
    with daemon.client() as client:  # libgit2 is not even loaded yet: what the folder was counts
        assert client.recall("deploy", cwd=str(repository)).scope == ("personal", pool)
        shutil.rmtree(repository)
        assert client.recall("deploy", cwd=str(repository / "src")).scope == ("personal", pool)
        origin = Origin(host="import", session="old", cwd=str(repository))
        assert client.capture(origin, [Said(turn="1", at=AT, role="user", text="x")]).pool == pool


# --- moving ------------------------------------------------------------------------------------------------------
def test_a_record_moves_with_its_key_and_history_and_stays_there_P3(daemon: Any, repository: Path) -> None:
    with daemon.client() as client:
        id = remember(client, "I prefer tabs for indentation.", repository, "t1")
        note = remember(client, DEPLOY, repository, "t2")
        daemon.settle()
        pool, record = client.get(note).pool, client.get(id)
        assert record.pool == "personal" and record.key
        moved = client.move_records([id[:8], note], pool)
        assert (moved.moved, moved.there, moved.unkeyed) == ((id,), (note,), ())
        after = client.get(id)
        assert (after.pool, after.key, after.rev, after.placed) == (pool, record.key, record.rev + 1, True)
        assert client.list(pools=[pool], key=record.key).records == (after,)
        assert [change.kind for change in client.why(id).changes][-1] == "moved"
        hits = client.recall("tabs or spaces for indentation", pools=[pool]).hits
        assert id in {hit.record.id for hit in hits}
        assert id not in {hit.record.id for hit in client.recall("tabs for indentation", pools=["personal"]).hits}
        was = client.list(pools=["personal"], key=record.key, believed_at=_before_the_move(client)).records
        assert [each.id for each in was] == [id]  # the past is as it was

        again = remember(client, "I prefer tabs for indentation.", repository, "t3", host="two")
        daemon.settle()
        held = client.get(again)
        if held.status == "active" and held.key == record.key:
            taken = client.move_records([again], pool)
            assert taken.unkeyed == (again,) and client.get(again).needs_review
        with pytest.raises(NotFound, match="memd moved no record"):
            client.move_records([note, "zzzzzzzz"], "personal")
        with pytest.raises(NotFound, match="no pool"):
            client.move_records([note], "nowhere")
        edge = client.list(key=f"user works_on {pool}").records[0]
        with pytest.raises(InvalidRequest, match="projects you work on"):
            client.move_records([edge.id], pool)
        assert client.get(note).pool == pool
    daemon.kill()
    daemon.start()
    with daemon.client() as client:
        assert client.get(id).pool == pool


def _before_the_move(client: Any) -> str:
    from memd.protocol.instant import from_micros

    entries = client.journal(limit=500).entries
    return from_micros(next(entry.at for entry in entries if isinstance(entry.operation, Moved)) - 1)


def test_what_the_user_moved_before_it_was_distilled_stays_where_he_put_it_P3(daemon: Any, repository: Path) -> None:
    with daemon.client() as client:
        pool = client.capture(
            Origin(host="one", session="s", cwd=str(repository)), [Said(turn="1", at=AT, role="user", text="x")]
        ).pool
        origin = Origin(host="one", session="elsewhere")
        wish = Remember(text="I like the service to be small.", turn="n", at=AT, origin=origin)
        id = client.remember(wish).record.id
        client.move_records([id], pool)
        daemon.settle()
        assert client.get(id).pool == pool
        client.edit(id, "I like the service to be tiny.")
        daemon.settle()
        assert client.get(id).pool == pool


def test_an_unknown_field_in_a_hint_does_not_stop_a_capture_P3(daemon: Any) -> None:
    origin = Origin(host="one", session="s", cwd="/x", repository=Repository(root="/x", root_commit="", remote="/y"))
    with daemon.client() as client:
        events = (Noted(turn="1", at=AT, text="The lamp is green."),)
        from memd.protocol.reply import Taken

        assert client.ask(Capture(origin=origin, events=events), Taken).pool.startswith("unbound/")
