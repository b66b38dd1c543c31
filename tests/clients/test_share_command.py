"""`memd share` as users meet it: real daemons, a real bare repository as the remote, a real git (H1, H2)."""

import json
import os
import pty
import re
import select
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from memd.clients.hooks import program
from memd.clients.hooks.session_pulls import SessionPull, chosen_pull, pull_at_start, pulls_folder, stop_pulling
from memd.clients.python.client import Client
from memd.protocol.errors import InvalidRequest
from tests.clients.conftest import Told, memd_in
from tests.clients.hooked import Host, started
from tests.conftest import RunningDaemon

LEDGER = "We keep the apple ledger in SQLite, because the spreadsheet loses rows."
PRESS = "The press of the orchard service starts at six in the morning."
CELLAR = "The cellar door of the orchard sticks in the winter."
AWAY = "http://127.0.0.1:9/orchard.git"
WAIT_S = 90.0


def flat(text: str) -> str:
    """Text on one line."""
    return " ".join(text.split())


def git(folder: Path, *arguments: str) -> str:
    """What git prints."""
    identity = ("-c", "user.name=Test", "-c", "user.email=test@example.org", "-c", "commit.gpgsign=false")
    command = ["git", *identity, "-C", str(folder), *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


class Person:
    """A user with a home of their own, a daemon and a clone of the project."""

    def __init__(self, root: Path, name: str, remote: Path) -> None:
        self.name, self.folder = name, root / name / "orchard"
        home = root / f"{name}-home"
        home.mkdir(mode=0o700)
        settings = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
        self.environment = {**os.environ, **settings, "MEMD_HOME": str(home), "MEMD_IDLE_S": "0.05"}
        subprocess.run(["git", "clone", "-q", str(remote), str(self.folder)], check=True, capture_output=True)
        git(self.folder, "config", "user.name", name)
        self.daemon = RunningDaemon(self.environment)
        self.daemon.start()
        self._memd = memd_in(self.environment)

    def remember(self, text: str) -> str:
        """Remember a statement in the project; its id."""
        with self.client() as client:
            id = client.remember(text, cwd=str(self.folder), pool="project").record.id
        self.daemon.settle()
        return id

    def client(self) -> Client:
        """A client of the daemon."""
        return self.daemon.client()

    def share(self, *arguments: str, input: str | None = None, **changes: str) -> Told:
        """`memd share …` in the clone."""
        here = () if arguments[0] in ("status", "wrong", "hook") else ("--cwd", str(self.folder))
        return self._memd("share", *arguments, *here, input=input, **changes)

    def memd(self, *arguments: str) -> Told:
        """`memd …` outside of the clone."""
        return self._memd(*arguments)

    def shared(self, *arguments: str) -> Told:
        """A command that succeeds."""
        told = self.share(*arguments)
        assert told.code == 0, told.errors + told.text
        return told

    def statements(self) -> dict[str, str]:
        """Statement → status, of the project's records that lists show."""
        with self.client() as client:
            records = client.list(limit=200).records
        return {record.description: record.status for record in records if record.pool != "personal"}


@pytest.fixture
def remote(tmp_path: Path) -> Path:
    """The project's bare repository, with one commit."""
    remote, seed = tmp_path / "orchard.git", tmp_path / "seed"
    subprocess.run(["git", "init", "-q", "--bare", "-b", "main", str(remote)], check=True)
    subprocess.run(["git", "init", "-q", "-b", "main", str(seed)], check=True)
    git(seed, "commit", "-q", "--allow-empty", "-m", "plant")
    git(seed, "push", "-q", str(remote), "main")
    return remote


@pytest.fixture
def person(tmp_path: Path, remote: Path) -> Iterator[Callable[[str], Person]]:
    """Makes people of the project."""
    people: list[Person] = []

    def new(name: str) -> Person:
        people.append(Person(tmp_path, name, remote))
        return people[-1]

    yield new
    for one in people:
        one.daemon.terminate()


@pytest.fixture
def ada(person: Callable[[str], Person]) -> Person:
    """One user."""
    return person("Ada")


# --- two people -------------------------------------------------------------------------------------------------------
def test_two_people_share_choose_trust_dispute_and_leave_H1_H2(
    ada: Person, person: Callable[[str], Person], remote: Path
) -> None:
    bert = person("Bert")
    ledger, press = ada.remember(LEDGER), ada.remember(PRESS)
    assert "orchard is shared through" in flat(ada.shared("on", "--yes").text)
    assert ada.shared("outbox").text.startswith("the outbox is empty")
    listed = ada.shared("review").text
    assert LEDGER in flat(listed) and PRESS in flat(listed)
    assert "1 record in the outbox" in ada.shared("review", "--accept", ledger[:8]).text
    assert "kept: never shared" in ada.shared("review", "--keep", press).text
    line = ada.shared("outbox").text
    assert json.dumps(LEDGER) in line and PRESS not in line
    assert "1 new" in ada.shared("push", "--dry-run").text and LEDGER.encode() not in objects_of(remote)
    assert "pushed lines: 1 new; the remote has 1 of yours" in flat(ada.shared("push").text)
    assert "refs/memd/v1/" in git(remote, "for-each-ref")
    assert "nothing to push" in ada.shared("push").text

    bert.shared("on", "--yes")
    assert "nothing was taken" in bert.shared("pull", "--dry-run").text and bert.statements() == {}
    told = flat(bert.shared("sync").text)
    assert "Ada (" in told and "1 new" in told and "memd share trust NAME" in told
    assert bert.statements() == {LEDGER: "quarantined"}
    assert "nothing new from others" in bert.shared("pull").text
    shown = flat(bert.shared("status").text)
    assert "Ada · new: unconfirmed until you trust them" in shown and "1 line, 1 record shown" in shown
    assert "Ada shared line 0" in flat(bert.shared("log").text) and LEDGER in flat(bert.shared("log", "Ada").text)
    assert "Ada · trusted" in bert.shared("trust", "Ada").text
    assert bert.statements() == {LEDGER: "active"}
    assert "Ada · muted" in bert.shared("mute", "Ada").text and LEDGER not in bert.statements()
    assert "unconfirmed" in bert.shared("mute", "Ada", "--back").text
    assert bert.statements() == {LEDGER: "quarantined"}

    with bert.client() as client:
        [record] = [record for record in client.list(limit=10).records if record.description == LEDGER]
    told = bert.shared("wrong", record.id[:8], "--why", "it is in Postgres since March")
    assert "retired here" in told.text and "memd share push" in told.text
    assert "1 retracted" in bert.shared("push").text
    assert "Bert (" in ada.shared("pull").text
    with ada.client() as client:
        [proposal] = client.inbox().proposals
        assert proposal.line == LEDGER, "what a stranger says of her own record is a proposal"
        client.decide(proposal.id, accept=True)
    assert ada.statements()[LEDGER] == "retired"

    assert "is withdrawn" in ada.shared("off", "--withdraw").text
    assert "left the project" in flat(bert.shared("pull").text)
    for objects in (remote, bert.folder):
        assert b"apple ledger" not in reachable(objects)


def test_a_correction_of_a_shared_record_is_shared_and_retracts_it_W7(
    ada: Person, person: Callable[[str], Person]
) -> None:
    right = "We keep the apple ledger in Postgres, because the spreadsheet loses rows."
    bert = person("Bert")
    ledger = ada.remember(LEDGER)
    ada.shared("on", "--yes")
    ada.shared("review", "--accept", ledger)
    ada.shared("push")
    bert.shared("on", "--yes")
    bert.shared("pull")
    with bert.client() as client:
        [record] = [record for record in client.list(limit=10).records if record.description == LEDGER]
        with pytest.raises(InvalidRequest, match="the words of Ada") as refused:
            client.edit(record.id, right)
        assert "memd correct" in refused.value.hint
        own = client.correct(record.id, right).record
    assert (own.provenance.author, own.provenance.trust) == ("user", "user") and not own.is_team
    assert [span.document for span in own.provenance.spans] == [own.provenance.source]
    assert bert.statements() == {LEDGER: "retired", right: "active"}
    assert right in flat(bert.shared("review").text)
    assert "1 record in the outbox" in bert.shared("review", "--accept", own.id).text
    assert "1 new, 1 retracted" in bert.shared("push").text
    assert "1 new, 1 against records of yours" in flat(ada.shared("pull").text)
    assert ada.statements() == {LEDGER: "active", right: "quarantined"}
    ada.shared("trust", "Bert")
    assert ada.statements() == {LEDGER: "retired", right: "active"}
    with ada.client() as client:
        [theirs] = [record for record in client.list(limit=10).records if record.description == right]
        assert (theirs.provenance.author, theirs.supersedes) == ("Bert", (ledger,))
    assert "nothing to push" in bert.shared("push").text


def reachable(repository: Path) -> bytes:
    """The contents of all objects that refs of a repository lead to."""
    names = [line.split()[0] for line in git(repository, "rev-list", "--objects", "--all").splitlines()]
    command = ["git", "-C", str(repository), "cat-file", "--batch"]
    return subprocess.run(command, check=True, capture_output=True, input="\n".join(names).encode()).stdout


# --- beginning --------------------------------------------------------------------------------------------------------
def test_without_a_terminal_or_yes_nothing_is_shared_H1(ada: Person) -> None:
    told = ada.share("on")
    assert told.code == 7 and "--yes" in told.errors and "hint: " in told.errors
    assert ada.shared("status", "--json").data["shares"] == []


def test_a_terminal_shows_who_can_read_it_and_what_never_goes_and_asks_H1(ada: Person, remote: Path) -> None:
    ada.remember(LEDGER)
    code, shown = at_terminal(ada, ["on", "--new-sessions"], ["n"])
    text = flat(shown)
    assert code != 0 and ada.shared("status", "--json").data["shares"] == []
    assert str(remote) in "".join(shown.split()) and "your name there Ada" in text, "a long path is broken into lines"
    assert "everyone who may fetch from" in text
    assert "1 record may go" in text and "24 hours" in text
    assert "transcripts and quotes" in text and "your e-mail address" in text and "a clone that never pulls" in text
    assert all(len(line) <= 80 for line in re.sub(r"\x1b\[[0-9;]*m", "", shown).splitlines())
    code, shown = at_terminal(ada, ["on"], ["y"])
    assert code == 0 and "is shared through" in flat(shown)


def test_each_record_is_asked_about_at_a_terminal_H1(ada: Person) -> None:
    for text in (LEDGER, PRESS, CELLAR):
        ada.remember(text)
    ada.shared("on", "--yes")
    code, shown = at_terminal(ada, ["review"], ["s", "k", "q"])
    assert code == 0 and "1 to share, 1 kept" in shown
    items = ada.shared("outbox", "--json").data["items"]
    left = ada.shared("review", "--json").data["candidates"]
    assert len(items) == 1 and len(left) == 1
    assert "1 record in the outbox" not in ada.shared("review").text
    assert "in the outbox" in ada.shared("review", "--all").text
    assert len(ada.shared("outbox", "--json").data["items"]) == 2
    assert "nothing to decide" in ada.shared("review").text


def at_terminal(person: Person, arguments: list[str], answers: list[str]) -> tuple[int, str]:
    """Run `memd share` at a terminal, and answer each question; the exit code and what was shown."""
    command = [sys.executable, "-P", "-m", "memd.clients.cli.main", "share", *arguments, "--cwd", str(person.folder)]
    ours, theirs = pty.openpty()
    environment = {**person.environment, "COLUMNS": "80", "TERM": "dumb"}
    process = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=environment)
    os.close(theirs)
    shown, end, left = b"", time.monotonic() + WAIT_S, list(answers)
    asked = 0
    while time.monotonic() < end:
        if select.select([ours], [], [], 0.1)[0]:
            try:
                piece = os.read(ours, 65_536)
            except OSError:  # the other side is closed
                break
            shown += piece
        questions = len(re.findall(rb"(?:Share it\? \[y/N\]:|q quit \?) ", shown))
        if left and questions > asked:
            asked = questions
            os.write(ours, f"{left.pop(0)}\n".encode())
    os.close(ours)
    return process.wait(WAIT_S), shown.decode().replace("\r\n", "\n")


