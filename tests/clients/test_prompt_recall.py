"""The prompt as a question: what the real hook adds to a prompt, when it is silent, and what is followed (Q13, T3)."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from memd.clients.hooks.memd_hook import PROMPT_LIMIT, bounded
from memd.daemon.services.distillation.model_selection import load_model
from memd.protocol import profile
from memd.protocol.errors import InvalidRequest
from memd.protocol.event import Origin, Said
from memd.protocol.request import Remember
from tests.clients.conftest import memd_in
from tests.clients.hooked import Host, prompted, started
from tests.conftest import RunningDaemon

LIKED = (
    "tabs oak jazz tea rust walnut linen chess trains snow basil clay copper wool plums ferns tulips ivory rye canoes "
    "violins cedar lemons slate"
).split()
LEFT = (
    "spaces pine opera coffee perl maple silk poker planes rain mint wax brass felt figs moss roses ebony corn "
    "bicycles drums birch limes marble"
).split()
QUESTION = "Which vendor calibrates the pressure gauges of the brewery?"
ANSWER = "The brewery's pressure gauges are calibrated by Halvorsen Metrology."
FERRY = "The ferry timetable lists the Tromvik crossing at noon."
OLD = Origin(host="cli", session="old")
COUNT = load_model("").pieces


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningDaemon]:
    """A daemon with a full profile, and with memories that do not fit into it. No two preferences share a thing, so
    that none can replace another."""
    folder = tmp_path_factory.mktemp("home")
    folder.chmod(0o700)
    daemon = RunningDaemon({**os.environ, "MEMD_HOME": str(folder)})
    daemon.start()
    with daemon.client() as client:
        for liked, left in zip(LIKED, LEFT, strict=True):
            client.remember(f"I prefer the painted {liked} of the north to the {left} of the south, always.")
        for text in (ANSWER, FERRY):
            client.remember(Remember(text=text, turn=text[:9], at="2020-01-01T00:00:00Z", origin=OLD))
        daemon.settle()
        until(lambda: client.profile(prompt=QUESTION).recalled is not None)
    yield daemon
    daemon.terminate()


@pytest.fixture
def claude(running: RunningDaemon) -> Host:
    return Host("claude-code", running.environment)


def lines(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.startswith("- ")]


def ask(host: Host, session: str, prompt: str = QUESTION) -> str:
    return host.inject("UserPromptSubmit", prompted(prompt, session_id=session))


def recalled(told: str) -> str:
    """The text that the prompt recalled; before it may stand the profile, whose report a busy machine lost."""
    blocks = [f"{block.lstrip()}</memd-context>" for block in told.split("</memd-context>")]
    return next((block for block in blocks if "may concern this prompt" in block), "")


def test_a_prompt_recalls_what_is_not_in_the_context_yet_and_only_once_Q13(claude: Host) -> None:
    profile = claude.inject("SessionStart", started(session_id="once"))
    assert "Halvorsen" not in profile and "Tromvik" not in profile and len(lines(profile)) > 10
    told = recalled(ask(claude, "once"))
    assert lines(told)[0] == f"- {ANSWER} [2020-01-01]" and "painted" not in told
    assert told.startswith("<memd-context rev=") and told.endswith("</memd-context>")
    assert len(lines(told)) <= 3 and COUNT(told) <= 200
    assert recalled(ask(claude, "once")) == "", "it stands in the context"
    assert "Tromvik" in ask(claude, "once", "When does the ferry cross to Tromvik by the timetable?")
    assert "Tromvik" not in claude.inject("SessionStart", started("compact", session_id="once"))
    assert ANSWER in ask(claude, "once"), "the context was compacted"


def test_profile_and_recalled_lines_come_in_one_text_Q13(claude: Host) -> None:
    told = ask(claude, "late")
    assert told.count("<memd-context rev=") == told.count("</memd-context>") == 2
    assert told.index("painted") < told.index(ANSWER)
    pi = Host("pi", claude.environment)
    for _ in range(2):  # pi's context is built for each turn
        told = pi.inject("before_agent_start", {"session_id": "019a", "cwd": "/", "prompt": QUESTION})
        assert ANSWER in told and "painted" in told


@pytest.mark.parametrize(
    "prompt",
    ["", "commit", "go on", "are you sure?", "/gauges", "Rename the function in the parser and run its tests.",
     "Which colour does the cathedral's organ have?"],
)  # fmt: skip
def test_a_prompt_that_nothing_concerns_adds_nothing_Q13(claude: Host, prompt: str) -> None:
    claude.inject("SessionStart", started(session_id=f"plain {prompt}"))
    assert ask(claude, f"plain {prompt}", prompt) == ""


def test_a_prompt_of_any_length_is_bounded_P3(claude: Host) -> None:
    log = "\n".join(f"worker {n} finished batch {n * 7}" for n in range(4000))
    assert len(log) > 100_000
    for name, prompt in (
        ("end", f"{log}\n{QUESTION}"),
        ("start", f"{QUESTION}\n{log}"),
        ("half", f"{QUESTION} \ud83d"),
    ):
        claude.inject("SessionStart", started(session_id=name))
        before = claude.skips_but_late
        told = ask(claude, name, prompt)
        assert len(bounded(prompt)) <= PROMPT_LIMIT + 1 and claude.skips_but_late == before
        assert ANSWER in told or name != "half", "a log around a question hides it, half a character does not"


def test_a_session_is_not_told_what_it_said_itself_Q13(running: RunningDaemon, claude: Host) -> None:
    said = "The observatory's dome motor was rewound by Ingrid Solvang."
    origin = Origin(host="claude-code", session="own")
    with running.client() as client:
        client.remember(Remember(text=said, turn="dome", at="2020-01-02T00:00:00Z", origin=origin))
    running.settle()
    for session, is_told in (("own", False), ("other", True)):
        claude.inject("SessionStart", started(session_id=session))
        assert (said in ask(claude, session, "Who rewound the dome motor of the observatory?")) is is_told


def test_a_reader_of_other_pools_is_told_nothing_of_these_A1_P2(running: RunningDaemon, claude: Host) -> None:
    with running.client() as client:
        token = client.grant("agent", sources=["nowhere"]).token
    claude.environment["MEMD_PASS"] = token
    assert ask(claude, "pass") == ""
    del claude.environment["MEMD_PASS"]
    with running.client() as client:
        assert client.profile(prompt=QUESTION, cwd="/").recalled is not None
        pool = client.remember(
            "The quarry's crane is rented from Brekke.", pool="project", cwd=str(Path.cwd())
        ).record.pool
        assert pool != "personal"
        running.settle()
        question = "Who is the quarry's crane rented from?"
        assert client.profile(prompt=question, cwd="/").recalled is None


def test_the_switch_Q13_U6(running: RunningDaemon, claude: Host, memd: Any) -> None:
    memd = memd_in(running.environment)
    assert memd("config", "set", "hook.recall", "off").code == 0
    told = claude.inject("SessionStart", started(session_id="switch"))
    assert "painted" in told and ask(claude, "switch") == ""
    wrong = memd("config", "set", "hook.recall", "maybe")
    assert wrong.code and "must be" in wrong.errors
    assert memd("config", "set", "hook.recall", "on").code == 0
    assert ANSWER in ask(claude, "switch")


def test_what_a_prompt_recalled_is_listed_with_its_turn_Q13(running: RunningDaemon, claude: Host) -> None:
    memd = memd_in(running.environment)
    claude.inject("SessionStart", started(session_id="listed"))
    told = ask(claude, "listed")
    assert "not captured its prompt" in memd("injected", "claude-code:listed").text
    now = datetime.now(UTC).isoformat()
    with running.client() as client:
        origin = Origin(host="claude-code", session="listed")
        client.capture(origin, [Said(turn="u-1", at=now, role="user", text=QUESTION)])
        text, start = client.injected("claude-code:listed").injections
    assert (text.text, text.turn, text.prompt) == (told, "u-1", QUESTION) and start.turn == ""
    shown = memd("injected", "claude-code:listed").text
    assert "because it concerns the prompt" in shown and f"prompt of turn u-1: {QUESTION}" in " ".join(shown.split())
    held = [path for path in (running.places.state / "injected").iterdir() if b"Which vendor" in path.read_bytes()]
    assert held == [], "the log holds no words of a prompt"


def until(test: Callable[[], bool]) -> None:
    end = time.monotonic() + 90
    while not test():
        assert time.monotonic() < end
        time.sleep(0.05)


def test_a_line_counts_as_used_when_the_answer_uses_it_T3(running: RunningDaemon, claude: Host) -> None:
    origin = Origin(host="claude-code", session="used")
    claude.inject("SessionStart", started(session_id="used"))
    said = "Is our ferry timetable complete, and does it list Tromvik?"
    told = ask(claude, "used", said)
    with running.client() as client:
        (injected,) = [text for text in client.injected("claude-code:used").injections if text.asked_at]
        (id,) = injected.ids
        assert "Tromvik" in told and client.get(id).signal.access_count == 0, "given is not used"
        answers = ("I have sorted the imports.", FERRY)
        for number, words in enumerate(answers):
            other = Origin(host="claude-code", session="another")
            event = Said(turn=f"a-{number}", at=datetime.now(UTC).isoformat(), role="assistant", text=words)
            client.capture(other, [event])
            client.capture(origin, [event])
        until(lambda: client.get(id).signal.access_count == 1)


# --- versions -------------------------------------------------------------------------------------------------------
def test_a_daemon_that_knows_no_prompt_is_asked_without_it(home: dict[str, str], serve: Any) -> None:
    host = Host("claude-code", home)
    known = profile.ProfileText(text="known", rev="r1", ids=(), scope=(), tokens=1)
    host.places.socket_file.write_text(str(host.places.socket))

    def answer(wish: Any) -> Any:
        if isinstance(wish, profile.Printed):
            return profile.PrintNoted(known=True)
        if wish.prompt:
            raise InvalidRequest("Object contains unknown field `prompt`")
        return known

    with serve(host.places.socket) as listener:
        listener.answer = answer
        assert host.inject("UserPromptSubmit", prompted(QUESTION)) == "known"
        (printed,) = [wish for wish in listener.seen if isinstance(wish, profile.Printed)]
        assert (printed.rev, printed.recall) == ("r1", "")
        listener.seen.clear()
        lines = profile.PromptMemories(text="lines", rev="r2", ids=("a",), tokens=1)
        listener.answer = lambda wish: (
            profile.ProfileText(text="known", rev="r1", ids=(), scope=(), tokens=1, due=False, recalled=lines)
            if isinstance(wish, profile.Profile)
            else profile.PrintNoted(known=True)
        )
        assert host.inject("UserPromptSubmit", prompted(QUESTION)) == "lines"
        wishes = [wish for wish in listener.seen if isinstance(wish, profile.Profile)]
        assert [wish.prompt for wish in wishes] == [QUESTION], "one round trip"
        assert [(wish.rev, wish.recall) for wish in listener.seen if isinstance(wish, profile.Printed)] == [("", "r2")]


def test_a_hook_that_sends_no_prompt_gets_the_profile_as_before(running: RunningDaemon) -> None:
    with running.client() as client:
        told = client.profile(cwd="/", document="claude-code:before", delivery="sticky")
        assert told.due and told.recalled is None and client.printed("claude-code:before", told.rev).known
        assert re.fullmatch(r"[0-9a-f]{12}", told.rev)
