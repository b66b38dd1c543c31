"""Skills: the files that the user placed with what became of them, and drafts with what they rest on; a terminal
changes them, never this page (K1, K2)."""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import unified_diff
from pathlib import Path
from typing import Literal

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ....protocol.skills import PlacedSkill, SkillDraft, SkillList, SkillRevision, SkillRound
from ..screen import number_of, panel_of, scope_of, screen
from ..wording import short

PAGE = 5
"""Skills on one screen, at most; placed ones come first. With the numbers below, a screen stays within 64 kB."""

STEPS, LISTED = 20, 12
"""Steps of a skill, and its newest rounds or revisions, that are shown, at most."""

FILE_TEXT, COMPARED_TEXT = 4_000, 24_000
"""Characters of a file that are shown, and of each of two files that are compared, at most."""

DIFF_LINES, LINE, AROUND = 30, 120, 2
"""Lines of a comparison that are shown, and characters of a line or a step, at most; lines beside each change."""

_PLAIN_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,63}")

DiffKind = Literal["h", "d", "a", ""]
"""The class of a line of a comparison: where it is, gone, new, or the same."""


@dataclass(frozen=True)
class ShownDraft:
    """A draft. `typed`: what names it in a command."""

    draft: SkillDraft
    typed: str

    @property
    def good(self) -> int:
        """How many rounds are known to have ended well."""
        return sum(done.end == "good" for done in self.draft.rounds)

    @property
    def newest(self) -> tuple[SkillRound, ...]:
        """The newest rounds, the newest first."""
        return self.draft.rounds[: -LISTED - 1 : -1]


@dataclass(frozen=True)
class ShownSkill:
    """A placed skill. `typed`: what names it in a command; `diff`: what would change in its file, empty where the files
    are too long to compare."""

    skill: PlacedSkill
    typed: str
    diff: tuple[tuple[DiffKind, str], ...] = ()

    @property
    def newest(self) -> tuple[SkillRevision, ...]:
        """The newest revisions, the newest first."""
        return self.skill.revisions[: -LISTED - 1 : -1]


def typed_name(skill: PlacedSkill | SkillDraft, names: Counter[str]) -> str:
    """Return what names a skill in a command: its name, or the beginning of its id where several have the name or it is
    no plain word of a shell."""
    return skill.name if names[skill.name] == 1 and _PLAIN_NAME.fullmatch(skill.name) else short(skill.id)


def difference(old: str, new: str) -> Iterator[tuple[DiffKind, str]]:
    """Yield the lines that differ, with those beside them."""
    lines = list(unified_diff(old.splitlines(), new.splitlines(), lineterm="", n=AROUND))[2:]
    kinds: dict[str, DiffKind] = {"@": "h", "-": "d", "+": "a"}
    for line in lines[1 : DIFF_LINES + 1]:  # the first one tells where the first change is
        kind = kinds.get(line[:1], "")
        yield kind, "…" if kind == "h" else f"{'−' if kind == 'd' else line[:1]} {line[1 : LINE + 1]}"
    if len(lines) > DIFF_LINES + 1:
        yield "h", f"{len(lines) - DIFF_LINES - 1:,} more lines"


def _difference_of(skill: PlacedSkill) -> tuple[tuple[DiffKind, str], ...]:
    """Return what would change in a skill's file; empty where there is nothing to compare."""
    if not skill.better or len(skill.better) > COMPARED_TEXT:
        return ()
    try:
        if not Path(skill.path).is_file():
            return ()
        with Path(skill.path).open(encoding="utf-8", errors="replace") as file:
            text = file.read(COMPARED_TEXT + 1)
    except OSError:
        return ()
    return tuple(difference(text, skill.better)) if len(text) <= COMPARED_TEXT else ()


def unplaced(listed: SkillList) -> list[SkillDraft]:
    """Return the drafts, without those that a placed skill spells out."""
    placed = {(each.pool, Path(each.path).parts[-2:]) for each in listed.placed}
    return [
        draft
        for draft in listed.skills
        if not any((draft.pool, Path(path).parts[-2:]) in placed for path in draft.stated_in)
    ]


def skill_page(
    placed: Sequence[PlacedSkill], drafts: Sequence[SkillDraft], start: int
) -> tuple[list[ShownSkill], list[ShownDraft]]:
    """Return a page of skills, from a place on."""
    names = Counter(each.name for each in placed)
    all_names = names + Counter(each.name for each in drafts)
    shown = placed[start : start + PAGE]
    behind = max(0, start - len(placed))
    return (
        [ShownSkill(each, typed_name(each, names), _difference_of(each)) for each in shown],
        [ShownDraft(each, typed_name(each, all_names)) for each in drafts[behind : behind + PAGE - len(shown)]],
    )


async def show(request: Request) -> Response:
    """Show the skills in scope, of all projects for `in=all`."""
    client, scope = panel_of(request).client, scope_of(request)
    is_wide = request.query_params.get("in") == "all" and not scope.pool
    start = number_of(request, "from", 0)
    listed = await client.skills(**scope.readable, everywhere=is_wide, known=True)
    waiting = unplaced(listed)
    placed, drafts = await asyncio.to_thread(skill_page, listed.placed, waiting, start)
    total = len(listed.placed) + len(waiting)
    return await screen(
        request,
        "skills.html",
        "Skills",
        scope_name="everywhere" if is_wide else None,
        is_wide=is_wide,
        listed=listed,
        placed=placed,
        drafts=drafts,
        total=total,
        start=start,
        further=start + PAGE if total > start + PAGE else 0,
        steps=STEPS,
        line=LINE,
        file_text=FILE_TEXT,
    )


ROUTES = [Route("/skills", show)]