@pytest.mark.parametrize(
    ("arguments", "code", "message", "hint"),
    [
        (("push",), 4, "is not shared", "memd share on"),
        (("review",), 4, "is not shared", "memd share on"),
        (("off",), 4, "is not shared", "memd share status"),
        (("trust", "Bert"), 4, "is not shared", "memd share on"),
    ],
)
def test_a_project_that_is_not_shared_is_told_with_the_next_step_H1(
    ada: Person, arguments: tuple[str, ...], code: int, message: str, hint: str
) -> None:
    ada.remember(LEDGER)
    told = ada.share(*arguments)
    assert (told.code, message in told.errors, hint in told.errors) == (code, True, True), told.errors


def test_a_folder_without_a_project_or_a_remote_can_not_be_shared_A2(ada: Person, tmp_path: Path) -> None:
    told = memd_in(ada.environment)("share", "on", "--yes", "--cwd", str(tmp_path))
    assert told.code == 2 and "only projects are shared" in told.errors and "--pool" in told.errors
    told = memd_in(ada.environment)("share", "on", "--yes", "--pool", "personal", "--remote", "x", "--name", "Ada")
    assert told.code != 0 and ada.shared("status", "--json").data["shares"] == []
    git(ada.folder, "remote", "remove", "origin")
    ada.remember(LEDGER)
    told = ada.share("on", "--yes")
    assert told.code == 2 and "origin" in told.errors and "--remote URL" in told.errors


