"""The text of a draft: a file by the agentskills.io format, or a line for AGENTS.md (K1).

Invariants: the front matter has `name`, `description` and `metadata` alone, each a quoted string; a step with a risk is
left out; a text with an injection or a secret is refused as a whole.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ..outgoing_screen import flags_in, secrets_in
from .rendering import RenderedProcedure, RenderedStep
from .skill_description import as_yaml, description


def skill_text(draft: RenderedProcedure, id: str, told: str) -> str:
    """Return the text of a draft. `told`: how often it was done."""
    return "\n".join(_skill(draft, id, told) if draft.form == "skill" else _line(draft)) + "\n"


def why_refused(draft: RenderedProcedure, text: str) -> str:
    """Return why a draft is no proposal, "" if it is one."""
    left = sum(not step.risk for step in draft.steps if step.text.startswith("`"))
    risky = next((step for step in draft.steps if step.risk), None)
    if risky and left < 2:
        return f"most of it is risky: {risky.text} {risky.risk}"
    words = re.sub(r"[-_./`]+", " ", text)
    if flags := flags_in(text) or flags_in(words):
        return f"its words may be meant for the agent: {flags[0]}"
    if secrets := secrets_in(text):
        return f"it may hold a secret: {secrets[0].rule}"
    return ""


def _skill(draft: RenderedProcedure, id: str, told: str) -> Iterator[str]:
    yield "---"
    yield f"name: {draft.name}"
    yield f"description: {as_yaml(description(draft.asks, draft.programs))}"
    yield f"metadata: {{memd: {as_yaml(told)}, memd-id: {as_yaml(id)}}}"
    yield "---"
    for number, step in enumerate(_kept(draft), 1):
        yield f"{number}. {step.text}"
    if draft.pitfalls:
        yield ""
        yield "Pitfalls"
        yield from (f"- {pitfall}" for pitfall in draft.pitfalls)


def _line(draft: RenderedProcedure) -> Iterator[str]:
    kept = _kept(draft)
    first = next((step.text.strip("()") for step in kept if step.text.startswith("(")), "")
    commands = ", ".join(step.text for step in kept if step.text.startswith("`"))
    yield f"- After {first}: {commands}" if first else f"- In this order: {commands}"


def _kept(draft: RenderedProcedure) -> list[RenderedStep]:
    return [step for step in draft.steps if not step.risk]
