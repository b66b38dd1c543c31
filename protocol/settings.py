"""Requests and replies about settings: what is in force, why, and how to change it (U6).

Comes in: a wish. Goes out: every setting. Invariant: values travel as TOML, as they stand in the file.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from .intent import Request


class ListSettings(Request, tag="settings", frozen=True, kw_only=True):
    """Every setting, with its value and where that comes from."""


class PutSetting(Request, tag="put_setting", frozen=True, kw_only=True):
    """Write a setting into memd.toml, or take it out (no `value`), and follow it. A value is TOML, or plain text."""

    name: str
    value: str | None = None


class Setting(msgspec.Struct, frozen=True, kw_only=True):
    """A setting: its value in force and its default as TOML; `source` says which of the three layers decides.

    `waits`: the value in the file counts from the next start.
    """

    name: str
    value: str
    default: str
    source: Literal["default", "file", "environment"]
    about: str
    waits: bool = False


class SettingList(msgspec.Struct, frozen=True, kw_only=True):
    """Of `settings` and `put_setting`. `problem`: why the file is not followed, "" if it is."""

    file: str
    settings: tuple[Setting, ...]
    problem: str = ""