def test_what_keeps_a_share_from_beginning_says_what_to_do_next_H1(ada: Person, tmp_path: Path, remote: Path) -> None:
    young = tmp_path / "young"
    subprocess.run(["git", "init", "-q", str(young)], check=True)
    told = ada.memd("share", "on", "--yes", "--remote", str(remote), "--name", "Ada", "--cwd", str(young))
    assert told.code == 2 and "no commit yet" in flat(told.errors) and "make the first commit" in flat(told.errors)
    told = ada.share("on", "--yes", "--name", "A" * 300)
    assert told.code == 2 and "the name has 300 characters" in flat(told.errors)
    git(young, "commit", "-q", "--allow-empty", "-m", "first")
    told = ada.memd("share", "on", "--yes", "--no-push", "--remote", str(remote), "--name", "Ada", "--cwd", str(young))
    assert told.code == 0, told.errors
    with ada.client() as client:
        end = time.monotonic() + 8 * WAIT_S
        while client.status().pending and time.monotonic() < end:  # no other event wakes the worker
            time.sleep(0.05)
        assert client.status().pending == 0


def test_records_to_review_are_named_in_the_inbox_H1(ada: Person) -> None:
    ada.remember(LEDGER)
    assert "memd share review" not in ada.memd("inbox").text
    ada.shared("on", "--yes", "--no-push")
    assert "1 record waits for your review: memd share review" in flat(ada.memd("inbox").text)


