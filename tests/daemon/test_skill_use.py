"""How placed skills are used, the rungs, retirement, and what a file names that is gone (K2)."""

from __future__ import annotations

from pathlib import Path

import pytest

from memd.daemon.services.skills.project_files import known_words
from memd.daemon.services.skills.skill_calls import called_skills, read_skills
from memd.daemon.services.skills.skill_file import GONE, UNREADABLE, gone_steps, read_skill, without_steps
from memd.daemon.services.skills.skill_proposals import OwnSteps, is_rejected
from memd.daemon.services.skills.skill_use import rung, uses, why_retire
from memd.daemon.services.skills.steps import SubCommands, command_steps
from memd.daemon.services.skills.units import End, WorkUnit
from memd.protocol.event import AnyEvent, Ran, Said, ToolCalled
from memd.protocol.skills import SkillRevision, SkillUse, UseEnd, UseKind

AT = "2026-05-11T08:00:00Z"
TEXT = "---\nname: ship\n---\n1. `./tools/freeze.sh <word>`\n2. (edit docs)\n3. `make bundle`\n4. `npm run smoke`\n"


def tool(name: str, arguments: str, outcome: str = "ok") -> AnyEvent:
    return ToolCalled(turn="t", at=AT, name=name, arguments=arguments, outcome=outcome)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("event", "called", "read"),
    [
        (tool("Skill", '{"skill": "ship"}'), ["ship"], []),
        (tool("activate_skill", '{"name": "ship"}'), ["ship"], []),
        (tool("Skill", '{"skill": "ship"}', "error"), [], []),
        (tool("Read", '{"file_path": "/home/a/.claude/skills/ship/SKILL.md"}'), [], ["ship"]),
        (tool("shell", '{"command": "cat .agents/skills/ship/SKILL.md"}'), [], ["ship"]),
        (tool("shell", '{"command": "git add .agents/skills/ship/SKILL.md"}'), [], []),
        (tool("Edit", '{"file_path": "/p/.agents/skills/ship/SKILL.md"}'), [], []),
        (Ran(turn="t", at=AT, command="cat .agents/skills/ship/SKILL.md", exit_status=0), [], ["ship"]),
        (Said(turn="t", at=AT, role="user", text="/ship 1.2 please"), ["ship"], []),
        (Said(turn="t", at=AT, role="user", text="<command-name>/ship</command-name>"), ["ship"], []),
        (Said(turn="t", at=AT, role="user", text="look at /ship/x"), [], []),
        (Said(turn="t", at=AT, role="assistant", text="/ship"), [], []),
    ],
)
def test_a_skill_is_used_by_its_name_or_by_reading_it_K2(event: AnyEvent, called: list[str], read: list[str]) -> None:
    assert list(called_skills([event])) == called and list(read_skills([event])) == read


def unit(number: int, *commands: str, called: bool = False, end: End = "good") -> WorkUnit:
    steps = tuple(step for command in commands for step in command_steps(command, "ok", 0))
    names = frozenset(["ship"] if called else [])
    return WorkUnit(f"s{number}", f"2026-05-{number:02}", (), steps, (f"t{number}",), end, called=names, at=number)


def test_steps_in_order_without_the_skill_are_a_missed_trigger_K2() -> None:
    own = ("tools/freeze.sh", "make bundle", "npm run smoke")
    whole = unit(1, "./tools/freeze.sh 1", "make bundle", "npm run smoke")
    backwards = unit(2, "npm run smoke", "make bundle", "./tools/freeze.sh 1")
    by_name = unit(3, "make bundle", called=True)
    assert [(use.how, use.day) for use in uses([whole, backwards, by_name], "ship", own)] == [
        ("without", "2026-05-01"),
        ("called", "2026-05-03"),
    ]
    assert [use.how for use in uses([whole, by_name], "ship", own, since=2)] == ["called"]


def used_as(*ends: UseEnd, how: UseKind = "called", sessions: int = 9, first: int = 1) -> list[SkillUse]:
    return [
        SkillUse(
            document=f"s{place % sessions}", turn=f"t{place}", day=f"2026-05-{place:02}", how=how, end=end, at=place
        )
        for place, end in enumerate(ends, first)
    ]


GOOD: list[UseEnd] = ["good"]
PLACED = SkillRevision(sha="a", by="placed", at=1)
EDITED = SkillRevision(sha="b", by="user", at=4)
TUNED = SkillRevision(sha="c", by="tuned", at=4)


@pytest.mark.parametrize(
    ("history", "revisions", "expected"),
    [
        ([], [PLACED], "placed"),
        (used_as("good", "good"), [PLACED], "placed"),
        (used_as("good", "good", "unknown"), [PLACED], "verified"),
        (used_as("good", "good", "good", sessions=1), [PLACED], "placed"),
        (used_as("unknown", "unknown", "unknown"), [PLACED], "placed"),
        (used_as("good", "bad", "bad"), [PLACED], "placed"),
        (used_as("good", "good", "good", how="without"), [PLACED], "placed"),
        (used_as(*GOOD * 6), [PLACED, EDITED], "honed"),
        (used_as(*GOOD * 5), [PLACED, EDITED], "verified"),
        (used_as(*GOOD * 6), [PLACED, TUNED], "tuned"),
    ],
)
def test_each_rung_of_the_ladder_K2(history: list[SkillUse], revisions: list[SkillRevision], expected: str) -> None:
    assert rung(history, revisions) == (expected, "")


