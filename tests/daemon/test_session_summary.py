"""The summary of a session: in its own words, with every check as it ended, and nothing that the user hid (C2)."""

import json
from collections.abc import Sequence
from typing import Any

import pytest

from memd.protocol.errors import NotFound
from memd.protocol.event import (
    AnyEvent,
    Checked,
    Committed,
    Interrupted,
    Origin,
    PlanItem,
    Planned,
    Said,
    SessionEnded,
    ToolCalled,
    Wrote,
)
from memd.protocol.session import Summary


def at(minute: int) -> str:
    return f"2026-11-02T09:{minute:02}:00Z"


def user(minute: int, text: str) -> Said:
    return Said(turn=f"u{minute}", at=at(minute), role="user", text=text)


def agent(minute: int, text: str) -> Said:
    return Said(turn=f"a{minute}", at=at(minute), role="assistant", text=text)


def edit(minute: int, path: str) -> ToolCalled:
    return ToolCalled(
        turn=f"e{minute}", at=at(minute), name="Edit", arguments=f'{{"file_path":"{path}"}}', outcome="ok"
    )


EVENTS: list[AnyEvent] = [
    user(1, "Please look at the pear table, it is slow since yesterday:\nthe query takes nine seconds."),
    edit(2, "/home/ada/orchard/src/pears.py"),
    edit(3, "/home/ada/orchard/src/pears.py"),
    Checked(turn="c4", at=at(4), what="pytest", failed=2, state="failed"),
    user(5, "yes"),
    edit(6, "/home/ada/orchard/tests/test_pears.py"),
    Checked(turn="c7", at=at(7), what="pytest", passed=12, state="passed"),
    Checked(turn="c8", at=at(8), what="npm run build", state="failed"),
    Committed(turn="g9", at=at(9), id="0a1b2c3", subject="pears: an index for the query", files=2),
    Committed(turn="g10", at=at(10), id="1b2c3d4", subject="pears: an index for the query", files=3),
    agent(11, "All tests pass.\n```json\n{}\n```\nThe build still fails, because the lock file is old. Let me look."),
    Wrote(turn="todo", at=at(12), text="- update the lock file", form="open"),
    agent(13, "API Error: 529 overloaded"),
    user(14, "Can you leave the build for the next session, please, and tell Sten?"),
]


def told(daemon: Any, events: Sequence[AnyEvent], title: str = "", session: str = "one") -> Summary:
    origin = Origin(host="claude-code", session=session, cwd="/", title=title)
    with daemon.client() as client:
        client.capture(origin, events)
        daemon.settle()
        return client.summary(f"claude-code:{session}")


def test_a_summary_tells_what_was_asked_done_and_left_open_C2(daemon: Any) -> None:
    summary = told(daemon, EVENTS)
    by_section: dict[str, list[str]] = {}
    for line in summary.lines:
        by_section.setdefault(line.section, []).append(line.text)
    assert summary.title == "pears: an index for the query"
    assert (summary.requests, summary.edits, summary.files, summary.commits) == (3, 3, 2, 1), "one commit was amended"
    assert (
        by_section["asked"][0].startswith("Please look at the pear table") and "nine seconds" in by_section["asked"][0]
    )
    assert by_section["done"] == [
        "edited src/pears.py ×2, tests/test_pears.py",
        "1b2c3d4 pears: an index for the query",
        "3 checks, the last failed: npm run build",
    ]
    assert by_section["ended"] == ["All tests pass. The build still fails, because the lock file is old."]
    assert by_section["open"] == [
        "unanswered: Can you leave the build for the next session, please, and tell Sten?",
        "update the lock file",
        "npm run build failed",
    ]
    assert summary.last_at == at(14)


def test_every_line_with_a_turn_quotes_it_and_lines_are_few_C2(daemon: Any) -> None:
    many = [user(n, f"Request number {n} asks for the pears of tree {n}, which are many.") for n in range(40)]
    summary = told(daemon, [*many, *(edit(n, f"/x/{n}.py") for n in range(40, 58))], "Pears")
    assert summary.title == "Pears" and len(summary.lines) <= 25
    assert summary.requests == 40 and sum(line.section == "asked" for line in summary.lines) == 6
    said = {event.turn: event.text for event in many}
    assert all(line.text in said[line.turn] for line in summary.lines if line.section == "asked" and line.turn)


