"""Edits of a placed skill's file that held-out work confirms (K3)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from ....protocol.errors import InvalidRequest
from ....protocol.skills import PlacedSkill, SkillTuning
from .edits import AddStep, DropStep, MoveStep, SkillEdit, SwapStep, applied
from .mining import Procedure
from .optimizer import Optimizer, SearchOptimizer
from .pool_work import PoolWork
from .replay_gate import judged, replays, split
from .skill_file import FileStep, SkillFile, read_skill
from .skill_proposals import is_same


def tuned(skill: PlacedSkill, work: PoolWork | None, optimizer: Optimizer | None = None) -> SkillTuning:
    """Return what the optimizer proposes and what held-out rounds say to it. Raises InvalidRequest."""
    file = read_skill(Path(skill.path))
    named = file.named(work.subs) if work else ()
    if not file.steps:
        raise InvalidRequest(f"{skill.path} has no steps that memd can read", hint="steps are numbered, in backticks")
    procedure = _procedure(frozenset(each.step.name for each in named if each.step.own), work)
    if work is None or procedure is None:
        return SkillTuning(skill=skill, why="no work of yours repeats its steps, so nothing can judge an edit")
    parts = split(replays(sorted(procedure.rounds, key=lambda each: each.unit.day)))
    steps = tuple(each.step.name for each in named)
    if len(set(steps)) < len(steps):
        return SkillTuning(skill=skill, why="a step stands twice in the file, so an edit might mean either")
    edits = (optimizer or SearchOptimizer()).propose(steps, [each.done for each in parts.train])
    lines = _lines(named, work, procedure)
    edits = [edit for edit in edits if _new(edit) in (None, *lines)]
    if not edits:
        return SkillTuning(skill=skill, why="no edit fits your work better than the file as it is")
    after = applied(steps, edits)
    verdict = judged(steps, after, parts.held_out)
    return SkillTuning(
        skill=skill,
        edits=tuple(map(_told, edits)),
        accepted=verdict.accepted,
        why=verdict.why,
        before=round(verdict.mean_before, 3),
        after=round(verdict.mean_after, 3),
        held_out=verdict.units,
        sessions=verdict.sessions,
        sha=file.sha,
        text=_text(file, [lines[name] for name in after]) if verdict.accepted else "",
    )


def _procedure(own: frozenset[str], work: PoolWork | None) -> Procedure | None:
    found = [each for each in work.procedures if is_same(own, each.own)] if work else []
    return max(found, key=lambda each: len(each.rounds), default=None)


def _lines(named: Sequence[FileStep], work: PoolWork, procedure: Procedure) -> dict[str, str]:
    """Return the text of each step that may stand in the file: as it stands there, or as a draft would tell it."""
    rendered = zip(procedure.steps, work.draft(procedure).steps, strict=True)
    lines = {step.name: shown.text for step, shown in rendered if not shown.risk}
    for each in named:
        lines[each.step.name] = re.sub(r"^[ \t]*(?:\d+[.)]|[-*])[ \t]+", "", each.line)
    return lines


def _new(edit: SkillEdit) -> str | None:
    """Return the step that an edit brings in, None for none."""
    match edit:
        case AddStep(name=name):
            return name
        case SwapStep(other=other):
            return other
        case _:
            return None


def _told(edit: SkillEdit) -> str:
    match edit:
        case AddStep(name=name, after=after):
            return f"add {name} as step {after + 1}"
        case DropStep(name=name):
            return f"drop {name}"
        case MoveStep(name=name, to=to):
            return f"make {name} step {to + 1}"
        case SwapStep(name=name, other=other):
            return f"put {other} in the place of {name}"
        case _:
            return "another description"


def _text(file: SkillFile, steps: Sequence[str]) -> str:
    """Return a skill's text with these steps in the place of its own."""
    old = {each.line for each in file.steps}
    lines = file.text.split("\n")
    place = next(number for number, line in enumerate(lines) if line in old)
    rest = [line for line in lines if line not in old]
    numbered = [f"{number}. {step}" for number, step in enumerate(steps, 1)]
    return "\n".join((*rest[:place], *numbered, *rest[place:]))