def test_a_password_in_the_address_of_origin_is_not_stored_W5(ada: Person) -> None:
    ada.remember(LEDGER)
    secret = "hunter2-" + "9f1c4e7a"
    git(ada.folder, "remote", "set-url", "origin", f"https://ada:{secret}@example.org/orchard.git")
    told = ada.share("on", "--yes", "--no-push")
    assert told.code == 0 and "left out the password" in told.errors
    [share] = ada.shared("status", "--json").data["shares"]
    assert share["address"] == "https://ada@example.org/orchard.git"
    assert not [path for path in Path(ada.environment["MEMD_HOME"]).rglob("*") if holds(path, secret)]


def holds(path: Path, text: str) -> bool:
    """Whether a file has the text."""
    return path.is_file() and text.encode() in path.read_bytes()


def test_a_remote_that_is_away_ends_with_3_and_keeps_what_was_chosen_H1(ada: Person, remote: Path) -> None:
    ledger = ada.remember(LEDGER)
    told = ada.share("on", "--yes", "--remote", AWAY)
    assert told.code == 3 and "it is not shared" in told.errors and "--no-push" in told.errors
    assert not ada.shared("status", "--json").data["shares"][0]["is_open"]
    ada.shared("on", "--yes", "--remote", AWAY, "--no-push")
    ada.shared("review", "--accept", ledger)
    told = ada.share("push")
    assert told.code == 3 and "hint: " in told.errors, told.errors
    assert json.dumps(LEDGER) in ada.shared("outbox").text or "1 to push" in ada.shared("status").text
    assert "the remote has 1 of yours" in flat(ada.shared("on", "--yes", "--remote", str(remote)).text)
    assert "nothing to push" in ada.shared("push").text