def test_a_short_session_has_no_summary_and_an_unknown_one_is_told_C2(daemon: Any, capsys: Any) -> None:
    assert told(daemon, [user(1, "What time is it in Leuven now?"), agent(2, "Nine.")]).lines == ()
    assert told(daemon, [SessionEnded(turn="end", at=at(1))], session="empty").title == ""


def test_what_the_user_hid_stands_in_no_summary_C2(daemon: Any) -> None:
    events = [
        user(1, "I prefer the codename Zanzibar for our project in all texts."),
        user(2, "Please go on with it now."),
    ]
    assert "Zanzibar" in repr(told(daemon, events))
    with daemon.client() as client:
        job = client.undo(["claude-code:one"])
        while job.state == "running":
            job = client.job(job.id)
        assert "Zanzibar" not in repr(client.summary("claude-code:one"))


def test_a_revoked_source_has_no_summary_and_no_commits_C2_A3(daemon: Any) -> None:
    told(daemon, EVENTS)
    with daemon.client() as client:
        assert client.session("claude-code:one").commits
        client.revoke(source="claude-code")
        with pytest.raises(NotFound, match="revoked"):
            client.summary("claude-code:one")
        outcome = client.session("claude-code:one")
        assert (outcome.commits, outcome.checks) == ((), ())
        client.grant(sources=("claude-code",), back=True)
        assert client.summary("claude-code:one").lines


def test_a_session_that_goes_on_gets_another_part_and_the_first_one_stays_C2(daemon: Any) -> None:
    first = told(daemon, EVENTS).lines
    morning = [
        Said(
            turn="u200", at="2026-11-03T08:00:00Z", role="user", text="Good morning, now mend the build of the pears."
        ),
        Said(turn="u201", at="2026-11-03T08:10:00Z", role="user", text="And then count the crates in the cellar."),
        Said(turn="a202", at="2026-11-03T08:20:00Z", role="assistant", text="The build is mended. Nothing is left."),
    ]
    both = told(daemon, morning).lines
    assert [line for line in both if line.part == 1] == [line for line in first if line.section != "open"]
    second = [(line.section, line.text) for line in both if line.part == 2]
    assert ("ended", "The build is mended. Nothing is left.") in second and len(second) == 3


def test_the_plan_and_a_broken_off_end_are_told_C2(daemon: Any) -> None:
    items = (PlanItem("Sort the pears", "done"), PlanItem("Count the pears", "open"))
    events = [
        user(1, "Sort the pears of the orchard and count them, please."),
        edit(2, "/x/pears.py"),
        user(3, "Now begin with the counting of all the pears."),
        Wrote(turn="todo-list", at=at(4), text="- Count the pears", form="open"),
        Planned(turn="plan", at=at(4), items=items),
        Interrupted(turn="i5", at=at(5)),
    ]
    lines = [(line.section, line.text) for line in told(daemon, events).lines]
    assert ("done", "ticked in the plan (1 of 2): Sort the pears") in lines
    assert [text for section, text in lines if section == "open"] == [
        "stopped by you: Now begin with the counting of all the pears.",
        "Count the pears",
    ]


@pytest.mark.parametrize(
    ("command", "subject"),
    [
        ('git add -A && git commit -qm "gates: hinges close again"', "gates: hinges close again"),
        (
            "git commit -m \"$(cat <<'EOF'\ngates: hinges close again\n\nLong words.\nEOF\n)\"",
            "gates: hinges close again",
        ),
        ("git commit --amend --no-edit", ""),
    ],
)
def test_a_commit_whose_output_nobody_saw_is_told_as_one_C2(daemon: Any, command: str, subject: str) -> None:
    arguments = json.dumps({"command": command})[:200]
    call = ToolCalled(turn="c", at=at(2), name="Bash", arguments=arguments, outcome="ok")
    events = [user(1, "Please mend the gates of the orchard."), call, edit(3, "/x/gates.py")]
    lines = [line.text for line in told(daemon, events).lines]
    assert "ran git commit without output that tells the result" + (f": {subject}" if subject else "") in lines


def test_an_end_is_the_last_answer_and_a_check_tells_the_edits_after_it_C2(daemon: Any) -> None:
    committing = ToolCalled(turn="c", at=at(9), name="Bash", arguments='{"command":"git commit -m \\"x\\""}')
    events = [
        user(1, "Please mend the gates of the orchard."),
        Checked(turn="k", at=at(2), what="pytest", passed=9, state="passed"),
        edit(3, "/x/gates.py"),
        agent(4, "The gates close again, and nothing creaks."),
        user(5, "And could you oil the hinges of the cellar door?"),
        agent(6, "I'm in the cellar, the oil is upstairs."),
        edit(7, "/x/cellar.py"),
        committing,
    ]
    lines = [(line.section, line.text) for line in told(daemon, events).lines]
    assert [text for section, text in lines if section == "ended"] == [
        "The gates close again, and nothing creaks.",
        "then asked “And could you oil the hinges of the cellar door?”: 1 edit and 1 other call without a last word",
    ]
    assert ("done", "one check, it passed: pytest, before 2 more edits") in lines
    assert not [text for section, text in lines if section == "open"], "a question is answered by its commit"


