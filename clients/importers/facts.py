"""Facts that a tool's output tells: commits and checks (C2, T3, T4). A host calls a check "ok" whose exit status a pipe
hid, so the output's own verdict goes before the host's; where neither tells, the state is `unclear`, never `passed`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal

from ...protocol.event import Checked, Committed, ToolCalled

State = Literal["passed", "failed", "unclear"]
BROKEN_OFF = 200
"""Characters from the end of an output in which the host says that it broke off the command."""

READ = 20_000
"""Characters from the begin and from the end of an output that are read."""

_SEGMENT = re.compile(r"&&|\|\||[;|\n]")
_QUOTED = re.compile(r"\"(?:[^\"\\]|\\.)*\"?|'[^']*'?|<<-?\s*['\"]?(\w+)['\"]?.*?(?:\n\1\b|$)", re.DOTALL)
_BEFORE = re.compile(
    r"(?:\w+=\S*\s+|(?:sudo|time|env|nice|exec|command)\s+|timeout\s+\S+\s+"
    r"|(?:npx|bunx|pnpm dlx|(?:uv|poetry|pipenv|hatch) run|bundle exec|python3?(?:\.\d+)? -m|\S*/bin/)\s*(?:-\S+\s+)*)+"
)
"""What stands before the name of a program."""

_RUNNERS = r"(?:npm|pnpm|yarn|bun)(?: run)? (?:-\S+ )*"
_CHECKS = re.compile(
    rf"(?:pytest|py\.test|tox|nox|unittest|jest|vitest|mocha|ava|rspec|phpunit|ctest|playwright test|cypress run"
    rf"|ruff(?: check| format --check)?|mypy|pyright|flake8|pylint|black --check|eslint|biome|tsc|prettier --check"
    rf"|golangci-lint|shellcheck|{_RUNNERS}(?:test|lint|build|check|typecheck|type-check|tsc|ci)[\w:-]*"
    r"|cargo (?:test|nextest|check|clippy|build)|go (?:test|vet|build)|mix (?:test|compile|credo|dialyzer)"
    r"|(?:\./)?(?:gradlew?|mvnw?) (?:\S+ )*(?:test|check|build|verify|package)|(?:dotnet|swift) (?:test|build)"
    r"|make (?:\S+ )*(?:test|check|lint|build)s?|rake (?:test|spec)|bazel (?:test|build)|pre-commit run)(?=[\s:]|$)"
)
_FAILED_COUNT = re.compile(r"(?<![\w.])(\d+) (?:tests? |specs? )?(?:failed|failing|failures?|errors?)\b", re.IGNORECASE)
_PASSED_COUNT = re.compile(r"(?<![\w.])(\d+) (?:tests? |specs? )?(?:passed|passing|passes)\b", re.IGNORECASE)
_RUN_COUNT = re.compile(r"(?<![\w.])(\d+) (?:tests?|specs?|examples?), (\d+) failures?\b", re.IGNORECASE)
_BROKEN_OFF = re.compile(
    r"(?:command|execution|process|request) (?:was )?(?:aborted|interrupted|cancell?ed|timed out)", re.I
)
_FAILED = re.compile(
    r"^(?:FAIL(?:ED)?\b|--- FAIL|[Ee]rror(?:\[\w+\])?:|- exit code: [1-9]|npm ERR!|\s*✖"
    r"|Traceback \(most recent|BUILD FAILED|make: \*\*\*|Exit code [1-9]|Compilation error)"
    r"|error TS\d+|test result: FAILED|could not compile|ELIFECYCLE",
    re.MULTILINE,
)
_PASSED = re.compile(
    r"All checks passed|Success: no issues|test result: ok|^ok\s+\S+|BUILD SUCCESS|^\s*Finished `?\w+|0 failures"
    r"|^PASS\b|[Bb]uilt in |Compiled successfully|0 errors|^OK(?: \(|$)",
    re.MULTILINE,
)
_COMMIT = re.compile(r"^\[[^\]\n]*?\b([0-9a-f]{7,40})\] (.{1,200})", re.MULTILINE)
_FILES = re.compile(r"^ (\d+) files? changed", re.MULTILINE)


def facts(call: ToolCalled, command: str, at: str, output: str) -> Iterator[Committed | Checked]:
    """Yield what the output of a command tells: the commits that it made, and the outcome of the check that it ran."""
    if not command:
        return
    if len(output) > 2 * READ:
        output = f"{output[:READ]}\n{output[-READ:]}"
    segments = list(_segments(command))
    if any(re.match(r"git\b.* commit\b|git commit\b", segment) for segment in segments):
        files = _FILES.search(output)
        for number, made in enumerate(_COMMIT.finditer(output), 1):
            turn, count = f"{call.turn}#commit-{number}", int(files[1]) if files else 0
            yield Committed(turn=turn, at=at, id=made[1], subject=made[2].strip(), files=count)
    checks = [check[0] for segment in segments if (check := _CHECKS.match(segment))]
    if checks:
        passed, failed, state = _verdict(output, call.outcome, is_last=bool(_CHECKS.match(segments[-1])))
        what = " ".join(checks[-1].split())[:60]
        yield Checked(turn=f"{call.turn}#check", at=at, what=what, passed=passed, failed=failed, state=state)


def _segments(command: str) -> Iterator[str]:
    """Yield the commands of a line, each from the name of its program on; words in quotes begin none."""
    for segment in map(str.strip, _SEGMENT.split(_QUOTED.sub('""', command))):
        if segment:
            yield segment[before.end() :] if (before := _BEFORE.match(segment)) else segment


def _verdict(output: str, outcome: str, *, is_last: bool) -> tuple[int, int, State]:
    """Return how many passed and failed, as the last lines say, and the state. `is_last`: nothing follows the check, so
    that the host's outcome is its own."""
    failed = [int(count) for count in _FAILED_COUNT.findall(output)]
    passed = [int(count) for count in _PASSED_COUNT.findall(output)]
    passed = passed or [max(0, int(run) - int(broken)) for run, broken in _RUN_COUNT.findall(output)]
    counts = passed[-1] if passed else 0, failed[-1] if failed else 0
    if not passed and not counts[1] and _BROKEN_OFF.search(output[-BROKEN_OFF:]):
        return *counts, "unclear"
    if counts[1] or (not passed and _FAILED.search(output)) or outcome == "error":
        return *counts, "failed"
    if passed or _PASSED.search(output) or (outcome == "ok" and is_last):
        return *counts, "passed"
    return *counts, "unclear"
