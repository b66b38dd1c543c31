"""Renders a procedure as a skill's file, or as a line for AGENTS.md, without a word of its own but a fixed frame (K1).

Texts come from two places: words of commands that went well, as far as `shown_words` lets them stay, and the first
sentences of the user's own turns. What differs from round to round is a placeholder, in a request "…".
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from ....protocol.event import SaidBy
from ....protocol.skills import SkillForm
from .foreign_files import is_foreign
from .mining import Procedure, ProcedureStep, Round
from .request_words import quotable, trigger_words
from .risks import risk
from .shown_words import Known, placeholder, shown_words
from .steps import StepSeen

SAME, SAME_NUMBER = 0.6, 0.8
"""Share of the rounds that have a word, from which the word itself is shown, and that of a word with a digit."""


_SAID = {"page": "a page said it first", "outside": "a file from outside the project said it first"}
"""Why a command is left out that stood in a tool's result before its first run."""


class RenderedStep(NamedTuple):
    """A step in words: a command in backticks, or an edit. `rounds`: how many have it; `risk`: why it is left out;
    `document`: whether a document within the project said it before an agent ran it."""

    text: str
    rounds: int
    risk: str = ""
    document: bool = False


class RenderedProcedure(NamedTuple):
    """A procedure in words: of the form `skill` if its asks have words of their own, else of the form `line`."""

    form: SkillForm
    name: str
    asks: tuple[str, ...]
    programs: tuple[str, ...]
    steps: tuple[RenderedStep, ...]
    pitfalls: tuple[str, ...]


def draft(
    procedure: Procedure,
    other_asks: Sequence[str],
    known: Known,
    foreign: frozenset[str] = frozenset(),
    said: Mapping[str, SaidBy] = {},
) -> RenderedProcedure:
    """Return a procedure in words. `other_asks`: the user's turns of the same pool that asked for something else;
    `foreign`: files that were written after a page was read; `said`: what had a command before its first run."""
    asks = [ask for each in procedure.rounds for ask in _asks(each)]
    words = trigger_words(asks, other_asks)
    steps = tuple(_step(step, len(procedure.rounds), known, foreign, said) for step in procedure.steps)
    told = {step.name: shown for step, shown in zip(procedure.steps, steps, strict=True) if not shown.risk}
    programs = tuple(dict.fromkeys(step.name.split()[0] for step in procedure.steps if step.own and step.name in told))
    quoted = quotable(asks, words) if words else ()
    form: SkillForm = "skill" if quoted else "line"
    pitfalls = tuple(_pitfalls(procedure, known, told, said))
    return RenderedProcedure(form, _name(words, procedure), quoted, programs, steps, pitfalls)


def _asks(each: Round) -> Iterable[str]:
    return [ask.text for ask in each.unit.asks[:1]]


def _name(words: Sequence[str], procedure: Procedure) -> str:
    """Return two words: a single one may be the name of a command that a host has."""
    ascii_words = [re.sub(r"[^a-z0-9]+", "", word) for word in words]
    chosen = [word for word in ascii_words if word][:2]
    if len(chosen) < 2:
        first = next(step.name for step in procedure.steps if step.own)
        parts = [part.rpartition("/")[2].partition(".")[0].lower() for part in first.split()]
        chosen += [re.sub(r"[^a-z0-9]+", "-", part).strip("-") for part in parts]
    return "-".join(dict.fromkeys(filter(None, chosen)))[:64].strip("-") or "procedure"


def _step(
    step: ProcedureStep, rounds: int, known: Known, foreign: frozenset[str], said: Mapping[str, SaidBy]
) -> RenderedStep:
    done = [seen for seen in step.seen if seen.outcome != "error"] or list(step.seen)
    if step.name.startswith("edit "):
        return RenderedStep(f"({step.name})", step.rounds)
    (program, *rest), raw = _shown(done)
    form = [*shown_words((program,), known), *shown_words(rest, known)]
    folder, count = Counter(seen.folder for seen in done).most_common(1)[0]
    is_there = folder and count >= SAME * len(done)
    where = f" in `{next(shown_words((folder,), known))}`" if is_there else ""
    runs = done[-1].words[0]
    is_projects = known(runs)
    why = risk(raw, is_projects) or risk(f"{' '.join(form)}{where}", is_projects)
    said_by = said.get(raw, "")
    if said_by in _SAID:
        why = _SAID[said_by]
    elif is_foreign(runs, foreign):
        why = "runs what was written after a page was read"
    elif next(shown_words((runs,), known)) != runs:
        why = "has a long name that no file of the project has"
    return RenderedStep(f"`{' '.join(form)}`{where}", step.rounds, why, said_by == "file")


def _shown(done: Sequence[StepSeen]) -> tuple[tuple[str, ...], str]:
    """Return the words of a step as most rounds have them, and a command as it was typed."""
    counts = Counter(word for seen in done for word in set(seen.shown) if word)
    forms = Counter(tuple(_placeholders(seen, counts, len(done))) for seen in done)
    form = min(forms, key=lambda each: (-forms[each], len(each), each))
    typed = next(seen.raw for seen in done if tuple(_placeholders(seen, counts, len(done))) == form)
    return form, typed


def _placeholders(seen: StepSeen, counts: Counter[str], rounds: int) -> Iterator[str]:
    """Yield the words of a command as they are shown; an option that few rounds have goes with its value."""
    is_left_out = False
    for place, word in enumerate(seen.shown):
        is_kept = place == 0 or word in seen.words or (_is_same(word, counts[word] / rounds) and not risk(f"x {word}"))
        if word.startswith("-"):
            is_left_out = not is_kept
            if is_kept:
                yield word
        elif word and is_kept:
            yield word
        elif not is_left_out:
            yield placeholder(word)
        else:
            is_left_out = False


def _is_same(word: str, share: float) -> bool:
    return share >= (SAME_NUMBER if re.search(r"\d", word) and not word.startswith("-") else SAME)


def _pitfalls(
    procedure: Procedure, known: Known, told: Mapping[str, RenderedStep], said: Mapping[str, SaidBy]
) -> Iterator[str]:
    """Yield steps of the draft that failed and went well after another command, in several sessions."""
    seen: dict[tuple[str, str], set[str]] = {}
    for each in procedure.rounds:
        for place, step in enumerate(each.steps):
            if step.outcome != "error" or step.name not in told:
                continue
            behind = each.steps[place + 1 : place + 6]
            again = next(
                (at for at, later in enumerate(behind) if later.name == step.name and later.outcome == "ok"), 0
            )
            if not again:
                continue
            between = behind[again - 1]
            if between.words[0] != "edit" and said.get(between.raw) not in _SAID and not risk(between.raw):
                seen.setdefault((step.name, between.name), set()).add(each.unit.document)
    for names, documents in sorted(seen.items()):
        if len(documents) >= 2:
            failed, helped = (" ".join(shown_words(name.split(), known)) for name in names)
            yield f"`{failed}` failed and went well after `{helped}` ({len(documents)} sessions)"
