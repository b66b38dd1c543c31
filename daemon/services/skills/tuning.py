"""Edits of a placed skill's file: what mends it, else what held-out work confirms (K3)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from ....protocol.errors import InvalidRequest
from ....protocol.skills import PlacedSkill, SkillTuning
from ..search_model import Encode
from .edits import AddStep, DropStep, MoveStep, SkillEdit, SwapStep, applied
from .mining import Procedure, Round
from .optimizer import Optimizer, SearchOptimizer
from .pool_work import PoolWork
from .replay_gate import EditVerdict, judged, replays, split, split_sessions, verdict_of
from .skill_description import quoted_asks, with_asks
from .skill_file import FileStep, SkillFile, read_skill, whole_text
from .skill_proposals import is_same
from .trigger_gate import TriggerScore


class Tuner:
    """Looks for one change of a placed skill: the steps are tried first, then the description."""

    def __init__(
        self,
        skill: PlacedSkill,
        work: PoolWork | None,
        encode: Encode | None,
        read_by_others: bool = False,
        optimizer: Optimizer | None = None,
    ) -> None:
        """`work`: of the pool in which the skill's work is done; `encode`: compares requests, None to leave the
        description as it is; `read_by_others`: as in `TuneSkill`. Raises InvalidRequest for a file without steps."""
        self._skill, self._work, self._encode = skill, work, encode
        self._optimizer = optimizer or SearchOptimizer()
        self._read_by_others = read_by_others
        self._file = read_skill(Path(skill.path))
        whole_text(Path(skill.path), self._file)
        if not self._file.steps:
            raise InvalidRequest(
                f"{skill.path} has no steps that memd can read", hint="steps are numbered, in backticks"
            )

    def tuned(self) -> SkillTuning:
        """Return what mends the file, or the edits that the optimizer proposes and what held-out rounds say to them."""
        skill, work = self._skill, self._work
        why = skill.retire or skill.mend
        if skill.better and self._may_quote(quoted_asks(skill.better)):
            return SkillTuning(skill=skill, accepted=True, why=why, text=skill.better, sha=self._file.sha, by="user")
        if skill.mend:
            why = f"{why}: write another description into {skill.path} yourself, because memd may quote none"
            return SkillTuning(skill=skill, why=why)
        named = self._file.named(work.subs) if work else ()
        procedure = _procedure(frozenset(each.step.name for each in named if each.step.own), work)
        if work is None or procedure is None:
            return SkillTuning(skill=skill, why="no work of yours repeats its steps, so nothing can judge an edit")
        rounds = sorted(procedure.rounds, key=lambda each: each.unit.at)
        if len({each.step.name for each in named}) < len(named):
            return SkillTuning(skill=skill, why="a step stands twice in the file, so an edit might mean either")
        edited = self._steps(named, procedure, rounds, work) if self._is_one_list() else None
        if edited is None or not edited.accepted:
            described = self._asks(rounds, work)
            edited = described if described and (described.accepted or edited is None) else edited
        return edited or SkillTuning(skill=skill, why="no edit fits your work better than the file as it is")

    def _may_quote(self, asks: Sequence[str]) -> bool:
        """Whether new requests may stand in the description."""
        work, old = self._work, quoted_asks(self._file.text)
        if not self._read_by_others or work is None:
            return True
        return all(ask in old or work.has_asked(ask, in_private=False) for ask in asks)

    def _is_one_list(self) -> bool:
        """Whether the steps stand in lines one after the other, so that they can be put in another order."""
        lines = self._file.text.split("\n")
        places = [lines.index(each.line) for each in self._file.steps]
        return places == list(range(places[0], places[0] + len(places)))

    def _steps(
        self, named: Sequence[FileStep], procedure: Procedure, rounds: Sequence[Round], work: PoolWork
    ) -> SkillTuning | None:
        """Return the judged edits of the steps, None without any."""
        steps = tuple(each.step.name for each in named)
        parts = split(replays(rounds))
        edits = self._optimizer.propose(steps, [each.done for each in parts.train])
        lines = _lines(named, work, procedure)
        edits = [edit for edit in edits if _new(edit) in (None, *lines)]
        if not edits:
            return None
        after = applied(steps, edits)
        text = _text(self._file, [lines[name] for name in after])
        return self._judged(judged(steps, after, parts.held_out), tuple(map(_told, edits)), text)

    def _asks(self, rounds: Sequence[Round], work: PoolWork) -> SkillTuning | None:
        """Return the judged change of the requests in the description, None without one. The requests are those of the
        older sessions; those of the newest ones judge."""
        quoted, newest = quoted_asks(self._file.text), split_sessions([each.unit.document for each in rounds])
        held_out = [each for each in rounds if each.unit.document in newest]
        unseen = {each.unit.turns[0] for each in held_out}
        asks = work.requests({each.unit.turns[0] for each in rounds} - unseen, unseen)
        is_new = asks and {*asks} != {*quoted} and self._may_quote(asks)
        if self._encode is None or not quoted or not is_new:
            return None
        judging, others = work.asks({each.unit.turns[0] for each in held_out})
        done, _ = work.asks({each.unit.turns[0] for each in rounds})
        score = TriggerScore(self._encode, [ask for ask in others if ask not in done])
        verdict = verdict_of(score.scores(" ".join(quoted), " ".join(asks), judging), len(newest))
        told = " and ".join(f"quote “{ask}”" for ask in asks)
        return self._judged(verdict, (told,), with_asks(self._file.text, asks))

    def _judged(self, verdict: EditVerdict, edits: tuple[str, ...], text: str) -> SkillTuning:
        return SkillTuning(
            skill=self._skill,
            edits=edits,
            accepted=verdict.accepted,
            why=verdict.why,
            before=round(verdict.mean_before, 3),
            after=round(verdict.mean_after, 3),
            held_out=verdict.units,
            sessions=verdict.sessions,
            sha=self._file.sha,
            text=text if verdict.accepted else "",
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
            return f"add `{name}` as step {after + 1}"
        case DropStep(name=name):
            return f"drop `{name}`"
        case MoveStep(name=name, to=to):
            return f"move `{name}` to step {to + 1}"
        case SwapStep(name=name, other=other):
            return f"put `{other}` in the place of `{name}`"


def _text(file: SkillFile, steps: Sequence[str]) -> str:
    """Return a skill's text with these steps in the place of its own."""
    old = {each.line for each in file.steps}
    lines = file.text.split("\n")
    place = next(number for number, line in enumerate(lines) if line in old)
    rest = [line for line in lines if line not in old]
    numbered = [f"{number}. {step}" for number, step in enumerate(steps, 1)]
    return "\n".join((*rest[:place], *numbered, *rest[place:]))