def test_on_pushes_a_head_without_lines_and_reads_it_back_H1(
    ada: Person, person: Callable[[str], Person], remote: Path
) -> None:
    ada.remember(LEDGER)
    ada.shared("on", "--yes")
    [share] = ada.shared("status", "--json").data["shares"]
    assert f"refs/memd/v1/{share['partition']}" in git(remote, "for-each-ref")
    assert LEDGER.encode() not in objects_of(remote)
    bert = person("Bert")
    bert.remember(PRESS)
    bert.shared("on", "--yes")
    bert.shared("pull")
    assert "0 lines, 0 records shown" in flat(bert.shared("status").text)


def test_a_host_that_takes_branches_alone_is_told_at_once_H1(ada: Person, remote: Path, tmp_path: Path) -> None:
    ada.remember(LEDGER)
    takes_branches_alone(remote)
    told = ada.share("on", "--yes")
    assert told.code == 4 and "it is not shared" in told.errors and "memd share on --remote URL" in told.errors
    assert "branches alone, please" in told.errors, "the words of the host are told"
    assert not ada.shared("status", "--json").data["shares"][0]["is_open"]
    assert "refs/memd" not in git(remote, "for-each-ref") and ada.share("push").code == 4
    other = tmp_path / "memory.git"
    subprocess.run(["git", "init", "-q", "--bare", str(other)], check=True)
    assert ada.shared("on", "--yes", "--remote", str(other), "--json").data["is_open"]
    told = ada.share("on", "--yes", "--remote", str(remote), "--name", "A", "--new-sessions")
    assert told.code == 4 and "stays shared as before" in told.errors
    [share] = ada.shared("status", "--json").data["shares"]
    assert (share["is_open"], share["address"], share["name"]) == (True, str(other), "Ada")
    assert not share["new_sessions"]


def takes_branches_alone(repository: Path) -> None:
    """Have a repository refuse all other refs, as some hosts do."""
    hook = repository / "hooks" / "pre-receive"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(
        "#!/bin/sh\nwhile read old new ref; do\n"
        '  case "$ref" in refs/heads/*) ;; *) echo "branches alone, please" >&2; exit 1 ;; esac\ndone\n'
    )
    hook.chmod(0o755)


def objects_of(repository: Path) -> bytes:
    """The contents of all objects of a repository, also of those that nothing leads to."""
    command = ["git", "-C", str(repository), "cat-file", "--batch-all-objects", "--batch", "--unordered"]
    return subprocess.run(command, check=True, capture_output=True).stdout


def test_forgetting_tells_of_what_is_still_at_the_remote_T10(ada: Person, remote: Path) -> None:
    ledger = ada.remember(LEDGER)
    ada.shared("on", "--yes")
    ada.shared("review", "--accept", ledger)
    ada.shared("push")
    told = flat(ada.memd("forget", ledger, "--yes").text)
    assert "1 line that you shared is still at a remote" in told and "memd share push" in told
    assert "1 line forgotten here and still at the remote" in flat(ada.shared("status").text)
    assert "1 forgotten" in ada.shared("push").text
    assert "still at" not in flat(ada.shared("status").text)
    ada.shared("off", "--withdraw")
    ada.shared("on", "--yes")
    assert json.loads(ada.shared("pull", "--json").text)["data"].get("partitions", []) == [], "not even one's own"


