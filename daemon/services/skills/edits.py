"""Edits of a skill's steps, at most four in a round (K3).

A step is its name, such as `make bundle` or `edit code`. If a skill names a step twice, an edit means the first one.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

MOST_EDITS = 4
"""Most edits of one round."""


class AddStep(msgspec.Struct, frozen=True, tag="add", tag_field="edit", forbid_unknown_fields=True):
    """Adds a step behind the first `after` steps; 0 makes it the first one."""

    name: str
    after: int


class DropStep(msgspec.Struct, frozen=True, tag="drop", tag_field="edit", forbid_unknown_fields=True):
    """Removes a step."""

    name: str


class MoveStep(msgspec.Struct, frozen=True, tag="move", tag_field="edit", forbid_unknown_fields=True):
    """Moves a step. `to`: how many steps stand before it afterwards."""

    name: str
    to: int


class SwapStep(msgspec.Struct, frozen=True, tag="swap", tag_field="edit", forbid_unknown_fields=True):
    """Replaces a step by another one. If the skill has the other one already, the two change places."""

    name: str
    other: str


SkillEdit = AddStep | DropStep | MoveStep | SwapStep


class EditDoesNotFit(ValueError):
    """The edits of a round cannot be made, with the reason."""


def applied(steps: tuple[str, ...], edits: Sequence[SkillEdit]) -> tuple[str, ...]:
    """Return the steps after a round of edits, made one after the other.

    Raises EditDoesNotFit for more than `MOST_EDITS` edits, a step that is not there, an added step that is there
    already, and a place outside the steps.
    """
    if len(edits) > MOST_EDITS:
        raise EditDoesNotFit(f"a round has at most {MOST_EDITS} edits, not {len(edits)}")
    for edit in edits:
        steps = _after(steps, edit)
    return steps


def _after(steps: tuple[str, ...], edit: SkillEdit) -> tuple[str, ...]:
    match edit:
        case AddStep(name=name, after=after):
            if name in steps:
                raise EditDoesNotFit(f"the skill has the step {name!r} already")
            return _with(steps, name, after)
        case DropStep(name=name):
            return _without(steps, name)
        case MoveStep(name=name, to=to):
            return _with(_without(steps, name), name, to)
        case SwapStep(name=name, other=other):
            return _swapped(steps, name, other)


def _with(steps: tuple[str, ...], name: str, after: int) -> tuple[str, ...]:
    if not 0 <= after <= len(steps):
        raise EditDoesNotFit(f"there is no place {after} among {len(steps)} steps")
    return (*steps[:after], name, *steps[after:])


def _without(steps: tuple[str, ...], name: str) -> tuple[str, ...]:
    place = _place(steps, name)
    return (*steps[:place], *steps[place + 1 :])


def _swapped(steps: tuple[str, ...], name: str, other: str) -> tuple[str, ...]:
    changed = list(steps)
    place = _place(steps, name)
    if other in steps:
        changed[_place(steps, other)] = name
    changed[place] = other
    return tuple(changed)


def _place(steps: tuple[str, ...], name: str) -> int:
    if name not in steps:
        raise EditDoesNotFit(f"the skill has no step {name!r}")
    return steps.index(name)
