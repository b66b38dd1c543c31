"""What the output of a command tells: commits and checks (C2, T3). A pipe hides an exit status; words run nothing."""

import json
from typing import Any

import pytest

from memd.clients.importers.facts import facts
from memd.protocol.event import Checked, Committed, ToolCalled
from memd.protocol.tool_calls import command_of

AT = "2026-11-02T09:00:00Z"


def told(command: str, output: str, outcome: Any = "ok") -> list[Committed | Checked]:
    arguments = json.dumps({"command": command})[:200]
    call = ToolCalled(turn="t", at=AT, name="Bash", arguments=arguments, outcome=outcome)
    return list(facts(call, command_of(arguments), AT, output))


@pytest.mark.parametrize(
    ("command", "output", "outcome", "what", "state"),
    [
        ("pytest -q", "3 failed, 12 passed in 0.4s", "error", "pytest", "failed"),
        ("pytest -q 2>&1 | tail -3", "3 failed, 12 passed in 0.4s", "ok", "pytest", "failed"),
        ("cd api && PYTHONPATH=. python -m pytest", "12 passed in 0.4s", "ok", "pytest", "passed"),
        ("uv run pytest | tail -1", "", "ok", "pytest", "unclear"),
        ("npm run check", "> tsc --noEmit\n", "ok", "npm run check", "passed"),
        ("npm run check | tail -5", "> tsc --noEmit\n", "ok", "npm run check", "unclear"),
        ("npm run check | grep error", "a.ts(1,2): error TS2345: no", "ok", "npm run check", "failed"),
        ("npx tsc --noEmit; echo done", "done", "ok", "tsc", "unclear"),
        ("cargo test", "test result: FAILED. 3 passed; 1 failed", "ok", "cargo test", "failed"),
        ("go test ./...", "ok  \texample.org/x\t0.1s", "ok", "go test", "passed"),
        ("mix test 2>&1 | tail", "14 doctests, 76 tests, 0 failures", "ok", "mix test", "passed"),
        ("make -C src check", "make: *** [check] Error 1", "error", "make -C src check", "failed"),
        ("ruff check . | head", "All checks passed!", "ok", "ruff check", "passed"),
    ],
)
def test_a_check_has_its_own_verdict_before_the_hosts_C2(
    command: str, output: str, outcome: Any, what: str, state: str
) -> None:
    (fact,) = told(command, output, outcome)
    assert isinstance(fact, Checked) and (fact.what, fact.state) == (what, state)


@pytest.mark.parametrize(
    "command",
    [
        'git log --grep "npm test"',
        'echo "make test && pytest"',
        "cat <<'EOF' > notes.md\npytest\nEOF",
        "cat pytest.ini",
        "makefile-lint x",
        "ls",
    ],
)
def test_words_that_are_no_command_are_no_check(command: str) -> None:
    assert told(command, "1 failed") == []


@pytest.mark.parametrize(
    ("output", "passed", "failed"),
    [("14 doctests, 76 tests, 0 failures", 76, 0), ("5 tests, 4 failures", 1, 4), ("3 examples, 1 failure", 2, 1)],
)
def test_a_runner_that_tells_its_tests_and_failures_tells_what_passed_C2(output: str, passed: int, failed: int) -> None:
    (fact,) = told("mix test", output)
    assert isinstance(fact, Checked) and (fact.passed, fact.failed) == (passed, failed)


def test_a_check_that_was_broken_off_is_unclear_C2() -> None:
    (fact,) = told("npm test", "\n> orchard@1.0.0 test\n> vitest\n\nCommand aborted", "error")
    assert isinstance(fact, Checked) and fact.state == "unclear"
    (fact,) = told("npm test", "2 failed\nCommand timed out", "error")
    assert isinstance(fact, Checked) and fact.state == "failed"


def test_commits_have_their_id_subject_and_files_C2() -> None:
    output = "lint ok\n[main 0a1b2c3] Fix the port of the pear table\n 2 files changed, 3 insertions(+)\n"
    (made,) = told('git add -A && git commit -m "Fix the port"', output)
    assert made == Committed(turn="t#commit-1", at=AT, id="0a1b2c3", subject="Fix the port of the pear table", files=2)
    assert told("git log --oneline", output) == [] and told("cat commit.log", output) == []
    (first,) = told("git commit -F -", "[main (root-commit) 0a1b2c3] begin\n")
    assert isinstance(first, Committed) and (first.subject, first.files) == ("begin", 0)


@pytest.mark.parametrize(
    ("arguments", "command"),
    [
        ('{"command":"ls \\"a\\"\\nb"}', 'ls "a"\nb'),
        ('{"command":["bash","-lc","npm test"]}', "npm test"),
        ('{"description":"x","command":"npm te', "npm te"),
        ('{"command":"a \\', "a "),
        ('{"file_path":"/x"}', ""),
        ("", ""),
    ],
)
def test_the_command_of_a_call_may_be_cut_off(arguments: str, command: str) -> None:
    assert command_of(arguments) == command


def test_pre_commit_is_a_check_C2() -> None:
    (fact,) = told(
        "git add -A && pre-commit run --all-files", "mypy....Failed\n- exit code: 1\nerror: 3 errors", "error"
    )
    assert isinstance(fact, Checked) and (fact.what, fact.state) == ("pre-commit run", "failed")
    (fact,) = told(
        "pre-commit run --all-files", "ruff....Passed\nmypy....Failed\n- hook id: mypy\n- exit code: 1\n", "ok"
    )
    assert isinstance(fact, Checked) and fact.state == "failed"
    assert told("cat .pre-commit-config.yaml", "repos:") == []