def test_forgetting_reaches_the_remotes_of_earlier_too_and_new_lines_do_not_T10(
    ada: Person, person: Callable[[str], Person], remote: Path, tmp_path: Path
) -> None:
    bert, private, moved = person("Bert"), tmp_path / "private.git", tmp_path / "moved.git"
    subprocess.run(["git", "init", "-q", "--bare", str(private)], check=True)
    ledger, press, cellar = ada.remember(LEDGER), ada.remember(PRESS), ada.remember(CELLAR)
    ada.shared("on", "--yes")
    ada.shared("review", "--accept", ledger, "--accept", press)
    ada.shared("push")
    bert.shared("on", "--yes")
    bert.shared("pull")
    assert {LEDGER, PRESS} <= bert.statements().keys()
    ada.shared("on", "--yes", "--remote", str(private))
    ada.shared("review", "--accept", cellar)
    ada.shared("push")
    assert "earlier remote" not in flat(ada.shared("status").text)
    ada.memd("forget", ledger, "--yes")
    remote.rename(moved)
    told = ada.shared("push")
    assert f"{remote}stillhas1forgottenline" in "".join(told.text.split())
    assert "1 line forgotten here and still at the earlier remote" in flat(ada.shared("status").text)
    moved.rename(remote)
    assert "nolongerhas1forgottenline" in "".join(ada.shared("push").text.split())
    assert "earlier remote" not in flat(ada.shared("status").text)
    bert.shared("pull")
    assert LEDGER not in bert.statements() and PRESS in bert.statements() and CELLAR not in bert.statements()
    ada.shared("off", "--withdraw")
    bert.shared("pull")
    assert PRESS not in bert.statements() and "left the project" in flat(bert.shared("status").text)


def test_off_stops_push_and_pull_and_on_begins_again_H1(ada: Person) -> None:
    ada.remember(LEDGER)
    ada.shared("on", "--yes")
    assert "is no longer shared" in flat(ada.shared("off").text)
    assert " · off" in ada.shared("status").text
    for command in ("push", "pull", "sync", "review"):
        told = ada.share(command)
        assert told.code == 4 and "`memd share on` begins again" in told.errors
    assert ada.shared("on", "--yes", "--json").data["is_open"]


def test_a_new_name_of_an_author_is_that_of_earlier_lines_too_H2(ada: Person, person: Callable[[str], Person]) -> None:
    bert = person("Bert")
    id = ada.remember(LEDGER)
    ada.shared("on", "--yes")
    ada.shared("review", "--accept", id)
    ada.shared("push")
    bert.shared("on", "--yes")
    bert.shared("pull")
    ada.shared("on", "--yes", "--name", "Countess")
    ada.shared("push")
    bert.shared("pull")
    bert.daemon.settle()
    with bert.client() as client:
        (record,) = [each for each in client.list(limit=50).records if each.description == LEDGER]
        (hit,) = [hit for hit in client.recall("apple ledger", cwd=str(bert.folder)).hits if hit.record.id == record.id]
        told = (record, hit.record, client.get(record.id), client.why(record.id).record)
        assert {one.provenance.author for one in told} == {"Countess"}
    assert "shared by Countess" in flat(bert.memd("why", record.id).text)
    assert "Countess shared line 0" in flat(bert.shared("log").text)
    assert bert.shared("trust", "Countess").code == 0


