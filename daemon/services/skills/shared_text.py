"""Makes the text of a skill that the others of its project may read (K4).

Home folders, addresses, names of machines, and values of variables become placeholders. Requests of private sessions
are left out, and whatever a rule for secrets or injections finds refuses the whole text.
"""

from __future__ import annotations

import platform
import re
from collections.abc import Callable
from typing import NamedTuple

from ....protocol.errors import InvalidRequest, Refused
from ..outgoing_screen import flags_in, secrets_in
from .skill_description import quoted_asks, with_asks, with_description

_WORD = r"[^\s`\"'()<>,;]"
_PRIVATE = (
    ("a folder of a home", "<path>", re.compile(rf"(?:/home/|/Users/|/root\b|~/|\$HOME\b|[A-Za-z]:[\\/]){_WORD}*")),
    ("an address of the web", "<text>", re.compile(rf"\b[a-z][a-z0-9+.-]{{1,9}}://{_WORD}+", re.IGNORECASE)),
    ("an address of a person or a machine", "<word>", re.compile(r"[\w.+-]+@[A-Za-z][\w.-]*\w")),
    ("an address of a machine", "<word>", re.compile(r"\b\d{1,3}(?:\.\d{1,3}){3}\b")),
    (
        "a name of a machine",
        "<word>",
        re.compile(r"\b[\w-]+(?:\.[\w-]+)*\.(?:local|internal|lan|corp|intranet|home)\b"),
    ),
)
_VARIABLES = re.compile(r"(?<=`)(?:[A-Za-z_]\w*=[^\s`]+\s+)+")


class SharedText(NamedTuple):
    """`text`: of the file; `left_out`: what is not in it, each kind once."""

    text: str
    left_out: tuple[str, ...]


def shared_text(text: str, description: str, is_shared: Callable[[str], bool]) -> SharedText:
    """Return what others may read of a skill's text. `description`: the user's own, "" to keep requests for which
    `is_shared` holds. Raises InvalidRequest if none is left, Refused for a secret or words meant for an agent."""
    left_out: list[str] = []
    quoted = quoted_asks(text)
    kept = [ask for ask in quoted if is_shared(ask)]
    if description:
        text = with_description(text, description)
    elif quoted and not kept:
        hint = "say with --description when an agent should use the skill"
        raise InvalidRequest("its description quotes only requests of your private sessions", hint=hint)
    elif len(kept) < len(quoted):
        text = with_asks(text, kept)
    if quoted and (description or len(kept) < len(quoted)):
        left_out.append("requests of your own")
    for what, placeholder, pattern in _PRIVATE:
        text, count = pattern.subn(placeholder, text)
        left_out += [what] * bool(count)
    named = _VARIABLES.sub(lambda found: re.sub(r"=[^\s`]+", "=<text>", found[0]), text)
    if named != text:
        left_out.append("values of variables")
    if len(machine := platform.node().partition(".")[0]) > 3 and machine in named:
        named = re.sub(rf"\b{re.escape(machine)}\b", "<word>", named)
        left_out.append("the name of this machine")
    _screen(named)
    return SharedText(named, tuple(left_out))


def _screen(text: str) -> None:
    hint = "change the file, and share it then"
    if secrets := secrets_in(text):
        raise Refused(f"the skill may hold a secret: {secrets[0].rule}", hint=hint)
    if flags := flags_in(text):
        raise Refused(f"its words may be meant for an agent: {flags[0]}", hint=hint)