def ran(minute: int, command: str, outcome: Any = "ok") -> ToolCalled:
    return ToolCalled(
        turn=f"r{minute}", at=at(minute), name="Bash", arguments=f'{{"command":"{command}"}}', outcome=outcome
    )


def test_a_summary_tells_no_removed_file_and_what_is_not_committed_C2(daemon: Any) -> None:
    events: list[AnyEvent] = [
        user(1, "Find out why the pear table is slow and mend it."),
        edit(2, "/orchard/tmp/probe.py"),
        edit(3, "/orchard/src/pears.py"),
        ran(4, "rm -f tmp/probe.py && git status"),
        Committed(turn="g5", at=at(5), id="0a1b2c3", subject="pears: an index for the query", files=1),
        edit(6, "/orchard/src/plums.py"),
        edit(7, "/orchard/src/figs.py"),
        ran(8, "git rm src/figs.py"),
        user(9, "Thanks, that is all for the day."),
    ]
    lines = [line.text for line in told(daemon, events).lines if line.section == "done"]
    assert lines[0] == "edited src/pears.py, src/plums.py"
    assert "edited after the last commit: src/plums.py" in lines


def test_a_summary_tells_branches_pushes_and_pull_requests_that_went_well_C2(daemon: Any) -> None:
    events: list[AnyEvent] = [
        user(1, "Put the pear index on a branch and open a pull request."),
        ran(2, "git checkout -b pears/index"),
        edit(3, "/orchard/src/pears.py"),
        ran(4, "git push -u origin pears/index", "error"),
        ran(5, "git push --force && gh pr create --fill"),
        ran(6, "echo 'we never git push on Fridays'"),
        user(7, "Thanks, that is all for the day."),
    ]
    lines = [line.text for line in told(daemon, events).lines]
    assert "ran git checkout -b pears/index · git push --force · gh pr create" in lines


def test_an_answer_to_a_question_of_the_agent_is_no_request_of_a_summary_C2(daemon: Any) -> None:
    answer = Said(turn="u3", at=at(3), role="user", text="Take the small green ladder", answers="a2")
    events: list[AnyEvent] = [
        user(1, "Prune the pear trees in the lower field"),
        agent(2, "Which ladder shall I take?"),
        answer,
        edit(4, "/orchard/plan.md"),
    ]
    asked = [line.text for line in told(daemon, events).lines if line.section == "asked"]
    assert asked == ["Prune the pear trees in the lower field"]


def test_a_request_whose_work_stops_at_a_call_is_open_C2(daemon: Any) -> None:
    events: list[AnyEvent] = [
        user(1, "Mend the slow query of the pear table."),
        edit(2, "/orchard/src/pears.py"),
        agent(3, "Done. The query takes nine milliseconds now."),
        user(4, "Add a test that checks the new index."),
        agent(5, "I look at the tests first."),
        ran(6, "ls tests", "unknown"),
    ]
    opened = [line.text for line in told(daemon, events).lines if line.section == "open"]
    assert opened == ["begun, no answer: Add a test that checks the new index."]


def test_a_command_that_only_names_a_commit_is_no_commit_C2(daemon: Any) -> None:
    events: list[AnyEvent] = [
        user(1, "Why does the hook break the index?"),
        ran(2, "cat .git/hooks/commit-msg"),
        ran(3, "git log --grep=commit"),
        edit(4, "/orchard/src/hook.go"),
        agent(5, "The hook writes the index."),
    ]
    assert not any("commit" in line.text for line in told(daemon, events).lines if line.section == "done")


def test_a_request_that_was_typed_again_is_told_once_C2(daemon: Any) -> None:
    request = "Look at the pear table, it is slow since yesterday."
    events: list[AnyEvent] = [
        user(1, request),
        user(2, request),
        edit(3, "/orchard/src/pears.py"),
        agent(4, "The index was missing."),
    ]
    assert [line.text for line in told(daemon, events).lines if line.section == "asked"] == [request]
