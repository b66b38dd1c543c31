"""Renders a procedure as a skill's file, or as a line for AGENTS.md, without a word of its own but a fixed frame (K1).

Texts come from two places: plain words of commands that went well, and the user's own turns. What is not plain is shown
as `<text>`, and what differs from round to round as `<path>` or `<word>`.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from ....protocol.skills import SkillForm
from .mining import Procedure, ProcedureStep, Round
from .risks import risk
from .steps import StepSeen
from .tables import table

SAME, SAME_NUMBER = 0.6, 0.8
"""Share of the rounds that have a word, from which the word itself is shown, and that of a word with a digit."""

INSIDE, OUTSIDE = 0.5, 0.2
"""Share of a procedure's asks that have one of its trigger words, and the most of all other asks."""

ASKS, ASK_LENGTH, ASK_WORDS = 3, 110, 2
"""Most asks that are quoted, their most characters and least words."""

_WORD = re.compile(r"[^\W\d_][\w-]{2,}")
_PLAIN_ASK = re.compile(r"[\w\s.,:;?'’()/+&%#@\"“”„«»¿¡—–-]+")
_ORDER = re.compile("|".join(table("reactions")["orders"].values()), re.IGNORECASE)
_STOP = frozenset(" ".join(table("reactions")["stop"].values()).split())


class RenderedStep(NamedTuple):
    """A step in words: a command in backticks, or an edit. `rounds`: how many have it; `risk`: why it is left out."""

    text: str
    rounds: int
    risk: str = ""


class RenderedProcedure(NamedTuple):
    """A procedure in words: of the form `skill` if its asks have words of their own, else of the form `line`."""

    form: SkillForm
    name: str
    asks: tuple[str, ...]
    programs: tuple[str, ...]
    steps: tuple[RenderedStep, ...]
    pitfalls: tuple[str, ...]


def draft(procedure: Procedure, other_asks: Sequence[str]) -> RenderedProcedure:
    """Return a procedure in words. `other_asks`: the user's turns of the same pool that asked for something else."""
    asks = [text for each in procedure.rounds for text in _asks(each)]
    words = trigger_words(asks, other_asks)
    steps = tuple(_step(step, len(procedure.rounds)) for step in procedure.steps)
    told = [step.name for step, words_of in zip(procedure.steps, steps, strict=True) if step.own and not words_of.risk]
    programs = tuple(dict.fromkeys(name.split()[0] for name in told))
    quoted = tuple(_quotable(asks, words)) if words else ()
    form: SkillForm = "skill" if quoted else "line"
    return RenderedProcedure(form, _name(words, procedure), quoted, programs, steps, tuple(_pitfalls(procedure)))


def trigger_words(asks: Sequence[str], others: Sequence[str]) -> tuple[str, ...]:
    """Return the words that most of the asks have and few others do, the best ones first."""
    inside, outside = (Counter(word for text in texts for word in _words(text)) for texts in (asks, others))
    most = OUTSIDE * max(1, len(others))
    kept = [word for word, count in inside.items() if count >= INSIDE * len(asks) and outside[word] <= most]
    return tuple(sorted(kept, key=lambda word: (-inside[word], outside[word], word))) if len(asks) > 1 else ()


def _words(text: str) -> set[str]:
    return {word.casefold() for word in _WORD.findall(text)} - _STOP


def _asks(each: Round) -> Iterable[str]:
    return [ask.text for ask in each.unit.asks[:1]]


def _quotable(asks: Sequence[str], words: Sequence[str]) -> Iterator[str]:
    """Yield the shortest asks that have a trigger word and are plain sentences."""
    plain = filter(is_plain_ask, sorted((" ".join(text.split()) for text in asks), key=lambda text: (len(text), text)))
    fitting = list({re.sub(r"\d+", "#", text.casefold()): text for text in reversed(list(plain))}.values())[::-1]
    yield from [text for text in fitting if _words(text).intersection(words)][:ASKS]


def is_plain_ask(text: str) -> bool:
    """Whether a user's turn may stand in a file that agents obey: short, of plain letters, no order to the agent."""
    is_clean = all(unicodedata.category(letter) not in ("Cf", "Cc", "Co", "Cn") for letter in text)
    is_short = len(text) <= ASK_LENGTH and len(text.split()) >= ASK_WORDS
    return is_clean and is_short and _PLAIN_ASK.fullmatch(text) is not None and not _ORDER.search(text)


def _name(words: Sequence[str], procedure: Procedure) -> str:
    ascii_words = [re.sub(r"[^a-z0-9]+", "", word) for word in words]
    chosen = [word for word in ascii_words if word][:2]
    if not chosen:
        first = next(step.name for step in procedure.steps if step.own)
        chosen = [
            re.sub(r"[^a-z0-9]+", "-", part.rpartition("/")[2].partition(".")[0].lower()).strip("-")
            for part in first.split()
        ]
    return "-".join(filter(None, chosen))[:64].strip("-") or "procedure"


def _step(step: ProcedureStep, rounds: int) -> RenderedStep:
    done = [seen for seen in step.seen if seen.outcome != "error"] or list(step.seen)
    if step.name.startswith("edit "):
        return RenderedStep(f"({step.name})", step.rounds)
    shown, raw = _shown(done)
    folder, count = Counter(seen.folder for seen in done).most_common(1)[0]
    where = f" in `{folder}`" if folder and count >= SAME * len(done) else ""
    return RenderedStep(f"`{' '.join(shown)}`{where}", step.rounds, risk(raw) or risk(f"{' '.join(shown)}{where}"))


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
            yield _placeholder(word)
        else:
            is_left_out = False


def _placeholder(word: str) -> str:
    if not word:
        return "<text>"
    return "<path>" if "/" in word or re.search(r"\.[A-Za-z]\w{0,4}$", word) else "<word>"


def _is_same(word: str, share: float) -> bool:
    return share >= (SAME_NUMBER if re.search(r"\d", word) and not word.startswith("-") else SAME)


def _pitfalls(procedure: Procedure) -> Iterator[str]:
    """Yield steps that failed and went well after another command, in several sessions."""
    seen: dict[tuple[str, str], set[str]] = {}
    for each in procedure.rounds:
        for place, step in enumerate(each.steps):
            if step.outcome != "error":
                continue
            behind = each.steps[place + 1 : place + 6]
            again = next(
                (at for at, later in enumerate(behind) if later.name == step.name and later.outcome == "ok"), 0
            )
            if again and behind[again - 1].words[0] != "edit":
                seen.setdefault((step.name, behind[again - 1].name), set()).add(each.unit.document)
    for (failed, between), documents in sorted(seen.items()):
        if len(documents) >= 2:
            yield f"`{failed}` failed and went well after `{between}` ({len(documents)} sessions)"