def test_a_file_that_comes_back_as_it_was_is_no_edit_K2() -> None:
    gone, back = SkillRevision(sha="", by="user", at=2), SkillRevision(sha="a", by="user", at=3)
    assert rung(used_as(*GOOD * 9), [PLACED, gone, back]) == ("verified", "")


def test_a_skill_whose_last_ends_are_bad_falls_by_one_rung_K2() -> None:
    history = used_as(*GOOD * 20, "bad", "bad", "bad", "bad", "good")
    assert rung(history, [PLACED]) == ("placed", "of its last 5 known ends 1 were good")


@pytest.mark.parametrize(
    ("history", "idle", "gone", "said"),
    [
        ([], 0, 0, ""), ([], 99, 0, ""), (used_as("bad", "bad", "bad"), 19, 0, ""),
        (used_as("bad", "bad", "bad"), 20, 0, "not used in 20 sessions"), (used_as("good", "good", "good"), 99, 0, ""),
        (used_as(*GOOD * 5, how="without"), 0, 0, "its steps were done 5 times without it"),
        (used_as(*GOOD * 4, how="without"), 0, 0, ""),
        ([], 0, 1, "1 of 4 steps names a file or target that is gone"),
    ],
)  # fmt: skip
def test_retirement_is_proposed_by_evidence_and_never_by_time_K2(
    history: list[SkillUse], idle: int, gone: int, said: str
) -> None:
    why = why_retire(history, sum(use.how == "without" for use in history), idle, gone, 4)
    assert why.startswith(said) and bool(why) == bool(said)


def test_a_step_whose_script_or_target_is_gone_is_dropped_from_the_text_K2(tmp_path: Path) -> None:
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools" / "freeze.sh").write_text("")
    (tmp_path / "Makefile").write_text("bundle:\n\ttrue\n")
    (tmp_path / "package.json").write_text('{"scripts": {"other": "x"}}')
    skill = tmp_path / "SKILL.md"
    skill.write_text(TEXT)
    file = read_skill(skill)
    assert file.own(SubCommands([])) == ("tools/freeze.sh", "make bundle", "npm run smoke")
    gone = gone_steps(file, known_words(tmp_path), tmp_path)
    assert [each.step.name for each in gone] == ["npm run smoke"]
    assert without_steps(TEXT, gone) == TEXT.replace("4. `npm run smoke`\n", "")
    (tmp_path / "tools" / "freeze.sh").unlink()
    gone = gone_steps(file, known_words(tmp_path), tmp_path)
    assert without_steps(TEXT, gone) == "---\nname: ship\n---\n1. (edit docs)\n2. `make bundle`\n"
    assert read_skill(tmp_path / "none") == GONE


def test_another_list_keeps_its_numbers_K2(tmp_path: Path) -> None:
    text = "Before\n\n3. check the mail\n5. call Bo\n\n1. `./tools/x.sh`\n2. look at it\n3. `make y`\n"
    (tmp_path / "SKILL.md").write_text(text)
    gone = gone_steps(read_skill(tmp_path / "SKILL.md"), known_words(tmp_path), tmp_path)[:1]
    assert without_steps(text, gone) == text.replace("1. `./tools/x.sh`\n2. look at it\n3.", "1. look at it\n2.")


def test_pitfalls_and_empty_lines_are_no_steps_and_a_folder_counts_K2(tmp_path: Path) -> None:
    (tmp_path / "web" / "tools").mkdir(parents=True)
    (tmp_path / "web" / "tools" / "x.sh").write_text("")
    text = "---\n---\n\n1. `./tools/x.sh` in `web`\n2. `make y` in `web`\n\n- `make z` failed, well after `make y`\n"
    (tmp_path / "SKILL.md").write_text(text)
    file = read_skill(tmp_path / "SKILL.md")
    (tmp_path / "FIFO").mkdir()
    assert read_skill(tmp_path / "FIFO") == UNREADABLE
    assert [each.line for each in file.steps] == ["1. `./tools/x.sh` in `web`", "2. `make y` in `web`"]
    assert gone_steps(file, known_words(tmp_path), tmp_path) == []
    (tmp_path / "web" / "tools" / "x.sh").unlink()
    gone = gone_steps(file, known_words(tmp_path), tmp_path)
    assert without_steps(text, gone).startswith("---\n---\n\n1. `make y` in `web`\n")


def test_what_was_rejected_comes_back_only_with_much_that_is_new_K2() -> None:
    old = OwnSteps(frozenset("abc"), 3)
    assert is_rejected(OwnSteps(frozenset("abc"), 9), [old])
    assert is_rejected(OwnSteps(frozenset("abcd"), 5), [old])
    assert is_rejected(OwnSteps(frozenset("abcd"), 9), [old])
    assert not is_rejected(OwnSteps(frozenset("abcde"), 6), [old])
    assert not is_rejected(OwnSteps(frozenset("xyz"), 3), [old])