def test_leaving_a_project_stops_push_and_pull_and_a_return_does_not_share_it_H1_P4(
    ada: Person, person: Callable[[str], Person], remote: Path
) -> None:
    bert = person("Bert")
    ledger, press = ada.remember(LEDGER), ada.remember(PRESS)
    ada.shared("on", "--yes", "--session-start")
    ada.shared("review", "--accept", ledger)
    ada.shared("push")
    bert.shared("on", "--yes")
    bert.shared("pull")
    before = git(remote, "for-each-ref")
    ada.shared("review", "--accept", press)
    told = ada.memd("leave", str(ada.folder))
    assert told.code == 0 and "no longer shared: nothing is pushed or pulled" in flat(told.text)
    assert " · off" in ada.shared("status").text
    with ada.client() as client:
        (share,) = client.shares().shares
        assert (chosen_pull(client.places, share.pool), share.withdrawn) == (None, False)
        assert client.recall("apple ledger", pools=[share.pool]).hits, "read by its name as before"
    for command in ("push", "pull", "sync", "review"):
        told = ada.share(command)
        assert told.code == 4 and "no longer shared" in told.errors
    assert git(remote, "for-each-ref") == before
    bert.shared("pull")
    assert bert.statements()[LEDGER] == "quarantined", "others keep what they have"
    again = ada.memd("leave", str(ada.folder))
    assert again.code == 0 and "no longer shared" not in flat(again.text)
    assert ada.memd("leave", "--back", str(ada.folder)).code == 0
    assert ada.share("push").code == 4, "a return does not share it again"
    ada.shared("on", "--yes")
    assert "the remote has 2 of yours" in flat(ada.shared("push").text) or git(remote, "for-each-ref") != before


def test_every_answer_is_one_json_object_H1(ada: Person) -> None:
    ledger = ada.remember(LEDGER)
    assert ada.shared("on", "--yes", "--json").data["name"] == "Ada"
    [candidate] = ada.shared("review", "--json").data["candidates"]
    assert candidate["record"]["id"] == ledger and not candidate["why_not"]
    assert len(ada.shared("review", "--accept", ledger, "--json").data["items"]) == 1
    assert ada.shared("push", "--dry-run", "--json").data["added"] == 1
    assert ada.shared("push", "--json").data["count"] == 1
    assert ada.shared("sync", "--json").data["pulled"]["partitions"] == []
    [share] = ada.shared("status", "--json").data["shares"]
    assert (share["offered"], share["delivered"], share["waiting"], share["undecided"]) == (1, 1, 0, 0)
    assert ada.shared("log", "--json").data["events"][0]["text"] == LEDGER
    assert ada.shared("off", "--withdraw", "--json").data["gone"] == 1


# --- in the background ------------------------------------------------------------------------------------------------
def test_the_two_lines_of_a_hook_never_hold_back_a_push_of_git_H1(ada: Person, remote: Path, tmp_path: Path) -> None:
    lines = ada.shared("hook").text.splitlines()
    assert len(lines) == 2 and all(len(line) <= 80 for line in lines)
    assert lines[-1] == "exit 0" and ada.shared("hook", "--json").data["lines"] == lines
    ada.shared("on", "--yes")
    ada.shared("review", "--accept", ada.remember(LEDGER))
    hook = ada.folder / ".git" / "hooks" / "pre-push"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\n" + "\n".join(lines) + "\n")
    hook.chmod(0o755)
    commands = tmp_path / "bin"
    commands.mkdir()
    script = f'#!/bin/sh\nexec {sys.executable} -P -m memd.clients.cli.main "$@"\n'
    (commands / "memd").write_text(script)
    (commands / "memd").chmod(0o755)
    for number, path in enumerate((os.environ["PATH"], f"{commands}:{os.environ['PATH']}")):
        git(ada.folder, "commit", "-q", "--allow-empty", "-m", f"water {number}")
        environment = {**ada.environment, "PATH": path}
        subprocess.run(
            ["git", "push", "-q", "origin", "HEAD:main"], cwd=ada.folder, env=environment, check=True, timeout=WAIT_S
        )
    end = time.monotonic() + WAIT_S
    while "refs/memd/v1/" not in git(remote, "for-each-ref"):
        assert time.monotonic() < end
        time.sleep(0.1)


def test_quiet_prints_nothing_but_errors_H1(ada: Person) -> None:
    ada.remember(LEDGER)
    ada.shared("on", "--yes")
    told = ada.shared("pull", "--quiet")
    assert told.text == told.errors == ""
    ada.shared("on", "--yes", "--remote", AWAY, "--no-push")
    told = ada.share("pull", "--quiet")
    assert told.code == 3 and told.text == "" and told.errors


