"""Requests and replies about pauses (P-2)."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from .request_fields import Request

Skip = Literal["", "paused", "ignored", "disabled", "tool output"]
"""Why memd captures nothing: a pause, a folder in the setting `ignored_folders`, memd is disabled."""


class Pause(Request, tag="pause", frozen=True, kw_only=True):
    """Stop capturing (P-2): everywhere, or in an absolute `folder` and below; for `for_s` seconds, or until `resume`
    (0). memd does not capture turns from the pause later."""

    folder: str = ""
    for_s: Annotated[float, msgspec.Meta(ge=0, le=1e9)] = 0


class Resume(Request, tag="resume", frozen=True, kw_only=True):
    """End the pause of this folder, or the one everywhere."""

    folder: str = ""


class PauseState(msgspec.Struct, frozen=True, kw_only=True):
    """A current pause. `folder`: "" for everywhere; `until`: "" for until `resume`."""

    folder: str
    since: str
    until: str = ""


class Pauses(msgspec.Struct, frozen=True, kw_only=True):
    """Reply to `pause` and `resume`: the current pauses. `ended`: the request ended one."""

    pauses: tuple[PauseState, ...]
    ended: bool = False
