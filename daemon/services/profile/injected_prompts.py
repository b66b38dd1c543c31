"""Names the prompts that recalled injected texts (Q13). The log of these texts has only the times of their prompts, and
so no words of one that the user forgets."""

from __future__ import annotations

import msgspec

from ....protocol.event import Said
from ....protocol.instant import micros
from ....protocol.profile import Injection, Injections
from ...storage.archive import Archive
from ..outgoing_screen import without_secrets

NEAR = 10_000_000
"""Microseconds between the time at which a host runs its hook and the one that it notes for the turn."""

SHOWN = 80
"""Characters of a prompt."""


def with_prompts(listed: Injections, archive: Archive) -> Injections:
    """Return the texts with the turns of their prompts, as far as these were captured and are not forgotten."""
    prompts: dict[str, list[tuple[int, Said]]] = {}
    texts: list[Injection] = []
    for text in listed.injections:
        if text.asked_at:
            if text.document not in prompts:
                said = (captured.event for captured in archive.turns(text.document))
                own = (event for event in said if isinstance(event, Said) and event.role == "user")
                prompts[text.document] = [(micros(event.at), event) for event in own]
            text = _with_prompt(text, prompts[text.document])
        texts.append(text)
    return Injections(injections=tuple(texts), total=listed.total)


def _with_prompt(text: Injection, prompts: list[tuple[int, Said]]) -> Injection:
    """Return a text with the prompt nearest to it in time, unless none is near."""
    asked = micros(text.asked_at)
    at, event = min(prompts, key=lambda prompt: abs(prompt[0] - asked), default=(0, None))
    if event is None or abs(at - asked) > NEAR:
        return text
    words = " ".join(without_secrets(event.text).split())
    shown = words if len(words) <= SHOWN else f"{words[: SHOWN - 1]}…"
    return msgspec.structs.replace(text, turn=event.turn, prompt=shown)