def test_a_session_starts_a_pull_where_the_user_chose_it_at_most_once_an_hour_H2(ada: Person, tmp_path: Path) -> None:
    ada.remember(LEDGER)
    told = ada.shared("on", "--yes", "--session-start")
    assert "starts a pull, at most once an hour" in flat(told.text)
    [share] = ada.shared("status", "--json").data["shares"]
    host = Host("claude-code", ada.environment)
    calls = tmp_path / "calls"
    note_calls(host, calls)
    inside = ada.folder / "deep"
    inside.mkdir()
    host.inject("SessionStart", {**started(), "cwd": str(tmp_path)})
    assert called(calls, 0) == []
    host.inject("SessionStart", {**started("clear"), "cwd": str(inside)})
    assert called(calls, 1) == [str(ada.folder)]
    host.inject("SessionStart", {**started("clear"), "cwd": str(inside)})
    [file] = pulls_folder(ada.daemon.places).iterdir()
    old = time.time() - 3_700
    os.utime(file, (old, old))
    host.environment["MEMD_PASS"] = "a reader's"
    host.call("SessionStart", {**started("clear"), "cwd": str(inside)})
    del host.environment["MEMD_PASS"]
    assert called(calls, 1) == [str(ada.folder)], "within the hour, and for the holder of a pass"
    host.inject("SessionStart", {**started("clear"), "cwd": str(ada.folder)})
    assert called(calls, 2) == [str(ada.folder)] * 2
    assert all("pass" in reason or "no answer" in reason for reason in host.reasons), host.reasons

    assert f"{ada.folder}startapull" in "".join(ada.shared("status").text.split()), "a long path is broken into lines"
    ada.shared("on", "--yes", "--no-session-start")
    assert chosen_pull(ada.daemon.places, share["pool"]) is None


def note_calls(host: Host, calls: Path) -> None:
    """Let the hook start a program that notes its argument in place of `memd share pull`."""
    settings = program.path(host.places).with_name(program.SETTINGS)
    content = json.loads(settings.read_bytes())
    assert content["pull"][-4:] == ["share", "pull", "--quiet", "--cwd"]
    script = f"import sys; print(sys.argv[-1], file=open({str(calls)!r}, 'a'))"
    content["pull"] = [sys.executable, "-c", script, "--cwd"]
    settings.write_text(json.dumps(content))


def called(calls: Path, least: int) -> list[str]:
    """What was noted, after waiting for so many calls, or a moment for none."""
    end = time.monotonic() + (WAIT_S if least else 0.5)
    while True:
        lines = calls.read_text().splitlines() if calls.exists() else []
        if (least and len(lines) >= least) or time.monotonic() > end:
            return lines
        time.sleep(0.05)


def test_the_command_that_the_hook_starts_pulls_H2(ada: Person, person: Callable[[str], Person], remote: Path) -> None:
    bert = person("Bert")
    bert.shared("on", "--yes", "--session-start")
    ada.shared("on", "--yes")
    ada.shared("review", "--accept", ada.remember(LEDGER))
    ada.shared("push")
    host = Host("claude-code", bert.environment)
    host.inject("SessionStart", {**started(), "cwd": str(bert.folder)})
    end = time.monotonic() + WAIT_S
    while LEDGER not in bert.statements():
        assert time.monotonic() < end, host.reasons
        time.sleep(0.2)


def test_a_choice_of_a_session_start_is_kept_replaced_and_ended_H2(ada: Person, tmp_path: Path) -> None:
    places = ada.daemon.places
    assert chosen_pull(places, "project/x") is None
    pull_at_start(places, "project/x", str(tmp_path))
    assert chosen_pull(places, "project/x") == SessionPull(pool="project/x", folder=os.path.realpath(tmp_path))
    [file] = pulls_folder(places).iterdir()
    assert file.stat().st_mode & 0o777 == 0o600 and file.stat().st_mtime == 0
    stop_pulling(places, "project/x")
    stop_pulling(places, "project/x")
    assert chosen_pull(places, "project/x") is None
